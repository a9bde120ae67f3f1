"""One frozen Config of all settings, and the only reader of the environment (MATNB_*)."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from matnb.errors import OptionError, suggestion
from matnb.location import shown_url

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
          "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}  # fmt: skip
_LEAST_MEMORY_BYTES = 64 * 10**6
ENGINES = ("auto", "dask", "gang", "interpret")
DISPLAYS = ("auto", "live", "static")
POLICY_NAMES = ("auto", "entries", "presto", "off")


@dataclass(frozen=True)
class Config:
    """Every setting of a session.

    Attributes
    ----------
    workers
        Number of Dask workers.
    threads
        Threads of each worker; None shares the machine's cores among the workers.
    processes
        True gives each worker a process of its own; False keeps all in this process.
    security
        True keeps every other user of the machine away from worker processes; False lets them listen on
        ports of the loopback interface, which any local user reaches, who can run code then.
    memory_limit_bytes
        Memory of each worker in bytes; None shares what the machine has free.
    memo_bytes
        Bytes of results kept on the workers between runs, and of those on disk.
    remembers
        Whether results stay, within those bytes, when no handle stands for them any more.
    memo_dir
        Folder in which results stay between processes, or None; not used unless ``remembers``.
    compute_limit_bytes
        Largest result in bytes that ``compute()`` brings into this process.
    engine
        "auto", "gang" and "dask" run on the cluster: "gang" refuses loops that no gang can run, with "dask"
        all that runs is tasks of Dask's. "interpret" evaluates in this process with NumPy and SciPy.
    rebalance
        Who decides when stored arrays are repartitioned: "auto", "entries", "presto", "off", the path of a
        trace that is repeated, or an object that is one or decides itself; the session looks whether it is.
    node_grid
        How many machines, or workers of one machine, lie along each axis of an array; None goes by its shape.
    """

    workers: int = 1
    threads: int | None = None
    processes: bool = False
    security: bool = True
    memory_limit_bytes: int | None = None
    memo_bytes: int = 4 * 10**9
    remembers: bool = True
    memo_dir: str | None = None
    compute_limit_bytes: int = 2 * 10**9
    engine: str = "auto"
    rebalance: object = "auto"
    node_grid: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.workers, int) or isinstance(self.workers, bool) or self.workers < 1:
            raise OptionError(f"workers={self.workers!r}: give a whole number of at least 1")
        if self.threads is not None and (
            not isinstance(self.threads, int) or isinstance(self.threads, bool) or self.threads < 1
        ):
            raise OptionError(
                f"threads={self.threads!r}: give a whole number of at least 1, or None for all cores"
            )
        if self.memory_limit_bytes is not None and self.memory_limit_bytes < _LEAST_MEMORY_BYTES:
            raise OptionError(f"memory_limit={self.memory_limit_bytes} bytes: a worker needs at least 64MB")
        if self.compute_limit_bytes < 1:
            raise OptionError(
                "compute_limit=0 would not let any value be computed; give a size such as '2GB'"
            )
        if self.memo_dir is not None and not self.memo_dir.strip():
            raise OptionError(f"memo_dir={self.memo_dir!r}: give the path of a folder, or None for no files")
        if self.memo_dir is not None and "://" in self.memo_dir:
            shown = shown_url(self.memo_dir)
            raise OptionError(f"memo_dir={shown!r}: give the path of a folder on this machine, not a url")
        if self.engine not in ENGINES:
            raise OptionError(f"engine={self.engine!r}: {suggestion(self.engine, ENGINES, 'choose one of')}")
        if self.node_grid is not None and not (
            self.node_grid and all(isinstance(one, int) and one >= 1 for one in self.node_grid)
        ):
            raise OptionError(f"node_grid={self.node_grid!r}: give whole numbers of at least 1, as in (4, 4)")
        if isinstance(self.rebalance, str) and not (
            self.rebalance.strip().lower() in POLICY_NAMES or is_trace_path(self.rebalance)
        ):
            near = suggestion(self.rebalance, POLICY_NAMES, "give the path of a trace (.json), or one of")
            raise OptionError(f"rebalance={self.rebalance!r}: {near}")


def rebalance_of_reports(environ: Mapping[str, str] | None = None, otherwise: str = "entries") -> str:
    """Return what a report's kernel gets as ``MATNB_REBALANCE``: what is set, or "entries".

    A report is the same every time, so nothing in it may follow measured seconds unless a user wants that.
    """
    return (os.environ if environ is None else environ).get("MATNB_REBALANCE", otherwise)


def chromium_from_environment(environ: Mapping[str, str] | None = None) -> str:
    """Return which browser prints PDF: ``MATNB_CHROMIUM``, or nothing where any will do."""
    return (os.environ if environ is None else environ).get("MATNB_CHROMIUM", "")


def data_folder_from_environment(environ: Mapping[str, str] | None = None) -> str:
    """Return where matnb keeps what is this user's alone: in ``XDG_DATA_HOME``, or ``~/.local/share``."""
    folder = (os.environ if environ is None else environ).get("XDG_DATA_HOME", "")
    if not os.path.isabs(folder):  # which the standard says to ignore
        folder = os.path.expanduser(os.path.join("~", ".local", "share"))
    return os.path.join(folder, "matnb")


def compiles_ahead(environ: Mapping[str, str] | None = None) -> bool:
    """Tell whether missing machine code may be made while a user types: not with ``MATNB_COMPILE=off``."""
    text = (os.environ if environ is None else environ).get("MATNB_COMPILE", "auto")
    return text == "auto" or _truth(text, "MATNB_COMPILE")


def progress_from_environment(environ: Mapping[str, str] | None = None) -> bool:
    """Tell whether a line says how far long runs are: not with ``MATNB_PROGRESS=0``."""
    return _truth((os.environ if environ is None else environ).get("MATNB_PROGRESS", "1"), "MATNB_PROGRESS")


def shows_full_tracebacks(environ: Mapping[str, str] | None = None) -> bool:
    """Tell whether errors keep matnb's own frames: with ``MATNB_FULL_TRACEBACK=1``."""
    text = (os.environ if environ is None else environ).get("MATNB_FULL_TRACEBACK", "0")
    return _truth(text, "MATNB_FULL_TRACEBACK")


def environment_without_settings() -> dict[str, str]:
    """Return the variables that a process gets which a user's settings do not concern."""
    return {name: text for name, text in os.environ.items() if not name.startswith("MATNB_")}


def is_trace_path(text: str) -> bool:
    """Tell whether ``rebalance=`` names a file: a path, or what ends as traces do."""
    return text.endswith(".json") or os.sep in text


def parse_bytes(text: str | int | float, option: str = "size") -> int:
    """Return the number of bytes in ``text``: ``"4GB"``, ``"512 MiB"`` or a plain number.

    Raises
    ------
    OptionError
        When the text is not a size, or negative; the message names ``option``.
    """
    if isinstance(text, bool):
        raise OptionError(f"{option}={text!r}: give a number of bytes or a string such as '4GB'")
    if isinstance(text, int | float):
        number, factor = float(text), 1
    else:
        found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([A-Za-z]*)\s*", text)
        if found is None or found[2].upper() not in _UNITS:
            raise OptionError(
                f"{option}={text!r}: give a number of bytes or a string such as '4GB' or '512MiB'"
            )
        number, factor = float(found[1]), _UNITS[found[2].upper()]
    if not 0 <= number < float("inf"):
        raise OptionError(f"{option}={text!r}: a size cannot be negative or infinite")
    return int(number * factor)


def memo_fields(value: str | int, option: str = "memo") -> dict[str, int | bool]:
    """Return the fields of Config that ``memo`` sets: a size, or "off", which leaves the size as it is.

    Raises
    ------
    OptionError
        For what is neither.
    """
    if isinstance(value, str) and value.strip().lower() == "off":
        return {"remembers": False}
    try:
        num_bytes = parse_bytes(value, option)
    except OptionError as error:
        raise OptionError(f"{error}, or 'off'") from None
    return {"memo_bytes": num_bytes, "remembers": True}


def _whole_number(text: str, option: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise OptionError(f"{option}={text!r}: give a whole number") from None


def _truth(text: str, option: str) -> bool:
    match text.strip().lower():
        case "1" | "true" | "yes" | "on":
            return True
        case "0" | "false" | "no" | "off" | "":
            return False
    raise OptionError(f"{option}={text!r}: give true or false")


def parse_grid(text: str, option: str = "node_grid") -> tuple[int, ...]:
    """Return the whole numbers of ``"4x4"``, or of ``"4,4"``.

    Raises
    ------
    OptionError
        For any other text; the message names ``option``.
    """
    return tuple(_whole_number(one, option) for one in re.split(r"[x,]", text.strip("() ").lower()))


def _as_it_is(text: str, option: str) -> str:
    return text


# Each variable of a session with the field of Config that it sets, and how its text is read.
_VARIABLES: dict[str, tuple[str, Callable[[str, str], int | str | tuple[int, ...]]]] = {
    "MATNB_WORKERS": ("workers", _whole_number),
    "MATNB_THREADS": ("threads", _whole_number),
    "MATNB_PROCESSES": ("processes", _truth),
    "MATNB_SECURITY": ("security", _truth),
    "MATNB_MEMORY_LIMIT": ("memory_limit_bytes", parse_bytes),
    "MATNB_MEMO": ("memo_bytes", parse_bytes),
    "MATNB_COMPUTE_LIMIT": ("compute_limit_bytes", parse_bytes),
    "MATNB_MEMO_DIR": ("memo_dir", _as_it_is),
    "MATNB_ENGINE": ("engine", _as_it_is),
    "MATNB_REBALANCE": ("rebalance", _as_it_is),
    "MATNB_NODE_GRID": ("node_grid", parse_grid),
}
# Read elsewhere; and by the tests.
_OF_USERS = ("MATNB_DISPLAY", "MATNB_PROGRESS", "MATNB_CHROMIUM", "MATNB_COMPILE", "MATNB_FULL_TRACEBACK")
_NO_SETTINGS = (*_OF_USERS, "MATNB_TEST_DATA", "MATNB_ARRAY_API_TESTS", "MATNB_ARRAY_API_EXAMPLES")


def config_from_environment(environ: Mapping[str, str] | None = None) -> Config:
    """Return the default Config changed by the variables ``MATNB_WORKERS``, ``MATNB_MEMO`` and so on.

    The text "auto" stands for the default of any of them.

    Raises
    ------
    OptionError
        For an unknown ``MATNB_`` variable or a bad value, naming the variable.
    """
    environ = os.environ if environ is None else environ
    config = Config()
    for variable, text in sorted(environ.items()):
        if not variable.startswith("MATNB_") or variable in _NO_SETTINGS:
            continue
        if variable not in _VARIABLES:
            known = [one.removeprefix("MATNB_") for one in (*_VARIABLES, *_OF_USERS)]
            near = suggestion(variable.removeprefix("MATNB_"), known, shown=lambda one: f"MATNB_{one}")
            raise OptionError(f"{variable}={text!r}: there is no such setting; {near}")
        field, read = _VARIABLES[variable]
        if text in ("auto", ""):  # as shells unset a variable for one command
            continue
        values = memo_fields(text, variable) if field == "memo_bytes" else {field: read(text, variable)}
        try:
            config = replace(config, **values)
        except OptionError as error:
            raise OptionError(f"{variable}: {error}") from None
    return config


def variables_at_start() -> dict[str, str]:
    """Return the environment that this process was started with, which C libraries have read.

    What it set since is not in it, where the system tells.
    """
    try:
        entries = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return dict(os.environ)
    pairs = (os.fsdecode(entry).partition("=") for entry in entries if entry)
    return {name: text for name, _, text in pairs}


class _KeptVariables:
    """Variables that others set meanwhile, put back after the last of several overlapping uses."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._num_users: Counter[str] = Counter()
        self._before: dict[str, str | None] = {}

    @contextlib.contextmanager
    def __call__(self, names: Iterable[str]) -> Iterator[None]:
        kept = tuple(names)
        with self._lock:
            for name in kept:
                if not self._num_users[name]:
                    self._before[name] = os.environ.get(name)
                self._num_users[name] += 1
        try:
            yield
        finally:
            with self._lock:
                for name in kept:
                    self._num_users[name] -= 1
                    if not self._num_users[name]:
                        self._put_back(name, self._before.pop(name))

    def _put_back(self, name: str, value: str | None) -> None:
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


# Dask sets variables of a new process in this one first, and starts several processes at a time.
variables_kept = _KeptVariables()


def display_from_environment(environ: Mapping[str, str] | None = None) -> str:
    """Return what cells show: ``MATNB_DISPLAY``, or "auto".

    Raises
    ------
    OptionError
        When it is none of "auto", "live", "static".
    """
    environ = os.environ if environ is None else environ
    display = environ.get("MATNB_DISPLAY", "auto")
    if display not in DISPLAYS:
        raise OptionError(f"MATNB_DISPLAY={display!r}: {suggestion(display, DISPLAYS, 'choose one of')}")
    return display

"""The settings of the magics: traits that ``%config DistMat`` lists and sets."""

from __future__ import annotations

from traitlets import Any, Bool, Enum, Int, TraitError, Unicode, Union, default, observe, validate
from traitlets.config import Configurable

from matnb.config import DISPLAYS, ENGINES, display_from_environment
from matnb.errors import OptionError
from matnb.pictures.quantities import bytes_text
from matnb.session import active_session
from matnb.session.settings import OPTIONS, clear_defaults, config_with, rebalancing_from, set_default

_LATER = "From the next start on."


def _size(words: str) -> Union:
    return Union([Int(), Unicode()], allow_none=True, help=f"{words} {_LATER}").tag(config=True)


class DistMat(Configurable):
    """Settings of matnb's magics; ``%config DistMat`` lists them.

    Each begins as the environment has it (MATNB_WORKERS and so on). A name on the right of ``%config
    DistMat.workers = n`` is a variable's. What ``%distmat start --workers 2`` is given goes before.
    """

    display = Enum(
        DISPLAYS,
        help="What a cell shows: 'live' adds measured seconds and leaves out the summary of a short run; "
        "'static' shows counts only, the same every time; 'auto' is live where a person can answer. At once.",
    ).tag(config=True)
    workers = Int(help=f"Number of Dask workers. {_LATER}").tag(config=True)
    threads = Int(allow_none=True, help=f"Threads of each worker; None shares all cores. {_LATER}").tag(
        config=True
    )
    processes = Bool(help=f"Whether each worker has a process of its own. {_LATER}").tag(config=True)
    security = Bool(
        help=f"Whether other users of this machine are kept away from worker processes. {_LATER}"
    ).tag(config=True)
    memory_limit = _size("Memory of each worker, such as '4GB'; None shares the machine's.")
    memo = _size("Memory for results kept between runs, or 'off'.")
    memo_dir = Unicode(
        allow_none=True, help=f"Folder that keeps results for other processes; None: no files. {_LATER}"
    ).tag(config=True)
    compute_limit = _size("Largest result that is brought into this process.")
    engine = Enum(
        ENGINES,
        help="Who runs cells: 'auto' lets a gang of workers run loops, and runs them as tasks where none "
        "comes together, which 'gang' refuses; 'dask' runs all as tasks; 'interpret' is plain NumPy and "
        f"SciPy here. {_LATER}",
    ).tag(config=True)
    rebalance = Any(
        help="Who re-cuts arrays: 'auto' by measured times, 'entries' by counts, 'presto' by that paper's "
        "rule, 'off', or the path of a trace. At once."
    ).tag(config=True)

    @default("display")
    def _display_default(self) -> str:
        return display_from_environment()

    @default("workers")
    def _workers_default(self) -> int:
        return config_with({}).workers

    @default("threads")
    def _threads_default(self) -> int | None:
        return config_with({}).threads

    @default("processes")
    def _processes_default(self) -> bool:
        return config_with({}).processes

    @default("security")
    def _security_default(self) -> bool:
        return config_with({}).security

    @default("memory_limit")
    def _memory_limit_default(self) -> str | None:
        size = config_with({}).memory_limit_bytes
        return None if size is None else bytes_text(size)

    @default("memo")
    def _memo_default(self) -> str:
        config = config_with({})
        return bytes_text(config.memo_bytes) if config.remembers else "off"

    @default("memo_dir")
    def _memo_dir_default(self) -> str | None:
        return config_with({}).memo_dir

    @default("compute_limit")
    def _compute_limit_default(self) -> str:
        return bytes_text(config_with({}).compute_limit_bytes)

    @default("engine")
    def _engine_default(self) -> str:
        return config_with({}).engine

    @default("rebalance")
    def _rebalance_default(self) -> object:
        return config_with({}).rebalance

    @validate(*OPTIONS)
    def _checked(self, proposal: dict[str, object]) -> object:
        name, value = proposal["trait"].name, proposal["value"]  # type: ignore[attr-defined]  # a trait
        try:
            config_with({name: value})
            if name == "rebalance":
                rebalancing_from(value)
        except OptionError as error:
            raise TraitError(f"DistMat.{name}: {error}") from None
        return value

    @observe(*OPTIONS)
    def _take_on(self, change: dict[str, object]) -> None:
        name, value = str(change["name"]), change["new"]
        set_default(name, value)
        session = active_session()
        if name == "rebalance" and session is not None:
            session.set_rebalance(value)

    def forget(self) -> None:
        """Let sessions begin as the environment has it again."""
        clear_defaults()

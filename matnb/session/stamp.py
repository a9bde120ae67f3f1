"""``mn.stamp()``: what results depend on (versions, files, settings), to be kept beside them."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path

from threadpoolctl import threadpool_info

from matnb.lazy.random import num_seeds_forgotten, seeds_taken
from matnb.pictures.findings import Finding, findings_html, findings_text
from matnb.pictures.quantities import bytes_text, plural_text
from matnb.pictures.saving import save_as
from matnb.session.current import active_session
from matnb.session.files import LoadedFile, loaded
from matnb.version import VERSION

_PACKAGES = ("numpy", "scipy", "numba", "sparse", "dask", "distributed", "ipython", "ipywidgets")
_GIT_SECONDS = 5.0
_MOST_SEEDS = 20


@dataclass(frozen=True)
class Stamp:
    """What results depend on. Made by :func:`matnb.stamp`.

    Two runs of the same notebook with the same data on the same machine have equal stamps, unless one was
    asked for with the time.

    Attributes
    ----------
    versions
        Of matnb, Python and the packages that compute.
    machine
        Kind of processor, system, and how many cores this process may use.
    blas
        Each BLAS in this process, with the kernels it chose and its threads.
    cluster
        What runs the arrays, or "none".
    settings
        Those of the session, by name.
    seeds
        What ``mn.random`` was given or took, in that order.
    commit
        Of the repository that the working folder is in, if one is; "changed" where files differ from it.
    files
        What ``mn.load`` has read.
    time
        When it was made, if that was wanted.
    num_seeds_forgotten
        Draws from seeds after the first thousand, which are not noted.
    """

    versions: dict[str, str]
    machine: str
    blas: tuple[str, ...]
    cluster: str
    settings: dict[str, str]
    seeds: tuple[int, ...]
    commit: str
    files: tuple[LoadedFile, ...]
    time: str = ""
    num_seeds_forgotten: int = 0

    def findings(self) -> tuple[Finding, ...]:
        """Return its lines."""
        return tuple(self._findings())

    def _findings(self) -> Iterator[Finding]:
        yield Finding("versions", ", ".join(f"{name} {number}" for name, number in self.versions.items()))
        yield Finding("machine", self.machine)
        for one in self.blas or ("none",):
            yield Finding("BLAS", one)
        yield Finding("cluster", self.cluster)
        if self.settings:
            yield Finding("settings", ", ".join(f"{name} {value}" for name, value in self.settings.items()))
        shown = ", ".join(map(str, self.seeds[:_MOST_SEEDS]))
        num_more = max(len(self.seeds) - _MOST_SEEDS, 0)
        more = f" and {num_more:,} more" if num_more else ""
        more += f", then {self.num_seeds_forgotten:,} that were not noted" if self.num_seeds_forgotten else ""
        yield Finding("seeds", f"{shown}{more}" if self.seeds else "none of mn.random")
        yield Finding("commit", self.commit or "no repository")
        for file in self.files:
            words = [file.path, bytes_text(file.size)]
            words += [f"sha256 {file.sha256}"] if file.sha256 else []
            words += [f"version {file.version}"] if file.version else []
            words += [file.counts] if file.counts else []
            words += [file.problem] if file.problem else []
            yield Finding("files", ", ".join(words))
        if not self.files:
            yield Finding("files", "none loaded")
        if self.time:
            yield Finding("time", self.time)

    @property
    def text(self) -> str:
        """A line for each topic."""
        return findings_text(self.findings())

    @property
    def html(self) -> str:
        """The lines as a table."""
        return findings_html(self.findings())

    @property
    def json(self) -> str:
        """All of it as JSON; the fields are the attributes."""
        return json.dumps(asdict(self), indent=1)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the stamp to a file.

        Parameters
        ----------
        path
            Ends in ``.json``, ``.html`` or ``.txt``.

        Raises
        ------
        OptionError
            For an unknown file suffix.
        WriteError
            Where the system does not let it be written.
        """
        kinds: dict[str, Callable[[], str]] = {
            ".json": lambda: self.json,
            ".html": lambda: f'<!doctype html><meta charset="utf-8"><title>stamp</title>{self.html}',
            ".txt": lambda: self.text,
        }
        save_as(path, kinds, "stamp")

    def bundle(self) -> dict[str, str]:
        """Return how it is shown in a notebook."""
        return {"text/plain": self.text, "text/html": self.html}

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return self.bundle()


def stamp(with_time: bool = False) -> Stamp:
    """Return what results depend on: versions, BLAS, cluster, seeds, commit and the files loaded.

    If these are the same, so is the stamp, so that it can be part of a byte-identical report. Files that were
    loaded are read once more to hash them.

    Parameters
    ----------
    with_time
        Whether to include the time of day.

    Returns
    -------
    Stamp
        Displays as a table; has ``text``, ``html``, ``json`` and ``save(path)``.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.stamp().versions["matnb"] == mn.__version__
    True
    """
    cluster, settings = _session()
    return Stamp(
        versions=_versions(),
        machine=f"{platform.machine()}, {platform.system()}, {plural_text(num_cores(), 'core')}",
        blas=tuple(_blas()),
        cluster=cluster,
        settings=settings,
        seeds=seeds_taken(),
        commit=_commit(),
        files=loaded.all(),
        time=time.strftime("%Y-%m-%d %H:%M:%S %z") if with_time else "",
        num_seeds_forgotten=num_seeds_forgotten(),
    )


def num_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _versions() -> dict[str, str]:
    found = {"matnb": VERSION, "Python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _blas() -> Iterator[str]:
    every = [one for one in threadpool_info() if one["user_api"] == "blas"]
    for one in sorted(every, key=lambda one: str(one["filepath"])):
        owner = Path(one["filepath"]).parent.name.removesuffix(".libs")
        kernels = f", {one['architecture']} kernels" if one.get("architecture") else ""
        words = f"{one['internal_api']} {one['version']} of {owner}{kernels}"
        yield f"{words}, {plural_text(one['num_threads'], 'thread')}"


def _session() -> tuple[str, dict[str, str]]:
    session = active_session()
    if session is None:
        return "none", {}
    cluster = session.cluster
    alive = [cluster.workers[number] for number in cluster.alive()]
    words = cluster.description
    if not cluster.owned:  # where it answers differs each time
        threads = sum(one.threads for one in alive)
        words = f"a Dask cluster, {plural_text(len(alive), 'worker')}, {plural_text(threads, 'thread')}"
    config = session.config
    memo = bytes_text(config.memo_bytes) if config.remembers else "off"
    return words, {"engine": config.engine, "rebalance": session.rebalance, "memo": memo}


def _commit() -> str:
    head = _git("rev-parse", "HEAD")
    if not head:
        return ""
    # Programs that a repository's own settings name are not started.
    changed = _git("-c", "core.fsmonitor=false", "status", "--porcelain", "--untracked-files=no")
    return f"{head}, changed" if changed else head


def _git(*words: str) -> str:
    try:
        done = subprocess.run(
            ["git", *words],
            capture_output=True,
            text=True,
            timeout=_GIT_SECONDS,
            check=True,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""
    return done.stdout.strip()

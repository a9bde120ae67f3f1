"""Filters Dask's log messages about our clusters and clients; the logger ``matnb.dask`` shows them."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from typing import Any

# What the driver does about a lost worker it says itself; Dask's lines and tracebacks name every key.
_asked = logging.getLogger("matnb.dask")
_NOTHING = logging.CRITICAL + 1
# Those that log by themselves; modules of distributed's have loggers below the first.
_NAMES = ("distributed", "asyncio", "tornado.application", "tornado.general")


def level_asked() -> int:
    """Return from which level on Dask's lines are shown: that of the logger ``matnb.dask``, if it was set."""
    return _asked.level or _NOTHING


class _OurLoops(logging.Filter):
    """Passes records from event loops other than ours, such as the loops of a user's own Dask clients."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: Counter[int] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a record is shown."""
        is_ours = record.thread in self.threads and _is_dasks(record.name)
        return not is_ours or record.levelno >= level_asked()


_ours = _OurLoops()
_lock = threading.Lock()


def quiet_here(loop: asyncio.AbstractEventLoop) -> int:
    """Show nothing that is logged by this thread, which runs an event loop of ours; return the thread.

    :func:`loud_again` ends that; threads are counted, since clients and clusters share loops.
    """
    thread = threading.get_ident()
    with _lock:
        if not _ours.threads:
            for place in _places():
                place.addFilter(_ours)
        _ours.threads[thread] += 1
    loop.set_exception_handler(_log)
    return thread


def loud_again(thread: int | None) -> None:
    """End what :func:`quiet_here` began."""
    with _lock:
        if thread is not None and thread in _ours.threads:
            _ours.threads[thread] -= 1
            if not _ours.threads[thread]:
                del _ours.threads[thread]
        if not _ours.threads:
            for place in _places():
                place.removeFilter(_ours)


def quiet_process(level: int) -> None:
    """Show nothing of this process, which is a worker's alone, below a level."""
    for name in _NAMES:
        logging.getLogger(name).setLevel(level)


def _is_dasks(name: str) -> bool:
    return name in _NAMES or name.startswith(f"{_NAMES[0]}.")


def _places() -> list[logging.Filterer]:
    # Loggers, since handlers may come later, and handlers, since loggers may; the user's handlers, too, which
    # have it all where logging was set up before Dask was imported.
    known = {*_NAMES, *logging.root.manager.loggerDict}
    loggers = [logging.getLogger(name) for name in known if _is_dasks(name)]
    return [*loggers, *logging.getLogger(_NAMES[0]).handlers, *logging.root.handlers]


def _log(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    # What nobody waited for may be told by any thread, when memory is cleared up.
    if level_asked() <= logging.ERROR:
        loop.default_exception_handler(context)

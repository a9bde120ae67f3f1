"""Freed memory in worker processes: kept for the next tile, returned to the system when idle.

Dask's nanny starts each worker with ``MALLOC_TRIM_THRESHOLD_=65536``, which also pins glibc's mmap threshold
at 128 KB: each temporary of a tile is then mapped, zeroed page by page and unmapped again, and a worker
process takes up to twice the time of a thread. Other C libraries have no such thresholds, and are left alone.
"""

from __future__ import annotations

import ctypes
import functools
import os
import time
from collections.abc import Callable, Mapping

import dask
from distributed import Worker, WorkerPlugin
from distributed.utils import offload
from tornado.ioloop import PeriodicCallback

from matnb.config import environment_without_settings, variables_at_start

_MIB = 2**20
# Tiles and temporaries of kernels are smaller; larger blocks leave as soon as they are freed.
MAPPED_BYTES = 8 * _MIB
TOP_BYTES = 32 * _MIB  # freed at the end of an arena of a thread; trimming leaves less than that there
DASKS_MAPPED_BYTES = 128 * 1024  # glibc's default, which no longer adapts once a threshold is set
_TRIM, _MAPPED = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h
_SET_BY_DASK = "MALLOC_TRIM_THRESHOLD_"
# Who sets one of these decides on all: glibc stops adapting the others.
_VARIABLES = (_SET_BY_DASK, "MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_", "MALLOC_TOP_PAD_")
_TUNABLES = tuple(
    f"glibc.malloc.{name}" for name in ("trim_threshold", "mmap_threshold", "mmap_max", "top_pad")
)
_NAME = "matnb-freed-memory"
_LOOK_SECONDS = 0.5
_QUIET_LOOKS = 4  # one after another: cells that follow each other find the memory of the last
_QUIET_SHARE = 0.1  # of a processor
_WORKED_SECONDS = 0.1  # of a processor, after which there may be something to return
_MOST_LOOKS = 10  # where it is never quiet
_FULL_SHARE = 0.5  # of the memory limit: Dask spills and pauses above, and counts freed memory as used


def dasks_trim_bytes() -> int | None:
    """Return the trim threshold that Dask sets by itself, or None where it sets none."""
    for defaults in reversed(dask.config.defaults):
        found = dask.config.get("distributed.nanny.pre-spawn-environ", {}, config=dict(defaults))
        if _SET_BY_DASK in found:
            return int(found[_SET_BY_DASK])
    return None


def is_left_to_dask(variables: Mapping[str, str]) -> bool:
    """Tell whether a process with these variables has the thresholds that Dask sets by itself.

    A user's own variables, or tunables of glibc, or values in Dask's configuration, stay as they are.
    """
    set_by_user = any(name in variables for name in _VARIABLES if name != _SET_BY_DASK)
    has_tunables = any(name in variables.get("GLIBC_TUNABLES", "") for name in _TUNABLES)
    ours = dasks_trim_bytes()
    return not (set_by_user or has_tunables) and ours is not None and variables.get(_SET_BY_DASK) == str(ours)


def is_left_to_nanny(variables: Mapping[str, str]) -> bool:
    """Tell the same of a process that a nanny in this one starts, which adds these variables.

    A user may have exported Dask's own value. Where this process was not started with it, a nanny of another
    cluster has left it here.
    """
    is_exported = _SET_BY_DASK in variables_at_start()
    return not is_exported and is_left_to_dask({**environment_without_settings(), **variables})


class FreedMemory:
    """Keeps what a worker process frees for its next tasks: for some seconds, or until it is quiet or full.

    Parameters
    ----------
    worker
        The only one of its process.
    process_seconds
        Seconds of processors that this process has taken.
    """

    def __init__(self, worker: Worker, process_seconds: Callable[[], float] = time.process_time) -> None:
        self._worker, self._process_seconds = worker, process_seconds
        self._num_quiet = self._num_looks = 0
        self._at_look = self._at_return = process_seconds()
        self._transitions = self._num_transitions()

    def start(self) -> None:
        """Look at the worker now and then; called on its event loop."""
        looking = PeriodicCallback(self.look, _LOOK_SECONDS * 1000)
        self._worker.periodic_callbacks[_NAME] = looking  # which the worker stops when it closes
        looking.start()

    def stop(self) -> None:
        """Look no more."""
        looking = self._worker.periodic_callbacks.pop(_NAME, None)
        if looking is not None:
            looking.stop()

    async def look(self) -> None:
        """Return freed memory if it is time for that."""
        now = self._process_seconds()
        is_quiet = now - self._at_look < _QUIET_SHARE * _LOOK_SECONDS
        self._at_look = now
        self._num_looks += 1
        self._num_quiet = self._num_quiet + 1 if is_quiet else 0
        has_worked = now - self._at_return >= _WORKED_SECONDS or self._transitions != self._num_transitions()
        is_time = self._num_quiet >= _QUIET_LOOKS or self._num_looks >= _MOST_LOOKS or self._is_full()
        if has_worked and is_time:
            self._num_looks = 0
            self._transitions = self._num_transitions()
            await offload(return_freed)  # which locks what kernels allocate from, but not the event loop
            self._at_look = self._at_return = self._process_seconds()

    def _num_transitions(self) -> int:
        # Of tasks, among them those whose value is let go.
        return int(self._worker.state.transition_counter)

    def _is_full(self) -> bool:
        limit = self._worker.memory_manager.memory_limit
        return bool(limit) and self._worker.monitor.get_process_memory() > _FULL_SHARE * limit


class FreedMemoryPlugin(WorkerPlugin):  # type: ignore[misc]  # it has no types
    """Has worker processes of another's cluster keep freed memory while a session uses them.

    Afterwards they have Dask's thresholds again.

    Parameters
    ----------
    name
        Of the plugin; distinguishes sessions.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def setup(self, worker: Worker) -> None:
        """Keep freed memory, unless a user has chosen otherwise, or no nanny has started the process."""
        if worker.nanny is None or not is_left_to_dask(variables_at_start()):
            return
        if not _sessions:
            if not set_thresholds(MAPPED_BYTES, TOP_BYTES):
                return
            _looking.append(FreedMemory(worker))
            _looking[0].start()
        _sessions.add(self.name)

    def teardown(self, worker: Worker) -> None:
        """Return to Dask's thresholds, if no other session uses the worker."""
        if self.name in _sessions:
            _sessions.remove(self.name)
            if not _sessions:
                _looking.pop().stop()
                set_thresholds(DASKS_MAPPED_BYTES, dasks_trim_bytes() or DASKS_MAPPED_BYTES)
                return_freed()


# In a worker process of another's cluster: the plugins of the sessions that use it, and what they share.
_sessions: set[str] = set()
_looking: list[FreedMemory] = []


def set_thresholds(mapped_bytes: int, top_bytes: int) -> bool:
    """Set the allocator's thresholds of this process, and tell whether it has them.

    Parameters
    ----------
    mapped_bytes
        From which size on an allocation gets a mapping of its own, which goes when it is freed.
    top_bytes
        How much may be free at the end of an arena before it shrinks.
    """
    library = _glibc()
    if library is None:
        return False
    return bool(library.mallopt(_MAPPED, mapped_bytes) and library.mallopt(_TRIM, top_bytes))


def return_freed() -> bool:
    """Return freed memory of this process to the system, and tell whether there was any."""
    library = _glibc()
    return library is not None and bool(library.malloc_trim(0))


@functools.cache
def _glibc() -> ctypes.CDLL | None:
    try:
        has_glibc = (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except (AttributeError, OSError, ValueError):  # another C library, or another system
        return None
    if not has_glibc:
        return None
    library = ctypes.CDLL(None)
    library.mallopt.argtypes, library.malloc_trim.argtypes = (ctypes.c_int, ctypes.c_int), (ctypes.c_size_t,)
    return library

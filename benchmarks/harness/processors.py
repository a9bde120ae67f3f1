"""The seconds of processors that this process and its children take, to the microsecond."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import psutil

_SCHEDULED = 2  # of Linux's process clocks: what the scheduler has counted, in nanoseconds


@dataclass
class Stopwatch:
    """Measures wall seconds and the seconds of processors of all processes, beside each other.

    Attributes
    ----------
    wall
        Tells the time.
    own
        Tells the seconds of processors that this process took, all threads together, and children that ended.
    others
        Tells those of the children that live. Asked outside of what is measured: finding them takes long.
    """

    wall: Callable[[], float] = time.perf_counter
    own: Callable[[], float] = lambda: _own_seconds()
    others: Callable[[], float] = lambda: sum(map(process_seconds, _children()))
    _begin: tuple[float, float] = (0.0, 0.0)

    def start(self) -> None:
        """Begin to measure."""
        others = self.others()
        # The wall's clock is read last here and first at the end, so that it counts nothing of the others'.
        own = self.own()
        self._begin = self.wall(), others + own

    def stop(self) -> tuple[float, float]:
        """Return the wall seconds since the start and the seconds of processors."""
        wall = self.wall()
        own = self.own()
        begin, used = self._begin
        return wall - begin, own + self.others() - used


def _own_seconds() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def _children() -> Iterable[int]:
    return [child.pid for child in psutil.Process().children(recursive=True)]


def process_seconds(pid: int) -> float:
    """Return the seconds of processors that a process has taken; 0 for one that has ended."""
    try:
        return time.clock_gettime(~pid << 3 | _SCHEDULED)
    except OSError:  # it has ended, or this system has no such clocks
        pass
    try:
        return sum(psutil.Process(pid).cpu_times()[:2])
    except psutil.NoSuchProcess:
        return 0.0

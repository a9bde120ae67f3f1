"""What is asked of a loop besides its time: that the gang ran it, allocations, bytes sent, memory added."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import psutil
import scipy.sparse as sp

import matnb as mn
from matnb.blocks.layout import Layout
from matnb.events import Event, LoopFinished

_SAMPLING_SECONDS = 0.002
_FIRST_COUNTED = 2  # registers take their memory in the first two iterations


class GangDidNotRun(Exception):  # noqa: N818  says what happened
    """A loop that was to be timed on the gang engine ran elsewhere."""


class LoopWatch:
    """Keeps the ends of loops of the current session, and refuses those that the gang did not run."""

    def __init__(self) -> None:
        self.ends: list[LoopFinished] = []
        mn.current_session().subscribe(self._listen)

    def _listen(self, event: Event) -> None:
        if isinstance(event, LoopFinished):
            self.ends.append(event)

    def last(self) -> LoopFinished:
        """Return the end of the last loop.

        Raises
        ------
        GangDidNotRun
            When there is none, or one of them ran on another engine; it names the reason that was given.
        """
        if not self.ends:
            raise GangDidNotRun("no loop has ended")
        for end in self.ends:
            if end.engine != "gang":
                raise GangDidNotRun(f"the {end.engine} engine ran a loop: {end.reason}")
        return self.ends[-1]

    def notes(self, iterations: int, touched_bytes: int = 0) -> tuple[str, ...]:
        """Say what the last loop allocated and sent; ``touched_bytes`` as of :func:`bytes_touched`."""
        last = self.last()
        later = sum(last.allocated[_FIRST_COUNTED:])
        allowed = touched_bytes * iterations
        sent = f"{last.sent_bytes / 1e6:.1f} MB sent"
        if allowed:
            sent += f", {last.sent_bytes / allowed:.3f} of 8 bytes for each element that others touch"
        return (
            f"the gang of {last.num_members} ran all {len(self.ends)} loops; of the last: {later} arrays of "
            f"64 KiB or more allocated by iterations 3 to {len(last.allocated)}, {sent}",
        )


def bytes_touched(rows: sp.csr_array, layout: Layout) -> int:
    """Return 8 bytes for each element of a vector that a worker's rows touch and another worker holds.

    Parameters
    ----------
    rows
        The matrix of the product, square.
    layout
        Of the matrix; elements of the vector have the owners of its rows.
    """
    owner_of = np.empty(rows.shape[0], np.int64)
    for region, owner in zip(layout.grid.regions(), layout.owners, strict=True):
        begin, end = region[0]
        owner_of[begin:end] = owner
    row_of = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    total = 0
    for owner in set(layout.owners):
        touched = np.zeros(rows.shape[1], bool)
        touched[rows.indices[owner_of[row_of] == owner]] = True
        total += 8 * int(np.count_nonzero(touched & (owner_of != owner)))
    return total


@dataclass
class Memory:
    """What this process and its children held at most while it was sampled, above what they held before."""

    added_bytes: int = 0


@contextmanager
def sampled_memory() -> Iterator[Memory]:
    """Sample the memory of this process and its children until the end of the block."""
    memory, done = Memory(), threading.Event()
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    before = _resident(processes)

    def sample() -> None:
        while not done.wait(_SAMPLING_SECONDS):
            memory.added_bytes = max(memory.added_bytes, _resident(processes) - before)

    sampler = threading.Thread(target=sample, name="memory sampler")
    sampler.start()
    try:
        yield memory
    finally:
        done.set()
        sampler.join()


def _resident(processes: Sequence[psutil.Process]) -> int:
    return sum(process.memory_info().rss for process in processes)

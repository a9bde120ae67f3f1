"""Frozen records of what happened; they are for looking only, so nothing decides by them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CellRecorded:
    """A cell was recorded: how many operations it wrote and how many of them were written before in it."""

    num_operations: int
    num_merged: int


@dataclass(frozen=True)
class RunStarted:
    """A plan was sent to the workers."""

    run: str
    num_tasks: int
    projected_bytes: int


@dataclass(frozen=True)
class TaskTimed:
    """One kernel call: where it ran, for how long, and how much it worked on.

    Where it was ``compiled``, machine code was made or read from disk meanwhile, and the seconds say little
    of the kernel.
    """

    key: str
    kind: str
    worker: int
    seconds: float
    rows: int
    entries: int
    output_bytes: int
    compiled: bool = False


@dataclass(frozen=True)
class TasksFinished:
    """The kernel calls of one worker in one run."""

    run: str
    worker: int
    tasks: tuple[TaskTimed, ...]


@dataclass(frozen=True)
class WorkersLost:
    """Workers died during a run, which was laid out anew over the others."""

    run: str
    workers: tuple[int, ...]


@dataclass(frozen=True)
class RunFinished:
    """A run ended: all that the summary under a cell and a report need.

    Counts follow from plan and layout, so they repeat; seconds and actual bytes do not.
    """

    run: str
    num_operations: int
    num_merged: int
    num_stored: int
    num_tasks: int
    moved_bytes: int
    projected_bytes: int
    actual_bytes: int
    imbalance: float
    seconds: float


Event = CellRecorded | RunStarted | TasksFinished | WorkersLost | RunFinished

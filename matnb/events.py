"""Frozen records of what happened; they are for looking only, so nothing decides by them."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class CellRecorded:
    """A cell was recorded: how many operations it wrote and how many of them were written before in it."""

    num_operations: int
    num_merged: int


@dataclass(frozen=True)
class RunStarted:
    """A plan was sent to the workers; where it reads files, they have ``read_bytes``."""

    run: str
    num_tasks: int
    projected_bytes: int
    read_bytes: int = 0


@dataclass(frozen=True)
class TaskTimed:
    """One kernel call: where it ran, for how long, and how much it worked on.

    ``key`` numbers the value that it made in its run.
    Where it was ``compiled``, machine code was made or read from disk meanwhile, and the seconds say little
    of the kernel.
    """

    key: int
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
    """Workers died during a run, which was planned again over the survivors."""

    run: str
    workers: tuple[int, ...]


@dataclass(frozen=True)
class RunFinished:
    """A run ended: all that the summary under a cell and a report need.

    Counts follow from plan and layout, so they repeat; seconds and actual bytes do not. What ``num_run``,
    ``num_arrays``, ``num_remembered``, ``flops`` and ``accessed_bytes`` count,
    :class:`matnb.plan.plan_counts.PlanCounts` says; loops report their own. ``num_gave_way`` counts arrays
    with a handle that went from the workers for it; which these are follows from measured seconds.
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
    num_run: int = 0
    num_arrays: int = 0
    num_remembered: int = 0
    flops: int = 0
    accessed_bytes: int = 0
    num_gave_way: int = 0


@dataclass(frozen=True)
class BatchSpan:
    """The batches that a loop goes through, among those of all passes over some rows.

    Attributes
    ----------
    epoch, epochs
        The number of the pass, from 0, and how many passes there are.
    start, num_batches
        Batches of the pass before the loop, and of a whole pass; None where that is not known.
    rows
        Of a batch.
    num_done, rows_done
        Batches and rows of all passes before the loop, since ``since`` by :func:`time.monotonic`.
    loss, held_out
        Of a learner, the mean of the last rows that it learned from, and of those that it does not learn
        from; None where these are not known.
    waiting
        The share of the time before the loop in which data was waited for, 0 to 1.
    """

    epoch: int
    epochs: int
    start: int
    num_batches: int | None
    rows: int
    num_done: int
    rows_done: int
    since: float
    loss: float | None = None
    held_out: float | None = None
    waiting: float = 0.0


@dataclass(frozen=True)
class BatchesFinished:
    """All batches were gone through, or those before an error."""


@dataclass(frozen=True)
class RunStopped:
    """A run ended without what it was to give: it failed, or was cancelled."""

    run: str
    is_cancelled: bool = False


@dataclass(frozen=True)
class LoopAdvanced:
    """A loop has taken so many iterations, the last in so many seconds.

    It is emitted at the start too, and again while an iteration takes long.

    Attributes
    ----------
    most_iterations
        At most; infinity where that is computed.
    has_until
        Whether a condition may end it before.
    flops, accessed_bytes
        Of an iteration, as the plan counts them.
    batches
        What it goes through, of a learner or a source.
    """

    run: str
    iterations: int
    seconds: float
    most_iterations: float = math.inf
    has_until: bool = False
    flops: int = 0
    accessed_bytes: int = 0
    batches: BatchSpan | None = None


@dataclass(frozen=True)
class LoopFinished:
    """A loop or branch ended.

    Attributes
    ----------
    engine
        "gang" or "dask".
    is_branch
        Whether it was a branch, which has no iterations.
    reason
        Why the gang did not run it, if it was run batch by batch; else empty.
    iterations
        Of the outermost loop.
    num_members
        Workers that ran it together; 0 where no gang did.
    sent_bytes
        Payload that the members sent each other.
    allocated
        For each iteration of the outermost loop the arrays of 64 KiB or more that were newly taken.
    flops, accessed_bytes
        Of all iterations, as the plan counts them.
    """

    run: str
    engine: str
    reason: str
    iterations: int
    num_tasks: int
    num_members: int
    sent_bytes: int
    allocated: tuple[int, ...]
    projected_bytes: int
    seconds: float
    is_branch: bool = False
    flops: int = 0
    accessed_bytes: int = 0


@dataclass(frozen=True)
class BlocksMoved:
    """Arrays were repartitioned together.

    Attributes
    ----------
    name
        Of the arrays, for a user: "A", or "A, x".
    num_blocks
        Of all of them, that were made anew; others stayed where they were.
    moved_bytes
        That went from one worker to another.
    """

    name: str
    num_blocks: int
    moved_bytes: int
    seconds: float


@dataclass(frozen=True)
class Rebalanced:
    """It was decided whether some arrays are repartitioned, and if so they were.

    Attributes
    ----------
    name
        Of the arrays, for a user: "A", or "A, x".
    policy, reason
        Who decided, and why.
    acted
        Whether they were repartitioned.
    by_entries
        Whether loads were counted in entries, as where nothing was measured.
    imbalance_before, imbalance_after
        The slowest worker's load over the mean: measured, and predicted.
    iteration
        After which iteration of a loop, 0 before the first one.
    seconds
        What changing the layout took.
    moved_bytes
        That went from one worker to another.
    """

    name: str
    policy: str
    reason: str
    acted: bool
    by_entries: bool
    imbalance_before: float
    imbalance_after: float
    iteration: int
    seconds: float
    moved_bytes: int


@dataclass(frozen=True)
class WorkersBusy:
    """What one worker's kernels took over some time, told while runs and loops go on.

    Each kernel second is reported once, to subscribers that asked for samples; the same seconds are in
    :class:`TasksFinished` too, which comes when all is over.

    Attributes
    ----------
    worker
        Whose.
    seconds
        By the clock, up to now.
    by_kind
        Kernel seconds of all its threads in that time, by the kind of task: "product", "map", ...
    """

    worker: int
    seconds: float
    by_kind: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class WorkerSample:
    """One worker at one moment.

    Attributes
    ----------
    memory_bytes, limit_bytes
        Of its process in use, and at most; a limit of 0 is none. Workers of one process share what it uses.
    num_queued, num_running
        Tasks of Dask's that wait, and that run.
    received_bytes, sent_bytes
        Arrays from and to other workers, since it was first looked at.
    num_threads
        Kernels it runs at a time.
    """

    worker: int
    memory_bytes: int
    limit_bytes: int
    num_queued: int
    num_running: int
    received_bytes: int
    sent_bytes: int
    num_threads: int = 1


@dataclass(frozen=True)
class WorkersSampled:
    """Some workers at about the same moment, told now and then to those who asked for samples."""

    samples: tuple[WorkerSample, ...]


@dataclass(frozen=True)
class SessionStopped:
    """The session is about to end; no more events of it follow."""


@dataclass(frozen=True)
class SessionAwaited:
    """A thread waits for another that uses the session; told on the thread that waits, which may ask itself.

    Attributes
    ----------
    names
        What is computed in the background meanwhile; empty where the other is no such work.
    cell
        The number of the cell that wrote it, if it is known.
    is_over
        Whether the waiting has ended.
    """

    names: tuple[str, ...] = ()
    cell: int | None = None
    is_over: bool = False


Event = (
    CellRecorded | RunStarted | TasksFinished | WorkersLost | RunFinished | RunStopped
    | LoopAdvanced | LoopFinished | BatchesFinished | BlocksMoved | Rebalanced | WorkersBusy | WorkersSampled
    | SessionAwaited | SessionStopped
)  # fmt: skip

"""What the load monitor shows: each worker now, and over the last while."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class WorkerFacts:
    """One worker.

    Attributes
    ----------
    number
        Of the worker.
    busy
        For each kind of work the share of the last seconds that its threads were in such kernels, 0.0 to 1.0
        over all threads.
    num_queued, num_running
        Tasks that wait and run.
    memory_bytes, limit_bytes
        In use, and at most; a limit of 0 is none.
    received_bytes, sent_bytes
        From and to other workers, a second, over the last seconds.
    history
        Its busy share over time, oldest first, one number for each step of ``MonitorFacts.step_seconds``.
    is_lost
        Whether it was killed or left.
    """

    number: int
    busy: Mapping[str, float] = field(default_factory=dict)
    num_queued: int = 0
    num_running: int = 0
    memory_bytes: int = 0
    limit_bytes: int = 0
    received_bytes: float = 0.0
    sent_bytes: float = 0.0
    history: tuple[float, ...] = ()
    is_lost: bool = False


@dataclass(frozen=True)
class MonitorFacts:
    """What the monitor shows.

    Attributes
    ----------
    workers
        In the order of their numbers.
    step_seconds
        Between two numbers of a history.
    imbalance
        The busiest worker's kernel seconds over the mean, over time, oldest first; 1.0 is even.
    iteration
        Of the loop that runs, or -1 when none does; where nothing runs, of the last one.
    most_iterations
        At most; infinity where that is not known.
    iteration_seconds
        What one takes now; where nothing runs, what each took; 0.0 where that is not known.
    seconds_left
        Until the loop's end; infinity where that is not known.
    num_recuts
        So far.
    is_running, has_run
        Whether anything runs, and whether anything has run.
    is_past
        Whether this is how it was when something ran last.
    has_stopped
        Whether the session is over.
    at
        The time of day at which it was so, for what runs; a notebook may be saved then and opened later.
    outcome
        How it ended, where it did not come to its end: "cancelled", "failed", ...
    imbalance_of_all
        The busiest worker's kernel seconds over the mean, in all that ran; 0.0 where that is not known.
    is_elsewhere
        Whether a newer output goes on with it.
    """

    workers: tuple[WorkerFacts, ...] = ()
    step_seconds: float = 1.0
    imbalance: tuple[float, ...] = ()
    iteration: int = -1
    most_iterations: float = float("inf")
    iteration_seconds: float = 0.0
    seconds_left: float = float("inf")
    num_recuts: int = 0
    is_running: bool = False
    has_run: bool = False
    is_past: bool = False
    has_stopped: bool = False
    at: str = ""
    outcome: str = ""
    imbalance_of_all: float = 0.0
    is_elsewhere: bool = False

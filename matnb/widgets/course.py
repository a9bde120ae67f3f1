"""How far what a session ran came, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from matnb.events import (
    Event,
    LoopAdvanced,
    LoopFinished,
    RunFinished,
    RunStarted,
    RunStopped,
    SessionStopped,
    TasksFinished,
)
from matnb.pictures.imbalance import imbalance


class Course:
    """Takes a session's events, and tells how what ran last went.

    Attributes
    ----------
    is_running
        Whether a run has begun that has not ended.
    outcome
        "cancelled" or "failed", where it was; else empty.
    iteration, most_iterations
        How far the last loop came, -1 where there was none.
    iteration_seconds
        What one of its iterations took, the mean over all; 0.0 where it did not come to its end.
    """

    def __init__(self) -> None:
        self.is_running = False
        self.begin()

    def begin(self) -> None:
        """Forget what ran before."""
        self.outcome = ""
        self._loop: LoopAdvanced | None = None
        self._forget_loop()
        self._seconds: dict[int, float] = {}

    def take(self, event: Event) -> None:
        """Take an event."""
        match event:
            case RunStarted():
                self.is_running, self.outcome, self._loop = True, "", None
            case LoopAdvanced():
                self.is_running, self._loop = True, event
            case LoopFinished():
                self.is_running = False
                if not event.is_branch:
                    self._ended(event)
            case RunFinished() | SessionStopped():
                self.is_running = False
            case RunStopped():
                self.is_running, self.outcome = False, "cancelled" if event.is_cancelled else "failed"
                self._stopped()
            case TasksFinished():
                took = sum(one.seconds for one in event.tasks if not one.compiled)
                self._seconds[event.worker] = self._seconds.get(event.worker, 0.0) + took

    def imbalance(self, workers: Iterable[int]) -> float:
        """Return the most kernel seconds of a worker over the mean of all; 0.0 where none are known."""
        loads = {**dict.fromkeys(workers, 0.0), **self._seconds}
        return imbalance(loads) if self._seconds else 0.0

    def _ended(self, event: LoopFinished) -> None:
        self.most_iterations = inf if self._loop is None else self._loop.most_iterations
        self.iteration, self._loop = event.iterations, None
        self.iteration_seconds = event.seconds / max(1, event.iterations)

    def _stopped(self) -> None:
        loop, self._loop = self._loop, None
        self._forget_loop()
        if loop is not None:
            self.iteration, self.most_iterations = loop.iterations, loop.most_iterations

    def _forget_loop(self) -> None:
        self.iteration, self.most_iterations, self.iteration_seconds = -1, inf, 0.0

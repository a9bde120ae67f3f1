"""Events become what the load monitor shows: a bounded window of what each worker did."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from math import inf, isfinite

from matnb.events import (
    Event,
    LoopAdvanced,
    LoopFinished,
    Rebalanced,
    RunFinished,
    RunStarted,
    RunStopped,
    SessionStopped,
    WorkerSample,
    WorkersBusy,
    WorkersLost,
    WorkersSampled,
)
from matnb.pictures.monitor_facts import MonitorFacts, WorkerFacts
from matnb.widgets.busy_history import Loads

_MOST_HEARD = 8192  # events that wait to be looked at
_RATE_SECONDS = 2.0  # over which bytes a second are counted
_SILENT_SECONDS = 10.0  # a worker that others are not is gone
_HEARD = frozenset(
    (
        LoopAdvanced, LoopFinished, Rebalanced, RunFinished, RunStarted, RunStopped, SessionStopped,
        WorkersBusy, WorkersLost, WorkersSampled,
    )
)  # fmt: skip


class Feed:
    """Takes a session's events, with samples, and tells what they amount to.

    ``session.subscribe(feed.hear, samples=True)`` feeds it.

    Parameters
    ----------
    clock
        Seconds.
    window_seconds
        How far back it remembers.

    Examples
    --------
    >>> from matnb.events import WorkersBusy
    >>> from matnb.widgets.feed import Feed
    >>> now = [0.0]
    >>> feed = Feed(clock=lambda: now[0])
    >>> now[0] = 2.0
    >>> feed.hear(WorkersBusy(worker=0, seconds=2.0, by_kind=(("product", 1.0),)))
    >>> feed.facts().workers[0].busy
    {'product': 0.5}
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, window_seconds: float = 60.0) -> None:
        self._clock, self._window = clock, window_seconds
        self._heard: deque[tuple[float, Event]] = deque()
        self._folding = threading.Lock()
        self._loads = Loads(clock(), window_seconds)
        self._workers: dict[int, _Worker] = {}
        self._loop: tuple[float, LoopAdvanced] | None = None  # since when
        self._iteration_seconds = 0.0
        self._num_recuts = 0
        self._is_running = self._has_run = self._has_stopped = False

    def hear(self, event: Event) -> None:
        """Take an event, from any thread."""
        if type(event) in _HEARD:
            self._heard.append((self._clock(), event))
            # Where nobody looks for long it must not grow; who looks meanwhile empties it.
            if len(self._heard) > _MOST_HEARD and self._folding.acquire(blocking=False):
                try:
                    self._fold()
                finally:
                    self._folding.release()

    def facts(self) -> MonitorFacts:
        """Return what was heard, as of now."""
        with self._folding:
            self._fold()
            now = self._clock()
            self._drop_gone(now)
            self._loads.advance(now)
            numbers = sorted(self._workers)
            threads = [self._workers[number].num_threads for number in numbers]
            counted = [not self._workers[number].is_lost for number in numbers]
            found = self._loads.shares(numbers, threads, counted)
            workers = tuple(
                self._workers[number].facts(number, busy, history, now)
                for number, busy, history in zip(numbers, found.busy, found.histories, strict=True)
            )
            return MonitorFacts(
                workers,
                self._loads.step_seconds,
                found.imbalance,
                -1 if self._loop is None else self._loop[1].iterations,
                inf if self._loop is None else self._loop[1].most_iterations,
                self._iteration_seconds,
                self._seconds_left(now),
                self._num_recuts,
                self._is_running,
                self._has_run,
                has_stopped=self._has_stopped,
            )

    # what was heard, taken in

    def _fold(self) -> None:
        while self._heard:
            when, event = self._heard.popleft()
            self._take(when, event)

    def _take(self, when: float, event: Event) -> None:
        match event:
            case WorkersBusy(number, seconds, by_kind):
                self._worker(number).heard_at = when
                self._loads.add(number, when, seconds, by_kind)
            case WorkersSampled(samples):
                self._sampled(when, samples)
            case WorkersLost(_, workers):
                for number in workers:
                    worker = self._worker(number)
                    worker.is_lost, worker.heard_at = True, when
            case RunStarted():
                self._is_running = self._has_run = True
            case RunFinished() | RunStopped() | LoopFinished():
                self._is_running, self._loop, self._iteration_seconds = False, None, 0.0
            case LoopAdvanced():
                self._is_running = self._has_run = True
                self._iteration_seconds = event.seconds or self._iteration_seconds
                if self._loop is None or self._loop[1] != event:  # the same is told again and again
                    self._loop = (when, event)
            case Rebalanced():
                self._num_recuts += event.acted
            case SessionStopped():
                self._is_running, self._has_stopped, self._loop = False, True, None

    def _sampled(self, when: float, samples: Iterable[WorkerSample]) -> None:
        for sample in samples:
            worker = self._worker(sample.worker)
            if isfinite(worker.sampled_at):
                self._loads.note_gap(when - worker.sampled_at)
            worker.take(when, sample)

    def _worker(self, number: int) -> _Worker:
        return self._workers.setdefault(number, _Worker())

    def _drop_gone(self, now: float) -> None:
        sampled = [one.sampled_at for one in self._workers.values() if isfinite(one.sampled_at)]
        newest = max(sampled, default=now)
        for worker in self._workers.values():
            if isfinite(worker.sampled_at) and newest - worker.sampled_at > _SILENT_SECONDS:
                worker.is_lost = True
        gone = [
            number
            for number, one in self._workers.items()
            if now - max(one.heard_at, one.sampled_at) > self._window
            and (one.is_lost or not isfinite(one.sampled_at))
        ]
        for number in gone:
            del self._workers[number]
        self._loads.forget(gone)

    def _seconds_left(self, now: float) -> float:
        if self._loop is None:
            return inf
        since, loop = self._loop
        if loop.has_until or not isfinite(loop.most_iterations) or not self._iteration_seconds:
            return inf
        rest = max(0.0, loop.most_iterations - loop.iterations)
        return max(0.0, rest * self._iteration_seconds - (now - since))


class _Worker:
    """What is known of a worker besides its load."""

    __slots__ = ("_samples", "heard_at", "is_lost", "num_threads", "sampled_at")

    def __init__(self) -> None:
        self.heard_at = self.sampled_at = -inf
        self.is_lost, self.num_threads = False, 1
        self._samples: deque[tuple[float, WorkerSample]] = deque()

    def take(self, when: float, sample: WorkerSample) -> None:
        self.sampled_at, self.num_threads = when, sample.num_threads
        self._samples.append((when, sample))
        while len(self._samples) > 2 and self._samples[1][0] <= when - _RATE_SECONDS:
            self._samples.popleft()

    def facts(
        self, number: int, busy: dict[str, float], history: tuple[float, ...], now: float
    ) -> WorkerFacts:
        if not self._samples:
            return WorkerFacts(number, busy, history=history, is_lost=self.is_lost)
        (first, before), (last, sample) = self._samples[0], self._samples[-1]
        received = sent = 0.0
        if last > first and now - last <= _SILENT_SECONDS and not self.is_lost:
            received = max(0.0, (sample.received_bytes - before.received_bytes) / (last - first))
            sent = max(0.0, (sample.sent_bytes - before.sent_bytes) / (last - first))
        return WorkerFacts(
            number, busy, sample.num_queued, sample.num_running, sample.memory_bytes, sample.limit_bytes,
            received, sent, history, self.is_lost,
        )  # fmt: skip

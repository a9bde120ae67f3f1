"""What the load monitor knows: one state, which events change one after the other, and the facts it shows."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import ClassVar, TypeAlias, TypeVar

from matnb.events import (
    BatchesFinished,
    BatchSpan,
    Event,
    LoopAdvanced,
    LoopFinished,
    Rebalanced,
    RunFinished,
    RunStarted,
    RunStopped,
    SessionStopped,
    TasksFinished,
    WorkersBusy,
    WorkersLost,
    WorkersSampled,
)
from matnb.pictures.history import is_repeatable
from matnb.pictures.imbalance import imbalance
from matnb.pictures.summary import seconds_left
from matnb.session import Session
from matnb.session.progress_line import progress_of
from matnb.widgets.busy_history import BusyHistory
from matnb.widgets.monitor_pictures import MonitorCounts
from matnb.widgets.monitor_rows import BatchProgress, MonitorFacts, WorkerFacts

BEGINNINGS = frozenset((RunStarted, LoopAdvanced))
ENDS = frozenset((RunFinished, RunStopped, LoopFinished, Rebalanced, SessionStopped))
_MOST_HEARD = 8192  # events that wait to be looked at


@dataclass(frozen=True)
class CellBegan:
    """The user's cell begins."""


@dataclass(frozen=True)
class CellEnded:
    """The user's cell has ended; what it left in the background goes on."""


@dataclass(frozen=True)
class PictureEnded:
    """The picture does not change any more, until something runs."""


Happening: TypeAlias = Event | CellBegan | CellEnded | PictureEnded


@dataclass(frozen=True)
class LoopState:
    """How far the last loop came.

    Attributes
    ----------
    iteration, most_iterations
        -1 where there was none.
    seconds
        What one of its iterations took, the mean over all; 0.0 where it did not come to its end.
    """

    iteration: int = -1
    most_iterations: float = inf
    seconds: float = 0.0


@dataclass(frozen=True)
class MonitorState:
    """What is known, apart from how busy workers are.

    Attributes
    ----------
    is_in_cell
        Whether a cell of the user's runs.
    since
        Since when something runs: from the first run to the end of the cell, and of the last run.
    ran_at
        When a run ended last.
    is_running, has_run, has_stopped
        Whether a run has begun that has not ended, any has begun, and the session is over.
    outcome
        "cancelled" or "failed", where what ran last was; else empty.
    run
        The run that is no loop, and when it began.
    loop, loop_since, iteration_seconds
        The loop that runs, when it came so far, and what one of its iterations takes.
    last_loop
        The last one that ended since something runs.
    batches, is_in_batches
        What is gone through batch by batch, or was last since something runs, and whether it goes on.
    kernel_seconds
        Of each worker since then.
    num_repartitions
        Of this session.
    counts
        What no clock is in, over all sessions.
    """

    is_in_cell: bool = False
    since: float | None = None
    ran_at: float = -inf
    is_running: bool = False
    has_run: bool = False
    has_stopped: bool = False
    outcome: str = ""
    run: tuple[RunStarted, float] | None = None
    loop: LoopAdvanced | None = None
    loop_since: float = 0.0
    iteration_seconds: float = 0.0
    last_loop: LoopState = LoopState()
    batches: BatchProgress | None = None
    is_in_batches: bool = False
    kernel_seconds: Mapping[int, float] = field(default_factory=dict)
    num_repartitions: int = 0
    counts: MonitorCounts = field(default_factory=MonitorCounts)


_Value = TypeVar("_Value", "MonitorState", MonitorCounts)


def reduce(state: MonitorState, when: float, happening: Happening) -> MonitorState:
    """Return the state after something happened at a time."""
    match happening:
        case RunStarted() | TasksFinished() | RunFinished():
            tally = _RunTally()
            tally.add(when, happening)
            return _after_runs(_begun(state, when) if tally.has_begun else state, tally)
        case LoopAdvanced():
            began = _begun(state, when)
            is_same = began.loop == happening  # the same event comes again and again
            return _changed(
                _among_batches(began, happening.batches, happening.iterations, when),
                is_running=True,
                has_run=True,
                run=None,
                loop=happening,
                loop_since=began.loop_since if is_same else when,
                iteration_seconds=happening.seconds or began.iteration_seconds,
            )
        case LoopFinished():
            last_loop, counts = state.last_loop, state.counts
            if not happening.is_branch:
                most, done = inf if state.loop is None else state.loop.most_iterations, happening.iterations
                last_loop = LoopState(done, most, happening.seconds / max(1, done))
                num_loops, num_iterations = counts.num_loops + 1, counts.num_iterations + done
                counts = _changed(counts, num_loops=num_loops, num_iterations=num_iterations)
                if state.loop is not None and state.loop.batches is not None:
                    state = _among_batches(state, state.loop.batches, done, when)
            return _changed(_idle(state, when), last_loop=last_loop, counts=counts)
        case BatchesFinished():
            return _changed(state, is_in_batches=False)
        case RunStopped():
            stopped = LoopState()
            if state.loop is not None:
                stopped = LoopState(state.loop.iterations, state.loop.most_iterations)
            outcome = "cancelled" if happening.is_cancelled else "failed"
            batches = state.batches if state.is_in_batches else None
            return _changed(_idle(state, when), outcome=outcome, last_loop=stopped, batches=batches)
        case Rebalanced():
            num_told = happening.acted and is_repeatable(happening.policy, True, happening.by_entries)
            counts = _changed(state.counts, num_repartitions=state.counts.num_repartitions + num_told)
            num_repartitions = state.num_repartitions + happening.acted
            return _changed(state, ran_at=when, num_repartitions=num_repartitions, counts=counts)
        case SessionStopped():
            return _changed(
                state, is_running=False, has_stopped=True, run=None, loop=None, is_in_batches=False
            )
        case CellBegan():
            return _changed(state, is_in_cell=True)
        case CellEnded():
            return _rested(_changed(state, is_in_cell=False))
        case PictureEnded():
            return _rested(state)
    return state


class _RunTally:
    # What runs leave that began and ended one after the other: of quick ones thousands come at once.

    ADDS: ClassVar = frozenset((RunStarted, TasksFinished, RunFinished))

    def __init__(self) -> None:
        self.has_begun = self.has_ended = self.is_running = False
        self.run: tuple[RunStarted, float] | None = None
        self.ran_at = -inf
        self.num_runs = self.num_tasks = self.moved_bytes = 0
        self.kernel_seconds: dict[int, float] = {}

    def add(self, when: float, event: Event) -> None:
        if isinstance(event, TasksFinished):
            seconds = self.kernel_seconds.get(event.worker, 0.0)
            for task in event.tasks:
                seconds += 0.0 if task.compiled else task.seconds
            self.kernel_seconds[event.worker] = seconds
        elif isinstance(event, RunStarted):
            self.has_begun = self.is_running = True
            self.run = event, when
        elif isinstance(event, RunFinished):
            self.has_ended, self.is_running, self.ran_at, self.run = True, False, when, None
            self.num_runs += 1
            self.num_tasks += event.num_tasks
            self.moved_bytes += event.moved_bytes


def _after_runs(state: MonitorState, tally: _RunTally) -> MonitorState:
    counts, seconds = state.counts, dict(state.kernel_seconds)
    for worker, took in tally.kernel_seconds.items():
        seconds[worker] = seconds.get(worker, 0.0) + took
    state = _changed(state, kernel_seconds=seconds)
    if tally.has_ended:
        counts = _changed(
            counts,
            num_runs=counts.num_runs + tally.num_runs,
            num_tasks=counts.num_tasks + tally.num_tasks,
            moved_bytes=counts.moved_bytes + tally.moved_bytes,
        )
        state = _changed(state, counts=counts, ran_at=tally.ran_at)
    if tally.has_begun:
        state = _changed(state, has_run=True, outcome="")
    if not (tally.has_begun or tally.has_ended):
        return state
    return _changed(state, is_running=tally.is_running, run=tally.run, loop=None, iteration_seconds=0.0)


def _begun(state: MonitorState, when: float) -> MonitorState:
    # What ran before is forgotten once something new begins.
    if state.since is not None:
        return state
    return _changed(
        state, since=when, outcome="", loop=None, last_loop=LoopState(), batches=None, kernel_seconds={}
    )


def _among_batches(state: MonitorState, span: BatchSpan | None, iterations: int, when: float) -> MonitorState:
    if span is not None:
        progress = BatchProgress(span, iterations, when - span.since)
        return _changed(state, batches=progress, is_in_batches=True)
    # What a learner runs between its batches, such as the loss on other rows, hides none of them.
    return state if state.is_in_batches or state.batches is None else _changed(state, batches=None)


def _idle(state: MonitorState, when: float) -> MonitorState:
    return _changed(state, is_running=False, run=None, loop=None, iteration_seconds=0.0, ran_at=when)


def _rested(state: MonitorState) -> MonitorState:
    # What runs in the background goes on though a cell has ended.
    return state if state.is_in_cell or state.is_running else _changed(state, since=None)


def _changed(old: _Value, **fields: object) -> _Value:
    # As dataclasses.replace, in a sixth of the time: thousands of quick runs come a second.
    new = object.__new__(type(old))
    new.__dict__.update(old.__dict__, **fields)
    return new


class Feed:
    """Takes what happens, from any thread, and tells what it amounts to.

    ``session.subscribe(feed.hear, samples=True)`` feeds it.

    Parameters
    ----------
    clock
        Seconds.
    window_seconds
        How far back it remembers.

    Attributes
    ----------
    has_begun
        Whether anything runs, or did in the cell that does.

    Examples
    --------
    >>> from matnb.events import WorkersBusy
    >>> from matnb.widgets.monitor_state import Feed
    >>> now = [0.0]
    >>> feed = Feed(clock=lambda: now[0])
    >>> now[0] = 2.0
    >>> feed.hear(WorkersBusy(worker=0, seconds=2.0, by_kind=(("product", 1.0),)))
    >>> feed.facts().workers[0].busy
    {'product': 0.5}
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, window_seconds: float = 60.0) -> None:
        self._clock, self._window = clock, window_seconds
        self._epoch = time.time() - clock()  # a picture that stays does not change with the time
        self.has_begun = False
        self._state = MonitorState()
        self._quick: deque[tuple[float, Event]] = deque()  # of runs, that are not in the state yet
        self._reducing, self._folding = threading.Lock(), threading.Lock()
        self._num_workers = 0  # of the session, or of the one that was
        self._heard: deque[tuple[float, Event]] = deque()  # of workers, that waits to be looked at
        self._history = BusyHistory(clock(), window_seconds)
        self._shown: MonitorFacts | None = None  # last, while something ran
        self._cell_began_at = -inf

    @property
    def state(self) -> MonitorState:
        """The state of now."""
        with self._reducing:
            self._settle()
            return self._state

    def hears_quick(self, event: Event) -> bool:
        """Put off an event of a run, where runs have begun, until somebody looks; tell whether that was done.

        One by one these would cost a cell of quick runs more than drawing does.
        """
        if type(event) not in _RunTally.ADDS:
            return False
        with self._reducing:  # else what ran could end between the look at it and the event
            if not self.has_begun:
                return False
            self._quick.append((self._clock(), event))
            if len(self._quick) > _MOST_HEARD:
                self._settle()
        return True

    def hear(self, event: Event) -> None:
        """Take an event, from any thread."""
        if self.hears_quick(event):
            return
        if isinstance(event, WorkersBusy | WorkersSampled | WorkersLost):
            self._heard.append((self._clock(), event))
            # Where nobody looks for long it must not grow; who looks meanwhile empties it.
            if len(self._heard) > _MOST_HEARD and self._folding.acquire(blocking=False):
                try:
                    self._fold()
                finally:
                    self._folding.release()
        else:
            self.note(event)

    def note(self, happening: Happening) -> None:
        """Take what happened in the session or to the monitor."""
        with self._reducing:
            self._settle()
            if isinstance(happening, CellBegan):
                self._cell_began_at = self._clock()
            before = self._state
            self._state = reduce(before, self._clock(), happening)
            self.has_begun = self._state.since is not None
            if before.since is None and self.has_begun:
                self._shown = None

    def forget(self) -> None:
        """Forget the session that was listened to, but for what was counted: another's workers are others."""
        with self._folding, self._reducing:
            self._settle()
            old = self._state
            self._state = MonitorState(old.is_in_cell, old.since, old.ran_at, counts=old.counts)
            self._heard = deque()
            self._history = BusyHistory(self._clock(), self._window)
            self._shown = None

    def facts(self) -> MonitorFacts:
        """Return what is so now."""
        with self._folding:
            self._fold()
            state, now = self.state, self._clock()
            workers, uneven = self._history.facts(now)
            return MonitorFacts(
                workers,
                self._history.step_seconds,
                uneven,
                iteration=-1 if state.loop is None else state.loop.iterations,
                most_iterations=inf if state.loop is None else state.loop.most_iterations,
                iteration_seconds=state.iteration_seconds,
                seconds_left=inf
                if state.loop is None
                else seconds_left(state.loop, state.iteration_seconds, now - state.loop_since),
                num_repartitions=state.num_repartitions,
                is_running=state.is_running,
                has_run=state.has_run,
                has_stopped=state.has_stopped,
                batches=state.batches if state.is_in_batches else None,
                run_text="" if state.run is None else progress_of(*state.run).text(now),
            )

    def live_facts(self, goes_on: bool = False) -> MonitorFacts:
        """Return what is so now, and remember it if something runs.

        Parameters
        ----------
        goes_on
            Whether it counts as running between two runs.
        """
        facts = self.facts()
        is_running = facts.is_running or (goes_on and not facts.has_stopped)
        facts = replace(facts, is_running=is_running, at=time.strftime("%H:%M:%S"))
        if is_running:
            self._shown = facts
        return facts

    def last_facts(self, session: Session | None, is_closed: bool) -> MonitorFacts:
        """Return what a picture shows that stays: what ran last and how it ended.

        Parameters
        ----------
        session
            The one that is heard of, if there is one: before it has told anything its workers are known.
        is_closed
            Whether nothing more will be heard.
        """
        facts, state = self.facts(), self.state
        if not facts.workers and session is not None and not session.ended:
            facts = replace(facts, workers=tuple(map(WorkerFacts, session.cluster.alive())))
        if facts.is_running and not is_closed:
            return replace(facts, at=time.strftime("%H:%M:%S"))
        if facts.is_running:
            return replace(facts, is_running=False, is_past=True, outcome="closed while running")
        # What was seen last while something ran tells more than idle workers.
        last = facts if self._shown is None else self._shown
        lost = {one.number for one in facts.workers if one.is_lost}
        loads = {**dict.fromkeys((one.number for one in facts.workers), 0.0), **state.kernel_seconds}
        return replace(
            last,
            # The last news of a worker may be older than the end: tasks neither run nor wait after it.
            workers=tuple(
                replace(one, num_running=0, num_queued=0, is_lost=one.is_lost or one.number in lost)
                for one in last.workers
            ),
            iteration=state.last_loop.iteration,
            most_iterations=state.last_loop.most_iterations,
            iteration_seconds=state.last_loop.seconds,
            num_repartitions=facts.num_repartitions,
            is_running=False,
            has_run=facts.has_run,
            is_past=self._shown is not None,
            has_stopped=facts.has_stopped,
            # A page that was loaded again shows what it was told before: also that nothing ran has a time.
            at=self._time_of_day(state.ran_at if facts.has_run else self._cell_began_at),
            outcome=state.outcome,
            batches=state.batches,
            imbalance_of_all=imbalance(loads) if state.kernel_seconds else 0.0,
        )

    def _time_of_day(self, when: float) -> str:
        return time.strftime("%H:%M:%S", time.localtime(self._epoch + when)) if isfinite(when) else ""

    def counts(self, session: Session | None) -> MonitorCounts:
        """Return what was counted, which no clock is in; ``session`` as in :meth:`last_facts`."""
        if session is not None and not session.ended:
            self._num_workers = len(session.cluster.alive()) or self._num_workers
        return replace(self.state.counts, num_workers=self._num_workers)

    def _settle(self) -> None:
        if self._quick:
            tally = _RunTally()
            for _ in range(len(self._quick)):
                tally.add(*self._quick.popleft())
            self._state = _after_runs(self._state, tally)

    def _fold(self) -> None:
        while self._heard:
            self._history.take(*self._heard.popleft())

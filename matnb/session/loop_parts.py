"""The parts of a loop between its pauses: who watches one, where the next resumes, and their totals."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Protocol

from matnb.backend.engines.driver_loops import added
from matnb.backend.engines.recovery import Resume
from matnb.backend.engines.results import Outcome, as_kept
from matnb.backend.store import Entry
from matnb.balance.decision import Decision
from matnb.blocks.layout import Layout
from matnb.events import TaskTimed
from matnb.expr.control import Cond, Loop
from matnb.expr.nodes import Expr
from matnb.plan.attributing import body_of
from matnb.plan.looping import ControlPlan
from matnb.plan.row_work import RowWork
from matnb.program.plan import Slot, StoredArray
from matnb.program.program import batches
from matnb.session.groups import Group, GroupState

_LOOK_SECONDS = 0.05
_NUM_SECONDS = 5  # of iterations, of which the median is what one takes
_LEAST_REMAINING = 10  # iterations that are expected of a loop that ends by a condition


class BalancerHook(Protocol):
    """What a watch asks of the session's balancer."""

    def reported(
        self, watch: LoopWatch, group: Group, owner: int, num_iterations: int,
        seconds: Mapping[int, float], other_seconds: float,
    ) -> None:  # fmt: skip
        """Take what one worker needed for its blocks, the sum over some iterations."""

    def began(self, seconds: float) -> None:
        """Take how long a loop took to begin: from when it was planned to its first iteration."""

    def went_on(self, watch: LoopWatch, group: Group, now: float) -> None:
        """Take the first news of a loop after a repartition."""

    def decided(self, watch: LoopWatch, group: Group) -> Decision:
        """Ask the policy."""

    def next_iteration(self, watch: LoopWatch, group: Group) -> float | None:
        """Ask the policy after how many iterations it acts next; None where that follows from the news."""

    def have_come(self, workers: tuple[int, ...]) -> bool:
        """Tell whether workers are there that are none of these."""


@dataclass(frozen=True)
class Span:
    """Which iterations a loop takes: those done before, the most there are, whether a condition ends it."""

    first: int
    limit: float
    has_until: bool

    def num_remaining(self, iteration: int) -> float:
        """Return how many are expected after some were done."""
        rest = max(0.0, self.limit - iteration)
        return min(rest, max(_LEAST_REMAINING, iteration)) if self.has_until else rest


class LoopWatch:
    """Watches one segment of a loop: until it ends or pauses.

    Parameters
    ----------
    balancer
        Decides.
    watched
        The groups.
    works
        By the slot of a task the digest of the array and the number of the block it works on.
    row_works
        Gives the work of an iteration for the rows of arrays, by their digests.
    workers
        Over which the loop is laid out.
    span
        Of its iterations.
    clock
        Seconds.

    Attributes
    ----------
    mains
        The main array of each group.
    iteration
        How many are done.
    pause_at
        The loop is to pause once so many are done; None where no policy knows beforehand.
    """

    def __init__(
        self,
        balancer: BalancerHook,
        watched: Sequence[Group],
        works: Mapping[Slot, tuple[str, int]],
        row_works: Callable[[], Mapping[str, RowWork]],
        workers: tuple[int, ...],
        span: Span,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._balancer, self._watched, self.workers, self.span = balancer, tuple(watched), workers, span
        self.row_works, self._clock = row_works, clock
        self.mains = frozenset(group.main for group in watched)
        places = {
            node.digest.hex(): place for place, group in enumerate(self._watched) for node in group.arrays
        }
        self._blocks = {
            key: (places[digest], number) for key, (digest, number) in works.items() if digest in places
        }
        self.iteration = span.first
        self.last_seconds = self.last_advanced = 0.0
        self._seconds: list[float] = []
        self._looked = self._planned = clock()
        self._has_begun = False
        self._reported: list[set[int]] = [set() for _ in self._watched]
        self._pauses = False
        foreseen = [balancer.next_iteration(self, group) for group in self._watched]
        self._is_asked = [one is None for one in foreseen]
        known_before = [one for one in foreseen if one is not None and one < span.limit]
        self.pause_at: int | None = int(min(known_before)) if known_before else None

    def iteration_seconds(self, state: GroupState) -> float:
        """Return what an iteration takes by the clock; 0.0 before that is known.

        News from before the last change of a group's times do not count, as they do not for its blocks.
        """
        num_counted = 0 if state.loads is None else state.loads.num_counted
        return median(self._seconds[-max(1, num_counted) :]) if self._seconds else 0.0

    @property
    def num_remaining(self) -> float:
        """Iterations that are expected to follow."""
        return self.span.num_remaining(self.iteration)

    def measured(
        self, owner: int, iteration: int, num_iterations: int, seconds: Mapping[Slot, float]
    ) -> None:
        """Take what one worker measured; see :class:`matnb.backend.engines.protocol.Watch`."""
        self.iteration = max(self.iteration, iteration)
        own: list[dict[int, float]] = [{} for _ in self._watched]
        total = 0.0
        for key, value in seconds.items():
            total += value
            if key in self._blocks:
                place, number = self._blocks[key]
                own[place][number] = own[place].get(number, 0.0) + value
        for place, group in enumerate(self._watched):
            blocks = own[place]
            if blocks or owner in group.cuts.owners:
                rest = max(0.0, total - sum(blocks.values()))
                self._balancer.reported(self, group, owner, num_iterations, blocks, rest)
                self._reported[place].add(owner)

    def advanced(self, iteration: int, seconds: float) -> None:
        """Take the number of iterations that are done, and what one takes by the clock."""
        if iteration <= self.span.first:
            return
        now = self._clock()
        if seconds > 0:
            self._seconds = [*self._seconds, seconds][-_NUM_SECONDS:]
            self.last_seconds = seconds
            if not self._has_begun:
                self._has_begun = True
                begun = now - seconds * (iteration - self.span.first)
                self._balancer.began(max(0.0, begun - self._planned))
        self.last_advanced = now
        self.iteration = max(self.iteration, iteration)
        for group in self._watched:
            self._balancer.went_on(self, group, now)

    def paused(self, iteration: int) -> None:
        """Take after how many iterations the loop has paused: news may not have come of all of them."""
        self.iteration = max(self.iteration, iteration)

    def wants_pause(self) -> bool:
        """Return whether the loop shall pause when the iteration under way is done; asked every few ms."""
        if self.pause_at is not None and self.iteration >= self.pause_at:
            self._pauses = True
        now = self._clock()
        if self._pauses or now - self._looked < _LOOK_SECONDS:
            return self._pauses
        self._looked = now
        self._pauses = self._balancer.have_come(self.workers) and self.num_remaining > 1
        for place, group in enumerate(self._watched):
            # Once all have reported what they needed since the last time it was asked.
            if self._is_asked[place] and self._reported[place].issuperset(group.cuts.owners):
                self._reported[place] = set()
                if self._balancer.decided(self, group).acts:
                    self._pauses = True
        return self._pauses

    def finished(self) -> None:
        """Let go of the arrays as they were: this segment has ended."""
        self._watched, self._reported = (), []


# Where a loop goes on, and what it took.


@dataclass(frozen=True)
class LoopResume:
    """Where a loop resumes after a loss or a pause: the arrays of its state as workers hold them."""

    at: Resume
    states: tuple[Entry, ...]

    def entries(self, node: Loop | Cond) -> dict[Expr, Entry]:
        """Return the arrays by the loop's variables."""
        return dict(zip(node.variables, self.states, strict=False))


def resume_at(
    resume: Resume, states: Sequence[StoredArray], counts: Mapping[Slot, tuple[int, int]] | None = None
) -> LoopResume:
    """Return where a loop goes on whose ``states`` were laid out so; ``counts`` are of its registers."""
    found = []
    for array in states:
        stored, futures = as_kept(array, resume.futures, counts or {})
        layout = Layout(array.layout.grid, tuple(resume.owners[key] for key in array.keys))
        found.append(Entry(replace(stored, layout=layout), futures))
    return LoopResume(resume, tuple(found))


@dataclass
class LoopParts:
    """The parts of a loop so far, between its pauses.

    Attributes
    ----------
    outcome
        Of the last part, with the seconds, bytes and arrays of all; none before the first has ended.
    states
        How the state was laid out in each gathering of a gang.
    num_pauses
        After so many parts it went on.
    iterations
        That are known to be done.
    """

    outcome: Outcome = field(default_factory=Outcome)
    states: dict[int, tuple[StoredArray, ...]] = field(default_factory=dict)
    num_pauses: int = 0
    iterations: int = 0
    _timed: dict[Hashable, dict[Slot, TaskTimed]] = field(default_factory=dict)  # by what iterations do

    def add(self, done: Outcome, plan: ControlPlan) -> None:
        """Add a part that ran by a plan."""
        before = self.outcome
        self.outcome = replace(
            done,
            seconds=before.seconds + done.seconds,
            sent_bytes=before.sent_bytes + done.sent_bytes,
            allocated=before.allocated + done.allocated,
        )
        timed = self._of(plan)
        for one in done.timed:
            earlier = timed.get(one.key)
            timed[one.key] = one if earlier is None else added(earlier, one)

    def paused(self, resume: Resume, states: tuple[StoredArray, ...]) -> None:
        """Note a pause, and how the state was laid out before; its blocks are held by ``resume`` alone."""
        self.num_pauses += 1
        self.states[resume.epoch] = states
        self.outcome = replace(self.outcome, kept={}, paused=None)

    def waited(self, seconds: float) -> None:
        """Add the seconds of a pause."""
        self.outcome = replace(self.outcome, seconds=self.outcome.seconds + seconds)

    def _of(self, plan: ControlPlan) -> dict[Slot, TaskTimed]:
        # A plan by which a loop goes on has the iterations of the one before, unless cuts differ.
        layouts = tuple(array.layout for array in plan.states)
        tasks = (task for batch in batches(body_of(plan.program)) for task in batch.tasks)
        return self._timed.setdefault((layouts, tuple((one.key, one.kind, one.owner) for one in tasks)), {})

    def timed_by(self, plan: ControlPlan) -> tuple[TaskTimed, ...]:
        """Return one record a task: seconds over all parts whose iterations are those of a plan."""
        return tuple(self._of(plan).values())

    @property
    def timed(self) -> tuple[TaskTimed, ...]:
        """One record a task, in each way in which iterations were laid out: seconds over all such parts."""
        return tuple(one for timed in self._timed.values() for one in timed.values())

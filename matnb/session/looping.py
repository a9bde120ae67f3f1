"""Loops and branches run: by a gang, or by the driver where no gang can be had."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from matnb.backend.driver_loops import Driver, added
from matnb.backend.engine_dask import DaskEngine, RunCancelled, TaskFailed
from matnb.backend.engine_gang import GangEngine, GangUnavailable
from matnb.backend.futures import OwnersLost
from matnb.backend.kept import Kept, names_of
from matnb.backend.recovery import Resume
from matnb.backend.results import ProgramOutcome
from matnb.backend.store import Entry, Store
from matnb.blocks.layout import Layout
from matnb.config import Config
from matnb.errors import CellCancelled, ClusterError, TooLargeError
from matnb.events import Event, LoopAdvanced, LoopFinished, TaskTimed
from matnb.expr.control import Cond, Final, Loop, results_of
from matnb.expr.nodes import Expr, Literal
from matnb.expr.retention import lifetime
from matnb.lazy.array import live_expressions
from matnb.lazy.recording import Recording
from matnb.pictures.quantities import plural_text
from matnb.plan.attributing import body_of
from matnb.plan.looping import ControlPlan
from matnb.plan.program_cache import ControlPlans
from matnb.program.plan import Slot, Stored
from matnb.program.program import batches
from matnb.session.failures import cell_error
from matnb.session.loop_watch import LoopWatch
from matnb.session.overrides import engine_of
from matnb.session.planning import Planner
from matnb.session.rebalance import Balancer


@dataclass(frozen=True)
class LoopRan:
    """What a loop or branch gave besides its arrays.

    Attributes
    ----------
    plan
        How its last part ran.
    timed
        One record a task, in each way in which iterations were laid out: seconds over all such parts.
    timed_last
        Those of the last way.
    """

    finished: LoopFinished
    plan: ControlPlan
    timed: tuple[TaskTimed, ...]
    timed_last: tuple[TaskTimed, ...]


class Looper:
    """Runs loops and branches whose inputs are stored.

    Parameters
    ----------
    config, engine, gang, store, planner
        Of the session.
    emit
        Called with every event.
    balancer
        Cuts what loops read, before they begin and between their iterations; or None.
    """

    def __init__(
        self,
        config: Config,
        engine: DaskEngine,
        gang: GangEngine,
        store: Store,
        planner: Planner,
        emit: Callable[[Event], None],
        balancer: Balancer | None = None,
    ) -> None:
        self._config, self._engine, self._gang, self._store = config, engine, gang, store
        self._planner, self._emit, self._balancer = planner, emit, balancer
        self._begins: dict[Expr, Begin] = {}
        self._plans = ControlPlans()

    def forget(self) -> None:
        """Let go of the states from which loops that lost a worker were to go on."""
        self._begins.clear()

    def plan(self, node: Loop | Cond, entries: dict[Expr, Entry], wanted: Collection[Expr]) -> ControlPlan:
        """Return how a loop or branch runs, over the workers that there are.

        A loop that lost a worker goes on from the last state that the others have.

        Parameters
        ----------
        entries
            Of its inputs; those that are cut anew first are replaced.
        wanted
            Which of the node and its results are kept.

        Raises
        ------
        TooLargeError
            When it does not fit the workers' memory.
        """
        plan = self._laid_out(node, entries, wanted)
        if self._balancer is not None and isinstance(node, Loop) and node not in self._begins:
            if self._take(self._balancer.aligned(entries, plan), entries):
                plan = self._laid_out(node, entries, wanted)
            has_until = node.body.until is not None
            if self._take(self._balancer.prepare(entries, plan, most_iterations(node), has_until), entries):
                return self._fitting_now(node, entries, wanted)
        return self._fitting(plan, entries)

    def run(
        self,
        node: Loop | Cond,
        plan: ControlPlan,
        entries: dict[Expr, Entry],
        wanted: Collection[Expr],
        run: str,
        record: Recording | None,
    ) -> LoopRan:
        """Run a loop or branch as planned, store what it gives, and tell how it went.

        Between two iterations it may pause, have its inputs cut anew, and go on by another plan over the
        workers that there are then.

        Parameters
        ----------
        plan, entries, wanted
            As :meth:`plan` gave and took them; ``entries`` are replaced by those of inputs that are cut anew.

        Raises
        ------
        OwnersLost
            When a worker was lost.
        CellCancelled
            On an interrupt.
        ClusterError
            When ``engine="gang"`` was asked for and no gang came together.
        """
        begin = self._begins.get(node)
        num_done = 0 if begin is None else begin.resume.iteration

        most = most_iterations(node) if isinstance(node, Loop) else math.inf
        has_until = isinstance(node, Loop) and node.body.until is not None

        def told(iterations: int, seconds: float) -> None:
            nonlocal num_done
            num_done = iterations
            self._emit(LoopAdvanced(run, iterations, seconds, most, has_until))

        del begin
        if isinstance(node, Loop):
            told(num_done, 0.0)
        taken = Taken()
        try:
            while True:
                done, reason, watch = self._part(node, plan, entries, told, taken)
                taken.add(done, plan)
                if done.paused is None or watch is None:
                    break
                begin_seconds = time.perf_counter()
                taken.num_pauses += 1
                taken.states[done.paused.epoch] = plan.states
                self._begins[node] = begin_at(done.paused, plan.states, done.counts)
                watch.paused(done.iterations)
                del done
                self._go_over(watch, entries)
                plan = self._fitting_now(node, entries, wanted)
                taken.seconds += time.perf_counter() - begin_seconds
        except OwnersLost:
            self._remember(node, plan, taken)
            raise
        except BaseException as error:
            self._begins.pop(node, None)
            if taken.num_pauses:
                self._gang.forget()
            if isinstance(error, TaskFailed):
                raise cell_error(error.failed, plan.stages, plan.tasks(), record, plan.origins) from None
            if isinstance(error, RunCancelled | CellCancelled):
                raise CellCancelled(f"{error}{_lost_words(node, num_done)}") from None
            raise
        if taken.num_pauses:
            self._gang.forget()  # where the driver ran the last part
        self._keep(plan, done, taken.seconds)
        finished = LoopFinished(
            run=run,
            engine="gang" if done.num_members else "dask",
            reason=reason,
            iterations=done.iterations,
            num_tasks=plan.num_tasks,
            num_members=done.num_members,
            sent_bytes=taken.sent_bytes,
            allocated=tuple(taken.allocated),
            projected_bytes=sum(plan.peaks.values()),
            seconds=taken.seconds,
            is_branch=isinstance(node, Cond),
        )
        return LoopRan(finished, plan, taken.timed, taken.timed_by(plan))

    def _laid_out(
        self, node: Loop | Cond, entries: Mapping[Expr, Entry], wanted: Collection[Expr]
    ) -> ControlPlan:
        begin = self._begins.get(node)
        stored = {one: entry.stored for one, entry in entries.items()}
        states = None if begin is None else [one.stored for one in begin.states]
        return self._plans.plan(node, stored, self._planner.workers(), wanted, states)

    @staticmethod
    def _take(new: Mapping[Expr, Entry], entries: dict[Expr, Entry]) -> bool:
        # Replaces entries by new ones, and tells whether any differ.
        are_new = any(new[one] is not entry for one, entry in entries.items())
        entries.update(new)
        return are_new

    def _fitting(self, plan: ControlPlan, entries: Mapping[Expr, Entry]) -> ControlPlan:
        # The plan, checked against the workers' memory.
        self._planner.check_peaks(plan.peaks, list(entries))
        # Without room for copies of the state, a loss starts the loop anew.
        keeps, limits = self._planner.fits(plan.peaks_with_copies), self._planner.limits()
        return replace(plan, program=replace(plan.program, keeps=keeps, limits=limits))

    def _fitting_now(
        self, node: Loop | Cond, entries: dict[Expr, Entry], wanted: Collection[Expr]
    ) -> ControlPlan:
        # The plan after a repartition; where it does not fit, the inputs get their cuts back.
        assert self._balancer is not None
        try:
            return self._fitting(self._laid_out(node, entries, wanted), entries)
        except TooLargeError as error:
            if not self._take(self._balancer.undo(entries, str(error)), entries):
                raise
            return self._fitting(self._laid_out(node, entries, wanted), entries)

    def _part(
        self,
        node: Loop | Cond,
        plan: ControlPlan,
        entries: Mapping[Expr, Entry],
        told: Callable[[int, float], None],
        taken: Taken,
    ) -> tuple[ProgramOutcome, str, LoopWatch | None]:
        # Runs to the end or to a pause: how it went, why no gang ran it, and who watched.
        begin = self._begins.pop(node, None)
        arrays = {**entries, **({} if begin is None else begin.entries(node))}
        given = {name: arrays[one].futures[number] for name, (one, number) in plan.given.items()}
        resume = None if begin is None else begin.resume
        watch = None
        if self._balancer is not None and isinstance(node, Loop) and self._gang.can_pause(plan.program):
            first = 0 if resume is None else resume.iteration
            has_until = node.body.until is not None
            watch = self._balancer.watch(entries, plan, first, most_iterations(node), has_until)
        try:
            done, reason = self._done(plan, given, _counts(plan, arrays), resume, told, watch)
        finally:
            if watch is not None:
                watch.finished()
        return done, reason, watch

    def _done(
        self,
        plan: ControlPlan,
        given: Mapping[Slot, Kept],
        counts: Mapping[Slot, tuple[int, int]],
        resume: Resume | None,
        told: Callable[[int, float], None],
        watch: LoopWatch | None,
    ) -> tuple[ProgramOutcome, str]:
        # How it went, and why no gang ran it.
        engine = engine_of(self._config)
        reason = "" if engine != "dask" else 'engine="dask"'
        if not reason:
            try:
                return self._gang.run(plan.program, given, resume, told, watch), ""
            except GangUnavailable as error:
                reason = error.reason
                if engine == "gang":
                    raise ClusterError(
                        f'no gang ran this loop: {reason}; try again, or let engine="auto" do it task by task'
                    ) from None
        first = 0 if resume is None else resume.iteration
        return Driver(self._engine, plan.program, given, counts, told, first, watch).run(), reason

    def _go_over(self, watch: LoopWatch, entries: dict[Expr, Entry]) -> None:
        # Between two parts: the inputs as they are cut from now on, over the workers that there are now.
        assert self._balancer is not None
        self._planner.drop_dead(waits=True)
        found = self._balancer.repartition_paused(watch, entries)
        entries.clear()
        entries.update(found)

    def _remember(self, node: Loop | Cond, plan: ControlPlan, taken: Taken) -> None:
        self._begins.pop(node, None)
        taken.states.setdefault(self._gang.epoch, plan.states)
        resume = self._gang.recover(self._gang.epoch)
        if resume is not None:
            self._begins[node] = begin_at(resume, taken.states[resume.epoch])

    def _keep(self, plan: ControlPlan, done: ProgramOutcome, seconds: float) -> None:
        for node, array in plan.outputs.items():
            futures = tuple(done.futures[key] for key in array.keys)
            stored = replace(array, keys=names_of(futures))
            if all(key in done.counts for key in array.keys):
                nnz, sizes = zip(*(done.counts[key] for key in array.keys), strict=True)
                stored = replace(stored, block_nnz=nnz, block_bytes=sizes, is_guess=False)
            self._store.add(node, Entry(stored, futures, seconds), lifetime(node))


def _counts(plan: ControlPlan, arrays: Mapping[Expr, Entry]) -> dict[Slot, tuple[int, int]]:
    # Entries and bytes of what is given, as far as they are known.
    found = {}
    for name, (one, number) in plan.given.items():
        stored = arrays[one].stored
        if stored.block_nnz:
            found[name] = stored.block_nnz[number], stored.block_bytes[number]
    return found


def most_iterations(node: Loop) -> float:
    """Return the most iterations of a loop; infinity where the number is computed."""
    return float(node.limit.value) if isinstance(node.limit, Literal) else math.inf


def _lost_words(node: Loop | Cond, num_done: int) -> str:
    if not isinstance(node, Loop):
        return ""
    return f", after at least {plural_text(num_done, 'iteration')} of a loop, whose state is not kept"


def missing_results(node: Loop | Cond, order: Collection[Expr], store: Store) -> list[Expr]:
    """Return what a loop or branch is to give; nothing where all that ``order`` asks of it is stored.

    What handles stand for is made on the way, and so is the number of a loop's iterations.
    """
    own = [node, *(Final(node, place) for place in range(len(results_of(node))))]
    asked = set(own).intersection(order)
    if all(one in store for one in asked):
        return []
    live = live_expressions()
    return [one for one in own if one is node or one in asked or one in live]


# The parts of a loop between its pauses: where each begins, and what all of them took together.


@dataclass(frozen=True)
class Begin:
    """Where a loop goes on after a loss or a pause: the arrays of its state as workers hold them."""

    resume: Resume
    states: tuple[Entry, ...]

    def entries(self, node: Loop | Cond) -> dict[Expr, Entry]:
        """Return the arrays by the loop's variables."""
        return dict(zip(node.variables, self.states, strict=False))


def begin_at(
    resume: Resume, states: Sequence[Stored], counts: Mapping[Slot, tuple[int, int]] | None = None
) -> Begin:
    """Return where a loop goes on whose ``states`` were laid out so; ``counts`` are of its registers."""
    found = []
    for array in states:
        layout = Layout(array.layout.grid, tuple(resume.owners[key] for key in array.keys))
        futures = tuple(resume.futures[key] for key in array.keys)
        nnz, sizes = array.block_nnz, array.block_bytes
        if counts is not None and all(key in counts for key in array.keys):
            nnz, sizes = zip(*(counts[key] for key in array.keys), strict=True)
        found.append(Entry(Stored(layout, names_of(futures), nnz, sizes), futures))
    return Begin(resume, tuple(found))


@dataclass
class Taken:
    """What the parts of a loop took so far.

    Attributes
    ----------
    states
        How the state was laid out in each gathering of a gang.
    num_pauses
        After so many parts it went on.
    """

    states: dict[int, tuple[Stored, ...]] = field(default_factory=dict)
    num_pauses: int = 0
    seconds: float = 0.0
    sent_bytes: int = 0
    allocated: list[int] = field(default_factory=list)
    _timed: dict[Hashable, dict[Slot, TaskTimed]] = field(default_factory=dict)  # by what iterations do

    def add(self, done: ProgramOutcome, plan: ControlPlan) -> None:
        """Add what a part took that ran by a plan."""
        self.seconds += done.seconds
        timed = self._of(plan)
        for one in done.timed:
            before = timed.get(one.key)
            timed[one.key] = one if before is None else added(before, one)
        self.sent_bytes += done.sent_bytes
        self.allocated += done.allocated

    def _of(self, plan: ControlPlan) -> dict[Slot, TaskTimed]:
        # A plan by which a loop goes on has the iterations of the one before, unless arrays are cut anew.
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

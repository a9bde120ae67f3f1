"""Runs expressions: plans on an engine, loops and branches on a gang; retries when workers are lost."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar
from uuid import uuid4

from matnb.backend.cluster.dask_cluster import DaskCluster
from matnb.backend.engines.driver_loops import LINEAGE_DEPTH, PlanEngine
from matnb.backend.engines.engine_gang import GangEngine, GangUnavailable
from matnb.backend.engines.futures import OwnersLost
from matnb.backend.engines.recovery import Resume
from matnb.backend.engines.results import Outcome, RunCancelled
from matnb.backend.kept import BlockRef, LocalBlock, names_of
from matnb.backend.store import Entry, Store
from matnb.backend.tasks.worker import TaskFailed
from matnb.blocks.formats import Block, Dense, to_numpy
from matnb.blocks.kernels.shaping.shaping import join
from matnb.blocks.layout import Layout
from matnb.config import Config
from matnb.errors import CellCancelled, ClusterError, TooLargeError, WorkerLostError
from matnb.events import Event, LoopAdvanced, WorkersLost
from matnb.expr.client_data import copied, held, keep_copy, keep_in_file, lost_copy
from matnb.expr.control import Cond, Final, Loop, results_of
from matnb.expr.nodes import Data, Expr, Literal
from matnb.expr.retention import lifetime
from matnb.expr.stable_order import place_of
from matnb.expr.traverse import topological
from matnb.io.results import ResultFolder
from matnb.lazy.batch_turns import batches_in_turn
from matnb.lazy.handles import live_expressions
from matnb.lazy.recording import Recording, active_recording
from matnb.pictures.quantities import plural_text
from matnb.plan.chosen_entries import entries_at_most
from matnb.plan.densified import MOST_TOLD, densified
from matnb.plan.explain_plans import plan_text
from matnb.plan.looping import ControlPlan, starts_inside
from matnb.plan.plan_counts import counts_of
from matnb.plan.product_entries import operands_counted
from matnb.plan.program_cache import ControlPlans, PlanResult
from matnb.program.place import default_layout
from matnb.program.plan import Plan, Slot
from matnb.session.failures import cell_error, largest, lines_of, located, raised_in_cell
from matnb.session.loop_parts import LoopParts, LoopResume, LoopWatch, Span, resume_at
from matnb.session.memo import Memo
from matnb.session.overrides import engine_of
from matnb.session.planning import Planner
from matnb.session.rebalance import Balancer
from matnb.session.repartitioner import Repartitioner
from matnb.session.run_listeners import RunListeners
from matnb.session.run_log import RunLog

_TRIES = 4  # a run is laid out anew over the survivors this often before it gives up
_MOST_COUNTS = 4  # before a run; each time of what is made of what was counted before

_Result = TypeVar("_Result")


class RunResult(NamedTuple):
    """What a run gave: the entry of every root, and the values that were fetched with it."""

    entries: Mapping[str, Entry]
    fetched: Mapping[str, Block]


class Runner:
    """Turns expressions into arrays on the workers.

    Parameters
    ----------
    folder
        Where results stay between processes, or None.
    """

    def __init__(
        self,
        config: Config,
        cluster: DaskCluster,
        engine: PlanEngine,
        gang: GangEngine,
        store: Store,
        emit: Callable[[Event], None],
        folder: ResultFolder | None = None,
    ) -> None:
        self._cluster, self._engine, self._store = cluster, engine, store
        self.planner = Planner(config, cluster, store)
        self.memo = Memo(config, store, engine.blocks, self.planner, folder)
        self.listeners = RunListeners(self.planner.workers)
        self._num_reported = 0  # of the arrays that gave way
        self._num_taken = 0  # roots of the run that is under way whose values were remembered
        self.log = RunLog(cluster, emit)
        repartitioner = Repartitioner(engine, self.planner, self.memo.replaced)
        self.balancer = Balancer(config.rebalance, store, self.planner, repartitioner, self.log.emit)
        self._loops = LoopRunner(config, engine, gang, store, self.planner, self.log, self.balancer)

    def run(
        self,
        roots: Mapping[str, Expr],
        live: set[Expr],
        fetch: Collection[str] = (),
        record: Recording | None = None,
    ) -> RunResult:
        """Compute the roots that are not stored, over the survivors if workers are lost meanwhile.

        Parameters
        ----------
        roots
            Named expressions, computed in one run.
        live
            Expressions whose arrays stay if they are computed on the way.
        fetch
            Names of roots whose values are wanted in this process, if they come back with the run.
        record
            The cell that asks, for the lines of errors.

        Raises
        ------
        WorkerLostError
            When workers were lost again and again.
        TooLargeError
            When the plan does not fit the workers' memory.
        CellCancelled
            On an interrupt; whole arrays that were finished stay.
        """
        self.log.record = record or active_recording()
        try:
            with self.log.stopping():
                found = self.retried(lambda: self._attempt(roots, live, fetch))
            self.planner.in_use = set()
            self.planner.trim()
            return found
        finally:
            self.log.record = None
            self.planner.in_use = set()
            self.log.made.clear()
            self._loops.forget()

    def retried(self, work: Callable[[], _Result]) -> _Result:
        """Do work that reads the workers, again over the survivors each time some are lost.

        Raises
        ------
        WorkerLostError
            When workers were lost again and again.
        CellCancelled
            When another thread wants an end of it.
        """
        lost: tuple[int, ...] = ()
        stopping = self._cluster.stopping
        with stopping.scope(), stopping.heeding():
            for _ in range(_TRIES):
                stopping.check()
                try:
                    return work()
                except OwnersLost as error:
                    lost = error.owners
                    self.log.emit(WorkersLost(str(self.log.num_runs), lost))
                    for owner in lost:
                        self._store.drop_owner(owner)
                    self._cluster.refresh()
        raise WorkerLostError(
            f"workers {lost} were lost, and others before them; the run was given up. A worker that takes "
            "more memory than its limit is ended: cut into more blocks, or give a larger memory_limit"
        )

    def _attempt(self, roots: Mapping[str, Expr], live: set[Expr], fetch: Collection[str]) -> RunResult:
        taken = self.memo.get(roots, fetch)
        self._num_taken = len(taken)
        roots = {name: node for name, node in roots.items() if name not in taken}
        order = topological(roots.values(), self._store, _with_inputs)
        roots |= _results_beside(order, live, self._store)
        self.planner.in_use = set(order)
        for node in order:
            if isinstance(node, Data) and (block := lost_copy(node)) is not None:
                self.ship(node, block)  # unless it is there
            if isinstance(node, Loop | Cond):
                self._control(node, missing_results(node, order, self._store), live)
        fetch = [name for name in fetch if name in roots]
        done = self._straight(roots, live, fetch, self.log.record)
        return RunResult(done.entries, {**taken, **done.fetched})

    def ship(self, node: Data, block: Block) -> None:
        """Send a user's large array to the workers, unless they have it, keeping a copy here.

        Raises
        ------
        OwnersLost
            When a worker was lost meanwhile.
        """
        self.planner.drop_dead()
        if node in self._store:
            return
        if held(node) is None:
            if self._cluster.in_process:
                keep_copy(node, block)
            else:
                keep_in_file(node, block)
        kept = held(node)
        layout = default_layout(node, block.nbytes, self.planner.workers(), block)
        given = block if kept is None else kept
        is_elsewhere = kept is not None and not self._cluster.in_process  # in a file, which takes no memory
        size = -(-block.nbytes // max(1, len(layout.owners)))
        peaks = {owner: size * layout.owners.count(owner) for owner in set(layout.owners)}
        self.planner.make_room(peaks, (node,))
        entry = Entry(*self._engine.blocks.ship_array(given, layout, kept is not None))
        self._store.add_given(node, entry, is_elsewhere)

    def _control(self, node: Loop | Cond, wanted: Sequence[Expr], live: set[Expr]) -> None:
        # Runs a loop or branch; those below it have run.
        if not wanted:
            return
        what = "loop" if isinstance(node, Loop) else "branch"
        outside = [one for one in node.inputs if not starts_inside(one)]
        inputs = {f"{what} input {place}": one for place, one in enumerate(outside)}
        made = self._straight(inputs, live, (), self.log.record).entries
        found = {one: made[name] for name, one in inputs.items()}
        del made  # entries that are replaced let go of their blocks
        self.balancer.layouts.made(self._loops.run(node, found, wanted), found)

    def _straight(
        self, roots: Mapping[str, Expr], live: set[Expr], fetch: Collection[str], record: Recording | None
    ) -> RunResult:
        # Passes may give an expression the name of a value that is remembered.
        reload = partial(self.memo.reload, looked_at=self.planner.in_use)
        planned = self.planner.planned(roots, live, reload=reload)
        is_balanced = self.balancer.before_run(planned.plan)
        products = self._counted(planned.plan)
        if is_balanced or products:
            planned = self.planner.planned(roots, live, products)
        less = partial(self.planner.planned, roots, set(), products) if live else None
        planned = self._fitting(planned, roots, less, record)
        plan, optimized = planned.plan, planned.optimized
        if record is not None:
            _note_densified(plan, planned.origins, record)
        after = {name: optimized[node] for name, node in roots.items()}
        made = [name for name in fetch if after[name] in plan.outputs and not after[name].sparse]
        keys = [key for name in made for key in plan.outputs[after[name]].keys]
        self.log.begin(len(plan.tasks), plan.projected_bytes)
        outcome = None
        if plan.tasks or plan.shipments:
            with raised_in_cell(plan.stages, plan.tasks, record, planned.origins):
                outcome = self._run(plan, optimized, keys)
        self._alias(optimized)
        self.balancer.layouts.aligned()
        # Whoever asked holds the entries, so that they outlast the budget until their values were fetched.
        entries = {name: self._store.entry(node) for name, node in roots.items()}
        self.memo.touch([*plan.reused, *(one for one in after.values() if one not in plan.outputs)])
        self.planner.trim()
        self._finish(plan, after, outcome, record)
        fetched = {}
        if outcome is not None:
            for name in made:
                array = plan.outputs[after[name]]
                blocks = [outcome.fetched[key] for key in array.keys]
                fetched[name] = whole(after[name], array.layout, blocks)
                self.memo.put(fetched[name], roots[name], after[name])
        return RunResult({name: entry for name, entry in entries.items() if entry is not None}, fetched)

    def _fitting(
        self,
        planned: PlanResult,
        roots: Mapping[str, Expr],
        keeping_less: Callable[[], PlanResult] | None,
        record: Recording | None,
    ) -> PlanResult:
        # A plan for which there is room: where all that handles stand for does not fit, none of it is kept.
        try:
            self.planner.check_peaks(planned.plan.peaks, planned.plan.reused)
        except TooLargeError as error:
            if keeping_less is not None:
                return self._fitting(keeping_less(), roots, None, record)
            if num_blocks := self.planner.blocks_that_fit(roots):
                error = TooLargeError(
                    f"{error}; in finer blocks it fits: give blocks={num_blocks} or more, or none"
                )
            raise located(error, largest(planned.plan.stages, planned.origins), record) from None
        return planned

    def _run(self, plan: Plan, optimized: Mapping[Expr, Expr], fetch: Sequence[Slot]) -> Outcome:
        # Runs a plan, keeps what it makes, and notes what was measured.
        try:
            outcome = self._engine.run(plan, self._binding(plan), fetch)
        except RunCancelled as error:
            self.keep(error.outcome, plan)
            self._alias(optimized)
            raise
        self.keep(outcome, plan)
        self.planner.note_slices()
        made_in = {
            node: plan.outputs[became].keys for node, became in optimized.items() if became in plan.outputs
        }
        self.log.measures.note(plan.stages, outcome.timed, made_in, plan.tasks)
        for operand in plan.scattered:
            self.planner.num_scattered[operand] = self.planner.num_scattered.get(operand, 0) + 1
        self.balancer.note_run(plan, outcome.timed)
        self.listeners.note(plan, outcome.timed)
        return outcome

    def _counted(self, plan: Plan) -> list[Expr]:
        # What a plan makes that is planned by counts of entries, all of them known.
        products: list[Expr] = []
        for _ in range(_MOST_COUNTS):
            # What is made of those that were counted may be large, too.
            new = [one for one in self.planner.large_products(plan) if one not in products]
            products += new
            missing = [one for one in new if one not in self.planner.counted]
            if not missing:
                break
            self._count(missing)
        return products

    def _count(self, products: Sequence[Expr]) -> None:
        # Counts on the workers at most how many entries products and choices store; what they read is there
        # after.
        missing = [
            one
            for one in dict.fromkeys(each for node in products for each in operands_counted(node))
            if self._store.entry(one) is None
        ]
        if missing:
            self._straight({f"operand {place}": one for place, one in enumerate(missing)}, set(), (), None)
            self.planner.in_use.update(missing)
        unknown = [node for node in products if node not in self.planner.counted]
        counts = {f"count {place}": entries_at_most(node) for place, node in enumerate(unknown)}
        fetched = self._straight(counts, set(), list(counts), None).fetched if counts else {}
        for node, block in zip(unknown, fetched.values(), strict=True):
            self.planner.counted.note(node, int(to_numpy(block)[()]))

    def keep(self, outcome: Outcome, plan: Plan, seconds: float | None = None) -> None:
        """Store the arrays that a run left on the workers.

        Parameters
        ----------
        seconds
            What each would cost to make again, where the times of its own tasks do not say.
        """
        times: dict[int | None, float] = {}
        makes = {task.key: task.makes for task in plan.tasks}
        for one in outcome.timed:
            times[makes[one.key]] = times.get(makes[one.key], 0.0) + one.seconds
        numbers = {stage.expression: stage.makes for stage in plan.stages}
        read = [entry for node in plan.reused if (entry := self._store.entry(node)) is not None]
        depth = 1 + max((entry.depth for entry in read), default=0)
        made = outcome.arrays(plan.outputs)
        for node, (stored, futures) in made.items():
            at = depth
            if depth > LINEAGE_DEPTH:
                futures, at = self._engine.blocks.cut_lineage(stored.layout.owners, futures), 0
                stored = replace(stored, keys=names_of(futures))
            cost = times.get(numbers[node], 0.0) if seconds is None else seconds
            self._store.add(node, Entry(stored, futures, cost, at), lifetime(node))
        self.balancer.layouts.made(made, plan.reused)

    def _binding(self, plan: Plan) -> dict[Slot, BlockRef]:
        # What is in the slots that a plan reads and does not make.
        found: dict[Slot, BlockRef] = {}
        for node, array in plan.reused.items():
            entry = self._store.entry(node)
            assert entry is not None, "what a plan reads stays until it has run"
            found.update(zip(array.keys, entry.futures, strict=True))
        return found

    def _alias(self, optimized: Mapping[Expr, Expr]) -> None:
        # A handle finds its array under the expression that was recorded, too.
        for recorded, node in optimized.items():
            entry = self._store.entry(node)
            if recorded is not node and entry is not None:
                self._store.add(recorded, entry, lifetime(recorded), second=True)

    def _finish(
        self, plan: Plan, after: Mapping[str, Expr], outcome: Outcome | None, record: Recording | None
    ) -> None:
        counts = counts_of(plan, after.values(), self.log.made)
        counts = counts._replace(num_remembered=counts.num_remembered + self._num_taken)
        self._num_taken = 0  # reported once, though loops have runs before them
        if record is not None and len(plan.tasks) >= max((run.num_tasks for run in record.runs), default=0):
            record.plan_text = partial(plan_text, plan, {node: name for name, node in after.items()})
        timed, seconds = ((), 0.0) if outcome is None else (outcome.timed, outcome.seconds)
        before, self._num_reported = self._num_reported, self._store.num_gave_way
        self.log.finish(plan, timed, seconds, record, counts, self._num_reported - before)


def _with_inputs(node: Expr) -> tuple[Expr, ...]:
    # What a loop gives may be gone though the number of its iterations is known: then it runs again.
    return (*node.control.operands, node.control) if isinstance(node, Final) else node.operands


def whole(node: Expr, layout: Layout, blocks: Sequence[Block]) -> Block:
    """Return the blocks of an array put together, with memory of its own."""
    if len(blocks) == 1:
        return copied(blocks[0])
    offsets = [tuple(start for start, _ in region) for region in layout.grid.regions()]
    return join(list(zip(offsets, blocks, strict=True)), node.shape, node.dtype, node.sparse)


# Loops and branches.


class LoopRunner:
    """Runs loops and branches whose inputs are stored: by a gang, or by the driver where there is none.

    The balancer repartitions what loops read, before they begin and between their iterations.
    """

    def __init__(
        self,
        config: Config,
        engine: PlanEngine,
        gang: GangEngine,
        store: Store,
        planner: Planner,
        log: RunLog,
        balancer: Balancer,
    ) -> None:
        self._config, self._engine, self._gang, self._store = config, engine, gang, store
        self._planner, self._log, self._balancer = planner, log, balancer
        self._resumes: dict[Expr, LoopResume] = {}
        self._plans = ControlPlans()

    def forget(self) -> None:
        """Let go of the states from which loops that lost a worker were to go on."""
        self._resumes.clear()

    def run(
        self, node: Loop | Cond, entries: dict[Expr, Entry], wanted: Collection[Expr]
    ) -> Collection[Expr]:
        """Run a loop or branch over the workers that there are, store what it gives, and return that.

        Between two iterations it may pause, have its inputs repartitioned, and go on by another plan over the
        workers that there are then. One that lost a worker goes on from the last state that the others have.

        Parameters
        ----------
        entries
            Of its inputs; those that are repartitioned are replaced.
        wanted
            Which of the node and its results are kept.

        Raises
        ------
        TooLargeError
            When it does not fit the workers' memory.
        OwnersLost
            When a worker was lost.
        CellCancelled
            On an interrupt.
        ClusterError
            When ``engine="gang"`` was asked for and no gang came together.
        """
        plan = self._plan(node, entries, wanted)
        self._log.begin(plan.num_tasks, sum(plan.peaks.values()))
        parts = LoopParts()
        plan, reason = self._parts(node, plan, entries, wanted, parts)
        for one, (stored, futures) in parts.outcome.arrays(plan.outputs).items():
            self._store.add(one, Entry(stored, futures, parts.outcome.seconds), lifetime(one))
        self._log.made.update(plan.outputs)
        self._log.finish_control(node, parts, plan, reason)
        return plan.outputs.keys()

    def _plan(self, node: Loop | Cond, entries: dict[Expr, Entry], wanted: Collection[Expr]) -> ControlPlan:
        plan = self._laid_out(node, entries, wanted)
        if isinstance(node, Loop) and node not in self._resumes:
            if self._take(self._balancer.aligned(entries, plan), entries):
                plan = self._laid_out(node, entries, wanted)
            if self._take(self._balancer.prepare(entries, plan, _span(node, 0)), entries):
                return self._fitting_now(node, entries, wanted)
        return self._fitting(plan, entries)

    def _parts(
        self,
        node: Loop | Cond,
        plan: ControlPlan,
        entries: dict[Expr, Entry],
        wanted: Collection[Expr],
        parts: LoopParts,
    ) -> tuple[ControlPlan, str]:
        # Runs all parts: the plan of the last one, and why no gang ran it.
        first, run = self._first(node), str(self._log.num_runs)
        span, work, going = _span(node, first), plan.work.iteration, batches_in_turn()
        batches = None if going is None else going.span

        def advanced(iterations: int, seconds: float) -> None:
            parts.iterations = iterations
            event = LoopAdvanced(run, iterations, seconds, span.limit, span.has_until, *work, batches)
            self._log.emit(event)

        if isinstance(node, Loop):
            advanced(first, 0.0)
        try:
            while True:
                done, reason, watch = self._part(node, plan, entries, advanced)
                parts.add(done, plan)
                if done.paused is None or watch is None:
                    break
                begin_seconds = time.perf_counter()
                parts.paused(done.paused, plan.states)
                self._resumes[node] = resume_at(done.paused, plan.states, done.counts)
                watch.paused(done.iterations)
                del done
                self._planner.drop_dead(waits=True)
                found = self._balancer.repartition_paused(watch, entries)
                entries.clear()
                entries.update(found)
                del found
                plan = self._fitting_now(node, entries, wanted)
                parts.waited(time.perf_counter() - begin_seconds)
        except OwnersLost:
            self._remember(node, plan, parts)
            raise
        except BaseException as error:
            self._resumes.pop(node, None)
            if parts.num_pauses:
                self._gang.forget()
            if isinstance(error, TaskFailed):
                tasks, record = plan.tasks(), self._log.record
                raise cell_error(error.failed, plan.stages, tasks, record, plan.origins) from None
            if isinstance(error, KeyboardInterrupt):  # a bare one came between two tasks
                raise CellCancelled(f"{str(error) or 'interrupted'}{_lost_words(node, parts)}") from None
            raise
        if parts.num_pauses:
            self._gang.forget()  # where the driver ran the last part
        return plan, reason

    def _first(self, node: Loop | Cond) -> int:
        # How many iterations are done already.
        resume = self._resumes.get(node)
        return 0 if resume is None else resume.at.iteration

    def _laid_out(
        self, node: Loop | Cond, entries: Mapping[Expr, Entry], wanted: Collection[Expr]
    ) -> ControlPlan:
        resume = self._resumes.get(node)
        stored = {one: entry.stored for one, entry in entries.items()}
        states = None if resume is None else [one.stored for one in resume.states]
        workers = self._planner.workers()
        gives_numbers = self._gang.is_alone(workers.numbers)
        return self._plans.plan(node, stored, workers, wanted, states, gives_numbers)

    @staticmethod
    def _take(new: Mapping[Expr, Entry], entries: dict[Expr, Entry]) -> bool:
        # Replaces entries by new ones; whether any differ.
        are_new = any(new[one] is not entry for one, entry in entries.items())
        entries.update(new)
        return are_new

    def _fitting(self, plan: ControlPlan, entries: Mapping[Expr, Entry]) -> ControlPlan:
        # The plan, checked against the workers' memory.
        self._planner.check_peaks(plan.peaks, list(entries), plan.least_peaks)
        # Without room for copies of the state, a loss starts the loop anew.
        keeps, left = self._planner.fits(plan.peaks_with_copies), self._planner.left()
        return replace(plan, program=plan.program.limited(keeps, left))

    def _fitting_now(
        self, node: Loop | Cond, entries: dict[Expr, Entry], wanted: Collection[Expr]
    ) -> ControlPlan:
        # The plan after a repartition; where it does not fit, the inputs get their cuts back.
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
        advanced: Callable[[int, float], None],
    ) -> tuple[Outcome, str, LoopWatch | None]:
        # Runs to the end or to a pause: how it went, why no gang ran it, and what watched.
        first, resume = self._first(node), self._resumes.pop(node, None)
        arrays = {**entries, **({} if resume is None else resume.entries(node))}
        watch = None
        if isinstance(node, Loop) and self._gang.can_pause(plan.program):
            watch = self._balancer.watch(entries, plan, _span(node, first))
        try:
            done, reason = self._done(plan, arrays, None if resume is None else resume.at, advanced, watch)
        finally:
            if watch is not None:
                watch.finished()
        return done, reason, watch

    def _done(
        self,
        plan: ControlPlan,
        arrays: Mapping[Expr, Entry],
        resume: Resume | None,
        advanced: Callable[[int, float], None],
        watch: LoopWatch | None,
    ) -> tuple[Outcome, str]:
        # How it went, and why no gang ran it.
        given = {name: arrays[one].futures[number] for name, (one, number) in plan.given.items()}
        for slot, one in plan.numbers.items():
            given[slot] = LocalBlock(f"number-{uuid4().hex}", Dense(one.value))
        engine = engine_of(self._config)
        reason = "" if engine != "dask" else 'engine="dask"'
        if not reason:
            try:
                done = self._gang.run(plan.program, given, resume=resume, on_progress=advanced, watch=watch)
                return done, ""
            except GangUnavailable as error:
                reason = error.reason
                if engine == "gang":
                    raise ClusterError(
                        f'this loop could not run as one long task on each worker (engine="gang"): {reason}; '
                        'try again, or use engine="auto", which then runs it as Dask tasks'
                    ) from None
        done = self._engine.run(plan.program, given, resume=resume, on_progress=advanced, watch=watch)
        # What a loop leaves as it was given has the counts that are known already.
        known = _counts(plan, arrays)
        left = done.kept if done.paused is None else done.paused.futures
        counts = {slot: known[one.key] for slot, one in left.items() if one.key in known}
        return replace(done, counts={**counts, **done.counts}), reason

    def _remember(self, node: Loop | Cond, plan: ControlPlan, parts: LoopParts) -> None:
        self._resumes.pop(node, None)
        parts.states.setdefault(self._gang.epoch, plan.states)
        resume = self._gang.recover(self._gang.epoch)
        if resume is not None:
            self._resumes[node] = resume_at(resume, parts.states[resume.epoch])


def _counts(plan: ControlPlan, arrays: Mapping[Expr, Entry]) -> dict[str, tuple[int, int]]:
    # Entries and bytes of what is given, as far as they are known, by the names of blocks.
    found = ((arrays[one], number) for one, number in plan.given.values() if arrays[one].stored.block_nnz)
    return {
        one.futures[number].key: (one.stored.block_nnz[number], one.stored.block_bytes[number])
        for one, number in found
    }


def _span(node: Loop | Cond, first: int) -> Span:
    # The iterations of a loop; a branch has none. Their number is infinite where it is computed.
    if isinstance(node, Cond):
        return Span(first, math.inf, False)
    limit = float(node.limit.value) if isinstance(node.limit, Literal) else math.inf
    return Span(first, limit, node.body.until is not None)


def _lost_words(node: Loop | Cond, done: LoopParts) -> str:
    if not isinstance(node, Loop):
        return ""
    return f", after at least {plural_text(done.iterations, 'iteration')} of a loop, whose state is not kept"


def missing_results(node: Loop | Cond, order: Collection[Expr], store: Container[Expr]) -> list[Expr]:
    """Return what a loop or branch is to give; nothing where all that ``order`` asks of it is stored.

    What handles stand for is made on the way, and so is the number of a loop's iterations.
    """
    own = [node, *(Final(node, place) for place in range(len(results_of(node))))]
    asked = set(own).intersection(order)
    if all(one in store for one in asked):
        return []
    live = live_expressions()
    return [one for one in own if one is node or one in asked or one in live]


def _results_beside(order: Collection[Expr], live: Collection[Expr], store: Store) -> dict[str, Expr]:
    # What handles stand for of calls that are made on the way: a function is called once for all it gives.
    calls = {node for node in order if node.is_call}
    if not calls:
        return {}
    beside = [node for node in live if node.made_by in calls]
    missing = sorted((node for node in beside if node not in store), key=place_of)
    return {f"beside {number}": node for number, node in enumerate(missing) if node not in order}


def _note_densified(plan: Plan, origins: Mapping[Expr, tuple[Expr, ...]], record: Recording) -> None:
    # Tells under the cell where it makes large sparse arrays dense.
    found = densified(plan.stages, plan.reused)
    for one in found[:MOST_TOLD]:
        lines = lines_of(origins.get(one.node, (one.node,)), record)
        where = f"line {', '.join(map(str, lines))}: " if lines else ""
        if (note := f"{where}{one.text}") not in record.notes:
            record.notes.append(note)

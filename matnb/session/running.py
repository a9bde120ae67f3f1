"""Runs of expressions: planned over what is stored, and repeated over the survivors when workers are lost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import TypeVar

from matnb.backend.cluster import Cluster
from matnb.backend.driver_loops import LINEAGE_DEPTH
from matnb.backend.engine_dask import DaskEngine, Outcome, RunCancelled, TaskFailed
from matnb.backend.engine_gang import GangEngine
from matnb.backend.futures import OwnersLost
from matnb.backend.kept import Kept, names_of
from matnb.backend.store import Entry, Store
from matnb.blocks.formats import Block, to_numpy
from matnb.blocks.kernels.shaping import join
from matnb.blocks.layout import Layout
from matnb.config import Config
from matnb.errors import CellCancelled, TooLargeError, WorkerLostError
from matnb.events import (
    Event,
    Rebalanced,
    RunFinished,
    RunStarted,
    RunStopped,
    TasksFinished,
    TaskTimed,
    WorkersLost,
)  # fmt: skip
from matnb.expr.client_data import copied, held, keep_copy, keep_in_file, lost_copy
from matnb.expr.control import Cond, Final, Loop
from matnb.expr.nodes import Data, Expr
from matnb.expr.retention import lifetime
from matnb.expr.traverse import topological
from matnb.io.results import ResultFolder
from matnb.lazy.recording import Recording, active_recording
from matnb.pictures.imbalance import imbalance
from matnb.plan.explain_plans import control_text, plan_text
from matnb.plan.looping import starts_inside
from matnb.plan.measured import Measures
from matnb.plan.plan_counts import counts_of
from matnb.plan.product_entries import meetings, operands_counted
from matnb.program.place import default_layout
from matnb.program.plan import Plan, Slot
from matnb.session.failures import cell_error, largest, located
from matnb.session.looping import Looper, missing_results
from matnb.session.memo import Memo
from matnb.session.planning import Planner
from matnb.session.rebalance import Balancer
from matnb.session.repartitioner import Repartitioner

_TRIES = 4  # a run is laid out anew over the survivors this often before it gives up


_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Ran:
    """What a run gave: the entry of every root, and the values that were fetched with it."""

    entries: Mapping[str, Entry]
    fetched: Mapping[str, Block]


class Runner:
    """Turns expressions into arrays on the workers.

    Parameters
    ----------
    config, cluster, engine, gang, store
        Of the session.
    emit
        Called with every event.
    folder
        Where results stay between processes, or None.
    """

    def __init__(
        self,
        config: Config,
        cluster: Cluster,
        engine: DaskEngine,
        gang: GangEngine,
        store: Store,
        emit: Callable[[Event], None],
        folder: ResultFolder | None = None,
    ) -> None:
        self._config, self._cluster, self._engine, self._store = config, cluster, engine, store
        self._emit = emit
        self._in_process = cluster.owned and not config.processes
        self._num_runs = 0
        self.planner = Planner(config, cluster, store)
        self.memo = Memo(config, store, engine, self.planner, folder)
        self._num_taken = 0  # roots of the run that is under way whose values were remembered
        self.measures = Measures()
        self._made: set[Expr] = set()  # by the loops of the run that is under way
        self._record: Recording | None = None  # of the cell that asked for it
        repartitioner = Repartitioner(engine, self.planner, self.memo.replaced)
        self.balancer = Balancer(config.rebalance, store, self.planner, repartitioner, self._told)
        self._looper = Looper(config, engine, gang, store, self.planner, emit, self.balancer)

    def run(
        self,
        roots: Mapping[str, Expr],
        live: set[Expr],
        fetch: Collection[str] = (),
        record: Recording | None = None,
    ) -> Ran:
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
        record = self._record = record or active_recording()
        before = self._num_runs
        try:
            return self.retried(lambda: self._attempt(roots, live, fetch, record))
        except BaseException as error:
            if self._num_runs > before:
                self._emit(RunStopped(str(self._num_runs), isinstance(error, KeyboardInterrupt)))
            raise
        finally:
            self._record = None
            self.planner.in_use = set()
            self._made.clear()
            self._looper.forget()

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
                    self._emit(WorkersLost(str(self._num_runs), lost))
                    for owner in lost:
                        self._store.drop_owner(owner)
                    self._cluster.refresh()
        raise WorkerLostError(
            f"workers {lost} were lost, and others before them; the run was given up. A worker that takes "
            "more memory than its limit is ended: cut into more blocks, or give a larger memory_limit"
        )

    def _attempt(
        self, roots: Mapping[str, Expr], live: set[Expr], fetch: Collection[str], record: Recording | None
    ) -> Ran:
        taken = self.memo.recall(roots, fetch)
        self._num_taken = len(taken)
        roots = {name: node for name, node in roots.items() if name not in taken}
        order = topological(roots.values(), self._store, _with_inputs)
        self.planner.in_use = set(order)
        for node in order:
            if isinstance(node, Data) and (block := lost_copy(node)) is not None:
                self.ship(node, block)  # unless it is there
            if isinstance(node, Loop | Cond):
                self._control(node, missing_results(node, order, self._store), live, record)
        ran = self._straight(roots, live, [name for name in fetch if name in roots], record)
        return Ran(ran.entries, {**taken, **ran.fetched})

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
            if self._in_process:
                keep_copy(node, block)
            else:
                keep_in_file(node, block)
        kept = held(node)
        layout = default_layout(node, block.nbytes, self.planner.workers(), block)
        given = block if kept is None else kept
        self._store.add_given(node, Entry(*self._engine.ship_array(given, layout, kept is not None)))

    def _control(
        self, node: Loop | Cond, wanted: Sequence[Expr], live: set[Expr], record: Recording | None
    ) -> None:
        # Runs a loop or branch; those below it have run.
        if not wanted:
            return
        what = "loop" if isinstance(node, Loop) else "branch"
        outside = [one for one in node.inputs if not starts_inside(one)]
        inputs = {f"{what} input {place}": one for place, one in enumerate(outside)}
        made = self._straight(inputs, live, (), record).entries
        found = {one: made[name] for name, one in inputs.items()}
        del made  # entries that are replaced let go of their blocks
        plan = self._looper.plan(node, found, wanted)
        self._num_runs += 1
        self._emit(RunStarted(str(self._num_runs), plan.num_tasks, sum(plan.peaks.values())))
        ran = self._looper.run(node, plan, found, wanted, str(self._num_runs), record)
        self._made.update(ran.plan.outputs)
        self.balancer.made(ran.plan.outputs, found)
        made_in = {one: array.keys for one, array in ran.plan.outputs.items()}
        self.measures.note(ran.plan.stages, ran.timed_last, made_in, ran.plan.program)
        self._loads(ran.timed, record)
        self.tell_times(ran.timed)
        if record is not None:
            record.loops.append(ran.finished)
            record.loop_texts.append(partial(control_text, node, ran.plan))
        self._emit(ran.finished)

    def _straight(
        self, roots: Mapping[str, Expr], live: set[Expr], fetch: Collection[str], record: Recording | None
    ) -> Ran:
        planned = self.planner.planned(roots, live)
        if self.memo.bring(made for node, made in planned.optimized.items() if made is not node):
            planned = self.planner.planned(roots, live)  # passes gave an expression the name of a known value
        if self.balancer.before_run(planned.plan):
            planned = self.planner.planned(roots, live)
        products = self.planner.large_products(planned.plan)
        if products:
            if any(one not in self.planner.counted for one in products):
                self._count(products)
            planned = self.planner.planned(roots, live, products)
        plan, optimized = planned.plan, planned.optimized
        try:
            self.planner.check_memory(plan)
        except TooLargeError as error:
            raise located(error, largest(plan.stages, planned.origins), record) from None
        after = {name: optimized[node] for name, node in roots.items()}
        made = [name for name in fetch if after[name] in plan.outputs and not after[name].sparse]
        keys = [key for name in made for key in plan.outputs[after[name]].keys]
        self._num_runs += 1
        self._emit(RunStarted(str(self._num_runs), len(plan.tasks), plan.projected_bytes))
        outcome = None
        if plan.tasks or plan.shipments:
            try:
                outcome = self._engine.run(plan, keys, given=self._binding(plan))
            except TaskFailed as error:
                raise cell_error(error.failed, plan.stages, plan.tasks, record, planned.origins) from None
            except RunCancelled as error:
                self.keep(error.outcome, plan)
                self._alias(optimized)
                raise CellCancelled(str(error)) from None
            self.keep(outcome, plan)
            made_in = {
                node: plan.outputs[became].keys
                for node, became in optimized.items()
                if became in plan.outputs
            }
            self.measures.note(plan.stages, outcome.timed, made_in, plan.tasks)
            for operand in plan.scattered:
                self.planner.num_scattered[operand] = self.planner.num_scattered.get(operand, 0) + 1
            self.balancer.note_run(plan, outcome.timed)
        self._alias(optimized)
        self.balancer.align_new(roots.values())
        # Whoever asked holds the entries, so that they outlast the budget until their values were fetched.
        entries = {name: self._store.entry(node) for name, node in roots.items()}
        self.memo.count([*plan.reused, *(one for one in after.values() if one not in plan.outputs)])
        self._finish(plan, after, outcome, record)
        self._store.trim()
        fetched = {}
        if outcome is not None:
            for name in made:
                array = plan.outputs[after[name]]
                blocks = [outcome.fetched[key] for key in array.keys]
                fetched[name] = whole(after[name], array.layout, blocks)
                self.memo.keep_value(fetched[name], roots[name], after[name])
        return Ran({name: entry for name, entry in entries.items() if entry is not None}, fetched)

    def _count(self, products: Sequence[Expr]) -> None:
        # Counts on the workers at most how many entries products store; what they read is there after.
        missing = [
            one
            for one in dict.fromkeys(each for node in products for each in operands_counted(node))
            if self._store.entry(one) is None
        ]
        if missing:
            self._straight({f"operand {place}": one for place, one in enumerate(missing)}, set(), (), None)
            self.planner.in_use.update(missing)
        unknown = [node for node in products if node not in self.planner.counted]
        counts = {f"product {place}": meetings(node) for place, node in enumerate(unknown)}
        fetched = self._straight(counts, set(), list(counts), None).fetched if counts else {}
        for node, block in zip(unknown, fetched.values(), strict=True):
            found = int(to_numpy(block)[()])
            self.planner.counted.note(node, min(found, prod(node.shape)) if found >= 0 else prod(node.shape))

    def _told(self, event: Event) -> None:
        record = self._record or active_recording()
        if record is not None and isinstance(event, Rebalanced) and event.acted:
            record.repartitions.append(event)
        self._emit(event)

    def keep(self, outcome: Outcome, plan: Plan, seconds: float | None = None) -> None:
        """Store the arrays that a run left on the workers.

        Parameters
        ----------
        seconds
            What each would cost to make again, where the times of its own tasks do not tell.
        """
        times: dict[int | None, float] = {}
        makes = {task.key: task.makes for task in plan.tasks}
        for one in outcome.timed:
            times[makes[one.key]] = times.get(makes[one.key], 0.0) + one.seconds
        numbers = {stage.expression: stage.makes for stage in plan.stages}
        depth = 1 + max((self._depth(node) for node in plan.reused), default=0)
        for node, stored in outcome.stored.items():
            futures, at = outcome.futures[node], depth
            if depth > LINEAGE_DEPTH:
                futures, at = self._engine.cut_lineage(stored.layout.owners, futures), 0
                stored = replace(stored, keys=names_of(futures))
            cost = times.get(numbers[node], 0.0) if seconds is None else seconds
            self._store.add(node, Entry(stored, futures, cost, at), lifetime(node))
        self.balancer.made(outcome.stored, plan.reused)

    def _binding(self, plan: Plan) -> dict[Slot, Kept]:
        # What is in the slots that a plan reads and does not make.
        found: dict[Slot, Kept] = {}
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

    def _depth(self, node: Expr) -> int:
        entry = self._store.entry(node)
        return 0 if entry is None else entry.depth

    def _finish(
        self, plan: Plan, after: Mapping[str, Expr], outcome: Outcome | None, record: Recording | None
    ) -> None:
        timed = () if outcome is None else outcome.timed
        loads = self._loads(timed, record)
        self.tell_times(timed)
        counts = counts_of(plan, after.values(), self._made)
        finished = RunFinished(
            run=str(self._num_runs),
            num_operations=record.num_operations if record else 0,
            num_merged=record.num_merged if record else 0,
            num_stored=len(plan.reused),
            num_tasks=len(plan.tasks),
            moved_bytes=plan.moved_bytes,
            projected_bytes=plan.projected_bytes,
            actual_bytes=sum(one.output_bytes for one in timed),
            imbalance=imbalance(loads),
            seconds=0.0 if outcome is None else outcome.seconds,
            num_run=counts.num_run,
            num_arrays=counts.num_arrays,
            num_remembered=counts.num_remembered + self._num_taken,
        )
        self._num_taken = 0  # told once, though loops have runs before them
        if record is not None:
            if len(plan.tasks) >= max((run.num_tasks for run in record.runs), default=0):
                names = {node: name for name, node in after.items()}
                record.plan_text = partial(plan_text, plan, names)
            record.runs.append(finished)
        self._emit(finished)

    def _loads(self, timed: Sequence[TaskTimed], record: Recording | None) -> dict[int, float]:
        # Kernel seconds by worker, which are noted in the record, too.
        loads = dict.fromkeys(self._cluster.alive(), 0.0)
        for one in (one for one in timed if not one.compiled):
            loads[one.worker] = loads.get(one.worker, 0.0) + one.seconds
        if record is not None:
            for worker, seconds in loads.items():
                record.loads[worker] = record.loads.get(worker, 0.0) + seconds
        return loads

    @contextmanager
    def telling(self, plan: Plan) -> Iterator[Callable[[Sequence[TaskTimed], float], None]]:
        """Tell the listeners of a run that is none of expressions: that it begins, and how it ends.

        What this gives is called at the end, with what was measured and the seconds that it took.
        """
        self._num_runs += 1
        run = str(self._num_runs)
        self._emit(RunStarted(run, len(plan.tasks), plan.projected_bytes))

        def tell(timed: Sequence[TaskTimed], seconds: float) -> None:
            loads = self._loads(timed, None)
            self.tell_times(timed)
            made = sum(one.output_bytes for one in timed)
            self._emit(
                RunFinished(run, 0, 0, 0, len(plan.tasks), plan.moved_bytes, plan.projected_bytes, made,
                            imbalance(loads), seconds)
            )  # fmt: skip

        try:
            yield tell
        except BaseException as error:
            self._emit(RunStopped(run, isinstance(error, KeyboardInterrupt)))
            raise

    def tell_times(self, timed: Sequence[TaskTimed]) -> None:
        """Tell the listeners how long each worker's kernel calls took."""
        for owner in sorted({one.worker for one in timed}):
            here = tuple(one for one in timed if one.worker == owner)
            self._emit(TasksFinished(str(self._num_runs), owner, here))


def _with_inputs(node: Expr) -> tuple[Expr, ...]:
    # What a loop gives may be gone though the number of its iterations is known: then it runs again.
    return (*node.control.operands, node.control) if isinstance(node, Final) else node.operands


def whole(node: Expr, layout: Layout, blocks: Sequence[Block]) -> Block:
    """Return the blocks of an array put together, with memory of its own."""
    offsets = [tuple(start for start, _ in region) for region in layout.grid.regions()]
    if len(blocks) == 1:
        return copied(blocks[0])
    return join(list(zip(offsets, blocks, strict=True)), node.shape, node.dtype, node.sparse)

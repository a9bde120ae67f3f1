"""The log of runs, from begin to end: as events, in the record of a cell, and in the measures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from matnb.backend.cluster.dask_cluster import DaskCluster
from matnb.events import (
    Event,
    LoopFinished,
    Rebalanced,
    RunFinished,
    RunStarted,
    RunStopped,
    TasksFinished,
    TaskTimed,
)  # fmt: skip
from matnb.expr.control import Cond, Loop
from matnb.expr.nodes import Expr
from matnb.lazy.batch_turns import batches_in_turn
from matnb.lazy.recording import Recording, active_recording
from matnb.pictures.imbalance import imbalance
from matnb.plan.explain_plans import control_text
from matnb.plan.looping import ControlPlan
from matnb.plan.measured import Measures
from matnb.plan.plan_counts import PlanCounts
from matnb.program.plan import Plan
from matnb.session.failures import lines_of
from matnb.session.listeners import Convergence
from matnb.session.loop_parts import LoopParts

_NO_COUNTS = PlanCounts(0, 0, 0)


class RunLog:
    """Numbers runs, and notes how each goes: in events, in the record of its cell, and in the measures.

    Attributes
    ----------
    record
        Of the cell that asked for what runs, if one did.
    num_runs
        So far; the number of the last.
    measures
        Of the last runs.
    made
        Expressions that the loops of the run which is under way gave.
    convergence
        Warns of loops.
    """

    def __init__(self, cluster: DaskCluster, emit: Callable[[Event], None]) -> None:
        self._cluster, self._emit, self.convergence = cluster, emit, Convergence()
        self.record: Recording | None = None
        self.num_runs = 0
        self.measures = Measures()
        self.made: set[Expr] = set()

    def emit(self, event: Event) -> None:
        """Pass an event to the listeners, and repartitions to the record."""
        record = self.record or active_recording()
        if record is not None and isinstance(event, Rebalanced) and event.acted:
            record.repartitions.append(event)
        self._emit(event)

    @contextmanager
    def stopping(self) -> Iterator[None]:
        """Emit that the last run has stopped, where one began inside and an error ends it."""
        before = self.num_runs
        try:
            yield
        except BaseException as error:
            if self.num_runs > before:
                self._emit(RunStopped(str(self.num_runs), isinstance(error, KeyboardInterrupt)))
            raise

    def begin(self, num_tasks: int, projected_bytes: int, read_bytes: int = 0) -> str:
        """Note that a run begins, and return its number."""
        self.num_runs += 1
        run = str(self.num_runs)
        self._emit(RunStarted(run, num_tasks, projected_bytes, read_bytes))
        return run

    def times(self, timed: Sequence[TaskTimed], record: Recording | None) -> float:
        """Note how long each worker's kernel calls took, and return their imbalance."""
        loads = dict.fromkeys(self._cluster.alive(), 0.0)
        for one in (one for one in timed if not one.compiled):
            loads[one.worker] = loads.get(one.worker, 0.0) + one.seconds
        if record is not None:
            for worker, seconds in loads.items():
                record.loads[worker] = record.loads.get(worker, 0.0) + seconds
        for owner in sorted({one.worker for one in timed}):
            here = tuple(one for one in timed if one.worker == owner)
            self._emit(TasksFinished(str(self.num_runs), owner, here))
        return imbalance(loads)

    def finish(
        self,
        plan: Plan,
        timed: Sequence[TaskTimed],
        seconds: float,
        record: Recording | None = None,
        counts: PlanCounts = _NO_COUNTS,
        num_gave_way: int = 0,
    ) -> RunFinished:
        """Note that the run of a plan has ended."""
        finished = RunFinished(
            run=str(self.num_runs),
            num_operations=record.num_operations if record else 0,
            num_merged=record.num_merged if record else 0,
            num_stored=len(plan.reused),
            num_tasks=len(plan.tasks),
            moved_bytes=plan.moved_bytes,
            projected_bytes=plan.projected_bytes,
            actual_bytes=sum(one.output_bytes for one in timed),
            imbalance=self.times(timed, record),
            seconds=seconds,
            num_run=counts.num_run,
            num_arrays=counts.num_arrays,
            num_remembered=counts.num_remembered,
            flops=counts.flops,
            accessed_bytes=counts.accessed_bytes,
            num_gave_way=num_gave_way,
        )
        if record is not None:
            record.runs.append(finished)
        self._emit(finished)
        return finished

    def finish_control(self, node: Loop | Cond, parts: LoopParts, plan: ControlPlan, reason: str) -> None:
        """Note that a loop or branch has ended; ``reason`` says why no gang ran its last part."""
        done, slots = parts.outcome, {one: array.keys for one, array in plan.outputs.items()}
        self.measures.note(plan.stages, parts.timed_by(plan), slots, plan.program)
        self.times(parts.timed, self.record)
        work = plan.work.total(done.iterations)
        if (going := batches_in_turn()) is not None:
            going.note(*work)
        finished = LoopFinished(
            run=str(self.num_runs),
            engine="gang" if done.num_members else "dask",
            reason=reason,
            iterations=done.iterations,
            num_tasks=plan.num_tasks,
            num_members=done.num_members,
            sent_bytes=done.sent_bytes,
            allocated=done.allocated,
            projected_bytes=sum(plan.peaks.values()),
            seconds=done.seconds,
            is_branch=isinstance(node, Cond),
            flops=work.flops,
            accessed_bytes=work.accessed_bytes,
        )
        self.convergence.note(node, done.iterations, done.ended_itself, self._place_of)
        if self.record is not None:
            self.record.loops.append(finished)
            self.record.loop_texts.append(partial(control_text, node, plan))
        self._emit(finished)

    def _place_of(self, node: Expr) -> tuple[str, int] | None:
        # The file and line of the cell that wrote an expression.
        if self.record is None or not (lines := lines_of([node], self.record)):
            return None
        return self.record.filename, lines[0]

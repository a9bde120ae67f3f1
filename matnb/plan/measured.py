"""What the last runs measured of their stages, to compare with the estimates."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from matnb.blocks.layout import Layout
from matnb.events import TaskTimed
from matnb.expr.nodes import Expr
from matnb.program.kinds import Kind, Role
from matnb.program.plan import Slot, Stage, Task
from matnb.program.program import Action, Batch, Branch, Iterate, Program, batches

MOST_RUNS = 64
MOST_TASKS = 20_000  # of all runs that are remembered


@dataclass(frozen=True)
class ArrayMeasurement:
    """What was measured of one array when it was made.

    Attributes
    ----------
    num_bytes
        Of all its blocks; they repeat with the same data.
    seconds
        Of all kernel calls that led from its operands to it; None where times are not asked for.
    compiled
        Whether machine code was made or read from disk meanwhile.
    slowest_seconds
        Of them those of the worker that took longest; None where times are not asked for.
    """

    num_bytes: int
    seconds: float | None
    compiled: bool
    slowest_seconds: float | None = None


class MadeStage(NamedTuple):
    """A stage that ran; it holds no expression but its digest, so that looking keeps nothing alive."""

    makes: int
    way: str
    digest: bytes
    kind: Kind
    detail: str
    layout: Layout
    tasks: tuple[Slot, ...]
    estimated_bytes: int
    estimated_nnz: int | None
    dtype: np.dtype | None = None


@dataclass(frozen=True)
class MadeRun:
    """A run that is over.

    Attributes
    ----------
    stages
        Operands first.
    made
        The slots of what it gave, by digests, as it was recorded.
    timed
        Its kernel calls.
    work
        The tasks, or the actions of a program.
    """

    stages: tuple[MadeStage, ...]
    made: Mapping[bytes, Sequence[Slot]]
    timed: Sequence[TaskTimed]
    work: Sequence[Task] | Sequence[Action]

    def sizes(self) -> dict[Slot, int]:
        """Return the bytes of values by their slots; of what a loop makes again and again, the last."""
        return {one.key: one.output_bytes for one in self.timed}

    @cached_property
    def makes(self) -> dict[Slot, int | None]:
        """The number of the array that each task makes, or leads to."""
        actions = [one for one in self.work if not isinstance(one, Task)]
        tasks = [one for one in self.work if isinstance(one, Task)]
        tasks += [task for batch in batches(actions) for task in batch.tasks]
        return {task.key: task.makes for task in tasks}


class Measures:
    """The last runs' measures, found by what was made and in which way.

    Parameters
    ----------
    with_seconds
        Whether times are recorded, too.
    """

    def __init__(self, with_seconds: bool = True) -> None:
        self._runs: deque[MadeRun] = deque()
        self._num_timed = 0  # tasks of all of them
        self._with_seconds = with_seconds

    def without_seconds(self) -> Measures:
        """Return the same measures without times, so that what they tell repeats."""
        bare = Measures(with_seconds=False)
        bare._runs = self._runs
        return bare

    def note(
        self,
        stages: Iterable[Stage],
        timed: Sequence[TaskTimed],
        made: Mapping[Expr, Sequence[Slot]],
        work: Sequence[Task] | Program,
    ) -> None:
        """Note a run that made some expressions, as they were recorded, in slots, and what ran for it."""
        if not timed:
            return
        ran = tuple(
            MadeStage(
                one.makes,
                one.way,
                one.expression.digest,
                one.kind,
                one.detail,
                one.layout,
                one.tasks,
                one.estimated_bytes,
                one.estimated_nnz,
                one.expression.dtype,
            )
            for one in stages
        )
        kept = _without_calls(work.actions) if isinstance(work, Program) else tuple(map(_without_call, work))
        self._runs.append(MadeRun(ran, {node.digest: slots for node, slots in made.items()}, timed, kept))
        self._num_timed += len(timed)
        while len(self._runs) > 1 and (len(self._runs) > MOST_RUNS or self._num_timed > MOST_TASKS):
            self._num_timed -= len(self._runs.popleft().timed)

    def of(self, stage: Stage) -> ArrayMeasurement | None:
        """Return what was measured when the same was last made in the same way, or None."""
        wanted = stage.expression.digest, stage.way
        found = (
            self.within(run, one)
            for run in reversed(self._runs)
            for one in run.stages
            if (one.digest, one.way) == wanted
        )
        return next((one for one in found if one is not None), None)

    def made(self, node: Expr) -> list[tuple[MadeStage, ArrayMeasurement | None]]:
        """Return the stages of the last run that gave an expression, operands first."""
        run = self.run_of(node)
        return [] if run is None else [(stage, self.within(run, stage)) for stage in run.stages]

    def run_of(self, node: Expr) -> MadeRun | None:
        """Return the last run that gave an expression, or None."""
        return next((run for run in reversed(self._runs) if node.digest in run.made), None)

    def within(self, run: MadeRun, stage: MadeStage) -> ArrayMeasurement | None:
        """Return what was measured of one of a run's stages, or None."""
        wanted = set(stage.tasks)
        # Of what a loop makes again and again, the last.
        sizes = {one.key: one.output_bytes for one in run.timed if one.key in wanted}
        if not sizes:
            return None  # sent, not made
        led = [one for one in run.timed if run.makes.get(one.key) == stage.makes]
        compiled = any(one.compiled for one in led)
        if not self._with_seconds:
            return ArrayMeasurement(sum(sizes.values()), None, compiled)
        by_worker: dict[int, float] = {}
        for one in led:
            by_worker[one.worker] = by_worker.get(one.worker, 0.0) + one.seconds
        slowest = max(by_worker.values(), default=0.0)
        return ArrayMeasurement(sum(sizes.values()), sum(by_worker.values()), compiled, slowest)


def _without_call(task: Task) -> Task:
    # A user's function may hold whatever it likes.
    return replace(task, steps=()) if task.kind.role is Role.CALLS else task


def _without_calls(actions: Sequence[Action]) -> tuple[Action, ...]:
    kept: list[Action] = []
    for action in actions:
        match action:
            case Batch():
                kept.append(replace(action, tasks=tuple(map(_without_call, action.tasks))))
            case Iterate():
                kept.append(replace(action, body=_without_calls(action.body)))
            case Branch():
                ways = _without_calls(action.then), _without_calls(action.otherwise)
                kept.append(replace(action, then=ways[0], otherwise=ways[1]))
    return tuple(kept)

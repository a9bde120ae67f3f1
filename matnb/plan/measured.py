"""What the last runs measured of their stages, for looking beside what was estimated."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from matnb.blocks.layout import Layout
from matnb.events import TaskTimed
from matnb.expr.nodes import Expr
from matnb.program.plan import Stage, Task
from matnb.program.program import Action, Batch, Branch, Iterate, Program

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


@dataclass(frozen=True)
class MadeStage:
    """A stage that ran; it holds no expression, so that looking keeps nothing alive."""

    kind: str
    detail: str
    layout: Layout
    tasks: tuple[str, ...]
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
        The digests of what it gave, as it was recorded.
    timed
        Its kernel calls.
    work
        The tasks, or the actions of a program, where they were told.
    """

    stages: tuple[MadeStage, ...]
    made: frozenset[bytes]
    timed: Sequence[TaskTimed]
    work: Sequence[Task] | Sequence[Action] = ()

    def sizes(self) -> dict[str, int]:
        """Return the bytes of values by their keys; of what a loop makes again and again, the last."""
        return {_key(one): one.output_bytes for one in self.timed}


class Measures:
    """The last runs' measures by the tasks' keys, which name what is made and how.

    Parameters
    ----------
    with_seconds
        Whether times are told, too.
    """

    def __init__(self, with_seconds: bool = True) -> None:
        self._runs: deque[MadeRun] = deque()
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
        made: Iterable[Expr],
        work: Sequence[Task] | Program = (),
    ) -> None:
        """Note a run that made some expressions, named as they were recorded, and what ran for it."""
        if not timed:
            return
        ran = tuple(
            MadeStage(
                kind=one.kind,
                detail=one.detail,
                layout=one.layout,
                tasks=one.tasks,
                estimated_bytes=one.estimated_bytes,
                estimated_nnz=one.estimated_nnz,
                dtype=one.expression.dtype,
            )
            for one in stages
        )
        kept = _without_calls(work.actions) if isinstance(work, Program) else tuple(map(_without_call, work))
        self._runs.append(MadeRun(ran, frozenset(node.digest for node in made), timed, kept))
        while len(self._runs) > 1 and (
            len(self._runs) > MOST_RUNS or sum(len(run.timed) for run in self._runs) > MOST_TASKS
        ):
            self._runs.popleft()

    def of(self, tasks: Sequence[str]) -> ArrayMeasurement | None:
        """Return what was measured when the blocks of these keys were last made, or None."""
        found = (self._of(run, tasks) for run in reversed(self._runs))
        return next((one for one in found if one is not None), None)

    def made(self, node: Expr) -> list[tuple[MadeStage, ArrayMeasurement | None]]:
        """Return the stages of the last run that gave an expression, operands first."""
        run = self.run_of(node)
        return [] if run is None else [(stage, self._of(run, stage.tasks)) for stage in run.stages]

    def run_of(self, node: Expr) -> MadeRun | None:
        """Return the last run that gave an expression, or None."""
        return next((run for run in reversed(self._runs) if node.digest in run.made), None)

    def within(self, run: MadeRun, tasks: Sequence[str]) -> ArrayMeasurement | None:
        """Return what was measured in one run when the blocks of these keys were made, or None."""
        return self._of(run, tasks)

    def _of(self, run: MadeRun, tasks: Sequence[str]) -> ArrayMeasurement | None:
        wanted, prefixes = set(tasks), {_made_by(key) for key in tasks}
        # Of what a loop makes again and again, the last.
        sizes = {key: one.output_bytes for one in run.timed if (key := _key(one)) in wanted}
        if not sizes:
            return None  # sent, not made
        led = [one for one in run.timed if _made_by(one.key) in prefixes]
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
    return replace(task, steps=()) if task.kind == "call" else task


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


def _key(timed: TaskTimed) -> str:
    # In a program the name of their body is added to the keys of a stage's tasks.
    return timed.key.split("~", 1)[0]


def _made_by(key: str) -> str:
    # Keys begin with the digest of what is made, shares and parts on the way to it too.
    return key.split("-", 1)[0]

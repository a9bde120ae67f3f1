"""What the last runs measured of their stages, for looking beside what was estimated."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from matnb.blocks.layout import Layout
from matnb.events import TaskTimed
from matnb.lazy.expr import Expr
from matnb.plan.plan import Stage

MOST_RUNS = 64
MOST_TASKS = 20_000  # of all runs that are remembered


@dataclass(frozen=True)
class Measured:
    """What was measured of one array when it was made.

    Attributes
    ----------
    num_bytes
        Of all its blocks; they repeat with the same data.
    seconds
        Of all kernel calls that led from its operands to it; None where times are not asked for.
    compiled
        Whether machine code was made or read from disk meanwhile.
    """

    num_bytes: int
    seconds: float | None
    compiled: bool


@dataclass(frozen=True)
class MadeStage:
    """A stage that ran; it holds no expression, so that looking keeps nothing alive."""

    kind: str
    detail: str
    layout: Layout
    tasks: tuple[str, ...]
    estimated_bytes: int
    estimated_nnz: int | None


@dataclass(frozen=True)
class _Run:
    stages: tuple[MadeStage, ...]
    made: frozenset[bytes]  # the digests of what it gave, as it was recorded
    timed: Sequence[TaskTimed]


class Measures:
    """The last runs' measures by the tasks' keys, which name what is made and how.

    Parameters
    ----------
    with_seconds
        Whether times are told, too.
    """

    def __init__(self, with_seconds: bool = True) -> None:
        self._runs: deque[_Run] = deque()
        self._with_seconds = with_seconds

    def without_seconds(self) -> Measures:
        """Return the same measures without times, so that what they tell repeats."""
        bare = Measures(with_seconds=False)
        bare._runs = self._runs
        return bare

    def note(self, stages: Iterable[Stage], timed: Sequence[TaskTimed], made: Iterable[Expr]) -> None:
        """Note a run that made some expressions, named as they were recorded."""
        if not timed:
            return
        ran = tuple(
            MadeStage(one.kind, one.detail, one.layout, one.tasks, one.estimated_bytes, one.estimated_nnz)
            for one in stages
        )
        self._runs.append(_Run(ran, frozenset(node.digest for node in made), timed))
        while len(self._runs) > 1 and (
            len(self._runs) > MOST_RUNS or sum(len(run.timed) for run in self._runs) > MOST_TASKS
        ):
            self._runs.popleft()

    def of(self, tasks: Sequence[str]) -> Measured | None:
        """Return what was measured when the blocks of these keys were last made, or None."""
        found = (self._of(run, tasks) for run in reversed(self._runs))
        return next((one for one in found if one is not None), None)

    def made(self, node: Expr) -> list[tuple[MadeStage, Measured | None]]:
        """Return the stages of the last run that gave an expression, operands first."""
        for run in reversed(self._runs):
            if node.digest in run.made:
                return [(stage, self._of(run, stage.tasks)) for stage in run.stages]
        return []

    def _of(self, run: _Run, tasks: Sequence[str]) -> Measured | None:
        wanted, prefixes = set(tasks), {_made_by(key) for key in tasks}
        # Of what a loop makes again and again, the last.
        sizes = {key: one.output_bytes for one in run.timed if (key := _key(one)) in wanted}
        if not sizes:
            return None  # sent, not made
        led = [one for one in run.timed if _made_by(one.key) in prefixes]
        seconds = sum(one.seconds for one in led) if self._with_seconds else None
        return Measured(sum(sizes.values()), seconds, any(one.compiled for one in led))


def _key(timed: TaskTimed) -> str:
    # In a program the name of their body is added to the keys of a stage's tasks.
    return timed.key.split("~", 1)[0]


def _made_by(key: str) -> str:
    # Keys begin with the digest of what is made, shares and parts on the way to it too.
    return key.split("-", 1)[0]

"""The work of an iteration for each row of stored arrays, from its plan and not from times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from matnb.plan.attributing import body_of, rows_of
from matnb.plan.looping import ControlPlan
from matnb.program.plan import Slot, Stage, StoredArray, Task
from matnb.program.program import Action, Branch, Iterate, weighted_tasks

_COLUMN_PASSES = 0.5  # what another column of a product takes, the first being 1: 8 took 4.7 on a large graph


@dataclass(frozen=True)
class RowWork:
    """What one iteration does with an array and those that lie as it does.

    Attributes
    ----------
    passes
        How often its entries are worked on, a product with a vector being one.
    row_bytes
        Of dense arrays that are read and written for each row, in the phases in which entries are worked on.
    apart_bytes
        The same in other phases. One ends where something is made of what all workers have.
    """

    passes: float = 1.0
    row_bytes: float = 0.0
    apart_bytes: float = 0.0


def row_works(plan: ControlPlan) -> dict[str, RowWork]:
    """Return what an iteration of the outermost loop does, for each array that has rows of its own.

    A loop inside counts as often as is written down, else as if it had ten iterations; of two ways the one of
    fewer tasks counts.

    Parameters
    ----------
    plan
        Of the loop.

    Returns
    -------
    dict
        By the digest of the heaviest of arrays that lie alike, as hexadecimal digits; those without any work
        are not in it.
    """
    digests = {digest for digest, _ in plan.works.values()}
    mains = {node.digest.hex(): array for node, array in plan.inputs.items() if node.digest.hex() in digests}
    stages = {key: stage for stage in plan.stages for key in stage.tasks}
    sizes = _dense_sizes(plan, mains)
    phases = _Phases(plan.works)
    own = {digest: frozenset(main.keys) for digest, main in mains.items()}
    passes = dict.fromkeys(mains, 0.0)
    with_entries: dict[str, set[int]] = {digest: set() for digest in mains}
    dense: dict[str, dict[int, float]] = {digest: {} for digest in mains}
    for task, times in weighted_tasks(body_of(plan.program), between=phases.begin):
        phase = phases.of(task)
        digest = plan.works.get(task.key, ("", 0))[0]
        if digest not in mains:
            continue
        read = set(task.inputs) - own[digest]
        if not own[digest].isdisjoint(task.inputs):
            passes[digest] += times * (1 + _COLUMN_PASSES * (_num_columns(stages.get(task.key)) - 1))
            with_entries[digest].add(phase)
        size = sum(sizes.get(name, 0.0) for name in (*read, task.key))
        dense[digest][phase] = dense[digest].get(phase, 0.0) + times * size
    found = {}
    for digest, main in mains.items():
        num_rows = max(1, main.layout.grid.shape[0])
        beside = sum(size for phase, size in dense[digest].items() if phase in with_entries[digest])
        apart = sum(dense[digest].values()) - beside
        num_passes = max(1.0, passes[digest] / max(1, len(main.keys)))
        found[digest] = RowWork(num_passes, beside / num_rows, apart / num_rows)
    return found


def _dense_sizes(plan: ControlPlan, mains: Mapping[str, StoredArray]) -> dict[Slot, float]:
    # Bytes of the blocks of dense arrays that lie as one of some.
    lying = {rows for one in mains.values() if (rows := rows_of(one.layout)) is not None}
    sizes: dict[Slot, float] = {}
    states = (one for one, is_sparse in zip(plan.states, plan.are_sparse, strict=True) if not is_sparse)
    for array in (*(array for node, array in plan.inputs.items() if not node.sparse), *states):
        if rows_of(array.layout) in lying:
            sizes.update(zip(array.keys, array.block_bytes, strict=False))
    for stage in plan.stages:
        if stage.tasks and not stage.expression.sparse and rows_of(stage.layout) in lying:
            sizes.update(dict.fromkeys(stage.tasks, stage.estimated_bytes / len(stage.tasks)))
    for inner in _inner(body_of(plan.program)):
        for names, begins in zip(inner.state, inner.first, strict=True):
            there = zip(names, begins, strict=True)
            sizes.update((name, sizes.get(one, 0.0)) for name, one in there)
    return sizes


class _Phases:
    """Numbers the phases of an iteration: a task is in the first in which all that it reads is there.

    Parameters
    ----------
    works
        The tasks that work on a block. What others make of several of these is there in the next phase.
    """

    def __init__(self, works: Mapping[Slot, tuple[str, int]]) -> None:
        self._works = works
        self._least = 0
        self._there: dict[Slot, int] = {}  # from which phase on a value is there

    def begin(self) -> None:
        """Begin a loop or branch, for which all that was before is waited for; or what comes after it."""
        self._least = 1 + max(self._there.values(), default=self._least)

    def of(self, task: Task) -> int:
        """Return the phase of the next task."""
        phase = max([self._least, *(self._there.get(name, 0) for name in task.inputs)])
        waits = task.key not in self._works and any(name in self._works for name in task.inputs)
        self._there[task.key] = phase + waits
        return phase


def _inner(actions: Iterable[Action]) -> Iterator[Iterate]:
    # The loops in a body, each before those in it.
    for action in actions:
        match action:
            case Iterate():
                yield action
                yield from _inner(action.body)
            case Branch():
                yield from _inner((*action.then, *action.otherwise))


def _num_columns(stage: Stage | None) -> int:
    # Of a product; a sparse result has entries, which no column tells of.
    if stage is None or stage.expression.sparse or len(stage.expression.shape) < 2:
        return 1
    return stage.expression.shape[1]

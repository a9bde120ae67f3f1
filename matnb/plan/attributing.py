"""Which block of a stored array each task of a loop works on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from matnb.blocks.layout import Layout
from matnb.lazy.expr import Expr
from matnb.plan.plan import Stage, Stored, Task
from matnb.plan.program import Program, Repeat, batches

# Arrays that lie alike: the cuts of their rows, and who owns the parts.
_Rows: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
_Label: TypeAlias = tuple[_Rows, int]


def works_of(
    program: Program,
    inputs: Mapping[Expr, Stored],
    states: Iterable[Stored],
    stages: Iterable[Stage],
) -> dict[str, tuple[str, int]]:
    """Return for tasks of the outermost loop's body the block of a stored input that each works on.

    Arrays that are cut alike by rows, on the same workers, count as the heaviest of them: sparse before
    dense. A task works on the block of the array whose rows it makes, else on the one block that it reads, or
    of which it reads a part.
    Tasks that read many blocks, such as those that gather a vector, are left out.

    Parameters
    ----------
    inputs
        The stored arrays that the program is given.
    states
        The arrays of the loop's state.
    stages
        Of the program.

    Returns
    -------
    dict
        The digest of the heaviest array, as hexadecimal digits, and the block's number, by the task's key.
    """
    heaviest: dict[_Rows, Expr] = {}
    labels: dict[str, _Label] = {}
    sparse: set[str] = set()
    for node, array in sorted(inputs.items(), key=_weight, reverse=True):
        rows = _rows(array.layout)
        if rows is not None:
            heaviest.setdefault(rows, node)
            labels.update(_labelled(rows, array.keys))
            sparse.update(array.keys if node.sparse else ())
    for array in states:
        rows = _rows(array.layout)
        if rows in heaviest:
            labels.update(_labelled(rows, array.keys))
    for task in _parts_of_blocks(program):
        part_of = _read(task, labels, sparse)
        if part_of is not None and sparse & set(task.inputs):
            labels[task.key] = part_of
            sparse.add(task.key)
    made: dict[str, _Label] = {}
    for stage in stages:
        rows = _rows(stage.layout)
        if rows in heaviest and len(stage.tasks) == len(rows[1]):
            made.update(_labelled(rows, stage.tasks))
    found: dict[str, tuple[str, int]] = {}
    for task in _body_tasks(program):
        label = made.get(task.key.split("~", 1)[0]) or _read(task, labels, sparse)
        if label is not None:
            rows, number = label
            found[task.key] = heaviest[rows].digest.hex(), number
    return found


def _read(task: Task, labels: Mapping[str, _Label], sparse: set[str]) -> _Label | None:
    # The one block that it reads: of sparse arrays, if it reads any of these.
    named = [name for name in task.inputs if name in sparse] or task.inputs
    read = {labels[name] for name in named if name in labels}
    return next(iter(read)) if len(read) == 1 else None


def _parts_of_blocks(program: Program) -> Iterator[Task]:
    # Tasks that may lay a part of a block out anew, such as of a heavy row that workers share.
    for batch in batches(program.actions):
        yield from (task for task in batch.tasks if task.kind in ("cut", "move"))


def _body_tasks(program: Program) -> Iterator[Task]:
    for loop in [one for one in program.actions if isinstance(one, Repeat)][:1]:
        for batch in batches(loop.body):
            yield from batch.tasks


def _rows(layout: Layout) -> _Rows | None:
    counts = layout.grid.counts
    return (layout.grid.cuts[0], layout.owners) if counts and set(counts[1:]) <= {1} else None


def _labelled(rows: _Rows, keys: Sequence[str]) -> dict[str, _Label]:
    return {key: (rows, number) for number, key in enumerate(keys)}


def _weight(one: tuple[Expr, Stored]) -> tuple[bool, int]:
    node, array = one
    return node.sparse, sum(array.block_bytes)

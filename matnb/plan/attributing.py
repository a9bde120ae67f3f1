"""Attributes each task of a loop to the block of a stored array that it works on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from matnb.blocks.layout import Layout
from matnb.expr.nodes import Expr
from matnb.program.plan import Slot, Stage, StoredArray, Task
from matnb.program.program import Action, Batch, Branch, Iterate, Program, batches

# Arrays that lie alike: the cuts of their rows, and who owns the parts.
Rows: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
# Which of these an array lies as, by number, and which of its blocks.
_Label: TypeAlias = tuple[int, int]


def works_of(
    program: Program,
    inputs: Mapping[Expr, StoredArray],
    states: Iterable[StoredArray],
    stages: Iterable[Stage],
) -> dict[Slot, tuple[str, int]]:
    """Return for tasks of the outermost loop's body the block of a stored input that each works on.

    Arrays that are cut alike by rows, on the same workers, count as the heaviest of them: sparse before
    dense. A task works on the block of the array whose rows it makes, else on the one block that it reads, of
    which it reads a part, or on which another task worked whose value it reads.
    Tasks that read many blocks, such as those that gather a vector, are left out.

    Parameters
    ----------
    inputs
        The stored arrays that the program is given, in its registers.
    states
        The arrays of the loop's state.
    stages
        Of the program.

    Returns
    -------
    dict
        The digest of the heaviest array, as hexadecimal digits, and the block's number, by the task's slot.
    """
    numbers: dict[Rows, int] = {}
    heaviest: list[Expr] = []
    labels: dict[Slot, _Label] = {}
    sparse: set[Slot] = set()
    for node, array in sorted(inputs.items(), key=_weight, reverse=True):
        rows = rows_of(array.layout)
        if rows is not None:
            if rows not in numbers:
                numbers[rows] = len(heaviest)
                heaviest.append(node)
            labels.update(_labelled(numbers[rows], array.keys))
            sparse.update(array.keys if node.sparse else ())
    for array in states:
        rows = rows_of(array.layout)
        if rows in numbers:
            labels.update(_labelled(numbers[rows], array.keys))
    for task in _parts_of_blocks(program):
        part_of = _read(task, labels, sparse)
        if part_of is not None and sparse & set(task.inputs):
            labels[task.key] = part_of
            sparse.add(task.key)
    made: dict[Slot, _Label] = {}
    for stage in stages:
        rows = rows_of(stage.layout)
        if rows in numbers and len(stage.tasks) == len(rows[1]):
            made.update(_labelled(numbers[rows], stage.tasks))
    digests, owners = [one.digest.hex() for one in heaviest], [rows[1] for rows in numbers]
    found: dict[Slot, tuple[str, int]] = {}
    worked_on: dict[Slot, _Label] = {}  # by the tasks that made values which others read
    for action in _inside(body_of(program)):
        if isinstance(action, Iterate):
            for names, begins in zip(action.state, action.first, strict=True):
                there = zip(names, begins, strict=True)
                labels.update({name: labels[one] for name, one in there if one in labels})
            continue
        for task in action.tasks:
            label = made.get(task.key) or _read(task, labels, sparse)
            if label is None:
                label = _read(task, worked_on, set())
                if label is None or owners[label[0]][label[1]] != task.owner:
                    continue
            place, number = label
            found[task.key] = digests[place], number
            worked_on[task.key] = label
    return found


def body_of(program: Program) -> tuple[Action, ...]:
    """Return what an iteration of the outermost loop does; nothing for a branch."""
    return next((one.body for one in program.actions if isinstance(one, Iterate)), ())


def _read(task: Task, labels: Mapping[Slot, _Label], sparse: set[Slot]) -> _Label | None:
    # The one block that it reads: of sparse arrays, if it reads any of these.
    named = [name for name in task.inputs if name in sparse] or task.inputs
    read = {labels[name] for name in named if name in labels}
    return next(iter(read)) if len(read) == 1 else None


def _parts_of_blocks(program: Program) -> Iterator[Task]:
    # Tasks that may lay a part of a block out anew, such as of a heavy row that workers share.
    for batch in batches(program.actions):
        yield from (task for task in batch.tasks if task.kind.lays_out)


def _inside(actions: Iterable[Action]) -> Iterator[Batch | Iterate]:
    # The batches of a body, also of those in it, in their order; loops before what is in them.
    for action in actions:
        match action:
            case Batch():
                yield action
            case Iterate():
                yield action
                yield from _inside(action.body)
            case Branch():
                yield from _inside((*action.then, *action.otherwise))


def rows_of(layout: Layout) -> Rows | None:
    """Return how an array's rows lie; None where its columns are cut, too."""
    counts = layout.grid.counts
    return (layout.grid.cuts[0], layout.owners) if counts and set(counts[1:]) <= {1} else None


def _labelled(place: int, keys: Sequence[Slot]) -> dict[Slot, _Label]:
    return {key: (place, number) for number, key in enumerate(keys)}


def _weight(one: tuple[Expr, StoredArray]) -> tuple[bool, int]:
    node, array = one
    return node.sparse, sum(array.block_bytes)

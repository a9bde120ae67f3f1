"""The communication plan of a program: who sends what to whom, and which part of an array suffices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from matnb.backend.gang.liveness import BatchPlace, BranchPlace, PartialRead, Place, RepeatPlace, batches
from matnb.backend.tasks.registers import TaskParts
from matnb.blocks.formats import Csr, Dense, Empty
from matnb.blocks.kernels.products.split_rows import multiply_part
from matnb.blocks.kernels.shaping.packing import can_pack, touched
from matnb.program.operators import FusedKernel, Multiply, Operator, Run
from matnb.program.plan import Slot, Task
from matnb.program.program import TOUCHED_AT_MOST, Program

Places: TypeAlias = npt.NDArray[np.uint32]
Users: TypeAlias = dict[Slot, list[Task]]
ROWS_WORTH = 0.5  # of a matrix's rows: of half of them packing takes 0.9 of the processor time, of 3/4 1.03


class HasValue(Protocol):
    """A register with its value."""

    value: object


class Owners:
    """Who has which register; what every worker has is of whoever asks."""

    def __init__(self, program: Program, places: Sequence[Place]) -> None:
        self._owners = dict(program.owners)
        self._owners.update(program.given)
        for place in batches(places):
            self._owners.update((task.key, task.owner) for task in place.batch.tasks)
        self.everywhere = program.everywhere - set(program.given)

    def owner(self, name: Slot, reader: int) -> int:
        """Return the member that a reader has a register from: itself where it can."""
        return reader if name in self.everywhere else self._owners[name]


def plan_exchange(places: Sequence[Place], owners: Owners, tasks: Mapping[Slot, TaskParts]) -> None:
    """Write into each place what is sent there.

    A register that stays the same in a loop is sent once, before the outermost such loop. All members find
    the same, since it follows from the program alone.

    Parameters
    ----------
    places
        Of a whole program.
    owners
        Of its registers.
    tasks
        Its tasks by key, joins apart.
    """
    _plan(places, owners, tasks, ())


def _plan(
    places: Sequence[Place], owners: Owners, tasks: Mapping[Slot, TaskParts], loops: tuple[RepeatPlace, ...]
) -> None:
    for place in places:
        match place:
            case BatchPlace():
                _plan_batch(place, owners, tasks, loops)
            case RepeatPlace():
                _plan(place.body, owners, tasks, (*loops, place))
            case BranchPlace():
                _plan((*place.then, *place.otherwise), owners, tasks, loops)


def _plan_batch(
    place: BatchPlace, owners: Owners, tasks: Mapping[Slot, TaskParts], loops: tuple[RepeatPlace, ...]
) -> None:
    changed = [loop.made for loop in loops]
    made = place.made
    travelling: dict[Slot, set[int]] = defaultdict(set)
    for task in place.batch.tasks:
        for name in task.inputs:
            if owners.owner(name, task.owner) == task.owner:
                continue
            before = [loop for loop, names in zip(loops, changed, strict=True) if name not in names]
            if before and name not in made:
                sent = before[0].sends.get(name, ())
                before[0].sends[name] = tuple(sorted({*sent, task.owner}))
            else:
                travelling[name].add(task.owner)
    place.sends = {name: tuple(sorted(readers)) for name, readers in travelling.items()}
    if not loops:
        return
    users: Users = defaultdict(list)
    for task in place.batch.tasks:
        for name in set(task.inputs):
            users[name].append(task)
    for name, readers in place.sends.items():
        for reader in readers:
            wanted = _wanted(name, reader, place, owners, tasks, users)
            if wanted is None:
                continue
            lefts = {left for left, _ in wanted.lefts}
            # Before the outermost loop in which the sparse blocks stay; they are there when it begins.
            steady = [loop for loop, names in zip(loops, changed, strict=True) if not lefts & (names | made)]
            if steady:
                steady[0].wanted.append((place, wanted))


def _wanted(
    name: Slot, reader: int, place: BatchPlace, owners: Owners, tasks: Mapping[Slot, TaskParts], users: Users
) -> PartialRead | None:
    # Every use of the register by the reader has to be a product with a sparse block on its left.
    lefts: list[tuple[Slot, int]] = []
    length: int | None = None
    for task in users[name]:
        if task.owner != reader:
            continue
        apart = tasks[task.key]
        if name in apart.inputs:
            used = _lefts(apart.rest, [apart.inputs.index(name)])
            if used is None:
                return None
            lefts += [(left, 0) for left in used]
        for number, join in enumerate(apart.joins):
            if name not in join.parts:
                continue
            found = _lefts_of_join(task, apart, number, users[task.key], place, tasks)
            if found is None or len(join.operator.shape) > 2 or join.parts.count(name) > 1:
                return None
            start, stop = join.bounds[join.parts.index(name)]
            if length not in (None, stop - start):
                return None
            length = stop - start
            lefts += [(left, start) for left in found]
    if not lefts:
        return None
    return PartialRead(name, owners.owner(name, reader), reader, tuple(dict.fromkeys(lefts)), length)


def _lefts_of_join(
    task: Task,
    apart: TaskParts,
    number: int,
    readers: Sequence[Task],
    place: BatchPlace,
    tasks: Mapping[Slot, TaskParts],
) -> list[Slot] | None:
    if apart.rest is not None:
        return _lefts(apart.rest, [len(apart.inputs) + number])
    if task.key in place.live or task.key in place.sends:
        return None
    found: list[Slot] = []
    for user in readers:
        other = tasks[user.key]
        if any(task.key in join.parts for join in other.joins):
            return None
        if task.key in other.inputs:
            lefts = _lefts(other.rest, [other.inputs.index(task.key)])
            if lefts is None:
                return None
            found += lefts
    return found


def _lefts(task: Task | None, inputs: Sequence[int]) -> list[Slot] | None:
    # The left operands where some inputs are right operands of products and nothing else.
    if task is None:
        return None
    found = []
    for step in task.steps:
        for number, place in enumerate(step.arguments):
            if place not in inputs:
                continue
            left = step.arguments[0]
            if number != 1 or not _multiplies(step.operator) or left >= len(task.inputs):
                return None
            found.append(task.inputs[left])
    return found


def _multiplies(operator: Operator) -> bool:
    # the first operand with the second, of which each column of the first meets a place
    match operator:
        case Multiply(transposed=False) | FusedKernel(product=Multiply()):
            return True
        case Run(kernel):
            return kernel is multiply_part
    return False


def is_worth_packing(value: object, places: Places) -> bool:
    """Tell whether a reader that needs these places is sent them alone; counts decide, never seconds."""
    if not isinstance(value, Dense) or not can_pack(value.values):
        return False
    return value.values.ndim == 1 or places.size <= ROWS_WORTH * len(value.values)


def touched_places(wanted: PartialRead, registers: Mapping[Slot, HasValue]) -> tuple[Places, int] | None:
    """Return which elements or rows a reader needs, and of how many; None where all are better sent."""
    blocks = [(registers[left].value, first) for left, first in wanted.lefts]
    shapes = [block.shape for block, _ in blocks if isinstance(block, Csr | Empty)]
    if len(shapes) < len(blocks):
        return None
    length = shapes[0][1] if wanted.length is None else wanted.length
    seen = np.zeros(length, np.uint8)
    for block, first in blocks:
        if isinstance(block, Csr):
            touched(block, first, length, seen)
    if np.count_nonzero(seen) > TOUCHED_AT_MOST * length:
        return None
    return np.flatnonzero(seen).astype(np.uint32), length

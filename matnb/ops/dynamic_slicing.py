"""Stretches of an axis of a length that is known, read and written where a number of run time says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from matnb.blocks.grid import Grid, regular_cuts, window_start
from matnb.blocks.kernels.shaping.indexing import put_window_sparse
from matnb.blocks.layout import Layout, spread
from matnb.errors import ShapeError
from matnb.expr.nodes import Expr, entries_of_part
from matnb.ops.indexing import check_index
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.kinds import PUT, READ
from matnb.program.operators import JoinWindow, PutWindow, Run, TakeWindow
from matnb.program.place import SMALL_BYTES
from matnb.program.plan import Slot, Workers
from matnb.program.regions import operand_region
from matnb.program.writer import PlanWriter, TaskWriter


@dataclass(frozen=True, eq=False, repr=False)
class DynamicSlice(Expr):
    """So many neighbors along an axis, from a whole number without axes on; sparse of a sparse array."""

    plain: ClassVar[bool] = True
    operand: Expr
    start: Expr
    count: int
    axis: int

    def __post_init__(self) -> None:
        own, axis = self.operand, self.axis
        check_index(self.start, 0)
        if not 0 <= self.count <= own.shape[axis]:
            raise ShapeError(f"a slice of {self.count} on axis {axis} of an array of shape {own.shape}")
        shape = (*own.shape[:axis], self.count, *own.shape[axis + 1 :])
        self.settle(shape, own.dtype, own.sparse, own, self.start)

    def _entries(self, of: Mapping[Expr, float], row: float) -> float:
        return entries_of_part(self, self.operand, of)

    def _text(self, operands: Sequence[str]) -> str:
        before = ":, " * self.axis
        return f"{operands[0]}[{before}{operands[1]}:{operands[1]} + {self.count}]"


@dataclass(frozen=True, eq=False, repr=False)
class DynamicUpdate(Expr):
    """An array with a value over as many neighbors along an axis as it has, from a whole number on.

    Along the other axes the value broadcasts, unless it is sparse. A sparse array stays sparse.
    """

    plain: ClassVar[bool] = True
    operand: Expr
    value: Expr
    start: Expr
    axis: int

    def __post_init__(self) -> None:
        own, value, axis = self.operand, self.value, self.axis
        check_index(self.start, 0)
        pairs = zip(value.shape, own.shape, strict=False)
        fits = [
            given <= whole if place == axis else given in (1, whole)
            for place, (given, whole) in enumerate(pairs)
        ]
        if value.ndim != own.ndim or not all(fits):
            raise ShapeError(
                f"an update of shape {value.shape} along axis {axis} of an array of shape {own.shape}: give "
                "as many axes, and lengths that fit"
            )
        self.settle(own.shape, own.dtype, own.sparse, own, value, self.start)

    def _entries(self, of: Mapping[Expr, float], row: float) -> float:
        return of[self.operand] + of[self.value]

    def _text(self, operands: Sequence[str]) -> str:
        operand, value, start = operands
        place = f"{':, ' * self.axis}{start}:{start} + {self.value.shape[self.axis]}"
        return f"{operand} with [{place}] = {value}"


@means(DynamicSlice)
def _(node: DynamicSlice, operands: Sequence[Value]) -> Value:
    """Return the slice."""
    key = _key(node, node.count, operands[1])
    array = operands[0]
    if sp.issparse(array):
        found = sp.csr_array(array[key] if node.axis else array[key[0]])  # type: ignore[index]  # SciPy slices
        found.sort_indices()
        return found
    return np.asarray(dense(array)[key])


@means(DynamicUpdate)
def _(node: DynamicUpdate, operands: Sequence[Value]) -> Value:
    """Return the array with the value written."""
    array = dense(operands[0]).copy()
    array[_key(node, node.value.shape[node.axis], operands[2])] = dense(operands[1]).astype(node.dtype)
    return sp.csr_array(array) if node.sparse else array


def _key(node: DynamicSlice | DynamicUpdate, size: int, number: Value) -> tuple[slice, ...]:
    start = window_start(int(dense(number)[()]), size, node.operand.shape[node.axis], node.axis)
    return (*(slice(None),) * node.axis, slice(start, start + size))


# What a stretch is made of lies on any worker: each gives what it has, and a block of the result joins it.


@lowers(DynamicSlice)
def _(node: DynamicSlice, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that read a stretch; a large one is cut along the axis, for all threads."""
    source, axis = writer.registers[node.operand], node.axis
    grid, length = source.layout.grid, node.operand.shape[axis]
    writer.note_reuse(node.operand)
    is_cut = writer.bytes_of(node) > SMALL_BYTES and grid.counts[axis] > 1
    along = regular_cuts(node.count, workers.slots if is_cut else 1)
    out = Grid((*grid.cuts[:axis], along, *grid.cuts[axis + 1 :]))
    runs = [_runs_of(source.keys, source.layout, index, axis) for index in out.indices()]
    if len(along) > 2:
        homes = spread(len(along) - 1, workers.numbers)
        owners = tuple(homes[index[axis]] for index in out.indices())
    else:
        owners = tuple(own[0][0] for own in runs)
    for block in writer.each_block(node, Layout(out, owners), READ, f"{node.count} places on axis {axis}"):
        own, part = runs[block.number], block.region[axis]
        parts = []
        for owner, blocks in own:
            is_alone = len(own) == 1 and owner == block.owner
            task = block if is_alone else TaskWriter()
            starts = tuple(start for start, _ in blocks)
            operator = TakeWindow(axis, starts, length, node.count, part, len(own) == 1)
            number = task.read(writer.block(node.start, (), owner))
            task.do(operator, number, *(task.read(key) for _, key in blocks))
            if not is_alone:
                parts.append(writer.part_of(block, task, owner, READ, block.num_bytes))
        if parts:
            shape = tuple(stop - start for start, stop in block.region)
            block.do(JoinWindow(axis, shape, node.dtype, node.sparse), *map(block.read, parts))


def _runs_of(
    keys: Sequence[Slot], layout: Layout, index: Sequence[int], axis: int
) -> list[tuple[int, list[tuple[int, Slot]]]]:
    # The blocks along the axis beside a block of the result, those of one worker that follow one another
    # together: who has them, where each begins, and its slot.
    grid = layout.grid
    places = [grid.number((*index[:axis], number, *index[axis + 1 :])) for number in range(grid.counts[axis])]
    blocks = [
        (layout.owners[place], (start, keys[place]))
        for place, (start, _) in zip(places, pairwise(grid.cuts[axis]), strict=True)
    ]
    return [(owner, [block for _, block in own]) for owner, own in groupby(blocks, key=lambda one: one[0])]


@lowers(DynamicUpdate)
def _(node: DynamicUpdate, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that write a stretch: each block where it is."""
    source, axis = writer.registers[node.operand], node.axis
    length, size = node.shape[axis], node.value.shape[axis]
    writer.note_reuse(node.operand)
    for block in writer.each_block(node, source.layout, PUT, f"{size} places on axis {axis}"):
        region, owner = block.region, block.owner
        old = block.read(source.keys[block.number])
        read = operand_region(node.value.shape, (*region[:axis], (0, size), *region[axis + 1 :]))
        value = writer.read(block, node.value, read, owner)
        number = block.read(writer.block(node.start, (), owner))
        put: Run | PutWindow = PutWindow(axis, region[axis], length, size)
        if node.sparse:
            put = Run(put_window_sparse, (axis, size, region, node.shape))
        block.do(put, old, value, number)

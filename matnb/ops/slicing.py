"""Slices and transposes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TypeGuard

import numpy as np
import scipy.sparse as sp

from matnb.blocks.grid import Grid, Region, intersect, region_shape
from matnb.blocks.kernels.elementwise.tiles import LONG_ROW
from matnb.blocks.layout import Layout
from matnb.expr.nodes import Expr, Index, Transpose
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.kinds import JOIN, PICKING, TRANSPOSE, Kind
from matnb.program.operators import Flip, Join, Take
from matnb.program.place import default_layout
from matnb.program.plan import Workers
from matnb.program.regions import SlicePart, piece_cuts, slice_pieces
from matnb.program.writer import PlanWriter, TaskWriter, cut_of

_SLICE = Kind("slice", shown=PICKING)


@means(Transpose)
def _(node: Transpose, operands: Sequence[Value]) -> Value:
    """Return the array with its axes in another order."""
    value = operands[0]
    if not sp.issparse(value):
        return np.transpose(value, node.axes)
    return sp.csr_array(value.T) if node.axes == (1, 0) else value


@means(Index)
def _(node: Index, operands: Sequence[Value]) -> Value:
    """Return a slice."""
    if node.sparse:
        return _sparse_index(operands[0], node.key)  # type: ignore[arg-type]  # sparse here
    return np.asarray(dense(operands[0])[node.key])


def _sparse_index(value: sp.csr_array, key: Sequence[slice | int | None]) -> sp.csr_array:
    # SciPy's own slicing with a negative step drops nothing, so stored zeros stay.
    result = sp.csr_array(value[key[0], :][:, key[1]])  # type: ignore[index]  # SciPy takes slices
    result.sort_indices()
    return result


# Tasks: each block that has a part in the result gives a block of the result.

_KEPT_BYTES = 24  # of an entry of a sparse block, while those of a slice are looked for


@lowers(Index)
def _(node: Index, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of a slice: each block that has a part in the result gives a block of the result."""
    source = writer.registers[node.operand]
    grid = source.layout.grid
    out, read = _pieces(node, grid)
    if 0 in node.shape:
        layout = Layout(out, (workers.numbers[0],) * out.num_blocks)
        for block in writer.each_block(node, layout, _SLICE, "nothing"):
            block.do(Join((), region_shape(block.region), node.dtype, node.sparse))
        return
    writer.note_reuse(node.operand)
    for block in writer.each_block(node, sliced_layout(node, source.layout), _SLICE):
        index, key = read[block.number]
        block.do(Take(key), block.read(source.keys[grid.number(index)]))
        if node.operand.sparse:
            block.take(_KEPT_BYTES * writer.entries_of(node.operand, grid.region(index)))


def sliced_layout(node: Index, layout: Layout) -> Layout:
    """Return how a slice lies whose blocks stay with those that they are cut out of."""
    out, read = _pieces(node, layout.grid)
    return Layout(out, tuple(layout.owners[layout.grid.number(index)] for index, _ in read))


def _pieces(node: Index, grid: Grid) -> tuple[Grid, list[tuple[tuple[int, ...], LocalKey]]]:
    # How a slice is cut, and for each of its blocks which block it is a part of, and which part.
    choices: list[tuple[SlicePart | int | None, ...]] = []
    cuts: list[tuple[int, ...]] = []
    axis = 0
    for part in node.key:
        if part is None:
            choices.append((None,))
            cuts.append((0, 1))
            continue
        if isinstance(part, slice):
            pieces = slice_pieces(grid.cuts[axis], part)
            cuts.append(piece_cuts(pieces))
            choices.append(pieces)
        else:
            choices.append((part,))
        axis += 1
    return Grid(tuple(cuts)), [_local(chosen, grid) for chosen in itertools.product(*choices)]


def is_window(node: Index) -> bool:
    """Tell whether a slice is a rectangle of a dense array, which a task may cut out of what it reads."""
    whole = len(node.key) == node.operand.ndim and 0 not in node.shape and not node.operand.is_cheap
    if node.ndim > 1 and node.shape[-1] < LONG_ROW:
        return False  # rows of few elements are read faster from a copy without gaps
    return whole and not node.sparse and all(isinstance(one, slice) and one.step == 1 for one in node.key)


def is_cut_out(node: Expr, writer: PlanWriter) -> TypeGuard[Index]:
    """Tell whether what a task reads is a window that has no array: the task cuts it out."""
    return isinstance(node, Index) and node not in writer.registers


def window_region(node: Index, region: Region) -> Region:
    """Return which part of its operand a part of a window is."""
    starts = (one.start for one in node.key if isinstance(one, slice))
    return tuple((start + begin, start + end) for start, (begin, end) in zip(starts, region, strict=True))


LocalKey = tuple[tuple[int, int | None, int] | int | None, ...]


def _local(chosen: tuple[SlicePart | int | None, ...], grid: Grid) -> tuple[tuple[int, ...], LocalKey]:
    block: list[int] = []
    key: list[tuple[int, int | None, int] | int | None] = []
    for part in chosen:
        if part is None:
            key.append(None)
        elif isinstance(part, SlicePart):
            block.append(part.block)
            key.append(part.local)
        else:
            cuts = grid.cuts[len(block)]
            number = next(i for i, stop in enumerate(cuts[1:]) if part < stop)
            block.append(number)
            key.append(part - cuts[number])
    return tuple(block), tuple(key)


@lowers(Transpose)
def _(node: Transpose, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of a transpose.

    A dense array's blocks are flipped where they are, and so are those of a sparse one whose columns are cut,
    which they are only where a user asked. Any other sparse one is cut by rows again, so that a product with
    it needs no full-length reduction: every block gives a part to every new block.
    """
    source = writer.registers[node.operand]
    grid = source.layout.grid
    writer.note_reuse(node.operand)
    if not node.sparse or grid.counts[1] > 1:
        layout = _flipped(source.layout, node.axes)
    else:
        layout = default_layout(node, writer.bytes_of(node), workers)
    back = [node.axes.index(axis) for axis in range(node.ndim)]
    for block in writer.each_block(node, layout, TRANSPOSE):
        wanted = tuple(block.region[axis] for axis in back)
        found = [index for index in grid.indices() if grid.region(index) == wanted] or list(
            grid.overlapping(wanted)
        )
        parts, offsets = [], []
        for index in found:
            place = grid.number(index)
            bounds = grid.region(index)
            common = intersect(bounds, wanted)
            task = block if len(found) == 1 else TaskWriter()
            value = task.read(source.keys[place])
            if common != bounds:
                value = task.do(cut_of(common, bounds), value)
            task.do(Flip(node.axes), value)
            if task is not block:
                size = writer.bytes_of(node.operand, common)
                parts.append(writer.part_of(block, task, source.layout.owners[place], TRANSPOSE, size))
            starts = zip(node.axes, block.region, strict=True)
            offsets.append(tuple(common[axis][0] - begin for axis, (begin, _) in starts))
        if parts or not found:
            joined = Join(tuple(offsets), region_shape(block.region), node.dtype, node.sparse)
            block.do(joined, *map(block.read, parts))
            block.kind = JOIN


def _flipped(layout: Layout, axes: tuple[int, ...]) -> Layout:
    grid = layout.grid.transpose(axes)
    back = [axes.index(axis) for axis in range(len(axes))]
    owners = tuple(
        layout.owners[layout.grid.number(tuple(index[axis] for axis in back))] for index in grid.indices()
    )
    return Layout(grid, owners)

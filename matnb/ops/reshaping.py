"""Arrays whose elements are those of another one in row-major order: reshaped, or repeated."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import prod
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from matnb.blocks.grid import Grid, Region, region_shape, regular_cuts, whole
from matnb.blocks.kernels.shaping import shaping as kernels
from matnb.blocks.layout import Layout, spread
from matnb.errors import ShapeError
from matnb.expr.nodes import Expr, Shape, entries_of_part
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.kinds import COUNT, CUT, JOINING, Kind
from matnb.program.operators import Join, Run
from matnb.program.place import SMALL_BYTES, laid_out, most_block_bytes
from matnb.program.plan import Slot, Workers
from matnb.program.regions import region_size
from matnb.program.writer import BlockTask, PlanWriter, TaskWriter

_REPEAT = Kind("repeat", shown=JOINING)
_RESHAPE = Kind("reshape", shown=JOINING)


@dataclass(frozen=True, eq=False, repr=False)
class Reshape(Expr):
    """The elements of an array, last axis fastest, in another shape; sparse where both have two axes."""

    plain: ClassVar[bool] = True
    operand: Expr
    lengths: Shape

    def __post_init__(self) -> None:
        if prod(self.lengths) != self.operand.size:
            raise ShapeError(
                f"reshape: {self.operand.size} elements of shape {self.operand.shape} do not fit shape "
                f"{self.lengths}, which has {prod(self.lengths)}"
            )
        sparse = self.operand.sparse and len(self.lengths) == 2
        self.settle(self.lengths, self.operand.dtype, sparse, self.operand)


@dataclass(frozen=True, eq=False, repr=False)
class Repeat(Expr):
    """An array with each element, or each slice along an axis, so many times, one beside the other."""

    plain: ClassVar[bool] = True
    operand: Expr
    count: int
    axis: int

    def __post_init__(self) -> None:
        given = self.operand.shape
        shape = (*given[: self.axis], given[self.axis] * self.count, *given[self.axis + 1 :])
        self.settle(shape, self.operand.dtype, self.operand.sparse, self.operand)

    def _entries(self, of: Mapping[Expr, float], row: float) -> float:
        return entries_of_part(self, self.operand, of)


@dataclass(frozen=True, eq=False, repr=False)
class CountsOf(Expr):
    """The sums of whole numbers in the parts that ``cuts`` bound; -1 where one of them is negative."""

    plain: ClassVar[bool] = True
    counts: Expr
    cuts: tuple[int, ...]

    def __post_init__(self) -> None:
        self.settle((len(self.cuts) - 1,), np.dtype(np.int64), False, self.counts)


@dataclass(frozen=True, eq=False, repr=False)
class RepeatEach(Expr):
    """An array with each slice along an axis as often as a vector says.

    ``before`` cuts that axis, and ``after`` says where what each part becomes ends in the result.
    """

    plain: ClassVar[bool] = True
    operand: Expr
    counts: Expr
    axis: int
    before: tuple[int, ...]
    after: tuple[int, ...]

    def __post_init__(self) -> None:
        given = self.operand.shape
        if self.counts.shape != (given[self.axis],):
            raise ShapeError(
                f"counts of shape {self.counts.shape} do not fit axis {self.axis} of an array of shape "
                f"{given}"
            )
        shape = (*given[: self.axis], self.after[-1], *given[self.axis + 1 :])
        self.settle(shape, self.operand.dtype, self.operand.sparse, self.operand, self.counts)

    def _entries(self, of: Mapping[Expr, float], row: float) -> float:
        return entries_of_part(self, self.operand, of)


@means(Reshape)
def _(node: Reshape, operands: Sequence[Value]) -> Value:
    """Return the elements in another shape."""
    (value,) = operands
    if node.sparse and 0 in node.shape:
        return sp.csr_array(node.shape, dtype=node.dtype)
    if node.sparse:
        return sp.csr_array(value.reshape((node.shape[0], node.shape[1])))
    return dense(value).reshape(node.lengths)


@means(Repeat)
def _(node: Repeat, operands: Sequence[Value]) -> Value:
    """Return each slice so many times."""
    repeated = np.repeat(dense(operands[0]), node.count, node.axis)
    return sp.csr_array(repeated) if node.sparse else repeated


@means(CountsOf)
def _(node: CountsOf, operands: Sequence[Value]) -> Value:
    """Return the sum of each part."""
    counts = dense(operands[0])
    parts = (counts[start:stop] for start, stop in pairwise(node.cuts))
    return np.array([-1 if (one < 0).any() else one.sum() for one in parts], np.int64)


@means(RepeatEach)
def _(node: RepeatEach, operands: Sequence[Value]) -> Value:
    """Return each slice as often as its count says."""
    repeated = np.repeat(dense(operands[0]), dense(operands[1]), node.axis)
    return sp.csr_array(repeated) if node.sparse else repeated


# Arrays in another shape: blocks that are runs of elements give runs to the blocks of the result.
#
# A block is a run where its elements lie beside each other in the whole array, last axis fastest: of
# leading axes it has one place, of one axis a range, and the others whole.

_FINE = 4  # an axis is cut for so many blocks where it has so many times as many places: the cuts are even


@dataclass(frozen=True)
class Runs:
    """An array as runs of its elements: where they begin and at last end, their values' keys, and owners."""

    bounds: tuple[int, ...]
    keys: tuple[Slot, ...]
    owners: tuple[int, ...]

    def owner_at(self, place: int) -> int:
        """Return who has an element."""
        return self.owners[bisect_right(self.bounds, place) - 1]

    def between(self, start: int, stop: int) -> range:
        """Return the numbers of the runs that have elements of a range."""
        return range(bisect_right(self.bounds, start) - 1, bisect_left(self.bounds, stop))


@lowers(Reshape)
def _(node: Reshape, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of a reshape: where cuts allow it each block is seen in another shape, where it is."""
    if node.size == 0:
        _write_nothing(node, writer, workers)
    elif _longer_than_one(node.shape) == _longer_than_one(node.operand.shape) and not node.sparse:
        _write_in_place(node, writer)
    else:
        _write_exchange(node, writer, workers)


def _longer_than_one(shape: Shape) -> Shape:
    return tuple(length for length in shape if length != 1)


def _write_nothing(node: Reshape, writer: PlanWriter, workers: Workers) -> None:
    layout = Layout(whole(node.shape), workers.numbers[:1])
    for block in writer.each_block(node, layout, _RESHAPE, "nothing"):
        block.do(Join((), node.shape, node.dtype, node.sparse))


def _write_in_place(node: Reshape, writer: PlanWriter) -> None:
    source = writer.registers[node.operand]
    writer.note_reuse(node.operand)
    cuts = iter([one for one in source.layout.grid.cuts if one[-1] != 1])
    grid = Grid(tuple((0, 1) if length == 1 else next(cuts) for length in node.shape))
    for block in writer.each_block(node, Layout(grid, source.layout.owners), _RESHAPE, "in place"):
        run = Run(kernels.flat_join, (region_shape(block.region),))
        block.do(run, block.read(source.keys[block.number]))


def _write_exchange(node: Reshape, writer: PlanWriter, workers: Workers) -> None:
    runs = runs_of(node.operand, writer, workers)
    grid = run_grid(node.shape, runs.bounds)
    bounds = tuple(accumulate(map(region_size, grid.regions()), initial=0))
    owners = tuple(runs.owner_at((start + stop - 1) // 2) for start, stop in pairwise(bounds))
    kernel = kernels.entries_join if node.sparse else kernels.flat_join
    detail = "in place" if bounds == runs.bounds else ""
    for block in writer.each_block(node, Layout(grid, owners), _RESHAPE, detail):
        elements = (bounds[block.number], bounds[block.number + 1])
        parts = [_part(node, block, elements, runs, one, writer) for one in runs.between(*elements)]
        block.do(Run(kernel, (region_shape(block.region),)), *parts)
        block.take(block.num_bytes)  # blocks that do not lie in order are copied


def _part(
    node: Reshape, block: BlockTask, elements: tuple[int, int], runs: Runs, one: int, writer: PlanWriter
) -> tuple[bool, int]:
    # What a run gives to a block that has some elements of the result; only that much travels.
    key, begin, end = runs.keys[one], *runs.bounds[one : one + 2]
    local = (max(elements[0], begin) - begin, min(elements[1], end) - begin)
    if node.sparse:
        run = Run(kernels.entries_part, (begin - elements[0], *local, region_shape(block.region)))
    elif local == (0, end - begin):
        return block.read(key)
    else:
        run = Run(kernels.flat_part, local)
    size = writer.bytes_of(node) * (local[1] - local[0]) // node.size
    if runs.owners[one] == block.owner:
        return block.do(run, block.read(key), num_bytes=size)
    there = TaskWriter()
    there.do(run, there.read(key))
    there.take(writer.bytes_of(node) * (end - begin) // node.size)
    return block.read(writer.part_of(block, there, runs.owners[one], CUT, size))


def runs_of(node: Expr, writer: PlanWriter, workers: Workers) -> Runs:
    """Return an array in registers as runs: its blocks where they are runs, or it is cut by them first."""
    layout = writer.registers[node].layout
    if not _is_runs(layout.grid):
        layout = _cut_in_runs(node, layout, writer, workers)
    sizes = [region_size(region) for region in layout.grid.regions()]
    keys = [
        writer.block(node, region, owner)
        for region, owner in zip(layout.grid.regions(), layout.owners, strict=True)
    ]
    return Runs(tuple(accumulate(sizes, initial=0)), tuple(keys), layout.owners)


def _is_runs(grid: Grid) -> bool:
    cut = [axis for axis, count in enumerate(grid.counts) if count > 1]
    return not cut or all(
        count == length for count, length in zip(grid.counts[: cut[-1]], grid.shape, strict=False)
    )


def _cut_in_runs(node: Expr, given: Layout, writer: PlanWriter, workers: Workers) -> Layout:
    num_bytes = writer.bytes_of(node)
    wanted = max(workers.slots, -(-num_bytes // most_block_bytes(workers))) if num_bytes >= SMALL_BYTES else 1
    first = next(axis for axis, length in enumerate(node.shape) if length > 1)
    if given.grid.counts[first] >= wanted:
        cuts = (given.grid.cuts[axis] if axis == first else (0, one) for axis, one in enumerate(node.shape))
        grid = Grid(tuple(cuts))
    else:
        grid = run_grid(node.shape, regular_cuts(node.size, wanted))
    return laid_out(grid, workers)


def run_grid(shape: Shape, bounds: Sequence[int]) -> Grid:
    """Return cuts of a shape into runs: at the bounds, or where they cannot be cut so, near to them."""
    count = len(bounds) - 1
    for axis, length in enumerate(shape):
        inner, leading = prod(shape[axis + 1 :]), prod(shape[:axis])
        if leading > 2 * count:
            break
        if all(bound % inner == 0 for bound in bounds):
            places = sorted({bound // inner % length for bound in bounds})
            if leading * len(places) <= 2 * count:
                return _runs_along(shape, axis, (*places, length))
    return _near(shape, bounds)


def _near(shape: Shape, bounds: Sequence[int]) -> Grid:
    count = len(bounds) - 1
    if not shape:
        return Grid(())
    axis = next((one for one in range(len(shape)) if prod(shape[: one + 1]) >= _FINE * count), len(shape) - 1)
    inner, leading = prod(shape[axis + 1 :]), prod(shape[:axis])
    if leading > 1:
        parts = 1 if leading % count == 0 else -(-2 * count // leading)
        return _runs_along(shape, axis, regular_cuts(shape[axis], parts))
    places = sorted({round(bound / inner) for bound in bounds})
    return _runs_along(shape, axis, tuple(places))


def _runs_along(shape: Shape, axis: int, cuts: tuple[int, ...]) -> Grid:
    single = [tuple(range(length + 1)) for length in shape[:axis]]
    return Grid((*single, cuts, *((0, length) for length in shape[axis + 1 :])))


# Arrays with slices repeated: each block repeats its own, where it is.

_COUNT_BYTES = 8  # how often a slice is repeated


@lowers(Repeat)
def _(node: Repeat, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of a repetition, cut as the array is; what is too large for a block is cut again."""
    source = writer.registers[node.operand]
    cuts = list(source.layout.grid.cuts)
    along = [0]
    for start, stop in pairwise(cuts[node.axis]):
        length = (stop - start) * node.count
        share = writer.bytes_of(node) * length / max(1, node.shape[node.axis])
        most = max(SMALL_BYTES, writer.bytes_of(node) / workers.slots)
        parts = max(1, round(share / most)) if length else 1
        along += [start * node.count + one for one in regular_cuts(length, parts)[1:] if length]
    cuts[node.axis] = tuple(along) if len(along) > 1 else (0, 0)
    grid = Grid(tuple(cuts))
    is_finer = grid.num_blocks > source.layout.grid.num_blocks
    count = max(1, node.count)

    def read_by(region: Region) -> Region:
        start, stop = region[node.axis]
        return _with(region, node.axis, (start // count, -(-stop // count)))

    layout = laid_out(grid, workers)
    if not is_finer:
        owners = tuple(writer.home_of(node.operand, read_by(region)) for region in grid.regions())
        layout = Layout(grid, owners)
    for block in writer.each_block(node, layout, _REPEAT):
        wanted = read_by(block.region)
        if 0 in region_shape(wanted):
            block.do(Join((), region_shape(block.region), node.dtype, node.sparse))
            continue
        (start, stop), (first, last) = block.region[node.axis], wanted[node.axis]
        part = writer.read(block, node.operand, wanted, block.owner)
        block.take(_COUNT_BYTES * (last - first))
        block.do(Run(kernels.repeat, (node.count, node.axis, start - first * node.count, stop - start)), part)


def _with(region: Region, axis: int, part: tuple[int, int]) -> Region:
    return (*region[:axis], part, *region[axis + 1 :])


@lowers(CountsOf)
def _(node: CountsOf, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that count what each part becomes."""
    count = node.shape[0]
    layout = Layout(Grid((tuple(range(count + 1)),)), spread(count, workers.numbers))
    parts = list(pairwise(node.cuts))
    for block in writer.each_block(node, layout, COUNT):
        counts = writer.read(block, node.counts, (parts[block.number],), block.owner)
        block.do(Run(kernels.counts_of), counts)


@lowers(RepeatEach)
def _(node: RepeatEach, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that repeat slices by counts: each part of the array becomes a part of the result."""
    parts = [
        (before, after)
        for before, after in zip(pairwise(node.before), pairwise(node.after), strict=True)
        if after[0] < after[1]
    ]
    cuts = list(writer.registers[node.operand].layout.grid.cuts)
    cuts[node.axis] = (0, *(after[1] for _, after in parts)) if parts else (0, 0)
    grid = Grid(tuple(cuts))
    layout = laid_out(grid, workers)
    before = {after: one for one, after in parts}
    for block in writer.each_block(node, layout, _REPEAT, "by counts"):
        region = block.region
        if 0 in region_shape(region):
            block.do(Join((), region_shape(region), node.dtype, node.sparse))
            continue
        part = before[region[node.axis]]
        value = writer.read(block, node.operand, _with(region, node.axis, part), block.owner)
        counts = writer.read(block, node.counts, (part,), block.owner)
        block.take(2 * _COUNT_BYTES * (part[1] - part[0]))
        block.do(Run(kernels.repeat_each, (node.axis,)), value, counts)

"""A user's function called for each part of some arrays: the arrays it makes block by block, and its sums.

Venkataraman, Bodzsar, Roy, AuYoung and Schreiber, "Presto: distributed machine learning and graph processing
with sparse matrices", EuroSys 2013, sections 3.1 to 3.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
import scipy.sparse as sp

from matnb.blocks.formats import to_numpy
from matnb.blocks.grid import Grid, Region, all_of, region_shape, regular_cuts
from matnb.blocks.kernels.calls import (
    Function,
    MadeArray,
    Output,
    array_of_part,
    call_on_part,
    combine_values,
    packed_bytes,
    value_of_part,
)
from matnb.blocks.kernels.pairwise import in_pairs, middle
from matnb.blocks.layout import Layout
from matnb.errors import ShapeError
from matnb.expr.nodes import Expr, Shape
from matnb.ops.lanes import lanes_layout
from matnb.ops.reference import Value, block_of, dense, positions, value_of
from matnb.ops.registry import lowers, means
from matnb.program.kinds import CALL, PART, Kind
from matnb.program.operators import Run
from matnb.program.plan import Slot, Workers
from matnb.program.writer import BlockTask, PlanWriter, TaskWriter

ROWS, COLUMNS, BLOCKS = "rows", "columns", "blocks"
WAYS = (ROWS, COLUMNS, BLOCKS)


@dataclass(frozen=True)
class SplitArray:
    """An array that a function makes part by part: what it is, and by what it is split."""

    lengths: Shape
    element: np.dtype
    is_sparse: bool
    by: str

    def made(self, part: Region) -> MadeArray:
        """Return what its block of a part is."""
        return region_shape(part_of(self.lengths, self.by, part)), self.element, self.is_sparse


@dataclass(frozen=True)
class CombinedValue:
    """A value of each part, and the monoid that combines those of all parts."""

    lengths: Shape
    element: np.dtype
    monoid: str


def split_space(shape: Shape, by: str) -> Shape:
    """Return the lengths of the axes that are split."""
    return shape if by == BLOCKS else shape[:1] if by == ROWS else shape[-1:]


def part_of(shape: Shape, by: str, part: Region) -> Region:
    """Return the region of an array that belongs to a part, a region of the axes that are split."""
    if by == BLOCKS:
        return part
    others = all_of(shape)
    return (*part, *others[1:]) if by == ROWS else (*others[:-1], *part)


@dataclass(frozen=True, eq=False, repr=False)
class Foreach(Expr):
    """What a user's function gives for each part of some arrays, packed: a block for each part.

    The first inputs are split as ``ways`` has it, and ``num_whole`` more are given whole. Any others are not
    given: numbers of iterations, in each of which a function that is not pure is called anew. It stands for
    an array with the axes that are split. ``cuts`` are those of the parts; where there are none, the parts
    are as the first input is cut. A function that is not ``is_safe`` is tied to its parts. ``token``
    distinguishes calls that are equal in all else; empty of a function that is pure.
    """

    is_call: ClassVar[bool] = True
    inputs: tuple[Expr, ...]
    function: Function
    ways: tuple[str, ...]
    arrays: tuple[SplitArray, ...]
    values: tuple[CombinedValue, ...]
    cuts: tuple[tuple[int, ...], ...]
    is_safe: bool
    token: bytes
    num_whole: int

    def __post_init__(self) -> None:
        space = split_space(self.inputs[0].shape, self.ways[0])
        split = [(one.shape, by) for one, by in zip(self.cut, self.ways, strict=True)]
        split += [(one.lengths, one.by) for one in self.arrays]
        for shape, by in split:
            if not shape or split_space(shape, by) != space:
                shapes = ", ".join(f"{shape} by {by}" for shape, by in split)
                raise ShapeError(
                    f"foreach: arrays of shapes {shapes}: the axes that are split must be equally long, so "
                    "that all have the same parts"
                )
        if self.cuts and Grid(self.cuts).shape != space:
            raise ShapeError(f"foreach: cuts {self.cuts} of axes of lengths {space}")
        self.settle(space, np.dtype(np.uint8), False, *self.inputs)
        if self.token:
            self.__dict__["is_made_anew"] = True

    @property
    def cut(self) -> tuple[Expr, ...]:
        """The arrays of which each call is given a block."""
        return self.inputs[: len(self.ways)]

    @property
    def whole(self) -> tuple[Expr, ...]:
        """The arrays of which each call is given all."""
        return self.inputs[len(self.ways) : len(self.ways) + self.num_whole]

    @property
    def outputs(self) -> tuple[Output, ...]:
        """Shape and dtype of each result: of arrays, then of values."""
        arrays = tuple((one.lengths, one.element) for one in self.arrays)
        return arrays + self.value_outputs

    @property
    def value_outputs(self) -> tuple[Output, ...]:
        """Shape and dtype of each value."""
        return tuple((one.lengths, one.element) for one in self.values)

    def made(self, part: Region) -> tuple[MadeArray, ...]:
        """Return what a part's blocks are."""
        return tuple(one.made(part) for one in self.arrays)

    def form_text(self) -> str:
        """Return what it is."""
        return f"{self.function.name}(...)"

    @property
    def tie(self) -> tuple[str, tuple[Expr, ...]] | None:
        """The arrays that are split, where the function is not safe."""
        if self.is_safe:
            return None
        return f"{self.function.name} is tied to its parts, as foreach(safe=False) says", self.cut

    def _text(self, operands: Sequence[str]) -> str:
        return f"{self.function.name}({', '.join(operands)})"


@dataclass(frozen=True, eq=False, repr=False)
class ForeachArray(Expr):
    """One of the arrays that a function has made part by part."""

    call: Expr
    place: int

    def __post_init__(self) -> None:
        made = _call_of(self).arrays[self.place]
        self.settle(made.lengths, made.element, made.is_sparse, self.call)

    @property
    def made_by(self) -> Expr:
        """The call."""
        return self.call

    def _text(self, operands: Sequence[str]) -> str:
        return f"result {self.place} of {operands[0]}"


@dataclass(frozen=True, eq=False, repr=False)
class ForeachValue(Expr):
    """One of the values of a function's parts, combined in the order of the parts, neighbors first."""

    call: Expr
    place: int

    def __post_init__(self) -> None:
        one = _call_of(self).values[self.place]
        self.settle(one.lengths, one.element, False, self.call)

    @property
    def made_by(self) -> Expr:
        """The call."""
        return self.call

    def _text(self, operands: Sequence[str]) -> str:
        return f"{_call_of(self).values[self.place].monoid} of {operands[0]}"


def _call_of(node: ForeachArray | ForeachValue) -> Foreach:
    assert isinstance(node.call, Foreach), "only such a call has these results"
    return node.call


def regular_parts(shape: Shape, by: str, counts: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return cuts into nearly equal parts of the axes that are split."""
    return tuple(
        regular_cuts(length, count) for length, count in zip(split_space(shape, by), counts, strict=True)
    )


# What it means: the whole arrays are one part, unless the parts are fixed.


def _grid_of(node: Foreach) -> Grid:
    return Grid(node.cuts or all_of(node.shape))


@means(Foreach)
def _(node: Foreach, operands: Sequence[Value]) -> Value:
    """Return the packed results of all parts, as objects."""
    grid, found = _grid_of(node), np.empty(_grid_of(node).num_blocks, object)
    for index, part in enumerate(grid.regions()):
        regions = [part_of(one.shape, by, part) for one, by in zip(node.cut, node.ways, strict=True)]
        given = [_cut_out(one, region) for one, region in zip(operands, regions, strict=False)]
        whole = operands[len(given) : len(given) + node.num_whole]
        blocks = [block_of(one) for one in (*given, *whole)]
        place = (index, grid.num_blocks)
        found[index] = call_on_part(
            blocks, node.function, node.made(part), node.value_outputs, place, regions[0]
        )
    return found


def _cut_out(value: Value, region: Region) -> Value:
    cut: Value = cast(Any, value)[tuple(slice(*axis) for axis in region)]
    return cut


@means(ForeachArray)
def _(node: ForeachArray, operands: Sequence[Value]) -> Value:
    """Return the blocks of all parts put together."""
    call, grid = _call_of(node), _grid_of(_call_of(node))
    one = call.arrays[node.place]
    parts = list(grid.regions())
    blocks = [
        array_of_part([packed], call.made(part), call.value_outputs, node.place)
        for packed, part in zip(dense(operands[0]), parts, strict=True)
    ]
    if not node.sparse:
        values = np.zeros(node.shape, node.dtype)
        for block, part in zip(blocks, parts, strict=True):
            values[tuple(slice(*axis) for axis in part_of(node.shape, one.by, part))] = to_numpy(block)
        return values
    rows, columns, data = [], [], []
    for block, part in zip(blocks, parts, strict=True):
        region, matrix = part_of(node.shape, one.by, part), cast(sp.csr_array, value_of(block))
        below, beside = positions(matrix)
        rows.append(below + region[0][0])
        columns.append(beside + region[1][0])
        data.append(matrix.data)
    places = (np.concatenate(rows), np.concatenate(columns))
    entries: Any = (np.concatenate(data), places)
    found: sp.csr_array = sp.csr_array(entries, (node.shape[0], node.shape[1]), dtype=node.dtype)
    found.sort_indices()
    return found


@means(ForeachValue)
def _(node: ForeachValue, operands: Sequence[Value]) -> Value:
    """Return the values of all parts combined."""
    call, grid = _call_of(node), _grid_of(_call_of(node))
    values = [
        value_of_part([packed], call.made(part), call.value_outputs, node.place)
        for packed, part in zip(dense(operands[0]), grid.regions(), strict=True)
    ]
    monoid = call.values[node.place].monoid
    return _in_pairs(values, lambda pair: combine_values(pair, monoid)).values


_One = TypeVar("_One")


def _in_pairs(found: Sequence[_One], combine: Callable[[Sequence[_One]], _One]) -> _One:
    # Neighbors combined, then what they gave, up to one: the order follows from how many there are alone.
    left = list(found)
    while len(left) > 1:
        pairs = [left[place : place + 2] for place in range(0, len(left), 2)]
        left = [combine(pair) if len(pair) > 1 else pair[0] for pair in pairs]
    return left[0]


# How it is made: the function is called where the first array's block is.


def _parts_layout(node: Foreach, writer: PlanWriter, workers: Workers) -> Layout:
    first, by = node.inputs[0], node.ways[0]
    if node.cuts:
        grid = Grid(node.cuts)
        regions = (part_of(first.shape, by, part) for part in grid.regions())
        return Layout(grid, tuple(writer.home_of(first, region) for region in regions))
    layout = writer.registers[first].layout
    if by == BLOCKS:
        return layout
    own = 0 if by == ROWS else first.ndim - 1
    layout = lanes_layout(first, [axis for axis in range(first.ndim) if axis != own], writer, workers)
    return Layout(Grid((layout.grid.cuts[own],)), layout.owners)


@lowers(Foreach)
def _(node: Foreach, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that call the function; what other workers have of its arrays is read from there."""
    layout = _parts_layout(node, writer, workers)
    for block in writer.each_block(node, layout, CALL, node.function.name):
        regions = [part_of(one.shape, by, block.region) for one, by in zip(node.cut, node.ways, strict=True)]
        values = [
            writer.read(block, one, region, block.owner)
            for one, region in zip(node.cut, regions, strict=True)
        ]
        values += [block.read(writer.block(one, all_of(one.shape), block.owner)) for one in node.whole]
        place = (block.number, layout.grid.num_blocks)
        options = (node.function, node.made(block.region), node.value_outputs, place, regions[0])
        block.do(Run(call_on_part, options), *values)
        # What it gives is copied.
        block.num_bytes = _bytes_made(node, block.region, writer)
        block.take(block.num_bytes)


def _bytes_made(node: Foreach, part: Region, writer: PlanWriter) -> int:
    # Of sparse arrays it is guessed that they have as many entries as the fullest that is given.
    given = [(one, by) for one, by in zip(node.cut, node.ways, strict=True) if one.sparse]
    fullest = max((writer.bytes_of(one, part_of(one.shape, by, part)) for one, by in given), default=0)
    sizes = [
        fullest if is_sparse else packed_bytes([(shape, dtype)])
        for shape, dtype, is_sparse in node.made(part)
    ]
    return sum(sizes) + packed_bytes(node.value_outputs)


def _array_cuts(one: SplitArray, cuts: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    # An array's cuts, where the axes that are split are cut so.
    if one.by == BLOCKS:
        return cuts
    others = all_of(one.lengths)
    return (*cuts, *others[1:]) if one.by == ROWS else (*others[:-1], *cuts)


def _kind_of(node: Foreach) -> Kind:
    # What a function gives follows its parts, and so the cuts, unless those of the parts are fixed.
    return PART if node.cuts else CALL


@lowers(ForeachArray)
def _(node: ForeachArray, writer: PlanWriter, workers: Workers) -> None:
    call = _call_of(node)
    source = writer.registers[call]
    writer.note_reuse(call)
    parts = list(source.layout.grid.regions())
    grid = Grid(_array_cuts(call.arrays[node.place], source.layout.grid.cuts))
    for block in writer.each_block(node, Layout(grid, source.layout.owners), _kind_of(call)):
        options = (call.made(parts[block.number]), call.value_outputs, node.place)
        block.do(Run(array_of_part, options), block.read(source.keys[block.number]))


@lowers(ForeachValue)
def _(node: ForeachValue, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that combine what parts give, on their workers first; the order follows the parts."""
    call = _call_of(node)
    source, monoid = writer.registers[call], call.values[node.place].monoid
    writer.note_reuse(call)
    parts, size = list(source.layout.grid.regions()), packed_bytes([(node.shape, node.dtype)])

    def write_value(task: TaskWriter, number: int) -> None:
        options = (call.made(parts[number]), call.value_outputs, node.place)
        task.do(Run(value_of_part, options), task.read(source.keys[number]))

    def write_pair(block: BlockTask, one: Slot, other: Slot) -> Slot:
        task = TaskWriter()
        task.do(Run(combine_values, (monoid,)), task.read(one), task.read(other))
        return writer.part_of(block, task, writer.owner_of(one), CALL, size)

    layout = Layout(Grid(all_of(node.shape)), source.layout.owners[:1])
    for block in writer.each_block(node, layout, _kind_of(call)):
        if len(parts) == 1:
            write_value(block, 0)
            continue
        made: list[Slot] = []
        for number, owner in enumerate(source.layout.owners):
            task = TaskWriter()
            write_value(task, number)
            made.append(writer.part_of(block, task, owner, CALL, size))
        block.take(size)
        halves = (made[: middle(len(made))], made[middle(len(made)) :])
        both = [in_pairs(half, partial(write_pair, block)) for half in halves]
        block.do(Run(combine_values, (monoid,)), *map(block.read, both))

"""Elements put in order, and the ones at places of the order."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from matnb.blocks.formats import Block
from matnb.blocks.grid import Grid, Region
from matnb.blocks.kernels.sorting import ordering
from matnb.blocks.layout import Layout
from matnb.errors import ShapeError
from matnb.expr.nodes import Expr
from matnb.ops.lanes import lanes_layout
from matnb.ops.ranking import RankSearch, sorting_layouts
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.kinds import CUT, MERGE, SORT
from matnb.program.operators import Run
from matnb.program.plan import Slot, Workers
from matnb.program.regions import region_size
from matnb.program.writer import BlockTask, PlanWriter, TaskWriter


@dataclass(frozen=True, eq=False, repr=False)
class Sort(Expr):
    """The elements ascending along an axis, NaN last; dense."""

    plain: ClassVar[bool] = True
    operand: Expr
    axis: int

    def __post_init__(self) -> None:
        self.settle(self.operand.shape, self.operand.dtype, False, self.operand)


@dataclass(frozen=True, eq=False, repr=False)
class ArgSort(Expr):
    """The places along an axis of the elements in ascending order, equal ones as they come."""

    plain: ClassVar[bool] = True
    operand: Expr
    axis: int

    def __post_init__(self) -> None:
        self.settle(self.operand.shape, np.dtype(np.intp), False, self.operand)


@dataclass(frozen=True, eq=False, repr=False)
class Smallest(Expr):
    """The first elements of each row in ascending order, NaN last, or with ``is_places`` their places."""

    plain: ClassVar[bool] = True
    operand: Expr
    count: int
    is_places: bool

    def __post_init__(self) -> None:
        rows, length = self.operand.shape
        if not 0 < self.count <= length:
            raise ShapeError(f"cannot take the {self.count} smallest elements of rows of length {length}")
        dtype = np.dtype(np.intp) if self.is_places else self.operand.dtype
        self.settle((rows, self.count), dtype, False, self.operand)


@dataclass(frozen=True, eq=False, repr=False)
class TopK(Expr):
    """The smallest elements of each row in ascending order, or with ``is_places`` their places.

    Or the largest in descending order. NaN are larger than all numbers; of equal elements the earlier comes
    first.
    """

    plain: ClassVar[bool] = True
    operand: Expr
    count: int
    is_largest: bool
    is_places: bool

    def __post_init__(self) -> None:
        rows, length = self.operand.shape
        if not 0 < self.count <= length:
            raise ShapeError(f"cannot take the first {self.count} elements of rows of length {length}")
        dtype = np.dtype(np.intp) if self.is_places else self.operand.dtype
        self.settle((rows, self.count), dtype, False, self.operand)


@means(Sort)
def _(node: Sort, operands: Sequence[Value]) -> Value:
    """Return the elements in ascending order."""
    return np.sort(dense(operands[0]), axis=node.axis)


@means(ArgSort)
def _(node: ArgSort, operands: Sequence[Value]) -> Value:
    """Return the places of the elements in ascending order."""
    return np.argsort(dense(operands[0]), axis=node.axis, kind="stable")


@means(Smallest)
def _(node: Smallest, operands: Sequence[Value]) -> Value:
    """Return the first elements of each row in ascending order, or their places."""
    values = dense(operands[0])
    found = np.argsort(values, axis=1, kind="stable") if node.is_places else np.sort(values, axis=1)
    return found[:, : node.count]


@means(TopK)
def _(node: TopK, operands: Sequence[Value]) -> Value:
    """Return the first elements of each row, or their places."""
    return firsts_of(dense(operands[0]), node.count, node.is_largest, node.is_places)


def firsts_of(values: np.ndarray, count: int, is_largest: bool, is_places: bool) -> np.ndarray:
    """Return what NumPy's stable sort has first in each row, or last and from there on."""
    if is_largest:  # of equal elements, the first as the row is turned round
        places = values.shape[1] - 1 - np.argsort(values[:, ::-1], axis=1, kind="stable")[:, ::-1]
    else:
        places = np.argsort(values, axis=1, kind="stable")
    return places[:, :count] if is_places else np.take_along_axis(values, places[:, :count], axis=1)


# Elements in order: along lanes where they are whole, else blocks sorted where they are and then merged.

_PLACE_BYTES = 8
_ARG_SORT_BYTES = 24  # an element: keys, and keys with places
Kernel = Callable[..., Block]
SortedBlocks = list[tuple[Slot, int]]  # slots of sorted blocks, and their owners


@lowers(Sort, ArgSort)
def _(node: Sort | ArgSort, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of sorting along an axis."""
    if node.ndim > 1:
        _lower_lanes(node, lanes_layout(node.operand, (node.axis,), writer, workers), writer)
        return
    domain, layout = sorting_layouts(node.operand, writer, workers)
    if domain.grid.num_blocks == 1:
        _lower_lanes(node, domain, writer)
        return
    if isinstance(node, Sort):
        blocks = [write_sorted(node, node.operand, domain, writer)]
    else:
        places, values = write_arg_sorted(node, node.operand, domain, writer)
        blocks = [values, places]
    parts = PartsWriter(node, node.operand, blocks[0], layout.grid.cuts[0], writer)
    kernel = ordering.merged if isinstance(node, Sort) else ordering.merged_places
    for block in writer.each_block(node, layout, SORT):
        parts.merge(block, kernel, blocks)


def _lower_lanes(node: Sort | ArgSort, layout: Layout, writer: PlanWriter) -> None:
    for block in writer.each_block(node, layout, SORT, "along an axis"):
        value = writer.read(block, node.operand, block.region, block.owner, alone=True)
        run = Run(ordering.sort, (node.axis,))
        if isinstance(node, ArgSort):
            run = Run(ordering.arg_sort, (node.axis, 0))
            block.take(_ARG_SORT_BYTES * region_size(block.region))
        block.do(run, value)


@lowers(Smallest)
def _(node: Smallest, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of the smallest elements of rows, which are not cut."""
    layout = lanes_layout(node.operand, (1,), writer, workers)
    out = Layout(Grid((layout.grid.cuts[0], (0, node.count))), layout.owners)
    for block in writer.each_block(node, out, SORT, "the smallest of rows"):
        rows = block.region[0]
        value = writer.read(block, node.operand, (rows, (0, node.operand.shape[1])), block.owner)
        block.do(Run(ordering.smallest, (node.count, node.is_places)), value)
        block.take(2 * _PLACE_BYTES * region_size(block.region))  # elements and places


@lowers(TopK)
def _(node: TopK, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of the first elements of rows: of each block where it is, then of all beside it."""
    layout = writer.registers[node.operand].layout
    rows, columns = (list(pairwise(cuts)) for cuts in layout.grid.cuts)
    out = Layout(Grid((layout.grid.cuts[0], (0, node.count))), layout.owners[:: len(columns)])
    element = node.operand.dtype
    for block in writer.each_block(node, out, SORT, "the first of rows"):
        start = block.number * len(columns)
        owners = layout.owners[start : start + len(columns)]
        where = [(rows[block.number], part) for part in columns]
        found = [_write_firsts(node, *one, writer) for one in zip(where, owners, strict=True)]
        if len(found) > 1:
            name = ("merged firsts", node.operand, node.count, node.is_largest, block.region, block.owner)
            packed = writer.found(name)
            if packed is None:
                task = TaskWriter()
                run = Run(ordering.merged_firsts, (element, node.count, node.is_largest))
                task.do(run, *map(task.read, found))
                num_bytes = _firsts_bytes(node, block.region)
                task.take((2 + 2 * len(found)) * num_bytes)
                packed = writer.add(task, block.owner, MERGE, num_bytes, node, name)
            found = [packed]
        block.do(Run(ordering.part_of_firsts, (element, node.is_places, False)), block.read(found[0]))


def _write_firsts(node: TopK, region: Region, owner: int, writer: PlanWriter) -> Slot:
    # The first elements of the rows of a block, and their places, which are found together.
    operand, (start, stop) = node.operand, region[1]
    count = min(node.count, stop - start)
    name = ("firsts", operand, count, node.is_largest, region, owner)
    found = writer.found(name)
    if found is not None:
        return found
    task = TaskWriter()
    value = writer.read(task, operand, region, owner)
    task.do(Run(ordering.firsts_of_rows, (count, node.is_largest, start)), value)
    num_bytes = _firsts_bytes(node, (region[0], (0, count)))
    is_cast = operand.sparse or operand.dtype.itemsize < _PLACE_BYTES
    task.take(num_bytes + (_PLACE_BYTES * region_size(region) if is_cast else 0))
    return writer.add(task, owner, SORT, num_bytes, node, name)


def _firsts_bytes(node: TopK, region: Region) -> int:
    return ordering.firsts_record(node.operand.dtype).itemsize * region_size(region)


def write_sorted(made: Expr, node: Expr, domain: Layout, writer: PlanWriter) -> SortedBlocks:
    """Write the sorting of each block of a 1-D array, on the way to what is made of it."""
    return _write_blocks(made, node, domain, writer, ordering.sort, lambda start: (0,))


def write_arg_sorted(
    made: Expr, node: Expr, domain: Layout, writer: PlanWriter
) -> tuple[SortedBlocks, SortedBlocks]:
    """Write for each block of a 1-D array the places of its elements in order, and these elements."""
    places = _write_blocks(made, node, domain, writer, ordering.arg_sort, lambda start: (0, start))
    values: SortedBlocks = []
    for region, (key, owner) in zip(domain.grid.regions(), places, strict=True):
        task = TaskWriter()
        block = writer.read(task, node, region, owner, alone=True)
        task.do(Run(ordering.picked, (region[0][0],)), block, task.read(key))
        task.take(_PLACE_BYTES * region_size(region))
        values.append((writer.add(task, owner, SORT, writer.bytes_of(node, region), made), owner))
    return places, values


def _write_blocks(
    made: Expr,
    node: Expr,
    domain: Layout,
    writer: PlanWriter,
    kernel: Kernel,
    parameters: Callable[[int], tuple[Hashable, ...]],
) -> SortedBlocks:
    found: SortedBlocks = []
    for region, owner in zip(domain.grid.regions(), domain.owners, strict=True):
        task = TaskWriter()
        block = writer.read(task, node, region, owner, alone=True)
        task.do(Run(kernel, parameters(region[0][0])), block)
        size = writer.bytes_of(node, region)
        if kernel is ordering.arg_sort:
            task.take(_ARG_SORT_BYTES * region_size(region))
        found.append((writer.add(task, owner, SORT, size, made), owner))
    return found


class PartsWriter:
    """Writes what is done with each part of a 1-D array in order; the pieces of sorted blocks travel to it.

    Parameters
    ----------
    made
        What the parts are.
    node, values
        The array, and its sorted blocks.
    cuts
        Of the array in order.
    piece
        What cuts a piece out of a sorted block, given the splits, and the numbers of the block and the part.
    """

    def __init__(
        self,
        made: Expr,
        node: Expr,
        values: SortedBlocks,
        cuts: tuple[int, ...],
        writer: PlanWriter,
        piece: Kernel = ordering.piece,
    ) -> None:
        self._node, self._cuts, self._writer, self._piece = node, cuts, writer, piece
        self._splits = RankSearch(writer, made, values, node.dtype.itemsize).splits(cuts[1:-1])

    def merge(
        self,
        block: BlockTask,
        kernel: Kernel,
        blocks: Sequence[SortedBlocks],
        parameters: tuple[Hashable, ...] = (),
        reads_splits: bool = False,
    ) -> None:
        """Write what makes a part from its pieces of some blocks, after the splits if it reads them."""
        length = self._cuts[block.number + 1] - self._cuts[block.number]
        pieces = [block.read(self._splits)] if reads_splits else []
        for several in blocks:
            for place, (key, where) in enumerate(several):
                cut = Run(self._piece, (place, block.number))
                if where == block.owner:
                    pieces.append(block.do(cut, block.read(key), block.read(self._splits)))
                    continue
                there = TaskWriter()
                there.do(cut, there.read(key), there.read(self._splits))
                num_bytes = length * 8 // len(several)
                pieces.append(block.read(self._writer.part_of(block, there, where, CUT, num_bytes)))
        block.do(Run(kernel, parameters), *pieces)
        block.kind = MERGE
        # Pairs of pieces are merged first, and elements beside their places.
        each = 2 * (self._node.dtype.itemsize + _PLACE_BYTES * (len(blocks) - 1))
        block.take(length * (each + 2 * _PLACE_BYTES if len(blocks) > 1 else each))

"""Reads and writes at places which arrays of whole numbers list, on any axes, sparse or dense."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from matnb.blocks.grid import Grid, Region, region_shape, regular_cuts
from matnb.blocks.kernels.indexing import pick_parts, put_along, put_parts, put_where, send, take_along, write
from matnb.blocks.layout import Layout, spread
from matnb.errors import DTypeError, IndexingError, ShapeError
from matnb.expr.nodes import Expr, Shape, broadcast_shapes
from matnb.ops.lanes import lanes_layout
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.operators import GatherAt, PutEachAt, Run
from matnb.program.place import SMALL_BYTES
from matnb.program.plan import Workers
from matnb.program.regions import operand_region, region_size
from matnb.program.writer import PlanWriter, TaskWriter


@dataclass(frozen=True, eq=False, repr=False)
class Pick(Expr):
    """What lies at the places that vectors list, one a place for each of as many axes from ``axis`` on.

    One axis is left of those. Rows or columns of a sparse array are sparse, single elements dense.
    """

    plain: ClassVar[bool] = True
    operand: Expr
    inputs: tuple[Expr, ...]
    axis: int

    def __post_init__(self) -> None:
        shape = listed_shape(self.operand, self.inputs, self.axis)
        sparse = self.operand.sparse and len(self.inputs) == 1
        self._settle(shape, self.operand.dtype, sparse, self.operand, *self.inputs)


@dataclass(frozen=True, eq=False, repr=False)
class Place(Expr):
    """An array with a value, which broadcasts, written at places listed as in Pick; the last one stays."""

    plain: ClassVar[bool] = True
    operand: Expr
    value: Expr
    inputs: tuple[Expr, ...]
    axis: int

    def __post_init__(self) -> None:
        _check_value(self.value, self.target)
        own = self.operand
        self._settle(own.shape, own.dtype, own.sparse, own, self.value, *self.inputs)

    @property
    def target(self) -> Shape:
        """The shape of what is written over."""
        return listed_shape(self.operand, self.inputs, self.axis)


@dataclass(frozen=True, eq=False, repr=False)
class PutWhere(Expr):
    """A sparse array with a value, which broadcasts, written where booleans are true; zeros are left out."""

    plain: ClassVar[bool] = True
    operand: Expr
    mask: Expr
    value: Expr

    def __post_init__(self) -> None:
        own = self.operand
        _check_value(self.mask, own.shape)
        _check_value(self.value, own.shape)
        self._settle(own.shape, own.dtype, own.sparse, own, self.mask, self.value)


@dataclass(frozen=True, eq=False, repr=False)
class TakeAlong(Expr):
    """Elements at places on one axis that are listed for each lane of it; dense."""

    plain: ClassVar[bool] = True
    operand: Expr
    index: Expr
    axis: int

    def __post_init__(self) -> None:
        _check_lanes(self.operand, self.index, self.axis)
        self._settle(self.index.shape, self.operand.dtype, False, self.operand, self.index)


@dataclass(frozen=True, eq=False, repr=False)
class PutAlong(Expr):
    """A dense array with values written at places on one axis that are listed for each lane of it."""

    plain: ClassVar[bool] = True
    operand: Expr
    index: Expr
    value: Expr
    axis: int

    def __post_init__(self) -> None:
        _check_lanes(self.operand, self.index, self.axis)
        _check_value(self.value, self.index.shape)
        own = self.operand
        self._settle(own.shape, own.dtype, False, own, self.index, self.value)


def listed_shape(operand: Expr, inputs: tuple[Expr, ...], axis: int) -> Shape:
    """Return the shape of what vectors pick from an array."""
    for index in inputs:
        if index.dtype.kind not in "iu":
            raise IndexingError(
                f"an index of dtype {index.dtype}: give whole numbers, or convert with astype"
            )
        if index.ndim != 1 or index.shape != inputs[0].shape:
            raise ShapeError(f"places of shapes {[one.shape for one in inputs]}: give vectors of one length")
    return (*operand.shape[:axis], *inputs[0].shape, *operand.shape[axis + len(inputs) :])


def _check_value(value: Expr, target: Shape) -> None:
    if broadcast_shapes(value.shape, target, name="assignment") != target:
        raise ShapeError(f"a value of shape {value.shape} does not fit elements of shape {target}")


def _check_lanes(operand: Expr, index: Expr, axis: int) -> None:
    if index.dtype.kind not in "iu":
        raise IndexingError(f"an index of dtype {index.dtype}: give whole numbers, or convert with astype")
    rest = [(*one.shape[:axis], *one.shape[axis + 1 :]) for one in (operand, index)]
    if operand.ndim != index.ndim or rest[0] != rest[1]:
        raise ShapeError(f"places of shape {index.shape} along axis {axis} of an array of {operand.shape}")


@dataclass(frozen=True, eq=False, repr=False)
class PutEach(Expr):
    """A dense array with elements, or rows of its first axis, written at the places that ``index`` lists.

    ``value`` broadcasts to one element, or row, for each of them. Of equal places the last one stays.
    """

    operand: Expr
    index: Expr
    value: Expr

    def __post_init__(self) -> None:
        check_index(self.index, 1)
        target = self.target
        if broadcast_shapes(self.value.shape, target, name="assignment") != target:
            raise ShapeError(f"a value of shape {self.value.shape} does not fit elements of shape {target}")
        self._settle(self.operand.shape, self.operand.dtype, False, self.operand, self.index, self.value)

    @property
    def target(self) -> Shape:
        """The shape of what is written over."""
        return (*self.index.shape, *self.operand.shape[1:])


@dataclass(frozen=True, eq=False, repr=False)
class Gather(Expr):
    """Elements of a dense array, or rows of its first axis, at the places that ``index`` lists."""

    operand: Expr
    index: Expr

    def __post_init__(self) -> None:
        check_index(self.index, 1)
        shape = (*self.index.shape, *self.operand.shape[1:])
        self._settle(shape, self.operand.dtype, False, self.operand, self.index)


def check_index(index: Expr, ndim: int) -> None:
    """Refuse an index that is no whole numbers, or of another number of axes.

    Raises
    ------
    IndexingError, DTypeError
        With what it is.
    """
    if index.dtype.kind not in "iu":
        raise IndexingError(f"an index of dtype {index.dtype}: give whole numbers, or convert with astype")
    if index.ndim != ndim:
        raise DTypeError(f"an index of shape {index.shape} where one of {ndim} axes belongs")


@means(PutEach)
def _(node: PutEach, operands: Sequence[Value]) -> Value:
    array = dense(operands[0]).copy()
    (places,) = _checked(operands[1:2], array.shape, 0)
    values = np.broadcast_to(dense(operands[2]).astype(array.dtype), node.target)
    for place, one in zip(places, values, strict=True):
        array[place] = one  # one after the other, so that the last one stays
    return array


@means(Gather)
def _(node: Gather, operands: Sequence[Value]) -> Value:
    array = dense(operands[0])
    (places,) = _checked(operands[1:], array.shape, 0)
    return np.asarray(array[places])


@means(Pick)
def _(node: Pick, operands: Sequence[Value]) -> Value:
    """Return what is picked."""
    places = _checked(operands[1:], node.operand.shape, node.axis)
    key: tuple[Any, ...] = (*(slice(None),) * node.axis, *places)
    picked = np.asarray(dense(operands[0])[key])
    return sp.csr_array(picked) if node.sparse else picked


@means(Place)
def _(node: Place, operands: Sequence[Value]) -> Value:
    """Return the array with the value written."""
    values = dense(operands[0]).copy()
    places = _checked(operands[2:], node.operand.shape, node.axis)
    key: tuple[Any, ...] = (*(slice(None),) * node.axis, *places)
    values[key] = dense(operands[1])
    return sp.csr_array(values) if node.sparse else values


@means(PutWhere)
def _(node: PutWhere, operands: Sequence[Value]) -> Value:
    """Return the array with the value written."""
    values = np.where(dense(operands[1]), dense(operands[2]), dense(operands[0])).astype(node.dtype)
    return sp.csr_array(values) if node.sparse else values


@means(TakeAlong)
def _(node: TakeAlong, operands: Sequence[Value]) -> Value:
    """Return what is picked."""
    (places,) = _checked(operands[1:], node.operand.shape, node.axis)
    return np.take_along_axis(dense(operands[0]), places, node.axis)


@means(PutAlong)
def _(node: PutAlong, operands: Sequence[Value]) -> Value:
    """Return the array with the values written."""
    values = dense(operands[0]).copy()
    (places,) = _checked(operands[1:2], node.operand.shape, node.axis)
    np.put_along_axis(values, places, dense(operands[2]), node.axis)
    return values


def _checked(given: Sequence[Value], shape: tuple[int, ...], axis: int) -> list[np.ndarray]:
    # Whole numbers, which a user may have counted from the end.
    result = []
    for number, one in enumerate(given):
        index, length = dense(one), shape[axis + number]
        outside = index[np.greater_equal(index, length) | np.less(index, -length)]
        if outside.size:
            raise IndexingError(f"index {outside.flat[0]} on axis {axis + number} of length {length}")
        result.append(index.astype(np.int64))
    return result


# Reads and writes at listed places: each worker picks from its own blocks, and writes into them.

_LISTED_BYTES = 8  # of a listed place on an axis


@lowers(Pick)
def _(node: Pick, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that pick at listed places."""
    _write_pick(node, node.inputs, node.axis, writer, workers)


def _write_pick(
    node: Pick | Gather, inputs: Sequence[Expr], axis: int, writer: PlanWriter, workers: Workers
) -> None:
    """Write the tasks that pick at listed places: a part for each block of the list and worker with blocks.

    An operand that is small is put together for each worker that picks.
    """
    source = writer.registers[node.operand].layout
    last = axis + len(inputs)
    beside = (*source.grid.cuts[:axis], *source.grid.cuts[last:])
    listed, owners_listed = _listed(node, inputs[0], beside, writer, workers)
    lengths = node.operand.shape[axis:last]
    whole = tuple((0, length) for length in lengths)
    is_small = writer.bytes_of(node.operand) <= SMALL_BYTES
    writer.note_reuse(node.operand)
    homes = dict(zip(pairwise(listed), owners_listed, strict=True))
    grid = Grid((*source.grid.cuts[:axis], listed, *source.grid.cuts[last:]))

    def groups_of(region: Region) -> dict[int, list[tuple[Region, str]]]:
        if not is_small:
            return _by_owner(node.operand, region, axis, last, writer)
        home = homes[region[axis]]
        read = (*region[:axis], *whole, *region[axis + 1 :])
        return {home: [(whole, writer.block(node.operand, read, home))]}

    read = [groups_of(region) for region in grid.regions()]
    owners = (
        next(iter(groups)) if len(groups) == 1 else homes[region[axis]]
        for groups, region in zip(read, grid.regions(), strict=True)
    )
    for block in writer.each_block(node, Layout(grid, tuple(owners)), "gather", "by an index"):
        part, groups, size = block.region[axis], read[block.number], block.num_bytes
        block.kind = "pick"
        parts = []
        for owner, blocks in groups.items():
            task = block if len(groups) == 1 else TaskWriter()
            places = [writer.read(task, index, (part,), owner) for index in inputs]
            task.take(2 * size + _LISTED_BYTES * (len(inputs) + 2) * (part[1] - part[0]))
            operator = Run(pick_parts, (len(inputs), axis, lengths, tuple(one for one, _ in blocks)))
            task.do(operator, *places, *(task.read(key) for _, key in blocks))
            if task is not block:
                parts.append(writer.part_of(block, task, owner, "pick", size // len(groups)))
        if parts:
            places = [writer.read(block, index, (part,), block.owner) for index in inputs]
            block.take(_LISTED_BYTES * (len(inputs) + 2) * (part[1] - part[0]))
            found = tuple(tuple(one for one, _ in blocks) for blocks in groups.values())
            operator = Run(put_parts, (len(inputs), axis, lengths, found))
            block.do(operator, *places, *map(block.read, parts))


def _listed(
    node: Expr, index: Expr, beside: Sequence[tuple[int, ...]], writer: PlanWriter, workers: Workers
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    # How the list is cut, and who has each part: as it is, but finer where few places pick much.
    layout = writer.registers[index].layout
    (cuts,) = layout.grid.cuts
    is_one = len(cuts) == 2 and all(len(one) == 2 for one in beside)
    if is_one and writer.bytes_of(node) > SMALL_BYTES:
        cuts = regular_cuts(cuts[-1], workers.slots)
        return cuts, spread(len(cuts) - 1, workers.numbers)
    return cuts, layout.owners


def _by_owner(
    operand: Expr, region: Region, axis: int, last: int, writer: PlanWriter
) -> dict[int, list[tuple[Region, str]]]:
    # The blocks that meet a part of the result, by owner: where they are on the axes of the places, and keys.
    array = writer.registers[operand]
    grid = array.layout.grid
    spans = [range(count) for count in grid.counts[axis:last]]
    before = tuple(cuts.index(start) for cuts, (start, _) in zip(grid.cuts[:axis], region, strict=False))
    behind = tuple(
        cuts.index(start) for cuts, (start, _) in zip(grid.cuts[last:], region[axis + 1 :], strict=True)
    )
    groups: dict[int, list[tuple[Region, str]]] = {}
    for middle in product(*spans):
        place = grid.number((*before, *middle, *behind))
        bounds = grid.region((*before, *middle, *behind))[axis:last]
        groups.setdefault(array.layout.owners[place], []).append((bounds, array.keys[place]))
    return groups


@lowers(Place)
def _(node: Place, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that write at listed places."""
    _write_place(node, node.inputs, node.axis, writer)


def _write_place(node: Place | PutEach, inputs: Sequence[Expr], axis: int, writer: PlanWriter) -> None:
    """Write the tasks that write at listed places: each block gets what belongs in it.

    Of values on other workers only those travel which some block of the worker gets.
    """
    source = writer.registers[node.operand]
    grid, owners = source.layout.grid, source.layout.owners
    last = axis + len(inputs)
    lengths = node.operand.shape[axis:last]
    base = writer.base_of(node)
    writer.note_reuse(node.operand)
    length = inputs[0].shape[0]
    small = sum(map(writer.bytes_of, (*inputs, node.value))) <= SMALL_BYTES
    layout = writer.registers[inputs[0]].layout
    listed = (0, length) if small else layout.grid.cuts[0]
    senders = layout.owners[:1] if small else layout.owners
    along = axis + node.value.ndim - len(node.target)
    is_each = along >= 0 and node.value.shape[along] != 1
    regions: dict[int, dict[Region, list[Region]]] = {}  # by owner, and place beside
    for region, owner in zip(grid.regions(), owners, strict=True):
        beside = (*region[:axis], *region[last:])
        regions.setdefault(owner, {}).setdefault(beside, []).append(region[axis:last])
    for block in writer.each_block(node, source.layout, "put", "by an index"):
        region, owner = block.region, block.owner
        old = block.read(source.keys[block.number])
        beside = (*region[:axis], *region[last:])
        arguments: list[tuple[bool, int]] = []
        sent: list[tuple[Region, ...]] = []
        for turn, (part, sender) in enumerate(zip(pairwise(listed), senders, strict=True)):
            target = operand_region(node.value.shape, (*beside[:axis], part, *beside[axis:]))
            arguments += [writer.read(block, index, (part,), owner) for index in inputs]
            if small or not is_each or sender == owner:
                arguments.append(writer.read(block, node.value, target, owner))
                sent.append(())
                continue
            there = tuple(regions[owner][beside])
            sending = TaskWriter()
            places = [writer.read(sending, index, (part,), sender) for index in inputs]
            value = writer.read(sending, node.value, target, sender)
            sending.take(_LISTED_BYTES * (len(inputs) + 2) * (part[1] - part[0]))
            sending.do(Run(send, (len(inputs), along, lengths, there)), *places, value)
            tag = f"{base}-{turn}-to-{owner}-{'.'.join(str(start) for start, _ in beside)}"
            size = writer.bytes_of(node.value, target) // max(1, len(regions))
            arguments.append(block.read(writer.add(tag, sending, sender, "send", size, node)))
            sent.append(there)
        block.take(2 * _LISTED_BYTES * (len(inputs) + 2) * length + writer.bytes_of(node.value))
        operator = Run(write, (len(inputs), axis, lengths, region[axis:last], tuple(sent)))
        block.do(operator, old, *arguments)


@lowers(PutWhere)
def _(node: PutWhere, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that write where booleans are true, block by block."""
    source = writer.registers[node.operand]
    writer.note_reuse(node.operand)
    for block in writer.each_block(node, source.layout, "put", "by booleans"):
        old = block.read(source.keys[block.number])
        others = [
            writer.read(block, one, operand_region(one.shape, block.region), block.owner)
            for one in (node.mask, node.value)
        ]
        block.do(Run(put_where), old, *others)


@lowers(TakeAlong, PutAlong)
def _(node: TakeAlong | PutAlong, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that go along an axis, which is not cut, lane by lane."""
    heavier = max((node.operand, node.index), key=writer.bytes_of)
    layout = lanes_layout(heavier, [node.axis], writer, workers)
    others = [cuts for axis, cuts in enumerate(layout.grid.cuts) if axis != node.axis]
    own = (0, node.shape[node.axis])
    grid = Grid((*others[: node.axis], own, *others[node.axis :]))
    kernel = take_along if isinstance(node, TakeAlong) else put_along

    def lane(region: Region, length: int) -> Region:
        return (*region[: node.axis], (0, length), *region[node.axis + 1 :])

    for block in writer.each_block(node, Layout(grid, layout.owners), "lanes", f"along axis {node.axis}"):
        values = [
            writer.read(block, one, operand_region(one.shape, lane(block.region, length)), block.owner)
            for one, length in _lanes(node)
        ]
        num_listed = region_size(lane(block.region, node.index.shape[node.axis]))
        block.take(2 * _LISTED_BYTES * num_listed)
        block.do(Run(kernel, (node.axis,)), *values)


def _lanes(node: TakeAlong | PutAlong) -> list[tuple[Expr, int]]:
    # What is read, and its length along the axis.
    length = node.index.shape[node.axis]
    read = [(node.operand, node.operand.shape[node.axis]), (node.index, length)]
    return read if isinstance(node, TakeAlong) else [*read, (node.value, length)]


@lowers(Gather)
def _(node: Gather, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that pick elements, or rows, at listed places."""
    if node.free or _is_small(writer, node.operand):
        _gather(node, writer)
    else:
        _write_pick(node, (node.index,), 0, writer, workers)


@lowers(PutEach)
def _(node: PutEach, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that write elements, or rows, at listed places."""
    if node.free or _is_small(writer, node.index, node.value):
        _put_each(node, writer)
    else:
        _write_place(node, (node.index,), 0, writer)


def _is_small(writer: PlanWriter, *nodes: Expr) -> bool:
    return sum(map(writer.bytes_of, nodes)) <= SMALL_BYTES


def _gather(node: Gather, writer: PlanWriter) -> None:
    # A small operand, or a loop: it is gathered once for each worker, which takes from it at its part of the
    # index, into the same memory each time.
    layout = writer.registers[node.index].layout
    whole = tuple((0, length) for length in node.operand.shape)
    grid = Grid((*layout.grid.cuts, *whole[1:]))
    for block in writer.each_block(node, Layout(grid, layout.owners), "gather", "by an index"):
        operand = block.read(writer.block(node.operand, whole, block.owner))
        block.do(GatherAt(), operand, writer.read(block, node.index, block.region[:1], block.owner))


def _put_each(node: PutEach, writer: PlanWriter) -> None:
    # Few places, or a loop: each block is written where it is, at those of all places that lie in it. What
    # stays the same from one iteration to the next travels once.
    source, length = writer.registers[node.operand], node.operand.shape[0]
    writer.note_reuse(node.operand)
    for block in writer.each_block(node, source.layout, "put", "by an index"):
        region, owner = block.region, block.owner
        old = block.read(source.keys[block.number])
        index = block.read(writer.block(node.index, ((0, node.index.shape[0]),), owner))
        part = ((0, node.index.shape[0]), *region[1:])
        value = writer.read(block, node.value, operand_region(node.value.shape, part), owner)
        block.do(PutEachAt(region[0][0], length), old, index, value)
        # The places as numbers in the block, which of them lie there, and what they get.
        row_bytes = prod(region_shape(region[1:])) * node.dtype.itemsize
        block.take(node.index.size * (32 + row_bytes))

"""Reads and writes at places that whole numbers name: one place, lists on some axes, or along an axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from matnb.blocks.grid import Grid, Region, all_of, region_shape, regular_cuts
from matnb.blocks.kernels.shaping.indexing import (
    only,
    pick,
    pick_parts,
    put_along,
    put_parts,
    put_sparse,
    put_where,
    send,
    steps_within,
    take_along,
    write,
)
from matnb.blocks.layout import Layout, spread
from matnb.errors import DTypeError, IndexingError, ShapeError
from matnb.expr.nodes import Expr, Key, Shape, broadcast_shapes, entries_of_part, key_text
from matnb.ops.lanes import lanes_layout
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.kinds import GATHER, PICK, PUT, READ, REDUCTIONS, SEND, Kind
from matnb.program.operators import GatherAt, PutAt, PutEachAt, Run
from matnb.program.place import SMALL_BYTES
from matnb.program.plan import Slot, Workers
from matnb.program.regions import operand_region, region_size
from matnb.program.writer import PlanWriter, TaskWriter, cut_of

_LANES = Kind("lanes", shown=REDUCTIONS)


@dataclass(frozen=True, eq=False, repr=False)
class Pick(Expr):
    """What lies at places on as many axes from ``axis`` on as there are ``inputs``: whole numbers.

    A number without axes drops its axis. Vectors list places, one a place for each of the axes, of which one
    is left. Rows or columns that are listed of a sparse array are sparse; all else is dense.
    """

    plain: ClassVar[bool] = True
    operand: Expr
    inputs: tuple[Expr, ...]
    axis: int

    def __post_init__(self) -> None:
        shape = picked_shape(self.operand, self.inputs, self.axis)
        sparse = self.operand.sparse and len(self.inputs) == 1 and self.is_listed
        self.settle(shape, self.operand.dtype, sparse, self.operand, *self.inputs)

    @property
    def is_listed(self) -> bool:
        """True when vectors list the places."""
        return self.inputs[0].ndim == 1

    def _entries(self, of: Mapping[Expr, float], row: float) -> float:
        return entries_of_part(self, self.operand, of)

    def _text(self, operands: Sequence[str]) -> str:
        behind = self.operand.ndim - self.axis - len(self.inputs)
        return f"{operands[0]}[{', '.join([*':' * self.axis, *operands[1:], *':' * behind])}]"


@dataclass(frozen=True, eq=False, repr=False)
class Put(Expr):
    """An array with a value, which broadcasts, written at places; a sparse one stays sparse.

    ``key`` has an entry for every axis: a number, a slice with bounds whose step is positive, or None for the
    next of ``inputs``: whole numbers without axes, or vectors that list places as in Pick. Axes with lists
    stand side by side, all others are whole then, and of equal places the last one stays.
    """

    operand: Expr
    value: Expr
    inputs: tuple[Expr, ...]
    key: Key

    def __post_init__(self) -> None:
        target = self.target
        _check_value(self.value, target)
        own = self.operand
        self.settle(own.shape, own.dtype, own.sparse, own, self.value, *self.inputs)

    @property
    def is_listed(self) -> bool:
        """True when vectors list the places."""
        return bool(self.inputs) and self.inputs[0].ndim == 1

    @property
    def axis(self) -> int:
        """The first axis that an input has places on."""
        return self.key.index(None)

    @property
    def target(self) -> Shape:
        """The shape of what is written over."""
        if self.is_listed:
            return picked_shape(self.operand, self.inputs, self.axis)
        for index in self.inputs:
            check_index(index, 0)
        return tuple(
            len(range(part.start, part.stop, part.step)) for part in self.key if isinstance(part, slice)
        )

    def _entries(self, of: Mapping[Expr, float], row: float) -> float:
        return of[self.operand] + of[self.value]

    def _text(self, operands: Sequence[str]) -> str:
        inputs = iter(operands[2:])
        places = [next(inputs) if part is None else key_text(part) for part in self.key]
        return f"{operands[0]} with [{', '.join(places)}] = {operands[1]}"


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
        self.settle(own.shape, own.dtype, own.sparse, own, self.mask, self.value)

    def _entries(self, of: Mapping[Expr, float], row: float) -> float:
        return of[self.operand] + of[self.value]


@dataclass(frozen=True, eq=False, repr=False)
class TakeAlong(Expr):
    """Elements at places on one axis that are listed for each lane of it; dense."""

    plain: ClassVar[bool] = True
    operand: Expr
    index: Expr
    axis: int

    def __post_init__(self) -> None:
        _check_lanes(self.operand, self.index, self.axis)
        self.settle(self.index.shape, self.operand.dtype, False, self.operand, self.index)


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
        self.settle(own.shape, own.dtype, False, own, self.index, self.value)


def picked_shape(operand: Expr, inputs: tuple[Expr, ...], axis: int) -> Shape:
    """Return the shape of what numbers, or vectors, pick from an array."""
    for index in inputs:
        check_whole(index)
        if index.ndim > 1 or index.shape != inputs[0].shape:
            raise ShapeError(
                f"indices have shapes {[one.shape for one in inputs]}: give 1-d arrays of the same length"
            )
    return (*operand.shape[:axis], *inputs[0].shape, *operand.shape[axis + len(inputs) :])


def _check_value(value: Expr, target: Shape) -> None:
    if broadcast_shapes(value.shape, target, name="assignment") != target:
        raise ShapeError(f"a value of shape {value.shape} does not fit elements of shape {target}")


def _check_lanes(operand: Expr, index: Expr, axis: int) -> None:
    check_whole(index)
    rest = [(*one.shape[:axis], *one.shape[axis + 1 :]) for one in (operand, index)]
    if operand.ndim != index.ndim or rest[0] != rest[1]:
        raise ShapeError(
            f"indices of shape {index.shape} along axis {axis} do not fit an array of shape {operand.shape}"
        )


def check_whole(index: Expr) -> None:
    """Refuse an index that is not whole numbers.

    Raises
    ------
    IndexingError
        With its dtype.
    """
    if index.dtype.kind not in "iu":
        raise IndexingError(f"an index has dtype {index.dtype}: give integers, or convert with astype")


def check_index(index: Expr, ndim: int) -> None:
    """Refuse an index that is not whole numbers, or of another number of axes.

    Raises
    ------
    IndexingError, DTypeError
        With what it is.
    """
    check_whole(index)
    if index.ndim != ndim:
        raise DTypeError(f"an index has shape {index.shape}, where {ndim} axes are needed")


@means(Pick)
def _(node: Pick, operands: Sequence[Value]) -> Value:
    """Return what is picked."""
    places = _checked(operands[1:], node.operand.shape, node.axis)
    array = operands[0]
    if sp.issparse(array) and not node.is_listed:
        number = [int(places[0])]
        return dense(array[number, :] if node.axis == 0 else array[:, number]).reshape(node.shape)
    key: tuple[slice | np.ndarray, ...] = (*(slice(None),) * node.axis, *places)
    picked = np.asarray(dense(array)[key])
    return sp.csr_array(picked) if node.sparse else picked


@means(Put)
def _(node: Put, operands: Sequence[Value]) -> Value:
    """Return the array with the value written."""
    array, value = dense(operands[0]).copy(), dense(operands[1])
    axes = [axis for axis, one in enumerate(node.key) if one is None]
    places = {
        axis: _checked([one], array.shape, axis)[0] for axis, one in zip(axes, operands[2:], strict=True)
    }
    # NumPy promises that of equal places the last one stays
    array[(*(places.get(axis, one) for axis, one in enumerate(node.key)), ...)] = value.astype(array.dtype)
    return sp.csr_array(array) if node.sparse else array


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
            raise IndexingError(
                f"index {outside.flat[0]} is out of bounds for axis {axis + number} of length {length}"
            )
        result.append(index.astype(np.int64))
    return result


# Reads and writes at listed places: each worker picks from its own blocks, and writes into them.

_LISTED_BYTES = 8  # of a listed place on an axis


@lowers(Pick)
def _(node: Pick, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that pick at places."""
    is_first = node.axis == 0 and len(node.inputs) == 1 and not node.operand.sparse
    if not node.is_listed:
        _read_at(node, writer)
    elif is_first and (node.free or _is_small(writer, node.operand)):
        _gather(node, writer)
    else:
        _write_pick(node, writer, workers)


def _write_pick(node: Pick, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that pick at listed places: a part for each block of the list and worker with blocks.

    An operand that is small is put together for each worker that picks.
    """
    inputs, axis = node.inputs, node.axis
    source = writer.registers[node.operand].layout
    last = axis + len(inputs)
    beside = (*source.grid.cuts[:axis], *source.grid.cuts[last:])
    listed, owners_listed = _listed(node, inputs[0], beside, writer, workers)
    lengths = node.operand.shape[axis:last]
    whole = all_of(lengths)
    is_small = writer.bytes_of(node.operand) <= SMALL_BYTES
    writer.note_reuse(node.operand)
    homes = dict(zip(pairwise(listed), owners_listed, strict=True))
    grid = Grid((*source.grid.cuts[:axis], listed, *source.grid.cuts[last:]))

    def groups_of(region: Region) -> dict[int, list[tuple[Region, Slot]]]:
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
    for block in writer.each_block(node, Layout(grid, tuple(owners)), GATHER, "by an index"):
        part, groups, size = block.region[axis], read[block.number], block.num_bytes
        block.kind = PICK
        parts = []
        for owner, blocks in groups.items():
            task = block if len(groups) == 1 else TaskWriter()
            places = [writer.read(task, index, (part,), owner) for index in inputs]
            task.take(2 * size + _LISTED_BYTES * (len(inputs) + 2) * (part[1] - part[0]))
            operator = Run(pick_parts, (len(inputs), axis, lengths, tuple(one for one, _ in blocks)))
            task.do(operator, *places, *(task.read(key) for _, key in blocks))
            if task is not block:
                parts.append(writer.part_of(block, task, owner, PICK, size // len(groups)))
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
) -> dict[int, list[tuple[Region, Slot]]]:
    # The blocks that meet a part of the result, by owner: where they are on the axes of the places, and keys.
    array = writer.registers[operand]
    grid = array.layout.grid
    spans = [range(count) for count in grid.counts[axis:last]]
    before = tuple(cuts.index(start) for cuts, (start, _) in zip(grid.cuts[:axis], region, strict=False))
    behind = tuple(
        cuts.index(start) for cuts, (start, _) in zip(grid.cuts[last:], region[axis + 1 :], strict=True)
    )
    groups: dict[int, list[tuple[Region, Slot]]] = {}
    for middle in product(*spans):
        place = grid.number((*before, *middle, *behind))
        bounds = grid.region((*before, *middle, *behind))[axis:last]
        groups.setdefault(array.layout.owners[place], []).append((bounds, array.keys[place]))
    return groups


@lowers(Put)
def _(node: Put, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that write at places."""
    is_first = node.is_listed and node.axis == 0 and len(node.inputs) == 1 and not node.sparse
    if not node.is_listed:
        _write_at(node, writer)
    elif is_first and (node.free or _is_small(writer, *node.inputs, node.value)):
        _put_each(node, writer)
    else:
        _write_listed(node, writer)


def _write_listed(node: Put, writer: PlanWriter) -> None:
    """Write the tasks that write at listed places: each block gets what belongs in it.

    Of values on other workers only those travel which some block of the worker gets.
    """
    inputs, axis = node.inputs, node.axis
    source = writer.registers[node.operand]
    grid, owners = source.layout.grid, source.layout.owners
    last = axis + len(inputs)
    lengths = node.operand.shape[axis:last]
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
    for block in writer.each_block(node, source.layout, PUT, "by an index"):
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
            name = ("sent", node, turn, owner, beside)
            size = writer.bytes_of(node.value, target) // max(1, len(regions))
            arguments.append(block.read(writer.add(sending, sender, SEND, size, node, name)))
            sent.append(there)
        block.take(2 * _LISTED_BYTES * (len(inputs) + 2) * length + writer.bytes_of(node.value))
        operator = Run(write, (len(inputs), axis, lengths, region[axis:last], tuple(sent)))
        block.do(operator, old, *arguments)


@lowers(PutWhere)
def _(node: PutWhere, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that write where booleans are true, block by block."""
    source = writer.registers[node.operand]
    writer.note_reuse(node.operand)
    for block in writer.each_block(node, source.layout, PUT, "by booleans"):
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

    for block in writer.each_block(node, Layout(grid, layout.owners), _LANES, f"along axis {node.axis}"):
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


def _is_small(writer: PlanWriter, *nodes: Expr) -> bool:
    return sum(map(writer.bytes_of, nodes)) <= SMALL_BYTES


def _gather(node: Pick, writer: PlanWriter) -> None:
    # A small operand, or a loop: it is gathered once for each worker, which takes from it at its part of the
    # index, into the same memory each time.
    (index,) = node.inputs
    layout = writer.registers[index].layout
    whole = all_of(node.operand.shape)
    grid = Grid((*layout.grid.cuts, *whole[1:]))
    for block in writer.each_block(node, Layout(grid, layout.owners), GATHER, "by an index"):
        operand = block.read(writer.block(node.operand, whole, block.owner))
        block.do(GatherAt(), operand, writer.read(block, index, block.region[:1], block.owner))


def _put_each(node: Put, writer: PlanWriter) -> None:
    # Few places, or a loop: each block is written where it is, at those of all places that lie in it. What
    # stays the same from one iteration to the next travels once.
    (index,) = node.inputs
    source, length = writer.registers[node.operand], node.operand.shape[0]
    writer.note_reuse(node.operand)
    for block in writer.each_block(node, source.layout, PUT, "by an index"):
        region, owner = block.region, block.owner
        old = block.read(source.keys[block.number])
        listed = block.read(writer.block(index, ((0, index.shape[0]),), owner))
        part = ((0, index.shape[0]), *region[1:])
        value = writer.read(block, node.value, operand_region(node.value.shape, part), owner)
        block.do(PutEachAt(region[0][0], length), old, listed, value)
        # The places as numbers in the block, which of them lie there, and what they get.
        row_bytes = prod(region_shape(region[1:])) * node.dtype.itemsize
        block.take(index.size * (32 + row_bytes))


# At one place, whose number is known only at run time, or at known slices.


def _read_at(node: Pick, writer: PlanWriter) -> None:
    # Each worker looks into its blocks along the axis; what it finds has length 1 there, or 0.
    source, axis, length = writer.registers[node.operand], node.axis, node.operand.shape[node.axis]
    grid = source.layout.grid
    kept = Grid((*grid.cuts[:axis], *grid.cuts[axis + 1 :]))
    writer.note_reuse(node.operand)
    crossed = [  # the blocks on the axis, for each block of the result
        [grid.number((*index[:axis], along, *index[axis:])) for along in range(grid.counts[axis])]
        for index in kept.indices()
    ]
    layout = Layout(kept, tuple(source.layout.owners[numbers[0]] for numbers in crossed))
    for block in writer.each_block(node, layout, READ, f"one place on axis {axis}"):
        held: dict[int, list[tuple[int, Slot]]] = {}  # by owner: where each block begins, and its slot
        for start, place in zip(grid.cuts[axis], crossed[block.number], strict=False):
            held.setdefault(source.layout.owners[place], []).append((start, source.keys[place]))
        parts = []
        for owner, blocks in held.items():
            task = block if len(held) == 1 else TaskWriter()
            found = task.do(
                Run(pick, (axis, tuple(start for start, _ in blocks), length)),
                task.read(writer.block(node.inputs[0], (), owner)),
                *(task.read(key) for _, key in blocks),
                num_bytes=block.num_bytes,
            )
            if task is not block:
                found = block.read(writer.part_of(block, task, owner, READ, block.num_bytes))
            parts.append(found)
        block.do(Run(only, (axis,)), *parts)


def _write_at(node: Put, writer: PlanWriter) -> None:
    # Each block is written where it is; those which no part of the place can lie in are the operand's own.
    source = writer.registers[node.operand]
    key = tuple((one.start, one.stop, one.step) if isinstance(one, slice) else one for one in node.key)
    writer.note_reuse(node.operand)
    for block in writer.each_block(node, source.layout, PUT):
        region, owner = block.region, block.owner
        old = block.read(source.keys[block.number])
        part = _written(node, region)
        if part is None:
            block.do(cut_of(region, region), old)
            continue
        value = writer.read(block, node.value, operand_region(node.value.shape, part), owner)
        numbers = [block.read(writer.block(index, (), owner)) for index in node.inputs]
        parameters = (key, region, node.shape)
        block.do(Run(put_sparse, parameters) if node.sparse else PutAt(*parameters), old, value, *numbers)


def _written(node: Put, region: Region) -> Region | None:
    # The part of the value that a block may get, or None for a block beside the place.
    part = []
    for chosen, (start, stop) in zip(node.key, region, strict=True):
        if isinstance(chosen, slice):
            low, high = steps_within((chosen.start, chosen.stop, chosen.step), start, stop)
            if low >= high:
                return None
            part.append((low, high))
        elif chosen is not None and not start <= chosen < stop:
            return None
    return tuple(part)

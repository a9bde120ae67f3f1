"""Along an axis: what a function makes of the elements up to each one, and differences of neighbors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import prod
from typing import ClassVar

import numpy as np

from matnb.blocks.grid import Grid, Index, Region
from matnb.blocks.kernels.calls import Callee, Function, called, results_of
from matnb.blocks.kernels.reductions.scanning import (
    Associative,
    associated,
    associated_on,
    associated_total,
    carried,
    differences,
    last_of,
    recurred,
    recurred_on,
    recurred_total,
    runs_in_order,
    scanned,
    total_of,
)
from matnb.blocks.layout import Layout
from matnb.expr.nodes import Expr
from matnb.ops.lanes import lanes_layout
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.kinds import REDUCTIONS, SCAN, Kind
from matnb.program.operators import Run
from matnb.program.plan import Slot, Workers
from matnb.program.regions import operand_region
from matnb.program.writer import PlanWriter, TaskWriter

_DIFFERENCES = Kind("differences", follows_cuts=True, shown=REDUCTIONS)


@dataclass(frozen=True, eq=False, repr=False)
class Scan(Expr):
    """``ufunc.accumulate`` along an axis, by an associative ufunc; dense."""

    plain: ClassVar[bool] = True
    operand: Expr
    ufunc: str
    axis: int
    element: np.dtype

    def __post_init__(self) -> None:
        self.settle(self.operand.shape, self.element, False, self.operand)


@dataclass(frozen=True, eq=False, repr=False)
class Differences(Expr):
    """Each element but the first of an axis less the one before it, of truths whether they differ; dense."""

    plain: ClassVar[bool] = True
    operand: Expr
    axis: int

    def __post_init__(self) -> None:
        shape = list(self.operand.shape)
        shape[self.axis] -= 1
        self.settle(tuple(shape), self.operand.dtype, False, self.operand)


@dataclass(frozen=True, eq=False, repr=False)
class AssociativeScan(Expr):
    """One of the arrays that a user's associative function makes of all elements up to each one; dense.

    ``inputs`` are scanned together along ``axis``, from its end if ``is_reversed``; their lengths there are
    the same. The function takes two tuples of arrays, or two arrays if ``is_alone``.
    """

    inputs: tuple[Expr, ...]
    function: Function
    is_alone: bool
    output: int
    axis: int
    is_reversed: bool

    def __post_init__(self) -> None:
        made = self.inputs[self.output]
        self.settle(made.shape, made.dtype, False, *self.inputs)

    def _text(self, operands: Sequence[str]) -> str:
        return f"associative_scan({self.function.name}, {', '.join(operands)})"


@dataclass(frozen=True, eq=False, repr=False)
class Recurrence(Expr):
    """The linear recurrence y[i] = factors[i] y[i - 1] + terms[i] along an axis, from its end if so; dense.

    ``factors`` are of the shape of ``terms``, or one number.
    """

    plain: ClassVar[bool] = True
    factors: Expr
    terms: Expr
    axis: int
    is_reversed: bool

    def __post_init__(self) -> None:
        assert self.factors.shape in ((), self.terms.shape), "as many factors as terms, or one"
        self.settle(self.terms.shape, self.terms.dtype, False, self.factors, self.terms)


@means(Scan)
def _(node: Scan, operands: Sequence[Value]) -> Value:
    """Return what a ufunc makes of the elements up to each one."""
    values = dense(operands[0])
    if values.dtype != node.dtype:
        values = values.astype(node.dtype)
    return np.asarray(getattr(np, node.ufunc).accumulate(values, axis=node.axis, dtype=node.dtype))


@means(AssociativeScan)
def _(node: AssociativeScan, operands: Sequence[Value]) -> Value:
    """Return what the function makes of elements, one after the other."""
    arrays = [np.moveaxis(dense(one), node.axis, 0) for one in operands]
    count = len(arrays[0])
    if not count:
        return np.ascontiguousarray(dense(operands[node.output]))
    places = range(count - 1, -1, -1) if node.is_reversed else range(count)
    found: list[np.ndarray] = []
    so_far: tuple[np.ndarray, ...] = ()
    for place in places:
        one = tuple(np.moveaxis(array[place : place + 1], 0, node.axis) for array in arrays)
        parts = list(one)
        if so_far:
            both = (so_far[0], one[0]) if node.is_alone else (so_far, one)
            parts = results_of(called(node.function, partial(_on_both, both)), node.function.name)
        so_far = tuple(part.astype(array.dtype) for part, array in zip(parts, arrays, strict=True))
        found.append(so_far[node.output])
    return np.concatenate(found[::-1] if node.is_reversed else found, axis=node.axis)


def _on_both(both: tuple[object, object], callee: Callee) -> object:
    return callee(*both)


@means(Recurrence)
def _(node: Recurrence, operands: Sequence[Value]) -> Value:
    """Return the recurrence, element by element."""
    factors, terms = (dense(one) for one in operands)
    f = np.moveaxis(np.broadcast_to(factors, terms.shape), node.axis, 0)
    y = np.array(np.moveaxis(terms, node.axis, 0))
    count = len(y)
    for place in range(1, count):
        at, before = (-place - 1, -place) if node.is_reversed else (place, place - 1)
        y[at] = f[at] * y[before] + y[at]
    return np.ascontiguousarray(np.moveaxis(y, 0, node.axis))


@means(Differences)
def _(node: Differences, operands: Sequence[Value]) -> Value:
    """Return each element less the one before it."""
    return np.diff(dense(operands[0]), axis=node.axis)


# Scans: what comes before each block is made of the totals of the others, then all blocks go on at once.
#
# Those of products of floats go on from block to block, since a block's own product may overflow.
#
# Differences: each block where it is, with the first of what follows it.

_FEW_BYTES = 4096  # of totals: each block reads all those before it
_FEW_BLOCKS = 32


@lowers(Scan)
def _(node: Scan, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of a scan: every block stays where it is."""
    layout = writer.registers[node.operand].layout
    grid, axis = layout.grid, node.axis
    whole = Run(scanned, (node.ufunc, axis, node.dtype))
    in_order = runs_in_order(node.ufunc, node.dtype)
    before = {} if in_order or grid.counts[axis] == 1 else _before(node, writer)
    slots: dict[Index, Slot] = {}
    indices = iter(grid.indices())
    for block in writer.each_block(node, layout, SCAN, node.ufunc):
        index = next(indices)
        slots[index] = block.key
        if in_order and index[axis]:
            previous = (*index[:axis], index[axis] - 1, *index[axis + 1 :])
            last, owner = TaskWriter(), layout.owners[grid.number(previous)]
            last.do(Run(last_of, (axis,)), last.read(slots[previous]))
            size = _line_bytes(node, grid.region(previous), writer)
            before[index] = (writer.part_of(block, last, owner, SCAN, size),)
        value = writer.read(block, node.operand, block.region, block.owner)
        block.do(whole, value, *map(block.read, before.get(index, ())))


def _line_bytes(node: Scan, region: Region, writer: PlanWriter) -> int:
    # Of one element, or line, along the axis.
    start, stop = region[node.axis]
    return writer.bytes_of(node, region) // max(1, stop - start)


def _before(node: Scan, writer: PlanWriter) -> dict[Index, tuple[Slot, ...]]:
    # The keys of what is carried into each block but the first ones.
    layout, axis = writer.registers[node.operand].layout, node.axis
    grid = layout.grid
    count = grid.counts[axis]
    found: dict[Index, tuple[Slot, ...]] = {}
    for index, region, owner in zip(grid.indices(), grid.regions(), layout.owners, strict=True):
        if index[axis] + 1 == count:
            continue
        size = _line_bytes(node, region, writer)
        task = TaskWriter()
        task.do(Run(total_of, (node.ufunc, axis, node.dtype)), writer.read(task, node.operand, region, owner))
        total = writer.add(task, owner, SCAN, size, node)
        earlier = found.get(index, ())
        following = (*index[:axis], index[axis] + 1, *index[axis + 1 :])
        if not earlier or (size <= _FEW_BYTES and count <= _FEW_BLOCKS):
            found[following] = (*earlier, total)
            continue
        task = TaskWriter()
        task.do(Run(carried, (node.ufunc,)), *(task.read(key) for key in (*earlier, total)))
        found[following] = (writer.add(task, owner, SCAN, size, node),)
    return found


# Scans by a user's function and recurrences: as other scans, from lines along the axis that are cut there.

_TILE_BYTES = 2**20  # what a function makes of a tile


@lowers(AssociativeScan)
def _(node: AssociativeScan, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of a scan by a user's function, which goes along the cuts of its first array."""
    dtypes = tuple(one.dtype for one in node.inputs)
    by = Associative(node.function, node.is_alone, node.axis, dtypes)
    shapes = tuple((*one.shape[: node.axis], *one.shape[node.axis + 1 :]) for one in node.inputs)
    total = Run(associated_total, (by, node.is_reversed))
    onward = Run(associated_on, (by, shapes))
    scan = Run(associated, (by, node.is_reversed, node.output, shapes))
    num_bytes = sum(prod(one) * dtype.itemsize + 64 for one, dtype in zip(shapes, dtypes, strict=True))
    _write_carried(node, (total, onward, scan), num_bytes, writer, workers)


@lowers(Recurrence)
def _(node: Recurrence, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of a linear recurrence."""
    total = Run(recurred_total, (node.axis, node.is_reversed))
    scan = Run(recurred, (node.axis, node.is_reversed))
    lines = node.size // max(1, node.shape[node.axis])
    _write_carried(node, (total, Run(recurred_on), scan), 2 * lines * node.dtype.itemsize, writer, workers)


def _write_carried(
    node: AssociativeScan | Recurrence,
    runs: tuple[Run, Run, Run],
    carry_bytes: int,
    writer: PlanWriter,
    workers: Workers,
) -> None:
    # Totals of blocks, what they make one after the other, and the scan of each block after that.
    total, onward, scan = runs
    axis, made = node.axis, node.operands[node.output if isinstance(node, AssociativeScan) else 1]
    source = lanes_layout(made, [one for one in range(node.ndim) if one != axis], writer, workers)
    regions, count = list(source.grid.regions()), source.grid.num_blocks
    along = source.grid.counts[axis]
    width = sum(one.size * one.dtype.itemsize for one in node.operands) // max(1, node.size)
    before: dict[int, Slot] = {}
    # Blocks that lie behind each other along the axis; those beside each other have nothing to do with them.
    if along > 1:
        order = range(count - 1, -1, -1) if node.is_reversed else range(count)
        for last, number in pairwise(order):
            owner, task = source.owners[last], TaskWriter()
            task.do(total, *_read_along(node, regions[last], task, owner, writer))
            task.take(_TILE_BYTES)
            slot = writer.add(task, owner, SCAN, carry_bytes, node)
            if last in before:
                task = TaskWriter()
                task.do(onward, task.read(before[last]), task.read(slot))
                slot = writer.add(task, owner, SCAN, carry_bytes, node)
            before[number] = slot
    for block in writer.each_block(node, source, SCAN, node._text(("...",)).partition("(")[0]):
        number = block.number
        values = _read_along(node, regions[number], block, block.owner, writer)
        carry = [block.read(before[number])] if number in before else []
        block.take(_TILE_BYTES + width * block.num_bytes)
        block.do(scan, *values, *carry)


def _read_along(
    node: AssociativeScan | Recurrence, region: Region, task: TaskWriter, owner: int, writer: PlanWriter
) -> list[tuple[bool, int]]:
    # Of each array what is in a range of the axis; arrays may have other axes beside it.
    found = []
    for one in node.operands:
        same = one.shape == node.shape or not one.shape
        whole = tuple((0, length) for length in one.shape)
        cut = (*whole[: node.axis], region[node.axis], *whole[node.axis + 1 :])
        part = operand_region(one.shape, region) if same else cut
        found.append(writer.read(task, one, part, owner))
    return found


@lowers(Differences)
def _(node: Differences, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of differences: a block reads one element, or row, of the next one."""
    source, axis = writer.registers[node.operand].layout, node.axis
    last = node.shape[axis]
    ends = sorted({0, last, *(cut for cut in source.grid.cuts[axis] if cut < last)})
    grid = Grid((*source.grid.cuts[:axis], tuple(ends), *source.grid.cuts[axis + 1 :]))
    layout = Layout(grid, tuple(writer.home_of(node.operand, region) for region in grid.regions()))
    for block in writer.each_block(node, layout, _DIFFERENCES):
        start, stop = block.region[axis]
        is_cut = stop in source.grid.cuts[axis]
        parts = [(start, stop), (stop, stop + 1)] if is_cut else [(start, stop + 1)]
        read = [
            writer.read(
                block, node.operand, (*block.region[:axis], one, *block.region[axis + 1 :]), block.owner
            )
            for one in parts
        ]
        block.do(Run(differences, (axis,)), *read)

"""Along an axis: what a ufunc makes of the elements up to each one, and differences of neighbors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from matnb.blocks.grid import Grid, Index, Region
from matnb.blocks.kernels.scanning import carried, differences, last_of, runs_in_order, scanned, total_of
from matnb.blocks.layout import Layout
from matnb.expr.nodes import Expr
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.operators import Run
from matnb.program.plan import Slot, Workers
from matnb.program.writer import PlanWriter, TaskWriter


@dataclass(frozen=True, eq=False, repr=False)
class Scan(Expr):
    """``ufunc.accumulate`` along an axis, by an associative ufunc; dense."""

    plain: ClassVar[bool] = True
    operand: Expr
    ufunc: str
    axis: int
    element: np.dtype

    def __post_init__(self) -> None:
        self._settle(self.operand.shape, self.element, False, self.operand)


@dataclass(frozen=True, eq=False, repr=False)
class Differences(Expr):
    """Each element but the first of an axis less the one before it, of truths whether they differ; dense."""

    plain: ClassVar[bool] = True
    operand: Expr
    axis: int

    def __post_init__(self) -> None:
        shape = list(self.operand.shape)
        shape[self.axis] -= 1
        self._settle(tuple(shape), self.operand.dtype, False, self.operand)


@means(Scan)
def _(node: Scan, operands: Sequence[Value]) -> Value:
    """Return what a ufunc makes of the elements up to each one."""
    values = dense(operands[0])
    if values.dtype != node.dtype:
        values = values.astype(node.dtype)
    return np.asarray(getattr(np, node.ufunc).accumulate(values, axis=node.axis, dtype=node.dtype))


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
    for block in writer.each_block(node, layout, "scan", node.ufunc):
        index = next(indices)
        slots[index] = block.key
        if in_order and index[axis]:
            previous = (*index[:axis], index[axis] - 1, *index[axis + 1 :])
            last, owner = TaskWriter(), layout.owners[grid.number(previous)]
            last.do(Run(last_of, (axis,)), last.read(slots[previous]))
            size = _line_bytes(node, grid.region(previous), writer)
            before[index] = (writer.part_of(block, last, owner, "scan", size),)
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
        total = writer.add(task, owner, "scan", size, node)
        earlier = found.get(index, ())
        following = (*index[:axis], index[axis] + 1, *index[axis + 1 :])
        if not earlier or (size <= _FEW_BYTES and count <= _FEW_BLOCKS):
            found[following] = (*earlier, total)
            continue
        task = TaskWriter()
        task.do(Run(carried, (node.ufunc,)), *(task.read(key) for key in (*earlier, total)))
        found[following] = (writer.add(task, owner, "scan", size, node),)
    return found


@lowers(Differences)
def _(node: Differences, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of differences: a block reads one element, or row, of the next one."""
    source, axis = writer.registers[node.operand].layout, node.axis
    last = node.shape[axis]
    ends = sorted({0, last, *(cut for cut in source.grid.cuts[axis] if cut < last)})
    grid = Grid((*source.grid.cuts[:axis], tuple(ends), *source.grid.cuts[axis + 1 :]))
    layout = Layout(grid, tuple(writer.home_of(node.operand, region) for region in grid.regions()))
    for block in writer.each_block(node, layout, "differences"):
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

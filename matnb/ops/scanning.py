"""Along an axis: what a ufunc makes of the elements up to each one, and differences of neighbors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import ClassVar

import numpy as np

from matnb.blocks.grid import Grid, Index
from matnb.blocks.kernels.scanning import carried, differences, last_of, runs_in_order, scanned, total_of
from matnb.blocks.layout import Layout
from matnb.expr.nodes import Expr
from matnb.ops.registry import Value, base_of, dense, lowers, means
from matnb.program.operators import Run
from matnb.program.plan import Workers
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
    base = base_of(node, writer)
    count = grid.counts[axis]
    whole = Run(scanned, (node.ufunc, axis, node.dtype))
    before: dict[Index, tuple[str, ...]] = {}
    in_order = runs_in_order(node.ufunc, node.dtype)
    if count > 1 and not in_order:
        before = _before(node, base, writer)
    keys = []
    for number, (index, region) in enumerate(zip(grid.indices(), grid.regions(), strict=True)):
        task, owner = TaskWriter(), layout.owners[number]
        block = writer.read(task, node.operand, region, owner)
        task.do(whole, block, *(task.read(key) for key in before.get(index, ())))
        size = writer.bytes_of(node, region)
        keys.append(writer.add(task.task(f"{base}-{number}", owner, "scan"), size))
        if in_order and index[axis] + 1 < count:
            last = TaskWriter()
            last.do(Run(last_of, (axis,)), last.read(keys[-1]))
            following = (*index[:axis], index[axis] + 1, *index[axis + 1 :])
            size //= max(1, region[axis][1] - region[axis][0])
            before[following] = (writer.add(last.task(f"{base}-last-{number}", owner, "scan"), size),)
    writer.finish(node, layout, keys, "scan", node.ufunc)


def _before(node: Scan, base: str, writer: PlanWriter) -> dict[Index, tuple[str, ...]]:
    # The keys of what is carried into each block but the first ones.
    layout, axis = writer.registers[node.operand].layout, node.axis
    grid = layout.grid
    count = grid.counts[axis]
    found: dict[Index, tuple[str, ...]] = {}
    for index, region in zip(grid.indices(), grid.regions(), strict=True):
        place, number = index[axis], grid.number(index)
        if place + 1 == count:
            continue
        owner = layout.owners[number]
        size = writer.bytes_of(node, region) // max(1, region[axis][1] - region[axis][0])
        task = TaskWriter()
        block = writer.read(task, node.operand, region, owner)
        task.do(Run(total_of, (node.ufunc, axis, node.dtype)), block)
        total = writer.add(task.task(f"{base}-total-{number}", owner, "scan"), size)
        earlier = found.get(index, ())
        following = (*index[:axis], place + 1, *index[axis + 1 :])
        if not earlier or (size <= _FEW_BYTES and count <= _FEW_BLOCKS):
            found[following] = (*earlier, total)
            continue
        task = TaskWriter()
        task.do(Run(carried, (node.ufunc,)), *(task.read(key) for key in (*earlier, total)))
        found[following] = (writer.add(task.task(f"{base}-carry-{number}", owner, "scan"), size),)
    return found


@lowers(Differences)
def _(node: Differences, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of differences: a block reads one element, or row, of the next one."""
    source, axis = writer.registers[node.operand].layout, node.axis
    last = node.shape[axis]
    ends = sorted({0, last, *(cut for cut in source.grid.cuts[axis] if cut < last)})
    grid = Grid((*source.grid.cuts[:axis], tuple(ends), *source.grid.cuts[axis + 1 :]))
    base = base_of(node, writer)
    keys, owners = [], []
    for number, region in enumerate(product(*(pairwise(one) for one in grid.cuts))):
        stop = region[axis][1]
        is_cut = stop in source.grid.cuts[axis]
        own = (region[axis][0], stop if is_cut else stop + 1)
        task = TaskWriter()
        parts = [own, (stop, stop + 1)] if is_cut else [own]
        first = next(iter(source.grid.overlapping(region)))
        owner = source.owners[source.grid.number(first)]
        read = [
            writer.read(task, node.operand, (*region[:axis], one, *region[axis + 1 :]), owner)
            for one in parts
        ]
        task.do(Run(differences, (axis,)), *read)
        made = task.task(f"{base}-{number}", owner, "differences")
        keys.append(writer.add(made, writer.bytes_of(node, region)))
        owners.append(owner)
    writer.finish(node, Layout(grid, tuple(owners)), keys, "differences", "")

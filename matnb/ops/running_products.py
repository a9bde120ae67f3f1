"""Products of floats over cut axes: each block goes on from what the blocks before it made."""

from __future__ import annotations

from itertools import pairwise, product

from matnb.blocks.grid import Grid, region_shape, regular
from matnb.blocks.kernels.reductions import accumulator_dtype
from matnb.blocks.kernels.running_products import multiplied
from matnb.blocks.layout import Layout
from matnb.expr.nodes import Reduce
from matnb.ops.registry import base_of
from matnb.program.operators import Finish, Run
from matnb.program.regions import region_size
from matnb.program.writer import PlanWriter, TaskWriter


def lower_running_product(node: Reduce, writer: PlanWriter) -> None:
    """Write the tasks of a product whose operand's blocks are there, cut along some of its axes.

    Elements are multiplied in the order of rows, so of all axes only the first one is cut: what lies beside
    it is read by the task that needs it.
    """
    operand, axes = node.operand, node.axes
    grid = writer.registers[operand].layout.grid
    along = next(axis for axis in axes if grid.shape[axis] > 1)
    if grid.counts[along] > 1:
        parts = list(pairwise(grid.cuts[along]))
    else:
        count = min(grid.shape[along], max(grid.counts[axis] for axis in axes))
        parts = list(pairwise(regular((grid.shape[along],), [count]).cuts[0]))
    lanes = [
        [(0, length)] if axis in axes else list(pairwise(cuts))
        for axis, (cuts, length) in enumerate(zip(grid.cuts, grid.shape, strict=True))
    ]
    run = Run(multiplied, (node.operation, axes, accumulator_dtype(node.operation, node.dtype)))
    finish = Finish(node.operation, axes, node.keepdims, node.dtype, None, ())
    base = base_of(node, writer)
    keys, owners = [], []
    for number, lane in enumerate(product(*lanes)):
        line_bytes = node.dtype.itemsize
        for axis, length in enumerate(region_shape(lane)):
            line_bytes *= 1 if axis in axes else length
        before: str | None = None
        for place, part in enumerate(parts):
            region = (*lane[:along], part, *lane[along + 1 :])
            owner = writer.home_of(operand, region)
            task = TaskWriter()
            block = writer.read(task, operand, region, owner)
            task.take(2 * line_bytes + (8 * region_shape(region)[-1] if operand.sparse else 0))
            if not operand.sparse:
                task.take(2 * line_bytes + node.dtype.itemsize * region_size(region))
            total = task.do(run, block, *(() if before is None else (task.read(before),)))
            if place + 1 == len(parts):
                task.do(finish, total)
            before = writer.add(task.task(f"{base}-{number}-{place}", owner, "reduce"), line_bytes)
        assert before is not None, "there are parts"
        keys.append(before)
        owners.append(owner)
    cuts = [
        (0, 1) if axis in axes else one
        for axis, one in enumerate(grid.cuts)
        if node.keepdims or axis not in axes
    ]
    writer.finish(node, Layout(Grid(tuple(cuts)), tuple(owners)), keys, "reduce", node.operation)

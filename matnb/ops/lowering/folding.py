"""One value of each line: each block's share where the block is, then the shares put together."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from matnb.blocks.grid import Grid, Index, Region
from matnb.blocks.kernels.folding import extreme_places, folded, least_and_greatest, share_bytes
from matnb.blocks.layout import Layout
from matnb.ops.lowering.registry import base_of, lowers
from matnb.ops.nodes.folding import Extreme, Fold
from matnb.program.operators import Run
from matnb.program.plan import Workers
from matnb.program.regions import region_size
from matnb.program.writer import PlanWriter, TaskWriter


@lowers(Extreme)
def lower_extreme(node: Extreme, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of the places of extremes."""
    operand = node.operand

    def share(region: Region) -> Run:
        start = tuple(begin for begin, _ in region)
        return Run(least_and_greatest, (node.operation, node.axes, start, operand.shape))

    parameters = (node.operation, node.axes, node.keepdims, operand.dtype)
    of_line = share_bytes((1,), operand.dtype)
    _lower_lines(node, share, Run(extreme_places, parameters), of_line, writer, node.operation)


@lowers(Fold)
def lower_fold(node: Fold, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of a fold."""
    share = Run(folded, (node.ufunc, node.axes, True, node.dtype))
    # What is left has length 1 along the axes, over which a last fold changes nothing.
    parameters: tuple[Hashable, ...] = (node.ufunc, node.axes, node.keepdims, node.dtype)
    _lower_lines(node, lambda _: share, Run(folded, parameters), node.dtype.itemsize, writer, node.ufunc)


def _lower_lines(
    node: Extreme | Fold,
    share_of: Callable[[Region], Run],
    finish: Run,
    line_bytes: int,
    writer: PlanWriter,
    kind: str,
) -> None:
    layout, axes = writer.registers[node.operand].layout, node.axes
    grid = layout.grid
    groups: dict[Index, list[Index]] = {}
    for index in grid.indices():
        kept = tuple(0 if axis in axes else place for axis, place in enumerate(index))
        groups.setdefault(kept, []).append(index)
    base = base_of(node, writer)
    keys, owners = [], []
    for number, (kept, group) in enumerate(groups.items()):
        owner = layout.owners[grid.number(kept)]
        num_lines = 1
        for axis, length in enumerate(grid.block_shape(kept)):
            num_lines *= 1 if axis in axes else length
        task = TaskWriter()
        parts = []
        for place, index in enumerate(group):
            region, where = grid.region(index), layout.owners[grid.number(index)]
            own = task if len(group) == 1 else TaskWriter()
            block = writer.read(own, node.operand, region, where)
            # Copies: along the axis and without NaN, or in another dtype.
            each = 2 * (node.operand.dtype.itemsize + 1) if isinstance(node, Extreme) else node.dtype.itemsize
            own.take(each * region_size(region))
            part = own.do(share_of(region), block, num_bytes=num_lines * line_bytes)
            if own is not task:
                made = own.task(f"{base}-{number}-share-{place}", where, kind)
                part = task.read(writer.add(made, num_lines * line_bytes))
            parts.append(part)
        task.take(max(1, len(parts)) * num_lines * line_bytes)
        task.do(finish, *parts)
        size = num_lines * node.dtype.itemsize
        keys.append(writer.add(task.task(f"{base}-{number}", owner, kind), size))
        owners.append(owner)
    cuts = [
        (0, 1) if axis in axes else one
        for axis, one in enumerate(grid.cuts)
        if node.keepdims or axis not in axes
    ]
    writer.finish(node, Layout(Grid(tuple(cuts)), tuple(owners)), keys, "reduce", kind)

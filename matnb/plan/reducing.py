"""Reductions: each block's share where the block is, then the shares put together."""

from __future__ import annotations

from collections.abc import Sequence

from matnb.blocks.grid import Grid, Index
from matnb.blocks.kernels.reductions import accumulator_dtype
from matnb.blocks.layout import Layout
from matnb.lazy.expr import Elementwise, Expr, Reduce
from matnb.plan.maps import write_fused
from matnb.plan.operators import Finish, Partial
from matnb.plan.tasks import PlanWriter, TaskWriter


def lower_reduction(
    node: Reduce, inside: Sequence[Expr], domain: Layout, tag: str, writer: PlanWriter
) -> None:
    """Write the tasks of a reduction whose operand is computed under the layout ``domain``."""
    base = f"{node.digest.hex()}-{tag}"
    axes = node.axes
    finish = Finish(node.operation, axes, node.keepdims, node.dtype)
    partial = Partial(node.operation, axes, accumulator_dtype(node.operation, node.dtype))
    shares: dict[Index, list[tuple[str, int]]] = {}
    alone = all(domain.grid.counts[axis] == 1 for axis in axes)
    for number, index in enumerate(domain.grid.indices()):
        owner = domain.owners[number]
        task = TaskWriter()
        value = write_fused(task, inside, domain.grid.region(index), owner, writer)
        share = task.do(partial, value)
        if alone:
            task.do(finish, share)
        kept = tuple(0 if axis in axes else place for axis, place in enumerate(index))
        shape = [1 if axis in axes else size for axis, size in enumerate(domain.grid.block_shape(index))]
        num_bytes = 16
        for length in shape:
            num_bytes *= length
        key = writer.add(task.task(f"{base}-share-{number}", owner, f"reduce {node.operation}"), num_bytes)
        shares.setdefault(kept, []).append((key, owner))
    grid = _kept_grid(domain.grid, axes, node.keepdims)
    keys, owners = [], []
    for number, parts in enumerate(shares.values()):
        key, owner = parts[0]
        if not alone:
            task = TaskWriter()
            task.do(finish, *(task.read(part) for part, _ in parts))
            key = writer.add(task.task(f"{base}-{number}", owner, "combine"), 16)
        keys.append(key)
        owners.append(owner)
    names = [one.name for one in inside if isinstance(one, Elementwise)]
    writer.finish(node, Layout(grid, tuple(owners)), keys, "reduce", " ".join([*names, node.operation]))


def _kept_grid(grid: Grid, axes: tuple[int, ...], keepdims: bool) -> Grid:
    cuts = []
    for axis, axis_cuts in enumerate(grid.cuts):
        if axis not in axes:
            cuts.append(axis_cuts)
        elif keepdims:
            cuts.append((0, 1))
    return Grid(tuple(cuts))

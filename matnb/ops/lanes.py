"""Layouts in which some axes are whole in every block, for what goes along them."""

from __future__ import annotations

from collections.abc import Collection

from matnb.blocks.grid import Grid, regular
from matnb.blocks.layout import Layout
from matnb.expr.nodes import Expr
from matnb.program.place import SMALL_BYTES, laid_out
from matnb.program.plan import Workers
from matnb.program.writer import PlanWriter


def lanes_layout(node: Expr, axes: Collection[int], writer: PlanWriter, workers: Workers) -> Layout:
    """Return a layout of an array in registers whose ``axes`` are not cut.

    The other cuts stay. Where none are left of an array worth several blocks, its longest other axis is cut,
    a block a thread; only where all other axes are short is it one block.
    """
    given = writer.registers[node].layout
    if all(len(given.grid.cuts[axis]) == 2 for axis in axes):
        return given
    grid = Grid(
        tuple((0, node.shape[axis]) if axis in axes else one for axis, one in enumerate(given.grid.cuts))
    )
    others = [axis for axis in range(node.ndim) if axis not in axes and node.shape[axis] > 1]
    if grid.num_blocks == 1 and others and writer.bytes_of(node) >= SMALL_BYTES:
        longest = max(others, key=lambda axis: node.shape[axis])
        count = min(node.shape[longest], workers.slots)
        grid = regular(node.shape, [count if axis == longest else 1 for axis in range(node.ndim)])
    return laid_out(grid, workers)

"""Which cuts a new array gets and who owns its blocks, from counts alone, so that plans repeat."""

from __future__ import annotations

from matnb.blocks.grid import Grid, regular, whole
from matnb.blocks.layout import Layout, spread
from matnb.lazy.expr import Expr
from matnb.lazy.holdings import asked_grid
from matnb.plan.plan import Workers

SMALL_BYTES = 256 * 1024  # below this a block's task costs more than it saves by running beside another
LARGE_BYTES = 512 * 10**6  # above this a block is cut further, to keep transfers and copies small


def default_layout(node: Expr, num_bytes: int, workers: Workers) -> Layout:
    """Return the layout of an array that no other array's layout suggests: rows, a block a thread.

    A grid that the person asked for comes first.
    """
    asked = asked_grid(node)
    grid = regular_grid(node, num_bytes, workers) if asked is None else asked
    return Layout(grid, spread(grid.num_blocks, workers.numbers))


def regular_grid(node: Expr, num_bytes: int, workers: Workers) -> Grid:
    """Return nearly equal parts along the first axis, or the longest one where the first is short."""
    if num_bytes < SMALL_BYTES or not node.shape:
        return whole(node.shape)
    count = max(workers.slots, -(-num_bytes // LARGE_BYTES))
    axis = 0
    if node.shape[0] < count:
        axis = max(range(node.ndim), key=lambda one: node.shape[one])
    return regular(node.shape, [count if one == axis else 1 for one in range(node.ndim)])

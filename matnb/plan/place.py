"""Which cuts a new array gets and who owns its blocks, from counts alone, so that plans repeat."""

from __future__ import annotations

from matnb.blocks.grid import Grid, regular, whole
from matnb.blocks.layout import Layout, spread
from matnb.errors import TooLargeError
from matnb.lazy.digest import digest_of
from matnb.lazy.expr import Expr
from matnb.pictures.quantities import bytes_text
from matnb.plan.plan import Workers

SMALL_BYTES = 256 * 1024  # below this a block's task costs more than it saves by running beside another
LARGE_BYTES = 512 * 10**6  # above this a block is cut further, to keep transfers and copies small
MOST_BLOCKS = 10_000  # above this a plan takes longer to write than a person waits


def default_layout(node: Expr, num_bytes: int, workers: Workers) -> Layout:
    """Return the layout of an array that no other array's layout suggests: rows, a block a thread."""
    grid = regular_grid(node, num_bytes, workers)
    return Layout(grid, spread(grid.num_blocks, workers.numbers))


def regular_grid(node: Expr, num_bytes: int, workers: Workers) -> Grid:
    """Return nearly equal parts along the first axis, or the longest one where the first is short."""
    if num_bytes < SMALL_BYTES or not node.shape:
        return whole(node.shape)
    count = max(workers.slots, -(-num_bytes // LARGE_BYTES))
    if count > MOST_BLOCKS:
        raise TooLargeError(
            f"an array of shape {node.shape} {node.dtype} takes {bytes_text(num_bytes)}, in {count:,} "
            f"blocks; a plan may have {MOST_BLOCKS:,}: make the array smaller, or sparse"
        )
    axis = 0
    if node.shape[0] < count:
        axis = max(range(node.ndim), key=lambda one: node.shape[one])
    return regular(node.shape, [count if one == axis else 1 for one in range(node.ndim)])


def layout_tag(layout: Layout) -> str:
    """Return a few characters that tell layouts apart in keys."""
    return digest_of(layout.grid.cuts, layout.owners).hex()[:8]

"""Which cuts a new array gets and who owns its blocks, from counts alone, so that plans repeat."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np

from matnb.blocks.formats import Block, Csr
from matnb.blocks.grid import Grid, regular, whole
from matnb.blocks.layout import LARGE_BYTES, Layout, spread
from matnb.errors import TooLargeError
from matnb.expr.client_data import held
from matnb.expr.nodes import Expr, Load, Transpose
from matnb.io.source import ROW_ENTRIES
from matnb.pictures.quantities import bytes_text
from matnb.program.plan import Workers

SMALL_BYTES = 256 * 1024  # below this a block's task costs more than it saves by running beside another
MOST_BLOCKS = 10_000  # above this a plan takes longer to write than a user waits


def default_layout(node: Expr, num_bytes: int, workers: Workers, given: Block | None = None) -> Layout:
    """Return the layout of an array that no other array's layout suggests: rows, a block a thread.

    Rows of a sparse array are cut in parts of about equal work, where it is known where the entries are: of a
    user's data, ``given`` or held here, and of generated graphs.
    """
    grid = regular_grid(node, num_bytes, workers)
    if node.sparse and grid.counts[0] > 1:
        cuts = _balanced_rows(node, grid.counts[0], given)
        grid = Grid((cuts, *grid.cuts[1:])) if cuts else grid
    return Layout(grid, spread(grid.num_blocks, workers.numbers))


def _balanced_rows(node: Expr, count: int, given: Block | None) -> tuple[int, ...] | None:
    transposed = isinstance(node, Transpose)
    source = node.operand if isinstance(node, Transpose) else node
    if isinstance(source, Load):
        cuts = source.source.row_cuts(count, transposed)
        # A count near that of the rows may leave no row for the last parts.
        return cuts if cuts and all(low < high for low, high in pairwise(cuts)) else None
    block = held(source) if given is None else given
    if not isinstance(block, Csr):
        return None
    length = node.shape[0]
    before = _entries_before_column(block) if transposed else block.pointers.item

    def work(row: int) -> int:
        return before(row) + ROW_ENTRIES * row

    share = work(length) / count
    inner = {bisect_left(range(length + 1), part * share, key=work) for part in range(1, count)}
    return (0, *sorted({min(max(row, 1), length - 1) for row in inner}), length)


def _entries_before_column(block: Csr) -> Callable[[int], int]:
    # How many entries are left of a column, in memory by entries: there may be far more columns than these.
    length = block.shape[1]
    if length > block.nnz:
        return partial(bisect_left, np.sort(block.columns))
    counts = np.append(0, np.cumsum(np.bincount(block.columns, minlength=length)))
    return counts.item


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

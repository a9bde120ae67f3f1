"""Cuts and owners of new arrays, from counts alone, so that plans are reproducible."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from math import exp, log, prod

import numpy as np

from matnb.blocks.formats import Block, Csr
from matnb.blocks.grid import Grid, regular, whole
from matnb.blocks.layout import LARGE_BYTES, Layout, spread
from matnb.errors import TooLargeError
from matnb.expr.client_data import held
from matnb.expr.nodes import Expr, Load, Transpose
from matnb.io.source import ROW_ENTRIES
from matnb.pictures.quantities import bytes_text
from matnb.program.plan import MANY_WORKERS, Workers

SMALL_BYTES = 256 * 1024  # below this a block's task costs more than it saves by running beside another
_BLOCKS_OF_THREAD = 8  # of each thread's share of its worker's memory a block takes no more than such a part
MOST_BLOCKS = 10_000  # above this a plan takes longer to write than a user waits


def default_layout(node: Expr, num_bytes: int, workers: Workers, given: Block | None = None) -> Layout:
    """Return the layout of an array that no other array's layout suggests: see :func:`regular_grid`.

    Rows of a sparse array are cut in parts of about equal work, where it is known where the entries are: of a
    user's data, ``given`` or held here, and of generated graphs.
    """
    grid = regular_grid(node, num_bytes, workers)
    if node.sparse and grid.counts[0] > 1:
        cuts = _balanced_rows(node, grid.counts[0], given)
        grid = Grid((cuts, *grid.cuts[1:])) if cuts else grid
    return laid_out(grid, workers)


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
    """Return nearly equal parts along the first axis, or the longest one where the first is short.

    There are as many as threads, and more where these would be large beside the workers' memory. Many workers
    share all axes of a dense array instead, by their lengths, and get no blocks below ``SMALL_BYTES``; the
    part of each is cut along the first axis for its threads.
    """
    if num_bytes < SMALL_BYTES or not node.shape:
        return whole(node.shape)
    count, shares = workers.slots, (1,) * node.ndim
    if len(workers.numbers) >= MANY_WORKERS:
        count = min(count, num_bytes // SMALL_BYTES)
        if node.ndim > 1 and not node.sparse:
            shares = factored(min(len(workers.numbers), count), node.shape)
    count = max(count, -(-num_bytes // most_block_bytes(workers)))
    if count > MOST_BLOCKS:
        raise TooLargeError(
            f"an array of shape {node.shape} {node.dtype} takes {bytes_text(num_bytes)}, in {count:,} "
            f"blocks; a plan may have {MOST_BLOCKS:,}: make the array smaller, or sparse"
        )
    axis, each = 0, max(1, -(-count // prod(shares)))
    if node.shape[0] < shares[0] * each:
        axis = max(range(node.ndim), key=lambda one: node.shape[one])
    return regular(node.shape, [share * each if one == axis else share for one, share in enumerate(shares)])


def most_block_bytes(workers: Workers) -> int:
    """Return what a block of an array takes at most: each thread has room for a few."""
    if not workers.memory_bytes:
        return LARGE_BYTES
    return min(LARGE_BYTES, max(SMALL_BYTES, workers.memory_bytes // (_BLOCKS_OF_THREAD * workers.slots)))


# How an array is cut where no other array suggests it: its axes share the workers by their lengths.

_MORE = 3.0  # what more parts than wanted count beside how far numbers are from the softmax
SHARPNESS = 8.0  # of the softmax: axes of equal length share alike; one half as long gets no cut


@lru_cache(maxsize=256)
def factored(count: int, lengths: tuple[int, ...], most: tuple[int, ...] = ()) -> tuple[int, ...]:
    """Return whole numbers, one an axis, that multiply to ``count``, or without ``most`` to somewhat more.

    They are near ``count`` to the power of the softmax of the lengths (NumS, section 4), which are measured
    by the longest: of lengths as they are the softmax would be 1 for the longest and 0 for every other.

    Parameters
    ----------
    lengths
        Of the axes; none is cut into more parts than it has elements.
    most
        The largest numbers instead. Where none of them multiply to ``count`` it is as much as can be.
    """
    longest = max(lengths)
    shares = [exp(SHARPNESS * (length / longest - 1)) for length in lengths]
    wanted = [share / sum(shares) * log(count) for share in shares]

    def misfit(counts: tuple[int, ...]) -> tuple[float, tuple[int, ...]]:
        away = sum((log(one) - wish) ** 2 for one, wish in zip(counts, wanted, strict=True))
        return away + _MORE * log(prod(counts) / count), tuple(-one for one in counts)

    if most:
        totals: Iterable[int] = (one for one in range(count, 0, -1) if count % one == 0)
        return next(min(found, key=misfit) for one in totals if (found := list(_products(one, most))))
    found = [counts for one in range(count, count + count // 4 + 1) for counts in _products(one, lengths)]
    return min(found, key=misfit) if found else lengths


def _products(count: int, lengths: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    if len(lengths) == 1:
        if count <= max(1, lengths[0]):
            yield (count,)
        return
    for first in range(1, min(count, max(1, lengths[0])) + 1):
        if count % first == 0:
            yield from ((first, *rest) for rest in _products(count // first, lengths[1:]))


def laid_out(grid: Grid, workers: Workers, ranks: tuple[int, ...] = ()) -> Layout:
    """Return blocks with their owners: machines share the axes as a grid, a machine's workers its blocks.

    On one machine its workers share the axes, where there are many. Arrays that are cut alike lie alike (see
    NumS, section 4). Neighbors lie together, where NumS deals blocks out in turn: so partial sums of
    neighbors are added on one machine, and other cuts of the same axis lie nearly alike.

    With ``ranks`` block k goes to worker number ``ranks[k]`` of all, in order, while there are so many.
    """
    if ranks and max(ranks) < len(workers.numbers):
        return Layout(grid, tuple(workers.numbers[rank] for rank in ranks))
    there = workers.nodes
    if len(there) < 2 or sum(count > 1 for count in grid.counts) < 2:
        return Layout(grid, spread(grid.num_blocks, workers.numbers))
    machines, shares = list(there), machine_grid(grid, len(there), workers.node_grid)
    homes = []
    for index in grid.indices():
        place = 0
        for at, count, share in zip(index, grid.counts, shares, strict=True):
            place = place * share + at * share // count
        homes.append(machines[place])
    totals, met = Counter(homes), dict.fromkeys(machines, 0)
    owners = []
    for machine in homes:
        owners.append(there[machine][met[machine] * len(there[machine]) // totals[machine]])
        met[machine] += 1
    return Layout(grid, tuple(owners))


def machine_grid(grid: Grid, count: int, given: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return how many of ``count`` machines lie along each axis: as ``given`` where the cuts allow it."""
    if given is not None and len(given) == grid.ndim and prod(given) == count and _fits(given, grid.counts):
        return given
    return factored(count, grid.shape, grid.counts)


def _fits(shares: Sequence[int], most: Sequence[int]) -> bool:
    return all(share <= one for share, one in zip(shares, most, strict=True))

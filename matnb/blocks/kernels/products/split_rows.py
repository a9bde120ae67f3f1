"""Products of a single heavy row with dense arrays, made in parts that are put together to the same bits.

``dense_product_loops`` adds a row's products by a binary tree over leaves of 64 entries. A part of the row is
laid out as a block that has a row for each of the fewest nodes of that tree which cover the part: an ordinary
product gives the sums of these nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matnb.blocks.formats import Block, Csr, Dense, cast
from matnb.blocks.kernels.patterns import as_csr
from matnb.blocks.kernels.products.dense_products import unrounded_product
from matnb.blocks.kernels.products.products import multiply
from matnb.blocks.semiring import Semiring, semiring_named
from matnb.blocks.sums import merged, nodes_of

SHARED_ENTRIES = 2**17  # of a block of one row: its product with a vector takes a thread 0.2 to 0.4 ms
_LEAF = 64  # entries of a row that products add in order, under a binary tree over such leaves


def is_shared(num_rows: int, num_entries: int) -> bool:
    """Tell whether the products of a block with dense arrays are worth sharing between all threads."""
    return num_rows == 1 and num_entries >= SHARED_ENTRIES


def num_leaves(num_entries: int) -> int:
    """Return how many leaves the tree over a row's entries has."""
    return -(-num_entries // _LEAF)


def leaves_of(num_entries: int, part: int, count: int) -> tuple[int, int]:
    """Return which leaves of a row are in one of ``count`` nearly equal parts; none where it has too few."""
    leaves = num_leaves(num_entries)
    return leaves * part // count, leaves * (part + 1) // count


def entries_before(leaf: int, num_entries: int) -> int:
    """Return how many of a row's entries lie before a leaf, which may be one past the last."""
    return min(leaf * _LEAF, num_entries)


# What adds shares as the product's semiring adds its terms, with the same kernels: of equal ones the same is
# the least, and what is absent stays so.
_ADDING = {"plus": "plus_times", "min": "min_second", "lor": "lor_second"}


def part_of_row(values: Sequence[Block], part: int, count: int) -> Csr:
    """Return one of several nearly equal parts of a sparse block of one row, which shares its memory.

    It has a row for each node of the tree over the row's entries that the part's share of the sum has.
    """
    (block,) = values
    assert not isinstance(block, Dense)
    row = as_csr(block)
    first, last = leaves_of(row.nnz, part, count)
    starts = [first, *(end for _, end in nodes_of(first, last))]
    ends = np.array([entries_before(leaf, row.nnz) for leaf in starts], np.int32)
    here = slice(ends[0], ends[-1])
    entries = None if row.values is None else row.values[here]
    shape = (len(starts) - 1, row.shape[1])
    return Csr(shape, ends - ends[0], row.columns[here], entries, row.dtype)


def multiply_part(values: Sequence[Block], semiring: str, dtype: np.dtype) -> Dense:
    """Return the share of a part in a row's product with a vector or matrix: a row for each node.

    Parameters
    ----------
    values
        A part of :func:`part_of_row`, of m columns, and a Dense block of shape (m,) or (m, k).
    semiring
        How entries are multiplied and added.
    dtype
        Of the row's product; sums of floats are not rounded to it yet.
    """
    part, right = values
    known = semiring_named(semiring)
    if _follows_tree(known, dtype):
        assert isinstance(part, Csr)
        assert isinstance(right, Dense)
        return Dense(unrounded_product(part, right, dtype))
    share = multiply(part, right, known, dtype)
    assert isinstance(share, Dense)
    return share


def row_of_parts(values: Sequence[Block], semiring: str, dtype: np.dtype) -> Dense:
    """Return a row's product with a vector or matrix, of 1 row, from its shares.

    Parameters
    ----------
    values
        The block of the row, whose number of entries tells how it was cut, then the share of each part.
    semiring, dtype
        Of the product.
    """
    block, *shares = values
    nodes = np.concatenate([share.values for share in shares if isinstance(share, Dense)])
    known = semiring_named(semiring)
    if _follows_tree(known, dtype):
        ranges = [leaves_of(block.nnz, part, len(shares)) for part in range(len(shares))]
        return Dense(cast(merged(nodes, ranges, 0, True), dtype))
    ones = _row_of_ones(len(nodes), dtype)
    row = multiply(ones, Dense(nodes), semiring_named(_ADDING[known.add.name]), dtype)
    assert isinstance(row, Dense)
    return row


def _follows_tree(semiring: Semiring, dtype: np.dtype) -> bool:
    # Other sums are exact in any order: whole numbers wrap, and of the least ones the first counts.
    return semiring.add.name == "plus" and dtype.kind == "f"


def _row_of_ones(length: int, dtype: np.dtype) -> Csr:
    columns = np.arange(length, dtype=np.int32)
    return Csr((1, length), np.array([0, length], np.int32), columns, None, dtype)

"""Where sparse blocks store entries: unions, intersections, transposes of patterns, whatever the values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Csr, Empty, IndexArray, NumericArray, SparseBlock
from matnb.blocks.kernels.merging import merged_pattern, spread
from matnb.blocks.kernels.runs import moved_to_columns

Places = npt.NDArray[np.int64]


def as_csr(block: SparseBlock) -> Csr:
    """Return a sparse block as Csr, an Empty one without entries."""
    if isinstance(block, Csr):
        return block
    nothing = np.empty(0, np.int32)
    return Csr(
        block.shape, np.zeros(block.shape[0] + 1, np.int32), nothing, nothing.astype(block.dtype), block.dtype
    )


def settled(block: Csr) -> SparseBlock:
    """Return the block itself, or Empty when it stores nothing."""
    return block if block.nnz else Empty(block.shape, block.dtype)


def pattern_of(block: SparseBlock, dtype: np.dtype) -> Csr:
    """Return the pattern of a block as a pattern-only block that shares its memory."""
    block = as_csr(block)
    return Csr(block.shape, block.pointers, block.columns, None, dtype)


def rows_of(block: Csr) -> IndexArray:
    """Return the row of each stored entry."""
    return np.repeat(np.arange(block.shape[0], dtype=np.int32), np.diff(block.pointers))


def same_pattern(one: Csr, other: Csr) -> bool:
    """Tell whether two blocks store the same entries: at once if they share the memory of their pattern."""
    return one.shape == other.shape and all(
        a is b or (a.size == b.size and np.array_equal(a, b))
        for a, b in ((one.pointers, other.pointers), (one.columns, other.columns))
    )


def union(one: Csr, other: Csr) -> Csr:
    """Return the pattern of entries that are stored in either block."""
    if same_pattern(one, other):
        return pattern_of(one, one.dtype)
    return pattern_of(merged_pattern(one, other, both=False), one.dtype)


def intersection(one: Csr, other: Csr) -> Csr:
    """Return the pattern of entries that are stored in both blocks."""
    if same_pattern(one, other):
        return pattern_of(one, one.dtype)
    return pattern_of(merged_pattern(one, other, both=True), one.dtype)


def values_at(pattern: Csr, block: SparseBlock) -> NumericArray:
    """Return the values of a block at the entries of a pattern, 0 where the block stores none."""
    block = as_csr(block)
    if same_pattern(pattern, block):
        return block.entries
    return spread(pattern, block, np.ones(1, block.dtype) if block.values is None else block.values)


def transposed_order(block: Csr) -> tuple[IndexArray, IndexArray, IndexArray]:
    """Return row pointers and columns of the transposed block, and where each of its entries was."""
    pointers, columns, order = moved_to_columns(block, np.arange(block.nnz, dtype=np.int32))
    return pointers, columns, order.view(np.int32)

"""Where sparse blocks store entries: unions, intersections, transposes of patterns, whatever the values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Csr, Empty, IndexArray, NumericArray, SparseBlock, narrow
from matnb.blocks.kernels.compiled import compiled, given

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
    """Tell cheaply whether two blocks share the memory of their pattern; False may be wrong."""
    return one.pointers is other.pointers and one.columns is other.columns


def union(one: Csr, other: Csr) -> Csr:
    """Return the pattern of entries that are stored in either block."""
    if same_pattern(one, other):
        return pattern_of(one, one.dtype)
    pointers, columns = _union(
        given(one.pointers), given(one.columns), given(other.pointers), given(other.columns)
    )
    return Csr(one.shape, narrow(pointers), columns, None, one.dtype)


def intersection(one: Csr, other: Csr) -> Csr:
    """Return the pattern of entries that are stored in both blocks."""
    if same_pattern(one, other):
        return pattern_of(one, one.dtype)
    places, _ = meetings(one, other)
    pointers = np.searchsorted(places, one.pointers).astype(np.int32)
    return Csr(one.shape, pointers, one.columns[places], None, one.dtype)


def meetings(one: Csr, other: Csr) -> tuple[Places, Places]:
    """Return where the entries stored in both blocks are, in each of them, in ascending order."""
    return _meetings(*_pattern_arrays(one), *_pattern_arrays(other))


def values_at(pattern: Csr, block: SparseBlock) -> NumericArray:
    """Return the values of a block at the entries of a pattern, 0 where the block stores none."""
    block = as_csr(block)
    if same_pattern(pattern, block):
        return block.entries
    values = np.zeros(pattern.nnz, block.dtype)
    places, sources = meetings(pattern, block)
    values[places] = 1 if block.values is None else block.values[sources]
    return values


def transposed_order(block: Csr) -> tuple[IndexArray, IndexArray, IndexArray]:
    """Return row pointers and columns of the transposed block, and where each of its entries was."""
    return _transposed_order(*_pattern_arrays(block), block.shape[1])


def _pattern_arrays(block: Csr) -> tuple[IndexArray, IndexArray]:
    return given(block.pointers), given(block.columns)


@compiled
def _union(
    pointers_a: IndexArray, columns_a: IndexArray, pointers_b: IndexArray, columns_b: IndexArray
) -> tuple[Places, IndexArray]:
    num_rows = pointers_a.size - 1
    pointers = np.zeros(num_rows + 1, np.int64)
    columns = np.empty(columns_a.size + columns_b.size, np.int32)
    count = 0
    for i in range(num_rows):
        a, end_a, b, end_b = pointers_a[i], pointers_a[i + 1], pointers_b[i], pointers_b[i + 1]
        while a < end_a and b < end_b:
            column_a, column_b = columns_a[a], columns_b[b]
            columns[count] = min(column_a, column_b)
            count += 1
            if column_a <= column_b:
                a += 1
            if column_b <= column_a:
                b += 1
        while a < end_a:
            columns[count] = columns_a[a]
            count, a = count + 1, a + 1
        while b < end_b:
            columns[count] = columns_b[b]
            count, b = count + 1, b + 1
        pointers[i + 1] = count
    return pointers, columns[:count].copy()


@compiled
def _meetings(
    pointers_a: IndexArray, columns_a: IndexArray, pointers_b: IndexArray, columns_b: IndexArray
) -> tuple[Places, Places]:
    most = min(columns_a.size, columns_b.size)
    places_a, places_b = np.empty(most, np.int64), np.empty(most, np.int64)
    count = 0
    for i in range(pointers_a.size - 1):
        a, end_a, b, end_b = pointers_a[i], pointers_a[i + 1], pointers_b[i], pointers_b[i + 1]
        while a < end_a and b < end_b:
            column_a, column_b = columns_a[a], columns_b[b]
            if column_a == column_b:
                places_a[count], places_b[count] = a, b
                count += 1
            if column_a <= column_b:
                a += 1
            if column_b <= column_a:
                b += 1
    return places_a[:count].copy(), places_b[:count].copy()


@compiled
def _transposed_order(
    pointers: IndexArray, columns: IndexArray, num_columns: int
) -> tuple[IndexArray, IndexArray, IndexArray]:
    starts = np.zeros(num_columns + 1, np.int32)
    for place in range(columns.size):
        starts[columns[place] + 1] += 1
    for column in range(num_columns):
        starts[column + 1] += starts[column]
    following = starts[:-1].copy()
    rows, order = np.empty(columns.size, np.int32), np.empty(columns.size, np.int32)
    for i in range(pointers.size - 1):
        for place in range(pointers[i], pointers[i + 1]):
            target = following[columns[place]]
            rows[target], order[target] = i, place
            following[columns[place]] += 1
    return starts, rows, order

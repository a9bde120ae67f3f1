"""Products of a vector with a graph stored by rows: pushed along the rows it touches, or pulled into rows."""

from __future__ import annotations

import numpy as np

from matnb.blocks.formats import Csr, Dense, IndexArray, NumericArray
from matnb.blocks.kernels.compiled import UnsignedArray, compiled, given, unsigned
from matnb.blocks.kernels.dense_products import multiply_rows_into
from matnb.blocks.kernels.transposed_products import scattered
from matnb.blocks.semiring import LOR_LAND, Semiring
from matnb.errors import ShapeError

_ONE = np.uint64(1)
_TRUTH = np.dtype(np.bool_)
# Nanoseconds on one thread, R-MAT 2^18 with 10 to 200,000 indices (AMD EPYC of 2024): an entry pushed takes
# 1.8 (lor_land, pattern) to 5.4 (min_plus), one pulled 0.8 to 1.7, a row looked at in vain 0.2 to 0.3.
_PUSH_INDEX, _PUSH_ENTRY, _PULL_ENTRY, _PULL_ROW = 5.0, 3.5, 1.0, 0.25
# There too: to sort columns takes 12 an entry, to keep and read two vectors over all columns 0.35 a column.
_SORT_ENTRY, _MARK_COLUMN = 12.0, 0.35


def push(
    indices: IndexArray, values: NumericArray | None, A: Csr, semiring: Semiring, dtype: np.dtype
) -> tuple[IndexArray, NumericArray]:
    """Multiply a sparse vector with a matrix, reading only the rows that the vector touches.

    Parameters
    ----------
    indices, values
        Where the vector stores entries, ascending, and what they are; None: all are 1.
    A
        As many rows as the vector is long.
    semiring, dtype
        As for ``multiply``.

    Returns
    -------
    tuple
        Indices, ascending, and values of the entries of ``x @ A``: one wherever a pair met, added in the
        order of the rows. Peak memory besides them: the entries of the touched rows, and for few of them a
        sort of their columns (40 bytes an entry), for many three vectors as long as A is wide.

    Raises
    ------
    ShapeError
        When there are not as many values as indices.
    """
    if values is not None and values.shape != indices.shape:
        raise ShapeError(f"{values.shape} values at {indices.shape} indices: give as many values as indices")
    weights = np.ones(indices.size, dtype) if values is None else values
    rows = _rows(A, indices)
    with np.errstate(all="ignore"):
        if _sorts(rows.nnz, A.shape[1]):
            found, slots = np.unique(rows.columns, return_inverse=True)
            narrow = Csr(
                (indices.size, found.size), rows.pointers, slots.astype(np.int32), rows.values, A.dtype
            )
            return found, scattered(weights, narrow, semiring, dtype)
        pattern = Csr(rows.shape, rows.pointers, rows.columns, None, _TRUTH)
        met = scattered(np.ones(indices.size, _TRUTH), pattern, LOR_LAND, _TRUTH)
        found = np.flatnonzero(met).astype(np.int32)
        if semiring is LOR_LAND and values is None and A.values is None:
            return found, np.ones(found.size, dtype)
        return found, scattered(weights, rows, semiring, dtype)[found]


def pull(A: Csr, x: Dense, wanted: NumericArray | None, semiring: Semiring, out: NumericArray) -> None:
    """Write ``A @ x`` for the wanted rows, where A is the transpose of the graph that ``push`` is given.

    Parameters
    ----------
    wanted
        For each row whether it is written, or None for all. A row of lor_land is read only up to its first
        true pair.
    A, x, semiring, out
        As for ``multiply_into``, which says what memory it takes.
    """
    multiply_rows_into(A, x, semiring, wanted, out)


def prefers_push(num_indices: int, entries_pushed: int, entries_pulled: int, num_rows: int) -> bool:
    """Tell whether to push is cheaper than to pull, from counts alone, so that it repeats.

    Parameters
    ----------
    num_indices
        Entries of the vector.
    entries_pushed
        Entries of the rows it touches.
    entries_pulled
        Entries of the rows that would be pulled, as many as are likely to be read.
    num_rows
        Rows to look at when pulling, wanted or not.
    """
    pushing = _PUSH_INDEX * num_indices + _PUSH_ENTRY * entries_pushed
    return pushing < _PULL_ENTRY * entries_pulled + _PULL_ROW * num_rows


def _sorts(num_entries: int, width: int) -> bool:
    return _SORT_ENTRY * num_entries < _MARK_COLUMN * width


def _rows(A: Csr, indices: IndexArray) -> Csr:
    lengths = A.pointers[indices + 1] - A.pointers[indices]
    pointers = np.zeros(indices.size + 1, np.int32)
    np.cumsum(lengths, out=pointers[1:])
    arrays = unsigned(indices), unsigned(A.pointers), unsigned(pointers)
    columns = np.empty(int(pointers[-1]), np.int32)
    _copy_rows(*arrays, given(A.columns), columns)
    values = None
    if A.values is not None:
        values = np.empty(columns.size, A.dtype)
        _copy_rows(*arrays, given(A.values), values)
    return Csr((indices.size, A.shape[1]), pointers, columns, values, A.dtype)


@compiled
def _copy_rows(
    rows: UnsignedArray,
    pointers: UnsignedArray,
    starts: UnsignedArray,
    source: NumericArray,
    out: NumericArray,
) -> None:
    for k in range(np.uint64(rows.size)):
        target = np.uint64(starts[k])
        for place in range(np.uint64(pointers[rows[k]]), np.uint64(pointers[rows[k] + _ONE])):
            out[target] = source[place]
            target += _ONE

"""The compiled loops that multiply a sparse matrix with a dense one, row by row, and dense least sums."""

from __future__ import annotations

import numpy as np

from matnb.blocks.formats import NumericArray
from matnb.blocks.kernels.compiled import UnsignedArray, compiled

# Inner loops run over whole rows, which are contiguous, so that they become vector instructions; four rows
# are gathered at once, so that the sums are read and written once for four entries. Rows are summed by the
# tree that vector_loops describes, so a matrix of one column gives the bits of a vector. `values` stand
# `apart` 1, or 0 where all are the first of them, as in a pattern.
# Numba computes narrow integers in 64 bits, and only what is made their type again wraps as NumPy's do.

_ONE, _TWO, _THREE, _FOUR = map(np.uint64, (1, 2, 3, 4))
_LEAF = np.uint64(64)


@compiled
def _leaf_of_rows(
    columns: UnsignedArray,
    values: NumericArray,
    apart: np.uint64,
    X: NumericArray,
    place: np.uint64,
    stop: np.uint64,
    total: NumericArray,
) -> None:
    wide = total.dtype.type
    for j in range(total.size):
        total[j] = 0
    while place + _FOUR <= stop:
        a, b = wide(values[place * apart]), wide(values[(place + _ONE) * apart])
        c, d = wide(values[(place + _TWO) * apart]), wide(values[(place + _THREE) * apart])
        row_a, row_b = X[columns[place]], X[columns[place + _ONE]]
        row_c, row_d = X[columns[place + _TWO]], X[columns[place + _THREE]]
        for j in range(total.size):
            total[j] = (((total[j] + a * row_a[j]) + b * row_b[j]) + c * row_c[j]) + d * row_d[j]
        place += _FOUR
    while place < stop:
        a, row_a = wide(values[place * apart]), X[columns[place]]
        for j in range(total.size):
            total[j] += a * row_a[j]
        place += _ONE


@compiled
def _add_row(total: NumericArray, other: NumericArray) -> None:
    for j in range(total.size):
        total[j] += other[j]


@compiled
def plus_times_rows(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    apart: np.uint64,
    X: NumericArray,
    levels: NumericArray,
    out: NumericArray,
) -> None:
    """Write A @ X; ``levels`` is room for rows of the tree, in the dtype of the sums."""
    for i in range(np.uint64(pointers.size) - _ONE):
        place, stop = np.uint64(pointers[i]), np.uint64(pointers[i + _ONE])
        _leaf_of_rows(columns, values, apart, X, place, min(place + _LEAF, stop), levels[0])
        top = count = _ONE
        place += _LEAF
        while place < stop:
            _leaf_of_rows(columns, values, apart, X, place, min(place + _LEAF, stop), levels[top])
            place += _LEAF
            full = count  # as many ones at its end as branches that are whole now
            while full & _ONE:
                top -= _ONE
                _add_row(levels[top], levels[top + _ONE])
                full >>= _ONE
            top += _ONE
            count += _ONE
        while top > _ONE:
            top -= _ONE
            _add_row(levels[top - _ONE], levels[top])
        row, total = out[i], levels[0]
        for j in range(row.size):
            row[j] = total[j]


@compiled
def min_plus_rows(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    apart: np.uint64,
    X: NumericArray,
    identity: NumericArray,
    out: NumericArray,
) -> None:
    """Write the least A[i, k] + X[k, j] over the stored entries of A."""
    narrow = out.dtype.type
    for i in range(np.uint64(pointers.size) - _ONE):
        least = out[i]
        for j in range(least.size):
            least[j] = identity[0]
        for place in range(np.uint64(pointers[i]), np.uint64(pointers[i + _ONE])):
            value, row = values[place * apart], X[columns[place]]
            for j in range(least.size):
                total = narrow(value + row[j])
                # A NaN is kept, as numpy.minimum keeps it: nothing is less, and it differs from itself.
                least[j] = total if total < least[j] or total != total else least[j]


@compiled
def lor_land_rows(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    apart: np.uint64,
    X: NumericArray,
    out: NumericArray,
) -> None:
    """Write whether any A[i, k] and X[k, j] are both true."""
    for i in range(np.uint64(pointers.size) - _ONE):
        found = out[i]
        for j in range(found.size):
            found[j] = False
        for place in range(np.uint64(pointers[i]), np.uint64(pointers[i + _ONE])):
            if values[place * apart]:
                row = X[columns[place]]
                for j in range(found.size):
                    found[j] |= row[j]


@compiled
def min_plus_dense(A: NumericArray, B: NumericArray, out: NumericArray) -> None:
    """Lower ``out`` (count, n, m) to the least A[i, k] + B[k, j] of each of ``count`` products."""
    narrow = out.dtype.type
    for one in range(A.shape[0]):
        for i in range(A.shape[1]):
            least = out[one, i]
            for k in range(A.shape[2]):
                value, row = A[one, i, k], B[one, k]
                for j in range(least.size):
                    total = narrow(value + row[j])
                    least[j] = total if total < least[j] or total != total else least[j]

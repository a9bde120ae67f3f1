"""The compiled loops that multiply the transpose of a sparse matrix, not made: they scatter its rows."""

from __future__ import annotations

import numpy as np

from matnb.blocks.formats import NumericArray
from matnb.blocks.kernels.compiled import UnsignedArray, compiled

# All add to what `out` holds, in the order of the rows, so that results repeat. `values` stand `apart` 1, or
# 0 where all are the first of them, as in a pattern. The dtype of `out` is that of the sums.
# Numba computes narrow integers in 64 bits, and only what is made their type again wraps as NumPy's do.

_ONE = np.uint64(1)


@compiled
def plus_times_vector(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    apart: np.uint64,
    x: NumericArray,
    out: NumericArray,
) -> None:
    """Add A.T @ x to ``out``."""
    wide = out.dtype.type
    for i in range(np.uint64(pointers.size) - _ONE):
        factor = wide(x[i])
        for place in range(np.uint64(pointers[i]), np.uint64(pointers[i + _ONE])):
            out[columns[place]] += values[place * apart] * factor


@compiled
def lor_land_vector(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    apart: np.uint64,
    x: NumericArray,
    out: NumericArray,
) -> None:
    """Set ``out`` where any A[i, k] and x[i] are both true."""
    for i in range(np.uint64(pointers.size) - _ONE):
        if x[i]:
            for place in range(np.uint64(pointers[i]), np.uint64(pointers[i + _ONE])):
                out[columns[place]] |= values[place * apart]


@compiled
def plus_times_matrix(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    apart: np.uint64,
    X: NumericArray,
    out: NumericArray,
) -> None:
    """Add A.T @ X to ``out``."""
    wide = out.dtype.type
    for i in range(np.uint64(pointers.size) - _ONE):
        row = X[i]
        for place in range(np.uint64(pointers[i]), np.uint64(pointers[i + _ONE])):
            value, total = wide(values[place * apart]), out[columns[place]]
            for j in range(row.size):
                total[j] += value * row[j]


@compiled
def min_plus_matrix(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    apart: np.uint64,
    X: NumericArray,
    out: NumericArray,
) -> None:
    """Lower ``out`` to the least A[i, k] + X[i, j] over the stored entries of A."""
    narrow = out.dtype.type
    for i in range(np.uint64(pointers.size) - _ONE):
        row = X[i]
        for place in range(np.uint64(pointers[i]), np.uint64(pointers[i + _ONE])):
            value, least = values[place * apart], out[columns[place]]
            for j in range(row.size):
                total = narrow(value + row[j])
                least[j] = total if total < least[j] or total != total else least[j]


@compiled
def lor_land_matrix(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    apart: np.uint64,
    X: NumericArray,
    out: NumericArray,
) -> None:
    """Set ``out`` where any A[i, k] and X[i, j] are both true."""
    for i in range(np.uint64(pointers.size) - _ONE):
        row = X[i]
        for place in range(np.uint64(pointers[i]), np.uint64(pointers[i + _ONE])):
            if values[place * apart]:
                found = out[columns[place]]
                for j in range(row.size):
                    found[j] |= row[j]

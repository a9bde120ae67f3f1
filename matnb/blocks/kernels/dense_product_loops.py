"""The compiled loops of products with a Dense block: what SciPy and BLAS do not do."""

from __future__ import annotations

import numpy as np

from matnb.blocks.formats import IndexArray, NumericArray
from matnb.blocks.kernels.compiled import compiled

# Sums are written into arrays of the result's dtype before they are compared or added to, because Numba
# computes narrow integers in 64 bits and only a store wraps them as NumPy does.


@compiled
def min_plus_dense(A: NumericArray, B: NumericArray, out: NumericArray) -> None:
    """Lower ``out`` (count, n, m) to the least A[i, k] + B[k, j] of each of ``count`` products."""
    sums = np.empty(B.shape[2], out.dtype)
    for one in range(A.shape[0]):
        for i in range(A.shape[1]):
            for k in range(A.shape[2]):
                for j in range(B.shape[2]):
                    sums[j] = A[one, i, k] + B[one, k, j]
                for j in range(B.shape[2]):
                    if sums[j] < out[one, i, j] or sums[j] != sums[j]:
                        out[one, i, j] = sums[j]


@compiled
def min_plus_csr_dense(
    pointers: IndexArray, columns: IndexArray, values: NumericArray, X: NumericArray, out: NumericArray
) -> None:
    """Lower ``out`` to the least A[i, k] + X[k, j] over the stored entries of A."""
    total = np.empty(1, out.dtype)
    for i in range(pointers.size - 1):
        for place in range(pointers[i], pointers[i + 1]):
            for j in range(X.shape[1]):
                total[0] = values[place] + X[columns[place], j]
                if total[0] < out[i, j] or total[0] != total[0]:
                    out[i, j] = total[0]


@compiled
def min_plus_dense_csr(
    X: NumericArray, pointers: IndexArray, columns: IndexArray, values: NumericArray, out: NumericArray
) -> None:
    """Lower ``out`` to the least X[i, k] + A[k, j] over the stored entries of A."""
    total = np.empty(1, out.dtype)
    for i in range(X.shape[0]):
        for k in range(pointers.size - 1):
            for place in range(pointers[k], pointers[k + 1]):
                total[0] = X[i, k] + values[place]
                if total[0] < out[i, columns[place]] or total[0] != total[0]:
                    out[i, columns[place]] = total[0]


@compiled
def pattern_vector(pointers: IndexArray, columns: IndexArray, x: NumericArray, out: NumericArray) -> None:
    """Add to ``out`` the product of a matrix of ones at a pattern with a vector."""
    for i in range(pointers.size - 1):
        total = out[i]
        for place in range(pointers[i], pointers[i + 1]):
            total += x[columns[place]]
        out[i] = total


@compiled
def pattern_dense(pointers: IndexArray, columns: IndexArray, X: NumericArray, out: NumericArray) -> None:
    """Add to ``out`` the product of a matrix of ones at a pattern with a matrix."""
    for i in range(pointers.size - 1):
        total = out[i]
        for place in range(pointers[i], pointers[i + 1]):
            row = X[columns[place]]
            for j in range(row.size):
                total[j] += row[j]


@compiled
def dense_pattern(X: NumericArray, pointers: IndexArray, columns: IndexArray, out: NumericArray) -> None:
    """Add to ``out`` the product of a matrix with a matrix of ones at a pattern."""
    for i in range(X.shape[0]):
        for k in range(pointers.size - 1):
            for place in range(pointers[k], pointers[k + 1]):
                out[i, columns[place]] += X[i, k]

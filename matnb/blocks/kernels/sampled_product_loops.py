"""The compiled loops of products with a Dense block, computed at the entries of a mask only."""

from __future__ import annotations

import numpy as np

from matnb.blocks.formats import NumericArray
from matnb.blocks.kernels.compiled import UnsignedArray, compiled
from matnb.blocks.kernels.instructions import prefetch
from matnb.blocks.kernels.orders import greatest, is_less, least
from matnb.blocks.kernels.sparse_product_loops import MIN_PLUS, PAIR, PLUS_TIMES

# Rows of the turned operand are asked for this many entries before they are used: R-MAT 2^18, rank 32, takes
# 60 ms instead of 100 (4 ahead: 79, 8: 69, 32: 73).
_AHEAD = np.uint64(16)
_CACHE_LINE_BYTES = np.uint64(64)


@compiled
def sampled_dense(
    code: int,
    X: NumericArray,
    turned: NumericArray,
    pointers_m: UnsignedArray,
    columns_m: UnsignedArray,
    sums: NumericArray,
) -> None:
    """Write X @ Y, with Y given transposed, at the entries of a mask, where ``sums`` holds the identity.

    Products are added in eight lanes, and these at the end: what an entry is depends on its operands alone.
    """
    length, last = np.uint64(X.shape[1]), np.uint64(columns_m.size - 1)
    whole = length // np.uint64(8)
    line = _CACHE_LINE_BYTES // np.uint64(sums.itemsize)
    total = np.zeros(1, sums.dtype)
    zero = total[0]
    for i in range(pointers_m.size - 1):
        x = X[i]
        for entry in range(pointers_m[i], pointers_m[i + 1]):
            y = turned[columns_m[entry]]
            if code == PLUS_TIMES:
                following = np.uint64(columns_m[min(entry + _AHEAD, last)]) * length
                for place in range(following, following + length, line):
                    prefetch(turned, np.uint64(place))
                s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = zero
                for eight in range(whole):
                    k = eight * np.uint64(8)
                    s0 += x[k] * y[k]
                    s1 += x[k + np.uint64(1)] * y[k + np.uint64(1)]
                    s2 += x[k + np.uint64(2)] * y[k + np.uint64(2)]
                    s3 += x[k + np.uint64(3)] * y[k + np.uint64(3)]
                    s4 += x[k + np.uint64(4)] * y[k + np.uint64(4)]
                    s5 += x[k + np.uint64(5)] * y[k + np.uint64(5)]
                    s6 += x[k + np.uint64(6)] * y[k + np.uint64(6)]
                    s7 += x[k + np.uint64(7)] * y[k + np.uint64(7)]
                total[0] = ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))
                for one in range(whole * np.uint64(8), length):
                    total[0] += x[one] * y[one]
                sums[entry] = total[0]
            elif code == MIN_PLUS:
                for one in range(length):
                    total[0] = x[one] + y[one]
                    if is_less(total[0], sums[entry]) or total[0] != total[0]:
                        sums[entry] = total[0]
            elif code == PAIR:
                sums[entry] = length
            else:
                for one in range(length):
                    sums[entry] = greatest(sums[entry], least(x[one], y[one]))


@compiled
def sampled_csr_dense(
    code: int,
    pointers_a: UnsignedArray,
    columns_a: UnsignedArray,
    values_a: NumericArray,
    X: NumericArray,
    pointers_m: UnsignedArray,
    columns_m: UnsignedArray,
    sums: NumericArray,
) -> None:
    """Add the pairs of A @ X, A sparse, to ``sums`` at the entries of a mask."""
    total = np.empty(1, sums.dtype)
    for i in range(pointers_a.size - 1):
        start, stop = pointers_m[i], pointers_m[i + 1]
        if start == stop:
            continue
        for a in range(pointers_a[i], pointers_a[i + 1]):
            if code == PAIR:
                for entry in range(start, stop):
                    sums[entry] += 1
                continue
            value, x = values_a[a], X[columns_a[a]]
            if code == PLUS_TIMES:
                for entry in range(start, stop):
                    sums[entry] += value * x[columns_m[entry]]
            elif code == MIN_PLUS:
                for entry in range(start, stop):
                    total[0] = value + x[columns_m[entry]]
                    if is_less(total[0], sums[entry]) or total[0] != total[0]:
                        sums[entry] = total[0]
            else:
                for entry in range(start, stop):
                    sums[entry] = greatest(sums[entry], least(value, x[columns_m[entry]]))


@compiled
def sampled_dense_csr(
    code: int,
    X: NumericArray,
    pointers_t: UnsignedArray,
    columns_t: UnsignedArray,
    values_t: NumericArray,
    pointers_m: UnsignedArray,
    columns_m: UnsignedArray,
    sums: NumericArray,
) -> None:
    """Add the pairs of X @ A, given A sparse and transposed, to ``sums`` at the entries of a mask."""
    total = np.empty(1, sums.dtype)
    for i in range(pointers_m.size - 1):
        x = X[i]
        for entry in range(pointers_m[i], pointers_m[i + 1]):
            j = columns_m[entry]
            first, end = pointers_t[j], pointers_t[j + np.uint32(1)]
            if code == PLUS_TIMES:
                for t in range(first, end):
                    sums[entry] += x[columns_t[t]] * values_t[t]
            elif code == MIN_PLUS:
                for t in range(first, end):
                    total[0] = x[columns_t[t]] + values_t[t]
                    if is_less(total[0], sums[entry]) or total[0] != total[0]:
                        sums[entry] = total[0]
            elif code == PAIR:
                sums[entry] += end - first
            else:
                for t in range(first, end):
                    sums[entry] = greatest(sums[entry], least(x[columns_t[t]], values_t[t]))

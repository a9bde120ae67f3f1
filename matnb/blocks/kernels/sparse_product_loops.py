"""The compiled loops of products of two sparse blocks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import IndexArray, NumericArray
from matnb.blocks.kernels.compiled import compiled

# Sums are written into arrays of the result's dtype before they are compared or added to, because Numba
# computes narrow integers in 64 bits and only a store wraps them as NumPy does.


@compiled
def product_pattern(
    pointers_a: IndexArray,
    columns_a: IndexArray,
    pointers_b: IndexArray,
    columns_b: IndexArray,
    width: int,
) -> tuple[npt.NDArray[np.int64], IndexArray]:
    """Return pointers and sorted columns of A @ B: an entry for every place where at least one pair meets."""
    num_rows = pointers_a.size - 1
    pointers = np.zeros(num_rows + 1, np.int64)
    seen_in = np.full(width, -1, np.int32)
    for i in range(num_rows):
        count = pointers[i]
        for a in range(pointers_a[i], pointers_a[i + 1]):
            k = columns_a[a]
            for b in range(pointers_b[k], pointers_b[k + 1]):
                if seen_in[columns_b[b]] != i:
                    seen_in[columns_b[b]] = i
                    count += 1
        pointers[i + 1] = count
    columns = np.empty(pointers[num_rows], np.int32)
    seen_in[:] = -1
    for i in range(num_rows):
        count = pointers[i]
        for a in range(pointers_a[i], pointers_a[i + 1]):
            k = columns_a[a]
            for b in range(pointers_b[k], pointers_b[k + 1]):
                if seen_in[columns_b[b]] != i:
                    seen_in[columns_b[b]] = i
                    columns[count] = columns_b[b]
                    count += 1
        if 16 * (count - pointers[i]) < width:
            columns[pointers[i] : count].sort()
            continue
        count = pointers[i]  # in a row this full, looking at every column is faster than sorting
        for column in range(width):
            if seen_in[column] == i:
                columns[count] = column
                count += 1
    return pointers, columns


@compiled
def plus_times_values(
    pointers_a: IndexArray,
    columns_a: IndexArray,
    values_a: NumericArray,
    pointers_b: IndexArray,
    columns_b: IndexArray,
    values_b: NumericArray,
    pointers: IndexArray,
    columns: IndexArray,
    row: NumericArray,
    out: NumericArray,
) -> None:
    """Fill ``out`` with the values of A @ B at a known pattern; ``row`` is a row of zeros to work in."""
    for i in range(pointers_a.size - 1):
        for a in range(pointers_a[i], pointers_a[i + 1]):
            k = columns_a[a]
            for b in range(pointers_b[k], pointers_b[k + 1]):
                row[columns_b[b]] += values_a[a] * values_b[b]
        for place in range(pointers[i], pointers[i + 1]):
            out[place] = row[columns[place]]
            row[columns[place]] = 0


@compiled
def min_plus_values(
    pointers_a: IndexArray,
    columns_a: IndexArray,
    values_a: NumericArray,
    pointers_b: IndexArray,
    columns_b: IndexArray,
    values_b: NumericArray,
    pointers: IndexArray,
    columns: IndexArray,
    row: NumericArray,
    out: NumericArray,
) -> None:
    """Fill ``out`` with the least sums at a known pattern; ``row`` is a row of identities to work in."""
    total, identity = np.empty(1, row.dtype), row[:1].copy()
    for i in range(pointers_a.size - 1):
        for a in range(pointers_a[i], pointers_a[i + 1]):
            k = columns_a[a]
            for b in range(pointers_b[k], pointers_b[k + 1]):
                total[0] = values_a[a] + values_b[b]
                # A NaN is kept, as numpy.minimum keeps it: nothing is less, and it differs from itself.
                if total[0] < row[columns_b[b]] or total[0] != total[0]:
                    row[columns_b[b]] = total[0]
        for place in range(pointers[i], pointers[i + 1]):
            out[place] = row[columns[place]]
            row[columns[place]] = identity[0]

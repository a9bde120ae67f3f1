"""The compiled loops that take a vector along the rows of a graph, past the rows from where nothing goes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import NumericArray
from matnb.blocks.kernels.compiled import UnsignedArray, compiled

# `x` has an element a row; where it is `identity[0]`, of its own dtype, the row is not read. `values` stand
# `apart` 1, or 0 where one stands for all, and keep their dtype: a matrix is not converted for a few rows.
# `bits` are those of the columns still to be found, the lowest first: so few bytes that they stay in a
# processor's cache where a vector over the columns does not.

Bits = npt.NDArray[np.uint8]
_ONE = np.uint64(1)
_THREE, _SEVEN = np.uint64(3), np.uint64(7)


@compiled
def list_rows(
    pointers: UnsignedArray,
    x: NumericArray,
    identity: NumericArray,
    before: NumericArray,
    rows: UnsignedArray,
) -> tuple[np.int64, np.int64, bool]:
    """List the rows that are read; return how many, their entries, and whether x never falls along them.

    ``before`` holds the element read last, from piece to piece of a vector; ``rows`` is as long as x.
    """
    count, none = np.uint64(0), identity[0]
    for i in range(np.uint64(x.size)):  # without a branch: which rows are read is past predicting
        rows[count] = i
        count += np.uint64(x[i] != none)
    entries, rises, last = np.int64(0), True, before[0]
    for k in range(count):
        row = np.uint64(rows[k])
        entries += np.int64(pointers[row + _ONE]) - np.int64(pointers[row])
        rises = rises and x[row] >= last
        last = x[row]
    before[0] = last
    return np.int64(count), entries, rises


@compiled
def mark(
    rows: UnsignedArray,
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    apart: np.uint64,
    bits: Bits,
) -> None:
    """Clear the bits of columns where an entry of the rows is not 0."""
    # Whether a bit is set is past predicting: to clear each is faster (R-MAT 2^20: 18 ms against 27).
    for k in range(np.uint64(rows.size)):
        i = np.uint64(rows[k])
        for place in range(np.uint64(pointers[i]), np.uint64(pointers[i + _ONE])):
            column, is_met = np.uint64(columns[place]), np.uint64(values[place * apart] != 0)
            bits[column >> _THREE] &= ~np.uint8(is_met << (column & _SEVEN))


@compiled
def keep_first(
    rows: UnsignedArray,
    pointers: UnsignedArray,
    columns: UnsignedArray,
    x: NumericArray,
    bits: Bits,
    out: NumericArray,
) -> None:
    """Write to each column whose bit is set the first element of x that meets it, and clear the bit."""
    for k in range(np.uint64(rows.size)):
        i = np.uint64(rows[k])
        for place in range(np.uint64(pointers[i]), np.uint64(pointers[i + _ONE])):
            column = np.uint64(columns[place])
            bit, eight = np.uint8(_ONE << (column & _SEVEN)), bits[column >> _THREE]
            if eight & bit:
                bits[column >> _THREE] = eight ^ bit
                out[column] = x[i]


@compiled
def keep_least(
    rows: UnsignedArray,
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    apart: np.uint64,
    x: NumericArray,
    wanted: NumericArray | None,
    out: NumericArray,
) -> None:
    """Lower the wanted elements of ``out`` to the least A[i, k] + x[i] over the rows."""
    narrow = out.dtype.type
    for k in range(np.uint64(rows.size)):
        i = np.uint64(rows[k])
        for place in range(np.uint64(pointers[i]), np.uint64(pointers[i + _ONE])):
            column, total = columns[place], narrow(values[place * apart] + x[i])
            # A NaN is kept, as numpy.minimum keeps it: nothing is less, and it differs from itself.
            if (total < out[column] or total != total) and (wanted is None or wanted[column]):
                out[column] = total


@compiled
def copy_rows(
    rows: UnsignedArray,
    pointers: UnsignedArray,
    starts: UnsignedArray,
    source: NumericArray,
    out: NumericArray,
) -> None:
    """Copy what some rows of a matrix hold, its columns or its values, one row after the other."""
    for k in range(np.uint64(rows.size)):
        target = np.uint64(starts[k])
        for place in range(np.uint64(pointers[rows[k]]), np.uint64(pointers[rows[k] + _ONE])):
            out[target] = source[place]
            target += _ONE

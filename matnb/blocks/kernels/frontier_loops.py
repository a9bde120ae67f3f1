"""The compiled loops that take a vector along the rows of a graph, past the rows from where nothing goes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import NumericArray
from matnb.blocks.kernels.compiled import UnsignedArray, compiled, inlined

# `x` has an element a row; where it is `identity[0]`, of its own dtype, the row is not read. `values` stand
# `apart` 1, or 0 where one stands for all, and keep their dtype: a matrix is not converted for a few rows.
# `bits` are those of the columns still to be found, the lowest first: so few bytes that they stay in a
# processor's cache where a vector over the columns does not.

Bits = npt.NDArray[np.uint8]
_ONE, _TWO, _THREE, _FOUR, _SEVEN = (np.uint64(number) for number in (1, 2, 3, 4, 7))
_LEAF = np.uint64(64)


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


@inlined
def _list_marked(
    columns: UnsignedArray, bits: Bits, place: np.uint64, end: np.uint64, kept: UnsignedArray
) -> np.uint64:
    count = np.uint64(0)
    for entry in range(place, end):  # without a branch: which rows are read is past predicting
        column = np.uint64(columns[entry])
        kept[count] = column
        count += np.uint64(bits[column >> _THREE] >> (column & _SEVEN)) & _ONE
    return count


@compiled
def mark_rows(X: NumericArray, bits: Bits) -> None:
    """Set the bits of the rows of a matrix that are not all 0; the others' stay."""
    for i in range(np.uint64(X.shape[0])):
        some = False
        for j in range(np.uint64(X.shape[1])):
            some |= X[i, j] != 0  # NaN, too
        bits[i >> _THREE] |= np.uint8(np.uint64(some) << (i & _SEVEN))


# Rows of X without their bit are not read: they are 0, and a sum that begins with 0.0 keeps its bits where a
# 0 of either sign is added. The tree is that of ``dense_product_loops``: leaves of 64 entries, whichever are
# read (R-MAT 2^20, four columns: 30 ms where no row is marked, 42 where one in a hundred is, 105 where three
# in ten are, 260 with all). ``kept`` has room for a leaf, and ``levels`` 27 rows of four.


@compiled
def _sum_four(
    columns: UnsignedArray,
    place: np.uint64,
    stop: np.uint64,
    X: NumericArray,
    j: int,
    bits: Bits,
    kept: UnsignedArray,
    levels: NumericArray,
) -> tuple[float, float, float, float]:
    a = b = c = d = 0.0
    top = leaves = np.uint64(0)
    while place < stop:
        end = min(place + _LEAF, stop)
        count = _list_marked(columns, bits, place, end, kept)
        a = b = c = d = 0.0
        for one in range(count):
            k = np.uint64(kept[one])
            a += X[k, j]
            b += X[k, j + _ONE]
            c += X[k, j + _TWO]
            d += X[k, j + _THREE]
        place = end
        full = leaves  # as many ones at its end as branches that are whole now
        while full & _ONE:
            top -= _ONE
            a, b = levels[top, 0] + a, levels[top, 1] + b
            c, d = levels[top, 2] + c, levels[top, 3] + d
            full >>= _ONE
        levels[top, 0], levels[top, 1], levels[top, 2], levels[top, 3] = a, b, c, d
        top += _ONE
        leaves += _ONE
    while top > _ONE:
        top -= _ONE
        a, b = levels[top - _ONE, 0] + a, levels[top - _ONE, 1] + b
        c, d = levels[top - _ONE, 2] + c, levels[top - _ONE, 3] + d
    return a, b, c, d


@compiled
def _sum_one(
    columns: UnsignedArray,
    place: np.uint64,
    stop: np.uint64,
    X: NumericArray,
    j: int,
    bits: Bits,
    kept: UnsignedArray,
    levels: NumericArray,
) -> float:
    total = 0.0
    top = leaves = np.uint64(0)
    while place < stop:
        end = min(place + _LEAF, stop)
        count = _list_marked(columns, bits, place, end, kept)
        total = 0.0
        for one in range(count):
            total += X[np.uint64(kept[one]), j]
        place = end
        full = leaves
        while full & _ONE:
            top -= _ONE
            total = levels[top, 0] + total
            full >>= _ONE
        levels[top, 0] = total
        top += _ONE
        leaves += _ONE
    while top > _ONE:
        top -= _ONE
        total = levels[top - _ONE, 0] + total
    return total


@compiled
def sum_marked_rows(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    X: NumericArray,
    bits: Bits,
    wanted: Bits,
    levels: NumericArray,
    out: NumericArray,
) -> None:
    """Write the sums of the rows of X that a pattern has, where they are wanted, and 0 elsewhere."""
    kept = np.empty(_LEAF, np.uint32)
    width = np.uint64(X.shape[1])
    fours = width - width % _FOUR
    for i in range(np.uint64(pointers.size) - _ONE):
        some = np.uint8(0)
        for j in range(width):
            some |= wanted[i, j]
            out[i, j] = 0.0
        if some == 0:
            continue
        place, stop = np.uint64(pointers[i]), np.uint64(pointers[i + _ONE])
        for j in range(np.uint64(0), fours, _FOUR):
            a, b, c, d = _sum_four(columns, place, stop, X, j, bits, kept, levels)
            out[i, j] = a if wanted[i, j] else 0.0
            out[i, j + _ONE] = b if wanted[i, j + _ONE] else 0.0
            out[i, j + _TWO] = c if wanted[i, j + _TWO] else 0.0
            out[i, j + _THREE] = d if wanted[i, j + _THREE] else 0.0
        for j in range(fours, width):
            if wanted[i, j]:
                out[i, j] = _sum_one(columns, place, stop, X, j, bits, kept, levels)

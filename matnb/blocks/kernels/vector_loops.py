"""The compiled loops that multiply a sparse matrix, row by row, with a vector."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import NumericArray
from matnb.blocks.kernels.compiled import UnsignedArray, compiled, inlined

# How a row is summed: leaves of 64 entries, each in order, then a binary tree over the leaves. So the order
# follows from the row's entries alone, and parts of a row that is cut at multiples of 64 entries can be
# summed apart. More lanes in a leaf gain nothing, since gathers of several rows overlap: what counts is that
# a row has one loop whose end is predicted wrongly, where lanes and what they leave over have two (with
# values 11.6 ms against 16.4, R-MAT 2^20 on two cores; patterns 10.4 against 10.8).
#
# `levels` is room for the branches of the tree that still wait for their other half; its dtype is that of the
# sums. `wanted` (None: every row) tells which rows to write. Leaves stand in the file of the loops that use
# them, since the cache of compiled code asks only whether the outer loop's file has changed.

Sums = npt.NDArray[np.float64]  # or of the other dtypes that sums have: typed as the commonest
_ONE = np.uint64(1)
_LEAF = np.uint64(64)
_TILE = np.uint64(512)
# Half of a graph's rows are empty, three quarters have up to four entries, and which is past predicting.
# So four are read whatever the row has, what is not its own is left out by a choice that is no branch, and
# what was read in vain is the next row's. On two cores 9.6 ms became 8.4; up to two 8.4, up to eight 9.0.
_SHORT = np.uint64(4)
_TWO, _THREE = np.uint64(2), np.uint64(3)


@inlined
def _leaf_of_ones(
    columns: UnsignedArray, x: NumericArray, levels: Sums, place: np.uint64, stop: np.uint64
) -> np.float64:
    total = levels.dtype.type(0)
    while place < stop:
        total += x[columns[place]]
        place += _ONE
    return total


@inlined
def _short_of_ones(
    columns: UnsignedArray,
    x: NumericArray,
    levels: Sums,
    place: np.uint64,
    stop: np.uint64,
) -> np.float64:
    count, last = stop - place, np.uint64(columns.size) - _ONE
    wide = levels.dtype.type
    none = wide(0)
    total = none
    # In this order: where all four are read first, the compiler makes branches of the choices again.
    entry = wide(x[columns[min(place, last)]])
    total += entry if count > np.uint64(0) else none
    entry = wide(x[columns[min(place + _ONE, last)]])
    total += entry if count > _ONE else none
    entry = wide(x[columns[min(place + _TWO, last)]])
    total += entry if count > _TWO else none
    entry = wide(x[columns[min(place + _THREE, last)]])
    total += entry if count > _THREE else none
    return total


@inlined
def _short(
    columns: UnsignedArray,
    values: NumericArray,
    x: NumericArray,
    levels: Sums,
    place: np.uint64,
    stop: np.uint64,
) -> np.float64:
    count, last = stop - place, np.uint64(columns.size) - _ONE
    wide = levels.dtype.type
    none = wide(0)
    total = none
    here = min(place, last)
    entry = wide(wide(values[here]) * x[columns[here]])
    total += entry if count > np.uint64(0) else none
    here = min(place + _ONE, last)
    entry = wide(wide(values[here]) * x[columns[here]])
    total += entry if count > _ONE else none
    here = min(place + _TWO, last)
    entry = wide(wide(values[here]) * x[columns[here]])
    total += entry if count > _TWO else none
    here = min(place + _THREE, last)
    entry = wide(wide(values[here]) * x[columns[here]])
    total += entry if count > _THREE else none
    return total


@inlined
def _leaf(
    columns: UnsignedArray,
    values: NumericArray,
    x: NumericArray,
    levels: Sums,
    place: np.uint64,
    stop: np.uint64,
) -> np.float64:
    wide = levels.dtype.type
    total = wide(0)
    while place < stop:
        total += wide(values[place]) * x[columns[place]]
        place += _ONE
    return total


@compiled
def tree_of_ones(
    columns: UnsignedArray, x: NumericArray, levels: Sums, place: np.uint64, stop: np.uint64
) -> np.float64:
    """Return the sum of a long row of ones times a vector."""
    total: np.float64 = levels.dtype.type(0)
    top = count = np.uint64(0)
    while place < stop:
        total = _leaf_of_ones(columns, x, levels, place, min(place + _LEAF, stop))
        place += _LEAF
        full = count  # in binary as many ones at its end as branches that are whole now
        while full & _ONE:
            top -= _ONE
            total = levels[top] + total
            full >>= _ONE
        levels[top] = total
        top += _ONE
        count += _ONE
    top -= _ONE
    total = levels[top]
    while top:
        top -= _ONE
        total = levels[top] + total
    return total


@compiled
def tree(
    columns: UnsignedArray,
    values: NumericArray,
    x: NumericArray,
    levels: Sums,
    place: np.uint64,
    stop: np.uint64,
) -> np.float64:
    """Return the sum of a long row times a vector."""
    total: np.float64 = levels.dtype.type(0)
    top = count = np.uint64(0)
    while place < stop:
        total = _leaf(columns, values, x, levels, place, min(place + _LEAF, stop))
        place += _LEAF
        full = count
        while full & _ONE:
            top -= _ONE
            total = levels[top] + total
            full >>= _ONE
        levels[top] = total
        top += _ONE
        count += _ONE
    top -= _ONE
    total = levels[top]
    while top:
        top -= _ONE
        total = levels[top] + total
    return total


@compiled
def plus_times_ones(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    x: NumericArray,
    wanted: NumericArray | None,
    levels: Sums,
    out: NumericArray,
) -> None:
    """Write the product of a matrix of ones at a pattern with a vector."""
    if columns.size == 0:
        for i in range(out.size):
            if wanted is None or wanted[i]:
                out[i] = 0
        return
    for i in range(np.uint64(pointers.size) - _ONE):
        if wanted is None or wanted[i]:
            place, stop = np.uint64(pointers[i]), np.uint64(pointers[i + _ONE])
            if stop - place <= _SHORT:
                out[i] = _short_of_ones(columns, x, levels, place, stop)
            elif stop - place <= _LEAF:
                out[i] = _leaf_of_ones(columns, x, levels, place, stop)
            else:
                out[i] = tree_of_ones(columns, x, levels, place, stop)


@compiled
def plus_times(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    x: NumericArray,
    wanted: NumericArray | None,
    levels: Sums,
    out: NumericArray,
) -> None:
    """Write the product of a matrix with a vector."""
    if columns.size == 0:
        for i in range(out.size):
            if wanted is None or wanted[i]:
                out[i] = 0
        return
    for i in range(np.uint64(pointers.size) - _ONE):
        if wanted is None or wanted[i]:
            place, stop = np.uint64(pointers[i]), np.uint64(pointers[i + _ONE])
            if stop - place <= _SHORT:
                out[i] = _short(columns, values, x, levels, place, stop)
            elif stop - place <= _LEAF:
                out[i] = _leaf(columns, values, x, levels, place, stop)
            else:
                out[i] = tree(columns, values, x, levels, place, stop)


@compiled
def affine(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray | None,
    x: NumericArray,
    scale: np.generic,
    added: NumericArray,
    old: NumericArray | None,
    levels: Sums,
    out: NumericArray,
    differences: NumericArray,
) -> None:
    """Write scale * (A @ x) + added, and the distance of each element from ``old``."""
    num_rows = np.uint64(pointers.size) - _ONE
    # One number may be added to all.
    apart = _ONE if added.size > 1 else np.uint64(0)
    for start in range(np.uint64(0), num_rows, _TILE):  # so few rows that they are still in the cache
        stop = min(start + _TILE, num_rows)
        ends, tile = pointers[start : stop + _ONE], out[start:stop]
        if values is None:
            plus_times_ones(ends, columns, x, None, levels, tile)
        else:
            plus_times(ends, columns, values, x, None, levels, tile)
        for i in range(start, stop):
            out[i] = scale * out[i] + added[i * apart]
        if old is not None:
            for i in range(start, stop):
                differences[i] = abs(out[i] - old[i])


@compiled
def min_plus(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    apart: np.uint64,
    x: NumericArray,
    wanted: NumericArray | None,
    identity: NumericArray,
    out: NumericArray,
) -> None:
    """Write the least A[i, k] + x[k] of each row; ``values`` are 0 ``apart`` if all are the first of them.

    Where x is the identity, it has no element.
    """
    narrow = out.dtype.type
    none = identity[0]
    for i in range(np.uint64(pointers.size) - _ONE):
        if wanted is None or wanted[i]:
            least = strange = none
            for place in range(np.uint64(pointers[i]), np.uint64(pointers[i + _ONE])):
                element = x[columns[place]]
                total = narrow(values[place * apart] + element)
                total = none if element == none else total
                least = total if total < least else least
                # A NaN is kept, as numpy.minimum keeps it; looked for aside, it does not hold up the least.
                strange = total if total != total else strange
            if strange != strange:
                least = strange
            out[i] = least


@compiled
def lor_land(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    apart: np.uint64,
    x: NumericArray,
    wanted: NumericArray | None,
    out: NumericArray,
) -> None:
    """Write for each row whether any A[i, k] and x[k] are both true; ``values`` as for ``min_plus``."""
    for i in range(np.uint64(pointers.size) - _ONE):
        if wanted is None or wanted[i]:
            found = False
            for place in range(np.uint64(pointers[i]), np.uint64(pointers[i + _ONE])):
                if x[columns[place]] and values[place * apart]:
                    found = True
                    break
            out[i] = found

"""The compiled loops that take a vector along the rows of a graph, past the rows from where nothing goes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import NumericArray
from matnb.blocks.kernels.compiled import UnsignedArray, compiled, inlined, prefetch

# `x` has an element a row; where it is `identity[0]`, of its own dtype, the row is not read. `values` stand
# `apart` 1, or 0 where one stands for all, and keep their dtype: a matrix is not converted for a few rows.
# `bits` are those of the columns still to be found, the lowest first: so few bytes that they stay in a
# processor's cache where a vector over the columns does not.

Bits = npt.NDArray[np.uint8]
_ZERO, _ONE, _TWO, _THREE, _FOUR, _SEVEN = (np.uint64(number) for number in (0, 1, 2, 3, 4, 7))
_LEAF = np.uint64(64)
# Of leaves of marked rows: how many are listed ahead of their sums, and entries; after how many such lists it
# is looked at again how many are marked; and doubles of an X that is far from the processor.
_LEAVES, _LISTED, _LOOKED = np.uint64(64), np.uint64(1024), np.uint64(16)
_FAR = 1 << 19


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
def add_products(
    rows: UnsignedArray,
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    apart: np.uint64,
    x: NumericArray,
    out: NumericArray,
) -> None:
    """Add A[i, k] x[i] to the elements of ``out``, whole numbers, over the rows."""
    narrow = out.dtype.type
    for k in range(np.uint64(rows.size)):
        i = np.uint64(rows[k])
        for place in range(np.uint64(pointers[i]), np.uint64(pointers[i + _ONE])):
            out[columns[place]] += narrow(values[place * apart]) * x[i]


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


@compiled
def mark_rows(X: NumericArray, bits: Bits) -> None:
    """Set the bits of the rows of a matrix that are not all 0; the others' stay."""
    for i in range(np.uint64(X.shape[0])):
        some = False
        for j in range(np.uint64(X.shape[1])):
            some |= X[i, j] != 0  # NaN, too
        bits[i >> _THREE] |= np.uint8(np.uint64(some) << (i & _SEVEN))


# Rows of X without their bit need not be read: they are 0, and a sum that begins with 0.0 keeps its bits
# where a 0 of either sign is added. The tree is that of ``dense_product_loops``: leaves of 64 entries,
# whichever are read. What leaves read is listed some leaves ahead of the sums, so that rows of a large X are
# under way by then; where most are marked, all are read and none is listed, until it is looked at again
# (R-MAT 2^20, four columns: 35 ms where no row is marked, 62 where nearly all are that it meets; leaf by leaf
# 36 and 90).


@inlined
def _put_four(
    levels: NumericArray, top: np.uint64, leaves: np.uint64, j: int, a: float, b: float, c: float, d: float
) -> None:
    while leaves & _ONE:  # as many ones at its end as branches that are whole now
        top -= _ONE
        a, b = levels[top, j] + a, levels[top, j + _ONE] + b
        c, d = levels[top, j + _TWO] + c, levels[top, j + _THREE] + d
        leaves >>= _ONE
    levels[top, j], levels[top, j + _ONE], levels[top, j + _TWO], levels[top, j + _THREE] = a, b, c, d


@inlined
def _put_one(levels: NumericArray, top: np.uint64, leaves: np.uint64, j: int, total: float) -> None:
    while leaves & _ONE:
        top -= _ONE
        total = levels[top, j] + total
        leaves >>= _ONE
    levels[top, j] = total


@inlined
def _write_row(levels: NumericArray, top: np.uint64, row: np.uint64, wanted: Bits, out: NumericArray) -> None:
    width = np.uint64(out.shape[1])
    while top > _ONE:
        top -= _ONE
        for j in range(width):
            levels[top - _ONE, j] += levels[top, j]
    for j in range(width):
        out[row, j] = levels[0, j] if wanted[row, j] else 0.0


@compiled
def _sum_leaves(
    listed: UnsignedArray,
    X: NumericArray,
    leaves: NumericArray,
    number: np.uint64,
    tree: NumericArray,
    wanted: Bits,
    levels: NumericArray,
    out: NumericArray,
) -> None:
    """Add the rows of X that leaves list, each leaf to the tree of its row; rows that are whole are written.

    ``leaves`` has the row of each, and where it begins and ends in ``listed``; ``tree`` the row begun last,
    how many branches wait, and how many leaves it has.
    """
    width = np.uint64(X.shape[1])
    fours = width - width % _FOUR
    row, top, count = tree[0], tree[1], tree[2]
    for leaf in range(number):
        if leaves[leaf, 0] != row:
            if top > _ZERO:
                _write_row(levels, top, row, wanted, out)
            row, top, count = leaves[leaf, 0], _ZERO, _ZERO
        first, last = leaves[leaf, 1], leaves[leaf, 2]
        for j in range(_ZERO, fours, _FOUR):
            a = b = c = d = 0.0
            for one in range(first, last):
                k = np.uint64(listed[one])
                a += X[k, j]
                b += X[k, j + _ONE]
                c += X[k, j + _TWO]
                d += X[k, j + _THREE]
            _put_four(levels, top, count, j, a, b, c, d)
        for j in range(fours, width):
            total = 0.0
            for one in range(first, last):
                total += X[np.uint64(listed[one]), j]
            _put_one(levels, top, count, j, total)
        full = count
        while full & _ONE:
            top -= _ONE
            full >>= _ONE
        top += _ONE
        count += _ONE
    tree[0], tree[1], tree[2] = row, top, count


@compiled
def sum_marked_rows(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    X: NumericArray,
    bits: Bits,
    wanted: Bits,
    words: NumericArray,
    levels: NumericArray,
    out: NumericArray,
) -> None:
    """Write the sums of the rows of X that a pattern has, where they are wanted, and 0 elsewhere.

    ``words`` has what ``wanted`` has, in longer words: no row of them is 0 where anything is wanted.
    ``levels`` has 27 rows as wide as X.
    """
    kept, leaves = np.empty(_LISTED, np.uint32), np.empty((_LEAVES, 3), np.uint64)
    tree = np.zeros(3, np.uint64)
    width, num_words, is_far = np.uint64(X.shape[1]), np.uint64(words.shape[1]), X.size > _FAR
    number = count = seen = reads_all = _ZERO
    for i in range(np.uint64(pointers.size) - _ONE):
        some = words[i, 0]
        for j in range(_ONE, num_words):
            some |= words[i, j]
        place, stop = np.uint64(pointers[i]), np.uint64(pointers[i + _ONE])
        if some == 0 or place == stop:
            for j in range(width):
                out[i, j] = 0.0
            continue
        while place < stop:
            end = min(place + _LEAF, stop)
            leaves[number, 0], leaves[number, 1], leaves[number, 2] = i, place, end
            if reads_all == _ZERO:
                leaves[number, 1] = count
                if is_far:
                    for entry in range(place, end):  # without a branch: what is marked is past predicting
                        column = np.uint64(columns[entry])
                        kept[count] = column
                        is_marked = np.uint64(bits[column >> _THREE] >> (column & _SEVEN)) & _ONE
                        prefetch(X, column * is_marked * width)
                        count += is_marked
                else:
                    for entry in range(place, end):
                        column = np.uint64(columns[entry])
                        kept[count] = column
                        count += np.uint64(bits[column >> _THREE] >> (column & _SEVEN)) & _ONE
                leaves[number, 2] = count
            elif is_far:
                for entry in range(place, end):
                    prefetch(X, np.uint64(columns[entry]) * width)
            seen += end - place
            number += _ONE
            place = end
            if number < _LEAVES and seen <= _LISTED - _LEAF:
                continue
            if reads_all > _ZERO:
                _sum_leaves(columns, X, leaves, number, tree, wanted, levels, out)
                reads_all -= _ONE
            else:
                _sum_leaves(kept, X, leaves, number, tree, wanted, levels, out)
                reads_all = _LOOKED if _FOUR * count > _THREE * seen else _ZERO
            number = count = seen = _ZERO
    if reads_all > _ZERO:
        _sum_leaves(columns, X, leaves, number, tree, wanted, levels, out)
    else:
        _sum_leaves(kept, X, leaves, number, tree, wanted, levels, out)
    if tree[1] > _ZERO:
        _write_row(levels, tree[1], tree[0], wanted, out)

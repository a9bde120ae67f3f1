"""The compiled loops that multiply a sparse matrix with a vector or a dense matrix, and dense least sums."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import NumericArray
from matnb.blocks.kernels.compiled import UnsignedArray, compiled, inlined, prefetch

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
_ZERO, _ONE, _TWO, _THREE, _FOUR = (np.uint64(number) for number in range(5))
_LEAF = np.uint64(64)
# Half of a graph's rows are empty, three quarters have up to four entries, and which is past predicting.
# So four are read whatever the row has, what is not its own is left out by a choice that is not a branch, and
# what was read in vain is the next row's. On two cores 9.6 ms became 8.4; up to two 8.4, up to eight 9.0.
_SHORT = np.uint64(4)


@inlined
def _term(
    columns: UnsignedArray, values: NumericArray | None, x: NumericArray, levels: Sums, place: np.uint64
) -> np.float64:
    wide = levels.dtype.type
    if values is None:
        return wide(x[columns[place]])
    return wide(wide(values[place]) * x[columns[place]])


@inlined
def _short(
    columns: UnsignedArray,
    values: NumericArray | None,
    x: NumericArray,
    levels: Sums,
    place: np.uint64,
    stop: np.uint64,
) -> np.float64:
    count, last = stop - place, np.uint64(columns.size) - _ONE
    none = levels.dtype.type(0)
    total = none
    # In this order: where all four are read first, the compiler makes branches of the choices again.
    entry = _term(columns, values, x, levels, min(place, last))
    total += entry if count > _ZERO else none
    entry = _term(columns, values, x, levels, min(place + _ONE, last))
    total += entry if count > _ONE else none
    entry = _term(columns, values, x, levels, min(place + _TWO, last))
    total += entry if count > _TWO else none
    entry = _term(columns, values, x, levels, min(place + _THREE, last))
    total += entry if count > _THREE else none
    return total


@inlined
def _leaf(
    columns: UnsignedArray,
    values: NumericArray | None,
    x: NumericArray,
    levels: Sums,
    place: np.uint64,
    stop: np.uint64,
) -> np.float64:
    total = levels.dtype.type(0)
    while place < stop:
        total += _term(columns, values, x, levels, place)
        place += _ONE
    return total


@inlined
def _put_leaf(total: np.float64, count: np.uint64, levels: Sums, top: np.uint64) -> np.uint64:
    # Puts the sum of a leaf on the branches that wait; before it there were ``count`` leaves.
    full = count  # in binary as many ones at its end as branches that are whole now
    while full & _ONE:
        top -= _ONE
        total = levels[top] + total
        full >>= _ONE
    levels[top] = total
    return top + _ONE


@inlined
def _root(levels: Sums, top: np.uint64) -> np.float64:
    # Adds up the branches that wait, the newest first.
    top -= _ONE
    total: np.float64 = levels[top]
    while top:
        top -= _ONE
        total = levels[top] + total
    return total


@compiled
def tree(
    columns: UnsignedArray,
    values: NumericArray | None,
    x: NumericArray,
    levels: Sums,
    place: np.uint64,
    stop: np.uint64,
) -> np.float64:
    """Return the sum of a long row, of ones where there are no values, times a vector."""
    total: np.float64 = levels.dtype.type(0)
    top = count = np.uint64(0)
    while place < stop:
        total = _leaf(columns, values, x, levels, place, min(place + _LEAF, stop))
        place += _LEAF
        top = _put_leaf(total, count, levels, top)
        count += _ONE
    return _root(levels, top)


@compiled
def plus_times(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray | None,
    x: NumericArray,
    wanted: NumericArray | None,
    levels: Sums,
    out: NumericArray,
) -> None:
    """Write the product of a matrix, of ones at a pattern where there are no values, with a vector."""
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


WordArray = npt.NDArray[np.uint64]

# The sums are those of plus_times, bit for bit: leaves of 64 entries in order, then a binary tree. Only the
# order in which rows and leaves are visited differs, since there the time goes (R-MAT 2^20, where six of ten
# gathers missed the near cache, and half the rows are empty):
# - Rows of up to 63 entries are first sorted by length, a few thousand at a time. Each length then has a loop
#   whose end is predicted, so that the gathers of many rows overlap.
# - Leaves of the longer rows of a tile are visited by their place within the row, as columns ascend in a row:
#   first the first leaves of all rows, last the last. So they read the same part of x at about the same time.
#   Four go side by side, as each is a chain of additions.
# `room` keeps the sums of a tile's leaves, `order` the leaves by turn, `rows` those of each length.
LEAVES = 49152  # of a tile, at most
SUBTILE = 4096  # rows that are sorted together
LENGTHS = 6  # kinds of short rows
_BANDS = np.uint64(32)
_MOST_ENTRIES = np.uint64(LEAVES * 32)  # a long row has a leaf for at least 32 of its entries
_SUBTILE = np.uint64(SUBTILE)
_FIVE, _SIX, _SEVEN = (np.uint64(number) for number in range(5, 8))
_LAST, _HALF_WORD = np.uint64(63), np.uint64(32)
# Which kind a row is by its number of entries: 0, 1, 2, 3 to 4, 5 to 8, up to 63, and long.
_KINDS = np.array([0, 1, 2, 3, 3, 4, 4, 4, 4, *[5] * 55, 6], np.uint8)


@compiled
def _short_rows(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray | None,
    x: NumericArray,
    levels: Sums,
    rows: UnsignedArray,
    sizes: WordArray,
    start: np.uint64,
    stop: np.uint64,
    out: NumericArray,
) -> None:
    """Write the short rows from start to stop, and list the long ones behind those of former calls."""
    sizes[:LENGTHS] = 0
    for i in range(start, stop):
        kind = np.uint64(_KINDS[min(np.uint64(pointers[i + _ONE]) - np.uint64(pointers[i]), _LEAF)])
        rows[kind * _SUBTILE + sizes[kind]] = i
        sizes[kind] += _ONE
    none = levels.dtype.type(0)
    for k in range(_ZERO, sizes[0]):
        out[rows[k]] = none
    for k in range(_SUBTILE, _SUBTILE + sizes[1]):
        row = np.uint64(rows[k])
        out[row] = none + _term(columns, values, x, levels, np.uint64(pointers[row]))
    for k in range(_TWO * _SUBTILE, _TWO * _SUBTILE + sizes[2]):
        row = np.uint64(rows[k])
        place = np.uint64(pointers[row])
        total = none + _term(columns, values, x, levels, place)
        out[row] = total + _term(columns, values, x, levels, place + _ONE)
    # What a row does not have is read twice and left out by a choice that is not a branch.
    for k in range(_THREE * _SUBTILE, _THREE * _SUBTILE + sizes[3]):
        row = np.uint64(rows[k])
        place, end = np.uint64(pointers[row]), np.uint64(pointers[row + _ONE])
        total = none + _term(columns, values, x, levels, place)
        total += _term(columns, values, x, levels, place + _ONE)
        total += _term(columns, values, x, levels, place + _TWO)
        more = total + _term(columns, values, x, levels, end - _ONE)
        out[row] = more if end - place > _THREE else total
    for k in range(_FOUR * _SUBTILE, _FOUR * _SUBTILE + sizes[4]):
        row = np.uint64(rows[k])
        place, end = np.uint64(pointers[row]), np.uint64(pointers[row + _ONE])
        count, last = end - place, end - _ONE
        total = none + _term(columns, values, x, levels, place)
        total += _term(columns, values, x, levels, place + _ONE)
        total += _term(columns, values, x, levels, place + _TWO)
        total += _term(columns, values, x, levels, place + _THREE)
        total += _term(columns, values, x, levels, place + _FOUR)
        sixth = total + _term(columns, values, x, levels, min(place + _FIVE, last))
        seventh = sixth + _term(columns, values, x, levels, min(place + _SIX, last))
        eighth = seventh + _term(columns, values, x, levels, last)
        total = sixth if count > _FIVE else total
        total = seventh if count > _SIX else total
        out[row] = eighth if count > _SEVEN else total
    for k in range(_FIVE * _SUBTILE, _FIVE * _SUBTILE + sizes[5]):
        row = np.uint64(rows[k])
        total = none
        place, end = np.uint64(pointers[row]), np.uint64(pointers[row + _ONE])
        while place < end:
            total += _term(columns, values, x, levels, place)
            place += _ONE
        out[row] = total


@compiled
def _order_leaves(
    pointers: UnsignedArray, rows: UnsignedArray, count: np.uint64, turns: WordArray, order: WordArray
) -> None:
    """List the leaves of long rows by their turn: where each begins, and its number among all.

    Full leaves come first; behind them those that end a row, with their lengths. ``turns`` ends with the
    numbers of full and of all leaves.
    """
    turns[:] = 0
    for k in range(count):
        row = np.uint64(rows[k])
        entries = np.uint64(pointers[row + _ONE]) - np.uint64(pointers[row])
        full = entries // _LEAF
        step = (_BANDS << _HALF_WORD) // full
        for leaf in range(full):
            turns[((leaf * step) >> _HALF_WORD) + _ONE] += _ONE
        turns[_BANDS + _ONE] += _ONE if entries & _LAST else _ZERO
    for earlier in range(_BANDS + _ONE):
        turns[earlier + _ONE] += turns[earlier]
    turns[_BANDS + _TWO] = turns[_BANDS]
    number = _ZERO
    for k in range(count):
        row = np.uint64(rows[k])
        place, end = np.uint64(pointers[row]), np.uint64(pointers[row + _ONE])
        full = (end - place) // _LEAF
        step = (_BANDS << _HALF_WORD) // full
        for leaf in range(full):
            band = (leaf * step) >> _HALF_WORD
            order[turns[band]] = (place << _HALF_WORD) | (number << _SEVEN) | _LEAF
            turns[band] += _ONE
            place += _LEAF
            number += _ONE
        if place < end:
            order[turns[_BANDS]] = (place << _HALF_WORD) | (number << _SEVEN) | (end - place)
            turns[_BANDS] += _ONE
            number += _ONE


@compiled
def _sum_leaves(
    columns: UnsignedArray,
    values: NumericArray | None,
    x: NumericArray,
    order: WordArray,
    full: np.uint64,
    count: np.uint64,
    levels: Sums,
    room: Sums,
) -> None:
    """Write the sums of leaves to their numbers' places."""
    number = np.uint64(2**25 - 1)
    turn = _ZERO
    while turn + _FOUR <= full:
        a, b, c, d = order[turn], order[turn + _ONE], order[turn + _TWO], order[turn + _THREE]
        one = other = third = fourth = levels.dtype.type(0)
        for k in range(_LEAF):
            one += _term(columns, values, x, levels, (a >> _HALF_WORD) + k)
            other += _term(columns, values, x, levels, (b >> _HALF_WORD) + k)
            third += _term(columns, values, x, levels, (c >> _HALF_WORD) + k)
            fourth += _term(columns, values, x, levels, (d >> _HALF_WORD) + k)
        room[(a >> _SEVEN) & number] = one
        room[(b >> _SEVEN) & number] = other
        room[(c >> _SEVEN) & number] = third
        room[(d >> _SEVEN) & number] = fourth
        turn += _FOUR
    while turn < count:
        a = order[turn]
        one = levels.dtype.type(0)
        for k in range(a & np.uint64(127)):
            one += _term(columns, values, x, levels, (a >> _HALF_WORD) + k)
        room[(a >> _SEVEN) & number] = one
        turn += _ONE


@compiled
def _sum_trees(
    pointers: UnsignedArray,
    rows: UnsignedArray,
    count: np.uint64,
    room: Sums,
    levels: Sums,
    out: NumericArray,
) -> None:
    """Write the long rows from the sums of their leaves, as ``tree`` adds them."""
    number = _ZERO
    for k in range(count):
        row = np.uint64(rows[k])
        leaves = (np.uint64(pointers[row + _ONE]) - np.uint64(pointers[row]) + _LAST) // _LEAF
        top = _ZERO
        total = room[number]
        for leaf in range(leaves):
            total = room[number]
            number += _ONE
            top = _put_leaf(total, np.uint64(leaf), levels, top)
        out[row] = _root(levels, top)


@compiled
def plus_times_banded(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray | None,
    x: NumericArray,
    levels: Sums,
    room: Sums,
    order: WordArray,
    rows: UnsignedArray,
    out: NumericArray,
) -> None:
    """Write the product of a matrix, of ones if it has no values, with a vector.

    ``room`` and ``order`` hold LEAVES elements, ``rows`` LENGTHS * SUBTILE + LEAVES.
    """
    sizes = np.empty(LENGTHS + 1, np.uint64)
    turns = np.empty(_BANDS + _THREE, np.uint64)
    long = rows[LENGTHS * SUBTILE :]
    num_rows = np.uint64(pointers.size) - _ONE
    start = _ZERO
    while start < num_rows:
        begin = np.uint64(pointers[start])
        end = np.uint64(pointers[start + _ONE])
        if end - begin > _MOST_ENTRIES:
            out[start] = tree(columns, values, x, levels, begin, end)
            start += _ONE
            continue
        sizes[LENGTHS] = 0
        while start < num_rows:
            stop = min(start + _SUBTILE, num_rows)
            while stop > start and np.uint64(pointers[stop]) - begin > _MOST_ENTRIES:
                stop = start + (stop - start) // _TWO
            if stop == start:
                break
            _short_rows(pointers, columns, values, x, levels, rows, sizes, start, stop, out)
            start = stop
        count = sizes[LENGTHS]
        if count:
            _order_leaves(pointers, long, count, turns, order)
            _sum_leaves(columns, values, x, order, turns[_BANDS + _TWO], turns[_BANDS], levels, room)
            _sum_trees(pointers, long, count, room, levels, out)


# Rows of a dense matrix are summed by the tree that is described above, so a matrix of one column gives the
# bits of a vector. `values` stand `apart` 1, or 0 where all are the first of them, as in a pattern.
# The sums of a leaf stay in registers, for up to eight columns at a time. Rows of X are far from the caches,
# and `columns` tells long before which: they are asked for `_AHEAD` entries before they are added. On one
# core, R-MAT 2^20, that made of 227 ms for 8 columns 83; 16 entries ahead 113.
# Beyond `_NARROW` columns the machine finds the lines of a row by itself. Then inner loops run over whole
# rows, so that they become vector instructions, and sums are read and written once for four entries: for 32
# columns of 2^12 rows 0.6 ms, by eights 1.3.
# Numba computes narrow integers in 64 bits, and only what is made their type again wraps as NumPy's do.
Entries: TypeAlias = tuple[UnsignedArray, NumericArray, np.uint64]  # columns, values, and how far apart
_AHEAD = np.uint64(64)
_EIGHT = np.uint64(8)
_NARROW = 16


@inlined
def _ask_ahead(
    columns: UnsignedArray, X: NumericArray, place: np.uint64, first: np.uint64, last: np.uint64
) -> None:
    # Both ends, which need not lie in one line of the cache.
    row = np.uint64(columns[min(place + _AHEAD, np.uint64(columns.size) - _ONE)]) * np.uint64(X.shape[1])
    prefetch(X, row + first)
    prefetch(X, row + last)


@inlined
def _four_sums(
    entries: Entries,
    X: NumericArray,
    place: np.uint64,
    stop: np.uint64,
    first: np.uint64,
    last: np.uint64,
    total: NumericArray,
) -> None:
    # Of columns first to last; where those are fewer than four, the last is summed more than once.
    columns, values, apart = entries
    wide = total.dtype.type
    second, third = min(first + _ONE, last), min(first + _TWO, last)
    a = b = c = d = wide(0)
    while place < stop:
        _ask_ahead(columns, X, place, first, last)
        row, value = X[columns[place]], wide(values[place * apart])
        a += value * row[first]
        b += value * row[second]
        c += value * row[third]
        d += value * row[last]
        place += _ONE
    total[first] = a
    total[second] = b
    total[third] = c
    total[last] = d


@inlined
def _eight_sums(
    entries: Entries,
    X: NumericArray,
    place: np.uint64,
    stop: np.uint64,
    first: np.uint64,
    total: NumericArray,
) -> None:
    columns, values, apart = entries
    wide = total.dtype.type
    a = b = c = d = e = f = g = h = wide(0)
    while place < stop:
        _ask_ahead(columns, X, place, first, first + _SEVEN)
        row, value = X[columns[place]], wide(values[place * apart])
        a += value * row[first]
        b += value * row[first + _ONE]
        c += value * row[first + _TWO]
        d += value * row[first + _THREE]
        e += value * row[first + _FOUR]
        f += value * row[first + _FIVE]
        g += value * row[first + _SIX]
        h += value * row[first + _SEVEN]
        place += _ONE
    total[first], total[first + _ONE], total[first + _TWO], total[first + _THREE] = a, b, c, d
    total[first + _FOUR], total[first + _FIVE], total[first + _SIX], total[first + _SEVEN] = e, f, g, h


@compiled
def _wide_leaf(
    entries: Entries, X: NumericArray, place: np.uint64, stop: np.uint64, total: NumericArray
) -> None:
    columns, values, apart = entries
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


@inlined
def _narrow_leaf(
    entries: Entries, X: NumericArray, place: np.uint64, stop: np.uint64, total: NumericArray
) -> None:
    first, width = _ZERO, np.uint64(X.shape[1])
    while first + _EIGHT <= width:
        _eight_sums(entries, X, place, stop, first, total)
        first += _EIGHT
    while first < width:
        _four_sums(entries, X, place, stop, first, min(first + _THREE, width - _ONE), total)
        first += _FOUR


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
    entries = columns, values, apart
    for i in range(np.uint64(pointers.size) - _ONE):
        place, stop = np.uint64(pointers[i]), np.uint64(pointers[i + _ONE])
        top = count = _ZERO
        while place < stop or count == _ZERO:
            if X.shape[1] <= _NARROW:
                _narrow_leaf(entries, X, place, min(place + _LEAF, stop), levels[top])
            else:
                _wide_leaf(entries, X, place, min(place + _LEAF, stop), levels[top])
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
            _ask_ahead(columns, X, np.uint64(place), _ZERO, np.uint64(X.shape[1]) - _ONE)
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
            _ask_ahead(columns, X, np.uint64(place), _ZERO, np.uint64(X.shape[1]) - _ONE)
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

"""The compiled loops that multiply a sparse matrix with a vector too long for the near cache."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import NumericArray
from matnb.blocks.kernels.compiled import UnsignedArray, compiled, inlined
from matnb.blocks.kernels.vector_loops import Sums, tree, tree_of_ones

WordArray = npt.NDArray[np.uint64]

# The sums are those of vector_loops, bit for bit: leaves of 64 entries in order, then a binary tree. Only the
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
_ZERO, _ONE, _TWO, _THREE, _FOUR = (np.uint64(number) for number in range(5))
_FIVE, _SIX, _SEVEN = (np.uint64(number) for number in range(5, 8))
_LEAF, _LAST, _HALF_WORD = np.uint64(64), np.uint64(63), np.uint64(32)
# Which kind a row is by its number of entries: 0, 1, 2, 3 to 4, 5 to 8, up to 63, and long.
_KINDS = np.array([0, 1, 2, 3, 3, 4, 4, 4, 4, *[5] * 55, 6], np.uint8)


@inlined
def _term(
    columns: UnsignedArray, values: NumericArray | None, x: NumericArray, levels: Sums, place: np.uint64
) -> np.float64:
    wide = levels.dtype.type
    if values is None:
        return wide(x[columns[place]])
    return wide(wide(values[place]) * x[columns[place]])


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
    # What a row does not have is read twice and left out by a choice that is no branch.
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
    """Write the long rows from the sums of their leaves, as ``vector_loops.tree`` adds them."""
    number = _ZERO
    for k in range(count):
        row = np.uint64(rows[k])
        leaves = (np.uint64(pointers[row + _ONE]) - np.uint64(pointers[row]) + _LAST) // _LEAF
        top = _ZERO
        total = room[number]
        for leaf in range(leaves):
            total = room[number]
            number += _ONE
            full = np.uint64(leaf)
            while full & _ONE:
                top -= _ONE
                total = levels[top] + total
                full >>= _ONE
            levels[top] = total
            top += _ONE
        top -= _ONE
        total = levels[top]
        while top:
            top -= _ONE
            total = levels[top] + total
        out[row] = total


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
            if values is None:
                out[start] = tree_of_ones(columns, x, levels, begin, end)
            else:
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

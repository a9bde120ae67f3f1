"""The compiled loops of products of two sparse blocks: Gustavson's algorithm with a bit for every column.

A loop asks while it runs for which semiring it adds, so those of min and of truths are compiled for complex
numbers too, which have no order. They are refused for these when they are recorded; here they only need to
compile.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import intrinsic, overload

from matnb.blocks.formats import NumericArray
from matnb.blocks.kernels.compiled import UnsignedArray, compiled


def _trailing_zeros(_typing: object, _word: object) -> tuple[object, Callable[..., object]]:
    def instruction(context, builder, _signature, arguments):  # type: ignore[no-untyped-def]  # Numba's own
        return builder.cttz(arguments[0], context.get_constant(types.boolean, False))

    return types.uint64(types.uint64), instruction


# The place of the lowest 1 bit of a word that is not 0.
trailing_zeros: Callable[[np.uint64], np.uint64] = intrinsic(_trailing_zeros)


def is_less(one: float, other: float) -> bool:
    """Tell in a compiled loop whether ``one < other``; never so of complex numbers."""
    return one < other


def least(one: float, other: float) -> float:
    """Return in a compiled loop ``min(one, other)``; of complex numbers the first."""
    return min(one, other)


def greatest(one: float, other: float) -> float:
    """Return in a compiled loop ``max(one, other)``; of complex numbers the first."""
    return max(one, other)


# Numba wants the names and annotations of what it is given and of what it gets back to agree: there are none.


@overload(is_less, inline="always")
def _is_less(one, other):  # type: ignore[no-untyped-def]  # see above
    if isinstance(one, types.Complex) or isinstance(other, types.Complex):
        return lambda one, other: False
    return lambda one, other: one < other


@overload(least, inline="always")
def _least(one, other):  # type: ignore[no-untyped-def]  # see above
    if isinstance(one, types.Complex) or isinstance(other, types.Complex):
        return lambda one, other: one
    return lambda one, other: min(one, other)


@overload(greatest, inline="always")
def _greatest(one, other):  # type: ignore[no-untyped-def]  # see above
    if isinstance(one, types.Complex) or isinstance(other, types.Complex):
        return lambda one, other: one
    return lambda one, other: max(one, other)


# How two entries meet and are added. A number that a loop compares once a row of the right operand, so that
# each loop is compiled once for a dtype and not once more for each semiring.
PLUS_TIMES, MIN_PLUS, PAIR, TRUTH = range(4)

Words = npt.NDArray[np.uint64]

# Looking at a word of 64 columns without an entry takes 0.15 ns, sorting 400 columns 7 ns a piece: with fewer
# pairs than one in 32 words of the span, a row's columns are listed and sorted. The fewest are sorted while
# they are listed, which does without a look at a bit in memory far away (2 entries a row of 2^20: 285 ms
# instead of 645 for the whole product).
_WORDS_A_PAIR = np.uint64(32)
_FEW_PAIRS = np.uint64(32)


@compiled
def upper_bound(
    pointers_a: UnsignedArray, columns_a: UnsignedArray, pointers_b: UnsignedArray, width: int
) -> np.int64:
    """Return at most how many entries A @ B stores: in each row the pairs that meet, or the whole width."""
    total = np.uint64(0)
    for i in range(pointers_a.size - 1):
        pairs = np.uint64(0)
        for a in range(pointers_a[i], pointers_a[i + 1]):
            k = columns_a[a]
            pairs += np.uint64(pointers_b[k + np.uint32(1)] - pointers_b[k])
        total += min(pairs, np.uint64(width))
    return np.int64(total)


@compiled
def row_span(
    start: int, stop: int, columns_a: UnsignedArray, pointers_b: UnsignedArray, columns_b: UnsignedArray
) -> tuple[np.uint64, np.uint64, np.uint64]:
    """Return how many pairs meet in one row of A @ B, and the first and last word of bits they are in.

    ``start`` and ``stop`` are the row's entries in A.
    """
    pairs, low, high = np.uint64(0), np.uint64(2**32), np.uint64(0)
    for a in range(start, stop):
        k = columns_a[a]
        first, end = pointers_b[k], pointers_b[k + np.uint32(1)]
        if first < end:
            pairs += np.uint64(end - first)
            low = min(low, np.uint64(columns_b[first]))
            high = max(high, np.uint64(columns_b[end - np.uint32(1)]))
    return pairs, low >> np.uint64(6), high >> np.uint64(6)


@compiled
def is_listed(pairs: np.uint64, low: np.uint64, high: np.uint64) -> np.bool_:
    """Tell whether the columns of a row are listed and sorted, and not found by looking at every bit."""
    return pairs * _WORDS_A_PAIR < high - low


@compiled
def list_columns(
    start: int,
    stop: int,
    columns_a: UnsignedArray,
    pointers_b: UnsignedArray,
    columns_b: UnsignedArray,
    pairs: np.uint64,
    seen: Words,
    columns: UnsignedArray,
    count: np.uint64,
) -> np.uint64:
    """Write the sorted columns of one row of A @ B from place ``count`` on, and return where they end."""
    before = count
    if pairs <= _FEW_PAIRS:
        for a in range(start, stop):
            k = columns_a[a]
            for b in range(pointers_b[k], pointers_b[k + np.uint32(1)]):
                column, place = columns_b[b], count
                while place > before and columns[place - np.uint64(1)] > column:
                    place -= np.uint64(1)
                if place > before and columns[place - np.uint64(1)] == column:
                    continue
                later = count
                while later > place:
                    columns[later] = columns[later - np.uint64(1)]
                    later -= np.uint64(1)
                columns[place] = column
                count += np.uint64(1)
        return count
    for a in range(start, stop):
        k = columns_a[a]
        for b in range(pointers_b[k], pointers_b[k + np.uint32(1)]):
            column = columns_b[b]
            word, bit = column >> np.uint32(6), np.uint64(1) << np.uint64(column & np.uint32(63))
            if seen[word] & bit == 0:
                seen[word] |= bit
                columns[count] = column
                count += np.uint64(1)
    columns[before:count].sort()
    for written in columns[before:count]:
        seen[written >> np.uint32(6)] = 0
    return count


@compiled
def mark_row(
    start: int,
    stop: int,
    columns_a: UnsignedArray,
    pointers_b: UnsignedArray,
    columns_b: UnsignedArray,
    seen: Words,
) -> None:
    """Set the bit of every column where a pair meets in one row of A @ B."""
    for a in range(start, stop):
        k = columns_a[a]
        for b in range(pointers_b[k], pointers_b[k + np.uint32(1)]):
            column = columns_b[b]
            seen[column >> np.uint32(6)] |= np.uint64(1) << np.uint64(column & np.uint32(63))


@compiled
def take_columns(
    low: np.uint64, high: np.uint64, seen: Words, columns: UnsignedArray, count: np.uint64
) -> np.uint64:
    """Write the columns whose bits are set from place ``count`` on, clear the bits, return where they end."""
    for word in range(low, high + np.uint64(1)):
        bits = seen[word]
        seen[word] = 0
        while bits != 0:
            columns[count] = (word << np.uint64(6)) + trailing_zeros(bits)
            bits &= bits - np.uint64(1)
            count += np.uint64(1)
    return count


@compiled
def add_row(
    code: int,
    start: int,
    stop: int,
    columns_a: UnsignedArray,
    values_a: NumericArray,
    pointers_b: UnsignedArray,
    columns_b: UnsignedArray,
    values_b: NumericArray,
    row: NumericArray,
) -> None:
    """Add the pairs of one row of A @ B to ``row``, by column, in the order of A's entries.

    Sums are written into ``row`` before they are compared (its last element is there for that), because Numba
    computes narrow integers in 64 bits and only a store wraps them as NumPy does.
    """
    last = row.size - 1
    for a in range(start, stop):
        k = columns_a[a]
        first, end = pointers_b[k], pointers_b[k + np.uint32(1)]
        if code == PLUS_TIMES:
            value = values_a[a]
            for b in range(first, end):
                row[columns_b[b]] += value * values_b[b]
        elif code == MIN_PLUS:
            value = values_a[a]
            for b in range(first, end):
                row[last] = value + values_b[b]
                total, least = row[last], row[columns_b[b]]
                # A NaN is kept, as numpy.minimum keeps it: nothing is less, and it differs from itself. A
                # choice and not a branch, which is guessed wrong so often that it takes twice the time.
                row[columns_b[b]] = total if is_less(total, least) | (total != total) else least
        elif code == PAIR:
            for b in range(first, end):
                row[columns_b[b]] += 1
        elif values_a[a]:
            for b in range(first, end):
                row[columns_b[b]] = greatest(row[columns_b[b]], values_b[b])


@compiled
def add_and_mark_row(
    code: int,
    start: int,
    stop: int,
    columns_a: UnsignedArray,
    values_a: NumericArray,
    pointers_b: UnsignedArray,
    columns_b: UnsignedArray,
    values_b: NumericArray,
    row: NumericArray,
    seen: Words,
) -> None:
    """Do as ``mark_row`` and ``add_row``, together for the commonest: the bits cost half as much then."""
    if code == PLUS_TIMES:
        for a in range(start, stop):
            k, value = columns_a[a], values_a[a]
            for b in range(pointers_b[k], pointers_b[k + np.uint32(1)]):
                column = columns_b[b]
                row[column] += value * values_b[b]
                seen[column >> np.uint32(6)] |= np.uint64(1) << np.uint64(column & np.uint32(63))
    elif code == PAIR:
        for a in range(start, stop):
            k = columns_a[a]
            for b in range(pointers_b[k], pointers_b[k + np.uint32(1)]):
                column = columns_b[b]
                row[column] += 1
                seen[column >> np.uint32(6)] |= np.uint64(1) << np.uint64(column & np.uint32(63))
    else:
        mark_row(start, stop, columns_a, pointers_b, columns_b, seen)
        add_row(code, start, stop, columns_a, values_a, pointers_b, columns_b, values_b, row)


@compiled
def product_pattern(
    pointers_a: UnsignedArray,
    columns_a: UnsignedArray,
    pointers_b: UnsignedArray,
    columns_b: UnsignedArray,
    seen: Words,
    pointers: UnsignedArray,
    columns: UnsignedArray,
    is_kept: bool,
) -> np.int64:
    """Write pointers and columns of A @ B, an entry for every place where a pair met; return how many.

    Unless ``is_kept`` they are only counted, and each row overwrites the columns of the one before. ``seen``
    has a bit for every column, 0 before and after.
    """
    count, place = np.uint64(0), np.uint64(0)
    for i in range(pointers_a.size - 1):
        start, stop = pointers_a[i], pointers_a[i + 1]
        pairs, low, high = row_span(start, stop, columns_a, pointers_b, columns_b)
        end = place
        if pairs > 0 and is_listed(pairs, low, high):
            end = list_columns(start, stop, columns_a, pointers_b, columns_b, pairs, seen, columns, place)
        elif pairs > 0:
            mark_row(start, stop, columns_a, pointers_b, columns_b, seen)
            end = take_columns(low, high, seen, columns, place)
        count += end - place
        if is_kept:
            place = end
            pointers[i + 1] = end
    return np.int64(count)


@compiled
def product(
    code: int,
    pointers_a: UnsignedArray,
    columns_a: UnsignedArray,
    values_a: NumericArray,
    pointers_b: UnsignedArray,
    columns_b: UnsignedArray,
    values_b: NumericArray,
    seen: Words,
    row: NumericArray,
    pointers: UnsignedArray,
    columns: UnsignedArray,
    out: NumericArray,
) -> np.int64:
    """Write pointers, columns and values of A @ B; return how many entries it has.

    ``row`` holds the identity of the addition for every column, and one element more.
    """
    count, identity = np.uint64(0), row[:1].copy()
    for i in range(pointers_a.size - 1):
        start, stop = pointers_a[i], pointers_a[i + 1]
        pairs, low, high = row_span(start, stop, columns_a, pointers_b, columns_b)
        end = count
        if pairs > 0 and is_listed(pairs, low, high):
            end = list_columns(start, stop, columns_a, pointers_b, columns_b, pairs, seen, columns, count)
            add_row(code, start, stop, columns_a, values_a, pointers_b, columns_b, values_b, row)
        elif pairs > 0:
            add_and_mark_row(
                code, start, stop, columns_a, values_a, pointers_b, columns_b, values_b, row, seen
            )
            end = take_columns(low, high, seen, columns, count)
        for place in range(count, end):
            out[place] = row[columns[place]]
            row[columns[place]] = identity[0]
        count = end
        pointers[i + 1] = end
    return np.int64(count)

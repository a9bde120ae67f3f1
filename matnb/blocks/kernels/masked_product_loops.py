"""The compiled loops of products of two sparse blocks under a mask."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import NumericArray
from matnb.blocks.kernels.compiled import UnsignedArray, compiled
from matnb.blocks.kernels.orders import greatest, is_less, least
from matnb.blocks.kernels.sparse_product_loops import (
    MIN_PLUS,
    PAIR,
    PLUS_TIMES,
    Words,
    add_and_mark_row,
    add_row,
    is_listed,
    list_columns,
    row_span,
    take_columns,
)

Marks = npt.NDArray[np.uint8]

_GATHERED = np.uint64(256)  # entries whose places are kept at a time, in the first level of cache


@compiled
def product_by_slots(
    code: int,
    pointers_a: UnsignedArray,
    columns_a: UnsignedArray,
    values_a: NumericArray,
    pointers_b: UnsignedArray,
    columns_b: UnsignedArray,
    values_b: NumericArray,
    pointers_m: UnsignedArray,
    columns_m: UnsignedArray,
    slots: UnsignedArray,
    sums: NumericArray,
    met: Marks,
) -> None:
    """Add the pairs of A @ B at the entries of a mask to ``sums``; ``met`` tells where there was a pair.

    ``slots`` is 0 for every column, before and after: within a row, where the mask's entry is, from 1 on.
    """
    # First the places of what the mask lets through are gathered, without a branch, then they are added:
    # 0.65 ns a pair, where a test of each takes 1.2 and adding the rest to a slot of its own 2.7.
    total = np.empty(1, sums.dtype)
    kept_places, kept_slots = np.empty(_GATHERED, np.uint32), np.empty(_GATHERED, np.uint32)
    for i in range(pointers_a.size - 1):
        start, stop = pointers_m[i], pointers_m[i + 1]
        if start == stop:
            continue
        for entry in range(start, stop):
            slots[columns_m[entry]] = entry + np.uint64(1)
        for a in range(pointers_a[i], pointers_a[i + 1]):
            k = columns_a[a]
            begin, end = np.uint64(pointers_b[k]), np.uint64(pointers_b[k + np.uint32(1)])
            while begin < end:
                until = min(end, begin + _GATHERED - np.uint64(1))
                kept = np.uint64(0)
                for b in range(begin, until):
                    slot = slots[columns_b[b]]
                    kept_places[kept] = b
                    kept_slots[kept] = slot
                    kept += np.uint64(slot != 0)
                begin = until
                if code == PLUS_TIMES:
                    value = values_a[a]
                    for one in range(kept):
                        slot = kept_slots[one] - np.uint32(1)
                        sums[slot] += value * values_b[kept_places[one]]
                        met[slot] = 1
                elif code == MIN_PLUS:
                    value = values_a[a]
                    for one in range(kept):
                        slot = kept_slots[one] - np.uint32(1)
                        total[0] = value + values_b[kept_places[one]]
                        if is_less(total[0], sums[slot]) or total[0] != total[0]:
                            sums[slot] = total[0]
                        met[slot] = 1
                elif code == PAIR:
                    for one in range(kept):
                        slot = kept_slots[one] - np.uint32(1)
                        sums[slot] += 1
                        met[slot] = 1
                else:
                    truth = values_a[a]
                    for one in range(kept):
                        slot = kept_slots[one] - np.uint32(1)
                        sums[slot] = greatest(sums[slot], least(truth, values_b[kept_places[one]]))
                        met[slot] = 1
        for entry in range(start, stop):
            slots[columns_m[entry]] = 0


@compiled
def product_by_columns(
    code: int,
    pointers_a: UnsignedArray,
    columns_a: UnsignedArray,
    values_a: NumericArray,
    pointers_t: UnsignedArray,
    columns_t: UnsignedArray,
    values_t: NumericArray,
    pointers_m: UnsignedArray,
    columns_m: UnsignedArray,
    slots: UnsignedArray,
    sums: NumericArray,
    met: Marks,
) -> None:
    """Do as ``product_by_slots``, given B transposed: each entry of the mask by a row of A and a column of B.

    ``slots`` is 0 for every column of A: within a row, where A's entry is, from 1 on.
    """
    total = np.empty(1, sums.dtype)
    for i in range(pointers_a.size - 1):
        if pointers_m[i] == pointers_m[i + 1] or pointers_a[i] == pointers_a[i + 1]:
            continue
        for a in range(pointers_a[i], pointers_a[i + 1]):
            slots[columns_a[a]] = a + np.uint64(1)
        for entry in range(pointers_m[i], pointers_m[i + 1]):
            j = columns_m[entry]
            for t in range(pointers_t[j], pointers_t[j + np.uint32(1)]):
                slot = slots[columns_t[t]]
                if slot == 0:
                    continue
                met[entry] = 1
                if code == PLUS_TIMES:
                    sums[entry] += values_a[slot - np.uint32(1)] * values_t[t]
                elif code == MIN_PLUS:
                    total[0] = values_a[slot - np.uint32(1)] + values_t[t]
                    if is_less(total[0], sums[entry]) or total[0] != total[0]:
                        sums[entry] = total[0]
                elif code == PAIR:
                    sums[entry] += 1
                else:
                    sums[entry] = greatest(sums[entry], least(values_a[slot - np.uint32(1)], values_t[t]))
        for a in range(pointers_a[i], pointers_a[i + 1]):
            slots[columns_a[a]] = 0


@compiled
def product_where(
    code: int,
    pointers_a: UnsignedArray,
    columns_a: UnsignedArray,
    values_a: NumericArray,
    pointers_b: UnsignedArray,
    columns_b: UnsignedArray,
    values_b: NumericArray,
    pointers_m: UnsignedArray,
    columns_m: UnsignedArray,
    dense_mask: Marks,
    allowed: Marks,
    seen: Words,
    row: NumericArray,
    pointers: UnsignedArray,
    columns: UnsignedArray,
    out: NumericArray,
) -> np.int64:
    """Write pointers, columns and values of A @ B where a mask allows it; return how many entries there are.

    ``allowed`` is 1 for every column; the entries of the mask M are not allowed. Unless it has no rows,
    ``dense_mask`` tells what is allowed instead. ``row`` and ``seen`` are as for ``product``.
    """
    count, identity = np.uint64(0), row[:1].copy()
    for i in range(pointers_a.size - 1):
        start, stop = pointers_a[i], pointers_a[i + 1]
        pairs, low, high = row_span(start, stop, columns_a, pointers_b, columns_b)
        if pairs == 0:
            pointers[i + 1] = count
            continue
        if is_listed(pairs, low, high):
            end = list_columns(start, stop, columns_a, pointers_b, columns_b, pairs, seen, columns, count)
            add_row(code, start, stop, columns_a, values_a, pointers_b, columns_b, values_b, row)
        else:
            add_and_mark_row(
                code, start, stop, columns_a, values_a, pointers_b, columns_b, values_b, row, seen
            )
            end = take_columns(low, high, seen, columns, count)
        if dense_mask.shape[0] > 0:
            allowed[:] = dense_mask[i]
        else:
            for entry in range(pointers_m[i], pointers_m[i + 1]):
                allowed[columns_m[entry]] = 0
        first = count
        for place in range(first, end):
            column = columns[place]
            columns[count] = column
            out[count] = row[column]
            row[column] = identity[0]
            count += np.uint64(allowed[column])
        if dense_mask.shape[0] == 0:
            for entry in range(pointers_m[i], pointers_m[i + 1]):
                allowed[columns_m[entry]] = 1
        pointers[i + 1] = count
    return np.int64(count)


@compiled
def count_pairs(
    pointers_a: UnsignedArray,
    columns_a: UnsignedArray,
    pointers_b: UnsignedArray,
    columns_b: UnsignedArray,
    pointers_m: UnsignedArray,
    columns_m: UnsignedArray,
    marks: Marks,
    counts: npt.NDArray[np.int64],
) -> None:
    """Write how many pairs of each row of A @ B meet at entries of a mask; ``marks`` is 0 everywhere."""
    for i in range(pointers_a.size - 1):
        if pointers_m[i] == pointers_m[i + 1]:
            continue
        for entry in range(pointers_m[i], pointers_m[i + 1]):
            marks[columns_m[entry]] = 1
        total = np.uint64(0)
        for a in range(pointers_a[i], pointers_a[i + 1]):
            k = columns_a[a]
            count = np.uint32(0)
            for b in range(pointers_b[k], pointers_b[k + np.uint32(1)]):
                count += marks[columns_b[b]]
            total += count
        counts[i] = total
        for entry in range(pointers_m[i], pointers_m[i + 1]):
            marks[columns_m[entry]] = 0


@compiled
def count_work(
    pointers_a: UnsignedArray,
    columns_a: UnsignedArray,
    pointers_b: UnsignedArray,
    columns_b: UnsignedArray,
    pointers_m: UnsignedArray,
    columns_m: UnsignedArray,
    in_column: UnsignedArray,
) -> tuple[np.uint64, np.uint64]:
    """Return how many entries of B are looked at for A @ B under a mask: by slots, and by columns.

    ``in_column`` is 0 for every column of B, and left with how many entries each has.
    """
    pairs, looked_at = np.uint64(0), np.uint64(0)
    for i in range(pointers_a.size - 1):
        if pointers_m[i] == pointers_m[i + 1]:
            continue
        for a in range(pointers_a[i], pointers_a[i + 1]):
            k = columns_a[a]
            pairs += np.uint64(pointers_b[k + np.uint32(1)] - pointers_b[k])
    for column in columns_b:
        in_column[column] += np.uint32(1)
    for column in columns_m:
        looked_at += np.uint64(in_column[column])
    return pairs, looked_at

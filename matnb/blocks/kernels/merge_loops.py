"""Compiled loops that put two sorted arrays together to one, without a branch an element.

Places in arrays are unsigned: Python's negative indices cost a comparison an access. Elements are compared as
numbers: there is no NaN among them.
"""

from __future__ import annotations

import numpy as np

from matnb.blocks.formats import NumericArray
from matnb.blocks.kernels.compiled import compiled

Places = np.ndarray[tuple[int], np.dtype[np.int64]]
_Place = np.uint64
_ZERO, _ONE = np.uint64(0), np.uint64(1)


@compiled
def merge(left: NumericArray, right: NumericArray, out: NumericArray) -> None:
    """Write the elements of two sorted arrays in order.

    The two halves of the result are written side by side: each choice has to wait for the one before it, so
    a processor has time for two.
    """
    half = out.size // 2
    # how many of the first half are of the left array; of equal elements its own come first
    low, high = max(0, half - right.size), min(half, left.size)
    while low < high:
        middle = (low + high) >> 1
        if right[half - middle - 1] < left[middle]:
            high = middle
        else:
            low = middle + 1
    i, j, k = _ZERO, _ZERO, _ZERO
    p, q, r = _Place(low), _Place(half - low), _Place(half)
    i_end, j_end, p_end, q_end = p, q, _Place(left.size), _Place(right.size)
    while True:
        # so many steps reach no end
        count = min(min(i_end - i, j_end - j), min(p_end - p, q_end - q))
        if count == _ZERO:
            break
        for number in range(count):
            step = _Place(number)
            one, other = left[i], right[j]
            is_right = _Place(other < one)
            out[k + step] = other if other < one else one
            j += is_right
            i += _ONE - is_right
            one, other = left[p], right[q]
            is_right = _Place(other < one)
            out[r + step] = other if other < one else one
            q += is_right
            p += _ONE - is_right
        k += _Place(count)
        r += _Place(count)
    for is_last in range(2):
        if is_last:
            i, j, k, i_end, j_end = p, q, r, p_end, q_end
        while True:
            count = min(i_end - i, j_end - j)
            if count == _ZERO:
                break
            for number in range(count):
                one, other = left[i], right[j]
                is_right = _Place(other < one)
                out[k + _Place(number)] = other if other < one else one
                j += is_right
                i += _ONE - is_right
            k += _Place(count)
        while i < i_end:
            out[k] = left[i]
            i += _ONE
            k += _ONE
        while j < j_end:
            out[k] = right[j]
            j += _ONE
            k += _ONE


@compiled
def merge_with_places(
    left: NumericArray,
    right: NumericArray,
    left_places: Places,
    right_places: Places,
    out: NumericArray,
    places: Places,
) -> None:
    """Write the elements of two sorted arrays in order, and their places; of equal ones the left's first."""
    i, j, k = _ZERO, _ZERO, _ZERO
    i_end, j_end = _Place(left.size), _Place(right.size)
    while True:
        count = min(i_end - i, j_end - j)
        if count == _ZERO:
            break
        for number in range(count):
            step = k + _Place(number)
            one, other = left[i], right[j]
            a, b = left_places[i], right_places[j]
            is_right = _Place(other < one)
            out[step] = other if other < one else one
            places[step] = b if other < one else a
            j += is_right
            i += _ONE - is_right
        k += _Place(count)
    while i < i_end:
        out[k], places[k] = left[i], left_places[i]
        i += _ONE
        k += _ONE
    while j < j_end:
        out[k], places[k] = right[j], right_places[j]
        j += _ONE
        k += _ONE

"""Segments of a vector that lie behind each other: what is left of each, running values, and orders.

A block of values comes with the offsets of the segments that meet it: segment k has the values from offset k
up to offset k + 1, both counted from the first value of all. What lies outside the block is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Block, Dense, NumericArray, cast, to_numpy
from matnb.blocks.kernels.by_numpy import CALL, added_up
from matnb.blocks.kernels.compiled import compiled, given, is_worth_compiling
from matnb.blocks.kernels.reductions.deviations import (
    deviation_of_shares,
    deviation_share,
    segment_deviations,
)
from matnb.blocks.sums import Range, row_sums, share_of, single_or_double, sum_of_shares, sums_as_tree
from matnb.nested.kernels.segment_orders import places_of, ranks_of_places, sort_segments

UFUNCS = {"prod": np.multiply, "min": np.minimum, "max": np.maximum, "any": np.logical_or,
           "all": np.logical_and, "sum": np.add}  # fmt: skip
EXTREMES = ("argmin", "argmax")


def reduced(
    values: Sequence[Block], operation: str, dtype: np.dtype, identity: object, start: int, stop: int
) -> Dense:
    """Return what an operation leaves of each segment, ``identity`` of an empty one.

    Parameters
    ----------
    values
        Values in places ``start`` to ``stop``, which begin and end with segments, and the offsets of these.
    operation
        "sum", "prod", "min", "max", "any", "all", "argmin" or "argmax"; the last two give places within the
        segment, of equal ones the first, and of NaN the first. Or "deviation", of real values to float64: the
        sum of squared distances from the segment's mean.
    """
    elements, pointers = _given(values, start, stop)
    out = np.full(pointers.size - 1, identity, dtype)
    if not elements.size:
        return Dense(out)
    with np.errstate(all="ignore"):
        if operation == "deviation":
            segment_deviations(given(single_or_double(elements)), given(pointers), out)
            return Dense(out)
        if operation in EXTREMES:
            extremes = np.empty(out.size, elements.dtype)
            reduce_filled(elements, pointers, "max" if operation == "argmax" else "min", extremes)
            _first_places(given(elements), given(pointers), given(extremes), out)
        elif sums_as_tree(operation, dtype):
            return Dense(cast(row_sums(pointers, elements), dtype))
        else:
            reduce_filled(elements, pointers, operation, out)
    return Dense(out)


def _given(values: Sequence[Block], start: int, stop: int) -> tuple[NumericArray, npt.NDArray[np.int64]]:
    # Values of a block, and where in it each segment begins and ends.
    *blocks, offsets = map(to_numpy, values)
    return (blocks[0] if blocks else np.empty(0)), _within(offsets, start, stop)


def _within(offsets: NumericArray, start: int, stop: int) -> npt.NDArray[np.int64]:
    # Offsets counted from a block's first value, what lies outside of it at its ends.
    if start == 0 and (not offsets.size or offsets[-1] <= stop):
        return offsets.astype(np.int64, copy=False)
    pointers = np.clip(offsets.astype(np.int64, copy=False), start, stop)
    pointers -= start
    return pointers


def reduce_filled(
    elements: NumericArray, pointers: npt.NDArray[np.int64], operation: str, out: NumericArray
) -> None:
    """Write what an operation leaves of segments that are not empty; products go on from what is there."""
    # NumPy's reduceat gives the element there for an empty segment, so it sees the others alone.
    if operation == "prod" and out.dtype.kind in "fc":
        multiply_up(given(cast(elements, out.dtype)), given(pointers), out)
        return
    ufunc, begins = UFUNCS[operation], pointers[:-1]
    filled = begins < pointers[1:]
    element = None if operation in ("any", "all") else out.dtype
    out[filled] = ufunc.reduceat(elements, begins[filled], dtype=element)


@compiled
def multiply_up(values: NumericArray, pointers: npt.NDArray[np.int64], out: NumericArray) -> None:
    """Multiply each number by the values of its segment, one after the other."""
    for k in range(out.size):
        for place in range(pointers[k], pointers[k + 1]):
            out[k] *= values[place]


@compiled
def _first_places(
    values: NumericArray,
    pointers: npt.NDArray[np.int64],
    wanted: NumericArray,
    places: npt.NDArray[np.int64],
) -> None:
    # Where the first of the values wanted of each segment is; of NaN the first NaN.
    for k in range(places.size):
        begin, one = pointers[k], wanted[k]
        for place in range(begin, pointers[k + 1]):
            value = values[place]
            if value == one or (value != value and one != one):
                places[k] = place - begin
                break


# One segment in several blocks.


def share(values: Sequence[Block], operation: str, dtype: np.dtype, place: int) -> Dense:
    """Return what a part of a segment has for the whole: from its place within the segment on.

    Of sums of floats and of deviations the nodes of the tree over that place; of a product of floats, what
    the part before makes of it, if that is given; of the others a number.
    """
    elements = to_numpy(values[0])
    with np.errstate(all="ignore"):
        if operation == "deviation":
            return Dense(deviation_share(elements, (0,), 0, place))
        if sums_as_tree(operation, dtype):
            return Dense(share_of(elements, (0,), 0, place))
        if operation == "prod" and dtype.kind in "fc":
            out = np.ones(1, dtype) if len(values) < 2 else to_numpy(values[1]).copy()
            multiply_up(given(cast(elements, dtype)), np.array([0, elements.size]), out)
            return Dense(out)
        if operation in EXTREMES:
            at = int(np.argmax(elements) if operation == "argmax" else np.argmin(elements))
            return Dense(elements[at : at + 1].copy())
        element = None if operation in ("any", "all") else dtype
        return Dense(np.asarray(UFUNCS[operation].reduce(elements, keepdims=True, dtype=element), dtype))


def extreme_place(values: Sequence[Block], operation: str, place: int) -> Dense:
    """Return where within a segment the extreme of one of its parts is."""
    elements = to_numpy(values[0])
    return Dense(np.array([place + (np.argmax if operation == "argmax" else np.argmin)(elements)]))


def of_shares(
    values: Sequence[Block], operation: str, dtype: np.dtype, identity: object, ranges: tuple[Range, ...]
) -> Dense:
    """Return what is left of a segment, of its parts' shares; of extremes their places come after these."""
    parts = [to_numpy(one) for one in values]
    with np.errstate(all="ignore"):
        if operation == "deviation":
            return Dense(deviation_of_shares(parts, ranges, 0)[:, -1])
        if sums_as_tree(operation, dtype):
            return Dense(cast(sum_of_shares(parts, ranges, 0), dtype))
        if operation == "prod" and dtype.kind in "fc":
            return Dense(parts[-1])
        if operation in EXTREMES:
            count = len(parts) // 2
            elements, places = np.concatenate(parts[:count]), np.concatenate(parts[count:])
            best = np.argmax(elements) if operation == "argmax" else np.argmin(elements)
            return Dense(places[best : best + 1])
        whole = np.concatenate(parts)
        return Dense(np.asarray(UFUNCS[operation].reduce(whole, keepdims=True), dtype))


# Running values within segments.


def total_of(values: Sequence[Block], ufunc: str, dtype: np.dtype, start: int, stop: int) -> Dense:
    """Return what the last segment that meets a block carries out of it, and whether it begins in there.

    A vector of the two, the second 0 or 1.
    """
    elements, pointers = _given(values, start, stop)
    first = int(pointers[np.searchsorted(pointers, elements.size, "left") - 1]) if elements.size else 0
    out = np.zeros(2, dtype)
    with np.errstate(all="ignore"):
        out[0] = getattr(np, ufunc).reduce(cast(elements[first:], dtype), dtype=dtype)
    out[1] = first > 0 or _begins_at(values[-1], start)
    return Dense(out)


def _begins_at(offsets: Block, place: int) -> bool:
    # Whether a segment begins at a place, of which the value there is the first.
    return bool(np.any(to_numpy(offsets) == place))


def carried(values: Sequence[Block], ufunc: str) -> Dense:
    """Return what is carried out of blocks that lie behind each other, as from one."""
    first, *others = map(to_numpy, values)
    found = first.copy()
    with np.errstate(all="ignore"):
        for one in others:
            if one[1]:
                found = one.copy()
            else:
                found[0] = getattr(np, ufunc)(found[0], one[0])
    return Dense(found)


def last_of(values: Sequence[Block], ufunc: str) -> Dense:
    """Return what is carried out of a block: its last running value, made of the block if it is left out."""
    last, *left_out = (to_numpy(one)[-1:] for one in values)
    with np.errstate(all="ignore"):
        found = last if not left_out else getattr(np, ufunc)(last, left_out[0], dtype=last.dtype)
    return Dense(np.array([found[0], 1], last.dtype))


def scanned(
    values: Sequence[Block],
    ufunc: str,
    dtype: np.dtype,
    identity: object,
    is_exclusive: bool,
    start: int,
    stop: int,
) -> Dense:
    """Return the running values of each segment in a block.

    Parameters
    ----------
    values
        The block, the offsets of the segments that meet it, and what is carried into it, of one of these
        that began before; without it none did.
    is_exclusive
        Whether each value is left out of its own running value, so that the first one of a segment is the
        identity.
    """
    block, offsets, *before = values
    elements, pointers = _given((block, offsets), start, stop)
    continues = bool(before) and not _begins_at(offsets, start)
    out = np.empty(elements.size, dtype)
    carry = np.full(1, identity, dtype)
    if continues:
        carry[:] = to_numpy(before[0])[0]
    with np.errstate(all="ignore"):
        operand = given(cast(elements, dtype))
        none = np.full(1, identity, dtype)
        if ufunc == "add":
            summed = operand, given(pointers), carry, none, is_exclusive, continues, out
            is_compiled = is_worth_compiling(_add_up, operand.size + CALL * pointers.size, *summed)
            (_add_up if is_compiled else added_up)(*summed)
        elif ufunc == "multiply":
            _multiply_along(operand, given(pointers), carry, none, is_exclusive, continues, out)
        else:
            is_largest = ufunc in ("maximum", "logical_or")
            order = np.dtype(np.uint8) if dtype.kind == "b" else dtype
            operand, carry, none, made = (one.view(order) for one in (operand, carry, none, out))
            _extend(operand, given(pointers), carry, none, is_exclusive, continues, is_largest, made)
    return Dense(out)


@compiled
def _add_up(
    values: NumericArray,
    pointers: npt.NDArray[np.int64],
    carry: NumericArray,
    identity: NumericArray,
    is_exclusive: bool,
    continues: bool,
    out: NumericArray,
) -> None:
    for k in range(pointers.size - 1):
        begin, end = pointers[k], pointers[k + 1]
        if begin == end:
            continue
        is_continued = continues and begin == 0
        before = carry[0] if is_continued else identity[0]
        # Where nothing is before it, the first value itself: -0.0 added to 0.0 would be 0.0.
        total = before + values[begin] if is_continued or is_exclusive else values[begin]
        if is_exclusive:
            out[begin] = before
            for place in range(begin + 1, end):
                out[place] = total
                total += values[place]
        else:
            out[begin] = total
            for place in range(begin + 1, end):
                total += values[place]
                out[place] = total


@compiled
def _extend(
    values: NumericArray,
    pointers: npt.NDArray[np.int64],
    carry: NumericArray,
    identity: NumericArray,
    is_exclusive: bool,
    continues: bool,
    is_largest: bool,
    out: NumericArray,
) -> None:
    for k in range(pointers.size - 1):
        begin = pointers[k]
        top = carry[0] if continues and begin == 0 else identity[0]
        for place in range(begin, pointers[k + 1]):
            value = values[place]
            if is_exclusive:
                out[place] = top
            better = value > top if is_largest else value < top
            if (better or value != value) and top == top:
                top = value
            if not is_exclusive:
                out[place] = top


@compiled
def _multiply_along(
    values: NumericArray,
    pointers: npt.NDArray[np.int64],
    carry: NumericArray,
    identity: NumericArray,
    is_exclusive: bool,
    continues: bool,
    out: NumericArray,
) -> None:
    for k in range(pointers.size - 1):
        begin = pointers[k]
        is_continued = continues and begin == 0
        total = carry[0] if is_continued else identity[0]
        for place in range(begin, pointers[k + 1]):
            if is_exclusive:
                out[place] = total
            # The first value itself: of complex numbers, infinity times 1 is no number.
            is_first = place == begin and not is_continued
            total = values[place] if is_first else total * values[place]
            if not is_exclusive:
                out[place] = total


# Values for each segment given to each of its elements.


def spread(values: Sequence[Block], start: int, stop: int) -> Dense:
    """Return for each place from ``start`` to ``stop`` the value of its segment.

    Parameters
    ----------
    values
        A value for each segment, and the offsets of these.
    """
    numbers, offsets = map(to_numpy, values)
    return Dense(np.repeat(numbers, np.diff(_within(offsets, start, stop))))


def places_within(values: Sequence[Block], start: int, stop: int) -> Dense:
    """Return where within its segment each place from ``start`` to ``stop`` is; of the segments' offsets."""
    offsets = to_numpy(values[0]).astype(np.int64, copy=False)
    pointers = np.clip(offsets, start, stop)
    places = np.arange(start, stop)
    _take_off(given(offsets), given(pointers), start, places)
    return Dense(places)


@compiled
def _take_off(
    offsets: npt.NDArray[np.int64],
    pointers: npt.NDArray[np.int64],
    start: int,
    places: npt.NDArray[np.int64],
) -> None:
    for k in range(offsets.size - 1):
        for place in range(pointers[k] - start, pointers[k + 1] - start):
            places[place] -= offsets[k]


# Orders within segments.


def ordered(values: Sequence[Block], wanted: str, start: int, stop: int) -> Dense:
    """Return the values of each segment in ascending order, NaN last; or "places" of these, or "ranks".

    Places and ranks are counted within the segment; equal values keep their order.
    """
    elements, pointers = _given(values, start, stop)
    if wanted == "values":
        out = elements.copy()
        sort_segments(out, pointers)
        return Dense(out)
    places = places_of(elements, pointers)
    return Dense(places if wanted == "places" else ranks_of_places(places, pointers))

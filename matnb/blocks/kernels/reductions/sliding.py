"""Blocks of what slides along an axis: windows, what reductions make of each, and convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from matnb.blocks.formats import Block, Dense, NumericArray, cast, to_numpy
from matnb.blocks.kernels.compiled import compiled, given

TILE = 2**15  # elements of windows whose distances from their means are made at once
_UFUNCS = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum,
           "any": np.logical_or, "all": np.logical_and}  # fmt: skip
_WIDER = {"float16": np.float32, "float32": np.float64, "complex64": np.complex128}


def _seen(block: Block, length: int, axis: int) -> NumericArray:
    found: NumericArray = np.lib.stride_tricks.sliding_window_view(to_numpy(block), length, axis)
    return found


def windows(blocks: Sequence[Block], length: int, axis: int) -> Dense:
    """Return the windows of a block, which are copies: each element is there once for each window."""
    return Dense(np.array(_seen(blocks[0], length, axis)))


def windows_reduced(
    blocks: Sequence[Block], operation: str, length: int, axis: int, dtype: np.dtype
) -> Dense:
    """Return what a reduction makes of each window of a block, each on its own.

    Peak memory: the result, once more in a wider dtype, and ``TILE`` elements: windows are seen, not made.
    """
    seen = _seen(blocks[0], length, axis)
    with np.errstate(all="ignore"):
        if operation == "deviation":
            return Dense(_deviations(seen, dtype))
        if operation in ("sum", "prod"):
            wide = np.dtype(_WIDER.get(dtype.name, dtype))
            return Dense(cast(np.asarray(_UFUNCS[operation].reduce(seen, axis=-1, dtype=wide)), dtype))
        return Dense(np.asarray(_UFUNCS[operation].reduce(seen, axis=-1)))


def _deviations(seen: NumericArray, dtype: np.dtype) -> NumericArray:
    out = np.empty(seen.shape[:-1], dtype)
    wide = np.dtype(_WIDER.get(dtype.name, dtype))
    rows = max(1, TILE // max(1, prod(seen.shape[1:])))
    for first in range(0, len(out), rows):
        tile = seen[first : first + rows].astype(wide)
        tile -= tile.mean(axis=-1, keepdims=True)
        np.square(tile, out=tile)
        out[first : first + rows] = tile.sum(axis=-1)
    return out


def convolved(blocks: Sequence[Block], first: int, start: int, length: int) -> Dense:
    """Return a part of a convolution, from the part of a vector that it needs and all weights.

    Parameters
    ----------
    first
        Of the part of the vector, in all of it.
    start, length
        The part of the convolution.
    """
    part, weights = map(to_numpy, blocks)
    out = np.zeros(length, part.dtype)
    if not part.size:
        return Dense(out)
    with np.errstate(all="ignore"):
        made: NumericArray = np.convolve(part, weights)  # type: ignore[type-var]  # of one dtype
    low, high = max(start, first), min(start + length, first + made.size)
    if low < high:
        out[low - start : high - start] = made[low - first : high - first]
    return Dense(out)


# Rolling windows: each ends at its element. What a window makes is what the end of one stretch of as many
# elements makes and the beginning of the next, where stretches begin at multiples of the length: van Herk,
# "A fast algorithm for local minimum and maximum filters", 1992; Gil, Werman, 1993. So two steps an element
# do whatever the length, nothing is taken off again, and bits do not follow the cuts.


def rolled(
    blocks: Sequence[Block],
    operation: str,
    length: int,
    least: int,
    axis: int,
    begin: int,
    before: int,
    less: int,
) -> Dense:
    """Return what a reduction makes of the window that ends at each element of a block.

    Parameters
    ----------
    blocks
        The block, and in front of it what its first window reads.
    operation
        "sum", "mean", "min", "max" or "var".
    length, least
        Of windows; and how many numbers that are not NaN make one.
    begin, before
        Where along the axis what is read begins, and how much of it is in front of the block.
    less
        What is taken from the count of numbers by which squares are divided.

    Notes
    -----
    Peak memory: the result, a window, and where the axis is not the last the block twice more.
    """
    values = cast(np.moveaxis(to_numpy(blocks[0]), axis, -1), np.dtype(np.float64))
    shape = (*values.shape[:-1], values.shape[-1] - before)
    lines = given(np.ascontiguousarray(values).reshape(prod(shape[:-1]), values.shape[-1]))
    out = np.empty((lines.shape[0], shape[-1]))
    numbers = length, least, begin, before
    if operation in ("sum", "mean"):
        _roll_sums(lines, out, *numbers, operation == "mean")
    elif operation == "var":
        _roll_variances(lines, out, *numbers, less)
    else:
        _roll_least(lines, out, *numbers, 1.0 if operation == "min" else -1.0)
    return Dense(np.ascontiguousarray(np.moveaxis(out.reshape(shape), -1, axis)))


@compiled
def _roll_sums(
    lines: NumericArray, out: NumericArray, length: int, least: int, begin: int, before: int, is_mean: bool
) -> None:
    size = lines.shape[1]
    room = min(length, size)
    sums, counts = np.zeros(room + 1), np.zeros(room + 1, np.int64)
    for line in range(lines.shape[0]):
        values = lines[line]
        stop = before
        while stop < size:
            # The elements of a stretch up to its end, or that of the line; places are those of what is read.
            here = stop
            start = (begin + here) // length * length - begin
            stop = min(start + length, size)
            total, count, held = 0.0, 0, 0
            # From the stretch before only what a window of this one reaches.
            first = max(here - length + 1, 0)
            for place in range(start - 1, first - 1, -1):
                value = values[place]
                is_number = value == value
                total += value if is_number else 0.0
                count += 1 if is_number else 0
                held += 1
                sums[held], counts[held] = total, count
            total, count = 0.0, 0
            for place in range(max(start, 0), stop):
                value = values[place]
                is_number = value == value
                total += value if is_number else 0.0
                count += 1 if is_number else 0
                if place < here:
                    continue
                reached = min(max(start - (place - length + 1), 0), held)
                number = count + counts[reached]
                found = sums[reached] + total
                if is_mean:
                    found = found / number if number > 0 else np.nan
                out[line, place - before] = found if number >= least else np.nan


@compiled
def _roll_least(
    lines: NumericArray, out: NumericArray, length: int, least: int, begin: int, before: int, sign: float
) -> None:
    # Of what is multiplied by a sign, which a maximum has.
    size = lines.shape[1]
    room = min(length, size)
    lows, counts = np.empty(room + 1), np.zeros(room + 1, np.int64)
    lows[0] = np.inf
    for line in range(lines.shape[0]):
        values = lines[line]
        stop = before
        while stop < size:
            here = stop
            start = (begin + here) // length * length - begin
            stop = min(start + length, size)
            low, count, held = np.inf, 0, 0
            first = max(here - length + 1, 0)
            for place in range(start - 1, first - 1, -1):
                value = sign * values[place]
                low = value if value < low else low
                count += 1 if value == value else 0
                held += 1
                lows[held], counts[held] = low, count
            low, count = np.inf, 0
            for place in range(max(start, 0), stop):
                value = sign * values[place]
                low = value if value < low else low
                count += 1 if value == value else 0
                if place < here:
                    continue
                reached = min(max(start - (place - length + 1), 0), held)
                number = count + counts[reached]
                found = lows[reached] if lows[reached] <= low else low
                out[line, place - before] = sign * found if number >= max(least, 1) else np.nan


@compiled
def _roll_variances(
    lines: NumericArray, out: NumericArray, length: int, least: int, begin: int, before: int, less: int
) -> None:
    # Mean square distances from the mean: sums of squares by Welford's step, 1962, and of two stretches by
    # that of Chan, Golub and LeVeque, 1983.
    size = lines.shape[1]
    room = min(length, size)
    parts = np.empty(room + 1)
    for number in range(1, room + 1):
        parts[number] = 1.0 / number
    means, squares, counts = np.zeros(room + 1), np.zeros(room + 1), np.zeros(room + 1, np.int64)
    for line in range(lines.shape[0]):
        values = lines[line]
        stop = before
        while stop < size:
            here = stop
            start = (begin + here) // length * length - begin
            stop = min(start + length, size)
            mean, square, count, held = 0.0, 0.0, 0, 0
            first = max(here - length + 1, 0)
            for place in range(start - 1, first - 1, -1):
                value = values[place]
                if value == value:
                    count += 1
                    away = value - mean
                    mean += away * parts[count]
                    square += away * (value - mean)
                held += 1
                means[held], squares[held], counts[held] = mean, square, count
            mean, square, count = 0.0, 0.0, 0
            for place in range(max(start, 0), stop):
                value = values[place]
                if value == value:
                    count += 1
                    away = value - mean
                    mean += away * parts[count]
                    square += away * (value - mean)
                if place < here:
                    continue
                reached = min(max(start - (place - length + 1), 0), held)
                number = count + counts[reached]
                found = np.nan
                if number >= max(least, less + 1):
                    away = mean - means[reached]
                    found = square + squares[reached]
                    found += away * away * count * counts[reached] * parts[number]
                    found /= number - less
                out[line, place - before] = found

"""Blocks of what slides along an axis: windows, what reductions make of each, and convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from matnb.blocks.formats import Block, Dense, NumericArray, cast, to_numpy

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

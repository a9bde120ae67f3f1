"""Elements of a block looked up in blocks of another array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matnb.blocks.formats import Block, Dense, to_numpy


def search(blocks: Sequence[Block], side: str) -> Dense:
    """Return how many elements of ascending blocks come before each value: the sum over the blocks.

    Parameters
    ----------
    blocks
        The values, then blocks of the array.
    side
        "left": those below a value; "right": also those equal to it.
    """
    values, *pieces = (to_numpy(one) for one in blocks)
    before = "left" if side == "left" else "right"
    counts = np.zeros(values.shape, np.int64)
    for one in pieces:
        counts += np.searchsorted(one, values, side=before)  # type: ignore[call-overload]  # a literal
    return Dense(counts)


def is_member(blocks: Sequence[Block]) -> Dense:
    """Return whether each value is in one of some blocks: the values, then the blocks."""
    values, *pieces = (to_numpy(one) for one in blocks)
    found = np.isin(values, pieces[0])
    for one in pieces[1:]:
        found |= np.isin(values, one)
    return Dense(found)


def interpolate(blocks: Sequence[Block]) -> Dense:
    """Return the values of a piecewise linear function: where, its places and heights, and beyond them."""
    values, places, heights, left, right = (np.asarray(to_numpy(one)) for one in blocks)
    found = np.interp(values, places, heights, left[()], right[()])  # type: ignore[call-overload]  # numbers
    return Dense(np.asarray(found))

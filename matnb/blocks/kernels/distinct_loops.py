"""Compiled loops that keep the first of equal neighbours."""

from __future__ import annotations

import numpy as np

from matnb.blocks.formats import NumericArray
from matnb.blocks.kernels.compiled import compiled

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


@compiled
def keep_first(values: NumericArray, kept: int) -> int:
    """Move the first of each run of equal elements to the front; return how many there are.

    Parameters
    ----------
    values
        In order, at least one; what is behind those returned is undefined afterwards.
    kept
        0 where the first run began before the array, so that none of it stays, else 1.
    """
    last = values[0]
    count = kept
    for place in range(1, values.size):
        one = values[place]
        values[count] = one  # in any case, and counted where it differs
        count += one != last
        last = one
    return count


@compiled
def keep_first_and_place(values: NumericArray, starts: Numbers, kept: int) -> int:
    """Do as :func:`keep_first`, and write the place of each that stays."""
    last = values[0]
    starts[0] = 0
    count = kept
    for place in range(1, values.size):
        one = values[place]
        values[count], starts[count] = one, place
        count += one != last
        last = one
    return count

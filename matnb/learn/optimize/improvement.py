"""Whether batches still make a model better, by the moving average of what they cost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray
from matnb.lazy.functions.elementwise import where


class Improvement(NamedTuple):
    """How many batches there were, the average of their cost, its least, and for how many it was no less."""

    taken: DistArray
    average: DistArray
    least: DistArray
    quiet: DistArray
    is_over: DistArray


def no_improvement() -> Improvement:
    """Return what is known before the first batch."""
    return Improvement(asarray(0), asarray(0.0), asarray(np.inf), asarray(0), asarray(False))


def improved(
    before: Improvement, cost: DistArray, share: float, is_still: DistArray, most_quiet: int | None
) -> Improvement:
    """Return what is known after a batch, as scikit-learn has it.

    Parameters
    ----------
    before
        What was known before it.
    cost
        Of the batch, 0-d.
    share
        What it counts in the average, 0 to 1.
    is_still
        Whether the model hardly moves any more: then it is over.
    most_quiet
        It is over too after so many batches without a gain; None for any number.
    """
    # The first batch tells of the start alone; the second one is the first average.
    taken = before.taken + 1
    average = where(taken <= 2, cost, before.average * (1 - share) + cost * share)
    is_gain = (taken > 1) & (average < before.least)
    least = where(is_gain, average, before.least)
    quiet = where(is_gain | (taken <= 1), 0, before.quiet + 1)
    is_over = is_still if most_quiet is None else is_still | (quiet >= most_quiet)
    return Improvement(taken, average, least, quiet, is_over & (taken > 1))

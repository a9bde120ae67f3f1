"""Cuts of both axes of a matrix: each cut best for the cuts of the other, until nothing improves."""

from __future__ import annotations

import numpy as np

from matnb.balance.contiguous import with_rows
from matnb.balance.situation import Floats, Integers
from matnb.blocks.grid import regular_cuts
from matnb.errors import ShapeError

_EXACT = 1e-6  # relative: a heaviest block found is at most so much above the least
_MOST_ROUNDS = 50  # few are ever needed; each makes the heaviest block lighter
Axes = tuple[tuple[int, ...], tuple[int, ...]]


def rectilinear_cuts(weights: Floats, counts: tuple[int, int]) -> Axes:
    """Return cuts of both axes that make the heaviest block light.

    With the columns' cuts given, the best cuts of the rows are found exactly, then with these the best cuts
    of the columns, until nothing improves (Nicol 1994, "Rectilinear partitioning of irregular data parallel
    computations"). This is done from equal parts and from parts of equal weight, and the better result taken:
    no cuts of one axis alone can improve it, and it is never worse than equal parts.

    Parameters
    ----------
    weights
        Work of each cell, or of each bin of cells, 2-D, not negative.
    counts
        Parts of each axis.

    Returns
    -------
    Cuts of the rows and of the columns, in cells, increasing; fewer parts where an axis is shorter.

    Raises
    ------
    ShapeError
        When the weights are not 2-D, or a count is below 1.
    """
    if weights.ndim != 2 or min(counts) < 1:
        raise ShapeError(
            f"weights of {weights.ndim} axes in {counts} parts: give 2-D weights, parts from 1 on"
        )
    found = []
    for start in (_equal(weights, counts), _of_equal_weight(weights, counts)):
        cuts, heaviest = start, heaviest_block(weights, start)
        for _ in range(_MOST_ROUNDS):
            rows = _best_cuts(weights, cuts[1], len(cuts[0]) - 1)
            columns = _best_cuts(weights.T, rows, len(cuts[1]) - 1)
            lighter = heaviest_block(weights, (rows, columns))
            if lighter >= heaviest * (1 - _EXACT):
                break
            cuts, heaviest = (rows, columns), lighter
        found.append((heaviest, cuts))
    return min(found)[1]


def heaviest_block(weights: Floats, cuts: Axes) -> float:
    """Return the weight of the heaviest block."""
    if not weights.size:
        return 0.0
    rows = np.add.reduceat(weights, cuts[0][:-1], axis=0)
    return float(np.add.reduceat(rows, cuts[1][:-1], axis=1).max())


def _equal(weights: Floats, counts: tuple[int, int]) -> Axes:
    rows, columns = weights.shape
    return regular_cuts(rows, counts[0]), regular_cuts(columns, counts[1])


def _of_equal_weight(weights: Floats, counts: tuple[int, int]) -> Axes:
    rows, columns = weights.shape
    return _best_cuts(weights, (0, columns), counts[0]), _best_cuts(weights.T, (0, rows), counts[1])


def _best_cuts(weights: Floats, others: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Return the cuts of the first axis with the lightest heaviest block, the other axis being cut."""
    length = len(weights)
    if not weights.size:
        return regular_cuts(length, count)
    count = min(count, length)
    stripes = np.add.reduceat(weights, others[:-1], axis=1)
    before = np.concatenate([np.zeros((1, stripes.shape[1])), np.cumsum(stripes, axis=0)])
    best = np.asarray(regular_cuts(length, count), np.int64)
    high = _heaviest(before, best)
    low = max(float(before[-1].max()) / count, float(stripes.max()))
    while high - low > _EXACT * high:
        limit = (low + high) / 2
        cuts = _greedy(before, count, limit)
        if cuts[-1] == length:
            best, high = cuts, min(limit, _heaviest(before, cuts))
        else:
            more = before[np.minimum(cuts[1:] + 1, length)] - before[cuts[:-1]]
            low = max(limit, float(more.max(axis=1).min()))
    return tuple(map(int, with_rows(best)))


def _heaviest(before: Floats, cuts: Integers) -> float:
    return float(np.diff(before[cuts], axis=0).max())


def _greedy(before: Floats, count: int, limit: float) -> Integers:
    """Return cuts of which each part takes as much as the limit allows every stripe."""
    cuts = [0]
    for _ in range(count):
        low, high = cuts[-1], len(before) - 1  # the last place within the limit lies in [low, high]
        while low < high:
            middle = (low + high + 1) // 2
            fits = bool(((before[middle] - before[cuts[-1]]) <= limit).all())
            low, high = (middle, high) if fits else (low, middle - 1)
        cuts.append(low)
    return np.asarray(cuts, np.int64)

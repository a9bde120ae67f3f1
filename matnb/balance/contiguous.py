"""Cuts of an axis, or of both axes of a matrix, into contiguous parts that take equally long."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from matnb.balance.situation import Floats, Integers
from matnb.blocks.grid import regular_cuts
from matnb.errors import ShapeError

_EXACT = 1e-6  # relative: a makespan found is at most so much above the least
_NO_WORK = 1e-200  # less in all is none: its parts are not numbers that floats can tell apart
_ROUNDING = 1e-9  # relative: what limits and prefix sums of floats may be off by


@dataclass(frozen=True, eq=False)
class Work:
    """How much work lies before some places of an axis; between two places it is spread evenly.

    Attributes
    ----------
    places
        Ascending, from 0 to the length of the axis.
    before
        Work before each place, from 0.0, never less than before the place to its left.
    """

    places: Integers
    before: Floats

    @property
    def length(self) -> int:
        """How many rows there are."""
        return int(self.places[-1])

    @property
    def total(self) -> float:
        """The work of all rows."""
        return float(self.before[-1])

    def up_to(self, rows: npt.ArrayLike) -> Floats:
        """Return the work before any rows."""
        return np.interp(np.asarray(rows, np.float64), self.places, self.before)

    def heaviest_row(self) -> float:
        """Return the most work that a row is."""
        return float((np.diff(self.before) / np.diff(self.places)).max(initial=0.0))


def balanced_cuts(
    work: Work,
    shares: Sequence[float],
    offsets: Sequence[float] | None = None,
    preferred: Sequence[int | None] | None = None,
    slack: float = 0.0,
) -> tuple[int, ...]:
    """Return cuts into contiguous parts, the slowest of which takes the least possible time.

    A part takes ``offset + work / share``, or nothing where it has no work. The least makespan is searched by
    bisection, a greedy pass over the parts telling whether a time is enough; both ends go to times that some
    cuts take (Pinar and Aykanat 2004, "Fast optimal load balancing algorithms for 1D partitioning"). A pass
    takes a binary search a part, about 20 of them are made.

    Parameters
    ----------
    work
        Of each row; where there is none at all, rows count alike.
    shares
        For each part how fast it is worked on, above 0.
    offsets
        For each part its other work, in units of time.
    preferred
        For each part where it had best begin, or None: of the cuts that are good enough those near to these
        are returned, and else those that part the work evenly.
    slack
        What is good enough: relative, above the least makespan.

    Returns
    -------
    ``(0, ..., length)``, increasing, a part for each share. Each part has a row at least: where the best cuts
    would leave parts without any, each of these is given one of a neighbor's.

    Raises
    ------
    ShapeError
        When there are fewer rows than parts, or no part.
    """
    if not 1 <= len(shares) <= work.length:
        raise ShapeError(f"{work.length} rows in {len(shares)} parts: give 1 to {work.length} parts")
    if work.total < _NO_WORK:
        work = Work(work.places, work.places.astype(np.float64))
    parts = _Parts(work, shares, [0.0] * len(shares) if offsets is None else offsets)
    limit = parts.least() * (1 + slack + _ROUNDING)
    return parts.near([None] * len(shares) if preferred is None else preferred, limit)


class _Parts:
    """Parts of some work, each with its share and offset."""

    def __init__(self, work: Work, shares: Sequence[float], offsets: Sequence[float]) -> None:
        self._work = work
        self._shares = np.asarray(shares, np.float64)
        self._offsets = np.asarray(offsets, np.float64)
        # Converted once; and Python reads one number of a memoryview several times faster than of an array.
        self._rows = work.places.astype(np.float64)
        self._places = np.ascontiguousarray(work.places, np.int64).data
        self._before = np.ascontiguousarray(work.before, np.float64).data

    def least(self) -> float:
        """Return the least makespan of any cuts, a part without rows allowed."""
        low = self._bound()
        inner = [self._nearest(work) for work in np.cumsum(self._rooms(low))[:-1].tolist()]
        high = self._makespan(np.asarray([0, *inner, self._work.length], np.int64))
        heaviest = self._work.heaviest_row() / float(self._shares.max())
        low = max(low, float(self._offsets.min()) + heaviest)
        while high - low > _EXACT * high:
            limit = (low + high) / 2
            found = self._greedy(limit)
            if found[-1] == self._work.length:
                high = min(limit, self._makespan(found))
            else:
                low = max(limit, self._next(found))
        return high

    def near(self, preferred: Sequence[int | None], limit: float) -> tuple[int, ...]:
        """Return cuts near to the wanted ones, or else even ones, whose makespan is within the limit."""
        rooms, num_parts = self._rooms(limit), len(self._shares)
        first = [0] * num_parts + [self._work.length]  # least places from which the later parts reach the end
        reached = self._work.total
        for part in range(num_parts - 1, 0, -1):
            first[part], reached = self._down(reached - rooms[part])
        later_shares = np.cumsum(self._shares[::-1])[::-1]
        later_offsets = np.cumsum((self._shares * self._offsets)[::-1])[::-1]
        cuts, reached = [0], 0.0
        for part in range(1, num_parts):
            last, _ = self._up(reached + rooms[part - 1])
            wanted = preferred[part]
            if wanted is None:
                rest = self._work.total - reached + later_offsets[part - 1]
                time = rest / later_shares[part - 1] - self._offsets[part - 1]
                wanted = self._nearest(reached + max(0.0, float(time * self._shares[part - 1])))
            cuts.append(min(max(wanted, first[part], cuts[-1]), max(last, cuts[-1])))
            reached = self._work_before(cuts[-1])
        return tuple(map(int, with_rows(np.asarray([*cuts, self._work.length], np.int64))))

    def _makespan(self, cuts: Integers) -> float:
        """Return the time of the slowest part that has work."""
        held = np.diff(self._up_to(cuts))
        return float(np.where(held > 0, self._offsets + held / self._shares, 0.0).max())

    def _bound(self) -> float:
        """Return the time in which all parts together can do the work; parts with large offsets do none."""
        order = np.argsort(self._offsets, kind="stable")
        shares, offsets = self._shares[order], self._offsets[order]
        return float(((self._work.total + np.cumsum(shares * offsets)) / np.cumsum(shares)).min())

    def _rooms(self, limit: float) -> Floats:
        return np.maximum(0.0, (limit - self._offsets) * self._shares)

    def _greedy(self, limit: float) -> Integers:
        """Return cuts of which each part takes as much as the limit allows it."""
        cuts, reached, length = [0], 0.0, self._work.length
        for room in self._rooms(limit).tolist():
            place, reached = self._up(reached + room)
            cuts.append(place)
            if place == length:
                break
        return np.asarray(cuts + [length] * (len(self._shares) + 1 - len(cuts)), np.int64)

    def _next(self, cuts: Integers) -> float:
        """Return the least makespan with which a greedy pass would cut elsewhere."""
        more = self._up_to(np.minimum(cuts[1:] + 1, self._work.length)) - self._up_to(cuts[:-1])
        return float((self._offsets + more / self._shares).min())

    def _up_to(self, rows: Integers) -> Floats:
        return np.interp(rows, self._rows, self._work.before)

    def _work_before(self, row: int) -> float:
        right = bisect_right(self._places, row)
        if right == len(self._places):
            return self._work.total
        low, high = self._before[right - 1], self._before[right]
        begin, end = self._places[right - 1], self._places[right]
        return low + (high - low) * ((row - begin) / (end - begin))

    def _up(self, work: float) -> tuple[int, float]:
        """Return the last row with at most so much work before it, and how much that is."""
        right = bisect_right(self._before, work)
        if right == len(self._before):
            return self._work.length, self._work.total
        return self._between(right, work, math.floor)

    def _down(self, work: float) -> tuple[int, float]:
        """Return the first row with at least so much work before it, and how much that is."""
        right = bisect_left(self._before, work)
        return self._between(right, work, math.ceil) if right else (0, 0.0)

    def _nearest(self, work: float) -> int:
        """Return the row with about so much work before it."""
        right = bisect_right(self._before, work)
        return self._between(right, work, round)[0] if right < len(self._before) else self._work.length

    def _between(self, right: int, work: float, rounded: Callable[[float], int]) -> tuple[int, float]:
        low, high = self._before[right - 1], self._before[right]
        begin, end = self._places[right - 1], self._places[right]
        rows = rounded((work - low) / (high - low) * (end - begin))
        return begin + rows, low + (high - low) * (rows / (end - begin))


def with_rows(cuts: Integers) -> Integers:
    """Return the cuts with a row for each part that had none: its neighbors' last or first ones.

    No part gets more than one row that it did not have. ``cuts``: ascending, from 0 to a length that is at
    least the number of parts.
    """
    # Cuts less their numbers must ascend: those of later parts bound the earlier ones, ...
    numbers = np.arange(len(cuts))
    free = np.minimum.accumulate((cuts - numbers)[::-1])[::-1]
    return np.maximum(free, 0) + numbers  # ... and each part before a cut has a row.


def parts_within(work: Work, start: int, stop: int, count: int) -> tuple[int, ...]:
    """Return ``(start, ..., stop)``: cuts of some rows in parts of about as much work, fewer if rows lack."""
    if start == stop:
        return (start, stop)
    places = np.union1d(work.places[(work.places > start) & (work.places < stop)], [start, stop])
    within = Work(places - start, work.up_to(places) - work.up_to(start))
    return tuple(start + cut for cut in balanced_cuts(within, [1.0] * min(count, stop - start)))


# Both axes: each cut best for the cuts of the other, until nothing improves.

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

"""Steps along a direction that satisfy the strong conditions of Wolfe."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.mapping import replicated
from matnb.lazy.loop import iterate

Floats = npt.NDArray[np.float64]
SUFFICIENT = 1e-4  # of the decrease that the slope promises
MOST_TRIALS = 60  # 1e-40 of the first step is reached by then
FACTOR = 64 * np.finfo(float).eps  # of a loss, as scikit-learn asks SciPy's L-BFGS-B
PROMISED = np.finfo(float).eps ** 0.5  # of a loss, what a slope may promise where rounding hides it


class Point(NamedTuple):
    """Where a search is, with the loss and the gradient there."""

    x: DistArray
    loss: DistArray
    gradient: DistArray

    def unless(self, condition: DistArray, before: Point) -> Point:
        """Return this point, or the one before where a condition is true."""
        return Point(*(where(condition, old, new) for old, new in zip(before, self, strict=True)))


Evaluate = Callable[[DistArray], Point]


def is_small(gradient: DistArray, tol: float) -> DistArray:
    """Return whether no element of a gradient is larger."""
    return abs(gradient).max() <= tol


def is_settled(old: DistArray, new: DistArray) -> DistArray:
    """Return whether the loss changes by rounding alone, or is no longer a number."""
    size = np.maximum(np.maximum(abs(old), abs(new)), 1.0)
    return ~(old - new > FACTOR * size)


def is_stuck(old: Point, new: Point, promised: DistArray, tol: float) -> DistArray:
    """Return whether the loss is no lower, though its slope promised more than rounding hides."""
    near = -promised <= PROMISED * np.maximum(abs(old.loss), 1.0)
    ends_well = (near | is_small(new.gradient, tol)) & np.isfinite(new.loss)
    return is_settled(old.loss, new.loss) & ~ends_well


class _Search(NamedTuple):
    t: DistArray
    bracket: DistArray
    point: Point
    ends: DistArray


def along(
    evaluate: Evaluate,
    point: Point,
    direction: DistArray,
    slope: DistArray,
    t: object = 1.0,
    curvature: float = 0.9,
) -> Point:
    """Return a point along a direction where the loss is lower and its slope flatter, both by enough.

    Nocedal and Wright 2006, "Numerical Optimization", conditions 3.7. Between a step that is too short and
    one that is too long, as the loss or the slope there have it, there is one that satisfies both.

    Parameters
    ----------
    evaluate
        Gives the loss and the gradient at x.
    point
        Where to begin.
    direction, slope
        Where to, and its product with the gradient, below 0.
    t
        The first step that is tried.
    curvature
        What the slope at the end may be, as a share of ``slope``.
    """

    def trial(search: _Search) -> _Search:
        found = evaluate(point.x + search.t * direction)
        t, bracket, ends = next_trial(search.t, search.bracket, point, found, direction, slope, curvature)
        return _Search(t, bracket, found, ends)

    start = _Search(asarray(t), first_bracket(point, slope), point, asarray(False))
    search, _ = iterate(trial, start, until=lambda old, new: new.ends, max_iterations=MOST_TRIALS)
    return search.point


def first_bracket(point: Point, slope: DistArray) -> DistArray:
    """Return a step that is too short and one that is too long, none yet, each with its loss and slope."""
    return cast(DistArray, replicated(_begun, point.loss, slope, like=np.zeros(6)))


def _begun(loss: np.floating, slope: np.floating) -> Floats:
    return np.array([0.0, loss, slope, np.inf, np.inf, np.inf])


def next_trial(
    t: DistArray, bracket: DistArray, point: Point, found: Point, direction: DistArray, slope: DistArray,
    curvature: float,
) -> tuple[DistArray, DistArray, DistArray]:  # fmt: skip
    """Return which step to try after one, the bracket then, and whether that one was found to do."""
    seen = t, found.loss, found.gradient @ direction, bracket, point.loss, slope
    return cast(Any, replicated(partial(_next, curvature=curvature), *seen, like=(0.0, np.zeros(6), True)))


def _next(
    t: float, loss: float, end: float, bracket: Floats, first: float, slope: float, curvature: float
) -> tuple[float, Floats, bool]:
    # Near the minimum the loss differs by rounding alone, and the slope decides.
    rounding = 8 * np.finfo(float).eps * abs(first)
    low, low_loss, low_slope, high, high_loss, high_slope = bracket
    if not loss <= first + SUFFICIENT * t * slope + rounding:  # also where it is NaN
        high, high_loss, high_slope = t, loss, end
    elif abs(end) <= -curvature * slope:
        return t, bracket, True
    elif not end <= 0:  # also where it is NaN
        high, high_loss, high_slope = t, loss, end
    else:
        low, low_loss, low_slope = t, loss, end
    if high == np.inf:
        following = 2 * t if low_slope < slope / 2 else 4 * t
    else:
        # Kept off both ends.
        share = _lowest(high - low, low_loss - high_loss, low_slope, high_slope)
        following = low + (high - low) * min(max(share, 0.1), 0.9)
    settled = high - low <= np.finfo(float).eps * high if high < np.inf else False
    return following, np.array([low, low_loss, low_slope, high, high_loss, high_slope]), bool(settled)


def _lowest(width: float, fall: float, first: float, last: float) -> float:
    # Where the cubic with these slopes that falls by this is lowest, as a share: equation 3.59 there.
    if not np.isfinite(fall):
        return 0.0  # it overflows, which a step of half the length would as well
    mean = fall / width
    if not (np.isfinite(last) and np.isfinite(mean)):
        return 0.5
    # A share of the largest, and by a power of 2: a loss near the largest number has squares beyond it.
    exponent = -int(np.frexp(max(abs(first), abs(last), abs(mean)))[1])
    first, last, mean = (float(np.ldexp(one, exponent)) for one in (first, last, mean))
    middle = first + last + 3 * mean
    root = np.sqrt(max(middle * middle - first * last, 0.0))
    below = last - first + 2 * root
    return 1 - (last + root - middle) / below if below > 0 else 0.5

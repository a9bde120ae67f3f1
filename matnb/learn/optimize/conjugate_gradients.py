"""The method of conjugate gradients, for losses of any form."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray
from matnb.lazy.functions.elementwise import where
from matnb.lazy.loop import iterate
from matnb.learn.optimize.lbfgs import SearchState, best_of
from matnb.learn.optimize.line_search import Evaluate, Point, along, is_settled, is_small, is_stuck

CURVATURE = 0.1  # what the slope at the end of a search may be, as a share


class Direction(NamedTuple):
    """Where to go on, the slope there, and the first step to try."""

    direction: DistArray
    slope: DistArray
    t: DistArray


class _Conjugate(NamedTuple):
    point: Point
    stuck: DistArray
    turn: Direction


def conjugate_gradients(evaluate: Evaluate, x0: DistArray, tol: float, max_iterations: int) -> SearchState:
    """Return the minimum by conjugate gradients, whether a search failed, and the number of iterations.

    Nocedal and Wright 2006, "Numerical Optimization", 5.2; a search ends where the slope is a tenth.
    """

    def step(state: _Conjugate) -> _Conjugate:
        point, slope = state.point, state.turn.slope
        new = best_of(
            point, along(evaluate, point, state.turn.direction, slope, state.turn.t, curvature=CURVATURE)
        )
        square = point.gradient @ point.gradient
        stuck = is_stuck(point, new, slope / np.maximum(np.sqrt(square), 1.0), tol)
        return _Conjugate(new, stuck, conjugate(point, new, state.turn))

    start = evaluate(x0)
    begun = _Conjugate(start, asarray(False), steepest(start))
    final, taken = iterate(
        step,
        begun,
        until=lambda old, new: is_small(new.point.gradient, tol) | is_settled(old.point.loss, new.point.loss),
        max_iterations=where(is_small(start.gradient, tol), 0, max_iterations),
    )
    return (final.point, final.stuck), taken


def steepest(point: Point) -> Direction:
    """Return the way down the gradient, at first by a step of length 1 at most."""
    square = point.gradient @ point.gradient
    return Direction(-point.gradient, -square, 1 / np.maximum(np.sqrt(square), 1.0) + asarray(0.0))


def conjugate(old: Point, new: Point, turn: Direction) -> Direction:
    """Return where to go on after a step: by Polak's and Ribiere's factor, or anew where it is below 0."""
    direction, slope, _ = turn
    g, before = new.gradient, old.gradient
    square = before @ before
    factor = np.maximum(g @ (g - before), 0.0) / where(square > 0, square, 1.0)
    along_before = factor * (g @ direction)
    falls = along_before < g @ g
    following = where(falls, along_before, 0.0) - g @ g
    taken = abs(new.x - old.x).max() / where(abs(direction).max() > 0, abs(direction).max(), 1.0)
    # The first trial promises what the last step did.
    guess = taken * slope / where(following < 0, following, -1.0)
    return Direction(where(falls, factor, 0.0) * direction - g, following, where(guess > 0, guess, 1.0))

"""The limited-memory method of Broyden, Fletcher, Goldfarb and Shanno."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray, zeros
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.mapping import replicated
from matnb.lazy.functions.shaping import concatenate
from matnb.lazy.loop import converging, iterate, warn_unless
from matnb.learn.optimize.line_search import FACTOR, Evaluate, Point, along, is_settled, is_small, is_stuck

Floats = npt.NDArray[np.float64]
LONGER = "give a larger max_iterations or tolerance"
REMEDY = "no step lowers the loss; see whether it has a minimum, and this gradient"


def best_of(old: Point, new: Point) -> Point:
    """Return the newer point, but where its loss is higher the older one: a search has failed."""
    return new.unless(~(new.loss <= old.loss + FACTOR * abs(old.loss)), old)


SearchState = tuple[tuple[Point, DistArray], DistArray]


def searching(algorithm: str, found: SearchState, longer: str = LONGER, failed: str = REMEDY) -> SearchState:
    """Return what a search gave, where a warning says so when it has ended too early or has failed.

    ``longer`` and ``failed`` are what to do then.
    """
    (point, stuck), taken = found
    state = converging(algorithm, (point, taken), longer)
    point, taken = warn_unless(~stuck, algorithm, state, taken, failed)
    return (point, stuck), taken


class _LbfgsState(NamedTuple):
    point: Point
    stuck: DistArray
    steps: DistArray  # the last ones, the latest last, and the changes of the gradient by them
    changes: DistArray


def lbfgs(evaluate: Evaluate, x0: DistArray, tol: float, max_iterations: int, history: int) -> SearchState:
    """Return the minimum by L-BFGS, whether its search failed, and the number of iterations.

    Liu and Nocedal 1989, "On the Limited Memory BFGS Method for Large Scale Optimization".
    """

    def step(state: _LbfgsState) -> _LbfgsState:
        point, _, S, Y = state
        direction, slope = quasi_newton(point, S, Y)
        new = best_of(point, along(evaluate, point, direction, slope))
        return _LbfgsState(new, is_stuck(point, new, slope, tol), *remembered(S, Y, point, new))

    start, none = evaluate(x0), zeros((history, x0.shape[0]))
    final, taken = iterate(
        step,
        _LbfgsState(start, asarray(False), none, none),
        until=lambda old, new: is_small(new.point.gradient, tol) | is_settled(old.point.loss, new.point.loss),
        max_iterations=where(is_small(start.gradient, tol), 0, max_iterations),
    )
    return (final.point, final.stuck), taken


def quasi_newton(point: Point, S: DistArray, Y: DistArray) -> tuple[DistArray, DistArray]:
    """Return a direction by the last steps and the changes of the gradient by them, and the slope along it.

    By the compact form of Byrd, Nocedal and Schnabel 1994, "Representations of Quasi-Newton Matrices and
    Their Use in Limited Memory Methods", theorem 2.2: one product with all vectors instead of two loops.
    """
    history = S.shape[0]
    vectors = concatenate([S, Y, point.gradient[None]])
    products = vectors @ concatenate([Y, point.gradient[None]]).T
    weights, slope = replicated(
        partial(_direction, history=history), products, like=(np.zeros(2 * history + 1), 0.0)
    )
    return weights @ vectors, slope


def remembered(S: DistArray, Y: DistArray, old: Point, new: Point) -> tuple[DistArray, DistArray]:
    """Return the steps and the changes of the gradient with one more, without the first."""
    s, y = new.x - old.x, new.gradient - old.gradient
    return concatenate([S[1:], s[None]]), concatenate([Y[1:], y[None]])


def _direction(products: Floats, history: int) -> tuple[Floats, float]:
    # -H g as a sum of steps, changes and g, and its product with g.
    m = history
    SY, YY = products[:m, :m], products[m : 2 * m, :m]
    Sg, Yg, gg = products[:m, m], products[m : 2 * m, m], products[2 * m, m]
    there = np.diag(SY) > np.finfo(float).eps * np.diag(YY)  # not before so many steps, nor of failed ones
    both = there[:, None] & there
    R = np.triu(np.where(both, SY, 0)) + np.diag(~there)
    steepest = gg**-0.5 if gg > 0 else 1.0  # a step of length 1 to begin with
    scale = SY[-1, -1] / YY[-1, -1] if there[-1] else steepest
    a = solve_triangular(R, np.where(there, Sg, 0))
    curved = (np.diag(np.diag(SY)) + scale * YY) * both @ a - scale * np.where(there, Yg, 0)
    weights = -np.concatenate([solve_triangular(R, curved, trans=1), -scale * a, [scale]])
    slope = weights @ products[:, m]
    if slope < 0:
        return weights, float(slope)
    return np.append(np.zeros(2 * m), -steepest), -steepest * gg

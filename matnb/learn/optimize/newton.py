"""Newton's method, with the Cholesky factors of the Hessian."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.mapping import replicated
from matnb.lazy.loop import iterate
from matnb.learn.optimize.lbfgs import SearchState
from matnb.learn.optimize.line_search import Evaluate, Point, is_small, is_stuck

Floats = npt.NDArray[np.float64]
Hessian = Callable[[DistArray], DistArray]
SUFFICIENT = 2.0**-11  # of the decrease that the slope promises
ROUNDING = 16 * np.finfo(float).eps
MOST_HALVINGS = 60


class _Newton(NamedTuple):
    point: Point
    stuck: DistArray
    hessian: DistArray
    decrement: DistArray


class _Trial(NamedTuple):
    t: DistArray
    point: Point
    hessian: DistArray


def newton(
    evaluate: Evaluate, hessian: Hessian, x0: DistArray, tol: float, max_iterations: int
) -> SearchState:
    """Return the minimum by Newton's method, whether its search failed, and the number of iterations.

    Elibol et al. 2022, "NumS: Scalable Array Programming for the Cloud", algorithm 2, with steps that are
    halved until the loss falls by enough (Nocedal and Wright 2006, "Numerical Optimization", algorithm 3.2).
    The loss, its gradient and its Hessian are made together, in one pass over the data. It ends when
    the gradient has no element above ``tol`` and half the square of Newton's decrement is at most ``tol``,
    or where no step lowers the loss: there it stays.
    """

    def step(state: _Newton) -> _Newton:
        point, _, H, _ = state
        direction, slope = newton_direction(H, point.gradient)

        def halve(trial: _Trial) -> _Trial:
            t = trial.t / 2
            x = point.x + t * direction
            return _Trial(t, evaluate(x), hessian(x))

        def falls(new: _Trial) -> DistArray:
            allowed = ROUNDING * abs(point.loss) + SUFFICIENT * new.t * slope
            return new.point.loss <= point.loss + allowed

        begun = _Trial(asarray(2.0), point, H)
        trial, _ = iterate(halve, begun, until=lambda _, new: falls(new), max_iterations=MOST_HALVINGS)
        stuck = ~falls(trial) | is_stuck(point, trial.point, slope, tol)
        # Where it is stuck it ends, and nobody reads the Hessian.
        return _Newton(trial.point.unless(stuck, point), stuck, trial.hessian, -slope)

    start = evaluate(x0)
    final, taken = iterate(
        step,
        _Newton(start, asarray(False), hessian(x0), asarray(np.inf)),
        until=lambda old, new: is_small(new.point.gradient, tol) & (new.decrement / 2 <= tol) | new.stuck,
        max_iterations=where(abs(start.gradient).max() == 0, 0, max_iterations),
    )
    return (final.point, final.stuck & ~is_small(final.point.gradient, tol)), taken


def newton_direction(hessian: DistArray, gradient: DistArray) -> tuple[DistArray, DistArray]:
    """Return a direction in which the loss falls by the Hessian, and the slope along it, below 0."""
    return cast(Any, replicated(_direction, hessian, gradient, like=(np.zeros(gradient.shape), 0.0)))


def _direction(H: Floats, gradient: Floats) -> tuple[Floats, float]:
    # -H^-1 g, and its product with g.
    if not np.isfinite(H).all():  # the loss there is finite and its curvature is not
        H = np.eye(len(H)) * max(float(np.linalg.norm(gradient)), np.finfo(float).tiny)
    try:
        direction = -cho_solve(cho_factor(H), gradient)
        slope = float(direction @ gradient)
        if -np.inf < slope < 0:
            return direction, slope
    except LinAlgError:
        pass
    # Not positive definite: by the size of curvatures, and not along those that are 0 but for rounding, as
    # seen with each element in a unit in which its own curvature is 1.
    own = np.abs(np.diag(H))
    units = 1 / np.sqrt(np.where(own > 0, own, 1.0))
    values, vectors = np.linalg.eigh((H + H.T) / 2 * units * units[:, None])
    sizes = np.abs(values)
    stays = sizes > len(H) * np.finfo(float).eps * sizes.max()
    along = vectors[:, stays].T @ (units * gradient) / np.sqrt(sizes[stays])
    direction = -units * (vectors[:, stays] @ (along / np.sqrt(sizes[stays])))
    return direction, -float(along @ along)

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
from matnb.learn.line_search import Evaluate, Point

Floats = npt.NDArray[np.float64]
Hessian = Callable[[DistArray], DistArray]
SUFFICIENT = 2.0**-11  # of the decrease that the slope promises
ROUNDING = 16 * np.finfo(float).eps
MOST_HALVINGS = 20


class _Newton(NamedTuple):
    point: Point
    hessian: DistArray
    decrement: DistArray


class _Trial(NamedTuple):
    t: DistArray
    point: Point
    hessian: DistArray


def newton(
    evaluate: Evaluate, hessian: Hessian, x0: DistArray, tol: float, max_iterations: int
) -> tuple[Point, DistArray]:
    """Return the minimum by Newton's method and the number of iterations.

    Elibol et al. 2022, "NumS: Scalable Array Programming for the Cloud", algorithm 2, with steps that are
    halved until the loss falls by enough (Nocedal and Wright 2006, "Numerical Optimization", algorithm 3.2).
    The loss, its gradient and its Hessian are made together, in one pass over the data. It ends when
    the gradient has no element above ``tol`` and half the square of Newton's decrement is at most ``tol``.
    """

    def step(state: _Newton) -> _Newton:
        point, H, _ = state
        direction, slope = newton_direction(H, point.gradient)

        def halve(trial: _Trial) -> _Trial:
            t = trial.t / 2
            x = point.x + t * direction
            return _Trial(t, evaluate(x), hessian(x))

        def falls(old: _Trial, new: _Trial) -> DistArray:
            allowed = ROUNDING * abs(point.loss) + SUFFICIENT * new.t * slope
            return new.point.loss <= point.loss + allowed

        trial, _ = iterate(halve, _Trial(asarray(2.0), point, H), until=falls, max_iterations=MOST_HALVINGS)
        return _Newton(trial.point, trial.hessian, -slope)

    start = evaluate(x0)
    final, taken = iterate(
        step,
        _Newton(start, hessian(x0), asarray(np.inf)),
        until=lambda old, new: (abs(new.point.gradient).max() <= tol) & (new.decrement / 2 <= tol),
        max_iterations=where(abs(start.gradient).max() == 0, 0, max_iterations),
    )
    return final.point, taken


def newton_direction(hessian: DistArray, gradient: DistArray) -> tuple[DistArray, DistArray]:
    """Return a direction in which the loss falls by the Hessian, and the slope along it, below 0."""
    return cast(Any, replicated(_direction, hessian, gradient, like=(np.zeros(gradient.shape), 0.0)))


def _direction(H: Floats, gradient: Floats) -> tuple[Floats, float]:
    # -H^-1 g, and its product with g.
    try:
        direction = -cho_solve(cho_factor(H), gradient)
        slope = float(direction @ gradient)
        if -np.inf < slope < 0:
            return direction, slope
    except LinAlgError:
        pass
    # Not positive definite: by the size of curvatures, and not along those that are 0 but for rounding.
    values, vectors = np.linalg.eigh((H + H.T) / 2)
    sizes = np.abs(values)
    stays = sizes > len(H) * np.finfo(float).eps * sizes.max()
    along = vectors[:, stays].T @ gradient / np.sqrt(sizes[stays])
    direction = -vectors[:, stays] @ (along / np.sqrt(sizes[stays]))
    return direction, -float(along @ along)

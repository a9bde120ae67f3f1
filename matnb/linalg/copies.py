"""Whether a search for the largest values missed copies of them: a run from a new start, against its results.

Lanczos' method from one vector has one direction in each eigenspace, and finds a multiple eigenvalue once. An
eigenvector that it misses is orthogonal to all that it made, so it is one of ``P A P`` too, P the projection
away from some of that, whose other values are small. There Lanczos' recurrence from a drawn vector z either
meets a larger value soon, or proves that there is none: of the tridiagonal matrix of j steps with orthonormal
polynomials p_0, p_1, ... the square of the part that z has along an eigenvector of value t is at most
``1 / sum(p_i(t)**2)`` (Christoffel's function: Golub and Meurant 2010, "Matrices, Moments and Quadrature with
Applications"), which falls as t grows beyond the values met. No larger value has a share that a drawn vector
would have of any direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray, zeros
from matnb.lazy.functions.elementwise import where
from matnb.lazy.loop import iterate

Floats = npt.NDArray[np.float64]
ORDERS: dict[str, Callable[[Floats], Floats]] = {
    "LM": lambda values: -abs(values),
    "LA": np.negative,
    "SA": np.positive,
}
_RISK = 1e-3  # that a drawn vector has a smaller share of a direction than is looked for
_SIDES = np.array([1.0, -1.0, 1.0, -1.0])
NOT_YET, _GIVEN_UP = -np.inf, np.inf  # sums of values before a search and after one in vain


class LanczosStep(NamedTuple):
    """A step of Lanczos' recurrence: vectors, one of which comes next, and the coefficients of the last step.

    Attributes
    ----------
    before, following
        The vectors that a step starts from.
    alpha, beta
        The last elements of the tridiagonal matrix, on its diagonal and beside it.
    """

    before: DistArray
    following: DistArray
    alpha: DistArray
    beta: DistArray


class _Shares(NamedTuple):
    recurrence: LanczosStep
    pivots: DistArray
    squares: DistArray  # of the last polynomial at the bounds, and of all: logarithms
    sums: DistArray


def searched(
    values: Floats, k: int, scale: float, residuals: Floats, tol: float, which: str, before: float
) -> tuple[float, Floats, float, bool]:
    """Return what a search for the k largest values knows of copies after a restart.

    Parameters
    ----------
    values, k
        Of which the first k are the largest, in any order.
    scale
        The largest magnitude.
    residuals
        Of the values, relative to the scale.
    tol
        Of residuals.
    which
        The order: "LM", "LA" or "SA".
    before
        What :func:`copies_missing` gave last, or -inf: a sum of values of which copies are missing. While
        there is no larger sum, the search goes on until the value after them has converged, too.

    Returns
    -------
    residual
        By which the search ends: the largest of the k, or inf if it has to go on.
    bounds
        Shape (4,). The values found that are nearest to the last one, but larger, above and below 0; and
        beyond which values are larger than the last one. Infinite where there is none.
    total
        The sum of the values found, by their order.
    is_due
        Whether copies are to be sought, since a value larger than the last one was found.
    """
    if before == _GIVEN_UP:
        return np.inf, np.full(4, np.inf), before, False
    keys = -ORDERS[which](values[:k])
    margin = 10 * tol * scale
    residual, total = float(residuals[:k].max()), float(keys.sum())
    is_new = total > before + margin / 2
    if not is_new and residuals[k:].max(initial=0.0) > tol:
        residual = np.inf
    least = keys.min() + margin
    larger = values[:k][keys > least]
    above = larger[larger > 0] if which == "LM" else larger if which == "LA" else larger[:0]
    below = larger[larger < 0] if which == "LM" else larger if which == "SA" else larger[:0]
    bounds = np.array([
        above.min(initial=np.inf), below.max(initial=-np.inf),
        np.inf if which == "SA" else least, -np.inf if which == "LA" else -least,
    ])  # fmt: skip
    return residual, bounds, total, bool(is_new and residual <= tol and larger.size)


def copies_missing(
    advanced: Callable[[LanczosStep], LanczosStep],
    first: LanczosStep,
    bounds: DistArray,
    total: DistArray,
    most: int,
) -> tuple[DistArray, DistArray]:
    """Return whether the search goes on, as a larger value than the last one found is missing, and with what.

    Parameters
    ----------
    advanced
        Records a step of Lanczos' recurrence, away from what was found.
    first
        With a drawn unit vector, orthogonal to what was found.
    bounds
        Those of :func:`searched`.
    total
        The sum of the values found.
    most
        Steps.

    Returns
    -------
    goes_on
        Also where it is neither known to be missing nor not to be: then the search does not end well.
    before
        As :func:`searched` takes it.
    """
    enough = math.log(2 * first.following.shape[0] / math.pi) - 2 * math.log(_RISK)

    def step(state: _Shares) -> _Shares:
        made = advanced(state.recurrence)
        # p_j = p_(j-1) pivot / beta, the pivots those of t - T; of -t and -T below
        pivots = _SIDES * (bounds - made.alpha) - state.recurrence.beta**2 / state.pivots
        squares = state.squares + 2 * np.log(np.abs(pivots) / made.beta)
        return _Shares(made, pivots, asarray(squares), asarray(np.logaddexp(state.sums, squares)))

    def tells(state: _Shares) -> DistArray:
        return (state.pivots[2:] <= 0).any() | (state.sums[:2] >= enough).all()

    start = _Shares(first, asarray(np.ones(4)), zeros(4), zeros(4))
    last, _ = iterate(step, start, until=lambda old, new: tells(new), max_iterations=most)
    is_known = tells(last)
    return (last.pivots[2:] <= 0).any() | ~is_known, where(is_known, total, _GIVEN_UP)

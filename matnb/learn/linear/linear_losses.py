"""Mean losses of linear functions of rows, penalized by squares, with their gradients and Hessians."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from matnb.lazy.array import DistArray
from matnb.lazy.creation import eye
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.shaping import concatenate


class Pointwise(NamedTuple):
    """The loss of each margin, and its first and second derivatives by it."""

    loss: DistArray
    slope: DistArray
    bend: DistArray


def half_logistic(margins: Any, y: DistArray) -> Pointwise:
    """Return minus the logarithm of how likely 0 or 1 is, where 1 has the logistic of the margin."""
    # Powers of e of nothing above 0, so that none is infinite.
    small = np.exp(-abs(margins))
    likely = where(margins > 0, 1.0, small) / (1 + small)
    loss = np.log1p(small) + np.maximum(margins, 0.0) - y * margins
    return Pointwise(loss, likely - y, small / (1 + small) ** 2)


def half_poisson(margins: Any, y: DistArray) -> Pointwise:
    """Return half the deviance of Poisson's distribution, but for what only y has, of means exp(margin)."""
    mean = np.exp(margins)
    return Pointwise(mean - y * margins, mean - y, mean)


class LinearLoss(NamedTuple):
    """The mean loss of ``X @ w + b`` by weights, and ``alpha / 2`` times the squares of w, as functions.

    Parameters and gradients are one vector, of w and then b.

    Attributes
    ----------
    X, y
        n x p, and n targets.
    pointwise
        Gives the loss of each margin.
    weights, total
        Of rows, or None for ones; their sum.
    alpha
        The penalty.
    fit_intercept
        Whether there is a b.
    """

    X: DistArray
    y: DistArray
    pointwise: Callable[[DistArray, DistArray], Pointwise]
    weights: DistArray | None
    total: DistArray | float
    alpha: float
    fit_intercept: bool

    def _at(self, parameters: DistArray) -> Pointwise:
        p = self.X.shape[1]
        margins = self.X @ parameters[:p]
        found = self.pointwise(margins + parameters[p] if self.fit_intercept else margins, self.y)
        if self.weights is None:
            return found
        weights = self.weights
        return Pointwise(found.loss * weights, found.slope * weights, found.bend * weights)

    def loss(self, parameters: DistArray) -> DistArray:
        """Return the loss."""
        w = parameters[: self.X.shape[1]]
        return self._at(parameters).loss.sum() / self.total + self.alpha / 2 * (w @ w)

    def gradient(self, parameters: DistArray) -> DistArray:
        """Return its gradient."""
        slope = self._at(parameters).slope
        of_w = self.X.T @ slope / self.total + self.alpha * parameters[: self.X.shape[1]]
        return concatenate([of_w, slope.sum()[None] / self.total]) if self.fit_intercept else of_w

    def hessian(self, parameters: DistArray) -> DistArray:
        """Return its Hessian, dense."""
        bend, p = self._at(parameters).bend, self.X.shape[1]
        of_w = self.X.T @ (bend[:, None] * self.X) / self.total + self.alpha * eye(p)
        if not self.fit_intercept:
            return of_w
        edge = self.X.T @ bend / self.total
        corner = concatenate([edge, bend.sum()[None] / self.total])
        return concatenate([concatenate([of_w, edge[None]]), corner[:, None]], axis=1)

"""The mean loss of several linear functions of rows, of which each row's class is to be the largest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matnb.lazy.array import DistArray
from matnb.lazy.creation import arange, zeros
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.shaping import concatenate
from matnb.lazy.loop import iterate
from matnb.learn.linear.linear_losses import LinearLoss, Pointwise


class MultinomialLoss(NamedTuple):
    """The mean of minus the logarithm of the softmax of ``X @ W.T + b`` at each row's class; as above.

    Parameters and gradients are classes x p, or x p + 1 with the intercepts last, as one vector.
    """

    X: DistArray
    codes: DistArray
    num_classes: int
    weights: DistArray | None
    total: DistArray | float
    alpha: float
    fit_intercept: bool

    def _margins(self, parameters: DistArray) -> tuple[DistArray, DistArray]:
        matrix, p = parameters.reshape(self.num_classes, -1), self.X.shape[1]
        margins = self.X @ matrix[:, :p].T
        return matrix, margins + matrix[:, p] if self.fit_intercept else margins

    def _weighted(self, values: DistArray) -> DistArray:
        if self.weights is None:
            return values / self.total
        share = self.weights / self.total
        return values * (share if values.ndim == 1 else share[:, None])

    def loss(self, parameters: DistArray) -> DistArray:
        """Return the loss."""
        matrix, margins = self._margins(parameters)
        w = matrix[:, : self.X.shape[1]]
        largest = margins.max(axis=1)
        own = where(self.codes[:, None] == arange(self.num_classes), margins, 0.0).sum(axis=1)
        losses = np.log(np.exp(margins - largest[:, None]).sum(axis=1)) + largest - own
        return self._weighted(losses).sum() + self.alpha / 2 * (w * w).sum()

    def gradient(self, parameters: DistArray) -> DistArray:
        """Return its gradient."""
        matrix, margins = self._margins(parameters)
        slope = self._weighted(softmax(margins) - (self.codes[:, None] == arange(self.num_classes)))
        of_w = (self.X.T @ slope).T + self.alpha * matrix[:, : self.X.shape[1]]
        if self.fit_intercept:
            of_w = concatenate([of_w, slope.sum(axis=0)[:, None]], axis=1)
        return of_w.reshape(-1)

    def hessian(self, parameters: DistArray) -> DistArray:
        """Return its Hessian, dense; singular along equal changes of all classes, unless penalized."""
        likely = softmax(self._margins(parameters)[1])
        K, p = self.num_classes, self.X.shape[1]

        def block(state: DistArray, pair: DistArray) -> DistArray:
            k, other = pair // K, pair % K
            bend = likely[:, k] * (where(k == other, 1.0, 0.0) - likely[:, other])
            return LinearLoss(
                self.X, self.codes, lambda *_: Pointwise(bend, bend, bend), self.weights, self.total, 0.0,
                self.fit_intercept,
            ).hessian(parameters[: p + 1])  # fmt: skip

        size = p + self.fit_intercept
        _, _, blocks = iterate(block, zeros((size, size)), over=arange(K * K), collect=lambda state: state)
        H = blocks.reshape(K, K, size, size).transpose(0, 2, 1, 3).reshape(K * size, K * size)
        penalized = np.append(np.full(p, self.alpha), np.zeros(size - p))
        return H + np.diag(np.tile(penalized, K))


def softmax(margins: DistArray) -> DistArray:
    """Return shares of each row, by the powers of e."""
    powers = np.exp(margins - margins.max(axis=1)[:, None])
    return powers / powers.sum(axis=1)[:, None]

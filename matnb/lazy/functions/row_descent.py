"""Stochastic gradient descent of linear scores by single rows, as an array of numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from matnb.blocks.kernels.rows.row_descent import HEAD
from matnb.blocks.kernels.rows.row_descent import Descent as Descent  # part of this file's face
from matnb.lazy.array import DistArray, wrap
from matnb.lazy.creation import asarray
from matnb.ops.row_descent import RowDescent

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RowSteps:
    """What passes over rows came to.

    Attributes
    ----------
    state
        Weights, k x p as one vector; k intercepts; what an L1 penalty goes on from, where there is one; the
        scale of weights; the number of steps that were taken.
    losses
        The mean loss of each pass.
    last_rows
        How many rows of the last pass were learned from: all of them, unless a number was not finite.
    is_finite
        Whether all were.
    num_targets
        k.
    """

    state: Doubles
    losses: Doubles
    last_rows: int
    is_finite: bool
    num_targets: int

    def weights(self, num_features: int) -> Doubles:
        """Return the weights, k x p."""
        k = self.num_targets
        weights: Doubles = self.state[: k * num_features].reshape(k, num_features) * self.state[-2]
        return weights

    def intercepts(self, num_features: int) -> Doubles:
        """Return the k intercepts."""
        return self.state[self.num_targets * num_features :][: self.num_targets]


def row_steps(X: DistArray, y: DistArray, state: Doubles | DistArray, descent: Descent) -> RowSteps:
    """Return what passes over rows come to, now.

    Parameters
    ----------
    X
        n x p, sparse or dense; one worker gets all of it.
    y
        n x k targets, or one more column of weights.
    state
        As of :class:`RowSteps`.
    descent
        What the steps are, and when they end.
    """
    inputs = (X.expression, y.astype(np.float64).expression, asarray(state).expression)
    found: Doubles = np.asarray(wrap(RowDescent(inputs, descent)))
    passes, last, is_finite = (int(one) for one in found[:HEAD])
    end = HEAD + state.size
    k = y.shape[1] - descent.is_weighted
    return RowSteps(found[HEAD:end].copy(), found[end : end + passes].copy(), last, bool(is_finite), k)

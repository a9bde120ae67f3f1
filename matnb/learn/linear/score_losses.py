"""Losses of linear scores, with scikit-learn's names, and the model that a learner takes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from matnb.lazy.array import DistArray
from matnb.lazy.creation import zeros
from matnb.learn.models.links import logistic, softplus
from matnb.learn.optimize.optimizers import Parameters

SPARSE_INTERCEPT_DECAY = 0.01  # scikit-learn's: intercepts of sparse rows would go too far

LONGEST = 1e12  # slope that is not cut, as there


class ScoreLoss(NamedTuple):
    """The loss of a score and a target, and its slope in the score; the third argument is ``epsilon``."""

    value: Callable[[Any, Any, float], Any]
    slope: Callable[[Any, Any, float], Any]


def _huber(p: Any, y: Any, e: float) -> Any:
    distance = abs(p - y)
    return np.where(distance <= e, 0.5 * distance * distance, e * distance - 0.5 * e * e)


def _modified(p: Any, y: Any, e: float) -> Any:
    margin = p * y
    return np.where(margin >= -1, np.maximum(1 - margin, 0) ** 2, -4 * margin)


def _beyond(p: Any, y: Any, e: float) -> Any:
    # How far the score is from the target, beyond epsilon and signed.
    return np.maximum(p - y - e, 0) - np.maximum(y - p - e, 0)


# Of targets -1 and 1.
OF_CLASSES = {
    "hinge": ScoreLoss(
        lambda p, y, e: np.maximum(1 - p * y, 0), lambda p, y, e: np.where(p * y <= 1, -y, 0.0)
    ),
    "log_loss": ScoreLoss(lambda p, y, e: softplus(-p * y), lambda p, y, e: -y * logistic(-p * y)),
    "modified_huber": ScoreLoss(
        _modified, lambda p, y, e: np.where(p * y >= -1, -2 * y * np.maximum(1 - p * y, 0), -4 * y)
    ),
    "perceptron": ScoreLoss(
        lambda p, y, e: np.maximum(-p * y, 0), lambda p, y, e: np.where(p * y <= 0, -y, 0.0)
    ),
    "squared_hinge": ScoreLoss(
        lambda p, y, e: np.maximum(1 - p * y, 0) ** 2, lambda p, y, e: -2 * y * np.maximum(1 - p * y, 0)
    ),
}
OF_NUMBERS = {
    "epsilon_insensitive": ScoreLoss(
        lambda p, y, e: abs(_beyond(p, y, e)), lambda p, y, e: np.sign(_beyond(p, y, e))
    ),
    "huber": ScoreLoss(_huber, lambda p, y, e: np.clip(p - y, -e, e)),
    "squared_epsilon_insensitive": ScoreLoss(
        lambda p, y, e: _beyond(p, y, e) ** 2, lambda p, y, e: 2 * _beyond(p, y, e)
    ),
    "squared_error": ScoreLoss(lambda p, y, e: 0.5 * (p - y) ** 2, lambda p, y, e: p - y),
}


@dataclass(frozen=True)
class LinearScore:
    """Scores ``X @ weights + intercept``, whose loss has a penalty as scikit-learn's objective.

    Parameters
    ----------
    loss_name
        One of the losses above.
    epsilon
        For those of numbers.
    l1, l2
        What ``sum |w|`` and ``sum w^2 / 2`` count in the loss; only the second is in the gradient.
    fit_intercept
        Whether there are intercepts.
    is_weighted
        Whether the last column of the targets is a weight for each row.
    """

    loss_name: str
    epsilon: float
    l1: float
    l2: float
    fit_intercept: bool
    is_weighted: bool = False

    def start(self, X: DistArray, y: DistArray) -> Parameters:
        """Return zeros."""
        truth, _ = self._parted(y)
        shape = truth.shape[1:]
        return {"weights": zeros((X.shape[1], *shape)), "intercept": zeros(shape)}

    def loss(self, parameters: Parameters, X: DistArray, y: DistArray) -> DistArray:
        """Return the mean of the rows' losses, times their weights, and the penalty, summed over targets."""
        w, (truth, factors) = parameters["weights"], self._parted(y)
        losses = self._loss.value(self.predict(parameters, X), truth, self.epsilon) * factors
        penalty = self.l1 * abs(w).sum() + self.l2 / 2 * (w * w).sum()
        return cast(DistArray, losses.sum() / X.shape[0] + penalty)

    def gradient(self, parameters: Parameters, X: DistArray, y: DistArray) -> Parameters:
        """Return the gradient of what is smooth."""
        truth, factors = self._parted(y)
        slopes = self._loss.slope(self.predict(parameters, X), truth, self.epsilon)
        residuals = np.clip(slopes, -LONGEST, LONGEST) * factors / X.shape[0]
        slope = X.T @ residuals + self.l2 * parameters["weights"]
        counts = float(self.fit_intercept) * (SPARSE_INTERCEPT_DECAY if X.sparse else 1.0)
        return {"weights": slope, "intercept": counts * residuals.sum(axis=0)}

    def predict(self, parameters: Parameters, X: DistArray) -> DistArray:
        """Return scores."""
        return X @ parameters["weights"] + parameters["intercept"]

    def _parted(self, y: DistArray) -> tuple[Any, Any]:
        if not self.is_weighted:
            return y, 1.0
        targets, weights = y[:, :-1], y[:, -1:]
        return (targets[:, 0], weights[:, 0]) if targets.shape[1] == 1 else (targets, weights)

    @property
    def _loss(self) -> ScoreLoss:
        return {**OF_CLASSES, **OF_NUMBERS}[self.loss_name]

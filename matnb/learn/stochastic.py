"""What SGDClassifier and SGDRegressor have in common: linear scores learned by stochastic gradients."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np

from matnb.errors import ConvergenceWarning, OptionError
from matnb.lazy.array import DistArray
from matnb.lazy.functions.shaping import concatenate
from matnb.learn.arguments import one_of, real, seed_from, weights_from, whole
from matnb.learn.estimator import Estimator
from matnb.learn.learner import Learner
from matnb.learn.optimizers import SGD
from matnb.learn.regularizers import L1
from matnb.learn.score_losses import LinearScore, ScoreLoss
from matnb.sources.from_memory import memory


class StochasticGradient(Estimator):
    """The descent of :class:`SGDClassifier` and :class:`SGDRegressor`; both have its arguments."""

    _losses: dict[str, ScoreLoss]
    alpha: float
    epsilon: float
    max_iter: int
    n_iter_no_change: int

    def _learner(self, is_weighted: bool) -> Learner:
        given: Any = self
        name = type(self).__name__
        loss = one_of(given.loss, "loss", name, tuple(self._losses))
        penalty = given.penalty or "none"
        one_of(penalty, "penalty", name, ("l2", "l1", "elasticnet", "none"))
        alpha = real(given.alpha, "alpha", name)
        ratio = {"l2": 0.0, "l1": 1.0, "none": 0.0}.get(penalty)
        ratio = real(given.l1_ratio, "l1_ratio", name) if ratio is None else ratio
        strength = 0.0 if penalty == "none" else alpha
        l1, l2 = strength * ratio, strength * (1 - ratio)
        model = LinearScore(loss, given.epsilon, l1, l2, given.fit_intercept, is_weighted)
        return Learner(
            model,
            self._optimizer(name, alpha),
            [L1(l1, where="weights")] if l1 else [],
            patience=None if given.tol is None else whole(given.n_iter_no_change, "n_iter_no_change", name),
            tol=0.0 if given.tol is None else real(given.tol, "tol", name, least=-np.inf),
        )

    def _optimizer(self, name: str, alpha: float) -> SGD:
        given: Any = self
        schedule = one_of(given.learning_rate, "learning_rate", name, ("constant", "optimal", "invscaling"))
        if schedule == "optimal":
            if not alpha > 0:
                raise OptionError(f"{name}: learning_rate='optimal' with alpha={alpha}; give one above 0")
            # Bottou 2012, "Stochastic Gradient Descent Tricks": the first step is of a typical weight.
            first = alpha**-0.75
            return SGD(1.0, schedule=partial(_optimal, alpha, first))
        rate, power = real(given.eta0, "eta0", name, above=True), real(given.power_t, "power_t", name)
        return SGD(rate, schedule=None if schedule == "constant" else partial(_inverse, power))

    def _descend(self, X: DistArray, y: DistArray, sample_weight: Any) -> Learner:
        given: Any = self
        name = type(self).__name__
        size = whole(given.batch_size, "batch_size", name)
        seed = seed_from(given.random_state, name)
        epochs = whole(given.max_iter, "max_iter", name)
        learner = self._learner(sample_weight is not None)
        if sample_weight is not None:
            y = _with_weights(y, weights_from(sample_weight, X, name))
        rows = memory(X, y, batch_size=size, shuffle=bool(given.shuffle), seed=seed)
        learner.fit(rows, epochs=epochs)
        if given.tol is not None and not learner.is_settled():
            warnings.warn(
                f"{name}: after {epochs} passes the loss still falls by more than tol={given.tol}; "
                "give a larger max_iter, or scale the features",
                ConvergenceWarning,
                stacklevel=3,
            )
        return learner

    def _one_batch(self, X: DistArray, y: DistArray, sample_weight: Any) -> Learner:
        learner: Learner = getattr(self, "_descent", None) or self._learner(True)
        given: Any = self
        name = type(self).__name__
        size = whole(given.batch_size, "batch_size", name)
        learner.model = replace(learner.model, is_weighted=True)  # that of fit may have had none
        return learner.partial_fit(X, _with_weights(y, weights_from(sample_weight, X, name)), batch_size=size)

    def _keep_descent(self, learner: Learner, coef: DistArray, intercept: DistArray, **learned: Any) -> Self:
        passes, steps = int(learner.history_.epoch[-1]) + 1, learner.n_iter_ + 1.0
        num_features = coef.shape[-1]
        self._learn(
            coef=coef, intercept=intercept, n_iter=passes, t=steps, n_features_in=num_features, **learned
        )
        self._descent = learner
        return self


# Functions of this file and not of a method, so that what was fitted can be pickled.


def _with_weights(y: DistArray, weights: DistArray) -> DistArray:
    columns = y[:, None] if y.ndim == 1 else y
    return concatenate([columns, weights[:, None]], axis=1)


def _optimal(alpha: float, first: float, count: Any) -> Any:
    return 1 / (alpha * (first + count))


def _inverse(power: float, count: Any) -> Any:
    return (count + 1) ** -power

"""Generalized linear models of one or many targets, learned from batches in one pass or some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, cast

import numpy as np

from matnb.errors import OptionError, ShapeError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray, zeros
from matnb.learn.arguments import checked, nonnegative, real, rows_from, targets_from, weights_from
from matnb.learn.estimator import Regressor
from matnb.learn.learner import Learner
from matnb.learn.models.generalized_linear import GeneralizedLinear
from matnb.learn.optimize.optimizers import Optimizer
from matnb.learn.regularizers import L2


class GLM(Regressor):
    """Generalized linear models for one or many targets, fitted together in shared passes over X.

    A :class:`Learner` of ``mn.learn.models.GeneralizedLinear``. Each target's model is independent of the
    others, except with the softmax link.

    Parameters
    ----------
    link
        ``"identity"``, ``"logit"``, ``"log"``, ``"probit"``, or one of them per target; ``"softmax"`` applies
        to all targets together.
    alpha
        ``alpha / 2`` times the sum of the squared weights, without intercepts, is added to the mean loss of
        rows; a number, or one for each target.
    mask
        p x targets, or (p,) for one target: weights stay 0 where it is 0.
    fit_intercept
        Whether each target has an intercept.
    optimizer
        One of ``SGD``, ``AdaGrad``, ``Adam``, ``Average``; by default ``AdaGrad()``.
    epochs
        Passes over the rows.
    batch_size
        Rows of a batch.

    Attributes
    ----------
    coef_
        Weights, float64, of shape (p,), or (targets, p) for y with two axes.
    intercept_
        0-d, or of shape (targets,).
    history_
        A :class:`LearningHistory`; its losses are summed over targets.
    n_iter_, n_features_in_
        Number of batches learned from, and of columns of X.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> Y = np.stack([X @ [1.0, 2.0] + 1, X @ [1.0, -1.0] > 0], axis=1)
    >>> links = ["identity", "logit"]
    >>> model = mn.learn.GLM(link=links, alpha=[0, 0.1], optimizer=mn.learn.AdaGrad(1.0), epochs=5)
    >>> model.fit(X, Y).coef_[0].compute().round(2)
    array([1., 2.])
    """

    coef_: DistArray
    intercept_: DistArray
    n_features_in_: int

    def __init__(
        self,
        link: str | Sequence[str] = "identity",
        *,
        alpha: float | Sequence[float] = 0.0,
        mask: Any = None,
        fit_intercept: bool = True,
        optimizer: Optimizer | None = None,
        epochs: int = 1,
        batch_size: int = 1000,
    ) -> None:
        self.link = link
        self.alpha = alpha
        self.mask = mask
        self.fit_intercept = fit_intercept
        self.optimizer = optimizer
        self.epochs = epochs
        self.batch_size = batch_size

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows.

        Parameters
        ----------
        X
            n x p, sparse or dense; or a source of ``mn.sources``, which has the targets.
        y
            Of shape (n,) or n x targets.
        sample_weight
            Of shape (n,), or n x targets: weights of the rows' losses, by default 1.
        """
        X, y = self._rows(X, y, sample_weight)
        return self._kept(self._learner(y).fit(X, y, epochs=self.epochs, batch_size=self.batch_size))

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from one more batch; arguments are those of ``fit``."""
        learner = getattr(self, "_partial", None)
        X, y = self._rows(X, y, sample_weight, None if learner is None else self.n_features_in_)
        return self._kept((learner or self._learner(y)).partial_fit(X, y))

    def predict(self, X: Any) -> DistArray:
        """Return the predicted means of the targets; for logit and probit, probabilities."""
        self._check_fitted("predict")
        return cast(DistArray, self._partial.predict(rows_from(X, "GLM", self.n_features_in_)))

    def _rows(self, X: Any, y: Any, sample_weight: Any, num_features: int | None = None) -> tuple[Any, Any]:
        if hasattr(X, "loop_pieces"):
            return X, y
        X = rows_from(X, "GLM", num_features)
        y = targets_from(y, X, "GLM")
        if np.ndim(self.alpha) and np.shape(self.alpha) != y.shape[1:]:
            raise ShapeError(f"GLM: {np.size(self.alpha)} alphas for y of shape {y.shape}")
        GeneralizedLinear(self.link).check_targets(y)
        if sample_weight is None:
            return X, y
        given = asarray(sample_weight)
        if given.ndim < 2:
            return X, (y, weights_from(given, X, "GLM"))
        if given.shape != y.shape:
            raise ShapeError(f"GLM: sample_weight of shape {given.shape} for y of shape {y.shape}")
        weights = checked(given.astype(np.float64), "GLM", "sample_weight")
        if not bool(nonnegative(weights, "GLM", "sample_weight").any()):
            raise OptionError("GLM: sample_weight is 0 for all rows and targets; give some above 0")
        return X, (y, weights)

    def _learner(self, y: Any) -> Learner:
        alpha = np.array([real(one, "alpha", "GLM") for one in np.ravel(self.alpha)])
        penalty = L2(cast(float, alpha if np.ndim(self.alpha) else alpha[0]), where="weights")
        model = GeneralizedLinear(self.link, self.mask, self.fit_intercept)
        return Learner(model, self.optimizer, [penalty] if alpha.any() else ())

    def _kept(self, learner: Learner) -> Self:
        weights = learner.parameters_["weights"]
        intercept = learner.parameters_.get("intercept", zeros(weights.shape[1:]))
        learned = {"history": learner.history_, "n_iter": learner.n_iter_, "n_features_in": weights.shape[0]}
        self._learn(coef=weights.T, intercept=intercept, **learned)
        self._partial = learner
        return self

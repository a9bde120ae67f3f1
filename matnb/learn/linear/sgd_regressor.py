"""Linear regression by stochastic gradients."""

from __future__ import annotations

from typing import Any, Self

from matnb.lazy.array import DistArray
from matnb.learn.arguments import rows_from, targets_from
from matnb.learn.estimator import Regressor
from matnb.learn.linear.score_losses import OF_NUMBERS
from matnb.learn.linear.stochastic import StochasticGradient


class SGDRegressor(StochasticGradient, Regressor):
    """Linear regression trained by stochastic gradient descent.

    Arguments are a subset of scikit-learn's; with rows in the same order the weights are the same, too. A
    :class:`Learner` with ``SGD``.

    Parameters
    ----------
    loss
        ``"squared_error"``, ``"huber"``, ``"epsilon_insensitive"``, ``"squared_epsilon_insensitive"``.
    penalty
        ``"l2"``, ``"l1"``, ``"elasticnet"`` or None. The L1 penalty is cumulative, as scikit-learn's
        (Tsuruoka, Tsujii and Ananiadou 2009): a weight that it would take across 0 is exactly 0.
    alpha, l1_ratio
        The penalty is ``alpha * (l1_ratio * sum |w| + (1 - l1_ratio) / 2 * sum w^2)``.
    fit_intercept
        Whether there is an intercept.
    max_iter, tol, n_iter_no_change
        Maximum number of passes. Training stops after ``n_iter_no_change`` consecutive passes that do not
        improve the best mean objective by ``tol``; with ``tol=None`` all passes are made.
    shuffle, random_state
        Whether to shuffle the rows in each pass, with this seed.
    epsilon
        The epsilon of the losses that have one.
    learning_rate, eta0, power_t
        Steps of ``eta0`` ("constant"), ``1 / (alpha * (t0 + t))`` ("optimal"), ``eta0 / t ** power_t``
        ("invscaling"); t counts steps from 1.
    batch_size
        Rows per step, which uses their mean gradient. scikit-learn corresponds to 1.

    Attributes
    ----------
    coef_, intercept_
        Weights, float64 of shape (p,), and the intercept, of shape (1,).
    n_iter_, t_, n_features_in_
        Number of passes; number of steps plus 1; columns of X.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> model = mn.learn.SGDRegressor(eta0=0.5, alpha=0, batch_size=50, random_state=0)
    >>> model.fit(X, X @ [1.0, -2.0] + 3).coef_.compute().round(2)
    array([ 1., -2.])
    """

    _losses = OF_NUMBERS
    coef_: DistArray
    intercept_: DistArray
    n_iter_: int
    n_features_in_: int

    def __init__(
        self,
        loss: str = "squared_error",
        *,
        penalty: str | None = "l2",
        alpha: float = 0.0001,
        l1_ratio: float = 0.15,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 0.001,
        shuffle: bool = True,
        epsilon: float = 0.1,
        random_state: Any = None,
        learning_rate: str = "invscaling",
        eta0: float = 0.01,
        power_t: float = 0.25,
        n_iter_no_change: int = 5,
        batch_size: int = 1,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.epsilon = epsilon
        self.random_state = random_state
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.n_iter_no_change = n_iter_no_change
        self.batch_size = batch_size

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None) -> Self:
        """Learn from rows.

        Parameters
        ----------
        X
            n x p, sparse or dense.
        y
            n numbers.
        sample_weight
            n weights, which scale the loss of each row; by default 1.
        """
        rows = rows_from(X, "SGDRegressor")
        targets = targets_from(y, rows, "SGDRegressor", several=False)
        found = self._descend(rows, targets, sample_weight)
        return self._keep_descent(found, found.weights[0])

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train for one pass over rows, starting from the current weights."""
        rows = rows_from(X, "SGDRegressor", getattr(self, "n_features_in_", None))
        targets = targets_from(y, rows, "SGDRegressor", several=False)
        found = self._one_batch(rows, targets, sample_weight)
        return self._keep_descent(found, found.weights[0])

    def predict(self, X: Any) -> DistArray:
        """Return n numbers."""
        self._check_fitted("predict")
        return rows_from(X, "SGDRegressor", self.n_features_in_) @ self.coef_ + self.intercept_

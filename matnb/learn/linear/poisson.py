"""Regression of counts."""

from __future__ import annotations

from typing import Self, cast

import numpy as np

from matnb.errors import OptionError
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.functions.elementwise import where
from matnb.learn.arguments import real, rows_from, targets_from, weights_from
from matnb.learn.estimator import Regressor
from matnb.learn.linear.linear_losses import LinearLoss, half_poisson
from matnb.learn.linear.linear_model import LinearModel, least, parted


class PoissonRegressor(LinearModel, Regressor):
    """Poisson regression: counts whose mean is the exponential of a linear function of the features.

    Minimizes the mean of half the deviance plus ``alpha / 2 * sum(coef_**2)``, without penalizing the
    intercept. Arguments and attributes are scikit-learn's.

    Parameters
    ----------
    alpha
        Strength of the penalty; 0 for none.
    fit_intercept
        Whether to fit an intercept.
    solver
        "lbfgs", or "newton-cholesky" for few features, whose Hessian is stored.
    max_iter
        Maximum number of iterations.
    tol
        Stop when no element of the gradient exceeds this in magnitude. The gradient is by centered features,
        in units in which the loss has the same curvature along each, so that the units of columns have no
        effect.

    Attributes
    ----------
    coef_
        p numbers, with the dtype of X.
    intercept_
        A number.
    n_iter_
        Number of iterations, an int.
    n_features_in_
        p.

    Examples
    --------
    >>> import matnb as mn
    >>> X, y = mn.asarray([[0.0], [1.0], [2.0], [3.0]]), mn.asarray([1, 2, 4, 8])
    >>> model = mn.learn.PoissonRegressor(alpha=0, solver="newton-cholesky", tol=1e-9).fit(X, y)
    >>> model.predict([[4.0]]).compute().round(6)
    array([16.])

    References
    ----------
    McCullagh and Nelder 1989, "Generalized Linear Models", chapter 6.
    """

    n_iter_: int

    _takes_counts = True

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        fit_intercept: bool = True,
        solver: str = "lbfgs",
        max_iter: int = 100,
        tol: float = 1e-4,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike = None) -> Self:
        """Fit the coefficients.

        Parameters
        ----------
        X
            n x p, sparse or dense; a sparse X stays sparse.
        y
            n nonnegative counts or rates, not all 0.
        sample_weight
            n weights, by default 1.

        Raises
        ------
        ShapeError, DTypeError, OptionError
            For inconsistent shapes, NaN, a negative count, a negative alpha.

        Warns
        -----
        ConvergenceWarning
            If ``max_iter`` is reached, or no step lowers the loss.
        """
        rows = rows_from(X, "PoissonRegressor")
        counts = _counts(y, rows)
        alpha = real(self.alpha, "alpha", "PoissonRegressor")
        weights = None if sample_weight is None else weights_from(sample_weight, rows, "PoissonRegressor")
        total = float(rows.shape[0] if weights is None else weights.sum())
        mean = float((counts if weights is None else counts * weights).sum()) / total
        if not mean > 0:
            raise OptionError("PoissonRegressor: y is 0 for all rows, so no mean fits; give counts")
        p = rows.shape[1]
        loss = LinearLoss(rows, counts, half_poisson, weights, total, alpha, bool(self.fit_intercept))
        found, taken = least(loss, mean, self, np.log(mean))
        coef, intercept = parted(found, p, rows.dtype)
        self._learn(coef=coef, intercept=intercept, n_iter=taken, n_features_in=p)
        self.n_iter_ = int(self.n_iter_)
        return self

    def predict(self, X: ArrayLike) -> DistArray:
        """Return the predicted mean of each row, n numbers."""
        return cast(DistArray, np.exp(self._linear(X, "predict")))

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike = None) -> float:
        """Return D^2, the fraction of the deviance that ``predict`` explains.

        Parameters
        ----------
        X, y, sample_weight
            As for ``fit``.
        """
        rows = self._rows(X, "score")
        counts, weights = _counts(y, rows), weights_from(sample_weight, rows, "PoissonRegressor")
        mean = (counts * weights).sum() / weights.sum()
        left, whole = (
            (weights * _deviance(counts, expected)).sum() for expected in (self.predict(rows), mean)
        )
        return float(1 - left / whole)


def _counts(y: object, rows: DistArray) -> DistArray:
    counts = targets_from(y, rows, "PoissonRegressor", several=False)
    if bool((counts < 0).any()):
        place = int(counts.argmin())
        raise OptionError(f"PoissonRegressor: y[{place}] is {float(counts[place])}; counts are 0 or more")
    return counts


def _deviance(counts: DistArray, expected: DistArray) -> DistArray:
    logarithm = np.log(where(counts > 0, counts / expected, 1.0))
    return counts * logarithm - counts + expected

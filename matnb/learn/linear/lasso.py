"""Least squares with few coefficients that are not 0."""

from __future__ import annotations

from matnb.learn.linear.shrinkage import ShrunkRegressor


class Lasso(ShrunkRegressor):
    """Linear regression with an L1 penalty, which selects features.

    Minimizes ``sum((y - X @ coef_ - intercept_)**2) / (2 n) + alpha * sum(abs(coef_))``, with a weighted mean
    if there are sample weights, by accelerated proximal gradients. Arguments and attributes are
    scikit-learn's.

    Parameters
    ----------
    alpha
        Strength of the penalty, above 0; use :class:`LinearRegression` for none.
    fit_intercept
        Whether to fit an intercept.
    max_iter
        Maximum number of iterations.
    tol
        Stop when the duality gap is at most this fraction of the sum of squares of the centered y.
    positive
        Whether to require nonnegative coefficients.

    Attributes
    ----------
    coef_
        p numbers, with the dtype of X.
    intercept_
        A number.
    dual_gap_
        The duality gap: an upper bound on the distance of the loss from its minimum.
    n_iter_
        Number of iterations, an int.
    n_features_in_
        p.

    Examples
    --------
    >>> import matnb as mn
    >>> X, y = mn.asarray([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]]), mn.asarray([0.0, 1.0, 2.0])
    >>> model = mn.learn.Lasso(alpha=0.1).fit(X, y)
    >>> model.coef_.compute().round(2) + 0.0, model.intercept_.compute().round(2)
    (array([0.85, 0.  ]), np.float64(0.15))

    References
    ----------
    Tibshirani 1996, "Regression Shrinkage and Selection via the Lasso"; Beck and Teboulle 2009,
    "A Fast Iterative Shrinkage-Thresholding Algorithm for Linear Inverse Problems"; Kim et al. 2007, "An
    Interior-Point Method for Large-Scale l1-Regularized Least Squares", for the gap.
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-4,
        positive: bool = False,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.positive = positive

"""Least squares with few coefficients that are not 0."""

from __future__ import annotations

from matnb.learn.shrinkage import ShrunkRegressor


class Lasso(ShrunkRegressor):
    """Numbers as a linear function of few features of each row.

    The least ``sum((y - X @ coef_ - intercept_)**2) / (2 n) + alpha * sum(abs(coef_))``, weighted the mean by
    weights, by accelerated proximal gradients. With scikit-learn's arguments and their meaning.

    Parameters
    ----------
    alpha
        The strength of the penalty, above 0; :class:`LinearRegression` has none.
    fit_intercept
        Whether there is a constant.
    max_iter
        Maximum number of iterations.
    tol
        It ends when the loss is at most this share of the sum of y's squares, less its mean, above the least,
        as the gap to the dual problem tells.
    positive
        Whether no coefficient may be below 0.

    Attributes
    ----------
    coef_
        p numbers, in the dtype of X.
    intercept_
        A number.
    dual_gap_
        At most how far the loss is above the least.
    n_iter_
        How many iterations were taken, an int.
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

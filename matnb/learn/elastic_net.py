"""Least squares with a penalty of sizes and of squares of coefficients."""

from __future__ import annotations

from matnb.learn.shrinkage import ShrunkRegressor


class ElasticNet(ShrunkRegressor):
    """Numbers as a linear function of rows, penalized by sizes and by squares of its coefficients.

    The least ``sum((y - X @ coef_ - intercept_)**2) / (2 n) + alpha * l1_ratio * sum(abs(coef_)) +
    alpha * (1 - l1_ratio) / 2 * sum(coef_**2)``, weighted the mean by weights, by accelerated proximal
    gradients. With scikit-learn's arguments and their meaning.

    Parameters
    ----------
    alpha
        The strength of the penalty, above 0; :class:`LinearRegression` has none.
    l1_ratio
        The share of the penalty of sizes, 0 to 1.
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
    >>> X, y = mn.asarray([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]]), mn.asarray([0.0, 1.0, 1.0])
    >>> mn.learn.ElasticNet(alpha=0.1, tol=1e-9).fit(X, y).coef_.compute().round(2)
    array([0.4, 0. ])

    References
    ----------
    Zou and Hastie 2005, "Regularization and Variable Selection via the Elastic Net"; Beck and Teboulle 2009,
    "A Fast Iterative Shrinkage-Thresholding Algorithm for Linear Inverse Problems"; Kim et al. 2007, "An
    Interior-Point Method for Large-Scale l1-Regularized Least Squares", for the gap.
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-4,
        positive: bool = False,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.positive = positive

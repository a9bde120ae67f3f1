"""Least squares with a penalty of sizes and of squares of coefficients."""

from __future__ import annotations

from matnb.learn.linear.shrinkage import ShrunkRegressor


class ElasticNet(ShrunkRegressor):
    """Linear regression with an elastic-net penalty (L1 and L2).

    Minimizes ``sum((y - X @ coef_ - intercept_)**2) / (2 n) + alpha * l1_ratio * sum(abs(coef_)) +
    alpha * (1 - l1_ratio) / 2 * sum(coef_**2)``, with a weighted mean if there are sample weights, by
    accelerated proximal gradients. Arguments and attributes are scikit-learn's.

    Parameters
    ----------
    alpha
        Strength of the penalty, above 0; use :class:`LinearRegression` for none.
    l1_ratio
        Weight of the L1 penalty relative to L2, from 0 to 1.
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

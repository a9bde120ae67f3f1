"""Ordinary least squares."""

from __future__ import annotations

from typing import Self

from matnb.errors import TooLargeError
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.functions.decompositions import lstsq
from matnb.learn.arguments import real, rows_from, targets_from, weights_from
from matnb.learn.linear.centering import centered, conjugate_least_squares
from matnb.learn.linear.linear_model import LinearRegressor


class LinearRegression(LinearRegressor):
    """Linear regression by least squares.

    The minimum-norm solution if there are several, but of sparse X only where conjugate gradients end within
    500 iterations. Dense X is solved by a QR decomposition and the SVD of R, which does not square the
    condition number; sparse X by conjugate gradients, after 500 iterations on columns divided by their
    lengths, as those of words in texts need. Arguments and attributes are scikit-learn's.

    Parameters
    ----------
    fit_intercept
        Whether to fit an intercept.
    tol
        For sparse X: stop when the norm of the gradient is at most this fraction of that at 0.

    Attributes
    ----------
    coef_
        p numbers, or targets x p, in the dtype of X.
    intercept_
        A number, or one for each target.
    rank_, singular_
        For dense X: the rank, an int, and the singular values of the centered X.
    n_features_in_
        p.

    Examples
    --------
    >>> import matnb as mn
    >>> X, y = mn.asarray([[0.0, 1.0], [1.0, 0.0], [2.0, 5.0]]), mn.asarray([1.0, 3.0, 5.0])
    >>> model = mn.learn.LinearRegression().fit(X, y)
    >>> model.coef_.compute().round(6) + 0.0, model.intercept_.compute().round(6)
    (array([2., 0.]), np.float64(1.0))

    References
    ----------
    Benson, Gleich and Demmel 2013, "Direct QR factorizations for tall-and-skinny matrices in MapReduce
    architectures"; Hestenes and Stiefel 1952, "Methods of Conjugate Gradients for Solving Linear Systems".
    """

    rank_: int

    def __init__(self, *, fit_intercept: bool = True, tol: float = 1e-6) -> None:
        self.fit_intercept = fit_intercept
        self.tol = tol

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike = None) -> Self:
        """Fit the coefficients.

        Parameters
        ----------
        X
            n x p, sparse or dense.
        y
            n numbers, or n x targets.
        sample_weight
            n weights, by default 1.

        Raises
        ------
        ShapeError, DTypeError, OptionError
            For inconsistent shapes, and NaN.
        """
        name = "LinearRegression"
        rows = rows_from(X, name)
        targets = targets_from(y, rows, name)
        weights = None if sample_weight is None else weights_from(sample_weight, rows, name)
        tol, p = real(self.tol, "tol", name), rows.shape[1]
        given = centered(rows, targets, weights, bool(self.fit_intercept))
        if rows.sparse:
            w, _ = conjugate_least_squares(given, 0.0, tol, 10 * p, name)
            coef = w.T
            return self._learn(
                coef=coef.astype(rows.dtype),
                intercept=given.intercept(coef).astype(rows.dtype),
                n_features_in=p,
            )
        try:
            w, _, rank, values = lstsq(given.X, given.y)
        except TooLargeError:
            raise TooLargeError(
                f"LinearRegression of X of shape {rows.shape}: one worker decomposes up to 64 MB; "
                "mn.learn.Ridge(alpha=0) takes any number of features"
            ) from None
        coef = w.T
        self._learn(
            coef=coef.astype(rows.dtype),
            intercept=given.intercept(coef).astype(rows.dtype),
            rank=rank,
            singular=values,
            n_features_in=p,
        )
        self.rank_ = int(self.rank_)
        return self

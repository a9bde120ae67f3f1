"""Least squares, penalized by squares of the coefficients."""

from __future__ import annotations

from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from matnb.errors import OptionError, ShapeError, TooLargeError
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.mapping import replicated
from matnb.learn.arguments import fits_one_worker, one_of, real, rows_from, targets_from, weights_from, whole
from matnb.learn.linear.centering import CenteredData, centered, conjugate_least_squares
from matnb.learn.linear.linear_model import LinearRegressor

Floats = npt.NDArray[np.float64]


class Ridge(LinearRegressor):
    """Linear least squares with an L2 penalty, ``alpha * sum(coef_**2)``.

    The intercept is not penalized. Arguments and attributes are scikit-learn's.

    Parameters
    ----------
    alpha
        Strength of the penalty: a number, or one per target.
    fit_intercept
        Whether to fit an intercept.
    max_iter
        Maximum number of iterations of "sparse_cg"; by default 10 p.
    tol
        "sparse_cg" stops when the norm of the gradient is at most this fraction of that at 0.
    solver
        "cholesky", by the Gram matrix of the columns, or of the rows if these are fewer, of up to 64 MB;
        "sparse_cg", conjugate gradients; "auto" takes the first for dense X where it can, else the second.

    Attributes
    ----------
    coef_
        p numbers, or targets x p, in the dtype of X; p numbers of one column of targets, too.
    intercept_
        A number, or one for each target.
    n_iter_
        Number of iterations of "sparse_cg", an int; None for "cholesky".
    n_features_in_
        p.
    solver_
        The solver that was used.

    Examples
    --------
    >>> import matnb as mn
    >>> X, y = mn.asarray([[0.0], [1.0], [2.0]]), mn.asarray([1.0, 3.0, 5.0])
    >>> model = mn.learn.Ridge(alpha=2.0).fit(X, y)
    >>> model.coef_.compute().round(6), model.intercept_.compute().round(6)
    (array([1.]), np.float64(2.0))

    References
    ----------
    Hoerl and Kennard 1970, "Ridge Regression: Biased Estimation for Nonorthogonal Problems".
    """

    def __init__(
        self,
        alpha: float | npt.ArrayLike = 1.0,
        *,
        fit_intercept: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-4,
        solver: str = "auto",
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver

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
            For inconsistent shapes, NaN, a negative alpha.
        """
        rows = rows_from(X, "Ridge")
        targets = targets_from(y, rows, "Ridge")
        weights = None if sample_weight is None else weights_from(sample_weight, rows, "Ridge")
        alphas, p = _alphas(self.alpha, targets), rows.shape[1]
        solver = one_of(self.solver, "solver", "Ridge", ("auto", "cholesky", "sparse_cg"))
        shorter = p if rows.sparse else min(rows.shape)  # length of the Gram matrix
        fits = fits_one_worker(shorter, shorter)
        if solver == "cholesky" and not fits:
            raise TooLargeError(
                f'Ridge(solver="cholesky") of X of shape {rows.shape}: one worker decomposes the '
                f'{shorter:,} x {shorter:,} products, of up to 64 MB; choose solver="sparse_cg"'
            )
        if solver == "auto":
            solver = "cholesky" if fits and not rows.sparse else "sparse_cg"
        tol = real(self.tol, "tol", "Ridge")
        most = 10 * p if self.max_iter is None else whole(self.max_iter, "max_iter", "Ridge")
        given, taken = centered(rows, targets, weights, bool(self.fit_intercept)), None
        if solver == "cholesky":
            w = _by_products(given, alphas)
        else:
            w, taken = conjugate_least_squares(given, alphas, tol, most, "Ridge")
        coef, intercept = w.T.astype(rows.dtype), given.intercept(w.T).astype(rows.dtype)
        coef = coef[0] if coef.shape[:-1] == (1,) else coef  # of one column, as in scikit-learn
        self._learn(coef=coef, intercept=intercept, n_iter=taken, n_features_in=p, solver=solver)
        self.n_iter_ = None if taken is None else int(taken)
        return self


def _alphas(alpha: object, targets: DistArray) -> Floats:
    each = np.asarray(alpha, dtype=object)
    given = np.array([real(one, "alpha", "Ridge") for one in each.ravel()]).reshape(each.shape)
    if given.shape not in ((), targets.shape[1:]):
        raise ShapeError(f"Ridge: alpha of shape {given.shape}; give one, or one for each target")
    return given


def _by_products(given: CenteredData, alphas: Floats) -> DistArray:
    if given.X.sparse or given.X.shape[0] >= given.X.shape[1]:
        return _solution(given.gram(), given.back(given.y), alphas)
    # (X'X + alpha)^-1 X' = X' (X X' + alpha)^-1
    return given.X.T @ _solution(given.X @ given.X.T, given.y, alphas)


def _solution(products: DistArray, right: DistArray, alphas: Floats) -> DistArray:
    if fits_one_worker(*right.shape):
        return cast(DistArray, replicated(_solved, products, right, alphas, like=np.zeros(right.shape)))
    # Of more targets than one worker takes, which are many.
    like = np.zeros(products.shape[0]), np.broadcast_to(0.0, products.shape)
    values, vectors = cast(Any, replicated(_eigenpairs, products, like=like))
    shares = where(values[:, None] + alphas > _least(values), 1 / (values[:, None] + alphas), 0.0)
    return cast(DistArray, vectors @ (shares * (vectors.T @ right)))


def _eigenpairs(products: Floats) -> tuple[Floats, Floats]:
    _check_finite(products)
    values, vectors = np.linalg.eigh(products)
    return values, vectors


def _least(values: Any) -> Any:
    return len(values) * np.finfo(float).eps * np.maximum(values[-1], 0.0)


def _check_finite(products: Floats) -> None:
    if not np.isfinite(products).all():
        raise OptionError(
            "Ridge: products of features are beyond float64, as are squares of numbers above 1e154: divide "
            "each feature by its largest number"
        )


def _solved(products: Floats, right: Floats, alphas: Floats) -> Floats:
    _check_finite(products)
    if alphas.ndim == 0 and alphas > 0:
        try:
            return cho_solve(cho_factor(products + alphas * np.eye(len(products))), right)
        except LinAlgError:
            pass
    # One decomposition for all penalties; along what is 0 but for rounding, the shortest.
    values, vectors = np.linalg.eigh(products)
    least = _least(values)
    sums = (values[:, None] if right.ndim == 2 else values) + alphas
    shares = np.where(sums > least, 1 / np.where(sums > least, sums, 1.0), 0.0)
    return vectors @ (shares * (vectors.T @ right))

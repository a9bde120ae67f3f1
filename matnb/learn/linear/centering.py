"""Least squares with a constant that is free: rows less their mean, and never a dense one of sparse rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matnb.lazy.array import DistArray, handle_of
from matnb.lazy.creation import asarray, ones, zeros
from matnb.lazy.functions.elementwise import where
from matnb.lazy.loop import converging, iterate
from matnb.learn.linear.linear_model import ROUNDING

REMEDY = "give a larger max_iter or tol, or scale the features"
_MOST_PLAIN = 500  # iterations in the units of the columns
State = tuple[Any, ...]


class CenteredData(NamedTuple):
    """Rows and targets times the roots of weights, less weighted means; the mean is 0 without a constant.

    Attributes
    ----------
    X
        n x p as given if sparse; dense, all of that is done.
    y
        n x targets, all of that done.
    mean, mean_y
        Of X, of length p, and of y, by weights.
    roots
        Of weights, n numbers, or None for ones.
    is_free
        Whether to fit an intercept.
    """

    X: DistArray
    y: DistArray
    mean: DistArray
    mean_y: DistArray
    roots: DistArray | None
    is_free: bool

    def times(self, w: DistArray) -> DistArray:
        """Return the product of the rows with p x targets."""
        if not self.X.sparse:
            return self.X @ w
        product = self.X @ w - self.mean @ w
        return product if self.roots is None else _scaled(self.roots, product)

    def back(self, r: DistArray) -> DistArray:
        """Return the product of the rows, transposed, with n x targets."""
        if not self.X.sparse:
            return self.X.T @ r
        r = r if self.roots is None else _scaled(self.roots, r)
        total = r.sum(axis=0)
        return self.X.T @ r - (self.mean * total if r.ndim == 1 else self.mean[:, None] * total)

    def gram(self) -> DistArray:
        """Return the products of columns, p x p and dense."""
        if not self.X.sparse:
            return self.X.T @ self.X
        p, n = self.X.shape[1], self.X.shape[0]
        weights = None if self.roots is None else self.roots**2
        total = float(n) if weights is None else weights.sum()
        product = self.X.T @ (self.X if weights is None else weights[:, None] * self.X)
        return product + zeros((p, p)) - total * (self.mean[:, None] * self.mean)

    def squares(self) -> DistArray:
        """Return the sums of the squares of columns; of those as given, where one is constant."""
        X = self.X.astype(np.float64)  # squares of float32 end at 1e19
        weights = ones(X.shape[0]) if self.roots is None else self.roots**2
        of_mean = weights.sum() * self.mean**2
        if X.sparse:
            square: DistArray = weights @ (X * X)
            own, rounded = square - of_mean, ROUNDING * square
        else:
            own = (X * X).sum(axis=0)
            square = own + of_mean
            rounded = ROUNDING**2 * square
        return where(own > rounded, own, square)

    def intercept(self, coef: DistArray) -> DistArray:
        """Return the constants that go with coefficients, of shape (p,) or targets x p; 0 without any."""
        return self.mean_y - coef @ self.mean if self.is_free else asarray(0.0)


def _scaled(roots: DistArray, values: DistArray) -> DistArray:
    scaled: DistArray = values * (roots if values.ndim == 1 else roots[:, None])
    return scaled


def centered(X: DistArray, y: DistArray, weights: DistArray | None, fit_intercept: bool) -> CenteredData:
    """Return rows and targets less their means, or as they are without a constant."""
    roots: DistArray | None = None if weights is None else handle_of(np.sqrt(weights))
    mean, mean_y = zeros(X.shape[1]), zeros(y.shape[1:])
    if fit_intercept and weights is None:
        mean, mean_y = X.mean(axis=0, dtype=np.float64), y.mean(axis=0)
    elif fit_intercept and weights is not None:
        total = weights.sum()
        mean, mean_y = weights @ X / total, weights @ y / total
    y = y - mean_y if roots is None else _scaled(roots, y - mean_y)
    if not X.sparse:
        X = X - mean if roots is None else _scaled(roots, X - mean)
    return CenteredData(X, y, mean, mean_y, roots, fit_intercept)


def conjugate_least_squares(
    rows: CenteredData, alphas: object, tol: float, max_iter: int, estimator: str
) -> tuple[DistArray, DistArray]:
    """Return the p x targets with the least squares and alphas times theirs, and the number of iterations.

    Hestenes and Stiefel 1952, "Methods of Conjugate Gradients for Solving Linear Systems", section 10, for
    all targets at once. It ends when the gradient of each target is at most ``tol`` times that at 0. Where
    hundreds of iterations do not get there, since some columns have thousands of entries and others one, as
    words of texts, it goes on in units in which all columns bend alike, which takes a tenth of the iterations
    or less; of several solutions it then need not come to the shortest one.
    """

    first = rows.back(rows.y)

    def search(w: DistArray, r: DistArray, inverse: DistArray | float, most: DistArray) -> Any:
        # Where ``inverse`` is 1, gradients are as they are; other numbers are those of other units.
        def step(state: State) -> State:
            w, r, p, square = state
            q = rows.times(p)
            curvature = (q * q).sum(axis=0) + alphas * (p * p).sum(axis=0)
            share = where(curvature > 0, square / where(curvature > 0, curvature, 1.0), 0.0)
            w, r = w + share * p, r - share * q
            s = rows.back(r) - alphas * w
            following = (s * inverse * s).sum(axis=0)
            return w, r, inverse * s + following / where(square > 0, square, 1.0) * p, following

        s = rows.back(r) - alphas * w
        limit = tol**2 * (first * inverse * first).sum(axis=0)
        start: State = w, r, inverse * s, (s * inverse * s).sum(axis=0)
        return iterate(step, start, until=lambda old, new: (new[-1] <= limit).all(), max_iterations=most)

    square = (first * first).sum(axis=0)
    is_zero = (square <= 0).all()
    most_plain = min(max_iter, _MOST_PLAIN)
    found = search(first * 0, rows.y, 1.0, where(is_zero, 0, asarray(most_plain)))
    (w, r, *_, last), taken = found
    if max_iter > most_plain:
        bends = rows.squares()
        bends = (bends if w.ndim == 1 else bends[:, None]) + alphas
        inverse = where(bends > 0, 1 / where(bends > 0, bends, 1.0), 1.0)
        is_over = is_zero | (last <= tol**2 * square).all()
        found = search(w, r, inverse, where(is_over, 0, asarray(max_iter - most_plain)))
        (w, *_), more = converging(estimator, found, REMEDY)
        return w, taken + more
    (w, *_), taken = converging(estimator, found, REMEDY)
    return w, taken

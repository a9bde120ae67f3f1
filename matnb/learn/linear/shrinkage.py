"""Least squares with a penalty of the sizes of coefficients, which makes some of them 0."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from matnb.errors import OptionError
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import asarray, zeros
from matnb.lazy.functions.decompositions import eigvalsh
from matnb.lazy.functions.diagonals import diagonal
from matnb.lazy.functions.elementwise import where
from matnb.lazy.loop import cond, converging
from matnb.learn.arguments import real, rows_from, targets_from, weights_from, whole
from matnb.learn.linear.centering import REMEDY, CenteredData, centered
from matnb.learn.linear.linear_model import LinearRegressor
from matnb.learn.optimize.fista import fista
from matnb.learn.optimize.line_search import Point

FEW = 2_000  # features whose products are kept, so that iterations do not go through the rows


class _RidgeProblem(NamedTuple):
    # |y - X w|^2 / 2 + ridge / 2 |w|^2 + sizes |w|_1, from products of columns where these are few
    rows: CenteredData
    gram: DistArray | None
    moments: DistArray
    square: DistArray
    sizes: float
    ridge: float
    positive: bool

    def curved(self, w: DistArray) -> DistArray:
        """Return X'X w."""
        return self.rows.back(self.rows.times(w)) if self.gram is None else self.gram @ w

    def evaluate(self, w: DistArray) -> Point:
        """Return the smooth part and its gradient."""
        curved = self.curved(w) + self.ridge * w
        return Point(w, self.square / 2 + w @ (curved / 2 - self.moments), curved - self.moments)

    def proximal(self, w: DistArray, step: DistArray) -> DistArray:
        """Return w nearer to 0."""
        if self.positive:
            return np.maximum(w - step * self.sizes, 0.0)
        return np.sign(w) * np.maximum(abs(w) - step * self.sizes, 0.0)

    def gap(self, w: DistArray) -> DistArray:
        """Return at most how far the loss at w is above the least: the gap to the dual problem's."""
        curved = self.curved(w)
        left = self.moments - curved - self.ridge * w
        if not self.sizes:
            return left @ left / (2 * self.ridge)
        squares = self.square + w @ (curved - 2 * self.moments)
        largest = left.max() if self.positive else abs(left).max()
        # The residuals, shrunk until they are feasible there.
        share = where(largest > self.sizes, self.sizes / where(largest > self.sizes, largest, 1.0), 1.0)
        products = self.square - w @ self.moments
        both = (1 + share**2) / 2 * (squares + self.ridge * (w @ w))
        return both + self.sizes * abs(w).sum() - share * products

    def steps(self) -> DistArray | None:
        """Return one over a bound of curvatures for each coefficient, by correlations of columns."""
        if self.gram is None:
            return None
        # Squares that are no normal numbers have no inverse, and products of two norms squared underflow.
        squares = diagonal(self.gram)
        own = where(squares >= np.finfo(float).tiny, squares, 1.0)
        norms = np.sqrt(own)
        largest = eigvalsh(self.gram / norms[:, None] / norms).max()
        return 1 / (own * np.maximum(largest, 1.0) * (1 + 1e-9) + self.ridge)


class ShrunkRegressor(LinearRegressor):
    """Coefficients that a penalty of their sizes makes 0 or smaller, by FISTA."""

    n_iter_: int
    dual_gap_: DistArray

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike = None) -> Self:
        """Fit the coefficients.

        Parameters
        ----------
        X
            n x p, sparse or dense.
        y
            n numbers.
        sample_weight
            n weights, by default 1.

        Raises
        ------
        ShapeError, DTypeError, OptionError
            For parts that do not fit each other, NaN, an alpha that is not above 0.
        """
        # 1/2n of squares, alpha l1_ratio of sizes and half alpha (1 - l1_ratio) of squares of coefficients
        name, given = type(self).__name__, vars(self)
        l1_ratio = given.get("l1_ratio", 1.0)
        rows = rows_from(X, name)
        targets = targets_from(y, rows, name, several=False)
        n, p = rows.shape
        weights = None if sample_weight is None else weights_from(sample_weight, rows, name)
        if weights is not None:
            weights = weights * (n / weights.sum())
        alpha = real(given["alpha"], "alpha", name, above=True)
        share = real(l1_ratio, "l1_ratio", name)
        if share > 1:
            raise OptionError(f"{name}: l1_ratio={l1_ratio}; give 0 to 1")
        tol, most = real(given["tol"], "tol", name), whole(given["max_iter"], "max_iter", name)
        least = centered(rows, targets, weights, bool(given["fit_intercept"]))
        problem = _RidgeProblem(
            least, least.gram() if p <= FEW else None, least.back(least.y), least.y @ least.y,
            n * alpha * share, n * alpha * (1 - share), bool(given["positive"]),
        )  # fmt: skip
        limit = tol * problem.square

        def ends(w: DistArray, moved: DistArray) -> DistArray:
            rests = moved.max() <= tol * abs(w).max()
            return cond(rests, lambda: problem.gap(w) <= limit, lambda: asarray(False))

        found = fista(
            problem.evaluate, problem.proximal, zeros(p), problem.steps(), ends, most,
        )  # fmt: skip
        w, taken = converging(name, found, REMEDY)
        self._learn(
            coef=w.astype(rows.dtype), intercept=least.intercept(w).astype(rows.dtype), n_iter=taken,
            dual_gap=problem.gap(w) / n, n_features_in=p,
        )  # fmt: skip
        self.n_iter_ = int(self.n_iter_)
        return self

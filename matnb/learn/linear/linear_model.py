"""What models have in common that are a linear function of rows."""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from matnb.errors import OptionError
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import asarray, eye, ones, zeros
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.linear import kron
from matnb.lazy.functions.mapping import replicated
from matnb.lazy.functions.rearranging import tile
from matnb.lazy.functions.shaping import concatenate
from matnb.learn.arguments import check_hessian, one_of, real, rows_from, whole
from matnb.learn.estimator import Estimator, Regressor
from matnb.learn.linear.linear_losses import LinearLoss
from matnb.learn.linear.multinomial_loss import MultinomialLoss
from matnb.learn.optimize.lbfgs import lbfgs, searching
from matnb.learn.optimize.line_search import Point
from matnb.learn.optimize.newton import newton

SOLVERS = ("lbfgs", "newton-cholesky")
HISTORY = 10
REMEDY = "give a larger max_iter or tol, or scale the features"
FAILED = "no step lowers the loss; scale the features, or give a larger penalty or tol"
ROUNDING = 64 * np.finfo(float).eps


class LinearModel(Estimator):
    """A model with ``coef_``, of shape (features,) or rows of them, and ``intercept_``."""

    coef_: DistArray
    intercept_: DistArray
    n_features_in_: int

    def _rows(self, X: object, called: str) -> DistArray:
        self._check_fitted(called)
        return rows_from(X, type(self).__name__, self.n_features_in_)

    def _linear(self, X: object, called: str) -> DistArray:
        return self._rows(X, called) @ self.coef_.T + self.intercept_


class LinearRegressor(LinearModel, Regressor):
    """A linear model of numbers."""

    def predict(self, X: ArrayLike) -> DistArray:
        """Return the linear function of each row, of shape (n,), or n x targets.

        Parameters
        ----------
        X
            n x p, sparse or dense.
        """
        return self._linear(X, "predict")


class FeatureUnits(NamedTuple):
    """Units of features and of the constant in which the loss has the same curvature along each.

    A search goes through ``u``, of the same length as the parameters: w is ``scale * u_w`` and b is
    ``unit * u_b - w @ mean``. The loss stays the same function of w and b, with its penalty, so its minimum
    stays where it is; but a step of length 1 is then of a size that no column's unit or origin changes.

    Attributes
    ----------
    mean
        p numbers by which columns are shifted, 0 without a constant.
    scale
        p numbers, one over the roots of curvatures.
    unit
        The same for the constant, or None without one.
    num_functions
        How many linear functions there are, one after the other in a vector of parameters.
    """

    mean: DistArray
    scale: DistArray
    unit: float | None
    num_functions: int

    @classmethod
    def of(cls, loss: LinearLoss | MultinomialLoss, bend: float) -> FeatureUnits:
        """Return the units for a loss whose second derivative by the margin of a typical row is ``bend``.

        Raises
        ------
        OptionError
            When computed: for a feature whose squares are beyond float64.
        """
        X, weights, total = loss.X, loss.weights, loss.total
        p = X.shape[1]

        def mean_of(rows: DistArray) -> DistArray:
            if weights is None:
                summed = rows.sum(axis=0, dtype=np.float64)
            else:
                summed = rows.T @ weights if rows.sparse else (rows * weights[:, None]).sum(axis=0)
            mean: DistArray = summed / total
            return mean

        mean = mean_of(X) if loss.fit_intercept else zeros(p)
        if X.sparse:
            doubles = X.astype(np.float64)  # squares of float32 end at 1e19
            square = mean_of(doubles * doubles)
            spread, rounded = square - mean * mean, ROUNDING * square
        else:
            spread = mean_of((X - mean) ** 2)
            square = spread + mean * mean
            rounded = ROUNDING**2 * square
        # A column that is the same number in all rows bends along with the constant only.
        own = where(spread > rounded, spread, square)
        own = cast(DistArray, replicated(_finite, own, like=np.zeros(p)))
        curvature = bend * own + loss.alpha
        scale = where(curvature > 0, np.maximum(curvature, np.finfo(float).tiny), 1.0) ** -0.5
        classes = loss.num_classes if isinstance(loss, MultinomialLoss) else 1
        return cls(mean, scale, bend**-0.5 if loss.fit_intercept else None, classes)

    def parameters(self, u: DistArray) -> DistArray:
        """Return the parameters of the loss."""
        rows, p = u.reshape(self.num_functions, -1), len(self.scale)
        w = rows[:, :p] * self.scale
        if self.unit is None:
            return w.reshape(-1)
        b = self.unit * rows[:, p] - w @ self.mean
        return concatenate([w, b[:, None]], axis=1).reshape(-1)

    def gradient(self, of_parameters: DistArray) -> DistArray:
        """Return the gradient by u, or each row of a matrix of gradients, by the chain rule."""
        p = len(self.scale)
        rows = of_parameters.reshape(-1, p + (self.unit is not None))
        if self.unit is None:
            return (rows * self.scale).reshape(of_parameters.shape)
        of_b = rows[:, p:]
        of_w = (rows[:, :p] - of_b * self.mean) * self.scale
        return concatenate([of_w, of_b * self.unit], axis=1).reshape(of_parameters.shape)

    def hessian(self, of_parameters: DistArray) -> DistArray:
        """Return the Hessian by u, definite also along equal changes of all functions, which are free."""
        H = self.gradient(self.gradient(of_parameters).T)
        K = self.num_functions
        return H + kron(ones((K, K)) / K, eye(H.shape[0] // K)) if K > 1 else H


def _finite(squares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    if not np.isfinite(squares).all():
        first = int(np.argmin(np.isfinite(squares)))
        raise OptionError(
            f"the squares of feature {first} are beyond float64, as are those of numbers above 1e154: divide "
            "the feature by its largest number"
        )
    return squares


def least(
    loss: LinearLoss | MultinomialLoss, bend: float, model: Estimator, constant: float = 0.0
) -> tuple[DistArray, DistArray]:
    """Return where a loss is least, by the ``solver``, ``tol`` and ``max_iter`` of a model, and iterations.

    Parameters
    ----------
    loss
        A function of parameters.
    bend
        Its second derivative by the margin of a typical row, above 0.
    model
        The estimator.
    constant
        Where the search starts, without features.

    Raises
    ------
    OptionError, DTypeError
        For a solver that there is not, a tolerance that is not above 0, iterations below 0.
    TooLargeError
        For a Hessian above 64 MB.
    """
    name = type(model).__name__
    given = vars(model)
    solver = one_of(given["solver"], "solver", name, SOLVERS)
    tol = real(given["tol"], "tol", name, above=True)
    max_iter = whole(given["max_iter"], "max_iter", name, least=0)

    units = FeatureUnits.of(loss, bend)
    start = zeros(len(units.scale) * units.num_functions)
    if units.unit is not None:
        row = concatenate([zeros(len(units.scale)), asarray([constant / units.unit])])
        start = tile(row, units.num_functions)

    def evaluate(u: DistArray) -> Point:
        x = units.parameters(u)
        return Point(u, loss.loss(x), units.gradient(loss.gradient(x)))

    def hessian(u: DistArray) -> DistArray:
        return units.hessian(loss.hessian(units.parameters(u)))

    if solver == "lbfgs":
        found = lbfgs(evaluate, start, tol, max_iter, HISTORY)
    else:
        check_hessian(len(start), name)
        found = newton(evaluate, hessian, start, tol, max_iter)
    (point, _), taken = searching(name, found, REMEDY, FAILED)
    return units.parameters(point.x), taken


def parted(parameters: DistArray, num_features: int, dtype: np.dtype) -> tuple[DistArray, DistArray]:
    """Return the slopes, of the last axis, and the intercepts, 0 where there are none, in a dtype."""
    slopes = parameters[..., :num_features]
    if parameters.shape[-1] > num_features:
        return slopes.astype(dtype), parameters[..., num_features].astype(dtype)
    return slopes.astype(dtype), (slopes.sum(axis=-1) * 0).astype(dtype)

"""What models have in common that are a linear function of rows."""

from __future__ import annotations

import numpy as np

from matnb.lazy.array import DistArray
from matnb.lazy.loop import converging
from matnb.learn.arguments import one_of, real, rows_from, whole
from matnb.learn.estimator import Estimator, Regressor
from matnb.learn.lbfgs import lbfgs
from matnb.learn.line_search import Point
from matnb.learn.linear_losses import LinearLoss
from matnb.learn.multinomial_loss import MultinomialLoss
from matnb.learn.newton import newton

SOLVERS = ("lbfgs", "newton-cholesky")
HISTORY = 10
REMEDY = "give a larger max_iter or tol, or scale the features"


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

    def predict(self, X: object) -> DistArray:
        """Return the linear function of each row, of shape (n,), or n x targets.

        Parameters
        ----------
        X
            n x p, sparse or dense.
        """
        return self._linear(X, "predict")


def least(
    loss: LinearLoss | MultinomialLoss, start: DistArray, model: Estimator
) -> tuple[DistArray, DistArray]:
    """Return where a loss is least, by the ``solver``, ``tol`` and ``max_iter`` of a model, and iterations.

    Raises
    ------
    OptionError, DTypeError
        For a solver that there is not, a tolerance that is not above 0, iterations below 0.
    """
    name = type(model).__name__
    given = vars(model)
    solver = one_of(given["solver"], "solver", name, SOLVERS)
    tol = real(given["tol"], "tol", name, above=True)
    max_iter = whole(given["max_iter"], "max_iter", name, least=0)

    def evaluate(x: DistArray) -> Point:
        return Point(x, loss.loss(x), loss.gradient(x))

    if solver == "lbfgs":
        # Its search fails by rounding alone: these losses have their gradients, and no end below 0.
        (point, _), taken = lbfgs(evaluate, start, tol, max_iter, HISTORY)
    else:
        point, taken = newton(evaluate, loss.hessian, start, tol, max_iter)
    point, taken = converging(name, (point, taken), REMEDY)
    return point.x, taken


def parted(parameters: DistArray, num_features: int, dtype: np.dtype) -> tuple[DistArray, DistArray]:
    """Return the slopes, of the last axis, and the intercepts, 0 where there are none, in a dtype."""
    slopes = parameters[..., :num_features]
    if parameters.shape[-1] > num_features:
        return slopes.astype(dtype), parameters[..., num_features].astype(dtype)
    return slopes.astype(dtype), (slopes.sum(axis=-1) * 0).astype(dtype)

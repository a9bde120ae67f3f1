"""Logistic regression, of two classes and of more."""

from __future__ import annotations

from typing import Any, Self, cast

import numpy as np

from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.functions.shaping import stack
from matnb.learn.arguments import Classes, class_weights_from, labels_from, of_classes, real, rows_from
from matnb.learn.estimator import Classifier
from matnb.learn.linear.linear_losses import LinearLoss, half_logistic
from matnb.learn.linear.linear_model import LinearModel, least, parted
from matnb.learn.linear.multinomial_loss import MultinomialLoss, softmax


class LogisticRegression(LinearModel, Classifier):
    """Logistic regression; multinomial for more than two classes.

    Minimizes ``C * sum(losses) + sum(coef_**2) / 2``, without penalizing the intercept; each loss is the
    negative log-likelihood of the row's class. Arguments and attributes are scikit-learn's.

    Parameters
    ----------
    C
        Inverse strength of the penalty; infinity for none.
    tol
        Stop when no element of the gradient, divided by C and the sum of weights, exceeds this in magnitude.
        The gradient is by centered features, in units in which the loss has the same curvature along each, so
        that the units of columns have no effect.
    fit_intercept
        Whether to fit an intercept.
    class_weight
        A dict of class weights, 1 for those not listed, or "balanced" for weights that give each class the
        same total.
    solver
        "lbfgs", or "newton-cholesky" for few features and classes, whose Hessian is stored.
    max_iter
        Maximum number of iterations.

    Attributes
    ----------
    coef_
        1 x p for two classes, else classes x p, in the dtype of X.
    intercept_
        One number for each row of ``coef_``.
    classes_
        The classes, ascending.
    n_iter_, n_features_in_
        The number of iterations, and p; ints.

    Examples
    --------
    >>> import matnb as mn
    >>> X, y = mn.asarray([[0.0], [1.0], [2.0], [3.0]]), ["no", "no", "yes", "yes"]
    >>> model = mn.learn.LogisticRegression(solver="newton-cholesky").fit(X, y)
    >>> model.predict([[0.5], [2.5]])
    array(['no', 'yes'], dtype='<U3')
    >>> model.predict_proba([[1.5]]).compute()
    array([[0.5, 0.5]])

    References
    ----------
    Liu and Nocedal 1989, "On the Limited Memory BFGS Method for Large Scale Optimization"; Elibol et al.
    2022, "NumS: Scalable Array Programming for the Cloud", section 6.
    """

    n_iter_: int

    def __init__(
        self,
        *,
        C: float = 1.0,
        tol: float = 1e-4,
        fit_intercept: bool = True,
        class_weight: dict[Any, float] | str | None = None,
        solver: str = "lbfgs",
        max_iter: int = 100,
    ) -> None:
        self.C = C
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.max_iter = max_iter

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike = None) -> Self:
        """Fit the coefficients.

        Parameters
        ----------
        X
            n x p, sparse or dense; a sparse X stays sparse.
        y
            n labels.
        sample_weight
            n weights, by default 1.

        Raises
        ------
        ShapeError, DTypeError, OptionError
            For inconsistent shapes, NaN, a single class, a C that is not above 0.

        Warns
        -----
        ConvergenceWarning
            If ``max_iter`` is reached, or no step lowers the loss.
        """
        rows = rows_from(X, "LogisticRegression")
        labels = labels_from(y, rows, "LogisticRegression")
        C = real(1e300 if self.C == np.inf else self.C, "C", "LogisticRegression", above=True)  # noqa: SIM300
        weights = class_weights_from(self.class_weight, labels, sample_weight, rows, "LogisticRegression")
        total = float(rows.shape[0] if weights is None else weights.sum())
        alpha = 1 / (C * total)
        p, K, free = rows.shape[1], len(labels.classes), bool(self.fit_intercept)
        loss: LinearLoss | MultinomialLoss
        if K == 2:
            second = labels.codes.astype(np.float64)
            loss = LinearLoss(rows, second, half_logistic, weights, total, alpha, free)
        else:
            loss = MultinomialLoss(rows, labels.codes, K, weights, total, alpha, free)
        shape = (1 if K == 2 else K), p + free
        found, taken = least(loss, (1 - 1 / K) / K, self)
        coef, intercept = parted(found.reshape(shape), p, rows.dtype)
        self._learn(coef=coef, intercept=intercept, n_iter=taken, classes=labels.classes, n_features_in=p)
        self.n_iter_ = int(self.n_iter_)
        return self

    def decision_function(self, X: ArrayLike) -> DistArray:
        """Return the decision function of each row: n numbers, or n x classes for more than two."""
        return self._decided(X, "decision_function")

    def _decided(self, X: object, called: str) -> DistArray:
        found = self._linear(X, called)
        return found[:, 0] if len(self.classes_) == 2 else found

    def predict(self, X: ArrayLike) -> DistArray | Classes:
        """Return the most likely class of each row: a DistArray of numbers, or a NumPy array of strings."""
        found = self._decided(X, "predict")
        places = found.argmax(axis=1) if found.ndim == 2 else (found > 0).astype(np.int64)
        return of_classes(places, self.classes_)

    def predict_proba(self, X: ArrayLike) -> DistArray:
        """Return the probability of each class, n x classes."""
        found = self._decided(X, "predict_proba")
        if found.ndim == 2:
            return softmax(found)
        second = 1 / (1 + np.exp(-np.maximum(found, -700.0)))
        return stack([1 - second, second], axis=1)

    def predict_log_proba(self, X: ArrayLike) -> DistArray:
        """Return the logarithms of the probabilities, n x classes."""
        return cast(DistArray, np.log(self.predict_proba(X)))

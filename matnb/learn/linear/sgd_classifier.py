"""Linear classifiers by stochastic gradients."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from matnb.blocks.foreign import is_missing_value
from matnb.errors import OptionError, UnsupportedError
from matnb.lazy import special
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray
from matnb.lazy.limits import check_incoming
from matnb.learn.arguments import Classes, labels_from, of_classes, rows_from
from matnb.learn.estimator import Classifier
from matnb.learn.linear.score_losses import OF_CLASSES, OF_NUMBERS
from matnb.learn.linear.stochastic import StochasticGradient


class SGDClassifier(StochasticGradient, Classifier):
    """Linear classifiers, one versus rest, trained by stochastic gradient descent.

    Arguments are a subset of scikit-learn's; for two classes and rows in the same order the weights are the
    same, too. Three or more classes are trained, and stop, together. A :class:`Learner` with ``SGD``.

    Parameters
    ----------
    loss
        ``"hinge"``, ``"log_loss"``, ``"modified_huber"``, ``"squared_hinge"``, ``"perceptron"``, or one of
        :class:`SGDRegressor`, of targets -1 and 1.
    others
        As in :class:`SGDRegressor`; scikit-learn corresponds to a ``batch_size`` of 1.

    Attributes
    ----------
    coef_, intercept_
        Weights, float64 of 1 x p for two classes, else classes x p, and as many intercepts.
    classes_, n_iter_, t_, n_features_in_
        The classes, a NumPy array; number of passes; number of steps plus 1; columns of X.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> y = np.where(X @ [1.0, -2.0] > 0, "up", "down")
    >>> model = mn.learn.SGDClassifier(batch_size=20, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.98, model.predict([[3.0, 0.0]])
    (True, array(['up'], dtype='<U4'))
    """

    _losses = {**OF_CLASSES, **OF_NUMBERS}
    coef_: DistArray
    intercept_: DistArray
    n_iter_: int
    n_features_in_: int

    def __init__(
        self,
        loss: str = "hinge",
        *,
        penalty: str | None = "l2",
        alpha: float = 0.0001,
        l1_ratio: float = 0.15,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 0.001,
        shuffle: bool = True,
        epsilon: float = 0.1,
        random_state: Any = None,
        learning_rate: str = "optimal",
        eta0: float = 0.01,
        power_t: float = 0.5,
        n_iter_no_change: int = 5,
        batch_size: int = 1,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.epsilon = epsilon
        self.random_state = random_state
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.n_iter_no_change = n_iter_no_change
        self.batch_size = batch_size

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None) -> Self:
        """Learn from rows of X, n x p, and their n labels; ``sample_weight`` scales the loss of each row."""
        rows = rows_from(X, "SGDClassifier")
        classes, codes = labels_from(y, rows, "SGDClassifier")
        found = self._descend(rows, _signs(codes, len(classes)), sample_weight)
        return self._keep_descent(found, found.weights, classes=classes)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Train for one pass from the current weights; the first call needs all classes."""
        rows = rows_from(X, "SGDClassifier", getattr(self, "n_features_in_", None))
        if classes is None and not hasattr(self, "classes_"):
            raise OptionError("SGDClassifier: the first partial_fit needs classes=, the list of all classes")
        known = self.classes_ if hasattr(self, "classes_") else _listed(classes)
        if classes is not None and not np.array_equal(known, listed := _listed(classes)):
            raise OptionError(
                f"SGDClassifier: classes={listed.tolist()}, but the first call had {known.tolist()}; "
                "leave classes out, or call fit"
            )
        check_incoming(y)
        labels = np.asarray(y)
        if (new := np.setdiff1d(labels, known)).size:
            raise OptionError(
                f"SGDClassifier: y has the class {new[0].item()!r}, which classes= did not list"
            )
        codes = asarray(np.searchsorted(known, labels))
        found = self._one_batch(rows, _signs(codes, len(known)), sample_weight)
        return self._keep_descent(found, found.weights, classes=known)

    def decision_function(self, X: Any) -> DistArray:
        """Return the scores of rows: n numbers for two classes, else n x classes."""
        self._check_fitted("decision_function")
        scores = rows_from(X, "SGDClassifier", self.n_features_in_) @ self.coef_.T + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> DistArray | Classes:
        """Return the classes of rows."""
        scores = self.decision_function(X)
        places = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        return of_classes(places, self.classes_)

    def predict_proba(self, X: Any) -> DistArray:
        """Return the probabilities of classes, n x classes, of ``loss="log_loss"``."""
        self._check_fitted("predict_proba")
        if self.loss != "log_loss":
            raise UnsupportedError(
                f"SGDClassifier: loss={self.loss!r} has no probabilities; use loss='log_loss'"
            )
        scores = self.decision_function(X)
        shares: Any = special.expit(scores)
        if scores.ndim == 1:
            return shares[:, None] * np.array([-1.0, 1.0]) + np.array([1.0, 0.0])
        return shares / shares.sum(axis=1, keepdims=True)


def _listed(classes: Any) -> Classes:
    missing = [one for one in np.asarray(classes, dtype=object).ravel().tolist() if is_missing_value(one)]
    if missing:
        raise OptionError(
            f"SGDClassifier: classes= has {missing[0]!r}, which is a missing value and no class; leave it out"
        )
    return np.unique(np.asarray(classes))


def _signs(codes: DistArray, num_classes: int) -> DistArray:
    # 1 for a row's class, -1 for the others; of two classes only for the second.
    if num_classes == 2:
        return 2.0 * codes - 1.0
    return 2.0 * (codes[:, None] == np.arange(num_classes)) - 1.0

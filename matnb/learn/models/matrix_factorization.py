"""Factors of ratings, for a learner: those of items are learned, those of users follow from their ratings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from matnb.errors import OptionError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import ones
from matnb.lazy.functions.shaping import concatenate
from matnb.lazy.random import default_rng
from matnb.learn.arguments import real, whole
from matnb.learn.named_arguments import LearnerPart
from matnb.learn.optimize.optimizers import Parameters
from matnb.learn.recommend.alternating import AlternatingSquares, no_factors, num_entries
from matnb.learn.recommend.recommending import ratings_from


@dataclass(frozen=True)
class MatrixFactorization(LearnerPart):
    """Factors of users and items whose products are near the ratings, learned from batches of users.

    A row is a user, n x items, sparse, whose stored elements are ratings, zeros too. The loss of a user is
    that of :class:`matnb.learn.ALS`, ``sum of (r_i - x . y_i)^2 + c (|x|^2 + |y_i|^2) over the ratings``, so
    that all of them together are what ALS lessens (Zhou, Wilkinson, Schreiber and Pan 2008). As BIDMach's
    (Canny and Zhao 2013, table 4): factors x of the users of a batch are solved for, all at once, by
    conjugate gradients from 0; then the optimizer moves the factors y of items along the gradient at these x,
    which is that of the loss once x is the best. So nothing of a user stays, and a model is
    as large as the items' factors alone. ``regularization`` is part of the loss; those of the learner come
    on top. There is no implicit feedback.

    The parameter is ``items``, items x factors, of the dtype of the ratings. What is predicted are the
    ratings of all items by users with the ratings given, n x items, computed where it is asked for:
    ``R.pattern() * learner.predict(R)`` at the ratings alone.

    Parameters
    ----------
    factors
        Columns of ``items``.
    regularization
        c.
    num_steps
        Of conjugate gradients; with as many as factors, x is the best to rounding.
    scale
        The standard deviation of the first factors, but the first column, whose products are the mean rating
        of the first batch.
    seed
        Of the first factors.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp, matnb as mn
    >>> rng = np.random.default_rng(0)
    >>> R = 3 + rng.normal(size=(300, 2)) @ rng.normal(size=(2, 20))
    >>> rated = rng.random(R.shape) < 0.7
    >>> model = mn.learn.models.MatrixFactorization(factors=3, regularization=0.01)
    >>> learner = mn.learn.Learner(model, optimizer=mn.learn.AdaGrad(0.3))
    >>> learner = learner.fit(sp.csr_array(R * rated), epochs=20, batch_size=30)
    >>> bool(abs((learner.predict(sp.csr_array(R * rated)) - R)[~rated]).mean() < 0.2)
    True
    """

    factors: int = 20
    regularization: float = 0.1
    num_steps: int = 5
    scale: float = 0.1
    seed: int = 0

    def start(self, X: DistArray, y: Any) -> Parameters:
        """Return factors that are drawn, and a first column whose products are the mean rating.

        Raises
        ------
        DTypeError, OptionError
            For dense ratings, targets beside them, and arguments outside their bounds.
        """
        if y is not None:
            raise OptionError("MatrixFactorization: leave y out: the ratings are the entries of X")
        R = ratings_from(X, "MatrixFactorization")
        k = whole(self.factors, "factors", "MatrixFactorization")
        real(self.regularization, "regularization", "MatrixFactorization")
        whole(self.num_steps, "num_steps", "MatrixFactorization")
        scale = real(self.scale, "scale", "MatrixFactorization")
        drawn = scale * default_rng(self.seed).standard_normal((R.shape[1], k - 1), dtype=R.dtype)
        # As large as what users have there: both are the root of the mean.
        mean = abs(R.sum()) / np.maximum(num_entries(R).sum(), 1)
        first = np.sqrt(mean).astype(R.dtype) * ones((R.shape[1], 1), R.dtype)
        return {"items": concatenate([first, drawn], axis=1)}

    def users(self, parameters: Parameters, X: DistArray) -> DistArray:
        """Return the factors of users by their ratings, n x factors; 0 without ratings."""
        Y = parameters["items"]
        R = X.astype(Y.dtype)
        return self._squares.factors(R, Y, no_factors(R, Y.shape[1]))

    def loss(self, parameters: Parameters, X: DistArray, y: None = None) -> DistArray:
        """Return the mean loss of users."""
        Y = parameters["items"]
        return self._squares.loss(X.astype(Y.dtype), self.users(parameters, X), Y) / X.shape[0]

    def gradient(self, parameters: Parameters, X: DistArray, y: None = None) -> Parameters:
        """Return the gradient of the mean loss at the users' factors: ``2 (c n_i y_i - E'x)`` of errors E."""
        Y, U = parameters["items"], self.users(parameters, X)
        R = X.astype(Y.dtype)
        errors = R - R.pattern(Y.dtype) * (U @ Y.T)
        shrinking = (self.regularization * num_entries(R.T)[:, None] * Y).astype(Y.dtype)
        return {"items": 2 / X.shape[0] * (shrinking - errors.T @ U)}

    def predict(self, parameters: Parameters, X: DistArray) -> DistArray:
        """Return the ratings of all items, n x items, by users with these ratings."""
        R = ratings_from(X, "MatrixFactorization")
        return cast(DistArray, self.users(parameters, R) @ parameters["items"].T)

    @property
    def _squares(self) -> AlternatingSquares:
        return AlternatingSquares(self.regularization, None, "cg", self.num_steps)

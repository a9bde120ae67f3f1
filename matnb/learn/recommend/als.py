"""Factors of ratings by alternating least squares."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Self

import numpy as np

from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.evaluator import evaluator
from matnb.lazy.functions.elementwise import where
from matnb.lazy.loop import converging, iterate
from matnb.learn.arguments import one_of, real, seed_from, whole
from matnb.learn.estimator import Estimator
from matnb.learn.recommend.alternating import AlternatingSquares, no_factors
from matnb.learn.recommend.recommending import (
    Labels,
    Recommendations,
    best_unseen,
    labeled_items,
    labels_of,
    places_from,
    ratings_from,
)


class ALS(Estimator):
    """Matrix factorization of ratings by alternating least squares (ALS), for recommendations.

    For explicit ratings r it minimizes ``sum of (r_ui - x_u . y_i)^2 over the ratings + c (sum of n_u |x_u|^2
    + sum of n_i |y_i|^2)``, n the numbers of ratings (Zhou, Wilkinson, Schreiber and Pan 2008, "Large-scale
    parallel collaborative filtering for the Netflix prize"). For implicit feedback, counts r, it minimizes
    ``sum of (1 + a r_ui) (p_ui - x_u . y_i)^2 over all users and items + c (sum of |x_u|^2 + sum of
    |y_i|^2)``, p 1 where r is above 0 (Hu, Koren and Volinsky 2008, "Collaborative filtering for implicit
    feedback datasets").

    Each round solves a small system per user, then one per item. Users and items without ratings get factors
    of 0; ``predict`` gives the mean of all ratings where a user or an item has none. Only with explicit
    ratings are results bit-identical however R is split.

    Parameters
    ----------
    factors
        k, at most the larger number of users and items.
    regularization
        c.
    iterations
        Maximum number of rounds.
    implicit
        Whether R holds counts of what users did, rather than ratings.
    alpha
        a: the confidence added per count.
    solver
        "cholesky", or "cg": three conjugate-gradient steps per system, starting from the previous factors,
        which is faster for many factors (Takacs, Pilaszy and Tikk 2011, "Applications of the conjugate
        gradient method for implicit feedback collaborative filtering").
    tol
        Stop after a round that reduces the loss by at most this fraction. 0: always run ``iterations``.
    random_state
        Seed of the initial factors.

    Attributes
    ----------
    user_factors_, item_factors_ : DistArray
        users x k and items x k, with the dtype of R.
    loss_, mean_ : DistArray
        The value of the loss, and the mean of the stored ratings; scalars.
    n_iter_ : int
        Rounds.
    user_labels_, item_labels_ : numpy.ndarray or None
        The labels of the rows and of the columns, where R is a pivot.

    Examples
    --------
    >>> import matnb as mn, scipy.sparse as sp
    >>> R = sp.csr_array([[5.0, 4.0, 0.0], [0.0, 4.0, 1.0], [5.0, 0.0, 1.0]])
    >>> als = mn.learn.ALS(factors=2, regularization=0.01, random_state=0).fit(R)
    >>> als.predict([0, 1], [2, 0]).compute().round(1)
    array([1., 5.])
    >>> als.recommend([1], 1).items.compute()
    array([[0]])

    Of a pivot, users and items are given and found by their labels:

    >>> t = mn.table({"user": [7, 7, 8, 8], "film": [31, 10, 10, 50], "stars": [5.0, 1.0, 1.0, 5.0]})
    >>> als = mn.learn.ALS(factors=2, random_state=0).fit(t.pivot("user", "film", "stars"))
    >>> als.recommend([8, 7], 1).items.compute()
    array([[31],
           [50]])
    """

    user_factors_: DistArray
    item_factors_: DistArray
    mean_: DistArray
    n_iter_: int
    user_labels_: Labels | None
    item_labels_: Labels | None
    _rated: tuple[DistArray, DistArray]
    _ways = MappingProxyType(
        {
            "score": (
                "np.sqrt(np.mean((als.predict(T.row, T.col) - T.data) ** 2)), the error for ratings T that "
                "were kept apart, a scipy.sparse.coo_array; fitted to a pivot, predict takes labels"
            )
        }
    )

    def __init__(
        self,
        factors: int = 20,
        regularization: float = 0.1,
        iterations: int = 15,
        implicit: bool = False,
        alpha: float = 40.0,
        solver: str = "cholesky",
        tol: float = 0.0,
        random_state: Any = None,
    ) -> None:
        self.factors = factors
        self.regularization = regularization
        self.iterations = iterations
        self.implicit = implicit
        self.alpha = alpha
        self.solver = solver
        self.tol = tol
        self.random_state = random_state

    def fit(self, R: object, y: ArrayLike = None) -> Self:
        """Learn factors from ratings, users x items, a sparse matrix; a stored zero is a rating too."""
        users, items = labels_of(R)
        ratings = DistArray(ratings_from(R, "ALS", signed=not self.implicit).expression)  # without labels
        k = whole(self.factors, "factors", "ALS", most=max(ratings.shape))
        rounds = whole(self.iterations, "iterations", "ALS")
        tol = real(self.tol, "tol", "ALS")
        squares = AlternatingSquares(
            real(self.regularization, "regularization", "ALS"),
            real(self.alpha, "alpha", "ALS") if self.implicit else None,
            one_of(self.solver, "solver", "ALS", ("cholesky", "cg")),
        )

        def step(state: tuple[DistArray, ...]) -> tuple[DistArray, ...]:
            U, V = state[:2]
            U = squares.factors(ratings, V, U)
            V = squares.factors(ratings.T, U, V)
            return (U, V, squares.loss(ratings, U, V)) if tol else (U, V)

        def is_settled(old: tuple[DistArray, ...], new: tuple[DistArray, ...]) -> DistArray:
            return old[2] - new[2] <= tol * old[2]

        U, V = no_factors(ratings, k), squares.start(ratings, k, seed_from(self.random_state, "ALS"))
        start: tuple[DistArray, ...] = (U, V, squares.loss(ratings, U, V)) if tol else (U, V)
        found = iterate(step, start, until=is_settled if tol else None, max_iterations=rounds)
        state, n = converging("ALS", found, "give more iterations or a larger tol") if tol else found
        U, V = state[:2]
        stored = ratings.pattern().astype(np.int64)
        counts = stored.sum(axis=1), stored.sum(axis=0)
        mean = (ratings.sum() / np.maximum(counts[0].sum(), 1)).astype(ratings.dtype)
        rated = counts[0] > 0, counts[1] > 0
        evaluator().persist([one.expression for one in rated])
        learned = {"mean": mean, "n_iter": n, "user_labels": users, "item_labels": items}
        self._learn(user_factors=U, item_factors=V, loss=squares.loss(ratings, U, V), **learned)
        self.n_iter_, self._ratings, self._rated = int(self.n_iter_), ratings, rated
        return self

    def predict(self, users: object, items: object) -> DistArray:
        """Return the predicted rating of each pair from ``users`` and ``items``, with the factors' dtype.

        Both are labels of the rows and columns of the fitted matrix where it is a pivot, else their numbers;
        where labels are texts, whole numbers are numbers of rows and columns, too.
        Of a user or an item without ratings nothing is known: the prediction is ``mean_``, or for implicit
        feedback 0.

        Raises
        ------
        ShapeError, IndexingError
            If ``users`` and ``items`` differ in length; for an unknown user or item.
        """
        self._check_fitted("predict")
        U, V = self.user_factors_, self.item_factors_
        rows = places_from(users, U.shape[0], "users", "ALS.predict", self.user_labels_)
        columns = places_from(items, V.shape[0], "items", "ALS.predict", self.item_labels_)
        products = (U[rows] * V[columns]).sum(axis=1)
        if self.implicit:
            return products
        return where(self._rated[0][rows] & self._rated[1][columns], products, self.mean_)

    def recommend(self, users: object, n: int = 10, exclude_seen: bool = True) -> Recommendations:
        """Return the ``n`` items with the highest scores for each user, by default among those not rated yet.

        Users are given as to ``predict``. Items are labels of the fitted matrix where these are whole
        numbers; where they are others, such as texts, ``als.item_labels_[found.items.compute()]`` are the
        labels, and -1 is no item.

        Raises
        ------
        IndexingError, OptionError
            For an unknown user; for more items than there are.
        """
        self._check_fitted("recommend")
        U, V = self.user_factors_, self.item_factors_
        rows = places_from(users, U.shape[0], "users", "ALS.recommend", self.user_labels_)
        seen = self._ratings[rows] if exclude_seen else None
        found = best_unseen(lambda x: x @ V.T, U[rows], seen, n, V.shape[0], "ALS.recommend")
        return labeled_items(found, self.item_labels_)

"""Collaborative filtering by which items are rated together."""

from __future__ import annotations

from typing import Self

from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.learn.estimator import Estimator
from matnb.learn.recommend.recommending import (
    Labels,
    Recommendations,
    best_unseen,
    labeled_items,
    labels_of,
    places_from,
    ratings_from,
)


class ItemSimilarity(Estimator):
    """Item-based collaborative filtering: scores ``R S``, with the item similarities ``S = R' R``.

    Presto's collaborative filtering (Venkataraman et al. 2013, "Presto: Distributed machine learning and
    graph processing with sparse matrices", section 7.1). Since ``(R R') R = R (R' R)``, the similarities of
    all pairs of users, ``R R'``, are never stored.

    Attributes
    ----------
    similarity_ : DistArray
        S, items x items, sparse: ``S[i, j]`` is the sum of products of ratings over users who rated both
        items.
    user_labels_, item_labels_ : numpy.ndarray or None
        The labels of the rows and of the columns, where R is a pivot.

    Examples
    --------
    >>> import matnb as mn, scipy.sparse as sp
    >>> R = sp.csr_array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
    >>> likeness = mn.learn.ItemSimilarity().fit(R)
    >>> likeness.similarity_.to_scipy().toarray()
    array([[2., 1., 0.],
           [1., 2., 1.],
           [0., 1., 1.]])
    >>> likeness.recommend([0, 2], 1).items.compute()
    array([[2],
           [1]])
    """

    similarity_: DistArray
    user_labels_: Labels | None
    item_labels_: Labels | None

    def fit(self, R: object, y: ArrayLike = None) -> Self:
        """Learn from ratings, users x items, a sparse matrix."""
        ratings = ratings_from(R, "ItemSimilarity")
        users, items = labels_of(R)
        self._learn(similarity=ratings.T @ ratings, user_labels=users, item_labels=items)
        self._ratings = DistArray(ratings.expression)  # without labels
        return self

    def predict(self, R: object) -> DistArray:
        """Return the scores of all items for users, ``R S``: sparse, as R is.

        Parameters
        ----------
        R
            Ratings of any users, m x items.

        Raises
        ------
        ShapeError
            For another number of items.
        """
        self._check_fitted("predict")
        S = self.similarity_
        return ratings_from(R, "ItemSimilarity.predict", S.shape[0]) @ S

    def recommend(self, users: object, n: int = 10, exclude_seen: bool = True) -> Recommendations:
        """Return the ``n`` items with the highest scores for each user, by default among those not rated yet.

        Parameters
        ----------
        users
            Labels of the rows of the fitted matrix where it is a pivot, else their numbers. Items are labels
            as of :meth:`ALS.recommend`.
        n
            Number of items to return per user.
        exclude_seen
            Whether to leave out items that the user already rated.

        Raises
        ------
        IndexingError
            For an unknown user.
        OptionError
            For more items than there are.
        """
        self._check_fitted("recommend")
        S, R = self.similarity_, self._ratings
        places = places_from(users, R.shape[0], "users", "ItemSimilarity.recommend", self.user_labels_)
        rows = R[places]
        seen = rows if exclude_seen else None
        found = best_unseen(lambda x: x @ S, rows, seen, n, S.shape[0], "ItemSimilarity.recommend")
        return labeled_items(found, self.item_labels_)

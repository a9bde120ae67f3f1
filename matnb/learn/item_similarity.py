"""Collaborative filtering by which items are rated together."""

from __future__ import annotations

from typing import Self

from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.learn.estimator import Estimator
from matnb.learn.recommending import Recommendations, best_unseen, places_from, ratings_from


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

    def fit(self, R: object, y: ArrayLike = None) -> Self:
        """Learn from ratings, users x items, a sparse matrix."""
        ratings = ratings_from(R, "ItemSimilarity")
        self._learn(similarity=ratings.T @ ratings)
        self._ratings = ratings
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
            Row numbers of the fitted matrix, also of a pivot R: ``np.searchsorted(R.rows, labels)``.
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
        rows = R[places_from(users, R.shape[0], "users", "ItemSimilarity.recommend")]
        seen = rows if exclude_seen else None
        return best_unseen(lambda x: x @ S, rows, seen, n, S.shape[0], "ItemSimilarity.recommend")

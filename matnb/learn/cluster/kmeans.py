"""K-means: centers, each the mean of the rows that are nearest to it."""

from __future__ import annotations

from typing import Self

import numpy as np

from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import ones
from matnb.lazy.evaluator import evaluator
from matnb.lazy.functions.grouping import scatter_reduce
from matnb.lazy.random import default_rng
from matnb.learn.arguments import real, rows_from, seed_from, weights_from, whole
from matnb.learn.cluster.centers import ClustererByCenters
from matnb.learn.cluster.lloyd import Clustering, lloyd
from matnb.learn.neighbors.distances import largest_length, nearest, squared_distances_to_own


class KMeans(ClustererByCenters):
    """K-means clustering by Lloyd's algorithm.

    Lloyd 1982, "Least squares quantization in PCM"; all iterations run as one loop on the workers. Arguments
    and attributes are scikit-learn's, without ``verbose``, ``copy_x`` and ``algorithm``.

    Parameters
    ----------
    n_clusters
        Number of clusters.
    init
        Initialization: "k-means++" (Arthur and Vassilvitskii 2007), "random" rows, "k-means||" (Bahmani et
        al. 2012), which passes over the rows five times instead of once per cluster, k x p centers, or a
        function ``init(X, n_clusters, random_state=...)`` that returns them; X is a DistArray.
    n_init
        Number of runs with different initializations; the one with the least inertia is kept. "auto": 10 for
        "random" and a function, else 1.
    max_iter
        Maximum number of iterations; if it is reached, a ConvergenceWarning is given.
    tol
        Stop when no label changes, or when the sum of squared movements of the centers is at most this times
        the mean variance of the features, or ten times the mean variance around the first centers if that
        is less: a few rows far away make the former large.
    random_state
        Seed; the same seed gives the same result.

    Attributes
    ----------
    cluster_centers_
        k x p, with the dtype of X.
    labels_
        The cluster of each row, int32 of shape (n,).
    inertia_
        The weighted sum of squared distances of rows to their centers, a float.
    n_iter_, n_features_in_
        Iterations of the best run; p.

    Raises
    ------
    ShapeError
        For an X that is not a matrix, an ``init`` that is not k x p, weights that are not one a row.
    OptionError
        For NaN or infinity in X, more clusters than rows, and unknown options.

    Notes
    -----
    Distances are sums of squared differences, so that a row far away takes nothing from the accuracy of
    others. Sums of rows are taken block by block, so the last bits of centers can depend on how X is split.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> X = np.array([[1.0, 2.0], [1.0, 4.0], [1.0, 0.0], [10.0, 2.0], [10.0, 4.0], [10.0, 0.0]])
    >>> model = mn.learn.KMeans(n_clusters=2, init=X[[0, 3]]).fit(X)
    >>> model.labels_.compute(), model.inertia_
    (array([0, 0, 0, 1, 1, 1], dtype=int32), 16.0)
    >>> model.predict([[0.0, 0.0], [12.0, 3.0]]).compute()
    array([0, 1], dtype=int32)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: object = "k-means++",
        n_init: object = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: object = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike = None, sample_weight: ArrayLike = None) -> Self:
        """Fit centers to rows.

        Parameters
        ----------
        X
            n x p, sparse or dense; a sparse one stays sparse.
        y
            Ignored; present for compatibility with scikit-learn.
        sample_weight
            n weights, by default 1.
        """
        rows = rows_from(X, "KMeans")
        weights = weights_from(sample_weight, rows, "KMeans")
        self._check_clusters(rows)
        tol, most = real(self.tol, "tol", "KMeans"), whole(self.max_iter, "max_iter", "KMeans")
        rng = default_rng(seed_from(self.random_state, "KMeans"))
        own = None if sample_weight is None else weights
        variance = rows.var(axis=0).mean()
        best: Clustering | None = None
        num_starts = self._num_starts(10)
        for _ in range(num_starts):
            start = self._start(rows, weights, rng)
            shift = _least_shift(rows, weights, start, variance, tol)
            found = lloyd(rows, own, start, most, shift, largest_length(rows))
            evaluator().persist([one.expression for one in found])
            if not found.is_sure:
                found = lloyd(rows, own, start, most, shift)
                evaluator().persist([one.expression for one in found])
            if best is None or (bool(found.inertia < best.inertia) and not _are_same(found, best)):
                best = found
        assert best is not None, "it begins once at least"
        self._warn_of_fewer(int(best.num_clusters))
        return self._learn(
            cluster_centers=best.centers,
            labels=best.labels,
            inertia=float(best.inertia),
            n_iter=int(best.num_iterations),
            n_features_in=rows.shape[1],
        )


def _least_shift(
    X: DistArray, weights: DistArray, start: DistArray, variance: DistArray, tol: float
) -> DistArray | float:
    if not tol:
        return 0.0
    squares = squared_distances_to_own(X, start, nearest(X, start))
    around = (weights * squares).sum() / weights.sum() / X.shape[1]
    return tol * np.minimum(variance, 10 * around)


def _are_same(one: Clustering, other: Clustering) -> bool:
    # But for the names of clusters: the least of two inertias may be rounded.
    k = len(one.centers)
    pairs = scatter_reduce(ones(len(one.labels)), one.labels.astype(np.int64) * k + other.labels, k * k)
    return bool((pairs.reshape(k, k) > 0).sum(axis=1).max() <= 1)

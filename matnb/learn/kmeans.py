"""K-means: centers, each the mean of the rows that are nearest to it."""

from __future__ import annotations

from typing import Self

import numpy as np

from matnb.lazy.evaluator import evaluator
from matnb.lazy.functions.grouping import scatter_reduce
from matnb.lazy.random import default_rng
from matnb.learn.arguments import real, rows_from, seed_from, weights_from, whole
from matnb.learn.centers import ClustererByCenters
from matnb.learn.lloyd import Clustering, lloyd


class KMeans(ClustererByCenters):
    """Clusters whose rows are near to their mean, by Lloyd's iteration.

    Lloyd 1982, "Least squares quantization in PCM"; all iterations are one loop on the workers. The meaning
    of arguments and attributes is scikit-learn's; of its arguments ``verbose``, ``copy_x`` and ``algorithm``
    are left out.

    Parameters
    ----------
    n_clusters
        How many.
    init
        Where to begin: "k-means++" (Arthur and Vassilvitskii 2007), "random" rows, "k-means||" (Bahmani et
        al. 2012), which goes through the rows five times instead of once a cluster, or k x p centers.
    n_init
        How often to begin, with other draws; the least inertia wins. "auto": 10 for "random", else 1.
    max_iter
        The most iterations; where they do not suffice a ConvergenceWarning says so.
    tol
        It ends when no label changes, or when the squares by which centers moved add up to no more
        than this times the mean variance of the features.
    random_state
        A seed; what is learned follows from it alone.

    Attributes
    ----------
    cluster_centers_
        k x p, of the dtype of X.
    labels_
        Of each row the cluster, int32 of shape (n,).
    inertia_
        The sum, by weight, of squared distances of rows to their centers: a float.
    n_iter_, n_features_in_
        Iterations of the best run; p.

    Raises
    ------
    ShapeError
        For an X that is not a matrix, an ``init`` that is not k x p, weights that are not one a row.
    OptionError
        For NaN or infinity in X, more clusters than rows, and options that are not there.

    Notes
    -----
    Rows are assigned by a product in which numbers that two centers have almost in common may be rounded
    otherwise where arrays are cut otherwise, and sums of rows are taken block by block: with other cuts
    centers may have other last bits.

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

    def fit(self, X: object, y: object = None, sample_weight: object = None) -> Self:
        """Learn centers from rows.

        Parameters
        ----------
        X
            n x p, sparse or dense; a sparse one stays sparse.
        y
            Nothing; there as in scikit-learn.
        sample_weight
            n weights, 1 when left out.
        """
        rows = rows_from(X, "KMeans")
        weights = weights_from(sample_weight, rows, "KMeans")
        self._check_clusters(rows)
        tol, most = real(self.tol, "tol", "KMeans"), whole(self.max_iter, "max_iter", "KMeans")
        rng = default_rng(seed_from(self.random_state, "KMeans"))
        own = None if sample_weight is None else weights
        least_shift = rows.var(axis=0).mean() * tol if tol else 0.0
        best: Clustering | None = None
        num_starts = self._num_starts(10)
        for _ in range(num_starts):
            found = lloyd(rows, own, self._start(rows, weights, rng), most, least_shift)
            evaluator().persist([one.expression for one in found])
            if best is None or (bool(found.inertia < best.inertia) and not _are_same(found, best)):
                best = found
        assert best is not None, "it begins once at least"
        self._warn_of_fewer(best.labels)
        return self._learn(
            cluster_centers=best.centers,
            labels=best.labels,
            inertia=float(best.inertia),
            n_iter=int(best.num_iterations),
            n_features_in=rows.shape[1],
        )


def _are_same(one: Clustering, other: Clustering) -> bool:
    # But for the names of clusters: the least of two inertias may be rounded.
    k = len(one.centers)
    pairs = scatter_reduce(np.ones(len(one.labels)), one.labels.astype(np.int64) * k + other.labels, k * k)
    return bool((pairs.reshape(k, k) > 0).sum(axis=1).max() <= 1)

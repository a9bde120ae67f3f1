"""K-means by batches of rows, drawn from all or given one after another."""

from __future__ import annotations

from typing import Self

from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.evaluator import evaluator
from matnb.lazy.random import Generator, default_rng
from matnb.learn.arguments import real, rows_from, seed_from, weights_from, whole
from matnb.learn.cluster.batched_centers import RunningCenters, batch_step, begun, best_start, by_batches
from matnb.learn.cluster.centers import ClustererByCenters
from matnb.learn.neighbors.distances import nearest, squared_distances_to_own


class MiniBatchKMeans(ClustererByCenters):
    """K-means clustering from mini-batches of rows.

    Sculley 2010, "Web-scale k-means clustering". Arguments and attributes are scikit-learn's, without
    ``verbose``; random numbers differ from scikit-learn's.

    Parameters
    ----------
    n_clusters, init, random_state
        As in :class:`KMeans`.
    max_iter
        Maximum number of passes over X.
    batch_size
        Rows per batch, drawn with replacement.
    compute_labels
        Whether to compute the labels and the inertia of all rows at the end.
    tol
        Stop when the squared movements of the centers sum to at most this times the mean variance of the
        features.
    max_no_improvement
        Stop after this many batches without a smaller moving average of the inertia; None to disable.
    init_size
        Number of rows to draw initial centers from; by default three batches, or three rows per cluster.
    n_init
        Number of initializations to choose the best from; "auto": 3 for "random" and a function, else 1.
    reassignment_ratio
        Centers with less than this fraction of the weight of the heaviest one are reinitialized.

    Attributes
    ----------
    cluster_centers_
        k x p, with the dtype of X.
    labels_, inertia_
        The cluster of each row, int32 of shape (n,), and the sum of squared distances, a float; after
        ``partial_fit``, those of the last batch.
    n_steps_, n_iter_, n_features_in_
        Numbers of batches and of passes; p.

    Raises
    ------
    ShapeError, OptionError
        As in :class:`KMeans`.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> X = np.repeat([[0.0, 0.0], [9.0, 9.0]], 50, axis=0)
    >>> model = mn.learn.MiniBatchKMeans(n_clusters=2, random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_.compute(), axis=0)
    array([[0., 0.],
           [9., 9.]])
    """

    n_steps_: int
    _seed: int
    _state: RunningCenters

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: object = "k-means++",
        max_iter: int = 100,
        batch_size: int = 1024,
        compute_labels: bool = True,
        random_state: object = None,
        tol: float = 0.0,
        max_no_improvement: int | None = 10,
        init_size: int | None = None,
        n_init: object = "auto",
        reassignment_ratio: float = 0.01,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.compute_labels = compute_labels
        self.random_state = random_state
        self.tol = tol
        self.max_no_improvement = max_no_improvement
        self.init_size = init_size
        self.n_init = n_init
        self.reassignment_ratio = reassignment_ratio

    def fit(self, X: ArrayLike, y: ArrayLike = None, sample_weight: ArrayLike = None) -> Self:
        """Fit centers to batches of the rows; arguments as in :meth:`KMeans.fit`."""
        rows, weights, ratio = self._given(X, sample_weight)
        self._seed = seed_from(self.random_state, "MiniBatchKMeans")
        rng = default_rng(self._seed)
        n, tol = rows.shape[0], real(self.tol, "tol", "MiniBatchKMeans")
        size = min(n, whole(self.batch_size, "batch_size", "MiniBatchKMeans"))
        most = max(1, whole(self.max_iter, "max_iter", "MiniBatchKMeans") * n // size)
        ends = rows.var(axis=0).mean() * tol if tol else 0.0, self.max_no_improvement
        start = self._best_start(rows, weights, size, rng)
        state, gained, count = by_batches(rows, weights, start, size, most, ends, ratio, rng)
        evaluator().persist([one.expression for one in (*state, gained.average, count)])
        found = {"inertia": float(gained.average) * n, "n_iter": -(-int(count) * size // n)}
        return self._told(rows, weights, state, int(count), **found)

    def partial_fit(self, X: ArrayLike, y: ArrayLike = None, sample_weight: ArrayLike = None) -> Self:
        """Learn from one more batch; arguments as in :meth:`KMeans.fit`."""
        is_first = not self.__sklearn_is_fitted__()
        rows, weights, ratio = self._given(X, sample_weight, is_first)
        if is_first:
            self._seed = seed_from(self.random_state, "MiniBatchKMeans")
        number = 0 if is_first else self.n_steps_
        rng = default_rng((self._seed + number) % 2**63)
        before = self._state if not is_first else begun(self._best_start(rows, weights, len(rows), rng))
        state, _ = batch_step(rows, weights, before, ratio, rng)
        evaluator().persist([one.expression for one in state])
        return self._told(rows, weights, state, number + 1)

    def _told(
        self, X: DistArray, weights: DistArray, state: RunningCenters, num_steps: int, **found: object
    ) -> Self:
        if self.compute_labels:
            labels = nearest(X, state.centers)
            inertia = (weights * squared_distances_to_own(X, state.centers, labels)).sum()
            found |= {"labels": labels, "inertia": float(inertia)}
        self._learn(**found, cluster_centers=state.centers, n_steps=num_steps, n_features_in=X.shape[1])
        self._state = state
        return self

    def _given(self, X: object, weights: object, is_new: bool = True) -> tuple[DistArray, DistArray, float]:
        rows = rows_from(X, "MiniBatchKMeans", None if is_new else self.n_features_in_)
        if is_new:
            self._check_clusters(rows)
        own = weights_from(weights, rows, "MiniBatchKMeans")
        return rows, own, real(self.reassignment_ratio, "reassignment_ratio", "MiniBatchKMeans")

    def _best_start(self, X: DistArray, weights: DistArray, size: int, rng: Generator) -> DistArray:
        count = 3 * max(size, self.n_clusters)
        if self.init_size is not None:
            count = max(whole(self.init_size, "init_size", "MiniBatchKMeans"), self.n_clusters)
        return best_start(self._start, X, weights, count, self._num_starts(3), rng)

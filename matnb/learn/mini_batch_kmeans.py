"""K-means by batches of rows, drawn from all or given one after another."""

from __future__ import annotations

from typing import Self

from matnb.lazy.array import DistArray
from matnb.lazy.evaluator import evaluator
from matnb.lazy.random import Generator, default_rng
from matnb.learn.arguments import real, rows_from, seed_from, weights_from, whole
from matnb.learn.batched_centers import RunningCenters, batch_step, begun, best_start, by_batches
from matnb.learn.centers import ClustererByCenters
from matnb.learn.distances import nearest, squared_distances_to_own


class MiniBatchKMeans(ClustererByCenters):
    """Clusters whose rows are near to their mean, found from a few rows at a time.

    Sculley 2010, "Web-scale k-means clustering". The meaning of arguments and attributes is scikit-learn's,
    whose draws are others; ``verbose`` is left out.

    Parameters
    ----------
    n_clusters, init, random_state
        As of :class:`KMeans`.
    max_iter
        The most batches are those of so many passes over X.
    batch_size
        Rows of a batch, drawn with replacement.
    compute_labels
        Whether labels and the inertia of all rows are computed at the end.
    tol
        It ends when the squares by which centers moved add up to no more than this times the mean variance of
        the features; 0 for never.
    max_no_improvement
        It ends after so many batches without a smaller moving average of their inertia; None for never.
    init_size
        Rows to begin with are chosen among so many; three batches, or three rows a cluster, when left out.
    n_init
        From how many starts the best one is taken; "auto": 3 for "random", else 1.
    reassignment_ratio
        Centers of less than this share of the weight of the heaviest one begin anew.

    Attributes
    ----------
    cluster_centers_
        k x p, of the dtype of X.
    labels_, inertia_
        Of each row the cluster, int32 of shape (n,), and the sum of squared distances, a float; of the last
        batch after ``partial_fit``.
    n_steps_, n_iter_, n_features_in_
        Batches, and passes as long as these; p.

    Raises
    ------
    ShapeError, OptionError
        As of :class:`KMeans`.

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

    def fit(self, X: object, y: object = None, sample_weight: object = None) -> Self:
        """Learn centers from batches of the rows; arguments as of :meth:`KMeans.fit`."""
        rows, weights, ratio = self._given(X, sample_weight)
        rng = default_rng(seed_from(self.random_state, "MiniBatchKMeans"))
        n, tol = rows.shape[0], real(self.tol, "tol", "MiniBatchKMeans")
        size = min(n, whole(self.batch_size, "batch_size", "MiniBatchKMeans"))
        most = max(1, whole(self.max_iter, "max_iter", "MiniBatchKMeans") * n // size)
        ends = rows.var(axis=0).mean() * tol if tol else 0.0, self.max_no_improvement
        start = self._best_start(rows, weights, size, rng)
        state, gained, count = by_batches(rows, weights, start, size, most, ends, ratio, rng)
        evaluator().persist([one.expression for one in (*state, gained.average, count)])
        found = {"inertia": float(gained.average) * n, "n_iter": -(-int(count) * size // n)}
        return self._told(rows, weights, state, int(count), **found)

    def partial_fit(self, X: object, y: object = None, sample_weight: object = None) -> Self:
        """Learn from one batch more; arguments as of :meth:`KMeans.fit`."""
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

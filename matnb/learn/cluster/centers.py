"""What clusterings by centers have in common."""

from __future__ import annotations

import numpy as np

from matnb.errors import ConvergenceWarning, OptionError, ShapeError, warn
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import asarray
from matnb.lazy.random import Generator
from matnb.learn.arguments import checked, one_of, rows_from, weights_from, whole
from matnb.learn.cluster.starts import STARTS, starting_centers
from matnb.learn.estimator import Clusterer, Transformer
from matnb.learn.neighbors.distances import nearest, squared_distances, squared_distances_to_own


class ClustererByCenters(Clusterer, Transformer):
    """What clusterings by centers have in common: a row belongs to its nearest one."""

    _features_out = "cluster_centers_"
    n_clusters: int
    init: object
    n_init: object
    cluster_centers_: DistArray
    n_features_in_: int

    def predict(self, X: ArrayLike) -> DistArray:
        """Return the place of the nearest center of each row: n labels, int32.

        Parameters
        ----------
        X
            n x p, sparse or dense.
        """
        return nearest(self._rows(X, "predict"), self.cluster_centers_)

    def transform(self, X: ArrayLike) -> DistArray:
        """Return the distance of each row to each center: n x k.

        Parameters
        ----------
        X
            n x p, sparse or dense.
        """
        return asarray(np.sqrt(squared_distances(self._rows(X, "transform"), self.cluster_centers_)))

    def score(self, X: ArrayLike, y: ArrayLike = None, sample_weight: ArrayLike = None) -> float:
        """Return the sum of squared distances of rows to their nearest centers, negative.

        Parameters
        ----------
        X
            n x p, sparse or dense.
        y
            Ignored; present for compatibility with scikit-learn.
        sample_weight
            n weights, by default 1.
        """
        rows = self._rows(X, "score")
        weights = weights_from(sample_weight, rows, type(self).__name__)
        labels = nearest(rows, self.cluster_centers_)
        return -float((weights * squared_distances_to_own(rows, self.cluster_centers_, labels)).sum())

    def _rows(self, X: object, called: str) -> DistArray:
        self._check_fitted(called)
        rows = rows_from(X, type(self).__name__, self.n_features_in_)
        return rows.astype(self.cluster_centers_.dtype)

    def _check_clusters(self, X: DistArray) -> None:
        name = type(self).__name__
        k = whole(self.n_clusters, "n_clusters", name)
        if k > X.shape[0]:
            raise OptionError(
                f"{name}: n_clusters={k} with {X.shape[0]} rows; give at most as many clusters as rows"
            )

    def _warn_of_fewer(self, there: int) -> None:
        k = self.n_clusters
        if there < k:
            said = (
                f"{type(self).__name__}: {there} clusters of n_clusters={k} have rows; are there equal rows?"
            )
            warn(said, ConvergenceWarning)

    def _num_starts(self, of_random: int) -> int:
        if isinstance(self.n_init, str):
            one_of(self.n_init, "n_init", type(self).__name__, ("auto",))
            is_drawn = self.init == "random" if isinstance(self.init, str) else callable(self.init)
            return of_random if is_drawn else 1
        count = whole(self.n_init, "n_init", type(self).__name__)
        if not isinstance(self.init, str) and not callable(self.init) and count > 1:
            warn(
                f"{type(self).__name__}: init is an array, so one initialization is run, not n_init={count}",
                RuntimeWarning,
            )
            return 1
        return count

    def _start(self, X: DistArray, weights: DistArray, rng: Generator) -> DistArray:
        name, k = type(self).__name__, self.n_clusters
        if isinstance(self.init, str):
            return starting_centers(X, weights, k, one_of(self.init, "init", name, STARTS), rng)
        if callable(self.init):
            state = np.random.RandomState(int(rng.integers(2**31 - 1)))
            given, what = asarray(self.init(X, k, random_state=state)), "init returned an array"
        else:
            given, what = asarray(self.init), "init"
        if given.shape != (k, X.shape[1]):
            raise ShapeError(
                f"{name}: {what} of shape {given.shape}; give {k} centers of {X.shape[1]} features"
            )
        return checked(given.astype(X.dtype), name, "init")

"""The rows that are nearest to others, by looking at all of them."""

from __future__ import annotations

from types import MappingProxyType
from typing import Self

import numpy as np

from matnb.errors import OptionError, suggestion
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import arange, asarray, coo_array, full, ones
from matnb.lazy.evaluator import evaluator
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.indexing import take_along_axis
from matnb.lazy.functions.row_distances import nearest_rows, row_distances
from matnb.lazy.functions.shaping import concatenate
from matnb.learn.arguments import one_of, rows_from, whole
from matnb.learn.estimator import Estimator
from matnb.learn.named_arguments import OWN_NEIGHBORS
from matnb.learn.neighbors.distances import dense

_METRICS = ("minkowski", "euclidean", "l2", "cosine")


class NearestNeighbors(Estimator):
    """Exact, brute-force search for nearest neighbors.

    It goes over tiles of both matrices by products, dense or sparse as the rows are, so that the array of all
    distances is never stored. Each worker has all rows that are searched. Arguments and attributes are
    scikit-learn's, without those for other distances than these.

    Parameters
    ----------
    n_neighbors
        Default number of neighbors.
    algorithm
        "brute", or "auto", which means the same.
    metric
        "euclidean", or "l2" and "minkowski", scikit-learn's default, which mean the same; or "cosine",
        distances of 1 - cos, for which rows of zeros are at a distance of 1 from all others.

    Attributes
    ----------
    n_samples_fit_, n_features_in_
        The shape of the rows that are searched.
    effective_metric_
        "euclidean" or "cosine".

    Raises
    ------
    ShapeError, OptionError
        For rows that are not a matrix or have NaN, and more neighbors than there are rows.

    Notes
    -----
    Distances are roots of sums of squared differences, in float64, so that a row far away takes nothing from
    the accuracy of others, and equal rows have a distance of 0. Among equally near rows the earlier comes
    first.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> search = mn.learn.NearestNeighbors(n_neighbors=1).fit([[0.0, 0.0], [0.0, 0.5], [1.0, 1.0]])
    >>> distances, places = search.kneighbors([[1.0, 2.0]])
    >>> distances.compute(), places.compute()
    (array([[1.]]), array([[2]]))
    """

    n_samples_fit_: int
    n_features_in_: int
    effective_metric_: str
    _fitted_rows: DistArray
    _ways = MappingProxyType(dict.fromkeys(("radius_neighbors", "radius_neighbors_graph"), OWN_NEIGHBORS))

    def __init__(self, *, n_neighbors: int = 5, algorithm: str = "auto", metric: str = "minkowski") -> None:
        self.n_neighbors = n_neighbors
        self.algorithm = algorithm
        self.metric = metric

    def fit(self, X: ArrayLike, y: ArrayLike = None) -> Self:
        """Set the rows to search.

        Parameters
        ----------
        X
            n x p, sparse or dense.
        y
            Ignored; present for compatibility with scikit-learn.
        """
        rows = rows_from(X, "NearestNeighbors").astype(np.float64)
        whole(self.n_neighbors, "n_neighbors", "NearestNeighbors")
        one_of(self.algorithm, "algorithm", "NearestNeighbors", ("auto", "brute"))
        if self.metric not in _METRICS:
            near = suggestion(self.metric, _METRICS, "choose one of")
            raise OptionError(
                f"NearestNeighbors: metric={self.metric!r}; {near}; for others, {OWN_NEIGHBORS}"
            )
        num_features, is_cosine = rows.shape[1], self.metric == "cosine"
        rows = _directions(rows, 0) if is_cosine else rows
        evaluator().persist([rows.expression])
        self._fitted_rows = rows
        return self._learn(
            n_samples_fit=rows.shape[0],
            n_features_in=num_features,
            effective_metric="cosine" if is_cosine else "euclidean",
        )

    def kneighbors(
        self, X: ArrayLike = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> tuple[DistArray, DistArray] | DistArray:
        """Return the distances to the nearest rows, and their indices, both n x k, the nearest first.

        Parameters
        ----------
        X
            n x p; by default the fitted rows, which are then not neighbors of themselves.
        n_neighbors
            Number of neighbors k; by default that of the constructor.
        return_distance
            False to return only the indices.
        """
        distances, places = self._found(X, n_neighbors)
        return (distances, places) if return_distance else places

    def kneighbors_graph(
        self, X: ArrayLike = None, n_neighbors: int | None = None, mode: str = "connectivity"
    ) -> DistArray:
        """Return the sparse graph of nearest neighbors, n x n_samples_fit, from rows to neighbors.

        Parameters
        ----------
        X, n_neighbors
            As of ``kneighbors``.
        mode
            "connectivity": all weights are 1; "distance": they are distances.
        """
        one_of(mode, "mode", "NearestNeighbors.kneighbors_graph", ("connectivity", "distance"))
        distances, places = self._found(X, n_neighbors)
        n, k = places.shape
        weights = distances.reshape(-1) if mode == "distance" else ones(n * k)
        return coo_array((weights, (arange(n * k) // k, places.reshape(-1))), shape=(n, self.n_samples_fit_))

    def _found(self, X: object, n_neighbors: int | None) -> tuple[DistArray, DistArray]:
        self._check_fitted("kneighbors")
        Y, is_own = self._fitted_rows, X is None
        rows = Y if is_own else rows_from(X, "NearestNeighbors", self.n_features_in_).astype(np.float64)
        is_cosine = self.effective_metric_ == "cosine"
        if is_cosine and not is_own:
            rows = _directions(rows, 1)
        k = whole(self.n_neighbors if n_neighbors is None else n_neighbors, "n_neighbors", "NearestNeighbors")
        if k + is_own > len(Y):
            others = " others" if is_own else ""
            raise OptionError(f"NearestNeighbors: n_neighbors={k} of {len(Y) - is_own}{others}; give fewer")
        places = nearest_rows(rows, Y, k + is_own)
        if is_own:
            # Without the row itself; where equal rows came before it, without the first of these.
            own = (places == arange(len(rows))[:, None]).argmax(axis=1)
            columns = arange(k) + (arange(k) >= own[:, None])
            places = take_along_axis(places, columns, axis=1)
        squares = row_distances(rows, Y, places)
        if not is_cosine:
            return asarray(np.sqrt(squares)), places
        # |x - y|^2 = 2 - 2 cos of rows of length 1; a row of zeros has no direction that others share.
        is_zero = rows[:, -2:].sum(axis=1) > 0
        return where(is_zero[:, None], 1.0, squares / 2), places


def _directions(rows: DistArray, column: int) -> DistArray:
    # Rows of length 1. Two more columns keep rows of zeros as far from all others as right angles are: those
    # that are searched differ in the first, those that are asked for in the second.
    largest = abs(rows).max(axis=1)
    is_zero = largest == 0
    units = rows / where(is_zero, 1.0, largest)[:, None]
    units = units / where(is_zero, 1.0, np.sqrt((units * units).sum(axis=1)))[:, None]
    n = len(rows)
    marks = coo_array((is_zero.astype(np.float64), (arange(n), full(n, column))), shape=(n, 2))
    return concatenate([units, marks if rows.sparse else dense(marks)], axis=1)

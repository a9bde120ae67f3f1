"""Lloyd's iteration: rows go to their nearest center, and centers to the mean of their rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matnb.lazy.array import DistArray
from matnb.lazy.creation import arange, asarray, coo_array, full, ones
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.grouping import scatter_reduce
from matnb.lazy.functions.ordering import topk
from matnb.lazy.loop import cond, converging, iterate
from matnb.learn.neighbors.distances import (
    nearest_by_products,
    nearest_exactly,
    products_are_sure,
    rows_at,
    squared_distances_to_own,
)


class Clustering(NamedTuple):
    """Centers k x p, each row's label, int32, and the sum of squared distances.

    Beside these, how many iterations there were, how many clusters have rows, and whether rows are surely
    assigned to the nearest of these centers and of the first.
    """

    centers: DistArray
    labels: DistArray
    inertia: DistArray
    num_iterations: DistArray
    num_clusters: DistArray
    is_sure: DistArray


class _Assignment(NamedTuple):
    centers: DistArray
    labels: DistArray
    is_settled: DistArray


class _Totals(NamedTuple):
    sums: DistArray
    weights: DistArray


def lloyd(
    X: DistArray,
    weights: DistArray | None,
    start: DistArray,
    max_iterations: int,
    tol: DistArray | float,
    length: DistArray | None = None,
) -> Clustering:
    """Return what Lloyd's iteration comes to from a start.

    It ends when no label changes, or centers have moved by no more than ``tol``, a sum of squares. Then each
    row has the label of the center it is nearest to. A center without rows goes to the row that is farthest
    from its own.

    With a ``length`` that no row exceeds, rows are assigned by products, which is faster, and ``is_sure``
    says whether these tell all centers apart; where they do not for the start, nothing is done.
    """
    assigned = nearest_exactly if length is None else nearest_by_products
    own = ones(X.shape[0]) if weights is None else weights
    rows = X if weights is None else X * weights.astype(X.dtype)[:, None]

    def step(state: _Assignment) -> _Assignment:
        labels = assigned(X, state.centers)
        totals = totals_of(rows, own, labels, len(start))
        totals = cond(
            (totals.weights == 0).any(),
            lambda: _without_empty(totals, X, rows, own, state.centers, labels),
            lambda: totals,
        )
        return _Assignment(means_of(totals).astype(X.dtype), labels, (labels == state.labels).all())

    def is_sure(centers: DistArray) -> DistArray:
        return asarray(True) if length is None else products_are_sure(length, centers)

    def ends(old: _Assignment, new: _Assignment) -> DistArray:
        return new.is_settled | (((new.centers - old.centers) ** 2).sum() <= tol)

    begin = _Assignment(start, full(X.shape[0], -1, np.int32), asarray(False))
    limit: DistArray | int = max_iterations if length is None else where(is_sure(start), max_iterations, 0)
    found = iterate(step, begin, until=ends, max_iterations=limit)
    (centers, labels, is_settled), count = converging("KMeans", found, "give a larger max_iter or tol")
    labels = cond(is_settled, lambda: labels, lambda: assigned(X, centers))
    inertia = (own * squared_distances_to_own(X, centers, labels)).sum()
    there = scatter_reduce(ones(len(labels)), labels, len(centers)) > 0
    surely = is_sure(start) & is_sure(centers)
    return Clustering(centers, labels, inertia, count, asarray(there.sum()), surely)


def totals_of(rows: DistArray, weights: DistArray, labels: DistArray, k: int) -> _Totals:
    """Return the sums of the rows, which are weighted already, and of the weights of each label."""
    if rows.sparse:
        n = rows.shape[0]
        belongs = coo_array((ones(n, rows.dtype), (labels, arange(n))), shape=(k, n))
        sums = rows_at(belongs @ rows, arange(k))
    else:
        sums = scatter_reduce(rows, labels, k)
    return _Totals(sums, scatter_reduce(weights, labels, k))


def means_of(totals: _Totals) -> DistArray:
    """Return the mean of each label; that of the heaviest one, where a label has no weight."""
    sums, weights = totals
    means = sums / where(weights > 0, weights, 1.0)[:, None]
    return where((weights > 0)[:, None], means, means[weights.argmax()])


def _without_empty(
    totals: _Totals, X: DistArray, rows: DistArray, own: DistArray, centers: DistArray, labels: DistArray
) -> _Totals:
    # The farthest row goes to the first label that has none, the next one to the next; as scikit-learn.
    k = len(centers)
    distances = squared_distances_to_own(X, centers, labels)
    farthest = topk(distances, k).places
    is_empty = (totals.weights == 0) & (distances.max() > 0)
    places = where(is_empty, np.cumsum(is_empty) - 1, 0)
    moved, moved_weights = rows_at(rows, farthest), own[farthest]
    is_moved = arange(k) < is_empty.sum()
    left = totals_of(
        where(is_moved[:, None], moved, 0), where(is_moved, moved_weights, 0), labels[farthest], k
    )
    return _Totals(
        where(is_empty[:, None], moved[places], totals.sums - left.sums),
        where(is_empty, moved_weights[places], totals.weights - left.weights),
    )

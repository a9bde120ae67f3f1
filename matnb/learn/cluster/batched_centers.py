"""One step of k-means on a batch of rows: centers are means of all rows they were given."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray, zeros
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.indexing import take
from matnb.lazy.functions.ordering import argsort, topk
from matnb.lazy.loop import iterate
from matnb.lazy.random import Generator
from matnb.learn.cluster.lloyd import totals_of
from matnb.learn.neighbors.distances import nearest, nearest_exactly, rows_at, squared_distances_to_own
from matnb.learn.optimize.improvement import Improvement, improved, no_improvement


class RunningCenters(NamedTuple):
    """Centers k x p, the weight that each was given, and the weight of rows since some began anew."""

    centers: DistArray
    weights: DistArray
    since: DistArray


def begun(start: DistArray) -> RunningCenters:
    """Return centers that were given no row."""
    return RunningCenters(start, zeros(start.shape[0]), asarray(0))


Start = Callable[[DistArray, DistArray, Generator], DistArray]


def best_start(
    start: Start, X: DistArray, weights: DistArray, count: int, num_starts: int, rng: Generator
) -> DistArray:
    """Return of starts, each among ``count`` drawn rows, that to which other drawn rows are nearest."""

    def drawn() -> tuple[DistArray, DistArray]:
        if count >= X.shape[0]:
            return X, weights
        places = rng.integers(0, X.shape[0], count)
        return take(X, places, axis=0), weights[places]

    best = start(*drawn(), rng)
    if num_starts == 1:
        return best
    others, own = drawn()
    least = np.inf
    for number in range(num_starts):
        centers = start(*drawn(), rng) if number else best
        inertia = float((own * squared_distances_to_own(others, centers, nearest(others, centers))).sum())
        least, best = (inertia, centers) if inertia < least else (least, best)
    return best


def batch_step(
    X: DistArray, weights: DistArray, state: RunningCenters, ratio: float, rng: Generator
) -> tuple[RunningCenters, DistArray]:
    """Return the centers after a batch, and the inertia of its rows before it.

    Sculley 2010, "Web-scale k-means clustering". Centers of less than ``ratio`` of the weight of the heaviest
    one begin anew at rows of the batch, every ten rows a cluster, as scikit-learn.
    """
    k, n = state.centers.shape[0], X.shape[0]
    labels = nearest_exactly(X, state.centers)
    inertia = (weights * squared_distances_to_own(X, state.centers, labels)).sum()
    totals = totals_of(X * weights.astype(X.dtype)[:, None], weights, labels, k)
    counts = state.weights + totals.weights
    means = (state.centers * state.weights[:, None] + totals.sums) / where(counts > 0, counts, 1.0)[:, None]
    centers = where((totals.weights > 0)[:, None], means, state.centers).astype(X.dtype)
    since = state.since + n
    is_due = (state.weights == 0).any() | (since >= 10 * k)
    since = where(is_due, 0, since)
    if ratio == 0:
        return RunningCenters(centers, counts, since), inertia
    lightest = argsort(argsort(counts)) < n // 2
    is_anew = is_due & (counts < ratio * counts.max()) & lightest
    drawn = rows_at(X, topk(rng.random(n), min(k, n)).places)
    places = asarray(np.clip(is_anew.cumsum() - 1, 0, min(k, n) - 1))
    centers = where(is_anew[:, None], drawn[places], centers)
    counts = where(is_anew, where(is_anew, np.inf, counts).min(), counts)
    return RunningCenters(centers, counts, since), inertia


def by_batches(
    X: DistArray,
    weights: DistArray,
    start: DistArray,
    size: int,
    most: int,
    ends: tuple[float | DistArray, int | None],
    ratio: float,
    rng: Generator,
) -> tuple[RunningCenters, Improvement, DistArray]:
    """Return the centers after batches of rows that are drawn, what was gained, and how many there were.

    ``ends`` are the squares by which centers move, added up, at which it ends, 0 for never, and the number of
    batches without a gain, None for any.
    """
    n, (tol, most_quiet) = X.shape[0], ends
    share = min(1.0, 2.0 * size / (n + 1))

    def step(state: tuple[RunningCenters, Improvement]) -> tuple[RunningCenters, Improvement]:
        before, gained = state
        places = rng.integers(0, n, size)
        after, inertia = batch_step(take(X, places, axis=0), weights[places], before, ratio, rng)
        shift = ((after.centers - before.centers) ** 2).sum()
        is_still = asarray((shift <= tol) & (tol > 0))
        return after, improved(gained, inertia / size, share, is_still, most_quiet)

    (centers, gained), count = iterate(
        step, (begun(start), no_improvement()), until=lambda old, new: new[1].is_over, max_iterations=most
    )
    return centers, gained, count

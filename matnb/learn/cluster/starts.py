"""Where k-means begins: rows drawn from those that are given, all at once or each far from those before."""

from __future__ import annotations

import math

import numpy as np

from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.grouping import scatter_reduce
from matnb.lazy.functions.ordering import searchsorted, topk
from matnb.lazy.functions.shaping import concatenate
from matnb.lazy.loop import iterate
from matnb.lazy.random import Generator
from matnb.learn.neighbors.distances import nearest, rows_at, squared_distances

STARTS = ("k-means++", "random", "k-means||")
_ROUNDS, _OVERSAMPLING = 5, 2  # of k-means||: those of the paper's figures 5.2 and 5.3


def starting_centers(X: DistArray, weights: DistArray, k: int, init: str, rng: Generator) -> DistArray:
    """Return k rows to begin with, k x p, dense.

    Parameters
    ----------
    X
        n x p.
    weights
        n weights.
    init
        "random": rows in proportion to their weights, without replacement. "k-means++": Arthur and
        Vassilvitskii 2007, of several candidates the best, as scikit-learn. "k-means||": Bahmani, Moseley,
        Vattani, Kumar and Vassilvitskii 2012, "Scalable K-Means++", which goes through the rows a few times
        instead of k times.
    """
    if init == "random":
        # The k first of exponential clocks (Efraimidis and Spirakis 2006).
        clocks = rng.standard_exponential(X.shape[0]) / where(weights > 0, weights, 1.0)
        return rows_at(X, topk(where(weights > 0, clocks, np.inf), k, largest=False).places)
    if init == "k-means||":
        X, weights = _oversampled(X, weights, _OVERSAMPLING * k, rng)
    return _spread(X, weights, k, rng)


def _drawn(shares: DistArray, count: int, rng: Generator) -> DistArray:
    # So many places, each drawn in proportion to its share; the last place where there are no shares.
    sums = shares.cumsum()
    places = searchsorted(sums, rng.random(count) * sums[-1], side="right")
    return asarray(np.minimum(places, shares.shape[0] - 1))


def _spread(X: DistArray, weights: DistArray, k: int, rng: Generator) -> DistArray:
    # k-means++: each drawn in proportion to its squared distance to the nearest one before.
    num_trials = 2 + int(math.log(k))
    first = _drawn(weights, 1, rng)
    if k == 1:
        return rows_at(X, first)

    def step(state: tuple[DistArray, DistArray]) -> tuple[DistArray, DistArray]:
        closest, _ = state
        candidates = _drawn(weights * closest, num_trials, rng)
        to_candidates = squared_distances(X, rows_at(X, candidates))
        found = asarray(np.minimum(closest[:, None], to_candidates))
        best = (weights[:, None] * found).sum(axis=0).argmin()
        return found[:, best], candidates[best]

    start = (squared_distances(X, rows_at(X, first))[:, 0], first[0])
    _, _, others = iterate(step, start, max_iterations=k - 1, collect=lambda state: state[1])
    return rows_at(X, concatenate([first, others]))


def _oversampled(X: DistArray, weights: DistArray, count: int, rng: Generator) -> tuple[DistArray, DistArray]:
    # k-means||: in each round so many at once; those drawn, and the weight of the rows nearest to each.

    def draw(closest: DistArray) -> tuple[DistArray, DistArray]:
        places = _drawn(weights * closest, count, rng)
        to_drawn = squared_distances(X, rows_at(X, places)).min(axis=1)
        return asarray(np.minimum(closest, to_drawn)), places

    first = _drawn(weights, 1, rng)
    start = draw(squared_distances(X, rows_at(X, first))[:, 0])
    _, _, drawn = iterate(
        lambda state: draw(state[0]), start, max_iterations=_ROUNDS - 1, collect=lambda state: state[1]
    )
    candidates = rows_at(X, concatenate([first, start[1], drawn.reshape(-1)]))
    labels = nearest(X, candidates)
    return candidates, scatter_reduce(weights, labels, candidates.shape[0])

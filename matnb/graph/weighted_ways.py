"""Brandes' algorithm over edges with weights, from one vertex at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from matnb.graph.sssp import distances_along, tight_edges
from matnb.lazy.array import DistArray
from matnb.lazy.creation import zeros
from matnb.lazy.functions.elementwise import where
from matnb.lazy.loop import iterate


class WeightedWays(NamedTuple):
    """The shortest paths from one vertex, by the sums of weights.

    Attributes
    ----------
    tight
        Sparse, n x n: 1 at the edges that they go over.
    num_ways
        float64 of shape (n,): how many lead to each vertex.
    dependency
        float64 of shape (n,): which share of those to all ends passes through each vertex; 0 for the source.
    """

    tight: DistArray
    num_ways: DistArray
    dependency: DistArray


def weighted_ways(matrix: DistArray, at_source: DistArray, far: DistArray) -> WeightedWays:
    """Return the shortest paths from the vertex where ``at_source``, bool of shape (n,), is true.

    Both the numbers of paths and what depends on each vertex follow from those of neighbors along the edges
    that are on a shortest path: as many rounds as the longest of these has edges.

    Parameters
    ----------
    matrix
        Sparse n x n: weights above 0.
    at_source
        Nowhere true: there are no ways.
    far
        The length of a path that is not there.
    """
    n = matrix.shape[0]
    tight = tight_edges(matrix, distances_along(matrix, at_source, far))
    first = at_source.astype(np.float64)
    num_ways = _settled(lambda ways: first + tight.T @ ways, first)
    counts = np.maximum(num_ways, 1.0)  # of what is not reached nothing is counted
    depends = _settled(lambda one: num_ways * (tight @ ((1 + one) / counts)), zeros(n))
    return WeightedWays(tight, num_ways, where(at_source, 0.0, depends))


def _settled(step: Callable[[DistArray], DistArray], start: DistArray) -> DistArray:
    found, _ = iterate(
        step, start, until=lambda old, new: (old == new).all(), max_iterations=start.shape[0] + 1
    )
    return found

"""Brandes' algorithm over edges with weights, from one vertex at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, cast

import numpy as np

from matnb.errors import OptionError
from matnb.graph.brandes import counted
from matnb.graph.sssp import distances_along, tight_edges
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray, zeros
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.mapping import replicated
from matnb.lazy.loop import cond, iterate

_MOST_LEVELS = 64  # of weights that are lost beside larger ones: doubles have 2100 binary places


class WeightedWays(NamedTuple):
    """The shortest paths from one vertex, by the sums of weights.

    Attributes
    ----------
    tight
        Sparse, n x n: 1 at the edges that they go over, none of them in a circle.
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
    tight = _ordered(matrix, at_source, far)
    first = at_source.astype(np.float64)
    num_ways = _settled(lambda ways: first + tight.T @ ways, first)
    num_ways = num_ways * counted(num_ways, 2.0)  # as where all vertices have edges to all after them
    counts = np.maximum(num_ways, 1.0)  # of what is not reached nothing is counted
    depends = _settled(lambda one: num_ways * (tight @ ((1 + one) / counts)), zeros(n))
    return WeightedWays(tight, num_ways, where(at_source, 0.0, depends))


def _ordered(matrix: DistArray, at_source: DistArray, far: DistArray) -> DistArray:
    # The edges of the shortest paths, as ones. Of (v, w) with d[v] + A[v, w] = d[w] the weight may be so
    # small that it is lost, and d[v] = d[w]: such edges go round in circles. They are on a shortest path if
    # they are by their own weights, from the vertices that other edges lead to; where weights are lost there,
    # too, again: each time they are smaller by a factor of 2**53 at least.
    distance = distances_along(matrix, at_source, far)
    rising = tight_edges(matrix, distance)
    level = (rising * matrix) * (distance[:, None] == distance)

    def refine(state: tuple[DistArray, DistArray]) -> tuple[DistArray, DistArray]:
        ordered, level = state
        begins = at_source | (ordered.sum(axis=0) > 0)
        distance = distances_along(level, begins, far)
        tight = tight_edges(level, distance)
        rises = tight * (distance[:, None] < distance)
        lost = (tight * level) * (distance[:, None] == distance)
        return (ordered + rises).eliminate_zeros(), lost.eliminate_zeros()

    def some(weights: DistArray) -> DistArray:
        return weights.max() > 0 if weights.shape[0] else asarray(False)

    start = (rising * (distance[:, None] < distance)).eliminate_zeros(), level.eliminate_zeros()
    (ordered, _), _ = cond(
        some(start[1]),
        lambda: iterate(refine, start, until=lambda old, new: ~some(new[1]), max_iterations=_MOST_LEVELS),
        lambda: (start, asarray(0)),
    )
    return ordered


def _settled(step: Callable[[DistArray], DistArray], start: DistArray) -> DistArray:
    # A path has as many vertices at most, and one more round sees that it is settled.
    most = start.shape[0] + 2
    found, rounds = iterate(step, start, until=lambda old, new: (old == new).all(), max_iterations=most)
    return found * cast(DistArray, replicated(partial(_check_settled, most=most), rounds, like=1.0))


def _check_settled(rounds: np.integer, most: int) -> float:
    if rounds >= most:
        raise OptionError(
            f"betweenness: numbers of shortest paths did not settle in {most} rounds, more than a path has "
            "edges: weights are too far apart; give weights between 1e-150 and 1e150"
        )
    return 1.0

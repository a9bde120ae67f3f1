"""Brandes' algorithm: numbers of shortest paths, and what of them depends on each vertex and edge."""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np

from matnb.errors import OptionError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray, zeros
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.linear import matmul
from matnb.lazy.functions.mapping import replicated
from matnb.lazy.loop import iterate, iteration

Matrices = tuple[DistArray, DistArray, DistArray]


class Ways(NamedTuple):
    """The shortest paths from a batch of vertices, by numbers of edges.

    Attributes
    ----------
    num_ways
        float64, n x batch: how many lead to each vertex.
    depth
        int32, n x batch: of how many edges; -1 where there is none.
    rounds
        int64: one more than the largest depth, where there is a way at all.
    """

    num_ways: DistArray
    depth: DistArray
    rounds: DistArray


def ways_outward(edges: DistArray, at_source: DistArray) -> Ways:
    """Return the numbers of shortest paths from where ``at_source``, bool of n x batch, is true."""

    def outward(state: Matrices) -> Matrices:
        newest, num_ways, depth = state
        # s'[w] = sum of s[v] over the edges (v, w), where w was not reached before
        newest = matmul(edges.T, newest, mask=depth < 0)
        return newest, num_ways + newest, where(newest > 0, (iteration() + 1).astype(np.int32), depth)

    first = at_source.astype(np.float64)
    start = first, first, where(at_source, np.int32(0), np.int32(-1))
    (_, num_ways, depth), rounds = iterate(
        outward, start, until=lambda old, new: ~(new[0] > 0).any(), max_iterations=edges.shape[0]
    )
    # Layers of three vertices, each with edges to the next three, have the most.
    return Ways(num_ways, depth, rounds * counted(num_ways, 3 ** (1 / 3)))


def counted(num_ways: DistArray, per_vertex: float) -> DistArray:
    """Return 1, which cannot be had without a look at numbers of shortest paths.

    Parameters
    ----------
    num_ways
        float64 of shape (n,) or n x batch.
    per_vertex
        By which factor these are at most larger for each vertex of the graph.

    Raises
    ------
    OptionError
        When it is computed, for more paths than a float64 holds.
    """
    if num_ways.shape[0] * np.log2(per_vertex) <= np.finfo(np.float64).maxexp - 1:
        return asarray(1)
    return cast(DistArray, replicated(_check_count, num_ways.max(), like=1))


def _check_count(largest: np.floating) -> int:
    if not np.isfinite(largest):
        raise OptionError(
            "betweenness: two vertices have more shortest paths than a float64 can count (1.8e308): give a "
            "part of the graph, or weights that differ"
        )
    return 1


def dependencies_inward(edges: DistArray, ways: Ways) -> DistArray:
    """Return which share of the paths to all ends passes through each vertex: n x batch, 0 for sources."""
    num_ways, depth, rounds = ways

    def inward(dependency: DistArray) -> DistArray:
        # delta[v] = s[v] times the sum of (1 + delta[w]) / s[w] over the edges (v, w) to the next depth
        next_depth = (rounds - 1 - iteration()).astype(np.int32)
        shares = where(depth == next_depth, (1 + dependency) / num_ways, 0.0)
        before = depth == next_depth - 1
        return where(before, num_ways * matmul(edges, shares, mask=before), dependency)

    # The last round outward found nothing, and what depends on the sources themselves is not counted.
    dependency, _ = iterate(inward, zeros(depth.shape), max_iterations=np.maximum(rounds - 2, 0))
    return dependency


def edges_of_ways(edges: DistArray, ways: Ways, dependency: DistArray) -> DistArray:
    """Return which share of the paths to all ends passes through each edge: of the batch the sum, sparse."""
    num_ways, depth, rounds = ways
    shares = where(depth >= 0, (1 + dependency) / num_ways, 0.0)

    def step(total: DistArray) -> DistArray:
        # Over the edge (v, w) to the next depth: s[v] (1 + delta[w]) / s[w]
        here = iteration().astype(np.int32)
        begins, ends = where(depth == here, num_ways, 0.0), where(depth == here + 1, shares, 0.0)
        return total + edges * (begins @ ends.T)

    total, _ = iterate(step, edges * 0.0, max_iterations=rounds)
    return total

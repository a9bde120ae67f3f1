"""Betweenness centrality: Brandes' algorithm for many sources at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from matnb.errors import OptionError
from matnb.graph.arguments import checked, graph_from, in_batches, vertices_from
from matnb.graph.brandes import dependencies_inward, ways_outward
from matnb.graph.vertex_labels import named_by_vertices
from matnb.graph.weighted_ways import weighted_ways
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import arange, asarray, ones, zeros
from matnb.lazy.functions.grouping import scatter_reduce
from matnb.lazy.loop import iterate


@named_by_vertices
def betweenness(
    A: ArrayLike,
    sources: int | str | Sequence[int | str] | npt.NDArray[Any] | None = None,
    normalized: bool = True,
    directed: bool = True,
    weighted: bool = False,
    batch: int = 32,
    seed: int = 0,
) -> DistArray:
    """Return the betweenness centrality of each vertex: the share of shortest paths that pass through it.

    Brandes 2001, "A Faster Algorithm for Betweenness Centrality": the share of shortest paths from s to t
    that pass through the vertex, summed over all pairs of other vertices s and t.

    Parameters
    ----------
    A
        Sparse n x n matrix; a stored ``A[i, j]`` is an edge from i to j.
    sources
        Vertices where paths start, by their labels, or by the numbers of rows where the graph has no labels;
        by default all. A number k draws k vertices with ``seed``, and the result is an estimate: sums over
        the sources other than the vertex itself are scaled up to all n - 1.
    normalized
        Divide by the number of pairs of other vertices, as NetworkX.
    directed
        False if A stores both directions of each edge, so that every path is found twice: unnormalized
        results are halved.
    weighted
        Measure paths by their sums of weights, which must be above 0, instead of their numbers of edges.
        Sources are then processed one at a time.
    batch
        Number of sources processed at a time, which takes a few dense n x ``batch`` matrices of memory.
    seed
        Seed for drawing sources.

    Returns
    -------
    DistArray
        float64 of shape (n,).

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix.
    IndexingError
        For a source that is not a vertex.
    OptionError
        For a batch below 1, or more sources to draw than there are vertices; when computed, for a weight that
        is not above 0.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> path = sp.csr_array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> mn.graph.betweenness(path, directed=False).compute()
    array([0., 1., 0.])
    """
    matrix = graph_from(A, "betweenness")
    n = matrix.shape[0]
    chosen = chosen_sources(sources, A, n, seed, "betweenness")
    batches = in_batches(chosen, batch, "betweenness")
    vertices = arange(n)
    edges = matrix.pattern(np.float64)

    def add_batch(total: DistArray, begins: DistArray) -> DistArray:
        ways = ways_outward(edges, vertices[:, None] == begins)
        total += dependencies_inward(edges, ways).sum(axis=1)
        return total

    def add_source(total: DistArray, source: DistArray) -> DistArray:
        total += weighted_ways(matrix, vertices == source, far).dependency
        return total

    if weighted:
        far = checked(np.inf, matrix, "betweenness", "above 0")
        total, _ = iterate(add_source, zeros(n), over=asarray(chosen))
    else:
        total, _ = iterate(add_batch, zeros(n), over=asarray(batches))
    pairs = max(1, (n - 1) * (n - 2)) if normalized else 1 if directed else 2
    if isinstance(sources, int | np.integer):
        # No way from a vertex counts for itself, so for a drawn one there is a source less than for others.
        others = len(chosen) - scatter_reduce(ones(len(chosen)), chosen, n)
        total *= (n - 1) / np.maximum(others, 1)
    total /= pairs
    return total


def chosen_sources(
    sources: object, A: object, n: int, seed: int, algorithm: str
) -> npt.NDArray[np.int64] | DistArray:
    """Return the vertices that sources stand for: all, those listed, or some that are drawn.

    Raises
    ------
    DTypeError, IndexingError
        For one that is not a vertex.
    OptionError
        For more to draw than there are, or none.
    """
    if sources is None:
        return arange(n)
    if isinstance(sources, int | np.integer):
        if not 0 < sources <= n:
            raise OptionError(f"{algorithm} from {sources} vertices of a graph of {n}: give 1 to {n}")
        return np.random.default_rng(seed).choice(n, int(sources), replace=False)
    return vertices_from(sources, A, n, algorithm)

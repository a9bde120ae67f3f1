"""Shortest paths from one vertex over edges with weights."""

from __future__ import annotations

from functools import partial
from typing import Literal, NamedTuple, overload

import numpy as np

from matnb.graph.arguments import checked, graph_from, vertex_from, vertices_of
from matnb.graph.other_names import of_vertices
from matnb.graph.searches import parents_along
from matnb.graph.vertex_labels import named_by_vertices
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.fields import has_fields
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.linear import matmul
from matnb.lazy.loop import iterate
from matnb.tables.results import shows


@shows("vertices", distances="distances")
@partial(has_fields, ways=of_vertices("distances"))
class ShortestPaths(NamedTuple):
    """Result of :func:`sssp` with ``predecessors=True``."""

    distances: DistArray
    predecessors: DistArray


@overload
def sssp(A: ArrayLike, source: int | str, predecessors: Literal[False] = ...) -> DistArray: ...
@overload
def sssp(A: ArrayLike, source: int | str, predecessors: Literal[True]) -> ShortestPaths: ...
@named_by_vertices
def sssp(A: ArrayLike, source: int | str, predecessors: bool = False) -> DistArray | ShortestPaths:
    """Return the shortest-path length from a source to every vertex.

    Bellman-Ford over the (min, plus) semiring; each round relaxes only edges of vertices whose distance the
    previous round shortened.

    Parameters
    ----------
    A
        Sparse n x n matrix; a stored ``A[i, j]`` is the weight of the edge from i to j, 0 or more.
    source
        The start vertex, by its label, or by the number of its row where the graph has no labels.
    predecessors
        Also return each vertex's predecessor on such a path.

    Returns
    -------
    DistArray
        float64 of shape (n,): the least sum of weights on a path from the source; inf if there is no path.
        With predecessors, a named tuple of ``distances`` and ``predecessors``, int32 of shape (n,), or int64
        from 2**31 vertices on: the row of the previous vertex on a shortest path with the fewest edges; at
        the source, its own row; -1 if there is no path.

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix.
    IndexingError
        For a source that is not a vertex.
    OptionError
        When distances are computed, for a weight that is negative or NaN.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> A = sp.csr_array([[0, 7, 2], [0, 0, 0], [0, 3, 0]])
    >>> mn.graph.sssp(A, 0).compute()
    array([0., 5., 2.])
    """
    matrix = graph_from(A, "sssp")
    row = vertex_from(source, A, matrix.shape[0], "sssp")
    distances = distances_along(matrix, vertices_of(matrix.shape[0]) == row, checked(np.inf, matrix, "sssp"))
    if not predecessors:
        return distances
    return ShortestPaths(distances, parents_along(tight_edges(matrix, distances), row))


def distances_along(matrix: DistArray, at_source: DistArray, far: DistArray) -> DistArray:
    """Return the length of the shortest path from a vertex to each other one, as :func:`sssp` has it.

    Parameters
    ----------
    matrix
        Sparse n x n; the weights of edges, none negative.
    at_source
        bool of shape (n,).
    far
        The length of a path that is not there.
    """

    def step(state: tuple[DistArray, DistArray]) -> tuple[DistArray, DistArray]:
        distance, nearer = state
        # d'[j] = min(d[j], min of d[i] + A[i, j] over the edges (i, j) from vertices that came nearer)
        reached = matmul(where(nearer, distance, far), matrix, semiring="min_plus")
        nearer = reached < distance
        return where(nearer, reached, distance), nearer

    (distance, _), _ = iterate(
        step,
        (where(at_source, 0.0, far), at_source),
        until=lambda old, new: ~new[1].any(),
        max_iterations=matrix.shape[0],
    )
    return distance


def tight_edges(matrix: DistArray, distances: DistArray) -> DistArray:
    """Return the edges that are the last one of a shortest path, as ones: sparse, n x n, float64."""
    reached = distances < np.inf
    lengths = where(reached, distances, np.nan)  # of what is not reached equal to none
    tight = matrix.pattern(np.float64) * (lengths[:, None] + matrix == lengths)
    return tight.eliminate_zeros()

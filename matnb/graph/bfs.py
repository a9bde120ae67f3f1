"""Breadth-first search: levels and parents."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matnb.graph.arguments import graph_from, vertex_from, vertices_of
from matnb.lazy.array import DistArray
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.linear import matmul
from matnb.lazy.loop import iterate, iteration

Vectors = tuple[DistArray, DistArray]


class BreadthFirst(NamedTuple):
    """What :func:`bfs` gives."""

    levels: DistArray
    parents: DistArray


def bfs(A: object, source: int) -> BreadthFirst:
    """Return how many edges lead from a vertex to each other one, and the last vertex on such a way.

    Each round takes the vertices found last to their neighbors, over the semirings of or and first, min and
    first, with the vertices not found yet as mask (Kepner and Gilbert 2011, "Graph Algorithms in the Language
    of Linear Algebra", chapter 3; Yang, Buluc and Owens 2018 on pushing and pulling).

    Parameters
    ----------
    A
        Sparse n x n matrix; a stored ``A[i, j]`` is an edge from i to j, whatever its value.
    source
        The vertex to begin at.

    Returns
    -------
    BreadthFirst
        ``levels``, int32 of shape (n,): the number of edges of a shortest way from the source, -1 where
        there is none. ``parents``, int32 of shape (n,), int64 from 2**31 vertices on: the vertex before on
        such a way, of several the one of the smallest number; the source itself at the source; -1 where there
        is none. Each is a search of its own, made when it is asked for.

    Raises
    ------
    DTypeError, ShapeError
        For what is no sparse square matrix.
    IndexingError
        For a source that is no vertex.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> A = sp.csr_array([[0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]])
    >>> levels, parents = mn.graph.bfs(A, 0)
    >>> levels.compute(), parents.compute()
    (array([0, 1, 1, 2], dtype=int32), array([0, 0, 0, 1], dtype=int32))
    """
    matrix = graph_from(A, "bfs")
    n = matrix.shape[0]
    source = vertex_from(source, n, "bfs")
    vertices = vertices_of(n)
    none = int(np.iinfo(vertices.dtype).max)  # a vertex not in the frontier: what min has no part in
    at_source = vertices == source

    def next_level(state: Vectors) -> Vectors:
        frontier, levels = state
        # q'[j] = or of q[i] over the edges (i, j), where j has no level yet
        frontier = matmul(frontier, matrix, semiring="lor_first", mask=levels < 0)
        return frontier, where(frontier, (iteration() + 1).astype(np.int32), levels)

    start = at_source, where(at_source, np.int32(0), np.int32(-1))
    (_, levels), _ = iterate(next_level, start, until=lambda old, new: ~new[0].any(), max_iterations=n)

    def next_parents(state: Vectors) -> Vectors:
        frontier, parents = state
        # p[j] = min of i over the edges (i, j) from the frontier, where j has no parent yet
        found = matmul(frontier, matrix, semiring="min_first", mask=parents < 0)
        is_new = found < none
        return where(is_new, vertices, none), where(is_new, found, parents)

    start = where(at_source, vertices, none), where(at_source, vertices, -1)
    (_, parents), _ = iterate(
        next_parents, start, until=lambda old, new: (new[0] == none).all(), max_iterations=n
    )
    return BreadthFirst(levels, parents)

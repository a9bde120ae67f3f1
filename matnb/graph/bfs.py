"""Breadth-first search: levels and parents."""

from __future__ import annotations

from collections.abc import Sequence

from matnb.graph.arguments import graph_from
from matnb.graph.searches import BreadthFirst, levels_of, parents_of, searched


def bfs(A: object, source: int | Sequence[int]) -> BreadthFirst:
    """Return the distance in edges from a vertex to every other one, and its predecessor on such a path.

    Each round takes the vertices found last to their neighbors, over the semirings of or and first, min and
    first, with the vertices not found yet as mask (Kepner and Gilbert 2011, "Graph Algorithms in the Language
    of Linear Algebra", chapter 3; Yang, Buluc and Owens 2018 on pushing and pulling).

    Parameters
    ----------
    A
        Sparse n x n matrix; a stored ``A[i, j]`` is an edge from i to j, whatever its value.
    source
        The vertex to begin at; or k of them, for as many searches, all of which are taken a level at once.

    Returns
    -------
    BreadthFirst
        ``levels``, int32 of shape (n,): the number of edges of a shortest path from the source, -1 where
        there is none. ``parents``, int32 of shape (n,), int64 from 2**31 vertices on: the vertex before on
        such a path, of several the one of the smallest number; the source itself at the source; -1 where
        there is none. Each is a search of its own, recorded when it is first asked for. From k sources both
        have shape (k, n).

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix.
    IndexingError
        For a source that is not a vertex.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> A = sp.csr_array([[0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]])
    >>> levels, parents = mn.graph.bfs(A, 0)
    >>> levels.compute(), parents.compute()
    (array([0, 1, 1, 2], dtype=int32), array([0, 0, 0, 1], dtype=int32))
    """
    matrix = graph_from(A, "bfs")
    at_source, numbers, along = searched(matrix, source)
    return BreadthFirst(
        lambda: levels_of(at_source, along).T, lambda: parents_of(at_source, numbers, along).T
    )

"""Breadth-first search: levels and parents."""

from __future__ import annotations

from collections.abc import Sequence

from matnb.graph.arguments import graph_from, is_one_vertex, vertices_from
from matnb.graph.searches import BreadthFirst, levels_of, parents_of, searched
from matnb.graph.vertex_labels import labels_of_graph, note, picked_labels
from matnb.lazy.array_like import ArrayLike


def bfs(A: ArrayLike, source: int | str | Sequence[int | str]) -> BreadthFirst:
    """Breadth-first search: return each vertex's distance from a source, in edges, and its predecessor.

    Each round multiplies the frontier by A, over the (or, first) or (min, first) semiring, with the vertices
    not visited yet as a mask (Kepner and Gilbert 2011, "Graph Algorithms in the Language of Linear Algebra",
    chapter 3; Yang, Buluc and Owens 2018 on push and pull).

    Parameters
    ----------
    A
        Sparse n x n matrix; a stored ``A[i, j]`` is an edge from i to j, whatever its value.
    source
        The start vertex, by its label, or by the number of its row where the graph has no labels; or k of
        them, for k searches that advance together, one level at a time.

    Returns
    -------
    BreadthFirst
        ``levels``, int32 of shape (n,): the number of edges on a shortest path from the source, -1 if there
        is no path. ``parents``, int32 of shape (n,), or int64 from 2**31 vertices on: the row of the previous
        vertex on such a path, the smallest if there are several; at the source, its own row; -1 if there is
        no path. Each is a search of its own, recorded when it is first used. For k sources both have shape
        (k, n).

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
    rows = vertices_from(source, A, matrix.shape[0], "bfs")
    is_one = is_one_vertex(source, A)
    at_source, numbers, along = searched(matrix, int(rows[0]) if is_one else rows)
    vertices = labels_of_graph(A)
    labels = [vertices] if is_one else [picked_labels(vertices, rows), vertices]
    return BreadthFirst(
        lambda: note(levels_of(at_source, along).T, labels),
        lambda: note(parents_of(at_source, numbers, along).T, labels),
    )

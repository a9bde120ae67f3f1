"""Clustering coefficients: how many ways over two edges are closed to triangles."""

from __future__ import annotations

import numpy as np

from matnb.graph.arguments import both_ways, graph_from
from matnb.graph.triangles import closed_ways
from matnb.graph.vertex_labels import named_by_vertices
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.functions.diagonals import tril, triu
from matnb.lazy.functions.elementwise import where


@named_by_vertices
def clustering(A: ArrayLike, directed: bool = False, symmetric: bool = False) -> DistArray:
    """Return the clustering coefficient of each vertex: the share of pairs of its neighbors that are linked.

    Watts and Strogatz 1998, "Collective dynamics of 'small-world' networks".

    Parameters
    ----------
    A
        Sparse n x n matrix; a stored ``A[i, j]`` is an edge from i to j, whatever its value. Self-loops do
        not count.
    directed
        Count the two directions of a pair of neighbors separately: the local clustering coefficient of LDBC
        Graphalytics, where neighbors are linked by an edge in either direction. (NetworkX uses Fagiolo's
        definition for directed graphs, which differs.)
    symmetric
        True if every edge is known to be stored in both directions, which saves making A symmetric.

    Returns
    -------
    DistArray
        float64 of shape (n,), from 0 to 1; 0 for fewer than two neighbors.

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> A = sp.csr_array([[0, 1, 1, 1], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    >>> mn.graph.clustering(A).compute().round(3)
    array([0.333, 1.   , 1.   , 0.   ])
    """
    matrix = graph_from(A, "clustering")
    U = both_ways(matrix, symmetric)
    if directed and not symmetric:
        edges = matrix.pattern(np.float64)
        closed = ((U @ (tril(edges, -1) + triu(edges, 1))) * U).sum(axis=1)
    else:
        closed = closed_ways(U)
    share: DistArray = closed / np.maximum(_open_ways(U), 1)
    return share


def average_clustering(A: ArrayLike, symmetric: bool = False) -> DistArray:
    """Return the mean of :func:`clustering` over all vertices, a float64 scalar.

    Parameters
    ----------
    A, symmetric
        As in :func:`clustering`.

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> float(mn.graph.average_clustering(sp.csr_array([[0, 1, 1], [0, 0, 1], [0, 0, 0]])))
    1.0
    """
    return clustering(graph_from(A, "average_clustering"), symmetric=symmetric).mean()


def transitivity(A: ArrayLike, symmetric: bool = False) -> DistArray:
    """Return the transitivity: the share of paths of two edges that are closed by a third; a float64 scalar.

    Three times the triangles over the pairs of edges that share a vertex, whatever their directions (Newman
    2003, "The Structure and Function of Complex Networks", section III B); 0 if there are none.

    Parameters
    ----------
    A, symmetric
        As in :func:`clustering`.

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> A = sp.csr_array([[0, 1, 1, 1], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    >>> float(mn.graph.transitivity(A))
    0.6
    """
    U = both_ways(graph_from(A, "transitivity"), symmetric)
    ways = _open_ways(U).sum()
    return where(ways > 0, closed_ways(U).sum() / np.maximum(ways, 1), 0.0)


def _open_ways(U: DistArray) -> DistArray:
    neighbors = U.sum(axis=1)
    ways: DistArray = neighbors * (neighbors - 1)
    return ways

"""Degrees of vertices, and the Laplacian of a graph."""

from __future__ import annotations

import numpy as np

from matnb.errors import OptionError, suggestion
from matnb.graph.arguments import graph_from, loops_again
from matnb.graph.vertex_labels import named_by_vertices
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.functions.diagonals import diag, tril, triu
from matnb.lazy.functions.elementwise import where

DIRECTIONS = "out", "in", "both"


@named_by_vertices
def degree(
    A: ArrayLike, direction: str = "out", weighted: bool = False, directed: bool | None = None
) -> DistArray:
    """Return the number of edges of each vertex, or the sum of their weights, as NetworkX has them.

    Parameters
    ----------
    A
        Sparse n x n matrix; a stored ``A[i, j]`` is an edge from i to j.
    direction
        Of a directed graph, "out" for edges that leave a vertex, "in" for those that enter it, "both" for
        all, as NetworkX's ``DiGraph.degree``: a self-loop counts twice. Of an undirected graph "out" and
        "in" are the same, its degrees, and "both" is twice as many.
    weighted
        Sum the weights instead of counting the edges.
    directed
        False for an undirected graph, of which A stores both directions of each edge: a self-loop counts
        twice, as it has both ends at its vertex. By default a NetworkX graph knows, and a matrix is an
        undirected graph's if it equals its transpose, which is looked at only where there are self-loops.

    Returns
    -------
    DistArray
        Shape (n,), int64; with weights, the dtype of NumPy's sum of A.

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix.
    OptionError
        For an unknown direction.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> A = sp.csr_array([[0, 5, 1], [0, 0, 0], [0, 2, 0]])
    >>> mn.graph.degree(A).compute(), mn.graph.degree(A, "in", weighted=True).compute()
    (array([2, 0, 1]), array([0, 7, 1]))
    """
    return _degrees(A, graph_from(A, "degree", by_weight=weighted), "degree", direction, weighted, directed)


def _degrees(
    A: object, matrix: DistArray, algorithm: str, direction: str, weighted: bool, directed: bool | None
) -> DistArray:
    if direction not in DIRECTIONS:
        raise OptionError(f"{algorithm}: direction={direction!r}; {suggestion(direction, DIRECTIONS)}")
    pattern = matrix.pattern(np.int64)
    edges = matrix if weighted else pattern
    if direction == "both":
        both: DistArray = edges.sum(axis=1) + edges.sum(axis=0)
        return both
    sums: DistArray = edges.sum(axis=1 if direction == "out" else 0)
    return sums + loops_again(A, edges, directed, matrix, pattern)


@named_by_vertices
def degree_centrality(A: ArrayLike, direction: str = "out", directed: bool | None = None) -> DistArray:
    """Return the degree centrality of each vertex: the share of the other vertices it has an edge to.

    Freeman 1978, "Centrality in Social Networks: Conceptual Clarification".

    Parameters
    ----------
    A
        Sparse n x n matrix; a stored ``A[i, j]`` is an edge from i to j, whatever its value.
    direction
        "out", "in" or "both", as in :func:`degree`. NetworkX's ``degree_centrality`` corresponds to "both"
        for a directed graph, and to "out" for an undirected one.
    directed
        As in :func:`degree`: of an undirected graph a self-loop counts twice.

    Returns
    -------
    DistArray
        float64 of shape (n,): degrees over n - 1; 1 for a graph of a single vertex.

    Raises
    ------
    DTypeError, ShapeError, OptionError
        As in :func:`degree`.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> mn.graph.degree_centrality(sp.csr_array([[0, 1, 1], [1, 0, 0], [1, 0, 0]])).compute()
    array([1. , 0.5, 0.5])
    """
    matrix = graph_from(A, "degree_centrality")
    degrees = _degrees(A, matrix, "degree_centrality", direction, False, directed)
    n = degrees.shape[0]
    if n == 1:
        return degrees * 0 + 1.0  # as NetworkX has it
    return degrees / (n - 1)


@named_by_vertices
def laplacian(A: ArrayLike, normed: bool = False, use_out_degree: bool = False) -> DistArray:
    """Return the sparse Laplacian matrix of a graph: degrees on the diagonal, minus the edge weights.

    Arguments and results are those of ``scipy.sparse.csgraph.laplacian``: self-loops do not count. They count
    in the degrees that NetworkX's ``normalized_laplacian_matrix`` divides by, so that it differs with them.

    Parameters
    ----------
    A
        Sparse n x n matrix; ``A[i, j]`` is the weight of the edge from i to j.
    normed
        Symmetric normalization: each entry is divided by the square roots of both vertices' degrees, with
        ones on the diagonal, zeros for a vertex without edges (Chung 1997, "Spectral Graph Theory", section
        1.2).
    use_out_degree
        For a directed graph, use out-degrees instead of in-degrees.

    Returns
    -------
    DistArray
        Sparse, float64, n x n.

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> mn.graph.laplacian(sp.csr_array([[0, 2, 0], [2, 0, 1], [0, 1, 0]])).to_scipy().toarray()
    array([[ 2., -2.,  0.],
           [-2.,  3., -1.],
           [ 0., -1.,  1.]])
    """
    matrix = graph_from(A, "laplacian", by_weight=True).astype(np.float64)
    edges = tril(matrix, -1) + triu(matrix, 1)
    degrees = edges.sum(axis=1 if use_out_degree else 0)
    if not normed:
        return diag(degrees) - edges
    has_edges = degrees != 0
    root = np.sqrt(where(has_edges, degrees, 1.0))
    return diag(has_edges.astype(np.float64)) - edges / root[:, None] / root

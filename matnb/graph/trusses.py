"""Trusses: parts of a graph in which every edge is in many triangles."""

from __future__ import annotations

import numpy as np

from matnb.errors import OptionError
from matnb.graph.arguments import both_ways, graph_from
from matnb.graph.triangles import toward_more_neighbors
from matnb.graph.vertex_labels import named_by_vertices
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.loop import iterate


@named_by_vertices
def k_truss(A: ArrayLike, k: int, symmetric: bool = False) -> DistArray:
    """Return the k-truss: the largest subgraph in which each edge is in at least k - 2 triangles.

    Cohen 2008, "Trusses: Cohesive Subgraphs for Social Network Analysis"; round by round as Davis 2018,
    "Graph algorithms via SuiteSparse:GraphBLAS: triangle counting and K-truss".

    Parameters
    ----------
    A
        Sparse n x n matrix; a stored ``A[i, j]`` is an edge between i and j, whatever its value and its
        direction. Self-loops do not count.
    symmetric
        True if every edge is known to be stored in both directions, which saves making A symmetric.
    k
        2 or more; 2 keeps every edge.

    Returns
    -------
    DistArray
        Sparse, n x n, float64, symmetric: 1 at each remaining edge. Vertices are not renumbered.

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix.
    OptionError
        For a k below 2.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> A = sp.csr_array([[0, 1, 1, 1], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    >>> mn.graph.k_truss(A, 3).to_scipy().nnz
    6
    """
    matrix = graph_from(A, "k_truss")
    if k < 2:
        raise OptionError(f"k_truss: k={k}; give 2 or more")
    edges = both_ways(matrix, symmetric)

    def step(D: DistArray) -> DistArray:
        # An edge of a triangle i -> j -> k, i -> k is the one from i to k, from j to k, or from i to j.
        triangles = (D @ D) * D + (D.T @ D) * D + (D @ D.T) * D
        return triangles.select(triangles >= k - 2).pattern(np.float64)

    if k == 2:
        return edges
    D, _ = iterate(
        step,
        toward_more_neighbors(edges),
        until=lambda old, new: old.sum() == new.sum(),
        max_iterations=max(1, matrix.shape[0] ** 2),
    )
    truss: DistArray = D + D.T
    return truss

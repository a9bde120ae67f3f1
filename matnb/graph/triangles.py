"""Triangles of a graph."""

from __future__ import annotations

import numpy as np

from matnb.errors import OptionError
from matnb.graph.arguments import both_ways, graph_from
from matnb.graph.vertex_labels import named_by_vertices
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import arange, asarray
from matnb.lazy.functions.diagonals import tril
from matnb.linalg.eigsh import eigsh


@named_by_vertices
def triangles(A: ArrayLike, symmetric: bool = False) -> DistArray:
    """Return the number of triangles that contain each vertex.

    Row sums of a product computed only at the edges (Azad, Buluc and Gilbert 2015,
    "Parallel Triangle Counting and Enumeration Using Matrix Algebra"), each triangle found from the corner
    with the fewest neighbors (Chiba and Nishizeki 1985, "Arboricity and Subgraph Listing Algorithms").

    Parameters
    ----------
    A
        Sparse n x n matrix; a stored ``A[i, j]`` is an edge between i and j, whatever its value and its
        direction. Self-loops do not count.
    symmetric
        True if every edge is known to be stored in both directions, which saves making A symmetric.

    Returns
    -------
    DistArray
        int64 of shape (n,).

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> mn.graph.triangles(sp.csr_array([[0, 1, 1, 1], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]])).compute()
    array([1, 1, 1, 0])
    """
    U = both_ways(graph_from(A, "triangles"), symmetric)
    corners: DistArray = closed_ways(U).astype(np.int64) // 2
    return corners


def triangle_count(A: ArrayLike, symmetric: bool = False) -> DistArray:
    """Return the number of triangles of a graph.

    The sum of ``(L @ L) * L`` for the edges L from the larger to the smaller vertex, so that each triangle is
    counted once (Azad, Buluc and Gilbert 2015).

    Parameters
    ----------
    A, symmetric
        As in :func:`triangles`.

    Returns
    -------
    DistArray
        int64 scalar.

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> int(mn.graph.triangle_count(sp.csr_array([[0, 1, 1], [1, 0, 1], [1, 1, 0]])))
    1
    """
    edges = graph_from(A, "triangle_count").pattern(np.float64)
    L = tril(edges if symmetric else np.maximum(edges, edges.T), -1)
    found: DistArray = ((L @ L) * L).sum().astype(np.int64)
    return found


def triangle_estimate(A: ArrayLike, k: int = 30, symmetric: bool = False, seed: int = 0) -> DistArray:
    """Return an estimate of the number of triangles in a graph, from its largest eigenvalues.

    One sixth of the sum of their cubes (Tsourakakis 2008, "Fast Counting of Triangles in Large Real Networks
    without Counting"): all n eigenvalues would give the exact number, and a few suffice if they decay fast.

    Parameters
    ----------
    A, symmetric
        As in :func:`triangles`.
    k
        Number of eigenvalues, the largest in magnitude; at most n are used.
    seed
        Seed of the start vectors.

    Returns
    -------
    DistArray
        float64 scalar.

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix.
    OptionError
        For a k below 1.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> round(float(mn.graph.triangle_estimate(sp.csr_array([[0, 1, 1], [1, 0, 1], [1, 1, 0]]))), 6)
    1.0
    """
    if k < 1:
        raise OptionError(f"triangle_estimate: k={k} eigenvalues; give 1 or more")
    U = both_ways(graph_from(A, "triangle_estimate"), symmetric)
    if U.shape == (0, 0):
        return asarray(0.0)
    values, _ = eigsh(U, k=min(k, U.shape[0]), which="LM", tol=1e-8, seed=seed)
    estimate: DistArray = (values**3).sum() / 6
    return estimate


def closed_ways(U: DistArray) -> DistArray:
    """Return of each vertex v the paths u - v - w over it whose ends have an edge: twice its triangles.

    Parameters
    ----------
    U
        Sparse n x n: ones at the edges, in both directions, none from a vertex to itself.
    """
    D = toward_more_neighbors(U)
    # i is the first corner, i -> j -> k and i -> k; or j is another, i -> j and i -> k with an edge j - k.
    first = ((D @ D) * D).sum(axis=1)
    closed: DistArray = 2 * (first + ((D.T @ D) * U).sum(axis=1))
    return closed


def toward_more_neighbors(U: DistArray) -> DistArray:
    """Return each edge once: to the end with more neighbors, of two with equally many to the larger vertex.

    ``U`` has ones at the edges, in both directions. No vertex then has more than sqrt(2 m) of the m edges.
    """
    n = U.shape[0]
    place = U.sum(axis=1).astype(np.int64) * n + arange(n)
    return U.select(place[:, None] < place)

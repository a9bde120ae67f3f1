"""Cores: parts of a graph in which every vertex has many neighbors."""

from __future__ import annotations

import numpy as np

from matnb.errors import OptionError
from matnb.graph.arguments import both_ways, graph_from
from matnb.graph.vertex_labels import named_by_vertices
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import asarray, ones
from matnb.lazy.functions.elementwise import where
from matnb.lazy.loop import iterate

State = tuple[DistArray, DistArray]


@named_by_vertices
def core_number(A: ArrayLike, symmetric: bool = False) -> DistArray:
    """Return the core number of each vertex: the largest k of a k-core that contains it.

    In a k-core each vertex has at least k neighbors in the k-core. Vertices of the least degree are removed
    round by round (Matula and Beck 1983, "Smallest-last Ordering and Clustering and Graph Coloring
    Algorithms"), in parallel within a round (Dhulipala, Blelloch and Shun 2017, "Julienne").

    Parameters
    ----------
    A
        Sparse n x n matrix; a stored ``A[i, j]`` is an edge between i and j, whatever its value and its
        direction; of a directed graph, NetworkX counts both directions of a pair. Self-loops do not count.
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
    >>> A = sp.csr_array([[0, 1, 1, 1], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    >>> mn.graph.core_number(A).compute()
    array([2, 2, 2, 1])
    """
    edges = both_ways(graph_from(A, "core_number"), symmetric, np.int64)
    n = edges.shape[0]

    def step(state: State) -> State:
        degrees, k = state  # of a vertex that has left n and its core number, which is more than any degree
        leaves = degrees <= k
        # Few leave in a round, and only their edges are read: whole numbers are pushed.
        lost = leaves.astype(np.int64) @ edges
        degrees = where(leaves, n + k, where(degrees < n, degrees - lost, degrees))
        least = degrees.min(initial=2 * n)
        return degrees, where(least > k, least, k)

    (found, _), _ = iterate(
        step, (edges.sum(axis=1), asarray(0)), until=lambda old, new: new[1] >= n, max_iterations=n
    )
    cores: DistArray = found - n
    return cores


@named_by_vertices
def k_core(A: ArrayLike, k: int, symmetric: bool = False) -> DistArray:
    """Return the k-core: the edges of the largest subgraph in which each vertex has at least k neighbors.

    Parameters
    ----------
    A, symmetric
        As in :func:`core_number`.
    k
        0 or more.

    Returns
    -------
    DistArray
        Sparse, n x n, of the dtype of A: the entries of A between vertices of the k-core. Vertices are not
        renumbered.

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix.
    OptionError
        For a negative k.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> A = sp.csr_array([[0, 1, 1, 1], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    >>> mn.graph.k_core(A, 2).to_scipy().nnz
    3
    """
    matrix = graph_from(A, "k_core")
    if k < 0:
        raise OptionError(f"k_core: k={k}; give 0 or more")
    edges = both_ways(matrix, symmetric)

    def step(remains: DistArray) -> DistArray:
        return remains & (edges @ remains.astype(np.float64) >= k)

    remains, _ = iterate(
        step,
        ones(matrix.shape[0], dtype=bool),
        until=lambda old, new: (old == new).all(),
        max_iterations=matrix.shape[0],
    )
    return matrix.select(remains[:, None] & remains)

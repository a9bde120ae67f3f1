"""How alike the neighbors of two vertices are."""

from __future__ import annotations

from matnb.errors import DTypeError, ShapeError
from matnb.graph.arguments import both_ways, graph_from
from matnb.graph.vertex_labels import named_by_vertices
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import asarray
from matnb.lazy.functions.diagonals import tril, triu
from matnb.lazy.functions.linear import matmul


@named_by_vertices
def common_neighbors(A: ArrayLike, pairs: object = None, symmetric: bool = False) -> DistArray:
    """Return the number of common neighbors of pairs of vertices.

    The square of the adjacency matrix (Liben-Nowell and Kleinberg 2007, "The Link-Prediction
    Problem for Social Networks").

    Parameters
    ----------
    A
        Sparse n x n matrix; a stored ``A[i, j]`` is an edge between i and j, whatever its value and its
        direction. Self-loops do not count.
    pairs
        Sparse n x n matrix whose stored entries are the pairs to compute, such as A itself for the pairs with
        an edge; of a vertex with itself, all its neighbors count. By default all pairs of distinct vertices.
    symmetric
        True if every edge is known to be stored in both directions, which saves making A symmetric.

    Returns
    -------
    DistArray
        Sparse, float64, n x n, with entries for those pairs that have a common neighbor.

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix, or pairs of another shape.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> square = sp.csr_array([[0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
    >>> mn.graph.common_neighbors(square).to_scipy().toarray()
    array([[0., 0., 2., 0.],
           [0., 0., 0., 2.],
           [2., 0., 0., 0.],
           [0., 2., 0., 0.]])

    Of the ends of each edge, for which nothing else is computed:

    >>> triangle = sp.csr_array([[0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
    >>> mn.graph.common_neighbors(triangle, pairs=triangle).to_scipy().toarray()
    array([[0., 1., 1., 0.],
           [0., 0., 1., 0.],
           [0., 0., 0., 0.],
           [0., 0., 0., 0.]])

    :func:`matnb.nested.topk` picks those of each vertex that have most.
    """
    edges = both_ways(graph_from(A, "common_neighbors"), symmetric)
    return _common(edges, pairs, "common_neighbors")


@named_by_vertices
def jaccard(A: ArrayLike, pairs: object = None, symmetric: bool = False) -> DistArray:
    """Return the Jaccard similarity of pairs of vertices: the share of their neighbors that are common.

    Jaccard 1901; NetworkX's ``jaccard_coefficient``: the common neighbors over all neighbors of either. Where
    a graph has self-loops NetworkX takes a vertex with one for a neighbor of its own, and here it is none.

    Parameters
    ----------
    A, pairs, symmetric
        As in :func:`common_neighbors`.

    Returns
    -------
    DistArray
        Sparse, float64, n x n, with entries for those pairs that have a common neighbor.

    Raises
    ------
    DTypeError, ShapeError
        As in :func:`common_neighbors`.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> A = sp.csr_array([[0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
    >>> mn.graph.jaccard(A, pairs=A).to_scipy().toarray().round(2)
    array([[0.  , 0.33, 0.25, 0.  ],
           [0.  , 0.  , 0.25, 0.  ],
           [0.  , 0.  , 0.  , 0.  ],
           [0.  , 0.  , 0.  , 0.  ]])
    """
    edges = both_ways(graph_from(A, "jaccard"), symmetric)
    common = _common(edges, pairs, "jaccard")
    degrees = edges.sum(axis=1)
    share: DistArray = common / (degrees[:, None] + degrees - common)
    return share


def _common(edges: DistArray, pairs: object, algorithm: str) -> DistArray:
    if pairs is None:
        common = edges @ edges
        return tril(common, -1) + triu(common, 1)
    wanted = asarray(pairs)
    if not wanted.sparse:
        raise DTypeError(
            f"{algorithm}: pairs is dense; give a sparse matrix whose stored entries are the pairs"
        )
    if wanted.shape != edges.shape:
        raise ShapeError(f"{algorithm}: pairs of shape {wanted.shape} for {edges.shape[0]} vertices")
    return matmul(edges, edges, mask=wanted.pattern(bool))

"""A matrix as a graph of NetworkX's, for what only NetworkX has."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from matnb.errors import UnsupportedError
from matnb.graph.arguments import graph_from
from matnb.lazy.array_like import ArrayLike


def to_networkx(A: ArrayLike, directed: bool | None = None) -> Any:
    """Compute the matrix of a graph and return it as NetworkX's graph, with its labels as nodes.

    Parameters
    ----------
    A
        Sparse n x n matrix; a stored ``A[i, j]`` is an edge from i to j, with it as "weight".
    directed
        True for a ``networkx.DiGraph``, False for a ``networkx.Graph``, which has the edges of both
        directions. By default a matrix that equals its transpose is an undirected graph's.

    Returns
    -------
    networkx.Graph or networkx.DiGraph
        Its nodes, in the order of the rows, are ``A.labels``, or the numbers of rows where A has none. It
        takes some hundred bytes of this process for each edge.

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix.
    TooLargeError
        If its entries exceed the session's ``compute_limit``.
    UnsupportedError
        If NetworkX is not installed.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> G = mn.graph.to_networkx(sp.csr_array([[0, 2], [0, 0]]))
    >>> G.edges(data="weight")
    OutEdgeDataView([(0, 1, 2)])
    """
    try:
        networkx: Any = import_module("networkx")
    except ImportError:
        raise UnsupportedError("to_networkx: NetworkX is not installed; pip install networkx") from None
    matrix = graph_from(A, "to_networkx", by_weight=True)
    labels = getattr(A, "row_labels", matrix.labels)
    found: Any = matrix.to_scipy()
    if directed is None:
        differs = found != found.T
        both_nan = differs.multiply((found != found).multiply(found.T != found.T))
        directed = differs.nnz > both_nan.nnz
    kind = networkx.DiGraph if directed else networkx.Graph
    made = networkx.from_scipy_sparse_array(found, create_using=kind)
    if labels is None:
        return made
    return networkx.relabel_nodes(made, dict(enumerate(np.asarray(labels).tolist())))

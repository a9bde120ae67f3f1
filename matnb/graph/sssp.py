"""Shortest paths from one vertex over edges with weights."""

from __future__ import annotations

import numpy as np

from matnb.errors import OptionError
from matnb.graph.arguments import graph_from, vertex_from, vertices_of
from matnb.lazy.array import DistArray
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.linear import matmul
from matnb.lazy.functions.mapping import replicated
from matnb.lazy.loop import iterate


def sssp(A: object, source: int) -> DistArray:
    """Return the length of the shortest way from a vertex to each other one.

    Bellman and Ford's rounds over the semiring of min and plus, from the vertices alone whose distance the
    round before made shorter.

    Parameters
    ----------
    A
        Sparse n x n matrix; a stored ``A[i, j]`` is the weight of the edge from i to j, 0 or more.
    source
        The vertex to begin at.

    Returns
    -------
    DistArray
        float64 of shape (n,): the least sum of weights on a way from the source; inf where there is none.

    Raises
    ------
    DTypeError, ShapeError
        For what is no sparse square matrix.
    IndexingError
        For a source that is no vertex.
    OptionError
        For a weight that is negative or NaN, when distances are computed.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> A = sp.csr_array([[0, 7, 2], [0, 0, 0], [0, 3, 0]])
    >>> mn.graph.sssp(A, 0).compute()
    array([0., 5., 2.])
    """
    matrix = graph_from(A, "sssp")
    n = matrix.shape[0]
    source = vertex_from(source, n, "sssp")
    # The distance of what is not reached is found with the check of the weights, so that none is had without.
    no_way = replicated(_no_way, matrix.min(), like=np.inf) if matrix.dtype.kind in "if" else np.inf

    def step(state: tuple[DistArray, DistArray]) -> tuple[DistArray, DistArray]:
        distance, nearer = state
        # d'[j] = min(d[j], min of d[i] + A[i, j] over the edges (i, j) from vertices that came nearer)
        reached = matmul(where(nearer, distance, no_way), matrix, semiring="min_plus")
        nearer = reached < distance
        return where(nearer, reached, distance), nearer

    at_source = vertices_of(n) == source
    start = where(at_source, 0.0, no_way), at_source
    (distance, _), _ = iterate(step, start, until=lambda old, new: ~new[1].any(), max_iterations=n)
    return distance


def _no_way(least: np.floating | np.integer) -> float:
    if not least >= 0:
        raise OptionError(f"sssp: a weight is {float(least)}; weights are 0 or more")
    return np.inf

"""Shortest paths between all pairs of vertices of a small graph: Floyd and Warshall's algorithm."""

from __future__ import annotations

from typing import cast

import numpy as np

from matnb.errors import OptionError
from matnb.graph.arguments import graph_from, vertices_of
from matnb.graph.vertex_labels import named_by_vertices
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.functions.diagonals import diagonal
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.mapping import replicated
from matnb.lazy.loop import iterate, iteration


@named_by_vertices
def floyd_warshall(A: ArrayLike, unweighted: bool = False) -> DistArray:
    """Return the shortest-path lengths between all pairs of vertices, in n steps over an n x n matrix.

    Floyd 1962, "Algorithm 97: Shortest Path"; SciPy's ``csgraph.floyd_warshall``. For graphs of up to some
    thousands of vertices; use :func:`all_pairs_shortest_path_length` for larger sparse ones.

    Parameters
    ----------
    A
        Sparse n x n matrix; a stored ``A[i, j]`` is the weight of the edge from i to j, which may be
        negative.
    unweighted
        Count edges instead of summing weights.

    Returns
    -------
    DistArray
        float64, n x n, dense: inf where there is no path.

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix.
    OptionError
        When computed, for a cycle of negative length, and for a weight that is NaN.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> mn.graph.floyd_warshall(sp.csr_array([[0, 7, 2], [0, 0, 0], [0, 3, 0]])).compute()
    array([[ 0.,  5.,  2.],
           [inf,  0., inf],
           [inf,  3.,  0.]])
    """
    matrix = graph_from(A, "floyd_warshall")
    n = matrix.shape[0]
    vertices = vertices_of(n)
    edges = matrix.pattern(bool)
    weights = where(edges, 1.0 if unweighted else matrix.astype(np.float64), np.inf)
    no_step = where(vertices[:, None] == vertices, 0.0, np.inf)

    def step(lengths: DistArray) -> DistArray:
        k = iteration()
        return cast(DistArray, np.minimum(lengths, lengths[:, k][:, None] + lengths[k]))

    lengths, _ = iterate(step, cast(DistArray, np.minimum(weights, no_step)), max_iterations=n)
    if n == 0:
        return lengths
    checked: DistArray = lengths + replicated(_nothing, diagonal(lengths).min(), like=0.0)
    return checked


def _nothing(least: np.floating) -> float:
    if not least >= 0:
        raise OptionError(
            "floyd_warshall: a weight is NaN"
            if np.isnan(least)
            else "floyd_warshall: the graph has a cycle of negative length, so shortest paths do not exist"
        )
    return 0.0

"""How near vertices are to all others: closeness and harmonic centrality."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from matnb.graph.arguments import graph_from, in_batches, vertices_of
from matnb.graph.distances import Lengths, search_from
from matnb.graph.vertex_labels import named_by_vertices
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import arange, asarray, zeros
from matnb.lazy.functions.elementwise import where
from matnb.lazy.loop import iterate


@named_by_vertices
def closeness(
    A: ArrayLike, weighted: bool = False, wf_improved: bool = True, batch: int = 32, symmetric: bool = False
) -> DistArray:
    """Return the closeness centrality of each vertex: the inverse mean distance to it from other vertices.

    The number of vertices that can reach it over the sum of their distances to it (Freeman 1978, "Centrality
    in Social Networks: Conceptual Clarification"), as NetworkX's ``closeness_centrality``.

    Parameters
    ----------
    A
        Sparse n x n matrix; a stored ``A[i, j]`` is an edge from i to j.
    weighted
        Measure distances by sums of weights, which must not be negative, instead of numbers of edges.
    wf_improved
        Multiply by the share of the other vertices that can reach it (Wasserman and Faust 1994), so that
        vertices of a small component do not rank highest.
    batch
        Number of vertices processed at a time, as in :func:`all_pairs_shortest_path_length`.
    symmetric
        True if A is known to be symmetric, so that it need not be transposed.

    Returns
    -------
    DistArray
        float64 of shape (n,); 0 for a vertex that no other can reach.

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix.
    OptionError
        For a batch below 1; when computed, for a weight that is negative or NaN.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> star = sp.csr_array([[0, 1, 1], [1, 0, 0], [1, 0, 0]])
    >>> mn.graph.closeness(star).compute().round(4)
    array([1.    , 0.6667, 0.6667])
    """

    def near(lengths: Lengths, begins: DistArray) -> DistArray:
        reached = _reached(lengths)
        others = reached.sum(axis=0) - 1
        total = where(reached, lengths, 0).sum(axis=0)
        value: DistArray = where(total > 0, others / np.maximum(total, np.finfo(float).tiny), 0.0)
        return value * others / max(n - 1, 1) if wf_improved else value

    matrix = graph_from(A, "closeness")
    n = matrix.shape[0]
    return _by_vertex(matrix, weighted, symmetric, batch, "closeness", near)


@named_by_vertices
def harmonic(A: ArrayLike, weighted: bool = False, batch: int = 32, symmetric: bool = False) -> DistArray:
    """Return the harmonic centrality of each vertex: the sum of 1 / distance from all others to it.

    Boldi and Vigna 2014, "Axioms for Centrality"; NetworkX's ``harmonic_centrality``. Vertices without a path
    to it, or at distance 0, count 0.

    Parameters
    ----------
    A, weighted, batch, symmetric
        As in :func:`closeness`.

    Returns
    -------
    DistArray
        float64 of shape (n,).

    Raises
    ------
    DTypeError, ShapeError, OptionError
        As in :func:`closeness`.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> star = sp.csr_array([[0, 1, 1], [1, 0, 0], [1, 0, 0]])
    >>> mn.graph.harmonic(star).compute()
    array([2. , 1.5, 1.5])
    """

    def near(lengths: Lengths, begins: DistArray) -> DistArray:
        counts = _reached(lengths) & (vertices[:, None] != begins) & (lengths > 0)
        return where(counts, 1 / where(counts, lengths, 1), 0.0).sum(axis=0)

    matrix = graph_from(A, "harmonic")
    vertices = vertices_of(matrix.shape[0])
    return _by_vertex(matrix, weighted, symmetric, batch, "harmonic", near)


def _by_vertex(
    matrix: DistArray,
    weighted: bool,
    symmetric: bool,
    batch: int,
    algorithm: str,
    value: Callable[[Lengths, DistArray], DistArray],
) -> DistArray:
    n = matrix.shape[0]
    batches = in_batches(arange(n), batch, algorithm)
    search = search_from(
        matrix if symmetric else matrix.T, weighted, algorithm
    )  # to a vertex is back from it
    _, _, values = iterate(
        lambda last, begins: value(search(begins), begins),
        zeros(batches.shape[1]),
        over=asarray(batches),
        collect=lambda new: new,
    )
    return values.reshape(-1)[:n]


def _reached(lengths: Lengths) -> DistArray:
    reached: DistArray = lengths < np.inf if lengths.dtype.kind == "f" else lengths >= 0
    return reached

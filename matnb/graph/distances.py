"""Distances from many vertices at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
import numpy.typing as npt

from matnb.graph.arguments import checked, graph_from, in_batches, vertices_from, vertices_of
from matnb.graph.searches import by_columns, levels_of
from matnb.graph.vertex_labels import labels_of_graph, note, picked_labels
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import arange, asarray, zeros
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.linear import matmul
from matnb.lazy.loop import iterate


def all_pairs_shortest_path_length(
    A: ArrayLike,
    sources: npt.ArrayLike | None = None,
    weighted: bool = False,
    batch: int = 32,
) -> DistArray:
    """Return the shortest-path lengths from many vertices to all vertices.

    Searches from ``batch`` vertices at a time, each round one product of A' with a dense n x ``batch``
    matrix: breadth-first search over the (or, and) semiring, or with weights Bellman-Ford over (min, plus)
    (Kepner and Gilbert 2011, "Graph Algorithms in the Language of Linear Algebra").

    Parameters
    ----------
    A
        Sparse n x n matrix; a stored ``A[i, j]`` is an edge from i to j.
    sources
        k vertices, by their labels, or by the numbers of rows where the graph has no labels; by default
        all.
    weighted
        Sum the edge weights, which must not be negative, instead of counting edges.
    batch
        Number of sources processed at a time, which takes a few dense n x ``batch`` matrices of memory.

    Returns
    -------
    DistArray
        k x n: the length of the shortest path from ``sources[i]`` to the vertex of row j. int32 with -1 where
        there is no path; with weights float64 with inf.

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix.
    IndexingError
        For a source that is not a vertex.
    OptionError
        For a batch below 1; when computed, for a weight that is negative or NaN.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> path = sp.csr_array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    >>> mn.graph.all_pairs_shortest_path_length(path).compute()
    array([[ 0,  1,  2],
           [-1,  0,  1],
           [-1, -1,  0]], dtype=int32)
    """
    algorithm = "all_pairs_shortest_path_length"
    matrix = graph_from(A, algorithm)
    n = matrix.shape[0]
    chosen: npt.NDArray[np.int64] | DistArray = arange(n)
    if sources is not None:
        chosen = vertices_from(sources, A, n, algorithm)
    batches = in_batches(chosen, batch, algorithm)
    search = search_from(matrix, weighted, algorithm)
    _, _, rows = iterate(
        lambda last, begins: search(begins).T,
        zeros((batches.shape[1], n), np.float64 if weighted else np.int32),
        over=asarray(batches),
        collect=lambda new: new,
    )
    lengths = rows.reshape(batches.size, n)[: len(chosen)]
    vertices = labels_of_graph(A)
    begins = vertices if isinstance(chosen, DistArray) else picked_labels(vertices, chosen)
    return note(lengths, [begins, vertices])


Lengths = DistArray  # n x batch: of the paths from the beginnings of a batch to each vertex


def search_from(matrix: DistArray, weighted: bool, algorithm: str) -> Callable[[DistArray], Lengths]:
    """Return a function of a batch of vertices that gives the lengths of the shortest paths from them.

    Parameters
    ----------
    matrix
        Sparse n x n: the edges.
    weighted
        By sums of weights, float64 and inf where there is no path; else by numbers of edges, int32 and -1.
    algorithm
        What the user called.
    """
    vertices = vertices_of(matrix.shape[0])

    def nearest(begins: DistArray) -> Lengths:
        def step(distance: DistArray) -> DistArray:
            nearer = np.minimum(distance, matmul(matrix.T, distance, semiring="min_plus"))
            return cast(DistArray, nearer)

        start = where(vertices[:, None] == begins, 0.0, far)
        distance, _ = iterate(
            step, start, until=lambda old, new: (new == old).all(), max_iterations=matrix.shape[0]
        )
        return distance

    if weighted:
        far = checked(np.inf, matrix, algorithm)
        return nearest
    along = by_columns(matrix)
    return lambda begins: levels_of(vertices[:, None] == begins, along)

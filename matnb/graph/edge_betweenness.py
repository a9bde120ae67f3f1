"""Betweenness of edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from matnb.graph.arguments import checked, graph_from, in_batches, vertices_of
from matnb.graph.betweenness import chosen_sources
from matnb.graph.brandes import dependencies_inward, edges_of_ways, ways_outward
from matnb.graph.vertex_labels import named_by_vertices
from matnb.graph.weighted_ways import weighted_ways
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import asarray
from matnb.lazy.loop import iterate


@named_by_vertices
def edge_betweenness(
    A: ArrayLike,
    sources: int | str | Sequence[int | str] | npt.NDArray[Any] | None = None,
    normalized: bool = True,
    directed: bool = True,
    weighted: bool = False,
    batch: int = 32,
    seed: int = 0,
) -> DistArray:
    """Return the betweenness centrality of each edge: the share of shortest paths that use it.

    Brandes 2008, "On Variants of Shortest-Path Betweenness Centrality and their Generic Computation",
    section 3.5: the share of shortest paths from s to t that use the edge, summed over all pairs s and t.

    Parameters
    ----------
    A
        Sparse n x n matrix; a stored ``A[i, j]`` is an edge from i to j.
    sources
        Vertices where paths start, as in :func:`betweenness`; by default all. A number k draws k vertices
        with ``seed``, and the result is an estimate: sums are scaled by n / k.
    normalized
        Divide by the number of pairs of vertices, as NetworkX.
    directed
        False if A stores both directions of each edge, so that every path is found twice: each direction of
        an edge gets NetworkX's value for the edge of an undirected graph, of which each has half with True.
    weighted
        Measure paths by their sums of weights, which must be above 0, instead of their numbers of edges.
        Sources are then processed one at a time.
    batch
        Number of sources processed at a time, which takes a few dense n x ``batch`` matrices of memory.
    seed
        Seed for drawing sources.

    Returns
    -------
    DistArray
        Sparse, float64, n x n, with the entries of A.

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix.
    IndexingError
        For a source that is not a vertex.
    OptionError
        For a batch below 1, or more sources to draw than there are vertices; when computed, for a weight that
        is not above 0.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> path = sp.csr_array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> mn.graph.edge_betweenness(path, directed=False, normalized=False).to_scipy().toarray()
    array([[0., 2., 0.],
           [2., 0., 2.],
           [0., 2., 0.]])
    """
    matrix = graph_from(A, "edge_betweenness")
    n = matrix.shape[0]
    chosen = chosen_sources(sources, A, n, seed, "edge_betweenness")
    batches = in_batches(chosen, batch, "edge_betweenness")
    vertices = vertices_of(n)
    edges = matrix.pattern(np.float64)

    def add_batch(total: DistArray, begins: DistArray) -> DistArray:
        ways = ways_outward(edges, vertices[:, None] == begins)
        return total + edges_of_ways(edges, ways, dependencies_inward(edges, ways))

    def add_source(total: DistArray, source: DistArray) -> DistArray:
        tight, num_ways, dependency = weighted_ways(matrix, vertices == source, far)
        counts = np.maximum(num_ways, 1.0)
        return total + tight * num_ways[:, None] * ((1 + dependency) / counts)

    if weighted:
        far = checked(np.inf, matrix, "edge_betweenness", "above 0")
        total, _ = iterate(add_source, edges * 0.0, over=asarray(chosen))
    else:
        total, _ = iterate(add_batch, edges * 0.0, over=asarray(batches))
    if isinstance(sources, int | np.integer):
        total = total * (n / len(chosen))
    # Both directions of an edge that goes both ways have half of the paths, each found in one direction.
    pairs = max(1, n * (n - 1)) if normalized else 1
    scaled: DistArray = total / pairs if directed else (total + total.T) / (pairs if normalized else 2)
    return scaled

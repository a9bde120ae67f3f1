"""Strongly connected components: by colors forward and backward."""

from __future__ import annotations

import numpy as np

from matnb.graph.arguments import graph_from, vertices_of
from matnb.graph.components import Components
from matnb.graph.vertex_labels import named_by_vertices
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.linear import matmul
from matnb.lazy.loop import iterate


@named_by_vertices
def strongly_connected_components(A: ArrayLike) -> Components:
    """Return the strongly connected components of a directed graph.

    Orzan 2004, "On Distributed Verification and Verified Distribution", section 3.3, with the trimming of
    McLendon, Hendrickson, Plimpton and Rauchwerger 2005, "Finding strongly connected components in
    distributed graphs". In each round, among the vertices without a component: a vertex without predecessors
    or without successors is its own component; every other vertex is colored by the smallest vertex that
    reaches it; and the vertices of a color that reach the vertex it came from are a component.

    Parameters
    ----------
    A
        Sparse n x n matrix; a stored ``A[i, j]`` is an edge from i to j, whatever its value.

    Returns
    -------
    Components
        ``number``, int64: the number of components. ``labels``, int64 of shape (n,): the smallest vertex of
        each vertex's component.

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> A = sp.csr_array([[0, 1, 0], [1, 0, 1], [0, 0, 0]])
    >>> number, labels = mn.graph.strongly_connected_components(A)
    >>> int(number), labels.compute()
    (2, array([0, 0, 2]))
    """
    edges = graph_from(A, "strongly_connected_components").pattern(bool)
    n = edges.shape[0]
    vertices = vertices_of(n)
    none = int(np.iinfo(vertices.dtype).max)  # a vertex that is out: what min has no part in

    def forward(colors: DistArray) -> DistArray:
        # c'[w] = min of c[w] and of c[v] over the edges (v, w), among vertices without a component
        nearer = np.minimum(colors, matmul(colors, edges, semiring="min_first"))
        return where(colors < none, nearer, none)

    def find_components(labels: DistArray) -> DistArray:
        remains = labels < 0
        own = where(remains, vertices, none)
        no_edge_in = matmul(own, edges, semiring="min_first", mask=remains) == none
        no_edge_out = matmul(edges, own, semiring="min_second", mask=remains) == none
        trimmed = remains & (no_edge_in | no_edge_out)
        labels = where(trimmed, vertices, labels)
        start = where(labels < 0, vertices, none)
        colors, _ = iterate(forward, start, until=lambda old, new: (old == new).all(), max_iterations=n)

        def backward(state: tuple[DistArray, DistArray]) -> tuple[DistArray, DistArray]:
            newest, found = state
            # An edge leads to a color that is not larger, so that the largest one it leads to is the same
            # color or no vertex behind it is found by this one.
            behind = -matmul(edges, where(newest, -colors, none), semiring="min_second")
            newest = (behind == colors) & ~found & (colors < none)
            return newest, found | newest

        roots = (colors == vertices) & (colors < none)
        (_, found), _ = iterate(
            backward, (roots, roots), until=lambda old, new: ~new[0].any(), max_iterations=n
        )
        return where(found, colors, labels)

    labels, _ = iterate(
        find_components,
        where(vertices < 0, vertices, -1),
        until=lambda old, new: (new >= 0).all(),
        max_iterations=n,
    )
    labels = labels.astype(np.int64)
    return Components((labels == vertices).sum(), labels)

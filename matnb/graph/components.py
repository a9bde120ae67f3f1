"""Connected components: the FastSV algorithm."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, cast

import numpy as np

from matnb.graph.arguments import graph_from
from matnb.graph.other_names import OF_GROUPS
from matnb.graph.vertex_labels import named_by_vertices
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import arange
from matnb.lazy.fields import has_fields
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.grouping import scatter_reduce
from matnb.lazy.functions.linear import matmul
from matnb.lazy.loop import iterate
from matnb.tables.results import shows


@shows("vertices", labels="sizes")
@partial(has_fields, main="labels", ways=OF_GROUPS)
class Components(NamedTuple):
    """Result of :func:`connected_components`."""

    number: DistArray
    labels: DistArray


@named_by_vertices
def connected_components(A: ArrayLike, symmetric: bool = False) -> Components:
    """Return the connected components of a graph, ignoring the direction of edges.

    FastSV (Zhang, Azad and Hu 2020, "FastSV: A Distributed-Memory Connected Component Algorithm with Fast
    Convergence", algorithm 2): parent trees are hooked onto each other and flattened, in a number of rounds
    that grows with log n.

    Parameters
    ----------
    A
        Sparse n x n matrix; a stored ``A[i, j]`` is an edge from i to j, whatever its value.
    symmetric
        True if every edge is known to be stored in both directions, which halves the work.

    Returns
    -------
    Components
        ``number``, int64: the number of (weakly) connected components. ``labels``, int64 of shape (n,): the
        smallest vertex of each vertex's component.

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> number, labels = mn.graph.connected_components(sp.csr_array([[0, 0, 0], [0, 0, 0], [0, 1, 0]]))
    >>> int(number), labels.compute()
    (2, array([0, 1, 1]))
    """
    matrix = graph_from(A, "connected_components")
    n = matrix.shape[0]
    vertices = arange(n)

    def step(state: tuple[DistArray, DistArray]) -> tuple[DistArray, DistArray]:
        parent, grandparent = state
        # g[u] = min of gf[v] over the edges (u, v), and of those (v, u)
        nearest = matmul(matrix, grandparent, semiring="min_second")
        if not symmetric:
            back = matmul(grandparent, matrix, semiring="min_first")
            nearest = where(back < nearest, back, nearest)
        # A tree is hooked by its root, f[f[u]] <- min g[u], and by each vertex, f[u] <- min(g[u], gf[u]).
        hooked = scatter_reduce(nearest, parent, n, monoid="min")
        least = np.minimum(np.minimum(parent, hooked), np.minimum(nearest, grandparent))
        parent = cast(DistArray, least)  # NumPy's types know nothing of DistArray
        return parent, parent[parent]

    (labels, _), _ = iterate(
        step, (vertices, vertices), until=lambda old, new: (old[1] == new[1]).all(), max_iterations=n
    )
    return Components((labels == vertices).sum(), labels)

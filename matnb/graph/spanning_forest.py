"""A minimum spanning forest: Boruvka's algorithm."""

from __future__ import annotations

import numpy as np

from matnb.graph.arguments import both_ways, checked, graph_from, vertices_of
from matnb.graph.vertex_labels import named_by_vertices
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import arange, eye, full, zeros
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.grouping import scatter_reduce
from matnb.lazy.functions.linear import matmul
from matnb.lazy.functions.shaping import concatenate
from matnb.lazy.loop import iterate

State = tuple[DistArray, DistArray]


@named_by_vertices
def minimum_spanning_forest(A: ArrayLike) -> DistArray:
    """Return a minimum spanning forest: edges of least total weight that connect each component.

    Boruvka 1926 (Nesetril, Milkova and Nesetrilova 2001, "Otakar Boruvka on minimum spanning tree problem"):
    in each round every tree adds the lightest edge that leaves it. Ties go to the smallest vertices, so the
    result does not depend on how A is split.

    Parameters
    ----------
    A
        Sparse n x n matrix; a stored ``A[i, j]`` is the weight of an edge between i and j; where both
        directions are stored the smaller weight counts. Self-loops do not count.

    Returns
    -------
    DistArray
        Sparse, n x n, float64: the weight of each edge of the forest, below the diagonal; a weight of 0 is
        stored too.

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix.
    OptionError
        When computed, for a weight that is NaN.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> A = sp.csr_array([[0, 3, 1], [0, 0, 2], [0, 0, 0]])
    >>> float(mn.graph.minimum_spanning_forest(A).sum())
    3.0
    """
    matrix = graph_from(A, "minimum_spanning_forest").astype(np.float64)
    n = matrix.shape[0]
    vertices = arange(n)
    edges = both_ways(matrix, symmetric=False)
    weights = _lighter_way(matrix) * checked(1.0, matrix, "minimum_spanning_forest", "numbers")
    # What an edge is called in both directions: its smaller vertex times n, and its larger one.
    numbers = edges * (np.minimum(vertices[:, None], vertices) * n + np.maximum(vertices[:, None], vertices))

    def step(state: State) -> State:
        trees, taken = state  # the root of each vertex's tree; what each former root was hooked with
        leaves = trees[:, None] != trees
        weight = _least(edges * where(leaves, weights, np.inf), trees)
        lightest = leaves & (weights == weight[trees][:, None])
        edge = _least(edges * where(lightest, numbers, np.inf), trees)
        found = edge < np.inf
        one, other = _ends(where(found, edge, 0.0), n)
        beyond = where(trees[one] == vertices, trees[other], trees[one])
        parents = where(found, beyond, vertices)
        # Two trees that take the same edge: the smaller root stays.
        parents = where((parents[parents] == vertices) & (vertices < parents), vertices, parents)
        taken = where(parents != vertices, edge, taken)
        roots, _ = iterate(
            lambda up: up[up], parents, until=lambda old, new: (old == new).all(), max_iterations=n
        )
        return roots[trees], taken

    (_, taken), _ = iterate(
        step, (vertices, full(n, np.inf)), until=lambda old, new: (old[0] == new[0]).all(), max_iterations=n
    )
    found = taken < np.inf
    one, other = _ends(where(found, taken, 0.0), n)
    forest = (eye(n)[other] * found[:, None]).T @ eye(n)[one]
    return forest.eliminate_zeros().pattern(np.float64) * weights


def _lighter_way(matrix: DistArray) -> DistArray:
    # A product keeps weights of 0, which a sum of sparse matrices would not store.
    n = matrix.shape[0]
    vertices = vertices_of(n)
    edges = matrix.select(vertices[:, None] != vertices)
    both, one = concatenate([edges, edges.T], axis=1), eye(n, dtype=matrix.dtype)
    return matmul(both, concatenate([one, one], axis=0), semiring="min_first")


def _least(values: DistArray, trees: DistArray) -> DistArray:
    # Of each tree, at its root, the least stored value in the rows of its vertices.
    n = trees.shape[0]
    return scatter_reduce(matmul(values, zeros(n), semiring="min_plus"), trees, n, monoid="min")


def _ends(edge: DistArray, n: int) -> tuple[DistArray, DistArray]:
    return (edge // n).astype(np.int64), (edge % n).astype(np.int64)

"""A maximal independent set: Luby's algorithm."""

from __future__ import annotations

import numpy as np

from matnb.graph.arguments import both_ways, graph_from
from matnb.graph.vertex_labels import named_by_vertices
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import ones, zeros
from matnb.lazy.functions.linear import matmul
from matnb.lazy.loop import iterate
from matnb.lazy.random import default_rng


@named_by_vertices
def maximal_independent_set(A: ArrayLike, symmetric: bool = False, seed: int = 0) -> DistArray:
    """Return a maximal independent set: no two of its vertices are adjacent, and no vertex can be added.

    Luby 1986, "A Simple Parallel Algorithm for the Maximal Independent Set Problem": in each round every
    remaining vertex draws a number; a vertex whose number is smaller than all its neighbors' joins the set,
    and is removed with its neighbors. The number of rounds grows with log n.

    Parameters
    ----------
    A
        Sparse n x n matrix; a stored ``A[i, j]`` is an edge between i and j, whatever its value and its
        direction. Self-loops do not count.
    symmetric
        True if every edge is known to be stored in both directions, which saves making A symmetric.
    seed
        Seed of the random numbers, which determines the set that is found.

    Returns
    -------
    DistArray
        bool of shape (n,): true for the vertices of the set.

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> star = sp.csr_array([[0, 1, 1], [1, 0, 0], [1, 0, 0]])
    >>> mn.graph.maximal_independent_set(star, seed=1).compute().sum() in (1, 2)
    True
    """
    edges = both_ways(graph_from(A, "maximal_independent_set"), symmetric, bool)
    n = edges.shape[0]
    rng = default_rng(seed)

    def step(state: tuple[DistArray, DistArray]) -> tuple[DistArray, DistArray]:
        chosen, remains = state
        drawn = np.where(remains, rng.random(n), np.inf)
        taken = remains & (drawn < matmul(edges, drawn, semiring="min_second"))
        beside = matmul(edges, taken, semiring="lor_second")
        return chosen | taken, remains & ~taken & ~beside

    (chosen, _), _ = iterate(
        step,
        (zeros(n, dtype=bool), ones(n, dtype=bool)),
        until=lambda old, new: ~new[1].any(),
        max_iterations=n,
    )
    return chosen

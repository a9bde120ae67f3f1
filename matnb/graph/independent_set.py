"""A maximal independent set: Luby's algorithm."""

from __future__ import annotations

import numpy as np

from matnb.graph.arguments import both_ways, graph_from
from matnb.lazy.array import DistArray
from matnb.lazy.creation import ones, zeros
from matnb.lazy.functions.linear import matmul
from matnb.lazy.loop import iterate
from matnb.lazy.random import default_rng


def maximal_independent_set(A: object, symmetric: bool = False, seed: int = 0) -> DistArray:
    """Return vertices no two of which have an edge, such that every other one has an edge to one of them.

    Luby 1986, "A Simple Parallel Algorithm for the Maximal Independent Set Problem": each round all vertices
    that remain draw a number; whose is smaller than those of all its neighbors is taken, and it and its
    neighbors leave. A number of rounds that grows as the logarithm of n.

    Parameters
    ----------
    A
        Sparse n x n matrix; a stored ``A[i, j]`` is an edge between i and j, whatever its value and its
        direction. Edges from a vertex to itself do not count.
    symmetric
        True when it is known that every edge is there in both directions.
    seed
        Of the numbers drawn: which of the many such sets it is follows from it alone.

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

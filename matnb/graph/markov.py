"""Clusters by flow: Markov clustering."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from matnb.errors import OptionError
from matnb.graph.arguments import check_real, checked_sums, graph_from
from matnb.graph.components import connected_components
from matnb.graph.other_names import OF_GROUPS
from matnb.graph.vertex_labels import named_by_vertices
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import arange, asarray
from matnb.lazy.fields import has_fields
from matnb.lazy.functions.diagonals import diag
from matnb.lazy.functions.elementwise import where
from matnb.lazy.loop import converging, iterate
from matnb.tables.results import shows


@shows("vertices", labels="sizes", iterations="iterations")
@partial(has_fields, ways=OF_GROUPS)
class Clusters(NamedTuple):
    """Result of :func:`markov_clustering`."""

    labels: DistArray
    flow: DistArray
    iterations: DistArray


@named_by_vertices
def markov_clustering(
    A: ArrayLike,
    expansion: int = 2,
    inflation: float = 2.0,
    loop_weight: float = 1.0,
    threshold: float = 1e-3,
    tolerance: float = 1e-6,
    max_iterations: int = 100,
) -> Clusters:
    """Return clusters of a graph that a random walk rarely leaves, by Markov clustering.

    van Dongen 2000, "Graph Clustering by Flow Simulation": the transition matrix of a walk is raised to a
    power (expansion), which spreads probabilities, and its elements to another power (inflation), which
    favors large ones, until convergence. Small probabilities are dropped, and columns renormalized.

    Parameters
    ----------
    A
        Sparse n x n matrix; ``A[i, j]`` is the nonnegative weight of the edge from i to j.
    expansion
        Steps of the walk between two inflations, 2 or more.
    inflation
        The power of the elements, above 1: larger values give smaller clusters.
    loop_weight
        The weight added to each vertex's self-loop, in terms of the heaviest of its edges; of 1 where it has
        none.
    threshold
        Probabilities below this are dropped, except the largest of each vertex.
    tolerance
        Stop when no probability changes by more than this.
    max_iterations
        Maximum number of iterations.

    Returns
    -------
    Clusters
        ``labels``, int64 of shape (n,): the smallest vertex of each vertex's cluster; ``flow``, sparse, n x
        n, with columns that sum to 1: the limit distribution of the walk from each vertex; ``iterations``,
        which is ``max_iterations`` if the tolerance was not reached.

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix.
    OptionError
        For an expansion below 2, an inflation that is not above 1, a negative loop weight, a threshold
        outside 0 to 1, a tolerance that is not above 0; when it is computed, for a weight that is negative,
        NaN or infinite.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> pairs = sp.csr_array([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]])
    >>> mn.graph.markov_clustering(pairs).labels.compute()
    array([0, 0, 2, 2])
    """
    given = graph_from(A, "markov_clustering", by_weight=True)
    check_real(given, "markov_clustering")
    matrix = given.astype(np.float64)
    _check(expansion, inflation, loop_weight, threshold, tolerance)
    n = matrix.shape[0]
    if n == 0:
        return Clusters(arange(0), matrix, asarray(0))

    def step(flow: DistArray) -> DistArray:
        spread = flow
        for _ in range(expansion - 1):
            spread = spread @ flow
        return _shares(_large(_shares(spread**inflation), threshold))

    # The walk may stay where it is, as readily as take the heaviest edge, whatever the unit of weights.
    heaviest = matrix.max(axis=1)
    loops = diag(loop_weight * where(heaviest > 0, heaviest, 1.0))
    weights = matrix.T * checked_sums(matrix.sum(axis=1), given, "markov_clustering")
    start = _shares(weights + loops)
    found = iterate(
        step,
        start,
        until=lambda old, new: abs(new - old).max() <= tolerance,
        max_iterations=max_iterations,
    )
    flow, taken = converging("markov_clustering", found)
    return Clusters(connected_components(flow).labels, flow, taken)


def _shares(flow: DistArray) -> DistArray:
    sums = flow.sum(axis=0)
    shares: DistArray = flow / where(sums > 0, sums, 1.0)
    return shares


def _large(flow: DistArray, threshold: float) -> DistArray:
    stays = (flow >= threshold) | (flow == flow.max(axis=0))
    return (flow * stays).eliminate_zeros()


def _check(expansion: int, inflation: float, loop_weight: float, threshold: float, tolerance: float) -> None:
    if expansion < 2:
        raise OptionError(f"markov_clustering: expansion={expansion}; give 2 or more")
    if not 1 < inflation < np.inf:
        raise OptionError(f"markov_clustering: inflation={inflation}; give a number above 1, but not inf")
    if not 0 <= loop_weight < np.inf:
        raise OptionError(f"markov_clustering: loop_weight={loop_weight}; give a finite number, 0 or more")
    if not 0 <= threshold < 1:
        raise OptionError(f"markov_clustering: threshold={threshold}; give 0 to 1")
    if not tolerance > 0:
        raise OptionError(f"markov_clustering: tolerance={tolerance}; give a number above 0")

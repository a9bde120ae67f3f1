"""Centralities that follow from their neighbors': eigenvector and Katz."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from matnb.errors import OptionError, ShapeError
from matnb.graph.arguments import check_tolerance, checked, graph_from, unit_of_weights
from matnb.graph.other_names import of_vertices
from matnb.graph.vertex_labels import named_by_vertices
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import asarray, full
from matnb.lazy.fields import has_fields
from matnb.lazy.functions.linear import norm
from matnb.lazy.functions.mapping import replicated
from matnb.lazy.loop import converging, iterate
from matnb.tables.results import shows


@shows("vertices", values="largest", iterations="iterations")
@partial(has_fields, ways=of_vertices("values"))
class Centrality(NamedTuple):
    """Centralities of the vertices, float64 of shape (n,), and the number of iterations taken."""

    values: DistArray
    iterations: DistArray


@named_by_vertices
def eigenvector_centrality(A: ArrayLike, tolerance: float = 1e-6, max_iterations: int = 100) -> Centrality:
    """Return the eigenvector centrality: each vertex's is proportional to the sum of its predecessors'.

    The eigenvector of the largest eigenvalue of A' (Bonacich 1987, "Power and Centrality: A Family of
    Measures"), by power iteration with A' + I, which converges on bipartite graphs too. Weights are
    multiplied by a power of 2, so that the largest is from 1 to 2.

    Parameters
    ----------
    A
        Sparse n x n matrix; ``A[i, j]`` is the nonnegative weight of the edge from i to j. NetworkX's default
        leaves weights out, which is ``A.pattern(float)``.
    tolerance
        Stop when an iteration changes the values by less than n times this, in the 1-norm.
    max_iterations
        Maximum number of iterations.

    Returns
    -------
    Centrality
        ``values`` of norm 1, and ``iterations``, int64, which is ``max_iterations`` if the tolerance was not
        reached.

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix.
    OptionError
        For a tolerance that is not above 0; when computed, for a weight that is negative, NaN or infinite.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> star = sp.csr_array([[0, 1, 1], [1, 0, 0], [1, 0, 0]])
    >>> mn.graph.eigenvector_centrality(star, tolerance=1e-9).values.compute().round(4)
    array([0.7071, 0.5   , 0.5   ])
    """
    matrix = graph_from(A, "eigenvector_centrality", by_weight=True)
    check_tolerance(tolerance, "eigenvector_centrality")
    n = matrix.shape[0]

    def step(x: DistArray) -> DistArray:
        y = x + matrix.T @ (unit * x)
        return y / norm(y)

    # In the unit of the largest weight, lest x outweigh what comes from neighbors, or that overflow.
    unit = unit_of_weights(matrix, "eigenvector_centrality")
    start = full(n, 1 / max(n, 1))
    found = iterate(step, start, until=is_settled(n * tolerance), max_iterations=max_iterations)
    return Centrality(*converging("eigenvector_centrality", found))


@named_by_vertices
def katz(
    A: ArrayLike,
    alpha: float = 0.1,
    beta: float | npt.ArrayLike | DistArray = 1.0,
    normalized: bool = True,
    tolerance: float = 1e-6,
    max_iterations: int = 1000,
) -> Centrality:
    """Return the Katz centrality of each vertex: the number of walks that end there, longer ones discounted.

    ``x = alpha A' x + beta`` (Katz 1953, "A New Status Index Derived from Sociometric Analysis"), which
    converges for alpha below 1 / (largest eigenvalue of A).

    Parameters
    ----------
    A
        Sparse n x n matrix; ``A[i, j]`` is the weight of the edge from i to j. NetworkX's default leaves
        weights out, which is ``A.pattern(float)``.
    alpha
        The discount per edge.
    beta
        The initial centrality of each vertex: a number, or n of them.
    normalized
        Scale the values to norm 1.
    tolerance, max_iterations
        As in :func:`eigenvector_centrality`.

    Returns
    -------
    Centrality
        ``values``, and ``iterations``, int64, which is ``max_iterations`` if the tolerance was not reached:
        with too large an alpha the values diverge.

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix, or a beta of another length.
    OptionError
        For a tolerance that is not above 0, or an alpha that is not finite; when computed, for a beta or a
        weight that is not finite.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> star = sp.csr_array([[0, 1, 1], [1, 0, 0], [1, 0, 0]])
    >>> mn.graph.katz(star, alpha=0.5, normalized=False, tolerance=1e-12).values.compute().round(6)
    array([4., 3., 3.])
    """
    matrix = graph_from(A, "katz", by_weight=True)
    check_tolerance(tolerance, "katz")
    if not np.isfinite(alpha):
        raise OptionError(f"katz: alpha={alpha}; give a finite number")
    n = matrix.shape[0]
    own = asarray(beta).astype(np.float64)
    if own.shape not in {(), (n,)}:
        raise ShapeError(
            f"katz: beta of shape {own.shape} for {n} vertices; give one number, or one for each vertex"
        )

    def step(x: DistArray) -> DistArray:
        new: DistArray = alpha * (matrix.T @ x) + own
        return new

    start = full(n, 0.0) * checked(1.0, matrix, "katz", "finite numbers")
    start = start * cast(DistArray, replicated(_check_beta, abs(own).max(), like=1.0)) if n else start
    iterated = iterate(step, start, until=is_settled(n * tolerance), max_iterations=max_iterations)
    remedy = "give a smaller alpha, or a larger max_iterations or tolerance"
    found, taken = converging("katz", iterated, remedy)
    return Centrality(found / norm(found) if normalized else found, taken)


def _check_beta(largest: np.floating) -> float:
    if not np.isfinite(largest):
        raise OptionError(f"katz: beta has the magnitude {float(largest)}; give finite numbers")
    return 1.0


def is_settled(limit: float) -> Callable[[DistArray, DistArray], object]:
    """Return a test for the end of a loop: no more than this is changed, in the 1-norm."""
    return lambda old, new: abs(new - old).sum() < limit

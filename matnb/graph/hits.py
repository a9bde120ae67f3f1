"""Hubs and authorities."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from matnb.graph.arguments import check_tolerance, graph_from, unit_of_weights
from matnb.graph.eigenvector import is_settled
from matnb.graph.other_names import of_vertices
from matnb.graph.vertex_labels import named_by_vertices
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import full
from matnb.lazy.fields import has_fields
from matnb.lazy.loop import converging, iterate
from matnb.tables.results import shows


@shows("vertices", hubs="largest", authorities="largest", iterations="iterations")
@partial(has_fields, ways=of_vertices("hubs"))
class HubsAuthorities(NamedTuple):
    """Result of :func:`hits`."""

    hubs: DistArray
    authorities: DistArray
    iterations: DistArray


@named_by_vertices
def hits(A: ArrayLike, tolerance: float = 1e-8, max_iterations: int = 100) -> HubsAuthorities:
    """Return the HITS scores: hubs link to good authorities, and authorities are linked from good hubs.

    Kleinberg 1999, "Authoritative Sources in a Hyperlinked Environment": authorities are A' times hubs, and
    hubs A times authorities, normalized, until convergence.

    Parameters
    ----------
    A
        Sparse n x n matrix; ``A[i, j]`` is the nonnegative weight of the edge from i to j.
    tolerance
        Stop when an iteration changes the hubs by less than this, in the 1-norm.
    max_iterations
        Maximum number of iterations.

    Returns
    -------
    HubsAuthorities
        ``hubs`` and ``authorities``, float64 of shape (n,), whose sums are 1, and ``iterations``.

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix.
    OptionError
        For a tolerance that is not above 0; when computed, for a weight that is negative, NaN or infinite,
        and for a graph in which no edge has a weight above 0, which has neither hubs nor authorities.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> hubs, authorities, _ = mn.graph.hits(sp.csr_array([[0, 1, 1], [0, 0, 1], [0, 0, 0]]))
    >>> hubs.compute().round(3), authorities.compute().round(3)
    (array([0.618, 0.382, 0.   ]), array([0.   , 0.382, 0.618]))
    """
    matrix = graph_from(A, "hits", by_weight=True)
    check_tolerance(tolerance, "hits")
    n = matrix.shape[0]

    def step(hubs: DistArray) -> DistArray:
        new = matrix @ (unit * (matrix.T @ (unit * hubs)))
        # Sums of hubs, not their largest, so that the result is the same scaled in whichever way.
        scaled: DistArray = new / new.sum()
        return scaled

    unit = unit_of_weights(matrix, "hits", needs_edges=True)
    start = full(n, 1 / max(n, 1))
    found = iterate(step, start, until=is_settled(tolerance), max_iterations=max_iterations)
    hubs, taken = converging("hits", found)
    authorities = matrix.T @ (unit * hubs)
    return HubsAuthorities(hubs, authorities / authorities.sum(), taken)

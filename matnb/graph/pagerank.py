"""PageRank by power iteration."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from matnb.errors import OptionError
from matnb.graph.arguments import Shares, check_real, checked_sums, graph_from, proportions
from matnb.graph.other_names import of_vertices
from matnb.graph.vertex_labels import named_by_vertices
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import full
from matnb.lazy.fields import has_fields
from matnb.lazy.functions.elementwise import where
from matnb.lazy.loop import converging, iterate
from matnb.tables.results import shows


@shows("vertices", ranks="largest", iterations="iterations")
@partial(has_fields, ways=of_vertices("ranks"))
class Ranking(NamedTuple):
    """Result of :func:`pagerank`."""

    ranks: DistArray
    iterations: DistArray


@named_by_vertices
def pagerank(
    A: ArrayLike,
    damping: float = 0.85,
    tolerance: float | None = 1e-8,
    max_iterations: int = 100,
    personalization: Shares | None = None,
    start: Shares | None = None,
) -> Ranking:
    """Return the PageRank of each vertex: the share of time a random surfer spends there.

    The surfer follows an outgoing edge, chosen in proportion to its weight, with probability ``damping``, and
    otherwise jumps to a random vertex; from a vertex without outgoing edges it always jumps (Page, Brin,
    Motwani and Winograd 1999, "The PageRank citation ranking").

    Parameters
    ----------
    A
        Sparse n x n matrix; ``A[i, j]`` is the nonnegative weight of the edge from i to j.
    damping
        From 0 to 1.
    tolerance
        Stop when an iteration changes the ranks by less than this, in the 1-norm. With None or 0, run
        ``max_iterations``.
    max_iterations
        Maximum number of iterations.
    personalization
        The distribution of jumps, n numbers in proportion to it, none negative and not all 0; by default
        uniform. Or a dict of those of some vertices, by their labels, or by the numbers of rows where the
        graph has no labels; the others have 0.
    start
        Initial ranks, n numbers in proportion to them, as for ``personalization``; by default uniform.

    Returns
    -------
    Ranking
        ``ranks``, float64 of shape (n,), with sum 1, and ``iterations``, int64, which is ``max_iterations``
        if the tolerance was not reached.

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix, complex weights, or vectors of another length.
    IndexingError
        For a vertex of a dict that the graph does not have.
    OptionError
        For a damping outside 0 to 1, or a negative tolerance; for ``personalization`` or ``start`` with a
        number that is negative, NaN or infinite, or all 0; when computed, for a weight that is negative, NaN
        or infinite, and weights whose sum at a vertex is outside 1e-300 to 1e300.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> star = sp.csr_array([[0, 0, 0], [1, 0, 0], [1, 0, 0]])
    >>> ranks, _ = mn.graph.pagerank(star)
    >>> ranks.compute().round(3)
    array([0.574, 0.213, 0.213])
    """
    matrix = graph_from(A, "pagerank", by_weight=True)
    check_real(matrix, "pagerank")
    if not 0 <= damping <= 1:
        raise OptionError(f"pagerank: damping={damping} is a probability; give 0 to 1")
    if tolerance is not None and not tolerance >= 0:
        raise OptionError(f"pagerank: tolerance={tolerance}; give a number above 0, or None")
    n = matrix.shape[0]
    even = 1 / max(n, 1)
    x = full(n, even) if start is None else proportions(start, n, "pagerank", "start", A)
    jump: float | DistArray = even
    if personalization is not None:
        jump = proportions(personalization, n, "pagerank", "personalization", A)

    # x' = d A' D^-1 x + (d (sum of x over the vertices without edges) + 1 - d) jump,  D the sums of the rows
    out = matrix.sum(axis=1, dtype=np.float64)  # whole numbers would wrap
    x = x * checked_sums(out, matrix, "pagerank")
    dangling = out == 0
    share = where(dangling, 0.0, damping / out)

    def step(x: DistArray) -> DistArray:
        new: DistArray = matrix.T @ (share * x) + (damping * (dangling * x).sum() + (1 - damping)) * jump
        return new

    def is_settled(old: DistArray, new: DistArray) -> object:
        return abs(new - old).sum() < tolerance

    found = iterate(step, x, until=is_settled if tolerance else None, max_iterations=max_iterations)
    return Ranking(*(converging("pagerank", found) if tolerance else found))

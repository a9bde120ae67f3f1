"""Betweenness centrality: Brandes' algorithm for many sources at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from matnb.errors import OptionError
from matnb.graph.arguments import graph_from, vertex_from
from matnb.lazy.array import DistArray
from matnb.lazy.creation import arange, asarray, zeros
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.grouping import scatter_reduce
from matnb.lazy.functions.linear import matmul
from matnb.lazy.loop import iterate, iteration

Matrices = tuple[DistArray, DistArray, DistArray]


def betweenness(
    A: object,
    sources: int | Sequence[int] | npt.NDArray[np.integer] | None = None,
    normalized: bool = True,
    directed: bool = True,
    batch: int = 32,
    seed: int = 0,
) -> DistArray:
    """Return for each vertex the shortest ways between others that lead over it.

    Brandes 2001, "A Faster Algorithm for Betweenness Centrality": of ``number`` shortest ways from s to t,
    a vertex is given the share that leads over it, summed over all pairs. Weights are not looked at.

    Parameters
    ----------
    A
        Sparse n x n matrix; a stored ``A[i, j]`` is an edge from i to j, whatever its value.
    sources
        Vertices where the ways begin; all when left out. A number k stands for k vertices drawn with
        ``seed``, from which the result is estimated: times n - 1 over how many of them are other vertices.
    normalized
        Divide by the number of pairs of other vertices, as NetworkX does.
    directed
        False when the edges of A go both ways, so that every way is found twice: halves what is not
        normalized.
    batch
        Sources taken at once: the work needs a handful of dense n x batch matrices.
    seed
        Of the draw of sources.

    Returns
    -------
    DistArray
        float64 of shape (n,).

    Raises
    ------
    DTypeError, ShapeError
        For what is no sparse square matrix.
    IndexingError
        For a source that is no vertex.
    OptionError
        For a batch below 1, or more sources to draw than there are vertices.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> path = sp.csr_array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> mn.graph.betweenness(path, directed=False).compute()
    array([0., 1., 0.])
    """
    matrix = graph_from(A, "betweenness")
    n = matrix.shape[0]
    chosen = _chosen(sources, n, seed)
    if batch < 1:
        raise OptionError(f"betweenness: batch={batch}; give 1 or more")
    batch = max(1, min(batch, len(chosen)))
    # The last batch is filled up with -1: a source that no vertex is, from where no way begins.
    batches = np.full((-(-len(chosen) // batch), batch), -1)
    batches.flat[: len(chosen)] = chosen
    vertices = arange(n)
    edges = matrix.pattern(np.float64)

    def outward(state: Matrices) -> Matrices:
        newest, num_ways, depth = state
        # s'[w] = sum of s[v] over the edges (v, w), where w was not reached before
        newest = matmul(edges.T, newest, mask=depth < 0)
        return newest, num_ways + newest, where(newest > 0, (iteration() + 1).astype(np.int32), depth)

    def add_batch(total: DistArray, begins: DistArray) -> DistArray:
        at_source = vertices[:, None] == begins
        start = (
            at_source.astype(np.float64),
            at_source.astype(np.float64),
            where(at_source, np.int32(0), np.int32(-1)),
        )
        (_, num_ways, depth), rounds = iterate(
            outward, start, until=lambda old, new: ~(new[0] > 0).any(), max_iterations=n
        )

        def inward(dependency: DistArray) -> DistArray:
            # delta[v] = s[v] times the sum of (1 + delta[w]) / s[w] over the edges (v, w) to the next depth
            next_depth = (rounds - 1 - iteration()).astype(np.int32)
            shares = where(depth == next_depth, (1 + dependency) / num_ways, 0.0)
            before = depth == next_depth - 1
            return where(before, num_ways * matmul(edges, shares, mask=before), dependency)

        # The last round outward found nothing, and what depends on the sources themselves is not counted.
        dependency, _ = iterate(inward, zeros((n, batch)), max_iterations=np.maximum(rounds - 2, 0))
        total += dependency.sum(axis=1)
        return total

    total, _ = iterate(add_batch, zeros(n), over=asarray(batches), max_iterations=len(batches))
    pairs = max(1, (n - 1) * (n - 2)) if normalized else 1 if directed else 2
    if isinstance(sources, int | np.integer):
        # No way from a vertex counts for itself, so for a drawn one there is a source less than for others.
        others = len(chosen) - scatter_reduce(np.ones(len(chosen)), chosen, n)
        total *= (n - 1) / np.maximum(others, 1)
    total /= pairs
    return total


def _chosen(sources: object, n: int, seed: int) -> npt.NDArray[np.int64]:
    if sources is None:
        return np.arange(n)
    if isinstance(sources, int | np.integer):
        if not 0 < sources <= n:
            raise OptionError(f"betweenness from {sources} vertices of a graph of {n}: give 1 to {n}")
        return np.random.default_rng(seed).choice(n, int(sources), replace=False)
    vertices = np.asarray(sources).ravel().tolist()
    return np.array([vertex_from(vertex, n, "betweenness") for vertex in vertices], np.int64)

"""PageRank, searches, shortest ways and betweenness in GraphBLAS, as LAGraph has them and otherwise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from graphblas import Matrix, Vector, binary, monoid, semiring, unary

from harness import graphblas_peer


class PageRank:
    """Twenty or so iterations from given ranks, in several writings of which the fastest counts.

    Parameters
    ----------
    incoming
        A.T, without values that count.
    degrees
        The number of edges out of each vertex.
    damping, iterations
        As everywhere.
    """

    def __init__(self, incoming: sp.csr_array, degrees: np.ndarray, damping: float, iterations: int) -> None:
        self._length = n = len(degrees)
        self._damping, self._iterations = damping, iterations
        # d(max) / degree is what LAGraph divides by; a vertex without edges is nobody's neighbor.
        self._divisor = graphblas_peer.vector(np.maximum(degrees, 1) / damping)
        self._share = graphblas_peer.vector(damping / np.maximum(degrees, 1))
        self._lost = Vector.from_coo(np.flatnonzero(degrees == 0), 1.0, size=n)
        self._lost_dense = graphblas_peer.vector((degrees == 0).astype(float))
        self._pattern = graphblas_peer.pattern(incoming)
        scaled = sp.csr_array(incoming, dtype=float)
        scaled.data = (damping / np.maximum(degrees, 1))[incoming.indices]
        self._scaled = graphblas_peer.matrix(scaled)

    def _jump(self, lost: float) -> float:
        return (1 - self._damping + self._damping * lost) / self._length

    def lagraph(self, given: np.ndarray) -> np.ndarray:
        """Run LAGr_PageRank's steps (LAGraph 1.1), without its test for the end."""
        rank, old = graphblas_peer.vector(given), Vector(float, self._length)
        weight, ends = Vector(float, self._length), Vector(float, self._length)
        for _ in range(self._iterations):
            ends.clear()
            ends(self._lost.S) << rank
            jump = self._jump(ends.reduce(monoid.plus).new().value or 0.0)
            rank, old = old, rank
            weight << old.ewise_mult(self._divisor, binary.truediv)
            rank[:] = jump
            rank(binary.plus) << semiring.plus_second(self._pattern @ weight)
        return rank.to_dense()

    def lost_by_product(self, given: np.ndarray) -> np.ndarray:
        """Take what vertices without edges lose as an inner product of two full vectors."""
        rank, weight = graphblas_peer.vector(given), Vector(float, self._length)
        for _ in range(self._iterations):
            jump = self._jump(self._lost_dense.inner(rank, semiring.plus_times).new().value)
            weight << rank.ewise_mult(self._share, binary.times)
            rank[:] = jump
            rank(binary.plus) << semiring.plus_second(self._pattern @ weight)
        return rank.to_dense()

    def lost_by_sparse_product(self, given: np.ndarray) -> np.ndarray:
        """Take it over those vertices alone."""
        rank, weight = graphblas_peer.vector(given), Vector(float, self._length)
        for _ in range(self._iterations):
            jump = self._jump(self._lost.inner(rank, semiring.plus_times).new().value or 0.0)
            weight << rank.ewise_mult(self._share, binary.times)
            rank[:] = jump
            rank(binary.plus) << semiring.plus_second(self._pattern @ weight)
        return rank.to_dense()

    def scaled(self, given: np.ndarray) -> np.ndarray:
        """Keep the shares in the matrix, so that a pass over vectors is spared and more is read."""
        rank, new = graphblas_peer.vector(given), Vector(float, self._length)
        for _ in range(self._iterations):
            new[:] = self._jump(self._lost_dense.inner(rank, semiring.plus_times).new().value)
            new(binary.plus) << semiring.plus_times(self._scaled @ rank)
            rank, new = new, rank
        return rank.to_dense()


class Search:
    """Breadth-first search that pushes or pulls, as LAGr_BreadthFirstSearch of LAGraph 1.1 decides.

    Parameters
    ----------
    graph, incoming
        A and A.T, both stored as LAGraph asks for.
    """

    _ALPHA, _BETA = 8.0, 512.0

    def __init__(self, graph: sp.csr_array, incoming: sp.csr_array) -> None:
        self._out, self._in = (graphblas_peer.pattern(one, bool) for one in (graph, incoming))
        self._degrees = graphblas_peer.vector(np.diff(graph.indptr).astype(np.int64))

    def levels(self, source: int, parents: bool = False) -> np.ndarray:
        """Return the level of each vertex, -1 where there is no way; with ``parents`` find those too."""
        n, kind = self._out.nrows, np.int32 if parents else bool
        ring = semiring.any_secondi if parents else semiring.any_pair
        level = Vector(np.int32, n)
        before = Vector(np.int32, n)
        level[source] = 0
        before[source] = source
        frontier = Vector(kind, n)
        frontier[source] = source if parents else True
        size, last, unexplored = 1, 0, float(self._out.nvals)
        push, depth = True, 0
        seen = before if parents else level
        while size:
            if push and unexplored >= n:
                edges = self._degrees.dup(mask=frontier.S).reduce(monoid.plus).new().value or 0
                unexplored -= edges
                push = size <= last or edges <= unexplored / self._ALPHA
            elif not push and size < last:
                push = size <= n / self._BETA
            product = ring(frontier @ self._out) if push else ring(self._in @ frontier)
            frontier(~seen.S, replace=True) << product
            depth += 1
            last, size = size, frontier.nvals
            if parents:
                before(frontier.S) << frontier
            level(frontier.S)[:] = depth
        return level.to_dense(fill_value=-1)


class ShortestWays:
    """The lengths of shortest ways, in two methods of which the faster counts.

    Parameters
    ----------
    graph
        With whole numbers as weights.
    delta
        Buckets of distances in delta stepping are so wide; edges above it are taken once a bucket.
    """

    def __init__(self, graph: sp.csr_array, delta: int) -> None:
        self._weights = Matrix.from_csr(
            graph.indptr, graph.indices, graph.data.astype(np.int32), ncols=graph.shape[1]
        )
        self._delta = delta

    def bellman_ford(self, source: int) -> np.ndarray:
        """Go on from the vertices whose distance the round before made shorter."""
        n = self._weights.nrows
        distance = Vector.from_scalar(np.iinfo(np.int32).max, n, dtype=np.int32)
        distance[source] = 0
        frontier = Vector(np.int32, n)
        frontier[source] = 0
        nearer = Vector(bool, n)
        while frontier.nvals:
            reached = semiring.min_plus(frontier @ self._weights).new()
            nearer << reached.ewise_mult(distance, binary.lt)
            frontier.clear()
            frontier(nearer.V) << reached
            distance(frontier.S) << frontier
        return _distances(distance)

    def delta_stepping(self, source: int) -> np.ndarray:
        """Run LAGr_SingleSourceShortestPath's steps (LAGraph 1.1): a bucket at a time."""
        n, delta = self._weights.nrows, self._delta
        distance = Vector.from_scalar(np.iinfo(np.int32).max, n, dtype=np.int32)
        distance[source] = 0
        reached = Vector(bool, n)
        reached[source] = True
        nearer = Vector(bool, n)
        first, bucket = 0, Vector(np.int32, n)
        bucket[source] = 0
        while True:
            top = first + delta
            while bucket.nvals:
                found = semiring.min_plus(bucket @ self._weights).new()
                reached(bucket.S) << False
                nearer << found.ewise_mult(distance, binary.lt)
                fresh = found.dup(mask=nearer.V)
                distance(fresh.S) << fresh
                reached(fresh.S) << True
                bucket << fresh.select("<", top)
            waiting = distance.dup(mask=reached.V)
            if not waiting.nvals:
                return _distances(distance)
            first = int(waiting.reduce(monoid.min).new().value) // delta * delta
            bucket << waiting.select("<", first + delta)


def _distances(found: Vector) -> np.ndarray:
    lengths = found.to_dense().astype(float)
    lengths[lengths == np.iinfo(np.int32).max] = np.inf
    return lengths


class Betweenness:
    """Brandes' sums over some sources at once, by the steps of LAGr_Betweenness (LAGraph 1.1).

    Parameters
    ----------
    graph, incoming
        A and A.T, both stored as LAGraph asks for.
    """

    _PULL, _GO_ON_PULLING = 0.10, 0.06  # the part of all places that the frontier fills

    def __init__(self, graph: sp.csr_array, incoming: sp.csr_array) -> None:
        self._out, self._in = (graphblas_peer.pattern(one) for one in (graph, incoming))

    def centrality(self, sources: Sequence[int]) -> np.ndarray:
        """Return for each vertex the parts of shortest ways from the sources that lead over it."""
        num, n = len(sources), self._out.nrows
        ways = Matrix.from_coo(range(num), sources, 1.0, nrows=num, ncols=n)
        frontier = Matrix(float, num, n)
        frontier(~ways.S, replace=True) << semiring.plus_first(ways @ self._out)
        levels: list[Matrix] = []
        pulled = False
        while frontier.nvals:
            levels.append(unary.one(frontier).new(bool))
            ways(binary.plus) << frontier
            density = frontier.nvals / (num * n)
            pulled = density > (self._GO_ON_PULLING if pulled else self._PULL)
            out = self._in.T if pulled else self._out
            frontier.ss.config["sparsity_control"] = "bitmap" if pulled else "sparse"
            frontier(~ways.S, replace=True) << semiring.plus_first(frontier @ out)
        total = Matrix(float, num, n)
        total[:, :] = 1.0
        shares = Matrix(float, num, n)
        for depth in range(len(levels) - 1, 0, -1):
            shares(levels[depth].S, replace=True) << total.ewise_mult(ways, binary.truediv)
            density = levels[depth].nvals / (num * n)
            pulls = density > self._PULL
            back = self._out.T if pulls else self._in
            shares.ss.config["sparsity_control"] = "bitmap" if pulls else "sparse"
            shares(levels[depth - 1].S, replace=True) << semiring.plus_first(shares @ back)
            total(binary.plus) << shares.ewise_mult(ways, binary.times)
        return total.reduce_columnwise(monoid.plus).new().to_dense(0.0) - num

"""Betweenness from four sources, against GraphBLAS as LAGraph writes it, and a loop in Numba."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import scipy.sparse as sp
from harness.comparison import Bench, Claim, Contender
from harness.graphblas_loops import Betweenness
from harness.inputs import THREADS, rmat, side_by_side
from harness.sessions import public
from harness.threads import by_threads, graphblas_threads

import matnb as mn

TARGETS = {20: 0.75, 16: 1.2}  # of the seconds of GraphBLAS
SMALL_SCALE = 10
SOURCES = 4


@numba.njit(nogil=True)
def _from_one(pointers: np.ndarray, columns: np.ndarray, source: int) -> np.ndarray:
    # Brandes 2001: the ways are counted from near to far, and what depends on a vertex from far to near.
    n = len(pointers) - 1
    depth = np.full(n, -1, np.int32)
    ways, depends = np.zeros(n), np.zeros(n)
    order = np.empty(n, np.int32)
    depth[source], ways[source], order[0] = 0, 1.0, source
    begin, end = 0, 1
    while begin < end:
        vertex = order[begin]
        begin += 1
        for place in range(pointers[vertex], pointers[vertex + 1]):
            other = columns[place]
            if depth[other] < 0:
                depth[other] = depth[vertex] + 1
                order[end] = other
                end += 1
            if depth[other] == depth[vertex] + 1:
                ways[other] += ways[vertex]
    for at in range(end - 1, 0, -1):
        vertex = order[at]
        total = 0.0
        for place in range(pointers[vertex], pointers[vertex + 1]):
            other = columns[place]
            if depth[other] == depth[vertex] + 1:
                total += (1.0 + depends[other]) / ways[other]
        depends[vertex] = total * ways[vertex]
    return depends


def by_hand(graph: sp.csr_array, threads: int, pool: ThreadPoolExecutor) -> Contender:
    """Return one search for each source, so many at a time."""

    def search(source: int) -> np.ndarray:
        return _from_one(graph.indptr, graph.indices, source)

    def run(sources: list[int]) -> np.ndarray:
        searches = side_by_side(pool, search, sources) if threads > 1 else list(map(search, sources))
        return np.sum(searches, axis=0)

    name = f"Numba, a loop for each source, {threads} thread{'s' * (threads > 1)}"
    return Contender(name, run, lambda number: sources_of(graph, number), judged=False)


def sources_of(graph: sp.csr_array, number: int) -> list[int]:
    """Return four vertices with edges, others for each round."""
    able = np.flatnonzero(np.diff(graph.indptr))
    return [int(one) for one in np.random.default_rng(number).choice(able, SOURCES, replace=False)]


def compare(bench: Bench, scale: int, target: float, pool: ThreadPoolExecutor) -> None:
    graph = rmat(scale)
    A = mn.random.rmat(scale=scale, seed=1).persist()
    peer = Betweenness(graph, sp.csr_array(graph.T))
    ours, call = public(
        lambda sources: mn.graph.betweenness(A, sources, normalized=False).compute(),
        lambda number: sources_of(graph, number),
    )
    graphblas = Contender("GraphBLAS, as LAGraph", peer.centrality, lambda number: sources_of(graph, number))
    bench.compare(
        Claim(
            f"betweenness, {SOURCES} sources, 2^{scale}",
            f"parts of shortest ways from {SOURCES} vertices with edges, others in each round, R-MAT "
            f"2^{scale}, {graph.nnz:,} entries; A stored, for GraphBLAS A.T too",
            target,
        ),
        [
            ours,
            *by_threads(graphblas, graphblas_threads),
            *(by_hand(graph, threads, pool) for threads in (1, THREADS)),
        ],
        call.notes,
    )


def main() -> None:
    bench = Bench(__doc__)
    with mn.start(threads=THREADS), ThreadPoolExecutor(THREADS) as pool:
        for scale, target in TARGETS.items():
            compare(bench, bench.sized(scale, SMALL_SCALE), target, pool)


if __name__ == "__main__":
    main()

"""Breadth-first search and shortest ways from one vertex, against GraphBLAS and SciPy."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from harness.comparison import Bench, Claim, Contender
from harness.graphblas_loops import Search, ShortestWays
from harness.inputs import THREADS, rmat
from harness.loops import LoopWatch
from harness.sessions import public
from harness.threads import by_threads, graphblas_threads
from scipy.sparse import csgraph

import matnb as mn

SCALE = 20
SOURCE = 0
SEARCH_TARGET, WAYS_TARGET = 1.0, 0.75
WIDTHS = (32, 64, 128, 256)  # of the buckets of delta stepping: the best counts


def weighted(graph: sp.csr_array) -> sp.csr_array:
    """Return the graph with whole numbers from 1 to 255 as weights."""
    weights = np.random.default_rng(2).integers(1, 256, graph.nnz).astype(float)
    return sp.csr_array((weights, graph.indices, graph.indptr), shape=graph.shape)


def search(bench: Bench, graph: sp.csr_array) -> None:
    A = mn.random.rmat(scale=SCALE, seed=1).persist()
    watch = LoopWatch()
    ours, call = public(lambda _: mn.graph.bfs(A, SOURCE).levels.compute())
    peer = Search(graph, sp.csr_array(graph.T))
    bench.compare(
        Claim(
            f"BFS, 2^{SCALE}",
            f"levels from vertex {SOURCE}, R-MAT 2^{SCALE}, {graph.nnz:,} entries; A stored, for GraphBLAS "
            "A.T too",
            SEARCH_TARGET,
        ),
        [
            ours,
            *by_threads(
                Contender("GraphBLAS, push and pull, levels", lambda _: peer.levels(SOURCE)),
                graphblas_threads,
            ),
            Contender(
                "GraphBLAS, levels and parents", lambda _: peer.levels(SOURCE, parents=True), judged=False
            ),
        ],
        lambda: (*call.notes(), *watch.notes(1)),
    )


def shortest_ways(bench: Bench, graph: sp.csr_array) -> None:
    weights = weighted(graph)
    A = mn.asarray(weights).persist()
    watch = LoopWatch()
    ours, call = public(lambda _: mn.graph.sssp(A, SOURCE).compute())
    steppers = {width: ShortestWays(weights, width) for width in WIDTHS}
    bench.compare(
        Claim(
            f"SSSP, 2^{SCALE}",
            f"lengths of shortest ways from vertex {SOURCE}, R-MAT 2^{SCALE}, {graph.nnz:,} entries, weights "
            "1 to 255",
            WAYS_TARGET,
        ),
        [
            ours,
            *by_threads(
                Contender("GraphBLAS, Bellman-Ford", lambda _: steppers[WIDTHS[0]].bellman_ford(SOURCE)),
                graphblas_threads,
            ),
            *(
                Contender(
                    f"GraphBLAS, delta stepping by {width}", lambda _, one=one: one.delta_stepping(SOURCE)
                )
                for width, one in steppers.items()
            ),
            Contender("SciPy, dijkstra", lambda _: csgraph.dijkstra(weights, indices=SOURCE)),
        ],
        lambda: (*call.notes(), *watch.notes(1)),
    )


def main() -> None:
    bench = Bench(__doc__)
    with mn.start(threads=THREADS):
        graph = rmat(SCALE)
        search(bench, graph)
        shortest_ways(bench, graph)


if __name__ == "__main__":
    main()

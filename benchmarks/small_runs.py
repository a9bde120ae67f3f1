"""What runs on small arrays cost: a sum, twenty operations, loops of one iteration, searches, two processes.

Every call gets arrays of its own, whose values no memo has seen, and nobody listens to events, so that matnb
records no more than a user's cell makes it record. Peers do the same calls on the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from harness.cells import TURNS, asking_loop, run_warm_cell, twenty_operations
from harness.comparison import OURS, Bench, Claim, Contender
from harness.graphblas_loops import Search
from harness.inputs import THREADS, rmat
from harness.threads import by_threads, graphblas_threads

import matnb as mn

LENGTH, LONGER = 1000, 100_000
SIDE = 32
CALLS = 20  # timed together
# Seconds that one call may take
SUM_LIMIT, CELL_LIMIT, LOOP_LIMIT, TURN_LIMIT, SEARCH_LIMIT = 0.3e-3, 1.5e-3, 1.01e-3, 1e-3, 1.5e-3
PROCESSES_LIMIT = 3e-3
SMALL_SCALE, SCALE, SEARCH_TARGET = 10, 16, 1.5
Given = tuple[np.ndarray, ...]


def values(number: int, *shapes: tuple[int, ...]) -> list[Given]:
    """Return the arrays of each call of a round."""
    rng = np.random.default_rng(number)
    return [tuple(rng.random(shape) for shape in shapes) for _ in range(CALLS)]


def stored(calls: Sequence[Given], blocks: int | None = None) -> list[list[mn.DistArray]]:
    """Return the arrays on the workers."""
    mn.memo.clear()
    return [[mn.asarray(one, blocks=blocks).persist() for one in given] for given in calls]


def each(work: Callable[..., Any]) -> Callable[[Sequence[Sequence[Any]]], np.ndarray]:
    """Return what does the work for every call of a round."""
    return lambda calls: np.array([work(*given) for given in calls])


def compare_work(
    bench: Bench,
    claim: Claim,
    limit: float,
    ours: Callable[..., Any],
    numpy: Callable[..., Any],
    *shapes: tuple[int, ...],
    blocks: int | None = None,
) -> None:
    """Time one kind of call on arrays of these shapes."""
    contenders = [
        Contender(OURS, each(ours), lambda number: stored(values(number, *shapes), blocks)),
        Contender("NumPy", each(numpy), lambda number: values(number, *shapes), judged=False),
    ]
    bench.compare(claim, contenders, calls=CALLS, limit=limit)


def one_iteration(x: mn.DistArray) -> np.ndarray:
    """Run a loop call of one iteration."""
    final, _ = mn.iterate(lambda state: state * 0.5 + 1.0, x, max_iterations=1)
    return final.compute()


def compare_asking(bench: Bench, length: int) -> None:
    work = f"{TURNS} turns of four operations on {length:,} numbers, each asking for a number; one turn"

    def vector(number: int) -> np.ndarray:
        return np.random.default_rng(number).random(length)

    def on_workers(number: int) -> mn.DistArray:
        mn.memo.clear()
        return mn.asarray(vector(number)).persist()

    bench.compare(
        Claim(f"a turn of a Python loop that asks, {length:,} numbers", work, 1.0),
        [Contender(OURS, asking_loop, on_workers), Contender("NumPy", asking_loop, vector, judged=False)],
        calls=TURNS,
        limit=TURN_LIMIT,
    )


def sources(graph: sp.csr_array, number: int) -> list[int]:
    """Return vertices with edges, others for each round."""
    able = np.flatnonzero(np.diff(graph.indptr))
    return [int(one) for one in np.random.default_rng(number).choice(able, CALLS, replace=False)]


def compare_search(bench: Bench, scale: int, target: float, limit: float | None = None) -> None:
    graph = rmat(scale)
    A = mn.random.rmat(scale=scale, seed=1).persist()
    peer = Search(graph, sp.csr_array(graph.T))
    mn.graph.bfs(A, 0).levels.compute()  # as GraphBLAS is given the transpose, too

    def fresh(number: int) -> list[int]:
        mn.memo.clear()
        return sources(graph, number)

    ours = Contender(
        OURS, lambda given: np.array([mn.graph.bfs(A, one).levels.compute() for one in given]), fresh
    )
    theirs = Contender(
        "GraphBLAS, push and pull, levels",
        lambda given: np.array([peer.levels(one) for one in given]),
        lambda number: sources(graph, number),
    )
    bench.compare(
        Claim(
            f"a small BFS, 2^{scale}",
            f"levels from a vertex with edges, R-MAT 2^{scale}, {graph.nnz:,} entries; A stored, for "
            "GraphBLAS A.T too",
            target,
        ),
        [ours, *by_threads(theirs, graphblas_threads)],
        calls=CALLS,
        limit=limit,
    )


def compare_processes(bench: Bench) -> None:
    def total(x: Any) -> float:
        return float((x * 2.0 + 1.0).sum())

    with mn.start(workers=2, threads=1, processes=True):
        compare_work(
            bench,
            Claim(
                "a plain run over two processes",
                f"float((x * 2 + 1).sum()) of {LENGTH:,} doubles in 2 blocks, one in each of two processes",
                1.0,
            ),
            PROCESSES_LIMIT,
            total,
            total,
            (LENGTH,),
            blocks=2,
        )


def compare_here(bench: Bench) -> None:
    compare_work(
        bench,
        Claim("a small sum", f"float(x.sum()) of {LENGTH:,} doubles", 1.0),
        SUM_LIMIT,
        lambda x: float(x.sum()),
        lambda x: float(x.sum()),
        (LENGTH,),
    )
    compare_work(
        bench,
        Claim("a cell of twenty small operations", f"twenty operations on {SIDE} x {SIDE} arrays", 1.0),
        CELL_LIMIT,
        lambda a, b: run_warm_cell((a, b)),
        lambda a, b: float(twenty_operations(a, b)),
        (SIDE, SIDE),
        (SIDE, SIDE),
    )
    compare_work(
        bench,
        Claim(
            "a loop call of one iteration",
            f"iterate of x * 0.5 + 1 once on {LENGTH:,} doubles; the limit is 1 ms and 10 us for its task",
            1.0,
        ),
        LOOP_LIMIT,
        one_iteration,
        lambda x: x * 0.5 + 1.0,
        (LENGTH,),
    )


def main() -> None:
    bench = Bench(__doc__)
    with mn.start(threads=THREADS):
        compare_here(bench)
        for length in (LENGTH, LONGER):
            compare_asking(bench, length)
        compare_search(bench, SMALL_SCALE, 1.0, SEARCH_LIMIT)
        compare_search(bench, bench.sized(SCALE, SMALL_SCALE + 1), SEARCH_TARGET)
    compare_processes(bench)


if __name__ == "__main__":
    main()

"""Twenty iterations of PageRank as a Python loop, against the same loop elsewhere and libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dask.array as da
import igraph
import numpy as np
import scipy.sparse as sp
from harness.comparison import Bench, Claim, Contender
from harness.dask_peer import Scheduler, product, schedulers, sparse_rows
from harness.inputs import THREADS, rmat
from harness.sessions import public
from sknetwork.ranking import PageRank

import matnb as mn

SCALE = 18
ITERATIONS = 20
DAMPING = 0.85


def iterated(incoming: Any, share: Any, dangling: Any, rank: Any, multiply: Any) -> Any:
    """Return the ranks after the iterations.

    Parameters
    ----------
    incoming
        A.T, stored.
    share, dangling
        1 / out-degree, or 0; and 1 where no edge goes out.
    rank
        Where to start.
    multiply
        The product of a matrix and a vector.
    """
    length = 2**SCALE
    for _ in range(ITERATIONS):
        lost = (rank * dangling).sum() / length
        rank = DAMPING * (multiply(incoming, rank * share) + lost) + (1 - DAMPING) / length
    return rank


def dask_contender(incoming: sp.csr_array, vectors: Sequence[np.ndarray], scheduler: Scheduler) -> Contender:
    """Return dask.array, with the matrix and the vectors there already."""
    rows = sparse_rows(incoming, scheduler)
    cuts = rows.chunks[:1]
    share, dangling = (scheduler.persist(da.from_array(one, chunks=cuts)) for one in vectors)

    def multiply(matrix: da.Array, vector: da.Array) -> da.Array:
        return product(matrix, vector.rechunk(-1))

    def start(number: int) -> da.Array:
        return scheduler.persist(da.from_array(start_rank(number), chunks=cuts))

    return Contender(
        scheduler.name,
        lambda rank: scheduler.compute(iterated(rows, share, dangling, rank, multiply)),
        start,
        judged=False,
    )


def start_rank(number: int) -> np.ndarray:
    """Return equal ranks, which differ from round to round by less than results are compared with."""
    return np.full(2**SCALE, (1 + number * 1e-15) / 2**SCALE)


def compare(bench: Bench, dask_schedulers: Sequence[Scheduler]) -> None:
    graph = rmat(SCALE)
    degrees = np.diff(graph.indptr)
    share = np.divide(1.0, degrees, out=np.zeros(len(degrees)), where=degrees > 0)
    dangling = (degrees == 0).astype(float)
    incoming = sp.csr_array(graph.T)

    A = mn.random.rmat(scale=SCALE, seed=1)
    stored = A.T.persist()
    ours_share, ours_dangling = (mn.asarray(one).persist() for one in (share, dangling))
    ours, call = public(
        lambda rank: iterated(stored, ours_share, ours_dangling, rank, mn.matmul).compute(),
        lambda number: mn.asarray(start_rank(number)).persist(),
    )
    library = PageRank(DAMPING, solver="piteration", n_iter=ITERATIONS, tol=0)
    matrix = sp.csr_matrix(graph)  # it takes no sparse array
    edges = igraph.Graph(n=2**SCALE, edges=np.column_stack(graph.nonzero()), directed=True)
    contenders = [
        ours,
        Contender(
            "SciPy, the same loop, 1 thread",
            lambda rank: iterated(incoming, share, dangling, rank, sp.csr_array.__matmul__),
            start_rank,
        ),
        # It spreads what dangling vertices lose in another way, so its ranks are not compared.
        Contender("scikit-network", lambda _: library.fit_predict(matrix), judged=False, tolerance=None),
        Contender(
            "igraph, to its end", lambda _: edges.pagerank(damping=DAMPING), judged=False, tolerance=0.1
        ),
        *(dask_contender(incoming, (share, dangling), one) for one in dask_schedulers),
    ]
    bench.compare(
        Claim(
            "PageRank as a Python loop",
            f"{ITERATIONS} iterations recorded in a Python loop, then compute(), R-MAT 2^{SCALE}, "
            f"{graph.nnz:,} entries, A.T stored",
        ),
        contenders,
        call.notes,
    )


def main() -> None:
    bench = Bench(__doc__)
    with mn.start(threads=THREADS), schedulers() as both:
        compare(bench, both)


if __name__ == "__main__":
    main()

"""A @ x as a user writes it, against dask.array over SciPy blocks."""

from __future__ import annotations

from collections.abc import Sequence

import dask.array as da
import numpy as np
import scipy.sparse as sp
from harness.comparison import Bench, Claim, Contender
from harness.dask_peer import Scheduler, product, schedulers, sparse_rows
from harness.inputs import THREADS, rmat
from harness.sessions import public

import matnb as mn

SCALE = 20


def vector(number: int) -> np.ndarray:
    """Return the values of a round."""
    return np.random.default_rng(number).random(2**SCALE)


def dask_contender(graph: sp.csr_array, scheduler: Scheduler) -> Contender:
    """Return dask.array, with the matrix and the vector there already."""
    rows = sparse_rows(graph, scheduler)
    return Contender(
        scheduler.name,
        lambda x: scheduler.compute(product(rows, x)),
        lambda number: scheduler.persist(da.from_array(vector(number), chunks=-1)),
    )


def compare(bench: Bench, dask_schedulers: Sequence[Scheduler]) -> None:
    graph = rmat(SCALE)
    A = mn.random.rmat(scale=SCALE, seed=1).persist()
    ours, call = public(lambda x: (A @ x).compute(), lambda number: mn.asarray(vector(number)).persist())
    scipy = Contender("SciPy, 1 thread", lambda x: graph @ x, vector, judged=False)
    bench.compare(
        Claim(
            "A @ x, public call",
            f"(A @ x).compute() on persisted A and x, R-MAT 2^{SCALE}, {graph.nnz:,} entries",
            0.25,
        ),
        [ours, *(dask_contender(graph, one) for one in dask_schedulers), scipy],
        call.notes,
    )


def main() -> None:
    bench = Bench(__doc__)
    with mn.start(threads=THREADS), schedulers() as both:
        compare(bench, both)


if __name__ == "__main__":
    main()

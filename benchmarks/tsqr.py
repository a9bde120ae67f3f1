"""QR of a tall matrix with Q, and R alone, against dask.array and NumPy."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from harness.comparison import Bench, Claim, Contender
from harness.dask_peer import BLOCKS, Scheduler, schedulers
from harness.inputs import THREADS
from harness.sessions import public
from harness.threads import blas_threads, by_threads

import matnb as mn
from matnb.lazy.evaluator import evaluator

ROWS, COLUMNS, SMALL_ROWS = 2_000_000, 32, 40_000
TARGET_WITH_Q, TARGET_R = 0.8, 1.0
SHOWN = 1_000  # every so many rows of Q are compared; all of them take part in Q'Q
TOLERANCE = 1e-9


def main() -> None:
    bench = Bench(__doc__)
    rows = bench.sized(ROWS, SMALL_ROWS)
    X = np.random.default_rng(0).standard_normal((rows, COLUMNS))
    shape = f"{rows:,} x {COLUMNS} doubles, stored"
    with mn.start(threads=THREADS), schedulers() as (on_threads, distributed):
        A = mn.asarray(X).persist()
        dask = [by_dask(X, one) for one in (on_threads, distributed)]
        peers = [peer for one in dask for peer in by_threads(one, blas_threads)]
        ours, call = public(kept_together, lambda n: (A * factor(n)).persist(), both)
        numpy = Contender("NumPy", np.linalg.qr, lambda n: X * factor(n), both, tolerance=TOLERANCE)
        bench.compare(
            Claim("QR of a tall matrix", f"Q and R kept, {shape}", TARGET_WITH_Q),
            [ours, *peers, *by_threads(numpy, blas_threads)],
            call.notes,
        )
        ours, call = public(
            lambda given: np.linalg.qr(given, mode="r").compute(), lambda n: (A * factor(n)).persist(), signed
        )
        numpy = Contender(
            "NumPy",
            lambda given: np.linalg.qr(given, mode="r"),
            lambda n: X * factor(n),
            signed,
            tolerance=TOLERANCE,
        )
        bench.compare(
            Claim("R of a tall matrix", f"R alone, {shape}", TARGET_R),
            [ours, *by_threads(numpy, blas_threads)],
            call.notes,
        )


def kept_together(given: mn.DistArray) -> tuple[mn.DistArray, mn.DistArray]:
    """Return Q and R, kept by one run as a cell that assigns both does."""
    Q, R = np.linalg.qr(given)
    evaluator().persist([Q.expression, R.expression])
    return Q, R


def factor(number: int) -> float:
    """Return what a round's matrix is multiplied with."""
    return 1.0 + number / 7


def by_dask(X: np.ndarray, scheduler: Scheduler) -> Contender:
    """Return dask.array's decomposition of blocks of rows, which it keeps."""
    stored = scheduler.persist(da.from_array(X, chunks=(-(-len(X) // BLOCKS), COLUMNS)))

    return Contender(
        f"{scheduler.name}, BLAS",
        lambda given: scheduler.persist_all(*da.linalg.qr(given)),
        lambda n: scheduler.persist(stored * factor(n)),
        lambda found: both([scheduler.compute(one) for one in found]),
        tolerance=TOLERANCE,
    )


def signed(R: Any) -> np.ndarray:
    """Return R with a diagonal that is not negative."""
    return R * np.sign(np.diagonal(R))[:, None]


def both(found: Any) -> np.ndarray:
    """Return R, Q'Q and some rows of Q, with such signs."""
    Q, R = (one.compute() if isinstance(one, mn.DistArray) else one for one in found)
    signs = np.sign(np.diagonal(R))
    return np.concatenate((signed(R), (Q.T @ Q), Q[::SHOWN] * signs))


if __name__ == "__main__":
    main()

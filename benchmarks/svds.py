"""Fifty singular values of a graph, plain and centered, against SciPy and scikit-learn."""

from __future__ import annotations

import numpy as np
from harness.comparison import Bench, Claim, Contender
from harness.inputs import THREADS, rmat
from harness.sessions import public
from harness.threads import blas_threads, by_threads
from scipy.sparse.linalg import LinearOperator, svds
from sklearn.decomposition import TruncatedSVD

import matnb as mn

SCALE, SMALL_SCALE = 18, 10
NUMBER, SMALL_NUMBER = 50, 5
TOLERANCE = 1e-6
TARGET = 0.6


def main() -> None:
    bench = Bench(__doc__)
    with mn.start(threads=THREADS):
        scale, number = bench.sized(SCALE, SMALL_SCALE), bench.sized(NUMBER, SMALL_NUMBER)
        graph = rmat(scale, values=True)
        A = mn.asarray(graph).persist()
        about = f"tol={TOLERANCE:g}, R-MAT 2^{scale}, {graph.nnz:,} entries, stored"
        mean = np.asarray(graph.mean(axis=0)).ravel()
        centered = LinearOperator(
            graph.shape, dtype=float,
            matvec=lambda x: graph @ x - mean @ x, rmatvec=lambda x: graph.T @ x - mean * x.sum(),
        )  # fmt: skip
        for name, center, given in (("svds", False, graph), ("svds, centered", True, centered)):
            ours, call = public(
                lambda seed, center=center: mn.linalg.svds(
                    A, number, tol=TOLERANCE, center=center, seed=seed
                ).s.compute()
            )
            scipy = Contender(
                "SciPy",
                lambda seed, given=given: np.sort(svds(given, number, tol=TOLERANCE, rng=seed)[1]),
                tolerance=1e-6,
            )
            bench.compare(
                Claim(f"{name}, {number}, 2^{scale}", about, TARGET),
                [ours, *by_threads(scipy, blas_threads)],
                call.notes,
            )
        ours, call = public(
            lambda seed: mn.linalg.svds(
                A, number, solver="randomized", max_iterations=5, seed=seed
            ).s.compute()
        )
        bench.compare(
            Claim(f"svds, randomized, {number}, 2^{scale}", f"5 power iterations, {about}", TARGET),
            [
                ours,
                Contender(
                    "scikit-learn, TruncatedSVD",
                    lambda seed: np.sort(
                        TruncatedSVD(number, n_iter=5, random_state=seed).fit(graph).singular_values_
                    ),
                    tolerance=None,
                ),
            ],
            call.notes,
        )


if __name__ == "__main__":
    main()

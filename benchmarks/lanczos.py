"""Ten largest eigenvalues of a symmetric graph by Lanczos' method, against SciPy's ARPACK."""

from __future__ import annotations

import numpy as np
from harness.comparison import Bench, Claim, Contender
from harness.inputs import THREADS, rmat
from harness.rebalancing import symmetric
from harness.sessions import public
from harness.threads import blas_threads, by_threads
from scipy.sparse.linalg import eigsh

import matnb as mn

TARGETS = {18: 0.6, 16: 1.0}
SMALL_SCALE = 10
NUMBER, WHICH, TOLERANCE = 10, "LA", 1e-6


def compare(bench: Bench, scale: int, target: float) -> None:
    graph = symmetric(rmat(scale))
    A = mn.asarray(graph).persist()

    def start(number: int) -> np.ndarray:
        return np.random.default_rng(number).random(2**scale)

    def theirs(first: np.ndarray) -> np.ndarray:
        values, _ = eigsh(graph, NUMBER, which=WHICH, tol=TOLERANCE, v0=first)
        return np.sort(values)

    def ours(first: mn.DistArray) -> np.ndarray:
        values, vectors = mn.linalg.eigsh(A, NUMBER, which=WHICH, tol=TOLERANCE, v0=first)
        found, _ = mn.compute(values, vectors)
        return np.sort(found)

    contender, call = public(ours, lambda number: mn.asarray(start(number)).persist())
    scipy = Contender("SciPy", theirs, start, tolerance=1e-8)
    bench.compare(
        Claim(
            f"eigsh, {NUMBER} '{WHICH}', 2^{scale}",
            f"eigenvalues and vectors, tol={TOLERANCE:g}, from the same first vector, R-MAT 2^{scale} with "
            f"its transpose, {graph.nnz:,} entries, stored",
            target,
        ),
        [contender, *by_threads(scipy, blas_threads)],
        call.notes,
    )


def main() -> None:
    bench = Bench(__doc__)
    with mn.start(threads=THREADS):
        for scale, target in TARGETS.items():
            compare(bench, bench.sized(scale, SMALL_SCALE), target)


if __name__ == "__main__":
    main()

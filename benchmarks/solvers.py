"""Iterative solvers of the five-point stencil's systems, against SciPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sl
from harness.comparison import Bench, Claim, Contender
from harness.inputs import THREADS
from harness.sessions import public
from harness.threads import blas_threads, by_threads

import matnb as mn
from matnb.errors import ConvergenceWarning

SIDES = {200: 2.0, 2000: 0.6}
SMALL_SIDE = 12
SWEEPS = {200: 100, 2000: 20}  # products with A: as many for matnb as for SciPy


def five_points(side: int) -> sp.csr_array:
    """Return the matrix of Poisson's equation on a square, made definite by a tenth on its diagonal."""
    second = sp.diags_array([-np.ones(side - 1), np.full(side, 2.05), -np.ones(side - 1)], offsets=[-1, 0, 1])
    eye = sp.eye_array(side)
    return sp.csr_array(sp.kron(second, eye) + sp.kron(eye, second))


def jacobi(A: sp.csr_array, inverse: np.ndarray, b: np.ndarray, sweeps: int) -> np.ndarray:
    x = np.zeros_like(b)
    for _ in range(sweeps):
        x = x + inverse * (b - A @ x)
    return x


def our_jacobi(A: mn.DistArray, inverse: mn.DistArray, b: mn.DistArray, sweeps: int) -> np.ndarray:
    x, _ = mn.iterate(lambda x: x + inverse * (b - A @ x), mn.zeros(b.shape), max_iterations=sweeps)
    return x.compute()


def compare(bench: Bench, side: int, target: float, sweeps: int) -> None:
    matrix = five_points(side)
    A, n = mn.asarray(matrix).persist(), side**2
    diagonal = 1 / matrix.diagonal()
    inverse = mn.asarray(diagonal).persist()

    def right(number: int) -> np.ndarray:
        return np.random.default_rng(number).random(n)

    def one(name: str, ours: Callable[..., np.ndarray], theirs: Callable[[np.ndarray], np.ndarray]) -> None:
        contender, call = public(ours, lambda number: mn.asarray(right(number)).persist())
        scipy = Contender("SciPy", theirs, right, tolerance=1e-6)
        bench.compare(
            Claim(f"{name}, {n:,} unknowns", f"{sweeps} iterations, five points a row", target),
            [contender, *by_threads(scipy, blas_threads)],
            call.notes,
        )

    one(
        "cg",
        lambda b: mn.linalg.cg(A, b, rtol=0, maxiter=sweeps).x.compute(),
        lambda b: sl.cg(matrix, b, rtol=0, maxiter=sweeps)[0],
    )
    one(
        "gmres",
        lambda b: mn.linalg.gmres(A, b, rtol=0, restart=20, maxiter=sweeps // 20).x.compute(),
        lambda b: sl.gmres(matrix, b, rtol=0, restart=20, maxiter=sweeps // 20)[0],
    )
    one(
        "Jacobi's sweeps",
        partial(our_jacobi, A, inverse, sweeps=sweeps),
        partial(jacobi, matrix, diagonal, sweeps=sweeps),
    )


def main() -> None:
    bench = Bench(__doc__)
    warnings.simplefilter("ignore", ConvergenceWarning)  # all take a number of iterations, and none converges
    with mn.start(threads=THREADS):
        for side, target in SIDES.items():
            compare(bench, bench.sized(side, SMALL_SIDE), target, bench.sized(SWEEPS[side], 20))


if __name__ == "__main__":
    main()

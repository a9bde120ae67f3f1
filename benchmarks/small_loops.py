"""Conjugate gradients and Jacobi's method on 40,000 unknowns, against SciPy; what each task costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from harness.comparison import LIMIT, OURS, Bench, Claim, Comparison, Contender
from harness.inputs import THREADS
from harness.loops import LoopWatch
from harness.sessions import PublicCall, public
from harness.threads import blas_threads, by_threads
from scipy.sparse.linalg import cg

import matnb as mn

SIDE, SMALL_SIDE = 200, 20  # of the grid: 40,000 unknowns
GRADIENTS, SWEEPS = 200, 500
TASK_LIMIT = 10e-6  # of one task of one iteration, above a millisecond for the call
CALL_SECONDS = 1e-3
TOLERANCE = 1e-6


def poisson(side: int) -> sp.csr_array:
    """Return the five-point matrix of a square grid."""
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    eye = sp.eye_array(side)
    return sp.csr_array(sp.kron(line, eye) + sp.kron(eye, line))


def gradients(A: mn.DistArray, b: mn.DistArray) -> np.ndarray:
    """Run conjugate gradients, Hestenes and Stiefel 1952, for a number of iterations."""

    def step(state: Any) -> Any:
        x, r, p, rr = state
        Ap = A @ p
        alpha = rr / (p * Ap).sum()
        x, r = x + alpha * p, r - alpha * Ap
        new = (r * r).sum()
        return x, r, r + (new / rr) * p, new

    (x, *_), _ = mn.iterate(step, (mn.zeros(b.shape), b, b, (b * b).sum()), max_iterations=GRADIENTS)
    return x.compute()


def sweeps(A: mn.DistArray, b: mn.DistArray) -> np.ndarray:
    """Run Jacobi's method; the diagonal is 4."""
    x, _ = mn.iterate(lambda x: x + (b - A @ x) * 0.25, mn.zeros(b.shape), max_iterations=SWEEPS)
    return x.compute()


def scipy_gradients(A: sp.csr_array, b: np.ndarray) -> np.ndarray:
    """Run SciPy's own for as many iterations."""
    found, _ = cg(A, b, rtol=0.0, atol=0.0, maxiter=GRADIENTS)
    return found


def scipy_sweeps(A: sp.csr_array, b: np.ndarray) -> np.ndarray:
    """Run the same loop."""
    x = np.zeros_like(b)
    for _ in range(SWEEPS):
        x = x + (b - A @ x) * 0.25
    return x


def publish_task(bench: Bench, name: str, iterations: int, call: PublicCall, watch: LoopWatch) -> None:
    """Tell the seconds above a millisecond by tasks and iterations; a loop's end tells its tasks."""
    tasks = max(1, watch.last().num_tasks)
    each = [max(0.0, one - CALL_SECONDS) / tasks / iterations for one in call.seconds]
    work = (
        f"of a call's seconds above {CALL_SECONDS * 1e3:g} ms, by {iterations} iterations and {tasks} tasks "
        "of an iteration, kernels included"
    )
    seconds = {OURS: each, LIMIT: [TASK_LIMIT] * len(each)}
    bench.publish(Comparison(Claim(f"a task of an iteration, {name}", work, 1.0), seconds, [LIMIT]))


def compare(
    bench: Bench,
    name: str,
    iterations: int,
    ours: Callable[[mn.DistArray, mn.DistArray], np.ndarray],
    theirs: Callable[[sp.csr_array, np.ndarray], np.ndarray],
) -> None:
    side = bench.sized(SIDE, SMALL_SIDE)
    matrix = poisson(side)
    A = mn.asarray(matrix).persist()

    def right(number: int) -> np.ndarray:
        return np.random.default_rng(number).random(side * side)

    watch = LoopWatch()
    contender, call = public(lambda b: ours(A, b), lambda number: mn.asarray(right(number)).persist())
    scipy: Sequence[Contender] = by_threads(
        Contender("SciPy", lambda b: theirs(matrix, b), right, tolerance=TOLERANCE), blas_threads
    )
    bench.compare(
        Claim(
            f"{name}, {side * side:,} unknowns",
            f"{iterations} iterations, five points on a grid of {side} x {side}, {matrix.nnz:,} entries",
        ),
        [contender, *scipy],
        lambda: (*call.notes(), *watch.notes(iterations)),
    )
    publish_task(bench, name, iterations, call, watch)


def main() -> None:
    bench = Bench(__doc__)
    with mn.start(threads=THREADS):
        compare(bench, "conjugate gradients", GRADIENTS, gradients, scipy_gradients)
        compare(bench, "Jacobi", SWEEPS, sweeps, scipy_sweeps)


if __name__ == "__main__":
    main()

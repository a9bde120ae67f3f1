"""The heat equation by slices, fifty steps, against a loop written by hand in Numba, and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from harness.comparison import Bench, Claim, Contender
from harness.inputs import THREADS
from harness.sessions import public
from harness.threads import by_threads, numba_threads

import matnb as mn

SIDE, SMALL_SIDE = 600, 60
STEPS = 50
RATE = 0.2
TARGET = 2.0  # of the seconds of the best loop in Numba


def flow(u: Any) -> Any:
    """Return what each cell of the middle gets from its four neighbors, by slices."""
    middle = u[1:-1, 1:-1]
    return RATE * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * middle)


def assigned(u: Any) -> Any:
    """Return the next step, the edge kept, by an assignment of the middle."""
    new = u.copy()
    new[1:-1, 1:-1] = u[1:-1, 1:-1] + flow(u)
    return new


def padded(u: Any) -> Any:
    """Return the next step, the edge kept, by what is added to the middle."""
    return u + np.pad(flow(u), 1)


@numba.njit(parallel=True)
def by_hand(given: np.ndarray) -> np.ndarray:
    """Run all steps."""
    old, new = given.copy(), given.copy()
    for _ in range(STEPS):
        for row in numba.prange(1, old.shape[0] - 1):
            for column in range(1, old.shape[1] - 1):
                around = (
                    old[row + 1, column]
                    + old[row - 1, column]
                    + old[row, column + 1]
                    + old[row, column - 1]
                    - 4.0 * old[row, column]
                )
                new[row, column] = old[row, column] + RATE * around
        old, new = new, old
    return old


def numpy_loop(u: np.ndarray) -> np.ndarray:
    """Run all steps."""
    for _ in range(STEPS):
        u = assigned(u)
    return u


def in_iterate(step: Callable[[Any], Any]) -> Callable[[mn.DistArray], np.ndarray]:
    """Return all steps as one expression."""

    def run(u: mn.DistArray) -> np.ndarray:
        final, _ = mn.iterate(step, u, max_iterations=STEPS)
        return final.compute()

    return run


def in_a_python_loop(u: mn.DistArray) -> np.ndarray:
    """Run all steps as a user of NumPy writes them, and ask at the end."""
    for _ in range(STEPS):
        u = assigned(u)
    return u.compute()


WRITINGS: dict[str, Callable[[mn.DistArray], np.ndarray]] = {
    "slices in iterate": in_iterate(assigned),
    "slices and pad in iterate": in_iterate(padded),
    "slices in a Python loop": in_a_python_loop,
}


def main() -> None:
    bench = Bench(__doc__)
    side = bench.sized(SIDE, SMALL_SIDE)

    def start(number: int) -> np.ndarray:
        return np.random.default_rng(number).random((side, side))

    numba_loop = by_threads(Contender("Numba, by hand", by_hand, start), numba_threads)
    with mn.start(threads=THREADS):
        for name, run in WRITINGS.items():
            ours, call = public(run, lambda number: mn.asarray(start(number)).persist())
            bench.compare(
                Claim(
                    f"heat equation, {name}",
                    f"{STEPS} steps on {side} x {side} doubles, five points, the edge kept; {name}",
                    TARGET,
                ),
                [ours, *numba_loop, Contender("NumPy", numpy_loop, start, judged=False)],
                call.notes,
            )


if __name__ == "__main__":
    main()

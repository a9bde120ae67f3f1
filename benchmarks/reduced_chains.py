"""Four reductions of one sum, asked together, against one bare read of the same doubles."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dask.array as da
import numba
import numpy as np
from harness.comparison import Bench, Claim, Contender
from harness.dask_peer import schedulers
from harness.inputs import THREADS
from harness.sessions import public

import matnb as mn

LENGTH, SMALL_LENGTH = 20_000_000, 200_000
BLOCKS = 16  # of the column for dask.array
TARGET = 1.6  # of the seconds of one read

Task = tuple[np.ndarray, float]


@numba.njit(nogil=True)
def _read(words: np.ndarray) -> np.uint64:
    # Whole numbers may be added in any order, so that the compiler makes wide loads of them.
    total = np.uint64(0)
    for word in words:
        total += word
    return total


@numba.njit(nogil=True)
def _one_pass(numbers: np.ndarray, added: float) -> tuple[float, float, float, float]:
    least, most, total, squares = np.inf, -np.inf, 0.0, 0.0
    for number in numbers:
        one = number + added
        least, most = min(least, one), max(most, one)
        total += one
        squares += one * one
    return least, most, total, squares


def four(b: Any) -> tuple[Any, Any, Any, Any]:
    """Return what is asked."""
    return b.min(), b.max(), b.mean(), b.std()


def bare_read(pool: ThreadPoolExecutor) -> Contender:
    """Return one read of the same memory, which is less than what is asked."""

    def run(given: Task) -> int:
        pieces = np.array_split(given[0].view(np.uint64), THREADS)
        return sum(map(int, pool.map(_read, pieces)))

    return Contender(f"one read, {THREADS} threads", run, tolerance=None)


def one_pass(pool: ThreadPoolExecutor) -> Contender:
    """Return the loop that anybody would write; the square of its mean is lost from the variance."""

    def run(given: Task) -> np.ndarray:
        numbers, added = given
        found = pool.map(lambda part: _one_pass(part, added), np.array_split(numbers, THREADS))
        least, most, total, squares = (np.array(each) for each in zip(*found, strict=True))
        mean = total.sum() / len(numbers)
        return np.array([least.min(), most.max(), mean, np.sqrt(squares.sum() / len(numbers) - mean * mean)])

    return Contender(f"Numba, one pass, {THREADS} threads", run, judged=False, tolerance=1e-6)


def given_to(contender: Contender, prepare: Callable[[int], Task]) -> Contender:
    """Return a contender with its input."""
    return Contender(
        contender.name, contender.run, prepare, contender.value, contender.judged, contender.tolerance
    )


def main() -> None:
    bench = Bench(__doc__)
    length = bench.sized(LENGTH, SMALL_LENGTH)
    numbers = np.random.default_rng(5).random(length)

    def prepare(number: int) -> Task:
        return numbers, 1.0 + number

    with (
        mn.start(threads=THREADS),
        schedulers() as (threads, _),
        ThreadPoolExecutor(THREADS) as pool,
    ):
        a = mn.asarray(numbers).persist()
        ours, call = public(lambda added: np.array(mn.compute(*four(a + added))), lambda number: 1.0 + number)
        column = da.from_array(numbers, chunks=-(-length // BLOCKS))
        peers = [
            bare_read(pool),
            one_pass(pool),
            Contender("NumPy", lambda given: np.array(four(given[0] + given[1])), judged=False),
            Contender(
                threads.name,
                lambda given: threads.compute(da.stack(four(column + given[1]))),
                judged=False,
            ),
        ]
        bench.compare(
            Claim(
                "four reductions of a sum",
                f"min, max, mean and std of a + k, asked together, another k in each round, {length:,} "
                "doubles, stored",
                TARGET,
            ),
            [ours, *(given_to(peer, prepare) for peer in peers)],
            call.notes,
        )


if __name__ == "__main__":
    main()

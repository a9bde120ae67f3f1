"""What recording and running cost beside the arithmetic: matnb against dask.array.

Compares the time to record one operation; the time from the start of a cell of twenty operations on
1000 x 1000 arrays to its result, from arrays of this process and, warm, from arrays on the workers; the same,
warm, of twenty operations without a matrix product, which alone takes BLAS 2 Gflop; and that of a Python loop
which asks for a number in each of its turns. All get two threads, the same blocks and fresh
input; the peer runs on the threaded scheduler, which is its fastest here, and on a distributed client like
matnb's own.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

import dask.array as da
import numpy as np
from harness.cells import (
    TURNS,
    Operations,
    asking_loop,
    run_warm_cell,
    twenty_operations,
    twenty_without_product,
)
from harness.comparison import OURS, Bench, Claim, Comparison, Contender
from harness.dask_peer import Scheduler, schedulers
from harness.inputs import THREADS
from harness.sessions import public

import matnb as mn
from matnb.lazy.recording import recording

SIZE = 1000
BLOCKS = 2
OPERATIONS = 21  # that a cell of twenty_operations notes
FRESH = (np.full((2, 2), float(number)) for number in itertools.count(3))
LENGTH = 100_000  # of the loop
WARM = Claim(
    "a cell of twenty operations, warm",
    f"twenty operations on {SIZE} x {SIZE} arrays on the workers, as in rounds before",
)
WITHOUT_PRODUCT = Claim(
    "a cell of twenty operations without a product, warm",
    f"twenty elementwise operations and reductions on {SIZE} x {SIZE} arrays on the workers",
)


def inputs(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of a round."""
    rng = np.random.default_rng(number)
    return rng.random((SIZE, SIZE)), rng.random((SIZE, SIZE))


def warm_inputs(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return other values, since what a run gave is remembered."""
    return inputs(1000 + number)


def run_cell(given: tuple[np.ndarray, np.ndarray]) -> float:
    """Do what a %%distmat cell does: record, run what it ends with, then show the value."""
    return run_warm_cell([mn.asarray(one, blocks=BLOCKS) for one in given])


def on_workers(number: int) -> list[mn.DistArray]:
    """Return the arrays of a round, on the workers."""
    return [mn.asarray(one, blocks=BLOCKS).persist() for one in warm_inputs(number)]


def vector(number: int) -> np.ndarray:
    """Return the values of a round of the loop."""
    return np.random.default_rng(number).random(LENGTH)


def dask_contender(scheduler: Scheduler) -> Contender:
    """Return dask.array with the same blocks."""

    def run(given: tuple[np.ndarray, np.ndarray]) -> float:
        a, b = (da.from_array(one, chunks=(SIZE // BLOCKS, SIZE)) for one in given)
        return float(scheduler.compute(twenty_operations(a, b)))

    return Contender(scheduler.name, run, inputs)


def dask_warm(scheduler: Scheduler, operations: Operations, first: int) -> Contender:
    """Return dask.array with the same blocks, computed before."""

    def prepare(number: int) -> list[da.Array]:
        given = (da.from_array(one, chunks=(SIZE // BLOCKS, SIZE)) for one in warm_inputs(first + number))
        return [scheduler.persist(one) for one in given]

    return Contender(scheduler.name, lambda given: float(scheduler.compute(operations(*given))), prepare)


def dask_loop(scheduler: Scheduler) -> Contender:
    """Return dask.array in the loop; its state is kept from turn to turn, too."""

    def run(given: np.ndarray) -> float:
        x = scheduler.persist(da.from_array(given, chunks=LENGTH // BLOCKS))
        state, total = x, 0.0
        for _ in range(TURNS):
            new = scheduler.persist(np.sqrt(state * 0.5 + x))
            total += float(scheduler.compute(abs(new - state).sum()))
            state = new
        return total

    return Contender(scheduler.name, run, vector)


def seconds_per_operation(make: Callable[[np.ndarray], Any], count: int) -> float:
    """Return how long it takes to record one operation of the twenty, on arrays not seen before."""
    seconds = 0.0
    for _ in range(count):
        a, b = (make(next(FRESH)) for _ in range(2))
        with recording(__file__):
            begin = time.perf_counter()
            twenty_operations(a, b)
            seconds += time.perf_counter() - begin
    return seconds / count / OPERATIONS


def compare_recording(bench: Bench) -> None:
    seconds: dict[str, list[float]] = {OURS: [], "dask.array": []}
    for _ in range(bench.rounds):
        seconds[OURS].append(seconds_per_operation(mn.asarray, 100))
        seconds["dask.array"].append(seconds_per_operation(lambda x: da.from_array(x, chunks=-1), 10))
    claim = Claim(
        "recording one operation",
        f"the twenty operations on arrays of four elements, recorded in a cell, not computed; one of the "
        f"{OPERATIONS} that a cell notes",
    )
    bench.publish(Comparison(claim, seconds, ["dask.array"]))


def compare_cell(bench: Bench, dask_schedulers: Sequence[Scheduler]) -> None:
    ours, call = public(run_cell, inputs)
    numpy = Contender("NumPy", lambda given: float(twenty_operations(*given)), inputs, judged=False)
    bench.compare(
        Claim("a cell of twenty operations", f"twenty operations on {SIZE} x {SIZE} arrays to a number"),
        [ours, *map(dask_contender, dask_schedulers), numpy],
        call.notes,
    )


def compare_warm_cell(
    bench: Bench, dask_schedulers: Sequence[Scheduler], claim: Claim, operations: Operations, first: int
) -> None:
    ours, call = public(
        lambda given: run_warm_cell(given, operations), lambda number: on_workers(first + number)
    )
    peers = [dask_warm(one, operations, first) for one in dask_schedulers]
    numpy = Contender(
        "NumPy",
        lambda given: float(operations(*given)),
        lambda number: warm_inputs(first + number),
        judged=False,
    )
    bench.compare(claim, [ours, *peers, numpy], call.notes)


def compare_loop(bench: Bench, dask_schedulers: Sequence[Scheduler]) -> None:
    ours, call = public(lambda given: asking_loop(mn.asarray(given, blocks=BLOCKS).persist()), vector)
    bench.compare(
        Claim(
            "a Python loop that asks",
            f"{TURNS} turns of four operations on {LENGTH} numbers, each asking for a number",
        ),
        [ours, *map(dask_loop, dask_schedulers), Contender("NumPy", asking_loop, vector, judged=False)],
        call.notes,
    )


def main() -> None:
    bench = Bench(__doc__)
    with mn.start(threads=THREADS), schedulers() as both:
        compare_recording(bench)
        compare_cell(bench, both)
        compare_warm_cell(bench, both, WARM, twenty_operations, 0)
        compare_warm_cell(bench, both, WITHOUT_PRODUCT, twenty_without_product, 1000)
        compare_loop(bench, both)


if __name__ == "__main__":
    main()

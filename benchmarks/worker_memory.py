"""Temporary arrays in a worker process: against a thread, and against the thresholds that Dask sets."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from harness.comparison import OURS, Bench, Claim, Contender

import matnb as mn

THREADS = 2
IN_THREADS, AS_DASK = "matnb, in this process", "matnb, thresholds as Dask sets them"
VARIABLE, DASKS_BYTES = (
    "MALLOC_TRIM_THRESHOLD_",
    "65537",
)  # one more than Dask's, so that it counts as a user's
Work = Callable[[int], Any]


@contextmanager
def exported(text: str | None) -> Iterator[None]:
    """Have worker processes that start meanwhile read a threshold of the user's, or none."""
    before = os.environ.pop(VARIABLE, None)
    if text is not None:
        os.environ[VARIABLE] = text
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)
        if before is not None:
            os.environ[VARIABLE] = before


def start(way: str) -> None:
    """Start one worker of two threads."""
    with exported(DASKS_BYTES if way == AS_DASK else None):
        mn.start(workers=1, threads=THREADS, processes=way != IN_THREADS, memo="off")


def prepared(way: str, make: Callable[[], Work], number: int) -> Callable[[], Any]:
    """Return the work of a round on a new session, in which the same was done before on other numbers."""
    start(way)
    work = make()
    for other in range(3):
        work(1000 + 10 * number + other)
    return partial(work, number)


def draw(size: int) -> Work:
    return lambda number: float(mn.random.default_rng(number).random(size).sum())


def group(size: int) -> Work:
    rng = np.random.default_rng(0)
    table = mn.table({"key": rng.integers(0, 1000, size), "value": rng.random(size)})
    return lambda number: (
        table[table["value"] > number * 1e-6].groupby("key")["value"].mean().to_pandas()["value"].to_numpy()
    )


def gram(size: int) -> Work:
    X = mn.random.default_rng(1).random((size, 32)).persist()
    return lambda number: ((X + number).T @ (X + number)).compute()


def chain(size: int) -> Work:
    X = mn.random.default_rng(1).random((size, 32)).persist()
    return lambda number: float((np.sqrt(X * X + number) - np.exp(-X) * 2).sum())


def transpose(size: int) -> Work:
    X = mn.random.default_rng(1).random((size, size)).persist()
    ones = mn.ones(size).persist()
    return lambda number: (np.ascontiguousarray((X + number).T) @ ones).compute()


def rmat(scale: int) -> Work:
    return lambda number: float(mn.random.rmat(scale=scale, seed=number).sum())


def k_means(size: int) -> Work:
    X = mn.random.default_rng(2).random((size, 16)).persist()
    return lambda number: mn.learn.KMeans(8, random_state=number, max_iter=10).fit(X).inertia_


def compare(bench: Bench, claim: Claim, make: Callable[[], Work], other: str, shown: str) -> None:
    """Time one kind of work in a worker process and in another way; a third is shown."""
    ways = ((OURS, OURS), (other, other), (shown, shown))
    bench.compare(
        claim,
        [
            Contender(name, lambda work: work(), partial(prepared, way, make), judged=way != shown)
            for name, way in ways
        ],
    )


def main() -> None:
    bench = Bench(__doc__)
    warnings.simplefilter("ignore", mn.errors.ConvergenceWarning)  # of ten iterations
    size = bench.sized
    try:
        number = size(30_000_000, 300_000)
        work = f"{number:,} numbers drawn and summed by a worker of {THREADS} threads"
        compare(
            bench,
            Claim("a worker process, draw and sum", work, 1.2),
            partial(draw, number),
            IN_THREADS,
            AS_DASK,
        )
        for name, make, full, small, text in (
            ("groupby", group, 4_000_000, 40_000, "means of {:,} rows that are selected, by 1,000 keys"),
            ("Gram", gram, 400_000, 4_000, "(X + c).T @ (X + c), {:,} x 32"),
            ("chain", chain, 400_000, 4_000, "sum(sqrt(X * X + c) - exp(-X) * 2), {:,} x 32"),
            ("transpose", transpose, 3_000, 300, "(X + c).T in C order, {0:,} x {0:,}, times a vector"),
            ("R-MAT", rmat, 18, 10, "R-MAT 2^{} drawn and summed"),
            ("k-means", k_means, 200_000, 2_000, "k-means of {:,} x 16, 8 centers, 10 iterations"),
        ):
            number = size(full, small)
            claim = Claim(f"a worker process, {name}", f"{text.format(number)}, {THREADS} threads", 1.0)
            compare(bench, claim, partial(make, number), AS_DASK, IN_THREADS)
    finally:
        mn.stop()


if __name__ == "__main__":
    main()

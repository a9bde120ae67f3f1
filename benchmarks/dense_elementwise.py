"""A chain of dense elementwise operations as a user writes it, against NumPy and dask.array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dask.array as da
import numpy as np
from harness.comparison import Bench, Claim, Contender
from harness.dask_peer import Scheduler, schedulers
from harness.inputs import THREADS
from harness.sessions import public

import matnb as mn

LENGTH, CHUNK = 20_000_000, 1_250_000  # the chunks are those of dask.array


def chain(a: Any) -> Any:
    """Return the chain; np's functions record when they meet an array of matnb or Dask."""
    return np.sqrt(a * a + a * a) * 2 - abs(a - 0.5) / (a + 1) + np.exp(-a)


def elements(number: int) -> np.ndarray:
    """Return the values of a round."""
    return np.random.default_rng(number).random(LENGTH)


def dask_contender(scheduler: Scheduler) -> Contender:
    """Return dask.array, with the elements there already."""
    return Contender(
        scheduler.name,
        lambda a: scheduler.persist(chain(a)),
        lambda number: scheduler.persist(da.from_array(elements(number), chunks=CHUNK)),
        scheduler.compute,
    )


def compare(bench: Bench, dask_schedulers: Sequence[Scheduler]) -> None:
    ours, call = public(
        lambda a: chain(a).persist(),
        lambda number: mn.asarray(elements(number)).persist(),
        lambda result: result.compute(),
    )
    bench.compare(
        Claim(
            "dense elementwise chain, public call",
            f"sqrt(a*a + a*a) * 2 - abs(a - .5) / (a + 1) + exp(-a), persisted, {LENGTH:,} doubles",
            1 / 3,
        ),
        [ours, Contender("NumPy", chain, elements), *(dask_contender(one) for one in dask_schedulers)],
        call.notes,
    )


def main() -> None:
    bench = Bench(__doc__)
    with mn.start(threads=THREADS), schedulers() as both:
        compare(bench, both)


if __name__ == "__main__":
    main()

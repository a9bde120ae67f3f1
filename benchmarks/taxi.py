"""The taxi sequence: min, max, mean, std, min, min of one column, against NumPy and dask.array.

Cold, each round asks of values that no memo has seen; repeated, the same sequence is asked again in another
cell. The column is there already, in blocks; matnb and dask.array are given the whole sequence at once, as a
notebook's cell gives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dask.array as da
import numpy as np
from harness.comparison import OURS, Bench, Claim, Contender
from harness.dask_peer import Scheduler, schedulers
from harness.inputs import THREADS
from harness.sessions import public

import matnb as mn
from matnb.lazy.recording import recording

LENGTH, CHUNK = 20_000_000, 1_250_000  # the chunks are those of dask.array
AGAINST_NUMPY, AGAINST_DASK, REPEATED = 0.4, 1 / 5, 1 / 50  # of the seconds that each takes


def sequence(x: Any) -> list[Any]:
    """Return what is asked of a column."""
    return [x.min(), x.max(), x.mean(), x.std(), x.min(), x.min()]


def column(number: int) -> np.ndarray:
    """Return the values of a round, such as fares are."""
    return np.random.default_rng(number).gamma(2.0, 6.0, LENGTH)


def stored(number: int) -> mn.DistArray:
    """Return the column on the workers."""
    return mn.asarray(column(number)).persist()


def run_cell(x: mn.DistArray) -> list[float]:
    """Do what a %%distmat cell does: record, run what it ends with, then show the values."""
    with recording("benchmark") as record:
        wanted = sequence(x)
    mn.current_session().run({str(place): one.expression for place, one in enumerate(wanted)}, record)
    return [float(one) for one in wanted]


def asked_before(number: int) -> mn.DistArray:
    """Return a column of which another cell has asked the same."""
    x = stored(number)
    run_cell(x)
    return x


def numpy_contender(first: int) -> Contender:
    """Return NumPy on the columns from a number on."""
    return Contender("NumPy", sequence, lambda number: column(first + number))


def dask_contender(scheduler: Scheduler, first: int) -> Contender:
    """Return dask.array, with the columns from a number on there already."""
    return Contender(
        scheduler.name,
        lambda x: scheduler.compute(da.stack(sequence(x))),
        lambda number: scheduler.persist(da.from_array(column(first + number), chunks=CHUNK)),
    )


def compare(bench: Bench, dask_schedulers: Sequence[Scheduler]) -> None:
    work = f"min, max, mean, std, min, min of {LENGTH:,} doubles"
    ours, call = public(run_cell, stored)
    bench.compare(
        Claim("taxi sequence, beside NumPy", work, AGAINST_NUMPY), [ours, numpy_contender(0)], call.notes
    )
    first = 1000  # what was asked of the columns before is remembered
    ours, call = public(run_cell, lambda number: stored(first + number))
    peers = [dask_contender(one, first) for one in dask_schedulers]
    bench.compare(Claim("taxi sequence, beside dask.array", work, AGAINST_DASK), [ours, *peers], call.notes)
    ours = Contender(OURS, run_cell, lambda number: asked_before(first + number))
    bench.compare(
        Claim("taxi sequence, repeated", f"{work}, asked before in another cell", REPEATED),
        [ours, numpy_contender(first), *peers],
    )


def main() -> None:
    bench = Bench(__doc__)
    with mn.start(threads=THREADS), schedulers() as both:
        compare(bench, both)


if __name__ == "__main__":
    main()

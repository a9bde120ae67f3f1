"""NumPy's breadth: sort, unique, groupby, histogram, selection, concatenation, MTTKRP and a dense product.

Arrays are there already, in blocks where blocks belong; results stay where they are made, as a cell's do.
NumPy runs on one thread but where it calls BLAS, which has two. dask.array has neither sort nor groupby:
beside the latter stand pandas and dask.dataframe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from harness.comparison import Bench, Claim, Contender
from harness.dask_peer import Scheduler, schedulers
from harness.inputs import THREADS
from harness.sessions import public

import matnb as mn

LENGTH, CHUNK = 20_000_000, 2_500_000  # the chunks are those of dask.array
NUM_KEYS, NUM_DISTINCT, NUM_BINS = 100_000, 1_000_000, 100
SIDE, RANK, ORDER = 300, 50, 8_000  # of the tensor, of its factors, of the square matrices
AGAINST_NUMPY, AGAINST_DASK, AGAINST_BEST = 0.8, 1.0, 1.0  # of the seconds that each takes


@dataclass(frozen=True)
class Work:
    """One thing that is done to arrays: by us, by NumPy, and by dask.array where it can.

    ``target`` is against NumPy; None where it has as many threads.
    """

    name: str
    text: str
    arrays: Callable[[int], Sequence[np.ndarray]]
    ours: Callable[..., Any]
    numpy: Sequence[tuple[str, Callable[..., Any]]]
    dask: Callable[..., Any] | None
    target: float | None = AGAINST_NUMPY


def doubles(number: int, count: int = 1) -> list[np.ndarray]:
    """Return arrays of a round."""
    rng = np.random.default_rng(number)
    return [rng.random(LENGTH) for _ in range(count)]


def repeated(number: int) -> list[np.ndarray]:
    """Return whole numbers of which each is there several times."""
    return [np.random.default_rng(number).integers(0, NUM_DISTINCT, LENGTH)]


def keyed(number: int) -> list[np.ndarray]:
    """Return keys in random order, and values."""
    rng = np.random.default_rng(number)
    return [rng.integers(0, NUM_KEYS, LENGTH), rng.random(LENGTH)]


def tensor(number: int) -> list[np.ndarray]:
    """Return a tensor of three axes, and factors of two of them."""
    rng = np.random.default_rng(number)
    return [rng.random((SIDE,) * 3), rng.random((SIDE, RANK)), rng.random((SIDE, RANK))]


def squares(number: int) -> list[np.ndarray]:
    """Return two square matrices."""
    rng = np.random.default_rng(number)
    return [rng.random((ORDER, ORDER)) for _ in range(2)]


def distinct(values: np.ndarray) -> np.ndarray:
    """Return what ``np.unique`` gives by sorting, which is faster than its table where many differ."""
    ordered = np.sort(values)
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])]


def grouped_sums(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct keys and their sums as NumPy finds them fastest where keys are small."""
    counts, sums = np.bincount(keys), np.bincount(keys, weights=values)
    found = np.flatnonzero(counts)
    return found, sums[found]


def our_sums(keys: mn.DistArray, values: mn.DistArray) -> Any:
    """Return the same by ``mn.groupby``."""
    groups = mn.groupby(keys)
    return groups.keys, groups.sum(values)


def by_one_product(x: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return MTTKRP as the unfolded tensor times the Khatri-Rao product of the factors."""
    return x.reshape(SIDE, -1) @ (b[:, None, :] * c[None, :, :]).reshape(-1, RANK)


def by_two_steps(x: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return MTTKRP as a product with one factor, then a sum over what is left of the other."""
    partial = (x.reshape(-1, SIDE) @ c).reshape(SIDE, SIDE, RANK)
    return np.einsum("ijr,jr->ir", partial, b)


def by_batches(x: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return MTTKRP with the second step as a batch of small products."""
    partial = (x.reshape(-1, SIDE) @ c).reshape(SIDE, SIDE, RANK)
    return np.matmul(partial.transpose(0, 2, 1)[:, :, None, :], b.T[None, :, :, None])[:, :, 0, 0]


WORKS = (
    Work(
        "sort",
        f"sort {LENGTH:,} doubles",
        doubles,
        np.sort,
        [("NumPy", np.sort)],
        None,
    ),
    Work(
        "unique, many",
        f"distinct ones among {LENGTH:,} doubles, almost all",
        doubles,
        np.unique,
        [("NumPy", np.unique), ("NumPy, sorted", distinct)],
        da.unique,
    ),
    Work(
        "unique, few",
        f"distinct ones among {LENGTH:,} whole numbers below {NUM_DISTINCT:,}",
        repeated,
        np.unique,
        [("NumPy", np.unique), ("NumPy, sorted", distinct)],
        da.unique,
    ),
    Work(
        "groupby",
        f"sums of {LENGTH:,} doubles by {NUM_KEYS:,} keys",
        keyed,
        our_sums,
        [
            ("NumPy, two bincounts", grouped_sums),
            ("pandas", lambda keys, values: _of_series(pd.Series(values).groupby(keys).sum())),
        ],
        None,
    ),
    Work(
        "histogram",
        f"{NUM_BINS} equal bins of {LENGTH:,} doubles",
        doubles,
        lambda x: np.histogram(x, NUM_BINS, (0.0, 1.0))[0],
        [("NumPy", lambda x: np.histogram(x, NUM_BINS, (0.0, 1.0))[0])],
        lambda x: da.histogram(x, NUM_BINS, (0.0, 1.0))[0],
    ),
    Work(
        "boolean selection",
        f"x[x > 0.5] of {LENGTH:,} doubles",
        doubles,
        lambda x: mn.asarray(x[x > 0.5]),
        [("NumPy", lambda x: x[x > 0.5])],
        lambda x: x[x > 0.5],
    ),
    Work(
        "concatenate",
        f"{LENGTH:,} and {LENGTH:,} doubles, one after the other, plus 1",
        lambda number: doubles(number, 2),
        lambda x, y: np.concatenate([x, y]) + 1,
        [("NumPy", lambda x, y: np.concatenate([x, y]) + 1)],
        lambda x, y: da.concatenate([x, y]) + 1,
    ),
    Work(
        "MTTKRP",
        f"einsum ijk,jr,kr->ir of {SIDE}^3, rank {RANK}",
        tensor,
        lambda x, b, c: np.einsum("ijk,jr,kr->ir", x, b, c),
        [
            ("NumPy, one product", by_one_product),
            ("NumPy, two steps", by_two_steps),
            ("NumPy, batches", by_batches),
            ("NumPy, einsum", lambda x, b, c: np.einsum("ijk,jr,kr->ir", x, b, c, optimize=True)),
        ],
        lambda x, b, c: da.einsum("ijk,jr,kr->ir", x, b, c, optimize=True),
        AGAINST_BEST,
    ),
    Work(
        "dense product",
        f"{ORDER}^2 doubles times {ORDER}^2",
        squares,
        np.matmul,
        [("NumPy, two threads", np.matmul)],
        da.matmul,
        None,
    ),
)


def _of_series(series: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    return series.index.to_numpy(), series.to_numpy()


def compare(bench: Bench, work: Work, dask_schedulers: Sequence[Scheduler]) -> None:
    """Compare one work with NumPy, and with dask.array where it has it."""
    first = 0

    def ours() -> tuple[Contender, Callable[[], Sequence[str]]]:
        begin = first
        contender, call = public(
            lambda arrays: _persisted(work.ours(*arrays)),
            lambda number: [mn.asarray(one).persist() for one in work.arrays(begin + number)],
            _checked,
        )
        return contender, call.notes

    contender, notes = ours()
    numpy = [
        Contender(
            name,
            lambda arrays, function=function: function(*arrays),
            work.arrays,
            _checked,
        )
        for name, function in work.numpy
    ]
    extra = [_frames()] if work.name == "groupby" else []
    bench.compare(
        Claim(f"{work.name}, beside NumPy", work.text, work.target), [contender, *numpy, *extra], notes
    )
    if work.dask is None:
        return
    first = 1000  # nothing is remembered of what was asked before
    contender, notes = ours()
    peers = [_dask(work, one, first) for one in dask_schedulers]
    bench.compare(
        Claim(f"{work.name}, beside dask.array", work.text, AGAINST_DASK), [contender, *peers], notes
    )


def _persisted(result: Any) -> Any:
    handles = result if isinstance(result, tuple) else (result,)
    for one in handles:
        one.persist()
    return result


def _checked(result: Any) -> np.ndarray:
    # What tells results apart, but for the order of adding: all of a small one, places of a large one.
    found = [np.asarray(one) for one in (result if isinstance(result, tuple) else (result,))]
    picked = [one.ravel()[:: max(1, one.size // 1000)] for one in found]
    return np.concatenate([*picked, [one.size for one in found]])


def _dask(work: Work, scheduler: Scheduler, first: int) -> Contender:
    assert work.dask is not None, "asked before"

    def prepare(number: int) -> list[da.Array]:
        arrays = work.arrays(first + number)
        return [scheduler.persist(da.from_array(one, chunks=_chunks(one))) for one in arrays]

    return Contender(
        scheduler.name,
        lambda arrays: scheduler.persist(work.dask(*arrays)),
        prepare,
        lambda result: _checked(scheduler.compute(result)),
    )


def _chunks(array: np.ndarray) -> Any:
    # dask.array's own choice for matrices; of a vector, parts of some ten megabytes.
    return CHUNK if array.ndim == 1 else "auto"


def _frames() -> Contender:
    # dask.dataframe, for information, on frames that are there already.
    def prepare(number: int) -> dd.DataFrame:
        keys, values = keyed(number)
        frame = dd.from_pandas(pd.DataFrame({"key": keys, "value": values}), npartitions=LENGTH // CHUNK)
        return dask.persist(frame, scheduler="threads", num_workers=THREADS)[0]

    def run(frame: dd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        sums = frame.groupby("key")["value"].sum().compute(scheduler="threads", num_workers=THREADS)
        return _of_series(sums.sort_index())

    return Contender("dask.dataframe, threads", run, prepare, _checked, judged=False)


def main() -> None:
    bench = Bench(__doc__)
    with mn.start(threads=THREADS), schedulers() as both:
        for work in WORKS:
            compare(bench, work, both)


if __name__ == "__main__":
    main()

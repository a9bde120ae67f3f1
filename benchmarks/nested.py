"""Nested arrays: sums, cumulative sums and orders of segments, against NumPy, Awkward and pandas.

Three structures of the same values: equal segments, lengths of a power law, and one segment that holds half.
Then a cumulative sum of a flat vector, a product of matrix and vector written with a nested array, how values
are cut and whether that takes what was predicted, and who of two processes works how long where one segment
holds half.
"""

from __future__ import annotations

import os
import statistics
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import awkward as ak
import dask.dataframe as dd
import numpy as np
import numpy.typing as npt
import pandas as pd
from distributed import Client, LocalCluster
from harness.comparison import OURS, Bench, Claim, Comparison, Contender
from harness.inputs import THREADS, rmat
from harness.rebalancing import kernel_seconds
from harness.sessions import public

import matnb as mn
from matnb.blocks.sums import row_sums
from matnb.events import Event, TasksFinished
from matnb.nested import NestedArray
from matnb.nested.creation import nested
from matnb.nested.structure import structure_from_counts

NUM_VALUES, SMALL_VALUES = 20_000_000, 200_000
MEAN_LENGTH = 200
SCALE, SMALL_SCALE = 18, 8  # of the graph: 2^scale vertices
SUMS, SCANS, ORDERS, SHARE, FLAT, PRODUCT, PREDICTED = 0.8, 0.6, 0.8, 1.2, 0.8, 1.5, 1.3
WORKERS, PARTITIONS = 2, 16
FIRST = 3  # reductions that predictions are set by
TAKEN_OFF = 1e-5  # a cumulative sum less what it had where the segment began has lost digits

TWO = ThreadPoolExecutor(2)
Notes = Callable[[], tuple[str, ...]]
Lengths = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


# Structures.


def equal_lengths(total: int) -> Lengths:
    """Return equal lengths."""
    return np.full(total // MEAN_LENGTH, MEAN_LENGTH)


def power_law_lengths(total: int) -> Lengths:
    """Return lengths whose density falls as length^-1.5: half are up to 4, the longest nearly 40,000."""
    longest = MEAN_LENGTH**2  # then the mean is the square root of it
    ranks = (np.arange(total // MEAN_LENGTH) + 0.5) / (total // MEAN_LENGTH)
    lengths = np.floor((1 - ranks * (1 - longest**-0.5)) ** -2).astype(np.int64)
    np.random.default_rng(0).shuffle(lengths)
    lengths[: (total - lengths.sum()) % lengths.size] += 1
    return lengths + (total - lengths.sum()) // lengths.size


def half_in_one(total: int) -> Lengths:
    """Return lengths of which the one in the middle is half of all, and the others are equal."""
    lengths = np.full(total // MEAN_LENGTH, MEAN_LENGTH // 2)
    lengths[lengths.size // 2] += total - lengths.sum()
    return lengths


STRUCTURES = {
    "equal": equal_lengths,
    "power law of exponent 1.5": power_law_lengths,
    "one holds half": half_in_one,
}


# Work on segments.


@dataclass(frozen=True)
class Given:
    """The values of a round in segments, for peers.

    Attributes
    ----------
    begins
        Where each segment does.
    keys
        The number of each value's segment.
    """

    values: Floats
    lengths: Lengths
    begins: Lengths
    keys: npt.NDArray[np.int64]
    awkward: ak.Array
    series: pd.Series


class Round:
    """Makes the values of a round in the segments of one structure, for matnb and for its peers."""

    def __init__(self, lengths: Lengths) -> None:
        self._lengths = lengths
        self._begins = np.cumsum(lengths) - lengths
        self._keys = np.repeat(np.arange(lengths.size), lengths)

    def values(self, number: int) -> Floats:
        """Return the values of a round."""
        return np.random.default_rng(number).random(self._keys.size)

    def ours(self, number: int) -> NestedArray:
        """Return them as matnb has them, stored."""
        N = mn.nested.unflatten(self.values(number), self._lengths)
        return N.with_values(N.values.persist())

    def theirs(self, number: int) -> Given:
        """Return them as peers want them."""
        values = self.values(number)
        made = ak.unflatten(values, self._lengths)
        return Given(values, self._lengths, self._begins, self._keys, made, pd.Series(values))


def cumulative_by_hand(given: Given) -> Floats:
    """Return the cumulative sums of segments: of all values, less what there was before each segment."""
    flat = ak.to_numpy(ak.flatten(given.awkward))
    running = np.cumsum(flat)
    before = running[given.begins] - flat[given.begins]
    return ak.to_numpy(ak.flatten(ak.unflatten(running - np.repeat(before, given.lengths), given.lengths)))


def summed_by_two(given: Given) -> Floats:
    """Return the sums of segments by the kernel alone, each of two threads having half of the values."""
    pointers = np.append(given.begins, given.values.size)
    middle = int(np.searchsorted(pointers, given.values.size // 2))
    halves = [pointers[: middle + 1], pointers[middle:]]
    return np.concatenate(
        list(TWO.map(lambda own: row_sums(own - own[0], given.values[own[0] : own[-1]]), halves))
    )


def sorted_by_pandas(given: Given) -> Floats:
    """Return the values of each segment in order."""
    frame = pd.DataFrame({"key": given.keys, "value": given.series}, copy=False)
    return frame.sort_values(["key", "value"])["value"].to_numpy()


def segmented(bench: Bench, structure: str) -> None:
    """Compare sums, cumulative sums and orders of segments of one structure."""
    lengths = STRUCTURES[structure](bench.sized(NUM_VALUES, SMALL_VALUES))
    made = Round(lengths)
    words = (
        f"{lengths.sum():,} doubles in {lengths.size:,} segments, {structure}, the longest {lengths.max():,}"
    )

    def compare(
        name: str, target: float, ours: Contender, *peers: Contender, notes: Notes | None = None
    ) -> None:
        given = [replace(peer, prepare=made.theirs) for peer in peers]
        claim = Claim(f"{name}, {structure}", f"{name}, {words}, stored", target)
        bench.compare(claim, [ours, *given], notes or (lambda: ()))

    def of_segments(run: Callable[[NestedArray], NestedArray]) -> Contender:
        def stored(N: NestedArray) -> NestedArray:
            found = run(N)
            return found.with_values(found.values.persist())

        return public(stored, made.ours, lambda found: np.asarray(found.values))[0]

    ours, call = public(lambda N: N.sum().persist(), made.ours, np.asarray)
    compare(
        "segment sums",
        SUMS,
        ours,
        Contender("np.add.reduceat", lambda given: np.add.reduceat(given.values, given.begins)),
        Contender("np.bincount", lambda given: np.bincount(given.keys, weights=given.values)),
        Contender("Awkward", lambda given: ak.sum(given.awkward, axis=1), value=ak.to_numpy),
        Contender("pandas", lambda given: given.series.groupby(given.keys).sum(), value=np.asarray),
        Contender("matnb's kernel, by two threads of Python", summed_by_two, judged=False),
        notes=call.notes,
    )
    compare(
        "segment cumulative sums",
        SCANS,
        of_segments(lambda N: N.cumsum()),
        Contender("Awkward, by hand", cumulative_by_hand, tolerance=TAKEN_OFF),
        Contender("pandas", lambda given: given.series.groupby(given.keys).cumsum(), value=np.asarray),
    )
    compare(
        "segment sorts",
        ORDERS,
        of_segments(lambda N: N.sort()),
        Contender(
            "Awkward",
            lambda given: ak.sort(given.awkward, axis=1),
            value=lambda found: ak.to_numpy(ak.flatten(found)),
        ),
        Contender("pandas", sorted_by_pandas),
    )


# A flat vector, and a matrix.


def flat(bench: Bench) -> None:
    """Compare the cumulative sum of a vector."""
    length = bench.sized(NUM_VALUES, SMALL_VALUES)

    def values(number: int) -> Floats:
        return np.random.default_rng(number).random(length)

    ours, call = public(
        lambda x: mn.cumsum(x).persist(), lambda number: mn.asarray(values(number)).persist(), np.asarray
    )
    bench.compare(
        Claim("block-parallel cumulative sum", f"mn.cumsum(x) of {length:,} doubles, stored", FLAT),
        [ours, Contender("np.cumsum", np.cumsum, values)],
        call.notes,
    )


def products(bench: Bench) -> None:
    """Compare a product written with a nested array to matnb's own."""
    scale = bench.sized(SCALE, SMALL_SCALE)
    graph = rmat(scale, values=True)
    counts = np.diff(graph.indptr).astype(np.int64)
    columns = mn.asarray(graph.indices.astype(np.int64))
    structure = structure_from_counts(counts, "rows")
    made = nested(mn.asarray(graph.data), structure, "auto", "rows", columns)
    N = nested(made.values.persist(), structure, "auto", "rows", made.positions.persist())
    A = mn.asarray(graph).persist()

    def vector(number: int) -> mn.DistArray:
        return mn.asarray(np.random.default_rng(number).random(2**scale)).persist()

    ours, call = public(lambda x: (N * N.gather(x)).sum().persist(), vector, np.asarray)
    own, _ = public(lambda x: (A @ x).persist(), vector, np.asarray, "A @ x")
    bench.compare(
        Claim(
            "A @ x as segment sums",
            f"(N * N.gather(x)).sum() beside matnb's A @ x, R-MAT 2^{scale}, {graph.nnz:,} entries, stored",
            PRODUCT,
        ),
        [ours, own],
        call.notes,
    )


# How values are cut.


def tenths_in_one(total: int) -> Lengths:
    """Return lengths of which the one in the middle is nine tenths of all, and the others are equal."""
    lengths = np.full(total // MEAN_LENGTH, MEAN_LENGTH // 10)
    lengths[lengths.size // 2] += total - lengths.sum()
    return lengths


def choices(bench: Bench) -> None:
    """Compare what reductions take to what was predicted when it was chosen how to cut their values."""
    for structure, draw in {**STRUCTURES, "one holds nine tenths": tenths_in_one}.items():
        lengths = draw(bench.sized(NUM_VALUES, SMALL_VALUES))
        with mn.start(threads=THREADS):
            for number in range(bench.rounds + FIRST):  # a value more each time: a choice of its own
                N = mn.nested.unflatten(np.random.default_rng(number).random(lengths.sum()), lengths)
                N.sum().persist()
                lengths[-1] += 1
            lines = str(mn.history()).splitlines()
            made = mn.history().facts().strategies[FIRST:]
        bench.publish(
            Comparison(
                Claim(
                    f"prediction, {structure}",
                    f"Seconds of the busiest thread in segment sums, {structure}, values cut as "
                    f"{' and '.join(sorted({one.strategy for one in made}))}",
                    PREDICTED,
                ),
                {
                    OURS: [one.measured_seconds or float("nan") for one in made],
                    "as predicted": [
                        one.segmented[0] if one.strategy == "segmented" else one.uniform[0] for one in made
                    ],
                },
                ["as predicted"],
                (f"mn.history(): {lines[-1].strip()}",),
            )
        )


# Two processes of one thread, and a segment that holds half.


def sums_and_seconds(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the sums of a partition's segments, and what they took of which process."""
    begin = time.perf_counter()
    found = frame.groupby(level=0).sum()
    seconds = time.perf_counter() - begin
    return found.assign(process=os.getpid(), seconds=seconds / len(found))


def of_an_even_share(seconds: dict[int, float]) -> float:
    """Return what the slowest worker takes for each second of an even share."""
    return max(seconds.values()) * WORKERS / sum(seconds.values())


def shares_of_dask(made: Round, rounds: int) -> list[float]:
    """Return what the slowest process of dask.dataframe takes for each second of an even share."""
    found = []
    with (
        warnings.catch_warnings(),
        LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, processes=True, memory_limit=0, dashboard_address=None
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
        for number in range(rounds + 1):
            given = made.theirs(number)
            frame = pd.DataFrame({"value": given.values}, index=given.keys)
            parts = dd.from_pandas(frame, npartitions=PARTITIONS, sort=True)
            meta = {"value": float, "process": int, "seconds": float}
            timed = client.compute(parts.map_partitions(sums_and_seconds, meta=meta)).result()
            if not np.allclose(timed["value"], np.add.reduceat(given.values, given.begins)):
                raise SystemExit("dask.dataframe gives other sums: nothing was timed")
            found.append(of_an_even_share(timed.groupby("process")["seconds"].sum().to_dict()))
    return found[1:]  # the first imports


def even_shares(bench: Bench) -> None:
    """Compare the slowest of two processes to an even share, where one segment holds half."""
    lengths = half_in_one(bench.sized(NUM_VALUES, SMALL_VALUES))
    made = Round(lengths)
    peer = statistics.median(shares_of_dask(made, bench.rounds))
    reports: list[TasksFinished] = []

    def listen(event: Event) -> None:
        if isinstance(event, TasksFinished):
            reports.append(event)

    def once(number: int, run: Callable[[NestedArray], Any]) -> tuple[float, float]:
        N = made.ours(number)
        mn.memo.clear()
        reports.clear()
        run(N)
        seconds: dict[int, float] = {}
        for name in {one.run for one in reports}:
            for worker, one in kernel_seconds(reports, name).items():
                seconds[worker] = seconds.get(worker, 0.0) + one
        return max(seconds.values()), sum(seconds.values()) / WORKERS

    works: dict[str, Callable[[NestedArray], Any]] = {
        "sums": lambda N: N.sum().persist(),
        "cumulative sums": lambda N: N.cumsum().values.persist(),
    }
    with mn.start(workers=WORKERS, threads=1, processes=True) as session:
        session.subscribe(listen)
        for name, run in works.items():
            found = [once(number, run) for number in range(bench.rounds + 1)][1:]  # the first compiles
            slowest, even = map(list, zip(*found, strict=True))
            claim = Claim(
                f"slowest process, segment {name}, one holds half",
                f"Kernel seconds of the slowest process: {lengths.sum():,} doubles in {lengths.size:,} "
                f"segments, one of {lengths.max():,}, {WORKERS} processes x 1 thread",
                SHARE,
            )
            notes = (
                f"dask.dataframe, segment sums of {PARTITIONS} partitions: its slowest process takes "
                f"{peer:.2f} times an even share",
            )
            seconds = {OURS: slowest, "an even share": even}
            bench.publish(Comparison(claim, seconds, ["an even share"], notes if name == "sums" else ()))


def main() -> None:
    bench = Bench(__doc__)
    with mn.start(threads=THREADS):
        for work in (*(partial(segmented, structure=one) for one in STRUCTURES), flat, products):
            work(bench)
    choices(bench)
    even_shares(bench)


if __name__ == "__main__":
    main()

"""What recording and running cost beside the arithmetic: matnb against dask.array, in the same run.

Prints microseconds to record one operation, and milliseconds from the start of a cell of twenty operations
on 1000 x 1000 arrays to its result. Both get two threads, the same blocks and fresh input; the peer runs
on the threaded scheduler, which is its fastest here, and on a distributed client like matnb's own.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import matnb as mn
from matnb.lazy.recording import recording

SIZE = 1000
BLOCKS = 2


def twenty_operations(a: object, b: object) -> object:
    """Twenty operations ending in one number."""
    c = a + b
    d = c * a
    e = d - b
    f = e / (a + 2.0)
    g = f @ b
    h = g.sum(axis=0)
    i = h * h
    j = np.sqrt(i + 1.0)
    k = abs(d) + e
    m = k.max(axis=1)
    n = m + j
    p = n * 0.5
    q = p - p.mean()
    return (q * q).sum() + c.sum()


def median_seconds(work: Callable[[int], float], rounds: int) -> float:
    times = []
    for number in range(rounds + 1):
        begin = time.perf_counter()
        work(number)
        times.append(time.perf_counter() - begin)
    return statistics.median(times[1:])  # the first round compiles and imports


def inputs(number: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(number)
    return rng.random((SIZE, SIZE)), rng.random((SIZE, SIZE))


def microseconds_per_operation(make: Callable[[np.ndarray], object], count: int = 2000) -> float:
    x = make(np.ones(4))
    begin = time.perf_counter()
    for number in range(count):
        x = x + float(number)
    return (time.perf_counter() - begin) / count * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    given = [inputs(number) for number in range(rounds + 1)]

    def run_numpy(number: int) -> float:
        return float(twenty_operations(*given[number]))

    def run_matnb(number: int) -> float:
        # what a %%distmat cell does: record, run what it ends with, then show the value
        a, b = (mn.asarray(one, blocks=BLOCKS) for one in given[number])
        with recording("benchmark") as record:
            result = twenty_operations(a, b)
        mn.current_session().run({"result": result.expression}, record)
        return float(result)

    def run_dask(number: int) -> float:
        chunks = (SIZE // BLOCKS, SIZE)
        a, b = (da.from_array(one, chunks=chunks) for one in given[number])
        return float(twenty_operations(a, b).compute())

    for work in (run_matnb, run_dask):
        assert np.isclose(work(0), run_numpy(0)), work.__name__

    with recording("benchmark"):
        record = microseconds_per_operation(mn.asarray)
    record_dask = microseconds_per_operation(lambda x: da.from_array(x, chunks=-1), 500)
    print(
        f"record one operation:   matnb {record:7.1f} us   dask.array {record_dask:7.1f} us"
        f"   ratio {record / record_dask:.2f}"
    )

    mine = median_seconds(run_matnb, rounds)
    numpy_seconds = median_seconds(run_numpy, rounds)
    threaded = median_seconds(run_dask, rounds)
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        distributed = median_seconds(run_dask, rounds)
    print(
        f"cell of 20 operations on {SIZE} x {SIZE}: matnb {mine * 1e3:7.1f} ms"
        f"   NumPy {numpy_seconds * 1e3:7.1f} ms"
    )
    for name, seconds in (("threaded", threaded), ("distributed", distributed)):
        print(f"  dask.array, {name:<12} {seconds * 1e3:7.1f} ms   matnb / dask.array {mine / seconds:.2f}")
    mn.stop()


if __name__ == "__main__":
    main()

"""Records what blocks of a product take on this machine, for tests that replay it; run it as a script.

``python tests/balance/recording.py banded FILE``, or rmat; the files here are of a busy machine.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing as mp
import os
import platform
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import matnb as mn
from matnb.blocks.formats import Dense, csr_block
from matnb.blocks.kernels.products.dense_products import multiply_into
from matnb.blocks.semiring import PLUS_TIMES

WORKERS = 2


def banded(n: int = 2**20) -> sp.csr_array:
    """Return nine diagonals around the main one."""
    offsets = range(-4, 5)
    return sp.csr_array(sp.diags_array([np.full(n, 0.1)] * 9, offsets=offsets, shape=(n, n)))


def rmat(scale: int = 20) -> sp.csr_array:
    """Return the graph of the benchmarks."""
    return sp.csr_array(mn.random.rmat(scale=scale, seed=1).to_scipy())


RECORDED = {"banded": (banded, 8, 200), "rmat": (rmat, 64, 40)}


def perform(name: str, worker: int, barrier: Barrier, told: mp.Queue[tuple[int, list[list[float]]]]) -> None:
    """Multiply a worker's blocks of rows, as often as wanted, all workers side by side as in a loop."""
    make, num_blocks, iterations = RECORDED[name]
    A = make()
    cuts = np.linspace(0, A.shape[0], num_blocks + 1).astype(int)
    own = range(worker * num_blocks // WORKERS, (worker + 1) * num_blocks // WORKERS)
    blocks = [csr_block(A[cuts[place] : cuts[place + 1]]) for place in own]
    x = Dense(np.ones(A.shape[1]))
    results = [np.empty(len(block.pointers) - 1) for block in blocks]  # written again and again, as in a loop
    seconds = []
    for _ in range(iterations + 1):
        barrier.wait()
        taken = []
        for block, result in zip(blocks, results, strict=True):
            begin = time.perf_counter()
            multiply_into(block, x, PLUS_TIMES, result)
            taken.append(round(time.perf_counter() - begin, 6))
        seconds.append(taken)
    told.put((worker, seconds[1:]))  # the first compiles


def record(name: str) -> dict[str, object]:
    """Return cuts, entries, and the seconds of each block in each iteration."""
    make, num_blocks, iterations = RECORDED[name]
    context = mp.get_context("spawn")
    barrier, told = context.Barrier(WORKERS), context.Queue()
    members = [
        context.Process(target=perform, args=(name, worker, barrier, told)) for worker in range(WORKERS)
    ]
    load = os.getloadavg()[0]
    for one in members:
        one.start()
    come = dict(told.get(timeout=300) for _ in members)
    for one in members:
        one.join()
    A = make()
    cuts = np.linspace(0, A.shape[0], num_blocks + 1).astype(int)
    return {
        "matrix": name,
        "machine": f"{os.cpu_count()} cores, {platform.machine()}; load average {load:.1f}",
        "owners": [place * WORKERS // num_blocks for place in range(num_blocks)],
        "cuts": cuts.tolist(),
        "entries": A.indptr[cuts].tolist(),
        "seconds": [come[0][number] + come[1][number] for number in range(iterations)],
    }


def main() -> None:
    """Record what is asked for, and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=RECORDED)
    parser.add_argument("file", type=Path)
    given = parser.parse_args()
    given.file.write_text(json.dumps(record(given.name)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

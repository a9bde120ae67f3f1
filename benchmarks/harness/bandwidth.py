"""How fast this machine's memory is read, by two threads, as in STREAM; and the least time for some bytes."""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np

from harness.inputs import THREADS
from harness.statistics import duration

_WORDS = 64 * 2**20  # 512 MiB, several times what caches hold


@numba.njit(nogil=True)
def _sum(words: np.ndarray) -> np.uint64:
    # Whole numbers may be added in any order, so that the compiler makes wide loads of them.
    total = np.uint64(0)
    for word in words:
        total += word
    return total


def read_bandwidth(rounds: int = 7) -> float:
    """Return the bytes a second that the threads read together, the median of some rounds."""
    pieces = np.array_split(np.ones(_WORDS, np.uint64), THREADS)
    times = []
    with ThreadPoolExecutor(THREADS) as pool:
        for _ in range(rounds + 1):
            begin = time.perf_counter()
            assert sum(map(int, pool.map(_sum, pieces))) == _WORDS
            times.append(time.perf_counter() - begin)
    return _WORDS * 8 / statistics.median(times[1:])


def floor_note(num_bytes: int, bandwidth: float, median: float) -> str:
    """Say how far a median is from the least time in which its bytes can be read."""
    least = num_bytes / bandwidth
    return (
        f"{num_bytes / 1e6:.0f} MB must be read; at the {bandwidth / 1e9:.1f} GB/s measured that takes "
        f"{duration(least)}; matnb takes {median / least:.2f} times as long"
    )

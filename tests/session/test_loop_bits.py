"""Loops give the same bits on any workers, threads and row cuts, as README promises."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn

WORKERS = [
    {"workers": 1, "threads": 2},
    {"workers": 2, "threads": 1},
    {"workers": 4, "threads": 1},
    pytest.param({"workers": 1, "threads": 2, "engine": "dask"}, marks=pytest.mark.slow),
    pytest.param({"workers": 2, "threads": 1, "processes": True}, marks=pytest.mark.cluster),
]
N = 3000


def matrix() -> sp.csr_array:
    rng = np.random.default_rng(5)
    rows = np.minimum(rng.zipf(1.3, 40_000) - 1, N - 1)  # heavy rows, of more entries than a leaf of the sums
    columns = rng.integers(0, N, rows.size)
    columns[rows > N // 2] &= ~1  # of which workers get only every other row of X, and others all
    return sp.csr_array((rng.random(rows.size), (rows, columns)), shape=(N, N))


def results(A: sp.csr_array, blocks: object) -> list[bytes]:
    a = mn.asarray(A, blocks=blocks)
    start = mn.random.default_rng(1).random(N)

    def step(state: tuple) -> tuple:
        x, X, total = state
        y = a @ x
        y = y / np.sqrt((y * y).sum())
        return y * 0.9 + x * 0.1, (a @ X) * 0.05 + X, total + abs(y - x).sum() * (mn.iteration() + 1)

    def done(old: tuple, new: tuple) -> mn.DistArray:
        return abs(new[0] - old[0]).max() < 1e-4

    wide = mn.random.default_rng(2).random((N, 3))
    (x, X, total), n = mn.iterate(step, (start, wide, 0.0), until=done, max_iterations=12)
    return [np.asarray(one.compute()).tobytes() for one in (x, X, total, n)]


@pytest.fixture(scope="module")
def expected() -> list[bytes]:
    with mn.start(workers=1, threads=1):
        found = results(matrix(), 1)
    mn.stop()
    return found


@pytest.mark.parametrize("options", WORKERS)
def test_bits_follow_from_the_program_alone(options: dict, expected: list[bytes]) -> None:
    A = matrix()
    rng = np.random.default_rng(9)
    with mn.start(**options):
        for blocks in (None, 1, 2, 7, 40):
            assert results(A, blocks) == expected, blocks
        for _ in range(3):
            cuts = [0, *sorted(set(rng.integers(1, N, 5).tolist())), N]
            assert results(A, [cuts, None]) == expected, cuts
    mn.stop()

"""What a loop takes: no new arrays once it runs, and no more memory than it said."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.events import LoopFinished

N = 100_000


@pytest.mark.parametrize(
    "options",
    [
        {"workers": 1, "threads": 2},
        {"workers": 3, "threads": 1},
        pytest.param({"workers": 2, "threads": 1, "processes": True}, marks=pytest.mark.cluster),
    ],
)
def test_iterations_of_pagerank_allocate_nothing(options: dict) -> None:
    rng = np.random.default_rng(0)
    rows, columns = (N * rng.random((2, 10 * N)) ** 3).astype(int)
    graph = sp.csr_array((np.ones(rows.size), (rows, columns)), shape=(N, N))
    with mn.start(engine="gang", **options) as session:
        loops: list[LoopFinished] = []
        session.subscribe(lambda event: loops.append(event) if isinstance(event, LoopFinished) else None)
        A = (mn.asarray(graph) != 0).astype(float)
        found = mn.graph.pagerank(A, tolerance=None, max_iterations=12)
        assert abs(float(found.ranks.sum()) - 1) < 1e-12
        (loop,) = loops
        assert loop.iterations == 12
        assert len(loop.allocated) == 12
        assert not any(loop.allocated[2:])
        assert loop.projected_bytes > 5 * 8 * N
    mn.stop()


def test_several_reductions_in_a_loop_take_tiles_that_are_there() -> None:
    def step(x: mn.DistArray) -> mn.DistArray:
        y = abs(x - 0.5)
        return (x - y.min()) / (y.max() + x.std())

    def until(old: mn.DistArray, new: mn.DistArray) -> mn.DistArray:
        return abs(old - new).max() + abs(old - new).sum() < 0

    x = np.random.default_rng(0).standard_normal(400_000)
    with mn.start(engine="gang", workers=2, threads=1) as session:
        loops: list[LoopFinished] = []
        session.subscribe(lambda event: loops.append(event) if isinstance(event, LoopFinished) else None)
        found, _ = mn.iterate(step, mn.asarray(x), until=until, max_iterations=6)
        expected = x
        for _ in range(6):
            y = abs(expected - 0.5)
            expected = (expected - y.min()) / (y.max() + expected.std())
        np.testing.assert_allclose(found.compute(), expected, rtol=1e-10)
        (loop,) = loops
        assert not any(loop.allocated[2:])
    mn.stop()

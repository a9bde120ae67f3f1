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


def test_iterations_of_the_library_allocate_nothing() -> None:
    n = 20_000
    rng = np.random.default_rng(0)
    rows, columns = (n * rng.random((2, 3 * n)) ** 2).astype(int)
    graph = sp.csr_array((rng.integers(1, 5, rows.size).astype(float), (rows, columns)), shape=(n, n))
    both = graph + graph.T
    definite = sp.csr_array(both + sp.diags_array(both.sum(axis=1) + 1))
    b = rng.random(n)
    with mn.start(engine="gang", workers=2, threads=1) as session:
        loops: list[LoopFinished] = []
        session.subscribe(lambda event: loops.append(event) if isinstance(event, LoopFinished) else None)
        A, S = mn.asarray(graph), mn.asarray(definite)
        graphs, linear = mn.graph, mn.linalg
        algorithms = {
            "pagerank": lambda: graphs.pagerank(A)[0],
            "eigenvector_centrality": lambda: graphs.eigenvector_centrality(A)[0],
            "katz": lambda: graphs.katz(A, alpha=0.001)[0],
            "hits": lambda: graphs.hits(A, tolerance=1e-3)[0],
            "sssp": lambda: graphs.sssp(A, 0),
            "bfs": lambda: graphs.bfs(A, 0).levels,
            "parents of bfs": lambda: graphs.bfs(A, 0).parents,
            "maximal_independent_set": lambda: graphs.maximal_independent_set(A),
            "all pairs": lambda: graphs.all_pairs_shortest_path_length(A, range(8), batch=2),
            "cg": lambda: linear.cg(S, b, rtol=1e-3)[0],
            "minres": lambda: linear.minres(S, b, rtol=1e-3)[0],
            "bicgstab": lambda: linear.bicgstab(S, b, rtol=1e-3)[0],
            "lsqr": lambda: linear.lsqr(S, b, atol=1e-3, btol=1e-3)[0],
            "lsmr": lambda: linear.lsmr(S, b, atol=1e-3, btol=1e-3)[0],
        }
        for name, algorithm in algorithms.items():
            loops.clear()
            algorithm().compute()
            assert {loop.engine for loop in loops} == {"gang"}, name
            (allocated,) = (loop.allocated for loop in loops if not loop.is_branch)
            assert len(allocated) > 2, name
            assert not any(allocated[2:]), (name, allocated)
    mn.stop()

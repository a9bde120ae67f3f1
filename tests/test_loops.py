"""One test body for loops and branches: interpreter, Dask engine and gang, with threads and processes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.events import LoopFinished

ENGINES = {
    "interpret": {"engine": "interpret"},
    "dask, threads": {"engine": "dask", "workers": 1, "threads": 2},
    "dask, workers": {"engine": "dask", "workers": 3, "threads": 1},
    "gang, threads": {"engine": "gang", "workers": 1, "threads": 2},
    "gang, workers": {"engine": "gang", "workers": 3, "threads": 1},
    "gang, processes": {"engine": "gang", "workers": 2, "threads": 1, "processes": True},
}


class Watched:
    """The session of an engine, and the loops that it ran."""

    def __init__(self, name: str, session: mn.session.Session) -> None:
        self.name = name
        self.loops: list[LoopFinished] = []
        session.subscribe(lambda event: isinstance(event, LoopFinished) and self.loops.append(event))


@pytest.fixture(
    scope="module",
    params=[pytest.param(one, marks=[pytest.mark.cluster] if "processes" in one else []) for one in ENGINES],
)
def session(request: pytest.FixtureRequest) -> Iterator[Watched]:
    with mn.start(**ENGINES[request.param]) as started:
        yield Watched(request.param, started)
    mn.stop()


@pytest.fixture
def engine(session: Watched) -> Iterator[Watched]:
    session.loops.clear()
    yield session
    wanted = session.name.split(",", maxsplit=1)[0]
    assert {one.engine for one in session.loops} <= {wanted}, [one.reason for one in session.loops]


def graph(n: int = 200, seed: int = 0) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    return sp.csr_array(sp.random(n, n, density=0.05, random_state=rng, format="csr"))


def test_a_vector_is_multiplied_again_and_again(engine: Watched) -> None:
    A = graph()
    a = mn.asarray(A, blocks=3)

    def step(x: mn.DistArray) -> mn.DistArray:
        y = a @ x
        return y / np.abs(y).max()

    x, n = mn.iterate(
        step, mn.ones(200), max_iterations=12, until=lambda old, new: np.abs(new - old).max() < 1e-3
    )
    expected, count = np.ones(200), 0
    while count < 12:
        after = A @ expected
        after /= np.abs(after).max()
        count, done = count + 1, np.abs(after - expected).max() < 1e-3
        expected = after
        if done:
            break
    assert int(n) == count
    np.testing.assert_allclose(x.compute(), expected, rtol=1e-12)
    if engine.name != "interpret":
        assert len(engine.loops) == 1
        assert engine.loops[0].iterations == count


def test_state_nests_and_changes_places(engine: Watched) -> None:
    state = {"a": [mn.arange(5.0), mn.ones((2, 3), dtype=np.int32)], "b": (mn.zeros(5),), "c": 7}

    def step(state: dict) -> dict:
        first, second = state["a"][0], state["b"][0]
        return {"a": [second + 1, state["a"][1] * 2], "b": (first,), "c": state["c"]}

    result, n = mn.iterate(step, state, max_iterations=5)
    first, second, third = np.arange(5.0), np.ones((2, 3), np.int32), np.zeros(5)
    for _ in range(5):
        first, second, third = third + 1, second * 2, first
    np.testing.assert_array_equal(result["a"][0].compute(), first)
    np.testing.assert_array_equal(result["a"][1].compute(), second)
    assert result["a"][1].dtype == np.int32
    np.testing.assert_array_equal(result["b"][0].compute(), third)
    assert int(result["c"]) == 7
    assert int(n) == 5


@pytest.mark.parametrize("limit", [0, 1])
def test_few_iterations(engine: Watched, limit: int) -> None:
    x, n, kept = mn.iterate(
        lambda x: x * 2, mn.arange(4.0), max_iterations=limit, collect=lambda x: (x.sum(), x)
    )
    np.testing.assert_array_equal(x.compute(), np.arange(4.0) * 2**limit)
    assert int(n) == limit
    assert kept[1].shape == (limit, 4)
    np.testing.assert_array_equal(kept[1].compute(), np.reshape([np.arange(4.0) * 2] * limit, (limit, 4)))


def test_collected_rows_follow_the_iterations(engine: Watched) -> None:
    x, n, kept = mn.iterate(
        lambda x: x + mn.iteration(),
        mn.zeros(3),
        max_iterations=6,
        until=lambda old, new: new[0] > 5,
        collect=lambda x: {"total": x.sum(), "all": x},
    )
    totals = np.cumsum(np.arange(5)) * 3.0  # after the fifth, 0 + 1 + 2 + 3 + 4 = 10 > 5
    taken = int(n)
    assert taken == 4
    np.testing.assert_array_equal(kept["total"].compute(), [*totals[:taken], 0, 0])
    np.testing.assert_array_equal(kept["all"].compute()[:taken].sum(axis=1), totals[:taken])
    np.testing.assert_array_equal(x.compute(), np.full(3, 6.0))


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_goes_over_rows_and_back(engine: Watched, reverse: bool) -> None:
    rows, weights = np.arange(12.0).reshape(4, 3), np.array([1.0, 2.0, 4.0, 8.0])
    x, n = mn.iterate(
        lambda x, item: x * 2 + item[0] * item[1],
        mn.zeros(3),
        over=(mn.asarray(rows), mn.asarray(weights)),
        reverse=reverse,
    )
    expected = np.zeros(3)
    for k in range(4)[:: -1 if reverse else 1]:
        expected = expected * 2 + rows[k] * weights[k]
    np.testing.assert_array_equal(x.compute(), expected)
    assert int(n) == 4


def test_loops_nest(engine: Watched) -> None:
    def step(state: tuple) -> tuple:
        x, total = state
        inner, n = mn.iterate(
            lambda y: y + x * mn.iteration(), total, max_iterations=5, until=lambda old, new: new.max() > 30
        )
        return x + 1, inner + n

    (x, total), _ = mn.iterate(step, (mn.ones(3, dtype=int), mn.zeros(3, dtype=int)), max_iterations=4)
    one, other = np.ones(3, int), np.zeros(3, int)
    for _ in range(4):
        count = 0
        for k in range(5):
            other = other + one * k
            count = k + 1
            if other.max() > 30:
                break
        one, other = one + 1, other + count
    np.testing.assert_array_equal(x.compute(), one)
    np.testing.assert_array_equal(total.compute(), other)


def test_a_bound_may_be_an_array(engine: Watched) -> None:
    levels, _ = mn.iterate(lambda n: n + 1, mn.asarray(0), until=lambda old, new: new >= 6)
    x, n = mn.iterate(lambda x: x * 2, mn.ones(2), max_iterations=levels)
    np.testing.assert_array_equal(x.compute(), [64.0, 64.0])
    assert int(n) == 6


def test_one_side_of_a_branch_is_computed(engine: Watched) -> None:
    def step(x: mn.DistArray) -> mn.DistArray:
        even = mn.iteration() % 2 == 0
        return mn.cond(even, lambda: x + 1, lambda: mn.cond(x.sum() > 8, lambda: x * 0.5, lambda: x * 3))

    x, _ = mn.iterate(step, mn.arange(3.0), max_iterations=7)
    expected = np.arange(3.0)
    for k in range(7):
        odd = expected * 0.5 if expected.sum() > 8 else expected * 3
        expected = odd if k % 2 else expected + 1
    np.testing.assert_array_equal(x.compute(), expected)


def test_a_branch_stands_alone(engine: Watched) -> None:
    x = mn.arange(4.0)
    low, high = mn.cond(x.sum() > 100, lambda: (x, x * 2), lambda: (x - 1, x * 0.0))
    np.testing.assert_array_equal(low.compute(), np.arange(4.0) - 1)
    np.testing.assert_array_equal(high.compute(), np.zeros(4))


def test_a_sparse_state_changes_its_pattern(engine: Watched) -> None:
    A = graph(60)
    a = mn.asarray(A, blocks=2)
    reach, _ = mn.iterate(lambda r: (r @ a) * 0.5 + a, mn.asarray(A, blocks=2), max_iterations=3)
    expected = A
    for _ in range(3):
        expected = (expected @ A) * 0.5 + A
    assert reach.sparse
    np.testing.assert_allclose(reach.to_scipy().toarray(), expected.toarray(), rtol=1e-12)
    assert reach.nnz > A.nnz


def test_a_sparse_start_that_fills_becomes_dense(engine: Watched) -> None:
    A = graph(20)
    x, _ = mn.iterate(lambda x: np.exp(x), mn.asarray(A), max_iterations=1)
    assert not x.sparse
    np.testing.assert_allclose(x.compute(), np.exp(A.toarray()))


def test_a_wider_dtype_is_wide_from_the_start(engine: Watched) -> None:
    x, _ = mn.iterate(lambda x: x / 2, mn.arange(4), max_iterations=2)
    assert x.dtype == np.float64
    np.testing.assert_array_equal(x.compute(), np.arange(4) / 4)


def test_what_does_not_change_is_computed_once(engine: Watched) -> None:
    A = mn.asarray(graph(), blocks=2)
    calls = []

    def step(x: mn.DistArray) -> mn.DistArray:
        calls.append(1)
        return A.T @ x / (A.sum(axis=0) + 1)

    x, _ = mn.iterate(step, mn.ones(200), max_iterations=3)
    expected, dense = np.ones(200), graph().toarray()
    for _ in range(3):
        expected = dense.T @ expected / (dense.sum(axis=0) + 1)
    np.testing.assert_allclose(x.compute(), expected, rtol=1e-10)
    assert len(calls) == 1
    loop = x.expression.control
    assert any(node.shape == (200,) for node in loop.given)  # the column sums plus one
    assert not any(type(node).__name__ in ("Reduce", "Transpose") for node in _nodes(loop.body))


def _nodes(body: object) -> list[object]:
    from matnb.expr.traverse import topological

    return topological(body.roots)


def test_draws_differ_from_iteration_to_iteration(engine: Watched) -> None:
    def rows() -> np.ndarray:
        rng = mn.random.default_rng(3)
        _, _, kept = mn.iterate(
            lambda x: x + rng.random(4), mn.zeros(4), max_iterations=5, collect=lambda x: x
        )
        return kept.compute()

    first = rows()
    draws = np.diff(first, axis=0, prepend=np.zeros((1, 4)))
    assert len(np.unique(draws.round(9))) == 20
    np.testing.assert_array_equal(first, rows())


def test_places_are_read_and_written(engine: Watched) -> None:
    def step(state: tuple) -> tuple:
        row, table = state
        k = mn.iteration()
        row = row + table[k]
        table[k] = row
        return row, table

    start = np.arange(12.0).reshape(4, 3)
    (row, table), _ = mn.iterate(step, (mn.zeros(3), mn.asarray(start)), max_iterations=4)
    expected, sums = start.copy(), np.zeros(3)
    for k in range(4):
        sums = sums + expected[k]
        expected[k] = sums
    np.testing.assert_array_equal(row.compute(), sums)
    np.testing.assert_array_equal(table.compute(), expected)


def test_until_sees_the_state_before_the_step_changed_it(engine: Watched) -> None:
    def step(x: mn.DistArray) -> mn.DistArray:
        x[mn.iteration()] = 1.0
        x += 1
        return x

    x, n = mn.iterate(step, mn.zeros(3), max_iterations=3, until=lambda old, new: abs(new - old).sum() == 0)
    assert int(n) == 3
    np.testing.assert_array_equal(x.compute(), [4.0, 3.0, 2.0])


def test_until_may_be_part_of_the_old_state(engine: Watched) -> None:
    x, n = mn.iterate(
        lambda s: (s[0] + 1, s[0] > 3),
        (mn.asarray(0), mn.asarray(False)),
        until=lambda old, new: old[1],
        max_iterations=20,
    )
    assert (int(n), int(x[0])) == (6, 6)


def test_small_work_is_replicated(engine: Watched) -> None:
    x, _ = mn.iterate(
        lambda x: mn.replicated(np.linalg.solve, mn.eye(3).astype(float) * 2 + mn.ones((3, 3)), x),
        mn.ones(3),
        max_iterations=2,
    )
    matrix, expected = np.eye(3) * 2 + 1, np.ones(3)
    for _ in range(2):
        expected = np.linalg.solve(matrix, expected)
    np.testing.assert_allclose(x.compute(), expected)


def test_values_are_scattered(engine: Watched) -> None:
    labels = mn.asarray([0, 1, 1, 4, 2])
    x, _ = mn.iterate(
        lambda x: mn.scatter_reduce(x + mn.iteration(), labels, 5, monoid="plus"),
        mn.arange(5.0),
        max_iterations=3,
    )
    expected = np.arange(5.0)
    for k in range(3):
        expected = np.bincount([0, 1, 1, 4, 2], expected + k, 5)
    np.testing.assert_array_equal(x.compute(), expected)


def test_a_loop_is_remembered(engine: Watched) -> None:
    x, n = mn.iterate(lambda x: x + 1, mn.zeros(3), max_iterations=3)
    x.compute()
    float(x.sum())
    again, _ = mn.iterate(lambda x: x + 1, mn.zeros(3), max_iterations=3)
    assert again.expression is x.expression
    again.compute()
    if engine.name != "interpret":
        assert len(engine.loops) == 1
    assert int(n) == 3


def test_many_leaves(engine: Watched) -> None:
    leaves, _ = mn.iterate(
        lambda xs: [x + k for k, x in enumerate(xs)],
        [mn.full(3, k, dtype=float) for k in range(100)],
        max_iterations=2,
    )
    np.testing.assert_array_equal(leaves[0].compute(), np.zeros(3))
    np.testing.assert_array_equal(leaves[99].compute(), np.full(3, 99.0 * 3))


def test_the_same_error_as_without_a_loop(engine: Watched) -> None:
    x, _ = mn.iterate(lambda x: x + mn.arange(3.0)[mn.iteration() + 1], mn.zeros(2), max_iterations=9)
    with pytest.raises(IndexError):
        x.compute()

"""Nested arrays in loops: the structure stays, the values are the state's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn

ON_EACH = pytest.mark.session(
    "interpreter",
    "dask: two workers",
    "gang: two workers",
    "two threads",
    pytest.param("processes", marks=[pytest.mark.cluster, pytest.mark.slow]),
)


COUNTS = [3, 0, 70, 1, 400, 26]


@ON_EACH
@pytest.mark.parametrize("strategy", ["segmented", "uniform"])
def test_a_loop_has_the_bits_of_a_python_loop(strategy: str) -> None:
    values = np.random.default_rng(1).random(500)
    N = mn.nested.unflatten(mn.asarray(values, blocks=4), COUNTS, strategy=strategy)

    def step(state: Any) -> Any:
        v, y = state
        M = N.with_values(v)
        gathered = (N * N.gather(v)).sum()
        return (M / (1 + (M * M).sum())).values + 0.1, y + gathered + M.max()

    start = (mn.asarray(values, blocks=4), mn.zeros(6))
    found, _ = mn.iterate(step, start, max_iterations=3)
    plain = start
    for _ in range(3):
        plain = step(plain)
    for one, other in zip(found, plain, strict=True):
        assert one.compute().tobytes() == other.compute().tobytes()


@ON_EACH
def test_structure_is_not_made_in_a_body() -> None:
    with pytest.raises(mn.errors.LoopBodyError, match="make the structure before the loop"):
        mn.iterate(
            lambda n: mn.nested.unflatten(np.ones(6), n).count(), mn.asarray([1, 2, 3]), max_iterations=2
        )


@pytest.mark.parametrize("engine", ["interpret", "auto"])
def test_values_of_a_loop_are_divided_by_lengths_that_are_fixed(engine: str) -> None:
    def step(x: mn.DistArray) -> mn.DistArray:
        return mn.nested.unflatten(x, [2, 0, 3]).cumsum().values * 0.5

    with mn.start(workers=1, threads=2, engine=engine):
        found, _ = mn.iterate(step, mn.ones(5), max_iterations=3)
        expected = np.ones(5)
        for _ in range(3):
            expected = np.concatenate([np.cumsum(expected[:2]), np.cumsum(expected[2:])]) * 0.5
        np.testing.assert_array_equal(found.compute(), expected)
    mn.stop()


@ON_EACH
@pytest.mark.parametrize("strategy", ["segmented", "uniform"])
def test_a_nested_array_is_a_state(strategy: str) -> None:
    values = np.random.default_rng(1).integers(-9, 9, 500)
    N = mn.nested.unflatten(mn.asarray(values, blocks=4), COUNTS, strategy=strategy)
    deep = mn.nested.unflatten(N, [4, 2])
    rows = mn.nested.from_rows(mn.asarray(sp.csr_array([[1.0, 0, 2], [0, 0, 0], [0, 3, 0]])))

    def step(state: Any) -> Any:
        M, other, of_rows, n = state
        return M - M.mean(), other + other.sum(), of_rows * of_rows.gather(n), n + 1

    start = (N, deep, rows, mn.ones(3))
    found, _ = mn.iterate(step, start, max_iterations=3)
    plain = start
    for _ in range(3):
        plain = step(plain)
    for one, other in zip(found, plain, strict=True):
        assert type(one) is type(other)
        assert one.tolist() == other.tolist()  # the dtype of the first is widened
    assert found[2].positions.tolist() == rows.positions.tolist()
    assert mn.cond(N.sum().sum() > 1e9, lambda: N, lambda: N * 2).tolist() == (N * 2).tolist()


@ON_EACH
def test_segments_of_a_state_stay() -> None:
    N = mn.nested.unflatten(np.arange(5.0), [2, 0, 3])
    other = mn.nested.unflatten(np.arange(5.0), [3, 0, 2])
    with pytest.raises(mn.errors.ShapeError, match="of 3 segments, but not the state's segments, which stay"):
        mn.iterate(lambda M: other * M.values.sum(), N, max_iterations=2)
    with pytest.raises(mn.errors.ShapeError, match="on the other: other segments; values of M in equal"):
        mn.cond(N.values.sum() > 1, lambda: N, lambda: other)
    same = N[[0, 1, 2]]  # of equal lengths, but made in another way
    with pytest.raises(mn.errors.ShapeError, match=r"in equal segments .*N\.with_values\(M\.values\)"):
        mn.iterate(lambda M: M[[0, 1, 2]], N, max_iterations=2)
    assert mn.cond(N.values.sum() > 1, lambda: N, lambda: N.with_values(same.values)).tolist() == N.tolist()
    with pytest.raises(mn.errors.ShapeError, match=r"NestedArray of 2 segments, but the state is .* of 3"):
        mn.iterate(lambda M: M[:2], N, max_iterations=2)
    with pytest.raises(mn.errors.ShapeError, match="the step returns array, but the state is NestedArray"):
        mn.iterate(lambda M: M.values, N, max_iterations=2)
    with pytest.raises(
        mn.errors.DTypeError, match="collect returns NestedArray of 3 segments: let it return"
    ):
        mn.iterate(lambda M: M * 2, N, max_iterations=2, collect=lambda M: M)
    with pytest.raises(mn.errors.DTypeError, match="over= has NestedArray of 3 segments"):
        mn.iterate(lambda x, item: x + item, 0.0, over=N)
    kept = mn.iterate(lambda M: M * 2, N, max_iterations=2, collect=lambda M: (M.sum(), M.values))[2]
    assert kept[0].tolist() == [[2.0, 0.0, 18.0], [4.0, 0.0, 36.0]]

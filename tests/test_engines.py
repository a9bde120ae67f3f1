"""One test body for the interpreter, the Dask engine with threads and with two processes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import programs

import matnb as mn
from matnb.ops.interpret import interpret

pytestmark = pytest.mark.session("interpreter", "two threads", "three workers", "processes")


def check(mine: object, theirs: np.ndarray, text: str = "") -> None:
    assert mine.shape == theirs.shape, text
    assert mine.dtype == theirs.dtype, text
    value = mine.compute()
    if mine.sparse:
        value = value.todense()
    value = np.asarray(value)
    assert value.dtype == theirs.dtype, text
    assert value.shape == theirs.shape, text
    single = "float32" in text or theirs.dtype == np.float32  # somewhere on the way
    tolerance = 1e-4 if single else 1e-10
    np.testing.assert_allclose(value, theirs, rtol=tolerance, atol=tolerance, err_msg=text)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_programs_mean_what_numpy_means(data: st.DataObject) -> None:
    values = data.draw(programs(mn.asarray))
    results = mn.compute(*(pair.mine for pair in values))
    assert len(results) == len(values)
    for pair in values:
        check(pair.mine, pair.theirs, pair.text)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_stored_entries_are_those_of_the_interpreter(kind: str, data: st.DataObject) -> None:
    if kind == "interpreter":
        pytest.skip("the interpreter is what the others are compared with")
    last = data.draw(programs(mn.asarray))[-1].mine
    if last.sparse:
        mine, theirs = last.to_scipy(), interpret(last.expression)
        np.testing.assert_array_equal(mine.indptr, theirs.indptr)
        np.testing.assert_array_equal(mine.indices, theirs.indices)
        np.testing.assert_allclose(mine.data, theirs.data, rtol=1e-5)


@pytest.mark.parametrize("semiring", ["plus_times", "min_plus", "plus_pair", "lor_land"])
@pytest.mark.parametrize("formats", ["dd", "ds", "sd", "ss", "dv", "sv", "vs"])
@pytest.mark.parametrize("shape", [(5, 7, 4), (1, 3, 1), (4, 0, 3), (0, 3, 2), (3, 2, 0)])
def test_semirings(semiring: str, formats: str, shape: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(0)
    n, k, m = shape

    def draw(kind: str, rows: int, columns: int) -> tuple[object, np.ndarray, np.ndarray]:
        size = {"v": (columns if rows < 0 else rows,)}.get(kind, (rows, columns))
        values = rng.integers(1, 5, size).astype(float)
        stored = rng.random(size) < 0.5 if kind == "s" else np.ones(size, bool)
        given = sp.csr_array(np.where(stored, values, 0)) if kind == "s" else values
        blocks = [2] * values.ndim
        return mn.asarray(given, blocks=blocks), values, stored

    left, a, has_a = draw(formats[0], n if formats[0] != "v" else -1, k)
    right, b, has_b = draw(formats[1], k, m)
    a2, h2 = np.atleast_2d(a), np.atleast_2d(has_a)
    b2, g2 = (b[:, None], has_b[:, None]) if b.ndim == 1 else (b, has_b)
    expected = np.zeros((a2.shape[0], b2.shape[1]))
    met = np.zeros(expected.shape, bool)
    for i in range(a2.shape[0]):
        for j in range(b2.shape[1]):
            both = h2[i] & g2[:, j]
            met[i, j] = both.any()
            one, other = a2[i][both], b2[both, j]
            expected[i, j] = {
                "plus_times": (one * other).sum(),
                "min_plus": (one + other).min(initial=np.inf),
                "plus_pair": both.sum(),
                "lor_land": both.any(),
            }[semiring]
    result = mn.matmul(left, right, semiring=semiring)
    if result.sparse:
        found = result.to_scipy()
        np.testing.assert_array_equal(found.toarray(), np.where(met, expected, 0))
        assert found.nnz == met.sum()
    else:
        np.testing.assert_array_equal(
            np.asarray(result.compute()), expected.reshape(result.shape).astype(result.dtype)
        )


def test_products_of_stacks() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.random((4, 3, 5)), rng.random((4, 5, 2))
    check(mn.asarray(a, blocks=[2, 2, None]) @ mn.asarray(b, blocks=[4, 1, 1]), a @ b)
    check(mn.asarray(a, blocks=3) @ mn.asarray(b[0]), a @ b[0])
    check(mn.asarray(a[0]) @ mn.asarray(b), a[0] @ b)


def test_a_quotient_has_the_entries_of_the_dividend() -> None:
    rng = np.random.default_rng(2)
    a, b = (np.where(rng.random((9, 7)) < 0.5, rng.integers(1, 5, (9, 7)), 0).astype(float) for _ in "ab")
    found = (mn.asarray(sp.csr_array(a), blocks=2) / mn.asarray(sp.csr_array(b), blocks=[3, 2])).to_scipy()
    expected = sp.csr_array(a)
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_array_equal(found.indices, expected.indices)
    with np.errstate(divide="ignore", invalid="ignore"):
        np.testing.assert_array_equal(found.data, (a / b)[a != 0])


def test_creation() -> None:
    check(mn.zeros((3, 4)), np.zeros((3, 4)))
    check(mn.full((3,), 7, blocks=2), np.full(3, 7))
    check(mn.eye(4, 5, k=1, blocks=[2, 2]), np.eye(4, 5, k=1))
    check(mn.arange(10, blocks=3), np.arange(10))
    check(mn.arange(1.5, 4, 0.1, blocks=4), np.arange(1.5, 4, 0.1))
    check(mn.linspace(0, 1, 11, blocks=3), np.linspace(0, 1, 11))
    same = [mn.random.default_rng(5).random((6, 4), blocks=blocks).compute() for blocks in (None, 1, [3, 2])]
    np.testing.assert_array_equal(same[0], same[1])
    np.testing.assert_array_equal(same[0], same[2])


def test_every_ufunc_of_numpy() -> None:
    skipped = {"matmul", "vecdot", "matvec", "vecmat", "isnat"}  # products, and dates, which we do not hold
    for name in dir(np):
        ufunc = getattr(np, name)
        if not isinstance(ufunc, np.ufunc) or ufunc.__name__ in skipped or ufunc.signature is not None:
            continue
        for kind in (np.float64, np.int64):
            values = [np.array([[1, 2, 3], [3, 1, 2]]).astype(kind) for _ in range(ufunc.nin)]
            with np.errstate(all="ignore"):
                try:
                    expected = ufunc(*values)
                except TypeError:
                    continue
            if not isinstance(expected, tuple):
                expected = (expected,)
            if expected[0].dtype.kind not in "biufc":
                continue
            mine = ufunc(*(mn.asarray(one, blocks=2) for one in values))
            for one, other in zip(mine if isinstance(mine, tuple) else (mine,), expected, strict=True):
                check(one, other, name)


@pytest.mark.parametrize("length", [3, 100_000])  # a constant of the expression, and data in tiles
def test_the_power_of_a_number_is_numpys(length: int) -> None:
    values = np.where(np.arange(length) % 2, 3.7, -0.0)
    for exponent in (0.5, -1.0, 2.0, 3.0):
        with np.errstate(all="ignore"):
            expected = values**exponent
        assert (mn.asarray(values) ** exponent).compute().tobytes() == expected.tobytes()
        entries = mn.asarray(sp.csr_array((values[:3], ([0, 1, 1], [0, 0, 2])), shape=(2, 3))) ** exponent
        if entries.sparse:
            assert entries.to_scipy().data.tobytes() == expected[:3].tobytes()


@pytest.mark.parametrize("blocks", [None, [1, 2], [2, 2]])
def test_a_sampled_product_of_an_array_with_itself(blocks: list[int] | None) -> None:
    rng = np.random.default_rng(2)
    b, m = rng.random((3, 3)), rng.integers(0, 2, (3, 3)).astype(float)
    x, mask = mn.asarray(b, blocks=blocks), mn.asarray(sp.csr_array(m), blocks=[1, 2])
    np.testing.assert_allclose(float(((x @ x) * mask).sum()), ((b @ b) * m).sum())

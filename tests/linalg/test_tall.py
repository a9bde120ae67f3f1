"""Tall and wide matrices by slabs of rows: orthonormal bases, ranks, bad input."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.blocks.kernels.rows import slabs
from matnb.errors import DTypeError, OptionError, ShapeError, TooLargeError
from matnb.lazy.functions import decompositions
from matnb.ops import tall
from matnb.ops.interpret import interpret

pytestmark = pytest.mark.session("two workers")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3001, 7))
DEPENDENT = X.copy()
DEPENDENT[:, 5] = X[:, 0] - 2 * X[:, 1]
GRADED = X * 10.0 ** -np.arange(0, 14, 2)
MATRICES = {
    "full rank": X,
    "dependent columns": DEPENDENT,
    "condition 1e12": GRADED,
    "zeros": np.zeros((900, 3)),
    "one column": X[:, :1],
    "complex": X + 1j * X[::-1],
    "integers": np.arange(3000).reshape(1000, 3) % 17,
    "booleans": X > 0,
}


@pytest.fixture(autouse=True)
def small_slabs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have slabs of some sixty rows, and several levels of them."""
    monkeypatch.setattr(tall, "_SLAB_BYTES", 1024)
    monkeypatch.setattr(slabs, "_LEAF_BYTES", 512)


def check_qr(x: np.ndarray, Q: np.ndarray, R: np.ndarray, tolerance: float = 1e-13) -> None:
    size = np.linalg.norm(x.astype(complex)) or 1
    assert Q.shape == x.shape
    assert np.abs(Q.conj().T @ Q - np.eye(Q.shape[1])).max() < 100 * tolerance
    assert np.abs(Q @ R - x).max() < 100 * tolerance * size
    np.testing.assert_array_equal(np.tril(R, -1), np.zeros_like(R))


@pytest.mark.parametrize("name", MATRICES)
def test_q_is_orthonormal_and_q_times_r_is_the_matrix(name: str) -> None:
    x = MATRICES[name]
    found = np.linalg.qr(mn.asarray(x, blocks=(3, 1)))
    Q, R = mn.compute(*found)
    check_qr(x, Q, R)
    theirs = np.linalg.qr(x)
    assert [Q.dtype, R.dtype] == [one.dtype for one in theirs]
    if name in ("full rank", "complex", "integers", "condition 1e12"):
        scale = np.abs(theirs[1]).max(axis=0)
        assert (np.abs(np.abs(R) - np.abs(theirs[1])) < 1e-10 * scale).all()
    np.testing.assert_array_equal(np.linalg.qr(mn.asarray(x), mode="r").compute(), R)
    check_qr(x, *map(interpret, [one.expression for one in found]))


def test_single_precision_stays() -> None:
    Q, R = mn.compute(*np.linalg.qr(mn.asarray(X.astype("f4"))))
    assert Q.dtype == R.dtype == np.float32
    check_qr(X.astype("f4"), Q, R, 1e-6)


@given(st.integers(1, 400), st.integers(1, 12), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_slabs_of_every_shape(rows: int, columns: int, seed: int) -> None:
    x = np.random.default_rng(seed).integers(-3, 4, (rows, columns)).astype(float)
    cuts = tall.slab_cuts((rows, columns), x.dtype)
    assert cuts[0] == 0
    assert cuts[-1] == rows
    if len(cuts) > 2:
        assert min(np.diff(cuts)) >= columns
        found = np.linalg.qr(mn.asarray(x))
        check_qr(x, *[interpret(one.expression) for one in found])


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("turned", [False, True])
def test_singular_values_and_vectors(name: str, turned: bool) -> None:
    x = MATRICES[name].T if turned else MATRICES[name]
    given = mn.asarray(x)
    U, S, Vh = mn.compute(*np.linalg.svd(given, full_matrices=False))
    theirs = np.linalg.svd(x, compute_uv=False)
    np.testing.assert_allclose(S, theirs, rtol=1e-10, atol=1e-12 * (theirs[0] or 1))
    np.testing.assert_allclose(np.linalg.svdvals(given).compute(), theirs, atol=1e-12 * (theirs[0] or 1))
    np.testing.assert_allclose((U * S) @ Vh, x, atol=1e-12 * (theirs[0] or 1))
    for one in (U.conj().T @ U, Vh @ Vh.conj().T):
        np.testing.assert_allclose(one, np.eye(len(S)), atol=1e-12)


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("count", [None, 2])
def test_least_squares(name: str, turned: bool, count: int | None) -> None:
    x = MATRICES[name].T if turned else MATRICES[name]
    b = np.random.default_rng(1).standard_normal(len(x) if count is None else (len(x), count))
    found = mn.compute(*np.linalg.lstsq(mn.asarray(x), mn.asarray(b)))
    theirs = np.linalg.lstsq(x.astype(np.result_type(x, 1.0)), b)
    size = np.abs(theirs[0]).max()
    assert found[0].shape == theirs[0].shape
    np.testing.assert_allclose(found[0], theirs[0], rtol=1e-5, atol=1e-9 * size)
    assert found[2] == theirs[2]
    np.testing.assert_allclose(found[3], theirs[3], rtol=1e-8, atol=1e-12 * (theirs[3][0] or 1))
    over = x.shape[0] > x.shape[1]
    expected = (np.abs(b - x @ theirs[0]) ** 2).sum(axis=0).reshape(-1) if over else np.empty(0)
    np.testing.assert_allclose(found[1], expected, rtol=1e-8)


def test_a_wide_matrix_above_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompositions, "SHIP_BYTES", 10_000)
    for wide in (X[:20, :].T, X.T, (X + 1j * X[::-1]).T, (10 * X).astype(int).T):
        Q, R = mn.compute(*np.linalg.qr(mn.asarray(wide)))
        assert Q.shape == (7, 7)
        np.testing.assert_allclose(Q @ R, wide, atol=1e-12 * np.abs(wide).max())
        np.testing.assert_allclose(
            np.abs(R), np.abs(np.linalg.qr(wide, mode="r")), atol=1e-9 * np.abs(wide).max()
        )
        np.testing.assert_array_equal(np.linalg.qr(mn.asarray(wide), mode="r").compute(), R)


def test_few_rows_and_none() -> None:
    for shape in ((1, 3), (1, 1), (0, 3), (5, 0), (3, 3)):
        x = np.ones(shape) + np.eye(*shape)
        for mine, own in zip(mn.compute(*np.linalg.qr(mn.asarray(x))), np.linalg.qr(x), strict=True):
            np.testing.assert_allclose(mine, own, atol=1e-14)


def test_numbers_that_are_not_finite_stay() -> None:
    x = X.copy()
    x[100, 2] = np.nan
    assert np.isnan(np.linalg.qr(mn.asarray(x), mode="r").compute()[0, 2:]).any()


@pytest.mark.parametrize(
    ("call", "kind", "told"),
    [
        (lambda x: np.linalg.qr(x, mode="raw"), OptionError, "choose 'reduced', 'complete' or 'r'"),
        (lambda x: np.linalg.qr(x.astype(np.longdouble)), DTypeError, "convert with astype"),
        (lambda x: np.linalg.lstsq(x, x[:5]), ShapeError, r"\(3001, 7\) and \(5, 7\)"),
        (lambda x: np.linalg.lstsq(x[0], x[0]), ShapeError, "a matrix"),
        (lambda x: np.linalg.lstsq(x, x[:, 0], rcond="tiny"), OptionError, "give a number, or None"),
        (lambda x: np.linalg.lstsq(x.astype(np.float16), x), DTypeError, "convert with astype"),
    ],
)
def test_bad_input(call: Callable[[mn.DistArray], object], kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=told):
        call(mn.asarray(X))


def test_slabs_above_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompositions, "SHIP_BYTES", 1_000)
    for call in (np.linalg.qr, np.linalg.svdvals, lambda x: np.linalg.lstsq(x, x[:, 0])):
        with pytest.raises(TooLargeError, match=r"the shorter axis has length [78], of which"):
            call(mn.asarray(X))

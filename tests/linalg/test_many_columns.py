"""Systems with more right-hand sides than one worker takes, against NumPy and scikit-learn; and refusals."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sklearn.linear_model

import matnb as mn
from matnb.errors import TooLargeError
from matnb.lazy.functions import decompositions, mapping
from matnb.learn import arguments

pytestmark = pytest.mark.session("two workers")

RNG = np.random.default_rng(0)
DAYS = np.arange(24.0)
FIELD = RNG.standard_normal((24, 300)) + DAYS[:, None] * RNG.standard_normal(300)
TREND = np.vander(DAYS, 2)
DESIGNS = {
    "trend": TREND, "dependent": TREND[:, [0, 1, 0]], "square": RNG.standard_normal((24, 24)),
    "wide": RNG.standard_normal((24, 30)), "zeros": np.zeros((24, 2)), "complex": TREND + 1j * TREND**2,
    "single": TREND.astype("f4"), "whole": TREND.astype(int),
}  # fmt: skip


@pytest.fixture
def small_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a limit that the field is above, and the designs are not."""
    for module in (decompositions, mapping, arguments):
        monkeypatch.setattr(module, "SHIP_BYTES", 20_000)


@pytest.mark.usefixtures("small_workers")
@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("rcond", [None, 0.2, -1])
def test_a_field_is_fitted(name: str, rcond: float | None) -> None:
    A, b = DESIGNS[name], FIELD.astype(DESIGNS[name].dtype) if name == "single" else FIELD
    found = mn.compute(*np.linalg.lstsq(mn.asarray(A), mn.asarray(b), rcond=rcond))
    theirs = np.linalg.lstsq(A, b, rcond=rcond)
    close = 1e-3 if name == "single" else 1e-9
    assert [one.dtype for one in found] == [np.asarray(one).dtype for one in theirs]
    np.testing.assert_allclose(found[0], theirs[0], rtol=close, atol=close)
    expected = (np.abs(b - A @ theirs[0]) ** 2).sum(axis=0) if A.shape[0] > A.shape[1] else np.empty(0)
    np.testing.assert_allclose(found[1], expected, rtol=close)
    assert found[2] == theirs[2]
    np.testing.assert_allclose(found[3], theirs[3], atol=close)


def test_tall_designs_take_many_columns() -> None:
    A, b = RNG.standard_normal((300_000, 4)), RNG.standard_normal((300_000, 70))
    assert len(decompositions.slab_cuts(A.shape, A.dtype)) > 2
    found, theirs = mn.compute(*np.linalg.lstsq(mn.asarray(A), mn.asarray(b))), np.linalg.lstsq(A, b)
    for mine, own in zip(found, theirs, strict=True):
        np.testing.assert_allclose(mine, own, atol=1e-10)


@pytest.mark.usefixtures("small_workers")
def test_a_field_is_detrended() -> None:
    field = mn.asarray(FIELD)
    np.testing.assert_allclose(np.polyfit(DAYS, field, 1), np.polyfit(DAYS, FIELD, 1), atol=1e-12)
    for mine, own in zip(
        np.polyfit(DAYS, field, 2, cov=True), np.polyfit(DAYS, FIELD, 2, cov=True), strict=True
    ):
        np.testing.assert_allclose(mine, own, atol=1e-10)
    X = DAYS[:, None]
    mine, own = (
        module.LinearRegression().fit(X, y)
        for module, y in ((mn.learn, field), (sklearn.linear_model, FIELD))
    )
    np.testing.assert_allclose(mine.coef_, own.coef_)
    np.testing.assert_allclose(mine.intercept_, own.intercept_)


@pytest.mark.usefixtures("small_workers")
@pytest.mark.parametrize("width", [3, 40])
@pytest.mark.parametrize("alpha", [0.5, "each"])
def test_ridge_of_a_field(width: int, alpha: float | str) -> None:
    X = RNG.standard_normal((24, width))
    each: Any = np.linspace(0.1, 2, 3000) if alpha == "each" else alpha
    Y = np.tile(FIELD, 10)
    mine = mn.learn.Ridge(each).fit(X, mn.asarray(Y))
    np.testing.assert_allclose(mine.coef_, sklearn.linear_model.Ridge(each).fit(X, Y).coef_, rtol=1e-8)


@pytest.mark.usefixtures("small_workers")
def test_a_small_system_is_solved_for_a_field() -> None:
    A = DESIGNS["square"]
    np.testing.assert_allclose(np.linalg.solve(A, mn.asarray(FIELD)), np.linalg.solve(A, FIELD), atol=1e-9)


@pytest.mark.usefixtures("small_workers")
def test_ridge_of_many_columns_chooses_a_solver() -> None:
    X, y = RNG.standard_normal((90, 60)), RNG.standard_normal(90)
    mine = mn.learn.Ridge(tol=1e-12).fit(mn.asarray(X), y)
    assert mine.solver_ == "sparse_cg"
    np.testing.assert_allclose(mine.coef_, sklearn.linear_model.Ridge().fit(X, y).coef_, rtol=1e-8)


SHAPES = (60, 60), (90, 60)
REFUSED: dict[str, Callable[[mn.DistArray, mn.DistArray], object]] = {
    name: lambda S, _, name=name: getattr(np.linalg, name)(S)
    for name in ("svd", "qr", "eigh", "eigvalsh", "inv", "pinv", "det", "slogdet", "matrix_rank", "svdvals")
} | {
    "nuclear norm": lambda S, _: np.linalg.norm(S, "nuc"),
    "matrix_power": lambda S, _: np.linalg.matrix_power(S, -1),
    "svd of tall": lambda _, X: np.linalg.svd(X, full_matrices=False),
    "lstsq": lambda _, X: np.linalg.lstsq(X, X[:, 0]),
    "lstsq of many": lambda _, X: np.linalg.lstsq(X, X),
    "polyfit": lambda _, X: np.polyfit(X[:, 0], X[:, 1], 60),
    "LinearRegression": lambda _, X: mn.learn.LinearRegression().fit(X, X[:, 0]),
    "Ridge": lambda _, X: mn.learn.Ridge(solver="cholesky").fit(X, X[:, 0]),
    "PCA": lambda _, X: mn.learn.PCA().fit(X),
    "PCA of covariances": lambda _, X: mn.learn.PCA(svd_solver="covariance_eigh").fit(X),
    "newton": lambda _, X: mn.learn.LogisticRegression(solver="newton-cholesky").fit(X, np.arange(90) % 2),
}  # fmt: skip


@pytest.mark.usefixtures("small_workers")
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_too_large_is_told_in_the_users_words(name: str) -> None:
    with pytest.raises(TooLargeError) as told:
        REFUSED[name](*(mn.asarray(RNG.standard_normal(shape)) for shape in SHAPES))
    message = str(told.value)
    assert "replicated" not in message
    assert not re.search(r"(?<!\w)_\w|_here\b", message), message
    assert re.search(r"\(60, 60\)|\(90, 60\)|\(90, 61\)|60 x 60|61 x 61", message), message


def test_a_wide_field_is_named_as_it_is_given() -> None:
    field = mn.zeros((4800, 65160), np.float32)
    for call in (lambda x: np.linalg.svd(x, full_matrices=False), np.linalg.svdvals):
        with pytest.raises(TooLargeError, match=r"\(4800, 65160\).*length 4,800.*mn.linalg.svds\(x, k=6\)"):
            call(field)
    with pytest.raises(TooLargeError, match=r"lstsq of shape \(4800, 65160\).*mn.linalg.lsqr"):
        np.linalg.lstsq(field, np.ones(4800))

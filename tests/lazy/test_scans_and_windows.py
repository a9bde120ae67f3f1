"""Scans by a user's function, linear recurrences and rolling windows: cuts, loops, what fails, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.expr.traverse import topological

pytestmark = pytest.mark.session("three workers")


def value(array: Any) -> np.ndarray:
    return array.compute()


def follow(one: Any, following: Any) -> Any:
    (a, b), (c, d) = one, following
    return a * c, c * b + d


def in_other_words(one: Any, following: Any) -> Any:
    # The same, by what is not recognized.
    (a, b), (c, d) = one, following
    return np.multiply(a, c) + 0.0 * a, d + b * c + 0.0 * a


def kinds(array: Any) -> set[str]:
    return {type(node).__name__ for node in topological([array.expression])}


def recurrence(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    y = b.copy()
    for place in range(1, len(y)):
        y[place] = a[place] * y[place - 1] + b[place]
    return y


@settings(max_examples=40, deadline=None)
@given(
    count=st.integers(1, 1500) | st.integers(1000, 1500),
    cuts=st.integers(1, 5),
    fn=st.sampled_from([follow, in_other_words]),
    is_reversed=st.booleans(),
    columns=st.sampled_from([0, 3]),
    least=st.sampled_from([-1.0, 0.99]),  # near 1, so that what is far behind counts
)
def test_recurrences(count: int, cuts: int, fn: Any, is_reversed: bool, columns: int, least: float) -> None:
    rng = np.random.default_rng(count)
    shape = (count, columns) if columns else (count,)
    a, b = rng.uniform(least, 1, shape), rng.normal(size=shape)
    blocks: Any = (min(cuts, count), 1) if columns else min(cuts, count)
    arrays = mn.asarray(a, blocks=blocks), mn.asarray(b, blocks=blocks)
    products, found = mn.associative_scan(fn, arrays, reverse=is_reversed)
    assert ("Recurrence" in kinds(found)) == (fn is follow)
    way = slice(None, None, -1 if is_reversed else 1)
    np.testing.assert_allclose(value(found), recurrence(a[way], b[way])[way], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(value(products), np.cumprod(a[way], axis=0)[way], rtol=1e-9, atol=1e-300)


def test_one_factor_is_not_made_an_array() -> None:
    b = np.random.default_rng(0).normal(size=3000)
    found = mn.associative_scan(follow, (mn.full(3000, 0.5), mn.asarray(b, blocks=3)))[1]
    assert "Create" not in kinds(found)
    np.testing.assert_allclose(value(found), recurrence(np.full(3000, 0.5), b), rtol=1e-12)


def test_products_that_overflow_inside_a_block_are_taken_one_by_one() -> None:
    b = np.zeros(4000)
    found = mn.associative_scan(follow, (mn.full(4000, 2.0), mn.asarray(b)))[1]
    assert (value(found) == 0).all()


def test_matrices_of_other_axes() -> None:
    rng = np.random.default_rng(1)
    M = rng.normal(size=(200, 2, 2)) * 0.7
    found = value(mn.associative_scan(lambda a, b: a @ b, mn.asarray(M, blocks=(4, 1, 1))))
    expected = [M[0]]
    for one in M[1:]:
        expected.append(expected[-1] @ one)
    np.testing.assert_allclose(found, np.stack(expected), rtol=1e-9, atol=1e-12)
    # An array of matrices and one of numbers, together.
    scales = rng.uniform(0.5, 1.0, 200)
    both = mn.associative_scan(
        lambda a, b: (a[0] @ b[0], np.minimum(a[1], b[1])), (M, mn.asarray(scales, blocks=2))
    )
    np.testing.assert_allclose(value(both[0]), np.stack(expected), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(value(both[1]), np.minimum.accumulate(scales))


def test_ufuncs_are_scans_of_their_own() -> None:
    x = np.random.default_rng(2).normal(size=(3, 500))
    found = mn.associative_scan(np.maximum, mn.asarray(x, blocks=(1, 4)), axis=1)
    assert "Scan" in kinds(found)
    np.testing.assert_array_equal(value(found), np.maximum.accumulate(x, axis=1))
    assert kinds(mn.associative_scan(lambda a, b: b + a, x)) >= {"Scan"}
    assert "Scan" not in kinds(mn.associative_scan(lambda a, b: a + b + 1, x))


def test_dtypes_widen_once() -> None:
    found = mn.associative_scan(lambda a, b: a + b + 0.5, mn.arange(5))
    np.testing.assert_array_equal(value(found), np.arange(5).cumsum() + 0.5 * np.arange(5))
    with pytest.raises(mn.errors.ShapeError, match="must keep the shapes"):
        mn.associative_scan(lambda a, b: (a + b)[:1], mn.arange(5))


def test_scans_in_loops() -> None:
    a, b = np.full(60, 0.9), np.random.default_rng(3).normal(size=60)
    plain, other = b, b
    for _ in range(4):
        plain = recurrence(a, plain) / 2
        other = pd.Series(other).rolling(5, min_periods=1).mean().to_numpy()
    factors = mn.asarray(a, blocks=3)
    for fn in (follow, in_other_words):

        def step(x: Any, fn: Any = fn) -> Any:
            return mn.associative_scan(fn, (factors, x))[1] / 2

        found, _ = mn.iterate(step, mn.asarray(b, blocks=3), max_iterations=4)
        np.testing.assert_allclose(value(found), plain, rtol=1e-12)
    rolled, _ = mn.iterate(lambda x: mn.rolling(x, 5, 1).mean(), mn.asarray(b, blocks=3), max_iterations=4)
    np.testing.assert_allclose(value(rolled), other, rtol=1e-9)


def test_functions_that_fail_are_told() -> None:
    x = mn.arange(300.0, blocks=3)
    with pytest.raises(mn.errors.OptionError, match="ones"):
        mn.associative_scan(lambda a: a, x)

    def fails_later(a: Any, b: Any) -> Any:
        if np.max(b) > 200:
            raise ValueError("beyond 200")
        return a + b + 0.0 * a

    with pytest.raises(mn.errors.MatnbError, match="beyond 200"):
        mn.associative_scan(fails_later, x).compute()

    def shrinks(a: Any, b: Any) -> Any:
        return (a + b + 0.0)[: 1 if len(b) > 3 else None]

    with pytest.raises(mn.errors.MatnbError, match="shape"):
        mn.associative_scan(shrinks, x).compute()
    for xs, told in (
        ((x, mn.ones(7)), "differ along axis 0"),
        (mn.asarray(1.0), "one axis"),
        ((), "one axis"),
    ):
        with pytest.raises(mn.errors.ShapeError, match=told):
            mn.associative_scan(follow, xs)


@settings(max_examples=40, deadline=None)
@given(
    count=st.integers(1, 300),
    window=st.integers(1, 80),
    cuts=st.integers(2, 8),
    name=st.sampled_from(["sum", "mean", "min", "max", "std", "var"]),
    dtype=st.sampled_from(["f8", "f4", "i2"]),
    least=st.integers(0, 3),
)
def test_windows_have_the_same_bits_for_any_cuts(
    count: int, window: int, cuts: int, name: str, dtype: str, least: int
) -> None:
    rng = np.random.default_rng(count)
    x = (rng.normal(size=count) * 100).astype(dtype)
    if dtype == "f8":
        x[rng.random(count) < 0.2] = np.nan
        x[rng.random(count) < 0.1] = -0.0
    least = min(least, window)
    whole = getattr(mn.rolling(mn.asarray(x, blocks=1), window, least), name)()
    cut = getattr(mn.rolling(mn.asarray(x, blocks=min(cuts, count)), window, least), name)()
    one, other = value(whole), value(cut)
    np.testing.assert_array_equal(one.view(np.int64), other.view(np.int64))
    expected = getattr(pd.Series(x).rolling(window, min_periods=least), name)()
    np.testing.assert_allclose(one, expected.to_numpy(), rtol=1e-6, atol=1e-5)


def test_windows_keep_what_a_large_mean_hides() -> None:
    x = 1e9 + np.random.default_rng(0).normal(size=500)
    seen = np.lib.stride_tricks.sliding_window_view(x, 50)
    found = value(mn.rolling(mn.asarray(x, blocks=3), 50).std())[49:]
    np.testing.assert_allclose(found, seen.std(axis=1, ddof=1), rtol=1e-7)
    assert np.isnan(value(mn.rolling(x, 1).std())).all()
    assert (value(mn.rolling(x, 1).std(ddof=0)) == 0).all()


def test_windows_along_any_axis() -> None:
    x = np.random.default_rng(1).normal(size=(40, 3, 30))
    for axis in (0, 1, -1):
        for blocks in ((3, 1, 1), (1, 3, 2), (2, 1, 4)):
            found = value(mn.rolling(mn.asarray(x, blocks=blocks), 3, axis=axis).max())
            lanes = np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1)
            expected = pd.DataFrame(lanes).rolling(3).max().to_numpy()
            np.testing.assert_array_equal(np.moveaxis(found, axis, 0).reshape(lanes.shape), expected)


def test_infinities_stay_in_their_windows() -> None:
    x = np.array([1.0, np.inf, 2.0, 3.0, 4.0, -np.inf, 5.0])
    found = value(mn.rolling(x, 2).sum())
    np.testing.assert_array_equal(found, [np.nan, np.inf, np.inf, 5.0, 7.0, -np.inf, -np.inf])


def test_bad_windows_are_refused() -> None:
    for arguments in ((0,), (3, 4), (3, -1), (2.5,), (3, 1.5)):
        with pytest.raises(mn.errors.OptionError, match="rolling"):
            mn.rolling(mn.ones(5), *arguments)
    with pytest.raises(mn.errors.DTypeError, match="complex"):
        mn.rolling(mn.ones(5, complex), 2)
    with pytest.raises(mn.errors.ShapeError, match="axis"):
        mn.rolling(mn.asarray(1.0), 2)
    assert "windows of 3" in repr(mn.rolling(mn.ones(5), 3))

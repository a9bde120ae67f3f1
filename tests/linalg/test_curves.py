"""Polynomials fitted to points and angles made continuous, as NumPy does."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import matnb as mn
from matnb.errors import DTypeError, OptionError, ShapeError

pytestmark = pytest.mark.session("two threads")

RNG = np.random.default_rng(3)
X = RNG.normal(size=200) * 3 + 10
Y = 2 - X + 0.25 * X**2 + RNG.normal(size=200)
W = RNG.uniform(0.5, 2, size=200)


@pytest.mark.parametrize("deg", [0, 1, 2, 4])
@pytest.mark.parametrize("w", [None, W])
@pytest.mark.parametrize("y", [Y, np.stack([Y, -Y + X], axis=1), (Y * 10).astype(int)])
def test_polynomials(deg: int, w: Any, y: np.ndarray) -> None:
    x = mn.repartition(mn.asarray(X), n=3)
    np.testing.assert_allclose(np.polyfit(x, y, deg, w=w), np.polyfit(X, y, deg, w=w), rtol=1e-7)
    for cov in (True, "unscaled"):
        found, expected = np.polyfit(x, y, deg, w=w, cov=cov), np.polyfit(X, y, deg, w=w, cov=cov)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-6)
    found, expected = np.polyfit(x, y, deg, w=w, full=True), np.polyfit(X, y, deg, w=w, full=True)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_polynomials_of_columns_of_a_table_and_of_few_points() -> None:
    t = mn.table({"x": [1.0, 2.0, 3.0], "y": [3.0, 5.0, 7.0]})
    np.testing.assert_allclose(np.polyfit(t["x"], t["y"], 1), [2, 1], atol=1e-12)
    x = np.array([1.0, 1.0, 2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, of a degree that is too high
        expected = np.polyfit(x, x, 3)
    np.testing.assert_allclose(np.polyfit(mn.asarray(x), x, 3), expected, atol=1e-9)


def test_what_is_no_polynomial() -> None:
    x = mn.asarray(X)
    for deg in (-1, 1.5, True):
        with pytest.raises(OptionError, match="whole number from 0 on"):
            np.polyfit(x, Y, deg)  # type: ignore[call-overload]
    with pytest.raises(ShapeError, match="a y for each x"):
        np.polyfit(x, Y[1:], 1)
    with pytest.raises(ShapeError, match="weights of shape"):
        np.polyfit(x, Y, 1, w=W[1:])
    with pytest.raises(OptionError, match='more than 2 points, or cov="unscaled"'):
        np.polyfit(x[:2], Y[:2], 1, cov=True)


ANGLES = st.floats(-50, 50) | st.sampled_from([0.0, np.pi, -np.pi, 2 * np.pi, 3 * np.pi])


@given(
    angles=hnp.arrays(np.float64, hnp.array_shapes(max_dims=2, max_side=7), elements=ANGLES),
    period=st.sampled_from([2 * np.pi, 1.0, 4.0]),
    discont=st.sampled_from([None, 1.0, 10.0]),
)
@settings(max_examples=40, deadline=None)
def test_angles(angles: np.ndarray, period: float, discont: float | None) -> None:
    for axis in range(-1, angles.ndim):
        expected = np.unwrap(angles, discont, axis, period=period)
        found = np.asarray(np.unwrap(mn.asarray(angles), discont, axis, period=period))
        np.testing.assert_allclose(found, expected, atol=1e-9)


@given(
    angles=hnp.arrays(np.int64, st.integers(1, 9), elements=st.integers(-20, 20)), period=st.integers(2, 7)
)
@settings(max_examples=40, deadline=None)
def test_whole_numbers_that_go_round(angles: np.ndarray, period: int) -> None:
    found, expected = np.unwrap(mn.asarray(angles), period=period), np.unwrap(angles, period=period)
    assert found.dtype == expected.dtype
    assert np.asarray(found).tolist() == expected.tolist()


def test_what_is_no_angle() -> None:
    with pytest.raises(DTypeError, match=r"np\.angle\(x\)"):
        np.unwrap(mn.asarray([1j, 2.0]))
    with pytest.raises(ShapeError, match="an array with an axis"):
        np.unwrap(mn.asarray(1.0))

"""Products of floats are NumPy's wherever the array is cut: what comes first is multiplied first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn

# Overflow and underflow on the way, in either order; zeros, signed ones too; what is not finite.
ROWS = (
    (0.0, 1e200, 1e200),
    (1e-300, 1e200, 1e200, 3.0),
    (1e-200, 1e-200, 1e300, 1e300, 1e300),
    (1e200, 1e200, 1e-300, 1e-300),
    (1e200, 1e200, -0.0, 2.0),
    (-0.0, 1e300, np.inf, 1.0),
    (np.inf, 1e-300, 1e-300, -2.0),
    (1.7976931348623157e308, 1.0, -1.0, 0.5),
    (5e-324, 1e300, 1e300, 3.0),
    (np.nan, 0.0, 1e300),
    (0.1, 0.2, 0.3, 0.7, 1.1, 1.3),
)
PARTS = (1.0, 0.5, -2.0, 1e150, 1e-150, 0.0)  # of complex numbers
CUTS = (2, None)  # blocks of an axis; None for one an element
DTYPES = (
    "float64",
    *(pytest.param(one, marks=pytest.mark.slow) for one in ("float32", "float16", "longdouble")),
)


pytestmark = pytest.mark.session("interpreter", "two workers")


def lines(dtype: str) -> np.ndarray:
    """Return the rows, which overflow in the range of a dtype too, as a matrix with ones behind them."""
    power = 1.0 if dtype == "longdouble" else np.log10(float(np.finfo(dtype).max)) / 308
    values = np.ones((len(ROWS), 6))
    for line, row in zip(values, ROWS, strict=True):
        line[: len(row)] = row
    with np.errstate(all="ignore"):
        return (np.sign(values) * np.abs(values) ** power).astype(dtype)


def cut(array: np.ndarray, count: int | None) -> mn.DistArray:
    return mn.asarray(array, blocks=[min(length, count or length) for length in array.shape])


def calls(dtype: str) -> Iterator[tuple[str, Any]]:
    """Give each way to multiply the elements of rows of a matrix."""
    first = np.dtype(dtype).type(1e-4)
    yield "prod", lambda xp, x: xp.prod(x, axis=1)
    yield "prod of all", lambda xp, x: xp.prod(x[1:3], keepdims=True)
    yield "prod initial", lambda xp, x: xp.prod(x, axis=-1, initial=first)
    yield "prod initial of all", lambda xp, x: xp.prod(x[1:2], initial=first)
    yield "prod where", lambda xp, x: xp.prod(x, axis=1, where=x != 2)
    yield "prod of a chain", lambda xp, x: xp.prod(-x, axis=1)
    yield "nanprod", lambda xp, x: xp.nanprod(x, axis=1)
    yield "multiply.reduce", lambda xp, x: xp.multiply.reduce(x.T)
    yield "multiply.accumulate", lambda xp, x: xp.multiply.accumulate(x, axis=1)
    yield "cumprod", lambda xp, x: xp.cumprod(x)
    yield "nancumprod", lambda xp, x: xp.nancumprod(x, axis=1)
    yield "cumulative_prod", lambda xp, x: xp.cumulative_prod(x, axis=1, include_initial=True)
    if dtype in ("float32", "float64"):  # by label none is extended, and halves are rounded once a block
        yield "multiply.reduceat", lambda xp, x: xp.multiply.reduceat(x, [0, 2], axis=1)
        yield "multiply.at", _multiplied_at


def _multiplied_at(xp: Any, x: Any) -> Any:
    target = xp.ones((2, len(ROWS)), dtype=x.dtype) * x.dtype.type(1e-4)
    xp.multiply.at(target, np.array([0, 1, 0, 1, 0, 1]), x.T)
    return target


@pytest.mark.parametrize("dtype", DTYPES)
def test_of_real_numbers_have_numpys_bits(kind: str, dtype: str) -> None:
    expected, found, texts = [], [], []
    array = lines(dtype)
    for name, call in calls(dtype):
        for count in CUTS if kind == "workers" else CUTS[:1]:
            with np.errstate(all="ignore"):
                expected.append(call(np, array.copy()))
            found.append(call(mn, cut(array, count)))
            texts.append(f"{name} of {array} in {count} blocks an axis")
    for text, mine, theirs in zip(texts, mn.compute(*found), expected, strict=True):
        assert mine.dtype == theirs.dtype, text
        if dtype == "float16":  # NumPy rounds to half precision after each row, or after all of them
            assert np.isfinite(mine[np.isfinite(theirs)]).all(), text
            continue
        np.testing.assert_array_equal(mine, theirs, err_msg=text)
        numbers = ~np.isnan(theirs)  # the sign of NaN follows the processor
        np.testing.assert_array_equal(np.signbit(mine)[numbers], np.signbit(theirs)[numbers], err_msg=text)


def test_of_complex_numbers_are_numpys() -> None:
    rng = np.random.default_rng(3)
    expected, found, texts = [], [], []
    for _ in range(4):
        values = rng.choice(PARTS, (5, 2)).view(np.complex128)[:, 0]
        values[rng.integers(5)] = complex(*rng.choice((np.inf, np.nan, 0.0, 1e300), 2))
        for name in ("prod", "cumprod", "nanprod"):
            for count in CUTS:
                with np.errstate(all="ignore"):
                    expected.append(getattr(np, name)(values))
                found.append(getattr(mn, name)(cut(values, count)))
                texts.append(f"{name} of {values} in {count} blocks")
    for text, mine, theirs in zip(texts, mn.compute(*found), expected, strict=True):
        # NumPy multiplies complex numbers with or without a rounding in between, by how long the array is.
        np.testing.assert_allclose(mine, theirs, rtol=1e-13, err_msg=text)


@pytest.mark.parametrize("axis", [0, 1, None])
def test_of_sparse_arrays_meet_absent_zeros_at_their_places(axis: int | None) -> None:
    dense = np.array(
        [[np.inf, 0, 1e200, 1], [1e200, 1e200, 0, 1], [0, 1e200, 1e200, 1], [1e-300, 1e200, 1e200, 1]]
    )
    found = [
        mn.asarray(sp.csr_array(dense), blocks=[rows, columns]) for rows in (1, 2, 4) for columns in (1, 2, 4)
    ]
    with np.errstate(all="ignore"):
        expected, stored = np.prod(dense, axis=axis), np.prod(np.where(dense == 0, 1.0, dense), axis=axis)
    for mine in mn.compute(*(one.prod(axis=axis) for one in found)):
        np.testing.assert_array_equal(mine, expected)
    for mine in mn.compute(*(mn.reduce(one, "times", axis=axis) for one in found)):
        np.testing.assert_array_equal(mine, stored)


def test_by_label_go_on_from_block_to_block() -> None:
    values = np.array([1e-300, 0.0, 1e200, 1e200, 1e200, 1e200, 3.0, -0.0])
    labels = np.array([0, 1, 0, 1, 0, 1, 0, 1])
    found = [mn.scatter_reduce(cut(values, count), mn.asarray(labels), 3, "times") for count in CUTS]
    for mine in mn.compute(*found):
        np.testing.assert_array_equal(mine, [1e-300 * 1e200 * 1e200 * 3, 0.0, 1.0])


def test_of_groups_go_on_from_part_to_part() -> None:
    values = np.array([1e-300, 0.0, 1e200, 1e200, 1e200, 1e200, 3.0, -0.0])
    keys = np.array([0.5, 7e9, 0.5, 7e9, 0.5, 7e9, 0.5, 7e9])
    for count in CUTS:
        mine = mn.groupby(cut(keys, count)).prod(cut(values, count)).compute()
        np.testing.assert_array_equal(mine, [1e-300 * 1e200 * 1e200 * 3, 0.0])


def test_inside_a_loop_are_those_outside() -> None:
    values = np.array([1e-300, 1e200, 1e200, 3.0])

    def step(x: mn.DistArray) -> mn.DistArray:
        return x * 0 + np.prod(x) / 3e100 * np.cumprod(x)

    found, _ = mn.iterate(step, mn.asarray(values, blocks=[4]), max_iterations=1)
    np.testing.assert_allclose(found.compute(), np.cumprod(values), rtol=1e-14)

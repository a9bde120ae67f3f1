"""Extremes and their places along a short last axis: NumPy's bits, and the first of equal ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from matnb.blocks.formats import Dense
from matnb.blocks.kernels.reductions import folding, reductions
from matnb.blocks.kernels.reductions.folding import _found_along
from matnb.blocks.kernels.reductions.reductions import reduce_block


@pytest.fixture(autouse=True)
def compiled_for_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reductions, "_WORTH_COMPILING", 0)
    monkeypatch.setattr(folding, "_WORTH_COMPILING", 0)


def rows_of(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    rng = np.random.default_rng(1)
    values = rng.integers(-3, 4, shape).astype(dtype)
    if values.dtype.kind == "f":
        values[rng.random(shape) < 0.1] = -0.0
        values[rng.random(shape) < 0.05] = np.nan
        values[rng.random(shape) < 0.05] = np.inf
    return values


@pytest.mark.parametrize("name", ["min", "max"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(1000, 2), (999, 4), (50, 7, 16), (300, 32), (20, 33)])
def test_extremes_of_short_rows_are_numpys(shape: tuple[int, ...], dtype: str, name: str) -> None:
    values, axis = rows_of(shape, dtype), len(shape) - 1
    found = reduce_block(name, Dense(values), (axis,), values.dtype)
    assert found.values.tobytes() == getattr(np, name)(values, axis=axis).tobytes()
    assert found.shape == (*shape[:-1], 1)


@pytest.mark.parametrize("name", ["argmin", "argmax"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "int8"])
@pytest.mark.parametrize("shape", [(1000, 2), (999, 4), (50, 7, 16), (300, 32), (20, 33)])
def test_places_in_short_rows_are_numpys(shape: tuple[int, ...], dtype: str, name: str) -> None:
    values, axis, find = rows_of(shape, dtype), len(shape) - 1, getattr(np, name)
    places, extremes = _found_along(find, values, axis)
    expected = find(values, axis=axis, keepdims=True)
    np.testing.assert_array_equal(places, expected)
    assert extremes.tobytes() == np.take_along_axis(values, expected, axis).tobytes()

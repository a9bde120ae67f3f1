"""Kernels along an axis against NumPy: places of extremes of long blocks, running sums, differences."""

from __future__ import annotations

import numpy as np
import pytest

from matnb.blocks.formats import Dense, to_numpy
from matnb.blocks.kernels.reductions.folding import extreme_places, least_and_greatest
from matnb.blocks.kernels.reductions.scanning import differences, scanned


@pytest.mark.parametrize("operation", ["argmin", "argmax"])
@pytest.mark.parametrize("content", ["repeated", "nan", "truths", "complex"])
def test_the_first_of_equal_extremes_is_found_in_long_blocks(operation, content):
    rng = np.random.default_rng(0)
    values = rng.integers(0, 5, (3, 70_001)).astype(np.float64)
    if content == "nan":
        values[1, [40_000, 69_000]] = values[0, 65_535] = np.nan
    elif content == "truths":
        values = values > 3
    elif content == "complex":
        values = values + 1j * rng.integers(0, 5, values.shape)
    for given, axes in (
        (values, (0, 1)),
        (values, (0,)),
        (values, (1,)),
        (values[0], (0,)),
        (values.T, (0,)),
    ):
        shared = least_and_greatest([Dense(given)], operation, axes, (0,) * given.ndim, given.shape)
        found = extreme_places([shared], operation, axes, False, given.dtype)
        axis = axes[0] if len(axes) < given.ndim else None
        np.testing.assert_array_equal(to_numpy(found), getattr(np, operation)(given, axis=axis))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_running_sums_have_the_bits_of_numpy(dtype):
    rng = np.random.default_rng(0)
    values = (100 * rng.random(1000) - 50).astype(dtype)
    values[0] = -0.0
    found = to_numpy(scanned([Dense(values)], "add", 0, np.dtype(dtype)))
    assert found.tobytes() == np.cumsum(values, dtype=dtype).tobytes()
    carry = Dense(np.array([3], dtype))
    after = to_numpy(scanned([Dense(values), carry], "add", 0, np.dtype(dtype)))
    following = np.cumsum(np.concatenate([carry.values, values]), dtype=dtype)[1:]
    assert after.tobytes() == following.tobytes()


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("kind", [np.float64, np.bool_])
def test_differences_go_on_into_what_follows(axis, kind):
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2, (6, 7)).astype(kind)
    cut = 4 if axis == 0 else 5
    own, following = (Dense(one) for one in np.split(values, [cut], axis=axis))
    next_one = Dense(np.take(following.values, [0], axis=axis))
    found = [differences([own, next_one], axis), differences([following], axis)]
    whole = np.concatenate([to_numpy(one) for one in found], axis=axis)
    np.testing.assert_array_equal(whole, np.diff(values, axis=axis))

"""The least and the greatest of a block that is larger than what is looked at in one go."""

from __future__ import annotations

import numpy as np
import pytest

from matnb.blocks.formats import Dense
from matnb.blocks.kernels.reductions.counting_values import extent

LENGTH = 200_001  # some parts, the last one of a few


@pytest.mark.parametrize("place", [0, 70_000, LENGTH - 1])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int8, np.float32])
def test_the_ends_may_be_anywhere(place: int, dtype: type) -> None:
    values = np.full(LENGTH, 5, dtype)
    values[place], values[(place + 100_000) % LENGTH] = 3, 100
    found = extent([Dense(values)]).values
    assert found.dtype == dtype
    assert found.tolist() == [3, 100]
    if dtype == np.uint64:
        values[place] = 2**64 - 1
        assert extent([Dense(values)]).values.tolist() == [5, 2**64 - 1]


def test_nan_anywhere_is_both_ends() -> None:
    values = np.zeros(LENGTH)
    values[150_000] = np.nan
    assert np.isnan(extent([Dense(values)]).values).all()


def test_columns_first() -> None:
    values = np.asfortranarray(np.arange(LENGTH - 1, dtype=np.float64).reshape(400, -1))
    assert extent([Dense(values)]).values.tolist() == [0.0, LENGTH - 2]

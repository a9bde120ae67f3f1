"""The smallest elements of rows: the first of NumPy's sort, bit for bit, and the places of a stable one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from matnb.blocks.formats import Dense
from matnb.blocks.kernels.sorting.ordering import smallest


@given(
    st.integers(0, 99),
    st.integers(0, 4),
    st.integers(1, 40),
    st.sampled_from(["f8", "f4", "i8", "i4"]),
    st.data(),
)
def test_they_are_the_first_of_a_stable_sort(seed, rows, length, dtype, data):
    count = data.draw(st.integers(1, length))
    rng = np.random.default_rng(seed)
    values = rng.integers(-4, 5, (rows, length)).astype(dtype)
    if values.dtype.kind == "f":
        values[rng.random(values.shape) < data.draw(st.sampled_from([0.0, 0.3, 1.0]))] = np.nan
        values[(values == 0) & (rng.random(values.shape) < 0.5)] = -0.0
    places = np.argsort(values, axis=1, kind="stable")[:, :count]
    np.testing.assert_array_equal(smallest([Dense(values)], count, True).values, places)
    found = smallest([Dense(values)], count, False).values
    expected = np.sort(values, axis=1)[:, :count]
    np.testing.assert_array_equal(found, expected)
    assert (np.signbit(found) == np.signbit(expected))[expected == 0].all()

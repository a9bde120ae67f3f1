"""What is written of an array is what NumPy writes of it, though most of it is never looked at."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from matnb.pictures.values import MOST_VALUES, corners, corners_text, entries_text, num_first_entries

DTYPES = ["float64", "float32", "int64", "uint8", "bool", "complex128"]


def written(array):
    """Return the text from the corners alone."""
    found = corners(array.shape)
    room = found.room(array.dtype)
    for region, into in found.regions():
        room[into] = array[tuple(slice(*span) for span in region)]
    return corners_text(found, room)


@given(
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: npst.arrays(dtype, npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=12))
    ),
    st.integers(1, 5),
    st.integers(0, 1000),
    st.integers(0, 10),
    st.integers(20, 120),
)
def test_it_is_what_numpy_writes(array, edgeitems, threshold, precision, linewidth):
    with np.printoptions(edgeitems=edgeitems, threshold=threshold, precision=precision, linewidth=linewidth):
        wanted = np.array2string(array) if array.ndim else str(array[()])
        if len(wanted) <= 12_000:  # longer texts are shortened
            assert written(array) == wanted


def test_no_more_than_some_kilobytes_are_looked_at():
    with np.printoptions(edgeitems=10**9, threshold=10**9):
        for shape in [(10**9,), (10**6, 10**6), (50, 50, 50), (3,) * 6]:
            found = corners(shape)
            assert 0 < found.room(np.dtype("bool")).size <= 2 * MOST_VALUES
            assert sum(np.prod([b - a for a, b in region]) for region, _ in found.regions()) <= MOST_VALUES
        assert num_first_entries() <= MOST_VALUES
    assert corners((2,) * 12) is None


def test_at_least_one_value_is_written_at_each_end():
    with np.printoptions(edgeitems=0, threshold=0):
        assert written(np.arange(9)) == "[0 ... 8]"
        assert num_first_entries() == 2


def failing(value):
    raise ZeroDivisionError


def test_a_users_formatter_is_used_and_does_no_harm_when_it_raises():
    array = np.arange(3.0)
    with np.printoptions(formatter={"float": lambda value: f"<{value:.0f}>"}):
        assert written(array) == "[<0> <1> <2>]"
    with np.printoptions(formatter={"float": failing}):
        assert written(array) == "[0. 1. 2.]"
        assert entries_text(np.array([0]), np.array([1]), np.array([2.5]), 1) == "(0, 1)  2.5"
    with np.printoptions(formatter={"float": lambda value: "a\nb"}):
        assert entries_text(np.array([0]), np.array([1]), np.array([2.5]), 1) == "(0, 1)  2.5"
    with np.printoptions(formatter={"float": lambda value: "x" * 10**6}):
        assert len(written(array)) < 13_000


@pytest.mark.parametrize("dtype", DTYPES)
def test_entries_stand_in_columns(dtype):
    values = np.array([1, 0, 100]).astype(dtype)
    lines = entries_text(np.array([0, 10, 10]), np.array([3, 4, 555]), values, 5).splitlines()
    assert [line.split("  ")[0].strip() for line in lines[:3]] == ["(0, 3)", "(10, 4)", "(10, 555)"]
    assert [line.split(")", 1)[1].strip() for line in lines[:3]] == [
        one.strip(" []") for one in np.array2string(values[:, None]).splitlines()
    ]
    assert lines[3] == "... 2 more"


def test_entries_are_rounded_as_numpy_is_told_to():
    with np.printoptions(precision=2):
        assert entries_text(np.array([1]), np.array([2]), np.array([-0.123456]), None) == "(1, 2)  -0.12"

"""Sorted arrays merged by the compiled loop, against NumPy's sort of both."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from matnb.blocks.formats import NumericArray
from matnb.blocks.kernels.compiled import given
from matnb.blocks.kernels.sorting.ordering import merge

LENGTHS = (0, 1, 2, 3, 4, 5, 7, 8, 64, 100, 257)


@pytest.mark.parametrize("dtype", ["float64", "int64"])
@pytest.mark.parametrize("most", [1, 5, 10**6])
def test_two_sorted_arrays_of_any_lengths(dtype: str, most: int) -> None:
    rng = np.random.default_rng(most)
    for left, right in product(LENGTHS, LENGTHS):
        for shift in (0, most, -most):  # also where all of one come before the other
            one = np.sort(rng.integers(0, most, left)).astype(dtype)
            other = np.sort(rng.integers(0, most, right) + shift).astype(dtype)
            check(one, other)


def test_of_equal_elements_those_of_the_left_come_first() -> None:
    zeros = np.repeat([-1.0, 0.0, 2.0], [9, 30, 11])
    found = check(zeros, np.where(zeros == 0, -0.0, zeros))
    assert np.signbit(found[found == 0]).tolist() == [False] * 30 + [True] * 30


def check(left: NumericArray, right: NumericArray) -> NumericArray:
    out = np.empty(left.size + right.size, left.dtype)
    merge(given(left), given(right), out)
    np.testing.assert_array_equal(out, np.sort(np.concatenate([left, right]), kind="stable"))
    return out

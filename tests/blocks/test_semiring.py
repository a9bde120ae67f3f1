"""Monoids have identities, semirings result dtypes."""

from __future__ import annotations

import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st

from matnb.blocks.semiring import MIN, MONOIDS, SEMIRINGS, semiring_named
from matnb.errors import DTypeError, OptionError


@given(st.sampled_from(sorted(MONOIDS)), strategies.sparse_dtypes(), st.data())
def test_the_identity_changes_nothing(name, dtype, data):
    monoid = MONOIDS[name]
    if monoid.name in ("lor", "land"):
        dtype = np.dtype(bool)
    value = np.array(data.draw(strategies.elements(dtype)), dtype)
    identity = monoid.identity(dtype)
    assert identity.dtype == dtype
    with np.errstate(all="ignore"):
        combined = getattr(np, monoid.ufunc)(value, identity)
    np.testing.assert_array_equal(combined, value)


def test_complex_numbers_have_no_least():
    with pytest.raises(DTypeError, match="'min' has no identity for dtype complex128"):
        MIN.identity(np.dtype(complex))


@pytest.mark.parametrize(
    ("name", "left", "right", "result"),
    [
        ("plus_times", "int32", "float32", "float64"),
        ("plus_times", "bool", "bool", "bool"),
        ("min_plus", "int32", "int64", "int64"),
        ("plus_pair", "bool", "float32", "int64"),
        ("lor_land", "float64", "int32", "bool"),
    ],
)
def test_result_dtypes(name, left, right, result):
    assert semiring_named(name).result_dtype(np.dtype(left), np.dtype(right)) == np.dtype(result)


@pytest.mark.parametrize("dtype", ["bool", "complex128"])
def test_least_sums_need_real_numbers(dtype):
    with pytest.raises(DTypeError, match="min_plus"):
        semiring_named("min_plus").result_dtype(np.dtype(dtype), np.dtype(dtype))


def test_an_unknown_name_lists_the_known_ones_or_the_one_that_was_meant():
    with pytest.raises(
        OptionError, match=f"unknown semiring 'tropical'; there are {', '.join(map(repr, SEMIRINGS))[:400]}"
    ):
        semiring_named("tropical")
    with pytest.raises(OptionError, match=r"unknown semiring 'min-plus'; did you mean 'min_plus'\?"):
        semiring_named("min-plus")

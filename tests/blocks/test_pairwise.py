"""Sums of arrays as a tree: its shape, its bits, its memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matnb.blocks.kernels.pairwise import add_in_pairs, in_pairs, middle


def as_tree(values):
    """Return what is added when the rule is written down as it reads."""
    if len(values) == 1:
        return values[0]
    first = middle(len(values))
    return ("+", as_tree(values[:first]), as_tree(values[first:]))


@given(st.integers(1, 70))
def test_the_tree_splits_at_the_largest_power_of_two(count):
    assert in_pairs(list(range(count)), lambda a, b: ("+", a, b)) == as_tree(list(range(count)))


@given(st.integers(2, 40), st.data())
def test_a_part_of_the_tree_is_added_elsewhere_with_the_same_bits(count, data):
    parts = [np.random.default_rng(place).normal(size=7) * 10.0**place for place in range(count)]
    whole, cut = np.empty(7), middle(count)
    add_in_pairs(parts, np.add, whole.dtype, whole)
    halves = []
    for some in (parts[:cut], parts[cut:]):
        half = some[0].copy()
        if len(some) > 1:
            add_in_pairs(some, np.add, half.dtype, half)
        halves.append(half)
    np.testing.assert_array_equal(whole, halves[0] + halves[1])


@pytest.mark.parametrize("shape", [(), (0,), (5,), (9001,), (100, 300), (3, 70_000)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "?"])
@pytest.mark.parametrize("count", [2, 3, 7, 8])
def test_sums_of_every_shape_and_dtype(shape, dtype, count):
    generator = np.random.default_rng(count)
    parts = [np.asarray(generator.normal(size=shape) * 3).astype(dtype) for _ in range(count)]
    combine = np.logical_or if dtype == "?" else np.add
    wide = np.dtype("f8" if dtype == "f4" else dtype)
    expected = in_pairs([part.astype(wide) for part in parts], combine)
    out = np.empty(shape, dtype)
    add_in_pairs(parts, combine, wide, out)
    np.testing.assert_array_equal(out, np.asarray(expected).astype(dtype))


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("view", [lambda x: x, lambda x: x[:, ::2], lambda x: x.T])
def test_the_sum_may_lie_where_one_of_the_first_two_did(place, view):
    parts = [view(np.random.default_rng(one).normal(size=(200, 150))) for one in range(6)]
    expected = in_pairs(parts, np.add)
    add_in_pairs(parts, np.add, parts[0].dtype, parts[place])
    np.testing.assert_array_equal(parts[place], expected)

"""Reductions by label against NumPy's ``ufunc.at``, whole and in pieces."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import strategies
from block_checks import assert_same
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from matnb.blocks.formats import Dense
from matnb.blocks.kernels.reductions.labels import reduce_by_label
from matnb.blocks.semiring import LAND, LOR, MAX, MIN, MONOIDS, PLUS, TIMES
from matnb.errors import DTypeError, ShapeError

FLOAT = np.dtype(float)
LABELS = np.array([1, 0, 1, 3])


def reduced_by_numpy(values, labels, num_labels, monoid, dtype):
    """Combine one value after the other."""
    wide = np.dtype(np.float64) if monoid is PLUS and dtype == np.float32 else dtype
    held = np.dtype(bool) if monoid in (LOR, LAND) else wide
    totals = np.full((num_labels, *values.shape[1:]), monoid.identity(held), held)
    with np.errstate(all="ignore"):
        getattr(np, monoid.ufunc).at(totals, labels, values.astype(held))
    return totals.astype(wide)


@given(
    st.data(),
    st.sampled_from(sorted(MONOIDS)),
    strategies.sparse_dtypes(),
    st.sampled_from([np.int32, np.int64]),
    strategies.shapes(least=1, most=2, longest=8),
)
def test_values_and_rows_of_a_label_are_combined(data, name, dtype, label_dtype, shape):
    monoid, num_labels = MONOIDS[name], data.draw(st.integers(1, 4))
    values = data.draw(strategies.dense_blocks(shape, dtype)).values
    labels = data.draw(hnp.arrays(label_dtype, shape[0], elements=st.integers(0, num_labels - 1)))
    expected = reduced_by_numpy(values, labels, num_labels, monoid, dtype)
    found = reduce_by_label(values, labels, num_labels, monoid, dtype)
    assert_same(found, expected.shape, expected.dtype, expected)


@given(st.data(), st.sampled_from(sorted(MONOIDS)), strategies.sparse_dtypes())
def test_results_of_pieces_combine_to_that_of_the_whole(data, name, dtype):
    monoid, length = MONOIDS[name], 6
    cut = data.draw(st.integers(0, length))
    values = data.draw(strategies.dense_blocks((length,), dtype, exact=True)).values
    labels = data.draw(hnp.arrays(np.int64, length, elements=st.integers(0, 2)))
    whole = reduce_by_label(values, labels, 3, monoid, dtype).values
    parts = [
        reduce_by_label(values[piece], labels[piece], 3, monoid, dtype).values
        for piece in (slice(cut), slice(cut, None))
    ]
    np.testing.assert_array_equal(getattr(np, monoid.ufunc)(*parts).astype(whole.dtype), whole)


@example(np.float32)
@given(st.sampled_from([np.float16, np.float32]))
def test_short_floats_are_summed_in_long_ones(dtype):
    values = np.array([1, 1e-4, 1e-4, 0], dtype)
    found = reduce_by_label(values, np.zeros(4, np.int32), 1, PLUS, np.dtype(dtype))
    assert_same(found, (1,), FLOAT, np.array([values.astype(float).sum()]))


def test_half_floats_keep_their_dtype_where_nothing_is_summed():
    values = np.array([1.5, 2, 4, 3], np.float16)
    assert_same(
        reduce_by_label(values, LABELS, 4, MAX, values.dtype),
        (4,), np.dtype(np.float16), np.array([2, 4, -np.inf, 3]),
    )  # fmt: skip


def test_nan_goes_through_least_and_greatest():
    values = np.array([np.nan, 1, 2, np.nan])
    np.testing.assert_array_equal(
        reduce_by_label(values, LABELS, 4, MIN, FLOAT).values, [1, np.nan, np.inf, np.nan]
    )
    np.testing.assert_array_equal(
        reduce_by_label(values[::-1], LABELS, 4, MAX, FLOAT).values, [2, np.nan, -np.inf, np.nan]
    )


def test_integers_wrap():
    most = np.iinfo(np.int32).max
    values = np.array([most, 7, 1, 0], np.int32)
    found = reduce_by_label(values, LABELS, 4, PLUS, np.dtype(np.int32)).values
    assert found.tolist() == [7, -most - 1, 0, 0]
    found = reduce_by_label(np.full(4, 2**20, np.int32), LABELS * 0, 1, TIMES, np.dtype(np.int32)).values
    assert found.tolist() == [0]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("shape", [(4,), (4, 1), (4, 2)])
@pytest.mark.parametrize("monoid", MONOIDS.values(), ids=list(MONOIDS))
def test_a_label_out_of_range_is_named_with_its_place(monoid, shape, dtype):
    for label, least in ((-1, 4), (3, 3)):
        labels = np.array([0, 1, label, 1], dtype)
        with pytest.raises(ShapeError, match=f"label {label} at position 2: labels go from 0 to {least - 1}"):
            reduce_by_label(np.ones(shape), labels, least, monoid, FLOAT)
    with pytest.raises(ShapeError, match="label 0 at position 0: there are no labels"):
        reduce_by_label(np.ones(shape), np.zeros(4, dtype), 0, monoid, FLOAT)


def test_labels_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match="give one for each value or row"):
        reduce_by_label(np.ones(3), LABELS, 4, PLUS, FLOAT)
    with pytest.raises(ShapeError, match="give one for each value or row"):
        reduce_by_label(np.ones((4, 1, 1)), LABELS, 4, PLUS, FLOAT)
    with pytest.raises(DTypeError, match="give int32 or int64"):
        reduce_by_label(np.ones(4), LABELS.astype(np.uint8), 4, PLUS, FLOAT)


def test_nothing_gives_identities():
    for shape in [(0,), (0, 2)]:
        found = reduce_by_label(np.ones(shape), np.zeros(0, np.int64), 2, MIN, FLOAT)
        assert_same(found, (2, *shape[1:]), FLOAT, np.full((2, *shape[1:]), np.inf))
    assert reduce_by_label(np.ones((4, 0)), LABELS, 4, PLUS, FLOAT).shape == (4, 0)


def test_memory_is_the_result():
    values, labels = np.ones(100_000), np.zeros(100_000, np.int64)
    reduce_by_label(values, labels, 5000, PLUS, FLOAT)  # compiled before it is measured
    tracemalloc.start()
    try:
        reduce_by_label(values, labels, 5000, PLUS, FLOAT)
        assert tracemalloc.get_traced_memory()[1] < 5000 * 8 + 5000
    finally:
        tracemalloc.stop()


def test_values_are_not_shared():
    values = np.ones(1)
    found = reduce_by_label(values, np.zeros(1, np.int64), 1, PLUS, FLOAT)
    assert isinstance(found, Dense)
    assert not np.shares_memory(found.values, values)

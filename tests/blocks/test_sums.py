"""Sums that do not depend on the cuts: their bits over random cuts, their values against exact sums."""

from __future__ import annotations

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matnb.blocks.formats import Csr, Dense
from matnb.blocks.kernels.reductions.reductions import combine, finish, reduce_block
from matnb.blocks.kernels.shaping.shaping import cut
from matnb.blocks.sums import num_nodes, row_sums, share_of, sum_of_shares, sums_as_tree

DTYPES = ["float64", "float32", "float16", "complex128", "complex64"]
LENGTHS = st.one_of(st.integers(0, 20), st.integers(50, 140), st.integers(0, 700))
FLOAT = np.dtype(float)


def tree(values: np.ndarray) -> np.ndarray:
    """Return the sum along the first axis as it is defined: pairs, pairs of pairs, and so on."""
    while len(values) > 1:
        even = values[: len(values) // 2 * 2]
        values = np.concatenate([even[::2] + even[1::2], values[len(even) :]])
    return values[0] + 0.0 if len(values) else np.zeros(values.shape[1:], values.dtype)


def numbers(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    """Return values whose sums differ with their order."""
    rng = np.random.default_rng(seed)
    spread = 1 if dtype == "float16" else 6
    values = rng.standard_normal(shape) * 10.0 ** rng.integers(-spread, spread, shape)
    if dtype.startswith("complex"):
        return (values + 1j * rng.standard_normal(shape)).astype(dtype)
    return values.astype(dtype)


def bits(values: np.ndarray) -> bytes:
    return np.ascontiguousarray(values).tobytes()


@st.composite
def ranges_of(draw, length):
    inner = draw(st.sets(st.integers(1, length - 1), max_size=5)) if length > 1 else set()
    cuts = [0, *sorted(inner), length]
    return list(itertools.pairwise(cuts))


@st.composite
def arrays(draw, ndim):
    shape = tuple(draw(LENGTHS if axis == 0 else st.integers(1, 12)) for axis in range(ndim))
    shape = tuple(draw(st.permutations(shape)))
    return numbers(shape, draw(st.sampled_from(DTYPES)), draw(st.integers(0, 9)))


@given(data=st.data())
def test_a_sum_is_the_tree_over_the_global_index_whatever_the_cuts(data):
    x = data.draw(arrays(data.draw(st.integers(1, 3))))
    axis = data.draw(st.integers(0, x.ndim - 1))
    ranges = data.draw(ranges_of(x.shape[axis]))
    wide = x.astype(np.result_type(x, np.float64))
    expected = np.expand_dims(tree(np.moveaxis(wide, axis, 0)), axis)
    whole = share_of(x, (axis,))
    assert bits(whole) == bits(expected)
    lying = np.asfortranarray(x) if data.draw(st.booleans()) else x
    shares = []
    for start, stop in ranges:
        part = lying[(slice(None),) * axis + (slice(start, stop),)]
        shares.append(share_of(part, (axis,), axis, start))
        assert shares[-1].shape[axis] == num_nodes(start, stop)
    assert bits(sum_of_shares(shares, ranges, axis)) == bits(expected)


@given(data=st.data())
def test_over_several_axes_the_last_comes_first(data):
    x = data.draw(arrays(3))
    axes = tuple(sorted(data.draw(st.sets(st.integers(0, 2), min_size=1))))
    expected = x.astype(np.result_type(x, np.float64))
    for axis in reversed(axes):
        expected = np.expand_dims(tree(np.moveaxis(expected, axis, 0)), axis)
    assert bits(share_of(x, axes)) == bits(expected)
    ranges = data.draw(ranges_of(x.shape[axes[0]]))
    shares = [
        share_of(x[(slice(None),) * axes[0] + (slice(start, stop),)], axes, axes[0], start)
        for start, stop in ranges
    ]
    assert bits(sum_of_shares(shares, ranges, axes[0])) == bits(expected)


def test_large_blocks_are_summed_some_rows_at_a_time():
    x = numbers((300_001, 5), "float64", 1)
    expected = tree(tree(x.T))
    for ranges in ([(0, 300_001)], [(0, 140_007), (140_007, 300_001)]):
        shares = [share_of(x[start:stop], (0, 1), 0, start) for start, stop in ranges]
        assert bits(sum_of_shares(shares, ranges, 0)) == bits(expected)
    tracemalloc.start()
    share_of(x, (0, 1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * 2**20  # a number a row would be 2.4 MB; that of half a million elements is 0.8


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_shares_are_short(start, length):
    assert num_nodes(start, start + length) <= 2 * max(1, length.bit_length())


@given(st.data())
def test_sums_are_close_to_exact_ones(data):
    values = data.draw(st.lists(st.floats(-1e300, 1e300, allow_nan=False), max_size=300))
    found = float(share_of(np.array(values, float), (0,))[0])
    assert math.isclose(found, math.fsum(values), rel_tol=0, abs_tol=1e-14 * math.fsum(map(abs, values)))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("odd", [[np.nan], [np.inf], [np.inf, -np.inf], [-np.inf, 1.0]])
@pytest.mark.parametrize("length", [1, 5, 70, 1000])
def test_nan_and_inf_go_through_as_in_numpy(odd, length):
    for place in {0, length // 2, length - 1}:
        x = np.ones((length, 3))
        x[place : place + len(odd), 1] = odd[: length - place]
        np.testing.assert_array_equal(share_of(x, (0,))[0], x.sum(axis=0))
        np.testing.assert_array_equal(share_of(x[:, 1].copy(), (0,))[0], x[:, 1].sum())


@pytest.mark.parametrize("shape", [(1,), (3,), (100,), (5, 1), (1, 5), (40, 70)])
def test_a_sum_of_negative_zeros_is_zero_as_in_numpy(shape):
    x = np.full(shape, -0.0)
    for axes in [(0,), (len(shape) - 1,), tuple(range(len(shape)))]:
        assert not np.signbit(share_of(x, axes)).any()
    half = [share_of(x[:1], (0,), 0, 0), share_of(x[1:], (0,), 0, 1)]
    assert not np.signbit(sum_of_shares(half, [(0, 1), (1, shape[0])], 0)).any()


@given(st.lists(st.one_of(st.integers(0, 20), st.integers(50, 200)), max_size=12), st.sampled_from(DTYPES))
def test_sums_of_rows_are_trees_over_their_entries(counts, dtype):
    pointers = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    values = numbers((int(pointers[-1]),), dtype, 3)
    found = row_sums(pointers, values)
    wide = values.astype(np.result_type(values, np.float64))
    rows = [tree(wide[a:b]) for a, b in itertools.pairwise(pointers)]
    assert bits(found) == bits(np.array(rows, found.dtype))


@given(st.data())
def test_sparse_sums_have_the_same_bits_for_any_cuts_of_the_rows(data):
    rows, columns = data.draw(st.integers(1, 300)), data.draw(st.integers(1, 90))
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    mask = rng.random((rows, columns)) < data.draw(st.sampled_from([0.02, 0.5]))
    pointers = np.concatenate([[0], np.cumsum(mask.sum(axis=1))]).astype(np.int32)
    places = np.nonzero(mask)[1].astype(np.int32)
    dtype = data.draw(st.sampled_from(["float64", "float32"]))
    values = None if data.draw(st.booleans()) else numbers((places.size,), dtype, 5)
    block = Csr((rows, columns), pointers, places, values, np.dtype(dtype))
    ranges = data.draw(ranges_of(rows))
    parts = [cut(block, (slice(*one), slice(0, columns))) for one in ranges]
    by_row = [reduce_block("sum", part, (1,), block.dtype).values for part in parts]
    assert bits(np.concatenate(by_row)) == bits(reduce_block("sum", block, (1,), block.dtype).values)
    shares = [
        reduce_block("sum", part, (0, 1), block.dtype, 0, start)
        for part, (start, _) in zip(parts, ranges, strict=True)
    ]
    total = finish(combine("sum", shares, 0, ranges), (0, 1), False, FLOAT)
    assert bits(total.values) == bits(reduce_block("sum", block, (0, 1), block.dtype).values)
    entries = np.ones(places.size) if values is None else values.astype(float)
    scale = float(np.abs(entries).sum())
    assert math.isclose(float(total.values), math.fsum(entries), rel_tol=0, abs_tol=1e-14 * scale)


def test_integers_and_extended_precision_are_not_summed_so():
    followed = {
        name for name in (*DTYPES, "int64", "bool", "longdouble") if sums_as_tree("sum", np.dtype(name))
    }
    assert followed == set(DTYPES)
    assert not sums_as_tree("prod", FLOAT)
    whole = Dense(np.arange(5))
    assert reduce_block("sum", whole, (0,), np.dtype(np.int64)).values.dtype == np.int64

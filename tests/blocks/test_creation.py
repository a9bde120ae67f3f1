"""Arrays made a rectangle at a time have the bits of the whole, and those are NumPy's."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
import strategies
from block_checks import array_of, assert_well_formed
from hypothesis import example, given
from hypothesis import strategies as st

from matnb.blocks.creation import Arange, Eye, Full, Integers, Linspace, Normal, Uniform, raw_pieces
from matnb.blocks.formats import Csr, Empty
from matnb.blocks.kernels.shaping.shaping import join
from matnb.errors import OptionError

FLOAT = np.dtype(float)


def raw_draws(seed, stream, shape, region):
    pieces = [raw.copy() for _, raw in raw_pieces(seed, stream, shape, region)]
    return np.concatenate([np.empty(0, np.uint64), *pieces])


def whole(creation):
    return array_of(creation.make(tuple((0, length) for length in creation.shape)))


def assert_same_bits(found, expected):
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert found.tobytes() == np.ascontiguousarray(expected).tobytes()


def check_cuts(creation, data):
    """Check that a rectangle and a tiling give the same bits as the array made at once."""
    all_at_once = whole(creation)
    assert all_at_once.shape == creation.shape
    assert all_at_once.dtype == creation.dtype
    region = data.draw(strategies.regions(creation.shape))
    block = creation.make(region)
    assert_well_formed(block)
    assert_same_bits(array_of(block), all_at_once[tuple(slice(*one) for one in region)])
    grid = data.draw(strategies.grids(creation.shape))
    parts = [(tuple(start for start, _ in one), creation.make(one)) for one in grid.regions()]
    joined = join(parts, creation.shape, creation.dtype, creation.sparse)
    assert_same_bits(array_of(joined), all_at_once)


@given(strategies.shapes(), strategies.dense_dtypes(), st.data())
def test_one_value_everywhere(shape, dtype, data):
    value = np.array(data.draw(strategies.elements(dtype)), dtype)
    creation = Full(shape, value.tobytes(), dtype)
    check_cuts(creation, data)
    assert_same_bits(whole(creation), np.full(shape, value, dtype))


@given(strategies.matrix_shapes(7), st.integers(-8, 8), strategies.sparse_dtypes(), st.data())
def test_ones_on_a_diagonal(shape, offset, dtype, data):
    creation = Eye(*shape, offset, dtype)
    check_cuts(creation, data)
    assert_same_bits(whole(creation), np.eye(*shape, offset, dtype))
    block = creation.make(tuple((0, length) for length in shape))
    assert creation.sparse
    assert isinstance(block, Empty) or block.values is None
    assert block.nnz == np.count_nonzero(np.eye(*shape, offset))


ordinary = st.floats(-1e6, 1e6) | st.integers(-1000, 1000)


@given(
    ordinary,
    ordinary.filter(bool),
    st.integers(0, 40),
    st.sampled_from(["f8", "f4", "f2", "i8", "i4", "c16"]),
    st.data(),
)
@example(1e16, 1.0, 5, "f8", None)
@example(0, 0.1, 40, "f4", None)
@example(-0.0, 1.0, 3, "f8", None)
def test_ranges_have_the_bits_of_numpy(start, step, length, name, data):
    dtype = np.dtype(name)
    # A stop half a step before the end is past the last element and not on it.
    stop = start + (length - 0.5) * step
    if dtype.kind == "i" or not math.isfinite(stop) or max(0, math.ceil((stop - start) / step)) != length:
        start, step = int(start), int(step) or 1
        stop = start + length * step
    with np.errstate(all="ignore"):
        expected = np.arange(start, stop, step, dtype)
    creation = Arange(start, step, expected.size, dtype)
    assert_same_bits(whole(creation), expected)
    if data is not None:
        check_cuts(creation, data)


@pytest.mark.parametrize("dtype", ["i8", "i4", "u1"])
def test_ranges_of_fractions_in_an_integer_dtype_step_as_numpy_does(dtype):
    expected = np.arange(0.5, 30, 1.7, np.dtype(dtype))
    assert_same_bits(whole(Arange(0.5, 1.7, expected.size, np.dtype(dtype))), expected)


def test_a_long_range_in_single_precision_has_the_bits_of_numpy():
    expected = np.arange(0, 2**25, 1.0, np.float32)
    found = Arange(0, 1.0, 2**25, expected.dtype).make(((2**24 - 5, 2**25),))
    assert_same_bits(array_of(found), expected[2**24 - 5 :])


def test_a_range_of_two_booleans():
    expected = np.arange(0, 2, dtype=bool)
    assert_same_bits(whole(Arange(0, 1, 2, np.dtype(bool))), expected)


@given(
    st.floats(allow_nan=False, allow_infinity=False) | ordinary,
    st.floats(allow_nan=False, allow_infinity=False) | ordinary,
    st.integers(0, 30),
    st.booleans(),
    st.sampled_from(["f8", "f4", "i8", "c16"]),
    st.data(),
)
@example(0.0, 5e-324, 10, True, "f8", None)
@example(3.0, 3.0, 4, True, "f8", None)
def test_spaced_numbers_have_the_bits_of_numpy(start, stop, num, endpoint, name, data):
    dtype = np.dtype(name)
    if dtype.kind == "i":
        start, stop = (min(max(one, -1e9), 1e9) for one in (start, stop))
    with np.errstate(all="ignore"):
        expected = np.linspace(start, stop, num, endpoint, dtype=dtype)
    creation = Linspace(float(start), float(stop), num, endpoint, FLOAT, dtype)
    assert_same_bits(whole(creation), expected)
    if data is not None:
        check_cuts(creation, data)


words = st.integers(0, 2**64 - 1)


@given(words, words, strategies.shapes(longest=7), st.data())
def test_each_element_gets_its_own_draw(seed, stream, shape, data):
    region = data.draw(strategies.regions(shape))
    philox = np.random.Philox(key=np.array([seed, stream], np.uint64))
    expected = philox.random_raw(math.prod(shape)).reshape(shape)[tuple(slice(*one) for one in region)]
    np.testing.assert_array_equal(raw_draws(seed, stream, shape, region), expected.ravel())


def test_draws_far_into_a_large_array():
    shape, index = (2**40, 2**20), 2**50 + 3
    row, column = divmod(index, shape[1])
    philox = np.random.Philox(key=np.array([1, 2], np.uint64))
    philox.advance(index // 4)
    expected = philox.random_raw(4)[3]
    assert raw_draws(1, 2, shape, ((row, row + 1), (column, column + 1))) == expected


SHAPE = (150, 200)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@given(data=st.data())
def test_random_numbers_do_not_follow_the_cuts(dtype, data):
    shape, seed = data.draw(strategies.shapes()), data.draw(words)
    dtype = np.dtype(dtype)
    check_cuts(Uniform(shape, seed, 1, -2.0, 5.0, dtype), data)
    check_cuts(Normal(shape, seed, 1, 1.0, 3.0, dtype), data)
    check_cuts(Integers(shape, seed, 1, -3, 12, np.dtype("int64")), data)


def test_seeds_and_streams_give_different_numbers():
    drawn = [whole(Uniform((4,), seed, stream, 0.0, 1.0, FLOAT)) for seed in (0, 1) for stream in (0, 1)]
    assert len({one.tobytes() for one in drawn}) == 4


def test_uniform_numbers_are_the_upper_bits_of_the_draws():
    raw = raw_draws(7, 3, SHAPE, ((0, 150), (0, 200)))
    found = whole(Uniform(SHAPE, 7, 3, 0.0, 1.0, FLOAT))
    assert_same_bits(found, ((raw >> np.uint64(11)) * 2.0**-53).reshape(SHAPE))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_uniform_numbers_stay_below_the_end_even_of_the_largest_draw(dtype, monkeypatch):
    largest = np.full((3,), 2**64 - 1, np.uint64)
    monkeypatch.setattr("matnb.blocks.creation.raw_pieces", lambda *_: [(0, largest.copy())])
    for low, high in [(0.0, 1.0), (1.0, 2.0), (-1000.0, 1.0)]:
        found = whole(Uniform((3,), 0, 0, low, high, np.dtype(dtype)))
        assert (found < np.dtype(dtype).type(high)).all()
        assert (found > low).all()
    assert (whole(Uniform((3,), 0, 0, 2.0, 2.0, np.dtype(dtype))) == 2).all()


def test_moments_of_random_numbers():
    count = math.prod(SHAPE)
    uniform = whole(Uniform(SHAPE, 1, 0, 2.0, 5.0, FLOAT))
    assert uniform.min() >= 2
    assert uniform.max() < 5
    assert abs(uniform.mean() - 3.5) < 5 * math.sqrt(9 / 12 / count)
    normal = whole(Normal(SHAPE, 1, 0, 10.0, 2.0, FLOAT))
    assert abs(normal.mean() - 10) < 5 * 2 / math.sqrt(count)
    assert abs(normal.std() - 2) < 5 * 2 / math.sqrt(2 * count)
    shares = np.sort(normal.ravel())[[int(0.02275 * count), int(0.97725 * count)]]
    np.testing.assert_allclose(shares, [6, 14], atol=0.2)


def test_normal_numbers_of_the_extreme_draws_are_finite(monkeypatch):
    extremes = np.array([0, 2**64 - 1], np.uint64)
    monkeypatch.setattr("matnb.blocks.creation.raw_pieces", lambda *_: [(0, extremes.copy())])
    low, high = whole(Normal((2,), 0, 0, 0.0, 1.0, FLOAT))
    assert math.isfinite(low)
    assert low == -high < -8


@given(
    st.integers(-(2**63), 2**63 - 1), st.integers(1, 2**64), st.sampled_from([0, 1, 2**63, 2**64 - 1]) | words
)
def test_whole_numbers_are_the_upper_half_of_a_product(low, count, raw):
    high = min(low + count, 2**63)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("matnb.blocks.creation.raw_pieces", lambda *_: [(0, np.array([raw], np.uint64))])
        (found,) = whole(Integers((1,), 0, 0, low, high, np.dtype("int64")))
    assert int(found) == low + (raw * (high - low) >> 64)


def test_unsigned_whole_numbers_reach_their_end(monkeypatch):
    ends = np.array([0, 2**64 - 1], np.uint64)
    monkeypatch.setattr("matnb.blocks.creation.raw_pieces", lambda *_: [(0, ends.copy())])
    found = whole(Integers((2,), 0, 0, 0, 2**64, np.dtype("uint64")))
    assert found.tolist() == [0, 2**64 - 1]
    with pytest.raises(OptionError, match="1 to 2\\*\\*64 values"):
        Integers((2,), 0, 0, 5, 5, np.dtype("int64"))


CREATIONS = [
    Full((2, 3), np.float64(1).tobytes(), FLOAT),
    Eye(2, 3, 0, FLOAT),
    Arange(0, 1, 6, FLOAT),
    Linspace(0.0, 1.0, 6, True, FLOAT, FLOAT),
    Uniform((6,), 0, 0, 0.0, 1.0, FLOAT),
    Normal((6,), 0, 0, 0.0, 1.0, FLOAT),
    Integers((6,), 0, 0, 0, 10, np.dtype(int)),
]


@pytest.mark.parametrize("creation", CREATIONS, ids=lambda one: type(one).__name__)
def test_parameters_travel_and_are_keys(creation):
    other = pickle.loads(pickle.dumps(creation))
    assert other == creation
    assert hash(other) == hash(creation)
    assert [one == creation for one in CREATIONS].count(True) == 1
    assert creation.sparse == isinstance(creation, Eye)


def test_parameters_that_are_equal_numbers_but_make_other_arrays_differ():
    assert Arange(0.0, 1.0, 3, FLOAT) != Arange(-0.0, 1.0, 3, FLOAT)
    assert Linspace(0.0, 0.0, 3, True, FLOAT, FLOAT) != Linspace(-0.0, 0.0, 3, True, FLOAT, FLOAT)
    assert Linspace(0.0, math.nan, 3, True, FLOAT, FLOAT) == Linspace(0.0, math.nan, 3, True, FLOAT, FLOAT)
    plus, minus = (Full((1,), np.float64(zero).tobytes(), FLOAT) for zero in (0.0, -0.0))
    assert plus != minus
    assert np.signbit(whole(minus))


def test_blocks_are_made_anew():
    creation = Eye(3, 3, 0, FLOAT)
    one, other = (creation.make(((0, 3), (0, 3))) for _ in range(2))
    assert isinstance(one, Csr)
    assert not np.shares_memory(one.columns, other.columns)
    assert one.columns.flags.writeable

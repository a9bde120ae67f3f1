"""Reductions of cut arrays against NumPy on the whole array."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import strategies
from block_checks import array_of, assert_same, assert_shares_nothing, mask_of
from hypothesis import given
from hypothesis import strategies as st

from matnb.blocks.formats import Csr, Dense, Empty
from matnb.blocks.kernels.reductions import reductions
from matnb.blocks.kernels.reductions.reductions import accumulator_dtype, combine, finish, reduce_block
from matnb.blocks.kernels.shaping.shaping import cut
from matnb.errors import OptionError, ShapeError, UnsupportedError

OPERATIONS = ["sum", "prod", "min", "max", "any", "all"]
FLOAT = np.dtype(float)


def numpy_reduce(operation, array, axes, dtype):
    with np.errstate(all="ignore"):
        if operation in ("sum", "prod"):
            return np.asarray(getattr(np, operation)(array, axis=axes, dtype=dtype, keepdims=True))
        found = getattr(np, operation)(array, axis=axes, keepdims=True)
        return np.asarray(found)


def dtype_of(operation, dtype):
    if operation in ("any", "all"):
        return np.dtype(bool)
    if operation in ("sum", "prod") and dtype.kind in "b":
        return np.dtype(np.int64)
    return dtype


@st.composite
def axes_of(draw, ndim):
    return tuple(sorted(draw(st.sets(st.integers(0, ndim - 1))))) if ndim else ()


def check_whole_and_cut(operation, block, axes, grid, keepdims):
    array, dtype = array_of(block), dtype_of(operation, block.dtype)
    if operation in ("min", "max") and 0 in (array.shape[axis] for axis in axes):
        return  # NumPy refuses it; what the parts are is another test
    expected = numpy_reduce(operation, array, axes, dtype)
    part_dtype = accumulator_dtype(operation, dtype)
    whole = reduce_block(operation, block, axes, dtype)
    assert_same(finish(whole, axes, True, dtype), expected.shape, dtype, expected)
    assert whole.dtype == part_dtype
    assert_shares_nothing(whole, block)

    result = np.zeros(expected.shape, dtype)
    counts = grid.counts
    for kept in np.ndindex(*(1 if axis in axes else count for axis, count in enumerate(counts))):
        along = np.ndindex(*(count if axis in axes else 1 for axis, count in enumerate(counts)))
        regions = [grid.region(tuple(np.add(kept, other).tolist())) for other in along]
        parts = [
            reduce_block(operation, cut(block, tuple(slice(*one) for one in region)), axes, dtype)
            for region in regions
        ]
        place = tuple(slice(0, 1) if axis in axes else slice(*one) for axis, one in enumerate(regions[0]))
        done = finish(combine(operation, parts), axes, keepdims, dtype)
        assert done.shape == tuple(
            np.delete(expected[place].shape, axes) if not keepdims else expected[place].shape
        )
        result[place] = done.values.reshape(expected[place].shape)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("operation", OPERATIONS)
@given(data=st.data())
def test_dense_arrays_of_every_shape(operation, data):
    dtype = data.draw(strategies.dense_dtypes())
    shape = data.draw(strategies.shapes())
    exact = operation in ("sum", "prod")
    block = data.draw(strategies.dense_blocks(shape, dtype, exact))
    axes, grid = data.draw(axes_of(len(shape))), data.draw(strategies.grids(shape))
    check_whole_and_cut(operation, block, axes, grid, data.draw(st.booleans()))


@pytest.mark.parametrize("operation", OPERATIONS)
@given(data=st.data())
def test_sparse_matrices_whose_absent_elements_count(operation, data):
    dtype = data.draw(strategies.sparse_dtypes())
    shape = data.draw(strategies.matrix_shapes())
    exact = operation in ("sum", "prod")
    block = data.draw(strategies.sparse_blocks(shape, dtype, exact))
    axes, grid = data.draw(axes_of(2)), data.draw(strategies.grids(shape))
    check_whole_and_cut(operation, block, axes, grid, data.draw(st.booleans()))


@given(st.data())
def test_stored_entries_are_counted(data):
    shape = data.draw(strategies.matrix_shapes())
    block = data.draw(strategies.matrix_blocks(shape))
    axes = data.draw(axes_of(2))
    integer = np.dtype(np.int64)
    expected = mask_of(block).sum(axis=axes, keepdims=True, dtype=integer)
    assert_same(reduce_block("stored", block, axes, integer), expected.shape, integer, expected)
    parts = [reduce_block("stored", block, axes, integer)] * 2
    assert_same(combine("stored", parts), expected.shape, integer, 2 * expected)


@pytest.mark.parametrize(
    ("operation", "identity"),
    [
        ("sum", 0),
        ("prod", 1),
        ("min", np.inf),
        ("max", -np.inf),
        ("any", False),
        ("all", True),
        ("stored", 0),
    ],
)
@pytest.mark.parametrize("axes", [(0,), (0, 1)])
def test_over_no_element_the_part_is_the_identity(operation, identity, axes):
    dtype = dtype_of(operation, FLOAT)
    shape = (1, 1) if len(axes) == 2 else (1, 2)
    for block in (Dense(np.zeros((0, 2))), Empty((0, 2), FLOAT)):
        found = reduce_block(operation, block, axes, dtype)
        assert_same(found, shape, dtype, np.full(shape, identity))


@pytest.mark.parametrize("operation", ["sum", "prod", "min", "max"])
def test_nan_of_a_stored_entry_goes_through(operation):
    block = Csr((1, 3), np.array([0, 2], np.int32), np.array([0, 2], np.int32), np.array([1, np.nan]), FLOAT)
    for axes in [(1,), (0, 1)]:
        assert np.isnan(reduce_block(operation, block, axes, FLOAT).values).all()


@pytest.mark.parametrize("operation", ["sum", "prod", "min", "max"])
@pytest.mark.parametrize("column", [[np.nan, 1.0], [1.0, np.nan], [np.nan, -1.0], [np.inf, -np.inf]])
def test_nan_and_inf_of_a_column_go_through(operation, column):
    pointers, places = np.array([0, 1, 2], np.int32), np.zeros(2, np.int32)
    for dtype in (FLOAT, np.dtype(np.float32)):
        block = Csr((2, 2), pointers, places, np.array(column, dtype), dtype)
        expected = numpy_reduce(operation, array_of(block), (0,), dtype)
        np.testing.assert_array_equal(reduce_block(operation, block, (0,), dtype).values, expected)


def test_integers_overflow_in_silence_as_in_numpy():
    most = np.iinfo(np.int32).max
    values = np.array([most, most, most], np.int32)
    block = Csr((2, 2), np.array([0, 2, 3], np.int32), np.array([0, 1, 0], np.int32), values, values.dtype)
    for axes in [(0,), (1,), (0, 1)]:
        for dtype in (np.dtype(np.int32), np.dtype(np.int64)):
            for operation in ("sum", "prod"):
                expected = numpy_reduce(operation, array_of(block), axes, dtype)
                found = reduce_block(operation, block, axes, dtype)
                assert_same(found, expected.shape, dtype, expected)


def test_a_sparse_block_is_reduced_in_the_memory_of_the_result():
    rows, columns, each = 20_000, 15_000, 20
    pointers = np.arange(0, rows * each + 1, each, dtype=np.int32)
    places = np.tile(np.arange(each, dtype=np.int32), rows)
    block = Csr((rows, columns), pointers, places, np.ones(places.size), FLOAT)
    for operation in ("sum", "min"):
        for axes, length in [((0,), columns), ((1,), rows), ((0, 1), rows)]:
            reduce_block(operation, block, axes, FLOAT)
            tracemalloc.start()
            reduce_block(operation, block, axes, FLOAT)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < 8 * length + 8 * length + 20_000  # the result, then counts or what is short


@pytest.mark.parametrize("short", ["float16", "float32"])
def test_short_floats_are_summed_in_float64_until_the_end(short):
    dtype = np.dtype(short)
    block = Dense(np.array([2048 if short == "float16" else 2**24, 1, 1], dtype))
    part = reduce_block("sum", block, (0,), dtype)
    assert part.dtype == FLOAT
    total = combine("sum", [part, part])
    assert total.dtype == FLOAT
    exact = 2 * float(block.values[0]) + 4
    assert_same(finish(total, (0,), False, dtype), (), dtype, np.array(exact))
    sparse = Csr((1, 3), np.array([0, 3], np.int32), np.arange(3, dtype=np.int32), block.values, dtype)
    assert_same(reduce_block("sum", sparse, (0, 1), dtype), (1, 1), FLOAT, np.array([[exact / 2]]))


def test_only_sums_of_short_floats_and_products_of_halves_are_widened():
    widened = {
        (operation, name)
        for operation in [*OPERATIONS, "stored"]
        for name in ("float16", "float32", "float64", "complex64", "int32", "bool")
        if accumulator_dtype(operation, np.dtype(name)) != np.dtype(name)
    }
    assert widened == {("sum", "float16"), ("sum", "float32"), ("sum", "complex64"), ("prod", "float16")}


def test_a_sum_that_does_not_fit_its_dtype_overflows_in_silence():
    total = combine("sum", [Dense(np.array([3e38])), Dense(np.array([3e38]))])
    assert finish(total, (0,), False, np.dtype("float32")).values == np.inf


def test_what_is_unknown_or_does_not_fit_is_refused():
    block = Dense(np.ones(2))
    with pytest.raises(UnsupportedError, match="no reduction 'mean'; known: sum"):
        reduce_block("mean", block, (0,), FLOAT)
    with pytest.raises(OptionError, match="no reduction 'mean'; known: sum"):
        combine("mean", [block])
    with pytest.raises(ShapeError, match="all alike"):
        combine("sum", [block, Dense(np.ones(3))])
    with pytest.raises(ShapeError, match="give some"):
        combine("sum", [])


@pytest.mark.parametrize("operation", ["min", "max"])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_the_least_of_a_pattern_of_complex_ones(operation, dtype):
    for pointers, columns in [([0, 1], [0]), ([0, 2], [0, 1]), ([0, 0], [])]:
        block = Csr((1, 2), np.array(pointers, np.int32), np.array(columns, np.int32), None, np.dtype(dtype))
        for axes in [(0,), (1,), (0, 1)]:
            expected = numpy_reduce(operation, array_of(block), axes, np.dtype(dtype))
            found = reduce_block(operation, block, axes, np.dtype(dtype)).values
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("operation", ["min", "max", "any", "all"])
def test_the_ones_of_a_pattern_are_not_looked_at(operation, monkeypatch):
    monkeypatch.setattr(reductions, "entries_as", None)
    block = Csr((3, 2), np.array([0, 2, 3, 3], np.int32), np.array([0, 1, 1], np.int32), None, FLOAT)
    for axes in [(0,), (1,), (0, 1)]:
        dtype = dtype_of(operation, FLOAT)
        expected = numpy_reduce(operation, array_of(block), axes, dtype)
        np.testing.assert_array_equal(reduce_block(operation, block, axes, dtype).values, expected)

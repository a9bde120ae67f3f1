"""Blocks transposed, cut, joined, indexed and stretched have NumPy's elements, and keep what is stored."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import strategies
from block_checks import array_of, arrays_in, assert_same, assert_shares_nothing, assert_well_formed, mask_of
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from matnb.blocks.formats import Csr, Dense, Empty, is_sparse
from matnb.blocks.kernels.shaping import shaping
from matnb.blocks.kernels.shaping.shaping import adjoining, broadcast, cut, densify, join, take, transpose
from matnb.errors import ShapeError, TooLargeError, UnsupportedError

FLOAT = np.dtype(float)
WHOLE = np.arange(60.0).reshape(12, 5)
PATTERN = Csr((2, 3), np.array([0, 2, 3], np.int32), np.array([0, 2, 1], np.int32), None, FLOAT)


def check(found, array, mask, like):
    """Check elements, what is stored, and that a pattern-only block did not get values."""
    assert_same(found, array.shape, like.dtype, array)
    assert is_sparse(found) == is_sparse(like)
    np.testing.assert_array_equal(mask_of(found), mask)
    if isinstance(like, Csr) and isinstance(found, Csr):
        assert (found.values is None) == (like.values is None)


def slices_of(region):
    return tuple(slice(*one) for one in region)


@given(st.data())
def test_a_transposed_block_of_any_axes(data):
    block = data.draw(strategies.dense_blocks(data.draw(strategies.shapes())))
    axes = data.draw(st.permutations(range(len(block.shape))))
    found = transpose(block, axes)
    check(found, block.values.transpose(axes), np.ones(found.shape, bool), block)
    assert found.values.flags.c_contiguous
    assert_shares_nothing(found, block)


@given(st.data())
def test_a_transposed_sparse_block(data):
    block = data.draw(strategies.sparse_blocks(data.draw(strategies.matrix_shapes())))
    found = transpose(block, (1, 0))
    check(found, array_of(block).T, mask_of(block).T, block)
    assert_shares_nothing(found, block)
    assert transpose(block, (0, 1)) is block


@pytest.mark.parametrize("axes", [(0,), (0, 0), (0, 2), (0, 1, 2), (-1, 0)])
def test_axes_that_are_not_each_once_are_refused(axes):
    for block in (PATTERN, Dense(np.ones((2, 3)))):
        with pytest.raises(ShapeError, match="name every axis once"):
            transpose(block, axes)


@given(st.data())
def test_a_cut_of_a_dense_block_is_a_view(data):
    block = data.draw(strategies.dense_blocks(data.draw(strategies.shapes())))
    region = slices_of(data.draw(strategies.regions(block.shape)))
    found = cut(block, region)
    check(found, block.values[(..., *region)], np.ones(found.shape, bool), block)
    assert np.shares_memory(found.values, block.values) == (found.values.size > 0)


@given(st.data())
def test_a_cut_of_a_sparse_block(data):
    block = data.draw(strategies.sparse_blocks(data.draw(strategies.matrix_shapes())))
    region = slices_of(data.draw(strategies.regions(block.shape)))
    check(cut(block, region), array_of(block)[region], mask_of(block)[region], block)


def test_a_cut_of_whole_rows_shares_columns_and_values():
    block = Csr(PATTERN.shape, PATTERN.pointers, PATTERN.columns, np.arange(3.0), FLOAT)
    found = cut(block, (slice(1, 2), slice(0, 3)))
    assert np.shares_memory(found.columns, block.columns)
    assert np.shares_memory(found.values, block.values)
    assert_shares_nothing(cut(block, (slice(1, 2), slice(0, 2))), block)


@pytest.mark.parametrize(
    "slices", [(slice(0, 1),), (slice(0, 2), slice(0, 3, 2)), (slice(0, 2), slice(None, None, -1))]
)
def test_a_cut_with_steps_or_of_other_axes_is_refused(slices):
    with pytest.raises(ShapeError, match="one slice of step 1 an axis"):
        cut(PATTERN, slices)


@given(st.data())
def test_the_pieces_of_a_cut_block_join_to_it(data):
    shape = data.draw(strategies.matrix_shapes())
    block = data.draw(strategies.matrix_blocks(shape) | strategies.dense_blocks((3, *shape)))
    regions = data.draw(st.permutations(list(data.draw(strategies.grids(block.shape)).regions())))
    parts = [(tuple(start for start, _ in region), cut(block, slices_of(region))) for region in regions]
    found = join(parts, block.shape, block.dtype, is_sparse(block))
    assert_same(found, block.shape, block.dtype, array_of(block))
    np.testing.assert_array_equal(mask_of(found), mask_of(block))
    if isinstance(block, Csr) and isinstance(found, Csr):
        assert (found.values is None) == (block.values is None)
    if len(parts) == 1:
        assert found is parts[0][1]
    elif is_sparse(block):
        # What is missing is absent; a Dense result of sparse parts has zeros there.
        some = join(parts[1:], block.shape, block.dtype, True)
        expected = array_of(block).copy()
        expected[slices_of(regions[0])] = 0
        assert_same(some, block.shape, block.dtype, expected)
        assert_same(join(parts[1:], block.shape, block.dtype, False), block.shape, block.dtype, expected)


@given(st.data())
def test_rows_that_lie_one_after_the_other_are_put_together_as_a_view(data):
    whole = np.arange(60.0).reshape(12, 5)
    cuts = data.draw(strategies.axis_cuts(12))
    parts = [((start, 0), Dense(whole[start:stop])) for start, stop in itertools.pairwise(cuts)]
    found = adjoining(parts, whole.shape, FLOAT)
    assert found.tobytes() == whole.tobytes()
    assert np.shares_memory(found, whole)
    assert not found.flags.writeable
    some = adjoining(parts[1:], (12 - cuts[1], 5), FLOAT)
    assert some is None  # they do not begin at 0


@pytest.mark.parametrize(
    "arrays",
    [
        [WHOLE[:4], WHOLE[4:].copy()],
        [WHOLE[4:], WHOLE[:4]],
        [WHOLE[:4], WHOLE[5:9]],
        [WHOLE[:4], np.asfortranarray(WHOLE[4:])],
        [WHOLE[:4], WHOLE[4:].view(np.int64)],
        [WHOLE[:2], WHOLE[2:5]],  # of less than half of what they lie in
        [WHOLE[:, :2], WHOLE[:, 2:]],
    ],
    ids=["another array", "other order", "a gap", "columns first", "another dtype", "little", "columns"],
)
def test_what_is_no_run_of_rows_is_put_together_by_a_copy(arrays):
    is_wide = arrays[0].shape[1] != 5
    offsets = [(0, 0), (0, 2) if is_wide else (arrays[0].shape[0], 0)]
    shape = WHOLE.shape if is_wide else (sum(map(len, arrays)), 5)
    parts = [(offset, Dense(array)) for offset, array in zip(offsets, arrays, strict=True)]
    assert adjoining(parts, shape, FLOAT) is None


def test_a_pattern_joined_with_values_becomes_values_of_the_wanted_dtype():
    values = Csr((2, 3), PATTERN.pointers, PATTERN.columns, np.array([2, 3, 4], np.int32), np.dtype("int32"))
    found = join([((0, 3), values), ((0, 0), PATTERN)], (2, 6), FLOAT, True)
    assert_same(found, (2, 6), FLOAT, np.array([[1.0, 0, 1, 2, 0, 3], [0, 1, 0, 0, 4, 0]]))


def test_a_single_part_of_another_dtype_or_format_is_converted():
    single = np.dtype("float32")
    assert_same(join([((0, 0), PATTERN)], (2, 3), single, True), (2, 3), single, array_of(PATTERN))
    found = join([((0, 0), PATTERN)], (2, 3), FLOAT, False)
    assert isinstance(found, Dense)
    assert_same(found, (2, 3), FLOAT, array_of(PATTERN))


def test_parts_that_do_not_fit_are_refused(monkeypatch):
    with pytest.raises(ShapeError, match=r"\(2, 3\) at \(1, 0\) reaches outside the shape \(2, 3\)"):
        join([((1, 0), PATTERN)], (2, 3), FLOAT, True)
    with pytest.raises(ShapeError, match="reaches outside"):
        join([((0, 0), Dense(np.ones(2)))], (2, 3), FLOAT, False)
    with pytest.raises(UnsupportedError, match="known: Csr and Empty parts"):
        join([((0, 0), Dense(np.ones((2, 3))))], (2, 3), FLOAT, True)
    monkeypatch.setattr(shaping, "MAX_ENTRIES", 5)
    with pytest.raises(TooLargeError, match="6 entries"):
        join([((0, 0), PATTERN), ((2, 0), PATTERN)], (4, 3), FLOAT, True)


def test_no_parts_join_to_nothing():
    assert isinstance(join([], (2, 3), FLOAT, True), Empty)
    assert_same(join([], (2, 3), FLOAT, False), (2, 3), FLOAT, np.zeros((2, 3)))


@given(st.data())
def test_basic_indexing_of_a_dense_block(data):
    block = data.draw(strategies.dense_blocks(data.draw(strategies.shapes())))
    index = data.draw(hnp.basic_indices(block.shape, allow_ellipsis=False, allow_newaxis=True, max_dims=6))
    key = index if isinstance(index, tuple) else (index,)
    expected = np.asarray(block.values[key])
    found = take(block, key)
    check(found, expected, np.ones(expected.shape, bool), block)
    assert_shares_nothing(found, block)


@given(st.data())
@example(None)
def test_basic_indexing_of_a_sparse_block(data):
    if data is None:  # an integer that, as a slice, would have to end before the first element
        block, key = PATTERN, (-1, -1)
    else:
        block = data.draw(strategies.sparse_blocks(data.draw(strategies.matrix_shapes())))
        with_newaxis = hnp.basic_indices(block.shape, allow_ellipsis=False, allow_newaxis=True, max_dims=4)
        index = data.draw(hnp.basic_indices(block.shape, allow_ellipsis=False) | with_newaxis)
        key = index if isinstance(index, tuple) else (index,)
    expected = np.asarray(array_of(block)[key])
    found = take(block, key)
    assert_same(found, expected.shape, block.dtype, expected)
    if all(isinstance(one, slice) for one in key):
        check(found, expected, mask_of(block)[key], block)
    else:
        assert isinstance(found, Dense)


@pytest.mark.parametrize("key", [(2,), (-3,), (0, 3), (slice(None), -4), (0, 0, 0), (slice(None),) * 3])
def test_an_index_outside_the_block_is_refused(key):
    for block in (PATTERN, Dense(np.ones((2, 3)))):
        with pytest.raises(ShapeError, match="index"):
            take(block, key)


@given(
    hnp.mutually_broadcastable_shapes(num_shapes=1, base_shape=(2, 3, 1), max_dims=4, max_side=3), st.data()
)
def test_a_block_stretched_to_a_shape(shapes, data):
    block = data.draw(strategies.dense_blocks(shapes.input_shapes[0]))
    shape = shapes.result_shape
    found = broadcast(block, shape)
    check(found, np.broadcast_to(block.values, shape), np.ones(shape, bool), block)
    assert found.values.flags.c_contiguous
    assert_shares_nothing(found, block)


def test_a_stretched_sparse_block_is_dense():
    assert_same(broadcast(PATTERN, (2, 2, 3)), (2, 2, 3), FLOAT, np.stack([array_of(PATTERN)] * 2))
    with pytest.raises(ShapeError, match=r"\(2, 3\) does not stretch to \(2, 4\)"):
        broadcast(PATTERN, (2, 4))


@given(st.data())
def test_a_dense_copy_has_every_element(data):
    block = data.draw(strategies.matrix_blocks(data.draw(strategies.matrix_shapes())))
    found = densify(block)
    assert_well_formed(found)
    assert_same(found, block.shape, block.dtype, array_of(block))
    assert (found is block) == isinstance(block, Dense)


def test_inputs_stay_as_they_were():
    before = [array.copy() for array in arrays_in(PATTERN)]
    join([((0, 3), PATTERN), ((0, 0), PATTERN)], (2, 6), FLOAT, True)
    take(PATTERN, (slice(None, None, -1), slice(None, None, -1)))
    cut(PATTERN, (slice(1, 2), slice(1, 3)))
    for array, old in zip(arrays_in(PATTERN), before, strict=True):
        np.testing.assert_array_equal(array, old)


def test_only_rows_that_are_all_of_an_array_are_put_together_as_a_view():
    whole = np.arange(60_000.0).reshape(12_000, 5)
    parts = [((0, 0), Dense(whole[:7000])), ((7000, 0), Dense(whole[7000:11_000]))]
    assert adjoining(parts, (11_000, 5), FLOAT) is None  # a view would keep the last rows too
    assert adjoining([], (0, 5), FLOAT) is None
    assert adjoining([((), Dense(np.array(1.0)))], (), FLOAT) is None

"""Blocks come from and go to NumPy, SciPy and sparse unchanged, without copies where layouts agree."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import sparse
import strategies
from block_checks import array_of, arrays_in, assert_same, assert_well_formed, mask_of
from hypothesis import given
from hypothesis import strategies as st

from matnb.blocks.formats import (
    Csr,
    Dense,
    Empty,
    block_from,
    csr_block,
    dense_bytes,
    freeze,
    is_sparse,
    narrow,
    sparse_bytes,
    to_gcxs,
    to_numpy,
    to_scipy,
)
from matnb.errors import DTypeError, ShapeError, TooLargeError

MATRIX = sp.csr_array(np.array([[0, 2.5, 0], [1, 0, -3]]))


@st.composite
def sparse_matrices(draw):
    return draw(strategies.sparse_blocks(draw(strategies.matrix_shapes())))


@given(sparse_matrices())
def test_a_sparse_block_goes_to_scipy_and_back(block):
    matrix = to_scipy(block)
    assert matrix.dtype == block.dtype
    assert matrix.nnz == block.nnz
    back = block_from(matrix)
    assert_same(back, block.shape, block.dtype, array_of(block))
    np.testing.assert_array_equal(mask_of(back), mask_of(block))
    np.testing.assert_array_equal(to_numpy(block), array_of(block))


@given(sparse_matrices())
def test_a_sparse_block_goes_to_gcxs_and_back(block):
    array = to_gcxs(block)
    assert array.dtype == block.dtype
    np.testing.assert_array_equal(array.todense(), array_of(block))
    assert_same(block_from(array), block.shape, block.dtype, array_of(block))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "bool", "complex128"])
@pytest.mark.parametrize("shape", [(2, 3), (0, 3), (2, 0)])
def test_gcxs_is_what_its_constructor_makes_of_the_same_parts(dtype, shape):
    matrix = MATRIX.astype(dtype) if shape == MATRIX.shape else sp.csr_array(shape, dtype=dtype)
    mine = to_gcxs(block_from(matrix))
    parts = (mine.data, mine.indices, mine.indptr)
    theirs = sparse.GCXS(parts, shape=matrix.shape, compressed_axes=(0,))
    assert vars(mine).keys() == vars(theirs).keys()
    assert (mine.shape, mine.compressed_axes) == (theirs.shape, theirs.compressed_axes)
    assert (mine.fill_value, type(mine.fill_value)) == (theirs.fill_value, type(theirs.fill_value))


@pytest.mark.parametrize(
    "given_array",
    [
        MATRIX,
        sp.csr_matrix(MATRIX),
        MATRIX.tocoo(),
        MATRIX.tocsc(),
        MATRIX.tobsr(),
        MATRIX.todok(),
        sparse.GCXS.from_scipy_sparse(MATRIX),
        sparse.COO.from_scipy_sparse(MATRIX),
        sparse.GCXS.from_numpy(MATRIX.toarray(), compressed_axes=(1,)),
    ],
    ids=lambda one: f"{type(one).__module__.split('.')[0]}-{type(one).__name__}",
)
def test_every_kind_of_sparse_array_is_taken(given_array):
    assert_same(block_from(given_array), (2, 3), np.dtype(float), MATRIX.toarray())


def test_memory_is_shared_where_layouts_agree():
    for source in (MATRIX, to_gcxs(block_from(MATRIX))):
        block = block_from(source)
        shared = (source.indptr, source.indices, source.data)
        assert all(np.shares_memory(*pair) for pair in zip(arrays_in(block), shared, strict=True))
        assert all(
            np.shares_memory(*pair)
            for pair in zip(
                arrays_in(block),
                (to_scipy(block).indptr, to_scipy(block).indices, to_scipy(block).data),
                strict=True,
            )
        )
    array = np.arange(6.0)
    assert np.shares_memory(to_numpy(block_from(array)), array)


def test_freezing_a_block_does_not_freeze_the_array_it_was_made_from():
    array, matrix = np.arange(3.0), MATRIX.copy()
    for source, held in ((array, [array]), (matrix, [matrix.data, matrix.indices, matrix.indptr])):
        block = freeze(block_from(source))
        assert not any(one.flags.writeable for one in arrays_in(block))
        assert all(one.flags.writeable for one in held)


def test_duplicates_are_summed_and_columns_sorted_in_a_copy():
    parts = (np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3, 3]))
    matrix = sp.csr_array(parts, shape=(2, 3))
    assert_same(csr_block(matrix), (2, 3), np.dtype(float), np.array([[2.0, 0, 5], [0, 0, 0]]))
    assert matrix.nnz == 3


def test_stored_zeros_are_kept_and_a_matrix_without_entries_is_empty():
    matrix = sp.csr_array((np.zeros(1), np.array([1]), np.array([0, 1])), shape=(1, 3))
    assert block_from(matrix).nnz == 1
    assert isinstance(block_from(sp.csr_array((2, 3))), Empty)


def test_a_pattern_keeps_the_dtype_and_forgets_the_values():
    block = csr_block(MATRIX, pattern=True)
    assert isinstance(block, Csr)
    assert block.values is None
    assert_same(block, (2, 3), np.dtype(float), (MATRIX.toarray() != 0).astype(float))
    assert block.nbytes == sparse_bytes(2, 3, block.dtype, pattern=True)
    assert block_from(MATRIX).nbytes == sparse_bytes(2, 3, block.dtype)


def test_what_scipy_does_not_know_or_keep_becomes_dense():
    block = csr_block(MATRIX)
    assert isinstance(block, Csr)
    short = Csr(block.shape, block.pointers, block.columns, block.values.astype("f2"), np.dtype("f2"))
    assert_same(Dense(to_numpy(short)), (2, 3), np.dtype("f2"), MATRIX.toarray())
    zeros = Csr(block.shape, block.pointers, block.columns, np.full(3, -0.0), block.dtype)
    np.testing.assert_array_equal(np.signbit(to_numpy(zeros)), MATRIX.toarray() != 0)


def test_wide_indices_become_narrow_or_are_refused():
    parts = (MATRIX.data, MATRIX.indices.astype(np.int64), MATRIX.indptr.astype(np.int64))
    block = block_from(sp.csr_array(parts, shape=(2, 3)))
    assert_well_formed(block)
    with pytest.raises(TooLargeError, match="2147483648"):
        narrow(np.array([0, 2**31]))


def test_another_byte_order_is_converted():
    array = np.arange(3, dtype=">i4")
    assert_same(block_from(array), (3,), np.dtype("int32"), np.arange(3))
    assert block_from(array).dtype.isnative


@pytest.mark.parametrize(
    "given_array",
    [np.array(["a"]), np.array([object()]), np.zeros(2, "M8[s]"), np.zeros(1, [("a", int)])],
    ids=lambda one: str(one.dtype),
)
def test_what_is_no_number_is_refused(given_array):
    with pytest.raises(DTypeError, match="give numbers or booleans"):
        block_from(given_array)


@pytest.mark.parametrize(
    ("given_array", "reason"),
    [
        (sparse.COO.from_numpy(np.ones((2, 2, 2))), "3 axes"),
        (sp.coo_array(np.ones(3)), "1 axes"),
        (sparse.COO.from_numpy(np.ones((2, 2)), fill_value=1), "fill value"),
    ],
)
def test_a_sparse_array_that_is_no_matrix_of_zeros_is_refused(given_array, reason):
    with pytest.raises(ShapeError, match=reason):
        block_from(given_array)


def csr_parts(change, form=sp.csr_array):
    """Return the matrix with one of its parts changed behind its constructor's back."""
    matrix = form(MATRIX.copy())
    change(matrix)
    return matrix


def put(name, place, value):
    return lambda matrix: getattr(matrix, name).__setitem__(place, value)


def replaced(name, value):
    return lambda matrix: setattr(matrix, name, np.array(value))


@pytest.mark.parametrize("form", [sp.csr_array, sp.csr_matrix, sparse.GCXS.from_scipy_sparse])
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (put("indices", 1, 3), "an index of 3 along an axis of length 3"),
        (put("indices", 0, -1), "an index of -1 along an axis of length 3"),
        (put("indptr", 1, 5), "pointer 2 is 3, less than 5 before it"),
        (put("indptr", 2, 4), "pointers end at 4 but there are 3 entries"),
        (put("indptr", 0, 1), "pointers start at 1 instead of 0"),
        (replaced("indptr", [0, 3]), "2 pointers where 3 are needed"),
        (replaced("data", [1.0]), "3 indices and 1 entries"),
    ],
)
def test_malformed_rows_are_refused(form, change, reason):
    with pytest.raises(ShapeError, match=f"sparse array is malformed: {reason}"):
        block_from(csr_parts(change, form))


@pytest.mark.parametrize(
    ("change", "form"),
    [
        pytest.param(put("indices", 0, 2), sp.csc_array, id="csc_array"),
        pytest.param(
            put("indices", 0, 2), lambda one: sparse.GCXS.from_scipy_sparse(sp.csc_array(one)), id="GCXS"
        ),
        pytest.param(put("indices", 0, 3), sp.bsr_array, id="bsr_array"),
        pytest.param(lambda one: one.coords[0].__setitem__(0, 7), sp.coo_array, id="coo_array"),
        pytest.param(lambda one: one.coords.__setitem__((1, 0), -2), sparse.COO.from_scipy_sparse, id="COO"),
        pytest.param(lambda one: one.rows.__setitem__(0, [9]), sp.lil_array, id="lil_array"),
    ],
)
def test_an_index_out_of_range_is_refused_in_every_format(change, form):
    with pytest.raises(ShapeError, match=r"an index of (2|3|7|-2|9) along an axis of length"):
        block_from(csr_parts(change, form))


def test_room_behind_the_last_entry_is_allowed():
    matrix = MATRIX.copy()
    matrix.data, matrix.indices = np.append(matrix.data, 7.0), np.append(matrix.indices, -1)
    assert_same(block_from(matrix), (2, 3), np.dtype(float), MATRIX.toarray())


def test_masked_elements_are_refused_and_a_mask_of_none_is_not():
    with pytest.raises(DTypeError, match=r"fill or drop masked elements first: x.filled\(0\)"):
        block_from(np.ma.masked_greater(np.arange(12.0), 5))
    block = block_from(np.ma.masked_greater(np.arange(3.0), 5))
    assert_same(block, (3,), np.dtype(float), np.arange(3.0))
    assert type(block.values) is np.ndarray


def test_facts_of_blocks():
    dense = Dense(np.zeros((2, 3)))
    assert (dense.shape, dense.nnz, dense.nbytes) == ((2, 3), 6, dense_bytes((2, 3), np.dtype(float)))
    empty = Empty((2, 3), np.dtype(float))
    assert (empty.nnz, empty.nbytes) == (0, 0)
    assert [is_sparse(one) for one in (dense, empty, block_from(MATRIX))] == [False, True, True]


@pytest.mark.parametrize("offset", [0, 1, 4, 8])
def test_blocks_of_messages_are_aligned(offset: int) -> None:
    values = np.arange(12.0).reshape(3, 4)
    for block in (Dense(values), csr_block(sp.csr_array(values))):
        buffers: list[pickle.PickleBuffer] = []
        data = pickle.dumps(block, protocol=5, buffer_callback=buffers.append)
        moved = [memoryview(b"." * offset + bytes(one.raw()))[offset:] for one in buffers]
        found = pickle.loads(data, buffers=moved)
        arrays = [one for one in vars(found).values() if isinstance(one, np.ndarray)]
        assert arrays
        assert all(one.flags.aligned and not one.flags.writeable for one in arrays)
        np.testing.assert_array_equal(to_numpy(found), values)

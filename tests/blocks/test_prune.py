"""Entries that are not large enough leave a sparse block, NaN stay, and what nothing leaves is not copied."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from matnb.blocks.formats import Csr, Dense, Empty, csr_block, to_scipy
from matnb.blocks.kernels.shaping.selecting import prune

DTYPES = ("float64", "float32", "int64", "int32", "bool", "complex128", "complex64")


@st.composite
def matrices(draw: st.DrawFn) -> sp.csr_array:
    """Draw a matrix with stored zeros, some of them negative, and NaN."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = draw(st.tuples(st.integers(1, 6), st.integers(1, 6)))
    stored = draw(arrays.arrays(np.bool_, shape))
    values = draw(
        arrays.arrays(np.float64, shape, elements=st.sampled_from([0.0, -0.0, 0.5, -2.0, 3.0, np.nan]))
    )
    if dtype.kind in "iub":
        values = np.nan_to_num(values)
    rows, columns = np.nonzero(stored)
    return sp.csr_array((values[stored].astype(dtype), (rows, columns)), shape=shape)


@given(matrices(), st.sampled_from([0.0, 0.5, 1.0, 2.5, np.inf]))
def test_what_stays_is_larger_or_nan(matrix: sp.csr_array, threshold: float) -> None:
    found = prune([csr_block(matrix)], threshold)
    matrix.sort_indices()
    expected = sp.coo_array(matrix)
    kept = ~(np.abs(expected.data.astype(np.complex128)) <= threshold)
    mine = sp.coo_array(to_scipy(found))
    assert mine.dtype == matrix.dtype
    assert found.shape == matrix.shape
    assert isinstance(found, Empty) == (not kept.any())
    np.testing.assert_array_equal(mine.row, expected.row[kept])
    np.testing.assert_array_equal(mine.col, expected.col[kept])
    np.testing.assert_array_equal(mine.data, expected.data[kept])


@given(matrices())
def test_zeros_leave_as_they_leave_scipys(matrix: sp.csr_array) -> None:
    found = to_scipy(prune([csr_block(matrix)], 0.0))
    matrix.eliminate_zeros()
    assert found.nnz == matrix.nnz
    np.testing.assert_array_equal(found.toarray(), matrix.toarray())


def test_many_rows_and_no_row() -> None:
    rng = np.random.default_rng(1)
    matrix = sp.random_array((5_000, 300), density=0.02, rng=rng, format="csr")
    matrix.data[rng.random(matrix.nnz) < 0.6] = 0.0
    found = to_scipy(prune([csr_block(matrix)], 0.0))
    matrix.eliminate_zeros()
    for one, other in (
        (found.indptr, matrix.indptr),
        (found.indices, matrix.indices),
        (found.data, matrix.data),
    ):
        np.testing.assert_array_equal(one, other)


def test_a_block_that_loses_nothing_is_given_back() -> None:
    block = csr_block(sp.csr_array(np.array([[0.0, 3.0], [np.nan, -2.0]])))
    assert prune([block], 0.0) is block
    assert prune([block], 1.5) is block


@pytest.mark.parametrize(("threshold", "stays"), [(0.0, True), (0.5, True), (1.0, False)])
def test_entries_of_a_pattern_are_ones(threshold: float, stays: bool) -> None:
    block = csr_block(sp.csr_array(np.eye(3)), pattern=True)
    assert isinstance(block, Csr)
    assert isinstance(prune([block], threshold), Csr if stays else Empty)


def test_the_least_whole_number_is_large() -> None:
    least = np.iinfo(np.int64).min
    block = csr_block(sp.csr_array(np.array([[least, 5]])))
    assert to_scipy(prune([block], 10.0)).toarray().tolist() == [[least, 0]]


def test_dense_and_empty_blocks_are_left() -> None:
    for block in (Dense(np.zeros((2, 2))), Empty((2, 2), np.dtype(np.float64))):
        assert prune([block], 1.0) is block

"""Products of two sparse blocks: every way to find a row's columns, cuts of rows, memory, and what wraps."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
import strategies
from block_checks import array_of, assert_same, assert_shares_nothing, assert_well_formed, mask_of, stored
from hypothesis import given
from hypothesis import strategies as st
from pairs import EVERY_SEMIRING, expected_product, is_defined
from strategies import SEMIRINGS_WITH_LOOPS

from matnb.blocks.formats import Csr, Empty, block_from, csr_block, freeze
from matnb.blocks.kernels.products import sparse_products
from matnb.blocks.kernels.products.products import multiply
from matnb.blocks.kernels.shaping.shaping import cut
from matnb.blocks.semiring import LOR_LAND, MIN_PLUS, PLUS_PAIR, PLUS_TIMES
from matnb.errors import TooLargeError

FLOAT = np.dtype(float)


@st.composite
def operand_pairs(draw, exact=True):
    """Draw two sparse blocks, now and then with columns so far apart that they are listed."""
    n, k, m = (draw(strategies.lengths(6)) for _ in range(3))
    left, right = (
        draw(strategies.sparse_blocks(shape, draw(strategies.sparse_dtypes()), exact))
        for shape in ((n, k), (k, m))
    )
    stride = draw(st.sampled_from([1, 1, 60, 70_000]))
    if isinstance(right, Csr):
        columns = right.columns * np.int32(stride)
        right = freeze(Csr((k, m * stride), right.pointers, columns, right.values, right.dtype))
    else:
        right = Empty((k, m * stride), right.dtype)
    return left, right, stride


def narrowed(block, stride):
    """Return the block with the columns that were spread brought together again."""
    width = block.shape[1] // stride
    if isinstance(block, Empty):
        return Empty((block.shape[0], width), block.dtype)
    columns = block.columns // np.int32(stride)
    return Csr((block.shape[0], width), block.pointers, columns, block.values, block.dtype)


@pytest.mark.parametrize("name", EVERY_SEMIRING)
@given(drawn=operand_pairs())
def test_an_entry_is_stored_wherever_a_pair_met(name, drawn):
    left, right, stride = drawn
    semiring = SEMIRINGS_WITH_LOOPS[name]
    if not is_defined(SEMIRINGS_WITH_LOOPS[name], left, right):
        return
    dtype = semiring.result_dtype(left.dtype, right.dtype)
    found = multiply(left, right, semiring, dtype)
    assert_well_formed(found)
    assert_shares_nothing(found, left, right)
    values, met = expected_product(left, narrowed(right, stride), semiring, dtype)
    found = narrowed(found, stride)
    np.testing.assert_array_equal(mask_of(found), met)
    assert_same(found, met.shape, dtype, np.where(met, values, dtype.type(0)))


@pytest.mark.parametrize("semiring", [PLUS_TIMES, PLUS_PAIR, LOR_LAND], ids=lambda one: one.name)
@pytest.mark.parametrize(
    ("inner", "width", "per_row"),
    [(50, 64, 20), (50, 200_000, 3), (50, 700_000, 12), (3, 1_000_000, 400)],
    ids=["full", "few, far apart", "listed and sorted", "long rows"],
)
def test_each_way_to_find_the_columns_agrees_with_scipy(semiring, inner, width, per_row):
    rng = np.random.default_rng(1)
    A = sp.random_array((40, inner), density=0.1, format="csr", rng=rng)
    rows = np.repeat(np.arange(inner), per_row)
    columns = rng.integers(0, width, inner * per_row)
    B = sp.csr_array((rng.random(inner * per_row), (rows, columns)), shape=(inner, width))
    if semiring is not PLUS_TIMES:
        A.data[:], B.data[:] = 1, 1
    blocks = [csr_block(matrix, pattern=semiring is not PLUS_TIMES) for matrix in (A, B)]
    dtype = semiring.result_dtype(FLOAT, FLOAT)
    found = multiply(*blocks, semiring, dtype)
    assert_well_formed(found)
    expected = sp.csr_array(A @ B)
    expected.sort_indices()
    np.testing.assert_array_equal(found.pointers, expected.indptr)
    np.testing.assert_array_equal(found.columns, expected.indices)
    truth = expected.data != 0 if semiring is LOR_LAND else expected.data
    np.testing.assert_allclose(found.entries, truth, rtol=1e-13)


@pytest.mark.parametrize("name", EVERY_SEMIRING)
@given(data=st.data())
def test_rows_have_the_same_bits_however_they_are_cut(name, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    A = csr_block(sp.random_array((9, 30), density=0.4, format="csr", rng=rng))
    B = csr_block(sp.random_array((30, 40), density=0.4, format="csr", rng=rng))
    semiring = SEMIRINGS_WITH_LOOPS[name]
    dtype = semiring.result_dtype(FLOAT, FLOAT)
    cuts = data.draw(strategies.axis_cuts(9))
    parts = [
        array_of(multiply(cut(A, (slice(start, stop), slice(0, 30))), B, semiring, dtype))
        for start, stop in itertools.pairwise(cuts)
    ]
    assert np.concatenate(parts).tobytes() == array_of(multiply(A, B, semiring, dtype)).tobytes()


def test_infinities_and_nan_meet_as_in_numpy():
    left = block_from(sp.csr_array(np.array([[np.inf, 1.0], [np.nan, 2.0], [-np.inf, 3.0]])))
    right = block_from(sp.csr_array(np.array([[1.0, -1.0], [np.inf, 5.0]])))
    for semiring in (PLUS_TIMES, MIN_PLUS):
        values, met = expected_product(left, right, semiring, FLOAT)
        assert_same(multiply(left, right, semiring, FLOAT), met.shape, FLOAT, values)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers_wrap(dtype):
    largest = np.iinfo(dtype).max
    left = block_from(sp.csr_array(np.array([[largest, largest]], dtype)))
    right = block_from(sp.csr_array(np.array([[3, 1], [1, 2]], dtype)))
    for semiring in (PLUS_TIMES, MIN_PLUS):
        values, met = expected_product(left, right, semiring, np.dtype(dtype))
        assert_same(multiply(left, right, semiring, np.dtype(dtype)), met.shape, np.dtype(dtype), values)


def test_a_product_of_patterns_over_truths_stores_no_value():
    block = csr_block(sp.csr_array(np.array([[1.0, 1.0], [0.0, 1.0]])), pattern=True)
    found = multiply(block, block, LOR_LAND, np.dtype(bool))
    assert isinstance(found, Csr)
    assert found.values is None
    assert stored(found) == {(0, 0): True, (0, 1): True, (1, 1): True}


@pytest.fixture
def operands():
    A = sp.random_array((300, 300), density=0.1, format="csr", rng=1)
    return freeze(csr_block(A)), A


@pytest.mark.parametrize("semiring", [PLUS_TIMES, LOR_LAND], ids=lambda one: one.name)
def test_with_little_room_to_set_aside_entries_are_counted_before(monkeypatch, operands, semiring):
    block, A = operands
    if semiring is LOR_LAND:
        block = Csr(block.shape, block.pointers, block.columns, None, block.dtype)
    dtype = semiring.result_dtype(FLOAT, FLOAT)
    expected = multiply(block, block, semiring, dtype)
    monkeypatch.setattr(sparse_products, "MOST_SET_ASIDE", 10)
    found = multiply(block, block, semiring, dtype)
    assert_same(found, A.shape, dtype, array_of(expected))
    assert sparse_products.room_for(block, block) == (A @ A).nnz


def test_more_entries_than_a_block_holds_are_refused(monkeypatch, operands):
    block, _ = operands
    monkeypatch.setattr(sparse_products, "MOST_SET_ASIDE", 10)
    monkeypatch.setattr(sparse_products, "MAX_ENTRIES", 1000)
    with pytest.raises(TooLargeError, match="cut the array into more blocks"):
        multiply(block, block, PLUS_TIMES, FLOAT)


def test_memory_is_the_result_and_what_is_set_aside_for_it(operands):
    block, _ = operands
    multiply(block, block, PLUS_TIMES, FLOAT)  # compiles
    tracemalloc.start()
    try:
        found = multiply(block, block, PLUS_TIMES, FLOAT)
        left, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    pairs = np.diff(block.pointers)[block.columns]
    room = np.minimum(np.add.reduceat(pairs, block.pointers[:-1]), 300).sum()
    assert peak < 12 * room + 8 * 301 + 300 // 8 + 4 * 301 + 4096
    assert left < found.nbytes + 4096  # what was set aside and not used is given back

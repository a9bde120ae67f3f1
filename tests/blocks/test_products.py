"""Products over every semiring against a loop over the pairs that meet, and against NumPy and SciPy."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
import strategies
from block_checks import (
    array_of,
    assert_same,
    assert_shares_nothing,
    assert_well_formed,
    mask_of,
    stored,
)
from hypothesis import given
from hypothesis import strategies as st
from pairs import EVERY_SEMIRING, expected_product, is_defined
from strategies import SEMIRINGS_WITH_LOOPS

from matnb.blocks.formats import Csr, Dense, Empty, block_from, csr_block, freeze, is_sparse
from matnb.blocks.kernels.products.products import accumulate, multiply
from matnb.blocks.semiring import LOR, MAX, MIN, MIN_PLUS, PLUS, PLUS_PAIR, PLUS_TIMES
from matnb.errors import ShapeError, UnsupportedError

FLOAT = np.dtype(float)
PATTERN = Csr((2, 3), np.array([0, 2, 3], np.int32), np.array([0, 2, 1], np.int32), None, FLOAT)


def check_product(left, right, semiring):
    dtype = semiring.result_dtype(left.dtype, right.dtype)
    found = multiply(left, right, semiring, dtype)
    values, met = expected_product(left, right, semiring, dtype)
    if is_sparse(left) and is_sparse(right):
        assert is_sparse(found)
        np.testing.assert_array_equal(mask_of(found), met)
        values = np.where(met, values, dtype.type(0))
    else:
        assert isinstance(found, Dense)
    assert_same(found, met.shape, dtype, values)
    assert_shares_nothing(found, left, right)


@st.composite
def operand_pairs(draw, exact=True, dtypes=None):
    n, k, m = (draw(strategies.lengths(4)) for _ in range(3))
    one, other = ((dtypes or draw(strategies.sparse_dtypes())) for _ in range(2))
    left = draw(strategies.matrix_blocks((n, k), one, exact))
    return left, draw(strategies.matrix_blocks((k, m), other, exact))


@pytest.mark.parametrize("name", EVERY_SEMIRING)
@given(data=st.data())
def test_products_of_matrices_in_every_format(name, data):
    left, right = data.draw(operand_pairs())
    if not is_defined(SEMIRINGS_WITH_LOOPS[name], left, right):
        return
    check_product(left, right, SEMIRINGS_WITH_LOOPS[name])


@given(operand_pairs(exact=False, dtypes=FLOAT))
def test_least_sums_keep_infinities_and_nan_of_stored_entries(drawn):
    check_product(*drawn, MIN_PLUS)


@given(operand_pairs(exact=False, dtypes=np.dtype("int32")), st.sampled_from([PLUS_TIMES, MIN_PLUS]))
def test_integers_wrap(drawn, semiring):
    check_product(*drawn, semiring)


@pytest.mark.parametrize("formats", list(itertools.product([True, False], repeat=2)))
def test_a_least_sum_that_wraps_is_the_least(formats):
    dtype = np.dtype("int32")
    arrays = np.array([[2**31 - 1, 5]], dtype), np.array([[1], [1]], dtype)
    left, right = (
        block_from(sp.csr_array(array)) if wanted else Dense(array)
        for array, wanted in zip(arrays, formats, strict=True)
    )
    assert_same(multiply(left, right, MIN_PLUS, dtype), (1, 1), dtype, np.array([[-(2**31)]]))


@pytest.mark.parametrize("dtype", strategies.DENSE_DTYPES, ids=str)
@given(data=st.data())
def test_dense_products_follow_numpy_for_every_shape_and_dtype(dtype, data):
    batch = data.draw(strategies.shapes(most=2, longest=3))
    n, k, m = (data.draw(strategies.lengths(3)) for _ in range(3))
    exact = dtype.kind in "fc"
    a_batch, b_batch = (
        tuple(1 if data.draw(st.booleans()) else length for length in batch) for _ in range(2)
    )
    a_shape = data.draw(st.sampled_from([(k,), (n, k), (*a_batch, n, k)]))
    b_shape = data.draw(st.sampled_from([(k,), (k, m), (*b_batch[-1:], k, m)]))
    left = data.draw(strategies.dense_blocks(a_shape, dtype, exact))
    right = data.draw(strategies.dense_blocks(b_shape, dtype, exact))
    product = np.asarray(np.matmul(left.values, right.values))
    assert_same(multiply(left, right, PLUS_TIMES, dtype), product.shape, product.dtype, product)
    truth = np.asarray(np.matmul(left.values != 0, right.values != 0))
    found = multiply(left, right, SEMIRINGS_WITH_LOOPS["lor_land"], np.dtype(bool))
    assert_same(found, product.shape, np.dtype(bool), truth)
    found = multiply(left, right, PLUS_PAIR, np.dtype(int))
    assert_same(found, product.shape, np.dtype(int), np.full(product.shape, k))
    if dtype.kind in "iuf":
        a = left.values.reshape(1, -1) if left.values.ndim == 1 else left.values
        b = right.values.reshape(-1, 1) if right.values.ndim == 1 else right.values
        sums = a[..., :, :, np.newaxis] + b[..., np.newaxis, :, :]
        least = np.min(sums, axis=-2, initial=MIN.identity(dtype)).reshape(product.shape)
        assert_same(multiply(left, right, MIN_PLUS, dtype), product.shape, dtype, least)


@pytest.mark.parametrize("name", EVERY_SEMIRING)
@given(data=st.data())
def test_vectors_meet_sparse_matrices_as_single_rows_and_columns(name, data):
    rows, columns = data.draw(strategies.matrix_shapes(4))
    block = data.draw(strategies.sparse_blocks((rows, columns), FLOAT, exact=True))
    x = data.draw(strategies.dense_blocks((columns,), FLOAT, exact=True))
    y = data.draw(strategies.dense_blocks((rows,), FLOAT, exact=True))
    semiring = SEMIRINGS_WITH_LOOPS[name]
    dtype = semiring.result_dtype(FLOAT, FLOAT)
    if semiring.leaves_out:  # without elements that are absent, which test_frontier has
        x, y = (Dense(np.where(one.values == semiring.add.identity(FLOAT), 1, one.values)) for one in (x, y))
    values, _ = expected_product(block, Dense(x.values[:, np.newaxis]), semiring, dtype)
    assert_same(multiply(block, x, semiring, dtype), (rows,), dtype, values[:, 0])
    values, _ = expected_product(Dense(y.values[np.newaxis]), block, semiring, dtype)
    assert_same(multiply(y, block, semiring, dtype), (columns,), dtype, values[0])


@pytest.mark.parametrize("density", [0.1, 0.01], ids=["full rows", "rows to sort"])
def test_larger_products_agree_with_scipy(density):
    A = sp.random_array((60, 50), density=0.1, format="csr", rng=1)
    B = sp.random_array((50, 700), density=density, format="csr", rng=2)
    X = np.random.default_rng(3).random((50, 4))
    found = multiply(block_from(A), block_from(B), PLUS_TIMES, FLOAT)
    assert_well_formed(found)
    np.testing.assert_allclose(array_of(found), (A @ B).toarray(), rtol=1e-13)
    found = multiply(block_from(A), block_from(X), PLUS_TIMES, FLOAT)
    np.testing.assert_allclose(array_of(found), A @ X, rtol=1e-13)
    found = multiply(block_from(X.T.copy()), block_from(B), PLUS_TIMES, FLOAT)
    np.testing.assert_allclose(array_of(found), X.T @ B, rtol=1e-13)


def test_sums_that_cancel_stay_stored():
    left = block_from(sp.csr_array(np.array([[1.0, -1.0]])))
    right = block_from(sp.csr_array(np.array([[2.0], [2.0]])))
    assert stored(multiply(left, right, PLUS_TIMES, FLOAT)) == {(0, 0): 0.0}


def test_absent_entries_do_not_meet_infinities():
    block = csr_block(sp.csr_array(np.array([[1.0, 0.0]])))
    x = Dense(np.array([2.0, np.inf]))
    np.testing.assert_array_equal(array_of(multiply(block, x, PLUS_TIMES, FLOAT)), [2.0])


def test_more_pairs_than_a_byte_can_count_are_still_true():
    ones = csr_block(sp.csr_array(np.ones((1, 256), bool)))
    turned = csr_block(sp.csr_array(np.ones((256, 1), bool)))
    for right in (turned, Dense(np.ones(256, bool))):
        found = multiply(ones, right, PLUS_TIMES, np.dtype(bool))
        assert array_of(found).all()


@pytest.mark.parametrize("right_format", [Csr, Dense])
@pytest.mark.parametrize("left_format", [Csr, Dense])
def test_float32_is_summed_in_float64(left_format, right_format):
    short = np.dtype(np.float32)
    ones, large = np.ones((1, 9), short), np.full((9, 1), 1, short)
    large[0] = 2**24  # to which single precision cannot add 1
    blocks = [
        block_from(sp.csr_array(one)) if wanted is Csr else Dense(one)
        for one, wanted in ((ones, left_format), (large, right_format))
    ]
    found = multiply(*blocks, PLUS_TIMES, short)
    assert_same(found, (1, 1), short, np.array([[2**24 + 8]]))


@pytest.mark.parametrize("columns", [None, 2])
def test_a_pattern_times_a_vector_makes_no_ones(columns):
    count, width = 300_000, 1000
    places = (np.arange(count) % width).astype(np.int32)
    pointers = np.arange(0, count + 1, width, dtype=np.int32)
    block = freeze(Csr((count // width, width), pointers, places, None, FLOAT))
    x = freeze(Dense(np.ones((width,) if columns is None else (width, columns))))
    y = freeze(Dense(np.ones(count // width)))
    multiply(block, x, PLUS_TIMES, FLOAT)  # compiles
    multiply(y, block, PLUS_TIMES, FLOAT)
    tracemalloc.start()
    try:
        found = multiply(block, x, PLUS_TIMES, FLOAT)
        turned = multiply(y, block, PLUS_TIMES, FLOAT)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (array_of(found) == width).all()
    assert (array_of(turned) == count // width).all()
    assert peak < count  # ones would take eight times as much


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (Dense(np.ones((2, 3))), Dense(np.ones((2, 3)))),
        (Dense(np.ones(())), Dense(np.ones(3))),
        (Dense(np.ones((2, 2, 3))), Dense(np.ones((3, 3, 3)))),
        (PATTERN, Dense(np.ones(2))),
        (PATTERN, Dense(np.ones((1, 3, 1)))),
        (Dense(np.ones((1, 2))), Empty((3, 2), FLOAT)),
    ],
    ids=lambda one: f"{type(one).__name__}{one.shape}",
)
def test_shapes_that_do_not_fit_are_refused(left, right):
    with pytest.raises(ShapeError, match="no product of shapes"):
        multiply(left, right, PLUS_TIMES, FLOAT)


@given(
    st.data(),
    st.sampled_from([PLUS, MIN, MAX, LOR]),
    st.sampled_from(["float64", "float32", "int32", "bool"]).map(np.dtype),
)
def test_partial_products_are_combined_in_order(data, monoid, dtype):
    shape = data.draw(strategies.matrix_shapes(4))
    kind = data.draw(st.sampled_from([strategies.sparse_blocks, strategies.dense_blocks]))
    parts = data.draw(st.lists(kind(shape, dtype, exact=True), min_size=1, max_size=4))
    found = accumulate(parts, monoid, dtype)
    expected, met = array_of(parts[0]), mask_of(parts[0])
    for part in parts[1:]:
        both = getattr(np, monoid.ufunc)(expected, array_of(part)).astype(dtype)
        new = np.where(met, both, array_of(part))
        expected, met = np.where(mask_of(part), new, expected), met | mask_of(part)
    if monoid is LOR and len(parts) > 1 and dtype.kind != "b":
        expected, found = expected != 0, Dense(array_of(found) != 0)
        met = None
    assert_same(found, shape, expected.dtype, expected)
    if met is not None:
        np.testing.assert_array_equal(mask_of(found), met)
    values = [] if isinstance(found, Empty) else [found.values]
    assert_shares_nothing(Dense(values[0]) if values else found, *parts)


def test_partial_products_of_float32_are_summed_in_float64():
    parts = [Dense(np.array([value], np.float32)) for value in (2**24, 1, 1)]
    assert_same(
        accumulate(parts, PLUS, np.dtype("float32")), (1,), np.dtype("float32"), np.array([2**24 + 2])
    )


def test_a_single_negative_zero_keeps_its_sign():
    block = csr_block(sp.csr_array((np.array([-0.0]), np.array([0]), np.array([0, 1])), shape=(1, 2)))
    found = accumulate([Empty((1, 2), FLOAT), block], PLUS, FLOAT)
    assert np.signbit(stored(found)[0, 0])


def test_partial_products_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match="all alike"):
        accumulate([PATTERN, Empty((2, 2), FLOAT)], PLUS, FLOAT)
    with pytest.raises(ShapeError, match="give some"):
        accumulate([], PLUS, FLOAT)
    with pytest.raises(UnsupportedError, match="all Dense, all sparse"):
        accumulate([PATTERN, Dense(np.zeros((2, 3)))], PLUS, FLOAT)


def test_a_miss_says_what_exists():
    from matnb.blocks.kernels.registry import Family

    family = Family("product")
    family.register("plus_times", Csr, Dense)(lambda left, right: left)
    with pytest.raises(
        UnsupportedError, match=r"no product 'plus_times' for \(Csr, Csr\); known: \(Csr, Dense\)"
    ):
        family.find("plus_times", PATTERN, PATTERN)
    with pytest.raises(UnsupportedError, match="no product 'max_plus'; known: plus_times"):
        family.find("max_plus", PATTERN, PATTERN)

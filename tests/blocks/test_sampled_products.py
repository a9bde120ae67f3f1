"""Products under a mask against a loop over the pairs that meet, in every form of computing them."""

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
)
from hypothesis import given
from hypothesis import strategies as st
from pairs import EVERY_SEMIRING, expected_product, is_defined
from strategies import SEMIRINGS_WITH_LOOPS

from matnb.blocks.formats import Block, Csr, Dense, Empty, block_from, csr_block, freeze, is_sparse
from matnb.blocks.kernels.products import sampled_products
from matnb.blocks.kernels.products.products import multiply
from matnb.blocks.kernels.products.sampled_products import (
    masked_multiply,
    masked_row_sums,
    prefers_columns,
    prefers_entries,
)
from matnb.blocks.kernels.reductions.reductions import reduce_block
from matnb.blocks.kernels.shaping.shaping import cut
from matnb.blocks.semiring import LOR_LAND, MIN_PLUS, PLUS_PAIR, PLUS_TIMES
from matnb.errors import OptionError, ShapeError

FLOAT = np.dtype(float)
WAYS = {"by slots": False, "by columns": True}


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    """Fix the form in which products are computed, whatever the counts say."""
    monkeypatch.setattr(sampled_products, "prefers_columns", lambda *counts: WAYS[request.param])
    monkeypatch.setattr(sampled_products, "prefers_entries", lambda *counts: WAYS[request.param])


def truth_of(mask, structural):
    stored = mask_of(mask)
    if isinstance(mask, Dense) or not structural:
        return stored & (array_of(mask) != 0)
    return stored


def check_masked(left, right, mask, semiring, complement, structural):
    dtype = semiring.result_dtype(left.dtype, right.dtype)
    found = masked_multiply(left, right, mask, semiring, dtype, complement=complement, structural=structural)
    values, met = expected_product(left, right, semiring, dtype)
    true = truth_of(mask, structural) ^ complement
    sparse = is_sparse(left) and is_sparse(right)
    if sparse or (is_sparse(mask) and not complement):
        stored = true & met if sparse else true
        assert is_sparse(found)
        np.testing.assert_array_equal(mask_of(found), stored)
        values = np.where(stored, values, dtype.type(0))
    else:
        assert isinstance(found, Dense)
        values = np.where(true, values, semiring.add.identity(dtype))
    assert_same(found, met.shape, dtype, values)
    assert_shares_nothing(found, left, right, mask)


@st.composite
def masked_operands(draw, exact=True, dtype=None, longest=4):
    n, k, m = (draw(strategies.lengths(longest)) for _ in range(3))
    one, other = ((dtype or draw(strategies.sparse_dtypes())) for _ in range(2))
    left = draw(strategies.matrix_blocks((n, k), one, exact))
    right = draw(strategies.matrix_blocks((k, m), other, exact))
    return left, right, draw(strategies.matrix_blocks((n, m), draw(strategies.sparse_dtypes()), exact))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("name", EVERY_SEMIRING)
@given(drawn=masked_operands(), complement=st.booleans(), structural=st.booleans())
def test_masked_products_in_every_format(name, drawn, complement, structural):
    left, right, mask = drawn
    if not is_defined(SEMIRINGS_WITH_LOOPS[name], left, right):
        return
    check_masked(left, right, mask, SEMIRINGS_WITH_LOOPS[name], complement, structural)


@pytest.mark.usefixtures("way")
@given(masked_operands(exact=False, dtype=FLOAT), st.booleans())
def test_least_sums_keep_infinities_and_nan_of_stored_entries(drawn, complement):
    check_masked(*drawn, MIN_PLUS, complement, False)


@pytest.mark.usefixtures("way")
@given(
    masked_operands(exact=False, dtype=np.dtype("int32")),
    st.sampled_from([PLUS_TIMES, MIN_PLUS]),
    st.booleans(),
)
def test_integers_wrap(drawn, semiring, complement):
    check_masked(*drawn, semiring, complement, False)


@pytest.mark.parametrize("dtype", ["complex128", "uint8", "float16"])
@pytest.mark.parametrize("name", ["plus_times", "lor_land"])
@given(data=st.data())
def test_dense_blocks_of_other_dtypes_are_sampled(name, dtype, data):
    rows, inner, columns = (data.draw(strategies.lengths(12)) for _ in range(3))
    element = np.dtype(dtype)
    kind = st.integers(0, 3) if element.kind != "c" else st.builds(complex, st.integers(-3, 3))
    left, right = (
        freeze(
            Dense(np.array(data.draw(st.lists(kind, min_size=a * b, max_size=a * b)), element).reshape(a, b))
        )
        for a, b in ((rows, inner), (inner, columns))
    )
    mask = data.draw(strategies.sparse_blocks((rows, columns), FLOAT))
    check_masked(left, right, mask, SEMIRINGS_WITH_LOOPS[name], False, True)


def test_entries_that_do_not_meet_do_not_spoil_a_sum():
    left = csr_block(sp.csr_array(np.array([[1.0, 0.0]])))
    right = csr_block(sp.csr_array(np.array([[2.0], [np.inf]])))
    mask = csr_block(sp.csr_array(np.ones((1, 1))))
    for block in (right, Dense(array_of(right))):
        assert array_of(masked_multiply(left, block, mask, PLUS_TIMES, FLOAT)) == 2.0


@given(masked_operands(), st.sampled_from(["float64", "int64", "int32", "float32"]))
def test_a_product_is_scaled_by_its_mask(drawn, scaled):
    left, right, mask = drawn
    if not is_sparse(mask):
        mask = block_from(sp.csr_array(mask.values))
    scaled = np.dtype(scaled)
    dtype = PLUS_TIMES.result_dtype(left.dtype, right.dtype)
    plain = masked_multiply(left, right, mask, PLUS_TIMES, dtype, structural=True)
    found = masked_multiply(left, right, mask, PLUS_TIMES, dtype, structural=True, scaled=scaled)
    expected = array_of(plain).astype(scaled) * array_of(mask).astype(scaled)
    np.testing.assert_array_equal(mask_of(found), mask_of(plain))
    assert_same(found, mask.shape, scaled, expected)
    assert_shares_nothing(found, left, right, mask)


@given(
    masked_operands(),
    st.sampled_from([None, "float64", "int64", "int32", "float32", "bool"]),
    st.sampled_from(["float64", "float32", "int64", "int32"]),
    st.sampled_from([PLUS_TIMES, PLUS_PAIR, LOR_LAND]),
)
def test_row_sums_of_a_masked_product_are_those_of_the_stored_one(drawn, scaled, summed, semiring):
    left, right, mask = drawn
    if not is_sparse(mask):
        mask = block_from(sp.csr_array(mask.values))
    scaled = scaled and np.dtype(scaled)
    summed = np.dtype(summed)
    dtype = semiring.result_dtype(left.dtype, right.dtype)
    product = masked_multiply(left, right, mask, semiring, dtype, structural=True, scaled=scaled)
    expected = reduce_block("sum", product, (1,), summed)
    found = masked_row_sums(left, right, mask, semiring, dtype, scaled, summed)
    assert_same(found, (mask.shape[0], 1), expected.dtype, expected.values)


def pattern(matrix):
    return freeze(csr_block(sp.csr_array(matrix), pattern=True))


def random_patterns(count, size, density):
    return [pattern(sp.random_array((size, size), density=density, rng=seed)) for seed in range(count)]


def test_pairs_of_patterns_are_counted_without_storing_an_entry():
    left, right, mask = random_patterns(3, 400, 0.2)
    expected = (sp.csr_array(array_of(left)) @ array_of(right) * array_of(mask)).sum(axis=1)
    masked_row_sums(left, right, mask, PLUS_TIMES, FLOAT, FLOAT, FLOAT)  # compiles
    tracemalloc.start()
    try:
        found = masked_row_sums(left, right, mask, PLUS_TIMES, FLOAT, FLOAT, FLOAT)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(found.values[:, 0], expected)
    assert peak < 400 + 3 * 8 * 400 + 4096  # marks, counts, sums; 32,000 entries of the mask would take more


def test_a_sampled_dense_product_never_builds_the_whole():
    rng = np.random.default_rng(1)
    U, V = (freeze(Dense(rng.random(shape))) for shape in ((600, 8), (8, 600)))
    S = freeze(csr_block(sp.random_array((600, 600), density=0.01, format="csr", rng=2)))
    masked_multiply(U, V, S, PLUS_TIMES, FLOAT, structural=True, scaled=FLOAT)  # compiles
    tracemalloc.start()
    try:
        found = masked_multiply(U, V, S, PLUS_TIMES, FLOAT, structural=True, scaled=FLOAT)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    np.testing.assert_allclose(array_of(found), array_of(S) * (U.values @ V.values), rtol=1e-13)
    assert peak < V.nbytes + 28 * S.nnz + 8 * 600 + 4096  # the whole product would take 8 * 600 * 600


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("name", EVERY_SEMIRING)
@given(data=st.data())
def test_rows_have_the_same_bits_however_they_are_cut(name, data):
    semiring = SEMIRINGS_WITH_LOOPS[name]
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    dense = st.booleans()
    blocks: list[Block] = [
        Dense(rng.standard_normal((7, 9)))
        if data.draw(dense)
        else csr_block(sp.random_array((7, 9), density=0.5, rng=rng, format="csr")),
        Dense(rng.standard_normal((9, 11)))
        if data.draw(dense)
        else csr_block(sp.random_array((9, 11), density=0.5, rng=rng, format="csr")),
    ]
    sparse_mask = csr_block(sp.random_array((7, 11), density=0.5, rng=rng, format="csr"))
    mask = Dense(array_of(sparse_mask)) if data.draw(dense) else sparse_mask
    complement = data.draw(st.booleans())
    all_dense = isinstance(blocks[0], Dense) and isinstance(blocks[1], Dense)
    if all_dense and (complement or not is_sparse(mask)):
        return  # it is a product of whole Dense blocks, of which no bits are promised
    dtype = semiring.result_dtype(FLOAT, FLOAT)
    whole = array_of(masked_multiply(*blocks, mask, semiring, dtype, complement=complement))
    cuts = data.draw(strategies.axis_cuts(7))
    parts = [
        array_of(
            masked_multiply(
                cut(blocks[0], (slice(start, stop), slice(0, 9))),
                blocks[1],
                cut(mask, (slice(start, stop), slice(0, 11))),
                semiring,
                dtype,
                complement=complement,
            )
        )
        for start, stop in itertools.pairwise(cuts)
    ]
    assert np.concatenate(parts).tobytes() == whole.tobytes()


@pytest.mark.parametrize("name", EVERY_SEMIRING)
@given(st.data())
def test_a_vector_is_multiplied_where_a_dense_mask_is_true(name, data):
    rows, columns = data.draw(strategies.matrix_shapes())
    block = data.draw(strategies.matrix_blocks((rows, columns), FLOAT, exact=True))
    x = data.draw(strategies.dense_blocks((columns,), FLOAT, exact=True))
    mask = data.draw(strategies.dense_blocks((rows,), np.dtype(bool)))
    complement = data.draw(st.booleans())
    semiring = SEMIRINGS_WITH_LOOPS[name]
    dtype = semiring.result_dtype(FLOAT, FLOAT)
    whole = multiply(block, x, semiring, dtype)
    found = masked_multiply(block, x, mask, semiring, dtype, complement=complement)
    expected = np.where(mask.values ^ complement, array_of(whole), semiring.add.identity(dtype))
    assert_same(found, (rows,), dtype, expected)


def test_the_form_is_chosen_from_counts():
    assert prefers_columns(pairs=10**8, looked_at=100, right_nnz=10**6)
    assert not prefers_columns(pairs=10**8, looked_at=10**8, right_nnz=10**6)
    assert not prefers_columns(pairs=10**6, looked_at=100, right_nnz=10**6)
    assert prefers_entries(num_true=1, size=1000)
    assert not prefers_entries(num_true=500, size=1000)


PATTERN = Csr((2, 3), np.array([0, 2, 3], np.int32), np.array([0, 2, 1], np.int32), None, FLOAT)


def test_shapes_and_options_that_do_not_fit_are_refused():
    square, X = Empty((3, 3), FLOAT), Dense(np.ones((3, 3)))
    with pytest.raises(ShapeError, match="no product of shapes"):
        masked_multiply(PATTERN, PATTERN, PATTERN, PLUS_TIMES, FLOAT)
    with pytest.raises(ShapeError, match="a mask of shape"):
        masked_multiply(PATTERN, square, square, PLUS_TIMES, FLOAT)
    for mask, options in (
        (X, {"structural": True}),
        (square, {"structural": True, "complement": True}),
        (square, {}),
    ):
        with pytest.raises(OptionError, match="scaled by its mask"):
            masked_multiply(square, X, mask, PLUS_TIMES, FLOAT, scaled=FLOAT, **options)


@pytest.mark.usefixtures("way")
def test_larger_masked_products_agree_with_scipy():
    A = sp.random_array((40, 100), density=0.1, format="csr", rng=0)
    B = sp.random_array((100, 3000), density=0.3, format="csr", rng=1)
    M = sp.random_array((40, 3000), density=0.1, format="csr", rng=2)
    blocks = [block_from(matrix) for matrix in (A, B, M)]
    whole = (A @ B).toarray()
    found = masked_multiply(*blocks, PLUS_TIMES, FLOAT)
    assert_well_formed(found)
    np.testing.assert_allclose(array_of(found), whole * (M.toarray() != 0), rtol=1e-13)
    found = masked_multiply(*blocks, PLUS_TIMES, FLOAT, complement=True)
    assert_well_formed(found)
    np.testing.assert_allclose(array_of(found), whole * (M.toarray() == 0), rtol=1e-13)


@pytest.mark.usefixtures("way")
def test_complex_numbers_of_two_sparse_blocks():
    A = np.array([[1 + 2j, 0, 1j], [0, 3j, 0], [2 - 1j, 0, 0]])
    mask = np.array([[1, 1, 1], [1, 0, 0], [0, 0, 1]], float)
    blocks = [csr_block(sp.csr_array(one)) for one in (A, A, mask)]
    for dtype in (np.dtype(complex), np.dtype(np.complex64)):
        found = masked_multiply(*blocks, PLUS_TIMES, dtype)
        assert_well_formed(found)
        assert found.dtype == dtype
        assert np.array_equal(array_of(found), A @ A * mask)
        turned = masked_multiply(*blocks, PLUS_TIMES, dtype, complement=True)
        assert np.array_equal(array_of(turned), A @ A * (1 - mask))

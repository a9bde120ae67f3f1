"""Products with a Dense side: into given memory, the same bits for any cuts, fused, transposed."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
import strategies
from block_checks import array_of, assert_same, assert_shares_nothing, mask_of
from hypothesis import given
from hypothesis import strategies as st
from strategies import SEMIRINGS_WITH_LOOPS

from matnb.blocks.formats import Csr, Dense, Empty, block_from, freeze
from matnb.blocks.kernels.patterns import as_csr
from matnb.blocks.kernels.products import transposed_products
from matnb.blocks.kernels.products.dense_products import multiply_into, multiply_rows_into
from matnb.blocks.kernels.products.products import multiply
from matnb.blocks.kernels.products.sampled_products import masked_multiply
from matnb.blocks.kernels.products.transposed_products import multiply_transposed
from matnb.blocks.semiring import MIN, MIN_FIRST, MIN_PLUS, MIN_SECOND, PLUS_PAIR, PLUS_TIMES
from matnb.errors import DTypeError, ShapeError, UnsupportedError

FLOAT = np.dtype(float)
ALL_SEMIRINGS = pytest.mark.parametrize("semiring", SEMIRINGS_WITH_LOOPS.values(), ids=SEMIRINGS_WITH_LOOPS)
# Long rows, so that the tree of sums has branches: up to 700 entries, eleven leaves.
LONG_ROWS = (0, 1, 3, 63, 64, 65, 128, 129, 0, 191, 200, 257, 640, 700)


def long_rows(values=True, dtype=FLOAT, seed=1):
    """Return a block of 700 columns whose rows are as long as LONG_ROWS says."""
    rng = np.random.default_rng(seed)
    columns = [np.sort(rng.choice(700, length, replace=False)) for length in LONG_ROWS]
    pointers = np.cumsum([0, *LONG_ROWS]).astype(np.int32)
    drawn = rng.normal(size=int(pointers[-1])) * 10
    entries = (drawn != 0 if dtype.kind == "b" else drawn).astype(dtype) if values else None
    block = Csr((len(LONG_ROWS), 700), pointers, np.concatenate(columns).astype(np.int32), entries, dtype)
    return freeze(block)


def rows_of(block, start, stop):
    """Return some rows as a block of their own."""
    first, last = block.pointers[start], block.pointers[stop]
    values = None if block.values is None else block.values[first:last]
    pointers = block.pointers[start : stop + 1] - first
    return freeze(
        Csr((stop - start, block.shape[1]), pointers, block.columns[first:last], values, block.dtype)
    )


def result_dtype(semiring, *blocks):
    """Return the dtype of a product, or None where the semiring has no booleans."""
    try:
        return semiring.result_dtype(*(block.dtype for block in blocks))
    except DTypeError:
        return None


@st.composite
def sparse_and_dense(draw, exact=True, dtype=None):
    n, m = draw(strategies.matrix_shapes(5))
    left = draw(strategies.sparse_blocks((n, m), dtype, exact))
    shape = draw(st.sampled_from([(m,), (m, draw(strategies.lengths(4)))]))
    right = draw(strategies.dense_blocks(shape, dtype or draw(strategies.sparse_dtypes()), exact))
    return left, right


@ALL_SEMIRINGS
@given(drawn=sparse_and_dense())
def test_a_product_is_written_into_given_memory(semiring, drawn):
    left, right = drawn
    dtype = result_dtype(semiring, left, right)
    if dtype is None or isinstance(left, Empty):
        return
    expected = multiply(left, right, semiring, dtype)
    for order in ("C", "F"):
        out = np.full(expected.shape, 7, dtype, order=order)
        multiply_into(left, right, semiring, out)
        assert_same(Dense(out), expected.shape, dtype, expected.values)
    assert_shares_nothing(expected, left, right)


@pytest.mark.parametrize("dtype", strategies.SPARSE_DTYPES, ids=str)
@pytest.mark.parametrize("values", [True, False])
@ALL_SEMIRINGS
def test_long_rows_agree_with_numpy(semiring, values, dtype):
    block = long_rows(values, dtype)
    rng = np.random.default_rng(2)
    X = (rng.normal(size=(700, 3)) * 10).astype(dtype)
    wide = result_dtype(semiring, block, Dense(X))
    if wide is None:
        return
    dense = array_of(block)
    with np.errstate(all="ignore"):
        match semiring.name:
            case "plus_times":
                expected = dense @ X if dtype.kind != "f" else dense.astype(float) @ X.astype(float)
            case "min_plus" | "min_first" | "min_second":
                one = 0 if semiring is MIN_SECOND else dense[:, :, None]
                other = 0 if semiring is MIN_FIRST else X
                sums = np.where(
                    mask_of(block)[:, :, None], one + np.zeros_like(X) + other, MIN.identity(dtype)
                )
                expected = sums.min(axis=1)
            case "lor_first":
                expected = np.repeat((dense != 0).any(axis=1)[:, None], 3, axis=1)
            case "lor_second":
                expected = mask_of(block).astype(int) @ (X != 0).astype(int) > 0
            case "plus_pair":
                expected = np.repeat(np.diff(block.pointers)[:, None], 3, axis=1)
            case _:
                expected = (dense != 0).astype(int) @ (X != 0).astype(int) > 0
    tolerance = {"float64": 1e-12, "float32": 1e-6}.get(wide.name, 0)
    found = multiply(block, Dense(X), semiring, wide).values
    np.testing.assert_allclose(found, expected.astype(wide), rtol=tolerance, atol=tolerance * 100)
    found = multiply(block, Dense(X[:, 0].copy()), semiring, wide).values
    np.testing.assert_allclose(found, expected[:, 0].astype(wide), rtol=tolerance, atol=tolerance * 100)


@pytest.mark.parametrize("dtype", [FLOAT, np.dtype("float32")], ids=str)
@pytest.mark.parametrize("values", [True, False])
@given(data=st.data())
def test_bits_do_not_follow_the_cuts_of_rows_or_columns(values, dtype, data):
    block = long_rows(values, dtype)
    X = np.random.default_rng(3).normal(size=(700, 5)).astype(dtype)
    whole = multiply(block, Dense(X), PLUS_TIMES, dtype).values
    cuts = data.draw(strategies.axis_cuts(len(LONG_ROWS)))
    column_cuts = data.draw(strategies.axis_cuts(5))
    for start, stop in itertools.pairwise(cuts):
        part = rows_of(block, start, stop)
        if not part.nnz:
            continue
        for first, last in itertools.pairwise(column_cuts):
            columns = Dense(np.ascontiguousarray(X[:, first:last]))
            found = multiply(part, columns, PLUS_TIMES, dtype).values
            assert found.tobytes() == whole[start:stop, first:last].tobytes()
        vector = multiply(part, Dense(X[:, 0].copy()), PLUS_TIMES, dtype).values
        assert vector.tobytes() == whole[start:stop, 0].tobytes()


def test_rows_are_summed_by_a_tree_over_leaves_of_64_entries():
    block = long_rows()
    x = np.random.default_rng(4).normal(size=700)
    found = multiply(block, Dense(x), PLUS_TIMES, FLOAT).values
    for row, length in enumerate(LONG_ROWS):
        start = block.pointers[row]
        products = block.values[start : start + length] * x[block.columns[start : start + length]]
        leaves = [sum(products[place : place + 64].tolist(), 0.0) for place in range(0, length, 64)]
        assert found[row] == tree_sum(leaves)


@pytest.mark.parametrize("values", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "complex64"])
@pytest.mark.parametrize("width", [0, 1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 21])
def test_each_column_of_a_matrix_has_the_bits_of_a_vector(width, dtype, values):
    dtype = np.dtype(dtype)
    block = long_rows(values, dtype)
    rng = np.random.default_rng(width)
    X = (rng.normal(size=(700, width)) * 10 + (1j if dtype.kind == "c" else 0)).astype(dtype)
    out = np.full((len(LONG_ROWS) + 1, width), 7, dtype)
    multiply_into(block, Dense(X), PLUS_TIMES, out[:-1])
    for column in range(width):
        vector = multiply(block, Dense(X[:, column].copy()), PLUS_TIMES, dtype).values
        assert out[:-1, column].tobytes() == vector.tobytes()
    assert (out[-1] == 7).all()


def tree_sum(leaves):
    """Add the most leaves that are a power of two, then the others to them."""
    if len(leaves) <= 1:
        return sum(leaves, 0.0)
    half = 1 << (len(leaves) - 1).bit_length() - 1
    return tree_sum(leaves[:half]) + tree_sum(leaves[half:])


@given(sparse_and_dense(exact=False, dtype=FLOAT), st.sampled_from([PLUS_TIMES, MIN_PLUS]))
def test_nan_and_infinities_of_stored_entries_are_kept(drawn, semiring):
    left, right = drawn
    a, met = array_of(left), mask_of(left)
    X = right.values[:, np.newaxis] if right.values.ndim == 1 else right.values
    with np.errstate(all="ignore"):
        pairs = a[:, :, None] * X if semiring is PLUS_TIMES else a[:, :, None] + X
        identity = semiring.add.identity(FLOAT)
        combine = np.add if semiring is PLUS_TIMES else np.minimum
        if semiring is MIN_PLUS and right.values.ndim == 1:  # where it is infinite, a vector has no element
            met = met & (right.values != np.inf)
        expected = combine.reduce(np.where(met[:, :, None], pairs, identity), axis=1, initial=identity)
    found = multiply(left, right, semiring, FLOAT).values.reshape(expected.shape)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@ALL_SEMIRINGS
@given(data=st.data())
def test_only_wanted_rows_are_written(semiring, data):
    shape = data.draw(strategies.matrix_shapes(5))
    left = data.draw(strategies.sparse_blocks(shape, exact=True))
    x = data.draw(strategies.dense_blocks(shape[1:], data.draw(strategies.sparse_dtypes()), exact=True))
    dtype = result_dtype(semiring, left, x)
    if dtype is None:
        return
    left = as_csr(left)
    wanted = np.array(data.draw(st.lists(st.booleans(), min_size=shape[0], max_size=shape[0])), bool)
    out = np.full(shape[0], 1, dtype)
    multiply_rows_into(left, x, semiring, wanted, out)
    whole = multiply(left, x, semiring, dtype).values
    np.testing.assert_array_equal(out, np.where(wanted, whole, dtype.type(1)))


@pytest.mark.parametrize("dtype", strategies.SPARSE_DTYPES, ids=str)
@pytest.mark.parametrize("columns", [(), (2,)])
@ALL_SEMIRINGS
def test_nothing_is_allocated_that_grows_with_the_block(semiring, columns, dtype):
    if semiring.add.name == "min" and dtype.kind == "b":
        return
    wide = semiring.result_dtype(dtype, dtype)
    count, width = 200_000, 1000
    pointers = np.arange(count + 1, dtype=np.int32)
    places = np.resize(np.arange(width, dtype=np.int32), count)
    operand = np.dtype(bool) if semiring.add.name == "lor" else dtype
    X = freeze(Dense(np.ones((width, *columns), operand)))
    out = np.empty((count, *columns), wide)
    for values in (np.ones(count, operand), None):
        block = freeze(Csr((count, width), pointers, places, values, operand))
        multiply_into(block, X, semiring, out)  # compiles
        tracemalloc.start()
        try:
            multiply_into(block, X, semiring, out)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < count  # less than a byte for each row


def test_products_into_memory_that_does_not_fit_are_refused():
    block = long_rows()
    for right, shape in (((700,), (3,)), ((3,), (len(LONG_ROWS),)), ((700, 2), (len(LONG_ROWS), 3))):
        with pytest.raises(ShapeError, match="no product of shapes"):
            multiply_into(block, Dense(np.ones(right)), PLUS_TIMES, np.empty(shape))
    with pytest.raises(ShapeError, match="rows wanted"):
        multiply_rows_into(block, Dense(np.ones(700)), PLUS_TIMES, np.ones(3, bool), np.empty(len(LONG_ROWS)))


@ALL_SEMIRINGS
@given(data=st.data())
def test_transposed_products_agree_with_a_transpose_that_is_made(semiring, data):
    n, m, k = (data.draw(strategies.lengths(5)) for _ in range(3))
    left = data.draw(strategies.matrix_blocks((n, m), data.draw(strategies.sparse_dtypes()), exact=True))
    shape = data.draw(st.sampled_from([(n,), (n, k)]))
    right = data.draw(strategies.dense_blocks(shape, data.draw(strategies.sparse_dtypes()), exact=True))
    if isinstance(left, Dense) and data.draw(st.booleans()):
        right = data.draw(strategies.sparse_blocks((n, k), exact=True))
    dtype = result_dtype(semiring, left, right)
    if dtype is None:
        return
    turned = transposed(left)
    expected = multiply(turned, right, semiring, dtype)
    found = multiply_transposed(left, right, semiring, dtype)
    assert_same(found, expected.shape, dtype, array_of(expected))
    assert_shares_nothing(found, left, right)


def transposed(block):
    """Return the transpose, made by SciPy or NumPy, stored zeros included."""
    if isinstance(block, Dense):
        return Dense(np.ascontiguousarray(block.values.T))
    if isinstance(block, Empty):
        return Empty(block.shape[::-1], block.dtype)
    rows = np.repeat(np.arange(block.shape[0]), np.diff(block.pointers))
    order = np.lexsort((rows, block.columns))
    pointers = np.searchsorted(block.columns[order], np.arange(block.shape[1] + 1)).astype(np.int32)
    values = None if block.values is None else block.values[order]
    return Csr(block.shape[::-1], pointers, rows[order].astype(np.int32), values, block.dtype)


@pytest.mark.parametrize("dtype", [np.dtype("int32"), np.dtype("int64")], ids=str)
@pytest.mark.parametrize("columns", [(), (9,)])
def test_integers_wrap_in_transposed_products(dtype, columns):
    block = long_rows(dtype=dtype)
    large = np.iinfo(dtype).max // 3
    X = np.random.default_rng(5).integers(-large, large, (len(LONG_ROWS), *columns)).astype(dtype)
    with np.errstate(all="ignore"):
        expected = array_of(block).T @ X
    np.testing.assert_array_equal(multiply_transposed(block, Dense(X), PLUS_TIMES, dtype).values, expected)
    found = multiply_transposed(Dense(X.reshape(len(LONG_ROWS), -1)), block, PLUS_TIMES, dtype)
    np.testing.assert_array_equal(found.values, expected.reshape(700, -1).T)


def test_a_transposed_product_of_float32_is_summed_in_float64():
    short = np.dtype(np.float32)
    block = block_from(sp.csr_array(np.ones((9, 1), short)))
    large = np.ones(9, short)
    large[0] = 2**24  # to which single precision cannot add 1
    for x in (large, large[:, np.newaxis]):
        assert multiply_transposed(block, Dense(x), PLUS_TIMES, short).values.ravel() == [2**24 + 8]
    found = multiply_transposed(Dense(large[:, np.newaxis]), block, PLUS_TIMES, short)
    assert found.values.ravel() == [2**24 + 8]


@pytest.mark.parametrize("values", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("width", [1, 16, 40])
def test_entries_that_are_sorted_by_column_add_in_the_order_of_rows(width, dtype, values, monkeypatch):
    monkeypatch.setattr(transposed_products, "FAR_BYTES", 0)
    monkeypatch.setattr(transposed_products, "SORTED", 64)
    monkeypatch.setattr(transposed_products, "_room", transposed_products._ColumnRoom())
    sorts = watched(monkeypatch, "plus_times_sorted")
    rng = np.random.default_rng(width)
    held = rng.random((150, width)) < rng.random((150, 1)) ** 2
    held[20:25] = False
    block = block_from(sp.csr_array(np.where(held, rng.integers(1, 100, held.shape), 0).astype(dtype)))
    block = block if values else Csr(block.shape, block.pointers, block.columns, None, block.dtype)
    X = (rng.standard_normal((150, 37)) * 1000).astype(dtype)
    expected = np.zeros((width, 37))
    entries = array_of(block)
    for i, k in np.argwhere(held):
        expected[k] += np.float64(entries[i, k]) * X[i]
    found = multiply_transposed(block, Dense(X), PLUS_TIMES, X.dtype).values
    np.testing.assert_array_equal(found, expected.astype(dtype))
    assert bool(sorts) == (width <= 16)


def watched(monkeypatch, name):
    calls, loop = [], getattr(transposed_products, name)
    monkeypatch.setattr(transposed_products, name, lambda *arguments: calls.append(loop(*arguments)))
    return calls


def test_a_transposed_product_larger_than_the_caches_sorts_its_entries(monkeypatch):
    sorts = watched(monkeypatch, "plus_times_sorted")
    A = sp.random_array((900, 5000), density=0.08, rng=np.random.default_rng(3), format="csr")
    X = np.random.default_rng(4).standard_normal((900, 320))
    found = multiply_transposed(block_from(A), Dense(X), PLUS_TIMES, FLOAT).values
    np.testing.assert_allclose(found, A.T @ X, rtol=1e-12, atol=1e-12)
    assert len(sorts) == 2  # 360,000 entries
    multiply_transposed(block_from(A), Dense(X[:, :100].copy()), PLUS_TIMES, FLOAT)
    assert len(sorts) == 2


def test_the_same_block_twice_gives_a_symmetric_product():
    X = Dense(np.random.default_rng(6).normal(size=(500, 60)))
    gram = multiply_transposed(X, X, PLUS_TIMES, FLOAT).values
    np.testing.assert_allclose(gram, X.values.T @ X.values, rtol=1e-13)
    assert gram.tobytes() == gram.T.copy().tobytes()
    whole = Dense(X.values.astype(np.int32))
    gram = multiply_transposed(whole, whole, PLUS_TIMES, FLOAT).values
    np.testing.assert_array_equal(gram, whole.values.T @ whole.values)


def test_transposed_products_that_do_not_fit_are_refused():
    block, x = long_rows(), Dense(np.ones(len(LONG_ROWS)))
    for left, right in ((block, Dense(np.ones(3))), (x, x), (block, Dense(np.ones((len(LONG_ROWS), 1, 1))))):
        with pytest.raises(ShapeError, match="of the transpose"):
            multiply_transposed(left, right, PLUS_TIMES, FLOAT)
    with pytest.raises(UnsupportedError, match=r"no transposed product 'plus_times' for \(Csr, Csr\)"):
        multiply_transposed(block, block, PLUS_TIMES, FLOAT)


def test_a_wide_dense_times_sparse_takes_eight_rows_at_a_time():
    block = long_rows()
    X = freeze(Dense(np.ones((1000, len(LONG_ROWS)))))
    multiply(X, block, PLUS_TIMES, FLOAT)
    tracemalloc.start()
    try:
        found = multiply(X, block, PLUS_TIMES, FLOAT)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    np.testing.assert_allclose(found.values, X.values @ array_of(block), rtol=1e-12)
    assert peak < found.nbytes + 8 * 8 * (700 + len(LONG_ROWS)) + 16_000


def test_counts_of_pairs_are_those_of_the_pattern():
    block = long_rows()
    found = multiply(block, Dense(np.zeros(700)), PLUS_PAIR, np.dtype(np.int64))
    np.testing.assert_array_equal(found.values, LONG_ROWS)


@pytest.mark.parametrize("name", ["longdouble", "clongdouble"])
def test_extended_precision_is_refused_where_a_block_is_sparse(name):
    wide = np.dtype(name)
    A = block_from(sp.csr_array(np.array([[1.5, 0.0], [0.25, 2.0]])))
    x = Dense(np.ones(2, wide))
    for work in (
        lambda: multiply(A, x, PLUS_TIMES, wide),
        lambda: multiply(Dense(np.ones((2, 2), wide)), A, PLUS_TIMES, wide),
        lambda: multiply_transposed(A, x, PLUS_TIMES, wide),
        lambda: masked_multiply(A, Dense(np.ones((2, 2), wide)), A, PLUS_TIMES, wide),
    ):
        with pytest.raises(DTypeError, match="astype"):
            work()
    both = multiply(Dense(np.ones((2, 2), wide)), x, PLUS_TIMES, wide)
    np.testing.assert_array_equal(both.values, np.full(2, 2, wide))

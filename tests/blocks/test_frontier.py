"""Pushing and pulling along a graph against products with its dense matrix and with GraphBLAS."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
import strategies
from block_checks import array_of, mask_of
from hypothesis import given
from hypothesis import strategies as st

from matnb.blocks.formats import Csr, Dense, Empty, block_from, freeze
from matnb.blocks.kernels import frontier
from matnb.blocks.kernels.frontier import prefers_push, pull, push
from matnb.blocks.semiring import LOR_LAND, MIN_PLUS, PLUS_TIMES, SEMIRINGS
from matnb.errors import DTypeError, ShapeError

FLOAT = np.dtype(float)
ALL_SEMIRINGS = pytest.mark.parametrize("semiring", SEMIRINGS.values(), ids=SEMIRINGS)
ADD = {"plus": np.add, "min": np.minimum, "lor": np.logical_or}
WAYS = pytest.mark.parametrize("sorts", [True, False], ids=["sorted", "marked"])


def graph(values=True, scale=60, density=0.2):
    A = sp.random_array((scale, scale), density=density, format="csr", rng=1)
    block = block_from(A)
    assert isinstance(block, Csr)
    return freeze(block if values else Csr(block.shape, block.pointers, block.columns, None, FLOAT))


def expected_push(indices, values, A, semiring, dtype):
    """Return the entries of x @ A by index, one pair after the other."""
    a, met = array_of(A), mask_of(A)
    entries = {}
    for place, row in enumerate(indices):
        x = np.ones(1, dtype)[0] if values is None else values[place]
        for column in np.flatnonzero(met[row]):
            match semiring.multiply:
                case "times":
                    pair = dtype.type(x) * dtype.type(a[row, column])
                case "plus":
                    pair = dtype.type(x) + dtype.type(a[row, column])
                case "pair":
                    pair = dtype.type(1)
                case _:
                    pair = bool(x) and bool(a[row, column])
            pair = np.asarray(pair).astype(dtype)
            before = entries.get(column)
            entries[column] = pair if before is None else ADD[semiring.add.name](before, pair).astype(dtype)
    return entries


@WAYS
@ALL_SEMIRINGS
@given(data=st.data())
def test_a_pushed_vector_is_the_product_with_the_touched_rows(semiring, sorts, data):
    shape = data.draw(strategies.matrix_shapes(5))
    A = data.draw(strategies.sparse_blocks(shape, exact=True))
    kind = data.draw(strategies.sparse_dtypes())
    chosen = data.draw(st.lists(st.integers(0, max(0, shape[0] - 1)), max_size=shape[0], unique=True))
    indices = np.array(sorted(chosen), np.int32)
    values = data.draw(strategies.dense_blocks(indices.shape, kind, exact=True)).values
    given_values = data.draw(st.sampled_from([values, None]))
    try:
        dtype = semiring.result_dtype(kind, A.dtype)
    except DTypeError:
        return
    if isinstance(A, Empty):
        return
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        patch.setattr(frontier, "_sorts", lambda entries, width: sorts)
        found, results = push(indices, given_values, A, semiring, dtype)
        expected = expected_push(indices, given_values, A, semiring, dtype)
    assert found.dtype == np.int32
    assert results.dtype == dtype
    assert found.tolist() == sorted(expected)
    np.testing.assert_array_equal(results, [expected[column] for column in found])


@ALL_SEMIRINGS
def test_both_ways_to_push_give_the_same_bits(semiring, monkeypatch):
    A, x = graph(), np.random.default_rng(2).normal(size=25)
    indices = np.arange(0, 50, 2, dtype=np.int32)
    dtype = semiring.result_dtype(FLOAT, FLOAT)
    results = []
    for sorts in (True, False):
        monkeypatch.setattr(frontier, "_sorts", lambda entries, width, sorts=sorts: sorts)
        found, values = push(indices, x, A, semiring, dtype)
        results.append((found.tolist(), values.tobytes()))
    assert results[0] == results[1]


@pytest.mark.parametrize("values", [True, False])
def test_pushes_and_pulls_agree_with_graphblas(values):
    graphblas = pytest.importorskip("graphblas")
    A = graph(values)
    entries = np.ones(A.nnz) if A.values is None else A.values
    G = graphblas.Matrix.from_csr(A.pointers, A.columns, entries, ncols=A.shape[1])
    indices = np.array([0, 3, 17, 42], np.int32)
    weights = np.random.default_rng(3).random(4)
    x = graphblas.Vector.from_coo(indices, weights, size=A.shape[0])
    for semiring, name in ((PLUS_TIMES, "plus_times"), (MIN_PLUS, "min_plus")):
        columns, expected = x.vxm(G, getattr(graphblas.semiring, name)).new().to_coo()
        found, results = push(indices, weights, A, semiring, FLOAT)
        np.testing.assert_array_equal(found, columns)
        np.testing.assert_allclose(results, expected, rtol=1e-13)
    dense = graphblas.Vector.from_dense(np.arange(A.shape[1], dtype=float))
    out = np.empty(A.shape[0])
    pull(A, Dense(np.arange(A.shape[1], dtype=float)), None, MIN_PLUS, out)
    rows, expected = G.mxv(dense, graphblas.semiring.min_plus).new().to_coo()
    np.testing.assert_allclose(out[rows], expected)


def test_pulled_rows_are_the_wanted_ones():
    A = graph(values=False)
    wanted = np.arange(60) % 3 == 0
    reached = np.zeros(60, bool)
    reached[[1, 5, 9]] = True
    out = np.zeros(60, bool)
    pull(A, Dense(reached), wanted, LOR_LAND, out)
    np.testing.assert_array_equal(out, wanted & (array_of(A)[:, reached].sum(axis=1) > 0))


def test_integers_wrap_and_float32_is_summed_in_float64():
    one = block_from(sp.csr_array(np.ones((9, 1), np.float32)))
    weights = np.ones(9, np.float32)
    weights[0] = 2**24  # to which single precision cannot add 1
    indices = np.arange(9, dtype=np.int32)
    _, total = push(indices, weights, one, PLUS_TIMES, np.dtype(np.float32))
    assert total.tolist() == [2**24 + 8]
    whole = block_from(sp.csr_array(np.ones((9, 1), np.int32)))
    _, total = push(indices, np.full(9, 2**31 - 1, np.int32), whole, PLUS_TIMES, np.dtype(np.int32))
    assert total.tolist() == [2**31 - 9]


def test_only_touched_rows_are_copied():
    A = graph(scale=2000, density=0.05)
    indices = np.arange(10, dtype=np.int32)
    push(indices, None, A, PLUS_TIMES, FLOAT)
    tracemalloc.start()
    try:
        push(indices, None, A, PLUS_TIMES, FLOAT)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    touched = int(A.pointers[10])
    assert peak < 12 * touched + 3 * 8 * 2000 + 16_000


def test_values_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match="as many values as indices"):
        push(np.array([1], np.int32), np.ones(2), graph(), PLUS_TIMES, FLOAT)


def test_few_entries_are_pushed_and_many_pulled():
    assert prefers_push(1, 10, 1_000_000, 50_000)
    assert not prefers_push(40_000, 900_000, 1_000_000, 50_000)
    # What is not wanted any more need not be pulled.
    assert not prefers_push(1000, 20_000, 500, 50_000)
    assert prefers_push(0, 0, 0, 1)


def test_few_columns_are_sorted_and_many_marked():
    assert frontier._sorts(100, 1_000_000)
    assert not frontier._sorts(100_000, 1_000_000)

"""Vectors pushed along a graph from where they have something, pair by pair and against GraphBLAS."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp
import strategies
from block_checks import array_of, assert_well_formed, mask_of
from hypothesis import given
from hypothesis import strategies as st
from pairs import expected_product, is_defined

from matnb.blocks.formats import Csr, Dense, Empty, block_from, csr_block, freeze, is_sparse
from matnb.blocks.kernels.products import frontier
from matnb.blocks.kernels.products.dense_products import multiply_into
from matnb.blocks.kernels.products.frontier import push, put_together
from matnb.blocks.kernels.products.products import multiply
from matnb.blocks.kernels.shaping.shaping import cut, transpose
from matnb.blocks.semiring import (
    LOR_FIRST,
    LOR_LAND,
    MIN,
    MIN_FIRST,
    MIN_PLUS,
    MIN_SECOND,
    PLUS_TIMES,
    SEMIRINGS,
)
from matnb.errors import ShapeError, UnsupportedError

FLOAT = np.dtype(float)
PUSHED = {name: one for name, one in SEMIRINGS.items() if one.is_pushed}
ALL_PUSHED = pytest.mark.parametrize("semiring", PUSHED.values(), ids=PUSHED)
WAYS = pytest.mark.parametrize("most", [0, 1000], ids=["dense", "sorted"])


def graph(values=True, scale=60, density=0.2):
    A = sp.random_array((scale, scale), density=density, format="csr", rng=1)
    block = block_from(A)
    assert isinstance(block, Csr)
    return freeze(block if values else Csr(block.shape, block.pointers, block.columns, None, FLOAT))


def dense_of(part, semiring, dtype):
    """Return what was pushed with the identity where nothing met."""
    if isinstance(part, Dense):
        return part.values
    assert_well_formed(part)
    values = np.full(part.shape[1], semiring.add.identity(dtype), dtype)
    if isinstance(part, Csr):
        values[part.columns] = part.entries
    return values


@st.composite
def frontiers(draw, num_rows, dtype, semiring):
    """Return a vector, much of it absent, and where it is cut."""
    x = draw(strategies.dense_blocks((num_rows,), dtype, exact=True)).values.copy()
    if draw(st.booleans()):
        x.sort()  # what never falls along the rows is pushed in a way of its own
    if dtype.kind != "c":
        absent = draw(st.lists(st.booleans(), min_size=num_rows, max_size=num_rows))
        x[np.array(absent, bool)] = semiring.add.identity(dtype)
    return x, draw(strategies.axis_cuts(num_rows))


@WAYS
@ALL_PUSHED
@given(data=st.data())
def test_a_pushed_vector_is_the_product_without_what_is_absent(semiring, most, data):
    shape = data.draw(strategies.matrix_shapes(5))
    A = data.draw(strategies.sparse_blocks(shape, exact=True))
    kind = data.draw(strategies.sparse_dtypes())
    x, cuts = data.draw(frontiers(shape[0], kind, semiring))
    if not is_defined(semiring, Dense(x), A):
        return
    wanted = data.draw(st.none() | st.lists(st.booleans(), min_size=shape[1], max_size=shape[1]))
    chosen = None if wanted is None else np.array(wanted, bool)
    dtype = semiring.result_dtype(kind, A.dtype)
    pieces = [x[start:stop] for start, stop in itertools.pairwise(cuts)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frontier, "most_sorted", lambda width: most)
        part = push(A, pieces, chosen, semiring, dtype)
    present = x != semiring.add.identity(kind)
    expected, _ = expected_product(Dense(x[np.newaxis]), A, semiring, dtype, present[np.newaxis])
    if chosen is not None:
        expected = np.where(chosen, expected, semiring.add.identity(dtype))
    assert part.dtype == dtype
    np.testing.assert_array_equal(dense_of(part, semiring, dtype), expected[0])


@ALL_PUSHED
@given(data=st.data())
def test_absent_elements_are_left_out_of_every_product_of_a_vector(semiring, data):
    A = data.draw(strategies.sparse_blocks(data.draw(strategies.matrix_shapes(5)), exact=True))
    for rows in (True, False):
        kind = data.draw(strategies.sparse_dtypes())
        x, _ = data.draw(frontiers(A.shape[0 if rows else 1], kind, semiring))
        present = x != semiring.add.identity(kind)
        operands = (Dense(x), A) if rows else (A, Dense(x))
        if not is_defined(semiring, *operands):
            return
        dtype = semiring.result_dtype(*(one.dtype for one in operands))
        if rows:
            expected, _ = expected_product(Dense(x[np.newaxis]), A, semiring, dtype, present[np.newaxis])
        else:
            turned, swapped = transpose(A, (1, 0)), Dense(x[np.newaxis])
            expected, _ = expected_product(swapped, turned, semiring.turned, dtype, present[np.newaxis])
        found = multiply(*operands, semiring, dtype)
        np.testing.assert_array_equal(found.values, expected[0])


@WAYS
@pytest.mark.parametrize("name", ["plus_times", "plus_first"])
@given(data=st.data())
def test_whole_numbers_are_pushed_over_sums(name, most, data):
    shape = data.draw(strategies.matrix_shapes(9))
    x = np.array(data.draw(st.lists(st.integers(-3, 3), min_size=shape[0], max_size=shape[0])), np.int32)
    kind = np.dtype(data.draw(st.sampled_from(["int32", "int64", "uint8"])))
    A = data.draw(strategies.sparse_blocks(shape, kind, exact=True))
    wanted = np.array(data.draw(st.lists(st.booleans(), min_size=shape[1], max_size=shape[1])), bool)
    semiring = SEMIRINGS[name]
    dtype = semiring.result_dtype(x.dtype, A.dtype)
    for chosen in (None, wanted):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(frontier, "most_sorted", lambda width: most)
            part = push(A, [x[: shape[0] // 2], x[shape[0] // 2 :]], chosen, semiring, dtype)
        entries = array_of(A) if name == "plus_times" else mask_of(A)
        expected = x.astype(np.int64) @ entries.astype(np.int64)
        assert part.dtype == dtype
        expected = expected if chosen is None else np.where(chosen, expected, 0)
        np.testing.assert_array_equal(dense_of(part, semiring, dtype), expected.astype(dtype))


@ALL_PUSHED
def test_every_way_to_push_gives_the_same_bits(semiring, monkeypatch):
    A, rng = graph(), np.random.default_rng(2)
    x = rng.normal(size=60)
    x[rng.random(60) < 0.5] = np.inf
    dtype = semiring.result_dtype(FLOAT, FLOAT)
    results = set()
    for most in (0, 5000):
        monkeypatch.setattr(frontier, "most_sorted", lambda width, most=most: most)
        for pieces in ([x], [x[:7], x[7:30], x[30:]]):
            part = push(A, pieces, None, semiring, dtype)
            assert is_sparse(part) == (most > 0)
            results.add(dense_of(part, semiring, dtype).tobytes())
    assert len(results) == 1


def test_where_the_vector_never_falls_only_the_first_element_counts(monkeypatch):
    A = graph(values=False)
    x = np.arange(60, dtype=np.int32)
    x[::3] = MIN.identity(x.dtype)
    expected = dense_of(push(A, [x], None, MIN_PLUS, x.dtype), MIN_PLUS, x.dtype) - 1
    called = []
    keep_first = frontier.loops.keep_first
    monkeypatch.setattr(
        frontier.loops, "keep_first", lambda *given: called.append(len(given)) or keep_first(*given)
    )
    part = push(A, [x[:20], x[20:]], None, MIN_FIRST, x.dtype)
    assert len(called) == 2
    np.testing.assert_array_equal(part.values, expected)
    push(A, [x[::-1].copy()], None, MIN_FIRST, x.dtype)
    assert len(called) == 2


def test_pushes_agree_with_graphblas():
    graphblas = pytest.importorskip("graphblas")
    A = graph()
    G = graphblas.Matrix.from_csr(A.pointers, A.columns, A.values, ncols=A.shape[1])
    x = np.full(60, np.inf)
    x[[0, 3, 17, 42]] = [0.5, 2, 0.25, 1]
    y = graphblas.Vector.from_coo(np.flatnonzero(x < np.inf), x[x < np.inf], size=60)
    for semiring in (MIN_PLUS, MIN_FIRST, MIN_SECOND):
        columns, expected = y.vxm(G, getattr(graphblas.semiring, semiring.name)).new().to_coo()
        found = dense_of(push(A, [x], None, semiring, FLOAT), semiring, FLOAT)
        np.testing.assert_array_equal(np.flatnonzero(found < np.inf), columns)
        np.testing.assert_array_equal(found[columns], expected)


def test_a_largest_integer_is_no_way_and_does_not_wrap():
    one = block_from(sp.csr_array(np.array([[5, 0], [1, 7]], np.int32)))
    largest = np.iinfo(np.int32).max
    x = np.array([largest, 2], np.int32)
    assert push(one, [x], None, MIN_PLUS, np.dtype(np.int32)).values.tolist() == [3, 9]
    assert multiply(one, Dense(x), MIN_PLUS, np.dtype(np.int32)).values.tolist() == [largest, 9]
    # As int64, a vector's absent elements are the largest of that.
    wide = np.dtype(np.int64)
    assert multiply(one, Dense(x), MIN_PLUS, wide).values.tolist() == [np.iinfo(wide).max, 9]


@pytest.mark.parametrize("whole", [True, False])
def test_parts_are_put_together_over_a_range(whole):
    A, rng = graph(), np.random.default_rng(3)
    x = rng.random(60)
    x[rng.random(60) < 0.3] = np.inf
    expected = dense_of(push(A, [x], None, MIN_PLUS, FLOAT), MIN_PLUS, FLOAT)
    dense = push(A, [np.where(np.arange(60) < 30, x, np.inf)], None, MIN_PLUS, FLOAT)
    other = dense_of(
        push(A, [np.where(np.arange(60) < 30, np.inf, x)], None, MIN_PLUS, FLOAT), MIN_PLUS, FLOAT
    )
    sparse = block_from(sp.csr_array(np.where(other < np.inf, other, 0)[np.newaxis]))
    nothing = Empty((1, 60), FLOAT)
    for parts in ([dense, sparse, nothing], [nothing, sparse, dense], [dense, Dense(other), nothing]):
        found = put_together(parts, [(10, 45)] * 3, MIN, FLOAT, whole)
        np.testing.assert_array_equal(found.values, expected[10:45])
    found = put_together([sparse, nothing], [(10, 45), (10, 45)], MIN, FLOAT, whole)
    assert is_sparse(found) != whole
    np.testing.assert_array_equal(dense_of(found, MIN_PLUS, FLOAT), other[10:45])


@pytest.mark.parametrize("semiring", [LOR_LAND, LOR_FIRST, MIN_FIRST, MIN_PLUS], ids=lambda one: one.name)
def test_only_touched_rows_are_copied(semiring):
    A = graph(scale=20_000, density=0.001)
    x = np.zeros(20_000, bool) if semiring.add.name == "lor" else np.full(20_000, np.inf)
    x[7] = 1
    dtype = semiring.result_dtype(x.dtype, FLOAT)
    push(A, [x], None, semiring, dtype)
    tracemalloc.start()
    try:
        push(A, [x], None, semiring, dtype)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * 20_000 + 12_000 < A.nbytes // 10


def test_what_does_not_fit_is_refused():
    with pytest.raises(ShapeError, match="give one for each"):
        push(graph(), [np.ones(59)], None, MIN_PLUS, FLOAT)
    with pytest.raises(ShapeError, match="give one for each"):
        push(graph(), [np.ones(60)], np.ones(3, bool), MIN_PLUS, FLOAT)
    with pytest.raises(UnsupportedError, match="'plus_times': its sums depend"):
        push(graph(), [np.ones(60)], None, PLUS_TIMES, FLOAT)


def test_dense_results_are_made_in_the_memory_that_is_given():
    A = Csr((2, 3), np.array([0, 2, 3], np.int32), np.array([0, 1, 1], np.int32), None, np.dtype(float))
    x, memory = np.array([1.0, 5.0]), np.full((2, 3), 7.0)
    pushed = push(A, [x], None, MIN_PLUS, memory.dtype, lambda *_: memory[0])
    assert isinstance(pushed, Dense)
    both = put_together([pushed, pushed], [(1, 3)] * 2, MIN, memory.dtype, True, lambda *_: memory[1, :2])
    np.testing.assert_array_equal(memory, [[2, 2, np.inf], [2, np.inf, 7]])
    assert isinstance(both, Dense)
    np.testing.assert_array_equal(both.values, [2, np.inf])


def in_turn(run: Callable[[int], None], count: int) -> None:
    for part in range(count):
        run(part)


def backwards(run: Callable[[int], None], count: int) -> None:
    assert count > 1
    for part in reversed(range(count)):
        run(part)


ODD = [0.0, -0.0, 1.0, 0.1, -3.7, 1e16, np.nan, np.inf, -np.inf]


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.sampled_from([0.0, 0.02, 0.5, 1.0]))
def test_marked_sums_have_the_bits_of_the_product_of_all_rows(seed: int, width: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    shape = (7, 700)
    graph = sp.csr_array(
        rng.random(shape) < np.array([0, 0.01, 0.1, 0.2, 0.4, 0.9, 1])[:, np.newaxis], dtype=float
    )
    X = rng.choice(ODD if seed % 2 else ODD[:6], (shape[1], width)) + 0.0
    X[rng.random(shape[1]) >= share] = rng.choice([0.0, -0.0])
    pattern, right = csr_block(graph, pattern=True), Dense(X)
    assert isinstance(pattern, Csr)
    whole = np.empty((shape[0], width))
    with np.errstate(all="ignore"):
        multiply_into(pattern, right, PLUS_TIMES, whole)
    wanted = rng.random(whole.shape) < rng.choice([0.0, 0.3, 1.0])
    start, stop = sorted(rng.integers(0, shape[0] + 1, 2))
    for rows in (slice(0, shape[0]), slice(start, stop)):
        part = cut(pattern, (rows, slice(0, shape[1])))
        if not isinstance(part, Csr):
            continue
        found = np.full((part.shape[0], width), np.nan)
        frontier.write_marked_sums(part, right, wanted[rows], found, in_turn)
        expected = np.where(wanted, whole, 0.0)[rows]
        np.testing.assert_array_equal(found, expected)
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))


def test_marked_sums_of_many_leaves_have_the_bits_of_the_product_of_all_rows() -> None:
    # As many leaves and entries as lists take, rows of X that are far, and parts of X that are mostly marked.
    rng = np.random.default_rng(5)
    lengths = rng.choice([0, 1, 3, 63, 64, 65, 129, 2000], 900)
    pointers = np.concatenate([[0], np.cumsum(lengths)])
    for width, num_rows in ((4, 2**17 + 8), (5, 2**12)):
        columns = np.concatenate([np.sort(rng.choice(num_rows, one, replace=False)) for one in lengths])
        pattern = Csr(
            (900, num_rows), pointers.astype(np.int32), columns.astype(np.int32), None, np.dtype(float)
        )
        X = rng.random((num_rows, width))
        wanted = rng.random((900, width)) < 0.8
        for share in (0.0, 0.02, 0.7, 0.95, 1.0):
            some = X * (rng.random(num_rows) < share)[:, np.newaxis]
            whole, found = np.empty((900, width)), np.full((900, width), np.nan)
            multiply_into(pattern, Dense(some), PLUS_TIMES, whole)
            frontier.write_marked_sums(pattern, Dense(some), wanted, found, in_turn)
            np.testing.assert_array_equal(found, np.where(wanted, whole, 0.0))


def test_marked_sums_are_the_same_in_parts_of_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    graph = sp.csr_array(rng.random((400, 300)) < rng.choice([0.0, 0.01, 0.5], (400, 1)), dtype=float)
    pattern, X = csr_block(graph, pattern=True), rng.random((300, 5)) * (rng.random((300, 1)) < 0.4)
    assert isinstance(pattern, Csr)
    wanted, whole = rng.random((400, 5)) < 0.5, np.empty((400, 5))
    multiply_into(pattern, Dense(X), PLUS_TIMES, whole)
    for work in (150, 1000, 9000):
        monkeypatch.setattr(frontier, "_PART_WORK", work)
        found = np.full((400, 5), np.nan)
        frontier.write_marked_sums(pattern, Dense(X), wanted, found, backwards)
        np.testing.assert_array_equal(found, np.where(wanted, whole, 0.0))


def test_marked_sums_of_shapes_that_do_not_fit_are_refused() -> None:
    pattern = csr_block(sp.csr_array(np.ones((3, 4))), pattern=True)
    assert isinstance(pattern, Csr)
    for shape, mask in (((5, 2), (3, 2)), ((4, 2), (3, 1)), ((4, 2), (2, 2))):
        with pytest.raises(ShapeError):
            frontier.write_marked_sums(
                pattern, Dense(np.ones(shape)), np.ones(mask, bool), np.empty((3, 2)), in_turn
            )

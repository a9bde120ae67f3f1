"""Rows of sparse matrices and groups of keys as segments, and arithmetic of rows: as SciPy and pandas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from segment_lists import Lists, listed, segments

import matnb as mn
from matnb.blocks.formats import block_from
from matnb.blocks.kernels.shaping.selecting import stored_entries
from matnb.errors import DTypeError, LoopBodyError, ShapeError, UnsupportedError

CUTS = st.sampled_from([1, 3, (1, 2), (2, 3)])
DENSITIES = st.sampled_from([0, 0.2, 0.7, 1])


pytestmark = pytest.mark.session("interpreter", "two threads")


def matrix(rows: int, columns: int, density: float, seed: int) -> sp.csr_array:
    return sp.random_array((rows, columns), density=density, rng=np.random.default_rng(seed), format="csr")


def check_rows(found: Any, expected: sp.sparray) -> None:
    """Compare a nested array with a matrix, entry by entry."""
    own = sp.csr_array(expected)
    own.sort_indices()
    assert found.offsets.tolist() == own.indptr.tolist()
    assert found.positions.tolist() == own.indices.tolist()
    np.testing.assert_array_equal(found.values.compute(), own.data)


# Rows of a sparse matrix.


@settings(max_examples=25)
@given(rows=st.integers(1, 9), columns=st.integers(3, 9), density=DENSITIES, cuts=CUTS)
def test_rows(rows: int, columns: int, density: float, cuts: Any) -> None:
    A = matrix(max(rows, 3), columns, density, rows)
    N = mn.nested.from_rows(mn.asarray(A, blocks=cuts))
    check_rows(N, A)
    assert N.longest == np.diff(A.indptr).max()
    x = np.arange(columns)
    np.testing.assert_allclose((N * N.gather(x)).sum().compute(), A @ x)
    np.testing.assert_allclose(N.sum().compute(), A.sum(axis=1))


def test_rows_without_entries_or_values() -> None:
    for shape in ((3, 4), (0, 4)):
        N = mn.nested.from_rows(sp.csr_array(shape))
        assert (N.num_segments, N.num_values, N.T.num_segments) == (shape[0], 0, 0)
    A = sp.csr_array(np.array([[0.0, 2.0], [3.0, 4.0]]))
    A.data[0] = 0  # a stored zero is an entry
    assert mn.nested.from_rows(A).tolist() == [[0.0], [3.0, 4.0]]
    assert mn.nested.from_rows(mn.asarray(A).pattern(int)).tolist() == [[1], [1, 1]]
    assert mn.nested.from_rows(A.tocsc()).positions.tolist() == [1, 0, 1]


def test_each_strategy_has_the_same_rows() -> None:
    A = matrix(30, 20, 0.4, 1)
    for strategy in ("segmented", "uniform", "auto"):
        N = mn.nested.from_rows(mn.asarray(A, blocks=4), strategy=strategy)
        check_rows(N, A)


def test_values_stay_in_the_memory_of_their_block() -> None:
    block = block_from(matrix(30, 20, 0.4, 1))
    assert stored_entries([block], "values").values is block.values
    columns = stored_entries([block], "columns").values
    assert columns.dtype == np.int64
    np.testing.assert_array_equal(columns, block.columns)


def test_rows_refused() -> None:
    with pytest.raises(DTypeError, match=r"dense array of shape \(2, 3\)"):
        mn.nested.from_rows(np.ones((2, 3)))
    A = mn.asarray(sp.csr_array(np.eye(3)))
    with pytest.raises(LoopBodyError, match=r"from_rows: .* depends on the state of a loop"):
        mn.iterate(lambda x: mn.nested.from_rows(A * x.sum()).sum() + x, mn.ones(3), max_iterations=2)


# Arithmetic of arrays with positions.


@settings(max_examples=25)
@given(columns=st.integers(1, 6), densities=st.tuples(DENSITIES, DENSITIES), cuts=st.tuples(CUTS, CUTS))
def test_sums_and_products_as_scipy(columns: int, densities: tuple[float, float], cuts: Any) -> None:
    A, B = (matrix(6, max(columns, 3), one, place) for place, one in enumerate(densities))
    N, M = (mn.nested.from_rows(mn.asarray(one, blocks=by)) for one, by in zip((A, B), cuts, strict=True))
    union, both = sp.csr_array(A + B), sp.csr_array(A.multiply(B))
    check_rows(N + M, union)
    check_rows(N * M, both)
    away = N - M
    np.testing.assert_array_equal(away.positions.compute(), union.indices)
    dense = A.toarray() - B.toarray()
    np.testing.assert_array_equal(away.values.compute(), dense[union.tocoo().coords])


def test_equal_positions_are_not_united() -> None:
    A = matrix(6, 5, 0.5, 0)
    N, M = (mn.nested.from_rows(mn.asarray(A, blocks=one)) for one in (1, 3))
    assert (N + M).offsets.expression is N.offsets.expression
    assert (N + N * 2).positions.expression is N.positions.expression
    check_rows(N + M, A + A)


def test_as_many_values_at_other_positions() -> None:
    A, B = sp.csr_array([[0.0, 0, 1], [2, 0, 0]]), sp.csr_array([[0.0, 3, 0], [4, 0, 0]])
    N, M = map(mn.nested.from_rows, (A, B))
    check_rows(N + M, A + B)
    check_rows(M + N, A + B)
    check_rows(M * N, A.multiply(B))
    C, D = sp.csr_array([[1.0, 0], [0, 2], [0, 0]]), sp.csr_array([[1.0, 0], [0, 0], [0, 2]])
    check_rows(mn.nested.from_rows(C) + mn.nested.from_rows(D), C + D)


def test_one_without_positions() -> None:
    A = sp.csr_array(np.array([[0, 1.0, 2], [0, 0, 0], [3, 0, 4]]))
    N, M = mn.nested.from_rows(A), mn.nested.from_lists([[10.0], [20.0, 30.0], []])
    found = N + M
    assert found.tolist() == [[10.0, 1.0, 2.0], [20.0, 30.0], [3.0, 4.0]]
    assert found.positions.tolist() == [0, 1, 2, 0, 1, 0, 2]
    assert (mn.asarray([1.0, 2.0, 3.0]) * N).tolist() == [[1.0, 2.0], [], [9.0, 12.0]]
    assert (N > M).dtype == bool


def test_union_refused() -> None:
    N = mn.nested.from_rows(matrix(3, 4, 0.5, 0))
    with pytest.raises(ShapeError, match="add: 3 and 2 segments"):
        N + N[:2]
    far = type(N)(N.values, N._structure, N.strategy, N.positions + 2**62)
    with pytest.raises(UnsupportedError, match="of 3 segments whose positions differ and go up to"):
        N + far


def test_union_inside_loops() -> None:
    A, B = matrix(6, 5, 0.5, 0), matrix(6, 5, 0.5, 1)
    N, M = mn.nested.from_rows(A), mn.nested.from_rows(B)

    def body(x: Any) -> Any:
        return (N.with_values(N.values * x[0]) + M).sum() + (N * M.with_values(M.values + 0 * x[0])).sum()

    found, _ = mn.iterate(body, mn.ones(6), max_iterations=3)
    x = np.ones(6)
    for _ in range(3):
        x = (A * x[0] + B).sum(axis=1) + A.multiply(B).sum(axis=1)
    np.testing.assert_allclose(found.compute(), x)


# Keys.


@settings(max_examples=25)
@given(
    keys=st.lists(st.integers(-3, 3), max_size=40),
    kind=st.sampled_from(["narrow", "wide", "float", "bool"]),
    blocks=st.integers(1, 3),
)
def test_keys(keys: list[int], kind: str, blocks: int) -> None:
    dtype = {"narrow": np.int64, "wide": np.int64, "float": np.float64, "bool": np.bool_}[kind]
    own = (np.array(keys, np.int64) * (2**55 if kind == "wide" else 1)).astype(dtype)
    values = np.arange(float(own.size))
    cuts = max(1, min(blocks, own.size))
    found = mn.nested.from_keys(mn.asarray(own, blocks=cuts), mn.asarray(values, blocks=cuts))
    groups = pd.Series(values).groupby(own)
    assert found.keys.tolist() == [key for key, _ in groups]
    assert found.segments.tolist() == [part.tolist() for _, part in groups]


@settings(max_examples=25)
@given(lists=segments(), blocks=st.integers(1, 3), seed=st.integers(0, 99))
def test_groups_of_drawn_segments(lists: Lists, blocks: int, seed: int) -> None:
    labels = np.repeat(np.arange(len(lists)), [one.size for one in lists])
    flat = np.concatenate([np.empty(0), *lists])
    # Any order that leaves each group's values in theirs.
    order = np.argsort(np.random.default_rng(seed).permutation(labels), kind="stable")
    mixed_labels, mixed = np.empty_like(labels), np.empty_like(flat)
    mixed_labels[order], mixed[order] = labels, flat
    cuts = max(1, min(blocks, flat.size))
    groups = mn.groupby(mn.asarray(mixed_labels, blocks=cuts), num_groups=len(lists))
    assert groups.nested(mn.asarray(mixed, blocks=cuts)).tolist() == listed(lists)


def test_keys_of_other_kinds() -> None:
    keys, parts = mn.nested.from_keys(([3, 1, 3, 1], [0, 5, 5, 5]), [1, 2, 3, 4])
    assert [one.tolist() for one in keys] == [[1, 3, 3], [5, 0, 5]]
    assert parts.tolist() == [[2, 4], [1], [3]]
    with_nan = mn.nested.from_keys([np.nan, 1.0, np.nan, -0.0, 0.0], [1, 2, 3, 4, 5])
    assert with_nan.segments.tolist() == [[4, 5], [2], [1, 3]]
    nothing = mn.nested.from_keys([], [])
    assert (nothing.keys.size, nothing.segments.num_segments) == (0, 0)


def test_keys_refused() -> None:
    with pytest.raises(ShapeError, match="for 2 keys"):
        mn.nested.from_keys([1, 2], [1.0])
    with pytest.raises(DTypeError, match="complex128"):
        mn.nested.from_keys([1j, 2], [1.0, 2.0])
    with pytest.raises(ShapeError, match=r"values of groups have shape \(2, 2\)"):
        mn.groupby(mn.asarray([1, 2])).nested(np.ones((2, 2)))
    with pytest.raises(LoopBodyError, match="depends on the state of a loop"):
        mn.iterate(
            lambda k: k + mn.groupby(k, num_groups=3).nested(np.ones(3)).sum().astype(int),
            mn.asarray([0, 1, 2]),
            max_iterations=2,
        )


def test_groups_inside_loops() -> None:
    groups = mn.groupby(mn.asarray([1, 0, 1]))

    def body(x: Any) -> Any:
        return groups.nested(x * 2).cumsum().values[[0, 2, 1]]

    found, _ = mn.iterate(body, mn.asarray([1.0, 2.0, 3.0]), max_iterations=3)
    x = np.array([1.0, 2.0, 3.0])
    for _ in range(3):
        x = 2 * np.array([x[1], x[0] + x[2], x[0]])
    assert found.tolist() == x.tolist()


def test_places_are_those_that_an_index_takes() -> None:
    dense = np.array([[0, 5.0, 0, 7, 2], [0, 0, 0, 0, 0], [4, 0, 4, 0, 1]])
    rows = mn.nested.from_rows(sp.csr_array(dense))
    assert rows.argmax().compute().tolist() == [3, -1, 0]
    assert rows.argmin().compute().tolist() == [4, -1, 4]
    assert rows.argsort().tolist() == [[4, 1, 3], [], [4, 0, 2]]
    assert rows.topk(2).places.tolist() == [[3, 1], [], [0, 2]]
    assert rows.topk(2, largest=False).places.tolist() == [[4, 1], [], [4, 0]]
    assert rows[0, int(rows.argmax()[0])] == rows.max()[0] == 7
    assert rows.rank().tolist() == [[1, 2, 0], [], [1, 2, 0]]
    none = mn.nested.from_rows(sp.csr_array((2, 3)))
    assert (none.argmax().compute().tolist(), none.argsort().tolist()) == ([-1, -1], [[], []])

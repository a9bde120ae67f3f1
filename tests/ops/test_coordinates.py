"""Sparse arrays of values at coordinates: what SciPy gives, and the same bits however entries are cut."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import matnb as mn
from matnb.blocks.formats import Dense, to_scipy
from matnb.blocks.kernels.shaping.coordinates import DUPLICATES, entries_within, merge_entries
from matnb.errors import DTypeError, IndexingError, LoopBodyError, OptionError, ShapeError
from matnb.ops.coordinates import FromCoordinates
from matnb.ops.interpret import interpret

SHAPE = (7, 6)


TWO_WORKERS = pytest.mark.session("two workers")


def drawn(seed: int, count: int, dtype: str, shape: tuple[int, int] = SHAPE) -> tuple[np.ndarray, ...]:
    """Return values of all sizes, whose sums show their order, and places that come often."""
    rng = np.random.default_rng(seed)
    values = rng.choice([0.1, -0.0, 1e9, -1e9, 3.3e-7, -2.5, 7.0], count).astype(dtype)
    return values, rng.integers(0, shape[0], count), rng.integers(0, shape[1], count)


def in_cuts(entries: tuple[np.ndarray, ...], rule: str, bounds: list[int], cuts: list[int]) -> sp.csr_array:
    """Return the array by kernels, from parts of the entries, in blocks of rows."""
    dtype, parts = entries[0].dtype, sorted({0, len(entries[0]), *bounds})
    blocks = []
    for rows in pairwise(sorted({0, SHAPE[0], *cuts})):
        region = (rows, (0, SHAPE[1]))
        found = [
            entries_within([Dense(one[start:stop]) for one in entries], region, SHAPE, start)
            for start, stop in pairwise(parts)
        ]
        blocks.append(to_scipy(merge_entries(found, rule, (rows[0], 0), dtype)))
    return sp.csr_array(sp.vstack(blocks))


@given(
    st.integers(0, 99),
    st.integers(1, 90),
    st.sampled_from(["float64", "float32", "int32", "bool", "complex64"]),
    st.sampled_from(DUPLICATES[:-1]),
    st.lists(st.integers(0, 90), max_size=4),
    st.lists(st.integers(1, 6), max_size=3),
)
def test_the_same_bits_for_any_cuts_of_entries_and_rows(
    seed: int, count: int, dtype: str, rule: str, bounds: list[int], cuts: list[int]
) -> None:
    if dtype == "complex64" and rule in ("min", "max"):
        return
    entries = drawn(seed, count, dtype)
    whole = in_cuts(entries, rule, [], [])
    other = in_cuts(entries, rule, [one for one in bounds if one < count], cuts)
    handles = [mn.DistArray(mn.asarray(one).expression) for one in entries]
    node = FromCoordinates(*(one.expression for one in handles), SHAPE, rule)
    meant = sp.csr_array(interpret(node))
    for found in (other, meant):
        np.testing.assert_array_equal(found.indptr, whole.indptr)
        np.testing.assert_array_equal(found.indices, whole.indices)
        assert found.dtype == whole.dtype == dtype
        np.testing.assert_array_equal(found.data.view(np.uint8), whole.data.view(np.uint8))


@pytest.mark.parametrize("width", [40, 1000, 300_000])  # sums kept by column, or, of too many, rows sorted
def test_rows_of_many_entries_keep_the_order_of_those_at_one_place(width: int) -> None:
    values, rows, columns = drawn(3, 5000, "float64", (2, width))
    parts = [
        entries_within(
            [Dense(one[start:stop]) for one in (values, rows, columns)],
            ((0, 2), (0, width)),
            (2, width),
            start,
        )
        for start, stop in ((0, 17), (17, 5000))
    ]
    for rule in DUPLICATES[:-1]:
        merged = to_scipy(merge_entries(parts, rule, (0, 0), values.dtype))
        assert merged.has_canonical_format
        found = merged.toarray()
        combine: Any = {"min": np.minimum, "max": np.maximum, "sum": np.add}.get(rule)
        wanted: dict[tuple[int, int], float] = {}
        for value, *place in zip(values.tolist(), rows.tolist(), columns.tolist(), strict=True):
            key = (place[0], place[1])
            if key not in wanted or rule == "last":
                wanted[key] = value
            elif combine is not None:
                wanted[key] = combine(wanted[key], value)
        assert all(found[place] == value for place, value in wanted.items())


@TWO_WORKERS
@pytest.mark.parametrize("blocks", [1, 3, (2, 2)], ids=str)
def test_workers_give_what_scipy_does(blocks: object) -> None:
    rng = np.random.default_rng(0)
    shape, count = (300, 200), 40_000
    values = rng.integers(-9, 9, count).astype(float)
    rows, columns = rng.integers(0, 300, count), rng.integers(0, 200, count).astype(np.uint8)
    given_arrays = (
        mn.asarray(values, blocks=4), (mn.asarray(rows, blocks=3), mn.asarray(columns))
    )  # fmt: skip
    found = mn.coo_array(given_arrays, shape=shape, blocks=blocks)
    assert found.sparse
    wanted = sp.csr_array(sp.coo_array((values, (rows, columns)), shape=shape))
    computed = found.to_scipy()
    np.testing.assert_array_equal(computed.toarray(), wanted.toarray())
    assert computed.nnz == wanted.nnz  # zeros that are given, and sums that are zero, are stored


@TWO_WORKERS
def test_lengths_come_from_the_largest_coordinates_and_one_value_is_there_for_all() -> None:
    found = mn.coo_array((2, (np.array([3, 0]), np.array([1, 5]))), dtype=float)
    assert found.shape == (4, 6)
    assert found.dtype == float
    assert np.asarray(found).sum() == 4
    assert mn.coo_array((np.array([]), (np.array([], int), np.array([], int))), shape=(2, 3)).nnz == 0


@TWO_WORKERS
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.uint16, np.uint32, np.uint64])
def test_sums_of_other_integers_wrap_as_in_scipy(dtype: type) -> None:
    values = np.array([200, 100, np.iinfo(dtype).max], dtype=np.uint64).astype(dtype)
    given = values, (np.array([1, 1, 0]), np.array([2, 2, 0]))
    found = mn.coo_array(given, shape=(2, 3))
    wanted = sp.csr_array(sp.coo_array(given, shape=(2, 3)))
    assert found.sparse
    assert found.dtype == wanted.dtype == dtype
    np.testing.assert_array_equal(np.asarray(found), wanted.toarray())
    least = mn.coo_array(given, shape=(2, 3), duplicates="last")
    assert np.asarray(least)[1, 2] == values[1]


@TWO_WORKERS
@pytest.mark.parametrize(("word", "best"), [("min", np.minimum), ("max", np.maximum)])
def test_extremes_of_duplicates_of_uint64(word: str, best: np.ufunc) -> None:
    values = np.array([2**63 + 5, 3, 2**64 - 1, 0, 2**63, 7, 0], np.uint64)
    rows, columns = np.array([0, 0, 1, 1, 2, 0, 2]), np.array([1, 1, 0, 0, 2, 1, 0])
    start = np.uint64(2**64 - 1 if word == "min" else 0)
    expected = np.full((3, 3), start)
    best.at(expected, (rows, columns), values)
    is_there = np.zeros((3, 3), np.bool_)
    is_there[rows, columns] = True
    found = mn.coo_array((values, (rows, columns)), shape=(3, 3), duplicates=word)
    assert found.dtype == np.uint64
    assert found.nnz == is_there.sum()
    np.testing.assert_array_equal(np.asarray(found), np.where(is_there, expected, 0))


@TWO_WORKERS
def test_a_loop_makes_another_pattern_in_each_iteration() -> None:
    rows, columns = mn.asarray(np.arange(40) % 8), mn.asarray(np.arange(40) % 5)

    def step(state: tuple[mn.DistArray, mn.DistArray]) -> tuple[mn.DistArray, mn.DistArray]:
        matrix, number = state
        moved = (columns + number) % 8
        return mn.coo_array((matrix.sum() + rows, (rows, moved)), shape=(8, 8), duplicates="last"), number + 1

    begin = mn.coo_array((np.ones(40, int), (rows, columns)), shape=(8, 8))
    (found, _), _ = mn.iterate(step, (begin, mn.asarray(0)), max_iterations=3)
    made = begin.to_scipy().toarray()
    for number in range(3):
        new = np.zeros((8, 8), int)
        new[np.arange(40) % 8, (np.arange(40) % 5 + number) % 8] = made.sum() + np.arange(40) % 8
        made = new
    np.testing.assert_array_equal(np.asarray(found), made)


@TWO_WORKERS
@pytest.mark.parametrize(
    ("rows", "columns", "words"),
    [
        (
            [0, 1, 9],
            [0, 0, 0],
            r"row 9 of entry 2 is outside an array of shape \(4, 3\): rows .* to 3",
        ),
        ([0, -1, 2], [0, 0, 0], "row -1 of entry 1 is outside"),
        ([0, 1, 2], [0, 3, 4], "column 3 of entry 1 is outside .*: columns go from 0 to 2"),
    ],
)
def test_a_coordinate_outside_names_the_entry(rows: list[int], columns: list[int], words: str) -> None:
    made = mn.coo_array((np.ones(3), (np.array(rows), np.array(columns))), shape=(4, 3))
    with pytest.raises(IndexingError, match=words):
        made.compute()


@TWO_WORKERS
def test_duplicates_that_are_an_error_name_the_place() -> None:
    rows, columns = np.arange(40_000), np.arange(40_000) % 7
    made = mn.coo_array((np.ones(40_000), (rows, columns)), shape=(40_000, 7), duplicates="error", blocks=3)
    assert made.nnz == 40_000
    rows[39_999], columns[39_999] = 30_000, 30_000 % 7
    twice = mn.coo_array((np.ones(40_000), (rows, columns)), shape=(40_000, 7), duplicates="error", blocks=3)
    with pytest.raises(OptionError, match=r"coordinates \(30000, 5\) occur more than once"):
        twice.compute()


@TWO_WORKERS
def test_what_cannot_be_is_refused_when_it_is_recorded() -> None:
    one, two, ends = np.ones(3), np.ones(2), np.arange(3)
    for given_entries, options, error, words in (
        ((one, (ends, two.astype(int))), {}, ShapeError, "give 1-d arrays of the same length"),
        ((one, (ends, one)), {}, DTypeError, "columns has dtype float64: give integers"),
        ((one.astype("float16"), (ends, ends)), {}, DTypeError, "a sparse array cannot have dtype float16"),
        ((one, (ends, ends)), {"duplicates": "mean"}, OptionError, "duplicates='mean': choose 'sum'"),
        ((one * 1j, (ends, ends)), {"duplicates": "max"}, DTypeError, "have no order"),
        ((one, (ends, ends)), {"shape": (3, 3, 3)}, ShapeError, "sparse arrays have two axes"),
        (one, {}, ShapeError, r"give \(values, \(rows, columns\)\)"),
    ):
        with pytest.raises(error, match=words):
            mn.coo_array(given_entries, **{"shape": (3, 3), **options})  # type: ignore[arg-type]

    def step(x: mn.DistArray) -> mn.DistArray:
        return mn.coo_array((x, (x.astype(int), x.astype(int)))).sum(axis=0)

    with pytest.raises(LoopBodyError, match="the shape of coo_array depends on data"):
        mn.iterate(step, mn.asarray(one), max_iterations=2)

"""Values at new places, transposes and merged arrays: as Python, NumPy and SciPy put them one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from segment_lists import Lists, awkward_of, listed, many_segments, nested_of, segments

import matnb as mn
from matnb.errors import (
    DTypeError,
    IndexingError,
    LoopBodyError,
    OptionError,
    ShapeError,
    UnsupportedError,
)

BLOCKS = st.integers(1, 3)
UFUNCS = {"plus": np.add, "times": np.multiply, "min": np.minimum, "max": np.maximum}


pytestmark = pytest.mark.session("interpreter", "two threads")


# Combining.


@st.composite
def targets(draw: st.DrawFn, count: int, is_bounded: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """A segment and a place in it for each of some values."""
    segments_of = draw(st.lists(st.integers(0, 6), min_size=count, max_size=count))
    places = draw(st.lists(st.integers(0, 5), min_size=count, max_size=count))
    return np.array(segments_of, np.int64), np.array(places, np.int64)


def combined(
    flat: np.ndarray, target: tuple[np.ndarray, np.ndarray], monoid: str, counts: np.ndarray
) -> list[list[float]]:
    """What becomes of values one by one."""
    ufunc = UFUNCS[monoid]
    identity = {"min": np.inf, "max": -np.inf}.get(monoid, ufunc.identity)
    found = [[float(identity)] * count for count in counts]
    for value, segment, place in zip(flat, *target, strict=True):
        found[segment][place] = float(ufunc(found[segment][place], value))
    return found


def counted(target: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    counts = np.zeros(max(target[0], default=-1) + 1, np.int64)
    np.maximum.at(counts, target[0], target[1] + 1)
    return counts


@settings(max_examples=30)
@given(
    lists=segments(),
    blocks=BLOCKS,
    monoid=st.sampled_from(list(UFUNCS)),
    is_given=st.booleans(),
    is_stable=st.booleans(),
    data=st.data(),
)
def test_combine(
    lists: Lists, blocks: int, monoid: str, is_given: bool, is_stable: bool, data: st.DataObject
) -> None:
    flat = np.concatenate([np.empty(0), *lists]) % 5
    N = nested_of(lists, blocks)
    N = N.with_values(N.values % 5)
    target = data.draw(targets(flat.size))
    counts = np.array([6, 6, 7, 6, 6, 9, 6, 0]) if is_given else counted(target)
    found = N.combine(target, monoid, counts=counts if is_given else None, stable=is_stable)
    assert found.tolist() == combined(flat, target, monoid, counts)
    assert found.counts.tolist() == counts.tolist()


def test_stable_sums_follow_no_cuts(kind: str) -> None:
    rng = np.random.default_rng(0)
    values, target = rng.standard_normal(30_000), (rng.integers(0, 9, 30_000), rng.integers(0, 5, 30_000))
    found: dict[bool, set[bytes]] = {False: set(), True: set()}
    for blocks in (1, 3, 16):
        N = mn.nested.unflatten(mn.asarray(values, blocks=blocks), [29_000, 1_000], strategy="uniform")
        for stable, bits in found.items():
            made = N.combine(target, stable=stable).values.compute()
            exact = np.bincount(target[0] * 5 + target[1], values)
            assert np.allclose(made, exact, rtol=0, atol=1e-10)
            bits.add(made.tobytes())
    assert len(found[True]) == 1
    is_cut = kind != "interpreter"
    assert (len(found[False]) > 1) == is_cut  # what it is for


def test_targets_of_each_kind() -> None:
    N = nested_of([np.array([1.0, 2.0]), np.empty(0), np.array([3.0, 4.0, 5.0])], 2)
    target = [1, 0, 1, 1, 0], [0, 1, 0, 2, 0]
    expected = [[5.0, 2.0], [4.0, 0.0, 4.0]]
    assert N.combine(target).tolist() == expected
    assert N.combine(tuple(map(mn.asarray, target))).tolist() == expected
    assert N.combine(tuple(N.with_values(one) for one in target)).tolist() == expected
    is_large = (N > 2).combine(target, "lor")
    assert is_large.tolist() == [[True, False], [True, False, True]]
    assert (N > 2).combine(target).dtype == np.int64


@pytest.mark.parametrize(
    ("target", "options", "error", "words"),
    [
        (([0, 0, 0, -1, 0], [0] * 5), {}, IndexingError, r"value 3 would go to place 0 of segment -1$"),
        (([0] * 5, [0, 1, 2, 3, -4]), {}, IndexingError, r"value 4 would go to place -4 of segment 0$"),
        (([0] * 5, range(5)), {"counts": [4]}, IndexingError, r"4 of segment 0, which has length 4"),
        (([0, 1, 2, 3, 0], [0] * 5), {"counts": [1, 1]}, IndexingError, r"value 2 .* of segment 2 of 2"),
        (([0] * 5, [0] * 5), {"counts": []}, IndexingError, r"value 0 .* of segment 0 of 0"),
        (([0] * 4, [0] * 5), {}, ShapeError, r"4 segments for 5 values"),
        (([0.5] * 5, [0] * 5), {}, DTypeError, r"segments of the target have dtype float64"),
        (([[0] * 5], [0] * 5), {}, ShapeError, r"shape \(1, 5\)"),
        ([0] * 5, {}, OptionError, r"give \(segments, places\)"),
        (([0] * 5, [0] * 5), {"monoid": "pluss"}, OptionError, r"did you mean 'plus'"),
        (([0] * 5, [0] * 5), {"monoid": ["plus"]}, OptionError, r"there are 'plus'"),
        (([0] * 5, [0] * 5), {"counts": [-1]}, ShapeError, r"segment 0 would have length -1"),
    ],
)
def test_combine_refuses(target: Any, options: dict[str, Any], error: type, words: str) -> None:
    N = nested_of([np.arange(2.0), np.empty(0), np.arange(3.0)], 2)
    with pytest.raises(error, match=words):
        N.combine(target, **options)


def test_a_nested_target_has_the_same_segments() -> None:
    N, M = nested_of([np.arange(2.0), np.arange(3.0)]), nested_of([np.arange(3.0), np.arange(2.0)])
    with pytest.raises(ShapeError, match="segments of the target: segment 0 has length 2 in one and 3"):
        N.combine((M.astype(int), M.astype(int)))


# Shuffling.


@settings(max_examples=25)
@given(lists=segments(), count=st.integers(1, 9), blocks=BLOCKS, seed=st.integers(0, 99))
def test_shuffle(lists: Lists, count: int, blocks: int, seed: int) -> None:
    flat = np.concatenate([np.empty(0), *lists])
    rng = np.random.default_rng(seed)
    lengths = rng.multinomial(flat.size, [1 / count] * count)
    to = rng.permutation(flat.size)
    starts = np.cumsum([0, *lengths])
    chosen = np.searchsorted(starts, to, side="right") - 1
    found = nested_of(lists, blocks).shuffle((chosen, to - starts[chosen]), counts=lengths)
    moved = np.empty(flat.size)
    moved[to] = flat
    assert found.tolist() == listed(np.split(moved, starts[1:-1]))


def test_shuffle_keeps_what_values_are() -> None:
    N = mn.nested.from_lists([[-0.0, np.nan], [np.inf]])
    found = N.shuffle(([0, 1, 1], [0, 1, 0]))
    assert found.counts.tolist() == [1, 2]
    np.testing.assert_array_equal(
        found.values.compute().view(np.int64), N.values[[0, 2, 1]].compute().view(np.int64)
    )
    assert N.astype(bool).shuffle(([0, 1, 1], [0, 1, 0])).dtype == bool


@pytest.mark.parametrize(
    ("target", "counts", "words"),
    [
        (([0, 0, 0, 1, 1], [0, 1, 1, 0, 2]), None, r"values 1 and 2 both go to place 1 of segment 0"),
        (([0] * 5, [0, 1, 2, 3, 3]), None, r"values 3 and 4 both go to place 3 of segment 0"),
        (([0] * 5, [0, 1, 2, 3, 5]), None, r"no value goes to place 4 of segment 0"),
        (([0] * 5, [0, 1, 2, 3, 10**12]), None, r"no value goes to place 4 of segment 0"),
        (([0] * 5, [0, 1, 2, 3, 4]), [5, 2], r"no value goes to place 0 of segment 1"),
        (([2, 2, 0, 0, 0], [0, 1, 0, 1, 2]), [3, 0, 3], r"no value goes to place 2 of segment 2"),
    ],
)
def test_shuffle_is_one_to_one(target: Any, counts: Any, words: str) -> None:
    N = nested_of([np.arange(2.0), np.empty(0), np.arange(3.0)], 2)
    with pytest.raises(ShapeError, match=words):
        N.shuffle(target, counts=counts)


def test_nothing_for_a_place_that_there_is() -> None:
    with pytest.raises(ShapeError, match="no value goes to place 0 of segment 1"):
        nested_of([]).shuffle(([], []), counts=[0, 2])


# Transposes.


def transposed(lists: Lists) -> list[list[float]]:
    longest = max(map(len, lists), default=0)
    return [[float(one[place]) for one in lists if len(one) > place] for place in range(longest)]


@settings(max_examples=30)
@given(lists=segments(), blocks=BLOCKS, more=st.integers(0, 3))
def test_transpose(lists: Lists, blocks: int, more: int) -> None:
    expected = transposed(lists)
    N = nested_of(lists, blocks)
    assert N.T.tolist() == expected
    assert N.T.num_segments == N.longest
    assert N.transpose(N.longest + more).tolist() == expected + [[]] * more
    np.testing.assert_array_equal(N.T.sum().compute(), [sum(one) for one in expected])


@pytest.mark.parametrize("num_segments", ["3", 4.5, (1, 0)])
def test_a_number_of_segments_is_an_integer(num_segments: Any) -> None:
    for N in (mn.nested.from_lists([[1], [2, 3]]), mn.nested.from_rows(sp.csr_array(np.eye(2)))):
        with pytest.raises(OptionError, match=r"transpose: num_segments=.*give an integer"):
            N.transpose(num_segments)


@settings(max_examples=15)
@given(rows=st.integers(0, 7), columns=st.integers(1, 7), blocks=BLOCKS)
def test_of_a_matrix_it_is_numpys(rows: int, columns: int, blocks: int) -> None:
    A = np.arange(float(rows * columns)).reshape(rows, columns)
    assert nested_of(list(A), blocks).T.tolist() == (A.T.tolist() if rows else [])


@pytest.mark.parametrize("is_power_law", [False, True])
def test_many_segments_transposed_and_moved(is_power_law: bool) -> None:
    lists = many_segments(3, is_power_law)
    N = nested_of(lists, 3)
    assert N.T.tolist() == transposed(lists)
    back = N.counts[N._spread(mn.arange(3000))] - 1 - N.positions
    found = N.shuffle((N._spread(mn.arange(3000)), back), counts=N.counts)
    assert found.tolist() == listed([one[::-1] for one in lists])


def rows_of(A: sp.csr_array) -> Any:
    N = mn.nested.from_offsets(mn.asarray(A.data, blocks=min(3, max(1, A.nnz))), A.indptr.astype(np.int64))
    return type(N)(N.values, N._structure, N.strategy, mn.asarray(A.indices.astype(np.int64)))


@settings(max_examples=25)
@given(rows=st.integers(1, 8), columns=st.integers(1, 8), density=st.sampled_from([0, 0.3, 1]))
def test_of_sparse_rows_it_is_the_transposed_matrix(rows: int, columns: int, density: float) -> None:
    A = sp.random_array((rows, columns), density=density, rng=np.random.default_rng(rows), format="csr")
    found, expected = rows_of(A).transpose(columns), sp.csr_array(A.T)
    assert found.offsets.tolist() == expected.indptr.tolist()
    np.testing.assert_array_equal(found.values.compute(), expected.data)
    assert found.positions.tolist() == expected.indices.tolist()
    back = found.transpose(rows)
    assert (back.tolist(), back.positions.tolist()) == (rows_of(A).tolist(), A.indices.tolist())
    assert rows_of(A).T.num_segments == max(A.indices, default=-1) + 1


def test_transpose_refuses_fewer_segments() -> None:
    with pytest.raises(ShapeError, match="num_segments=2, but the longest segment has 3"):
        nested_of([np.arange(3.0)]).transpose(2)
    with pytest.raises(ShapeError, match="num_segments=3, but the largest position is 3"):
        rows_of(sp.csr_array([[0.0, 0, 0, 1]])).transpose(3)


# Merging.


@settings(max_examples=25)
@given(lists=segments(), blocks=BLOCKS)
def test_merge(lists: Lists, blocks: int) -> None:
    parts = [mn.asarray(one, blocks=min(blocks, one.size)) if one.size > 1 else one for one in lists]
    found = mn.nested.merge(*parts)
    assert found.tolist() == listed(lists) == awkward_of(lists).tolist()
    assert found.counts.tolist() == [one.size for one in lists]


def test_merge_takes_numpys_dtype() -> None:
    assert mn.nested.merge([1, 2], mn.arange(3.0)).dtype == np.float64
    assert mn.nested.merge(np.ones(2, np.int8), [True]).dtype == np.int8
    with pytest.raises(ShapeError, match=r"values of array 1 have shape \(1, 2\)"):
        mn.nested.merge([1], [[1, 2]])
    with pytest.raises(UnsupportedError, match="array 1 is nested"):
        mn.nested.merge([1], nested_of([]))


# In loops structures are fixed, and values change.


def test_inside_loops() -> None:
    lists = [np.array([1.0, 2.0]), np.empty(0), np.array([3.0, 4.0, 5.0])]
    N = nested_of(lists, 2)
    target = np.array([1, 0, 1, 1, 0]), np.array([0, 1, 0, 2, 0])

    def body(total: Any) -> Any:
        M = N.with_values(N.values * 0 + total)
        places = mn.asarray(target[0]) + 0 * total.astype(int)
        by_state = M.combine((places, target[1]), counts=[2, 3])
        return (
            total
            + M.T.sum()[0]
            + M.combine(target).max()[1]
            + M.shuffle(target_of_all)[1].sum()
            + by_state[0, 0]
        )

    target_of_all = np.array([1, 0, 1, 1, 0]), np.array([1, 1, 0, 2, 0])
    found, _ = mn.iterate(body, mn.asarray(1.0), max_iterations=3)
    assert float(found) == (1 + 2 + 2 + 3 + 1) ** 3

    def refused(total: Any) -> Any:
        places = mn.asarray(target[0]) + 0 * total.astype(int)
        return N.combine((places, target[1])).sum().sum() + total

    with pytest.raises(LoopBodyError, match="give counts="):
        mn.iterate(refused, mn.asarray(1.0), max_iterations=2)

    def shuffled(total: Any) -> Any:
        places = mn.asarray(target_of_all[0]) + 0 * total.astype(int)
        return N.shuffle((places, target_of_all[1])).sum().sum() + total

    with pytest.raises(LoopBodyError, match="shuffle before the loop"):
        mn.iterate(shuffled, mn.asarray(1.0), max_iterations=2)

    def outside(total: Any) -> Any:
        places = mn.asarray(target[1]) + total.astype(int)
        return N.combine((target[0], places), counts=[2, 3]).sum().sum() + total

    with pytest.raises(IndexingError, match="label -1"):
        float(mn.iterate(outside, mn.asarray(1.0), max_iterations=2)[0])

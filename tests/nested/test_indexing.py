"""Segments, elements and selections of segments: as lists of arrays and Awkward give them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from segment_lists import Lists, awkward_of, listed, many_segments, nested_of, segments

import matnb as mn
from matnb.errors import IndexingError, LoopBodyError

BLOCKS = st.integers(1, 3)


pytestmark = pytest.mark.session("interpreter", "two threads")


@settings(max_examples=20)
@given(lists=segments().filter(len), blocks=BLOCKS, data=st.data())
def test_a_segment(lists: Lists, blocks: int, data: st.DataObject) -> None:
    number = data.draw(st.integers(-len(lists), len(lists) - 1))
    found = nested_of(lists, blocks)[number]
    np.testing.assert_array_equal(found.compute(), lists[number])


@settings(max_examples=20)
@given(lists=segments().filter(lambda lists: any(map(len, lists))), blocks=BLOCKS, data=st.data())
def test_an_element(lists: Lists, blocks: int, data: st.DataObject) -> None:
    number = data.draw(st.sampled_from([place for place, one in enumerate(lists) if one.size]))
    place = data.draw(st.integers(-lists[number].size, lists[number].size - 1))
    found = nested_of(lists, blocks)[number - data.draw(st.sampled_from([0, len(lists)])), place]
    assert found.shape == ()
    assert float(found) == lists[number][place]


SLICES = st.builds(
    slice,
    st.none() | st.integers(-14, 14),
    st.none() | st.integers(-14, 14),
    st.none() | st.integers(-3, 3).filter(bool),
)


@settings(max_examples=40)
@given(lists=segments(), part=SLICES, blocks=BLOCKS, strategy=st.sampled_from(["segmented", "uniform"]))
def test_slices_of_segments(lists: Lists, part: slice, blocks: int, strategy: str) -> None:
    found = nested_of(lists, blocks, strategy)[part]
    assert found.tolist() == listed(lists[part])
    if lists[part]:  # Awkward 2.14 refuses some empty slices
        assert found.tolist() == awkward_of(lists)[part].tolist()
    assert found.num_values == sum(one.size for one in lists[part])
    assert found.longest == max((one.size for one in lists[part]), default=0)


@settings(max_examples=25)
@given(lists=segments(), blocks=BLOCKS, is_handle=st.booleans(), data=st.data())
def test_booleans_pick_segments(lists: Lists, blocks: int, is_handle: bool, data: st.DataObject) -> None:
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(lists), max_size=len(lists))), bool)
    found = nested_of(lists, blocks)[mn.asarray(mask) if is_handle else mask]
    assert found.tolist() == awkward_of(lists)[mask].tolist()


@settings(max_examples=25)
@given(lists=segments().filter(len), blocks=BLOCKS, is_handle=st.booleans(), data=st.data())
def test_integers_pick_segments(lists: Lists, blocks: int, is_handle: bool, data: st.DataObject) -> None:
    order = data.draw(st.lists(st.integers(-len(lists), len(lists) - 1), max_size=20))
    given_order = np.array(order, np.int64)
    found = nested_of(lists, blocks)[mn.asarray(given_order) if is_handle else given_order]
    assert found.tolist() == listed([lists[one] for one in order]) == awkward_of(lists)[given_order].tolist()
    sums = [np.sum(lists[one]) for one in order]
    np.testing.assert_array_equal(np.asarray(found.sum()), sums)


@pytest.mark.parametrize("is_power_law", [False, True])
@pytest.mark.parametrize("strategy", ["segmented", "uniform"])
def test_many_segments(is_power_law: bool, strategy: str) -> None:
    lists = many_segments(1, is_power_law)
    N, arrays = nested_of(lists, 3, strategy), awkward_of(lists)
    rng = np.random.default_rng(2)
    order, mask = rng.integers(-3000, 3000, 4000), rng.random(3000) < 0.5
    order[[5, 3000]] = 1700
    for key in (slice(100, 2500), slice(None, None, -7), order, mask):
        found = N[key]
        assert found.tolist() == arrays[key].tolist()
        np.testing.assert_array_equal(found.max().compute(), N.max().compute()[key])
    for number in (0, 1699, 1700, 1701, 2999):
        np.testing.assert_array_equal(N[number].compute(), lists[number])


def test_lists_and_chains() -> None:
    lists = [np.arange(3.0), np.empty(0), np.arange(5.0)]
    N = nested_of(lists, 2)
    assert N[[2, 0]].tolist() == listed([lists[2], lists[0]])
    assert N[[True, False, True]][1:][0].tolist() == lists[2].tolist()
    assert N[[]].num_segments == 0
    assert N[[]].sum().shape == (0,)
    assert N[:] is N
    assert N[()] is N
    assert int(N[np.int8(2), mn.asarray(4)]) == 4


# Rows of a sparse matrix have positions with gaps.


def with_positions() -> Any:
    A = sp.csr_array(np.array([[0, 1.5, 0, 2], [0, 0, 0, 0], [3, 0, 4, 5]]))
    N = mn.nested.from_offsets(mn.asarray(A.data), A.indptr.astype(np.int64))
    return type(N)(N.values, N._structure, N.strategy, mn.asarray(A.indices.astype(np.int64)))


def test_an_element_by_its_position() -> None:
    N = with_positions()
    assert [float(N[0, 1]), float(N[0, 3]), float(N[-1, 2])] == [1.5, 2.0, 4.0]
    with pytest.raises(IndexingError, match=r"N\[0, 2\]: none of the 2 values .* has position 2"):
        N[0, 2]
    with pytest.raises(IndexingError, match=r"none of the 0 values"):
        N[1, 0]


def test_positions_go_with_their_values() -> None:
    N = with_positions()
    assert N[[2, 0]].positions.tolist() == [0, 2, 3, 1, 3]
    assert N[1:].positions.tolist() == [0, 2, 3]
    assert N[[True, True, False]].positions.tolist() == [1, 3]
    assert N[[2, 0]].gather(np.arange(4.0)).tolist() == [[0.0, 2.0, 3.0], [1.0, 3.0]]


# What is refused, at the line that asks.

FIVE = [np.arange(3.0), np.empty(0), np.arange(2.0), np.arange(7.0), np.empty(0)]


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (5, r"segment 5 of 5: give -5 to 4"),
        (-6, r"segment -6 of 5"),
        ((3, 7), r"N\[3, 7\]: the segment has length 7: give -7 to 6"),
        ((1, 0), r"N\[1, 0\]: the segment has length 0$"),
        ([0, 9], r"segment 9 of 5"),
        ([0, -9], r"segment -9 of 5"),
        ([True, False], r"2 booleans for 5 segments"),
        (1.0, r"1\.0: give an integer"),
        ([1.0], r"dtype float64: give an integer"),
        (np.array(2.0), r"dtype float64"),
        (True, r"dtype bool"),
        (None, r"is None"),
        (..., r"Ellipsis"),
        (slice(0.5, None), r"slice indices must be integers"),
        (slice(None, None, 0), r"slice step cannot be zero"),
        ("3", r"'3'"),
        ([[1, 2]], r"shape \(1, 2\)"),
        ((1, 2, 3), r"3 indices of a nested array, which has two"),
        ((slice(None), 0), r"N\.T\[place\]"),
        ((0, slice(2)), r"N\[segment\]\[start:stop\]"),
        (([0, 1], 0), r"both integers"),
    ],
)
def test_refused(key: Any, words: str) -> None:
    with pytest.raises(IndexingError, match=words):
        nested_of(FIVE)[key]


def test_booleans_at_other_positions_are_refused() -> None:
    N = with_positions()
    elsewhere = mn.nested.NestedArray(N.values, N._structure, positions=N.positions + 1)
    again = mn.nested.NestedArray(N.values, N._structure, positions=N.positions + 0)
    with pytest.raises(IndexingError, match="the booleans are at other positions"):
        N[elsewhere > 0]
    assert N[again > -1].tolist() == N.tolist()


def test_handles_are_refused_alike() -> None:
    N = nested_of(FIVE)
    with pytest.raises(IndexingError, match="segment 5 of 5"):
        N[mn.asarray([1, 5])]
    with pytest.raises(IndexingError, match="3 booleans for 5 segments"):
        N[mn.ones(3) > 0]
    with pytest.raises(IndexingError, match=r"segment 0 of 0$"):
        nested_of([])[0]


def test_inside_loops() -> None:
    N = nested_of(FIVE, 2)

    def body(total: Any) -> Any:
        M = N.with_values(N.values * total)
        return total + M[3, 2] + M[2].sum() + M[[3, 0]].sum()[1] + M[2:4].sum()[0]

    expected = 1.0
    for _ in range(3):
        expected += expected * (2 + 1 + 3 + 1)
    found, _ = mn.iterate(body, mn.asarray(1.0), max_iterations=3)
    assert float(found) == expected

    with pytest.raises(LoopBodyError, match="an index of a nested array depends on the state"):
        mn.iterate(lambda i: i + N[i, 0].astype(int), mn.asarray(0), max_iterations=2)
    with pytest.raises(LoopBodyError, match="an index of a nested array depends on the state"):
        mn.iterate(lambda x: N[x > 0].sum(), mn.ones(5), max_iterations=2)

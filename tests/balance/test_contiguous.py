"""Parts of an axis have the least makespan there is, by trying every cuts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from matnb.balance.contiguous import Work, balanced_cuts, with_rows
from matnb.blocks.grid import Grid
from matnb.errors import ShapeError


def work_from(rows):
    return Work(np.arange(len(rows) + 1), np.concatenate([[0.0], np.cumsum(rows)]))


def slowest(rows, cuts, shares, offsets):
    times = []
    for (start, stop), share, offset in zip(itertools.pairwise(cuts), shares, offsets, strict=True):
        work = sum(rows[start:stop])
        times.append(offset + work / share if work > 0 else 0.0)
    return max(times)


def least_makespan(rows, shares, offsets, empty):
    """The least makespan of all cuts, by trying each; ``empty``: parts without rows are tried as well."""
    length = len(rows)
    if empty:
        inner = itertools.combinations_with_replacement(range(length + 1), len(shares) - 1)
    else:
        inner = itertools.combinations(range(1, length), len(shares) - 1)
    return min(slowest(rows, (0, *one, length), shares, offsets) for one in inner)


@st.composite
def weighted_rows(draw, most=9):
    rows = draw(st.lists(st.integers(0, 9) | st.integers(0, 90), min_size=1, max_size=most))
    assume(sum(rows) > 0)
    return [float(one) for one in rows]


@given(weighted_rows(), st.data())
def test_cuts_have_the_least_makespan_there_is(rows, data):
    count = data.draw(st.integers(1, min(5, len(rows))))
    cuts = balanced_cuts(work_from(rows), [1.0] * count)
    assert Grid((cuts,)).shape == (len(rows),)
    assert len(cuts) == count + 1
    same = ([1.0] * count, [0.0] * count)
    assert slowest(rows, cuts, *same) == pytest.approx(least_makespan(rows, *same, empty=False), rel=1e-5)


@given(weighted_rows(), st.data())
def test_cuts_for_unlike_workers_have_the_least_makespan_but_for_rows_that_each_must_have(rows, data):
    count = data.draw(st.integers(1, min(4, len(rows))))
    shares = data.draw(st.lists(st.sampled_from([0.25, 0.5, 1.0, 3.0]), min_size=count, max_size=count))
    offsets = data.draw(st.lists(st.sampled_from([0.0, 2.0, 40.0]), min_size=count, max_size=count))
    cuts = balanced_cuts(work_from(rows), shares, offsets)
    assert Grid((cuts,)).counts == (count,)
    least = least_makespan(rows, shares, offsets, empty=True)
    for (start, stop), share, offset in zip(itertools.pairwise(cuts), shares, offsets, strict=True):
        work = sum(rows[start:stop])
        assert stop - start == 1 or work == 0 or offset + work / share <= least * (1 + 1e-5)


@given(st.data())
def test_work_between_places_is_spread_evenly(data):
    gaps = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    each = data.draw(st.lists(st.integers(0, 9), min_size=len(gaps), max_size=len(gaps)))
    rows = [float(one) for one, gap in zip(each, gaps, strict=True) for _ in range(gap)]
    assume(sum(rows) > 0)
    places = np.concatenate([[0], np.cumsum(gaps)])
    held = np.concatenate([[0.0], np.cumsum(np.multiply(each, gaps))])
    count = data.draw(st.integers(1, min(4, len(rows))))
    cuts = balanced_cuts(Work(places, held), [1.0] * count)
    same = ([1.0] * count, [0.0] * count)
    assert slowest(rows, cuts, *same) == pytest.approx(least_makespan(rows, *same, empty=False), rel=1e-5)


def test_a_long_axis_is_cut_evenly_to_the_row():
    length, count = 10**12, 1000
    work = Work(np.asarray([0, length // 4, length]), np.asarray([0.0, 3.0, 4.0]))
    held = np.diff(work.up_to(balanced_cuts(work, [1.0] * count)))
    np.testing.assert_allclose(held, 4.0 / count, rtol=1e-5)


def test_without_any_work_rows_are_cut_evenly():
    assert balanced_cuts(work_from([0.0] * 8), [1.0, 1.0]) == (0, 4, 8)
    assert balanced_cuts(work_from([0.0] * 8), [3.0, 1.0]) == (0, 6, 8)
    assert balanced_cuts(work_from([1e-310, *[0.0] * 7]), [1.0, 1.0]) == (0, 4, 8)
    assert balanced_cuts(work_from([1.0, 1e-310, 0.0, 1e-310, 1.0]), [1.0, 1.0])[1] in range(1, 5)


def test_parts_are_even_where_a_heavy_row_leaves_room():
    assert balanced_cuts(work_from([9.0, *[1.0] * 8]), [1.0] * 3) == (0, 1, 5, 9)
    assert balanced_cuts(work_from([9.0, *[1.0] * 8]), [1.0] * 3, [0.0, 4.0, 0.0]) == (0, 1, 3, 9)


def test_a_part_that_is_busy_with_something_else_gets_less():
    work = work_from([1.0] * 100)
    assert balanced_cuts(work, [1.0, 1.0], [0.0, 20.0]) == (0, 60, 100)
    assert balanced_cuts(work, [1.0, 1.0], [0.0, 400.0]) == (0, 99, 100)


def test_wanted_cuts_are_kept_where_they_are_good_enough():
    work = work_from([1.0] * 1000)
    assert balanced_cuts(work, [1.0, 1.0], None, [None, 504], 0.01) == (0, 504, 1000)
    assert balanced_cuts(work, [1.0, 1.0], None, [None, 504], 0.0) == (0, 500, 1000)
    moved_least = balanced_cuts(work, [1.0, 1.0], None, [None, 700], 0.01)
    assert moved_least == (0, 505, 1000)


@given(weighted_rows(), st.data())
def test_wanted_cuts_never_cost_more_than_the_slack(rows, data):
    count = data.draw(st.integers(1, min(4, len(rows))))
    wishes = st.none() | st.integers(0, len(rows))
    preferred = data.draw(st.lists(wishes, min_size=count, max_size=count))
    cuts = balanced_cuts(work_from(rows), [1.0] * count, None, preferred, 0.2)
    same = ([1.0] * count, [0.0] * count)
    assert Grid((cuts,)).counts == (count,)
    assert slowest(rows, cuts, *same) <= 1.2001 * least_makespan(rows, *same, empty=False)


@given(st.lists(st.integers(0, 12), max_size=6), st.integers(0, 5))
def test_parts_without_rows_get_one(inner, more):
    length = max(len(inner) + 1, max(inner, default=0)) + more
    cuts = np.asarray([0, *sorted(inner), length])
    found = with_rows(cuts)
    assert (np.diff(found) > 0).all()
    assert (found[0], found[-1]) == (0, length)
    for old, new in zip(itertools.pairwise(cuts.tolist()), itertools.pairwise(found.tolist()), strict=True):
        assert new[1] - new[0] == 1 or (old[0] <= new[0] and new[1] <= old[1])


def test_more_parts_than_rows_are_refused():
    with pytest.raises(ShapeError, match="3 rows in 4 parts"):
        balanced_cuts(work_from([1.0] * 3), [1.0] * 4)
    with pytest.raises(ShapeError, match="0 parts"):
        balanced_cuts(work_from([1.0] * 3), [])

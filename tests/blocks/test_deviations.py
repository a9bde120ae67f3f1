"""Deviations from the mean in one pass: their bits whatever the cuts, and how exact they are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matnb.blocks.kernels.reductions.deviations import (
    deviation_of_shares,
    deviation_share,
    num_deviation_nodes,
)
from matnb.blocks.sums import share_of

LENGTHS = [1, 2, 63, 64, 65, 128, 129, 1000, 4099]


def exact(x: np.ndarray) -> float:
    wide = x.astype(np.longdouble)
    return float(((wide - wide.mean()) ** 2).sum())


def cuts_of(draw: st.DataObject, length: int) -> list[tuple[int, int]]:
    inner = draw.draw(st.sets(st.integers(1, length - 1), max_size=5)) if length > 1 else set()
    return list(itertools.pairwise([0, *sorted(inner), length]))


@given(st.data())
def test_the_bits_are_those_of_the_whole_whatever_the_cuts(draw: st.DataObject):
    length = draw.draw(st.sampled_from(LENGTHS))
    dtype = draw.draw(st.sampled_from(["float64", "float32", "int64", "bool", "float16"]))
    x = (np.random.default_rng(length).standard_normal(length) * 5).astype(dtype)
    ranges = cuts_of(draw, length)
    shares = [deviation_share(x[a:b], (0,), 0, a) for a, b in ranges]
    assert [len(one) for one in shares] == [num_deviation_nodes(*one) for one in ranges]
    whole = deviation_share(x, (0,))
    assert deviation_of_shares(shares, ranges, 0).tobytes() == whole.tobytes()
    assert whole[0, 1].tobytes() == share_of(x, (0,)).tobytes()
    assert whole[0, -1] == pytest.approx(exact(x), rel=1e-14, abs=1e-30)


@settings(max_examples=30)
@given(st.data())
def test_lines_meet_as_elements_do_whichever_axes_are_cut(draw: st.DataObject):
    shape = draw.draw(st.sampled_from([(1, 1), (70, 1), (5, 130), (65, 3), (130, 64)]))
    x = np.random.default_rng(1).standard_normal(shape) + 1e6
    rows, columns = (cuts_of(draw, length) for length in shape)
    whole = deviation_share(x, (0, 1))
    by_rows = [deviation_share(x[a:b], (0, 1), 0, a) for a, b in rows]
    assert deviation_of_shares(by_rows, rows, 0).tobytes() == whole.tobytes()
    lines = []
    for a, b in rows:
        parts = [deviation_share(x[a:b, c:d], (1,), 1, c) for c, d in columns]
        lines.append(deviation_of_shares(parts, columns, 1))
    shares = [deviation_share(one, (0,), 0, a, True) for one, (a, _) in zip(lines, rows, strict=True)]
    assert deviation_of_shares(shares, rows, 0).tobytes() == whole.tobytes()
    assert deviation_share(np.concatenate(lines), (0,), None, 0, True).tobytes() == whole.tobytes()
    assert whole[0, 0, 1].tobytes() == share_of(x, (0, 1)).tobytes()


@pytest.mark.parametrize("offset", [0.0, 1e8, -1e12])
@pytest.mark.parametrize("length", [2, 5, 64, 700, 100_003])
def test_it_is_as_exact_as_two_passes_where_the_mean_is_large(length, offset):
    x = np.random.default_rng(length).standard_normal(length) + offset
    found = deviation_share(x, (0,))[0, -1]
    assert found == pytest.approx(exact(x), rel=1e-14)


def test_elements_that_are_alike_have_none_and_one_far_away_is_not_lost():
    assert deviation_share(np.full(1000, 0.1), (0,))[0, -1] <= 1e-28
    x = np.zeros(10_000)
    x[0] = 1e8
    assert deviation_share(x, (0,))[0, -1] == pytest.approx(exact(x), rel=1e-14)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("odd", [[np.nan], [np.inf], [-np.inf, np.inf], [1e300, -1e300]])
@pytest.mark.parametrize("length", [2, 70, 1000])
def test_what_is_not_finite_goes_through_as_in_numpy(odd, length):
    for place in (0, length - 2):
        x = np.ones(length)
        x[place : place + len(odd)] = odd
        expected = ((x - x.mean()) ** 2).sum()
        np.testing.assert_equal(deviation_share(x, (0,))[0, -1], expected)
        cut = [deviation_share(x[:1], (0,), 0, 0), deviation_share(x[1:], (0,), 0, 1)]
        np.testing.assert_equal(deviation_of_shares(cut, [(0, 1), (1, length)], 0)[0, -1], expected)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_a_single_element_that_is_not_finite_has_no_deviation_that_is_a_number(odd):
    assert np.isnan(deviation_share(np.array([odd]), (0,))[0, -1])
    assert deviation_share(np.array([3.0]), (0,))[0, -1] == 0.0


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_of_nothing_it_is_zero(shape):
    assert not deviation_share(np.empty(shape), tuple(range(len(shape)))).any()

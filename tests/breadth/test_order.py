"""Laws of what is in order: it is NumPy's whatever the cuts, and equal elements stay as they come."""

from __future__ import annotations

from typing import Any

import hypothesis.extra.numpy as arrays
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import matnb as mn
from matnb.blocks.formats import Dense
from matnb.blocks.kernels.sorting import ordering, uniques

DTYPES = ("float64", "float32", "int64", "uint8", "bool", "float16", "complex128")


ON_EACH = pytest.mark.session("two threads", "three workers")


@st.composite
def cut_arrays(draw: st.DrawFn) -> tuple[np.ndarray, list[int]]:
    """Draw an array of one axis with many equal elements, and cuts of it."""
    values = draw(
        arrays.arrays(
            np.dtype(draw(st.sampled_from(DTYPES))),
            draw(st.integers(1, 40)),
            elements=st.one_of(st.just(0), st.integers(0, 1)),
        )
    )
    if values.dtype.kind in "fc":
        special = draw(arrays.arrays(np.int8, values.shape, elements=st.integers(0, 12)))
        for place, one in enumerate((np.nan, np.inf, -np.inf, -0.0)):
            values[special == place] = one
    cuts = draw(st.sets(st.integers(1, values.size), max_size=5))
    return values, [0, *sorted(cuts - {values.size}), values.size]


@ON_EACH
@settings(max_examples=7, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut_arrays(), st.data())
def test_the_cuts_do_not_matter(drawn: tuple[np.ndarray, list[int]], data: Any) -> None:
    values, cuts = drawn
    x = mn.asarray(values, blocks=[cuts])
    np.testing.assert_array_equal(np.sort(x).compute(), np.sort(values))
    places = np.argsort(x).compute()
    np.testing.assert_array_equal(places, np.argsort(values, kind="stable"))
    down = mn.argsort(x, descending=True).compute()
    np.testing.assert_array_equal(values[down], np.sort(values)[::-1])
    assert sorted(down) == list(range(values.size))
    for mine, theirs in zip(
        np.unique(x, return_index=True, return_counts=True),
        np.unique(values, return_index=True, return_counts=True),
        strict=True,
    ):
        np.testing.assert_array_equal(mine.compute(), theirs)
    if values.dtype.kind != "c":
        method = data.draw(st.sampled_from(("nearest", "lower", "inverted_cdf")))
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(
                np.quantile(x, 0.3, method=method).compute(), np.quantile(values, 0.3, method=method)
            )


@pytest.mark.parametrize("dtype", ["float64", "bool"])
@pytest.mark.parametrize("lengths", [(9000, 4), (1, 7000), (3000, 0, 2500, 4096), (5000, 5000)])
def test_sorted_pieces_are_merged_as_a_stable_sort_does(dtype: str, lengths: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    pieces = []
    for length in lengths:
        values = rng.integers(0, 900, length).astype(dtype)
        if values.dtype.kind == "f":
            values[rng.random(length) < 0.01] = np.nan
        pieces.append(np.sort(values))
    both = np.concatenate(pieces)
    np.testing.assert_array_equal(ordering.merged([Dense(one) for one in pieces]).values, np.sort(both))
    starts = np.cumsum([0, *lengths[:-1]])
    places = [np.arange(length) + start for length, start in zip(lengths, starts, strict=True)]
    found = ordering.merged_places([Dense(one) for one in (*pieces, *places)]).values
    np.testing.assert_array_equal(found, np.argsort(both, kind="stable"))


def test_places_are_those_of_a_stable_sort() -> None:
    rng = np.random.default_rng(4)
    values = rng.integers(-5, 6, 20000) / 2
    values[values == 2] = np.nan
    values[::7] *= -1
    close = 1 + rng.integers(0, 4000, values.size) * 2.3e-16
    for one in (
        values,
        values.astype("float32"),
        close,
        np.where(rng.random(values.size) < 0.5, rng.random(values.size), close),  # keys need all their bits
        rng.integers(0, 2**64 - 1, values.size, dtype="uint64"),
        values > 0,
        rng.random(values.size).astype("float16"),
    ):
        np.testing.assert_array_equal(ordering.ordered_places(one), np.argsort(one, kind="stable"))


@pytest.mark.parametrize("dtype", ["float64", "bool"])
def test_of_equal_elements_a_part_keeps_only_new_ones(dtype: str) -> None:
    rng = np.random.default_rng(5)
    values = np.sort(rng.integers(0, 300, 20000).astype(dtype))
    if dtype == "float64":
        values[-50:] = np.nan
    cut = 12000
    found = []
    for part, (start, stop) in enumerate(((0, cut), (cut, values.size))):
        blocks = (Dense(np.array([[0], [cut], [values.size]])), Dense(values[max(start - 1, 0) : stop]))
        packed = uniques.distinct(blocks, part, start, True, True, False)
        found.append(
            [
                uniques.field_of([packed], name, stop - start, values.dtype, True, False).values
                for name in ("values", "starts")
            ]
        )
    theirs, counts = np.unique(values, return_counts=True)
    mine, starts = (np.concatenate(one) for one in zip(*found, strict=True))
    np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(np.diff(starts, append=values.size), counts)


@ON_EACH
def test_few_long_lanes_are_sorted_block_by_block() -> None:
    values = np.random.default_rng(1).random((140000, 2))
    x = mn.asarray(values, blocks=(4, 1))
    np.testing.assert_array_equal(np.sort(x, axis=0).compute(), np.sort(values, axis=0))
    np.testing.assert_array_equal(np.sort(x[:, :1], axis=0).compute(), np.sort(values[:, :1], axis=0))
    np.testing.assert_array_equal(
        np.quantile(x, [0.1, 0.7], axis=0).compute(), np.quantile(values, [0.1, 0.7], axis=0)
    )


@ON_EACH
def test_a_method_sorts_in_place_and_spares_a_slice_taken_before() -> None:
    x = mn.asarray(np.array([3, 1, 2]))
    before = x[:2]
    x.sort()
    assert x.compute().tolist() == [1, 2, 3]
    assert before.compute().tolist() == [3, 1]


@ON_EACH
def test_points_of_a_long_function_are_looked_up_where_they_are() -> None:
    rng = np.random.default_rng(2)
    places = np.sort(rng.random(150000))
    heights, values = rng.random(150000), rng.random(1000) * 1.2 - 0.1
    mine = np.interp(mn.asarray(values), mn.asarray(places), mn.asarray(heights))
    np.testing.assert_allclose(mine.compute(), np.interp(values, places, heights), rtol=1e-13)


@ON_EACH
def test_what_is_not_supported_says_so() -> None:
    x = mn.ones((4, 3))
    with pytest.raises(
        mn.errors.UnsupportedError, match=r"np\.unique\(axis=\) of an array with several axes"
    ):
        np.unique(x, axis=0)
    with pytest.raises(mn.errors.LoopBodyError, match=r"np\.unique"):
        mn.iterate(lambda s: np.unique(s), x, max_iterations=2)

"""Distinct values of each segment and the first k of each, against NumPy one segment at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from drawn_segments import Segments, drawn_segments
from hypothesis import example, given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.blocks.formats import Block
from matnb.errors import DTypeError, LoopBodyError, ShapeError
from matnb.expr.nodes import Expr
from matnb.lazy.evaluator import evaluator

pytestmark = pytest.mark.session("interpreter", "two threads")


def same(found: mn.nested.NestedArray, parts: list[np.ndarray]) -> None:
    assert len(found) == len(parts)
    for one, part in zip(found.tolist(), parts, strict=True):
        np.testing.assert_array_equal(np.array(one, part.dtype), part)


# A run of equal values that goes on in the next segment begins there again; one is in two blocks.
ACROSS = Segments(np.array([1, 1, 1, 2, 2, 2, 2, 2]), np.array([2, 3, 0, 3]), 3, "uniform")
NANS = Segments(np.array([np.nan, 1, np.nan, np.nan, np.nan]), np.array([3, 2]), 2, "uniform")


@given(drawn_segments())
@example(ACROSS)
@example(NANS)
@settings(max_examples=20)
def test_distinct_values_are_numpy_s_of_each_segment(drawn: Segments) -> None:
    segments = drawn.nested()
    found = mn.nested.unique_counts(segments)
    wanted = [np.unique(one, return_counts=True) for one in drawn.parts]
    assert found.values.dtype == drawn.values.dtype
    assert found.counts.dtype == np.int64
    same(found.values, [values for values, _ in wanted])
    same(found.counts, [counts for _, counts in wanted])
    same(segments.unique(), [values for values, _ in wanted])


def first_places(part: np.ndarray, k: int, largest: bool) -> np.ndarray:
    if not largest:
        return np.argsort(part, kind="stable")[:k]
    _, rank = np.unique(part, return_inverse=True)  # NaN is the last
    return np.argsort(-rank, kind="stable")[:k]


@given(drawn_segments(), st.integers(0, 12), st.booleans())
@example(ACROSS, 2, True)
@example(NANS, 2, True)
@settings(max_examples=20)
def test_the_first_k_are_those_of_a_stable_sort(drawn: Segments, k: int, largest: bool) -> None:
    found = drawn.nested().topk(k, largest)
    places = [first_places(one, k, largest) for one in drawn.parts]
    same(found.places, places)
    assert found.values.dtype == drawn.values.dtype
    same(found.values, [one[at] for one, at in zip(drawn.parts, places, strict=True)])


@pytest.mark.parametrize("k", [1, 9])
def test_places_in_rows_of_a_sparse_matrix_are_columns(k: int) -> None:
    values, columns = np.array([0.5, 0.9, 0.1, 0.7]), np.array([2, 7, 0, 5])
    plain = mn.nested.unflatten(values, [3, 0, 1])
    rows = mn.nested.NestedArray(plain.values, plain._structure, plain.strategy, mn.asarray(columns))
    assert rows.topk(k).places.tolist() == [[7, 2, 0][:k], [], [5]]


def test_what_has_no_order_or_number_is_refused() -> None:
    segments = mn.nested.from_lists([[1, 2], [3]])
    with pytest.raises(ShapeError, match=r"topk: k=-1; give at least 0"):
        segments.topk(-1)
    with pytest.raises(DTypeError, match=r"topk: k=1\.5; give an integer"):
        segments.topk(1.5)  # type: ignore[arg-type]  # what is refused
    for refused in (segments.astype(complex).unique, lambda: segments.astype(complex).topk(1)):
        with pytest.raises(DTypeError, match="complex numbers have no order"):
            refused()


@pytest.mark.parametrize("picked", [lambda one: one.unique(), lambda one: one.topk(1).values])
def test_inside_a_loop_other_lengths_are_refused(picked: Callable[[Any], Any]) -> None:
    segments = mn.nested.from_lists([[1.0, 2.0], [3.0]])
    with pytest.raises(LoopBodyError, match=r"(unique|topk) gives segments whose lengths depend"):
        mn.iterate(lambda x: picked(segments.with_values(x)).sum(), segments.values, max_iterations=2)


def test_no_value_comes_to_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = Segments(np.arange(6000) % 7, np.full(2000, 3), 6, "segmented")
    asked: list[int] = []
    original = type(evaluator()).value

    def noted(self: object, node: Expr) -> Block:
        asked.append(node.size)
        return original(self, node)

    monkeypatch.setattr(type(evaluator()), "value", noted)
    segments = drawn.nested()
    segments.unique()
    segments.topk(2)
    assert asked
    assert max(asked) < 1500  # summaries of structures


def test_functions_are_the_methods() -> None:
    N = mn.nested.from_lists([[2, 1, 2], [], [3, 3]])
    assert mn.nested.unique(N).tolist() == N.unique().tolist() == [[1, 2], [], [3]]
    one, other = mn.nested.topk(N, 1), N.topk(1)
    assert one[0].tolist() == other[0].tolist() == [[2], [], [3]]

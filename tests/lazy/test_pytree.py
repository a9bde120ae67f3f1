"""Nested values: taken apart and put together, whatever their nesting."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matnb.errors import DTypeError
from matnb.lazy.nesting import put_together, taken_apart


class Point(NamedTuple):
    x: object
    y: object


VALUES = st.recursive(
    st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        | st.builds(Point, inner, inner)
    ),
)


@given(VALUES)
def test_putting_together_undoes_taking_apart(value: object) -> None:
    leaves, nesting = taken_apart(value)
    again = put_together(nesting, leaves)
    assert again == value
    assert type(again) is type(value)
    assert len(list(nesting.paths("value"))) == len(leaves)


@given(VALUES)
def test_paths_lead_to_the_leaves(value: object) -> None:
    leaves, nesting = taken_apart(value)
    for path, leaf in zip(nesting.paths("value"), leaves, strict=True):
        assert eval(path, {"value": value}) == leaf


def test_nesting_reads_as_it_is_written() -> None:
    _, nesting = taken_apart({"a": [1, (2, 3)], "b": Point(4, ())})
    assert str(nesting) == "dict('a': list(array, tuple(array, array)), 'b': Point(array, tuple()))"
    assert "4 more" in str(taken_apart(list(range(10)))[1])


def test_dicts_are_matched_by_their_keys() -> None:
    leaves, nesting = taken_apart({"a": {"x": 1, "y": 2}, "b": 3})
    again, other = taken_apart({"b": 3, "a": {"y": 2, "x": 1}}, nesting)
    assert (again, other) == (leaves, nesting)
    assert taken_apart({"b": 3, "c": 4}, nesting)[1] != nesting


def test_a_key_that_is_no_constant() -> None:
    with pytest.raises(DTypeError, match="use strings or numbers"):
        taken_apart({(1, 2): 3})

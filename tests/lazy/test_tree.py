"""Nested values: taken apart and put together, whatever their tree."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import matnb as mn
from matnb.errors import DTypeError, ShapeError
from matnb.lazy import tree as tree_module
from matnb.lazy.tree import flatten, register_container, unflatten


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
    leaves, tree = flatten(value)
    again = unflatten(tree, leaves)
    assert again == value
    assert type(again) is type(value)
    assert len(list(tree.paths("value"))) == len(leaves)


@given(VALUES)
def test_paths_lead_to_the_leaves(value: object) -> None:
    leaves, tree = flatten(value)
    for path, leaf in zip(tree.paths("value"), leaves, strict=True):
        assert eval(path, {"value": value}) == leaf


def test_tree_reads_as_it_is_written() -> None:
    _, tree = flatten({"a": [1, (2, 3)], "b": Point(4, ())})
    assert str(tree) == "dict('a': list(array, tuple(array, array)), 'b': Point(array, tuple()))"
    assert "4 more" in str(flatten(list(range(10)))[1])


def test_dicts_are_matched_by_their_keys() -> None:
    leaves, tree = flatten({"a": {"x": 1, "y": 2}, "b": 3})
    again, other = flatten({"b": 3, "a": {"y": 2, "x": 1}}, tree)
    assert (again, other) == (leaves, tree)
    assert flatten({"b": 3, "c": 4}, tree)[1] != tree


def test_a_key_that_is_no_constant() -> None:
    with pytest.raises(DTypeError, match="use strings or numbers"):
        flatten({(1, 2): 3})


class Ring(NamedTuple):
    """Values of which a structure says more than it shows."""

    values: object
    names: str


def test_a_structure_that_differs_is_named_without_advice_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Named:
        def __init__(self, names: str) -> None:
            self.names = names

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Named) and self.names == other.names

        def __str__(self) -> str:
            return "of names"

    monkeypatch.setattr(tree_module, "_containers", dict(tree_module._containers))
    register_container(
        Ring,
        lambda ring: ((ring.values,), Named(ring.names)),
        lambda named, values: Ring(*values, named.names),
    )
    x = mn.arange(3.0)
    with pytest.raises(ShapeError, match=r"on the other: other structures$"):
        mn.cond(x.sum() > 0, lambda: Ring(x, "a"), lambda: Ring(x, "b"))
    with pytest.raises(ShapeError, match=r"not the state's structures, which stay the same .* to the next$"):
        mn.iterate(lambda ring: Ring(ring.values, "b"), Ring(x, "a"), max_iterations=2)

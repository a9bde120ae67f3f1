"""Axes and indices that a user gives: made plain, or refused with what is allowed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matnb.errors import DTypeError, IndexingError, ShapeError
from matnb.expr.nodes import Index
from matnb.lazy.indexing.keys import normalize_axes, normalize_key
from matnb.lazy.ufuncs import literal
from matnb.ops.interpret import interpret


def test_axes_are_normalized():
    assert normalize_axes(None, 3) == (0, 1, 2)
    assert normalize_axes(-1, 3) == (2,)
    assert normalize_axes((2, -3), 3) == (0, 2)
    assert normalize_axes(np.int64(1), 2) == (1,)
    assert normalize_axes((), 2) == ()
    with pytest.raises(ShapeError, match="axis 2 of an array of 2 axes: give -2 to 1"):
        normalize_axes(2, 2)
    with pytest.raises(ShapeError, match="twice"):
        normalize_axes((0, -2), 2)
    with pytest.raises(DTypeError, match=r"axis=1\.0"):
        normalize_axes((1.0,), 2)  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match=r"axis=0\.5"):
        normalize_axes(0.5, 2)  # type: ignore[arg-type]


@given(st.data())
def test_normalized_keys_pick_what_numpy_picks(drawn: st.DataObject):
    shape = tuple(drawn.draw(st.lists(st.sampled_from([0, 1, 2, 5]), min_size=1, max_size=3)))
    key: list[object] = []
    for length in shape[: drawn.draw(st.integers(0, len(shape)))]:
        numbers = st.integers(-length, length - 1) if length else st.nothing()
        key.append(drawn.draw(st.slices(length) | numbers))
    for extra in drawn.draw(st.lists(st.none(), max_size=2)) + drawn.draw(st.lists(st.just(...), max_size=1)):
        key.insert(drawn.draw(st.integers(0, len(key))), extra)
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    try:
        values[tuple(key)]
    except IndexError:  # an integer meant for another axis
        with pytest.raises(IndexingError, match="index"):
            normalize_key(tuple(key), shape)
        return
    node = Index(literal(values), normalize_key(tuple(key), shape))
    np.testing.assert_array_equal(interpret(node), values[tuple(key)])
    assert node.shape == values[tuple(key)].shape


def test_slices_that_pick_the_same_are_equal():
    assert normalize_key(slice(None), (5,)) == normalize_key(slice(-9, 99), (5,)) == (slice(0, 5, 1),)
    assert normalize_key(slice(0, 4, 3), (4,)) == normalize_key(slice(0, 9, 3), (4,))
    assert normalize_key(slice(3, 1), (5,)) == normalize_key(slice(0, 0, -1), (5,))
    assert normalize_key(slice(2, 3, 7), (5,)) == normalize_key(slice(2, 1, -1), (5,))


def test_bad_keys():
    with pytest.raises(IndexingError, match="index 3 is out of bounds for axis 1 of length 3"):
        normalize_key((0, 3), (2, 3))
    with pytest.raises(IndexingError, match="index -3 is out of bounds for axis 0 of length 2"):
        normalize_key(-3, (2, 3))
    with pytest.raises(IndexingError, match="too many indices: 3 for an array with 2 axes"):
        normalize_key((0, 0, 0), (2, 3))
    with pytest.raises(IndexingError, match=r"single '\.\.\.'"):
        normalize_key((..., ...), (2, 3))
    with pytest.raises(IndexingError, match="step"):
        normalize_key(slice(None, None, 0), (2, 3))
    for part in (1.0, "a", [0, 1], np.array([0, 1]), True, np.True_):
        with pytest.raises(IndexingError, match=type(part).__name__):
            normalize_key(part, (2, 3))

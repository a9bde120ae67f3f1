"""Nested arrays from and to Arrow and Awkward: the same lists, in the same memory where layouts agree."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from drawn_segments import Segments, drawn_segments
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.blocks.formats import Dense
from matnb.errors import DTypeError, ShapeError, UnsupportedError
from matnb.expr.client_data import held

pytestmark = pytest.mark.session("interpreter")


def lists_of(drawn: Segments) -> list[list[Any]]:
    return [one.tolist() for one in drawn.parts]


def memory_of(values: mn.DistArray) -> int:
    block = held(values.expression)
    assert isinstance(block, Dense)
    return block.values.ctypes.data


# NaN is no missing value in either library, but Python's lists of it are never equal.
def same(found: Any, wanted: list[Any]) -> None:
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


ARROW: dict[str, Callable[[pa.Array], Any]] = {
    "large list": lambda array: array,
    "list": lambda array: array.cast(pa.list_(array.type.value_type)),
    "chunks": lambda array: pa.chunked_array([array[:2], array[2:], array[:0]]),
    "as few chunks as there may be": lambda array: pa.chunked_array([array] * bool(len(array)), array.type),
    "slice": lambda array: pa.concat_arrays([array[-1:], array, array[:1]])[min(1, len(array)) :][
        : len(array)
    ],
    "stream": lambda array: Stream(pa.chunked_array([array])),
}


class Stream:
    """What knows Arrow's protocol alone."""

    def __init__(self, array: pa.ChunkedArray) -> None:
        self.array = array

    def __arrow_c_stream__(self, requested: object = None) -> object:
        return self.array.__arrow_c_stream__(requested)


@pytest.mark.parametrize("form", ARROW)
@given(drawn=drawn_segments())
@settings(max_examples=15)
def test_through_arrow_and_back(form: str, drawn: Segments) -> None:
    offsets = np.concatenate(([0], np.cumsum(drawn.counts)))
    given_array = pa.LargeListArray.from_arrays(offsets, pa.array(drawn.values))
    found = mn.nested.from_arrow(ARROW[form](given_array), strategy=drawn.strategy)
    assert found.dtype == drawn.values.dtype
    same(found.tolist(), lists_of(drawn))
    back = found.to_arrow()
    back.validate(full=True)
    assert back.type == given_array.type
    assert back.null_count == back.values.null_count == 0
    same(back.to_pylist(), lists_of(drawn))


@given(drawn=drawn_segments(("float64", "int8", "bool")), data=st.data())
@settings(max_examples=15)
def test_two_levels_through_both(drawn: Segments, data: st.DataObject) -> None:
    ak = pytest.importorskip("awkward")
    cut = data.draw(st.integers(0, drawn.counts.size))
    two = mn.nested.unflatten(drawn.nested(), [cut, 0, drawn.counts.size - cut])
    wanted = [lists_of(drawn)[:cut], [], lists_of(drawn)[cut:]]
    for found in (mn.nested.from_arrow(two.to_arrow()), mn.nested.from_awkward(two.to_awkward())):
        assert (found.depth, found.dtype) == (2, drawn.values.dtype)
        for one, other in zip(found.tolist(), wanted, strict=True):
            same(one, other)
    assert (
        two.to_awkward().type
        == ak.unflatten(ak.unflatten(drawn.values, drawn.counts), [cut, 0, len(wanted[2])]).type
    )


def indexed(ak: Any, array: Any) -> Any:
    # Values in another order, and where each is.
    count = len(array.layout.content)
    turned = ak.contents.IndexedArray(ak.index.Index64(np.arange(count)[::-1]), array.layout.content[::-1])
    return ak.Array(ak.contents.ListOffsetArray(array.layout.offsets, turned))


AWKWARD: dict[str, Callable[[Any, Any], Any]] = {
    "as it is": lambda ak, array: array,
    "rows in another order": lambda ak, array: array[np.argsort(np.arange(len(array))[::-1])][::-1],
    "a slice": lambda ak, array: ak.concatenate([array, array])[len(array) :],
    "no missing ones": lambda ak, array: ak.drop_none(ak.mask(array, np.ones(len(array), bool)), axis=0),
    "a mask of none": lambda ak, array: ak.mask(array, np.ones(len(array), bool)),
    "an index": lambda ak, array: indexed(ak, array),
    "from arrow": lambda ak, array: ak.from_arrow(ak.to_arrow(array)),
}


@pytest.mark.parametrize("form", AWKWARD)
@given(drawn=drawn_segments())
@settings(max_examples=15)
def test_through_awkward_and_back(form: str, drawn: Segments) -> None:
    ak = pytest.importorskip("awkward")
    array = ak.unflatten(drawn.values, drawn.counts)
    found = mn.nested.from_awkward(AWKWARD[form](ak, array), strategy=drawn.strategy)
    assert found.dtype == drawn.values.dtype
    same(found.tolist(), lists_of(drawn))
    back = found.to_awkward()
    assert back.type == array.type
    assert ak.array_equal(back, array, equal_nan=True)


def test_memory_is_shared_where_layouts_agree() -> None:
    ak = pytest.importorskip("awkward")
    values = np.arange(1000.0)
    array = ak.unflatten(values, [400, 0, 600])
    assert memory_of(mn.nested.from_awkward(array).values) == values.ctypes.data
    assert memory_of(mn.nested.from_awkward(array[:1]).values) == values.ctypes.data
    arrow = pa.ListArray.from_arrays([0, 400, 400, 1000], pa.array(values))
    assert memory_of(mn.nested.from_arrow(arrow).values) == values.ctypes.data
    assert memory_of(mn.nested.from_arrow(arrow[2:]).values) == values[400:].ctypes.data


def test_lists_of_a_fixed_length_and_of_nothing() -> None:
    ak = pytest.importorskip("awkward")
    rows = [[1, 2], [3, 4], [5, 6]]
    for array in (
        pa.array(rows, pa.list_(pa.int32(), 2)),
        pa.array([[0, 0], *rows], pa.list_(pa.int32(), 2))[1:],
    ):
        assert mn.nested.from_arrow(array).tolist() == rows
    assert mn.nested.from_awkward(ak.from_numpy(np.array(rows))).tolist() == rows
    assert mn.nested.from_awkward(ak.to_regular(ak.Array(rows))).tolist() == rows
    assert mn.nested.from_awkward(ak.from_numpy(np.zeros((2, 3, 1)))).tolist() == [[[0.0]] * 3] * 2
    assert mn.nested.from_awkward(ak.Array([[], []])).tolist() == [[], []]
    assert mn.nested.from_arrow(pa.array([[], []])).tolist() == [[], []]


@pytest.mark.parametrize(
    ("array", "error", "words"),
    [
        (pa.array([["a"], []]), DTypeError, "elements of type string: give lists of numbers"),
        (pa.array([[{"x": 1}]]), DTypeError, r"elements of type struct<x: int64>"),
        (pa.array([[1, None, None]]), DTypeError, "2 values are missing: drop or fill"),
        (pa.array([[1], None]), DTypeError, "1 lists are missing: drop or fill"),
        (pa.array([[None]]), DTypeError, "elements of type null"),
        (pa.array([1, 2]), ShapeError, "an array of int64 without lists: mn.asarray"),
        (pa.array(["a"]), DTypeError, "elements of type string"),
        (pa.array([[1.5]], pa.list_(pa.float16())), DTypeError, "float16"),
        (pa.array([[1]], pa.list_(pa.date32())), DTypeError, "elements of type date32"),
        (object(), DTypeError, "object is no Arrow array of lists"),
    ],
)
def test_what_arrow_has_beyond_numbers_is_refused(array: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=f"from_arrow: .*{words}"):
        mn.nested.from_arrow(array)


@pytest.mark.parametrize(
    ("items", "error", "words"),
    [
        ([["a"], []], DTypeError, "elements of type string: give lists of numbers"),
        (["ab"], DTypeError, "elements of type string"),
        (
            [[{"x": 1}]],
            DTypeError,
            "elements of type {'?x'?: int64}",
        ),
        ([[1, None, None]], DTypeError, "2 elements are missing: use ak.drop_none or ak.fill_none"),
        ([[1], None], DTypeError, "1 elements are missing"),
        ([[1], 2], DTypeError, "elements of type union"),
        ([1, 2], ShapeError, "an array of int64 without lists: mn.asarray"),
        ([[np.datetime64("2020-01-01")]], DTypeError, "datetime64"),
    ],
)
def test_what_awkward_has_beyond_numbers_is_refused(items: Any, error: type[Exception], words: str) -> None:
    ak = pytest.importorskip("awkward")
    with pytest.raises(error, match=words):
        mn.nested.from_awkward(ak.Array(items))


def test_complex_numbers_go_to_awkward_alone() -> None:
    ak = pytest.importorskip("awkward")
    segments = mn.nested.from_lists([[1j, 2.0], []])
    assert ak.to_list(segments.to_awkward()) == [[1j, 2.0], []]
    assert mn.nested.from_awkward(segments.to_awkward()).tolist() == [[1j, 2.0], []]
    with pytest.raises(DTypeError, match=r"Arrow has no type for complex128; N\.to_awkward"):
        segments.to_arrow()


def test_without_awkward_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "awkward", None)
    with pytest.raises(
        UnsupportedError, match=r"from_awkward needs awkward: .*from_arrow and to_arrow do not"
    ):
        mn.nested.from_awkward([[1]])
    with pytest.raises(UnsupportedError, match="to_awkward needs awkward"):
        mn.nested.from_lists([[1]]).to_awkward()

"""Segments of segments, against Awkward's arrays of two and three levels and plain lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawn_segments import Segments, drawn_segments
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.errors import OptionError, ShapeError

REDUCTIONS = ("sum", "prod", "any", "all", "count")
WHOLE = ("int64", "int8", "bool")


pytestmark = pytest.mark.session("interpreter", "two threads")


@st.composite
def counts_of(draw: st.DrawFn, num_inner: int) -> np.ndarray:
    """Draw lengths that add up to a number of segments."""
    ends = sorted(draw(st.lists(st.integers(0, num_inner), max_size=6)))
    if num_inner and draw(st.booleans()):
        ends.append(num_inner)  # so that the last is empty
    counts = np.diff([0, *ends, num_inner])
    return counts if num_inner else counts[: draw(st.integers(0, counts.size))]


@given(drawn_segments(WHOLE), st.data())
@settings(max_examples=20)
def test_levels_are_those_of_awkward(drawn: Segments, data: st.DataObject) -> None:
    ak = pytest.importorskip("awkward")
    counts = data.draw(counts_of(drawn.counts.size))
    again = data.draw(counts_of(counts.size))
    flat = ak.unflatten(drawn.values, drawn.counts)
    two = mn.nested.unflatten(drawn.nested(), counts, strategy=drawn.strategy)
    three = mn.nested.unflatten(two, again)
    for found, wanted in ((two, ak.unflatten(flat, counts)),
                          (three, ak.unflatten(ak.unflatten(flat, counts), again))):  # fmt: skip
        depth = wanted.ndim - 1
        assert (found.depth, len(found), found.num_values) == (depth, len(wanted), drawn.values.size)
        assert found.tolist() == wanted.tolist()
        assert found.counts.compute().tolist() == ak.num(wanted, axis=1).tolist()
        assert found.flatten().tolist() == ak.flatten(wanted, axis=1).tolist()
        assert found.segments().tolist() == ak.flatten(wanted, axis=depth).tolist()
        for name in REDUCTIONS:
            assert getattr(found, name)().tolist() == getattr(ak, name)(wanted, axis=-1).tolist(), name
        assert found.sum(axis=depth).tolist() == ak.sum(wanted, axis=-1).tolist()
        assert found.sort().tolist() == ak.sort(wanted, axis=-1).tolist()
        assert found.argsort().tolist() == ak.argsort(wanted, axis=-1, stable=True).tolist()
        assert (found + found.sum()).tolist() == (wanted + ak.sum(wanted, axis=-1)).tolist()
        if len(wanted):
            beside = np.arange(len(wanted))
            assert (beside * found).tolist() == (wanted * beside).tolist()


def example() -> tuple[Any, Any]:
    inner = mn.nested.unflatten([3.0, 1.0, 1.0, 5.0], [3, 0, 1])
    return inner, mn.nested.unflatten(inner, [2, 1])


def test_new_structures_stay_in_the_outer_levels() -> None:
    _, two = example()
    assert two.unique().tolist() == [[[1.0, 3.0], []], [[5.0]]]
    assert two.unique().count().tolist() == [[2, 0], [1]]
    assert two.topk(1).places.tolist() == [[[0], []], [[0]]]
    assert two.cumsum().tolist() == [[[3.0, 4.0, 5.0], []], [[5.0]]]
    assert two.scan("max", exclusive=True).values.compute().tolist() == [-np.inf, 3.0, 3.0, -np.inf]


def test_the_two_outermost_levels_change_roles() -> None:
    dense = np.arange(24).reshape(2, 3, 4)
    rows = mn.nested.unflatten(dense.ravel(), [4] * 6)
    assert mn.nested.unflatten(rows, [3, 3]).transpose().tolist() == dense.swapaxes(0, 1).tolist()
    _, two = example()
    assert two.transpose().tolist() == [[[3.0, 1.0, 1.0], [5.0]], [[]]]
    three = mn.nested.unflatten(two, [1, 1])
    assert three.transpose().tolist() == [two.tolist()]
    assert three[:0].transpose().tolist() == []
    with pytest.raises(AttributeError, match=r"'T'.*N\.transpose\(\) .*N\.flatten\(\)\.T"):
        two.T  # noqa: B018


def test_each_level_is_explained() -> None:
    _, two = example()
    three = mn.nested.unflatten(two, [1, 1])
    inner = two.flatten()
    lines = three.explain().splitlines()
    assert lines[0] == "2 segments, whose values are 2 segments:"
    assert lines[1] == "  segmented: 2 values are one block"
    assert "2 segments, whose values are 3 segments:" in lines
    assert "\n".join(lines).endswith("3 segments of 4 values:\n" + inner.explain())
    assert three.explain(stage="plan") == inner.explain(stage="plan")


def test_a_level_up_keeps_the_columns_of_a_sparse_matrix() -> None:
    inner, _ = example()
    rows = mn.nested.NestedArray(inner.values, inner._structure, inner.strategy, mn.asarray([2, 4, 6, 1]))
    joined = mn.nested.unflatten(rows, [2, 1]).segments()
    assert joined.positions.compute().tolist() == [2, 4, 6, 1]


def test_in_a_loop_the_structure_stays() -> None:
    _, two = example()
    found, _ = mn.iterate(lambda x: (two.with_values(x) / two.sum()).values, two.values, max_iterations=2)
    np.testing.assert_allclose(found.compute(), [3 / 25, 1 / 25, 1 / 25, 5 / 25])


def test_levels_that_do_not_match_are_refused() -> None:
    inner, two = example()
    with pytest.raises(ShapeError, match="unflatten: counts are for 2 segments, but there are 3"):
        mn.nested.unflatten(inner, [1, 1])
    with pytest.raises(OptionError, match=r"axis=1: .*N\.segments\(\) joins"):
        two.sum(axis=1)
    with pytest.raises(ShapeError, match="add: segment 0 has length 2 in one and 1 in the other"):
        two + mn.nested.unflatten(inner, [1, 2])
    with pytest.raises(ShapeError, match="3 segments"):
        two + inner
    with pytest.raises(ShapeError, match="multiply: an array of shape"):
        two * np.arange(4)


@pytest.mark.parametrize(
    "refused",
    [
        lambda inner, two: inner.with_values(two),
        lambda inner, two: inner.gather(inner),
        lambda inner, two: mn.nested.unflatten([1.0], two),
        lambda inner, two: mn.nested.from_offsets(inner, [0, 3]),
    ],
)
def test_nested_where_one_level_is_wanted(refused: Any) -> None:
    with pytest.raises(ShapeError, match="a nested array where one level is wanted"):
        refused(*example())


@pytest.mark.parametrize("lists", [[[1], [[2], [3, 4]]], [[[1, 2]]], [3]])
def test_lists_of_another_depth_are_refused(lists: Any) -> None:
    with pytest.raises(ShapeError, match=r"from_lists: element \d has .*: give a list of numbers"):
        mn.nested.from_lists(lists)


def test_a_deeper_array_takes_one_of_fewer_levels_with_it_on_either_side() -> None:
    inner, two = example()
    three = mn.nested.unflatten(two, [1, 1])
    assert (three.sum() + three).tolist() == (three + three.sum()).tolist()
    assert (two.sum() - two).tolist() == [[[2.0, 4.0, 4.0], []], [[0.0]]]
    np.testing.assert_array_equal((inner.sum() + inner).values.compute(), [8.0, 6.0, 6.0, 10.0])


def test_one_segment_is_one() -> None:
    inner = mn.nested.from_lists([[1], [2, 3]])
    assert repr(mn.nested.unflatten(inner, [2])).startswith("DeepNestedArray: 1 segment of ")
    with pytest.raises(ShapeError, match="counts are for 1 segment, but there are 2"):
        mn.nested.unflatten(inner, [1])

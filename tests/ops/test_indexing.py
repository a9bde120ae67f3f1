"""Indices known at run time, assignment to elements, values by label, draws in loops: recorded."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from results import check, value

import matnb as mn
from matnb.blocks.formats import Dense
from matnb.errors import (
    DTypeError,
    IndexingError,
    OptionError,
    ShapeError,
    UnsupportedError,
)
from matnb.expr import client_data
from matnb.expr.nodes import Create, Index
from matnb.ops.indexing import Pick, Put
from matnb.ops.interpret import interpret
from matnb.ops.maps import Draw
from matnb.passes import optimize


def unknown(number: int, dtype: object = np.int64) -> mn.DistArray:
    """A whole number that only a run can tell."""
    return mn.full(1, number, dtype).max()


def assigned(array: mn.DistArray, key: object, new: object) -> mn.DistArray:
    array[key] = new
    return array


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...], steps: bool) -> tuple[tuple, tuple]:
    """The same index for matnb, some of its numbers known at run time only, and for NumPy."""
    mine, theirs = [], []
    for length in shape[: draw(st.integers(0, len(shape)))]:
        if length and draw(st.booleans()):
            number = draw(st.integers(-length, length - 1))
            mine.append(unknown(number) if draw(st.booleans()) else number)
            theirs.append(number)
        else:
            low, high = sorted(draw(st.lists(st.integers(0, length), min_size=2, max_size=2)))
            mine.append(slice(low, high, draw(st.sampled_from([1, 2, -1] if steps else [None, 1]))))
            theirs.append(mine[-1])
    if draw(st.booleans()) and len(mine) < len(shape):
        rest = draw(st.integers(0, len(mine)))
        for one in (mine, theirs):
            one.insert(rest, ...)
        # what comes after ... belongs to the last axes, so it may not fit any more
    return tuple(mine), tuple(theirs)


SHAPES = st.sampled_from([(), (4,), (3, 4), (1, 3), (2, 3, 4), (0, 3)])


@given(st.data())
def test_reading_is_numpys(drawn: st.DataObject):
    shape = drawn.draw(SHAPES)
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    mine, theirs = drawn.draw(keys(shape, steps=True))
    try:
        expected = values[theirs]
    except IndexError:
        with pytest.raises(IndexError):
            value(mn.asarray(values)[mine])
        return
    check(mn.asarray(values)[mine], expected, str(theirs))


@given(st.data())
def test_assignment_is_numpys(drawn: st.DataObject):
    shape = drawn.draw(SHAPES)
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(float)
    mine, theirs = drawn.draw(keys(shape, steps=False))
    array = mn.asarray(values)
    before = array + 0
    expected = values.copy()
    try:
        target = expected[theirs].shape
    except IndexError:
        with pytest.raises(IndexError):
            value(assigned(array, mine, 1))
        return
    new = drawn.draw(st.sampled_from([7, -np.arange(np.prod(target, dtype=int)).reshape(target), True]))
    if len(target) > 1 and drawn.draw(st.booleans()):
        new = -np.arange(target[-1])
    assigned(array, mine, new)
    expected[theirs] = new
    check(array, expected, f"{theirs} = {new}")
    check(before, values)


def test_numbers_meet_plain_ones_and_ellipses():
    values = np.arange(24).reshape(2, 3, 4)
    A = mn.asarray(values)
    check(A[..., unknown(-2)], values[..., -2])
    check(A[1, unknown(2)], values[1, 2])
    check(A[1, ..., unknown(3)], values[1, ..., 3])
    check(A[unknown(1), None, :, 0], values[1, None, :, 0])
    check(A[:, unknown(1), None, ..., 2], values[:, 1, None, ..., 2])
    A[..., unknown(-2)] = 50
    A[1, ..., unknown(3)] = 60
    values[..., -2] = 50
    values[1, ..., 3] = 60
    check(A, values)


def test_numbers_without_axes_are_plain_where_they_are_known():
    x = mn.arange(5.0)
    assert x[mn.asarray(2)].expression is x[2].expression
    assert isinstance(x[unknown(2)].expression, Pick)
    with pytest.raises(IndexingError, match="index 5 is out of bounds for axis 0 of length 5"):
        x[mn.asarray(5)]


def test_reading_one_row_drops_the_axis_and_is_dense():
    dense = np.arange(12.0).reshape(3, 4)
    A = mn.asarray(sp.csr_array(dense))
    for mine, expected in (
        (A[unknown(1)], dense[1]),
        (A[:, unknown(-1)], dense[:, -1]),
        (A[unknown(2), unknown(3)], dense[2, 3]),
        (A[1:, unknown(0)], dense[1:, 0]),
    ):
        assert not mine.sparse
        check(mine, expected)
    assert A[...].expression is A.expression


def test_an_index_out_of_range_is_found_in_the_run():
    for array in (mn.arange(3.0), mn.asarray(sp.csr_array(np.eye(3)))):
        with pytest.raises(IndexingError, match="index 3 is out of bounds for axis 0 of length 3"):
            value(array[unknown(3)])
    x = mn.arange(3.0)
    x[unknown(-4)] = 1
    with pytest.raises(IndexError, match="index -4 is out of bounds for axis 0 of length 3"):
        value(x)


def test_indices_of_other_kinds_are_refused():
    x = mn.arange(4.0)
    with pytest.raises(IndexingError, match="dtype float64: give integers"):
        x[unknown(1, np.float64)]
    with pytest.raises(IndexingError, match="too many indices: 2 for an array with 1 axes"):
        x[unknown(1), unknown(1)]
    with pytest.raises(IndexingError, match="type list"):
        x[[1.5, 2]]


def test_assignments_of_other_kinds_are_refused():
    x = mn.arange(6)
    before = x.expression
    refused: list[tuple[object, object, type[Exception], str]] = [
        (None, np.ones((2, 6), int), ShapeError, "where a new axis is"),
        (slice(0, 3), np.ones(2, int), ShapeError, r"\(2,\)"),
        (slice(0, 1), np.ones((1, 3), int), ShapeError, r"\(3,\)"),
        (0, float("nan"), OptionError, "nan cannot be stored in an array of dtype int64"),
        (0, 2**63, DTypeError, "does not fit dtype int64"),
        (0, float("inf"), DTypeError, "does not fit dtype int64"),
        (0, 1j, DTypeError, "1j"),
    ]
    for key, new, error, text in refused:
        with pytest.raises(error, match=text):
            x[key] = new
    assert x.expression is before


def test_assignment_is_a_new_version():
    x = mn.zeros(3)
    other, total, alias = x, x.sum(), x.copy()
    x[1] = 5
    assert other is x
    check(x, [0.0, 5, 0])
    check(total, 0.0)
    check(alias, np.zeros(3))
    x[:] = mn.arange(3)  # nothing of the old one is left to read
    assert not any(isinstance(one, Put) for one in (x.expression, *x.expression.operands))
    check(x, np.arange(3.0))
    x[...] = mn.asarray(sp.csr_array(np.eye(3)))[1:2].sum(axis=0)
    check(x, [0.0, 1, 0])
    A = mn.zeros((3, 3))
    A[0:2] = mn.eye(3)[0:2]
    check(A, [[1.0, 0, 0], [0, 1, 0], [0, 0, 0]])
    before = A.expression
    A[2:2] = 7
    assert A.expression is before
    check(A, [[1.0, 0, 0], [0, 1, 0], [0, 0, 0]])
    x[unknown(0)] += 2
    check(x, [2.0, 1, 0])


@given(st.data())
def test_gather_is_numpys(drawn: st.DataObject):
    shape = drawn.draw(st.sampled_from([(4,), (3, 2), (2, 3, 2)]))
    values = np.arange(np.prod(shape)).reshape(shape)
    dtype = drawn.draw(st.sampled_from([np.int64, np.int32, np.uint8]))
    low = 0 if dtype is np.uint8 else -shape[0]
    index = np.array(drawn.draw(st.lists(st.integers(low, shape[0] - 1), max_size=5)), dtype)
    found = mn.asarray(values)[mn.asarray(index)]
    assert isinstance(found.expression, Pick)
    check(found, values[index])
    check(mn.asarray(values)[mn.asarray(index), ...], values[index])


def test_gather_is_in_range():
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 of length 3"):
        value(mn.arange(3.0)[mn.arange(2, 5)])


IDENTITIES = {"plus": 0, "times": 1, "min": np.inf, "max": -np.inf, "lor": False, "land": True}


@pytest.mark.parametrize("monoid", IDENTITIES)
def test_values_of_a_label_are_combined(monoid: str):
    rng = np.random.default_rng(0)
    labels = rng.choice([0, 2, 3, 5], 20)
    fold = {
        "plus": np.sum, "times": np.prod, "min": np.min, "max": np.max, "lor": np.any, "land": np.all,
    }[monoid]  # fmt: skip
    for values in (rng.random(20), rng.integers(0, 2, (20, 3)).astype(float)):
        found = mn.scatter_reduce(values, labels, 6, monoid)
        expected = [
            fold(values[labels == label], axis=0)
            if label in labels
            else np.full(values.shape[1:], IDENTITIES[monoid])
            for label in range(6)
        ]
        check(found, np.array(expected))
    check(mn.scatter_reduce(np.array([3, 4], np.int8), np.array([1, 1], np.uint8), 2), np.array([0, 7]))


def test_scatter_reduce_says_what_it_takes():
    values, labels = np.ones(3), np.array([0, 1, 2])
    with pytest.raises(OptionError, match="no monoid 'mean'; there are 'plus'"):
        mn.scatter_reduce(values, labels, 3, "mean")
    with pytest.raises(OptionError, match="give an integer"):
        mn.scatter_reduce(values, labels, 3.0)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="negative"):
        mn.scatter_reduce(values, labels, -1)
    with pytest.raises(ShapeError, match="give one a value"):
        mn.scatter_reduce(values, labels[:2], 3)
    with pytest.raises(IndexingError, match="give integers"):
        mn.scatter_reduce(values, labels / 1, 3)
    with pytest.raises(UnsupportedError, match="dense"):
        mn.scatter_reduce(mn.eye(3), labels, 3)
    with pytest.raises(DTypeError, match="identity"):
        mn.scatter_reduce(values + 1j, labels, 3, "min")
    with pytest.raises(IndexingError, match="label 2 at position 2: labels go from 0 to 1"):
        value(mn.scatter_reduce(values, labels, 2))


def test_draws_differ_from_one_iteration_to_the_next():
    rng = mn.random.default_rng(5)
    draws = {
        "uniform": lambda: rng.uniform(2, 3, 50),
        "normal": lambda: rng.normal(0, 1, 50),
        "integers": lambda: rng.integers(0, 2**60, 50),
    }
    for draw in draws.values():
        start = draw()
        assert isinstance(start.expression, Create)  # as ever outside of loops
        x, _, rows = mn.iterate(lambda x, draw=draw: draw(), start, max_iterations=4, collect=lambda x: x)
        kept = value(rows)
        assert len(np.unique(kept)) == kept.size
        assert len(np.intersect1d(kept, value(start))) == 0
        np.testing.assert_array_equal(kept[-1], value(x))


def test_draws_of_nested_loops_follow_both_numbers():
    rng = mn.random.default_rng(5)

    def outer(x: mn.DistArray) -> mn.DistArray:
        y, _ = mn.iterate(lambda y: y + rng.integers(0, 2**50, 3), x, max_iterations=3)
        return y

    def rows(count: int) -> np.ndarray:
        rng._streams = 0
        _, _, kept = mn.iterate(outer, mn.zeros(3, int), max_iterations=count, collect=lambda x: x)
        return value(kept)

    found = rows(3)
    steps = np.diff(np.concatenate([np.zeros((1, 3), int), found]), axis=0)
    assert len(np.unique(steps)) == steps.size
    np.testing.assert_array_equal(rows(2), found[:2])


def test_a_draw_is_made_in_the_cuts_asked_for():
    numbers = (unknown(3).expression,)
    creation = mn.random.default_rng(0).random(10).expression.creation
    draw = Draw(creation, numbers)
    assert draw.shape == (10,)
    assert interpret(draw).tolist() != interpret(Create(creation)).tolist()
    (same,) = optimize({"x": draw}).values()
    assert same is draw


def test_nodes_keep_their_fields_on_other_operands():
    x, k, j = mn.asarray(np.ones((3, 4))), unknown(1), unknown(2)
    x[k, j] = k + 0.5
    call = mn.replicated(lambda a, b: (a, b), k, j)[1].expression
    for node in (x.expression, x[k].expression, x[mn.arange(2)].expression, call, call.operands[0],
                 mn.scatter_reduce(x, mn.arange(3), 2).expression):  # fmt: skip
        others = [(one + 0).expression for one in map(mn.DistArray, node.operands[1:])]
        turned = node.with_operands(node.operands[0], *others)
        assert turned.operands == (node.operands[0], *others)
        assert turned.with_operands(*node.operands) is node
    put = x.expression
    assert isinstance(put, Put)
    turned = put.with_operands(put.operand, put.value, *reversed(put.inputs))
    assert isinstance(turned, Put)
    assert turned.inputs == tuple(reversed(put.inputs))
    assert turned is not put
    assert not isinstance(put.operand, Index)


def test_places_are_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every ``x[places]`` asks whether all are there: of the same places it is known by then."""
    looked = []

    class Watched(np.ndarray):
        def min(self, *args: object, **options: object) -> object:
            looked.append(self.shape)
            return super().min(*args, **options)

    places = np.random.default_rng(0).integers(-50, 90, 1000)
    node = mn.asarray(places).expression
    block = client_data.held(node)
    assert isinstance(block, Dense)
    monkeypatch.setitem(client_data._held, node, Dense(block.values.view(Watched)))
    for length in (100, 100, 90):
        mn.asarray(np.arange(float(length)))[mn.asarray(places)]
    assert looked == [(1000,)]
    for length in (89, 49):  # of which the largest, or the least, is none
        with pytest.raises(IndexingError, match=f"out of bounds for axis 0 of length {length}"):
            mn.asarray(np.arange(float(length)))[mn.asarray(places)]

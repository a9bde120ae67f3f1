"""Assignment and gathering in reused memory: in place where the old version is dead."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pytest

from matnb.backend.tasks.executor import PreparedTask, StepMemory, _cuts, execute, in_turn
from matnb.blocks.formats import Dense
from matnb.errors import IndexingError
from matnb.program.operators import Fill, GatherAt, JoinWindow, PutAt, PutEachAt, PutWindow, TakeWindow
from matnb.program.plan import Step

Access: TypeAlias = PutAt | PutEachAt | GatherAt | TakeWindow | JoinWindow | PutWindow


class Taken:
    """Memory with poison in it, and what was taken."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []

    def take(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        self.arrays.append(np.full(shape, np.nan if dtype.kind == "f" else 77, dtype))
        return self.arrays[-1]


def read_only(array: np.ndarray) -> Dense:
    view = array.view()
    view.flags.writeable = False
    return Dense(view)


def run(operator: Access, values: list[Dense], out: np.ndarray | None) -> tuple[Dense, Taken]:
    taken = Taken()
    memory = StepMemory(taken.take, taken.arrays.append, out, True)
    return prepared(operator, tuple(range(len(values))), len(values)).run(values, memory), taken


def prepared(operator: Access, arguments: tuple[int, ...], num_inputs: int) -> PreparedTask:
    return PreparedTask((Step(operator, arguments),), num_inputs, in_turn)


PUT = PutAt(((2, 9, 1), None), ((4, 8), (0, 3)), (10, 3))


@pytest.mark.parametrize("column", [1, -3])
def test_an_assignment_is_made_in_place_in_given_or_in_taken_memory(column: int):
    values = [read_only(np.arange(12.0).reshape(4, 3)), Dense(np.arange(4)), Dense(np.asarray(column))]
    expected = execute(PUT, values).values
    fresh, taken = run(PUT, values, None)
    assert [fresh.values is one for one in taken.arrays] == [True]
    np.testing.assert_array_equal(fresh.values, expected)
    out = np.full((4, 3), np.nan)
    assert run(PUT, values, out)[0].values is out
    np.testing.assert_array_equal(out, expected)
    own = np.arange(12.0).reshape(4, 3)
    in_place, taken = run(PUT, [read_only(own), *values[1:]], own)
    assert in_place.values is own
    assert taken.arrays == []
    np.testing.assert_array_equal(own, expected)


def test_a_block_beside_the_place_stays():
    block = read_only(np.arange(12.0).reshape(4, 3))
    beside = PutAt((None, (0, 3, 1)), ((4, 8), (0, 3)), (10, 3))
    value, taken = run(beside, [block, Dense(np.ones(3)), Dense(np.asarray(2))], None)
    assert value is block
    assert taken.arrays == []
    out = np.empty((4, 3))
    np.testing.assert_array_equal(
        run(beside, [block, Dense(np.ones(3)), Dense(np.asarray(2))], out)[0].values, block.values
    )


def test_only_the_array_assigned_to_may_be_overwritten():
    def overwritten(arguments: tuple[int, ...], num_inputs: int) -> tuple[bool, ...]:
        return prepared(PUT, arguments, num_inputs).may_overwrite

    assert overwritten((0, 1, 2), 3) == (True, False, False)
    assert overwritten((1, 0, 2), 3) == (False, True, False)
    assert overwritten((0, 0, 1), 2) == (False, False)


def test_values_at_many_places_are_written_in_place():
    values = [
        read_only(np.zeros((3, 2))),
        Dense(np.array([-1, 5, 4, -1, 0])),
        Dense(np.arange(10.0).reshape(5, 2)),
    ]
    put = PutEachAt(3, 7)  # the block has the places 3 to 5 of 7
    expected = np.array([[0.0, 0], [4, 5], [2, 3]])
    fresh, taken = run(put, values, None)
    assert fresh.values is taken.arrays[0]
    np.testing.assert_array_equal(fresh.values, expected)
    np.testing.assert_array_equal(execute(put, values).values, expected)
    own = np.zeros((3, 2))
    in_place, taken = run(put, [read_only(own), *values[1:]], own)
    assert in_place.values is own
    assert taken.arrays == []
    np.testing.assert_array_equal(own, expected)
    assert prepared(put, (0, 1, 2), 3).may_overwrite == (True, False, False)
    far = np.array([2**31 - 1], np.int32)
    assert execute(
        PutEachAt(2**31 - 1, 2**31), [Dense(np.zeros(1)), Dense(far), Dense(np.ones(()))]
    ).values == [1]


@pytest.mark.parametrize("start", [0, 2, 3, 4, 5, 6, 7])
def test_a_stretch_is_written_in_place(start: int):
    put = PutWindow(0, (4, 7), 9, 2)  # of places 4 to 6 of 9
    values = [read_only(np.zeros((3, 2))), Dense(np.array([[1.0], [2.0]])), Dense(np.asarray(start))]
    whole = np.zeros((9, 2))
    whole[start : start + 2] = [[1.0], [2.0]]
    np.testing.assert_array_equal(execute(put, values).values, whole[4:7])
    own = np.zeros((3, 2))
    in_place, taken = run(put, [read_only(own), *values[1:]], own)
    assert in_place.values is own
    assert taken.arrays == []
    np.testing.assert_array_equal(own, whole[4:7])
    fresh, taken = run(put, values, None)
    assert (fresh is values[0]) == (start in (0, 2, 7))  # beside the block
    np.testing.assert_array_equal(fresh.values, whole[4:7])
    assert prepared(put, (0, 1, 2), 3).may_overwrite == (True, False, False)


def test_a_stretch_of_one_block_is_a_view_and_another_takes_its_memory():
    blocks = [read_only(np.arange(6.0).reshape(3, 2)), read_only(np.arange(6.0, 10).reshape(2, 2))]
    whole = np.arange(10.0).reshape(5, 2)
    take, out = TakeWindow(0, (0, 3), 5, 2, (0, 2), True), np.empty((2, 2))
    for start, block in ((0, 0), (1, 0), (2, None), (3, 1)):
        values = [Dense(np.asarray(start)), *blocks]
        found, taken = run(take, values, None)
        np.testing.assert_array_equal(found.values, whole[start : start + 2])
        if block is None:
            assert found.values is taken.arrays[0]
        else:
            assert not taken.arrays
            assert np.shares_memory(found.values, blocks[block].values)
        assert run(take, values, out)[0].values is out
        np.testing.assert_array_equal(out, whole[start : start + 2])
        assert not any(np.shares_memory(execute(take, values).values, one.values) for one in blocks)
    columns = TakeWindow(1, (0,), 2, 1, (0, 1), True)  # not in C order
    found, taken = run(columns, [Dense(np.asarray(1)), blocks[0]], None)
    assert found.values is taken.arrays[0]
    part = TakeWindow(0, (3,), 5, 2, (1, 2), False)  # the second place, of the later block alone
    assert [len(run(part, [Dense(np.asarray(one)), blocks[1]], None)[0].values) for one in (0, 1, 2)] == [
        0,
        0,
        1,
    ]
    for index in (-1, 4):
        with pytest.raises(IndexingError, match=f"a slice of 2 from {index} on axis 0 of length 5"):
            execute(take, [Dense(np.asarray(index)), *blocks])
    joined, taken = run(
        JoinWindow(0, (2, 2), np.dtype(float), False), [Dense(whole[:0]), Dense(whole[:2])], None
    )
    assert joined.values is taken.arrays[0]
    np.testing.assert_array_equal(joined.values, whole[:2])


def test_a_gather_takes_its_memory():
    operand, index = Dense(np.arange(12).reshape(4, 3)), Dense(np.array([3, -4, 1]))
    value, taken = run(GatherAt(), [operand, index], None)
    assert value.values is taken.arrays[0]
    np.testing.assert_array_equal(value.values, operand.values[[3, 0, 1]])
    out = np.empty((3, 3), int)
    assert run(GatherAt(), [operand, index], out)[0].values is out


def test_an_array_is_filled_from_as_many_values_as_it_has_parts() -> None:
    fill = Fill((((0, 2),), ((2, 5),)), (5,), np.dtype(float))
    parts = [Dense(np.arange(2.0)), Dense(np.arange(3.0))]
    np.testing.assert_array_equal(execute(fill, parts).values, [0, 1, 0, 1, 2])
    with pytest.raises(ValueError, match="shorter"):
        execute(fill, parts[:1])  # whose rest would be whatever was in the memory


@pytest.mark.parametrize("start", [0, 5, 63, 64, 1000])
@pytest.mark.parametrize(("begin", "end"), [(0, 1000), (37, 500), (64, 191), (0, 128)])
def test_parts_of_a_sum_begin_where_its_leaves_do(begin: int, end: int, start: int) -> None:
    size = 64
    cuts = _cuts(begin, end, size, start)
    assert (cuts[0], cuts[-1]) == (begin, end)
    assert all((start + one) % size == 0 for one in cuts[1:-1])
    lengths = np.diff(cuts)
    assert lengths.min() > 0
    assert lengths.max() <= 2 * size
    assert set(lengths[1:-1]) <= {size}

"""Who sends what: once what stays, each time what changes, and of that no more than is touched."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from matnb.backend.gang.exchange import Owners, is_worth_packing, plan_exchange, touched_places
from matnb.backend.gang.liveness import BatchPlace, PartialRead, RepeatPlace, outline
from matnb.backend.tasks.registers import Register, parted
from matnb.blocks.formats import Dense, Empty, csr_block
from matnb.blocks.kernels.shaping.packing import can_pack, pack, touched, unpack
from matnb.program.kinds import MAP
from matnb.program.operators import Flip, Join, Multiply, Operator
from matnb.program.plan import Step, Task
from matnb.program.program import Batch, Iterate, Program

FLOAT = np.dtype(np.float64)
PRODUCT = Multiply("plus_times", FLOAT)


def task(key: str, owner: int, inputs: tuple[str, ...], *steps: tuple[Operator, tuple[int, ...]]) -> Task:
    return Task(key, tuple(Step(*step) for step in steps), inputs, owner, MAP)


def planned(*tasks: Task, results: tuple[str, ...] = ("y0",)) -> tuple[RepeatPlace, BatchPlace]:
    """Return the places of a loop over x0 of member 0 and x1 of member 1, given A of 0 and B of 1."""
    loop = Iterate(
        (("x0",), ("x1",)), (("f0",), ("f1",)), (("y0",), ("x1",)), "limit", None, "i", "taken",
        (Batch(tasks, results),),
    )  # fmt: skip
    given = {"A": 0, "B": 1, "f0": 0, "f1": 1, "limit": 0}
    owners = given | {"x0": 0, "x1": 1, "i": 0, "taken": 0}
    program = Program((loop,), given, owners, frozenset({"i", "taken"}), ("x0", "x1"))
    places = outline(program)
    plan_exchange(places, Owners(program, places), {one.key: parted(one) for one in tasks})
    (repeat,) = places
    assert isinstance(repeat, RepeatPlace)
    (batch,) = repeat.body
    assert isinstance(batch, BatchPlace)
    return repeat, batch


def test_what_stays_is_sent_once_and_what_changes_each_time():
    repeat, batch = planned(task("y0", 0, ("x0", "x1", "B", "i"), (Flip((0,)), (1,)), (Flip((0,)), (2,))))
    assert repeat.sends == {"B": (0,)}
    assert batch.sends == {"x1": (0,)}
    assert not repeat.wanted
    assert repeat.live == {"x0", "x1"}
    assert {"A", "limit", "f0"}.isdisjoint(repeat.boundary)


def test_entries_are_enough_for_products_with_what_stays():
    join = (Join(((0,), (4,)), (9,), FLOAT, False), (1, 2))
    repeat, _ = planned(task("y0", 0, ("A", "x0", "x1"), join, (PRODUCT, (0, 3))))
    ((_, wanted),) = repeat.wanted
    assert wanted == PartialRead("x1", 1, 0, (("A", 4),), 5)


@pytest.mark.parametrize(("shape", "is_enough"), [((9, 3), True), ((9, 3, 2), False)])
def test_rows_are_enough_for_products_with_matrices(shape, is_enough):
    join = (Join(((0, 0, 0)[: len(shape)], (4, 0, 0)[: len(shape)]), shape, FLOAT, False), (1, 2))
    repeat, _ = planned(task("y0", 0, ("A", "x0", "x1"), join, (PRODUCT, (0, 3))))
    assert [wanted for _, wanted in repeat.wanted] == [PartialRead("x1", 1, 0, (("A", 4),), 5)] * is_enough


def test_entries_are_enough_through_a_join_of_its_own():
    whole = task("whole", 0, ("x0", "x1"), (Join(((0,), (4,)), (9,), FLOAT, False), (0, 1)))
    repeat, _ = planned(whole, task("y0", 0, ("A", "whole"), (PRODUCT, (0, 1))))
    ((_, wanted),) = repeat.wanted
    assert wanted == PartialRead("x1", 1, 0, (("A", 4),), 5)
    repeat, _ = planned(whole, task("y0", 0, ("A", "whole"), (PRODUCT, (0, 1))), results=("y0", "whole"))
    assert repeat.wanted  # nothing reads it afterwards, whatever the batch calls its results


@pytest.mark.parametrize(
    "steps",
    [
        [(PRODUCT, (0, 1)), (Flip((0,)), (1,))],  # read otherwise, too
        [(Multiply("plus_times", FLOAT, True), (0, 1))],
        [(PRODUCT, (1, 0))],
        [(Flip((0, 1)), (0,)), (PRODUCT, (2, 1))],
    ],
)
def test_entries_are_not_enough_for_anything_else(steps):
    repeat, batch = planned(task("y0", 0, ("A", "x1"), *steps))
    assert batch.sends == {"x1": (0,)}
    assert not repeat.wanted


def test_entries_are_not_enough_where_the_sparse_block_changes():
    changing = task("M", 0, ("x0",), (Flip((0,)), (0,)))
    repeat, _ = planned(changing, task("y0", 0, ("M", "x1"), (PRODUCT, (0, 1))))
    assert not repeat.wanted


def test_touched_places_are_those_of_the_columns():
    dense = np.zeros((3, 9))
    dense[0, [1, 5]] = dense[2, [5, 8]] = 1
    registers = {"A": Register(csr_block(sp.csr_array(dense))), "E": Register(Empty((3, 9), FLOAT))}
    found = touched_places(PartialRead("x", 1, 0, (("A", 4), ("E", 4)), 5), registers)
    assert found is not None
    assert found[0].tolist() == [1, 4]
    assert found[1] == 5
    found = touched_places(PartialRead("x", 1, 0, (("A", 0),), None), registers)
    assert found is not None
    assert (found[0].tolist(), found[1]) == ([1, 5, 8], 9)


def test_all_places_are_better_where_most_are_touched_or_the_block_is_dense():
    registers = {
        "A": Register(csr_block(sp.csr_array(np.ones((2, 4))))),
        "D": Register(Dense(np.ones((2, 4)))),
    }
    for left in registers:
        assert touched_places(PartialRead("x", 1, 0, ((left, 0),), 4), registers) is None


@pytest.mark.parametrize("shape", [(8,), (8, 1), (8, 3)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "int64", "bool", "float16"])
def test_packed_elements_and_rows_come_back_and_others_stay(dtype, shape):
    values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    places = np.array([0, 3, 7], np.uint32)
    packed, out = np.empty((3, *shape[1:]), dtype), np.ones(shape, dtype)
    assert can_pack(values)
    pack(values, places, packed)
    assert (packed == values[places]).all()
    unpack(packed, places, out)
    expected = np.ones(shape, dtype)
    expected[places] = values[places]
    assert (out == expected).all()


def test_more_of_a_vector_than_of_a_matrix_is_worth_packing():
    for count, of_vector, of_matrix in ((4, True, True), (5, True, False)):
        places = np.arange(count, dtype=np.uint32)
        assert is_worth_packing(Dense(np.ones(8)), places) is of_vector
        assert is_worth_packing(Dense(np.ones((8, 2))), places) is of_matrix
        assert not is_worth_packing(Dense(np.ones((8, 2), complex)), places)
        assert not is_worth_packing(Empty((8, 2), FLOAT), places)


def test_no_rows_are_packed_too():
    packed = np.empty((0, 2))
    pack(np.ones((4, 2)), np.empty(0, np.uint32), packed)
    out = np.zeros((4, 2))
    unpack(packed, np.empty(0, np.uint32), out)
    assert not out.any()


@pytest.mark.parametrize(
    "values",
    [np.ones(3, complex), np.ones((3, 2), order="F"), np.ones((3, 2, 2)), np.ones(()), np.ones(6)[::2]],
)
def test_what_cannot_be_packed(values):
    assert not can_pack(values)


def test_marks_need_room():
    block = csr_block(sp.csr_array(np.ones((2, 4))))
    with pytest.raises(ValueError, match="3 places to mark, of 4"):
        touched(block, 0, 4, np.zeros(3, np.uint8))

"""Registers: buffers go round, holders keep them, and blocks of one array lie in one whole."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from matnb.backend.tasks.registers import Hint, JoinUse, Pool, Register, Stacks, Wholes, parted
from matnb.blocks.formats import Dense
from matnb.program.kinds import GATHER, PRODUCT
from matnb.program.operators import Flip, Join, Multiply
from matnb.program.plan import Step, Task

FLOAT = np.dtype(np.float64)
SIZE = (100_000,)


def joined(*parts: str, lengths: tuple[int, ...]) -> JoinUse:
    ends = np.cumsum((0, *lengths)).tolist()
    join = Join(tuple((start,) for start in ends[:-1]), (ends[-1],), FLOAT, False)
    return JoinUse(join, parts, tuple(pairwise(ends)))


def test_what_is_given_back_is_taken_again():
    pool = Pool()
    one = pool.take(SIZE, FLOAT)
    address = one.ctypes.data
    assert address % 64 == 0
    other = pool.take(SIZE, FLOAT)
    assert not np.may_share_memory(one, other)
    pool.give(one[10:])
    assert pool.take((SIZE[0] * 2,), np.dtype(np.float32)).ctypes.data == address
    assert pool.num_allocated == 2


def test_memory_comes_again_as_the_same_array():
    pool = Pool()
    first = pool.take(SIZE, FLOAT)
    pool.give(first)
    other = pool.take((SIZE[0] // 4, 4), FLOAT)
    assert np.may_share_memory(first, other)
    pool.give(other)
    assert pool.take(SIZE, FLOAT) is first
    assert pool.take(SIZE, FLOAT) is not first


def test_a_buffer_is_free_when_its_last_holder_lets_go():
    pool = Pool()
    array = pool.take(SIZE, FLOAT)
    first = pool.hold(Dense(array))
    second = pool.hold(Dense(array[5:][::2]))
    assert first is second is pool.buffer_of(array)
    pool.release(first)
    assert not np.may_share_memory(pool.take(SIZE, FLOAT), array)
    pool.release(second)
    assert np.may_share_memory(pool.take(SIZE, FLOAT), array)


def test_memory_of_others_is_left_alone():
    pool = Pool()
    theirs = np.zeros(SIZE)
    assert pool.hold(Dense(theirs)) is None
    pool.release(None)
    pool.give(theirs)
    assert not np.may_share_memory(pool.take(SIZE, FLOAT), theirs)


def test_new_arrays_of_kernels_are_counted_and_views_are_not():
    pool = Pool()
    given = np.zeros(SIZE)
    pool.note_results(Dense(given[10:]), [Dense(given)])
    pool.note_results(Dense(np.zeros(10)), [])
    assert pool.num_allocated == 0
    pool.note_results(Dense(np.zeros(SIZE)), [Dense(given)])
    assert pool.num_allocated == 1


def test_reserved_buffers_are_counted_once_and_taken_last():
    pool = Pool()
    one = pool.take(SIZE, FLOAT)
    pool.give(one)
    pool.reserve(2)
    assert pool.num_allocated == 3
    taken = [pool.take(SIZE, FLOAT) for _ in range(3)]
    assert taken[0].ctypes.data == one.ctypes.data
    assert pool.num_allocated == 3


def test_joins_are_set_apart_from_the_rest_of_a_task():
    join = Join(((0,), (3,)), (5,), FLOAT, False)
    steps = (Step(join, (1, 2)), Step(Multiply("plus_times", FLOAT), (0, 3)), Step(Flip((0,)), (4,)))
    apart = parted(Task("t", steps, ("A", "x0", "x1"), 0, PRODUCT))
    (use,) = apart.joins
    assert (use.parts, use.bounds) == (("x0", "x1"), ((0, 3), (3, 5)))
    assert apart.inputs == ("A",)
    assert apart.rest is not None
    assert [step.arguments for step in apart.rest.steps] == [(0, 1), (2,)]
    assert len(apart.rest.inputs) == 2


def test_a_join_alone_leaves_nothing_and_others_are_not_set_apart():
    whole = Task("t", (Step(Join(((0,), (3,)), (5,), FLOAT, False), (0, 1)),), ("a", "b"), 0, GATHER)
    assert parted(whole).rest is None
    for join in (
        Join(((0,), (3,)), (5,), FLOAT, True),
        Join(((0, 0), (0, 2)), (3, 4), FLOAT, False),
        Join(((3,), (0,)), (5,), FLOAT, False),
    ):
        other = Task("t", (Step(join, (0, 1)),), ("a", "b"), 0, GATHER)
        assert parted(other).joins == ()
        assert parted(other).rest is other


def test_blocks_of_one_array_lie_in_one_whole_until_the_tick_ends():
    groups = Stacks([joined("x0", "x1", lengths=(1000, 2000))], [("y0", "x0"), ("y1", "x1")])
    assert groups.hints["y1"].index == groups.hints["x1"].index == 1
    assert groups.hints["y0"].family == groups.hints["y1"].family != groups.hints["x0"].family
    pool = Pool()
    wholes = Wholes(pool, groups.groups)
    whole, last = wholes.place(groups.hints["y1"])
    same, first = wholes.place(groups.hints["y0"])
    assert whole is same
    first[:], last[:] = 1, 2
    assert whole.array.tolist() == [1] * 1000 + [2] * 2000
    again, _ = wholes.place(groups.hints["y0"])  # a part is given out once
    assert again is not whole
    wholes.close()
    later, _ = wholes.place(groups.hints["y1"])
    assert later is not again


def test_what_arrives_later_gets_its_part_beside_what_is_here():
    groups = Stacks([joined("x0", "x1", lengths=(1000, 2000))], [])
    pool = Pool()
    wholes = Wholes(pool, groups.groups)
    whole, part = wholes.place(groups.hints["x0"])
    here = Register(Dense(part), pool.hold(Dense(part)), whole, 0)
    wholes.close()
    found = wholes.place_beside(groups.hints["x1"], [here])
    assert found is not None
    assert found[0] is whole
    assert wholes.place_beside(groups.hints["x1"], [here]) is None
    assert wholes.place_beside(Hint(7, 1, 0), [here]) is None


def test_arrays_that_change_places_do_not_share_wholes():
    x, y = joined("x0", "x1", lengths=(10, 20)), joined("y0", "y1", lengths=(10, 20))
    groups = Stacks([x, y], [("y0", "x0"), ("y1", "x1"), ("x0", "y0"), ("x1", "y1")])
    assert groups.hints["x0"].family == groups.hints["x1"].family
    assert groups.hints["y0"].family == groups.hints["y1"].family != groups.hints["x0"].family
    assert groups.group_of(x) == groups.group_of(y)
    assert groups.group_of(joined("x1", "x0", lengths=(10, 20))) is None

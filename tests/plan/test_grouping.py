"""Reductions of the same blocks: how many tasks make them, and how often blocks are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import matnb as mn
from matnb.expr.nodes import Reduce
from matnb.plan.lower import lower
from matnb.program.operators import Finish, FusedKernel
from matnb.program.plan import Plan, Task, Workers

TWO = Workers((0,), 2, 0)
COLUMN = np.random.default_rng(0).standard_normal(200_000)


def plan_of(*wanted: mn.DistArray) -> Plan:
    return lower([one.expression for one in wanted], (), {}, TWO)


def readers(plan: Plan) -> list[Task]:
    """Return the tasks that read a user's data."""
    shipped = {one.key for one in plan.shipments}
    return [task for task in plan.tasks if shipped.intersection(task.inputs)]


def taxi(x: mn.DistArray) -> list[mn.DistArray]:
    return [x.min(), x.max(), x.mean(), x.std(), x.min(), x.min()]


def test_min_max_mean_and_std_of_a_column_read_it_once():
    plan = plan_of(*taxi(mn.asarray(COLUMN)))
    first, second = readers(plan)
    for task in (first, second):
        ((step,),) = (task.steps,)
        assert isinstance(step.operator, FusedKernel)
        assert [one.operation for one in step.operator.shares] == ["min", "max", "sum", "deviation"]
    # then one task for each of the four numbers, in which shares are put together and divided
    assert len(plan.tasks) == 6
    assert all(task.inputs == (first.key, second.key) for task in plan.tasks[2:])
    assert plan.projected_bytes < COLUMN.nbytes + 2**16  # what is sent, and no array besides


def test_a_chain_ends_in_its_reductions_and_is_no_array():
    x, y = mn.asarray(COLUMN), mn.asarray(COLUMN[::-1].copy())
    away = abs(x - y)
    plan = plan_of(away.sum(), away.max(), x.min())
    assert len(readers(plan)) == 2
    for task in readers(plan):
        (step,) = task.steps
        assert isinstance(step.operator, FusedKernel)
        assert [link.name for link in step.operator.links] == ["subtract", "absolute"]
        assert [(one.place, one.operation) for one in step.operator.shares] == [
            (3, "sum"),
            (3, "max"),
            (0, "min"),
        ]
    alone = plan_of((away * 2).sum(), (x + 1).max(axis=0))
    operators = [step.operator for task in alone.tasks for step in task.steps]
    assert all(one.shares for one in operators if isinstance(one, FusedKernel))


@pytest.mark.parametrize(
    "separate",
    [
        lambda x: [x.sum(), ((x - x.mean()) ** 2).max()],  # the second needs the first
        lambda x: [x.sum(), mn.asarray(COLUMN + 1).max()],  # another array
        lambda x: [x[:150_000].max(), x.sum()],  # another shape
        lambda x: [(mn.asarray(COLUMN.reshape(1000, 200))).max(axis=0), x.sum()],
    ],
)
def test_what_is_not_of_the_same_blocks_stays_apart(
    separate: Callable[[mn.DistArray], Sequence[mn.DistArray]],
):
    plan = plan_of(*separate(mn.asarray(COLUMN)))
    several = [
        step.operator.shares
        for task in plan.tasks
        for step in task.steps
        if isinstance(step.operator, FusedKernel) and len(step.operator.shares) > 1
    ]
    # only the sum that the mean is of may go with the other sum
    assert all(len(shares) < 2 for shares in several), several


def test_a_number_that_one_task_reads_is_put_together_there():
    x = mn.asarray(COLUMN)
    assert len(plan_of(x.mean()).tasks) == 3
    assert len(plan_of(x.sum()).tasks) == 3
    both = plan_of(x.sum() + 1, x.sum() * 2)  # not by each of its readers
    assert sum(isinstance(task.steps[-1].operator, Finish) for task in both.tasks) == 1
    one_block = plan_of(mn.asarray(COLUMN, blocks=1).mean())
    assert [isinstance(task.steps[0].operator, FusedKernel) for task in one_block.tasks] == [True, False]


def test_stages_name_what_each_task_computes():
    plan = plan_of(*taxi(mn.asarray(COLUMN)))
    by_number = {}
    for stage in plan.stages:
        by_number.setdefault(stage.makes, stage)
    for task in plan.tasks:
        stage = by_number[task.makes]
        if task in readers(plan):
            assert stage.detail == "min max sum deviation"
            assert set(stage.tasks) == {one.key for one in readers(plan)}
            made = {one.operation for one in stage.inside if isinstance(one, Reduce)}
            assert made == {"min", "max", "sum", "deviation"}

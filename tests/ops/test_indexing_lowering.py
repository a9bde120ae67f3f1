"""Reads and writes at run time's places on workers: where their tasks are, what moves, and NumPy's values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.blocks.grid import Region
from matnb.blocks.kernels.shaping.indexing import only, pick
from matnb.errors import IndexingError, KernelError
from matnb.expr.nodes import Expr
from matnb.ops.interpret import interpret
from matnb.ops.maps import Draw
from matnb.plan.lower import lower
from matnb.program.operators import Call, Cut, GatherAt, Make, PutAt, Run, ScatterBy
from matnb.program.plan import Plan, Slot, StoredArray, Task, Workers

THREE = Workers((0, 1, 2), 1, 0)
FOUR_BLOCKS = [None, 1, (2, 2), (3, 1), (4, 2)]


ON_EACH = pytest.mark.session("two threads", "three workers")


def unknown(number: int) -> mn.DistArray:
    """A whole number that only a run can tell."""
    return mn.full(1, number, np.int64).max()


def plan_of(*arrays: mn.DistArray, stored: dict[Expr, StoredArray] | None = None) -> Plan:
    return lower([one.expression for one in arrays], [], stored or {}, THREE)


def tasks_with(plan: Plan, operator: type) -> list[Task]:
    return [task for task in plan.tasks if any(isinstance(step.operator, operator) for step in task.steps)]


def tasks_running(plan: Plan, kernel: object) -> list[Task]:
    return [task for task in tasks_with(plan, Run) if any(one.kernel is kernel for one in runs_of(task))]


def runs_of(task: Task) -> list[Run]:
    return [step.operator for step in task.steps if isinstance(step.operator, Run)]


def made_for(plan: Plan, node: Expr) -> set[Slot]:
    """The values that make an array, or lead to it."""
    numbers = {stage.makes for stage in plan.stages if stage.expression is node}
    return {task.key for task in plan.tasks if task.makes in numbers}


def moved(plan: Plan, tasks: Sequence[Task]) -> list[tuple[Slot, int]]:
    """Inputs of some tasks that are made on another worker."""
    owners = {task.key: task.owner for task in plan.tasks}
    return [
        (key, task.owner)
        for task in tasks
        for key in task.inputs
        if owners.get(key, task.owner) != task.owner
    ]


# what the tasks do


def test_a_row_is_looked_for_once_a_worker_and_a_column_where_it_is():
    A = mn.asarray(np.ones((8, 6)), blocks=(6, 1))
    rows = plan_of(A[unknown(2)])
    picks = tasks_running(rows, pick)
    assert [task.owner for task in picks] == [0, 1, 2]
    assert [len(task.inputs) for task in picks] == [3, 3, 3]  # the index, and two blocks each
    assert len(tasks_running(rows, only)) == 1
    columns = plan_of(A[:, unknown(2)])
    assert len(tasks_running(columns, pick)) == len(tasks_running(columns, only)) == 6
    (array,) = columns.outputs.values()
    assert array.layout.grid.cuts == ((0, 1, 2, 4, 5, 6, 8),)
    assert array.layout.owners == (0, 0, 1, 1, 2, 2)
    (index,) = {key for key, _ in moved(columns, tasks_running(columns, pick))}
    assert index in made_for(columns, unknown(2).expression)  # nothing else travels


def test_an_assignment_stays_where_the_array_is():
    A = mn.asarray(np.ones((8, 6)), blocks=(4, 1))
    before = A.copy()
    A[2:5, 1:3] = np.arange(6.0).reshape(3, 2)
    plan = plan_of(A)
    assert len(tasks_with(plan, PutAt)) == 2
    one = before.copy()
    one[5, unknown(0)] = 1
    assert [task.owner for task in tasks_with(plan_of(one), PutAt)] == [1]
    kept = [
        task for task in plan.tasks if task.kind.name == "put" and isinstance(task.steps[-1].operator, Cut)
    ]
    assert len(kept) == 2
    (array,) = plan.outputs.values()
    owners = {task.key: task.owner for task in plan.tasks}
    assert array.layout.owners == tuple(owners[key] for key in array.keys) == (0, 0, 1, 2)
    sources = made_for(plan, before.expression)
    assert sources
    assert not any(key in sources for key, _ in moved(plan, plan.tasks))


def test_a_value_cut_alike_is_put_without_moving():
    V, w = mn.asarray(np.ones((3, 9)), blocks=(1, 3)), mn.asarray(np.ones(9), blocks=3)
    V[unknown(1)] = w
    plan = plan_of(V)
    puts = tasks_with(plan, PutAt)
    assert len(puts) == 3
    index = made_for(plan, unknown(1).expression)
    assert all(key in index for key, _ in moved(plan, puts))


def test_a_gather_brings_the_array_once_to_each_worker():
    x, index = mn.asarray(np.ones(30), blocks=6), mn.asarray(np.arange(24), blocks=6)
    plan = plan_of(x[index])
    gathers = tasks_with(plan, GatherAt)
    assert [task.owner for task in gathers] == [0, 0, 1, 1, 2, 2]
    assert len({task.inputs[0] for task in gathers}) == 3
    assert moved(plan, gathers) == []
    (array,) = plan.outputs.values()
    assert array.layout.grid.cuts == ((0, 4, 8, 12, 16, 20, 24),)


def test_shares_by_label_are_combined_range_by_range():
    length = 90_000
    values = mn.asarray(np.ones(3 * length), blocks=3)
    labels = mn.asarray(np.arange(3 * length) % length, blocks=3)
    plan = plan_of(mn.scatter_reduce(values, labels, length))
    shares = tasks_with(plan, ScatterBy)
    assert [task.owner for task in shares] == [0, 1, 2]
    (array,) = plan.outputs.values()
    assert array.layout.grid.cuts == ((0, 30_000, 60_000, 90_000),)
    assert array.layout.owners == (0, 1, 2)
    names = {task.key for task in shares}
    assert not any(key in names for key, _ in moved(plan, plan.tasks))  # parts travel, no whole share
    assert len(moved(plan, [task for task in plan.tasks if task.kind.name == "combine"])) == 6


def test_few_values_go_where_their_labels_are_combined():
    values, labels = mn.asarray(np.ones(9), blocks=3), mn.asarray(np.arange(9), blocks=3)
    plan = plan_of(mn.scatter_reduce(values, labels, 90_000))
    assert tasks_with(plan, ScatterBy) == []  # no share is as long as the whole
    combined = [task for task in plan.tasks if task.kind.name == "scatter"]
    assert [task.owner for task in combined] == [0, 1, 2]
    assert len(moved(plan, combined)) == 12  # values and labels of two other workers for each
    rows = mn.scatter_reduce(np.ones((9, 2)), labels, 5)
    assert [task.owner for task in tasks_with(plan_of(rows), ScatterBy)] == [0, 1, 2]  # cut as the labels are


def test_a_call_is_one_task_on_the_first_worker():
    A = mn.asarray(np.eye(6), blocks=3)
    plan = plan_of(*mn.replicated(np.linalg.eigh, A))
    (call,) = tasks_with(plan, Call)
    assert call.owner == 0
    assert [task.kind.name for task in plan.tasks].count("part") == 2
    assert len(plan.outputs) == 2


def draws_of(plan: Plan) -> list[tuple[int, Region]]:
    """The workers that make random numbers anew, and the region of each draw."""
    return [
        (task.owner, step.operator.region)
        for task in plan.tasks
        for step in task.steps
        if isinstance(step.operator, Make) and step.arguments
    ]


def test_draws_are_made_inside_what_reads_them_in_its_cuts():
    creation = mn.random.default_rng(0).random(30).expression.creation
    draw = mn.DistArray(Draw(creation, (unknown(3).expression,)))
    plan = plan_of(mn.asarray(np.ones(30), blocks=3) + draw)
    assert draws_of(plan) == [(0, ((0, 10),)), (1, ((10, 20),)), (2, ((20, 30),))]
    plan = plan_of(mn.asarray(draw, blocks=5))
    assert len(draws_of(plan)) == 5
    assert "regrid" not in [task.kind.name for task in plan.tasks]


def test_ways_follow_from_the_layouts():
    x, k = np.ones(12), unknown(1)
    index = mn.asarray(np.arange(4))

    def ways(blocks: int, parts: int) -> set[str]:
        array = mn.asarray(x, blocks=blocks)
        other = array.copy()
        other[k] = 2
        results = (array[k], other, array[mn.asarray(index, blocks=parts)],
                   mn.scatter_reduce(array, np.zeros(12, int), 3))  # fmt: skip
        plan = plan_of(*results)
        return {stage.way for stage in plan.stages}

    assert ways(2, 2) == ways(2, 2)
    stored = mn.asarray(x).expression
    plans = [
        lower([mn.DistArray(stored)[k].expression], [], {stored: StoredArray(layout, keys)}, THREE)
        for layout, keys in (
            (plan_of(mn.asarray(x, blocks=count)).outputs.popitem()[1].layout, tuple(map(str, range(count))))
            for count in (2, 3)
        )
    ]
    first, second = ({stage.way for stage in plan.stages if stage.kind.name == "read"} for plan in plans)
    assert first
    assert not first & second


def test_what_a_user_reads_in_explain():
    A, k = mn.asarray(np.ones((3, 4))), unknown(1)
    assert A[:, k].expression.describe(("A", "k")) == "A[:, k]"
    assert A[k].expression.describe(("A", "k")) == "A[k, :]"
    B = A.copy()
    B[k, 1:3] = 5
    assert B.expression.describe(("A", "v", "k")) == "A with [k, 1:3] = v"
    assert A[mn.arange(2)].expression.describe(("A", "i")) == "A[i, :]"
    assert mn.scatter_reduce(A, mn.arange(3), 2, "max").expression.describe(("A", "i")) == (
        "scatter_reduce(A, i, 2, max)"
    )
    values, _ = mn.replicated(np.linalg.eigh, mn.eye(3))
    assert values.expression.call.describe(("A",)) == "eigh(A)"
    assert values.expression.describe(("f",)) == "result 0 of f"
    drawn = Draw(mn.random.default_rng(0).random(3).expression.creation, (k.expression,))
    assert drawn.describe(("k",)) == "uniform(drawn anew for k)"
    C = A.copy()
    C[mn.arange(2)] = 7
    assert C.expression.describe(("A", "v", "i")) == "A with [i, 0:4] = v"
    for array in (A[k], B, C, A[mn.arange(2)], values):
        operands = ("...",) * len(array.expression.operands)  # that are on the workers
        assert array.expression.describe(operands)


# what they are worth


@ON_EACH
@pytest.mark.parametrize("blocks", FOUR_BLOCKS)
@pytest.mark.parametrize("sparse", [False, True])
def test_reads_are_numpys(blocks: object, sparse: bool):
    values = np.random.default_rng(0).integers(-3, 4, (7, 5)).astype(float)
    A = mn.asarray(sp.csr_array(values) if sparse else values, blocks=blocks)
    results = mn.compute(A[unknown(3)], A[:, unknown(-1)], A[unknown(6), unknown(0)], A[2:6, unknown(2)])
    for mine, theirs in zip(results, (values[3], values[:, -1], values[6, 0], values[2:6, 2]), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@ON_EACH
@pytest.mark.parametrize("blocks", FOUR_BLOCKS)
def test_assignments_are_numpys(blocks: object):
    theirs = np.random.default_rng(0).random((7, 5))
    before = theirs.copy()
    old = mine = mn.asarray(theirs, blocks=blocks)
    mine = old.copy()
    row = np.arange(5.0)
    for key, other, new in (
        (unknown(3), 3, mn.asarray(row, blocks=2)),
        ((slice(None), unknown(-1)), (slice(None), -1), 4),
        ((unknown(0), unknown(0)), (0, 0), mn.asarray(row).sum()),
        ((slice(1, 6), slice(2, 4)), (slice(1, 6), slice(2, 4)), np.arange(5)[:, None]),
        ((2, slice(1, 4)), (2, slice(1, 4)), mn.asarray(row, blocks=5)[1:4]),
    ):
        mine[key] = new
        theirs[other] = new.compute() if isinstance(new, mn.DistArray) else new
        np.testing.assert_array_equal(mine.compute(), theirs)
    np.testing.assert_array_equal(old.compute(), before)


@ON_EACH
@pytest.mark.parametrize("blocks", FOUR_BLOCKS)
def test_steps_booleans_and_places_are_numpys(blocks: object):
    theirs = np.random.default_rng(2).normal(size=(7, 5))
    mine, mask = mn.asarray(theirs, blocks=blocks), theirs > 0.3
    old, before = mine[::-1], theirs[::-1].copy()
    places = np.array([6, -7, 2, 2, 3])
    new = np.arange(25.0).reshape(5, 5)
    steps = [
        lambda x, m, p: x.__setitem__((slice(None, None, 3), slice(4, 0, -2)), x[1:4, :2]),
        lambda x, m, p: x.__setitem__((slice(None, None, -1), 1), x[:, 0]),
        lambda x, m, p: x.__setitem__(m, -1),
        lambda x, m, p: x.__setitem__(m, x[m] * 2 + 1),
        lambda x, m, p: x.__setitem__((m[:, 1], slice(1, 4)), np.arange(3)),
        lambda x, m, p: x.__setitem__(p, new),
        lambda x, m, p: x.__setitem__(p[:2], x[p[1:3]] + 1),
        lambda x, m, p: np.add(x, new[0], out=x, where=m),
    ]
    made = []
    for step in steps:
        step(mine, mn.asarray(mask, blocks=3), mn.asarray(places, blocks=2))
        made.append(mine.copy())
    for step, found in zip(steps, mn.compute(*made), strict=True):
        step(theirs, mask, places)
        np.testing.assert_array_equal(found, theirs)
    np.testing.assert_array_equal(old.compute(), before)
    mine[mn.asarray(np.array([0, 7]), blocks=2)] = 1
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 of length 7"):
        mine.compute()


@pytest.mark.parametrize("gang", ["gang", "dask"])
def test_a_loops_body_changes_elements_of_its_state(gang: str):
    def step(x: mn.DistArray) -> mn.DistArray:
        x[::2] += 1
        x[x > 3] -= 2
        x[mn.arange(3)] = x[::-4]
        x[-2::-5] = [7, 8, 9]
        return x

    theirs = np.arange(12.0) % 5
    with mn.start(workers=2, threads=1, engine=gang):
        mine, _ = mn.iterate(step, mn.asarray(theirs, blocks=4), max_iterations=3)
        found = mine.compute()
    mn.stop()
    for _ in range(3):
        theirs[::2] += 1
        theirs[theirs > 3] -= 2
        theirs[:3] = theirs[::-4].copy()
        theirs[-2::-5] = [7, 8, 9]
    np.testing.assert_array_equal(found, theirs)


@ON_EACH
@pytest.mark.parametrize("blocks", [1, 3, 4])
def test_gather_and_scatter_are_numpys(blocks: int):
    rng = np.random.default_rng(1)
    index, values = rng.integers(-7, 7, 50), rng.random((7, 5))
    x, places = mn.asarray(values, blocks=(blocks, 2)), mn.asarray(index, blocks=blocks)
    np.testing.assert_array_equal(x[places].compute(), values[index])
    np.testing.assert_array_equal(x[:, unknown(1)][places].compute(), values[index, 1])
    labels, weights = rng.integers(0, 40_000, 500), rng.random(500)
    found = mn.scatter_reduce(mn.asarray(weights, blocks=blocks), labels, 50_000)
    np.testing.assert_allclose(found.compute(), np.bincount(labels, weights, 50_000), rtol=1e-14)
    rows = mn.scatter_reduce(mn.asarray(values, blocks=(blocks, 2)), index[:7] % 4, 4, "min")
    np.testing.assert_array_equal(rows.compute(), interpret(rows.expression))
    nothing = mn.scatter_reduce(np.empty(0), np.empty(0, int), 3, "max")
    np.testing.assert_array_equal(nothing.compute(), [-np.inf] * 3)
    assert x[mn.asarray(np.empty(0, int))].compute().shape == (0, 5)


@ON_EACH
def test_draws_do_not_follow_the_cuts():
    for draw in ("random", "normal"):
        creation = getattr(mn.random.default_rng(0), draw)(size=(40, 3)).expression.creation
        node = Draw(creation, (unknown(3).expression, unknown(0).expression))
        expected = interpret(node)
        for blocks in (None, 3, (4, 2)):
            np.testing.assert_array_equal(mn.asarray(mn.DistArray(node), blocks=blocks).compute(), expected)
        shifted = mn.asarray(np.ones((40, 3)), blocks=7) + mn.DistArray(node)
        np.testing.assert_array_equal(shifted.compute(), expected + 1)


@ON_EACH
def test_calls_are_run_once_on_whole_arrays():
    values = np.random.default_rng(0).random((30, 4))
    X = mn.asarray(values, blocks=3)
    mine = mn.compute(*mn.replicated(np.linalg.eigh, X.T @ X), mn.replicated(np.trace, X.T @ X))
    expected = (*np.linalg.eigh(interpret((X.T @ X).expression)), np.trace(values.T @ values))
    for one, other in zip(mine, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@ON_EACH
def test_errors_come_home():
    x = mn.asarray(np.arange(6.0), blocks=3)
    with pytest.raises(IndexingError, match="index 6 is out of bounds for axis 0 of length 6") as caught:
        x[unknown(6)].compute()
    assert "() int64" in caught.value.expression
    y = x.copy()
    y[unknown(-7)] = 1
    with pytest.raises(IndexError, match="index -7 is out of bounds for axis 0 of length 6"):
        y.compute()
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 of length 6"):
        x[mn.asarray(np.array([0, 9]), blocks=2)].compute()
    with pytest.raises(IndexError, match="label 5 at position 5: labels go from 0 to 4"):
        mn.scatter_reduce(x, mn.asarray(np.arange(6), blocks=3), 5).compute()

    def fails(A: np.ndarray) -> np.ndarray:
        return np.linalg.inv(A - np.eye(2) * 2)

    with pytest.raises(KernelError, match="fails raised LinAlgError: Singular matrix") as failed:
        mn.replicated(fails, mn.eye(2) * 2).compute()
    assert any("in fails" in note for note in failed.value.__notes__)

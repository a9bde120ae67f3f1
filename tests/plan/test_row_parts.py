"""Which rows are made in parts, where the parts are, and that a loop lays them out once."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

import matnb as mn
from matnb.blocks.formats import sparse_bytes
from matnb.blocks.grid import Grid
from matnb.blocks.kernels.products.split_rows import SHARED_ENTRIES
from matnb.blocks.layout import Layout
from matnb.expr.control import Loop
from matnb.expr.nodes import Data, Expr
from matnb.ops import products
from matnb.plan.looping import ControlPlan, plan_control
from matnb.plan.lower import lower
from matnb.program.operators import Run
from matnb.program.plan import Plan, Slot, StoredArray, Task, Workers
from matnb.program.program import Action, Batch, Branch, Iterate, batches

N = 400_000
FLOAT = np.dtype(np.float64)
TWO = Workers((3, 5), 2, 10**9)
A = mn.DistArray(Data(b"matrix", (N, N), FLOAT, True))
X = mn.DistArray(Data(b"vector", (N,), FLOAT, False))
HEAVY = 300_000
HALF_BYTES = sparse_bytes(1, HEAVY // 2 - 64, FLOAT)  # parts end where leaves do
ROWS = (0, 7, 8, 200_000, N)  # row 7 is a block


def stored(
    rows: tuple[int, ...] = ROWS,
    counts: tuple[int, ...] = (50, HEAVY, 1000, 2000),
    columns: tuple[int, ...] = (0, N),
    owners: tuple[int, ...] | None = None,
) -> StoredArray:
    """The matrix as if it were on the workers, the first half of its rows on the first one."""
    num_blocks = (len(rows) - 1) * (len(columns) - 1)
    owners = owners or tuple(3 if place < num_blocks / 2 else 5 for place in range(num_blocks))
    keys = tuple(f"A{place}" for place in range(num_blocks))
    layout = Layout(Grid((rows, columns)), owners)
    return StoredArray(layout, keys, counts, tuple(12 * count for count in counts))


def vector() -> StoredArray:
    layout = Layout(Grid(((0, N // 2, N),)), (3, 5))
    return StoredArray(layout, ("x0", "x1"), (N // 2,) * 2, (4 * N,) * 2)


def planned(
    array: mn.DistArray,
    matrix: StoredArray | None = None,
    workers: Workers = TWO,
    steady: Iterable[Expr] = (),
) -> Plan:
    known = {A.expression: matrix or stored(), X.expression: vector()}
    return lower([array.expression], (), known, workers, steady=frozenset(steady))


def shares(tasks: Iterable[Task]) -> list[Task]:
    return [task for task in tasks if task.kind.name == "share"]


def loop_plan(step: object, begins: object, workers: Workers = TWO, **options: object) -> ControlPlan:
    node = mn.iterate(step, begins, **{"max_iterations": 3, **options})[1].expression
    assert isinstance(node, Loop)
    known = {A.expression: stored(), X.expression: vector()}
    return plan_control(node, {one: known[one] for one in node.inputs if one in known}, workers, [node])


def repeat_of(actions: Iterable[Action]) -> Iterate:
    (repeat,) = (action for action in actions if isinstance(action, Iterate))
    return repeat


def heavy_row(plan: ControlPlan) -> Slot:
    return plan.inputs[A.expression].keys[1]


def once_and_body(actions: Iterable[Action]) -> tuple[list[Task], list[Task]]:
    actions = tuple(actions)
    once = [task for action in actions if isinstance(action, Batch) for task in action.tasks]
    body = [task for batch in batches(repeat_of(actions).body) for task in batch.tasks]
    return once, body


def test_a_loop_lays_parts_out_once_and_all_slots_make_a_share() -> None:
    plan = loop_plan(lambda x: A @ x * 0.5 + X, mn.ones(N))
    once, body = once_and_body(plan.program.actions)
    assert [task.owner for task in shares(body)] == [3, 3, 5, 5]
    row = heavy_row(plan)
    assert not {"cut", "move", "gather"} & {task.kind.name for task in body if row in task.inputs}
    cuts = [task for task in once if task.inputs == (row,)]
    assert [(task.kind.name, task.owner) for task in cuts] == [("cut", 3)] * 4
    laid_out = {task.key for task in cuts}
    moved = {
        task.key: task.inputs[0] for task in once if task.kind.name == "move" and task.inputs[0] in laid_out
    }
    assert list(moved.values()) == [task.key for task in cuts[2:]]
    assert [task.inputs[0] for task in shares(body)] == [*(task.key for task in cuts[:2]), *moved]
    (last,) = (task for task in body if shares(body)[0].key in task.inputs)
    assert last.owner == 3  # where the row is
    assert last.inputs[:5] == (row, *(task.key for task in shares(body)))
    assert any("row 7 in 4 parts" in stage.detail for stage in plan.stages)


def test_parts_are_as_many_as_slots_wherever_the_row_is() -> None:
    for numbers, threads in (((3, 5), 1), ((3, 5), 2), ((3, 5, 8), 3)):
        plan = planned(A @ X, workers=Workers(numbers, threads, 10**9), steady=[A.expression])
        slots = [number for number in numbers for _ in range(threads)]
        assert [task.owner for task in shares(plan.tasks)] == slots
    first = planned(A @ X, stored(owners=(5, 3, 3, 5)), steady=[A.expression])
    assert [task.owner for task in shares(first.tasks)] == [5, 5, 3, 3]


def test_outside_of_loops_only_threads_of_the_rows_worker_share_it() -> None:
    plan = planned(A @ X)
    assert [task.owner for task in shares(plan.tasks)] == [3, 3]
    assert not any(task.kind.name == "move" for task in plan.tasks)
    assert any("row 7 in 2 parts" in stage.detail for stage in plan.stages)
    alone = planned(A @ X, workers=Workers((3, 5), 1, 10**9))
    assert not shares(alone.tasks)
    assert not any("parts" in stage.detail for stage in alone.stages)


@pytest.mark.parametrize(
    ("name", "array", "matrix"),
    [
        ("too few entries", A @ X, stored(counts=(50, SHARED_ENTRIES - 1, 1000, 2000))),
        ("two rows", A @ X, stored(rows=(0, 7, 9, 200_000, N))),
        ("cut columns", A @ X, stored((0, 7, 8, N), (1, 1, HEAVY, HEAVY, 1, 1), (0, 9, N), (3,) * 6)),
        ("counts unknown", A @ X, StoredArray(stored().layout, stored().keys)),
        ("transposed", A.T @ X, stored()),
        ("pushed", mn.matmul(X, A, semiring="min_plus"), stored()),
        ("sparse", A @ A, stored()),
        ("masked", (A @ A) * A, stored()),
        ("a dtype without loops", A @ (X * 1j), stored()),
        ("elementwise", A * 2.0, stored()),
        ("reduced", A.sum(axis=1), stored()),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_all_else_is_planned_as_ever(
    name: str, array: mn.DistArray, matrix: StoredArray, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(array, matrix, steady=[A.expression])
    monkeypatch.setattr(products, "is_shared", lambda num_rows, num_entries: False)
    other = planned(array, matrix, steady=[A.expression])
    assert [task.key for task in plan.tasks] == [task.key for task in other.tasks]
    assert not shares(plan.tasks)


def test_a_row_that_is_just_heavy_enough_is_shared() -> None:
    assert shares(planned(A @ X, stored(counts=(50, SHARED_ENTRIES, 1000, 2000))).tasks)


def test_each_heavy_row_has_parts_of_its_own_the_first_and_the_last_too() -> None:
    matrix = stored((0, 1, 9, 10, N - 1, N), (HEAVY, 5, HEAVY, 5, HEAVY), owners=(3, 3, 3, 5, 5))
    plan = planned(A @ X, matrix, steady=[A.expression])
    assert len({task.key for task in shares(plan.tasks)}) == 12
    assert any("row 0 and 2 more in 4 parts" in stage.detail for stage in plan.stages)


def test_a_fused_stage_reads_the_shares_of_a_row_like_a_product() -> None:
    for array in (A @ X * 2.0 + 1.0, (A @ X).sum(), ((A @ X) ** 2).sum()):
        plan = planned(array)
        (last,) = (task for task in plan.tasks if shares(plan.tasks)[0].key in task.inputs)
        assert isinstance(last.steps[0].operator, Run)
        assert any("row 7 in 2 parts" in stage.detail for stage in plan.stages)


def test_a_matrix_on_the_right_is_read_in_its_own_columns() -> None:
    wide = mn.DistArray(Data(b"wide", (N, 6), FLOAT, False))
    layout = Layout(Grid(((0, N), (0, 2, 6))), (3, 5))
    known = {A.expression: stored(), wide.expression: StoredArray(layout, ("w0", "w1"), (), (16 * N, 32 * N))}
    plan = lower([(A @ wide).expression], (), known, TWO)
    assert len(shares(plan.tasks)) == 4  # two parts for the columns of each block
    assert len({task.inputs[0] for task in shares(plan.tasks)}) == 2
    first, second = plan.reused[wide.expression].keys
    assert [task.inputs[1] for task in shares(plan.tasks)] == [first, first, second, second]


def test_two_products_with_one_matrix_share_its_parts() -> None:
    known = {A.expression: stored(), X.expression: vector()}
    roots = [(A @ X).expression, (A @ (X * X)).expression]
    plan = lower(roots, (), known, TWO, steady=frozenset([A.expression]))
    assert len(shares(plan.tasks)) == 8
    row = plan.reused[A.expression].keys[1]
    assert sum(task.kind.name == "cut" and task.inputs == (row,) for task in plan.tasks) == 4


def test_a_loop_in_a_loop_lays_parts_out_before_both() -> None:
    def inner(x: mn.DistArray) -> mn.DistArray:
        return mn.iterate(lambda y: A @ y * 0.5, x, max_iterations=2)[0] + 1.0

    plan = loop_plan(inner, mn.ones(N))
    once, body = once_and_body(plan.program.actions)
    assert len(shares(body)) == 4
    row = heavy_row(plan)
    assert not [task for task in body if task.inputs == (row,)]
    assert len([task for task in once if task.inputs == (row,)]) == 4


def test_in_a_branch_parts_do_not_travel() -> None:
    def step(x: mn.DistArray) -> mn.DistArray:
        return mn.cond(x.sum() > 1.0, lambda: A @ x, lambda: x)

    plan = loop_plan(step, mn.ones(N))
    body = repeat_of(plan.program.actions).body
    assert any(isinstance(action, Branch) for action in body)
    made = [task for batch in batches(body) for task in batch.tasks]
    assert {task.owner for task in shares(made)} == {3}


def test_a_matrix_that_changes_in_the_loop_does_not_travel() -> None:
    plan = loop_plan(lambda state: (state[0] * 2.0, state[0] @ state[1]), (A, mn.ones(N)))
    _, body = once_and_body(plan.program.actions)
    assert {task.owner for task in shares(body)} <= {3}
    assert not [task for task in body if task.kind.name == "move"]


def test_counts_that_are_estimates_share_no_rows() -> None:
    def in_a_branch(state: tuple[mn.DistArray, mn.DistArray]) -> tuple[mn.DistArray, mn.DistArray]:
        matrix, x = state
        return matrix * 2.0, mn.cond(x.sum() > 1.0, lambda: matrix @ x, lambda: x)

    def in_a_loop(state: tuple[mn.DistArray, mn.DistArray]) -> tuple[mn.DistArray, mn.DistArray]:
        matrix, x = state
        return matrix * 2.0, mn.iterate(lambda y: matrix @ y, x, max_iterations=2)[0]

    def of_a_loop(x: mn.DistArray) -> mn.DistArray:
        matrix, _ = mn.iterate(lambda one: one * x.sum(), A, max_iterations=2)
        return matrix @ x

    def of_a_branch(x: mn.DistArray) -> mn.DistArray:
        return mn.cond(x.sum() > 1.0, lambda: A, lambda: A * 2.0) @ x

    both = (A, mn.ones(N))
    for step in (in_a_branch, in_a_loop, of_a_loop, of_a_branch):
        plan = loop_plan(step, both if step in (in_a_branch, in_a_loop) else mn.ones(N))
        assert not shares(task for batch in batches(plan.program.actions) for task in batch.tasks)


def test_memory_that_parts_take_through_a_loop_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = loop_plan(lambda x: A @ x * 0.5 + X, mn.ones(N))
    monkeypatch.setattr(products, "is_shared", lambda num_rows, num_entries: False)
    without = loop_plan(lambda x: A @ x * 0.5 + X, mn.ones(N))
    assert plan.peaks[5] >= without.peaks[5] + HALF_BYTES


def test_what_parts_take_outside_of_loops_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(A @ X, steady=[A.expression])
    monkeypatch.setattr(products, "is_shared", lambda num_rows, num_entries: False)
    assert plan.projected_bytes > planned(A @ X, steady=[A.expression]).projected_bytes
    assert sum(plan.lasting.values()) >= HALF_BYTES


def test_shares_count_as_work_on_the_block_of_the_row() -> None:
    plan = loop_plan(lambda x: A @ x * 0.5 + X, mn.ones(N))
    _, body = once_and_body(plan.program.actions)
    assert len(shares(body)) == 4
    assert {plan.works.get(task.key) for task in shares(body)} == {(A.expression.digest.hex(), 1)}
    assert not plan.depends_on_layout

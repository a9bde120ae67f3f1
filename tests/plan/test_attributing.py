"""Tasks of a loop are attributed to the blocks they work on, and cuts that may change bits are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from plan_runner import multiplies

import matnb as mn
from matnb.blocks.grid import Grid
from matnb.blocks.layout import Layout
from matnb.expr.control import Loop
from matnb.expr.nodes import Expr
from matnb.plan.looping import ControlPlan, plan_control, starts_inside
from matnb.plan.program_cache import ControlPlans
from matnb.program.plan import StoredArray, Task, Workers
from matnb.program.program import Iterate, Program, batches

WORKERS = Workers((3, 5), 1, 10**9)
N = 4000
MATRIX = sp.random(N, N, 0.002, random_state=0, format="csr")
CUTS, OWNERS = (0, 1000, 1001, 3000, N), (3, 3, 5, 5)


def stored(node: Expr, name: str) -> StoredArray:
    """A sparse array in uneven cuts; a dense one in even ones; columns whole."""
    if not node.ndim:
        return StoredArray(Layout(Grid(()), (3,)), (name,), (1,), (8,))
    length = node.shape[0]
    cuts, owners = ((0, *(length * k // 4 for k in range(1, 4)), length), OWNERS)
    if node.sparse and length == N:
        cuts = CUTS
    rest = tuple((0, other) for other in node.shape[1:])
    sizes = tuple((8000 if node.sparse else node.size) // 4 for _ in owners)
    keys = tuple(f"{name}-{number}" for number in range(len(owners)))
    return StoredArray(Layout(Grid((cuts, *rest)), owners), keys, sizes, tuple(8 * one for one in sizes))


def loop_of(step: Callable[..., object], *state: object) -> Loop:
    _, count = mn.iterate(step, state if len(state) > 1 else state[0], max_iterations=5)
    assert isinstance(count.expression, Loop)
    return count.expression


def arrays_of(node: Loop, name: str = "in") -> dict[Expr, StoredArray]:
    return {one: stored(one, f"{name}{k}") for k, one in enumerate(node.inputs) if not starts_inside(one)}


def planned(step: Callable[..., object], *state: object) -> ControlPlan:
    node = loop_of(step, *state)
    return plan_control(node, arrays_of(node), WORKERS, [node])


def body_tasks(program: Program) -> dict[str, Task]:
    (loop,) = [one for one in program.actions if isinstance(one, Iterate)]
    return {task.key: task for batch in batches(loop.body) for task in batch.tasks}


def test_products_and_what_follows_them_belong_to_blocks() -> None:
    A = mn.asarray(MATRIX)

    def step(state: tuple) -> tuple:
        x, total = state
        y = A @ x
        z = np.sqrt(y + 1) * total
        return z / z.max(), (x * x).sum()

    plan = planned(step, mn.ones(N), 1.0)
    tasks = body_tasks(plan.program)
    digest = A.expression.digest.hex()
    assert set(plan.works) <= set(tasks)
    assert {one for one, _ in plan.works.values()} == {digest}
    by_block: dict[int, list[Task]] = {}
    for key, (_, number) in plan.works.items():
        assert tasks[key].owner == OWNERS[number]
        by_block.setdefault(number, []).append(tasks[key])
    assert set(by_block) == {0, 1, 2, 3}
    for number, some in by_block.items():
        products = [one for one in some if multiplies(one)]
        assert len(products) == 1  # each block's own
        given = {name: place for name, (one, place) in plan.given.items() if one is A.expression}
        assert [given[name] for name in products[0].inputs if name in given] == [number]
        assert len(some) > 1  # functions and shares of sums too
    left = [task.kind.name for key, task in tasks.items() if key not in plan.works]
    assert "gather" in left  # a vector put together for a worker is nobody's
    assert "map" not in left
    assert "product" not in left


def test_tasks_of_loops_and_branches_inside_count_too() -> None:
    A = mn.asarray(MATRIX)

    def step(x: mn.DistArray) -> mn.DistArray:
        y, _ = mn.iterate(lambda y: A @ y + x, x, max_iterations=2)
        return mn.cond(y.sum() > 3, lambda: A @ y, lambda: y * 2)

    plan = planned(step, mn.ones(N))
    tasks = body_tasks(plan.program)
    products = [key for key, task in tasks.items() if multiplies(task)]
    assert len(products) == 8
    assert set(products) <= set(plan.works)


def test_arrays_that_lie_alike_count_as_the_heaviest() -> None:
    light, heavy = mn.asarray(sp.eye_array(N, format="csr")), mn.asarray(MATRIX)
    node = loop_of(lambda x: light @ x + heavy @ x, mn.ones(N))
    arrays = arrays_of(node)
    sizes = (1, 1, 1, 1)
    arrays[light.expression] = replace(arrays[light.expression], block_bytes=sizes)
    plan = plan_control(node, arrays, WORKERS, [node])
    assert {digest for digest, _ in plan.works.values()} == {heavy.expression.digest.hex()}


def test_a_plan_that_is_used_again_names_the_new_arrays() -> None:
    A, plans = mn.asarray(MATRIX), ControlPlans()
    first = loop_of(lambda x: A @ x, mn.ones(N))
    B = mn.asarray(MATRIX * 2)
    second = loop_of(lambda x: B @ x, mn.ones(N))
    plans.plan(first, arrays_of(first, "a"), WORKERS, [first])
    arrays = arrays_of(second, "b")
    again = plans.plan(second, arrays, WORKERS, [second])
    anew = plan_control(second, arrays, WORKERS, [second])
    assert again.works == anew.works
    assert {digest for digest, _ in again.works.values()} == {B.expression.digest.hex()}
    assert again.depends_on_layout == anew.depends_on_layout


def dense(*shape: int) -> mn.DistArray:
    return mn.asarray(np.random.default_rng(0).random(shape))


S = mn.asarray(MATRIX)
WHOLE = mn.asarray(sp.csr_array(MATRIX).astype(np.int64))
STAY = {
    "sparse times vector": lambda x: S @ x,
    "sparse times matrix": lambda x: (S @ (x[:, None] * mn.ones((1, 3)))).sum(axis=1),
    "functions and sums": lambda x: np.exp(-x) / x.sum() + x.std(),
    "the least over a graph": lambda x: mn.matmul(S, x, semiring="min_plus"),
    "sums of whole numbers by columns": lambda x: x + WHOLE.sum(axis=0),
    "sums along rows": lambda x: x * S.sum(axis=1),
}
FOLLOW = {
    "dense times vector": lambda x: dense(N, 4) @ (dense(4, N) @ x),
    "running sums": lambda x: np.cumsum(x) / N,
    "sums by labels": lambda x: mn.scatter_reduce(x, mn.asarray(np.arange(N) % N), N, monoid="plus"),
}


def test_bits_of_a_transpose_that_is_not_made() -> None:
    plan = planned(lambda s: (s[0] * 0.5, s[0].T @ s[1]), mn.asarray(MATRIX * 3), mn.ones(N))
    assert plan.depends_on_layout


@pytest.mark.parametrize("name", STAY)
def test_bits_that_follow_no_cuts(name: str) -> None:
    assert not planned(STAY[name], mn.ones(N)).depends_on_layout


@pytest.mark.parametrize("name", FOLLOW)
def test_bits_that_may_follow_cuts(name: str) -> None:
    assert planned(FOLLOW[name], mn.ones(N)).depends_on_layout

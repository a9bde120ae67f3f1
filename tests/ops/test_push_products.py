"""Products of a vector with a graph that leave out the rows where the vector has nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from plan_runner import run_by_hand

import matnb as mn
from matnb.backend.tasks import executor
from matnb.blocks.kernels.products import frontier
from matnb.blocks.semiring import SEMIRINGS
from matnb.ops.interpret import interpret
from matnb.plan.lower import lower
from matnb.program.operators import Accumulate, Multiply, Push, PutTogether
from matnb.program.plan import Plan, Task, Workers

RNG = np.random.default_rng(5)
GRAPH = sp.random_array((40, 40), density=0.2, format="csr", rng=0)
PUSHED = [name for name, one in SEMIRINGS.items() if one.pushes(np.dtype(int))]


def plan_of(root: mn.DistArray, num_workers: int = 1, scatters: bool = False) -> Plan:
    workers = Workers(tuple(range(num_workers)), 2, 0)
    return lower([root.expression], (), {}, workers, scatters=lambda transpose, right: scatters)


def operators(plan: Plan) -> list[object]:
    return [step.operator for task in plan.tasks for step in task.steps]


def run(plan: Plan, root: mn.DistArray) -> np.ndarray:
    """Return the array that the tasks of a plan make, one after the other."""
    values = run_by_hand(plan)
    array = plan.outputs[root.expression]
    return np.concatenate([np.atleast_1d(values[key].values) for key in array.keys])


def graph_of(dtype: str, blocks: object) -> mn.DistArray:
    graph = GRAPH.copy()
    graph.data = (graph.data * 20).astype(np.int64)  # zeros among them
    return mn.asarray(graph.astype(dtype), blocks=blocks)


def vector_of(share: float, name: str, dtype: str) -> np.ndarray:
    present = RNG.random(40) < share
    if name.startswith("lor"):
        return present
    values = RNG.integers(0, 30, 40).astype(dtype)
    return np.where(present, values, SEMIRINGS[name].add.identity(values.dtype))


@pytest.mark.parametrize("name", PUSHED)
@pytest.mark.parametrize("blocks", [1, [2, 2], [[0, 1, 2, 40], 1]], ids=str)
@pytest.mark.parametrize("num_workers", [1, 3])
@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_pushed_products_are_those_of_the_interpreter(
    name: str, blocks: object, num_workers: int, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    if num_workers == 3:  # as where few entries are read: parts stay sparse
        monkeypatch.setattr(frontier, "most_sorted", lambda width: 1000)
    kinds = (("int64", "int32"), ("float64", "int64"))
    if SEMIRINGS[name].add.name == "plus":  # of whole numbers alone
        kinds = (("int64", "int32"), ("int32", "int32"))
    for dtype, weights in kinds:
        A = graph_of(weights, blocks)
        x = mn.asarray(vector_of(share, name, dtype), blocks=2)
        unvisited = mn.asarray(RNG.random(40) < 0.5, blocks=2)
        for mask in (None, unvisited):
            product = mn.matmul(x, A, semiring=name, mask=mask)
            plan = plan_of(product, num_workers)
            assert any(isinstance(one, Push) for one in operators(plan))
            found = run(plan, product)
            assert found.dtype == product.dtype
            np.testing.assert_array_equal(found, interpret(product.expression))


def test_each_block_is_pushed_from_where_it_is_and_sends_each_worker_one_part() -> None:
    A, x = graph_of("float64", [4, 1]), mn.asarray(vector_of(0.5, "min_plus", "float64"), blocks=2)
    plan = plan_of(mn.matmul(x, A, semiring="min_plus"), 2)
    assert not any(isinstance(one, Multiply | Accumulate) for one in operators(plan))
    assert sum(isinstance(one, Push) for one in operators(plan)) == 4
    owners = {task.key: task.owner for task in plan.tasks}
    for task in plan.tasks:
        if task.steps and isinstance(task.steps[-1].operator, PutTogether):
            sent = [key for key in task.inputs if owners[key] != task.owner]
            assert len(sent) <= 1
            assert not any(isinstance(one.operator, Push) for key in sent for one in by_key(plan, key).steps)


def by_key(plan: Plan, key: str) -> Task:
    """Return a task of a plan."""
    return next(task for task in plan.tasks if task.key == key)


def test_the_result_is_cut_as_the_vectors_it_will_meet() -> None:
    A, x = graph_of("int64", [3, 1]), mn.asarray(np.ones(40, bool), blocks=[[0, 7, 40]])
    mask = mn.asarray(np.ones(40, bool), blocks=[[0, 11, 40]])
    for given, product in (
        (x, mn.matmul(x, A, semiring="lor_land")),
        (mask, mn.matmul(x, A, semiring="lor_land", mask=mask)),
    ):
        plan = plan_of(product, 2)
        assert plan.outputs[product.expression].layout.grid.cuts == ((0, 7 if given is x else 11, 40),)


def test_what_uses_the_product_is_a_stage_of_its_own() -> None:
    A, x = graph_of("float64", [3, 1]), mn.asarray(vector_of(0.5, "min_plus", "float64"), blocks=2)
    nearer = np.minimum(x, mn.matmul(x, A, semiring="min_plus"))
    np.testing.assert_array_equal(run(plan_of(nearer), nearer), interpret(nearer.expression))
    least = mn.matmul(x, A, semiring="min_plus").min()
    assert run(plan_of(least), least) == interpret(least.expression)


def test_a_transpose_that_is_not_made_is_pushed_along() -> None:
    A, x = graph_of("float64", [3, 1]), mn.asarray(vector_of(0.5, "min_first", "int64"), blocks=2)
    for name, other in (("min_second", "min_first"), ("min_plus", "min_plus"), ("lor_first", "lor_second")):
        product = mn.matmul(A.T, x, semiring=name)
        plan = plan_of(product, scatters=True)
        assert {one.semiring for one in operators(plan) if isinstance(one, Push)} == {other}
        assert plan.scattered == (A.expression,)
        np.testing.assert_array_equal(run(plan, product), interpret(product.expression))


def test_sums_that_depend_on_their_order_are_not_pushed() -> None:
    A, x = graph_of("float64", [3, 1]), mn.asarray(np.ones(40))
    assert not any(isinstance(one, Push) for one in operators(plan_of(x @ A)))


@pytest.mark.parametrize("blocks", [1, [3, 1]], ids=str)
@pytest.mark.parametrize("width", [1, 4, 6])
def test_masked_products_of_a_pattern_with_a_few_columns(
    blocks: object, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes: list[tuple[int, ...]] = []
    written = executor.write_marked_sums

    def noted(*given: Any) -> None:
        shapes.append(given[3].shape)
        written(*given)

    monkeypatch.setattr(executor, "write_marked_sums", noted)
    A = graph_of("float64", blocks).pattern(float)
    X = RNG.random((40, width)) * (RNG.random((40, 1)) < 0.3)
    mask = mn.asarray(RNG.random((40, width)) < 0.5, blocks=[2, 1])
    for graph in (A, A.T):
        product = mn.matmul(graph, mn.asarray(X, blocks=[2, 1]), mask=mask)
        found = run(plan_of(product, 2), product)
        np.testing.assert_allclose(found, interpret(product.expression), rtol=1e-14)
        assert found.dtype == product.dtype
    assert shapes

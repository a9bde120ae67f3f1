"""Plans of loops are used again for others of the same form, and are then what planning anew would give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.blocks.grid import Grid
from matnb.blocks.layout import Layout, spread
from matnb.expr.control import Cond, Final, Loop
from matnb.expr.nodes import Expr
from matnb.plan import program_cache
from matnb.plan.looping import ControlPlan, plan_control, starts_inside
from matnb.plan.program_cache import ControlPlans
from matnb.program.plan import StoredArray, Workers

WORKERS = Workers((3, 5), 2, 10**9)
MATRIX = sp.random(40, 40, 0.1, random_state=0, format="csr")


def stored(node: Expr, name: str, num_blocks: int = 4) -> StoredArray:
    rows = tuple(int(cut) for cut in np.linspace(0, node.shape[0], num_blocks + 1)) if node.shape else ()
    cuts = (rows, *((0, other) for other in node.shape[1:])) if node.shape else ()
    count = num_blocks if node.shape else 1
    sizes = (node.size // count,) * count
    layout = Layout(Grid(cuts), spread(count, WORKERS.numbers))
    return StoredArray(
        layout, tuple(f"{name}-{k}" for k in range(count)), sizes, tuple(8 * one for one in sizes)
    )


def loop(seed: int) -> Loop:
    rng = np.random.default_rng(seed)
    A, b = mn.asarray(MATRIX), mn.asarray(rng.random(40))

    def step(state: tuple) -> tuple:
        x, total = state
        y = mn.cond(x.sum() > seed, lambda: A @ x, lambda: x * b)
        z, _ = mn.iterate(lambda z: A.T @ z + b, y, max_iterations=3)
        return z * 0.5 + x, total + z.max()

    _, count = mn.iterate(step, (mn.asarray(rng.random(40)), 0.0), max_iterations=5)
    assert isinstance(count.expression, Loop)
    return count.expression


def inputs(node: Loop | Cond, name: str, num_blocks: int = 4) -> dict[Expr, StoredArray]:
    return {
        one: stored(one, f"{name}{place}", num_blocks)
        for place, one in enumerate(node.inputs)
        if not starts_inside(one)
    }


def text(plan: ControlPlan, node: Loop) -> str:
    """The plan, with places instead of expressions."""
    inputs = {one: place for place, one in enumerate(node.inputs)}
    digests = {one.digest.hex(): place for one, place in inputs.items()}
    places = {one: place for place, one in enumerate((node, *(Final(node, k) for k in range(2))))}
    return repr(
        (
            replace(plan, given={}, outputs={}, inputs={}, works={}, stages=(), origins={}),
            {slot: (inputs[one], number) for slot, (one, number) in plan.given.items()},
            {places[one]: array for one, array in plan.outputs.items()},
            {inputs[one]: array for one, array in plan.inputs.items()},
            {slot: (digests[digest], number) for slot, (digest, number) in plan.works.items()},
        )
    )


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Expr]:
    """The nodes that were planned anew."""
    anew: list[Expr] = []

    def counting(node: Loop | Cond, *arguments: object) -> ControlPlan:
        anew.append(node)
        return plan_control(node, *arguments)

    monkeypatch.setattr(program_cache, "plan_control", counting)
    return anew


def test_the_same_form_over_other_arrays_is_planned_once(planned: list[Expr]) -> None:
    plans, first = ControlPlans(), loop(1)
    other = first.with_operands(*(mn.asarray(np.arange(40.0) + 1).expression, *first.inputs[1:]))
    assert isinstance(other, Loop)
    plans.plan(first, inputs(first, "a"), WORKERS, [Final(first, 0)])
    arrays = inputs(other, "b")
    again = plans.plan(other, arrays, WORKERS, [Final(other, 0)])
    assert planned == [first]
    assert text(again, other) == text(plan_control(other, arrays, WORKERS, [Final(other, 0)]), other)
    assert all(slot == again.inputs[one].keys[number] for slot, (one, number) in again.given.items())
    assert first.digest.hex() not in repr((again.program, again.outputs, again.given, again.states))
    # An array that the first loop gave may be what the next begins with.
    chained = first.with_operands(Final(other, 0), *first.inputs[1:])
    assert isinstance(chained, Loop)
    arrays = inputs(chained, "c") | {Final(other, 0): again.outputs[Final(other, 0)]}
    third = plans.plan(chained, arrays, WORKERS, [Final(chained, 0)])
    assert planned == [first]
    assert text(third, chained) == text(plan_control(chained, arrays, WORKERS, [Final(chained, 0)]), chained)


def test_inputs_that_were_one_array_may_be_two(planned: list[Expr]) -> None:
    x, y = mn.asarray(np.arange(40.0)), mn.asarray(np.ones(40))
    (total, _), _ = mn.iterate(lambda s: (s[0] + s[1], s[1]), (x, y), max_iterations=3)
    assert isinstance(total.expression, Final)
    node = total.expression.control
    assert isinstance(node, Loop)
    plans, apart = ControlPlans(), inputs(node, "a")
    plans.plan(node, dict.fromkeys(apart, stored(x.expression, "same")), WORKERS, [total.expression])
    again = plans.plan(node, apart, WORKERS, [total.expression])
    assert text(again, node) == text(plan_control(node, apart, WORKERS, [total.expression]), node)
    assert len(planned) == 2


def test_another_form_is_planned_anew(planned: list[Expr]) -> None:
    plans, node = ControlPlans(), loop(1)
    arrays, wanted = inputs(node, "a"), [Final(node, 0)]
    plans.plan(node, arrays, WORKERS, wanted)
    plans.plan(node, arrays, WORKERS, [Final(node, 1)])
    plans.plan(node, arrays, Workers((3,), 2, 10**9), wanted)
    plans.plan(node, inputs(node, "a", num_blocks=2), WORKERS, wanted)
    plans.plan(loop(2), inputs(loop(2), "a"), WORKERS, [])
    limit = node.inputs[node.num_state]
    fewer = node.with_operands(*(mn.asarray(4).expression if one is limit else one for one in node.inputs))
    assert isinstance(fewer, Loop)
    plans.plan(fewer, arrays, WORKERS, [Final(fewer, 0)])
    assert len(planned) == 6
    begins = [stored(one, f"s{place}") for place, one in enumerate(node.state)]
    plans.plan(node, arrays, WORKERS, wanted, begins)
    assert len(planned) == 7


def search(source: int, other: int = -1) -> Loop:
    at_source = mn.arange(40) == source
    begin = at_source, mn.where(at_source, 0, other)
    (_, levels), _ = mn.iterate(
        lambda s: (s[0], mn.where(s[0], mn.iteration(), s[1])), begin, max_iterations=3
    )
    assert isinstance(levels.expression, Final)
    assert isinstance(levels.expression.control, Loop)
    return levels.expression.control


def test_numbers_of_an_initial_state_are_given_to_one_plan(planned: list[Expr]) -> None:
    plans, one, workers = ControlPlans(), Workers((3,), 2, 10**9), []
    for source in (7, 9, 11):
        node = search(source)
        plan = plans.plan(node, {}, one, [Final(node, 1)], gives_numbers=True)
        assert sorted(int(number.value) for number in plan.numbers.values()) == [-1, 0, source]
        assert set(plan.numbers) <= set(plan.program.given)
        assert plan.outputs.keys() == {Final(node, 1)}
        workers.append(plan.program)
    assert len(planned) == 1
    assert workers[0] is workers[1] is workers[2]
    node = search(0)  # one number plays two parts
    plan = plans.plan(node, {}, one, [Final(node, 1)], gives_numbers=True)
    assert sorted(int(number.value) for number in plan.numbers.values()) == [-1, 0]
    assert len(planned) == 2
    plans.plan(search(7), {}, one, [])
    plans.plan(search(9), {}, one, [])
    assert len(planned) == 4, "without being given, numbers are part of the program"


def walk(items: list[int]) -> Loop:
    found, _ = mn.iterate(lambda total, item: total + item, mn.zeros(40), over=mn.asarray(items))
    assert isinstance(found.expression, Final)
    assert isinstance(found.expression.control, Loop)
    return found.expression.control


def test_small_arrays_that_a_loop_goes_through_are_given_to_one_plan(planned: list[Expr]) -> None:
    plans, one = ControlPlans(), Workers((3,), 2, 10**9)
    for items in ([7, 9, 11], [1, 2, 3]):
        plan = plans.plan(walk(items), {}, one, [], gives_numbers=True)
        assert [number.value.tolist() for number in plan.numbers.values() if number.lengths] == [items]
        assert set(plan.numbers) <= set(plan.program.given)
    assert len(planned) == 1
    plans.plan(walk([1, 2, 3, 4]), {}, one, [], gives_numbers=True)
    assert len(planned) == 2, "of another length"

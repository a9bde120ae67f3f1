"""Plans that are used again: the same as planning anew, and right for their own data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plan_runner import ONE, THREE, given_to, run_by_hand, whole
from programs import programs

import matnb as mn
from matnb.blocks.formats import Block, Dense
from matnb.expr.client_data import held, keep_copy
from matnb.expr.nodes import Data, Expr, Regrid
from matnb.expr.traverse import topological
from matnb.lazy.array import DistArray
from matnb.ops import creation
from matnb.ops.creation import piece_of
from matnb.ops.interpret import interpret
from matnb.ops.reference import block_of
from matnb.passes import traced
from matnb.plan.lower import lower
from matnb.plan.program_cache import CachedPlan, PlanResult, ScatterChoice, Unfit
from matnb.plan.structural_key import StructuralKey, structural_key
from matnb.program.place import default_layout
from matnb.program.plan import Plan, Slot, StoredArray, Workers
from matnb.program.writer import Slots

FLOAT = np.dtype(np.float64)


def given_array(values: object, blocks: object = None) -> mn.DistArray:
    """Return a handle on data of any size, which is not a constant inside its expression."""
    if isinstance(values, np.ndarray):
        node = Data(values.tobytes() + str(values.shape).encode(), values.shape, values.dtype, False)
        keep_copy(node, Dense(values))
        values = DistArray(node)
    return mn.asarray(values, blocks=blocks)


def with_other_data(roots: list[Expr]) -> list[Expr]:
    """Return the same operations on other numbers."""
    new: dict[Expr, Expr] = {}
    for node in topological(roots):
        new[node] = node.with_operands(*(new[one] for one in node.operands))
        if isinstance(node, Data) and not node.sparse:
            values = np.array(held(node).values == 0, node.dtype)
            new[node] = given_array(values).expression
    return [new[root] for root in roots]


def on_workers(roots: list[Expr], workers: Workers) -> tuple[dict[Expr, StoredArray], dict[str, Block]]:
    """Store the dense data below some expressions, and return where it is, and the blocks."""
    stored, blocks = {}, {}
    for number, node in enumerate(topological(roots)):
        if not isinstance(node, Data) or node.sparse:
            continue
        block = held(node)
        layout = default_layout(node, block.nbytes, workers, block)
        pieces = [piece_of(block, region) for region in layout.grid.regions()]
        keys = tuple(f"{node.digest.hex()}-given{number}-{place}" for place in range(len(pieces)))
        sizes = tuple(piece.nbytes for piece in pieces)
        stored[node] = StoredArray(layout, keys, tuple(piece.nnz for piece in pieces), sizes)
        blocks.update(zip(keys, pieces, strict=True))
    return stored, blocks


def planned(
    form: StructuralKey,
    roots: list[Expr],
    stored: Mapping[Expr, StoredArray],
    workers: Workers,
    optimizes: bool,
) -> PlanResult:
    """Return a plan that is given the numbers that may be others in runs of a form."""
    named = {str(place): root for place, root in enumerate(roots)}
    after, origins = traced(named, stored) if optimizes else (named, {})
    wanted = [one for one in dict.fromkeys(after.values()) if one not in stored]
    slots = Slots(frozenset(form.nodes[place] for place in form.numbers))
    there = {node: slots.of(array) for node, array in stored.items()}
    plan = lower(wanted, (), there, workers, slots)
    return PlanResult(plan, {root: after[name] for name, root in named.items()}, origins)


def without_expressions(plan: Plan) -> Plan:
    return replace(
        plan,
        stages=tuple(replace(one, expression=None, inside=len(one.inside)) for one in plan.stages),
        shipments=tuple(replace(one, expression=None) for one in plan.shipments),
        outputs=tuple(plan.outputs.values()),
        reused=tuple(plan.reused.values()),
        scattered=len(plan.scattered),
        inline=tuple(plan.inline),
    )


# A user's data is stored, or sent before the tasks or along with them: all, or small blocks alone.
WAYS = {"stored": None, "sent before": -1, "sent along": 1 << 20, "sent both ways": 16}


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(programs(given_array), st.sampled_from([ONE, THREE]), st.booleans(), st.sampled_from(list(WAYS)))
def test_a_plan_used_again_is_the_plan_made_anew(
    pairs: list, workers: Workers, optimizes: bool, way: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if (limit := WAYS[way]) is not None:
            patch.setattr(creation, "INLINE_BYTES", limit)
        check_used_again(pairs, workers, optimizes, way == "stored")


def check_used_again(pairs: list, workers: Workers, optimizes: bool, is_stored: bool) -> None:
    roots = list(dict.fromkeys(pair.mine.expression for pair in pairs))
    others = with_other_data(roots)
    stored, _ = on_workers(roots, workers) if is_stored else ({}, {})
    there, blocks = on_workers(others, workers) if is_stored else ({}, {})
    form = structural_key(topological(roots, stored), stored, roots, (), workers)
    again = structural_key(topological(others, there), there, others, (), workers)
    if len(set(others)) < len(roots) or len(again.nodes) < len(form.nodes):
        return  # the other numbers are equal to each other
    assert form.key == again.key
    first = planned(form, roots, stored, workers, optimizes)
    try:
        bound = CachedPlan(form, stored, first).bound(again, there, (), lambda *_: False)
    except Unfit:
        assert form.numbers or optimizes
        return
    anew = planned(again, others, there, workers, optimizes)
    if optimizes:
        assert bound.optimized == anew.optimized
    else:  # passes put operands in the order of their digests
        assert without_expressions(bound.plan) == without_expressions(anew.plan)
    values = run_by_hand(bound.plan, given_to(bound.plan, there, blocks))
    for root in others:
        made = bound.optimized[root]
        if made in bound.plan.outputs:
            found = whole(made, bound.plan.outputs[made], values)
            expected = interpret(root)
            expected = expected.toarray() if sp.issparse(expected) else np.asarray(expected)
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def vector(seed: int) -> mn.DistArray:
    return given_array(np.random.default_rng(seed).random(6))


def planned_twice(one: mn.DistArray, other: mn.DistArray) -> tuple[PlanResult, Mapping[Slot, Block]]:
    """Return one's plan bound to another run, and what it is given."""
    stored, _ = on_workers([one.expression], ONE)
    there, blocks = on_workers([other.expression], ONE)
    form = structural_key(topological([one.expression], stored), stored, [one.expression], (), ONE)
    again = structural_key(topological([other.expression], there), there, [other.expression], (), ONE)
    if form.key != again.key:
        raise Unfit
    first = planned(form, [one.expression], stored, ONE, True)
    made = CachedPlan(form, stored, first).bound(again, there, (), lambda *_: False)
    return made, given_to(made.plan, there, blocks)


def test_another_number_takes_the_place_of_a_number():
    made, blocks = planned_twice(vector(0) * 3.25 + 7.5, vector(1) * 4.75 + 9.5)
    values = run_by_hand(made.plan, blocks)
    ((node, array),) = made.plan.outputs.items()
    np.testing.assert_array_equal(whole(node, array, values), np.random.default_rng(1).random(6) * 4.75 + 9.5)


def either(x: mn.DistArray, y: mn.DistArray, a: float, b: float) -> mn.DistArray:
    return np.where(mn.asarray(a) > mn.asarray(b), x * a, y * b) + x * a + y * b


def single(x: mn.DistArray, a: float) -> mn.DistArray:
    small, number = x.astype(np.float32), mn.asarray(a)
    return np.multiply(small, number, dtype=np.float32) + np.add(x, number)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda x, y: x * 3.5, lambda x, y: x * 1.0),  # a pass looks at it
        (lambda x, y: x * 3.5, lambda x, y: x * 0.0),
        (lambda x, y: x + 3, lambda x, y: x + 4),  # whole numbers may be places
        (lambda x, y: x - y, lambda x, y: x - x),
        (lambda x, y: x - y, lambda x, y: y - x[:6] * y),
        (lambda x, y: (x * 3.5) * 2.5, lambda x, y: (x * 4.5) * 2.5),  # constants may be folded
        (lambda x, y: x + y, lambda x, y: x + y.sum()),
        (lambda x, y: np.power(x, 3.5), lambda x, y: np.power(y, 2.0)),
        # what constants give decides what is computed, though they are used elsewhere, too
        (lambda x, y: either(x, y, 3.5, 2.5), lambda x, y: either(x, y, 2.5, 3.5)),
        (lambda x, y: single(x, 1 + 1e-12), lambda x, y: single(x, 3.5)),
    ],
)
def test_what_is_planned_otherwise_is_of_another_form(one: object, other: object) -> None:
    x, y = vector(2), vector(3)
    try:
        made, blocks = planned_twice(one(x, y), other(x, y))
    except Unfit:
        return
    values = run_by_hand(made.plan, blocks)
    ((node, array),) = made.plan.outputs.items()
    expected = block_of(interpret(other(x, y).expression)).values
    np.testing.assert_array_equal(whole(node, array, values), expected)


def test_another_layout_or_cut_is_of_another_form():
    x = vector(4)
    node = (x + 1.0).expression
    stored, _ = on_workers([node], ONE)
    elsewhere = {one: replace(array, block_bytes=()) for one, array in stored.items()}
    order = topological([node], stored)
    keys = {
        structural_key(order, found, [node], keep, workers).key
        for found in (stored, elsewhere)
        for keep in ((), (node,))
        for workers in (ONE, THREE, replace(ONE, memory_bytes=1))
    }
    assert len(keys) == 12


def test_a_cached_holds_none_of_its_runs_expressions():
    import gc
    import weakref

    node = (vector(5) * 2.5).sum().expression
    stored, _ = on_workers([node], ONE)
    form = structural_key(topological([node], stored), stored, [node], (), ONE)
    cached = CachedPlan(form, stored, planned(form, [node], stored, ONE, True))
    gone = weakref.ref(next(iter(stored)))
    del node, stored, form
    gc.collect()
    assert gone() is None
    assert cached is not None


def test_a_choice_made_otherwise_is_planned_anew():
    A = mn.asarray(sp.random_array((8, 6), density=0.4, rng=0, format="csr"))
    node = (A.T @ given_array(np.ones(8))).expression
    stored, _ = on_workers([node], ONE)
    form = structural_key(topological([node], stored), stored, [node], (), ONE)
    first = planned(form, [node], stored, ONE, True)
    with_choice = first._replace(choices=(ScatterChoice(A.expression, 10, 1, False),))
    cached = CachedPlan(form, stored, with_choice)
    cached.bound(form, stored, (), lambda *_: False)
    with pytest.raises(Unfit):
        cached.bound(form, stored, (), lambda *_: True)


def test_what_was_cut_by_a_person_is_told_from_what_was_not():
    x = given_array(np.ones(6), blocks=2)
    assert isinstance(x.expression, Regrid)
    (node,) = [one for one in topological([x.expression]) if isinstance(one, Data)]
    layout = StoredArray(default_layout(node, 48, ONE), (f"{node.digest.hex()}-0",), (6,), (48,))
    forms = [structural_key([one], {one: layout}, [one], (), ONE).key for one in (x.expression, node)]
    assert forms[0] != forms[1]

"""Programs of loops and branches, run by hand in this process, give what their expressions mean."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plan_runner import ONE, THREE, run_program, whole
from programs import programs, with_state

import matnb as mn
from matnb.blocks.formats import Block
from matnb.blocks.grid import Grid, Region, regular_cuts
from matnb.blocks.kernels.shaping.shaping import cut
from matnb.blocks.layout import Layout, spread
from matnb.expr.control import Final, Loop
from matnb.expr.nodes import Expr
from matnb.ops.interpret import interpret
from matnb.ops.reference import block_of
from matnb.plan.looping import plan_control, starts_inside
from matnb.program.check import ContractError, check_plan, check_program
from matnb.program.kinds import MOVE
from matnb.program.plan import Plan, StoredArray, Task, Workers
from matnb.program.program import Action, Batch, Branch, Iterate, Program


def stored(node: Expr, number: int, num_parts: int, workers: Workers) -> tuple[StoredArray, dict[str, Block]]:
    """Return an array as if it were on the workers, its rows in parts, and its blocks by name."""
    rows = [regular_cuts(length, min(num_parts, max(1, length))) for length in node.shape[:1]]
    grid = Grid((*rows, *((0, length) for length in node.shape[1:])))
    block = block_of(interpret(node))
    blocks = [cut(block, _slices(region)) for region in grid.regions()]
    keys = tuple(f"in{number}-{place}" for place in range(len(blocks)))
    layout = Layout(grid, spread(len(blocks), workers.numbers))
    array = StoredArray(layout, keys, tuple(one.nnz for one in blocks), tuple(one.nbytes for one in blocks))
    return array, dict(zip(keys, blocks, strict=True))


def _slices(region: Region) -> tuple[slice, ...]:
    return tuple(slice(*part) for part in region)


def performed(results: list[mn.DistArray], num_parts: int, workers: Workers) -> list[np.ndarray]:
    """Return what the loop or branch gives whose results these are, run by hand."""
    node = results[0].expression.control
    arrays: dict[Expr, StoredArray] = {}
    given: dict[str, Block] = {}
    for number, one in enumerate(node.inputs):
        if not starts_inside(one):
            arrays[one], blocks = stored(one, number, num_parts, workers)
            given |= blocks
    wanted = [one.expression for one in results]
    plan = plan_control(node, arrays, workers, wanted)
    check_program(plan.program)
    filled = {slot: given[arrays[one].keys[number]] for slot, (one, number) in plan.given.items()}
    values = run_program(plan.program, filled)
    return [whole(one, plan.outputs[one], values) for one in wanted]


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(drawn=st.data(), num_parts=st.integers(1, 4), workers=st.sampled_from([ONE, THREE]))
def test_a_loop_run_by_hand_gives_what_was_meant(
    drawn: st.DataObject, num_parts: int, workers: Workers
) -> None:
    roots = [pair.mine.expression for pair in drawn.draw(programs(mn.asarray))]
    starts = [
        mn.asarray(sp.csr_array(root.shape, dtype=root.dtype))
        if root.sparse
        else mn.zeros(root.shape, root.dtype)
        for root in roots
    ]
    (_, *results), _ = mn.iterate(
        lambda state: (state[0], *with_state(roots, state[0])), (mn.asarray(1.0), *starts), max_iterations=2
    )
    found = performed(results, num_parts, workers)
    for one, value in zip(results, found, strict=True):
        expected = interpret(one.expression)
        expected = expected.toarray() if sp.issparse(expected) else expected
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("workers", [ONE, THREE])
def test_a_loop_ends_by_its_condition_and_tells_how_often_it_ran(workers: Workers) -> None:
    A = mn.asarray(sp.random_array((40, 40), density=0.2, format="csr", rng=np.random.default_rng(0)))
    x, taken = mn.iterate(
        lambda x: A @ x / (A @ x).sum(),
        mn.asarray(np.full(40, 1 / 40)),
        until=lambda old, new: abs(new - old).sum() < 1e-6,
        max_iterations=200,
    )
    assert isinstance(taken.expression, Loop)
    assert isinstance(x.expression, Final)
    (found,) = performed([x], 4, workers)
    np.testing.assert_allclose(found, interpret(x.expression), rtol=1e-9)


@pytest.mark.parametrize("is_true", [True, False])
def test_a_branch_takes_one_way(is_true: bool) -> None:
    x = mn.asarray(np.arange(60.0))
    one, other = mn.cond(mn.asarray(is_true), lambda: (x[::-1] * 2, x.sum()), lambda: (x + 1, x.max()))
    found, number = performed([one, other], 3, THREE)
    np.testing.assert_allclose(found, interpret(one.expression))
    np.testing.assert_allclose(number, interpret(other.expression))


def test_state_may_change_places() -> None:
    (a, b), _ = mn.iterate(
        lambda s: (s[1], s[0] + 1), (mn.asarray(np.arange(9.0)), mn.asarray(np.zeros(9))), max_iterations=5
    )
    for one, value in zip((a, b), performed([a, b], 2, THREE), strict=True):
        np.testing.assert_array_equal(value, interpret(one.expression))


ADD = Task("a", (), ("x",), 0, MOVE)


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        ((ADD, ADD), "made twice"),
        ((Task("a", (), ("y",), 0, MOVE),), "not there"),
        ((Task("a", (), (), 0, MOVE),), "does nothing"),
        ((Task("a", (), ("x",), 7, MOVE),), "no worker 7"),
    ],
)
def test_a_plan_that_no_engine_could_run_is_told_of(tasks: tuple[Task, ...], words: str) -> None:
    with pytest.raises(ContractError, match=words):
        check_plan(Plan(tasks, (), (), {}, {}, {}, 0), (0,), ("x",))
    if words != "no worker 7":
        with pytest.raises(ContractError, match=words):
            check_program(Program((Batch(tasks, ("a",)),), {"x": 0}, {"x": 0}, frozenset(), ("a",)))


@pytest.mark.parametrize(
    ("first", "after", "words"),
    [
        (("there",), ("here",), "a loop's beginning: there is not where state is"),
        (("here",), ("there",), "a loop's next state: there is not where state is"),
        (("here", "here"), ("here",), "a loop's beginning: as many registers"),
    ],
)
def test_a_loop_whose_state_would_change_its_worker_is_told_of(
    first: tuple[str, ...], after: tuple[str, ...], words: str
) -> None:
    loop = Iterate((("state",),), (first,), (after,), "limit", None, "number", "taken", ())
    with pytest.raises(ContractError, match=words):
        check_program(_of_two_workers(loop, "state"))


def test_a_branch_whose_result_would_change_its_worker_is_told_of() -> None:
    for sources in [("here", "there"), ("there", "here")]:
        branch = Branch("limit", (), (), ("one",), *((source,) for source in sources))
        with pytest.raises(ContractError, match="a branch's results: there is not where one is"):
            check_program(_of_two_workers(branch, "one"))
    check_program(_of_two_workers(Branch("limit", (), (), ("one",), ("here",), ("here",)), "one"))


def _of_two_workers(action: Action, result: str) -> Program:
    given = {"here": 0, "there": 1, "limit": 0}
    return Program((action,), given, {**given, result: 0}, frozenset({"number", "taken"}), (result,))


@pytest.mark.parametrize(
    ("cuts", "keys", "owners", "words"),
    [
        ((0, 4), ("a",), (0,), "another shape"),
        ((0, 2, 5), ("a",), (0, 0), "a slot for each block"),
        ((0, 5), ("b",), (0,), "nobody makes its block b"),
        ((0, 5), ("a",), (1,), "not where its layout says"),
    ],
)
def test_an_output_that_is_not_made_as_its_layout_says_is_told_of(
    cuts: tuple[int, ...], keys: tuple[str, ...], owners: tuple[int, ...], words: str
) -> None:
    task, node = Task("a", (), ("x",), 0, MOVE), mn.asarray(np.arange(5.0)).expression
    array = StoredArray(Layout(Grid((cuts,)), owners), keys)
    with pytest.raises(ContractError, match=words):
        check_plan(Plan((task,), (), (), {node: array}, {}, {}, 0), (0, 1), ("x",))

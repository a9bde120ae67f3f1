"""Arrays cut where a user asked: once from their source, or from the blocks that are there."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
import scipy.sparse as sp
from plan_runner import run_by_hand

import matnb as mn
from matnb.blocks.formats import Block, to_numpy
from matnb.blocks.grid import Grid
from matnb.blocks.layout import spread
from matnb.expr.nodes import Expr
from matnb.plan.lower import lower
from matnb.program.plan import Plan, Slot, Workers
from matnb.program.writer import Slots

ONE = Workers((0,), 2, 0)
THREE = Workers((0, 1, 2), 1, 0)
LARGE = np.arange(40_000.0).reshape(400, 100)  # its blocks are shipped, not sent inside the plan
MATRIX = sp.random_array((60, 40), density=0.2, format="csr", rng=0)


def check_blocks(plan: Plan, node: Expr, expected: np.ndarray, stored: Mapping[Slot, Block]) -> None:
    """Every block holds what its region of the expected array does, in the array's format."""
    values = run_by_hand(plan, stored)
    array = plan.outputs[node]
    for key, region in zip(array.keys, array.layout.grid.regions(), strict=True):
        np.testing.assert_array_equal(to_numpy(values[key]), expected[tuple(slice(*one) for one in region)])


def counts(plan: Plan, node: Expr) -> tuple[int, ...]:
    return plan.outputs[node].layout.grid.counts


def kinds(plan: Plan) -> list[str]:
    return [task.kind.name for task in plan.tasks]


@pytest.mark.parametrize("workers", [ONE, THREE])
def test_given_data_is_sent_once_in_the_cuts_asked_for(workers: Workers):
    x = mn.asarray(LARGE, blocks=4)
    plan = lower([x.expression], (), {}, workers)
    assert not plan.tasks
    assert [one.region[0] for one in plan.shipments] == [(0, 100), (100, 200), (200, 300), (300, 400)]
    assert plan.outputs[x.expression].layout.owners == spread(4, workers.numbers)


def test_data_asked_for_in_two_cuts_is_sent_once():
    a, b = mn.asarray(LARGE, blocks=2), mn.asarray(LARGE, blocks=8)
    plan = lower([a.expression, b.expression], (), {}, THREE)
    assert (counts(plan, a.expression), counts(plan, b.expression)) == ((2, 1), (8, 1))
    assert len(plan.shipments) == 2
    assert kinds(plan).count("regrid") == 8
    for one in (a, b):
        check_blocks(plan, one.expression, LARGE, {})
    from_stored = lower([b.expression], (), {a.expression: plan.outputs[a.expression]}, THREE)
    assert len(from_stored.shipments) == 8  # nothing says that the halves are of the same data


def test_data_that_is_read_in_its_own_cuts_too_is_sent_once():
    plain, cut = mn.asarray(LARGE), mn.asarray(LARGE, blocks=4)
    plan = lower([(plain @ plain.T).expression, cut.expression], (), {}, ONE)
    assert counts(plan, cut.expression) == (4, 1)
    assert {one.expression for one in plan.shipments} == {plain.expression}
    shipped = sum(np.prod([stop - start for start, stop in one.region]) for one in plan.shipments)
    assert shipped == LARGE.size


@pytest.mark.parametrize("made", [mn.ones((9, 4)), mn.eye(9, 4), mn.random.default_rng(0).random((9, 4))])
def test_what_is_made_from_parameters_is_made_in_the_cuts(made: mn.DistArray):
    x = mn.asarray(made, blocks=[3, 2])
    plan = lower([x.expression], (), {}, THREE)
    assert kinds(plan) == ["map"] * 6
    assert all(len(task.steps) == 1 and not task.inputs for task in plan.tasks)
    # A constant that others read as well is still made in place, without an array of its own.
    both = lower([(mn.asarray(mn.ones((9, 4)), blocks=3) + mn.ones((9, 4))).expression], (), {}, THREE)
    assert kinds(both) == ["map"] * 6
    assert counts(both, next(iter(both.outputs))) == (3, 1)
    ones = mn.ones((9, 4))
    product = lower([(ones @ ones.T).expression, mn.asarray(ones, blocks=3).expression], (), {}, THREE)
    assert "regrid" not in kinds(product)


@pytest.mark.parametrize("workers", [ONE, THREE])
@pytest.mark.parametrize("given", [LARGE[:60, :40], MATRIX], ids=["dense", "sparse"])
@pytest.mark.parametrize("blocks", [1, 7, [3, 2], [None, [0, 1, 40]]])
def test_stored_blocks_are_put_together_anew(workers: Workers, given: object, blocks: object):
    x = mn.asarray(given, blocks=[[0, 10, 60], [0, 30, 40]])
    before = lower([x.expression], (), {}, workers)
    y = mn.asarray(x, blocks=blocks)
    slots, array = Slots(), before.outputs[x.expression]
    there = slots.of(array)
    plan = lower([y.expression], (), {x.expression: there}, workers, slots)
    assert not plan.shipments
    grid = plan.outputs[y.expression].layout.grid
    assert isinstance(y.expression.cuts, tuple)
    assert grid == Grid(y.expression.cuts)
    assert kinds(plan).count("regrid") == grid.num_blocks
    assert set(plan.reused) == {x.expression}
    expected = given.toarray() if sp.issparse(given) else given
    made = run_by_hand(before)
    stored = {slot: made[key] for slot, key in zip(there.keys, array.keys, strict=True)}
    check_blocks(plan, y.expression, expected, stored)


def test_a_chain_follows_the_cuts_it_reads():
    x = mn.asarray(LARGE * 2.0, blocks=5)
    y = np.sqrt(x + 1) - mn.asarray(mn.asarray(LARGE), blocks=5)
    plan = lower([y.expression, y.sum(axis=1).expression], (), {}, THREE)
    assert counts(plan, y.expression) == (5, 1)
    assert plan.outputs[y.expression].layout.owners == spread(5, THREE.numbers)
    assert plan.moved_bytes == 0  # arrays cut alike lie alike


def test_a_computed_array_is_cut_where_asked():
    x = mn.asarray(LARGE, blocks=3)
    y = mn.asarray((x + 1).T, blocks=[2, 5])
    plan = lower([y.expression], (), {}, THREE)
    assert counts(plan, y.expression) == (2, 5)
    check_blocks(plan, y.expression, (LARGE + 1).T, {})
    empty = mn.asarray(mn.asarray(np.ones((0, 4)), blocks=[None, 2]) * 2, blocks=[None, 3])
    plan = lower([empty.expression], (), {}, THREE)
    assert counts(plan, empty.expression) == (1, 3)
    check_blocks(plan, empty.expression, np.ones((0, 4)), {})


@pytest.mark.parametrize("workers", [ONE, THREE])
@pytest.mark.parametrize(("blocks", "wanted"), [((3, 4), (4, 3)), ((1, 4), (4, 1)), ((2, 5), (5, 2))])
def test_the_transpose_of_a_sparse_array_keeps_its_cut_columns_as_rows(workers, blocks, wanted):
    node = mn.asarray(MATRIX, blocks=blocks).T.expression
    plan = lower([node], (), {}, workers)
    assert counts(plan, node) == wanted
    assert kinds(plan).count("transpose") == len(plan.outputs[node].keys)  # each block by itself
    check_blocks(plan, node, MATRIX.toarray().T, {})


def test_the_transpose_of_a_sparse_array_that_is_cut_by_rows_is_cut_by_rows():
    node = mn.asarray(MATRIX, blocks=(4, 1)).T.expression
    plan = lower([node], (), {}, ONE)
    assert counts(plan, node)[1] == 1
    check_blocks(plan, node, MATRIX.toarray().T, {})

"""Plans: which tasks, where, over which cuts; and that their steps, run by hand, give what was meant."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plan_runner import ONE, THREE, given_to, multiplies, run_by_hand, whole
from programs import programs

import matnb as mn
from matnb.blocks.formats import Dense, to_numpy
from matnb.blocks.grid import Grid, regular
from matnb.blocks.layout import Layout
from matnb.expr.nodes import Data, Expr
from matnb.ops.interpret import interpret
from matnb.ops.reference import block_of
from matnb.plan.lower import lower
from matnb.program.check import check_plan
from matnb.program.operators import Cut, FusedKernel, Join
from matnb.program.plan import InlineBlock, Plan, StoredArray, Task, Workers
from matnb.program.regions import operand_region, piece_cuts, region_size, slice_pieces

FLOAT = np.dtype(np.float64)
MEGABYTE = (1024, 128)  # a float64 array of this shape is cut into a block a thread


def data(shape: tuple[int, ...] = MEGABYTE, seed: int = 0, blocks: object = None) -> mn.DistArray:
    return mn.asarray(np.random.default_rng(seed).integers(-3, 4, shape).astype(float), blocks=blocks)


def on_workers(
    name: str, grid: Grid, owners: tuple[int, ...], sparse_entries: int | None = None
) -> tuple[Expr, StoredArray]:
    """An array that is on the workers already."""
    node = Data(name.encode(), grid.shape, FLOAT, sparse_entries is not None)
    keys = tuple(f"{node.digest.hex()}-{number}" for number in range(grid.num_blocks))
    counts = (sparse_entries or 0,) * grid.num_blocks
    return node, StoredArray(Layout(grid, owners), keys, counts if sparse_entries is not None else ())


def kinds(plan: Plan) -> list[str]:
    return [task.kind.name for task in plan.tasks]


# meaning


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(drawn=st.data(), workers=st.sampled_from([ONE, THREE]))
def test_a_plan_run_by_hand_gives_what_was_meant(drawn: st.DataObject, workers: Workers):
    roots = [pair.mine.expression for pair in drawn.draw(programs(mn.asarray))]
    plan = lower(roots, (), {}, workers)
    check_plan(plan, workers.numbers)
    values = run_by_hand(plan)
    for root in roots:
        expected = interpret(root)
        found = whole(root, plan.outputs[root], values)
        expected = expected.toarray() if sp.issparse(expected) else expected
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    staying = {key for array in plan.outputs.values() for key in array.keys}
    dense = [values[key] for key in staying if isinstance(values[key], Dense)]
    assert plan.projected_bytes >= sum(block.nbytes for block in dense)
    if workers is ONE:
        assert plan.moved_bytes == 0


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(drawn=st.data())
def test_a_plan_starts_from_what_is_stored(drawn: st.DataObject):
    values = [pair.mine.expression for pair in drawn.draw(programs(mn.asarray))]
    known = values[drawn.draw(st.integers(0, len(values) - 1))]
    before = lower([known], (), {}, THREE)
    blocks = run_by_hand(before)
    stored = {known: before.outputs[known]}
    plan = lower([values[-1]], (), stored, THREE)
    check_plan(plan, THREE.numbers)
    if known is values[-1]:
        assert not plan.tasks
        return
    assert not {task.key for task in plan.tasks} & {key for one in plan.reused.values() for key in one.keys}
    found = whole(values[-1], plan.outputs[values[-1]], run_by_hand(plan, given_to(plan, stored, blocks)))
    expected = interpret(values[-1])
    np.testing.assert_allclose(
        found, expected.toarray() if sp.issparse(expected) else expected, rtol=1e-5, atol=1e-5
    )


def functions(task: Task) -> list[str]:
    """Return the names of the elementwise functions of a task."""
    names: list[str] = []
    for step in task.steps:
        if isinstance(step.operator, FusedKernel):
            names.extend(link.name for link in step.operator.links)
    return names


# slots


def test_slots_repeat():
    def make() -> Plan:
        x = data(blocks=4)
        y = ((x @ x.T) + 1).sum(axis=0)[::2]
        return lower([y.expression, x.T.expression], (), {}, THREE)

    one, other = make(), make()
    assert [task.key for task in one.tasks] == [task.key for task in other.tasks]
    # a shipped block's constant has no equality; all else does
    assert [(task.inputs, task.owner, task.kind) for task in one.tasks] == [
        (task.inputs, task.owner, task.kind) for task in other.tasks
    ]
    assert one.stages == other.stages


def test_arrays_made_in_other_layouts_are_made_in_another_way():
    x = data()
    ways = [
        {stage.way for stage in lower([(x + 1).expression], (), {}, workers).stages}
        for workers in (ONE, THREE, Workers((0, 1, 3), 1, 0))
    ]
    assert not ways[0] & ways[1]
    assert not ways[1] & ways[2]


def test_plans_are_the_same_in_two_processes():
    program = (
        "import numpy as np\n"
        "import matnb as mn\n"
        "from matnb.plan.explain_plans import plan_text\n"
        "from matnb.plan.lower import lower\n"
        "from matnb.program.plan import Workers\n"
        "x = mn.asarray(np.arange(40000.0).reshape(200, 200), blocks=[3, 2])\n"
        "s = mn.eye(200, blocks=5)\n"
        "roots = [((x @ x) / 2).expression, (s @ x).sum(axis=1).expression, s.T.expression]\n"
        "plan = lower(roots, (), {}, Workers((0, 1, 2), 2, 0))\n"
        "result = plan_text(plan) + repr([(t.key, t.inputs, t.owner) for t in plan.tasks])\n"
    )
    here: dict[str, str] = {}
    exec(program, here)
    there = subprocess.run(
        [sys.executable, "-c", program + "print(result)"],
        env={"PYTHONHASHSEED": "7", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout == here["result"] + "\n"


# fusion


def test_an_elementwise_chain_is_one_task_a_block():
    x, y = data(blocks=4), data(seed=1, blocks=4)
    z = np.sqrt(abs(x * y) + 2.0) - y
    plan = lower([z.expression], (), {}, THREE)
    assert kinds(plan) == ["map"] * 4
    assert len(plan.shipments) == 8
    assert sorted(functions(plan.tasks[0])) == ["absolute", "add", "multiply", "sqrt", "subtract"]


def test_a_chain_goes_into_the_reduction_that_ends_it():
    x = data(blocks=4)
    plan = lower([np.sqrt(x * x + 1).sum().expression], (), {}, ONE)
    assert kinds(plan) == ["reduce sum"] * 4 + ["combine"]
    made = {stage.kind.name: stage.estimated_bytes for stage in plan.stages}
    assert made == {"data": x.size * 8, "reduce": 8}  # the squares are never an array


def test_a_subexpression_is_computed_once():
    x = data(blocks=4)
    shared = np.exp(x)
    inside = lower([(shared * shared + shared).expression], (), {}, ONE)
    for task in inside.tasks:
        assert functions(task).count("exp") == 1
    # Two arrays made from one chain: the chain is an array itself.
    apart = lower([(shared + 1).expression, shared.sum().expression], (), {}, ONE)
    assert sum(functions(task).count("exp") for task in apart.tasks) == 4


def test_constants_are_made_by_every_task_that_reads_them():
    plan = lower([(mn.ones(MEGABYTE) * 3.0 + 1.0).expression], (), {}, THREE)
    assert kinds(plan) == ["map"] * 3
    assert all(not task.inputs for task in plan.tasks)


def test_a_kept_value_on_the_way_becomes_an_output():
    x = data(blocks=4)
    middle = x + 1
    end = (middle * 2).sum()
    plan = lower([end.expression], [middle.expression, data(seed=9).expression], {}, ONE)
    assert set(plan.outputs) == {end.expression, middle.expression}


# place


def test_stages_run_where_the_heaviest_operand_is():
    heavy, at = on_workers("heavy", regular((1000, 50), (3, 1)), (2, 0, 1))
    light, light_at = on_workers("light", regular((1, 50), (1, 1)), (1,))
    stored = {heavy: at, light: light_at}
    x, row = mn.DistArray(heavy), mn.DistArray(light)
    plan = lower([(x * row).expression], (), stored, THREE)
    assert [task.owner for task in plan.tasks if task.kind.name == "map"] == [2, 0, 1]
    assert plan.outputs[(x * row).expression].layout == at.layout
    # The reused operands travel, and nothing heavy does.
    assert set(plan.reused) == {heavy, light}
    product = mn.DistArray(heavy) @ data((50, 2))
    plan = lower([product.expression], (), stored, THREE)
    assert [task.owner for task in plan.tasks if task.kind.name == "product"] == [2, 0, 1]
    total = lower([x.sum(axis=1).expression], (), stored, THREE)
    assert [task.owner for task in total.tasks] == [2, 0, 1]


def test_the_heavier_of_two_operands_decides():
    thick, at = on_workers("thick", regular((60, 60), (2, 1)), (0, 1))
    thin, thin_at = on_workers("thin", regular((60, 60), (3, 1)), (2, 2, 2), sparse_entries=5)
    root = (mn.DistArray(thin) + mn.DistArray(thick)).expression
    plan = lower([root], (), {thin: thin_at, thick: at}, THREE)
    assert plan.outputs[root].layout == at.layout


def test_a_grid_that_was_asked_for_comes_first():
    x = data((30, 4), seed=5, blocks=[[0, 1, 30], 2])
    plan = lower([x.expression], (), {}, ONE)
    assert plan.outputs[x.expression].layout.grid == Grid(((0, 1, 30), (0, 2, 4)))


def test_only_what_a_region_needs_travels():
    left, left_at = on_workers("l", regular((100, 10), (2, 1)), (0, 1))
    right, right_at = on_workers("r", regular((100, 10), (4, 1)), (0, 0, 0, 1))
    root = (mn.DistArray(left) + mn.DistArray(right)).expression
    plan = lower([root], (), {left: left_at, right: right_at}, THREE)
    cuts = [s.operator for t in plan.tasks for s in t.steps if isinstance(s.operator, Cut)]
    assert not cuts  # blocks 0, 1 make the upper half; 2, 3 the lower
    gathers = [task for task in plan.tasks if task.kind.name == "gather"]
    assert sorted(task.owner for task in gathers) == [0, 1]
    uneven, uneven_at = on_workers("u", Grid(((0, 70, 100), (0, 10))), (0, 1))
    root = (mn.DistArray(left) + mn.DistArray(uneven)).expression
    plan = lower([root], (), {left: left_at, uneven: uneven_at}, THREE)
    cut_there = [task for task in plan.tasks if task.kind.name == "cut"]
    assert [task.owner for task in cut_there] == [0]  # rows 50 to 70, cut where they are
    assert plan.moved_bytes == 20 * 10 * 8


def test_nothing_moves_on_one_worker_and_something_on_three():
    x, y = data(blocks=3), data(seed=1, blocks=4)
    z = ((x + y) @ y.T).sum(axis=0)
    assert lower([z.expression], (), {}, ONE).moved_bytes == 0
    assert lower([z.expression], (), {}, THREE).moved_bytes > 0


def test_a_lighter_operand_is_gathered_once_for_each_worker():
    x, y = data((600, 100), blocks=6), data((100, 3), seed=1, blocks=2)
    plan = lower([(x @ y).expression], (), {}, THREE)
    gathers = [task for task in plan.tasks if task.kind.name == "gather"]
    assert [task.owner for task in gathers] == [0, 1, 2]
    assert all(isinstance(task.steps[-1].operator, Join) for task in gathers)
    products = [task for task in plan.tasks if multiplies(task)]
    assert len(products) == 6


# memory


def test_projected_bytes_count_what_is_there_at_once():
    x = data(blocks=4)
    size = x.size * 8
    assert lower([(x + 1).expression], (), {}, ONE).projected_bytes >= 2 * size
    chain = ((x.T + 1).T + 1).T + 1
    plan = lower([chain.expression], (), {}, ONE)
    assert size <= plan.projected_bytes <= 4 * size  # not a copy for every stage


def test_small_data_is_sent_along_with_the_tasks_and_is_not_in_them():
    x = data((10, 10))
    plan = lower([x.expression], (), {}, THREE)
    assert not plan.shipments
    (task,) = plan.tasks
    assert not task.steps
    assert plan.inline == {task.inputs[0]: InlineBlock(x.expression, ((0, 10), (0, 10)))}
    assert len(lower([data(seed=11).expression], (), {}, THREE).shipments) == 3


def test_data_of_blocks_that_nobody_reads_is_not_sent_along():
    x = mn.asarray(np.arange(1000.0), blocks=4)
    plan = lower([x[:100].expression], (), {}, THREE)
    assert [one.region for one in plan.inline.values()] == [((0, 250),)]


def test_data_that_is_nowhere_is_refused():
    with pytest.raises(KeyError):
        lower([Data(b"nowhere", (3,), FLOAT, False)], (), {}, ONE)


def test_ways_follow_from_the_cuts_and_owners_of_what_is_read():
    ways = set()
    for counts, owners in [((3, 1), (0, 1, 2)), ((3, 1), (0, 1, 1)), ((1, 3), (0, 1, 2))]:
        node, array = on_workers("x", regular((9, 9), counts), owners)
        (stage,) = lower([(mn.DistArray(node) + 1).expression], (), {node: array}, THREE).stages
        ways.add(stage.way)
    assert len(ways) == 3


# regions


@given(st.data())
def test_pieces_of_a_slice_are_numpys_slice(drawn: st.DataObject):
    length = drawn.draw(st.integers(0, 12))
    inner = drawn.draw(st.sets(st.integers(1, length - 1), max_size=4)) if length > 1 else set()
    cuts = (0, *sorted(inner), length)
    chosen = drawn.draw(st.slices(length))
    values = np.arange(length)
    pieces = slice_pieces(
        cuts, slice(*chosen.indices(length)) if chosen.step is None or chosen.step > 0 else chosen
    )
    expected = values[chosen]
    bounds = piece_cuts(pieces)
    assert bounds[-1] == len(expected)
    assert len({piece.block for piece in pieces}) == len(pieces)
    found = [values[cuts[piece.block] : cuts[piece.block + 1]][slice(*piece.local)] for piece in pieces]
    np.testing.assert_array_equal(np.concatenate([np.empty(0, int), *found]), expected)
    for piece, part, start, stop in zip(pieces, found, bounds, bounds[1:], strict=False):
        assert (piece.start, piece.stop, len(part)) == (start, stop, stop - start)


@given(st.data())
def test_the_region_of_a_stretched_operand(drawn: st.DataObject):
    # Broadcasting commutes with cutting.
    full = tuple(drawn.draw(st.lists(st.integers(1, 4), max_size=3)))
    own = tuple(drawn.draw(st.sampled_from([1, length])) for length in full)
    own = own[drawn.draw(st.integers(0, len(own))) :]
    ends = [(drawn.draw(st.integers(0, length)), drawn.draw(st.integers(0, length))) for length in full]
    region = tuple((min(pair), max(pair)) for pair in ends)
    values = np.arange(np.prod(own, dtype=int)).reshape(own)
    part = values[tuple(slice(*bounds) for bounds in operand_region(own, region))]
    wanted = np.broadcast_to(values, full)[tuple(slice(*bounds) for bounds in region)]
    np.testing.assert_array_equal(np.broadcast_to(part, wanted.shape), wanted)
    assert region_size(region) == wanted.size


def test_blocks_that_were_interpreted_are_the_blocks_of_the_plan():
    x = data((7, 5), blocks=[[0, 2, 7], [0, 5]])
    plan = lower([(x * 2).expression], (), {}, ONE)
    values = run_by_hand(plan)
    first = plan.outputs[(x * 2).expression].keys[0]
    np.testing.assert_array_equal(
        to_numpy(values[first]), to_numpy(block_of(interpret((x * 2).expression)[:2]))
    )

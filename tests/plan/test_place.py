"""Where blocks lie and tasks run: cuts by lengths, machines beside axes, the bounds of NumS (appendix A)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matnb as mn
from matnb.blocks.grid import regular
from matnb.errors import OptionError
from matnb.lazy.array import DistArray
from matnb.plan.lower import lower
from matnb.program.loads import PieceRead, PlacedPart, SimulatedLoads, placed
from matnb.program.place import factored, laid_out
from matnb.program.plan import Plan, Workers


def workers_of(nodes: int, each: int = 1, **others) -> Workers:
    """Return workers of one thread, so many on each of some machines."""
    numbers = tuple(range(nodes * each))
    return Workers(numbers, 1, 2**40, tuple(number // each for number in numbers), **others)


def plan_of(array: DistArray, workers: Workers) -> Plan:
    return lower([array.expression], [], {}, workers)


def normal(*shape: int) -> DistArray:
    return mn.random.default_rng(0).normal(size=shape)


# cuts


@given(st.integers(1, 600), st.lists(st.integers(1, 10**7), min_size=1, max_size=4))
def test_counts_multiply_to_about_what_is_wanted(count, lengths):
    found = factored(count, tuple(lengths))
    assert all(1 <= one <= max(1, length) for one, length in zip(found, lengths, strict=True))
    if prod(lengths) >= 4 * count and max(lengths) >= count:
        assert count <= prod(found) <= 1.25 * count + 1


@given(st.integers(1, 600), st.lists(st.integers(1, 40), min_size=1, max_size=4))
def test_machines_are_shared_exactly_where_the_cuts_allow_it(count, most):
    found = factored(count, (100,) * len(most), tuple(most))
    assert all(one <= limit for one, limit in zip(found, most, strict=True))
    assert count % prod(found) == 0


@pytest.mark.parametrize(
    ("count", "lengths", "wanted"),
    [
        (16, (10**6, 256), (16, 1)),
        (16, (256, 10**6), (1, 16)),
        (16, (5000, 5000), (4, 4)),
        (64, (900, 900, 900), (4, 4, 4)),
        (512, (10**6, 1000), (512, 1)),
        (12, (3000, 3000), (4, 3)),
        (8, (2000, 1000), (8, 1)),
    ],
)
def test_tall_arrays_stay_row_cut_and_square_ones_become_grids(count, lengths, wanted):
    assert factored(count, lengths) == wanted


def test_blocks_are_not_below_a_quarter_of_a_megabyte_on_many_workers():
    (made,) = plan_of(normal(1000, 100) + 1, workers_of(16)).outputs.values()
    assert made.layout.grid.counts == (3, 1)  # of 800 kB


def test_sparse_arrays_stay_row_cut():
    graph = mn.random.rmat(scale=14, edge_factor=16, seed=0)
    (made,) = plan_of(graph * 2.0, workers_of(16)).outputs.values()
    assert made.layout.grid.counts[1] == 1


# layouts


@given(st.integers(1, 12), st.integers(1, 5), st.lists(st.integers(1, 20), min_size=1, max_size=3))
def test_every_block_has_an_owner_and_equal_grids_lie_alike(nodes, each, counts):
    workers = workers_of(nodes, each)
    one = laid_out(regular([count * 10 for count in counts], counts), workers)
    other = laid_out(regular([count * 7 for count in counts], counts), workers)
    assert set(one.owners) <= set(workers.numbers)
    by_place = dict(zip(one.grid.indices(), one.owners, strict=True))
    assert by_place == dict(zip(other.grid.indices(), other.owners, strict=True)) or any(
        length < count for length, count in zip(other.grid.counts, counts, strict=True)
    )


@pytest.mark.parametrize("given_grid", [(4, 4), (16, 1), (2, 8)])
def test_machines_lie_beside_the_axes_as_asked(given_grid):
    counts = (16, 16) if given_grid == (16, 1) else (8, 8)
    layout = laid_out(regular((160, 160), counts), workers_of(16, node_grid=given_grid))
    shares = Counter(layout.owners)
    assert set(shares.values()) == {prod(counts) // 16}
    there = [index for index, owner in zip(layout.grid.indices(), layout.owners, strict=True) if owner == 0]
    rows = {row for row, _ in there}
    assert rows == set(range(counts[0] // given_grid[0]))


def test_a_grid_that_the_cuts_do_not_allow_is_not_taken():
    layout = laid_out(regular((160, 160), (16, 2)), workers_of(16, node_grid=(4, 4)))
    assert len(set(layout.owners)) == 16


@pytest.mark.parametrize("wrong", [(0, 4), (2.5, 2), "4by4", True, (), "x"])
def test_a_bad_node_grid_is_refused(wrong):
    with pytest.raises(OptionError, match="node_grid"):
        mn.start(node_grid=wrong)


def test_a_node_grid_that_does_not_multiply_to_the_workers_is_refused():
    with pytest.raises(OptionError, match=r"node_grid.*4 workers"):
        mn.start(workers=4, threads=1, node_grid=(3, 2))


# bounds of appendix A that plans attain


def test_functions_of_arrays_that_are_cut_alike_move_nothing():
    workers = workers_of(16, 2)
    x, y = normal(4096, 4096), mn.random.default_rng(1).normal(size=(4096, 4096))
    plan = plan_of(np.sqrt(x * x + y) - x, workers)
    assert plan.moved_bytes == 0
    assert len({task.owner for task in plan.tasks}) == 32


@pytest.mark.parametrize("nodes", [2, 4, 16])
def test_the_product_of_tall_arrays_moves_a_partial_result_for_each_machine_but_one(nodes):
    d = 256
    plan = plan_of(normal(2**17, d).T @ mn.random.default_rng(1).normal(size=(2**17, d)), workers_of(nodes))
    assert plan.moved_bytes == (nodes - 1) * d * d * 8


def test_partial_results_of_a_machine_are_added_there():
    d, plan = 256, plan_of(normal(2**18, 256).T @ normal(2**18, 256), workers_of(4, 8))
    machine = dict(zip(workers_of(4, 8).numbers, workers_of(4, 8).machines, strict=True))
    at = {task.key: task.owner for task in plan.tasks}
    far = {
        (key, task.owner)
        for task in plan.tasks
        for key in task.inputs
        if machine[at[key]] != machine[task.owner]
    }
    assert len(far) == 3
    assert plan.moved_bytes == 31 * d * d * 8


@pytest.mark.parametrize("side", [2, 4])
def test_the_product_of_squares_moves_each_operand_along_one_axis_of_the_machines(side):
    n = 2048
    plan = plan_of(normal(n, n) @ mn.random.default_rng(1).normal(size=(n, n)), workers_of(side * side))
    # Each machine has a block of each operand, and reads the others of its rows and of its columns.
    assert plan.moved_bytes == 2 * (side - 1) * n * n * 8


# the search


pieces = st.builds(PieceRead, st.integers(0, 30), st.integers(0, 5), st.integers(1, 1000))
parts = st.builds(
    PlacedPart,
    st.integers(0, 4),
    st.integers(0, 5),
    st.integers(1, 1000),
    st.lists(pieces, max_size=3).map(tuple),
)


@given(st.lists(parts, max_size=20), st.integers(1, 6))
def test_the_load_is_at_most_that_of_owner_computes(found, each):
    workers = workers_of(6 // each + 1, each)
    workers = replace(workers, numbers=workers.numbers[:6], machines=workers.machines[:6])
    loads = SimulatedLoads(workers)
    chosen, _ = placed(loads, found, workers)
    assert placed(loads, found, workers)[0] == chosen
    ends = {}
    for way, some in (("chosen", chosen), ("owners", [part.workers[0] for part in found])):
        simulated = loads.copy()
        for part, worker in zip(found, some, strict=True):
            assert worker in part.workers
            simulated.add(part, worker)
        ends[way] = simulated.total
    assert ends["chosen"] <= ends["owners"]


@given(st.lists(parts, min_size=1, max_size=20))
def test_what_was_read_once_is_not_read_again(found):
    workers = workers_of(3, 2)
    once, twice = SimulatedLoads(workers), SimulatedLoads(workers)
    for part in found:
        once.add(part, part.workers[0])
        twice.add(part, part.workers[0])
    before = twice.load_with(found[0], found[0].workers[0])[1]
    assert before == 0


def test_equal_expressions_are_placed_equally():
    def placing() -> list[tuple[int, ...]]:
        x, y = normal(3000, 3000), mn.random.default_rng(1).normal(size=(3000, 3000))
        plan = plan_of((x @ y).T @ x, workers_of(4, 2))
        return [(task.key, task.owner, *task.inputs) for task in plan.tasks]

    assert placing() == placing()


@pytest.mark.parametrize("way", ["owners", "turns"])
def test_ways_change_who_works_and_nothing_else(way):
    x, y = normal(2048, 2048), mn.random.default_rng(1).normal(size=(2048, 2048))
    one, other = (plan_of(x @ y, workers_of(9, placing=placing)) for placing in ("loads", way))
    assert one.outputs[(x @ y).expression].layout == other.outputs[(x @ y).expression].layout

    def sums(plan: Plan) -> list[int]:  # of how many products each block is a sum
        return sorted(len(task.steps) for task in plan.tasks if task.kind.name == "product")

    assert sums(one) == sums(other)


def test_explain_says_what_was_looked_at_and_taken():
    with mn.start(workers=4, threads=1):
        text = (normal(100_000, 64).T @ normal(100_000, 64)).explain(stage="place")
    assert "4 parts, each where all that it reads is" in text
    with mn.start(workers=4, threads=1):
        x = normal(1000, 1000)
        text = (x @ mn.random.default_rng(1).normal(size=(1000, 1000))).explain(stage="place")
    assert "8 parts; largest loads where the largest operand is" in text
    assert "taken: where the result is to be" in text

"""Programs of loops: every register is filled before it is read, and arrays that meet lie alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import scipy.sparse as sp

import matnb as mn
from matnb.blocks.grid import Grid
from matnb.blocks.layout import Layout, spread
from matnb.expr.control import Cond, Loop
from matnb.expr.nodes import Expr
from matnb.plan.looping import ControlPlan, plan_control, starts_inside
from matnb.program.check import check_program
from matnb.program.plan import StoredArray, Workers
from matnb.program.program import Action, Batch, Branch, Iterate, batches

WORKERS = Workers((3, 5), 2, 10**9)


def stored(node: Expr, number: int) -> StoredArray:
    """An array as if it were on the workers: 4 blocks of rows where there are rows."""
    length = node.shape[0] if node.shape else 1
    count = min(4, max(1, length)) if node.ndim else 1
    rows = tuple(int(cut) for cut in np.linspace(0, length, count + 1))
    if node.sparse:  # cut elsewhere than dense arrays are
        rows = (0, *(cut + 1 for cut in rows[1:-1]), length)
    cuts = (rows, *((0, other) for other in node.shape[1:])) if node.ndim else ()
    layout = Layout(Grid(cuts), spread(count, WORKERS.numbers))
    sizes = tuple(int(np.prod([b - a for a, b in region])) for region in layout.grid.regions())
    return StoredArray(
        layout, tuple(f"in{number}-{k}" for k in range(count)), sizes, tuple(8 * s for s in sizes)
    )


def planned(node: Expr) -> ControlPlan:
    assert isinstance(node, Loop | Cond)
    inputs = {one: stored(one, k) for k, one in enumerate(node.inputs) if not starts_inside(one)}
    found = plan_control(node, inputs, WORKERS, [node])
    check_program(found.program)
    return found


def loop_of(step: object, state: object, **options: object) -> Loop:
    node = mn.iterate(step, state, **{"max_iterations": 3, **options})[1].expression
    assert isinstance(node, Loop)
    return node


def graph(n: int = 40_000) -> mn.DistArray:
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, n, (2, 8 * n))
    return mn.asarray(sp.csr_array((np.ones(8 * n), (rows, columns)), shape=(n, n)))


def kinds(actions: Iterable[Action]) -> list[str]:
    return [task.kind.name for batch in batches(actions) for task in batch.tasks]


def body_of(plan: ControlPlan) -> tuple[Action, ...]:
    (repeat,) = (action for action in plan.program.actions if isinstance(action, Iterate))
    return repeat.body


def test_vectors_lie_as_the_rows_of_the_matrix_and_nothing_is_moved_in_an_iteration() -> None:
    A, share = graph(), mn.asarray(np.random.default_rng(1).random(40_000))
    plan = planned(loop_of(lambda x: 0.85 * (A @ (x * share) + (x * share).sum()), mn.ones(40_000)))
    assert not {"cut", "regrid", "move", "join"} & set(kinds(body_of(plan)))
    matrix = stored(A.expression, 0)
    assert [one.layout.grid.cuts[0] for one in plan.states] == [matrix.layout.grid.cuts[0]]
    assert "gather" in kinds(plan.program.actions[: -len(body_of(plan))])  # `share` is laid out anew, once
    shares = [task for batch in batches(body_of(plan)) for task in batch.tasks if task.kind.name == "map"]
    (repeat,) = (action for action in plan.program.actions if isinstance(action, Iterate))
    once = {task.key for batch in batches(plan.program.actions[:-1]) for task in batch.tasks}
    of_state = [task for task in shares if not set(repeat.state[0]).isdisjoint(task.inputs)]
    assert of_state
    assert not any(once.isdisjoint(task.inputs) for task in of_state)


def test_a_result_in_other_cuts_is_brought_back_to_those_of_the_state() -> None:
    A = graph()
    n = A.shape[0]
    plan = planned(loop_of(lambda s: (A @ s[0], s[0][::-1] + 1), (mn.ones(n), mn.ones(n))))
    assert plan.states[0].layout == plan.states[1].layout


def test_state_may_stay_swap_and_be_given() -> None:
    a = mn.asarray(np.arange(70_000.0))
    plan = planned(loop_of(lambda s: (s[1], s[0], a, s[3], s[3]), (mn.ones(70_000),) * 3 + (a, a)))
    (repeat,) = (action for action in plan.program.actions if isinstance(action, Iterate))
    assert repeat.after[0] == repeat.state[1]
    assert repeat.after[1] == repeat.state[0]
    assert repeat.after[3] == repeat.after[4] == repeat.state[3]


def test_bodies_in_bodies_do_not_share_slots() -> None:
    def step(x: mn.DistArray) -> mn.DistArray:
        y, _ = mn.iterate(lambda y: y * 2 + 1, x * 2 + 1, max_iterations=2)
        z = mn.cond(y.sum() > 3, lambda: y * 2 + 1, lambda: mn.ones(70_000) * y)
        return z + x * 2

    plan = planned(loop_of(step, mn.ones(70_000)))
    keys = [task.key for batch in batches(plan.program.actions) for task in batch.tasks]
    assert len(keys) == len(set(keys))


def test_what_a_branch_and_later_parts_of_a_body_read_is_made_once() -> None:
    A = graph(4_000)
    V = mn.asarray(np.random.default_rng(1).random((4_000, 3)))

    def step(x: mn.DistArray) -> mn.DistArray:
        along = V.T @ (A @ x)
        y = mn.cond(np.abs(along).sum() > 1, lambda: x / 2, lambda: x * 2)
        z, _ = mn.iterate(lambda z: z + along[0], y, max_iterations=2)
        return z + V @ (along + (A @ x).sum()) + (V.T @ (x * 3)).sum()

    plan = planned(loop_of(step, mn.ones(4_000)))
    made = [one for one in plan.stages if one.kind.name == "product"]
    assert len([one for one in made if one.expression.shape == (4_000,)]) == 2  # A @ x, V @ ...
    assert (
        len([one for one in made if one.expression.shape == (3,)]) == 2
    )  # along, and what the last part alone reads
    assert not [one for one in plan.stages if one.kind.name == "transpose"]


def test_what_was_made_in_passing_is_not_kept_whole() -> None:
    w, n = mn.asarray(np.arange(20_000.0)), 20_000

    def differences(x: mn.DistArray) -> mn.DistArray:
        D = x[:, None] - w[None, :]
        return mn.cond(D.max() > 1, lambda: x * 0.5, lambda: x * 2) + D.min(axis=1) * 0.1

    def sampled(x: mn.DistArray) -> mn.DistArray:
        U = x[:, None] * w[None, :5]
        S = A * (U @ U.T)
        return mn.cond(S.sum() > 1, lambda: x * 0.5, lambda: x * 2) + S.sum(axis=1) * 0.1

    A = graph(n)
    for step, most in ((differences, 0.3), (sampled, 0.8)):
        plan = planned(loop_of(step, mn.ones(n)))
        assert max(plan.peaks.values()) < most * 8 * n * n


def test_a_body_that_is_lowered_twice_holds_its_arrays_once() -> None:
    A = graph()

    def step(s: tuple[mn.DistArray, mn.DistArray]) -> tuple[mn.DistArray, mn.DistArray]:
        y = A @ s[0]
        return mn.cond(y.sum() > 1, lambda: y / 2, lambda: y), s[1]

    def turned(s: tuple[mn.DistArray, mn.DistArray]) -> tuple[mn.DistArray, mn.DistArray]:
        y, z = step(s)
        return y, z[::-1] + 1  # comes out in other cuts

    state = (mn.ones(40_000), mn.ones(40_000))
    once, twice = (sum(planned(loop_of(one, state)).peaks.values()) for one in (step, turned))
    assert twice < once + 5 * 8 * 40_000


def test_a_branch_of_its_own() -> None:
    a = mn.asarray(np.arange(70_000.0))
    node = mn.cond(a.sum() > 3, lambda: (a * 2, a.sum()), lambda: (a, a.max()))[0].expression.control
    plan = planned(node)
    assert len([one for one in plan.program.actions if isinstance(one, Branch)]) == 1


def test_only_what_is_wanted_is_kept() -> None:
    node = loop_of(lambda s: (s[0] + 1, s[1] * 2), (mn.ones(70_000), mn.ones(70_000)))
    plan = planned(node)
    assert set(plan.outputs) == {node}
    (repeat,) = (action for action in plan.program.actions if isinstance(action, Iterate))
    assert plan.program.results == (repeat.taken,)


def test_memory_counts_the_state_twice_at_least() -> None:
    node = loop_of(lambda x: np.exp(x) * 2, mn.ones(70_000))
    plan = planned(node)
    assert sum(plan.peaks.values()) >= 2 * 70_000 * 8


def test_programs_repeat() -> None:
    def keys() -> Mapping[str, int]:
        A = graph()
        found = planned(loop_of(lambda x: A @ x, mn.ones(40_000)))
        return {task.key: task.owner for batch in batches(found.program.actions) for task in batch.tasks}

    assert keys() == keys()


def test_what_is_gathered_of_a_given_vector_is_gathered_once() -> None:
    A, x = graph(), mn.asarray(np.random.default_rng(1).random(40_000))
    # The product with a given vector stays inside, since only its sum with the state is asked for.
    plan = planned(loop_of(lambda y: (A * y[:, None]) @ x + y, mn.ones(40_000)))
    assert "gather" not in kinds(body_of(plan))
    assert "gather" in kinds(plan.program.actions)


def test_a_loop_in_a_loop_is_rid_of_what_the_outer_one_gives() -> None:
    a = mn.asarray(np.arange(70_000.0))

    def step(x: mn.DistArray) -> mn.DistArray:
        return mn.iterate(lambda y: np.where(y > a[:1], y, x), x, max_iterations=2)[0]

    plan = planned(loop_of(step, mn.ones(70_000)))
    (outer,) = (action for action in plan.program.actions if isinstance(action, Iterate))
    (inner,) = (action for action in outer.body if isinstance(action, Iterate))
    assert len(inner.body) == 1


def test_copies_of_the_state_count_where_it_is_kept() -> None:
    plan = planned(loop_of(lambda x: x * 2, mn.ones(70_000)))
    added = {owner: plan.peaks_with_copies[owner] - peak for owner, peak in plan.peaks.items()}
    assert all(4 * 280_000 <= one <= 8 * 560_000 for one in added.values())


def test_a_state_that_is_a_few_functions_of_constants_is_made_by_the_program_as_it_is_cut() -> None:
    A, at_source = graph(), mn.arange(40_000) == 7
    plan = planned(loop_of(lambda x: x @ A, np.where(at_source, 1.0, 0.0)))
    assert {node for node, _ in plan.given.values()} == {A.expression}
    (repeat,) = (action for action in plan.program.actions if isinstance(action, Iterate))
    firsts = [task for batch in plan.program.actions if isinstance(batch, Batch) for task in batch.tasks]
    assert {task.key for task in firsts} >= {name for names in repeat.first for name in names}
    assert {task.kind.name for task in firsts} == {"map"}  # nothing is cut and joined
    many = at_source
    for _ in range(20):
        many = ~many
    assert not starts_inside(many.expression)


def cut_for(workers: Workers, node: Expr, parts: int, num_bytes: int) -> StoredArray:
    """Return an array of so many bytes as if it were there, in equal parts of rows."""
    rows = tuple(int(cut) for cut in np.linspace(0, node.shape[0], parts + 1))
    layout = Layout(Grid((rows, *((0, other) for other in node.shape[1:]))), spread(parts, workers.numbers))
    keys = tuple(f"{node.digest.hex()}-{k}" for k in range(parts))
    return StoredArray(layout, keys, (num_bytes // 12 // parts,) * parts, (num_bytes // parts,) * parts)


def blocks_of_state(workers: Workers, parts: int, num_bytes: int, iterations: int) -> list[int]:
    """Return the owners of the blocks of a loop's state, whose matrix is in so many parts."""
    A = graph()
    node = loop_of(lambda x: A @ x, mn.ones(40_000), max_iterations=iterations)
    plan = plan_control(
        node, {A.expression: cut_for(workers, A.expression, parts, num_bytes)}, workers, [node]
    )
    check_program(plan.program)
    (state,) = plan.states
    return list(state.layout.owners)


def test_what_is_cut_for_threads_is_one_block_a_worker_in_small_loops() -> None:
    one, two = Workers((0,), 2, 10**9), Workers((3, 5), 2, 10**9)
    assert blocks_of_state(one, 2, 2**21, 100) == [0]
    assert blocks_of_state(two, 4, 2**21, 100) == [3, 5]
    assert blocks_of_state(two, 2, 2**21, 100) == [3, 5]
    assert blocks_of_state(one, 5, 2**21, 100) == [0] * 5, "a user cuts as it is wanted"
    assert blocks_of_state(one, 2, 2**23, 100) == [0, 0], "threads gain where there is more"
    assert blocks_of_state(one, 2, 2**21, 2) == [0, 0], "laying out anew does not pay"


def products_an_iteration(num_rows: int, row_entries: int) -> int:
    """How many products an iteration of a loop of sparse squares has, of 2 blocks on 2 threads."""
    workers, n = Workers((0,), 2, 10**9), num_rows
    A = mn.asarray(sp.eye_array(n, format="csr"))
    node = loop_of(lambda flow: (flow @ flow).prune(0.1), A, max_iterations=10)
    entries = n * row_entries // 2
    layout = Layout(Grid(((0, n // 2, n), (0, n))), (0, 0))
    array = StoredArray(layout, ("first", "second"), (entries,) * 2, (12 * entries,) * 2)
    plan = plan_control(node, {A.expression: array}, workers, [node])
    check_program(plan.program)
    return kinds(body_of(plan)).count("product")


def test_products_of_a_sparse_state_are_cut_by_what_it_begins_with() -> None:
    assert products_an_iteration(1_500, 15) == 2, "though it may be full after some iterations"
    assert products_an_iteration(16_000, 30) == 16

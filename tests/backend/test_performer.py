"""A member of a gang: its batches, its loops, what it sends, and what it allocates; checked with NumPy."""

from __future__ import annotations

import threading
import time
import tracemalloc
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from member_programs import BOOL, FLOAT, Functional, Ranks, apply, constant, limit, state, task
from members import Box, Post, perform_all, results_of

from matnb.backend.gang import iteration_boundary
from matnb.backend.gang.mailbox import Aborted
from matnb.backend.gang.performer import perform
from matnb.backend.tasks.executor import StepMemory, execute
from matnb.backend.tasks.worker import TaskFailed
from matnb.blocks.formats import Block, Csr, Dense, block_from, csr_block, to_numpy
from matnb.blocks.kernels.elementwise.elementwise import Link
from matnb.program.operators import Cut, FusedKernel, Multiply
from matnb.program.plan import Task
from matnb.program.program import Batch, Branch, Iterate, Program


@pytest.mark.parametrize("through", ["x", "z"])
@pytest.mark.parametrize("members", [(0,), (0, 1), (2, 3, 5, 7)])
@pytest.mark.parametrize("num_blocks", [1, 5, 8])
def test_ranks_of_any_cuts_and_members(members, num_blocks, through):
    ranks = Ranks(3000, num_blocks, members)
    program, given = ranks.program(12, 1.0, through)
    found = perform_all(program, given, members, prepare=Functional)
    expected, taken = ranks.expected(12, 1.0, through == "z")
    np.testing.assert_allclose(state(found, ranks.blocks("x")), expected, rtol=1e-12)
    assert {one.iterations for one in found.values()} == {taken}
    assert 1 < taken < 12


def test_members_threads_and_reused_memory_do_not_change_a_bit():
    found = []
    for members, num_threads in (((0,), 1), ((0,), 3), ((0, 1), 2), ((0, 1, 2, 3), 1)):
        ranks = Ranks(30_000, 8, members)
        program, given = ranks.program(9, None, "z")
        found.append(state(perform_all(program, given, members, num_threads), ranks.blocks("x")))
    for one in found[1:]:
        assert one.tobytes() == found[0].tobytes()
    np.testing.assert_allclose(found[0], ranks.expected(9, half=True)[0], rtol=1e-12)


class Into(Functional):
    """Writes products and elementwise functions into memory it is given, as a program's steps will be."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        last = task.steps[-1]
        may = isinstance(last.operator, FusedKernel) and not last.operator.shares
        self.may_overwrite = tuple(may and place in last.arguments for place in range(len(task.inputs)))

    def run(self, values: Sequence[Any], memory: StepMemory) -> Any:
        take, give, out, *_ = memory
        registers: list[Any] = list(values)
        temporaries = []
        for step in self.task.steps:
            found = [registers[place] for place in step.arguments]
            is_last = step is self.task.steps[-1]
            match step.operator:
                case FusedKernel((link,), ()):
                    arrays = [to_numpy(one) for one in found]
                    shape = np.broadcast_shapes(*(one.shape for one in arrays))
                    target = out if is_last and out is not None else take(shape, link.dtype)
                    getattr(np, link.name)(*arrays, out=target)
                case Multiply() if isinstance(found[0], Csr):
                    target = out if is_last and out is not None else take(found[0].shape[:1], FLOAT)
                    sp._sparsetools.csr_matvec(  # adds to what is there, without memory of its own
                        *found[0].shape, found[0].pointers, found[0].columns, found[0].values,
                        found[1].values, _zeroed(target),
                    )  # fmt: skip
                case _:
                    registers.append(execute(step.operator, found))
                    continue
            if not is_last:
                temporaries.append(target)
            registers.append(Dense(target))
        for one in temporaries:
            give(one)
        return registers[-1]


def _zeroed(array: np.ndarray) -> np.ndarray:
    array[...] = 0
    return array


@pytest.mark.parametrize("through", ["x", "z"])
@pytest.mark.parametrize("members", [(0,), (0, 1)])
def test_nothing_large_is_allocated_after_two_iterations(members, through):
    ranks = Ranks(80_000, 4, members)
    program, given = ranks.program(12, None, through)
    seen: list[tuple[int, int]] = []

    def on_progress(iteration: int, seconds: float) -> None:
        if iteration == 3:
            tracemalloc.start(1)
        if iteration >= 3:
            sizes = [trace.size for trace in tracemalloc.take_snapshot().traces]
            seen.append((iteration, sum(size >= 65536 for size in sizes)))
            tracemalloc.clear_traces()

    try:
        found = perform_all(program, given, members, 1, prepare=Into, on_progress=on_progress)
    finally:
        tracemalloc.stop()
    expected, _ = ranks.expected(12, half=through == "z")
    np.testing.assert_allclose(state(found, ranks.blocks("x")), expected, rtol=1e-12)
    for one in found.values():
        assert one.allocated[0] > 0
        assert one.allocated[2:] == (0,) * 10
    if len(members) == 1:  # a mailbox takes memory for what it carries
        assert seen == [(iteration, 0) for iteration in range(3, 13)]


def test_late_receipts_of_packed_blocks_of_one_size_cost_no_memory(monkeypatch):
    at_once, num_packed, held = Box.post, Counter(), defaultdict(deque)

    def post(self, target, tag, value, sent=None):
        if sent is None or not isinstance(value, np.ndarray):
            at_once(self, target, tag, value, sent)
            return
        at_once(self, target, tag, value.copy())
        waiting = held[self.owner]
        waiting.append(sent)
        num_packed[self.owner] += 1
        # Later on only when the other block of the next iteration was packed
        while len(waiting) > (3 if num_packed[self.owner] > 8 else 0):
            waiting.popleft()()

    monkeypatch.setattr(Box, "post", post)
    ranks = Ranks(80_000, 4, (0, 1))
    rows = np.arange(80_000)
    ranks.matrix = sp.csr_array((np.ones(80_000), (rows, 2 * rows % 80_000)), shape=(80_000, 80_000))
    program, given = ranks.program(12, None)
    found = perform_all(program, given, (0, 1), 1, prepare=Into)
    np.testing.assert_allclose(state(found, ranks.blocks("x")), ranks.expected(12)[0], rtol=1e-12)
    for one in found.values():
        assert one.sent_bytes < 12 * 8 * 21_000
        assert one.allocated[2:] == (0,) * 10


def test_kernels_that_allocate_are_counted():
    ranks = Ranks(200_000, 4, (0,))
    program, given = ranks.program(4, None)
    (found,) = perform_all(program, given, (0,), prepare=Functional).values()
    assert min(found.allocated) >= 4


def test_only_touched_entries_are_sent():
    ranks = Ranks(40_000, 4, (0, 1))
    mask = np.zeros(40_000, bool)
    mask[::10] = True  # columns that any row reads
    ranks.matrix = (ranks.matrix @ sp.diags_array(mask.astype(float))).tocsr()
    ranks.matrix.eliminate_zeros()
    ranks.first[~mask] = np.nan  # as whole vectors are sent of blocks that are not touched
    ranks.first[mask] = 1.0
    program, given = ranks.program(5, None)
    found = perform_all(program, given, (0, 1), prepare=Functional)
    x = np.where(mask, ranks.first, 0)
    for _ in range(5):
        x = (ranks.matrix @ x) * 0.1 + 0.05
    np.testing.assert_allclose(state(found, ranks.blocks("x")), x, rtol=1e-12)
    other = [ranks.matrix[20_000:, :20_000], ranks.matrix[:20_000, 20_000:]]
    touched = [len(np.unique(part.indices)) for part in other]
    for member, count in enumerate(touched):
        scalars = 5 * 64 * 8 * 2  # shares of sums
        assert 5 * 8 * count <= found[member].sent_bytes <= 5 * 8 * count + scalars


def test_all_entries_are_sent_where_most_are_touched():
    ranks = Ranks(300, 2, (0, 1))
    ranks.matrix = sp.csr_array(np.random.default_rng(1).random((300, 300)) * 0.01)
    program, given = ranks.program(3, None)
    found = perform_all(program, given, (0, 1), prepare=Functional)
    np.testing.assert_allclose(state(found, ranks.blocks("x")), ranks.expected(3)[0], rtol=1e-12)
    assert found[0].sent_bytes >= 3 * 8 * 150


def loop_of(
    body: Sequence[Any], state: dict[str, tuple[Block, str]], count: int, owner: int = 0, **more: Any
) -> tuple[Program, dict[str, Block]]:
    """Return a loop over arrays of one block each: name -> (first value, register of the next)."""
    given, held = limit(count, owner)
    for name, (block, _) in state.items():
        given[f"{name}-first"] = block
        held[f"{name}-first"] = owner
    names = tuple((name,) for name in state)
    first = tuple((f"{name}-first",) for name in state)
    after = tuple((name,) for _, name in state.values())
    until = more.pop("until", None)
    loop = Iterate(names, first, after, "limit", until, "iteration", "taken", tuple(body))
    owners = held | dict.fromkeys(state, owner) | {"iteration": 0, "taken": owner}
    results = (*state, "taken")
    return Program((loop,), held, owners, frozenset({"iteration", "taken"}), results), given


def vector(*values: float) -> Dense:
    return Dense(np.array(values, float))


def test_state_may_change_places_stay_or_be_one_result_twice():
    double = task("twice", 0, ["x"], (constant(2.0), ()), (apply("multiply"), (0, 1)))
    state = {
        "x": (vector(1, 2), "y"), "y": (vector(3, 4), "x"), "kept": (vector(5), "kept"),
        "one": (vector(0, 0), "twice"), "two": (vector(0, 0), "twice"),
    }  # fmt: skip
    program, given = loop_of([Batch((double,), ("twice",))], state, 3)
    found = {
        name: to_numpy(block).tolist()
        for name, block in results_of(perform_all(program, given, (0,), prepare=Functional)).items()
    }
    assert found == {
        "x": [3, 4], "y": [1, 2], "kept": [5], "one": [2, 4], "two": [2, 4], "taken": 3,
    }  # fmt: skip


def test_no_iteration_leaves_the_first_state():
    step = task("next", 0, ["x"], (apply("negative", FLOAT), (0,)))
    program, given = loop_of([Batch((step,), ("next",))], {"x": (vector(1, 2), "next")}, 0)
    (found,) = perform_all(program, given, (0,), prepare=Functional).values()
    assert to_numpy(found.values["x"]).tolist() == [1, 2]
    assert to_numpy(found.values["taken"]) == found.iterations == 0
    assert not found.timed


def test_ten_thousand_iterations_count_up():
    step = task("next", 0, ["x"], (constant(1.0), ()), (apply("add"), (0, 1)))
    program, given = loop_of([Batch((step,), ("next",))], {"x": (vector(0, 1), "next")}, 10_000)
    (found,) = perform_all(program, given, (0,), prepare=Functional).values()
    assert to_numpy(found.values["x"]).tolist() == [10_000, 10_001]
    assert found.iterations == 10_000
    (timed,) = found.timed
    assert (timed.key, timed.worker, timed.rows, timed.output_bytes) == ("next", 0, 2, 16)
    assert 0 < timed.seconds < 60


def test_a_thousand_arrays_of_state():
    names = [f"x{number}" for number in range(1000)]
    tasks = [task(f"next-{name}", 0, [name], (constant(1.0), ()), (apply("add"), (0, 1))) for name in names]
    state = {name: (vector(place), f"next-{name}") for place, name in enumerate(names)}
    program, given = loop_of([Batch(tuple(tasks), tuple(one.key for one in tasks))], state, 3)
    results = results_of(perform_all(program, given, (0,), prepare=Functional))
    assert [float(to_numpy(results[name])[0]) for name in names] == [place + 3 for place in range(1000)]


@pytest.mark.parametrize("members", [(0,), (0, 1)])
def test_loops_in_loops_and_branches(members):
    # for i in range(4): for j in range(3): x += 1 if x > 5 else 2   (the scalars are told by the last member)
    far = members[-1]
    test = Batch(
        (task("large", far, ["x"], (constant(5.0), ()), (apply("greater", dtype=BOOL), (0, 1))),), ("large",)
    )
    ways = [
        Batch(
            (task(f"plus{step}", far, ["x"], (constant(step), ()), (apply("add"), (0, 1))),), (f"plus{step}",)
        )
        for step in (1, 2)
    ]
    branch = Branch("large", (ways[0],), (ways[1],), ("new",), ("plus1",), ("plus2",))
    inner = Iterate((("x",),), (("s",),), (("new",),), "three", None, "j", "inner-taken", (test, branch))
    near = Batch((task("told", 0, ["x", "j0"], (apply("add"), (0, 1))),), ("told",))
    outer = Iterate(
        (("s",), ("t",)),
        (("s-first",), ("t-first",)),
        (("x",), ("told",)),
        "limit",
        None,
        "i",
        "taken",
        (inner, near),
    )
    given = {
        "limit": Dense(np.array(4)), "three": Dense(np.array(3)), "s-first": Dense(np.array(0.0)),
        "t-first": Dense(np.array(0.0)), "j0": Dense(np.array(0.0)),
    }  # fmt: skip
    held = {"limit": far, "three": 0, "s-first": far, "t-first": 0, "j0": far}
    owners = held | {"s": far, "x": far, "new": far, "t": 0, "i": 0, "j": 0, "taken": 0, "inner-taken": 0}
    everywhere = frozenset({"i", "j", "taken", "inner-taken"})
    program = Program((outer,), held, owners, everywhere, ("s", "t", "taken"))
    results = results_of(perform_all(program, given, members, prepare=Functional))
    expected = 0.0
    for _ in range(12):
        expected += 1 if expected > 5 else 2
    assert float(to_numpy(results["s"])) == float(to_numpy(results["t"])) == expected
    assert int(to_numpy(results["taken"])) == 4


def test_a_loop_goes_on_from_a_checkpoint_and_saves_when_the_first_member_says_so(monkeypatch):
    monkeypatch.setattr(iteration_boundary, "_QUIET_SECONDS", 0.0)  # asked after each iteration

    class Keeps:
        def __init__(self, is_first: bool) -> None:
            self.is_first, self.saved, self.asked = is_first, {}, 0

        def is_due(self) -> bool:
            assert self.is_first
            self.asked += 1
            return self.asked % 2 == 0

        def save(self, iteration: int, registers: dict[str, Block]) -> None:
            self.saved[iteration] = {name: to_numpy(block).copy() for name, block in registers.items()}

    ranks = Ranks(100, 2, (0, 1))
    program, given = ranks.program(7, None)
    keepers = {0: Keeps(True), 1: Keeps(False)}
    perform_all(program, given, (0, 1), keepers=keepers, prepare=Functional)
    assert list(keepers[0].saved) == list(keepers[1].saved) == [2, 4, 6]
    assert set(keepers[0].saved[4]) == {"x0"}
    for member in (0, 1):
        given[f"x0-{member}"] = Dense(keepers[member].saved[4][f"x{member}"])
    found = perform_all(program, given, (0, 1), begin=4, prepare=Functional)
    np.testing.assert_allclose(state(found, ranks.blocks("x")), ranks.expected(7)[0], rtol=1e-12)
    assert found[0].iterations == 7
    assert len(found[0].allocated) == 3


def test_a_task_that_raises_on_one_member_ends_all():
    ranks = Ranks(100, 2, (0, 1))
    program, given = ranks.program(1000, None)
    given["A1"] = csr_block(ranks.matrix[50:, :40])  # of another shape
    with pytest.raises(TaskFailed) as raised:
        perform_all(program, given, (0, 1), prepare=Functional)
    failed = raised.value.failed
    assert failed.key == "y1"
    assert isinstance(failed.operator, Multiply)
    assert isinstance(failed.error, ValueError)


def test_an_abort_ends_a_member_that_waits():
    ranks = Ranks(100, 2, (0, 1))
    program, given = ranks.program(1000, None)
    with Post((0, 1)) as post:
        mine = {name: block for name, block in given.items() if program.given[name] == 0}
        threading.Timer(0.2, lambda: setattr(post, "reason", "enough")).start()
        begin = time.perf_counter()
        with pytest.raises(Aborted, match="enough"):
            perform(program, mine, post.boxes[0], 2, None, prepare=Functional)
        assert time.perf_counter() - begin < 2


def test_memory_of_state_that_dies_is_written_in_place():
    step = task("next", 0, ["x"], (constant(1.0), ()), (apply("add"), (0, 1)))
    size = 100_000
    program, given = loop_of([Batch((step,), ("next",))], {"x": (Dense(np.zeros(size)), "next")}, 6)
    (found,) = perform_all(program, given, (0,), 1, prepare=Into).values()
    assert sum(found.allocated) == 1  # what is given is never written
    assert (to_numpy(found.values["x"]) == 6).all()
    assert (to_numpy(given["x-first"]) == 0).all()
    assert not found.values["x"].values.flags.writeable


def test_a_register_read_later_is_not_overwritten():
    first = task("next", 0, ["x"], (constant(1.0), ()), (apply("add"), (0, 1)))
    second = task("sum", 0, ["next", "x"], (apply("add"), (0, 1)))
    state = {"x": (Dense(np.zeros(10_000)), "next"), "y": (Dense(np.zeros(10_000)), "sum")}
    program, given = loop_of([Batch((first, second), ("next", "sum"))], state, 5)
    (found,) = perform_all(program, given, (0,), 2, prepare=Into).values()
    assert (to_numpy(found.values["x"]) == 5).all()
    assert (to_numpy(found.values["y"]) == 9).all()


def test_views_keep_the_memory_they_look_at():
    cut = task("half", 0, ["x"], (Cut(((0, 10_000),)), (0,)))
    step = task("next", 0, ["x"], (constant(1.0), ()), (apply("add"), (0, 1)))
    late = task("late", 0, ["half", "next"], (Cut(((0, 10_000),)), (1,)), (apply("subtract"), (2, 0)))
    state = {"x": (Dense(np.zeros(20_000)), "next"), "gap": (Dense(np.zeros(10_000)), "late")}
    body = [Batch((cut, step), ("half", "next")), Batch((late,), ("late",))]
    program, given = loop_of(body, state, 5)
    (found,) = perform_all(program, given, (0,), 2, prepare=Into).values()
    assert (to_numpy(found.values["gap"]) == 1).all()
    assert (to_numpy(found.values["x"]) == 5).all()


def test_sparse_state_is_sent_and_kept():
    block = block_from(sp.random_array((20, 20), density=0.2, rng=np.random.default_rng(1), format="csr"))
    step = task("next", 1, ["x"], (FusedKernel((Link("negative", (FLOAT,), FLOAT, 0, True, (0,)),)), (0,)))
    back = task("back", 0, ["next"], (FusedKernel((Link("negative", (FLOAT,), FLOAT, 0, True, (0,)),)), (0,)))
    program, given = loop_of([Batch((step, back), ("back",))], {"x": (block, "back")}, 3)
    results = results_of(perform_all(program, given, (0, 1), prepare=Functional))
    assert (to_numpy(results["x"]) == to_numpy(block)).all()

"""Tasks of one run that several threads do together."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest
from written import written

import matnb as mn
from matnb.backend.engines.engine_threads import ThreadEngine
from matnb.backend.tasks import shared_tasks, worker
from matnb.backend.tasks.shared_tasks import SharedTasks, TaskGraph
from matnb.blocks.formats import Dense
from matnb.blocks.grid import Grid
from matnb.blocks.kernels.shaping.shaping import root_of
from matnb.blocks.layout import Layout
from matnb.expr.nodes import Data
from matnb.io.columns import TablePart
from matnb.program.kinds import COMBINE, GATHER, MAP
from matnb.program.operators import Accumulate, Cut, Fill, Join
from matnb.program.plan import Step, StoredArray, Task

FLOAT = np.dtype(np.float64)
RUN = worker.RunId("test-shared-", 7)


def added(key: str, *inputs: str, owner: int = 0) -> Task:
    step = Step(Accumulate("plus", FLOAT), tuple(range(len(inputs))))
    return Task(key, (step,), inputs, owner, COMBINE)


def constant(key: str, value: float, owner: int = 0) -> Task:
    return Task(key, (Step(written(np.array([value])), ()),), (), owner, MAP)


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    yield
    worker.forget(RUN)
    worker._forgotten.discard(RUN)


def test_threads_do_each_task_once_and_let_values_go(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    run = worker.run_prepared
    monkeypatch.setattr(
        worker, "run_prepared", lambda task, *rest: (begun.append(task.key), run(task, *rest))[1]
    )
    tasks = [constant("x0", 1.0)]
    tasks += [added(f"x{place}", f"x{place // 2}", f"x{place // 3}") for place in range(1, 200)]
    values: dict[str, object] = {}
    sharing = SharedTasks(RUN, TaskGraph(tasks), values, {"x199"})
    threads = [threading.Thread(target=sharing.work, args=(0,)) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(timeout=20)
        assert not one.is_alive()
    assert sorted(begun) == sorted(task.key for task in tasks)
    assert [key for task in tasks for key in task.inputs if key in values] == []
    expected = [1.0]
    for place in range(1, 200):
        expected.append(expected[place // 2] + expected[place // 3])
    assert sharing.ended.done()
    assert sharing.made()["x199"].values.item() == expected[-1]
    sharing.work(0)  # one that comes late


def test_what_breaks_a_helper_breaks_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise SystemExit("told to")

    monkeypatch.setattr(worker, "run_prepared", broken)
    sharing = SharedTasks(RUN, TaskGraph([constant("c", 2.0)]), {}, {"c"})
    helper = threading.Thread(target=sharing.work, args=(0,))
    helper.start()
    helper.join()
    with pytest.raises(SystemExit, match="told to"):
        sharing.made()


def test_each_worker_does_its_own_and_waits_for_what_the_other_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[str, str]] = []
    run = worker.run_prepared

    def noted(task: Task, *rest: object) -> object:
        done.append((task.key, threading.current_thread().name))
        return run(task, *rest)

    monkeypatch.setattr(worker, "run_prepared", noted)
    tasks = [constant("x0", 1.0)]
    tasks += [added(f"x{place}", f"x{place - 1}", owner=place % 2) for place in range(1, 40)]
    sharing = SharedTasks(RUN, TaskGraph(tasks), {}, {"x39"})
    threads = [threading.Thread(target=sharing.work, args=(one,), name=str(one)) for one in range(2)]
    for one in threads:
        one.start()
    assert sharing.ended.result(timeout=20) is None
    for one in threads:
        one.join(timeout=20)
        assert not one.is_alive()
    assert done == [(f"x{place}", str(place % 2)) for place in range(40)]
    assert sharing.made()["x39"].values.item() == 1.0


def test_a_failure_ends_the_run_and_what_was_made_before_is_there() -> None:
    tasks = [constant("c", 1.0), added("bad"), added("after", "c", "bad")]
    sharing = SharedTasks(RUN, TaskGraph(tasks), {}, {"c", "after"})
    sharing.work(0)
    assert sharing.ended.done()
    assert sharing.failed is not None
    assert sharing.failed.key == "bad"
    assert set(sharing.made()) == {"c"}
    assert sharing.num_done == 2


def test_a_thread_that_waits_for_another_workers_task_is_let_go_when_the_run_is_stopped() -> None:
    tasks = [constant("there", 1.0, owner=1), added("here", "there", owner=0)]
    shared = SharedTasks(RUN, TaskGraph(tasks), {}, {"here"})
    waiting = threading.Thread(target=shared.work, args=(0,))
    waiting.start()
    waiting.join(timeout=0.1)
    assert waiting.is_alive()
    shared.stop()
    waiting.join(timeout=10)
    assert not waiting.is_alive()
    assert shared.ended.done()
    assert shared.made() == {}


def test_one_thread_does_the_tasks_of_all_workers_and_lets_values_go() -> None:
    tasks = [constant("x0", 1.0)]
    tasks += [added(f"x{place}", f"x{place - 1}", owner=place % 3) for place in range(1, 40)]
    values: dict[str, object] = {}
    graph = TaskGraph(tasks)
    for _ in range(2):  # what was found out about the tasks does for another run
        sharing = SharedTasks(RUN, graph, values, {"x39", "x5"})
        sharing.work_alone()
        assert sharing.ended.done()
        assert sharing.num_done == 40
        assert {key: one.values.item() for key, one in sharing.made().items()} == {"x39": 1.0, "x5": 1.0}
        assert set(values) == {"x39", "x5"}
        values.clear()


def test_one_thread_begins_no_task_after_one_that_fails_or_once_the_run_is_stopped() -> None:
    tasks = [constant("x0", 1.0), added("x1", "x0"), added("x2", "x1", "x0")]
    failing = SharedTasks(
        RUN, TaskGraph(tasks), {"x0": worker.TaskFailure("x0", RuntimeError("lost"), "")}, {"x2"}
    )
    failing.work_alone()
    assert failing.ended.done()
    assert failing.failed is not None
    stopped = SharedTasks(RUN, TaskGraph(tasks), {}, {"x2"})
    stopped.stop()
    stopped.work_alone()
    assert stopped.num_done == 0
    assert stopped.made() == {}


@pytest.mark.parametrize("alone", [True, False])
def test_rows_that_a_task_puts_together_are_made_in_one_array(alone: bool) -> None:
    lengths, width = (40_000, 50_000, 60_000), 8
    tasks = [
        Task(f"c{place}", (Step(written(ones(length, width)), ()),), (), 0, MAP)
        for place, length in enumerate(lengths)
    ]
    tasks += [added(f"x{place}", f"c{place}", f"c{place}") for place in range(3)]
    join = Join(((0, 0), (40_000, 0), (90_000, 0)), (150_000, width), FLOAT, False)
    tasks.append(Task("whole", (Step(join, (0, 1, 2)),), ("x0", "x1", "x2"), 0, GATHER))
    sharing = SharedTasks(RUN, TaskGraph(tasks), {}, {"x0", "x1", "x2", "whole"})
    sharing.work_alone() if alone else sharing.work(0)
    made = sharing.made()
    assert (made["whole"].values == 2).all()
    for place in range(3):
        assert np.shares_memory(made["whole"].values, made[f"x{place}"].values)
        assert not made[f"x{place}"].values.flags.writeable
    assert made["whole"].values.ctypes.data % 64 == 0


def ones(*shape: int) -> Dense:
    return Dense(np.ones(shape))


@pytest.mark.parametrize("alone", [True, False])
def test_a_task_whose_border_is_cut_out_of_a_block_in_the_same_array_copies_it(alone: bool) -> None:
    # x0 and x1 lie in one array; x1 is x0's border around zeros
    rows, width = 80_000, 4
    middle = ((1, rows - 1), (0, width))
    edges = ((0, 1), (0, width)), ((rows - 1, rows), (0, width))
    steps = (
        *(Step(Cut(edge), (0,)) for edge in edges),
        Step(written(np.zeros((rows - 2, width))), ()),
        Step(Fill((*edges, middle), (rows, width), FLOAT), (1, 2, 3)),
    )
    tasks = [
        Task("c", (Step(written(np.arange(4.0 * rows).reshape(rows, width)), ()),), (), 0, MAP),
        added("x0", "c", "c"),
        Task("x1", steps, ("x0",), 0, MAP),
    ]
    join = Join(((0, 0), (rows, 0)), (2 * rows, width), FLOAT, False)
    tasks.append(Task("whole", (Step(join, (0, 1)),), ("x0", "x1"), 0, GATHER))
    sharing = SharedTasks(RUN, TaskGraph(tasks), {}, {"whole"})
    sharing.work_alone() if alone else sharing.work(0)
    found = sharing.made()["whole"].values
    expected = np.zeros((2 * rows, width))
    expected[:rows] = 2 * np.arange(4.0 * rows).reshape(rows, width)
    expected[rows], expected[-1] = expected[0], expected[rows - 1]
    np.testing.assert_array_equal(found, expected)


def test_what_stays_by_itself_lies_in_no_array_of_others() -> None:
    # else a small one that is kept would keep all that a task put together
    length, width = 50_000, 8
    tasks = [Task("c", (Step(written(ones(length, width)), ()),), (), 0, MAP)]
    tasks += [added(f"x{place}", "c", "c") for place in range(3)]
    join = Join(tuple((place * length, 0) for place in range(3)), (3 * length, width), FLOAT, False)
    tasks.append(Task("whole", (Step(join, (0, 1, 2)),), ("x0", "x1", "x2"), 0, GATHER))
    node = Data(b"one", (length, width), FLOAT, False)
    layout = Layout(Grid(((0, length), (0, width))), (0,))
    sharing = SharedTasks(RUN, TaskGraph(tasks, [(node, StoredArray(layout, ("x1",)))]), {}, {"x1", "whole"})
    sharing.work_alone()
    made = sharing.made()
    assert not np.shares_memory(made["x1"].values, made["whole"].values)
    assert root_of(made["x1"].values).nbytes < 2 * made["x1"].nbytes


@pytest.mark.parametrize(
    ("cuts", "together"), [(((0, 2**16, 2**17), (0, 8)), True), (((0, 2**17), (0, 4, 8)), False)]
)
def test_blocks_of_rows_of_an_array_that_stays_are_made_in_one_array(
    cuts: tuple[tuple[int, ...], ...], together: bool
) -> None:
    layout = Layout(Grid(cuts), (0, 0))
    tasks = []
    for place, region in enumerate(layout.grid.regions()):
        shape = tuple(stop - start for start, stop in region)
        tasks.append(Task(f"c{place}", (Step(written(ones(*shape)), ()),), (), 0, MAP))
        tasks.append(added(f"x{place}", f"c{place}", f"c{place}"))
    node = Data(b"stays", (2**17, 8), FLOAT, False)
    sharing = SharedTasks(
        RUN, TaskGraph(tasks, [(node, StoredArray(layout, ("x0", "x1")))]), {}, {"x0", "x1"}
    )
    sharing.work_alone()
    one, other = (sharing.made()[key].values for key in ("x0", "x1"))
    assert (other.ctypes.data - one.ctypes.data == one.nbytes) is together
    assert (one == 2).all()
    assert (other == 2).all()


def test_an_interrupt_counts_arrays_alone_where_rows_of_a_file_were_read() -> None:
    engine = object.__new__(ThreadEngine)
    plan = SimpleNamespace(outputs={}, tasks=(1, 2, 3))
    sharing = SimpleNamespace(made=lambda: {"rows": TablePart(0)}, num_done=1)
    stopped = engine._stopped(plan, sharing, {}, RUN)  # type: ignore[arg-type]  # what it reads of these
    assert "cancelled 2 of 3 tasks" in str(stopped)


def test_what_has_no_room_as_a_whole_is_made_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def full(shape: tuple[int, ...], dtype: np.dtype) -> object:
        asked.append(shape)
        raise MemoryError("no room")

    monkeypatch.setattr(shared_tasks, "uninitialized", full)
    monkeypatch.setattr(shared_tasks, "_STACKED_BYTES", 1)
    with mn.start(threads=2, processes=False):
        x = mn.random.default_rng(0).random((1000, 400), blocks=4)
        made = (x + 1).persist().compute()
        assert set(asked) == {(1000, 400)}
        monkeypatch.undo()
        mn.memo.clear()
        np.testing.assert_array_equal(made, x.compute() + 1)


def test_what_breaks_before_a_task_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: SharedTasks, key: object) -> object:
        raise RecursionError("broken")

    monkeypatch.setattr(SharedTasks, "_memory", broken)
    with mn.start(threads=2, processes=False), pytest.raises(RecursionError, match="broken"):
        (mn.random.default_rng(0).random((1000, 400), blocks=4) + 1).persist()

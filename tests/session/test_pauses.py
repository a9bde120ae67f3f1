"""Loops that pause between iterations, and go on over other cuts or other workers, give the same."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from plan_runner import multiplies
from random_balancer import Restless
from waiting import wait_until
from watching import tasks_on_scheduler

import matnb as mn
from matnb.backend.engines.engine_gang import GangEngine, GangUnavailable
from matnb.backend.engines.futures import OwnersLost
from matnb.backend.engines.results import Outcome
from matnb.errors import CellCancelled, KernelError
from matnb.events import Event, LoopAdvanced, LoopFinished, TasksFinished, TaskTimed, WorkersLost
from matnb.plan.looping import ControlPlan, plan_control
from matnb.program.plan import Task, Workers
from matnb.program.program import Batch, Iterate, batches
from matnb.session.loop_parts import LoopParts

ENGINES = {
    "dask, workers": {"engine": "dask", "workers": 3, "threads": 1},
    "gang, threads": {"engine": "gang", "workers": 1, "threads": 2},
    "gang, workers": {"engine": "gang", "workers": 3, "threads": 1},
    "gang, processes": {"engine": "gang", "workers": 2, "threads": 1, "processes": True},
}
EVERY = [pytest.param(one, marks=[pytest.mark.cluster] if "processes" in one else []) for one in ENGINES]


def matrix(n: int = 3000, seed: int = 1) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    return sp.random_array((n, n), density=12 / n, rng=rng, format="csr")


def ranked(A: sp.csr_array, count: int, collects: bool = False) -> tuple:
    """Return a loop of sparse products, draws, functions and sums, whose bits follow no cuts."""
    a = mn.asarray(A, blocks=3)

    def step(state: tuple) -> tuple:
        x, total = state
        y = a @ (x * 0.5) + mn.random.default_rng(4).random(A.shape[0])
        y = y / np.sqrt((y * y).sum())
        return y, total + abs(y - x).sum()

    collect = (lambda state: (state[1], state[0][:5])) if collects else None
    start = (mn.ones(A.shape[0]), mn.zeros(()))
    return mn.iterate(step, start, max_iterations=count, collect=collect)


def bits(found: tuple) -> list[bytes]:
    (x, total), n, *kept = found
    values = [x, total, n, *(kept[0] if kept else ())]
    return [one.compute().tobytes() for one in values]


@pytest.fixture(scope="module")
def expected() -> list[bytes]:
    with mn.start(workers=1, threads=1, rebalance="off"):
        found = bits(ranked(matrix(), 9, collects=True))
    mn.stop()
    return found


@pytest.mark.parametrize("name", EVERY)
def test_bits_do_not_follow_pauses_or_cuts(name: str, expected: list[bytes]) -> None:
    for seed in (1,) if "processes" in name else (1, 2, 3):  # whose first draw pauses before all is done
        with mn.start(**ENGINES[name]) as started:
            choose = np.random.default_rng(seed)
            restless = Restless(started, lambda _, choose=choose: choose.random() < 0.6, seed=seed)
            assert bits(ranked(matrix(), 9, collects=True)) == expected
            assert restless.num_prepared == 1
            assert restless.num_repartitions >= 1
        mn.stop()


def test_parts_are_told_of_as_one_loop() -> None:
    with mn.start(workers=2, threads=1, engine="gang") as started:
        restless = Restless(started, repartitions=False)
        events: list[Event] = []
        started.subscribe(events.append)
        (x, _), _ = ranked(matrix(), 6)
        x.compute()
        (finished,) = [one for one in events if isinstance(one, LoopFinished)]
        assert len(restless.watches) == 6
        assert finished.iterations == 6
        assert len(finished.allocated) == 6
        assert finished.num_members == 2
        assert finished.sent_bytes > 0
        advanced = [one.iterations for one in events if isinstance(one, LoopAdvanced)]
        assert advanced[0] == 0
        assert advanced == sorted(advanced)
        # A task that runs in each part has one record, with the seconds of all.
        told = [
            one
            for event in events
            if isinstance(event, TasksFinished) and event.run == finished.run
            for one in event.tasks
        ]
        assert len({one.key for one in told}) == len(told)
        tasks = {task.key: task.owner for batch in _body(restless.watches[-1].plan) for task in batch.tasks}
        assert tasks.items() <= {one.key: one.worker for one in told}.items()
    mn.stop()


def test_every_task_of_a_block_is_known() -> None:
    with mn.start(workers=3, threads=1, engine="gang") as started:
        restless = Restless(started, lambda done: done < 5)
        (x, _), _ = ranked(matrix(), 9)
        x.compute()
        for watch in restless.watches:
            plan = watch.plan
            assert not plan.depends_on_layout
            owners: dict[tuple[str, int], int] = {}
            for name, (one, number) in plan.given.items():
                owners[one.digest.hex(), number] = plan.program.given[name]
            tasks = {task.key: task for batch in _body(plan) for task in batch.tasks}
            assert set(plan.works) <= set(tasks)
            for key, (digest, number) in plan.works.items():
                assert owners[digest, number] == tasks[key].owner
            products = {key for key, task in tasks.items() if _multiplies(task)}
            assert len(products) == len(set(products).intersection(plan.works)) > 0
    mn.stop()


def _multiplies(task: Task) -> bool:
    return multiplies(task)


def _body(plan: ControlPlan) -> list[Batch]:
    (loop,) = [one for one in plan.program.actions if isinstance(one, Iterate)]
    return list(batches(loop.body))


def test_keys_and_memory_are_as_before_after_fifty_pauses() -> None:
    def left(started: mn.session.Session) -> tuple[list[int], int, int]:
        kept = started.cluster.client.run(_num_keys).values()
        return sorted(kept), tasks_on_scheduler(started), started._store.num_bytes

    with mn.start(workers=2, threads=1, memo="off") as started:
        calm = Restless(started, lambda _: False, repartitions=False)
        a = mn.asarray(matrix(), blocks=3)

        def run(start: float) -> None:
            x, _ = mn.iterate(lambda x: (a @ x) * 0.5, mn.full(3000, start), max_iterations=51)
            x.compute()

        run(1.0)
        before = left(started)
        assert calm.num_repartitions == 0
        restless = Restless(started)
        run(2.0)
        assert restless.num_repartitions == 50
        wait_until(lambda: left(started)[0] <= before[0] and left(started)[1] <= before[1])
        assert len(started._runner._loops._plans._kept) <= 3
    mn.stop()


def _num_keys(dask_worker) -> int:
    return len(dask_worker.data)


@pytest.mark.parametrize("engine_name", ["gang", "dask"])
def test_an_interrupt_between_two_parts(engine_name: str) -> None:
    def interrupt(number: int) -> None:
        if number == 2:
            raise CellCancelled("the arrays stay as they are cut")

    with mn.start(workers=2, threads=1, engine=engine_name) as started:
        Restless(started, meanwhile=interrupt)
        (x, _), _ = ranked(matrix(), 9)
        with pytest.raises(CellCancelled, match="as they are cut"):
            x.compute()
        wait_until(lambda: tasks_on_scheduler(started) < 10)
        Restless(started)
        np.testing.assert_array_equal(x.compute(), calm_answer())
    mn.stop()


def calm_answer() -> np.ndarray:
    with mn.start(workers=1, threads=1, rebalance="off"):
        (x, _), _ = ranked(matrix(), 9)
        return x.compute()


def test_a_task_that_raises_in_a_later_part() -> None:
    def refuse(x: np.ndarray) -> np.ndarray:
        if x > 5:
            raise RuntimeError("that is too much")
        return x

    with mn.start(workers=2, threads=1, engine="gang") as started:
        restless = Restless(started)
        x, _ = mn.iterate(lambda x: mn.replicated(refuse, x + 1), mn.zeros(()), max_iterations=9)
        with pytest.raises(KernelError, match="that is too much"):
            x.compute()
        assert len(restless.watches) == 6
    mn.stop()


@pytest.mark.cluster
def test_a_worker_killed_between_two_parts() -> None:
    """The loop goes on over the survivor, from the iteration after which it had paused."""
    events: list[Event] = []
    with mn.start(workers=2, threads=1, processes=True, engine="gang") as started:
        started.subscribe(events.append)
        a = mn.asarray(matrix(), blocks=3)
        x, _ = mn.iterate(lambda x: (a @ x) * 0.5 + 1, mn.ones(3000), max_iterations=9)

        def kill(number: int) -> None:
            if number == 4:
                address = started.cluster.workers[1].address
                pid = started.cluster.client.run(os.getpid, workers=[address])[address]
                os.kill(pid, signal.SIGKILL)
                wait_until(lambda: started.cluster.alive() == (0,))
                raise OwnersLost([1])

        restless = Restless(started, meanwhile=kill)
        found = x.compute()
        A, right = matrix(), np.ones(3000)
        for _ in range(9):
            right = (A @ right) * 0.5 + 1
        np.testing.assert_allclose(found, right, rtol=1e-12)
        assert any(isinstance(one, WorkersLost) for one in events)
        assert [watch.first for watch in restless.watches] == list(range(9))  # no iteration twice
        assert [one.iterations for one in events if isinstance(one, LoopFinished)] == [9]
    mn.stop()


@pytest.mark.cluster
@pytest.mark.slow
def test_workers_that_come_are_used_by_the_next_part() -> None:
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as dask_cluster:
        with mn.connect(dask_cluster) as started:
            restless = Restless(started, lambda _: started.cluster.has_newcomers)
            a = mn.asarray(matrix(20_000), blocks=4)
            x, _ = mn.iterate(lambda x: (a @ x) * 0.5 + 1, mn.ones(20_000), max_iterations=4000)
            come = threading.Timer(0.3, lambda: dask_cluster.scale(2))
            come.start()
            events: list[Event] = []
            started.subscribe(events.append)
            found = x.compute()
            come.join()
            A, right = matrix(20_000), np.ones(20_000)
            for _ in range(4000):
                right = (A @ right) * 0.5 + 1
            np.testing.assert_allclose(found, right, rtol=1e-9)
            (finished,) = [one for one in events if isinstance(one, LoopFinished)]
            assert (finished.num_members, finished.engine, finished.reason) == (2, "gang", "")
            assert len(restless.watches) == 2
            assert restless.watches[1].first > 0
        mn.stop()


def test_the_driver_goes_on_where_no_gang_comes_together_again(monkeypatch: pytest.MonkeyPatch) -> None:
    run, calls = GangEngine.run, []

    def sometimes(*arguments: object, **named: object) -> object:
        calls.append(1)
        if len(calls) > 3:
            raise GangUnavailable("for a test")
        return run(*arguments, **named)

    monkeypatch.setattr(GangEngine, "run", sometimes)
    events: list[Event] = []
    with mn.start(workers=2, threads=1) as started:
        started.subscribe(events.append)
        restless = Restless(started)
        (x, _), n = ranked(matrix(), 9)
        found = x.compute()
        assert int(n) == 9
        assert [watch.first for watch in restless.watches] == list(range(9))
        (finished,) = [one for one in events if isinstance(one, LoopFinished)]
        assert (finished.engine, finished.reason, finished.iterations) == ("dask", "for a test", 9)
        wait_until(lambda: not any(started.cluster.client.run(_num_kept).values()))
    mn.stop()
    np.testing.assert_array_equal(found, calm_answer())


def _num_kept(dask_worker) -> int:
    plugins = [one for name, one in dask_worker.plugins.items() if name.endswith("gang")]
    return sum(len(plugin._checkpoints._generations) for plugin in plugins)


def test_what_parts_took_is_added_up_where_iterations_are_the_same() -> None:
    def part(*timed: TaskTimed) -> Outcome:
        return Outcome(timed=timed, seconds=2.0, iterations=3)

    def timed(slot: int, seconds: float, compiled: bool = False) -> TaskTimed:
        return TaskTimed(slot, "map", 0, seconds, 9, 9, 72, compiled)

    def plan(workers: tuple[int, ...]) -> ControlPlan:
        node = mn.iterate(lambda x: x * 2, mn.ones(70_000), max_iterations=3)[1].expression
        return plan_control(node, {}, Workers(workers, 1, 0), [node])

    parts = LoopParts()
    parts.add(part(timed(1, 0.5, compiled=True), timed(2, 1.0)), plan((0, 1)))
    parts.add(part(timed(1, 0.25)), plan((0, 1)))
    parts.add(part(timed(1, 4.0)), plan((0, 2)))  # another task
    assert parts.outcome.seconds == 6.0
    found = {one.key: (one.seconds, one.compiled) for one in parts.timed_by(plan((0, 1)))}
    assert found == {1: (0.75, True), 2: (1.0, False)}
    assert [one.seconds for one in parts.timed] == [0.75, 1.0, 4.0]

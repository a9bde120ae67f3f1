"""Workers tell how they do only while somebody looks; every kernel second is told once."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from math import inf
from typing import TypeVar

import numpy as np
import psutil
import pytest
import scipy.sparse as sp
from distributed import LocalCluster
from waiting import wait_until
from ways import going

import matnb as mn
from matnb.backend.engines.telemetry import Telemetry, _Read
from matnb.backend.tasks.worker import begin_run, note_done, num_done
from matnb.errors import KernelError
from matnb.events import (
    Event,
    LoopAdvanced,
    LoopFinished,
    RunFinished,
    RunStarted,
    RunStopped,
    TasksFinished,
    TaskTimed,
    WorkerSample,
    WorkersBusy,
    WorkersSampled,
)
from matnb.widgets.monitor_state import Feed

SIZE = 20_000
KINDS = {
    "gang, threads": {"workers": 2, "threads": 1},
    "gang, rebalance off": {"workers": 2, "threads": 1, "rebalance": "off"},
    "gang, one worker": {"workers": 1, "threads": 2},
    "gang, asking thread": {"workers": 2, "threads": 1},
    "gang, processes": {"workers": 2, "threads": 1, "processes": True},
    "dask, threads": {"workers": 2, "threads": 1, "engine": "dask"},
    "dask, processes": {"workers": 2, "threads": 1, "engine": "dask", "processes": True},
}
EVERY = [pytest.param(one, marks=[pytest.mark.cluster] if "processes" in one else []) for one in KINDS]
CUTTING = {"cut", "move", "profile", "repartition"}  # arrays anew, which belongs to no run
_One = TypeVar("_One", bound=Event)


class Heard:
    """What was told, when, and on which thread."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.times: list[float] = []
        self.threads: set[int] = set()

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        self.times.append(time.monotonic())
        if isinstance(event, WorkersSampled):
            self.threads.add(threading.get_ident())

    def of(self, kind: type[_One]) -> list[_One]:
        return [event for event in self.events if isinstance(event, kind)]

    def last(self) -> dict[int, WorkerSample]:
        return {one.worker: one for event in self.of(WorkersSampled) for one in event.samples}

    def kernel_seconds(self) -> dict[tuple[int, str], float]:
        found: dict[tuple[int, str], float] = {}
        for event in self.of(WorkersBusy):
            for kind, seconds in event.by_kind:
                found[event.worker, kind] = found.get((event.worker, kind), 0.0) + seconds
        return found

    def finished_seconds(self) -> dict[tuple[int, str], float]:
        found: dict[tuple[int, str], float] = {}
        for event in self.of(TasksFinished):
            for one in event.tasks:
                found[one.worker, one.kind] = found.get((one.worker, one.kind), 0.0) + one.seconds
        return found


@pytest.fixture(autouse=True)
def stopped() -> Iterator[None]:
    yield
    mn.stop()


def matrix() -> mn.DistArray:
    rng = np.random.default_rng(3)
    return mn.asarray(sp.random_array((SIZE, SIZE), density=8 / SIZE, rng=rng, format="csr"), blocks=2)


def looped(count: int) -> np.ndarray:
    a = matrix()
    x, _ = mn.iterate(lambda x: (a @ x) * 0.5 + 1.0, mn.ones(SIZE), max_iterations=count)
    return x.compute()


def dense_run() -> float:
    a = mn.asarray(np.random.default_rng(0).random((700, 700)), blocks=2)
    return float(((a @ a) / 700).sum())


def chained_products() -> None:
    a = mn.asarray(np.random.default_rng(0).random((1500, 1500)), blocks=2)
    b = a
    for _ in range(30):  # so that a fast machine takes some looks, too
        b = (a @ b) / 1500
    float(b.sum())


def plugins_of(workers: object) -> list[str]:
    return [name for worker in workers for name in worker.plugins if "samples" in name]


def sampling_plugins(session: mn.session.Session) -> list[str]:
    found = session.cluster.client.run(lambda dask_worker: list(dask_worker.plugins))
    return [name for names in found.values() for name in names if "samples" in name]


def num_sampling(session: mn.session.Session) -> int:
    tasks = asyncio.all_tasks(session.cluster.client.loop.asyncio_loop)
    return sum("_sample" in repr(one.get_coro()) for one in tasks)


@pytest.mark.parametrize("kind", EVERY)
def test_every_kernel_second_is_told_once(kind: str):
    heard = Heard()
    way = going("asking thread") if "asking" in kind else nullcontext()
    with way, mn.start(**KINDS[kind]) as session:
        stop = session.subscribe(heard, samples=True)
        dense_run()
        looped(60)
        time.sleep(0.3)
        dense_run()
        stop()
    told, finished = heard.kernel_seconds(), heard.finished_seconds()
    assert {one.engine for one in heard.of(LoopFinished)} == {kind.split(",")[0]}
    assert {worker for worker, _ in finished} == set(range(KINDS[kind]["workers"]))
    for (worker, one), seconds in finished.items():
        if one not in CUTTING:
            assert told[worker, one] == pytest.approx(seconds, abs=1e-6), one
    assert {one for _, one in told} - {one for _, one in finished} <= CUTTING
    assert all(event.seconds > 0 for event in heard.of(WorkersBusy))


@pytest.mark.parametrize("samples", [None, False])
def test_where_nobody_wants_samples_nothing_is_sent_or_started(
    samples: bool | None, monkeypatch: pytest.MonkeyPatch
):
    called: list[str] = []
    for name in ("hear", "flush", "_note", "_add", "_install"):
        monkeypatch.setattr(Telemetry, name, lambda *_, name=name: called.append(name))
    heard = Heard()
    with mn.start(workers=2, threads=1) as session:
        threads = threading.active_count()
        if samples is not None:
            session.subscribe(heard, samples=samples)
        looped(20)
        dense_run()
        assert sampling_plugins(session) == []
        assert threading.active_count() <= threads + 4  # of the workers' pools, which come with tasks
        monkeypatch.undo()
        assert called == []
    assert heard.of(WorkersBusy) == []
    assert heard.of(WorkersSampled) == []
    assert samples is None or heard.of(RunFinished)


@pytest.mark.parametrize("kind", [EVERY[0], EVERY[3], EVERY[4]])
def test_looking_changes_no_bit(kind: str):
    found = []
    for looks in (False, True):
        with mn.start(**KINDS[kind]) as session:
            if looks:
                session.subscribe(Heard(), samples=True)
            found.append(looped(15).tobytes())
        mn.stop()
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize("processes", [False, pytest.param(True, marks=pytest.mark.cluster)])
def test_samples_come_while_the_cell_waits_and_no_more_than_four_a_second(processes: bool):
    heard = Heard()
    with mn.start(workers=2, threads=1, processes=processes) as session:
        stop = session.subscribe(heard, samples=True)
        chained_products()
        stop()
        stamped = list(zip(heard.times, heard.events, strict=True))
        begin = next(when for when, one in stamped if isinstance(one, RunStarted))
        end = heard.times[-1]
        times = [when for when, one in stamped if isinstance(one, WorkersSampled)]
        within = [when for when in times if begin < when < end]
        assert len(within) >= (end - begin) / 0.25 * 0.3  # fewer where the machine is busy
        assert len(times) <= (end - begin) / 0.25 + 4
        assert threading.get_ident() not in heard.threads
        busy = [when for when, one in stamped if isinstance(one, WorkersBusy)]
        assert min(busy) < begin + (end - begin) / 2, "what a run takes is told while it runs"
        memory = {one.worker: one for one in heard.last().values()}
        count = len(heard.events)
        time.sleep(0.6)
        assert len(heard.events) == count  # nothing comes after the end
        wait_until(lambda: sampling_plugins(session) == [])
        pids = session.cluster.client.run(os.getpid)
        addresses = [one.address for one in session.cluster.workers]
        for number, one in memory.items():
            used = psutil.Process(pids[addresses[number]]).memory_info().rss / (1 if processes else 2)
            assert used * 0.6 < one.memory_bytes < used * 1.6
            assert one.limit_bytes == session.cluster.workers[number].memory_limit_bytes
            assert one.num_threads == 1


@pytest.mark.parametrize("kind", [EVERY[0], EVERY[3], EVERY[4]])
def test_bytes_between_workers_are_counted_on_both_sides(kind: str):
    heard = Heard()
    with mn.start(**{**KINDS[kind], "rebalance": "off"}) as session:
        looped(2)
        stop = session.subscribe(heard, samples=True)
        wait_until(lambda: len(heard.of(WorkersSampled)) >= 2)
        before = heard.last()
        looped(100)
        num_seen = len(heard.of(WorkersSampled))
        wait_until(lambda: len(heard.of(WorkersSampled)) >= num_seen + 6)  # of every worker a new one
        stop()
        after = heard.last()
    sent = [after[one].sent_bytes - before[one].sent_bytes for one in (0, 1)]
    received = [after[one].received_bytes - before[one].received_bytes for one in (0, 1)]
    half = SIZE // 2 * 8  # of the vector, that each needs of the other in each iteration
    assert sent == pytest.approx([100 * half] * 2, rel=0.15)
    assert received == pytest.approx(sent[::-1], rel=0.02)
    for one in heard.of(LoopFinished):
        if one.engine == "gang":
            assert sum(sent) == pytest.approx(one.sent_bytes, rel=0.05)


def test_a_foreign_cluster_is_sampled_and_left_as_it_was():
    heard = Heard()
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as theirs:
        before = [sorted(worker.plugins) for worker in theirs.workers.values()]
        with mn.connect(theirs) as session:
            session.subscribe(heard, samples=True)
            wait_until(lambda: len(heard.last()) == 2)
            looped(20)
            assert plugins_of(theirs.workers.values())
        # The scheduler takes the rest away once it hears that the client has left.
        wait_until(lambda: [sorted(worker.plugins) for worker in theirs.workers.values()] == before)
    assert {worker for worker, _ in heard.kernel_seconds()} == {0, 1}


def test_what_gangs_send_is_counted_after_a_break_too():
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    heard = Heard()
    with LocalCluster(protocol="tcp", **options) as theirs, mn.connect(theirs) as session:
        session.subscribe(heard, samples=True)
        looped(2)
        client = session.cluster.client
        client.loop.add_callback(client.scheduler_comm.comm.abort)
        wait_until(lambda: session.cluster.num_breaks == 1)
        looped(100)
        assert session.cluster.alive() == (2, 3)
        wait_until(
            lambda: sum(one.sent_bytes for one in heard.last().values() if one.worker > 1) > 90 * SIZE * 8, 10
        )


@pytest.mark.cluster
def test_the_others_go_on_when_a_worker_is_lost_and_a_new_one_is_sampled_too():
    feed, heard = Feed(), Heard()
    with mn.start(workers=2, threads=1, processes=True) as session:
        session.subscribe(heard, samples=True)
        session.subscribe(feed.hear, samples=True)
        looped(3)
        wait_until(lambda: len(heard.last()) == 2)
        pids = session.cluster.client.run(os.getpid)
        os.kill(pids[session.cluster.workers[0].address], signal.SIGKILL)
        wait_until(lambda: session.cluster.alive() == (1,))
        looped(4)  # which takes the new worker in where it is there by then
        wait_until(lambda: session.cluster.has_newcomers or len(session.cluster.workers) == 3, 20)
        session.cluster.refresh_if_changed(waits=True)
        wait_until(lambda: 2 in heard.last(), 10)
        looped(5)
        numbers = [one.number for one in feed.facts().workers]
        assert numbers == [0, 1, 2]
        assert not feed.facts().is_running


@pytest.mark.parametrize("engine", ["gang", "dask"])
def test_a_loop_tells_how_busy_it_is_while_it_runs(engine: str):
    heard, other = Heard(), Heard()
    with mn.start(workers=2, threads=1, engine=engine) as session:
        session.subscribe(heard, samples=True)
        session.subscribe(other)
        looped(6000 if engine == "gang" else 150)
    stamped = list(zip(heard.times, heard.events, strict=True))
    begin = next(when for when, one in stamped if isinstance(one, LoopAdvanced))
    end = next(when for when, one in stamped if isinstance(one, LoopFinished))
    for worker in (0, 1):
        told = [when for when, one in stamped if isinstance(one, WorkersBusy) and one.worker == worker]
        during = [when for when in told if begin + 0.1 < when < end - 0.1]
        assert len(during) >= (end - begin) / 0.25 * 0.3, (during, begin, end)
    assert other.of(LoopFinished)
    assert other.of(WorkersBusy) == []  # it did not ask
    assert other.of(WorkersSampled) == []


def test_listeners_come_and_go_and_leave_nothing():
    with mn.start(workers=2, threads=1) as session:
        threads = threading.active_count()
        for _ in range(30):
            stop, other = (session.subscribe(Heard(), samples=True) for _ in range(2))
            stop()
            stop()  # a second time does nothing
            other()
        wait_until(lambda: sampling_plugins(session) == [])
        wait_until(lambda: num_sampling(session) == 0)
        assert threading.active_count() <= threads
        heard = Heard()
        session.subscribe(heard, samples=True)
        wait_until(lambda: len(heard.of(WorkersSampled)) > 1)
        assert len(sampling_plugins(session)) == num_sampling(session) == 2
    count = len(heard.events)
    time.sleep(0.4)
    assert len(heard.events) == count
    session.subscribe(heard, samples=True)()  # of a session that has ended: nothing


def test_a_listener_that_raises_is_told_of_in_the_cells_thread_only():
    raised = threading.Event()

    def listener(event: Event) -> None:
        if isinstance(event, WorkersSampled):
            raised.set()
            raise LookupError("in a thread")

    with mn.start(workers=1, threads=1) as session, warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        session.subscribe(listener, samples=True)
        assert raised.wait(30)
        time.sleep(0.1)
        assert seen == []
        dense_run()
        assert "LookupError: in a thread" in str(seen[0].message)


def test_a_run_that_fails_is_told_to_have_stopped():
    heard = Heard()
    with mn.start(workers=1, threads=1) as session:
        session.subscribe(heard)
        with pytest.raises(KernelError):
            mn.map_blocks(lambda x: 1 / 0, mn.ones(4), shape=(4,), dtype="f8").compute()
        (stopped,) = heard.of(RunStopped)
        assert stopped.run == heard.of(RunStarted)[-1].run
        float(mn.ones(3).sum())
        assert len(heard.of(RunStopped)) == 1


@pytest.mark.parametrize("engine", ["gang", "dask"])
def test_a_loop_tells_how_many_iterations_it_takes_at_most(engine: str):
    heard = Heard()
    with mn.start(workers=1, threads=1, engine=engine) as session:
        session.subscribe(heard)
        looped(7)
        x, _ = mn.iterate(
            lambda x: x * 0.5, mn.ones(9), until=lambda _, new: new.sum() < 1, max_iterations=50
        )
        x.compute()
        found = {(one.most_iterations, one.has_until) for one in heard.of(LoopAdvanced)}
        assert found == {(7.0, False), (50.0, True)}
        assert inf not in {one.most_iterations for one in heard.of(LoopAdvanced)}


def test_a_loop_in_a_branch_has_no_known_end():
    heard = Heard()
    with mn.start(workers=1, threads=1, engine="dask") as session:
        session.subscribe(heard)
        x = mn.ones(9)
        found = mn.cond(x.sum() > 1, lambda: mn.iterate(lambda x: x + 1, x, max_iterations=3)[0], lambda: x)
        np.testing.assert_array_equal(found.compute(), np.full(9, 4.0))
        assert [one.iterations for one in heard.of(LoopAdvanced)] == [1, 2, 3]
        assert {(one.most_iterations, one.has_until) for one in heard.of(LoopAdvanced)} == {(inf, False)}


def test_a_worker_that_tells_after_its_run_tells_nothing_twice():
    told: list[Event] = []
    clock = iter(np.arange(0.0, 100.0, 0.1))

    with mn.start(workers=1, threads=1) as session:
        telemetry = Telemetry(session.cluster, "t-", told.append, lambda: float(next(clock)))

        def told_by_worker(run: str, seconds: float) -> dict[str, object]:
            return {
                "worker": session.cluster.workers[0].address,
                "now": (100, 200, 0, 1, 0, 0, 1),
                "busy": [(run, 0, {"map": seconds})],
                "come": {},
            }

        telemetry.begin()
        try:
            telemetry.began("t-r1")
            telemetry.hear(told_by_worker("t-r1", 0.25))
            telemetry.hear(told_by_worker("t-r1", 0.75))
            telemetry.hear(told_by_worker("t-r0", 5.0))  # a run before that was cancelled
            telemetry.ended([TaskTimed("a", "map", 0, 1.0, 1, 1, 8)])
            telemetry.hear(told_by_worker("t-r1", 0.9))
        finally:
            telemetry.close()
    seconds = [event.by_kind[0][1] for event in told if isinstance(event, WorkersBusy)]
    assert seconds == pytest.approx([0.25, 0.5, 0.25])


def test_a_task_that_ends_while_others_are_read_is_told_once():
    timed = [TaskTimed("a", "map", 0, 1.0, 1, 1, 8)]
    read = _Read()
    count = len(timed)
    timed.append(TaskTimed("b", "map", 0, 2.0, 1, 1, 8))  # which is still told as one that runs
    assert read.go_on(timed, count) == {"map": 1.0}
    assert read.go_on(timed, len(timed)) == {"map": 3.0}


def test_what_other_processes_have_done_is_counted_of_the_newest_run_alone():
    before, newest = begin_run("s-", 4), begin_run("s-", 5)
    assert num_done() is None
    note_done(str(before), 0, 9)
    assert num_done() is None
    for owner, count in ((0, 2), (1, 0), (1, 3), (0, 1)):  # the last one was late
        note_done(str(newest), owner, count)
    assert num_done() == 5
    begin_run("s-", 6)
    assert num_done() is None


def test_workers_of_other_processes_tell_how_many_tasks_are_done(tmp_path):
    gate = tmp_path / "open"

    def wait(block):
        while not gate.exists():
            time.sleep(0.05)
        return block

    with mn.start(workers=2, threads=1, processes=True) as session:
        stop = session.subscribe(lambda event: None, samples=True)
        waiting = mn.map_blocks(wait, mn.ones(4) + 1, shape=(4,), dtype=float)
        thread = threading.Thread(target=waiting.persist)
        thread.start()
        try:
            wait_until(lambda: num_done() is not None)  # what goes on is told of
        finally:
            gate.touch()
            thread.join()
            stop()
        assert waiting.tolist() == [2.0] * 4

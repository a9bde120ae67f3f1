"""What a session survives: interrupts, killed workers, clusters that go away."""

from __future__ import annotations

import gc
import os
import re
import signal
import threading
import time
from collections.abc import Iterator

import numpy as np
import psutil
import pytest
from distributed import LocalCluster
from waiting import wait_until
from watching import long_work, runs, tasks_on_scheduler

import matnb as mn
from matnb.backend.engines.engine_dask import DaskEngine
from matnb.backend.engines.futures import Answers
from matnb.errors import CellCancelled, MatnbError, WorkerLostError
from matnb.events import WorkersLost
from matnb.magics.summary import status_text
from matnb.program.plan import Plan
from matnb.session.overrides import choosing


@pytest.fixture
def session() -> Iterator[mn.session.Session]:
    with mn.start(workers=1, threads=2) as session:
        yield session
    mn.stop()


@pytest.mark.parametrize("engine", ["auto", "dask"])
@pytest.mark.parametrize("processes", [False, pytest.param(True, marks=pytest.mark.cluster)])
def test_an_interrupt_cancels_the_tasks(processes: bool, engine: str) -> None:
    with mn.start(workers=2 if processes else 1, processes=processes, engine=engine) as session:
        float(mn.ones(10).sum())
        work = long_work()
        gc.collect()  # else the signal may land in the destructor of an older client, which swallows it
        timer = threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        begin = time.monotonic()
        with pytest.raises(CellCancelled, match=r"cancelled \d+ of \d+ tasks, kept \d+ of \d+ blocks"):
            float(work)
        assert time.monotonic() - begin < 0.7 + 2
        timer.join()
        end = time.monotonic() + 5
        while tasks_on_scheduler(session) > 8 and time.monotonic() < end:
            time.sleep(0.1)
        assert tasks_on_scheduler(session) <= 8
        assert float(mn.ones(10).sum()) == 10  # goes on
    mn.stop()


def test_an_interrupt_cancels_only_what_no_task_reads(
    session: mn.session.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of a name that others read, the scheduler first cancels these, and breaks where nobody holds one.
    cancelled: list[str] = []
    plans: list[Plan] = []
    cancel, run = Answers.cancel, DaskEngine.run_plan
    monkeypatch.setattr(
        Answers,
        "cancel",
        lambda self, futures: (cancelled.extend(one.key for one in futures), cancel(self, futures))[1],
    )
    monkeypatch.setattr(
        DaskEngine,
        "run_plan",
        lambda self, plan, *rest, **named: (plans.append(plan), run(self, plan, *rest, **named))[1],
    )
    work = long_work()  # its data is shipped, and read by products that nobody holds
    timer = threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with choosing(engine="dask"), pytest.raises(CellCancelled):
        float(work)
    timer.join()
    read = {slot for task in plans[-1].tasks for slot in task.inputs}
    slots = {int(found[1]) for name in cancelled if (found := re.search(r"r\d+-(\d+)$", name))}
    assert cancelled
    assert slots.isdisjoint(read)
    for _ in range(3):
        assert float(mn.ones(10).sum()) == 10


@pytest.mark.slow
@pytest.mark.cluster
def test_a_killed_worker_ends_in_recomputation() -> None:
    with mn.start(workers=2, threads=1, processes=True) as session:
        lost: list[WorkersLost] = []
        session.subscribe(lambda event: lost.append(event) if isinstance(event, WorkersLost) else None)
        kept = mn.asarray(np.arange(200_000.0), blocks=4).persist() + 1
        expected = np.arange(200_000.0) + 1
        float(kept.sum())
        work = long_work()
        pids = session.cluster.client.run(os.getpid)
        timer = threading.Timer(1.0, os.kill, (next(iter(pids.values())), signal.SIGKILL))
        timer.start()
        begin = time.monotonic()
        value = float(work)
        assert time.monotonic() - begin < 120
        timer.join()
        assert lost
        assert np.isfinite(value)
        np.testing.assert_array_equal(kept.compute(), expected)
    mn.stop()


@pytest.mark.cluster
def test_a_worker_killed_between_cells_is_noticed() -> None:
    with mn.start(workers=2, threads=1, processes=True) as session:
        x = mn.asarray(np.arange(100_000.0), blocks=4).persist()
        for pid in list(session.cluster.client.run(os.getpid).values()):
            psutil.Process(pid).kill()
        assert float(x.sum()) == 4_999_950_000
    mn.stop()


@pytest.mark.cluster
def test_a_cluster_of_others_is_left_as_it_was() -> None:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        before = client.run_on_scheduler(lambda dask_scheduler: set(dask_scheduler.plugins))
        with mn.connect(client) as session:
            assert not session.cluster.owned
            x = mn.asarray(np.arange(1000.0), blocks=3)
            assert float((x * x).sum()) == pytest.approx(332_833_500)
        wait_until(lambda: not client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))
        wait_until(
            lambda: client.run_on_scheduler(lambda dask_scheduler: set(dask_scheduler.plugins)) == before
        )
        assert client.submit(lambda: 1).result() == 1
    mn.stop()


@pytest.mark.slow
@pytest.mark.cluster
def test_a_scheduler_that_goes_away_is_told_of() -> None:
    from distributed import LocalCluster

    from matnb.errors import ClusterError

    cluster = LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0")
    session = mn.connect(cluster)
    work = long_work()
    timer = threading.Timer(0.7, cluster.close)
    timer.start()
    begin = time.monotonic()
    with pytest.raises(ClusterError):
        float(work)
    assert time.monotonic() - begin < 30
    timer.join()
    session.close()
    mn.stop()


@pytest.mark.parametrize("engine", ["auto", "dask"])
def test_times_of_a_cancelled_run_are_not_taken_for_the_next_ones(engine: str) -> None:
    with mn.start(engine=engine):
        work = long_work()
        gc.collect()  # else the signal may land in the destructor of an older client, which swallows it
        timer = threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(CellCancelled):
            float(work)
        timer.join()
    with mn.start(engine=engine) as session:
        seen = runs(session)
        (mn.asarray(np.ones(10)) + 1).persist()
        assert seen[-1].actual_bytes <= 3 * 80
    mn.stop()


@pytest.mark.parametrize("engine", ["auto", "dask"])
def test_an_interrupt_prints_nothing(engine: str, capfd: pytest.CaptureFixture[str]) -> None:
    with mn.start(engine=engine):
        float(mn.ones(10).sum())
        work = long_work()
        gc.collect()  # else the signal may land in the destructor of an older client, which swallows it
        timer = threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(CellCancelled):
            float(work)
        timer.join()
        gc.collect()
        time.sleep(0.5)
        gc.collect()
    mn.stop()
    assert capfd.readouterr().err == ""


def test_a_cluster_that_does_not_answer_leaves_the_session(session: mn.session.Session) -> None:
    x = mn.asarray(np.ones(10_000)).persist()
    with pytest.raises(MatnbError):
        mn.connect("tcp://127.0.0.1:9", timeout_seconds=1)
    assert mn.active_session() is session
    assert x.layout is not None


@pytest.mark.cluster
def test_a_restarted_worker_is_used_again() -> None:
    with mn.start(workers=2, threads=1, processes=True) as session:
        pids = session.cluster.client.run(os.getpid)
        os.kill(next(iter(pids.values())), signal.SIGKILL)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            x = mn.asarray(np.full(100_000, time.monotonic()), blocks=2).persist()
            if session.status().num_workers == 2 and len(set(x.layout.owners)) == 2:
                break
            time.sleep(0.2)
        assert session.status().num_workers == 2
    mn.stop()


@pytest.mark.cluster
def test_a_session_without_workers_tells_so_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as theirs,
        mn.connect(theirs) as session,
    ):
        assert "gone" not in status_text(session.status())
        theirs.scale(1)
        wait_until(lambda: session.status().num_workers == 1)
        found = session.status()
        assert (found.num_threads, found.num_gone) == (1, 1)
        assert "\n1 worker now, 1 worker gone\n" in status_text(found)
        theirs.scale(0)
        wait_until(lambda: session.status().num_workers == 0)
        begin = time.monotonic()
        found = session.status()
        assert time.monotonic() - begin < 2  # work waits for eight, in which one may be started again
        assert (found.num_threads, found.num_gone) == (0, 2)
        assert "\nno worker is left, 2 workers gone: start some on the cluster, and go on\n" in status_text(
            found
        )
        monkeypatch.setattr("matnb.session.planning._RESTART_SECONDS", 0.2)
        with pytest.raises(WorkerLostError, match=r"start workers on the cluster, as by scale\(\)"):
            float((mn.ones(20) + 1).sum())
        theirs.scale(1)
        wait_until(lambda: session.status().num_workers == 1)
        assert float((mn.ones(10) + 1).sum()) == 20
        assert session.status().num_gone == 2


def test_what_a_loop_gave_is_made_again_if_it_is_lost_before_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with mn.start(workers=2, threads=1) as session:
        runner, store = session._runner, session._store
        control, num_lost = runner._control, []

        def losing(*arguments: object) -> None:
            control(*arguments)
            if not num_lost:
                num_lost.append(1)
                store.drop_owner(0)

        monkeypatch.setattr(runner, "_control", losing)
        x = mn.asarray(np.arange(40.0), blocks=4)
        y = mn.iterate(lambda state: state + 1, x, max_iterations=5)[0]
        assert float((y * 2).sum()) == 2 * (780.0 + 200)
        assert num_lost

"""What a session keeps, refuses, survives and leaves behind."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.errors import CellCancelled, KernelError, MatnbError, OptionError, SessionEnded, TooLargeError
from matnb.events import RunFinished, WorkersLost
from matnb.lazy import holdings


@pytest.fixture
def session() -> Iterator[mn.session.Session]:
    with mn.start(workers=1, threads=2) as session:
        yield session
    mn.stop()


def runs(session: mn.session.Session) -> list[RunFinished]:
    seen: list[RunFinished] = []
    session.subscribe(lambda event: seen.append(event) if isinstance(event, RunFinished) else None)
    return seen


def tasks_on_scheduler(session: mn.session.Session) -> int:
    return session.cluster.client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))


def test_starts_by_itself_and_stops() -> None:
    assert mn.active_session() is None
    assert float(mn.ones(3).sum()) == 3
    assert mn.active_session() is not None
    mn.stop()
    assert mn.active_session() is None
    mn.stop()


def test_a_result_is_the_persons_own(session: mn.session.Session) -> None:
    x = mn.asarray(np.arange(5.0)) * 2
    first = x.compute()
    first[:] = 99
    np.testing.assert_array_equal(x.compute(), np.arange(5.0) * 2)
    assert (x + 0).compute().flags.writeable


def test_given_data_is_copied(session: mn.session.Session) -> None:
    mine = np.arange(1000.0)
    x = mn.asarray(mine)
    mine[:] = 0
    assert float(x.sum()) == 499500
    matrix = sp.eye_array(50, format="csr")
    a = mn.asarray(matrix)
    matrix.data[:] = 7
    assert float(a.sum()) == 50


def test_a_loop_computes_each_state_once(session: mn.session.Session) -> None:
    seen = runs(session)
    x = mn.asarray(np.ones(20_000), blocks=2)
    for _ in range(8):
        x = x * 0.5 + 1
        float(x.sum())
    counts = [run.num_tasks for run in seen]
    assert max(counts) == counts[0], counts
    assert counts[-1] <= 8
    assert len(session.status().description) > 0
    assert session.status().num_arrays <= 3


def test_a_long_loop_leaves_no_history_on_the_scheduler(session: mn.session.Session) -> None:
    x = mn.asarray(np.ones(3000), blocks=2)
    total = 0.0
    for _ in range(120):
        x = x * 0.5 + 1
        total = float(x.sum())
    assert total == pytest.approx(3000 * 2)
    assert tasks_on_scheduler(session) < 300


def test_a_transpose_in_a_loop_is_made_once(session: mn.session.Session) -> None:
    matrix = sp.random_array((3000, 3000), density=0.01, format="csr", rng=0)
    A, x = mn.asarray(matrix, blocks=2), np.ones(3000)
    kinds: list[str] = []
    session.subscribe(lambda event: kinds.extend(task.kind for task in getattr(event, "tasks", ())))
    expected = np.ones(3000)
    for _ in range(3):
        x = A.T @ x
        expected = matrix.T @ expected
        np.testing.assert_allclose(x.compute(), expected)
    assert kinds.count("transpose") == 4


def test_a_result_over_the_limit_is_refused_with_advice() -> None:
    with mn.start(compute_limit="1MB"):
        with pytest.raises(TooLargeError, match=r"compute_limit|persist"):
            mn.zeros((1000, 1000)).compute()
        assert float(mn.zeros((1000, 1000)).sum()) == 0
    mn.stop()


def test_a_plan_over_the_memory_is_refused_before_it_runs() -> None:
    with mn.start(memory_limit="1GB") as session:
        seen = runs(session)
        with pytest.raises(TooLargeError, match="memory_limit"):
            (mn.random.default_rng(0).random((30_000, 30_000)) @ mn.ones((30_000, 30_000))).persist()
        assert not seen
    mn.stop()


def test_a_new_session_recomputes_from_given_data() -> None:
    x = mn.asarray(np.arange(10_000.0)) + 1
    with mn.start():
        first = x.compute()
    with mn.start(workers=2):
        np.testing.assert_array_equal(x.compute(), first)
    mn.stop()


def test_large_data_lives_on_the_workers_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holdings, "SHIP_BYTES", 1000)
    with mn.start(workers=2):
        x = mn.asarray(np.arange(10_000.0))
        assert float(x.sum()) == 49_995_000
        assert x.layout is not None
    with mn.start(), pytest.raises(SessionEnded, match="give it again"):
        x.compute()
    mn.stop()


def test_unknown_options_say_what_is_allowed() -> None:
    with pytest.raises(OptionError, match="workers"):
        mn.start(workers=0)
    with pytest.raises(OptionError, match="memo"):
        mn.start(memo="much")
    with pytest.raises(OptionError, match="engine"):
        mn.start(engine="spark")


def test_a_worker_error_names_the_expression(
    session: mn.session.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matnb.backend import worker

    def broken(*_: object) -> None:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(worker, "apply", broken)
    with pytest.raises(KernelError, match="ZeroDivisionError: on purpose") as caught:
        (mn.asarray(np.ones(3)) + 1).compute()
    assert any("add" in note for note in caught.value.__notes__)
    monkeypatch.undo()
    assert float((mn.asarray(np.ones(3)) + 1).sum()) == 6


def test_two_threads_share_a_session(session: mn.session.Session) -> None:
    results: dict[int, float] = {}

    def work(number: int) -> None:
        for step in range(10):
            results[number] = float((mn.asarray(np.full(100, number)) + step).sum())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: 100.0 * (number + 9) for number in range(4)}


def long_work() -> mn.DistArray:
    rng = np.random.default_rng(int(time.time()))
    a = mn.asarray(rng.random((1500, 1500)), blocks=2)
    b = a
    for _ in range(60):
        b = (a @ b) / 1500
    return b.sum()


@pytest.mark.parametrize("processes", [False, pytest.param(True, marks=pytest.mark.cluster)])
def test_an_interrupt_cancels_the_tasks(processes: bool) -> None:
    with mn.start(workers=2 if processes else 1, processes=processes) as session:
        float(mn.ones(10).sum())
        work = long_work()
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
        end = time.monotonic() + 5
        while client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)):
            assert time.monotonic() < end
            time.sleep(0.05)
        assert client.run_on_scheduler(lambda dask_scheduler: set(dask_scheduler.plugins)) == before
        assert client.submit(lambda: 1).result() == 1
    mn.stop()


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


def test_shipped_data_stays_while_an_expression_needs_it(
    session: mn.session.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holdings, "SHIP_BYTES", 1000)
    y = mn.asarray(np.ones(10_000)) * 2  # no name is left on the array itself
    assert float(mn.ones(3).sum()) == 3
    assert session.status().num_arrays == 1
    assert float(y.sum()) == 20_000
    del y
    assert session.status().num_arrays == 0


def test_a_small_memo_keeps_nothing_and_loses_nothing(tmp_path: Path) -> None:
    with mn.start(memo="1KB") as session:
        seen = runs(session)
        matrix = sp.random_array((300, 300), density=0.2, format="csr", rng=0)
        A = mn.asarray(matrix) * 2
        assert abs(A.to_scipy() - matrix * 2).max() == 0
        assert len(seen) == 1
        mn.save(A, tmp_path / "a.npz")
        assert abs(mn.load(tmp_path / "a.npz").to_scipy() - matrix * 2).max() == 0
        kept = (A * 3).persist()
        float(mn.ones(10).sum())
        before = len(seen)
        assert kept.layout is not None
        kept.to_scipy()
        assert len(seen) == before
    mn.stop()


def test_several_values_come_from_one_run(session: mn.session.Session) -> None:
    seen = runs(session)
    x = mn.asarray(np.arange(50_000.0))
    shared = np.sqrt(x) + 1
    total, most = mn.compute(shared.sum(), shared.max())
    assert (total, most) == (pytest.approx((np.sqrt(np.arange(50_000.0)) + 1).sum()), np.sqrt(49_999) + 1)
    assert len([run for run in seen if run.num_tasks]) == 1


def test_what_moves_is_counted() -> None:
    with mn.start(workers=2, threads=1) as session:
        seen = runs(session)
        A = mn.asarray(sp.random_array((4000, 4000), density=0.01, format="csr", rng=0), blocks=2).persist()
        x = mn.asarray(np.ones(4000), blocks=2).persist()
        (A @ x).persist()
        assert seen[-1].moved_bytes == 2 * 2000 * 8  # each worker gets the half that the other has
        assert 1 <= seen[-1].imbalance <= 2
        one = mn.asarray(np.ones(40_000), blocks=1)
        float((one * 2).sum())
        assert seen[-1].imbalance == 2  # the other worker did nothing
    mn.stop()


@pytest.mark.parametrize("blocks", [2, 5])
def test_projected_memory_covers_what_is_made(session: mn.session.Session, blocks: int) -> None:
    seen = runs(session)
    made: list[int] = []
    session.subscribe(lambda event: made.extend(task.output_bytes for task in getattr(event, "tasks", ())))
    rng = mn.random.default_rng(0)
    float(np.sqrt(rng.random((1000, 1000), blocks=blocks) + 1).sum())
    assert seen[-1].projected_bytes >= 2 * 8_000_000 // blocks  # two tasks at a time, each with its block
    x = (rng.random((1000, 1000), blocks=blocks) * 2).persist()
    assert seen[-1].projected_bytes >= x.facts().num_bytes


def test_interpreting_keeps_to_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holdings, "SHIP_BYTES", 1000)
    with mn.start(engine="interpret", compute_limit="1MB"):
        assert float((mn.asarray(np.ones(10_000)) * 2).sum()) == 20_000
        with pytest.raises(TooLargeError):
            mn.zeros((1000, 1000)).compute()
    mn.stop()


def test_times_of_a_cancelled_run_are_not_taken_for_the_next_ones() -> None:
    with mn.start():
        work = long_work()
        timer = threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(CellCancelled):
            float(work)
        timer.join()
    with mn.start() as session:
        seen = runs(session)
        (mn.asarray(np.ones(10)) + 1).persist()
        assert seen[-1].actual_bytes <= 3 * 80
    mn.stop()


def test_an_interrupt_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with mn.start():
        float(mn.ones(10).sum())
        work = long_work()
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

"""A scheduler that is started again, at once or later, is used again; what was stored is made again."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from cli_cluster import CliCluster, free_port
from distributed import LocalCluster
from waiting import wait_until

import matnb as mn
from matnb.errors import ClusterError
from matnb.events import WorkersSampled

pytestmark = pytest.mark.cluster
COUNT = 40_000


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[CliCluster]:
    with CliCluster(tmp_path) as cluster:
        begin(cluster)
        yield cluster
        mn.stop()


def begin(cluster: CliCluster) -> None:
    cluster.start_scheduler()
    for name in ("one", "two"):
        cluster.start_worker(name)
    wait_until(lambda: cluster.log("scheduler").count(b"Starting worker compute stream") == 2, 60)


def end(cluster: CliCluster, number: int) -> None:
    cluster.end(cluster.scheduler, number)
    for worker in cluster.workers.values():
        cluster.end(worker)


def values(number: int) -> tuple[float, ...]:
    """Return what :func:`cell` gives, by NumPy."""
    a, b, x = np.arange(float(COUNT)), np.arange(float(COUNT)) * 2, np.ones(COUNT)
    for _ in range(number):
        x = x * 0.5 + b
    return float((a[:-1] * a[1:] + number).sum()), float((b + number).sum()), float(x.sum())


def cell(a: mn.DistArray, b: mn.DistArray, number: int) -> tuple[float, ...]:
    x, _ = mn.iterate(lambda x: x * 0.5 + b, mn.ones(COUNT), max_iterations=number)
    return float((a[:-1] * a[1:] + number).sum()), float((b + number).sum()), float(x.sum())


def stored() -> tuple[mn.DistArray, mn.DistArray]:
    a = mn.asarray(np.arange(float(COUNT)), blocks=4).persist()
    return a, (mn.asarray(np.arange(float(COUNT)), blocks=4) * 2).persist()


def in_this_process(port: int) -> LocalCluster:
    """Return a cluster of another user's, as it were, with its scheduler at a port."""
    return LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp", scheduler_port=port,
        dashboard_address=":0",
    )  # fmt: skip


def test_a_session_goes_on_with_a_scheduler_that_was_started_again() -> None:
    port = free_port()
    with in_this_process(port) as theirs:
        session = mn.connect(theirs.scheduler_address, timeout_seconds=30)
        try:
            heard: list[object] = []
            end_samples = session.subscribe(heard.append, samples=True)
            a, b = stored()
            assert cell(a, b, 2) == pytest.approx(values(2))
            theirs.close()
            wait_until(lambda: session.status().num_workers == 0)
            assert "the scheduler has been away for" in session.status().workers_text
            with in_this_process(port) as theirs:
                assert cell(a, b, 3) == pytest.approx(values(3))
                assert cell(a, b, 4) == pytest.approx(values(4))  # nothing goes to workers of before
                assert session.cluster.num_breaks == 1
                assert session.status().workers_text == ""
                heard.clear()
                wait_until(lambda: any(isinstance(one, WorkersSampled) for one in heard))
                end_samples()
                # Losses are heard of again: the subscription went with the first scheduler.
                theirs.scale(1)
                wait_until(lambda: len(session.cluster.alive()) == 1)
                assert cell(a, b, 5) == pytest.approx(values(5))
                # And what is left is taken away again, as the first scheduler did.
                assert any("farewell" in name for name in theirs.scheduler.plugins)
                mn.stop()
                wait_until(lambda: not any("matnb" in name for name in theirs.scheduler.plugins))
        finally:
            mn.stop()


def test_a_scheduler_that_stays_away_is_told_in_time() -> None:
    with in_this_process(free_port()) as theirs:
        session = mn.connect(theirs.scheduler_address, timeout_seconds=20)
        session.cluster.patience_seconds = 1.0
        a, _ = stored()
    try:
        for _ in range(2):  # the second run begins after the break
            began = time.monotonic()
            with pytest.raises(ClusterError, match=r"does not answer.*mn\.connect"):
                float((a * 2).sum())
            assert time.monotonic() - began < 5
        assert not mn.doctor().is_well
        assert session.status().num_workers == 0
    finally:
        mn.stop()


def test_a_client_whose_connection_breaks_alone_goes_on(tmp_path: Path) -> None:
    with in_this_process(0) as theirs:
        session = mn.connect(theirs.scheduler_address, timeout_seconds=20)
        try:
            a, b = stored()
            for number in (2, 3, 4):
                client = session.cluster.client
                client.loop.add_callback(client.scheduler_comm.comm.abort)
                if number != 3:
                    wait_until(lambda number=number: session.cluster.num_breaks >= number - 1)
                assert cell(a, b, number) == pytest.approx(values(number))
            wait_until(lambda: len([one for one in theirs.scheduler.clients if "Matnb" in one]) == 1)
        finally:
            mn.stop()
        wait_until(lambda: not theirs.scheduler.tasks)


@pytest.mark.parametrize("step", ["_say_farewell", "_listen", "_ask_scheduler"])
def test_a_connection_that_breaks_again_while_it_is_mended_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with in_this_process(0) as theirs, mn.connect(theirs.scheduler_address, timeout_seconds=20) as session:
        a, b = stored()
        cluster, client = session.cluster, session.cluster.client
        usual, num_broken = getattr(cluster, step), 0

        def broken(*arguments: object) -> object:
            nonlocal num_broken
            if num_broken < 2:
                num_broken += 1
                client.loop.add_callback(client.scheduler_comm.comm.abort)
            return usual(*arguments)

        monkeypatch.setattr(cluster, step, broken)
        client.loop.add_callback(client.scheduler_comm.comm.abort)
        wait_until(lambda: cluster.num_breaks == 1)
        began = time.monotonic()
        assert cell(a, b, 3) == pytest.approx(values(3))
        assert (num_broken, cluster.num_breaks) == (2, 3)
        assert time.monotonic() - began < 10


@pytest.mark.parametrize("is_mended", [True, False])
def test_a_connection_that_breaks_while_the_scheduler_answers_is_waited_for(is_mended: bool) -> None:
    with in_this_process(0) as theirs, mn.connect(theirs.scheduler_address, timeout_seconds=20) as session:
        a, b = stored()
        cluster, client = session.cluster, session.cluster.client
        usual, num_broken = theirs.scheduler.handlers["identity"], 0

        async def broken(**options: object) -> object:
            nonlocal num_broken
            if num_broken < 2 and client.status == "running":  # it is asked as the client connects, too
                num_broken += 1
                client.loop.add_callback(client.scheduler_comm.comm.abort)
                await asyncio.sleep(0.2)
            return usual(**options)

        if is_mended:  # it breaks as what is mended after another break is looked at
            client.loop.add_callback(client.scheduler_comm.comm.abort)
            wait_until(lambda: cluster.num_breaks == 1)
        theirs.scheduler.handlers["identity"] = broken
        cluster.refresh()
        assert (num_broken, cluster.num_breaks) == (2, 2 + is_mended)
        assert cell(a, b, 3) == pytest.approx(values(3))


def test_whatever_goes_wrong_while_it_connects_again_it_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with in_this_process(0) as theirs, mn.connect(theirs.scheduler_address, timeout_seconds=20) as session:
        a, b = stored()
        client = session.cluster.client
        usual, errors = client._ensure_connected, [OSError, ValueError, TypeError, KeyError, RuntimeError]
        errors += [AttributeError, AssertionError]

        async def failing(**options: float) -> None:
            if errors:
                raise errors.pop()("another Dask's answer")
            await usual(**options)

        monkeypatch.setattr(client, "_ensure_connected", failing)
        client.loop.add_callback(client.scheduler_comm.comm.abort)
        wait_until(lambda: session.cluster.num_breaks == 1)
        assert cell(a, b, 3) == pytest.approx(values(3))
        assert not errors


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_session_goes_on_with_other_processes_at_the_address(cluster: CliCluster, number: int) -> None:
    session = mn.connect(cluster.address, timeout_seconds=30)
    a, b = stored()
    assert cell(a, b, 2) == pytest.approx(values(2))
    end(cluster, number)
    wait_until(lambda: session.status().num_workers == 0)
    assert "the scheduler has been away for" in session.status().workers_text
    begin(cluster)
    assert cell(a, b, 3) == pytest.approx(values(3))
    assert cell(a, b, 4) == pytest.approx(values(4))  # nothing that was made goes to workers of before
    assert session.cluster.num_breaks == 1


@pytest.mark.slow
def test_a_run_under_way_goes_on_after_the_scheduler_is_back(cluster: CliCluster) -> None:
    mn.connect(cluster.address, timeout_seconds=40)
    b = mn.asarray(np.arange(float(COUNT)), blocks=4)
    x, _ = mn.iterate(lambda x: x * 0.5 + b, mn.ones(COUNT), max_iterations=20_000)

    def break_and_begin() -> None:
        time.sleep(1)
        end(cluster, signal.SIGKILL)
        begin(cluster)

    breaking = threading.Thread(target=break_and_begin)
    breaking.start()
    try:
        assert np.allclose(x.compute(), 2 * np.arange(float(COUNT)))
    finally:
        breaking.join()


@pytest.mark.slow
def test_a_worker_that_comes_to_the_address_of_one_that_is_lost_is_another(tmp_path: Path) -> None:
    with CliCluster(tmp_path) as cluster:
        cluster.start_scheduler()
        cluster.start_worker("one", port=cluster.port + 1)
        try:
            session = mn.connect(cluster.address, timeout_seconds=60)
            a, b = stored()
            address = session.cluster.workers[0].address
            cluster.end(cluster.workers["one"])
            wait_until(lambda: not session.cluster.alive())
            cluster.start_worker("one", port=cluster.port + 1)
            assert cell(a, b, 2) == pytest.approx(values(2))
            assert [one.address for one in session.cluster.workers] == [address, address]
            assert session.cluster.alive() == (1,)
        finally:
            mn.stop()


@pytest.mark.slow
def test_a_scheduler_that_is_stopped_is_told_of(cluster: CliCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matnb.backend.engines.inquiry.QUIET_SECONDS", 1.0)
    monkeypatch.setattr("matnb.backend.engines.inquiry._AGAIN_SECONDS", 0.5)
    monkeypatch.setattr("matnb.backend.engines.inquiry._SCHEDULER_SECONDS", 1.0)
    mn.connect(cluster.address, timeout_seconds=20)
    a, _ = stored()
    float((a + 1).sum())
    assert cluster.scheduler is not None
    cluster.scheduler.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(ClusterError, match=r"the scheduler of .* does not answer"):
            float((a + 2).sum())
    finally:
        cluster.scheduler.send_signal(signal.SIGCONT)
    assert float((a + 3).sum()) == np.arange(float(COUNT)).sum() + 3 * COUNT

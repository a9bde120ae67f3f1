"""After a fault and a while of quiet all workers are there again, or the user was told; the end is clean."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator

import dask
import numpy as np
import pytest
from distributed import Worker
from distributed.core import Status
from waiting import wait_until

import matnb as mn
from matnb.backend.cluster.dask_cluster import Attendance
from matnb.backend.cluster.servers import LocalCluster, LocalNanny, LocalWorker
from matnb.lazy.recording import recording
from matnb.magics.summary import status_text

QUIET_SECONDS = 30.0


@pytest.fixture(autouse=True)
def stopped() -> Iterator[None]:
    yield
    mn.stop()


def servers(session: mn.session.Session) -> LocalCluster:
    return session.cluster._servers.cluster


def on_loop(session: mn.session.Session, work: Callable[[], object]) -> None:
    servers(session).loop.add_callback(work)


def how_it_keeps(dask_worker: Worker) -> tuple[object, ...]:
    memory, folder = dask_worker.memory_manager, os.path.dirname(dask_worker.local_directory)
    return memory.memory_pause_fraction, memory.memory_spill_fraction, folder


def drop_connection(session: mn.session.Session, number: int) -> None:
    worker = servers(session).workers[number]
    on_loop(session, lambda: worker.batched_stream.comm.abort())


def close_worker(session: mn.session.Session, number: int) -> None:
    on_loop(session, servers(session).workers[number].close)


def remove_on_scheduler(session: mn.session.Session, number: int) -> None:
    scheduler = servers(session).scheduler
    address = servers(session).workers[number].worker_address
    on_loop(session, lambda: scheduler.remove_worker(address, stimulus_id="test"))


IN_PROCESS = [drop_connection, close_worker]


@pytest.mark.parametrize("fault", IN_PROCESS)
def test_a_worker_in_this_process_that_is_lost_is_replaced(fault: Callable) -> None:
    with mn.start(workers=2, threads=1) as session:
        x = mn.asarray(np.arange(30_000.0), blocks=4).persist()
        fault(session, 1)
        wait_until(lambda: session.cluster.attendance().num_gone > 0)
        assert float(x.sum()) == 449_985_000
        wait_until(lambda: session.status().num_workers == 2, QUIET_SECONDS)
        y = mn.asarray(np.arange(40_000.0), blocks=4).persist()
        assert len(set(y.layout.owners)) == 2
        found = session.cluster.client.run(how_it_keeps)
        assert len(set(found.values())) == 1, found  # the new one as the old ones


def test_all_workers_lost_at_once_are_waited_for() -> None:
    with mn.start(workers=2, threads=1) as session:
        x = mn.asarray(np.arange(30_000.0), blocks=4).persist()
        for number in (0, 1):
            close_worker(session, number)
        wait_until(lambda: session.cluster.attendance().num_now == 0)
        assert float(x.sum()) == 449_985_000


def test_a_worker_that_is_lost_while_another_starts_for_the_first_time_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start, begun = LocalWorker.start_unsafe, []

    async def start_after_a_loss(self: LocalWorker) -> object:
        begun.append(self)
        if len(begun) == 2:
            while begun[0].status != Status.running:
                await asyncio.sleep(0.01)
            await begun[0].close()
            await asyncio.sleep(0.3)  # the cluster hears of the loss before this one is there
        return await start(self)

    monkeypatch.setattr(LocalWorker, "start_unsafe", start_after_a_loss)
    with mn.start(workers=2, threads=1) as session:
        wait_until(lambda: session.status().num_workers == 2, QUIET_SECONDS)
        assert len(begun) == 3


def test_a_worker_that_cannot_be_made_is_made_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    with mn.start(workers=2, threads=1) as session:
        make, num_refused = LocalWorker.__init__, 0

        def refuse_twice(self: LocalWorker, *arguments: object, **options: object) -> None:
            nonlocal num_refused
            if num_refused < 2:
                num_refused += 1
                raise OSError("no folder can be made")
            make(self, *arguments, **options)

        monkeypatch.setattr(LocalWorker, "__init__", refuse_twice)
        close_worker(session, 1)
        wait_until(lambda: "no folder can be made" in session.status().workers_text)
        wait_until(lambda: session.status().num_workers == 2, QUIET_SECONDS)
        assert num_refused == 2


def test_the_cell_and_the_status_tell_of_a_lost_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    with mn.start(workers=2, threads=1) as session:

        async def refuse(self: LocalWorker) -> None:
            raise OSError("no worker can be started")

        with monkeypatch.context() as patched:
            patched.setattr(LocalWorker, "start_unsafe", refuse)
            close_worker(session, 1)
            wait_until(lambda: "no worker can be started" in session.status().workers_text)
            assert "1 of 2 workers there: starting another failed" in status_text(session.status())
            with recording("a cell") as record:
                x = mn.ones(10) + 1
            report = session.run({"x": x.expression}, record)
            assert report.workers_text.startswith("1 of 2 workers there: starting another failed")
        wait_until(lambda: session.status().num_workers == 2, QUIET_SECONDS)
        with recording("a cell") as record:
            x = mn.ones(10) + 2
        told = session.run({"x": x.expression}, record).workers_text
        assert told in ("", "2 workers now, 1 worker lost before and replaced")
        assert "replaced" in status_text(session.status())


def test_a_loss_is_told_in_the_next_cell_once() -> None:
    with mn.start(workers=2, threads=1) as session:
        close_worker(session, 1)
        wait_until(lambda: session.cluster.attendance().num_gone == 1)
        wait_until(lambda: session.status().num_workers == 2)
        told = []
        for number in range(2):
            with recording("a cell") as record:
                x = mn.ones(10) + number
            told.append(session.run({"x": x.expression}, record).workers_text)
        assert told == ["2 workers now, 1 worker lost before and replaced", ""]


def test_a_loss_right_after_losses_were_counted_is_told_in_the_next_cell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with mn.start(workers=1, threads=1) as session:
        usual, told = session.cluster.attendance, []

        def attendance(since: float) -> Attendance:
            found = usual(since)
            if not told:
                session.cluster._losses.append(time.monotonic())
            return found

        monkeypatch.setattr(session.cluster, "attendance", attendance)
        for number in range(3):
            with recording("a cell") as record:
                x = mn.ones(10) + number
            told.append(session.run({"x": x.expression}, record).workers_text)
        assert told == ["", "1 worker now, 1 worker lost before and replaced", ""]


@pytest.mark.cluster
def test_a_worker_process_that_takes_long_to_come_back_is_not_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Longer than Dask waits before it drops a worker for good, which is 15 seconds by default.
    with (
        mn.start(workers=2, threads=1, processes=True) as session,
        dask.config.set({"distributed.deploy.lost-worker-timeout": "200ms"}),
    ):
        start = LocalNanny.instantiate

        async def late(self: LocalNanny) -> object:
            await asyncio.sleep(1.0)
            return await start(self)

        monkeypatch.setattr(LocalNanny, "instantiate", late)
        os.kill(servers(session).workers[0].pid, signal.SIGKILL)
        wait_until(lambda: session.cluster.attendance().num_gone == 1)
        wait_until(lambda: session.status().num_workers == 2, 2 * QUIET_SECONDS)
        # and one whose connection broke, which Dask does not start again
        remove_on_scheduler(session, 1)
        wait_until(lambda: session.cluster.attendance().num_gone == 2)
        wait_until(lambda: session.status().num_workers == 2, 2 * QUIET_SECONDS)
        assert float(mn.ones(10).sum()) == 10


# the end


def kill_scheduler(session: mn.session.Session) -> None:
    servers(session).sync(servers(session).scheduler.close)


def drop_client(session: mn.session.Session) -> None:
    client = session.cluster.client
    client.loop.add_callback(lambda: client.scheduler_comm.comm.abort())


def drop_all_workers(session: mn.session.Session) -> None:
    for number in (0, 1):
        drop_connection(session, number)


def leave_it(session: mn.session.Session) -> None:
    pass


def close_client(session: mn.session.Session) -> None:
    session.cluster.client.close()


def close_cluster(session: mn.session.Session) -> None:
    servers(session).close()


@pytest.mark.parametrize(
    "before", [leave_it, kill_scheduler, drop_client, drop_all_workers, close_client, close_cluster]
)
def test_a_stop_raises_nothing_and_leaves_nothing(before: Callable) -> None:
    session = mn.start(workers=2, threads=1)
    float(mn.asarray(np.arange(30_000.0), blocks=4).sum())
    before(session)
    begin = time.monotonic()
    mn.stop()  # the leak guard looks at what is left
    assert time.monotonic() - begin < 30


@pytest.mark.slow
@pytest.mark.cluster
def test_a_stop_ends_worker_processes_that_do_not_answer() -> None:
    session = mn.start(workers=2, threads=1, processes=True)
    float(mn.asarray(np.arange(30_000.0), blocks=4).sum())
    first, second = servers(session).workers.values()
    os.kill(first.pid, signal.SIGKILL)
    os.kill(second.pid, signal.SIGSTOP)
    # the first is stopped as it starts again
    wait_until(lambda: first.is_starting and first.pid is not None)
    os.kill(first.pid, signal.SIGSTOP)
    begin = time.monotonic()
    mn.stop()
    assert time.monotonic() - begin < 30

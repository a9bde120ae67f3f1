"""Blocks and messages between members arrive whole, once and unshared."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from itertools import pairwise

import gangs
import numpy as np
import pytest
from distributed import LocalCluster, Security, Worker
from distributed.protocol.core import dumps, loads

from matnb.backend.cluster.dask_cluster import DaskCluster, connect, start
from matnb.backend.engines.engine_gang import GangEngine, GangUnavailable
from matnb.backend.gang import mailbox as mailbox_module
from matnb.backend.gang.lines import ABORT, END, VALUE, Line
from matnb.backend.gang.mailbox import Aborted, GangMailbox
from matnb.backend.gang.packing import pack, unpack
from matnb.config import Config


@pytest.fixture(scope="module", params=["threads", pytest.param("processes", marks=pytest.mark.cluster)])
def cluster(request: pytest.FixtureRequest) -> Iterator[DaskCluster]:
    with start(Config(workers=2, threads=1, processes=request.param == "processes")) as found:
        yield found


@pytest.mark.parametrize("name", gangs.SENT)
def test_a_block_is_packed_as_raw_buffers(name: str):
    block = gangs.SENT[name]
    wire, shares = pack(block)
    frames = dumps(((VALUE, 0, "x", wire),))
    come = unpack(loads([bytes(frame) for frame in frames])[0][3])
    assert type(come) is type(block)
    assert (come.shape, come.dtype) == (block.shape, block.dtype)
    large = [array for array in gangs._arrays(block) if array.nbytes > 16_384]
    assert shares == bool(large)
    assert len(frames) == 1 + 2 * len(large)  # each with its header, and all else in the first
    for array, other in zip(gangs._arrays(come), gangs._arrays(block), strict=True):
        np.testing.assert_array_equal(array, other)


def test_small_things_are_pickled():
    for thing in (3, (1, "a"), None, np.float64(2.5), ValueError("why")):
        wire, shares = pack(thing)
        assert not shares
        assert repr(unpack(wire)) == repr(thing)


def test_every_block_arrives_whole_and_unshared(cluster: DaskCluster):
    engine = GangEngine(cluster, "all-", gangs.exchange_all)
    try:
        outcome = engine.run(gangs.relay_program((0, 1)), {})
        assert outcome.kept["y1"].result().values.tolist() == [1.0]
    finally:
        engine.close()


def test_every_block_arrives_behind_tls(certificates: Security):
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with (
        LocalCluster(protocol="tls://", security=certificates, **options) as theirs,
        connect(theirs) as cluster,
    ):
        cluster.leave_nothing_of("tls-")
        engine = GangEngine(cluster, "tls-", gangs.exchange_all)
        outcome = engine.run(gangs.relay_program((0, 1)), {})
        assert outcome.kept["y1"].result().values.tolist() == [1.0]
        engine.close()


class FakeComm:
    """A connection that keeps what is written, and gives what is fed."""

    def __init__(self) -> None:
        self.written: list[tuple] = []
        self.fed: asyncio.Queue[tuple | OSError] = asyncio.Queue()
        self.allow_offload = True

    async def write(self, message: tuple) -> None:
        self.written.append(message)

    async def read(self) -> tuple:
        message = await self.fed.get()
        if isinstance(message, OSError):
            raise message
        return message

    def abort(self) -> None:
        self.fed.put_nowait(OSError("aborted"))


def test_what_is_ready_together_goes_together():
    async def check() -> None:
        comm = FakeComm()
        line = Line(comm, lambda _: None, pytest.fail)
        for number in range(5):
            line.put((VALUE, number, "x", (), False))
        running = asyncio.create_task(line.run())
        await line.flushed(1)
        line.put((END,))
        comm.fed.put_nowait(((END,),))
        assert await running
        assert [len(message) for message in comm.written] == [5, 1]
        assert not line.is_open
        assert comm.allow_offload

    asyncio.run(check())


def test_arrays_are_released_when_acknowledged_or_when_the_line_breaks():
    async def check() -> None:
        comm, sent, reasons = FakeComm(), [], []
        line = Line(comm, lambda _: None, reasons.append)
        running = asyncio.create_task(line.run())
        for number in range(3):
            line.put((VALUE, number, "x", (), True), lambda number=number: sent.append(number))
        await asyncio.sleep(0.01)
        assert sent == []
        comm.fed.put_nowait((("k", 2),))
        await asyncio.sleep(0.01)
        assert sent == [0, 1]
        comm.fed.put_nowait(OSError("gone"))
        assert not await running
        assert sent == [0, 1, 2]
        assert reasons == ["gone"]

    asyncio.run(check())


def test_an_acknowledgment_counts_the_arrays_of_a_message():
    async def check() -> None:
        comm, heard = FakeComm(), []
        line = Line(comm, heard.append, pytest.fail)
        running = asyncio.create_task(line.run())
        comm.fed.put_nowait(
            ((VALUE, 0, "x", (), True), (VALUE, 0, "y", (), False), (VALUE, 0, "z", (), True))
        )
        await asyncio.sleep(0.01)
        assert [item[2] for item in heard] == ["x", "y", "z"]
        assert comm.written == [(("k", 2),)]
        line.put((END,))
        comm.fed.put_nowait(((END,),))
        assert await running

    asyncio.run(check())


def test_what_comes_after_the_other_side_left_is_let_go_of():
    async def check() -> None:
        comm, sent = FakeComm(), []
        line = Line(comm, lambda _: None, pytest.fail)
        running = asyncio.create_task(line.run())
        comm.fed.put_nowait(((END,),))
        await asyncio.sleep(0.01)
        line.put((VALUE, 0, "x", (), True), lambda: sent.append(0))
        await line.flushed(1)
        assert sent == [0]
        line.put((END,))
        assert await running

    asyncio.run(check())


def test_a_silent_member_is_noticed_and_a_beating_one_is_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mailbox_module, "_BEAT_SECONDS", 0.02)
    monkeypatch.setattr(mailbox_module, "_SILENT_SECONDS", 0.6)

    async def check() -> None:
        worker = type(
            "FakeWorker", (), {"loop": type("Loop", (), {"asyncio_loop": asyncio.get_running_loop()})}
        )
        mailbox = GangMailbox(worker, "line", 1, 0, {0: "here", 1: "there"}, lambda *_: None)
        comm = FakeComm()
        answering = asyncio.create_task(mailbox.answer(comm, 1))
        await mailbox.gather()
        for _ in range(20):  # longer than the silence
            comm.fed.put_nowait(())
            await asyncio.sleep(0.04)
        mailbox.check()
        assert len(comm.written) > 5
        assert set(comm.written[1:]) == {()}
        await asyncio.sleep(1.0)
        with pytest.raises(Aborted, match="worker 1 was silent"):
            mailbox.check()
        assert [item[0] for message in comm.written[1:] for item in message] == [ABORT]
        await mailbox.end()
        comm.fed.put_nowait(((END,),))
        assert await answering

    asyncio.run(check())


def test_members_of_another_epoch_are_turned_away(cluster: DaskCluster, monkeypatch: pytest.MonkeyPatch):
    engine = GangEngine(cluster, "old-", gangs.Relay(3))
    try:
        engine.run(gangs.relay_program((0, 1)), {})
        answers = cluster.client.run(_call_old, "old-gang-line", cluster.workers[0].address)
        assert set(answers.values()) == {"it is over, or never began"}
    finally:
        engine.close()


async def _call_old(line_name: str, address: str, dask_worker: Worker) -> str:
    comm = await dask_worker.rpc.connect(address)
    await comm.write({"op": line_name, "epoch": 1, "source": 1, "reply": False})
    (greeting,) = await comm.read()
    dask_worker.rpc.reuse(address, comm)
    return greeting[0]


def test_one_that_does_not_come_is_not_waited_for_long(cluster: DaskCluster, monkeypatch: pytest.MonkeyPatch):
    if not cluster.workers[0].address.startswith("inproc"):
        pytest.skip("limits are set in this process")
    monkeypatch.setattr(mailbox_module, "PRESENT_SECONDS", 0.3)
    occupied = cluster.client.submit(time.sleep, 3, workers=[cluster.workers[1].address])
    engine = GangEngine(cluster, "late-", gangs.Relay(3))
    try:
        with pytest.raises(GangUnavailable, match=r"workers \[1\] did not join within 0.3 s"):
            engine.run(gangs.relay_program((0, 1)), {})
        assert gangs.active == set()
        occupied.result()
        assert engine.run(gangs.relay_program((0, 1)), {}).num_members == 2
    finally:
        engine.close()


def test_rounds_are_fast(cluster: DaskCluster):
    engine = GangEngine(cluster, "fast-", gangs.Relay(200))
    try:
        engine.run(gangs.relay_program((0, 1)), {})
        seconds = [engine.run(gangs.relay_program((0, 1)), {}).seconds for _ in range(3)]
        print(f"{min(seconds) / 200 * 1e3:.2f} ms a round")
        assert min(seconds) < 200 * 0.005  # 0.5 ms each when the machine is ours
    finally:
        engine.close()


def test_strided_is_not_contiguous():
    # What the exchange of every kind means to cover.
    strides = gangs.SENT["strided"].values.strides, gangs.SENT["columns"].values.strides
    assert strides == ((16,), (4, 1200))
    assert all(first < second for first, second in pairwise(strides[1]))

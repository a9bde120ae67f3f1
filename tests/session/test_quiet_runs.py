"""A run without progress is looked into: one that can never end is an error, a slow one goes on."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from distributed import LocalCluster
from distributed.core import Status
from waiting import wait_until

import matnb as mn
from matnb.backend.cluster import greetings
from matnb.backend.engines import inquiry
from matnb.errors import CellCancelled, ClusterError
from matnb.session.overrides import choosing

BLOCKS = 4


@pytest.fixture(scope="module")
def theirs() -> Iterator[LocalCluster]:
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=":0"
    ) as theirs:
        yield theirs


@pytest.fixture
def session(theirs: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[mn.session.Session]:
    for name, seconds in (("QUIET", 0.2), ("_AGAIN", 0.1), ("_SCHEDULER", 2.0), ("_STILL", 0.5)):
        monkeypatch.setattr(inquiry, f"{name}_SECONDS", seconds)
    monkeypatch.setattr(inquiry, "_PAUSED_SECONDS", 1.0)
    with mn.connect(theirs) as session:
        yield session


def slow(seconds: float) -> mn.DistArray:
    """Return an array of which each block takes so long."""

    def wait(block: np.ndarray) -> np.ndarray:
        time.sleep(seconds)
        return block + seconds

    return mn.map_blocks(wait, mn.asarray(np.arange(8.0), blocks=BLOCKS))


def part(monkeypatch: pytest.MonkeyPatch, address: str, num_times: float = np.inf) -> None:
    """Let the system say that there is no way to an address, so many times."""
    left = [num_times]

    async def reason(other: str) -> str:
        if other != address or not left[0]:
            return ""
        left[0] -= 1
        return "no answer"

    monkeypatch.setattr(greetings, "_reason", reason)


@pytest.mark.parametrize("engine", ["auto", "dask"])
def test_what_only_takes_long_goes_on(session: mn.session.Session, engine: str) -> None:
    with choosing(engine=engine):
        assert np.array_equal(slow(0.6).compute(), np.arange(8.0) + 0.6)


def test_workers_apart_are_named_by_a_run(
    session: mn.session.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (one.address for one in session.cluster.workers)
    part(monkeypatch, second)
    words = rf"do not reach each other: there is no way from {first} to {second} \(no answer\).*firewall"
    with pytest.raises(ClusterError, match=words):
        slow(1.1).compute()
    with pytest.raises(ClusterError, match=words):
        mn.connect(session.cluster.scheduler_address)
    assert "do not reach each other" in str(mn.doctor())


def test_a_way_that_was_closed_for_a_moment_ends_nothing(
    session: mn.session.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    part(monkeypatch, session.cluster.workers[1].address, num_times=1)
    assert np.array_equal(slow(0.7).compute(), np.arange(8.0) + 0.7)


@pytest.mark.parametrize("is_long", [False, True])
def test_paused_workers_are_named_unless_they_go_on(
    session: mn.session.Session, theirs: LocalCluster, is_long: bool
) -> None:
    def set_all(status: Status) -> None:
        for worker in theirs.workers.values():  # which looks ten times a second how full it is
            worker.memory_manager.memory_pause_fraction = 1e-6 if status is Status.paused else 0.99
        wait_until(lambda: all(worker.status is status for worker in theirs.workers.values()))

    x = mn.asarray(np.arange(8.0), blocks=BLOCKS).persist()
    set_all(Status.paused)
    try:
        if not is_long:
            threading.Timer(0.6, set_all, [Status.running]).start()
            assert float((x + 1).sum()) == 36
        else:
            with pytest.raises(ClusterError, match=r"no worker does anything: worker 0 is paused"):
                float((x + 2).sum())
    finally:
        set_all(Status.running)
    assert float((x + 3).sum()) == 52


def test_a_run_that_is_looked_into_can_be_cancelled(
    session: mn.session.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    async def reason(other: str) -> str:  # on the event loop, so while a run is looked into
        if not asked:
            asked.append(session.cancel())
        return ""

    monkeypatch.setattr(greetings, "_reason", reason)
    with pytest.raises(CellCancelled):
        slow(1.5).compute()
    assert asked == [True]


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_what_is_still_asked_when_a_run_ends_is_asked_no_more(
    session: mn.session.Session, monkeypatch: pytest.MonkeyPatch, is_cancelled: bool
) -> None:
    asked, ended = threading.Event(), threading.Event()

    async def asking(*_: object) -> None:
        asked.set()
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()

    monkeypatch.setattr(inquiry, "_asked", asking)
    if is_cancelled:
        threading.Thread(target=lambda: asked.wait() and session.cancel()).start()
        with pytest.raises(CellCancelled):
            slow(1.5).compute()
    else:
        assert np.array_equal(slow(0.6).compute(), np.arange(8.0) + 0.6)
    assert asked.is_set()
    assert ended.wait(5)


def test_greetings_of_real_ports(theirs: LocalCluster) -> None:
    closed = "tcp://127.0.0.1:9"
    with mn.connect(theirs) as session:
        one, two = (each.address for each in session.cluster.workers)
        client = session.cluster.client
        found = client.run(greetings.greet, [one, two, closed, "inproc://x"], workers=[one])[one]
        assert dict(found.unreached) == {closed: "Connection refused"}
        assert greetings.pairs_apart({one: found}) == {}  # nobody is known to be there
        other = greetings.Greeting({}, "running", 0, 0)
        assert greetings.pairs_apart({one: found, closed: other}) == {(one, closed): "Connection refused"}


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "Name or service not known"),
        (socket.gaierror(socket.EAI_AGAIN, "Try again"), "Try again"),
        (OSError("Multiple exceptions: here, there"), "Multiple exceptions: here, there"),
        (OSError(errno.EHOSTUNREACH, "Connect call failed"), os.strerror(errno.EHOSTUNREACH)),
    ],
)
def test_why_there_is_no_way_is_said_in_words(
    error: OSError, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(host: str, port: int) -> None:
        raise error

    monkeypatch.setattr(asyncio, "open_connection", refuse)
    assert asyncio.run(greetings._reason("tcp://nowhere:8786")) == words

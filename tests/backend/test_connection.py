"""A cluster that is there already is reached in every way, or refused in time; it is left as it was."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import dask
import pytest
from distributed import Client, LocalCluster, Security
from waiting import wait_until

from matnb.backend.cluster.connection import _reason
from matnb.backend.cluster.dask_cluster import connect
from matnb.errors import ClusterError, OptionError

# distributed's pool for large messages is made once for the process and refuses to be shut down.
KEPT_THREADS = {"Dask-Offload_0"}


@pytest.fixture
def foreign() -> Iterator[LocalCluster]:
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as theirs:
        yield theirs


def threads() -> set[str]:
    return {thread.name for thread in threading.enumerate()}


def held_by(theirs: LocalCluster) -> dict[str, object]:
    scheduler = theirs.scheduler
    return {
        "clients": set(scheduler.clients),
        "keys": set(scheduler.tasks),
        "plugins": set(scheduler.plugins),
        "plugins of workers": [set(worker.plugins) for worker in theirs.workers.values()],
        "listeners": set(scheduler._broker._topics["all"].subscribers),
    }


@pytest.mark.parametrize("kind", ["address", "cluster", "client", "file"])
def test_connecting_leaves_a_foreign_cluster_as_it_was(foreign: LocalCluster, tmp_path: Path, kind: str):
    events: list[object] = []
    path = tmp_path / "scheduler.json"
    with Client(foreign, set_as_default=False) as theirs:
        theirs.subscribe_topic("all", events.append)
        wait_until(lambda: bool(held_by(foreign)["listeners"]))
        theirs.write_scheduler_file(str(path))
        before = held_by(foreign)
        target = {"address": foreign.scheduler_address, "cluster": foreign, "client": theirs, "file": None}[
            kind
        ]
        cluster = connect(target, scheduler_file=str(path) if kind == "file" else None)
        try:
            assert not cluster.owned
            assert cluster.client is not theirs
            assert cluster.description == f"the Dask cluster at {foreign.scheduler_address}"
            assert cluster.alive() == (0, 1)
            kept = cluster.client.submit(abs, -3)
            assert kept.result() == 3
            assert held_by(foreign) != before
        finally:
            cluster.close()
        wait_until(lambda: held_by(foreign) == before)
        assert theirs.submit(abs, -4).result() == 4
        foreign.scale(1)
        wait_until(lambda: any(message["action"] == "remove-worker" for _, message in events))
        theirs.unsubscribe_topic("all")


def test_a_foreign_cluster_that_ends_first_does_not_hold_us(
    foreign: LocalCluster, capfd: pytest.CaptureFixture[str]
):
    cluster = connect(foreign, timeout_seconds=2)
    assert cluster.alive()
    foreign.close()
    wait_until(lambda: cluster.alive() == ())
    with pytest.raises(ClusterError, match="does not answer"):
        cluster.refresh()
    cluster.close()
    assert "Traceback" not in capfd.readouterr().err


def test_a_cluster_behind_tls_is_reached_with_its_certificates_only(certificates: Security):
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with LocalCluster(protocol="tls://", security=certificates, **options) as theirs:
        assert theirs.scheduler_address.startswith("tls://")
        for target, security in ((theirs, None), (theirs.scheduler_address, certificates)):
            with connect(target, security=security) as cluster:
                assert cluster.client.submit(abs, -6).result() == 6
        for address in (theirs.scheduler_address, theirs.scheduler_address.replace("tls://", "tcp://")):
            with pytest.raises(ClusterError, match=r"it takes TLS .* security=distributed\.Security"):
                connect(address, timeout_seconds=1)


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("tcp://127.0.0.1:9", "Timed out"),
        ("tcp://no-such-host.invalid:8786", "Timed out"),
        ("smoke://signals:1", "unknown address scheme"),
        ("127.0.0.1:8790x", "no number from 1 to 65535"),
        ("tcp://127.0.0.1:99999", "no number from 1 to 65535"),
        ("127.0.0.1", "missing port"),
    ],
)
def test_an_unreachable_address_is_named_in_time(address: str, reason: str):
    before, began = threads(), time.monotonic()
    with pytest.raises(ClusterError, match=f"at {address}: .*{reason}"):
        connect(address, timeout_seconds=0.5)
    assert time.monotonic() - began < 2
    assert threads() <= before | KEPT_THREADS


def test_a_server_that_says_nothing_is_not_waited_for():
    with socket.create_server(("127.0.0.1", 0)) as server:
        began = time.monotonic()
        with pytest.raises(ClusterError, match="no answer"):
            connect(f"tcp://127.0.0.1:{server.getsockname()[1]}", timeout_seconds=0.5)
        assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    "text",
    ["IOStream is not idle; cannot convert to SSL", "[SSL: WRONG_VERSION_NUMBER] wrong version number"],
)
def test_what_dask_says_of_a_scheduler_without_tls_is_said_in_words(text: str):
    # What really meets one leaves a socket of tornado's to the garbage collector.
    assert "does not speak TLS" in _reason(RuntimeError(text), "tls://127.0.0.1:9", True, 1.0)


def test_who_waits_for_a_scheduler_is_told(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(ClusterError, match="Timed out after 2 s"):
        connect("tcp://127.0.0.1:9", timeout_seconds=2)
    assert capsys.readouterr().err == (
        "matnb: no scheduler answers at tcp://127.0.0.1:9 yet; it is waited for 2 s\n"
    )


def test_an_adaptive_cluster_starts_workers_for_who_connects():
    # As is done again where all of its workers have gone meanwhile.
    with LocalCluster(n_workers=0, threads_per_worker=1, processes=False, dashboard_address=":0") as theirs:
        theirs.adapt(minimum=0, maximum=1, interval="50ms")
        with connect(theirs, timeout_seconds=60) as cluster:
            assert cluster.alive()
            wait_until(lambda: not theirs.scheduler.tasks)


def test_by_default_it_is_where_dasks_own_client_goes(foreign: LocalCluster):
    with dask.config.set({"scheduler-address": foreign.scheduler_address}), connect() as cluster:
        assert cluster.scheduler_address == foreign.scheduler_address


def test_a_scheduler_on_the_event_loop_that_would_wait_for_it_is_refused():
    class OnALoop:
        asynchronous, scheduler, scheduler_address = True, object(), "tcp://127.0.0.1:9"

    with pytest.raises(OptionError, match="asynchronous=False"):
        connect(OnALoop())


def test_a_cluster_without_workers_is_refused_in_time():
    with LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty:
        began = time.monotonic()
        with pytest.raises(ClusterError, match="no workers"):
            connect(empty, timeout_seconds=0.5)
        assert time.monotonic() - began < 3


@pytest.mark.parametrize("text", [None, "", "[]", json.dumps({"id": "x"})])
def test_a_scheduler_file_that_names_nothing_is_refused_in_time(tmp_path: Path, text: str | None):
    path = tmp_path / "scheduler.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ClusterError, match=r"scheduler\.json does not describe a Dask scheduler"):
        connect(scheduler_file=str(path), timeout_seconds=0.2)


def test_a_closed_client_is_refused(foreign: LocalCluster):
    theirs = Client(foreign, set_as_default=False)
    theirs.close()
    with pytest.raises(ClusterError, match="closed"):
        connect(theirs)


@pytest.mark.parametrize("arguments", [(), ("tcp://a:1", "file"), (5,)])
def test_exactly_one_target_is_needed(arguments: tuple[object, ...]):
    target, file = (*arguments, None, None)[:2]
    with pytest.raises(OptionError, match="address"):
        connect(target, scheduler_file=file)

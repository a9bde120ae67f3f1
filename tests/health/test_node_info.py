"""What the processes of a cluster are like is found out from each of them."""

from __future__ import annotations

import os
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_cluster import CliCluster
from distributed import LocalCluster, Security

import matnb as mn
from matnb.health.doctor import Diagnosis
from matnb.health.node_info import places

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("spawned")]


@pytest.fixture(autouse=True)
def _stopped() -> Iterator[None]:
    yield
    mn.stop()


def ports(found: Diagnosis) -> str:
    (one,) = (one for one in found.findings if one.topic == "ports")
    return one.found


def test_worker_processes_are_looked_into():
    session = mn.start(workers=2, threads=1, processes=True, memory_limit="1GB")
    workers = places(session.cluster)[2:]
    assert [one.name for one in workers] == ["worker 0", "worker 1"]
    assert {(one.num_threads, one.memory_limit_bytes, one.blas_threads, one.spills) for one in workers} == {
        (1, 10**9, 1, False)
    }
    assert all(one.memory_bytes > 10**7 for one in workers)
    found = mn.doctor()
    assert found.is_well
    assert ports(found) == "none is open; nothing is sent anywhere"


@pytest.mark.slow
def test_a_worker_that_hangs_hides_nobody_else():
    session = mn.start(workers=2, threads=1, processes=True)
    pids = session.cluster.client.run(os.getpid)
    hanging = pids[session.cluster.workers[1].address]
    os.kill(hanging, signal.SIGSTOP)
    try:
        found = mn.doctor()
        assert [one.name for one in places(session.cluster)] == ["here", "the scheduler", "worker 0"]
    finally:
        os.kill(hanging, signal.SIGCONT)
    ill = [one.found for one in found.findings if one.verdict == "wrong"]
    assert ill == ["1 worker did not answer in time"]


def test_tls_is_told(certificates: Security):
    with LocalCluster(
        n_workers=1, processes=False, protocol="tls", security=certificates, dashboard_address="127.0.0.1:0"
    ) as theirs:
        mn.connect(theirs, security=certificates)
        assert ports(mn.doctor()).startswith("TLS: connections are secret")


def open_to_others(port: int) -> bool:
    # A socket on all addresses of the machine is there by this one too, one on 127.0.0.1 is not.
    try:
        socket.create_connection(("127.0.0.2", port), timeout=5).close()
    except OSError:
        return False
    return True


def test_what_others_reach_is_told_whatever_addresses_servers_give(tmp_path: Path):
    with CliCluster(tmp_path) as cluster:
        cluster.start_scheduler()
        cluster.start_worker("a", host=None)
        cluster.start_worker("b", more=["--nanny", "--dashboard-address", "127.0.0.1:0"])
        session = mn.connect(cluster.address, timeout_seconds=30)
        session.cluster.client.wait_for_workers(2, timeout=30)
        session.cluster.refresh()
        seen = places(session.cluster)[1:]
        assert all(one.address.startswith("tcp://127.0.0.1:") for one in seen)
        sockets = {one: int(one.rpartition(":")[2]) for each in seen for one in each.listening or ()}
        assert len(set(sockets.values())) == 7  # messages and pages of each, and a nanny's
        wide = {port for port in sockets.values() if open_to_others(port)}
        told = [one.found for one in mn.doctor().findings if one.topic == "ports"]
        assert {int(one) for one in re.findall(r"(?<=:)[0-9]+", " ".join(told))} == wide
        (worker,) = (one for one in seen if int(one.address.rpartition(":")[2]) in wide)
        assert "neither secret nor checked" in told[0]
        assert worker.name in told[0]


def test_sockets_of_the_own_process_that_are_no_servers_are_not_told():
    with (
        socket.create_server(("", 0)),
        LocalCluster(n_workers=1, protocol="tcp", dashboard_address="127.0.0.1:0") as theirs,
    ):
        mn.connect(theirs)
        assert "open on this machine alone" in ports(mn.doctor())

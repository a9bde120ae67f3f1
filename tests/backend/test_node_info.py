"""What the processes of a cluster are like is found out from each of them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from distributed import LocalCluster, Security

import matnb as mn
from matnb.backend.node_info import places
from matnb.session.doctor import Diagnosis

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
        n_workers=1, processes=False, protocol="tls", security=certificates, dashboard_address=":0"
    ) as theirs:
        mn.connect(theirs, security=certificates)
        assert ports(mn.doctor()).startswith("TLS: connections are secret")

"""A process of another version is found before anything is sent to it: at connect, when it joins, always."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from cli_cluster import CliCluster
from waiting import wait_until

import matnb as mn
from matnb.errors import VersionMismatchError
from matnb.lazy.recording import recording

pytestmark = pytest.mark.cluster

# What a server is that reports another version, by Dask's own command otherwise.
ANOTHER = """
import types
import distributed.versions as versions
from distributed.cli.dask_{kind} import main

{change}
main()
"""
INSTALLED = """
find = versions.version
versions.version = lambda name: {version!r} if name.startswith({name!r}) else find(name)
"""
CHANGES = {
    "python": "versions.sys = types.SimpleNamespace(version_info=(3, 12, 1, 'final', 0), byteorder='little')",
    "numpy": INSTALLED.format(name="numpy", version="1.26.4"),
    "matnb": INSTALLED.format(name="matnb", version="0.0.9"),
}
FOUND = {"python": "python is 3.12.1", "numpy": "numpy is 1.26.4", "matnb": "matnb is 0.0.9"}


def another(kind: str, package: str) -> list[str]:
    return [sys.executable, "-c", ANOTHER.format(kind=kind, change=CHANGES[package])]


def num_started(session: mn.session.Session) -> int:
    """Return how many workers have come and are no longer starting."""
    workers = session.cluster.client.scheduler_info(n_workers=-1)["workers"].values()
    return sum(one["status"] == "running" for one in workers)


def runs_nothing(cluster: CliCluster, name: str) -> bool:
    """Tell whether a worker lives and was never asked to run a function that was sent."""
    return cluster.workers[name].poll() is None and b"out-of-band" not in cluster.log(name)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CliCluster]:
    with CliCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        cluster.start_scheduler()
        cluster.start_worker("usual")
        yield cluster
        mn.stop()


@pytest.mark.parametrize("package", list(CHANGES))
def test_a_worker_that_joins_is_left_alone_and_named(cluster: CliCluster, package: str) -> None:
    with mn.connect(cluster.address, timeout_seconds=60) as session:
        b = (mn.asarray(np.arange(100.0), blocks=4) * 2).persist()
        # With a gang's plugin, which Dask would give to all who join.
        x, _ = mn.iterate(lambda x: x * 0.5 + b, mn.ones(100), max_iterations=3)
        x.persist()
        cluster.start_worker(package, python=another("worker", package))
        wait_until(lambda: session.cluster.has_newcomers)
        with recording("a cell") as record:
            y = mn.ones(10) + b[:10]
        report = session.run({"y": y.expression}, record)
        assert report.workers_text.startswith("a worker that came is not used")
        assert FOUND[package] in report.workers_text
        assert session.status().num_workers == 1
        diagnosis = mn.doctor()
        assert not diagnosis.is_well
        assert FOUND[package] in str(diagnosis)
        assert runs_nothing(cluster, package)
    with pytest.raises(VersionMismatchError, match=rf"{FOUND[package]} on worker"):
        mn.connect(cluster.address, timeout_seconds=20)
    assert runs_nothing(cluster, package)
    cluster.end(cluster.workers[package])
    with mn.connect(cluster.address, timeout_seconds=20) as session:  # and those that are left do
        assert float(mn.ones(10).sum()) == 10


def test_a_worker_that_joins_and_hangs_holds_up_nobody_and_is_used_once_it_answers(
    cluster: CliCluster,
) -> None:
    with mn.connect(cluster.address, timeout_seconds=60) as session:
        x = mn.asarray(np.arange(100.0), blocks=4).persist()
        cluster.start_worker("hanging")
        # One that is stopped while it starts has not come yet: nothing is asked of it.
        wait_until(lambda: session.cluster.has_newcomers and num_started(session) == 2)
        cluster.workers["hanging"].send_signal(signal.SIGSTOP)
        took = []
        for number in range(12):
            began = time.monotonic()
            assert float((x + number).sum()) == 4950 + 100 * number
            took.append(time.monotonic() - began)
        assert max(took) < 8  # the scheduler has ten seconds, and a run fails then
        assert sorted(took)[6] < 0.9  # nobody waits for it in most of them
        assert session.status().num_workers == 1
        assert "does not answer" in session.status().workers_text
        cluster.workers["hanging"].send_signal(signal.SIGCONT)
        wait_until(lambda: session.status().num_workers == 2)
        assert float((x + 20).sum()) == 6950
        assert session.status().workers_text == ""
        cluster.end(cluster.workers["hanging"])
        wait_until(lambda: session.status().num_workers == 1)


def test_a_scheduler_that_comes_back_with_another_python_is_refused(tmp_path: Path) -> None:
    with CliCluster(tmp_path) as cluster:
        cluster.start_scheduler()
        cluster.start_worker("one")
        try:
            session = mn.connect(cluster.address, timeout_seconds=60)
            cluster.end(cluster.scheduler)
            wait_until(lambda: session.cluster.num_breaks == 1)
            cluster.start_scheduler(python=another("scheduler", "python"))
            cluster.start_worker("two")
            with pytest.raises(VersionMismatchError, match=r"python is 3\.12\.1 on the scheduler"):
                float((mn.asarray(np.arange(100.0), blocks=4) + 1).sum())
            assert not mn.doctor().is_well
            assert cluster.scheduler is not None
            assert cluster.scheduler.poll() is None
            assert b"out-of-band" not in cluster.log("scheduler")
        finally:
            mn.stop()


def test_an_older_dask_is_named(tmp_path: Path) -> None:
    older = """
from distributed import Scheduler
identity = Scheduler.identity
Scheduler.identity = lambda self: identity(self)  # as it was before 2025.3
"""
    change = older + INSTALLED.format(name="d", version="2024.5.0")
    code = ANOTHER.format(kind="scheduler", change=change)
    with CliCluster(tmp_path) as cluster:
        cluster.start_scheduler(python=[sys.executable, "-c", code])
        with pytest.raises(VersionMismatchError, match=r"dask is 2024\.5\.0 on the scheduler"):
            mn.connect(cluster.address, timeout_seconds=20)

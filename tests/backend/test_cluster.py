"""Clusters are started, reached, watched and left without a trace."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import dask
import psutil
import pytest
from distributed import Client, LocalCluster, Security

from matnb.backend import cluster as cluster_module
from matnb.backend.cluster import Cluster, connect, start
from matnb.config import Config
from matnb.errors import ClusterError, OptionError

PROJECT = Path(__file__).parents[2]
IN_THREADS = Config(workers=2, threads=1)
IN_PROCESSES = Config(workers=2, threads=1, processes=True)
# distributed's pool for large messages is made once for the process and refuses to be shut down.
KEPT_THREADS = {"Dask-Offload_0"}

both = pytest.mark.parametrize(
    "config",
    [IN_THREADS, pytest.param(IN_PROCESSES, marks=pytest.mark.cluster)],
    ids=["threads", "processes"],
)


@pytest.fixture
def foreign() -> Iterator[LocalCluster]:
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as theirs:
        yield theirs


def listening(process: psutil.Process) -> list[str]:
    family = [process, *process.children(recursive=True)]
    found = [each for one in family for each in one.net_connections() if each.status == psutil.CONN_LISTEN]
    return [each.laddr.ip for each in found]


def wait_until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def threads() -> set[str]:
    return {thread.name for thread in threading.enumerate()}


def state_of_the_process() -> dict[str, object]:
    return {
        "configuration": copy.deepcopy(dask.config.config),
        "environment": dict(os.environ),
        "path": list(sys.path),
        "temporary": sorted(os.listdir(tempfile.gettempdir())),
        "filters": list(warnings.filters),
    }


def test_embedded_starts_fast_and_opens_no_port():
    start(IN_THREADS).close()
    began = time.perf_counter()
    cluster = start(Config(workers=1, threads=2))
    seconds = time.perf_counter() - began
    with cluster:
        print(f"started in {seconds * 1e3:.1f} ms")
        assert seconds < 3
        assert listening(psutil.Process()) == []
        assert cluster.owned
        assert cluster.description == "1 worker x 2 threads, in this process"
        assert [(each.threads, each.address.split(":")[0]) for each in cluster.workers] == [(2, "inproc")]
        assert cluster.alive() == (0,)
        assert cluster.client.submit(os.getpid).result() == os.getpid()


@pytest.mark.cluster
def test_processes_listen_on_the_loopback_only_and_have_one_library_thread(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")

    def library_threads() -> tuple[int, set[int]]:
        import numpy as np  # loads OpenBLAS, which reads its variables then
        import threadpoolctl

        assert np.ones((2, 2)).shape
        return os.getpid(), {each["num_threads"] for each in threadpoolctl.threadpool_info()}

    with start(IN_PROCESSES) as cluster:
        assert cluster.description == "2 workers x 1 thread, each in a process of its own"
        assert set(listening(psutil.Process())) == {"127.0.0.1"}
        found = cluster.client.run(library_threads)
        assert len({pid for pid, _ in found.values()} - {os.getpid()}) == 2
        assert [counts for _, counts in found.values()] == [{1}, {1}]


@both
def test_numbers_follow_the_order_of_starting(config: Config):
    with start(config) as cluster:
        names = cluster.client.run(lambda dask_worker: dask_worker.name)
        assert [names[each.address] for each in cluster.workers] == [0, 1]
        numbers = [cluster.workers[number].address for number in cluster.alive()]
        cluster.refresh()
        assert [cluster.workers[number].address for number in cluster.alive()] == numbers


def test_ten_workers_are_numbered_as_numbers():
    with start(Config(workers=11, threads=1)) as cluster:
        names = cluster.client.run(lambda dask_worker: dask_worker.name)
        assert [names[each.address] for each in cluster.workers] == list(range(11))


def test_cores_and_memory_are_shared_unless_set():
    with start(Config(workers=2)) as cluster:
        assert {each.threads for each in cluster.workers} == {max(1, dask.system.CPU_COUNT // 2)}
        assert sum(each.memory_limit_bytes for each in cluster.workers) <= psutil.virtual_memory().total
    with start(Config(workers=2, threads=3, memory_limit_bytes=10**9)) as cluster:
        assert {(each.threads, each.memory_limit_bytes) for each in cluster.workers} == {(3, 10**9)}


@both
def test_workers_neither_spill_nor_pause(config: Config):
    def limits(dask_worker) -> tuple[object, ...]:
        memory = dask_worker.memory_manager
        fractions = memory.memory_target_fraction, memory.memory_spill_fraction, memory.memory_pause_fraction
        return type(dask_worker.data), *fractions

    with start(config) as cluster:
        assert set(cluster.client.run(limits).values()) == {(dict, False, False, False)}


@both
def test_nothing_of_the_process_is_changed_while_it_runs_or_after(
    config: Config, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    before = state_of_the_process()
    cluster = start(config)
    now = state_of_the_process()
    cluster.close()
    for name in ("configuration", "environment", "filters"):
        assert now[name] == before[name], name
    assert state_of_the_process() == before
    with pytest.raises(ValueError, match="No clients found"):
        Client.current()


def test_a_hundred_sessions_leave_no_thread_and_no_descriptor():
    start(IN_THREADS).close()
    process, num_threads = psutil.Process(), len(threading.enumerate())
    num_descriptors = process.num_fds()
    for _ in range(100):
        with start(IN_THREADS) as cluster:
            assert cluster.client.submit(abs, -1).result() == 1
    assert len(threading.enumerate()) <= num_threads + len(KEPT_THREADS)
    assert [each.name for each in threading.enumerate()].count("Dask-Offload_0") <= 1
    assert process.num_fds() == num_descriptors


@both
def test_closing_is_silent_and_may_be_repeated(config: Config, capfd: pytest.CaptureFixture[str]):
    cluster = start(config)
    future = cluster.client.submit(abs, -1)
    assert future.result() == 1
    cluster.close()
    cluster.close()
    assert cluster.alive() == ()
    assert len(cluster.workers) == 2
    with pytest.raises(ClusterError, match="closed"):
        cluster.refresh()
    assert capfd.readouterr() == ("", "")


def test_it_starts_and_closes_under_a_running_event_loop():
    async def cell() -> int:
        with start(IN_THREADS) as cluster:
            return cluster.client.submit(abs, -7).result()

    assert asyncio.run(cell()) == 7


@both
@pytest.mark.parametrize("busy", [False, True])
def test_a_script_may_end_without_closing(tmp_path: Path, config: Config, busy: bool):
    script = tmp_path / "script.py"
    script.write_text(
        "import time\n"
        "from matnb.backend.cluster import start\n"
        "from matnb.config import Config\n"
        "if __name__ == '__main__':\n"
        f"    cluster = start(Config(workers=2, threads=1, processes={config.processes}))\n"
        f"    busy = cluster.client.submit(time.sleep, {2 if busy else 0})\n"
        "    print(cluster.client.submit(abs, -5, workers=cluster.workers[1].address).result())\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        capture_output=True, text=True, timeout=30, check=False, env=environment,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "5\n", "")
    assert os.listdir(tmp_path) == ["script.py"]


@pytest.mark.cluster
def test_a_script_without_a_guard_is_told_what_to_do(tmp_path: Path):
    script = tmp_path / "script.py"
    script.write_text(
        "from matnb.backend.cluster import start\n"
        "from matnb.config import Config\n"
        "start(Config(processes=True))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env=environment,
    )
    assert done.returncode == 1
    assert 'start worker processes only under `if __name__ == "__main__":`' in done.stderr.splitlines()[-1]
    assert os.listdir(tmp_path) == ["script.py"]


@pytest.mark.cluster
def test_a_killed_worker_is_told_at_once_and_its_number_is_not_used_again():
    environment = dict(os.environ)
    lost: list[str] = []

    def complain(address: str) -> None:
        raise ValueError(address)

    with start(IN_PROCESSES) as cluster:
        cluster.subscribe_lost(complain)  # one that fails does not keep the others from hearing it
        cluster.subscribe_lost(lost.append)
        cluster.subscribe_lost(complain)
        victim, survivor = cluster.workers
        os.kill(cluster.client.run(os.getpid)[victim.address], signal.SIGKILL)
        began = time.perf_counter()
        wait_until(lambda: lost == [victim.address])
        print(f"told {1e3 * (time.perf_counter() - began):.0f} ms after the kill")
        assert cluster.alive() == (1,)

        def restarted() -> bool:
            cluster.refresh()
            return len(cluster.alive()) == 2

        wait_until(restarted, seconds=20)
        assert cluster.alive() == (1, 2)
        assert cluster.workers[:2] == (victim, survivor)
        # The new process has our settings too, though they are no longer in this one.
        spills = cluster.client.run(lambda dask_worker: dask_worker.memory_manager.memory_spill_fraction)
        assert spills == {survivor.address: False, cluster.workers[2].address: False}
        wait_until(lambda: dict(os.environ) == environment)
        cluster.unsubscribe_lost(lost.append)
        cluster.unsubscribe_lost(complain)
        os.kill(cluster.client.run(os.getpid)[survivor.address], signal.SIGKILL)
        wait_until(lambda: cluster.alive() == (2,))
        assert lost == [victim.address]


def test_a_loss_during_a_refresh_is_not_forgotten(monkeypatch: pytest.MonkeyPatch):
    with start(IN_THREADS) as cluster:
        ask, victim = cluster._ask_scheduler, cluster.workers[0].address

        def answer_that_is_overtaken(timeout_seconds: float):
            answer = ask(timeout_seconds)
            cluster._handle_event((0.0, {"action": "remove-worker", "worker": victim}))
            return answer

        monkeypatch.setattr(cluster, "_ask_scheduler", answer_that_is_overtaken)
        cluster.refresh()
        assert cluster.alive() == (1,)


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
    lost: list[str] = []
    cluster = connect(foreign, timeout_seconds=2)
    cluster.subscribe_lost(lost.append)
    foreign.close()
    wait_until(lambda: cluster.alive() == ())
    assert sorted(lost) == sorted(each.address for each in cluster.workers)
    with pytest.raises(ClusterError, match="does not answer"):
        cluster.refresh()
    cluster.close()
    assert "Traceback" not in capfd.readouterr().err


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Security:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed, and nothing else here makes certificates")
    folder = tmp_path_factory.mktemp("certificates")
    key, certificate = str(folder / "key.pem"), str(folder / "certificate.pem")
    options = ["-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run(
        [openssl, "req", "-x509", *options, "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )
    pairs = {f"tls_{role}_{part}": path for role in ("client", "scheduler", "worker")
             for part, path in (("key", key), ("cert", certificate))}  # fmt: skip
    return Security(tls_ca_file=certificate, require_encryption=True, **pairs)


def test_a_cluster_behind_tls_is_reached_with_its_certificates_only(certificates: Security):
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with LocalCluster(protocol="tls://", security=certificates, **options) as theirs:
        assert theirs.scheduler_address.startswith("tls://")
        for target, security in ((theirs, None), (theirs.scheduler_address, certificates)):
            with connect(target, security=security) as cluster:
                assert cluster.client.submit(abs, -6).result() == 6
        with pytest.raises(ClusterError, match="ssl_context"):
            connect(theirs.scheduler_address, timeout_seconds=1)


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("tcp://127.0.0.1:9", "Timed out"),
        ("tcp://no-such-host.invalid:8786", "Timed out"),
        ("smoke://signals:1", "unknown address scheme"),
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
    with pytest.raises(ClusterError, match=r"scheduler\.json names no Dask scheduler"):
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


def test_a_session_that_is_forgotten_is_closed_at_exit():
    cluster = start(IN_THREADS)
    cluster_module._close_open_clusters()
    assert cluster.client.status == "closed"
    assert isinstance(cluster, Cluster)

"""Clusters are started, reached, watched and left without a trace."""

from __future__ import annotations

import asyncio
import copy
import multiprocessing.spawn
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import dask
import psutil
import pytest
from distributed import Client
from distributed.core import Status
from waiting import wait_until

from matnb.backend.cluster import dask_cluster as cluster_module
from matnb.backend.cluster import servers
from matnb.backend.cluster.dask_cluster import DaskCluster, start
from matnb.config import Config
from matnb.errors import ClusterError

PROJECT = Path(__file__).parents[2]
IN_THREADS = Config(workers=2, threads=1)
IN_PROCESSES = Config(workers=2, threads=1, processes=True)
# distributed's pool for large messages is made once for the process and refuses to be shut down.
pytestmark = pytest.mark.usefixtures("spawned")
KEPT_THREADS = {"Dask-Offload_0"}

both = pytest.mark.parametrize(
    "config",
    [IN_THREADS, pytest.param(IN_PROCESSES, marks=pytest.mark.cluster)],
    ids=["threads", "processes"],
)


def listening(process: psutil.Process) -> list[str]:
    family = [process, *process.children(recursive=True)]
    found = [each for one in family for each in one.net_connections() if each.status == psutil.CONN_LISTEN]
    return [each.laddr.ip for each in found]


def state_of_the_process() -> dict[str, object]:
    return {
        "configuration": copy.deepcopy(dask.config.config),
        "environment": dict(os.environ),
        "path": list(sys.path),
        "temporary": sorted(os.listdir(tempfile.gettempdir())),
        "filters": list(warnings.filters),
    }


held: dict[str, tuple[threading.Event, threading.Event]] = {}


def run_until_told(name: str) -> None:
    running, ended = held[name]
    running.set()
    ended.wait(60)


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
def test_processes_without_security_listen_on_the_loopback_only_and_have_one_library_thread(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")

    def library_threads() -> tuple[int, set[int]]:
        import numpy as np  # loads OpenBLAS, which reads its variables then
        import threadpoolctl

        assert np.ones((2, 2)).shape
        return os.getpid(), {each["num_threads"] for each in threadpoolctl.threadpool_info()}

    with start(replace(IN_PROCESSES, security=False)) as cluster:
        assert cluster.description == "2 workers x 1 thread, each in a process of its own"
        assert set(listening(psutil.Process())) == {"127.0.0.1"}
        found = cluster.client.run(library_threads)
        assert len({pid for pid, _ in found.values()} - {os.getpid()}) == 2
        assert [counts for _, counts in found.values()] == [{1}, {1}]


@both
def test_workers_are_numbered_in_the_order_of_starting_and_neither_spill_nor_pause(config: Config):
    def limits(dask_worker) -> tuple[object, ...]:
        memory = dask_worker.memory_manager
        fractions = memory.memory_target_fraction, memory.memory_spill_fraction, memory.memory_pause_fraction
        return type(dask_worker.data), *fractions

    with start(config) as cluster:
        names = cluster.client.run(lambda dask_worker: dask_worker.name)
        assert [names[each.address] for each in cluster.workers] == [0, 1]
        numbers = [cluster.workers[number].address for number in cluster.alive()]
        cluster.refresh()
        assert [cluster.workers[number].address for number in cluster.alive()] == numbers
        assert set(cluster.client.run(limits).values()) == {(dict, False, False, False)}


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
def test_nothing_of_the_process_is_changed_while_it_runs_or_after_and_closing_is_silent_and_may_be_repeated(
    config: Config, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    before = state_of_the_process()
    cluster = start(config)
    now = state_of_the_process()
    assert cluster.client.submit(abs, -1).result() == 1
    cluster.close()
    cluster.close()
    for name in ("configuration", "environment", "filters"):
        assert now[name] == before[name], name
    assert state_of_the_process() == before
    with pytest.raises(ValueError, match="No clients found"):
        Client.current()
    assert cluster.alive() == ()
    assert len(cluster.workers) == 2
    with pytest.raises(ClusterError, match="closed"):
        cluster.refresh()
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
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


def test_a_kernel_that_does_not_end_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(servers, "_KERNEL_SECONDS", 0.2)
    running, ended = threading.Event(), threading.Event()
    with start(Config(workers=1, threads=1)) as cluster:
        # Looked up here, in the same process, since an event cannot be sent.
        held[cluster.client.id] = running, ended
        kept = cluster.client.submit(run_until_told, cluster.client.id)
        assert running.wait(5)
        began = time.monotonic()
    try:
        assert time.monotonic() - began < 3
        assert kept.cancelled()
        assert "IO loop" not in {thread.name for thread in threading.enumerate()}
        assert capfd.readouterr() == ("", "")
    finally:
        ended.set()


def test_it_starts_and_closes_under_a_running_event_loop():
    async def cell() -> int:
        with start(IN_THREADS) as cluster:
            return cluster.client.submit(abs, -7).result()

    assert asyncio.run(cell()) == 7


@pytest.mark.parametrize(
    ("config", "busy"),
    [
        pytest.param(IN_THREADS, False, id="threads"),
        pytest.param(IN_THREADS, True, id="threads, busy"),
        pytest.param(IN_PROCESSES, True, id="processes, busy", marks=pytest.mark.cluster),
        pytest.param(IN_PROCESSES, False, id="processes", marks=[pytest.mark.cluster, pytest.mark.slow]),
    ],
)
def test_a_script_may_end_without_closing(tmp_path: Path, config: Config, busy: bool):
    script = tmp_path / "script.py"
    script.write_text(
        "import time\n"
        "from matnb.backend.cluster.dask_cluster import start\n"
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


# What is defined in it goes to the workers by value: a function, what it calls, a class, an error of its own.
UNGUARDED = """
import sys
import numpy as np
import matnb as mn

class Wrong(Exception):
    pass

class Scale:
    def __init__(self, by):
        self.by = by
    def __call__(self, block):
        return shifted(block) * self.by

def shifted(block):
    if block.max() > 1e6:
        raise Wrong("too large")
    return block + OFFSET

OFFSET = 2.0
print("begun")
mn.start(workers=2, threads=1, processes=True)
x = mn.asarray(np.arange(8.0), blocks=2)
print(float(mn.map_blocks(Scale(10.0), x).sum()), float(mn.map_blocks(shifted, x).sum()))
try:
    mn.map_blocks(shifted, x * 1e7).compute()
except mn.errors.KernelError as error:
    print(str(error).splitlines()[0])
print("ended")
"""
TOLD_BY_IT = "begun\n440.0 44.0\nshifted raised Wrong: too large\nended\n"


@pytest.mark.cluster
@pytest.mark.parametrize(
    "way",
    [
        "file",
        *(pytest.param(way, marks=pytest.mark.slow) for way in ("standard input", "-c", "-m", "IPython")),
    ],
)
def test_a_program_needs_no_main_guard_however_it_is_run(tmp_path: Path, way: str):
    script = tmp_path / "program.py"
    script.write_text(UNGUARDED)
    arguments = {
        "file": ["program.py"], "standard input": ["-"], "-c": ["-c", UNGUARDED], "-m": ["-m", "program"],
        "IPython": ["-m", "IPython", "--quick", "--colors=NoColor", "program.py"],
    }[way]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "TMPDIR": str(tmp_path / "t")}
    (tmp_path / "t").mkdir()
    done = subprocess.run(
        [sys.executable, *arguments], input=UNGUARDED if way == "standard input" else "",
        capture_output=True, text=True, timeout=120, check=False, env=environment, cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, TOLD_BY_IT, "")
    assert os.listdir(tmp_path / "t") == []


def test_a_script_that_processes_of_its_own_run_again_is_told_what_to_do_before_anything_starts(
    tmp_path: Path,
):
    (tmp_path / "program.py").write_text(
        "import multiprocessing as mp\n"
        "import matnb as mn\n"
        "if __name__ == '__main__':\n"
        "    child = mp.get_context('spawn').Process(target=print)\n"
        "    child.start()\n"
        "    child.join()\n"
        "else:\n"
        "    try:\n"
        "        mn.start(processes=True)\n"
        "    except mn.errors.ClusterError as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "program.py"], capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(PROJECT), "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert 'only under `if __name__ == "__main__":`' in done.stdout
    assert len(done.stdout.strip().splitlines()) == 1
    assert os.listdir(tmp_path) == ["program.py"]


def test_other_processes_than_workers_run_their_script_as_ever(monkeypatch: pytest.MonkeyPatch):
    prepared = {"sys_path": [], "init_main_from_path": "/a/script.py"}
    monkeypatch.setattr(
        multiprocessing.spawn, "get_preparation_data", lambda name: {**prepared, "name": name}
    )
    before = multiprocessing.spawn.get_preparation_data
    with servers._script_left_out, servers._script_left_out:
        now = multiprocessing.spawn.get_preparation_data
        assert now("Process-1") == {**prepared, "name": "Process-1"}
        assert set(now(servers._WORKER_NAME)) == {"sys_path", "name"}
    assert multiprocessing.spawn.get_preparation_data is before


@pytest.mark.cluster
def test_a_killed_worker_is_told_at_once_and_its_number_is_not_used_again():
    environment = dict(os.environ)

    with start(IN_PROCESSES) as cluster:
        victim, survivor = cluster.workers
        os.kill(cluster.client.run(os.getpid)[victim.address], signal.SIGKILL)
        began = time.perf_counter()
        wait_until(lambda: cluster.alive() == (1,))
        print(f"told {1e3 * (time.perf_counter() - began):.0f} ms after the kill")

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
        os.kill(cluster.client.run(os.getpid)[survivor.address], signal.SIGKILL)
        wait_until(lambda: cluster.alive() == (2,))


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


def test_a_session_that_is_forgotten_is_closed_at_exit():
    cluster = start(IN_THREADS)
    cluster_module._close_open_clusters()
    assert cluster.client.status == "closed"
    assert isinstance(cluster, DaskCluster)


@pytest.mark.parametrize("waits", [False, True])
def test_a_worker_that_is_not_ready_yet_is_waited_for_if_wanted(monkeypatch: pytest.MonkeyPatch, waits: bool):
    with start(IN_THREADS) as cluster:
        ask, asked = cluster._ask_scheduler, []

        def answer_before_the_last_is_ready(timeout_seconds: float):
            known, listed, _ = ask(timeout_seconds)
            asked.append(len(asked))
            newcomer = {"inproc://elsewhere": next(iter(known.values()))}
            return (known | newcomer, listed, False) if len(asked) > 2 else (known, listed, True)

        monkeypatch.setattr(cluster, "_ask_scheduler", answer_before_the_last_is_ready)
        cluster._has_newcomers = True
        cluster.refresh_if_changed(waits)
        assert len(asked) == (3 if waits else 1)
        assert cluster.has_newcomers != waits


def test_a_scheduler_looks_for_late_blocks_of_a_client_that_left_at_once_and_later_a_few_times_only():
    looks = []

    class Late:
        """A scheduler's clock, which goes on at once; the client comes back once."""

        status, clients, client_comms, now, loop = Status.running, {"gone"}, {}, 0.0, None

        def remove_client(self, client: str) -> None:
            self.clients.discard(client)

        def call_later(self, seconds: float, work: Callable[..., None], *arguments: object) -> None:
            self.now += seconds
            looks.append(self.now)
            if len(looks) < 1000:
                work(*arguments)

    scheduler = Late()
    scheduler.loop = scheduler
    cluster_module._clear_late(scheduler, "gone")
    assert not scheduler.clients
    assert looks[0] <= 1
    assert 600 <= looks[-1] < 1500
    assert len(looks) <= 12

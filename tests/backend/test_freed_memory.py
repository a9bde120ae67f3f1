"""Worker processes keep what they free for the next task, return it when quiet, and obey the user."""

from __future__ import annotations

import asyncio
import resource
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import dask
import numpy as np
import psutil
import pytest
from distributed import Client, LocalCluster, nanny
from waiting import wait_until

import matnb as mn
from matnb.backend.cluster import freed_memory
from matnb.backend.cluster.dask_cluster import DaskCluster
from matnb.backend.cluster.freed_memory import (
    FreedMemory,
    FreedMemoryPlugin,
    is_left_to_dask,
    is_left_to_nanny,
)

DASKS = {"MALLOC_TRIM_THRESHOLD_": "65536"}
TRIM = "MALLOC_TRIM_THRESHOLD_"
MIB = 2**20
# Of 4 KB: 100 temporary arrays of 1 MiB have 25,600 pages, and one of them has 256.
FEW, MANY = 5_000, 20_000
has_glibc = pytest.mark.skipif(freed_memory._glibc() is None, reason="no glibc, whose thresholds these are")


@pytest.fixture(autouse=True)
def _stopped() -> Iterator[None]:
    yield
    mn.stop()


def resident_bytes() -> int:
    return int(psutil.Process().memory_info().rss)


def pages_of_temporaries() -> int:
    """Return how many pages a process is given for temporary arrays, one after another."""
    np.ones(MIB // 8)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(100):
        np.ones(MIB // 8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def on_worker(client: Client, work: Callable[[], int]) -> int:
    (found,) = client.run(work).values()
    return int(found)


@has_glibc
@pytest.mark.cluster
@pytest.mark.usefixtures("spawned")
def test_temporaries_use_the_memory_of_the_last_and_what_is_let_go_returns_to_the_system() -> None:
    session = mn.start(workers=1, threads=2, processes=True, memo="off")
    client = session.cluster.client
    assert on_worker(client, pages_of_temporaries) < FEW
    small = mn.random.default_rng(1).random(1000).persist()
    assert float(small.sum()) > 0
    at_rest = on_worker(client, resident_bytes)
    large = mn.random.default_rng(2).random(40_000_000, blocks=80).persist()  # of 4 MB, below the threshold
    assert on_worker(client, resident_bytes) > at_rest + 250 * MIB
    del large
    assert float((small + 1).sum()) > 0  # with which the workers hear what was let go
    wait_until(
        lambda: on_worker(client, resident_bytes) < at_rest + 100 * MIB
    )  # though it is asked all the time


@has_glibc
@pytest.mark.cluster
@pytest.mark.usefixtures("spawned")
def test_a_users_own_threshold_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TRIM, "70000")
    session = mn.start(workers=1, threads=2, processes=True)
    assert on_worker(session.cluster.client, pages_of_temporaries) > MANY


@has_glibc
@pytest.mark.cluster
@pytest.mark.usefixtures("spawned")
def test_workers_of_another_cluster_keep_freed_memory_while_a_session_uses_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("PYTHONHASHSEED", *dask.config.get("distributed.nanny.pre-spawn-environ")):
        monkeypatch.setenv(name, "1")  # Dask sets them in this process and leaves them
        monkeypatch.delenv(name)
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        assert on_worker(client, pages_of_temporaries) > MANY
        one, other = FreedMemoryPlugin("one"), FreedMemoryPlugin("other")
        client.register_plugin(one, one.name)
        session = mn.connect(cluster)
        client.unregister_worker_plugin(one.name)
        client.register_plugin(other, other.name)
        client.unregister_worker_plugin(other.name)
        wait_until(lambda: on_worker(client, pages_of_temporaries) < FEW)
        session.close()
        assert on_worker(client, pages_of_temporaries) > MANY


def test_connecting_waits_for_no_worker_to_keep_freed_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    began, ended = threading.Event(), threading.Event()

    async def slowly(*_: object) -> None:
        began.set()
        await asyncio.sleep(2)
        ended.set()

    monkeypatch.setattr(DaskCluster, "_put_on", slowly)
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        mn.connect(cluster),
    ):
        assert not ended.is_set()
        assert began.wait(10)
        assert ended.wait(10)


@pytest.mark.parametrize(
    ("variables", "left"),
    [
        (DASKS, True),
        ({**DASKS, "MALLOC_ARENA_MAX": "2", "OMP_NUM_THREADS": "1"}, True),
        ({**DASKS, "GLIBC_TUNABLES": "glibc.malloc.arena_max=2"}, True),
        ({}, False),  # a user took it out of Dask's configuration
        ({TRIM: "0"}, False),
        ({TRIM: "134217728"}, False),
        ({**DASKS, "MALLOC_MMAP_THRESHOLD_": "131072"}, False),
        ({**DASKS, "MALLOC_MMAP_MAX_": "0"}, False),
        ({**DASKS, "MALLOC_TOP_PAD_": "1"}, False),
        ({**DASKS, "GLIBC_TUNABLES": "glibc.malloc.check=1:glibc.malloc.mmap_threshold=4096"}, False),
    ],
)
def test_thresholds_are_left_to_dask_unless_a_user_sets_one(variables: dict[str, str], left: bool) -> None:
    assert is_left_to_dask(variables) is left


def test_a_nanny_here_obeys_what_is_exported_configured_or_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def left() -> bool:
        return is_left_to_nanny(nanny._get_env_variables("distributed.nanny.pre-spawn-environ"))

    monkeypatch.delenv(TRIM, raising=False)
    monkeypatch.setattr(freed_memory, "variables_at_start", dict)
    assert left()
    with dask.config.set({f"distributed.nanny.pre-spawn-environ.{TRIM}": 1_000_000}):
        assert not left()
    with dask.config.set({f"distributed.nanny.pre-spawn-environ.{TRIM}": None}):
        assert not left()
    monkeypatch.setenv(TRIM, "65536")  # as a nanny of another cluster leaves it
    assert left()
    monkeypatch.setattr(freed_memory, "variables_at_start", lambda: DASKS)  # a user exported it
    assert not left()
    monkeypatch.setattr(freed_memory, "variables_at_start", dict)
    monkeypatch.setenv(TRIM, "65537")
    assert not left()


def test_other_c_libraries_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> str:
        raise ValueError(f"unrecognized configuration name {name}")

    for confstr in (unknown, lambda _: None, lambda _: "musl 1.2"):
        freed_memory._glibc.cache_clear()
        monkeypatch.setattr("os.confstr", confstr)
        assert not freed_memory.set_thresholds(MIB, MIB)
        assert not freed_memory.return_freed()
    freed_memory._glibc.cache_clear()


class Worked:
    """A worker that is looked at, and how often its freed memory is returned."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, limit: int = 0) -> None:
        self.seconds, self.resident, self.num_returned = 0.0, 100, 0
        self.state = SimpleNamespace(transition_counter=0)
        self.memory_manager = SimpleNamespace(memory_limit=limit)
        self.monitor = SimpleNamespace(get_process_memory=lambda: self.resident)
        monkeypatch.setattr(freed_memory, "return_freed", self._return)
        self._memory = FreedMemory(self, lambda: self.seconds)  # type: ignore[arg-type]  # all that is read

    def _return(self) -> bool:
        self.num_returned += 1
        return True

    def look(self, seconds: float, times: int = 1) -> int:
        """Work for some seconds of a processor before each look; return how often memory was returned."""
        for _ in range(times):
            self.seconds += seconds
            asyncio.run(self._memory.look())
        return self.num_returned


def test_freed_memory_is_returned_once_it_has_been_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worked(monkeypatch)
    assert worker.look(0.0, 3) == 0  # nothing was done
    assert worker.look(0.5) == 0
    assert worker.look(0.001, 3) == 0
    assert worker.look(0.5) == 0  # it goes on
    assert worker.look(0.001) == 0
    assert worker.look(0.001, 3) == 1
    assert worker.look(0.001, 40) == 1  # nothing more was done
    worker.state.transition_counter += 1  # a value is let go
    assert worker.look(0.001) == 2


def test_freed_memory_is_returned_now_and_then_and_at_once_where_memory_is_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker = Worked(monkeypatch, limit=1000)
    assert worker.look(0.5, 9) == 0
    assert worker.look(0.5, 1) == 1  # some seconds have passed
    assert worker.look(0.5, 9) == 1
    worker.resident = 600
    assert worker.look(0.5, 3) == 4
    assert worker.look(0.0, 3) == 4

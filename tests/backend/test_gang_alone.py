"""A gang of one member in this process: run by a thread of its worker, told of and ended as any other."""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from matnb.backend.cluster.dask_cluster import DaskCluster, start
from matnb.backend.engines.engine_gang import GangEngine
from matnb.backend.engines.results import RunCancelled
from matnb.backend.kept import LocalBlock
from matnb.backend.tasks.worker import TaskFailed
from matnb.config import Config
from matnb.errors import CellCancelled
from tests import gangs


@pytest.fixture(scope="module")
def cluster() -> Iterator[DaskCluster]:
    with start(Config(workers=1, threads=2)) as started:
        yield started


@pytest.fixture(autouse=True)
def nothing_left(cluster: DaskCluster) -> Iterator[None]:
    yield
    assert not gangs.active
    end = time.monotonic() + 10
    while cluster.client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks)):
        assert time.monotonic() < end, "Dask knows of tasks"
        time.sleep(0.01)
    (plugins,) = cluster.client.run(lambda dask_worker: list(dask_worker.plugins)).values()
    assert [name for name in plugins if "gang" in name] == []


def power(iterations: int) -> tuple[Any, Mapping[str, LocalBlock], sp.csr_array]:
    matrix = sp.random_array((3000, 3000), density=1e-3, rng=np.random.default_rng(3), format="csr")
    program, blocks = gangs.power_program(matrix, (0,), iterations)
    return program, {name: LocalBlock(f"given-{name}", block) for name, block in blocks.items()}, matrix


def test_a_program_is_performed_and_what_it_leaves_goes_with_the_last_reference(cluster: DaskCluster) -> None:
    program, given, matrix = power(9)
    outcome = GangEngine(cluster, "alone-").run(program, given)
    expected = np.ones(3000)
    for _ in range(9):
        expected = 0.5 * (matrix @ expected)
    kept = outcome.kept["x0"]
    assert isinstance(kept, LocalBlock)
    np.testing.assert_allclose(kept.block.values, expected, rtol=1e-12)
    assert not kept.block.values.flags.writeable
    assert outcome.counts["x0"] == (3000, 24000)
    assert (outcome.iterations, outcome.num_members, outcome.sent_bytes) == (9, 1, 0)
    assert len(outcome.allocated) == 9


def test_a_future_of_dasks_is_read_too(cluster: DaskCluster) -> None:
    program, given, _ = power(3)
    wanted = GangEngine(cluster, "alone-").run(program, given).kept["x0"].block.values
    scattered = {name: cluster.client.scatter(one.block, hash=False) for name, one in given.items()}
    found = GangEngine(cluster, "alone-").run(program, scattered).kept["x0"].block.values
    np.testing.assert_array_equal(found, wanted)


def test_a_task_that_raises_is_reported_with_its_trace(cluster: DaskCluster) -> None:
    engine = GangEngine(cluster, "alone-", gangs.Relay(1000, raises_on=0))
    with pytest.raises(TaskFailed) as caught:
        engine.run(gangs.relay_program((0,)), {})
    assert str(caught.value.failed.error) == "on worker 0"
    engine = GangEngine(cluster, "alone-", gangs.break_down)
    with pytest.raises(TaskFailed, match="by the performer itself") as caught:
        engine.run(gangs.relay_program((0,)), {})
    assert "break_down" in caught.value.failed.trace


def test_an_interrupt_ends_it(cluster: DaskCluster) -> None:
    program, given, _ = power(10**7)
    interrupt = threading.Timer(0.3, _thread.interrupt_main)
    interrupt.start()
    begin = time.monotonic()
    with pytest.raises(RunCancelled):
        GangEngine(cluster, "alone-").run(program, given)
    assert time.monotonic() - begin < 2.5
    interrupt.join()


def test_another_threads_wish_ends_it(cluster: DaskCluster) -> None:
    program, given, _ = power(10**7)
    asking = threading.Timer(0.3, cluster.stopping.ask)
    with cluster.stopping.scope():
        asking.start()
        with pytest.raises(CellCancelled):
            GangEngine(cluster, "alone-").run(program, given)
    asking.join()


class Noted:
    """A watch that wants a pause at once it has heard of some iterations."""

    pause_at = None

    def __init__(self, after: int) -> None:
        self._after, self.iteration, self.keys = after, 0, set[str]()

    def measured(self, owner: int, iteration: int, num_iterations: int, seconds: Mapping[str, float]) -> None:
        assert owner == 0
        assert min(seconds.values()) >= 0
        self.keys.update(seconds)

    def advanced(self, iteration: int, seconds: float) -> None:
        self.iteration = max(self.iteration, iteration)

    def wants_pause(self) -> bool:
        return self.iteration >= self._after


def test_it_tells_of_its_tasks_pauses_and_goes_on(cluster: DaskCluster) -> None:
    most = 30_000
    program, given, _ = power(most)
    engine = GangEngine(cluster, "alone-")
    told: list[int] = []
    watch = Noted(after=5)
    first = engine.run(program, given, on_progress=lambda number, _: told.append(number), watch=watch)
    assert watch.keys == {"y0"}
    assert first.paused is not None
    assert first.kept == {}
    assert 5 <= first.paused.iteration < most
    program, given, _ = power(first.paused.iteration + 4)
    rest = engine.run(program, {**given, "first0": first.paused.futures["x0"]}, resume=first.paused)
    assert rest.paused is None
    assert rest.iterations == first.paused.iteration + 4
    whole = engine.run(program, given)
    found, wanted = (one.kept["x0"] for one in (rest, whole))
    assert isinstance(found, LocalBlock)
    assert isinstance(wanted, LocalBlock)
    np.testing.assert_array_equal(found.block.values, wanted.block.values)


def test_progress_is_told_now_and_then(cluster: DaskCluster) -> None:
    told: list[tuple[int, float]] = []
    engine = GangEngine(cluster, "alone-", gangs.Relay(100, pause_seconds=0.008))
    outcome = engine.run(gangs.relay_program((0,)), {}, on_progress=lambda *news: told.append(news))
    assert 2 <= len(told) <= outcome.seconds / 0.2 + 1
    assert [number for number, _ in told] == sorted({number for number, _ in told})

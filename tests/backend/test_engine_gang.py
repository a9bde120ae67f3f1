"""Gangs gather, end together whatever happens to one of them, and leave nothing."""

from __future__ import annotations

import _thread
import asyncio
import concurrent.futures
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import gangs
import numpy as np
import pytest
import scipy.sparse as sp
from distributed import Future, Worker
from waiting import wait_until

from matnb.backend.cluster import gang_lock
from matnb.backend.cluster.dask_cluster import DaskCluster, connect, start
from matnb.backend.engines.engine_gang import GangEngine, GangUnavailable
from matnb.backend.engines.futures import OwnersLost
from matnb.backend.engines.gang_graph import owners_of, state_of
from matnb.backend.engines.recovery import newest_whole
from matnb.backend.engines.results import RunCancelled
from matnb.backend.gang.member_life import MemberCall, run_member
from matnb.backend.kept import LocalBlock
from matnb.backend.tasks.worker import TaskFailed
from matnb.blocks.formats import Dense
from matnb.config import Config
from matnb.errors import ClusterError
from matnb.program.program import Program

IN_PROCESSES = Config(workers=2, threads=1, processes=True)


@pytest.fixture(scope="module", params=["threads", pytest.param("processes", marks=pytest.mark.cluster)])
def cluster(request: pytest.FixtureRequest) -> Iterator[DaskCluster]:
    config = IN_PROCESSES if request.param == "processes" else Config(workers=3, threads=1)
    with start(config) as found:
        yield found


@pytest.fixture
def own_processes() -> Iterator[DaskCluster]:
    with start(IN_PROCESSES) as found:
        yield found


def engine_on(cluster: DaskCluster, performer: Any, prefix: str = "s-") -> GangEngine:
    return GangEngine(cluster, prefix, performer)


def program_on(cluster: DaskCluster) -> Program:
    return gangs.relay_program(cluster.alive())


def what_is_left(cluster: DaskCluster) -> list[object]:
    return [
        *cluster.client.run(_left_on_worker).values(),
        *cluster.client.run_on_scheduler(_left_on_scheduler),
    ]


def _left_on_worker(dask_worker: Worker) -> tuple[list[str], ...]:
    return (
        [name for name in dask_worker.handlers if "gang" in name],
        [name for name in dask_worker.plugins if "gang" in name],
        list(dask_worker.data),
        list(dask_worker.state.tasks),
        sorted(gangs.active),
    )


def _left_on_scheduler(dask_scheduler: Any) -> tuple[list[str], list[str]]:
    locks = dask_scheduler.extensions["multi_locks"].locks
    return list(dask_scheduler.tasks), [name for name, users in locks.items() if users]


def values_of(outcome: Any) -> list[float]:
    kept = [outcome.kept[name] for name in sorted(outcome.kept)]
    return [float((one.block if isinstance(one, LocalBlock) else one.result()).values[0]) for one in kept]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, concurrent.futures.CancelledError])
def test_nobody_answers_where_a_second_interrupt_or_a_broken_line_ends_the_asking(
    cluster: DaskCluster, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
):
    def fails(*_: object, **__: object) -> None:
        raise error

    engine = engine_on(cluster, gangs.Relay(1))
    with monkeypatch.context() as while_broken:
        while_broken.setattr(cluster.client, "sync", fails)
        assert engine._tell(["tcp://127.0.0.1:1"], "kept", epoch=1) == {}
    assert engine._tell([], "kept", epoch=1) == {}
    engine.close()


def test_members_run_a_program_and_leave_nothing(cluster: DaskCluster):
    num_members = len(cluster.alive())
    engine = engine_on(cluster, gangs.Relay(5, length=1000))
    for _ in range(3):
        outcome = engine.run(program_on(cluster), {})
        assert values_of(outcome) == gangs.relayed(5, num_members)
        assert outcome.counts == {f"y{owner}": (1000, 8000) for owner in range(num_members)}
        assert (outcome.iterations, outcome.num_members) == (5, num_members)
    holders = cluster.client.who_has(list(outcome.kept.values()))
    for owner in range(num_members):
        assert list(holders[outcome.kept[f"y{owner}"].key]) == [cluster.workers[owner].address]
    del outcome
    engine.close()
    empty = ([], [], [], [], [])
    wait_until(lambda: what_is_left(cluster) == [*[empty] * num_members, [], []])


def test_one_member_needs_no_turn(cluster: DaskCluster, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gang_lock.Turn, "wait", lambda _: pytest.fail("asked for a turn"))
    engine = engine_on(cluster, gangs.Relay(5))
    try:
        assert values_of(engine.run(gangs.relay_program((1,)), {})) == [1 + 5]
    finally:
        engine.close()


def test_given_blocks_and_results_have_no_history(cluster: DaskCluster):
    given = {
        f"x{owner}": cluster.client.submit(
            _tens, owner, workers=[cluster.workers[owner].address], key=f"x{owner}"
        )
        for owner in cluster.alive()
    }
    engine = engine_on(cluster, gangs.Relay(1))
    try:
        outcome = engine.run(gangs.relay_program(cluster.alive(), given=True), given)
        given.clear()
        count = len(cluster.alive())
        assert values_of(outcome) == [(owner - 1) % count * 10 + 1 for owner in range(count)]
        results = sorted(future.key for future in outcome.kept.values())
        wait_until(lambda: sorted(cluster.client.run_on_scheduler(_left_on_scheduler)[0]) == results)
    finally:
        engine.close()


def _tens(owner: int) -> Dense:
    return Dense(np.full(10, owner * 10.0))


def test_a_program_is_performed(cluster: DaskCluster):
    owners = cluster.alive()
    matrix = sp.random_array((6000, 6000), density=1e-3, rng=np.random.default_rng(3), format="csr")
    program, blocks = gangs.power_program(matrix, owners, 9)
    given = {
        name: cluster.client.scatter(block, workers=[cluster.workers[program.given[name]].address])
        for name, block in blocks.items()
    }
    engine = GangEngine(cluster, "real-")
    try:
        outcome = engine.run(program, given)
        found = np.concatenate([outcome.kept[f"x{place}"].result().values for place in range(len(owners))])
        expected = np.ones(6000)
        for _ in range(9):
            expected = 0.5 * (matrix @ expected)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert outcome.iterations == outcome.kept["taken"].result().values == 9
        assert sorted({one.key for one in outcome.timed}) == [f"y{place}" for place in range(len(owners))]
        assert outcome.sent_bytes > 0
        assert len(outcome.allocated) == 9
    finally:
        engine.close()


def test_progress_is_told_now_and_then(cluster: DaskCluster):
    told: list[tuple[int, float]] = []
    engine = engine_on(cluster, gangs.Relay(100, pause_seconds=0.008))
    try:
        outcome = engine.run(program_on(cluster), {}, on_progress=lambda *news: told.append(news))
        assert 2 <= len(told) <= outcome.seconds / 0.2
        numbers = [number for number, _ in told]
        assert numbers == sorted(set(numbers))
        gone = sum((new - old) * seconds for old, (new, seconds) in zip([0, *numbers], told, strict=False))
        assert 0.008 * numbers[-1] <= gone <= outcome.seconds  # what iterations took is what went by
    finally:
        engine.close()


def test_a_task_that_raises_on_one_member_ends_all(cluster: DaskCluster):
    engine = engine_on(cluster, gangs.Relay(1000, pause_seconds=0.01, raises_on=1))
    begin = time.monotonic()
    with pytest.raises(TaskFailed) as caught:
        engine.run(program_on(cluster), {})
    assert time.monotonic() - begin < 4
    assert str(caught.value.failed.error) == "on worker 1"
    engine.close()
    assert_nothing_left(cluster)


def test_a_performer_that_breaks_down_is_reported(cluster: DaskCluster):
    engine = engine_on(cluster, gangs.break_down)
    with pytest.raises(TaskFailed, match="by the performer itself") as caught:
        engine.run(program_on(cluster), {})
    assert "break_down" in caught.value.failed.trace
    engine.close()
    assert_nothing_left(cluster)


def assert_nothing_left(cluster: DaskCluster) -> None:
    empty = ([], [], [], [], [])
    wait_until(lambda: what_is_left(cluster) == [*[empty] * len(cluster.alive()), [], []])


def test_an_interrupt_ends_all_members(cluster: DaskCluster):
    engine = engine_on(cluster, gangs.Relay(100_000, pause_seconds=0.005))
    interrupt = threading.Timer(0.5, _thread.interrupt_main)
    interrupt.start()
    begin = time.monotonic()
    with pytest.raises(RunCancelled):
        engine.run(program_on(cluster), {})
    assert time.monotonic() - begin < 2.5
    interrupt.join()
    engine.close()
    assert_nothing_left(cluster)


def test_a_cancelled_task_ends_all_members(cluster: DaskCluster):
    # As when the client of a gang is gone.
    engine = engine_on(cluster, gangs.Relay(100_000, pause_seconds=0.005))

    def cancel_one() -> None:
        key = next(key for key in cluster.client.futures if "member0" in key)
        cluster.client.cancel([Future(key, cluster.client)], force=True)

    cancel = threading.Timer(0.5, cancel_one)
    cancel.start()
    begin = time.monotonic()
    with pytest.raises((GangUnavailable, ClusterError)):
        engine.run(program_on(cluster), {})
    assert time.monotonic() - begin < 5
    cancel.join()
    engine.close()
    assert_nothing_left(cluster)


def test_a_member_that_dask_runs_again_ends_at_once(cluster: DaskCluster):
    engine = engine_on(cluster, gangs.Relay(3), "again-")
    try:
        engine.run(program_on(cluster), {})
        addresses = {owner: cluster.workers[owner].address for owner in cluster.alive()}
        call = MemberCall(
            "key", engine.epoch, 0, addresses, b"", {}, "", 0, False, (), False, False, None, gangs.Relay(3)
        )
        begin = time.monotonic()
        again = cluster.client.submit(run_member, "again-gang", call, (), workers=[addresses[0]], pure=False)
        assert again.result().aborted == "this gathering is over"
        assert time.monotonic() - begin < 1
    finally:
        engine.close()


def test_two_clients_take_turns(cluster: DaskCluster):
    num_members = len(cluster.alive())
    outcomes: dict[str, list[list[float]]] = {}

    def run(name: str, own: DaskCluster) -> None:
        engine = engine_on(own, gangs.Relay(20, pause_seconds=0.001), name)
        outcomes[name] = [values_of(engine.run(program_on(own), {})) for _ in range(6)]
        engine.close()

    with connect(cluster.client.scheduler.address) as other:
        other.leave_nothing_of("second-")
        threads = [
            threading.Thread(target=run, args=pair) for pair in (("first-", cluster), ("second-", other))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert outcomes == dict.fromkeys(["first-", "second-"], [gangs.relayed(20, num_members)] * 6)
    assert_nothing_left(cluster)


def test_a_turn_is_waited_for_in_bounds(cluster: DaskCluster, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gang_lock, "_LOCK_SECONDS", 0.2)
    addresses = [each.address for each in cluster.workers]
    holder = gang_lock.Turn(cluster.client, "holder", addresses)
    assert holder.wait()
    engine = engine_on(cluster, gangs.Relay(3))
    try:
        with pytest.raises(GangUnavailable, match="another session's loop"):
            engine.run(program_on(cluster), {})
        holder.end()
        assert values_of(engine.run(program_on(cluster), {})) == gangs.relayed(3, len(addresses))
    finally:
        engine.close()


def test_a_turn_of_a_session_that_died_is_taken(cluster: DaskCluster, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gang_lock, "_LOCK_SECONDS", 0.2)
    addresses = [each.address for each in cluster.workers]
    dead = gang_lock.Turn(cluster.client, "holder", addresses)
    dead._name = "Client-that-died holder"
    assert dead.wait()
    turn = gang_lock.Turn(cluster.client, "next", addresses)
    assert turn.wait()
    turn.end()
    assert_nothing_left(cluster)


def test_an_interrupt_as_the_turn_comes_gives_it_back(cluster: DaskCluster, monkeypatch: pytest.MonkeyPatch):
    submit = asyncio.run_coroutine_threadsafe

    class Interrupted:
        def __init__(self, waiting: concurrent.futures.Future[bool]) -> None:
            self._waiting = waiting

        def result(self, timeout: float) -> bool:
            assert self._waiting.result(10)  # the scheduler has given it
            monkeypatch.undo()
            raise KeyboardInterrupt

    monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", lambda *given: Interrupted(submit(*given)))
    with pytest.raises(KeyboardInterrupt):
        gang_lock.Turn(cluster.client, "interrupted", [each.address for each in cluster.workers]).wait()
    assert_nothing_left(cluster)


def test_an_interrupted_wait_gives_the_turn_back(cluster: DaskCluster):
    addresses = [each.address for each in cluster.workers]
    holder = gang_lock.Turn(cluster.client, "holder", addresses)
    assert holder.wait()
    interrupt = threading.Timer(0.2, _thread.interrupt_main)
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        gang_lock.Turn(cluster.client, "waiting", addresses).wait()
    interrupt.join()
    holder.end()
    assert_nothing_left(cluster)


@pytest.mark.cluster
def test_a_killed_member_ends_the_others_and_its_state_is_recovered(own_processes: DaskCluster):
    cluster = own_processes
    engine = engine_on(cluster, gangs.Relay(100_000, pause_seconds=0.005, save_every=10))
    pid = cluster.client.run(os.getpid, workers=[cluster.workers[1].address])
    kill = threading.Timer(1.0, lambda: os.kill(next(iter(pid.values())), signal.SIGKILL))
    kill.start()
    begin = time.monotonic()
    with pytest.raises(OwnersLost) as caught:
        engine.run(program_on(cluster), {})
    assert time.monotonic() - begin < 5
    assert caught.value.owners == (1,)
    kill.join()
    resume = engine.recover(engine.epoch)
    assert resume is not None
    assert resume.iteration > 0
    assert resume.iteration % 10 == 0
    assert resume.owners == {"x0": 0, "x1": 0}
    state = [float(resume.futures[f"x{owner}"].result().values[0]) for owner in (0, 1)]
    assert state == gangs.relayed(resume.iteration, 2)
    assert engine.recover(engine.epoch) is None  # it is given once
    # The survivor goes on alone.
    alone = engine_on(cluster, gangs.Relay(resume.iteration + 7), "alone-")
    outcome = alone.run(gangs.relay_program((0,), given=True), resume.futures, resume=resume)
    assert values_of(outcome) == [state[0] + 7]
    del outcome, resume
    alone.close()
    engine.close()
    keys = cluster.client.run(_left_on_worker, workers=[cluster.workers[0].address])
    wait_until(
        lambda: (
            [*keys.values()] == [([], [], [], [], [])]
            or keys.update(cluster.client.run(_left_on_worker, workers=[cluster.workers[0].address]))
        )
    )


def test_the_newest_whole_generation_is_found():
    kept = {"a": {10: ["x0", "x1"], 20: ["x0"]}, "b": {10: ["x1", "x2"], 20: ["x1", "x2"]}}
    assert newest_whole(kept, frozenset(["x0", "x1", "x2"])) == 20
    assert newest_whole({"a": kept["a"]}, frozenset(["x0", "x1"])) == 10
    assert newest_whole({"a": kept["a"]}, frozenset(["x0", "x2"])) is None


def test_owners_and_state_of_a_program():
    program = gangs.relay_program((0, 2))
    assert owners_of(program) == {0, 2}
    assert state_of(program) == {"x0", "x2"}
    twice = Program(program.actions * 2, {}, program.owners, frozenset(), ())
    assert state_of(twice) == frozenset()


def test_a_run_costs_little_more_than_a_task():
    with start(Config(workers=1, threads=2)) as cluster:
        engine = engine_on(cluster, gangs.Relay(0))
        program = gangs.relay_program((0,))
        engine.run(program, {})
        seconds = sorted(engine.run(program, {}).seconds for _ in range(20))
        print(f"{seconds[10] * 1e3:.1f} ms a run")
        assert seconds[0] < 0.05  # 4 ms when the machine is ours
        engine.close()

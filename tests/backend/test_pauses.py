"""Programs that pause between iterations and go on leave what those leave that never pause."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import gangs
import numpy as np
import pytest
import scipy.sparse as sp
from distributed import Future
from hypothesis import given, settings
from hypothesis import strategies as st
from member_programs import Ranks
from members import perform_all, results_of
from waiting import wait_until

from matnb.backend.cluster.dask_cluster import DaskCluster, start
from matnb.backend.engines.engine_gang import GangEngine, tasks_by_owner
from matnb.backend.engines.futures import OwnersLost
from matnb.backend.engines.recovery import Resume
from matnb.backend.gang.checkpoints import Checkpoints
from matnb.backend.gang.iteration_boundary import _TELL_SECONDS
from matnb.blocks.formats import Block, Dense, to_numpy
from matnb.config import Config
from matnb.program.program import Program


class PausesAt:
    """Wants a pause after some iterations; asked as they begin, but not as each does."""

    def __init__(self, first: int, iterations: Sequence[int]) -> None:
        self._asked, self._iterations = first, iterations
        self.num_asked = 0
        self.news: list[tuple[int, int, float, list[float]]] = []

    @property
    def pause_at(self) -> int | None:
        return next((one for one in self._iterations if one > self._asked), None)

    def asks_pause(self, iteration: int) -> bool:
        assert iteration > self._asked
        self._asked = iteration
        self.num_asked += 1
        return iteration in self._iterations

    def measured(self, iteration: int, count: int, clock_seconds: float, seconds: Sequence[float]) -> None:
        self.news.append((iteration, count, clock_seconds, list(seconds)))


@settings(max_examples=30, deadline=None)
@given(
    pauses=st.sets(st.integers(1, 13), max_size=6),
    members=st.sampled_from([(0,), (0, 1), (2, 3, 5)]),
    epsilon=st.sampled_from([None, 1.0, 50.0]),
)
def test_a_program_pauses_where_the_first_member_says(
    pauses: set[int], members: tuple[int, ...], epsilon: float | None
) -> None:
    ranks = Ranks(300, 5, members)
    program, registers = ranks.program(12, epsilon)
    whole = perform_all(program, registers, members)
    taken = whole[members[0]].iterations
    begin, stops, allocated = 0, [], 0
    while True:
        listener = PausesAt(begin, sorted(pauses))
        found = perform_all(program, registers, members, begin=begin, listener=listener)
        assert len({(one.paused, one.iterations) for one in found.values()}) == 1
        one = found[members[0]]
        allocated += len(one.allocated)
        if not one.paused:
            break
        begin = one.iterations
        stops.append(begin)
        state = results_of(found)
        assert set(state) == set(ranks.blocks("x"))
        for number, name in enumerate(ranks.blocks("x")):
            assert not to_numpy(state[name]).flags.writeable
            registers[f"x0-{number}"] = state[name]
    assert stops == [at for at in sorted(pauses) if at < taken]  # a loop that ends does not pause
    assert one.iterations == taken == allocated
    before, after = results_of(whole), results_of(found)
    assert before.keys() == after.keys()
    for name, block in before.items():
        np.testing.assert_array_equal(to_numpy(after[name]), to_numpy(block))


def test_quick_iterations_are_not_each_asked_about() -> None:
    program, registers = gangs.power_program(sp.csr_array(np.eye(6)), (0, 1), 2000)
    listener = PausesAt(0, [1500])
    found = perform_all(program, registers, (0, 1), listener=listener)
    assert {(one.paused, one.iterations) for one in found.values()} == {(True, 1500)}
    assert 1 < listener.num_asked < 500


def test_only_the_outermost_loop_pauses() -> None:
    from matnb.program.program import Iterate

    program, registers = gangs.power_program(sp.csr_array(np.eye(6)), (0, 1), 3)
    (inner,) = program.actions
    held = [name for names in inner.state for name in names]
    outer = Iterate(
        (tuple(f"z{name}" for name in held),), inner.first, (tuple(held),), "limit", None, "number", "rounds",
        (replace(inner, first=(tuple(f"z{name}" for name in held),)),),
    )  # fmt: skip
    owners = {**program.owners, **{f"z{name}": program.owners[name] for name in held}}
    owners |= {"number": 0, "rounds": 0}
    nested = Program(
        (outer,), program.given, owners, frozenset(["iteration", "taken", "number", "rounds"]), outer.state[0]
    )
    listener = PausesAt(0, [2])
    found = perform_all(nested, registers, (0, 1), listener=listener)
    assert {(one.paused, one.iterations) for one in found.values()} == {(True, 2)}
    for name in outer.state[0]:
        np.testing.assert_allclose(to_numpy(results_of(found)[name]), np.full(3, 0.5**6))


def test_what_tasks_take_is_told_without_their_first_runs() -> None:
    ranks = Ranks(60_000, 4, (0, 1))
    program, registers = ranks.program(60, None)
    listeners = {member: PausesAt(0, []) for member in (0, 1)}

    found = {}
    from members import Post

    from matnb.backend.gang.performer import perform

    with Post((0, 1)) as post:

        def run(member: int) -> None:
            mine = {name: block for name, block in registers.items() if program.given[name] == member}
            found[member] = perform(program, mine, post.boxes[member], 1, None, listener=listeners[member])

        threads = [threading.Thread(target=run, args=(member,)) for member in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    keys = tasks_by_owner(program)
    for member, listener in listeners.items():
        timed = {one.key: one.seconds for one in found[member].timed}
        assert set(timed) == set(keys[member])
        assert listener.news
        assert listener.news[0][0] <= 4  # two iterations after those in which things are compiled
        done = 2
        for iteration, count, clock, seconds in listener.news:
            assert iteration == done + count
            done = iteration
            assert len(seconds) == len(keys[member])
            assert min(seconds) > 0
            assert sum(seconds) <= 1.05 * clock * count
        for (_, count, clock, _), _ in zip(listener.news[1:], listener.news, strict=False):
            assert count * clock >= _TELL_SECONDS
        told = np.sum([seconds for *_, seconds in listener.news], axis=0)
        for key, seconds in zip(keys[member], told, strict=True):
            assert 0 < seconds < timed[key]


# with real clusters

IN_PROCESSES = Config(workers=2, threads=1, processes=True)


@pytest.fixture(scope="module", params=["threads", pytest.param("processes", marks=pytest.mark.cluster)])
def cluster(request: pytest.FixtureRequest) -> Iterator[DaskCluster]:
    config = IN_PROCESSES if request.param == "processes" else Config(workers=3, threads=1)
    with start(config) as found:
        yield found


@dataclass
class Watching:
    """Wants a pause when a function of what it heard says so."""

    wants: Callable[[Watching], bool]
    pause_at: int | None = None
    news: list[tuple[int, int, int, Mapping[str, float]]] = field(default_factory=list)
    iterations: list[tuple[int, float]] = field(default_factory=list)

    def measured(self, owner: int, iteration: int, num_iterations: int, seconds: Mapping[str, float]) -> None:
        self.news.append((owner, iteration, num_iterations, seconds))

    def advanced(self, iteration: int, seconds: float) -> None:
        self.iterations.append((iteration, seconds))

    def wants_pause(self) -> bool:
        return self.wants(self)


def engine_on(cluster: DaskCluster, prefix: str = "p-") -> GangEngine:
    return GangEngine(cluster, prefix)


def power(
    cluster: DaskCluster, count: int, size: int = 3000
) -> tuple[sp.csr_array, Program, dict[str, Future]]:
    matrix = sp.random_array((size, size), density=8 / size, rng=np.random.default_rng(0), format="csr")
    program, blocks = gangs.power_program(matrix, cluster.alive(), count)
    return (
        matrix,
        program,
        {name: sent(cluster, block, program.given[name]) for name, block in blocks.items()},
    )


def sent(cluster: DaskCluster, block: Block, owner: int) -> Future:
    return cluster.client.scatter(block, workers=[cluster.workers[owner].address], hash=False)


def answer(matrix: sp.csr_array, count: int) -> np.ndarray:
    x = np.ones(matrix.shape[0])
    for _ in range(count):
        x = 0.5 * (matrix @ x)
    return x


def value(futures: Mapping[str, Future], num_blocks: int) -> np.ndarray:
    return np.concatenate([to_numpy(futures[f"x{place}"].result()) for place in range(num_blocks)])


def going_on(given: Mapping[str, Future], resume: Resume) -> dict[str, Future]:
    return {**given, **{f"first{name[1:]}": future for name, future in resume.futures.items()}}


def keys_on(cluster: DaskCluster) -> list[str]:
    return sorted(key for keys in cluster.client.run(_keys).values() for key in keys)


def _keys(dask_worker: Any) -> list[str]:
    return [str(key) for key in dask_worker.data]


def kept_on(cluster: DaskCluster) -> list[int]:
    """Return how many blocks of states are kept, on each worker."""
    return list(cluster.client.run(_kept).values())


def _kept(dask_worker: Any) -> int:
    plugins = [one for name, one in dask_worker.plugins.items() if name.endswith("gang")]
    return sum(len(blocks) for plugin in plugins for blocks in plugin._checkpoints._generations.values())


def test_a_gang_pauses_and_goes_on(cluster: DaskCluster) -> None:
    engine = engine_on(cluster)
    matrix, program, given = power(cluster, 7)
    count = len(cluster.alive())
    before = keys_on(cluster)
    resume, outcomes = None, []
    while True:
        watch = Watching(lambda _: True)
        futures = given if resume is None else going_on(given, resume)
        outcome = engine.run(program, futures, resume=resume, watch=watch)
        outcomes.append(outcome)
        if outcome.paused is None:
            break
        resume = outcome.paused
        assert outcome.kept == {}
        assert resume.iteration == len(outcomes)
        assert dict(resume.owners) == {f"x{place}": owner for place, owner in enumerate(cluster.alive())}
        assert set(outcome.counts) == set(resume.owners)
        np.testing.assert_allclose(value(resume.futures, count), answer(matrix, resume.iteration))
        # What a pause leaves is on two workers each; nothing older is needed.
        wait_until(lambda: set(kept_on(cluster)) <= {2, 4})
    assert len(outcomes) == 7
    assert outcome.iterations == 7
    np.testing.assert_array_equal(value(outcome.kept, count), value_without_pauses(cluster, 7))
    wait_until(lambda: set(kept_on(cluster)) == {0})
    del outcome, outcomes, resume, futures
    wait_until(lambda: keys_on(cluster) == before)
    engine.close()


def value_without_pauses(cluster: DaskCluster, count: int) -> np.ndarray:
    engine = engine_on(cluster, "whole-")
    _, program, given = power(cluster, count)
    found = value(engine.run(program, given).kept, len(cluster.alive()))
    engine.close()
    return found


def test_a_pause_is_asked_for_while_a_gang_runs(cluster: DaskCluster) -> None:
    engine = engine_on(cluster)
    matrix, program, given = power(cluster, 100_000)
    watch = Watching(lambda one: len(one.news) > 4 and one.news[-1][1] > 20)
    outcome = engine.run(program, given, watch=watch)
    assert outcome.paused is not None
    stop = outcome.paused.iteration
    assert max(iteration for _, iteration, _, _ in watch.news) <= stop < 100_000
    np.testing.assert_allclose(value(outcome.paused.futures, len(cluster.alive())), answer(matrix, stop))
    # Each worker told what its tasks took, at most every 50 ms, without gaps.
    tasks = tasks_by_owner(program)
    assert {owner for owner, *_ in watch.news} == set(cluster.alive())
    for owner in cluster.alive():
        done = 2
        for of, iteration, num_iterations, seconds in watch.news:
            if of == owner:
                assert tuple(seconds) == tasks[owner]
                assert iteration == done + num_iterations
                done = iteration
    assert [iteration for iteration, _ in watch.iterations] == [
        iteration for owner, iteration, *_ in watch.news if owner == min(cluster.alive())
    ]
    assert all(seconds > 0 for _, seconds in watch.iterations)
    engine.forget()
    wait_until(lambda: set(kept_on(cluster)) == {0})
    engine.close()


def test_programs_that_cannot_pause(cluster: DaskCluster) -> None:
    engine = engine_on(cluster)
    program, _ = gangs.power_program(sp.csr_array(np.eye(6)), (0, 1), 3)
    assert engine.can_pause(program)
    assert not engine.can_pause(replace(program, keeps=False))
    assert not engine.can_pause(replace(program, actions=program.actions * 2))
    engine.close()


@pytest.mark.cluster
@pytest.mark.parametrize("when", ["between", "in the next part"])
def test_a_worker_that_dies_after_a_pause_costs_no_iteration(when: str) -> None:
    with start(IN_PROCESSES) as own:
        engine = engine_on(own)
        matrix, program, given = power(own, 100_000)
        watch = Watching(lambda one: bool(one.news))
        outcome = engine.run(program, given, watch=watch)
        assert outcome.paused is not None
        stop, resume = outcome.paused.iteration, outcome.paused
        assert stop > 2
        pid = own.client.run(os.getpid, workers=[own.workers[1].address])[own.workers[1].address]
        if when == "between":
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: own.alive() == (0,))
        else:
            kill = threading.Timer(0.4, lambda: os.kill(pid, signal.SIGKILL))  # before copies are due again
            kill.start()
            with pytest.raises(OwnersLost):
                engine.run(program, going_on(given, resume), resume=resume, watch=Watching(lambda _: False))
            kill.join()
        del outcome, resume
        found = engine.recover(engine.epoch)
        assert found is not None
        assert found.iteration == stop
        assert found.epoch == (engine.epoch if when == "between" else engine.epoch - 1)
        assert set(found.owners.values()) == {0}
        np.testing.assert_allclose(value(found.futures, 2), answer(matrix, stop))
        assert engine.recover(engine.epoch) is None
        time.sleep(0.1)
        assert kept_on(own)[0] == 0
        engine.close()


def test_what_other_loops_left_is_forgotten() -> None:
    kept = Checkpoints()
    kept.add(1, 5, {"x": Dense(np.ones(2))})
    kept.add(2, 7, {"x": Dense(np.ones(2))})
    kept.add(2, 7, {"y": Dense(np.ones(2))})
    assert kept.inventory(1) == {5: ("x",)}
    assert kept.inventory(2) == {7: ("x", "y")}
    kept.add(2, 9, {"x": Dense(np.ones(2))})
    assert kept.inventory(1) == {}  # two generations, whichever part made them
    kept.add(3, 9, {"x": Dense(np.ones(2))})
    kept.keep_only((3,))
    assert kept.inventory(2) == {}
    assert set(kept.blocks(3, 9)) == {"x"}

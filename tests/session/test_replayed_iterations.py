"""A loop that repeats a trace pauses after the trace's iterations, and not after any other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from fixed_policy import NUM_ROWS, A, Stubborn, looped, sessions, small  # noqa: F401  the last two are fixtures

import matnb as mn
from matnb.balance.decision import Decision
from matnb.balance.situation import Situation
from matnb.balance.trace import Trace
from matnb.session import groups
from matnb.session.loop_parts import LoopWatch

RECUTS = {10: (0, 300, NUM_ROWS), 20: (0, 500, 900, NUM_ROWS)}
TWO = {"workers": 2, "threads": 1}
ENGINES = {"gang": {"engine": "gang"}, "dask": {"engine": "dask"}, "processes": {"processes": True}}

pytestmark = pytest.mark.usefixtures("small")


class Punctual(Stubborn):
    """Says beforehand when it repartitions."""

    def next_iteration(self, situation: Situation) -> float:
        return min((one for one in self.cuts if one > situation.iteration), default=math.inf)


def run(
    rebalance: object, num_iterations: int = 200, **options: object
) -> tuple[bytes, list[Decision], Trace]:
    with mn.start(**{**TWO, **options}, rebalance=rebalance) as session:
        found = looped(mn.asarray(A, blocks=4).persist(), num_iterations)
        decisions = [one.decision for one in session.history]
        trace = mn.history().trace
    mn.stop()
    return found.tobytes(), decisions, trace


def repartitions(decisions: list[Decision]) -> list[tuple[int, tuple[int, ...]]]:
    return [(one.iteration, one.after.cuts) for one in decisions if one.acts]


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """After which iterations loops really paused."""
    found: list[int] = []
    known = LoopWatch.paused

    def noting(watch: LoopWatch, iteration: int) -> None:
        found.append(iteration)
        known(watch, iteration)

    monkeypatch.setattr(LoopWatch, "paused", noting)
    yield found
    mn.stop()


@pytest.fixture(scope="module")
def expected() -> bytes:
    return run("off")[0]


@pytest.fixture(scope="module")
def trace(expected: bytes) -> Trace:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "LEAST_BYTES", 0)
        found, decisions, trace = run(Punctual(RECUTS))
    assert repartitions(decisions) == [*RECUTS.items()]
    assert found == expected
    return trace


@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("gang", 5),
        pytest.param("dask", 2, marks=pytest.mark.slow),
        pytest.param("processes", 2, marks=[pytest.mark.cluster, pytest.mark.slow]),
    ],
)
def test_re_cuts_come_after_the_iterations_of_the_trace_each_time(
    name: str, times: int, trace: Trace, paused: list[int], expected: bytes
) -> None:
    read = Trace.from_json(trace.to_json())
    told = set()
    for _ in range(times):
        found, decisions, _ = run(read, **ENGINES[name])
        assert found == expected
        assert repartitions(decisions) == [*RECUTS.items()]
        told.add(tuple((one.acts, one.iteration, one.policy, one.reason, one.before) for one in decisions))
    assert paused == [10, 20] * times
    assert len(told) == 1  # nor is anything else told that may differ


@pytest.mark.parametrize("engine", ["gang", "dask"])
def test_what_followed_the_news_is_told_with_the_iteration_of_its_pause_and_repeated_there(
    engine: str, paused: list[int], expected: bytes
) -> None:
    _, decisions, trace = run(Stubborn(RECUTS), engine=engine)
    then = [one.iteration for one in decisions if one.acts]
    assert then == paused
    assert then
    assert run(trace)[0] == expected
    assert paused == then * 2


def at(trace: Trace, *iterations: int) -> Trace:
    """Return the trace with its repartitions after other iterations."""
    left = iter(iterations)
    passed = (
        replace(one, decision=replace(one.decision, iteration=next(left))) if one.decision.acts else one
        for one in trace.passed
    )
    return Trace(tuple(passed))


@pytest.mark.parametrize("engine", ["gang", "dask"])
@pytest.mark.parametrize(
    ("iterations", "wanted"),
    [((1, 2), [1, 2]), ((0, 3), [3]), ((7, 30), [7]), ((7, 29), [7, 29]), ((7, 10**9), [7]), ((50, 60), [])],
)
def test_one_before_the_loop_or_after_its_end_is_no_pause(
    iterations: tuple[int, int], wanted: list[int], engine: str, trace: Trace, paused: list[int]
) -> None:
    _, decisions, _ = run(at(trace, *iterations), 30, engine=engine)
    assert paused == wanted
    before = [0] if iterations[0] == 0 else []
    assert [one for one, _ in repartitions(decisions)] == before + wanted


def test_each_loop_has_its_own_decisions(trace: Trace, paused: list[int]) -> None:
    again = replace(trace, passed=(*trace.passed, *at(trace, 5, 15).passed))
    last = [one for one in again.passed if one.decision.acts][-2:]
    assert [one.decision.iteration for one in last] == [5, 15]
    with mn.start(**TWO, rebalance=again):
        a = mn.asarray(A, blocks=4).persist()
        first, second = looped(a, 50), looped(a, 51)
    assert paused == [10, 20, 5, 15]
    np.testing.assert_allclose(first, second)


def test_other_counts_of_workers(trace: Trace, paused: list[int], expected: bytes) -> None:
    found, decisions, _ = run(trace, workers=3)
    assert (found, repartitions(decisions), paused) == (expected, [*RECUTS.items()], [10, 20])
    found, decisions, _ = run(trace, workers=1, threads=2)
    assert (found, repartitions(decisions)) == (expected, [])
    assert "too few workers: the trace lays out over 2, there are 1 now" in {one.reason for one in decisions}


@pytest.mark.parametrize("options", [{"workers": 2}, {"engine": "dask"}])
def test_a_loop_that_ends_by_its_condition_before_is_not_waited_for(
    options: dict[str, object],
    trace: Trace,
    paused: list[int],
    sessions: Callable[..., mn.session.Session],  # noqa: F811
) -> None:
    sessions(rebalance=trace, **options)
    a = mn.asarray(A, blocks=4).persist()
    _, taken = mn.iterate(
        lambda state: (a @ state[0] / NUM_ROWS, state[1] + 1),
        (mn.ones(NUM_ROWS), mn.zeros(())),
        until=lambda old, new: new[1] >= 15,
        max_iterations=500,
    )
    assert int(taken) == 15
    assert paused == [10]

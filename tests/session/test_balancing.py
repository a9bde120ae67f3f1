"""The session's balancer: what it repartitions and when, what it leaves alone; values and bits stay."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from fixed_policy import NUM_ROWS, A, B, Stubborn, looped, rng, sessions, skewed, small, told
from simulated_loops import profile_of

import matnb as mn
from matnb.balance.load import BlockLoads
from matnb.balance.policy import policy_named
from matnb.blocks.layout import Cuts
from matnb.errors import TooLargeError
from matnb.events import BlocksMoved, Rebalanced
from matnb.session.groups import GroupState, LearnedCosts
from matnb.session.loop_parts import LoopWatch, Span

__all__ = ["sessions", "small"]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("engine", "num_iterations"), [("gang", 300), ("dask", 30)])
def test_a_loop_is_re_cut_where_the_policy_says_with_the_same_bits(
    sessions: Callable[..., mn.session.Session], engine: str, num_iterations: int
) -> None:
    sessions(rebalance="off", engine=engine)
    expected = looped(mn.asarray(A, blocks=4), num_iterations)
    policy = Stubborn({5: (0, 7, NUM_ROWS), 12: (0, 100, 300, 500, 600, NUM_ROWS)})
    session = sessions(rebalance=policy, engine=engine)
    events = told(session)
    a = mn.asarray(A, blocks=4).persist()
    np.testing.assert_array_equal(looped(a, num_iterations), expected)
    assert a.layout.grid.cuts[0] == policy.cuts[12]
    acted = [event for event in events if isinstance(event, Rebalanced) and event.acted]
    moved = [event for event in events if isinstance(event, BlocksMoved)]
    assert acted
    assert len(moved) == len(acted)
    assert all(event.iteration > 0 and event.seconds > 0 for event in acted)
    assert (a.compute() != A).nnz == 0


@pytest.mark.usefixtures("small")
def test_what_a_re_cut_brought_is_noted(sessions: Callable[..., mn.session.Session]) -> None:
    policy = Stubborn({5: (0, 100, NUM_ROWS)})
    session = sessions(rebalance=policy)
    looped(mn.asarray(A, blocks=4), 500)
    (passed,) = [one for one in session.history if one.decision.acts]
    assert passed.gain is not None
    assert passed.gain.loads.keys() == {0, 1}
    assert passed.gain.cost_seconds > 0
    assert math.isfinite(passed.gain.saving_seconds)
    assert policy.decisions == [passed.decision]
    assert policy.gains == [passed.gain]
    assert passed.decision.block_seconds
    after = [one for one in policy.seen if one.since_last >= 0]
    assert after
    assert {one.cuts.cuts for one in after} == {(0, 100, NUM_ROWS)}


@pytest.mark.usefixtures("small")
def test_a_loop_pauses_once_for_what_has_no_room(
    sessions: Callable[..., mn.session.Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = Stubborn({2: (0, 100, NUM_ROWS)})
    session = sessions(rebalance=policy, engine="dask")
    a = mn.asarray(A, blocks=4).persist()
    layout, num_asked = a.layout, 0

    def refuse(*_: object) -> None:
        nonlocal num_asked
        num_asked += 1
        raise TooLargeError("it does not fit")

    monkeypatch.setattr(session._runner.balancer.layouts, "change_rows", refuse)
    looped(a, 20)
    assert num_asked == 1
    assert a.layout is layout
    (refused,) = [
        one for one in session.history if one.decision.reason.startswith("no room: it does not fit")
    ]
    assert not refused.decision.acts
    assert refused.num_repeats > 1


@pytest.mark.parametrize("rebalance", ["auto", "entries", "presto"])
def test_small_arrays_and_single_slots_are_left_alone(
    sessions: Callable[..., mn.session.Session], rebalance: str
) -> None:
    session = sessions(rebalance=rebalance)
    a = mn.asarray(A, blocks=4).persist()
    layout = a.layout
    looped(a)
    for _ in range(3):
        (a @ mn.asarray(B)).compute()
    assert a.layout is layout
    assert not len(session.history)
    session = sessions(workers=1, rebalance=rebalance)
    large = skewed(5000, 400_000)
    x = mn.asarray(rng.random(5000))
    a = mn.asarray(large, blocks=4).persist()
    mn.iterate(lambda x: a @ x / 2, x, max_iterations=30)[0].compute()
    assert not len(session.history)


def test_badly_cut_arrays_are_re_cut_by_entries_before_a_long_loop_begins(
    sessions: Callable[..., mn.session.Session],
) -> None:
    large = skewed(20_000, 1_500_000)
    x = rng.random(20_000)
    found = {}
    for rebalance in ("off", "entries", "auto"):
        session = sessions(rebalance=rebalance)
        a = mn.asarray(large, blocks=4).persist()
        loop, _ = mn.iterate(lambda x: a @ x / (a @ x).max(), mn.asarray(x), max_iterations=300)  # noqa: B023
        found[rebalance] = loop.compute()
        before = [one.decision for one in session.history if one.decision.acts]
        if rebalance == "off":
            assert not before
            continue
        first = before[0]
        assert (first.iteration, first.block_seconds, first.in_entries) == (0, (), True)
        assert first.imbalance_before > 1.4
        assert first.imbalance_after < 1.1
        nnz = np.diff(large.indptr[np.array(first.after.cuts)])
        loads = [sum(nnz[np.array(first.after.owners) == owner]) for owner in (0, 1)]
        assert max(loads) / np.mean(loads) < 1.15
    np.testing.assert_array_equal(found["off"], found["entries"])
    np.testing.assert_array_equal(found["off"], found["auto"])


@pytest.mark.usefixtures("small")
def test_what_may_have_other_bits_is_decided_by_counts_alone(
    sessions: Callable[..., mn.session.Session],
) -> None:
    policy = Stubborn({3: (0, 100, NUM_ROWS)})
    sessions(rebalance=policy, memo="off")  # else it would not run again
    a = mn.asarray(A, blocks=4).persist()
    first = a.layout.grid.cuts[0]

    d = mn.asarray(rng.random((NUM_ROWS, 20)), blocks=4).persist()

    def by_parts() -> np.ndarray:
        # A product of dense arrays adds its blocks' shares: the last bits follow the cuts.
        step = lambda x: a @ (d @ (d.T @ x)) / 10_000 + 0.1  # noqa: E731
        return mn.iterate(step, mn.asarray(B, blocks=4), max_iterations=20)[0].compute()

    expected = by_parts()
    assert policy.seen
    assert not any(one.block_seconds for one in policy.seen)
    assert max(one.iteration for one in policy.seen) <= 1
    looped(a, 300)
    assert a.layout.grid.cuts[0] == (0, 100, NUM_ROWS)  # as measured times had it
    np.testing.assert_array_equal(by_parts(), expected)
    assert a.layout.grid.cuts[0] == first


@pytest.mark.usefixtures("small")
def test_between_cells_what_is_read_again_is_looked_at(sessions: Callable[..., mn.session.Session]) -> None:
    policy = Stubborn({3: (0, 100, NUM_ROWS)})
    session = sessions(rebalance=policy)
    a = mn.asarray(A, blocks=4).persist()
    expected = A @ B
    for turn in range(5):
        found = (a @ mn.asarray(B + turn)).compute()
        if not turn:
            expected = found
        assert (a.layout.grid.num_blocks == 2) == (turn >= 3)
    np.testing.assert_array_equal((a @ mn.asarray(B + 0.0)).compute(), expected)
    assert [one.iteration for one in policy.seen][:3] == [1, 2, 3]
    assert [one.num_remaining for one in policy.seen][:3] == [1.0, 2.0, 3.0]
    assert sum(one.decision.acts for one in session.history) == 1
    num_seen = len(policy.seen)
    a.compute()  # reading it whole is no work
    assert len(policy.seen) == num_seen


def test_a_session_is_set_otherwise_and_asked_now(sessions: Callable[..., mn.session.Session]) -> None:
    session = sessions(rebalance="off")
    a = mn.asarray(skewed(5000, 400_000), blocks=4).persist()
    assert session.rebalance == "off"
    (decision,) = session.rebalance_now()
    assert decision.acts
    assert decision.policy == "asked"
    assert a.layout.owners == decision.after.owners
    assert not session.rebalance_now()[0].acts
    b = mn.asarray(skewed(4000, 400_000), blocks=4).persist()
    kept, made = sorted(session.rebalance_now(), key=lambda one: one.acts)  # one for each array
    assert (kept.acts, made.acts) == (False, True)
    assert b.layout.owners == made.after.owners
    session.set_rebalance("entries")
    assert session.rebalance == "entries"
    with pytest.raises(mn.errors.OptionError, match=r"'auto', 'entries', 'presto', 'off'"):
        session.set_rebalance("sometimes")
    assert session.rebalance == "entries"


def test_a_trace_is_repeated(sessions: Callable[..., mn.session.Session], tmp_path: object) -> None:
    path = f"{tmp_path}/trace.json"
    large, x = skewed(20_000, 1_500_000), rng.random(20_000)

    def run() -> tuple[np.ndarray, Cuts]:
        a = mn.asarray(large, blocks=4).persist()
        found = mn.iterate(lambda x: a @ x / 100, mn.asarray(x), max_iterations=300)[0].compute()
        return found, Cuts(a.layout.grid.cuts[0], a.layout.owners)

    sessions(rebalance="entries")
    expected, cuts = run()
    (decision,) = [one.decision for one in mn.history() if one.decision.acts]
    assert cuts == decision.after
    mn.history().save(path)
    session = sessions(rebalance=path)
    assert session.rebalance == "replay"
    found, again = run()
    np.testing.assert_array_equal(found, expected)
    assert again == cuts
    (repeated,) = [one.decision for one in session.history if one.decision.acts]
    assert repeated.policy == "replay"
    assert repeated.before == decision.before


@pytest.mark.usefixtures("small")
def test_a_loop_is_re_cut_though_a_person_had_asked_for_the_cuts_that_were(
    sessions: Callable[..., mn.session.Session],
) -> None:
    sessions(rebalance=Stubborn({5: (0, 100, NUM_ROWS)}), engine="dask")
    a = mn.asarray(A, blocks=4).persist()
    mn.repartition(a, cuts=list(a.layout.grid.cuts[0]))
    looped(a, 20)
    assert a.layout.grid.cuts[0] == (0, 100, NUM_ROWS)


@pytest.mark.usefixtures("small")
def test_what_a_re_cut_brought_is_not_told_by_another_loop(
    sessions: Callable[..., mn.session.Session],
) -> None:
    policy = Stubborn({5: (0, 100, NUM_ROWS)})
    session = sessions(rebalance=policy, engine="dask")
    a = mn.asarray(A, blocks=4).persist()
    looped(a, 7)
    (passed,) = [one for one in session.history if one.decision.acts]
    looped(a, 20)
    assert policy.gains == []
    (still,) = [one for one in session.history if one.decision.acts]
    assert still.gain == passed.gain


def test_one_worker_with_threads_looks_where_the_entries_are(
    sessions: Callable[..., mn.session.Session],
) -> None:
    session = sessions(workers=1, threads=2, rebalance="entries")
    large = skewed(20_000, 1_500_000)
    a = mn.asarray(large, blocks=[[0, 10_000, 20_000], None]).persist()
    mn.iterate(lambda x: a @ x / 100, mn.asarray(rng.random(20_000)), max_iterations=500)[0].compute()
    (decision,) = [one.decision for one in session.history if one.decision.acts]
    nnz = np.diff(large.indptr[np.array(decision.after.cuts)])
    assert nnz.max() / nnz.mean() < 1.1


def test_iterations_that_are_expected_are_bounded_by_those_done_where_a_condition_ends_the_loop() -> None:
    assert Span(0, 50, has_until=False).num_remaining(20) == 30
    assert Span(0, 1000, has_until=True).num_remaining(0) == 10
    assert Span(0, 1000, has_until=True).num_remaining(200) == 200
    assert Span(0, 1000, has_until=True).num_remaining(990) == 10
    assert Span(0, math.inf, has_until=True).num_remaining(7) == 10


class Beginnings:
    """Notes how long loops took to begin, and decides nothing."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def began(self, seconds: float) -> None:
        self.seconds.append(seconds)


def test_a_watch_tells_once_how_long_its_loop_took_to_begin() -> None:
    now, beginnings = 100.0, Beginnings()
    watch = LoopWatch(beginnings, (), {}, dict, (0, 1), Span(7, 100, has_until=False), lambda: now)
    now = 101.0  # news come after two iterations of 0.1 s
    watch.advanced(9, 0.1)
    now = 103.0
    watch.advanced(20, 0.1)
    assert beginnings.seconds == [pytest.approx(0.8)]


def test_no_change_is_expected_to_cost_less_than_its_loop_took_to_begin() -> None:
    costs = LearnedCosts()
    costs.at_least(0.7)
    assert costs.now.fixed_seconds == 0.7
    costs.learn(0.9, 0)
    costs.at_least(0.001)
    assert 0.03 < costs.now.fixed_seconds < 0.9


def test_what_an_iteration_takes_is_counted_from_the_last_change_of_the_times_on() -> None:
    known = GroupState(policy_named("auto"))
    known.loads = BlockLoads(profile_of([10] * 100))
    known.loads.begin(Cuts((0, 50, 100), (0, 1)), 1e-3, 0.0)
    watch = LoopWatch(Beginnings(), (), {}, dict, (0, 1), Span(0, 100, has_until=False))
    assert watch.iteration_seconds(known) == 0.0
    for number in range(1, 13):
        slow = 0.2 * (number > 10)
        known.loads.add(0, number, 1, {0: 0.1 + slow})
        known.loads.add(1, number, 1, {1: 0.1})
        watch.advanced(number, 0.12 + slow)
        assert watch.iteration_seconds(known) == pytest.approx(0.32 if number == 12 else 0.12)


def test_costs_follow_what_changes_took() -> None:
    costs = LearnedCosts()
    for _ in range(20):
        costs.learn(0.2, 0)
    assert costs.now.fixed_seconds == pytest.approx(0.2, rel=0.01)
    for _ in range(20):
        costs.learn(0.2 + 10.0, 10**9)
    assert costs.now.bytes_per_second == pytest.approx(10**8, rel=0.01)
    assert costs.now.seconds(10**9) == pytest.approx(10.2, rel=0.01)


def test_interpreted_arrays_have_no_cuts(sessions: Callable[..., mn.session.Session]) -> None:
    sessions(engine="interpret")
    x = mn.repartition(mn.asarray(B), 2)
    mn.align(x, x + 1)
    np.testing.assert_array_equal(x.compute(), B)


def test_without_a_session_the_history_is_empty() -> None:
    mn.stop()
    assert len(mn.history()) == 0
    assert mn.active_session() is None

"""Policies over simulated loops: they converge, let noise be, follow a worker's speed, and pay."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_loops import Simulated, equal_rows, profile_of, skewed
from simulated_loops import four_blocks as situation

from matnb.balance.decision import Decision, Gain
from matnb.balance.partition import makespan_of
from matnb.balance.policy import (
    ENTRY_SECONDS,
    ROW_SECONDS,
    Automatic,
    ByEntries,
    LearningPolicy,
    Off,
    Policy,
    Presto,
    counted_seconds,
    policy_named,
)
from matnb.balance.situation import Costs, Situation
from matnb.blocks.layout import Cuts
from matnb.errors import OptionError
from matnb.pictures.imbalance import imbalance


def even(num_rows: int = 1024) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    return np.full(num_rows, 1_000), np.full(num_rows, 4e-4)


@pytest.mark.parametrize(("workers", "blocks"), [(2, 8), (2, 2), (4, 16), (8, 8)])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_skewed_array_is_balanced_within_four_decisions(workers: int, blocks: int, noise: float) -> None:
    entries, costs = skewed()
    speeds = dict.fromkeys(range(workers), 1.0)
    cuts = equal_rows(len(entries), blocks, workers)
    loop = Simulated(entries, costs, cuts, Automatic(), lambda _: speeds, noise).run()
    assert loop.imbalances[0] > 1.5
    assert 1 <= len(loop.acted) <= 4
    before = np.append(0.0, np.cumsum(costs))
    work = np.diff(before[list(loop.cuts.cuts)])
    assert imbalance(
        {one: float(work[np.array(loop.cuts.owners) == one].sum()) for one in range(workers)}
    ) < (1.1 if noise == 0 else 1.2)


@pytest.mark.parametrize(
    ("noise", "by_worker", "workers", "blocks"),
    [(0.05, True, 2, 2), (0.1, False, 2, 8), (0.2, True, 4, 4), (0.3, False, 4, 16), (0.3, True, 2, 4)],
)
def test_noise_over_even_work_moves_nothing(noise: float, by_worker: bool, workers: int, blocks: int) -> None:
    entries, costs = even()
    for seed in range(3):
        speeds = dict.fromkeys(range(workers), 1.0)
        loop = Simulated(
            entries,
            costs,
            equal_rows(len(entries), blocks, workers),
            Automatic(),
            lambda _, speeds=speeds: speeds,  # type: ignore[misc]
            noise,
            by_worker,
            num_iterations=200,
            seed=seed,
        )
        assert loop.run().acted == []


@pytest.mark.parametrize("blocks", [2, 8])
@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_a_worker_that_something_else_burdens_gets_half_and_then_its_share_again(
    blocks: int, noise: float
) -> None:
    entries, costs = even(4096)

    def speeds(iteration: int) -> Mapping[int, float]:
        return {0: 1.0, 1: 0.5 if 20 <= iteration < 40 else 1.0}

    cuts = equal_rows(len(entries), blocks, 2)
    loop = Simulated(entries, costs, cuts, Automatic(), speeds, noise, num_iterations=80).run()
    assert loop.owned[19] == {0: 2048, 1: 2048}
    shares = [owned[1] / owned[0] for owned in loop.owned]
    assert shares[25] == pytest.approx(0.5, abs=0.06)
    assert shares[39] == pytest.approx(0.5, abs=0.06)
    assert shares[45] == pytest.approx(1.0, abs=0.1)
    assert shares[79] == pytest.approx(1.0, abs=0.1)
    assert 2 <= len(loop.acted) <= 4


def test_a_single_slow_iteration_moves_nothing() -> None:
    entries, costs = even()
    slow = {(12, 1): 10.0, (20, 0): 10.0, (33, 1): 3.0}
    loop = Simulated(entries, costs, equal_rows(1024, 4, 2), Automatic(), noise=0.02, slow=slow).run()
    assert loop.acted == []
    assert max(loop.imbalances) > 1.7


@pytest.mark.parametrize("chance", [0.3, 0.5])
def test_workers_that_wait_now_and_then_for_a_busy_machine_are_hardly_ever_followed(chance: float) -> None:
    # Which of them waited in most of the last few iterations is chance, however long it waited there.
    entries, costs = np.full(1024, 1_000), np.full(1024, 2.8e-6)
    num_acted = 0
    for seed in range(6):
        waits = np.random.default_rng(seed).random((150, 2)) < chance
        slow = {(int(one), int(worker)): 15.0 for one, worker in np.argwhere(waits)}
        cuts = equal_rows(1024, 2, 2)
        loop = Simulated(entries, costs, cuts, Automatic(), noise=0.05, slow=slow, num_iterations=150).run()
        num_acted += len(loop.acted)
    assert num_acted <= 3


def test_a_worker_that_changes_all_the_time_is_not_followed_for_ever() -> None:
    entries, costs = even()

    def speeds(iteration: int) -> Mapping[int, float]:
        return {0: 1.0, 1: 1.0 if iteration // 3 % 2 else 0.5}

    policy = Automatic()
    loop = Simulated(entries, costs, equal_rows(1024, 4, 2), policy, speeds, 0.02, num_iterations=300).run()
    assert len(loop.acted) <= 24


def test_what_would_not_pay_is_not_done() -> None:
    decision = Automatic().decide(situation(num_remaining=1, costs=Costs(0.5, 1e9)))
    assert not decision.acts
    assert decision.reason.startswith("would not pay: moving")
    assert decision.after != decision.before
    assert Automatic().decide(situation(costs=Costs(0.5, 1e9))).acts
    assert Automatic().decide(situation(num_remaining=0)).reason == "at the end: no iterations remain"
    assert not Automatic().decide(situation(costs=Costs(0.03, 1e3))).acts


def test_a_decision_tells_what_it_is_made_of() -> None:
    decision = Automatic().decide(situation())
    assert decision.acts
    assert decision.policy == "auto"
    assert (
        decision.reason
        == "uneven: the slowest worker takes 1.50 times the mean; new cuts save 32% of an iteration"
    )
    assert decision.loads_before == pytest.approx({0: 0.6, 1: 0.2})
    assert decision.imbalance_before == pytest.approx(1.5)
    assert decision.imbalance_after == pytest.approx(1.0, abs=0.05)
    assert decision.saving_seconds == pytest.approx(0.2, abs=0.02)
    assert 0 < decision.moved_bytes < 100 * 16 + 100_000 * 12
    assert (decision.iteration, decision.num_remaining, decision.in_entries) == (10, 40, False)


@pytest.mark.parametrize(
    ("changes", "begin"),
    [
        (
            {"error": 0.2},
            "left as is: the estimated saving (33% of an iteration) is within measurement error (44%)",
        ),
        ({"iteration": 1}, "too early: 1 iteration measured, 2 needed"),
        ({"since_last": 0}, "too early: 0 iterations measured, 2 needed"),
        ({"block_seconds": (0.2, 0.21, 0.2, 0.2)}, "balanced: the slowest worker takes 1.01 times the mean"),
        ({"speeds": {}}, "no workers"),
        ({"cuts": Cuts((0, 0), (0,)), "profile": profile_of([]), "block_seconds": (0.0,)}, "no rows"),
    ],
)
def test_refusals_say_why(changes: Mapping[str, object], begin: str) -> None:
    decision = Automatic().decide(situation(**changes))
    assert not decision.acts
    assert decision.reason.startswith(begin)


def test_before_the_first_run_entries_decide() -> None:
    entries = np.full(100, 10)
    entries[:25] = 400_000
    unknown = situation(
        block_seconds=(),
        iteration=0,
        iteration_seconds=0.0,
        error=0.0,
        profile=profile_of(entries),
        entry_seconds=1e-8,
        costs=Costs(0.01, 1e10),
        num_remaining=100.0,
    )
    decision = Automatic().decide(unknown)
    assert decision.acts
    assert decision.in_entries
    assert decision.loads_before == {0: 10_000_250.0, 1: 500.0}
    assert decision.imbalance_after < 1.1


def test_entries_follow_counts_and_layouts_only() -> None:
    entries = np.full(100, 10)
    entries[:25] = 400_000
    first = situation(
        block_seconds=(),
        iteration=0,
        profile=profile_of(entries),
        num_remaining=1e6,
        entry_seconds=ENTRY_SECONDS,
        row_seconds=ROW_SECONDS,
    )
    slow = replace(
        first,
        speeds={0: 0.1, 1: 3.0},
        costs=Costs(9.0, 1e3),
        entry_seconds=1e-3,
        row_seconds=0.0,
        error=0.5,
        other_seconds={0: 5.0},
        iteration_seconds=1e-9,
        block_seconds=(1.0, 1.0, 1.0, 1.0),
    )
    decision = ByEntries().decide(first)
    assert decision.acts
    assert decision.policy == "entries"
    assert ByEntries().decide(slow) == decision
    assert ByEntries().decide(replace(first, iteration=3)).reason.startswith("entries:")


@pytest.mark.parametrize("policy", [Automatic, ByEntries])
def test_rows_that_are_waited_for_once_more_are_not_heaped_upon_a_worker(policy: type[Policy]) -> None:
    entries = np.full(100, 10)
    entries[:25] = 400_000
    alone = situation(
        block_seconds=(), iteration=0, profile=profile_of(entries), num_remaining=1e6, entry_seconds=2e-9
    )
    assert policy().decide(alone).acts
    decision = policy().decide(replace(alone, apart_row_seconds=1e-3))
    assert not decision.acts
    assert decision.reason.startswith("balanced")
    assert decision.reason.endswith("since all workers also wait for the one with the most rows")
    some = policy().decide(replace(alone, apart_row_seconds=1e-5))
    assert some.acts
    assert some.saving_seconds < policy().decide(alone).saving_seconds


@pytest.mark.parametrize("policy", [Automatic, ByEntries, Presto])
def test_blocks_leave_workers_that_have_gone(policy: type[Policy]) -> None:
    decision = policy().decide(situation(speeds={0: 1.0, 3: 1.0}, num_remaining=1, costs=Costs(99.0, 1.0)))
    assert decision.acts
    assert decision.policy == "workers"
    assert set(decision.after.owners) == {0, 3}


@pytest.mark.parametrize("policy", [Automatic, ByEntries, Presto])
def test_workers_that_came_get_blocks_if_that_pays(policy: type[Policy]) -> None:
    came = situation(
        speeds=dict.fromkeys(range(4), 1.0),
        block_seconds=(0.2,) * 4,
        error=0.5,
        profile=profile_of([99_000] * 100),
    )
    decision = policy().decide(replace(came, num_remaining=1e6))
    assert decision.acts
    assert decision.policy == "workers"
    assert set(decision.after.owners) == {0, 1, 2, 3}
    if policy is not Presto:
        assert not policy().decide(replace(came, num_remaining=1e-6)).acts


def test_a_disappointed_policy_asks_for_more() -> None:
    policy = Automatic()
    assert isinstance(policy, LearningPolicy)
    small = situation(block_seconds=(0.24, 0.24, 0.2, 0.2), error=0.01)
    decision = policy.decide(small)
    assert decision.acts
    policy.brought(decision, Gain({}, 0.1 * decision.saving_seconds, 0.03, 0))
    assert policy.decide(small).reason.startswith("balanced:")
    assert policy.decide(situation(since_last=3)).reason == "too early: 3 iterations measured, 4 needed"
    assert policy.decide(situation(since_last=4)).acts
    assert not policy.decide(replace(small, since_last=15)).acts
    assert policy.decide(replace(small, since_last=16)).acts
    assert policy.decide(situation()).acts
    policy.brought(decision, Gain({}, decision.saving_seconds, 0.03, 0))
    assert policy.decide(small).acts
    policy.brought(decision, Gain({}, math.nan, 0.03, 0))
    assert policy.decide(small).acts
    policy.brought(decision, Gain({0: 0.48, 1: 0.4}, math.nan, 0.03, 0))
    assert not policy.decide(small).acts
    policy.brought(decision, Gain({}, -1.0, 0.03, 0))
    heavy = situation(block_seconds=(9.0, 9.0, 0.0, 0.0))
    assert policy.decide(heavy).acts
    policy.brought(decision, Gain({}, -1.0, 0.03, 0))
    assert policy.decide(heavy).reason.startswith("too often: the gain of 6 repartitions since")
    assert policy.decide(replace(heavy, iteration=90)).acts


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    length = draw(st.integers(1, 60))
    entries = draw(st.lists(st.integers(0, 300_000), min_size=length, max_size=length))
    inner = draw(st.sets(st.integers(1, length - 1), max_size=8)) if length > 1 else set()
    cuts = (0, *sorted(inner), length)
    workers = draw(st.lists(st.integers(0, 9), min_size=1, max_size=5, unique=True))
    owners = sorted(draw(st.sampled_from(range(10))) for _ in cuts[1:])
    seconds = st.floats(0, 10)
    measured = draw(st.booleans())
    return situation(
        cuts=Cuts(cuts, tuple(owners)),
        profile=profile_of(entries),
        block_seconds=tuple(draw(seconds) for _ in owners) if measured else (),
        error=draw(st.floats(0, 0.5)),
        speeds={worker: draw(st.floats(0.1, 3)) for worker in workers},
        threads=draw(st.integers(1, 3)),
        entry_seconds=draw(st.just(0.0) | st.floats(1e-12, 1e-6)),
        row_seconds=draw(st.just(0.0) | st.floats(1e-12, 1e-6)),
        iteration=draw(st.integers(0, 9)),
        since_last=draw(st.integers(-1, 9)),
        num_remaining=draw(st.floats(0, 1e6) | st.just(math.inf)),
        iteration_seconds=draw(seconds),
        costs=Costs(draw(st.floats(1e-4, 1)), draw(st.floats(1e3, 1e10))),
        other_seconds={worker: draw(st.floats(0, 1)) for worker in workers[:1]},
    )


def assert_valid(decision: Decision, before: Situation) -> None:
    cuts, owners = decision.after.cuts, decision.after.owners
    assert (cuts[0], cuts[-1]) == (0, before.profile.length)
    assert all(low < high for low, high in pairwise(cuts))
    assert len(owners) == len(cuts) - 1
    assert list(owners) == sorted(owners)
    assert set(owners) <= set(before.speeds)
    assert decision.after != decision.before


@given(situations())
@settings(max_examples=60)
def test_what_is_acted_upon_is_valid_and_pays(before: Situation) -> None:
    for policy in (Automatic(), ByEntries(), Presto(), Off()):
        decision = policy.decide(before)
        assert decision == policy.decide(before)
        assert decision.reason
        assert decision.before == before.cuts
        if decision.acts:
            assert_valid(decision, before)
            gone = set(before.cuts.owners) - set(before.speeds)
            if not gone and not isinstance(policy, Presto):
                assert decision.saving_seconds * decision.num_remaining > decision.cost_seconds
    assert not Off().decide(before).acts


def test_no_more_is_saved_than_an_iteration_takes() -> None:
    assert Automatic().decide(situation(iteration_seconds=0.125)).saving_seconds == 0.125


def test_policies_have_names() -> None:
    for name in ("auto", "entries", "presto", "off"):
        assert policy_named(name).name == name
        assert policy_named(name) is not policy_named(name)
    with pytest.raises(OptionError, match="no policy 'fast'; there are 'auto', 'entries', 'presto', 'off'"):
        policy_named("fast")


def test_the_cuts_that_are_best_are_kept() -> None:
    found = Automatic().decide(situation())
    work = makespan_of(situation(), found.after)
    again = situation(
        cuts=found.after,
        block_seconds=tuple(work / 2 for _ in found.after.owners),
        since_last=5,
    )
    assert not Automatic().decide(again).acts


@pytest.mark.parametrize(("iteration", "begin"), [(1, "too early: "), (10, "balanced: ")])
def test_a_worker_that_came_and_would_get_nothing_leaves_all_as_it_is(iteration: int, begin: str) -> None:
    few = situation(
        cuts=Cuts((0, 1), (0,)), profile=profile_of([100]), block_seconds=(0.2,), iteration=iteration
    )
    decision = Automatic().decide(few)
    assert not decision.acts
    assert decision.reason.startswith(begin)


def test_another_loop_begins_with_no_recuts() -> None:
    policy = Automatic()
    decision = policy.decide(situation())
    for _ in range(6):
        policy.brought(decision, Gain({}, decision.saving_seconds, 0.03, 0))
    assert policy.decide(situation()).reason.startswith("too often: ")
    policy.brought(replace(decision, iteration=2), Gain({}, decision.saving_seconds, 0.03, 0))
    assert policy.decide(situation()).acts


def test_what_workers_that_came_or_went_brought_is_no_disappointment() -> None:
    policy = Automatic()
    small = situation(block_seconds=(0.24, 0.24, 0.2, 0.2), error=0.01)
    decision = policy.decide(small)
    policy.brought(replace(decision, policy="workers"), Gain({}, -1.0, 0.03, 0))
    assert policy.decide(small).acts
    policy.brought(decision, Gain({}, -1.0, 0.03, 0))
    assert not policy.decide(small).acts


def test_what_is_saved_exceeds_its_cost_by_half() -> None:
    pays = Automatic().decide(situation())
    enough = 1.5 * pays.cost_seconds / pays.saving_seconds
    assert Automatic().decide(situation(num_remaining=enough * 1.01)).acts
    refused = Automatic().decide(situation(num_remaining=enough * 0.99))
    assert not refused.acts
    assert refused.reason.startswith("would not pay: ")


def test_counted_seconds_follow_how_often_entries_are_worked_on_and_the_bytes_beside() -> None:
    entry, row, apart = counted_seconds(3, 80, 160)
    assert entry == 3 * ENTRY_SECONDS
    assert row == pytest.approx(3 * ROW_SECONDS + 4 * ENTRY_SECONDS)
    assert apart == pytest.approx(8 * ENTRY_SECONDS)

"""A trace's decisions come again in order, at their iterations; policies are tried on recorded times."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_replay import replay_policy, seconds_under

from matnb.balance.decision import Decision, HistoryItem
from matnb.balance.history import History
from matnb.balance.policy import Foreseer, Replay, policy_named
from matnb.balance.situation import Costs, Profile, Situation
from matnb.balance.trace import Trace
from matnb.blocks.layout import Cuts

EVEN, BETTER, BEST = (Cuts((0, place, 1000), (0, 1)) for place in (500, 300, 200))


def decision(after=BETTER, iteration=0, name="A", acts=True, reason="uneven: 1.62"):
    loads = ({0: 3.0, 1: 1.0}, {0: 2.0, 1: 2.0})
    costs = (0.1, 9.0, 0.05, 10)
    return Decision(name, "auto", acts, reason, EVEN, after, "segmented", *loads, (), *costs, iteration)


def situation(iteration=0, cuts=EVEN, name="A", workers=(0, 1)):
    return Situation(
        name=name,
        cuts=cuts,
        profile=Profile(np.array([0, 200, 1000]), np.array([0, 8000, 16000])),
        row_bytes=8.0,
        entry_bytes=12.0,
        block_seconds=(),
        error=0.0,
        speeds=dict.fromkeys(workers, 1.0),
        threads=1,
        entry_seconds=1e-5,
        row_seconds=1e-7,
        iteration=iteration,
        num_remaining=100.0 - iteration,
        iteration_seconds=0.1,
        costs=Costs(0.001, 1e9),
    )


def replayed(*decisions):
    return Replay(Trace(tuple(HistoryItem(number, one) for number, one in enumerate(decisions))))


def test_decisions_come_at_their_iterations_in_order():
    policy = replayed(
        decision(acts=False), decision(BETTER, 0), decision(acts=False, iteration=9), decision(BEST, 12)
    )
    cuts, told = EVEN, []
    for iteration in (0, 4, 11, 14, 15):
        told.append(policy.decide(situation(iteration, cuts)))
        cuts = told[-1].after
    assert [one.acts for one in told] == [True, False, False, True, False]
    assert [one.after for one in told if one.acts] == [BETTER, BEST]
    assert told[1].reason == "not yet: the trace repartitions A after iteration 12"
    assert told[4].reason.startswith("the trace has ended")
    assert all(one.policy == "replay" for one in told)
    assert told[3].iteration == 14


def test_what_is_for_a_later_loop_waits_for_it():
    policy = replayed(decision(BETTER, 5), decision(BEST, 3), decision(EVEN, 0), decision(BETTER, 0))
    asked = [0, 4, 6, 7, 0, 2, 8, 9, 0, 1, 0]
    cuts, acted = EVEN, []
    for iteration in asked:
        done = policy.decide(situation(iteration, cuts))
        cuts = done.after
        acted.append(done.acts)
    assert [iteration for iteration, acts in zip(asked, acted, strict=True) if acts] == [6, 8, 0, 0]


def test_a_decision_is_told_again_until_it_is_done_but_not_for_ever():
    policy = replayed(decision(BETTER, 5), decision(BEST, 9), decision(EVEN, 12))
    assert [policy.decide(situation(iteration)).after for iteration in (5, 6)] == [BETTER, BETTER]
    assert policy.decide(situation(7, BETTER)).reason.endswith("after iteration 9")
    assert [policy.decide(situation(iteration, BETTER)).after for iteration in (9, 9)] == [BEST, BEST]
    assert not policy.decide(situation(10, BETTER)).acts  # it was not done, as for lack of room
    assert policy.decide(situation(12, BETTER)).after == EVEN


def test_a_decision_that_was_not_done_in_its_loop_is_left_out():
    policy = replayed(decision(BETTER, 5), decision(BEST, 3))
    assert policy.decide(situation(6)).after == BETTER
    assert not policy.decide(situation(0)).acts
    assert policy.decide(situation(4)).after == BEST


def test_one_before_the_first_iteration_is_not_caught_up_with_later():
    policy = replayed(decision(BETTER, 0))
    assert not policy.decide(situation(3)).acts
    assert policy.decide(situation(0)).acts


def test_it_says_beforehand_when_it_acts_next():
    policy = replayed(decision(BETTER, 0), decision(BEST, 5), decision(EVEN, 9), decision(BETTER, 4))
    assert isinstance(policy, Foreseer)
    cuts, found, iteration = EVEN, [], 0.0
    for _ in range(2):
        while math.isfinite(iteration):
            told = policy.decide(situation(int(iteration), cuts))
            cuts = told.after
            found.append((iteration, told.acts))
            iteration = policy.next_iteration(situation(int(iteration), cuts))
        iteration = 0.0  # another loop
    assert found == [(0, True), (5, True), (9, True), (0, False), (4, True)]


def test_what_was_told_once_and_not_done_stops_no_loop_again():
    policy = replayed(decision(BETTER, 5), decision(BEST, 9))
    assert policy.next_iteration(situation(0)) == 5
    assert policy.decide(situation(5)).acts  # and is refused, as for lack of room
    assert policy.next_iteration(situation(5)) == 9
    assert policy.next_iteration(situation(9)) == 10  # it is overdue
    assert policy.next_iteration(situation(3, name="B", cuts=Cuts((0, 7), (0,)))) == math.inf


def test_what_is_cut_so_already_holds_up_nothing():
    policy = replayed(decision(EVEN, 3), decision(BEST, 4))
    assert policy.decide(situation(8)).after == BEST


def test_what_a_person_asked_for_is_asked_for_again():
    asked = replace(decision(BEST, 0), policy="asked")
    assert replayed(asked, decision(BETTER, 0)).decide(situation(0)).after == BETTER
    assert not replayed(asked).decide(situation(0)).acts


def test_names_are_kept_apart():
    policy = replayed(decision(BETTER, 2, "A"), decision(BEST, 1, "B, x"), decision(acts=False, name="C"))
    assert policy.decide(situation(1, name="B, x")).after == BEST
    assert not policy.decide(situation(1, name="A")).acts
    assert policy.decide(situation(1, name="C")).reason.startswith("the trace has ended")
    assert policy.decide(situation(1, name="D")).reason == (
        'not in the trace: it knows groups "A", "B, x", "C", and none is called "D"'
    )


def test_a_trace_of_one_group_serves_one_of_another_name_and_as_many_rows():
    policy = replayed(decision(BETTER, 0), decision(BEST, 3))
    short = policy.decide(situation(name="B", cuts=Cuts((0, 400, 900), (0, 1))))
    assert short.reason == 'not in the trace: it knows the group "A" of 1,000 rows only, and "B" has 900'
    first = policy.decide(situation(name="C"))
    assert (first.name, first.after) == ("C", BETTER)
    assert policy.decide(situation(4, BETTER, "C")).after == BEST
    other = policy.decide(situation(name="D"))
    assert not other.acts
    assert other.reason == 'not in the trace: it knows groups "A" (here "C"), and none is called "D"'


def test_a_trace_of_one_group_is_for_its_own_name_first_and_of_two_for_no_other():
    policy = replayed(decision(BETTER, 0))
    assert policy.decide(situation(name="A")).acts
    assert not policy.decide(situation(name="B")).acts
    assert not replayed(decision(BETTER), decision(BEST, name="B")).decide(situation(name="C")).acts


def test_a_group_of_the_traces_own_name_gets_all_decisions_though_another_asked_before():
    policy = replayed(decision(BETTER, 0), decision(BEST, 3))
    assert policy.decide(situation(name="B")).acts
    assert not policy.decide(situation(4, BETTER, name="C")).acts
    assert policy.decide(situation(name="A")).after == BETTER
    assert policy.decide(situation(4, BETTER, name="A")).after == BEST
    other = policy.decide(situation(5, BETTER, name="B"))
    assert other.reason == 'not in the trace: it knows groups "A", and none is called "B"'


def test_a_trace_of_nothing_says_so():
    assert replayed().decide(situation()).reason == "not in the trace: it has no decisions"


@pytest.mark.parametrize(
    ("workers", "owners"),
    [((0, 1), (0, 1)), ((4, 7), (4, 7)), ((2, 5, 6), (2, 5)), ((0, 1, 2), (0, 1)), ((1, 2), (1, 2))],
)
def test_other_workers_take_the_places_of_those_in_the_trace(workers, owners):
    done = replayed(decision()).decide(situation(workers=workers, cuts=Cuts((0, 1000), (workers[0],))))
    assert done.acts
    assert done.after == Cuts(BETTER.cuts, owners)
    assert done.loads_after == dict.fromkeys(owners, 2.0)


def test_too_few_workers_another_length_and_the_same_cuts_are_refused_with_the_reason():
    few = replayed(decision()).decide(situation(workers=(3,)))
    assert few.reason == "too few workers: the trace lays out over 2, there are 1 now"
    assert few.after == few.before == EVEN
    other = replayed(decision()).decide(situation(cuts=Cuts((0, 400, 900), (0, 1))))
    assert other.reason == "does not fit: the trace cuts 1000 rows, A has 900"
    same = replayed(decision()).decide(situation(cuts=BETTER))
    assert same.reason == "already cut as the trace says"
    assert [one.acts for one in (few, other, same)] == [False] * 3


def test_a_replay_of_a_replay_says_so_once():
    first = replayed(decision()).decide(situation())
    again = replayed(first).decide(situation())
    assert again.reason == first.reason == "replayed: uneven: 1.62"


# policies over recorded times


@dataclass
class Once:
    """Re-cuts when it is asked for the ``at``-th time, and notes what it saw."""

    at: int
    after: Cuts = BEST
    name: str = "once"
    seen: list[Situation] = field(default_factory=list)

    def decide(self, situation: Situation) -> Decision:
        self.seen.append(situation)
        acts = len(self.seen) == self.at
        return replace(decision(self.after if acts else situation.cuts, situation.iteration, acts=acts))


def recorded(*rows, cuts=EVEN, history=None):
    """Record what two workers take, in seconds by iteration."""
    history = history or History()
    for step, row in rows:
        for owner, seconds in enumerate(row):
            history.measured(situation(step, cuts), owner, 1, {owner: seconds})
    return history


def test_a_policy_sees_what_was_measured():
    policy = Once(at=99)
    decisions = replay_policy(
        Trace.from_json(recorded((1, (0.3, 0.1)), (2, (0.3, 0.1))).trace().to_json()), policy
    )
    assert len(decisions) == 2
    assert [one.iteration for one in policy.seen] == [1, 2]
    assert policy.seen[1].block_seconds == pytest.approx((0.3, 0.1))
    assert policy.seen[1].cuts == EVEN
    assert policy.seen[1].num_remaining == 98


def test_after_a_re_cut_the_times_that_follow_are_those_of_the_new_blocks():
    after = Cuts((0, 200, 600, 1000), (0, 1, 1))
    policy = Once(at=3, after=after)
    rows = [(step, (0.110, 0.050)) for step in range(1, 6)]
    replay_policy(recorded(*rows).trace(), policy)
    seen = policy.seen[3]
    assert seen.cuts == after
    # The first block holds 8,000 of the 11,000 entries of the first one before.
    expected = (0.110 * 8 / 11, 0.110 * 3 / 11 + 0.050 / 5, 0.050 * 4 / 5)
    assert seen.block_seconds == pytest.approx(expected, rel=0.01)
    assert seen.since_last >= 1


def test_a_recorded_re_cut_is_undone_for_a_policy_that_did_not_want_it():
    history = recorded((1, (0.11, 0.05)))
    recorded((2, (0.08, 0.08)), (3, (0.08, 0.08)), (4, (0.08, 0.08)), cuts=BEST, history=history)
    policy = Once(at=99)
    replay_policy(history.trace(), policy)
    assert {one.cuts for one in policy.seen} == {EVEN}
    assert policy.seen[-1].block_seconds == pytest.approx((0.11, 0.05), rel=0.05)


def test_the_automatic_policy_re_cuts_uneven_times_and_leaves_even_ones():
    uneven = recorded(*((step, (0.11, 0.05)) for step in range(1, 12))).trace()
    acted = [one for one in replay_policy(uneven, policy_named("auto")) if one.acts]
    assert len(acted) == 1
    assert acted[0].after.cuts[1] < 500
    even = recorded(*((step, (0.08, 0.08)) for step in range(1, 12))).trace()
    assert not any(one.acts for one in replay_policy(even, policy_named("auto")))


places = st.sets(st.integers(1, 999), max_size=5).map(lambda inner: (0, *sorted(inner), 1000))


@given(st.data())
def test_seconds_are_conserved_whatever_the_cuts(data):
    old, new = (
        Cuts(cuts, tuple(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))))
        for cuts in data.draw(st.tuples(places, places))
        for n in (len(cuts) - 1,)
    )
    seconds = st.lists(st.floats(0, 10), min_size=old.num_blocks, max_size=old.num_blocks).map(tuple)
    measured = data.draw(seconds)
    speeds = {0: 1.0, 1: 0.5, 2: 2.0}
    now = replace(situation(cuts=old), speeds=speeds)
    found = seconds_under(new, now, measured)
    assert len(found) == new.num_blocks
    assert min(found) >= 0

    def usual(layout, blocks):
        return sum(speeds[owner] * one for owner, one in zip(layout.owners, blocks, strict=True))

    assert usual(new, found) == pytest.approx(usual(old, measured), abs=1e-9)
    assert seconds_under(old, now, measured) == measured

"""What other cuts would save and cost, and how sure that must be."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_loops import four_blocks as situation
from simulated_loops import profile_of

from matnb.balance.decision import certain_error, changed, kept, least_makespan, may_pay
from matnb.balance.partition import COPY_RATE, loads_of, makespan_of, moved
from matnb.balance.policy import Automatic, ByEntries
from matnb.balance.situation import Costs
from matnb.blocks.layout import Cuts


@pytest.mark.parametrize(
    ("speeds", "threads", "apart", "least"),
    [
        ({0: 1.0, 1: 1.0}, 1, 0.0, 0.4),
        ({0: 1.0, 1: 3.0}, 1, 0.0, (0.6 + 3 * 0.2) / 4),  # what a quick one did in 0.2 s is more work
        ({0: 1.0, 1: 1.0}, 2, 0.0, 0.2),
        ({0: 1.0, 1: 1.0}, 1, 0.001, (0.8 + 100 * 0.001) / 2),
        ({0: 1.0}, 1, 0.0, 0.8),  # the other has gone
    ],
)
def test_the_least_makespan_shares_all_work(
    speeds: dict[int, float], threads: int, apart: float, least: float
) -> None:
    now = situation(speeds=speeds, threads=threads, apart_row_seconds=apart)
    assert least_makespan(now, {0: 0.6, 1: 0.2}) == pytest.approx(least)


def test_rows_in_phases_of_their_own_are_shared_by_a_workers_threads() -> None:
    now = situation(speeds={0: 1.0, 1: 2.0}, threads=1, row_seconds=0.0)
    for threads, most_rows in ((1, 50), (2, 25)):
        alone = replace(now, threads=threads)
        apart = replace(alone, apart_row_seconds=1.0)
        assert makespan_of(apart, now.cuts) - makespan_of(alone, now.cuts) == pytest.approx(most_rows)


@given(st.lists(st.floats(0, 9), min_size=4, max_size=4), st.floats(0.1, 3), st.integers(0, 3))
def test_no_cuts_take_less_than_the_least_makespan(seconds: list[float], speed: float, shift: int) -> None:
    now = situation(block_seconds=tuple(seconds), speeds={0: 1.0, 1: speed}, row_seconds=0.0)
    least = least_makespan(now, loads_of(now, now.cuts))
    owners = tuple(int(block > shift) for block in range(4))
    for cuts in (now.cuts, Cuts(now.cuts.cuts, owners)):
        assert makespan_of(now, cuts) >= least * (1 - 1e-9)


@given(
    st.lists(st.floats(0, 0.1), min_size=4, max_size=4),
    st.floats(0.1, 3),
    st.floats(0, 300),
    st.floats(0, 0.5),
    st.booleans(),
)
def test_nobody_acts_where_it_cannot_pay(
    seconds: list[float], speed: float, remaining: float, fixed: float, is_measured: bool
) -> None:
    now = situation(
        block_seconds=tuple(seconds) if is_measured else (),
        speeds={0: 1.0, 1: speed},
        num_remaining=remaining,
        costs=Costs(fixed, 1e9),
        iteration=9 if is_measured else 0,
    )
    for policy in (Automatic(), ByEntries()):
        if policy.decide(now).acts:
            assert may_pay(now)


def test_workers_that_come_or_go_may_always_pay() -> None:
    assert may_pay(situation(num_remaining=0.0, speeds={0: 1.0}))
    assert may_pay(situation(num_remaining=0.0, speeds={0: 1.0, 1: 1.0, 2: 1.0}))
    assert not may_pay(situation(num_remaining=0.0))


def test_what_soon_pays_needs_to_be_less_certain() -> None:
    now, two = situation(error=0.02), math.sqrt(2 * math.log(2))
    assert certain_error(now, 0.2, 0.99) == pytest.approx(0.02 * (1 + two))
    assert certain_error(now, 0.2, 1.0) == pytest.approx(0.02 * (2 + two))
    assert certain_error(replace(now, threads=3), 0.2, 0.99) == pytest.approx(
        0.02 * (1 + math.sqrt(2 * math.log(6)))
    )
    alone = replace(now, speeds={0: 1.0})
    assert certain_error(alone, 0.2, 0.99) == pytest.approx(0.02 * (1 + two))
    assert certain_error(replace(now, block_seconds=()), 0.2, 99.0) == 0.0  # entries are what they are


def test_what_is_kept_saves_costs_and_moves_nothing() -> None:
    found = kept(situation(), "auto", "why")
    assert (found.acts, found.saving_seconds, found.cost_seconds, found.moved_bytes) == (False, 0.0, 0.0, 0)
    assert found.loads_before == found.loads_after == pytest.approx({0: 0.6, 1: 0.2})
    assert kept(situation(), "auto", "why", {0: 3.0, 1: 4.0}).loads_before == {0: 3.0, 1: 4.0}
    unmeasured = situation(block_seconds=(), profile=profile_of([3] * 50 + [1] * 50), speeds={0: 1.0, 7: 1.0})
    found = kept(unmeasured, "auto", "why", {0: 3.0, 1: 4.0})  # such seconds were not measured
    assert found.in_entries
    assert found.loads_before == {0: 150.0, 1: 50.0, 7: 0.0}


def test_a_change_costs_its_bytes_and_its_copies() -> None:
    now = situation(costs=Costs(0.03, 1e6))
    after = Cuts((0, 33, 66, 100), (0, 1, 1))
    moved_bytes, copied_bytes = moved(now, after)
    assert moved_bytes > 0
    assert copied_bytes > 0
    found = changed(now, "auto", "why", after, "segmented")
    assert found.moved_bytes == moved_bytes
    assert found.cost_seconds == pytest.approx(0.03 + (moved_bytes + copied_bytes / COPY_RATE) / 1e6)
    assert found.saving_seconds == pytest.approx(makespan_of(now, now.cuts) - makespan_of(now, after))
    assert (
        changed(replace(now, iteration_seconds=0.01), "auto", "", after, "segmented").saving_seconds == 0.01
    )

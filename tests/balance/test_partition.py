"""Cuts follow entries or measured seconds, heavy rows are shared where that pays, and moving is counted."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from situations import ENTRY_SECONDS, any_cuts, situation_of

from matnb.balance.partition import (
    STEP_SECONDS,
    TASK_SECONDS,
    cuts_for,
    loads_of,
    makespan,
    makespan_of,
    moved,
    shared_blocks,
    work_of,
)
from matnb.balance.situation import Profile
from matnb.blocks.grid import Grid, regular_cuts
from matnb.blocks.kernels.products.split_rows import SHARED_ENTRIES
from matnb.blocks.layout import LARGE_BYTES, Cuts, Layout


@given(st.data())
def test_measured_blocks_are_spread_over_their_rows_by_entries_and_rows(data):
    rows = data.draw(st.lists(st.integers(0, 50), min_size=2, max_size=12))
    inner = data.draw(st.sets(st.integers(1, len(rows) - 1), max_size=3))
    cuts = (0, *sorted(inner), len(rows))
    seconds = tuple(data.draw(st.floats(0.01, 2.0)) for _ in cuts[1:])
    speeds = {0: 1.0, 1: 0.5}
    situation = situation_of(rows, cuts, block_seconds=seconds, speeds=speeds, can_split_rows=False)
    work = work_of(situation)
    held = np.diff(work.up_to(range(len(rows) + 1)))
    counted = np.asarray(rows) + 4.0
    for block, (start, stop) in enumerate(situation.cuts.ranges()):
        # Half a worker's second is half a second of work.
        usual = seconds[block] * speeds[situation.cuts.owners[block]]
        part = counted[start:stop] / counted[start:stop].sum()
        np.testing.assert_allclose(held[start:stop], usual * part, rtol=1e-9, atol=1e-12)


def test_before_anything_is_measured_entries_and_rows_are_the_work():
    work = work_of(situation_of([5, 0, 7], (0, 3), (0,)))
    np.testing.assert_allclose(np.diff(work.up_to(range(4))), np.asarray([9, 4, 11]) * ENTRY_SECONDS)


def test_blocks_in_which_nothing_is_counted_are_spread_over_their_rows():
    situation = situation_of([0, 0, 0, 6], (0, 3, 4), row_seconds=0.0, block_seconds=(3.0, 1.0))
    np.testing.assert_allclose(np.diff(work_of(situation).up_to(range(5))), 1.0)
    situation = situation_of([0, 0, 0, 0], (0, 3, 4), row_seconds=0.0)
    assert cuts_for(situation)[0].cuts == (0, 2, 4)


sizes = st.sampled_from([0.0, 5e-324, 1e-310, 2e-9, 1.0, 1e300, 1.7e308]) | st.floats(0, 1.7e308)


@given(st.lists(st.integers(0, 2**52), min_size=2, max_size=6), sizes, sizes, st.booleans(), st.data())
def test_the_work_is_finite_whatever_the_model_says(rows, entry_seconds, row_seconds, measured, data):
    cuts, taken = (0, 1, len(rows)), st.floats(0, 1e100) | st.sampled_from([5e-324, 1e-310])
    seconds = data.draw(st.tuples(taken, taken)) if measured else ()
    situation = situation_of(rows, cuts, block_seconds=seconds)
    situation = replace(situation, entry_seconds=entry_seconds, row_seconds=row_seconds)
    work = work_of(situation)
    assert np.isfinite(work.before).all()
    assert (np.diff(work.before) >= 0).all()
    assert 0 < cuts_for(situation)[0].cuts[1] <= len(rows)
    if measured:
        np.testing.assert_allclose(
            np.diff(work.up_to(cuts)), seconds, rtol=1e-9, atol=work.total * 1e-9 + 1e-300
        )


# --- cuts for a situation


def power_law(length, seed=0, most=10**5):
    drawn = np.random.default_rng(seed).pareto(1.3, length) * 20
    return np.sort(np.minimum(drawn, most).astype(np.int64))[::-1]


@pytest.mark.parametrize(("workers", "threads"), [(1, 4), (2, 1), (2, 2), (5, 3)])
def test_skewed_rows_in_equal_parts_are_cut_evenly(workers, threads):
    rows = power_law(20_000, most=2000)
    slots = workers * threads
    situation = situation_of(rows, regular_cuts(len(rows), 8), workers=workers, threads=threads)
    cuts, strategy, loads = cuts_for(situation)
    assert strategy == "segmented"
    assert cuts.owners == tuple(np.repeat(range(workers), threads).tolist())
    assert loads == loads_of(situation, cuts)
    total = work_of(situation).total
    assert max(loads.values()) < 1.02 * total / workers
    assert makespan_of(situation, cuts) - TASK_SECONDS < 1.02 * total / slots
    assert sum(loads.values()) == pytest.approx(total)


def test_a_slow_and_a_busy_worker_get_less():
    rows, cuts = [100] * 9000, (0, 3000, 6000, 9000)
    situation = situation_of(
        rows, cuts, workers=3, block_seconds=(1.0, 2.0, 1.0), speeds={0: 1, 1: 0.5, 2: 1}
    )
    found, _, loads = cuts_for(situation)
    assert np.diff(found.cuts) / 9000 == pytest.approx([0.4, 0.2, 0.4], abs=0.01)
    assert max(loads.values()) <= 1.2 * 1.0101
    situation = replace(
        situation, block_seconds=(1.0, 1.0, 1.0), speeds={0: 1.0, 1: 1.0, 2: 1.0}, other_seconds={2: 0.6}
    )
    found, _, loads = cuts_for(situation)
    assert np.diff(found.cuts) / 9000 == pytest.approx([0.4, 0.4, 0.2], abs=0.01)
    assert max(loads.values()) <= 1.2 * 1.0101
    assert sum(loads.values()) == pytest.approx(3.6)


def test_cuts_that_are_fine_are_kept():
    rows = [100] * 10_000
    for cuts, owners, seconds in (
        ((0, 5040, 10_000), (0, 1), (0.504, 0.496)),
        ((0, 2500, 5000, 10_000), (0, 0, 1), (0.25, 0.25, 0.5)),
    ):
        situation = situation_of(rows, cuts, owners, block_seconds=seconds)
        assert cuts_for(situation)[0] is situation.cuts


def test_cuts_move_no_further_than_is_needed():
    situation = situation_of([100] * 10_000, (0, 2000, 10_000), block_seconds=(0.2, 0.8))
    found = cuts_for(situation)[0]
    assert found.owners == (0, 0, 1)
    assert found.cuts[1] == 2000
    assert 4940 <= found.cuts[2] < 4960  # and not 5000


def test_a_part_begins_with_a_block_where_one_begins_nearby():
    rows = [400] * 2500 + [130] * 7500  # half of the work is before row 2494
    situation = situation_of(rows, range(0, 10_001, 1250), num_remaining=5.0)
    found = cuts_for(situation)[0]
    assert found.cuts == situation.cuts.cuts
    assert found.owners == (0, 0, 1, 1, 1, 1, 1, 1)
    assert cuts_for(replace(situation, num_remaining=1e6))[0].num_blocks == 2


def test_blocks_are_merged_where_enough_iterations_follow():
    rows = [400] * 3000 + [100] * 7000
    situation = situation_of(rows, range(0, 10_001, 1250))
    few, many = (cuts_for(replace(situation, num_remaining=number))[0] for number in (5.0, 1e6))
    assert many.num_blocks == 2
    assert set(few.cuts) == {*situation.cuts.cuts, many.cuts[1]}
    assert moved(situation, few)[0] == moved(situation, many)[0]
    assert moved(situation, few)[1] < moved(situation, many)[1] / 3
    assert cuts_for(replace(situation, num_remaining=math.inf))[0] == many
    # Small blocks cost more in each iteration than it takes to merge them.
    assert cuts_for(situation_of(rows, range(0, 10_001, 50)))[0].num_blocks == 2


def test_a_worker_keeps_its_first_row_and_cuts_among_its_own_threads_where_these_are_as_many():
    cuts, owners = (0, 700, 1400, 3980, 5990, 8000), (0, 0, 0, 1, 1)
    seconds = tuple(np.diff(cuts) / 8000)
    situation = situation_of([100] * 8000, cuts, owners, threads=2, block_seconds=seconds)
    assert cuts_for(situation)[0] == Cuts((0, 2000, 3980, 5990, 8000), (0, 0, 1, 1))


def test_many_small_blocks_become_one_a_thread():
    situation = situation_of([10] * 1000, regular_cuts(1000, 50))
    assert cuts_for(situation)[0].num_blocks == 2


def test_blocks_follow_workers_that_came_and_went():
    situation = situation_of([100] * 9000, (0, 4500, 9000), block_seconds=(1.0, 1.0))
    found, _, loads = cuts_for(replace(situation, speeds={0: 1.0, 1: 1.0, 7: 1.0}))
    assert found.owners == (0, 1, 7)
    assert max(loads.values()) < 0.68
    found, _, loads = cuts_for(replace(situation, speeds={1: 1.0}))
    assert found == Cuts((0, 9000), (1,))
    assert loads == pytest.approx({1: 2.0})
    assert loads_of(replace(situation, speeds={1: 1.0}), situation.cuts) == pytest.approx({0: 1.0, 1: 1.0})


def test_fewer_rows_than_slots():
    situation = situation_of([5, 5, 5], (0, 3), (0,), workers=2, threads=2)
    assert cuts_for(situation)[0] == Cuts((0, 1, 2, 3), (0, 0, 1))
    situation = situation_of([5], (0, 1), (0,), workers=2, speeds={0: 1.0, 1: 2.0})
    assert cuts_for(situation)[0] == Cuts((0, 1), (1,))
    situation = situation_of(Profile(np.asarray([0]), np.asarray([0])), (0, 0), (0,))
    assert cuts_for(situation)[0] is situation.cuts


def test_large_blocks_are_cut_further():
    entries = 10**9
    profile = Profile(np.asarray([0, 10**6]), np.asarray([0, entries]))
    situation = situation_of(profile, (0, 10**6), (0,))
    found = cuts_for(situation)[0]
    size = entries * 12.0 + 10**6 * 24.0
    assert size / found.num_blocks <= LARGE_BYTES
    assert found.num_blocks == 2 * -(-size // (2 * LARGE_BYTES))
    assert np.diff(found.cuts).max() * size / 10**6 <= 1.02 * LARGE_BYTES
    assert found.owners == tuple(sorted(found.owners))


# --- heavy rows


def star(row=0, length=40_000, heavy=4_000_000, noise=100):
    rows = np.full(length, noise, np.int64)
    rows[row] = heavy
    return rows


@pytest.mark.parametrize(("workers", "threads"), [(2, 1), (4, 1), (2, 2), (8, 1), (1, 4)])
@pytest.mark.parametrize("row", [0, 17_000, 39_999])
def test_the_work_on_a_row_with_half_of_all_entries_is_shared(workers, threads, row):
    slots = workers * threads
    rows = star(row)
    situation = situation_of(rows, regular_cuts(len(rows), slots), workers=workers, threads=threads)
    situation = replace(situation, entry_seconds=1e-8, row_seconds=4e-8)  # as for several columns
    found, strategy, loads = cuts_for(situation)
    total = work_of(situation).total
    assert makespan_of(situation, found) < 1.1 * total / slots
    assert max(loads.values()) < 1.05 * total / workers
    assert sum(loads.values()) == pytest.approx(total)
    whole = replace(situation, can_split_rows=False)
    best_whole = makespan_of(whole, cuts_for(whole)[0])
    assert best_whole > rows[row] * 1e-8
    assert strategy == ("uniform" if best_whole > 1.1 * total / slots else "segmented")
    starts = np.asarray(found.cuts[:-1])
    assert shared_blocks(situation, found).tolist() == ((starts == row) & (strategy == "uniform")).tolist()


def test_sharing_is_chosen_for_all_rows_that_need_it():
    rows = np.full(30_000, 100)
    rows[[3, 4, 20_000]] = 2_000_000
    situation = situation_of(rows, (0, 15_000, 30_000), workers=4, entry_seconds=1e-8, owners=(0, 1))
    found, strategy, _ = cuts_for(situation)
    assert strategy == "uniform"
    assert shared_blocks(situation, found).sum() == 3
    assert makespan_of(situation, found) < 1.1 * work_of(situation).total / 4


def test_a_slow_worker_gets_fewer_of_the_rows_that_are_not_shared():
    situation = situation_of(
        star(heavy=8_000_000), (0, 20_000, 40_000), entry_seconds=1e-7, speeds={0: 1.0, 1: 0.8}
    )
    found, strategy, loads = cuts_for(situation)
    least = work_of(situation).total / 1.8
    assert strategy == "uniform"
    assert max(loads.values()) < 1.02 * least
    assert makespan_of(situation, found) < 1.05 * least


@pytest.mark.parametrize("row", [0, 9_999])
def test_a_heavy_row_that_fills_a_slot_is_not_alone_where_sharing_it_would_not_pay(row):
    rows = star(row, 10_000, 2 * SHARED_ENTRIES, 2 * SHARED_ENTRIES // 9_999)
    situation = situation_of(rows, (0, max(1, row), 10_000), row_seconds=0.0)
    assert shared_blocks(situation, situation.cuts).any()
    found, strategy, _ = cuts_for(situation)
    assert strategy == "segmented"
    assert makespan_of(situation, found) < 1.01 * work_of(situation).total / 2 + TASK_SECONDS


def test_sharing_is_not_chosen_where_a_second_step_takes_longer():
    rows = star(heavy=SHARED_ENTRIES, noise=5, length=20_000)  # 0.13 ms: less than a round of messages
    situation = situation_of(rows, regular_cuts(len(rows), 2), workers=4, owners=(0, 3))
    found, strategy, _ = cuts_for(situation)
    assert strategy == "segmented"
    assert not shared_blocks(situation, found).any()


def test_rows_below_the_least_that_is_shared_are_not():
    rows = star(heavy=SHARED_ENTRIES - 1, noise=0)
    situation = situation_of(rows, regular_cuts(len(rows), 2), workers=4, owners=(0, 3), entry_seconds=1e-6)
    found, strategy, _ = cuts_for(situation)
    assert (found.num_blocks, strategy) == (4, "segmented")
    enough = situation_of(
        star(heavy=SHARED_ENTRIES, noise=0), (0, len(rows)), (0,), workers=4, entry_seconds=1e-6
    )
    assert cuts_for(enough)[1] == "uniform"
    assert cuts_for(replace(enough, can_split_rows=False))[1] == "segmented"
    assert cuts_for(replace(enough, speeds={0: 1.0}))[1] == "segmented"


def test_seconds_measured_of_a_shared_row_are_spread_over_all_slots():
    rows = star()
    cuts = Cuts((0, 1, 15_000, 40_000), (0, 0, 1))
    speeds = {0: 1.0, 1: 0.5}
    # 4 s of work in halves: 2 s on the one, 4 s on the other, that is half as fast.
    situation = situation_of(rows, cuts.cuts, cuts.owners, block_seconds=(6.0, 1.0, 2.0), speeds=speeds)
    assert work_of(situation).up_to([1, 15_000, 40_000]) == pytest.approx([4.0, 5.0, 6.0])
    assert loads_of(situation, cuts) == pytest.approx({0: 3.0, 1: 6.0})
    assert makespan_of(situation, cuts) == pytest.approx(6.0 + STEP_SECONDS + 2 * TASK_SECONDS)
    assert sum(loads_of(situation, cuts).values()) == pytest.approx(9.0)  # what was measured


# --- what cuts load workers with, and what changing them moves


@given(st.lists(st.integers(0, 20), max_size=9), st.integers(1, 3), st.data())
def test_no_schedule_is_much_better_than_the_longest_first(seconds, threads, data):
    owners = [data.draw(st.integers(0, 2)) for _ in seconds]
    found = makespan(seconds, owners, threads)
    best = 0.0
    for worker in set(owners):
        ones = [one for one, owner in zip(seconds, owners, strict=True) if owner == worker]
        placings = itertools.product(range(threads), repeat=len(ones))
        best = max(best, min(max(np.bincount(placing, ones)) for placing in placings))
    assert best <= found <= best * (4 / 3 - 1 / (3 * threads)) + 1e-9  # Graham 1969


def test_a_schedule_has_the_longest_first():
    assert makespan([1, 1, 2], [0, 0, 0], 2) == 2
    assert makespan([1, 1, 2], [0, 1, 1], 2) == 2
    assert makespan([1, 1, 2], [0, 1, 1], 1) == 3
    assert makespan([], [], 2) == 0.0


@given(st.data())
def test_loads_of_the_present_cuts_are_what_was_measured(data):
    rows = data.draw(st.lists(st.integers(0, 30), min_size=1, max_size=12))
    cuts = data.draw(any_cuts(len(rows)))
    seconds = tuple(data.draw(st.floats(0.01, 2)) for _ in cuts.owners)
    speeds = {worker: data.draw(st.sampled_from([0.5, 1.0, 2.0])) for worker in (0, 1, 2)}
    situation = situation_of(
        rows, cuts.cuts, cuts.owners, block_seconds=seconds, speeds=speeds, other_seconds={1: 0.25}
    )
    expected = dict.fromkeys({0, 1, 2, *cuts.owners}, 0.0) | {1: 0.25}
    for owner, one in zip(cuts.owners, seconds, strict=True):
        expected[owner] += one
    assert loads_of(situation, cuts) == pytest.approx(expected)
    assert makespan_of(situation, cuts) <= max(expected.values()) + cuts.num_blocks * TASK_SECONDS + 1e-9


@given(st.data())
def test_bytes_moved_are_those_of_the_rows_with_another_owner(data):
    rows = data.draw(st.lists(st.integers(0, 30), min_size=1, max_size=12))
    old, new = data.draw(any_cuts(len(rows))), data.draw(any_cuts(len(rows)))
    situation = situation_of(rows, old.cuts, old.owners)
    away = copied = 0
    before, after = (
        [(owner, piece) for piece, owner in zip(one.ranges(), one.owners, strict=True) for _ in range(*piece)]
        for one in (old, new)
    )
    for entries, source, target in zip(rows, before, after, strict=True):
        size = 24 + 12 * entries
        away += size if source[0] != target[0] else 0
        copied += size if source[0] == target[0] and source[1] != target[1] else 0
    assert moved(situation, new) == (away, copied)


@given(st.data())
def test_cuts_for_any_situation_are_a_layout_on_the_workers_there_are(data):
    rows = data.draw(
        st.lists(st.integers(0, 3) | st.integers(0, 3 * SHARED_ENTRIES), min_size=1, max_size=12)
    )
    cuts = data.draw(any_cuts(len(rows)))
    workers = data.draw(st.sets(st.integers(0, 4), min_size=1, max_size=4))
    speeds = {worker: data.draw(st.sampled_from([0.5, 1.0])) for worker in workers}
    measured = data.draw(st.booleans())
    seconds = tuple(data.draw(st.floats(0, 0.01)) for _ in cuts.owners) if measured else ()
    situation = situation_of(
        rows,
        cuts.cuts,
        cuts.owners,
        block_seconds=seconds,
        speeds=speeds,
        threads=data.draw(st.integers(1, 2)),
        can_split_rows=data.draw(st.booleans()),
        apart_row_seconds=0.0 if measured else data.draw(st.sampled_from([0.0, 1e-7, 1e-2])),
    )
    found, strategy, loads = cuts_for(situation)
    assert Layout(Grid((found.cuts,)), found.owners).grid.shape == (len(rows),)
    assert set(found.owners) <= workers
    assert len(set(found.owners)) == min(len(workers), len(rows))
    assert list(found.owners) == sorted(found.owners) or found is situation.cuts
    assert strategy == ("uniform" if shared_blocks(situation, found).any() else "segmented")
    assert loads == pytest.approx(loads_of(situation, found), rel=1e-9)
    if set(cuts.owners) == workers:
        assert makespan_of(situation, found) <= 1.0100001 * makespan_of(situation, cuts) + 1e-9

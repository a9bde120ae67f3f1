"""The cost model finds what samples were made of, and who is slow; block loads follow what workers report."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from matnb.balance import load
from matnb.balance.load import WINDOW, BlockLoads, Fit, KindCost, LoadModel, Sample
from matnb.balance.situation import Profile
from matnb.blocks.layout import Cuts

SIZES = [(200, 1_000), (3_000, 400_000), (900, 50_000), (8_000, 20_000), (2_500, 130_000), (500, 700_000)]


def samples(
    cost: KindCost,
    speeds: Mapping[int, float],
    sizes: Sequence[tuple[int, int]] = SIZES,
    kind: str = "product",
    runs: int = 3,
) -> list[Sample]:
    """Return exact samples of every worker on every size, a few rows apart so that none is alike."""
    return [
        Sample(kind, worker, rows + worker, entries, cost.seconds(rows + worker, entries) / speed)
        for worker, speed in speeds.items()
        for rows, entries in sizes
        for _ in range(runs)
    ]


def fitted(found: Sequence[Sample]) -> Fit:
    model = LoadModel()
    model.add(found)
    return model.fit()


def assert_costs(found: KindCost, wanted: KindCost, within: float) -> None:
    for rows, entries in SIZES:
        assert found.seconds(rows, entries) == pytest.approx(wanted.seconds(rows, entries), rel=within)


@given(
    a=st.floats(1e-10, 1e-8),
    b=st.floats(0, 1e-7),
    c=st.floats(0, 1e-3),
    slow=st.sampled_from([1.0, 0.5, 0.25]),
)
def test_exact_samples_give_the_model_back(a: float, b: float, c: float, slow: float) -> None:
    fit = fitted(samples(KindCost(a, b, c), {0: 1.0, 1: slow, 2: 1.0}))
    assert_costs(fit.kinds["product"], KindCost(a, b, c), 1e-3)
    assert fit.error < 1e-3
    assert fit.speeds[1] == pytest.approx(slow, rel=0.05)
    assert (fit.speeds[0], fit.speeds[2]) == (1.0, 1.0)
    cost = fit.kinds["product"]
    assert min(cost.entry_seconds, cost.row_seconds, cost.constant_seconds) >= 0


def test_interrupted_runs_and_first_calls_change_nothing() -> None:
    cost = KindCost(2e-9, 5e-9, 2e-5)
    found = samples(cost, {0: 1.0, 1: 1.0})
    first = [Sample(one.kind, one.worker, one.rows, one.entries, 30 * one.seconds) for one in found[::3]]
    late = [Sample(one.kind, one.worker, one.rows, one.entries, 10 * one.seconds) for one in found[::9]]
    fit = fitted([*first, *found, *late])
    assert_costs(fit.kinds["product"], cost, 1e-3)
    assert fit.speeds == {0: 1.0, 1: 1.0}


def test_blocks_that_are_off_in_every_run_do_not_bend_the_model() -> None:
    cost = KindCost(2e-9, 5e-9, 2e-5)
    found = samples(cost, {0: 1.0, 1: 1.0})
    off = [
        Sample(one.kind, one.worker, one.rows, one.entries, one.seconds * (8 if one.entries == 50_000 else 1))
        for one in found
    ]
    fit = fitted(off)
    assert fit.kinds["product"].seconds(3_000, 400_000) == pytest.approx(
        cost.seconds(3_000, 400_000), rel=0.05
    )


@pytest.mark.parametrize("factor", [0.125, 8.0])
def test_a_tenth_of_many_blocks_may_be_off_in_every_run(factor: float) -> None:
    rng = np.random.default_rng(7)
    sizes = [(int(rng.integers(100, 9_000)), int(rng.integers(1_000, 900_000))) for _ in range(30)]
    cost = KindCost(2e-9, 5e-9, 2e-5)
    exact = samples(cost, {0: 1.0, 1: 1.0}, sizes, runs=1)
    off = [
        replace(one, seconds=one.seconds * (factor if number % 10 == 0 else 1))
        for number, one in enumerate(exact)
    ]
    found = fitted(off).kinds["product"]
    for size in sizes:
        assert found.seconds(*size) == pytest.approx(cost.seconds(*size), rel=1e-3)


@pytest.mark.parametrize("power", [0.7, 1.3])
def test_no_cost_is_negative_where_seconds_do_not_follow_the_model(power: float) -> None:
    found = [Sample("product", 0, rows, entries, 1e-9 * entries**power) for rows, entries in SIZES]
    cost = fitted(found).kinds["product"]
    assert min(cost.entry_seconds, cost.row_seconds, cost.constant_seconds) >= 0
    assert cost.seconds(10, 100_000) > 0


def test_the_error_is_that_of_the_samples() -> None:
    rng = np.random.default_rng(3)
    sizes = [(int(rng.integers(100, 9_000)), int(rng.integers(1_000, 900_000))) for _ in range(60)]
    exact = samples(KindCost(2e-9, 5e-9, 2e-5), {0: 1.0, 1: 1.0}, sizes, runs=1)
    noisy = [
        Sample(one.kind, one.worker, one.rows, one.entries, one.seconds * math.exp(0.1 * rng.normal()))
        for one in exact
    ]
    assert 0.07 < fitted(noisy).error < 0.13
    assert fitted([]).error == math.inf
    assert fitted(exact[:2]).error >= 0.3


def test_a_slow_worker_is_seen_over_blocks_of_its_own() -> None:
    # No block was ever on another worker; but blocks of about as many entries and rows were.
    cost = KindCost(2e-9, 5e-9, 1e-5)
    found = samples(cost, {0: 1.0}, SIZES[:4]) + samples(cost, {1: 0.5}, [(700, 3_000), (2_800, 300_000)])
    assert fitted(found).speeds[1] == pytest.approx(0.5, abs=0.06)


def test_one_block_each_of_the_same_size_tells_half_of_it() -> None:
    found = [Sample("product", worker, 1_000, 5_000, 1e-3 * (1 + worker)) for worker in (0, 1)]
    assert fitted([*found, found[1]]).speeds == {0: 1.0, 1: 1.0}  # one or two runs may be off by any factor
    speeds = fitted(found * load.LEAST_RUNS).speeds
    assert speeds[0] == 1.0
    assert 0.5 < speeds[1] < 0.7


def test_rows_that_cost_more_than_the_model_says_make_no_worker_slow() -> None:
    # How entries lie in the rows decides as much: half a worker's blocks are heavy, half of them light.
    cost = KindCost(2e-9, 0.0, 0.0)
    found = [
        Sample("product", worker, 100, entries, cost.seconds(100, entries) * factor)
        for worker, factors in {0: (1.5, 1.0, 0.7, 1.0), 1: (1.2, 0.8, 1.3, 1.6)}.items()
        for factor, entries in zip(factors, (1_000, 9_000, 40_000, 200_000), strict=True)
    ]
    assert fitted(found).speeds == {0: 1.0, 1: 1.0}


def test_each_kind_of_operation_has_its_own_costs() -> None:
    product, sums = KindCost(2e-9, 5e-9, 1e-5), KindCost(0.0, 1e-8, 3e-5)
    fit = fitted(samples(product, {0: 1.0}) + samples(sums, {0: 1.0}, kind="sum"))
    assert_costs(fit.kinds["product"], product, 1e-3)
    assert_costs(fit.kinds["sum"], sums, 1e-3)
    assert fit.entry_seconds == pytest.approx(2e-9, rel=1e-3)
    assert fit.row_seconds == pytest.approx(1.5e-8, rel=1e-2)


def test_only_the_newest_samples_count_and_memory_is_bounded() -> None:
    model = LoadModel()
    model.add(samples(KindCost(2e-9, 0.0, 1e-5), {0: 1.0}, runs=5))
    model.add(samples(KindCost(4e-9, 0.0, 1e-5), {0: 1.0}, runs=5))
    assert_costs(model.fit().kinds["product"], KindCost(4e-9, 0.0, 1e-5), 1e-3)
    for number in range(3 * load.MOST_POINTS):
        model.add([Sample("product", 0, number, 10, 1e-5), Sample(f"kind {number}", 0, 1, 1, 1e-5)])
    assert len(model.fit().kinds) == load.MOST_KINDS
    assert sum(len(points) for points in model._points.values()) <= load.MOST_POINTS + load.MOST_KINDS


def test_samples_of_nothing_are_passed_over() -> None:
    assert fitted([Sample("product", 0, 1, 1, 0.0), Sample("product", 0, 1, 1, 1.0, num_runs=0)]).kinds == {}
    assert fitted([Sample("product", 0, 1, 1, math.nan), Sample("product", 0, 1, 1, math.inf)]).kinds == {}


def test_a_fit_solves_few_systems_and_none_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    exact = load._nonnegative
    monkeypatch.setattr(load, "_nonnegative", lambda *given: (calls.append(1), exact(*given))[1])
    model = LoadModel()
    model.add(samples(KindCost(2e-9, 5e-9, 1e-5), {worker: 1.0 - 0.5 * (worker > 6) for worker in range(10)}))
    model.fit()
    assert 1 < len(calls) <= load.NUM_ROUNDS
    del calls[:]
    assert model.fit() is model.fit()
    assert calls == []


@given(
    st.lists(
        st.tuples(st.floats(1e-4, 10), st.floats(1e-4, 10), st.floats(1e-4, 10), st.floats(0.01, 1)),
        min_size=4,
        max_size=40,
    )
)
def test_three_nonnegative_numbers_are_the_nearest_ones(
    points: list[tuple[float, float, float, float]],
) -> None:
    *columns, weights = np.array(points).T
    parts = np.stack(columns, axis=1)
    rooted = np.sqrt(weights)

    def loss(numbers: np.ndarray) -> float:
        return float(weights @ (parts @ numbers - 1) ** 2)

    found = load._nonnegative(parts, weights)
    assert found.min() >= 0
    nearest, _ = nnls(parts * rooted[:, None], rooted)
    # The ridge, which keeps points that are alike from being solved for noise, costs 1e-7 of the weights.
    assert loss(found) <= loss(nearest) + 1e-6 * float(weights.sum())


FLAT = Profile(np.array([0, 1_000]), np.array([0, 100_000]))
FOUR = Cuts((0, 250, 500, 750, 1_000), (0, 0, 1, 1))


def following(cuts: Cuts = FOUR) -> BlockLoads:
    loads = BlockLoads(FLAT)
    loads.begin(cuts, 1e-9, 4e-9)
    return loads


def report(loads: BlockLoads, iteration: int, seconds: Sequence[float], cuts: Cuts = FOUR) -> None:
    """Report one iteration of every worker."""
    for owner in dict.fromkeys(cuts.owners):
        own = {block: one for block, one in enumerate(seconds) if cuts.owners[block] == owner}
        loads.add(owner, iteration, 1, own, 0.01 * (1 + owner))


def test_blocks_are_known_when_every_worker_has_reported() -> None:
    loads = following()
    assert loads.block_seconds() == ()
    loads.add(0, 4, 2, {0: 0.2, 1: 0.4}, 0.5)
    assert loads.block_seconds() == ()
    assert loads.num_iterations == 0
    loads.add(1, 4, 4, {2: 0.8, 3: 1.6}, 0.0)
    assert loads.block_seconds() == pytest.approx((0.1, 0.2, 0.2, 0.4))
    assert loads.loads() == pytest.approx({0: 0.3, 1: 0.6})
    assert loads.other_seconds() == pytest.approx({0: 0.25, 1: 0.0})
    assert loads.num_iterations == 2


def test_a_single_slow_iteration_changes_nothing() -> None:
    loads = following()
    for iteration in range(6):
        report(loads, iteration, (1, 2, 3, 4) if iteration != 3 else (10, 20, 3, 4))
    assert loads.block_seconds() == (1, 2, 3, 4)
    assert loads.speeds([0, 1]) == {0: 1.0, 1: 1.0}


@pytest.mark.parametrize("before", [2, 5, 40])
def test_a_worker_that_becomes_slow_is_seen_within_three_iterations(before: int) -> None:
    loads = following()
    for iteration in range(before):
        report(loads, iteration, (1, 2, 3, 4))
    for iteration in range(3):
        report(loads, before + iteration, (1, 2, 6, 8))
    assert loads.block_seconds() == (1, 2, 6, 8)
    assert loads.speeds([0, 1, 7]) == pytest.approx({0: 1.0, 1: 0.5, 7: 1.0})
    for iteration in range(3):
        report(loads, before + 3 + iteration, (1, 2, 3, 4))
    assert loads.speeds([0, 1]) == pytest.approx({0: 1.0, 1: 1.0})


def test_two_reports_that_are_off_alike_make_a_change_once_two_came_before() -> None:
    loads = following()
    for iteration in range(2):
        report(loads, iteration, (1, 2, 3, 4))
    report(loads, 2, (1, 2, 6, 8))
    assert loads.speeds([0, 1]) == {0: 1.0, 1: 1.0}
    report(loads, 3, (1, 2, 6, 8))
    assert loads.speeds([0, 1]) == pytest.approx({0: 1.0, 1: 0.5})
    assert loads.block_seconds() == (1, 2, 6, 8)


def test_what_all_workers_have_in_common_is_the_work() -> None:
    loads = following()
    for iteration in range(5):
        report(loads, iteration, (1, 2, 3, 4))
    for iteration in range(3):
        report(loads, 5 + iteration, (2, 4, 12, 16))
    assert loads.block_seconds() == (2, 4, 12, 16)
    assert loads.speeds([0, 1]) == pytest.approx({0: 1.0, 1: 0.5})


def test_one_block_of_many_that_becomes_heavy_makes_no_worker_slow() -> None:
    cuts = Cuts(tuple(range(0, 1_001, 125)), (0,) * 4 + (1,) * 4)
    loads = following(cuts)
    for iteration in range(5):
        report(loads, iteration, (1,) * 8, cuts)
    for iteration in range(3):
        report(loads, 5 + iteration, (1,) * 7 + (4,), cuts)
    assert loads.block_seconds() == (1,) * 7 + (4,)
    assert loads.speeds([0, 1]) == {0: 1.0, 1: 1.0}


def test_speeds_and_expectations_outlive_a_re_cut() -> None:
    loads = following()
    for iteration in range(5):
        report(loads, iteration, (1, 1, 1, 1))
    for iteration in range(3):
        report(loads, 5 + iteration, (1, 1, 2, 2))
    thirds = Cuts((0, 667, 1_000), (0, 1))
    loads.begin(thirds, 1e-9, 4e-9)
    assert loads.block_seconds() == ()
    assert loads.speeds([0, 1]) == pytest.approx({0: 1.0, 1: 0.5})
    # The burner stops: that is seen by the first report after the repartition.
    report(loads, 9, (2.67, 1.33), thirds)
    assert loads.speeds([0, 1]) == pytest.approx({0: 1.0, 1: 1.0}, rel=0.01)


def test_supposed_speeds_hold_until_blocks_tell_more() -> None:
    loads = following()
    loads.suppose({1: 0.5, 5: 2.0})
    for iteration in range(5):
        report(loads, iteration, (1, 1, 2, 2))
    assert loads.speeds([0, 1, 5]) == {0: 1.0, 1: 0.5, 5: 2.0}
    for iteration in range(3):
        report(loads, 5 + iteration, (1, 1, 1, 1))
    loads.suppose({1: 0.5})
    assert loads.speeds([0, 1, 5]) == pytest.approx({0: 1.0, 1: 1.0, 5: 2.0})


def test_a_row_that_several_workers_share_is_summed_and_tells_no_speed() -> None:
    cuts = Cuts((0, 500, 501, 1_000), (0, 0, 1))
    loads = following(cuts)
    for iteration in range(6):
        loads.add(0, iteration, 1, {0: 1.0, 1: 2.0})
        loads.add(1, iteration, 1, {1: 2.5, 2: 1.0})
    assert loads.block_seconds() == (1.0, 4.5, 1.0)
    assert loads.loads() == {0: 3.0, 1: 3.5}
    assert loads.speeds([0, 1]) == {0: 1.0, 1: 1.0}
    for iteration in range(6, 9):
        loads.add(0, iteration, 1, {0: 1.0, 1: 2.0})
        loads.add(1, iteration, 1, {1: 7.5, 2: 1.0})
    assert loads.speeds([0, 1]) == {0: 1.0, 1: 1.0}


def test_the_same_cuts_in_another_loop_are_expected_to_take_anything() -> None:
    loads = following()
    report(loads, 1, (1, 1, 1, 1))
    loads.begin(FOUR, 1e-9, 4e-9)
    report(loads, 1, (1, 1, 9, 9))
    assert loads.speeds([0, 1]) == {0: 1.0, 1: 1.0}


@pytest.mark.parametrize("noise", [0.05, 0.3])
def test_the_error_falls_with_reports_and_follows_the_noise(noise: float) -> None:
    errors = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        loads = following()
        for iteration in range(2 * WINDOW):
            report(loads, iteration, np.exp(noise * rng.normal(size=4)).tolist())
            if iteration == 3:
                early = loads.error()
        assert loads.error() < early
        errors.append((loads.error(), np.log(loads.block_seconds())))
    true = float(np.sqrt(np.mean([found**2 for _, found in errors])))
    assert 0.8 * true < np.median([error for error, _ in errors]) < 2.5 * true


def test_nothing_here_reads_a_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("time", "monotonic", "perf_counter"):
        monkeypatch.delattr(time, name)
    loads = following()
    report(loads, 1, (1, 2, 3, 4))
    fitted(samples(KindCost(2e-9, 5e-9, 1e-5), {0: 1.0}))

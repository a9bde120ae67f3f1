"""How a nested array is cut: the better strategy by recorded times, and what is shown of the choice."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.blocks.grid import regular_cuts
from matnb.magics.cell import compile_cell, last_values, run_cell
from matnb.nested.choices import busiest_seconds
from matnb.nested.segments import Knots
from matnb.nested.strategy import PROCESSES, THREADS, Machine, chosen, costs_of, predicted
from matnb.nested.strategy_log import StrategyItem, strategies_of
from matnb.nested.structure import Structure, structure_from_counts
from matnb.pictures.svg_style import color_of
from matnb.session.current import current_session

# Milliseconds that the kernels took on one core of an Intel Xeon: sums of doubles in segments of so many
# values, each the best of several runs.
LENGTHS = (1, 10, 100, 1000)
SUMS = {10_000: (0.2792, 0.03506, 0.01948, 0.01482), 100_000: (3.412, 0.2699, 0.09088, 0.02547),
        1_000_000: (34.98, 2.661, 0.8762, 0.3352), 10_000_000: (328.4, 37.42, 11.24, 4.971)}  # fmt: skip
ONE_SEGMENT = {10_000: 0.0147, 100_000: 0.0192, 1_000_000: 0.3202, 10_000_000: 3.485}
EMPTY_NANOSECONDS = 9.1  # a segment without values
COPIED = 17.03  # 1e7 values
A_TASK = {True: 0.1, False: 0.3}
A_ROUND = {True: 0.1, False: 8.0}  # on threads of one process, or on two


def recorded(lengths: np.ndarray) -> float:
    """Return the milliseconds of a block with segments of some lengths: interpolated in the table."""
    filled = lengths[lengths > 0]
    milliseconds = EMPTY_NANOSECONDS * 1e-6 * (lengths.size - filled.size)
    if not filled.size:
        return milliseconds
    size = min(max(int(filled.sum()), 10_000), 10_000_000)
    sizes = sorted(SUMS)
    by_length = [
        np.interp(np.log(size), np.log(sizes), [SUMS[one][k] / one for one in sizes]) for k in range(4)
    ]
    alone = np.interp(np.log(size), np.log(sizes), [ONE_SEGMENT[one] / one for one in sizes])
    ends = [*LENGTHS, 10_000_000]
    a_value = np.interp(np.log(filled), np.log(ends), [*by_length, alone])
    return milliseconds + float(a_value @ filled)


def replayed(
    counts: np.ndarray, cuts: tuple[int, ...], workers: int, threads: int, ranks: tuple[int, ...] = ()
) -> float:
    """Return the milliseconds of a reduction with the recorded times: what the tasks of its plan would take.

    Each block reduces the segments of which it has the most values. One of which no block has nearly all is
    reduced in shares; where other values come to a block, it is copied.
    """
    in_process = workers == 1
    offsets = np.concatenate(([0], np.cumsum(counts)))
    share = offsets[-1] / (len(cuts) - 1)
    tasks: list[tuple[int, float]] = []
    rounds, is_copied = 1, [False] * (len(cuts) - 1)
    in_shares = np.zeros(counts.size, bool)
    bounds = [0]
    for cut in cuts[1:-1]:
        after = int(np.searchsorted(offsets, cut))
        if offsets[after] == cut:
            bounds.append(after)
            continue
        rounds = 2
        before = after - 1
        if 8 * counts[before] > share:
            in_shares[before] = True
            bounds.append(after)
        else:
            is_nearer = cut - offsets[before] <= offsets[after] - cut
            bounds.append(before if is_nearer else after)
            is_copied[len(bounds) - (2 if not is_nearer else 1)] = True
    bounds.append(counts.size)
    for block, (first, last) in enumerate(pairwise(bounds)):
        owner = ranks[block] if ranks else block * workers // (len(cuts) - 1)
        whole = counts[first:last][~in_shares[first:last]]
        copied = COPIED * whole.sum() / 1e7 if is_copied[block] else 0.0
        tasks.append((owner, A_TASK[in_process] + recorded(whole) + copied))
        for one in np.flatnonzero(in_shares):
            size = min(cuts[block + 1], offsets[one + 1]) - max(cuts[block], offsets[one])
            if size > 0:
                tasks.append((owner, A_TASK[in_process] + recorded(np.array([size]))))
    loads = {worker: [0.0] * threads for worker in range(workers)}
    for owner, milliseconds in tasks:
        loads[owner][loads[owner].index(min(loads[owner]))] += milliseconds
    return max(map(max, loads.values())) + (rounds - 1) * A_ROUND[in_process]


@st.composite
def lengths_of_segments(draw: st.DrawFn) -> np.ndarray:
    """Draw lengths: equal, of a power law, one or a few that hold a part, and empty ones, in any order."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(2, 4000))
    total = 10 ** draw(st.floats(5.5, 8.0))
    shares = np.ones(count)
    match draw(st.sampled_from(["equal", "power law", "few long"])):
        case "power law":
            shares = np.arange(1, count + 1) ** -draw(st.floats(0.5, 2.5))
        case "few long":
            few = draw(st.integers(1, min(3, count - 1)))
            part = draw(st.floats(0.1, 0.95))
            shares[:few] = part / (1 - part) * (count - few) / few
    if draw(st.booleans()):
        rng.shuffle(shares)
    if draw(st.booleans()):
        shares[rng.random(count) < draw(st.floats(0, 0.8))] = 0
    if not shares.any():
        shares[0] = 1
    return np.floor(shares / shares.sum() * total).astype(np.int64)


@st.composite
def places(draw: st.DrawFn) -> tuple[np.ndarray, int, int]:
    """Draw lengths, and workers with threads."""
    workers, threads = draw(st.sampled_from([(1, 2), (2, 1), (1, 4), (4, 1), (2, 2)]))
    return draw(lengths_of_segments()), workers, threads


def machine_of(structure: Structure, workers: int, threads: int) -> Machine:
    return Machine(workers, threads, costs_of(workers == 1, structure.histogram))


def each_cut_by(counts: np.ndarray, workers: int, threads: int, *wanted: str):
    structure = structure_from_counts(counts, "counts")
    given, machine = (
        regular_cuts(int(counts.sum()), workers * threads),
        machine_of(structure, workers, threads),
    )
    return {one: chosen(structure.knots, structure.longest, given, one, machine) for one in wanted}


def cut_by(counts: np.ndarray, workers: int, threads: int, wanted: str = "auto"):
    return each_cut_by(counts, workers, threads, wanted)[wanted]


def test_the_better_strategy_is_taken_in_nearly_all_structures():
    """By times that were recorded, in 95 % of those structures where one is better by 10 % or more."""
    outside, right, taken = 0, 0, set()

    @settings(max_examples=400, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow])
    @given(places())
    def look(drawn: tuple[np.ndarray, int, int]) -> None:
        nonlocal outside, right
        found = each_cut_by(*drawn, "segmented", "uniform", "auto")
        choice = found.pop("auto")
        took = {one: replayed(drawn[0], other.cuts, *drawn[1:], other.ranks) for one, other in found.items()}
        better = min(took, key=took.__getitem__)
        if max(took.values()) <= 1.1 * took[better]:
            return
        outside += 1
        right += choice.cuts == found[better].cuts
        taken.add(choice.strategy)

    look()
    assert outside > 150
    assert taken == {"segmented", "uniform"}
    assert right >= 0.95 * outside


@settings(max_examples=200)
@given(places(), st.sampled_from(["auto", "segmented", "uniform"]))
def test_cuts_are_of_the_strategy(drawn: tuple[np.ndarray, int, int], wanted: str):
    counts, workers, threads = drawn
    choice = cut_by(counts, workers, threads, wanted)
    cuts, offsets = choice.cuts, set(np.concatenate(([0], np.cumsum(counts))).tolist())
    assert (cuts[0], cuts[-1]) == (0, counts.sum())
    assert all(low < high for low, high in pairwise(cuts))
    assert len(cuts) - 1 <= 3 * workers * threads
    if choice.strategy == "segmented":
        assert set(cuts) <= offsets
        assert choice.cost.num_rounds == 1
    else:
        assert cuts == regular_cuts(int(counts.sum()), workers * threads)
        assert not set(cuts) <= offsets
    if wanted == "segmented":
        assert choice.strategy == "segmented"
    assert choice.reason


@settings(max_examples=60)
@given(places())
def test_the_choice_follows_from_counts_alone(drawn: tuple[np.ndarray, int, int]):
    found = each_cut_by(*drawn, "segmented", "uniform", "auto")
    auto = found.pop("auto")
    assert cut_by(*drawn) == auto
    assert auto.cost.seconds == min(one.cost.seconds for one in found.values())


def test_one_that_holds_nearly_all_is_cut_and_equal_ones_are_not():
    one_long = np.full(1001, 1000)
    one_long[500] = 9_000_000
    assert cut_by(10 * one_long, 2, 1).strategy == "uniform"
    assert "90,000,000 of 100,000,000" in cut_by(10 * one_long, 2, 1).reason
    assert cut_by(np.full(1001, 9990), 2, 1).strategy == "segmented"
    # Where the second round takes longer than what it saves, segments stay whole.
    assert cut_by(one_long, 2, 1).strategy == "segmented"
    assert cut_by(one_long, 1, 2).strategy == "uniform"


def test_the_share_that_is_told_is_of_what_can_be_divided():
    # Three of five blocks with a fifth of the values each; what a block costs would be nearly all otherwise.
    structure = structure_from_counts(np.full(1000, 10), "counts")
    choice = chosen(structure.knots, 10, regular_cuts(10_000, 5), "auto", machine_of(structure, 1, 2))
    assert "busiest slot 1.20 of an even share" in choice.reason


def test_threads_of_a_worker_get_more_blocks_where_that_evens_them_out():
    counts = np.array([3_000_000, 4_000_000, 3_000_000])
    choice = cut_by(counts, 1, 2, "segmented")
    assert choice.cuts == (0, 3_000_000, 7_000_000, 10_000_000)
    assert choice.cost.work_seconds == pytest.approx(6e6 * THREADS.value, rel=0.1)


def test_blocks_are_dealt_to_workers_where_neighbors_are_uneven():
    """A long segment between short ones is one worker's, and what is on both sides of it another's."""
    counts = np.concatenate([np.full(500, 10_000), [10_000_000], np.full(500, 10_000)])
    choice = cut_by(counts, 2, 1)
    assert (choice.cuts, choice.strategy) == ((0, 5_000_000, 15_000_000, 20_000_000), "segmented")
    assert choice.ranks == (1, 0, 1)
    assert choice.cost.work_seconds == pytest.approx(1e7 * PROCESSES.value, rel=0.15)
    assert cut_by(np.full(1000, 10_000), 2, 1).ranks == ()
    assert cut_by(counts, 1, 2).ranks == ()  # threads take a worker's blocks as they are free


@pytest.mark.parametrize("which", ["values", "spread", "places", "turned", "own"])
def test_what_lies_beside_dealt_values_is_dealt_alike(which: str):
    counts = np.concatenate([np.full(50, 20_000), [2_000_000], np.full(50, 20_000)])
    with mn.start(engine="gang", workers=2, threads=1):
        values = np.arange(4_000_000) % 1000
        N = mn.nested.unflatten(values, counts)
        assert N._structure.ranks == (1, 0, 1)
        other = {
            "values": lambda: N + mn.nested.unflatten(values, counts),
            "spread": lambda: N + np.arange(101),
            "places": lambda: N + N.with_values(N.positions),
            "turned": lambda: N.scan("max", reverse=True),
            "own": lambda: N.scan(np.maximum, identity=np.int64(-1), reverse=True),
        }[which]()
        assert re.search(r"moves (\d+ |\S+ k)B,", other.explain())  # offsets alone
        offsets = np.concatenate(([0], np.cumsum(counts)))
        segment = np.repeat(np.arange(101), counts)
        turned = np.concatenate(
            [np.maximum.accumulate(one[::-1])[::-1] for one in np.split(values, offsets[1:-1])]
        )
        wanted = {
            "values": 2 * values,
            "spread": values + segment,
            "places": values + np.arange(4_000_000) - offsets[segment],
            "turned": turned,
            "own": turned,
        }[which]
        assert np.array_equal(other.values, wanted)


def test_costs_are_those_of_the_paper():
    """C = c max s + (c - 1) t_b, by hand."""
    knots, machine = Knots((0, 1, 2), (0, 6_000_000, 8_000_000)), Machine(2, 1, PROCESSES)
    whole, shares = (0, 6_000_000, 8_000_000), (0, 4_000_000, 8_000_000)
    costs = machine.costs
    assert predicted(knots, whole, machine).seconds == pytest.approx(
        6e6 * costs.value + costs.segment + costs.block
    )
    # The second worker has a third of the long segment, and the other one.
    busiest = max(4e6 * costs.value + costs.block, 4e6 * costs.value + costs.segment + 2 * costs.block)
    assert predicted(knots, shares, machine).seconds == pytest.approx(busiest + costs.round)


def test_a_block_that_others_are_joined_to_is_copied():
    knots, machine = Knots((0, 4, 5, 10), (0, 399_990, 400_010, 1_000_000)), Machine(2, 1)
    whole, cut = (predicted(knots, (0, place, 1_000_000), machine) for place in (399_990, 400_000))
    assert cut.work_seconds - whole.work_seconds == pytest.approx(600_010 * machine.costs.copy, rel=0.01)
    assert (whole.num_rounds, cut.num_rounds) == (1, 2)


def test_the_busiest_thread_is_found():
    assert busiest_seconds([(0, 3.0), (0, 1.0), (0, 1.0), (1, 2.0)], 2) == 3.0
    assert busiest_seconds([(0, 3.0), (0, 1.0), (1, 2.0)], 1) == 4.0
    assert busiest_seconds([], 2) == 0.0


def test_other_numbers_of_blocks_are_kept_and_one_block_stays_one():
    structure = structure_from_counts(np.full(1000, 1000), "counts")
    machine = machine_of(structure, 2, 1)
    for count in (1, 5, 7):
        given_cuts = regular_cuts(1_000_000, count)
        for wanted in ("auto", "segmented", "uniform"):
            choice = chosen(structure.knots, 1000, given_cuts, wanted, machine)
            assert len(choice.cuts) == count + 1
    uneven = (0, 10, 1_000_000)
    assert chosen(structure.knots, 1000, uneven, "uniform", machine).cuts == (0, 500_000, 1_000_000)


# With a session.

TWO_THREADS = pytest.mark.session("two threads", memo="off")


def choices_made() -> tuple[StrategyItem, ...]:
    """Return the choices of the session, the oldest first."""
    return strategies_of(current_session()).choices()


def one_holds_most(longest: int = 3_600_000) -> mn.nested.NestedArray:
    counts = np.full(401, (4_000_000 - longest) // 400)
    counts[17] = longest
    return mn.nested.unflatten(mn.arange(4_000_000.0), counts)


@TWO_THREADS
def test_strategies_are_forced(session):
    counts = np.full(100, 4000)
    values = np.arange(400_000.0)
    for wanted in ("segmented", "uniform"):
        found = mn.nested.unflatten(
            values, counts + (np.arange(100) == 49) - (np.arange(100) == 50), strategy=wanted
        )
        assert found.strategy == wanted
        assert f'strategy="{wanted}" was asked for' in found.explain()
        np.testing.assert_array_equal(found.count().compute()[[49, 50, 51]], [4001, 3999, 4000])
    with pytest.raises(mn.errors.OptionError, match=r"strategy='unifrom'.*uniform"):
        mn.nested.unflatten(values, counts, strategy="unifrom")


@TWO_THREADS
def test_the_history_has_the_choice_with_what_was_predicted_and_measured(session):
    nested = one_holds_most()
    (before,) = (one for one in choices_made() if one.choice.longest == 3_600_000)
    assert before.measured_seconds is None
    expected = np.add.reduceat(np.arange(4_000_000.0), nested.offsets.compute()[:-1])
    np.testing.assert_allclose(nested.sum().compute(), expected)
    for factor in (2.0, 3.0, 4.0):  # after the first of these no machine code is made
        (nested * factor).sum().compute()
    (item,) = (one for one in choices_made() if one.choice.longest == 3_600_000)
    assert item.choice.strategy == nested.strategy == "uniform"
    assert not item.is_compiled
    assert 0 < item.measured_seconds < 1
    text = str(mn.history())
    (line,) = (one for one in text.splitlines() if one.startswith("401 "))
    assert re.match(
        r"401 +4,000,000 +3,600,000 +uniform +\S+ ms +\S+ ms \+ 0.1 ms +\S+ ms +the longest segment", line
    )
    assert (
        "the longest of 3,600,000, uniform: the longest segment has" in mn.history().bundle(True)["text/html"]
    )
    # What was measured is not told where everything has to repeat.
    static = mn.history().bundle(False)
    assert "measured: " not in static["text/html"]
    (line,) = (one for one in static["text/plain"].splitlines() if one.startswith("401 "))
    assert re.match(
        r"401 +4,000,000 +3,600,000 +uniform +\S+ ms +\S+ ms \+ 0.1 ms +the longest segment", line
    )
    one_holds_most()
    assert "uniform 2x" in str(mn.history())


@TWO_THREADS
def test_rows_that_stay_in_their_matrix_are_a_choice_too(session):
    A = sp.random_array((20_000, 500), density=0.02, rng=0, format="csr")
    N = mn.nested.from_rows(mn.asarray(A, blocks=(4, 1)))
    N.sum().persist()
    item = choices_made()[-1]
    assert item.choice.strategy == "segmented"
    assert item.choice.cuts == tuple(A.indptr[::5_000].tolist())
    assert item.measured_seconds is not None
    assert N.explain().startswith("segmented: cut between rows as the matrix")
    assert len(mn.nested.from_rows(A[:5]).explain().splitlines()[0].split("block")) == 2


@TWO_THREADS
def test_small_arrays_are_no_choice(session):
    count = len(choices_made())
    mn.nested.from_lists([[1.0], [2.0, 3.0]])
    assert len(choices_made()) == count


@TWO_THREADS
def test_explain_tells_the_strategy_then_the_plan(session):
    nested = one_holds_most(3_000_000)
    nested.sum().compute()
    first, *others = nested.explain().splitlines()
    assert first.startswith(
        "uniform: the longest segment has 3,000,000 of 4,000,000 values; whole segments give"
    )
    assert re.fullmatch(r"  segmented: predicted \S+ ms", others[0])
    assert re.fullmatch(r"  uniform: predicted \S+ ms \+ 0.1 ms", others[1])
    assert "recorded" in others
    assert "plan" in others
    assert ", measured " in nested.explain(measured=True).splitlines()[2]
    assert nested.explain(stage="plan") == nested.values.explain(stage="plan")
    assert nested.with_values(nested.values * 2).explain().startswith("uniform: the longest")


@TWO_THREADS
def test_it_shows_itself_with_a_map_of_its_segments(session):
    nested = one_holds_most()
    nested.values.persist()
    html = nested._repr_mimebundle_()["text/html"]
    for words in (
        "<td",
        "401",
        "4,000,000 float64",
        "mean 9,975, longest 3,600,000",
        "<b>uniform</b>: the longest",
    ):
        assert words in html
    assert 'aria-label="Segment map: 401 segments, the longest of 3,600,000 values"' in html
    assert "segment 17: 3,600,000 values from 17,000 on" in html
    assert "1 segment of more than 1/64 of all values" in html
    assert "512 to 1,023: 400; 2,097,152 to 4,194,303: 1" in html
    assert "worker 0" in html
    blocks = nested.values.layout.rows
    assert re.findall(r'<rect [^>]*height="14" fill="([^"]*)"', html) == [
        color_of(one) for one in blocks.owners
    ]
    assert len(html) < 20_000
    text = repr(nested)
    assert text.startswith("values [0")
    assert text.endswith("401 segments of 4,000,000 float64 values, the longest of 3,600,000, uniform")


@TWO_THREADS
def test_few_segments_are_written_out(session):
    nested = mn.nested.unflatten([3, 1, 2, 5], [2, 0, 0, 1, 1])
    assert repr(nested).splitlines()[:-1] == ["[[3 1]", " []", " []", " [2]", " [5]]"]
    assert "&lt;" not in nested._repr_mimebundle_()["text/html"]
    assert "NestedArray: 2 segments of 0 float64 values" in repr(mn.nested.from_lists([[], []]))
    assert "<svg" not in mn.nested.from_lists([])._repr_mimebundle_()["text/html"]


@TWO_THREADS
@settings(max_examples=60)
@given(lengths_of_segments())
def test_a_picture_of_any_structure_is_small(session, counts: np.ndarray):
    nested = mn.nested.unflatten(mn.arange(int(counts.sum())), counts)
    assert len(nested._repr_mimebundle_()["text/html"]) < 20_000


@TWO_THREADS
def test_a_cell_computes_what_it_assigns_and_ends_with(session):
    namespace: dict[str, object] = {"mn": mn}
    code = "N = mn.nested.unflatten(mn.arange(6.0) + 1, [1, 2, 3])\nM = N * 2\nT = M + 1\nM"
    done = run_cell(compile_cell(code, "a cell"), namespace)
    assert set(done.program.roots) == {"_", "T"}  # the others are on the way
    assert done.program.roots["T"] is namespace["T"].values.expression
    assert [name for name, _ in last_values([namespace["N"]])] == ["_[0]"]

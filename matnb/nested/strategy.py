"""How a nested array is cut: between segments or into equal shares, by what a reduction would take.

The model is that of "Partition Balancing in Distributed Nested Data-Parallel Systems" (section 3.1):
C = c max s + (c - 1) t_b, of c rounds in which the busiest slot takes s seconds, with t_b between two of
them. Whole segments need one round, which lasts as long as the longest of them at least; of equal shares the
parts of a segment meet in another. What is counted is a reduction: running values take both strategies a
multiple of it, sorts gather in either.

The choice follows from counts alone, so it is the same every time. Bits do not depend on it, but for scans of
floats that are not asked to be stable.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from matnb.balance.contiguous import Work, balanced_cuts
from matnb.balance.situation import Strategy
from matnb.blocks.grid import regular_cuts
from matnb.blocks.layout import spread
from matnb.nested.choices import StrategyChoice, StrategyCost, busiest_seconds
from matnb.nested.segments import Cuts, Knots, Ranks
from matnb.pictures.quantities import count_text

_MOST_BLOCKS = 3  # a slot: the paper's oversubscription (section 3.2)
_NEARLY = 1.02  # of the least cost: fewer blocks, or the cuts that are there, are as good
_EVEN = 1.1  # of an equal share of the values: cuts that are there and not worse are left as they are


@dataclass(frozen=True)
class ReductionCosts:
    """What a reduction takes, in seconds: for a value, to copy one, for a segment, a block, between rounds.

    The defaults were measured on an Intel Xeon, with two cores at work: sums of 1e7 doubles take 0.6 ns a
    value in one segment, and for each segment 3 ns more where it is empty, 10 ns where it has ten values and
    0 to 3 ns where it has 33 or more. Copying takes 1.6 ns a value in fresh memory. A run with a second round
    took 0.1 ms longer on threads, and 8 ms on two processes.
    """

    value: float = 0.6e-9
    copy: float = 1.6e-9
    segment: float = 8e-9
    block: float = 0.1e-3
    round: float = 0.1e-3


THREADS = ReductionCosts()
PROCESSES = ReductionCosts(block=0.3e-3, round=8e-3)
_EMPTY, _SHORT, _OTHER = 3e-9, 8e-9, 3e-9  # seconds of a segment
_NUM_SHORT = 5  # places of the histogram up to 15 values


def costs_of(in_process: bool, histogram: Sequence[int]) -> ReductionCosts:
    """Return what work takes, by the threads of this process or in other ones, on segments of some lengths.

    Parameters
    ----------
    histogram
        How many have no value, 1, 2 to 3, 4 to 7, and so on.
    """
    short, others = sum(histogram[1:_NUM_SHORT]), sum(histogram[_NUM_SHORT:])
    seconds = _EMPTY * histogram[0] + _SHORT * short + _OTHER * others
    return replace(THREADS if in_process else PROCESSES, segment=seconds / max(1, sum(histogram)))


@dataclass(frozen=True)
class Machine:
    """What runs operations: so many workers of so many threads each, and what work takes there."""

    workers: int
    threads: int
    costs: ReductionCosts = THREADS

    @property
    def slots(self) -> int:
        """Blocks that are worked on at the same time."""
        return self.workers * self.threads


def predicted(knots: Knots, cuts: Cuts, machine: Machine, ranks: Ranks = ()) -> StrategyCost:
    """Return what reducing each segment takes where the values are cut so.

    Blocks are dealt to workers by ``ranks``, or in order, neighbors together; a worker's threads take them
    one after the other. A long segment that is cut is put together from shares of its parts, each made where
    the part is; of shorter ones the block that has most is copied to be made whole.

    Examples
    --------
    >>> knots = Knots((0, 1, 2), (0, 900_000, 1_000_000))
    >>> predicted(knots, (0, 900_000, 1_000_000), Machine(2, 1)).num_rounds
    1
    >>> predicted(knots, (0, 500_000, 1_000_000), Machine(2, 1)).num_rounds
    2
    """
    costs = machine.costs
    owners = ranks or spread(len(cuts) - 1, range(machine.workers))
    tasks: list[tuple[int, float]] = []
    num_rounds = 1
    for before, after in pairwise(knots.cuts_near(cuts)):
        start, stop = knots.values[before], knots.values[after]
        count = knots.segments[after] - knots.segments[before]
        parts = _parts(cuts, start, stop)
        num_rounds = 2 if len(parts) > 1 else num_rounds
        if count == 1 and len(parts) > 1:
            tasks += [(owners[block], costs.block + costs.value * size) for block, size in parts]
            continue
        home = max(parts, key=lambda one: one[1])[0] if parts else 0
        seconds = costs.block + costs.value * (stop - start) + costs.segment * count
        tasks.append((owners[home], seconds + (costs.copy * (stop - start) if len(parts) > 1 else 0.0)))
    return StrategyCost(busiest_seconds(tasks, machine.threads), num_rounds, costs.round)


def _parts(cuts: Cuts, start: int, stop: int) -> list[tuple[int, int]]:
    # The blocks that a range of the values lies in, and how many of these each has.
    first, last = bisect_right(cuts, start) - 1, bisect_left(cuts, stop)
    return [
        (block, min(cuts[block + 1], stop) - max(cuts[block], start))
        for block in range(first, last)
        if start < stop
    ]


def chosen(knots: Knots, longest: int, given: Cuts, wanted: str, machine: Machine) -> StrategyChoice:
    """Return how values are cut, and why.

    Values that are one block stay so, and those in other than a block a slot keep their number of blocks.

    Parameters
    ----------
    knots, longest
        Of the structure.
    given
        How the values are cut.
    wanted
        "segmented" or "uniform" to have that, "auto" for the one of the smaller predicted cost.

    Examples
    --------
    >>> knots = Knots((0, 1, 2), (0, 9_000_000, 10_000_000))
    >>> chosen(knots, 9_000_000, (0, 5_000_000, 10_000_000), "auto", Machine(2, 1)).strategy
    'uniform'
    """
    whole, whole_ranks = _segmented(knots, given, machine)
    shares = _uniform(given)
    one, other = predicted(knots, whole, machine, whole_ranks), predicted(knots, shares, machine)
    takes_whole = wanted == "segmented" or (wanted == "auto" and one.seconds <= other.seconds)
    cuts, ranks = (whole, whole_ranks) if takes_whole else (shares, ())
    reason = _one_block(knots)
    if len(cuts) > 2:
        share = _busiest_share(knots, whole, machine, whole_ranks)
        reason = _reason(knots, longest, share, is_whole=one.seconds <= other.seconds)
    if wanted != "auto" and len(given) > 2:
        reason = f'strategy="{wanted}" was asked for'
    strategy: Strategy = "segmented" if _is_whole(knots, cuts) else "uniform"
    return StrategyChoice(
        knots.num_segments, knots.num_values, longest, strategy, cuts, ranks, one, other, reason
    )  # fmt: skip


def as_given(knots: Knots, longest: int, cuts: Cuts, machine: Machine) -> StrategyChoice:
    """Return the choice to leave values as they are cut, between segments, with what both should take."""
    shares = regular_cuts(knots.num_values, len(cuts) - 1)
    one, other = predicted(knots, cuts, machine), predicted(knots, shares, machine)
    reason = "cut between rows as the matrix it is made from, whose blocks have nearly equal shares"
    if len(cuts) == 2:
        reason = _one_block(knots)
    return StrategyChoice(
        knots.num_segments, knots.num_values, longest, "segmented", cuts, (), one, other, reason
    )  # fmt: skip


def _is_whole(knots: Knots, cuts: Cuts) -> bool:
    return all(map(knots.begins_at, cuts))


def _uniform(given: Cuts) -> Cuts:
    count, total = len(given) - 1, given[-1]
    is_even = int(np.diff(given).max()) * count <= _EVEN * total
    return given if is_even else regular_cuts(total, count)


def _segmented(knots: Knots, given: Cuts, machine: Machine) -> tuple[Cuts, Ranks]:
    # The first that takes hardly longer than the best; neighbors lie together unless that evens blocks out.
    wholes = list(_whole_cuts(knots, given, machine))
    ways: list[tuple[Cuts, Ranks]] = [(cuts, ()) for cuts in wholes]
    if machine.workers > 1:
        is_usual = len(given) - 1 == machine.slots
        ways += [_dealt(knots, cuts, machine, is_usual and machine.threads == 1) for cuts in wholes]
    seconds = [predicted(knots, cuts, machine, ranks).seconds for cuts, ranks in ways]
    least = min(seconds)
    return next(way for way, one in zip(ways, seconds, strict=True) if one <= _NEARLY * least)


def _dealt(knots: Knots, cuts: Cuts, machine: Machine, is_joined: bool) -> tuple[Cuts, Ranks]:
    # The longest first, each to the worker that has least to do (Graham 1969); its neighbors may be joined.
    costs = machine.costs
    seconds = [costs.block + costs.value * (stop - start) for start, stop in pairwise(cuts)]
    for block, (start, stop) in enumerate(pairwise(cuts)):
        first, last = bisect_left(knots.values, start), bisect_left(knots.values, stop)
        seconds[block] += costs.segment * (knots.segments[last] - knots.segments[first])
    loads = [0.0] * machine.workers
    ranks = [0] * len(seconds)
    for block in sorted(range(len(seconds)), key=seconds.__getitem__, reverse=True):
        ranks[block] = loads.index(min(loads))
        loads[ranks[block]] += seconds[block]
    begins = [
        block for block, rank in enumerate(ranks)
        if not is_joined or not block or rank != ranks[block - 1]
    ]  # fmt: skip
    return (*(cuts[block] for block in begins), cuts[-1]), tuple(ranks[block] for block in begins)


def _whole_cuts(knots: Knots, given: Cuts, machine: Machine) -> Iterator[Cuts]:
    # Cuts between segments: those that are there if they are so, else of the least makespan.
    if _is_whole(knots, given):
        yield given
    count = len(given) - 1
    if count == 1:
        return
    values = np.unique(knots.values)
    last = np.searchsorted(knots.values, values, "right") - 1
    segments = np.asarray(knots.segments)[last]
    segments[0] = 0
    before = machine.costs.value * values + machine.costs.segment * segments
    work = Work(np.arange(values.size), before.astype(np.float64))
    is_usual = count == machine.slots
    for times in range(1, 1 + (_MOST_BLOCKS if is_usual else 1)):
        parts = min(times * count, values.size - 1)
        cuts = balanced_cuts(work, [1.0] * parts)
        yield tuple(values[list(cuts)].tolist())


def _busiest_share(knots: Knots, cuts: Cuts, machine: Machine, ranks: Ranks) -> float:
    # What the busiest slot has of an even share of the work; not of what each block costs.
    slots = replace(machine, costs=replace(machine.costs, block=0.0))
    alone = predicted(knots, (0, knots.num_values), replace(slots, workers=1, threads=1))
    return slots.slots * predicted(knots, cuts, slots, ranks).work_seconds / alone.work_seconds


def _one_block(knots: Knots) -> str:
    return f"{count_text(knots.num_values)} values are one block"


def _reason(knots: Knots, longest: int, busiest_share: float, is_whole: bool) -> str:
    share = f"whole segments give the busiest slot {busiest_share:.2f} of an even share"
    if is_whole:
        return f"{share}, and need no second round"
    of = f"the longest segment has {count_text(longest)} of {count_text(knots.num_values)} values"
    return f"{of}; {share}, which takes longer than equal shares of the values in two rounds"

"""Decisions: rebalance or keep, why, what other cuts should save and cost, and what they gained."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from matnb.balance.codec import Amount, AmountOrEndless, FieldPlace, Limits, NumberOrUnknown
from matnb.balance.partition import COPY_RATE, loads_of, makespan_of, moved
from matnb.balance.situation import Situation, Strategy
from matnb.blocks.layout import Cuts
from matnb.pictures.imbalance import imbalance

SOON = 5  # iterations


@dataclass(frozen=True)
class Decision:
    """Rebalance or keep, and why.

    Attributes
    ----------
    policy
        Who decided: "auto", "presto", "replay", "asked" (by a user), "aligned" (by ``mn.align``: other arrays
        are cut so), "workers" (some came or went), "bits" (cuts follow from counts again, for what may have
        other bits where they follow from times).
    acts
        Whether the arrays are to be repartitioned.
    reason
        One sentence for a user, with the numbers that decided.
    before, after
        The cuts now, and those that were considered; alike where none were.
    strategy
        "segmented": whole rows; "uniform": the work on heavy rows, each a block of its own, is shared.
    loads_before, loads_after
        Seconds of kernels in one iteration for each worker, measured and predicted; in entries where nothing
        was measured (``in_entries``).
    block_seconds
        Of each block before; empty where nothing was measured.
    saving_seconds
        What an iteration should take less.
    num_remaining
        Iterations for which that was counted.
    cost_seconds, moved_bytes
        What changing the layout should take, and how much goes to another worker or block.
    iteration
        After which iteration it was decided; 0 before the first.
    axis
        Along which ``before`` and ``after`` are. Of arrays that are cut along several axes it is the one
        with the most parts of those that changed, and the owners are those of the blocks at the first places
        of the other axes.
    """

    name: str
    policy: str
    acts: bool
    reason: str
    before: Cuts
    after: Cuts
    strategy: Strategy
    loads_before: Mapping[int, Amount]
    loads_after: Mapping[int, Amount]
    block_seconds: tuple[Amount, ...]
    saving_seconds: float
    num_remaining: AmountOrEndless
    cost_seconds: Amount
    moved_bytes: int
    iteration: int
    in_entries: bool = False
    axis: Annotated[int, FieldPlace.NEWER] = 0

    @property
    def imbalance_before(self) -> float:
        """The slowest worker's load over the mean."""
        return imbalance(self.loads_before)

    @property
    def imbalance_after(self) -> float:
        """The same with the new cuts, as predicted."""
        return imbalance(self.loads_after)


@dataclass(frozen=True)
class Gain:
    """What a decision that was acted upon gained.

    Attributes
    ----------
    loads
        Seconds of kernels in one iteration for each worker, measured afterwards; empty where none followed.
    saving_seconds
        What an iteration took less by the clock; NaN where none followed, or none was measured before.
    cost_seconds
        What changing the layout took: from the end of the iteration before to the begin of the next one.
    moved_bytes
        That went from one worker to another.
    """

    loads: Mapping[int, Amount]
    saving_seconds: NumberOrUnknown
    cost_seconds: Amount
    moved_bytes: int


@dataclass(frozen=True)
class HistoryItem:
    """A decision that was taken, and what became of it.

    Attributes
    ----------
    number
        Of the decision in its history, from 0.
    decision
        The latest, where several alike are one.
    gain
        What was measured afterwards; None while nothing was, and where nothing was done.
    num_repeats
        How often the same was refused in a row for reasons that differ in their numbers only.
    """

    number: int
    decision: Annotated[Decision, FieldPlace.INLINE]
    gain: Gain | None = None
    num_repeats: Annotated[int, Limits(1)] = 1


def kept(
    situation: Situation, policy: str, reason: str, loads: Mapping[int, float] | None = None
) -> Decision:
    """Return a decision to keep the cuts; ``loads`` are those that are measured, if they are at hand."""
    if loads is None or not situation.block_seconds:
        loads = _loads(situation, situation.cuts)
    return Decision(
        name=situation.name,
        policy=policy,
        acts=False,
        reason=reason,
        before=situation.cuts,
        after=situation.cuts,
        strategy="segmented",
        loads_before=loads,
        loads_after=loads,
        block_seconds=situation.block_seconds,
        saving_seconds=0.0,
        num_remaining=situation.num_remaining,
        cost_seconds=0.0,
        moved_bytes=0,
        iteration=situation.iteration,
        in_entries=not situation.block_seconds,
    )


def changed(situation: Situation, policy: str, reason: str, cuts: Cuts, strategy: Strategy) -> Decision:
    """Return a decision to repartition, with what that should save and cost."""
    saving = makespan_of(situation, situation.cuts) - makespan_of(situation, cuts)
    if situation.iteration_seconds > 0:
        saving = min(saving, situation.iteration_seconds)
    moved_bytes, copied_bytes = moved(situation, cuts)
    return replace(
        kept(situation, policy, reason),
        acts=True,
        after=cuts,
        strategy=strategy,
        loads_after=_loads(situation, cuts),
        saving_seconds=saving,
        cost_seconds=situation.costs.seconds(moved_bytes + copied_bytes / COPY_RATE),
        moved_bytes=moved_bytes,
    )


def certain_error(situation: Situation, saving_seconds: float, cost_seconds: float) -> float:
    """Return a share of an iteration that the error of the seconds as good as never explains.

    The largest of n normal numbers is about sqrt(2 log n) deviations above their mean; two more are certain
    enough for a decision that is asked for again and again, and one where it soon pays for itself, so that
    being wrong costs little.

    Parameters
    ----------
    saving_seconds, cost_seconds
        What other cuts should save in an iteration, and cost once.
    """
    if not situation.block_seconds:
        return 0.0
    num_slots = max(2, len(situation.speeds) * situation.threads)
    deviations = 1 if SOON * saving_seconds > cost_seconds else 2
    return (deviations + math.sqrt(2 * math.log(num_slots))) * situation.error


def _loads(situation: Situation, cuts: Cuts) -> Mapping[int, float]:
    if situation.block_seconds:
        return loads_of(situation, cuts)
    loads = dict.fromkeys(sorted(situation.speeds.keys() | set(cuts.owners)), 0.0)
    before = situation.profile.before(cuts.cuts)
    for block, owner in enumerate(cuts.owners):
        loads[owner] += float(before[block + 1] - before[block])
    return loads


def may_pay(situation: Situation) -> bool:
    """Tell whether the best cuts there can be would save more than the least that changing any costs."""
    if situation.speeds.keys() != set(situation.cuts.owners):
        return True  # workers that came or went count before all else
    loads = loads_of(situation, situation.cuts)
    saved = makespan_of(situation, situation.cuts) - least_makespan(situation, loads)
    return saved * situation.num_remaining > situation.costs.seconds(0)


def least_makespan(situation: Situation, loads: Mapping[int, float]) -> float:
    """Return what an iteration takes at least if all the work could be shared in any parts."""
    work = sum(seconds * situation.speeds.get(worker, 1.0) for worker, seconds in loads.items())
    work += situation.apart_row_seconds * situation.profile.length
    return work / (sum(situation.speeds.values()) * max(1, situation.threads))

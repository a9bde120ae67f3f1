"""Decisions made of what other cuts would save and cost."""

from __future__ import annotations

import math
from collections.abc import Mapping

from matnb.balance.decision import Decision, Strategy
from matnb.balance.partition import COPY_RATE, loads_of, makespan_of, moved
from matnb.balance.situation import Cuts, Situation

SOON = 5  # iterations


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
    """Return a decision to re-cut, with what that should save and cost."""
    saving = makespan_of(situation, situation.cuts) - makespan_of(situation, cuts)
    if situation.iteration_seconds > 0:
        saving = min(saving, situation.iteration_seconds)
    moved_bytes, copied_bytes = moved(situation, cuts)
    return Decision(
        name=situation.name,
        policy=policy,
        acts=True,
        reason=reason,
        before=situation.cuts,
        after=cuts,
        strategy=strategy,
        loads_before=_loads(situation, situation.cuts),
        loads_after=_loads(situation, cuts),
        block_seconds=situation.block_seconds,
        saving_seconds=saving,
        num_remaining=situation.num_remaining,
        cost_seconds=situation.costs.seconds(moved_bytes + copied_bytes / COPY_RATE),
        moved_bytes=moved_bytes,
        iteration=situation.iteration,
        in_entries=not situation.block_seconds,
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

"""Replaying: the decisions of a trace once more, and other policies over the times that were recorded."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

import numpy as np

from matnb.balance.block_loads import BlockLoads
from matnb.balance.decision import Decision
from matnb.balance.policy import Policy
from matnb.balance.recorded import Recorded, Times
from matnb.balance.situation import Cuts, Floats, Situation
from matnb.balance.trace import Trace

_MOST_TOLD = 2
_SO_ALREADY = "cut so already: as the trace says"
_LEAST_WEIGHT = 1e-9  # of a row beside a usual one, where rows cost nothing


class Replayed:
    """A policy that repeats the decisions of a trace, in order, at their iterations, for the same names.

    It has a memory, so one object serves all arrays of a session. Where workers have other numbers than
    in the trace, they stand for those in order.

    Parameters
    ----------
    trace
        Of which the decisions that were acted upon count, but for those a person asked for, who asks again.
    """

    name = "replay"

    def __init__(self, trace: Trace) -> None:
        self._waiting: dict[str, _Waiting] = {}
        for one in trace.passed:
            waiting = self._waiting.setdefault(one.decision.name, _Waiting())
            if one.decision.acts and one.decision.policy != "asked":
                waiting.decisions.append(one.decision)

    def decide(self, situation: Situation) -> Decision:
        """Return the next decision of the trace when its iteration has come, else one to keep the cuts.

        A decision is told again until the cuts are as it says, at most twice: who asks while a loop runs asks
        again when it has paused.
        """
        waiting = self._waiting.get(situation.name)
        if waiting is None:
            return _kept(situation, f"not in the trace: it has no decision about {situation.name}")
        if waiting.is_done(situation):
            waiting.take()
        waiting.note(situation.iteration)
        kept = _kept(situation, "the trace is over: all its decisions were repeated")
        while waiting.decisions:
            decision = waiting.decisions[0]
            if not waiting.has_come(situation.iteration):
                if waiting.num_told:  # nobody acted upon it in its loop
                    waiting.take()
                    continue
                when = f"after iteration {decision.iteration}"
                return _kept(situation, f"not yet: the trace re-cuts {situation.name} {when}")
            repeated = _repeated(decision, situation)
            if repeated.acts:
                waiting.num_told += 1
                return repeated
            waiting.take()
            if repeated.reason != _SO_ALREADY:
                return repeated
            kept = repeated
        return kept


@dataclass
class _Waiting:
    """Decisions about one name that are still to be repeated.

    Iterations begin again with every loop. Decisions of a later loop, whose iterations do not go on from
    those before, wait for it.
    """

    decisions: deque[Decision] = field(default_factory=deque)
    taken: int = -1  # the iteration of the decision repeated last, if it was in the loop that runs now
    num_told: int = 0  # how often the next one was told already

    def is_done(self, situation: Situation) -> bool:
        if not self.num_told:
            return False
        return self.num_told == _MOST_TOLD or not _repeated(self.decisions[0], situation).acts

    def note(self, iteration: int) -> None:
        if iteration < self.taken or iteration == 0:
            self.taken = -1

    def has_come(self, iteration: int) -> bool:
        wanted = self.decisions[0].iteration
        return wanted > self.taken and (iteration >= wanted if wanted else iteration == 0)

    def take(self) -> None:
        self.taken = self.decisions.popleft().iteration
        self.num_told = 0


def _kept(situation: Situation, reason: str) -> Decision:
    loads: dict[int, float] = dict(situation.other_seconds)
    if situation.block_seconds:
        for owner, seconds in zip(situation.cuts.owners, situation.block_seconds, strict=True):
            loads[owner] = loads.get(owner, 0.0) + seconds
    return Decision(
        name=situation.name,
        policy=Replayed.name,
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
    )


def _repeated(decision: Decision, situation: Situation) -> Decision:
    length, wanted = situation.cuts.cuts[-1], decision.after.cuts[-1]
    if length != wanted:
        return _kept(situation, f"does not fit: the trace cuts {wanted} rows, {situation.name} has {length}")
    then = sorted({*decision.loads_before, *decision.loads_after, *decision.after.owners})
    now = sorted(situation.speeds)
    used = sorted(set(decision.after.owners))
    if set(used) <= set(now):
        numbers = {owner: owner for owner in then}
    elif len(then) <= len(now):
        numbers = dict(zip(then, now, strict=False))
    elif len(used) <= len(now):
        numbers = dict(zip(used, now, strict=False))
    else:
        return _kept(
            situation, f"too few workers: the trace lays out over {len(used)}, there are {len(now)} now"
        )
    after = Cuts(decision.after.cuts, tuple(numbers[owner] for owner in decision.after.owners))
    if after == situation.cuts:
        return _kept(situation, _SO_ALREADY)
    return replace(
        decision,
        policy=Replayed.name,
        reason=f"replayed: {decision.reason.removeprefix('replayed: ')}",
        before=situation.cuts,
        after=after,
        loads_before={numbers.get(owner, owner): load for owner, load in decision.loads_before.items()},
        loads_after={numbers.get(owner, owner): load for owner, load in decision.loads_after.items()},
        iteration=situation.iteration,
    )


def replay_policy(trace: Trace, policy: Policy) -> list[Decision]:
    """Ask a policy about the times of a trace, as if they were measured now.

    After the policy has re-cut, the times that follow are those of the rows where they would lie then: the
    seconds of a block are spread over its rows and entries as the cost model has them, on a worker of
    another speed in proportion.

    Parameters
    ----------
    trace
        With recorded times.
    policy
        Any; it is asked once for each time that all workers had told theirs.

    Returns
    -------
    list of Decision
        All, also those to keep the cuts.
    """
    decisions: list[Decision] = []
    groups: dict[str, _Group] = {}
    for recorded in trace.recorded:
        name, length = recorded.situation.name, recorded.situation.cuts.cuts[-1]
        group = groups.get(name)
        if group is None or group.cuts.cuts[-1] != length:
            group = groups[name] = _Group(recorded.situation)
        decisions += [group.ask(policy, recorded, row) for row in recorded.times]
    return decisions


class _Group:
    """Arrays that are cut alike, as a policy would have cut them."""

    def __init__(self, situation: Situation) -> None:
        self.cuts = situation.cuts
        self._since = situation.since_last
        self._loads = BlockLoads(situation.profile)
        self._begin(situation)

    def _begin(self, situation: Situation) -> None:
        self._loads.begin(self.cuts, situation.entry_seconds, situation.row_seconds, situation.speeds)

    def ask(self, policy: Policy, recorded: Recorded, row: Times) -> Decision:
        known = recorded.situation
        seconds = seconds_under(self.cuts, known, row.block_seconds)
        other = dict(row.loads)
        for owner, one in zip(known.cuts.owners, row.block_seconds, strict=True):
            other[owner] = other.get(owner, 0.0) - one
        for owner in dict.fromkeys(self.cuts.owners):
            mine = {
                block: one * row.num_iterations
                for block, one in enumerate(seconds)
                if self.cuts.owners[block] == owner
            }
            besides = max(0.0, other.get(owner, 0.0)) * row.num_iterations
            self._loads.add(owner, row.iteration, row.num_iterations, mine, besides)
        passed = row.num_iterations
        self._since = self._since if self._since < 0 else self._since + passed
        decision = policy.decide(
            replace(
                known,
                cuts=self.cuts,
                block_seconds=self._loads.block_seconds(),
                error=self._loads.error(known.threads),
                speeds=self._loads.speeds(known.speeds),
                other_seconds=self._loads.other_seconds(),
                iteration=row.iteration,
                num_remaining=row.num_remaining,
                iteration_seconds=row.iteration_seconds,
                since_last=self._since,
            )
        )
        if decision.acts:
            self.cuts, self._since = decision.after, 0
            self._begin(known)
        return decision


def seconds_under(cuts: Cuts, situation: Situation, block_seconds: tuple[float, ...]) -> tuple[float, ...]:
    """Return what the blocks of other cuts would take, given what those of a situation take.

    Parameters
    ----------
    cuts
        Of the same rows.
    situation
        Its cuts are those of the blocks that were measured.
    block_seconds
        Of those.
    """
    if cuts == situation.cuts:
        return block_seconds
    speeds = situation.speeds
    usual = [
        seconds * speeds.get(owner, 1.0)
        for seconds, owner in zip(block_seconds, situation.cuts.owners, strict=True)
    ]
    row_seconds = max(situation.row_seconds, _LEAST_WEIGHT * situation.entry_seconds) or 1.0

    def weights(places: tuple[int, ...]) -> Floats:
        entries = situation.profile.before(places)
        return entries * situation.entry_seconds + np.asarray(places, np.float64) * row_seconds

    sums = np.interp(weights(cuts.cuts), weights(situation.cuts.cuts), np.append(0.0, np.cumsum(usual)))
    return tuple(
        float(seconds) / speeds.get(owner, 1.0)
        for seconds, owner in zip(np.diff(sums), cuts.owners, strict=True)
    )

"""Replaying: the decisions of a trace once more, and other policies over the times that were recorded."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field, replace

import numpy as np

from matnb.balance.block_loads import BlockLoads
from matnb.balance.decision import Decision
from matnb.balance.policy import Policy
from matnb.balance.recorded import Recorded, Times
from matnb.balance.situation import Cuts, Situation
from matnb.balance.trace import Trace
from matnb.balance.weighing import kept

_MOST_TOLD = 2
_NOT_REPEATED = ("asked", "bits")  # by whom decisions were made that are made again without the trace
_MOST_NAMED = 6  # groups of the trace, to a user whose own is none of them
_SO_ALREADY = "cut so already: as the trace says"
_LEAST_WEIGHT = 1e-9  # of a row beside a usual one, where rows cost nothing


class Replayed:
    """A policy that repeats the decisions of a trace, in order, at their iterations, for the same names.

    A trace that knows of one group only may be repeated for a group of another name: the first that asks and
    has as many rows, until one of its own name asks. The object has a memory, so one serves all arrays of a
    session. Where workers have other numbers than in the trace, they stand for those in order.

    Parameters
    ----------
    trace
        Of which the decisions that were acted upon count, but for those a user asked for, who asks again,
        and those for the sake of bits.
    """

    name = "replay"

    def __init__(self, trace: Trace) -> None:
        self._waiting: dict[str, _Waiting] = {}
        for one in trace.passed:
            waiting = self._waiting.setdefault(one.decision.name, _Waiting(one.decision.name))
            waiting.lengths.add(one.decision.after.cuts[-1])
            if one.decision.acts and one.decision.policy not in _NOT_REPEATED:
                waiting.all.append(one.decision)

    def decide(self, situation: Situation) -> Decision:
        """Return the next decision of the trace when its iteration has come, else one to keep the cuts.

        A decision is told again until the cuts are as it says, at most twice: who asks while a loop runs asks
        again when it has paused.
        """
        waiting = self._about(situation)
        if waiting is None:
            return kept(situation, self.name, self._not_known(situation))
        waiting.serve(situation.name)
        if waiting.is_done(situation):
            waiting.take()
        waiting.note(situation.iteration)
        reason = "the trace is over: all its decisions were repeated"
        while waiting.decisions:
            decision = waiting.decisions[0]
            if not waiting.has_come(situation.iteration):
                if waiting.num_told:  # nobody acted upon it in its loop
                    waiting.take()
                    continue
                reason = f"not yet: the trace re-cuts {waiting.name} after iteration {decision.iteration}"
                break
            repeated = _repeated(decision, situation)
            if isinstance(repeated, Decision):
                waiting.num_told += 1
                return repeated
            waiting.take()
            reason = repeated
            if repeated != _SO_ALREADY:
                break
        return kept(situation, self.name, reason)

    def next_iteration(self, situation: Situation) -> float:
        """Return after how many iterations of the loop it wants to be asked next; infinity for never."""
        waiting = self._about(situation)
        return math.inf if waiting is None else waiting.next_after(situation.name, situation.iteration)

    def _about(self, situation: Situation) -> _Waiting | None:
        if situation.name not in self._waiting and len(self._waiting) == 1:
            (only,) = self._waiting.values()
            is_free = not only.served and situation.cuts.cuts[-1] in only.lengths
            return only if is_free or only.served == situation.name else None
        return self._waiting.get(situation.name)

    def _not_known(self, situation: Situation) -> str:
        if not self._waiting:
            return "not in the trace: it has no decisions"
        if len(self._waiting) == 1:
            (only,) = self._waiting.values()
            if not only.served:
                rows = " or ".join(f"{length:,}" for length in sorted(only.lengths)[:_MOST_NAMED])
                return (
                    f'not in the trace: it knows the group "{only.name}" of {rows} rows only, and '
                    f'"{situation.name}" has {situation.cuts.cuts[-1]:,}'
                )
        known = ", ".join(
            f'"{one.name}"' if one.served in ("", one.name) else f'"{one.name}" (here "{one.served}")'
            for one in [*self._waiting.values()][:_MOST_NAMED]
        )
        more = ", ..." if len(self._waiting) > _MOST_NAMED else ""
        return f'not in the trace: it knows groups {known}{more}, and none is called "{situation.name}"'


@dataclass
class _Waiting:
    """Decisions about one name that are still to be repeated.

    Iterations begin again with every loop. Decisions of a later loop, whose iterations do not go on from
    those before, wait for it.
    """

    name: str  # in the trace
    lengths: set[int] = field(default_factory=set)  # rows that it cuts
    all: list[Decision] = field(default_factory=list)
    served: str = ""  # the name of the group that asks for them
    decisions: deque[Decision] = field(default_factory=deque)  # that are left
    taken: int = -1  # the iteration of the decision repeated last, if it was in the loop that runs now
    num_told: int = 0  # how often the next one was told already

    def serve(self, name: str) -> None:
        if self.served != name:
            self.served, self.decisions = name, deque(self.all)
            self.taken, self.num_told = -1, 0

    def is_done(self, situation: Situation) -> bool:
        if not self.num_told:
            return False
        return self.num_told == _MOST_TOLD or isinstance(_repeated(self.decisions[0], situation), str)

    def note(self, iteration: int) -> None:
        if iteration < self.taken or iteration == 0:
            self.taken = -1

    def has_come(self, iteration: int) -> bool:
        wanted = self.decisions[0].iteration
        return wanted > self.taken and (iteration >= wanted if wanted else iteration == 0)

    def next_after(self, name: str, iteration: int) -> float:
        # What was told already is done by now, or was refused.
        is_served = self.served == name
        left = [*self.decisions][bool(self.num_told) :] if is_served else self.all
        taken = -1 if iteration == 0 or not is_served else self.taken
        if is_served and self.num_told:
            taken = max(taken, self.decisions[0].iteration)
        wanted = left[0].iteration if left else 0
        return max(wanted, iteration + 1) if wanted and wanted > taken else math.inf

    def take(self) -> None:
        self.taken = self.decisions.popleft().iteration
        self.num_told = 0


def _repeated(decision: Decision, situation: Situation) -> Decision | str:
    """Return a decision for the workers there are, or why it cannot be repeated."""
    length, wanted = situation.cuts.cuts[-1], decision.after.cuts[-1]
    if length != wanted:
        return f"does not fit: the trace cuts {wanted} rows, {situation.name} has {length}"
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
        return f"too few workers: the trace lays out over {len(used)}, there are {len(now)} now"
    after = Cuts(decision.after.cuts, tuple(numbers[owner] for owner in decision.after.owners))
    if after == situation.cuts:
        return _SO_ALREADY
    return replace(
        decision,
        name=situation.name,
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
    entry_seconds = situation.entry_seconds
    row_seconds = max(situation.row_seconds, _LEAST_WEIGHT * entry_seconds) or 1.0
    new, old = (
        situation.profile.weights(one.cuts, entry_seconds, row_seconds) for one in (cuts, situation.cuts)
    )
    sums = np.interp(new, old, np.append(0.0, np.cumsum(usual)))
    return tuple(
        float(seconds) / speeds.get(owner, 1.0)
        for seconds, owner in zip(np.diff(sums), cuts.owners, strict=True)
    )

"""Another policy asked about the times that a trace recorded, as if they were measured now."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from matnb.balance.decision import Decision
from matnb.balance.load import BlockLoads
from matnb.balance.policy import Policy
from matnb.balance.situation import Situation
from matnb.balance.trace import RecordedTimes, Times, Trace
from matnb.blocks.layout import Cuts

_LEAST_WEIGHT = 1e-9  # of a row beside a usual one, where rows cost nothing


def replay_policy(trace: Trace, policy: Policy) -> list[Decision]:
    """Ask a policy about the times of a trace, as if they were measured now.

    After the policy has repartitioned, the times that follow are those of the rows where they would lie then:
    the seconds of a block are spread over its rows and entries as the cost model has them, on a worker of
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

    def ask(self, policy: Policy, recorded: RecordedTimes, row: Times) -> Decision:
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

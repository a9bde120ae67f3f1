"""A loop over blocks on workers that take the seconds one tells them to: what a policy makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from matnb.balance.decision import Decision, Gain
from matnb.balance.load import BlockLoads
from matnb.balance.partition import makespan
from matnb.balance.policy import LearningPolicy, Policy
from matnb.balance.situation import Costs, Profile, Situation
from matnb.blocks.layout import Cuts

Speeds = Callable[[int], Mapping[int, float]]
ENTRY_BYTES, ROW_BYTES = 12.0, 16.0


def profile_of(entries: Sequence[int] | npt.NDArray[np.int64]) -> Profile:
    """Return where entries are, given how many each row has."""
    return Profile(np.arange(len(entries) + 1), np.append(0, np.cumsum(entries)).astype(np.int64))


@dataclass
class Simulated:
    """A loop whose rows take seconds that no policy sees.

    Attributes
    ----------
    entries, row_costs
        Of each row: its entries, and what it truly takes on a worker of speed 1.
    cuts
        Now.
    speeds
        How fast each worker is in an iteration.
    noise
        The deviation of the logarithm of a block's seconds; ``by_worker``: of all blocks of a worker alike.
    slow
        The seconds of a worker in an iteration times this, by (iteration, worker).
    """

    entries: npt.NDArray[np.int64]
    row_costs: npt.NDArray[np.float64]
    cuts: Cuts
    policy: Policy
    speeds: Speeds = lambda _: {0: 1.0, 1: 1.0}
    noise: float = 0.0
    by_worker: bool = False
    slow: Mapping[tuple[int, int], float] = field(default_factory=dict)
    num_iterations: int = 50
    threads: int = 1
    costs: Costs = field(default_factory=lambda: Costs(0.03, 1e9))
    seed: int = 0
    decisions: list[Decision] = field(default_factory=list)
    makespans: list[float] = field(default_factory=list)
    imbalances: list[float] = field(default_factory=list)
    owned: list[dict[int, int]] = field(default_factory=list)

    @property
    def acted(self) -> list[Decision]:
        """The decisions that changed the cuts."""
        return [one for one in self.decisions if one.acts]

    def run(self) -> Simulated:
        """Do all iterations, each with a report of every worker and a decision."""
        rng = np.random.default_rng(self.seed)
        profile = profile_of(self.entries)
        loads = BlockLoads(profile)
        loads.begin(self.cuts, 1e-9, 4e-9)
        since, waiting = -1, None
        for iteration in range(self.num_iterations):
            seconds = self._iterate(iteration, rng)
            if waiting is not None and isinstance(self.policy, LearningPolicy):
                last, before = waiting
                self.policy.brought(last, Gain({}, before - self.makespans[-1], last.cost_seconds, 0))
                waiting = None
            by_owner: dict[int, dict[int, float]] = {}
            for block, owner in enumerate(self.cuts.owners):
                by_owner.setdefault(owner, {})[block] = seconds[block]
            for owner, own in by_owner.items():
                loads.add(owner, iteration + 1, 1, own)
            since += since >= 0
            decision = self.policy.decide(self.situation(iteration + 1, loads, since))
            self.decisions.append(decision)
            if decision.acts:
                assert decision.before == self.cuts
                waiting = decision, self.makespans[-1]
                self.cuts, since = decision.after, 0
                loads.begin(self.cuts, 1e-9, 4e-9)
        return self

    def situation(self, iteration: int, loads: BlockLoads, since: int) -> Situation:
        """Return what a policy sees."""
        return Situation(
            name="A",
            cuts=self.cuts,
            profile=profile_of(self.entries),
            row_bytes=ROW_BYTES,
            entry_bytes=ENTRY_BYTES,
            block_seconds=loads.block_seconds(),
            error=loads.error(self.threads),
            speeds=loads.speeds(self.speeds(iteration)),
            threads=self.threads,
            entry_seconds=1e-9,
            row_seconds=4e-9,
            iteration=iteration,
            num_remaining=self.num_iterations - iteration,
            iteration_seconds=self.makespans[-1] if self.makespans else 0.0,
            costs=self.costs,
            other_seconds=loads.other_seconds(),
            since_last=since,
        )

    def _iterate(self, iteration: int, rng: np.random.Generator) -> list[float]:
        speeds = self.speeds(iteration)
        before = np.append(0.0, np.cumsum(self.row_costs))
        work = np.diff(before[list(self.cuts.cuts)])
        blocks = np.exp(self.noise * rng.standard_normal(len(work)))
        workers = dict(zip(speeds, np.exp(self.noise * rng.standard_normal(len(speeds))), strict=True))
        seconds = []
        for block, owner in enumerate(self.cuts.owners):
            factor = workers[owner] if self.by_worker else blocks[block]
            seconds.append(work[block] * factor * self.slow.get((iteration, owner), 1.0) / speeds[owner])
        self.makespans.append(makespan(seconds, self.cuts.owners, self.threads))
        loads = np.bincount(self.cuts.owners, np.asarray(seconds), minlength=len(speeds))
        self.imbalances.append(float(loads.max() / loads.mean()))
        rows = np.bincount(self.cuts.owners, np.diff(self.cuts.cuts), minlength=len(speeds))
        self.owned.append({worker: int(rows[worker]) for worker in speeds})
        return seconds


def equal_rows(length: int, num_blocks: int, num_workers: int) -> Cuts:
    """Return blocks of as many rows, in turn of the workers."""
    cuts = tuple(length * one // num_blocks for one in range(num_blocks + 1))
    return Cuts(cuts, tuple(one * num_workers // num_blocks for one in range(num_blocks)))


def skewed(num_rows: int = 2048, seed: int = 1) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return entries by a power law, and costs that entries tell half only."""
    rows = np.arange(num_rows)
    entries = np.maximum(1, 2e5 / (5 + rows) ** 0.9).astype(np.int64)
    return entries, (entries * 1e-7 + 1e-6) * np.exp(0.5 * np.sin(rows / num_rows * 7 + seed))


def four_blocks(**changes: object) -> Situation:
    """Return four blocks of two workers, the first of which takes three times as long as the second."""
    usual = Situation(
        name="A",
        cuts=Cuts((0, 25, 50, 75, 100), (0, 0, 1, 1)),
        profile=profile_of([1_000] * 100),
        row_bytes=16.0,
        entry_bytes=12.0,
        block_seconds=(0.3, 0.3, 0.1, 0.1),
        error=0.02,
        speeds={0: 1.0, 1: 1.0},
        threads=1,
        entry_seconds=1e-6,
        row_seconds=1e-6,
        iteration=10,
        num_remaining=40,
        iteration_seconds=0.65,
        costs=Costs(0.03, 1e9),
    )
    return replace(usual, **changes)  # type: ignore[arg-type]

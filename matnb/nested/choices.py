"""How a nested array was cut: what both strategies should take, which was taken and why, and what it took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matnb.balance.situation import Strategy


@dataclass(frozen=True)
class StrategyCost:
    """What reducing each segment once takes with some cuts.

    Attributes
    ----------
    work_seconds
        What the busiest slot, a thread of a worker, takes in all rounds together.
    num_rounds
        1 where no segment is cut: then no block waits for another one's results.
    round_seconds
        What lies between two rounds.
    """

    work_seconds: float
    num_rounds: int
    round_seconds: float

    @property
    def seconds(self) -> float:
        """C = c max s + (c - 1) t_b, the model that ``matnb.nested.strategy`` cites."""
        return self.work_seconds + (self.num_rounds - 1) * self.round_seconds


@dataclass(frozen=True)
class StrategyChoice:
    """How the values of a nested array are cut, and why.

    Attributes
    ----------
    num_segments, num_values, longest
        Of the array: what the choice follows from, with the cuts of its values before.
    strategy, cuts, ranks
        Which strategy was taken, where it cuts the values, and which of the workers has each block, in order;
        without ranks neighbors lie together.
    segmented, uniform
        What both were predicted to take; alike where there is one block.
    reason
        One sentence for a user.
    """

    num_segments: int
    num_values: int
    longest: int
    strategy: Strategy
    cuts: tuple[int, ...]
    ranks: tuple[int, ...]
    segmented: StrategyCost
    uniform: StrategyCost
    reason: str

    @property
    def cost(self) -> StrategyCost:
        """What the strategy that was taken was predicted to take."""
        return self.segmented if self.strategy == "segmented" else self.uniform


def busiest_seconds(blocks: Sequence[tuple[int, float]], threads: int) -> float:
    """Return what the busiest thread of any worker takes.

    Parameters
    ----------
    blocks
        The worker of each, and its seconds, in order. The threads of a worker take its blocks one after the
        other, each as soon as it is free.
    threads
        Of a worker.
    """
    loads: dict[int, list[float]] = {}
    for owner, seconds in blocks:
        own = loads.setdefault(owner, [0.0] * max(1, threads))
        own[own.index(min(own))] += seconds
    return max(map(max, loads.values()), default=0.0)

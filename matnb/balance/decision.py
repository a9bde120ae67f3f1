"""Decisions: rebalance or keep, why, what it should bring, and what it brought."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from matnb.balance.situation import Cuts
from matnb.pictures.imbalance import imbalance

Strategy = Literal["segmented", "uniform"]


@dataclass(frozen=True)
class Decision:
    """Rebalance or keep, and why.

    Attributes
    ----------
    policy
        Who decided: "auto", "presto", "replay", "asked" (by a user), "workers" (some came or went), "bits"
        (cuts follow from counts again, for what may have other bits where they follow from times).
    acts
        Whether the arrays are to be re-cut.
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
    """

    name: str
    policy: str
    acts: bool
    reason: str
    before: Cuts
    after: Cuts
    strategy: Strategy
    loads_before: Mapping[int, float]
    loads_after: Mapping[int, float]
    block_seconds: tuple[float, ...]
    saving_seconds: float
    num_remaining: float
    cost_seconds: float
    moved_bytes: int
    iteration: int
    in_entries: bool = False

    @property
    def imbalance_before(self) -> float:
        """The slowest worker's load over the mean."""
        return imbalance(self.loads_before)

    @property
    def imbalance_after(self) -> float:
        """The same as predicted."""
        return imbalance(self.loads_after)


@dataclass(frozen=True)
class Gain:
    """What a decision that was acted upon brought.

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

    loads: Mapping[int, float]
    saving_seconds: float
    cost_seconds: float
    moved_bytes: int


@dataclass(frozen=True)
class Passed:
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
    decision: Decision
    gain: Gain | None = None
    num_repeats: int = 1

"""What the blocks of some arrays took, written down while their cuts stayed as they were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from matnb.balance.situation import Situation


@dataclass(frozen=True)
class Times:
    """What the blocks of some arrays took, as every worker had told it once more.

    Attributes
    ----------
    iteration
        How many iterations were done.
    num_iterations
        Over how many the seconds are a mean.
    block_seconds
        Kernel seconds of each block in one iteration.
    loads
        The same for each worker, with what it computes besides.
    iteration_seconds
        What an iteration took by the clock.
    num_remaining
        Iterations that were expected to follow.
    """

    iteration: int
    num_iterations: int
    block_seconds: tuple[float, ...]
    loads: Mapping[int, float]
    iteration_seconds: float
    num_remaining: float


@dataclass(frozen=True, eq=False)
class Recorded:
    """Times that were measured while the cuts stayed as they were.

    Attributes
    ----------
    situation
        As it was at first; without seconds of blocks.
    times
        In order.
    """

    situation: Situation
    times: tuple[Times, ...]

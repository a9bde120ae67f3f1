"""What a policy sees: how the rows of some arrays are cut, what each block took, and what moving costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt

from matnb.balance.codec import Amount, AmountOrEndless, FieldPlace, Limits, Rate
from matnb.blocks.layout import Cuts

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Strategy = Literal["segmented", "uniform"]  # whole rows, or heavy ones by themselves, shared by all
_MOST_SECONDS = 1e200  # of an entry or a row, that sums of them stay finite


@dataclass(frozen=True, eq=False)
class Profile:
    """How many entries are stored before some places of an axis; between two places they are spread evenly.

    Attributes
    ----------
    places
        Ascending, from 0 to the length of the axis. A row that holds much is between two adjacent numbers.
    entries
        Stored entries before each place; of a dense array its elements.
    """

    places: Integers
    entries: Integers

    @property
    def length(self) -> int:
        """How long the axis is."""
        return int(self.places[-1])

    def before(self, places: npt.ArrayLike) -> Floats:
        """Return the entries before any places of the axis."""
        return np.interp(np.asarray(places, np.float64), self.places, self.entries)

    def weights(self, places: npt.ArrayLike, entry_seconds: float, row_seconds: float) -> Floats:
        """Return the cumulative seconds before each place, given the seconds per entry and per row."""
        rows = np.asarray(places, np.float64)
        return self.before(rows) * min(entry_seconds, _MOST_SECONDS) + rows * min(row_seconds, _MOST_SECONDS)


@dataclass(frozen=True)
class Costs:
    """What changing a layout costs: a constant, and a rate of bytes; learned from what repartitions took."""

    fixed_seconds: Amount
    bytes_per_second: Rate

    def seconds(self, moved_bytes: float) -> float:
        """Return the expected seconds to move some bytes."""
        return self.fixed_seconds + moved_bytes / self.bytes_per_second


@dataclass(frozen=True, eq=False)
class Situation:
    """All that a policy decides by; it can be written down and decided upon again.

    Attributes
    ----------
    name
        Of the arrays, for a user: "A", or "A, x".
    cuts
        How their rows are cut now.
    profile
        Where the entries of the heaviest are.
    row_bytes, entry_bytes
        What a row and an entry take, over all arrays that are cut alike: what moving them moves.
    block_seconds
        Kernel seconds that each block takes in one iteration, robust over the last ones; empty before the
        first run, when entries stand for seconds.
    error
        Relative standard error of the seconds of a block, from how they differ between iterations.
    speeds
        For each worker that there is how fast it computes, 1.0 being usual. Workers in here that own nothing
        have just come; owners that are not in here have gone.
    threads
        Of each worker.
    other_seconds
        For each worker the seconds of its other work in an iteration, wherever the cuts are.
    entry_seconds, row_seconds
        What an entry and a row take on a usual worker, as the cost model has them.
    apart_row_seconds
        What a row takes in phases of their own, which begin when all workers have reported:
        there the worker with the most rows is waited for once more.
    iteration
        Of the loop, or runs so far: 0 before the first.
    num_remaining
        Iterations that are expected to follow.
    iteration_seconds
        What an iteration takes now, by the clock; 0.0 before the first.
    since_last
        Iterations since the last time that these arrays were repartitioned; -1 for never.
    costs
        Of moving.
    can_split_rows
        Whether a row may be shared by several workers or threads (the work on it, not where it is stored).
    """

    name: str
    cuts: Cuts
    profile: Annotated[Profile, FieldPlace.INLINE]
    row_bytes: Amount
    entry_bytes: Amount
    error: Amount
    speeds: Mapping[int, Rate]
    threads: Annotated[int, Limits(1)]
    entry_seconds: Amount
    row_seconds: Amount
    iteration: int
    num_remaining: AmountOrEndless
    iteration_seconds: Amount
    costs: Annotated[Costs, FieldPlace.INLINE]
    block_seconds: Annotated[tuple[float, ...], FieldPlace.NOWHERE] = ()
    other_seconds: Mapping[int, Amount] = field(default_factory=dict)
    apart_row_seconds: Annotated[Amount, FieldPlace.NEWER] = 0.0
    since_last: Annotated[int, Limits(-1)] = -1
    can_split_rows: bool = True

    @property
    def has_owners(self) -> bool:
        """Whether all workers that own a block are there."""
        return self.speeds.keys() >= set(self.cuts.owners)

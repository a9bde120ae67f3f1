"""What a run left, whichever engine ran it: blocks on workers, values in this process, times and counts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from matnb.backend.engines.recovery import Resume
from matnb.backend.kept import BlockRef, names_of
from matnb.backend.tasks.worker import Report
from matnb.errors import CellCancelled
from matnb.events import TaskTimed
from matnb.expr.nodes import Expr
from matnb.program.plan import Slot, StoredArray
from matnb.program.program import Program


@dataclass(frozen=True)
class Outcome:
    """What a run left, whichever engine ran it.

    Attributes
    ----------
    kept
        What keeps the blocks of results, and of what was to be held, on the workers that own these.
    counts
        Entries and bytes of each, as far as they are known.
    fetched
        The values that were wanted in this process.
    timed
        One record a task: seconds over all iterations.
    iterations
        Of the outermost loop.
    sent_bytes
        Bytes of arrays from one member of a gang to another.
    allocated
        New arrays of 64 KiB or more, over all members, by iteration of the outermost loop.
    num_members
        Of the gang; 0 where there was none, and nobody counts what is sent and allocated.
    paused
        Where the loop goes on if it paused; then there are no results, and ``counts`` are those of its state.
    ended_itself
        Whether the outermost loop's condition ended it, before or in the last iteration that there may be.
    """

    kept: Mapping[Slot, BlockRef] = field(default_factory=dict)
    counts: Mapping[Slot, tuple[int, int]] = field(default_factory=dict)
    fetched: Mapping[Slot, Any] = field(default_factory=dict)
    timed: tuple[TaskTimed, ...] = ()
    seconds: float = 0.0
    iterations: int = 0
    sent_bytes: int = 0
    allocated: tuple[int, ...] = ()
    num_members: int = 0
    paused: Resume | None = None
    ended_itself: bool = False

    def arrays(
        self, outputs: Mapping[Expr, StoredArray]
    ) -> dict[Expr, tuple[StoredArray, tuple[BlockRef, ...]]]:
        """Return those arrays of a plan whose blocks are all there, and what keeps these."""
        return {
            node: as_kept(array, self.kept, self.counts)
            for node, array in outputs.items()
            if self.kept.keys() >= {*array.keys}
        }

    def with_fetched(
        self,
        fetch: Sequence[Slot],
        gather: Callable[[Sequence[BlockRef], Sequence[int]], Sequence[Any]],
        owners: Sequence[int],
    ) -> Outcome:
        """Return it with the values of some results of a program, unless that has paused."""
        if not fetch or self.paused is not None:
            return self
        blocks = gather([self.kept[slot] for slot in fetch], owners)
        return replace(self, fetched=dict(zip(fetch, blocks, strict=True)))


class RunCancelled(CellCancelled):
    """A user's interrupt of a run; ``outcome`` has the whole arrays that were finished."""

    def __init__(self, message: str, outcome: Outcome) -> None:
        super().__init__(message)
        self.outcome = outcome


def as_kept(
    array: StoredArray, kept: Mapping[Slot, BlockRef], counts: Mapping[Slot, tuple[int, int]]
) -> tuple[StoredArray, tuple[BlockRef, ...]]:
    """Return an array as workers hold it, with its blocks' entries and bytes where all are known."""
    futures = tuple([kept[key] for key in array.keys])
    if not all(key in counts for key in array.keys):
        return replace(array, keys=names_of(futures)), futures
    nnz, sizes = zip(*(counts[key] for key in array.keys), strict=True)
    return StoredArray(array.layout, names_of(futures), nnz, sizes, num_begun=array.num_begun), futures


def outcome_of(
    program: Program,
    epoch: int,
    reports: Sequence[Report],
    seconds: float,
    keep: Callable[[Slot], BlockRef],
) -> Outcome:
    """Return what the members of a gathering left; ``keep`` gives what keeps a block of it."""
    counts = {name: count for report in reports for name, count in report.counts.items()}
    steps = itertools.zip_longest(*(report.allocated for report in reports), fillvalue=0)
    kept = {name: keep(name) for name in counts}
    iterations = max(report.iterations for report in reports)
    paused = None
    if any(report.paused for report in reports):
        paused, kept = Resume(iterations, kept, {name: program.owners[name] for name in kept}, epoch), {}
    return Outcome(
        kept,
        counts,
        {},
        tuple(one for report in reports for one in report.timed),
        seconds,
        iterations,
        sum(report.sent_bytes for report in reports),
        tuple(sum(step) for step in steps),
        len(reports),
        paused,
        any(report.ended_itself for report in reports),
    )

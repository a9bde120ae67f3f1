"""What a run left, whichever engine ran it: blocks on workers, values in this process, times and counts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from distributed import Future

from matnb.backend.engines.gang_graph import Gathering
from matnb.backend.engines.recovery import Resume
from matnb.backend.kept import Kept, LocalBlock, names_of
from matnb.backend.tasks.worker import Report
from matnb.errors import CellCancelled
from matnb.events import TaskTimed
from matnb.program.plan import Slot, Stored
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

    kept: Mapping[Slot, Kept] = field(default_factory=dict)
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

    def has(self, array: Stored) -> bool:
        """Tell whether all blocks of an array of the plan are there."""
        return all(key in self.kept for key in array.keys)

    def array(self, array: Stored) -> tuple[Stored, tuple[Kept, ...]]:
        """Return an array of the plan as the workers have it, and what keeps its blocks."""
        return as_kept(array, self.kept, self.counts)


class RunCancelled(CellCancelled):
    """A user's interrupt of a run; ``outcome`` has the whole arrays that were finished."""

    def __init__(self, message: str, outcome: Outcome) -> None:
        super().__init__(message)
        self.outcome = outcome


def as_kept(
    array: Stored, kept: Mapping[Slot, Kept], counts: Mapping[Slot, tuple[int, int]]
) -> tuple[Stored, tuple[Kept, ...]]:
    """Return an array as workers hold it, with its blocks' entries and bytes where all are known."""
    futures = tuple([kept[key] for key in array.keys])
    if not all(key in counts for key in array.keys):
        return replace(array, keys=names_of(futures)), futures
    nnz, sizes = zip(*(counts[key] for key in array.keys), strict=True)
    return Stored(array.layout, names_of(futures), nnz, sizes, num_begun=array.num_begun), futures


def outcome_of(
    gathering: Gathering,
    program: Program,
    reports: Sequence[Report | None],
    seconds: float,
    future: Callable[[str], Future],
) -> Outcome:
    """Return what the members of a gathering left; ``future`` makes the future of a Dask key."""
    whole = [report for report in reports if report is not None]
    counts = {name: count for report in whole for name, count in report.counts.items()}
    steps = itertools.zip_longest(*(report.allocated for report in whole), fillvalue=0)
    futures = {name: future(gathering.key(name)) for name in counts}
    iterations = max(report.iterations for report in whole)
    paused = None
    if any(report.paused for report in whole):
        owners = {name: program.owners[name] for name in futures}
        paused, futures = Resume(iterations, futures, owners, gathering.epoch), {}
    return Outcome(
        futures,
        counts,
        {},
        tuple(one for report in whole for one in report.timed),
        seconds,
        iterations,
        sum(report.sent_bytes for report in whole),
        tuple(sum(step) for step in steps),
        len(whole),
        paused,
        any(report.ended_itself for report in whole),
    )


def alone_outcome(done: Report, name: str, epoch: int, seconds: float) -> Outcome:
    """Return what the only member of a gang left, which called its blocks after ``name``."""
    kept: dict[Slot, Kept] = {key: LocalBlock(f"{name}-{key}", block) for key, block in done.values.items()}
    paused = None
    if done.paused:
        paused, kept = Resume(done.iterations, kept, dict.fromkeys(kept, done.owner), epoch), {}
    return Outcome(
        kept,
        done.counts,
        {},
        done.timed,
        seconds,
        done.iterations,
        done.sent_bytes,
        done.allocated,
        1,
        paused,
        done.ended_itself,
    )

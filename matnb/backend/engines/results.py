"""What a program returns: its results, or the state in which its loop paused, and the time it took."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from distributed import Future

from matnb.backend.engines.gang_graph import Gathering
from matnb.backend.engines.recovery import Resume
from matnb.backend.gang.member_life import MemberReport
from matnb.backend.gang.performer import Performed
from matnb.backend.kept import Kept, LocalBlock
from matnb.events import TaskTimed
from matnb.program.plan import Slot
from matnb.program.program import Program


@dataclass(frozen=True)
class ProgramOutcome:
    """What a program left, whoever ran it.

    Attributes
    ----------
    futures
        What keeps the blocks of the results, by register, on the workers that own these.
    counts
        Entries and bytes of each, as far as they are known.
    timed
        One record a task: seconds over all iterations.
    iterations
        Of the outermost loop.
    sent_bytes
        Bytes of arrays from one member to another.
    allocated
        New arrays of 64 KiB or more, over all members, by iteration of the outermost loop.
    num_members
        Of the gang; 0 where the driver went through the program task by task, and nobody counts what is sent
        and allocated.
    paused
        Where the loop goes on if it paused; then there are no results, and ``counts`` are those of its state.
    ended_itself
        Whether the outermost loop's condition ended it, before or in the last iteration that there may be.
    """

    futures: Mapping[Slot, Kept]
    counts: Mapping[Slot, tuple[int, int]]
    timed: tuple[TaskTimed, ...]
    seconds: float
    iterations: int
    sent_bytes: int = 0
    allocated: tuple[int, ...] = ()
    num_members: int = 0
    paused: Resume | None = None
    ended_itself: bool = False


def outcome_of(
    gathering: Gathering,
    program: Program,
    reports: Sequence[MemberReport | None],
    seconds: float,
    future: Callable[[str], Future],
) -> ProgramOutcome:
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
    return ProgramOutcome(
        futures,
        counts,
        tuple(one for report in whole for one in report.timed),
        seconds,
        iterations,
        sum(report.sent_bytes for report in whole),
        tuple(sum(step) for step in steps),
        len(whole),
        paused,
        any(report.ended_itself for report in whole),
    )


def alone_outcome(done: Performed, name: str, epoch: int, owner: int, seconds: float) -> ProgramOutcome:
    """Return what the only member of a gang left, which called its blocks after ``name``."""
    kept: dict[Slot, Kept] = {
        key: LocalBlock(f"{name}-{key}", block) for key, block in done.registers.items()
    }
    paused = None
    if done.paused:
        paused = Resume(done.iterations, kept, dict.fromkeys(kept, owner), epoch)
    return ProgramOutcome(
        {} if done.paused else kept,
        {key: (block.nnz, block.nbytes) for key, block in done.registers.items()},
        done.timed,
        seconds,
        done.iterations,
        done.sent_bytes,
        done.allocated,
        1,
        paused,
        done.ended_itself,
    )

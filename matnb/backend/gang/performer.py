"""One member of a gang interprets a program: batches, loops and branches, in step with all others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from matnb.backend.gang.exchange import touched_places
from matnb.backend.gang.iteration_boundary import IterationBoundary, Listener
from matnb.backend.gang.jobs import MemberProgram, ReadyTask, TaskJob
from matnb.backend.gang.liveness import BatchPlace, BranchPlace, Place, RepeatPlace, flat
from matnb.backend.gang.mailbox import Keeper, Mailbox
from matnb.backend.gang.member import MemberRegisters
from matnb.backend.tasks.executor import PreparedTask
from matnb.backend.tasks.registers import Pool, Register, Wholes
from matnb.backend.tasks.thread_pool import ThreadPool
from matnb.backend.tasks.worker import Report
from matnb.blocks.formats import Block, Csr, Dense, freeze, to_numpy
from matnb.events import TaskTimed
from matnb.program.plan import Slot, Task
from matnb.program.program import Program

_COUNT = np.dtype(np.int64)
_performing: dict[int, Sequence[TaskJob]] = {}  # by thread


def perform(
    program: Program,
    registers: Mapping[Slot, Block],
    mailbox: Mailbox,
    num_threads: int,
    keeper: Keeper | None,
    begin: int = 0,
    on_progress: Callable[[int, float], None] | None = None,
    listener: Listener | None = None,
    prepare: Callable[[Task], ReadyTask] | None = None,
) -> Report:
    """Run one member's part of a program.

    Parameters
    ----------
    program
        The same for all members.
    registers
        Those of the given ones that this member has.
    mailbox
        Between the members.
    num_threads
        Threads that run tasks, the calling one among them.
    keeper
        Keeps the state of the outermost loop now and then, or None.
    begin
        Number of the outermost loop's first iteration.
    on_progress
        Called by the first member after each iteration of the outermost loop with its number and its seconds.
    listener
        Hears what the tasks of the outermost loop's body take, and may ask for a pause; all members of a gang
        have one, or none.
    prepare
        Makes the steps of a task ready; by default threads without a task help those that have one.

    Raises
    ------
    Aborted
        When the gang was.
    TaskFailed
        When a task of this member raised.
    """
    with np.errstate(all="ignore"):
        crew = ThreadPool(num_threads, mailbox.check)
        try:
            # Taken out while it is used, and back only where all went well.
            part = program.by_member.pop(mailbox.owner, None) if prepare is None else None
            if not isinstance(part, MemberProgram):
                part = MemberProgram(program, mailbox.owner)
            part.begin(prepare or partial(_prepared, part), crew)
            _performing[threading.get_ident()] = part.jobs
            walk = _MemberWalk(program, part, registers, mailbox, crew)
            walk.outermost(keeper, begin, on_progress, listener, num_threads)
            report = walk.report()
            if prepare is None:
                part.end()
                program.by_member[mailbox.owner] = part
            return report
        finally:
            _performing.pop(threading.get_ident(), None)
            crew.close()


def _prepared(part: MemberProgram, task: Task) -> PreparedTask:
    # threads without a task help those that have one
    return PreparedTask(task.steps, len(task.inputs), part.share)


def seconds_so_far(thread: int) -> dict[str, float]:
    """Return the seconds a member's jobs have taken so far, by kind; read unlocked, for display only."""
    found: dict[str, float] = {}
    for job in _performing.get(thread, ()):
        seconds = job.seconds
        if begun := job.begun:
            seconds += max(0.0, time.perf_counter() - begun)
        if seconds:
            found[job.task.kind.name] = found.get(job.task.kind.name, 0.0) + seconds
    return found


class _MemberWalk:
    """A member's way through a program."""

    def __init__(
        self,
        program: Program,
        part: MemberProgram,
        registers: Mapping[Slot, Block],
        mailbox: Mailbox,
        crew: ThreadPool,
    ) -> None:
        self._program, self._part = program, part
        self._mailbox = mailbox
        self._me = mailbox.owner
        self._pool = Pool()
        wholes, limit = Wholes(self._pool, part.stacks), program.limits.get(self._me)
        self._member = MemberRegisters(registers, mailbox, crew, wholes, limit)
        self._iterations = 0
        self._ended_itself = False
        self._between: IterationBoundary | None = None
        self._paused: list[Slot] | None = None  # the state from which the loop goes on

    def outermost(
        self,
        keeper: Keeper | None,
        begin: int,
        on_progress: Callable[[int, float], None] | None,
        listener: Listener | None,
        num_threads: int,
    ) -> None:
        """Run the whole program, or up to a pause; its first loop is the one checkpointed and reported."""
        places = self._part.places
        first = next((place for place in places if isinstance(place, RepeatPlace)), None)
        for place in places:
            if place is first:
                jobs = self._part.jobs_in(first.body)
                self._between = IterationBoundary(
                    self._member, self._pool, self._mailbox, jobs, keeper, on_progress, listener, num_threads
                )
                self._repeat(first, begin, self._between)
                if self._paused is not None:
                    return
            else:
                self._walk([place])

    def report(self) -> Report:
        """Return the values that survive the program, and its timings."""
        wanted = self._program.results if self._paused is None else dict.fromkeys(self._paused)
        results = self._member.results([name for name in wanted if self._part.is_mine(name)])
        timed: dict[Slot, TaskTimed] = {}
        for job in self._part.jobs:
            if job.num_runs:
                _add(timed, job)
        return Report(
            self._me,
            {name: freeze(block) for name, block in results.items()},
            tuple(timed.values()),
            {name: (block.nnz, block.nbytes) for name, block in results.items()},
            iterations=self._iterations,
            sent_bytes=self._member.sent_bytes,
            allocated=() if self._between is None else tuple(self._between.allocated),
            paused=self._paused is not None,
            ended_itself=self._ended_itself,
        )

    def _walk(self, places: Sequence[Place]) -> None:
        for place in places:
            match place:
                case BatchPlace():
                    self._member.run(self._part.batch(place))
                case RepeatPlace():
                    self._repeat(place)
                case BranchPlace():
                    self._branch(place)

    def _branch(self, place: BranchPlace) -> None:
        branch, live = place.branch, place.live
        if self._decided(branch.predicate):
            self._drop(place, "then", place.entered, place.then_begun)
            self._walk(place.then)
            self._rename(place, "then-ends", branch.from_then, branch.results, place.then_ended, live)
        else:
            self._drop(place, "otherwise", place.entered, place.otherwise_begun)
            self._walk(place.otherwise)
            ended = place.otherwise_ended
            self._rename(place, "otherwise-ends", branch.from_otherwise, branch.results, ended, live)

    def _repeat(self, place: RepeatPlace, begin: int = 0, between: IterationBoundary | None = None) -> None:
        repeat, member = place.repeat, self._member
        limit = int(self._decided(repeat.limit))
        state, after, first = (flat(arrays) for arrays in (repeat.state, repeat.after, repeat.first))
        self._rename(place, "first", first, state, place.entered, place.boundary)
        taken, num_bytes, ends = begin, self._sparse_bytes(state), False
        if taken < limit:
            self._enter(place)
        while taken < limit:
            self._mailbox.check()
            if between is not None:
                between.begin(taken)
            member.put(repeat.iteration, Register(Dense(np.array(taken, _COUNT))))
            self._drop(place, "begin", place.boundary, place.begun)
            self._walk(place.body)
            taken += 1
            ends = repeat.until is not None and bool(self._decided(repeat.until))
            self._rename(place, "after", after, state, place.ended, place.boundary)
            if grown := self._sparse_bytes(state):  # how a sparse state grows is not known before
                growth = 0 if ends or taken >= limit else max(0, grown - num_bytes)
                self._member.allowance.check(growth)
            num_bytes = grown
            if between is not None:
                self._iterations = taken
                if between.end(taken, state, ends, ends or taken >= limit):
                    self._paused = state
                    return
            if ends:
                break
        self._drop(place, "end", place.boundary, place.live)
        if repeat.taken in place.live and self._part.is_mine(repeat.taken):
            member.put(repeat.taken, Register(Dense(np.array(taken, _COUNT))))
        if between is not None:
            self._iterations, self._ended_itself = taken, ends

    def _sparse_bytes(self, state: Sequence[Slot]) -> int:
        # What this member has of a sparse state.
        held = [self._member.held[name].value for name in state if name in self._member.held]
        return sum([value.nbytes for value in held if type(value) is Csr])

    def _enter(self, place: RepeatPlace) -> None:
        # What stays the same is sent once; then readers tell what they need of what changes.
        if place.sends:
            here = [(name, readers) for name, readers in place.sends.items() if self._part.is_mine(name)]
            there = [name for name, readers in place.sends.items() if self._me in readers]
            self._member.exchange(here, there)
        if not place.wanted:
            return
        tick = self._member.next_tick()
        for number, (batch, wanted) in enumerate(place.wanted):
            if wanted.reader == self._me:
                found, places = touched_places(wanted, self._member.held), None
                batched = self._part.batch(batch)
                batched.unpacking.pop(wanted.name, None)
                if found is not None:
                    places, length = found
                    batched.unpacking[wanted.name] = places
                    batched.lengths[wanted.name] = length
                self._mailbox.post(wanted.owner, (tick, str(number)), places)
        for number, (batch, wanted) in enumerate(place.wanted):
            if wanted.owner == self._me:
                places = self._member.wait((tick, str(number)))
                packing = self._part.batch(batch).packing
                packing.pop((wanted.name, wanted.reader), None)
                if places is not None:
                    packing[wanted.name, wanted.reader] = np.array(places)

    def _decided(self, name: Slot) -> float:
        # The value of a scalar, broadcast by its owner, so that all members go the same way.
        if name in self._part.owners.everywhere:
            return _scalar(self._member.held[name])
        owner = self._part.owners.owner(name, -1)
        value: float = self._member.broadcast(owner, lambda: _scalar(self._member.held[name]))
        return value

    def _drop(self, place: Place, where: str, before: frozenset[Slot], live: frozenset[Slot]) -> None:
        self._member.drop(self._part.move(place, where, before, live).dropped)

    def _rename(
        self,
        place: Place,
        where: str,
        old: Sequence[Slot],
        new: Sequence[Slot],
        before: frozenset[Slot],
        live: frozenset[Slot],
    ) -> None:
        move = self._part.move(place, where, before, live, old, new)
        self._member.rename(move.renamed, move.dropped)


def _scalar(held: Register) -> float:
    value: float = to_numpy(held.value).reshape(-1)[0].item()
    return value


def _add(timed: dict[Slot, TaskTimed], job: TaskJob) -> None:
    before = timed.get(job.task.key)
    seconds, compiled = job.seconds, job.compiled
    if before is not None:
        seconds, compiled = seconds + before.seconds, compiled or before.compiled
    task = job.task
    timed[task.key] = TaskTimed(task.key, task.kind.name, task.owner, seconds, *job.counts, compiled)

"""One member of a gang runs a program: batch after batch, loops and branches as all members take them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from matnb.backend import steps
from matnb.backend.crew import Crew
from matnb.backend.exchange import Owners, plan_exchange, touched_places
from matnb.backend.jobs import Batched, Prepared, Running, jobs_of
from matnb.backend.mailbox import Keeper, Mailbox
from matnb.backend.member import Member, TaskRaised, Word
from matnb.backend.outline import BatchPlace, BranchPlace, Place, RepeatPlace, batches, outline, renamings
from matnb.backend.registers import Groups, Held, Pool, Wholes, parted
from matnb.blocks.formats import Block, Csr, Dense, freeze, to_numpy
from matnb.events import TaskTimed
from matnb.plan.plan import Task
from matnb.plan.program import Program, check_held

__all__ = ["Performed", "TaskRaised", "perform"]
_COUNT = np.dtype(np.int64)
_SETTLED = 2  # iterations, until every kind of register was filled


@dataclass(frozen=True)
class Performed:
    """What a member leaves.

    Attributes
    ----------
    registers
        The program's results that it owns, read-only, with memory of their own.
    timed
        A record a task, its seconds over all iterations; compiled where any of its runs was.
    iterations
        Taken by the outermost loop, those before a checkpoint among them.
    sent_bytes
        Of the arrays of blocks that it sent.
    allocated
        How many arrays of 64 KiB or more were newly made, by iteration of the outermost loop.
    """

    registers: Mapping[str, Block]
    timed: tuple[TaskTimed, ...]
    iterations: int
    sent_bytes: int
    allocated: tuple[int, ...]


def perform(
    program: Program,
    registers: Mapping[str, Block],
    mailbox: Mailbox,
    num_threads: int,
    keeper: Keeper | None,
    begin: int = 0,
    told: Callable[[int, float], None] | None = None,
    prepare: Callable[[Task], Prepared] | None = None,
) -> Performed:
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
    told
        Called by the first member after each iteration of the outermost loop with its number and its seconds.
    prepare
        Makes the steps of a task ready; by default threads without a task help those that have one.

    Raises
    ------
    Aborted
        When the gang was.
    TaskRaised
        When a task of this member raised.
    """
    with np.errstate(all="ignore"):
        crew = Crew(num_threads, mailbox.check)
        try:
            walk = _Walk(
                program, registers, mailbox, crew, prepare or partial(steps.prepare, share=crew.share)
            )
            walk.outermost(keeper, begin, told, num_threads)
            return walk.performed()
        finally:
            crew.close()


class _Walk:
    """A member's way through a program."""

    def __init__(
        self,
        program: Program,
        registers: Mapping[str, Block],
        mailbox: Mailbox,
        crew: Crew,
        prepare: Callable[[Task], Prepared],
    ) -> None:
        self._program = program
        self._places = outline(program)
        self._owners = Owners(program, self._places)
        self._mailbox = mailbox
        self._me = mailbox.owner
        tasks = {task.key: parted(task) for place in batches(self._places) for task in place.batch.tasks}
        plan_exchange(self._places, self._owners, tasks)
        joins = [
            join
            for place in batches(self._places)
            for task in place.batch.tasks
            if task.owner == self._me
            for join in tasks[task.key].joins
        ]
        groups = Groups(joins, renamings(self._places))
        self._batched: dict[int, Batched] = {
            id(place): jobs_of(place, self._me, self._owners, tasks, groups, prepare)
            for place in batches(self._places)
        }
        self._moves: dict[tuple[int, str], _Move] = {}
        self._pool = Pool()
        self._member = Member(registers, mailbox, crew, self._pool, Wholes(self._pool, groups.groups))
        self._iterations = 0
        self._allocated: list[int] = []

    def outermost(
        self,
        keeper: Keeper | None,
        begin: int,
        told: Callable[[int, float], None] | None,
        num_threads: int,
    ) -> None:
        """Walk the whole program; its first loop is the one that is kept and told of."""
        first = next((place for place in self._places if isinstance(place, RepeatPlace)), None)
        for place in self._places:
            if place is first:
                self._repeat(first, begin, _Watch(self, keeper, told, num_threads))
            else:
                self._walk([place])

    def performed(self) -> Performed:
        """Return what is left at the end."""
        mine = [name for name in self._program.results if self._owners.owner(name, self._me) == self._me]
        results = self._member.results(mine)
        timed: dict[str, TaskTimed] = {}
        for batched in self._batched.values():
            for job in batched.jobs:
                if isinstance(job, Running) and job.num_runs:
                    _add(timed, job)
        return Performed(
            {name: freeze(block) for name, block in results.items()},
            tuple(timed.values()),
            self._iterations,
            self._member.sent_bytes,
            tuple(self._allocated),
        )

    def _walk(self, places: Sequence[Place]) -> None:
        for place in places:
            match place:
                case BatchPlace():
                    self._member.run(self._batched[id(place)])
                case RepeatPlace():
                    self._repeat(place)
                case BranchPlace():
                    self._branch(place)

    def _branch(self, place: BranchPlace) -> None:
        branch, live = place.branch, place.live
        if self._decided(branch.predicate):
            self._member.drop(self._dropped(place, "then", place.entered, place.then_begun))
            self._walk(place.then)
            self._rename(place, "then-ends", branch.from_then, branch.results, place.then_ended, live)
        else:
            self._member.drop(self._dropped(place, "otherwise", place.entered, place.otherwise_begun))
            self._walk(place.otherwise)
            ended = place.otherwise_ended
            self._rename(place, "otherwise-ends", branch.from_otherwise, branch.results, ended, live)

    def _repeat(self, place: RepeatPlace, begin: int = 0, watch: _Watch | None = None) -> None:
        repeat, member = place.repeat, self._member
        limit = int(self._decided(repeat.limit))
        state, after, first = (_flat(arrays) for arrays in (repeat.state, repeat.after, repeat.first))
        self._rename(place, "first", first, state, place.entered, place.boundary)
        taken = begin
        if taken < limit:
            self._enter(place)
        begun = self._dropped(place, "begin", place.boundary, place.begun)
        while taken < limit:
            self._mailbox.check()
            if watch is not None:
                watch.begin(taken)
            member.put(repeat.iteration, Held(Dense(np.array(taken, _COUNT))))
            member.drop(begun)
            self._walk(place.body)
            taken += 1
            ends = repeat.until is not None and bool(self._decided(repeat.until))
            self._rename(place, "after", after, state, place.ended, place.boundary)
            self._check_memory(state)
            if watch is not None:
                watch.end(taken, state, ends)
            if ends:
                break
        member.drop(self._dropped(place, "end", place.boundary, place.live))
        if repeat.taken in place.live and self._owners.owner(repeat.taken, self._me) == self._me:
            member.put(repeat.taken, Held(Dense(np.array(taken, _COUNT))))
        if watch is not None:
            self._iterations = taken

    def _check_memory(self, state: Sequence[str]) -> None:
        # How a sparse state grows is not known before.
        limit = self._program.limits.get(self._me)
        if limit is not None:
            held = (self._member.held[name].value for name in state if name in self._member.held)
            check_held(sum(value.nbytes for value in held if isinstance(value, Csr)), limit)

    def _enter(self, place: RepeatPlace) -> None:
        # What stays the same is sent once; then readers tell what entries they need of what changes.
        if place.sends:
            here = [(name, readers) for name, readers in place.sends.items() if self._is_mine(name)]
            there = [name for name, readers in place.sends.items() if self._me in readers]
            self._member.exchange(here, there)
        if not place.wanted:
            return
        tick = self._member.next_tick()
        for number, (batch, wanted) in enumerate(place.wanted):
            if wanted.reader == self._me:
                found, places = touched_places(wanted, self._member.held), None
                batched = self._batched[id(batch)]
                batched.unpacking.pop(wanted.name, None)
                if found is not None:
                    places, length = found
                    batched.unpacking[wanted.name] = places
                    batched.lengths[wanted.name] = length
                self._mailbox.post(wanted.owner, (tick, str(number)), places)
        for number, (batch, wanted) in enumerate(place.wanted):
            if wanted.owner == self._me:
                places = self._member.wait((tick, str(number)))
                packing = self._batched[id(batch)].packing
                packing.pop((wanted.name, wanted.reader), None)
                if places is not None:
                    packing[wanted.name, wanted.reader] = np.array(places)

    def _decided(self, name: str) -> float:
        # The value of a scalar, told by its owner, so that all members go the same way.
        if name in self._owners.everywhere:
            return _scalar(self._member.held[name])
        owner = self._owners.owner(name, -1)
        value: float = self._member.told(owner, lambda: _scalar(self._member.held[name]))
        return value

    def _is_mine(self, name: str) -> bool:
        return self._owners.owner(name, self._me) == self._me

    def _dropped(self, place: Place, where: str, before: frozenset[str], live: frozenset[str]) -> _Names:
        return self._moved(place, where, (), (), before, live).dropped

    def _rename(
        self,
        place: Place,
        where: str,
        old: Sequence[str],
        new: Sequence[str],
        before: frozenset[str],
        live: frozenset[str],
    ) -> None:
        move = self._moved(place, where, old, new, before, live)
        self._member.rename(move.renamed, move.dropped)

    def _moved(
        self,
        place: Place,
        where: str,
        old: Sequence[str],
        new: Sequence[str],
        before: frozenset[str],
        live: frozenset[str],
    ) -> _Move:
        move = self._moves.get((id(place), where))
        if move is None:
            pairs = [
                (one, other)
                for one, other in zip(old, new, strict=True)
                if one != other and other in live and self._is_mine(other)
            ]
            move = _Move(tuple(pairs), tuple(sorted(before - live)))
            self._moves[id(place), where] = move
        return move


_Names = tuple[str, ...]


@dataclass(frozen=True)
class _Move:
    """Registers that become others, and those that nobody reads afterwards."""

    renamed: tuple[tuple[str, str], ...]
    dropped: _Names


class _Watch:
    """What happens between the iterations of the outermost loop besides."""

    def __init__(
        self,
        walk: _Walk,
        keeper: Keeper | None,
        told: Callable[[int, float], None] | None,
        num_threads: int,
    ) -> None:
        self._walk = walk
        self._keeper = keeper
        self._is_first = walk._me == walk._mailbox.members[0]
        self._told = told if self._is_first else None
        self._num_allocated = self._num_ended = 0
        # How many more registers may live at once when threads or messages come in another order.
        self._spare = 2 * (num_threads - 1) + len(walk._mailbox.members) - 1
        self._since = time.perf_counter()
        self._word = Word(False, None)

    def begin(self, number: int) -> None:
        """Ask whether the state is kept after this iteration; the first member's word counts for all."""
        if self._keeper is not None:
            keeper, first = self._keeper, self._walk._mailbox.members[0]
            self._word = self._walk._member.tell(first, lambda: bool(keeper.is_due()))

    def end(self, taken: int, state: Sequence[str], is_last: bool) -> None:
        """Keep the state where that is due, and tell how it goes."""
        member, pool = self._walk._member, self._walk._pool
        # Of a state that `until` was content with no loop goes on.
        if self._keeper is not None and member.hear(self._word) and not is_last:
            held = {name: member.held[name].value for name in state if name in member.held}
            self._keeper.save(taken, held)
        self._num_ended += 1
        if self._num_ended == _SETTLED:
            pool.reserve(self._spare)
        self._walk._allocated.append(pool.num_allocated - self._num_allocated)
        self._num_allocated = pool.num_allocated
        now = time.perf_counter()
        if self._told is not None:
            self._told(taken, now - self._since)
        self._since = now


def _flat(arrays: Sequence[Sequence[str]]) -> list[str]:
    return [name for array in arrays for name in array]


def _scalar(held: Held) -> float:
    value: float = to_numpy(held.value).reshape(-1)[0].item()
    return value


def _add(timed: dict[str, TaskTimed], job: Running) -> None:
    before = timed.get(job.task.key)
    seconds, compiled = job.seconds, job.compiled
    if before is not None:
        seconds, compiled = seconds + before.seconds, compiled or before.compiled
    task = job.task
    timed[task.key] = TaskTimed(task.key, task.kind, task.owner, seconds, *job.counts, compiled)

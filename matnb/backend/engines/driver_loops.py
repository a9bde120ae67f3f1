"""Loops without a gang: this process interprets the program, and an engine runs it batch after batch."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from matnb.backend.engines.context import EngineContext
from matnb.backend.engines.protocol import Progress, Watch
from matnb.backend.engines.recovery import Resume
from matnb.backend.engines.results import Outcome
from matnb.backend.kept import BlockRef
from matnb.blocks.formats import Dense
from matnb.events import TaskTimed
from matnb.program.kinds import COUNT
from matnb.program.operators import Constant
from matnb.program.plan import Plan, Slot, Step, Task
from matnb.program.program import Action, Batch, Branch, Iterate, Program, check_held

LINEAGE_DEPTH = 20  # after this many batches on each other's results their history is cut
_COUNT = np.dtype(np.int64)


class PlanEngine(ABC):
    """An engine that runs plans, and the batches of a program one after the other.

    Parameters
    ----------
    context
        Shared with other engines.

    Attributes
    ----------
    blocks
        Those on the workers.
    """

    def __init__(self, context: EngineContext) -> None:
        self._context, self.blocks = context, context.blocks
        self._cluster, self._answers = context.cluster, context.answers

    def run(
        self,
        program: Plan | Program,
        given: Mapping[Slot, BlockRef],
        fetch: Sequence[Slot] = (),
        hold: Sequence[Slot] = (),
        resume: Resume | None = None,
        on_progress: Progress | None = None,
        watch: Watch | None = None,
    ) -> Outcome:
        """Run a plan or a program; see :meth:`~matnb.backend.engines.protocol.Engine.run`."""
        try:
            if isinstance(program, Plan):
                return self.run_plan(program, given, fetch, hold)
            walker = ProgramWalker(self, program.holding(hold), given, resume, on_progress, watch)
            return walker.run().with_fetched(fetch, self.blocks.gather, self._cluster.alive())
        except BaseException:
            del given  # an error's traceback keeps this frame
            raise

    @abstractmethod
    def run_plan(
        self,
        plan: Plan,
        given: Mapping[Slot, BlockRef],
        fetch: Sequence[Slot] = (),
        hold: Sequence[Slot] = (),
    ) -> Outcome:
        """Run a plan."""


class ProgramWalker:
    """Walks a program.

    Parameters
    ----------
    engine
        Runs each batch.
    program, given
        What to run, and the futures of the registers that are filled before.
    resume
        Says the number of the outermost loop's first iteration.
    on_progress
        Called after each iteration of that loop with its number and seconds.
    watch
        Hears after each iteration what tasks took, and may want a pause.
    """

    def __init__(
        self,
        engine: PlanEngine,
        program: Program,
        given: Mapping[Slot, BlockRef],
        resume: Resume | None = None,
        on_progress: Progress | None = None,
        watch: Watch | None = None,
    ) -> None:
        self._engine, self._program, self._on_progress, self._watch = engine, program, on_progress, watch
        self._registers = dict(given)
        self._given = {one.key for one in given.values()}  # counted where they are stored
        self._counts: dict[Slot, tuple[int, int]] = {}
        self._scalars: dict[Slot, object] = {}
        self._asked = _control_scalars(program.actions)
        self._timed: dict[Slot, TaskTimed] = {}
        self._depth = 0
        self._nested = 0
        self._first = self._iterations = 0 if resume is None else resume.iteration
        self._ended_itself = False
        self._spent: dict[int, dict[Slot, float]] = {}  # by the tasks of an iteration, by worker
        self._seen: set[Slot] = set()  # tasks that have run
        self._paused: list[Slot] | None = None  # the state from which the loop goes on

    def run(self) -> Outcome:
        """Walk the program to its end, or to a pause; raises what the engine's ``run`` does."""
        begin = time.perf_counter()
        self._walk(self._program.actions)
        names = self._program.results if self._paused is None else self._paused
        futures = {name: self._registers[name] for name in names}
        paused = None
        if self._paused is not None:
            owners = {name: self._program.owners[name] for name in names}
            paused, futures = Resume(self._iterations, futures, owners), {}
        return Outcome(
            futures,
            {name: self._counts[name] for name in names if name in self._counts},
            {},
            tuple(self._timed.values()),
            time.perf_counter() - begin,
            self._iterations,
            paused=paused,
            ended_itself=self._ended_itself,
        )

    def _walk(self, actions: Sequence[Action]) -> None:
        for action in actions:
            if self._paused is not None:
                return
            match action:
                case Batch():
                    self._run(action.tasks, action.results)
                case Iterate():
                    self._repeat(action)
                case Branch():
                    chosen = bool(self._scalar(action.predicate))
                    self._walk(action.then if chosen else action.otherwise)
                    self._move(action.results, action.from_then if chosen else action.from_otherwise)

    def _repeat(self, loop: Iterate) -> None:
        for state, first in zip(loop.state, loop.first, strict=True):
            self._move(state, first)
        number, done = 0 if self._nested else self._first, False
        limit = int(self._scalar(loop.limit))  # type: ignore[call-overload]  # of an integer register
        self._nested += 1
        while number < limit and not done:
            begin = time.perf_counter()
            self._count(loop.iteration, number)
            self._walk(loop.body)
            done = loop.until is not None and bool(self._scalar(loop.until))  # of the old state, it may be
            names = [name for state in loop.state for name in state]
            self._move(names, [name for after in loop.after for name in after])
            if self._depth > LINEAGE_DEPTH:
                self._cut_lineage(names)
            number += 1
            if self._nested == 1:
                self._iterations, self._ended_itself = number, done
                self._tell(number, time.perf_counter() - begin)
                if number < limit and not done and self._watch is not None and self._watch.wants_pause():
                    self._pause(names)
                    return
        self._nested -= 1
        self._count(loop.taken, number)

    def _tell(self, number: int, seconds: float) -> None:
        if self._on_progress is not None:
            self._on_progress(number, seconds)
        if self._watch is not None:
            for owner, spent in self._spent.items():
                self._watch.measured(owner, number, 1, spent)
            self._watch.advanced(number, seconds)
        self._spent = {}

    def _pause(self, names: Sequence[Slot]) -> None:
        # What follows starts from this state, so its history would grow with each pause.
        self._paused = list(names)
        if names:
            self._cut_lineage(names)

    def _run(self, tasks: Sequence[Task], results: Sequence[Slot]) -> None:
        fetch = [name for name in results if name in self._asked]
        plan = Plan(tuple(tasks), (), (), {}, {}, {}, 0)
        found = self._engine.run_plan(plan, self._registers, fetch, results)
        self._registers.update(found.kept)
        self._counts.update(found.counts)
        for name, block in found.fetched.items():
            self._scalars[name] = block.values.item()
        for one in found.timed:
            if self._nested and not one.compiled and one.key in self._seen:
                spent = self._spent.setdefault(one.worker, {})
                spent[one.key] = spent.get(one.key, 0.0) + one.seconds
            self._timed[one.key] = one if one.key not in self._timed else added(self._timed[one.key], one)
        self._seen.update(one.key for one in found.timed)
        self._depth += 1
        self._check_memory(tasks)

    def _check_memory(self, tasks: Sequence[Task]) -> None:
        # How a sparse state grows is not known before.
        limits = self._program.limits
        if not limits:
            return
        owners = {**self._program.owners, **{task.key: task.owner for task in tasks}}
        held: dict[int, int] = {}
        for name, (_, size) in self._counts.items():
            if name in owners and name in self._registers and self._registers[name].key not in self._given:
                held[owners[name]] = held.get(owners[name], 0) + size
        for owner, size in held.items():
            if owner in limits:
                check_held(size, 0, limits[owner])

    def _count(self, name: Slot, number: int) -> None:
        # The number of an iteration, made by a task of its own as all values are.
        step = Step(Constant.filled(number, (), _COUNT), ())
        task = Task(name, (step,), (), self._program.owners[name], COUNT)
        self._run([task], [name])
        self._scalars[name] = number

    def _move(self, names: Sequence[Slot], sources: Sequence[Slot]) -> None:
        # All at once: an array may change places with another.
        tables: tuple[dict[Slot, Any], ...] = (self._registers, self._counts, self._scalars)
        for kept in tables:
            found = [kept.get(source) for source in sources]
            for name, one in zip(names, found, strict=True):
                kept.pop(name, None)
                if one is not None:
                    kept[name] = one

    def _scalar(self, name: Slot) -> object:
        if name not in self._scalars:
            owner = self._program.owners.get(name, 0)
            (block,) = self._engine.blocks.gather([self._registers[name]], [owner])
            assert isinstance(block, Dense)
            return block.values.item()
        return self._scalars[name]

    def _cut_lineage(self, names: Sequence[Slot]) -> None:
        unique = {self._registers[name].key: name for name in names}
        owners = [self._program.owners[name] for name in unique.values()]
        futures = [self._registers[name] for name in unique.values()]
        new = self._engine.blocks.cut_lineage(owners, futures)
        by_old = dict(zip(unique, new, strict=True))
        self._registers.update({name: by_old[self._registers[name].key] for name in names})
        self._depth = 0


def _control_scalars(actions: Sequence[Action]) -> set[Slot]:
    found: set[Slot] = set()
    for action in actions:
        match action:
            case Iterate():
                found |= {action.limit, *(() if action.until is None else (action.until,))}
                found |= _control_scalars(action.body)
            case Branch():
                found |= {action.predicate, *_control_scalars((*action.then, *action.otherwise))}
    return found


def added(one: TaskTimed, other: TaskTimed) -> TaskTimed:
    """Return the record of a task's runs, from those of some and of others."""
    seconds, compiled = one.seconds + other.seconds, one.compiled or other.compiled
    return replace(other, seconds=seconds, compiled=compiled)

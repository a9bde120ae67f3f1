"""Loops without a gang: this process interprets the program, and an engine runs batch after batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from matnb.backend.engines.engine_dask import DaskEngine
from matnb.backend.engines.recovery import Resume
from matnb.backend.engines.results import ProgramOutcome
from matnb.backend.engines.watch_protocol import Watch
from matnb.backend.kept import Kept
from matnb.blocks.formats import Dense
from matnb.events import TaskTimed
from matnb.program.kinds import COUNT
from matnb.program.operators import Constant
from matnb.program.plan import Plan, Slot, Step, Task
from matnb.program.program import Action, Batch, Branch, Iterate, Program, check_held

LINEAGE_DEPTH = 20  # after this many batches on each other's results their history is cut
_COUNT = np.dtype(np.int64)


class ProgramWalker:
    """Walks a program.

    Parameters
    ----------
    engine
        Runs each batch.
    program, given
        What to run, and the futures of the registers that are filled before.
    counts
        Entries and bytes of those.
    told
        Called after each iteration of the outermost loop with its number and seconds.
    first
        The number of that loop's first iteration.
    watch
        Hears after each iteration what tasks took, and may want a pause.
    """

    def __init__(
        self,
        engine: DaskEngine,
        program: Program,
        given: Mapping[Slot, Kept],
        counts: Mapping[Slot, tuple[int, int]],
        told: Callable[[int, float], None],
        first: int = 0,
        watch: Watch | None = None,
    ) -> None:
        self._engine, self._program, self._told, self._watch = engine, program, told, watch
        self._registers = dict(given)
        self._given = {one.key for one in given.values()}  # counted where they are stored
        self._counts = dict(counts)
        self._scalars: dict[Slot, object] = {}
        self._asked = _control_scalars(program.actions)
        self._timed: dict[Slot, TaskTimed] = {}
        self._depth = 0
        self._nested = 0
        self._first = self._iterations = first
        self._ended_itself = False
        self._spent: dict[int, dict[Slot, float]] = {}  # by the tasks of an iteration, by worker
        self._seen: set[Slot] = set()  # tasks that have run
        self._paused: list[Slot] | None = None  # the state from which the loop goes on

    def run(self) -> ProgramOutcome:
        """Walk the program to its end, or to a pause; raises what ``DaskEngine.run`` does."""
        begin = time.perf_counter()
        self._walk(self._program.actions)
        names = self._program.results if self._paused is None else self._paused
        futures = {name: self._registers[name] for name in names}
        paused = None
        if self._paused is not None:
            owners = {name: self._program.owners[name] for name in names}
            paused, futures = Resume(self._iterations, futures, owners), {}
        return ProgramOutcome(
            futures,
            {name: self._counts[name] for name in names if name in self._counts},
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
        self._told(number, seconds)
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
        found = self._engine.run(plan, fetch, results, self._registers)
        self._registers.update(zip(results, found.held, strict=True))
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
            (block,) = self._engine.gather([self._registers[name]], [owner])
            assert isinstance(block, Dense)
            return block.values.item()
        return self._scalars[name]

    def _cut_lineage(self, names: Sequence[Slot]) -> None:
        unique = {self._registers[name].key: name for name in names}
        owners = [self._program.owners[name] for name in unique.values()]
        futures = [self._registers[name] for name in unique.values()]
        new = self._engine.cut_lineage(owners, futures)
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

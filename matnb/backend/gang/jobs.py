"""The jobs of one member in a program (compute, send, receive), prepared once per program."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from matnb.backend.gang.exchange import Owners, Places, plan_exchange
from matnb.backend.gang.liveness import BatchPlace, Place, batches, outline, renamings
from matnb.backend.tasks.registers import Hint, Stack, Stacks, TaskParts, parted
from matnb.backend.tasks.step_memory import StepMemory
from matnb.backend.tasks.thread_pool import Schedule, ThreadPool
from matnb.blocks.formats import Csr, Dense, Empty
from matnb.blocks.kernels.elementwise.elementwise import CHEAP, Link
from matnb.program.operators import Call, FusedKernel, MaskedMultiply, MaskedSum, Multiply, Operator, Run
from matnb.program.plan import Slot, Step, Task
from matnb.program.program import Program

FIRST_RUNS = 2  # of a task: what is compiled is compiled then
# What these take does not follow from the bytes that they read.
_DEAR = (Call, Multiply, MaskedMultiply, Run, MaskedSum)
_DEAR_WEIGHT = 8


class ReadyTask(Protocol):
    """A task's steps, ready to run again and again."""

    @property
    def may_overwrite(self) -> Sequence[bool]:
        """Which inputs' memory the result may be written into, where it has its shape and dtype."""

    @property
    def running(self) -> Operator | Link | None:
        """What raised."""

    def forget(self) -> None:
        """Let go of what was read."""

    def run(self, values: Sequence[Any], memory: StepMemory) -> Any:
        """Return the task's value."""


class TaskJob:
    """A task that this member runs, with what it took so far."""

    __slots__ = (
        "begun", "compiled", "counts", "first_seconds", "form", "hint", "inputs", "is_dear", "is_unread",
        "joins", "last_reads", "num_runs", "overwritten", "prepared", "readers", "rest", "seconds", "slots",
        "task", "weight",
    )  # fmt: skip

    def __init__(self, task: Task, apart: TaskParts, groups: Stacks, readers: tuple[int, ...]) -> None:
        self.task, self.rest = task, apart.rest
        self.inputs = apart.inputs
        self.joins = tuple((use, groups.group_of(use)) for use in apart.joins)
        self.hint = groups.hints.get(task.key) if apart.rest is not None else None
        self.readers = readers
        # Which inputs' memory may become the result's, where nobody needs them any more.
        self.overwritten: tuple[int, ...] = ()
        self.is_unread = False  # by tasks here, and afterwards by any
        self.is_dear = any(map(_is_dear, task.steps))
        self.weight = max((_weight_of(step) for step in task.steps), default=1)  # of a byte that is read
        # Registers that nobody else reads beside it or later, where jobs run in order.
        self.last_reads: frozenset[Slot] = frozenset()
        self.slots: tuple[int, ...] = ()  # of ``inputs``
        self.begin(None)

    def begin(self, prepared: ReadyTask | None) -> None:
        """Reset the measurements, with the rest of the task prepared; None releases that."""
        self.prepared = prepared
        self.form: tuple[tuple[int, ...], np.dtype] | None = None  # the last value's, where it was dense
        self.num_runs = 0
        self.seconds = 0.0
        self.begun = 0.0  # when, while it runs
        self.first_seconds = 0.0  # of them those of first runs
        self.compiled = False
        self.counts = (0, 0, 0)  # rows, entries and bytes of its value

    def note(self, value: object, compiled: bool) -> None:
        """Note what a run made, and whether code was compiled for it."""
        if self.num_runs < FIRST_RUNS:
            self.first_seconds = self.seconds
        self.compiled |= compiled
        self.form = (value.shape, value.dtype) if isinstance(value, Dense) else None
        if isinstance(value, Dense | Csr | Empty):
            self.counts = (value.shape[0] if value.shape else 1), value.nnz, value.nbytes


def _is_dear(step: Step) -> bool:
    operator = step.operator
    return isinstance(operator, _DEAR) and not (isinstance(operator, Multiply) and operator.in_parts)


def _weight_of(step: Step) -> int:
    links = step.operator.links if isinstance(step.operator, FusedKernel) else ()
    return 1 if all(link.name in CHEAP for link in links) else _DEAR_WEIGHT


@dataclass(eq=False)
class SendJob:
    """A register that is there when the batch begins, and the members that are sent it."""

    name: Slot
    readers: tuple[int, ...]


@dataclass(eq=False)
class ReceiveJob:
    """A register of another member that tasks here read.

    ``neighbors`` are the registers, here already, in whose whole it has its part; ``value`` is what came.
    """

    name: Slot
    hint: Hint | None
    neighbors: tuple[Slot, ...]
    value: Any = None


@dataclass(frozen=True)
class JobRound:
    """Jobs that follow each other of which none reads what another makes; ``gone`` are read by none later."""

    jobs: tuple[TaskJob, ...]
    gone: tuple[Slot, ...]


@dataclass(eq=False)
class MemberBatch:
    """A batch as one member sees it.

    Attributes
    ----------
    place
        Where in the program.
    jobs
        Numbered by their order.
    landings
        Number of the job for each register that arrives.
    schedule
        What waits for what.
    names, dying
        The register of each slot, and whether it goes with its last reader.
    unread
        Registers that nobody needs any more, here or elsewhere.
    packing, unpacking
        Elements or rows that are sent, by register and reader, and that arrive, by register, instead of all.
    lengths
        Of the arrays of which they arrive.
    rounds
        The jobs in order, where all are tasks and nothing is sent; else none.
    """

    place: BatchPlace
    jobs: list[TaskJob | SendJob | ReceiveJob]
    landings: dict[Slot, int]
    schedule: Schedule
    names: list[Slot]
    dying: list[bool]
    unread: tuple[Slot, ...]
    packing: dict[tuple[Slot, int], Places]
    unpacking: dict[Slot, Places]
    lengths: dict[Slot, int]
    rounds: Sequence[JobRound]


@dataclass(frozen=True)
class RegisterMove:
    """Registers that become others, and those that nobody reads afterwards."""

    renamed: tuple[tuple[Slot, Slot], ...]
    dropped: tuple[Slot, ...]


class MemberProgram:
    """What one member does in a program; it follows from the program alone.

    Attributes
    ----------
    places
        The actions of the program, with what is live and sent around each.
    owners
        Of its registers.
    stacks
        The wholes that the member makes blocks in.
    """

    def __init__(self, program: Program, me: int) -> None:
        self._me = me
        self.places = outline(program)
        self.owners = Owners(program, self.places)
        found = list(batches(self.places))
        tasks = {task.key: parted(task) for place in found for task in place.batch.tasks}
        plan_exchange(self.places, self.owners, tasks)
        own = [task for place in found for task in place.batch.tasks if task.owner == me]
        groups = Stacks([join for task in own for join in tasks[task.key].joins], renamings(self.places))
        self.stacks: Sequence[Stack] = groups.groups
        self._batches = {id(place): jobs_of(place, me, self.owners, tasks, groups) for place in found}
        self._moves: dict[tuple[int, str], RegisterMove] = {}
        self.jobs = self.jobs_in(self.places)
        self._has_begun = False
        self._prepared: list[ReadyTask | None] = [None] * len(self.jobs)
        self._crew: ThreadPool | None = None

    def begin(self, prepare: Callable[[Task], ReadyTask], crew: ThreadPool) -> None:
        """Make all tasks ready to run, reusing the last run's; no other thread may run them meanwhile."""
        self._crew = crew
        for number, job in enumerate(self.jobs):
            if job.rest is None:
                job.begin(None)
                continue
            prepared = self._prepared[number] or prepare(job.rest)
            self._prepared[number] = prepared
            job.begin(prepared)
            if not self._has_begun:
                may = prepared.may_overwrite
                places = range(min(len(job.inputs), len(may)))
                job.overwritten = tuple(place for place in places if may[place])
        self._has_begun = True

    def end(self) -> None:
        """Let go of all that a run has left."""
        self._crew = None
        for prepared in self._prepared:
            if prepared is not None:
                prepared.forget()
        for job in self.jobs:
            job.begin(None)
        for batch in self._batches.values():
            for some in (batch.packing, batch.unpacking, batch.lengths):
                some.clear()

    def share(self, do: Callable[[int], None], count: int) -> None:
        """Do parts of a job, some of them on threads without one."""
        assert self._crew is not None
        self._crew.share(do, count)

    def batch(self, place: BatchPlace) -> MemberBatch:
        """Return what the member does in a batch."""
        return self._batches[id(place)]

    def jobs_in(self, places: Sequence[Place]) -> list[TaskJob]:
        """Return the jobs that run the tasks of some places, in the program's order."""
        every = (job for place in batches(places) for job in self.batch(place).jobs)
        return [job for job in every if isinstance(job, TaskJob)]

    def is_mine(self, name: Slot) -> bool:
        """Tell whether the member has a register."""
        return self.owners.owner(name, self._me) == self._me

    def move(
        self,
        place: Place,
        where: str,
        before: frozenset[Slot],
        live: frozenset[Slot],
        old: Sequence[Slot] = (),
        new: Sequence[Slot] = (),
    ) -> RegisterMove:
        """Return what becomes of the member's registers at some point of a place, which ``where`` names.

        Parameters
        ----------
        before, live
            Registers that are read from there on, before anything is renamed and afterwards.
        old, new
            Registers that become others.
        """
        found = self._moves.get((id(place), where))
        if found is None:
            pairs = [
                (one, other)
                for one, other in zip(old, new, strict=True)
                if one != other and other in live and self.is_mine(other)
            ]
            found = self._moves[id(place), where] = RegisterMove(tuple(pairs), tuple(sorted(before - live)))
        return found


def jobs_of(
    place: BatchPlace,
    me: int,
    owners: Owners,
    tasks: Mapping[Slot, TaskParts],
    groups: Stacks,
) -> MemberBatch:
    """Return what a member does in a batch.

    Parameters
    ----------
    place
        The batch, its exchange planned.
    me
        The member.
    owners
        Of the program's registers.
    tasks
        The program's tasks by key, joins apart.
    groups
        What the member makes in wholes.
    """
    made = place.made
    here = [task for task in place.batch.tasks if task.owner == me]
    jobs: list[TaskJob | SendJob | ReceiveJob] = []
    sources: dict[Slot, int] = {}  # the job that fills each register
    for name, readers in place.sends.items():
        if name not in made and owners.owner(name, -1) == me:
            jobs.append(SendJob(name, readers))
    beside = _beside(here, tasks)
    for name, readers in place.sends.items():
        if me in readers:
            present = [one for one in beside[name] if one not in made and one not in place.sends]
            sources[name] = len(jobs)
            jobs.append(ReceiveJob(name, groups.hints.get(name), tuple(present)))
    landings = dict(sources)
    for task in here:
        sources[task.key] = len(jobs)
        jobs.append(TaskJob(task, tasks[task.key], groups, place.sends.get(task.key, ())))
    reads = [_reads(job) for job in jobs]
    names = list(dict.fromkeys(name for some in reads for name in some))
    slots = {name: slot for slot, name in enumerate(names)}
    for job in jobs:
        if isinstance(job, TaskJob):
            job.is_unread = job.task.key not in slots and job.task.key not in place.live
            job.slots = tuple(slots[name] for name in job.inputs)
    users: list[list[int]] = [[] for _ in jobs]
    missing = [int(isinstance(job, ReceiveJob)) for job in jobs]
    uses = [0] * len(names)
    for number, some in enumerate(reads):
        for name in some:
            uses[slots[name]] += 1
            if name in sources:
                users[sources[name]].append(number)
                missing[number] += 1
    schedule = Schedule(missing, users, [tuple(slots[name] for name in some) for some in reads], uses)
    # What another member sent dies here even where its owner reads it later: it would be sent again.
    dying = [name not in place.live or name in landings for name in names]
    gone = {name for task in place.batch.tasks for name in task.inputs} - place.live - made - set(names)
    dies = {name for name, is_dying in zip(names, dying, strict=True) if is_dying}
    rounds = _rounds(jobs, reads, sources, dies)
    return MemberBatch(place, jobs, landings, schedule, names, dying, tuple(sorted(gone)), {}, {}, {}, rounds)


def _rounds(
    jobs: Sequence[TaskJob | SendJob | ReceiveJob],
    reads: Sequence[tuple[Slot, ...]],
    sources: Mapping[Slot, int],
    dying: Collection[Slot],
) -> list[JobRound]:
    # The jobs in their order, cut before each that reads what another of its round makes.
    starts: list[int] = []
    for number, (job, names) in enumerate(zip(jobs, reads, strict=True)):
        awaited = max((sources[name] for name in names if name in sources), default=-1)
        if not isinstance(job, TaskJob) or job.readers or awaited >= number:
            return []
        if not starts or awaited >= starts[-1]:
            starts.append(number)
    bounds = list(pairwise((*starts, len(jobs))))
    last = {
        name: place for place, (one, end) in enumerate(bounds) for some in reads[one:end] for name in some
    }
    rounds = []
    for place, (begin, end) in enumerate(bounds):
        own = [job for job in jobs[begin:end] if isinstance(job, TaskJob)]
        readers = Counter(name for some in reads[begin:end] for name in some)
        gone = tuple(name for name in readers if last[name] == place and name in dying)
        for job, names in zip(own, reads[begin:end], strict=True):
            job.last_reads = frozenset(name for name in names if name in gone and readers[name] == 1)
        rounds.append(JobRound(tuple(own), gone))
    return rounds


def _reads(job: TaskJob | SendJob | ReceiveJob) -> tuple[Slot, ...]:
    match job:
        case TaskJob():
            return tuple(dict.fromkeys(job.task.inputs))
        case SendJob():
            return (job.name,)
    return ()


def _beside(tasks: Sequence[Task], parted: Mapping[Slot, TaskParts]) -> Mapping[Slot, list[Slot]]:
    # The other parts of the joins that each register is a part of.
    found: dict[Slot, list[Slot]] = defaultdict(list)
    seen: set[tuple[Slot, ...]] = set()
    for task in tasks:
        for join in parted[task.key].joins:
            if join.parts not in seen:
                seen.add(join.parts)
                for name in join.parts:
                    found[name] += join.parts
    return found

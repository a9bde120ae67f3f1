"""A member's registers while a program runs: batches executed, blocks sent and received, slots renamed."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from matnb.backend.gang.exchange import Places, is_worth_packing
from matnb.backend.gang.jobs import FIRST_RUNS, JobRound, MemberBatch, ReceiveJob, TaskJob
from matnb.backend.gang.mailbox import Mailbox, Tag
from matnb.backend.tasks import worker
from matnb.backend.tasks.executor import execute
from matnb.backend.tasks.registers import LARGE_BYTES, Allowance, JoinUse, Register, Whole, Wholes, arrays_of
from matnb.backend.tasks.step_memory import StepMemory
from matnb.backend.tasks.thread_pool import PATIENCE_SECONDS, ThreadPool
from matnb.blocks.formats import Block, Csr, Dense, NumericArray
from matnb.blocks.kernels.compiled import num_specializations
from matnb.blocks.kernels.shaping.packing import pack, unpack
from matnb.errors import TooLargeError
from matnb.program.plan import Slot

# Of a batch that is run in order, with what it makes: what reads more keeps several threads busy. A job that
# reads less is done before another thread has woken.
SMALL_BATCH_BYTES, LARGE_JOB_BYTES = 2**23, 2**19
Blocks: TypeAlias = Mapping[Slot, Block]
_LOOK_TICKS = 16
_AGAIN = worker.RunId("again", 0)  # of a task that failed, run once more to tell why


@dataclass(frozen=True)
class Signal:
    """What one member told all others: here already, or on its way."""

    value: Any
    tag: Tag | None


class MemberRegisters:
    """The registers of one member, and how they change.

    Parameters
    ----------
    registers
        What they begin with.
    mailbox
        Between the members.
    crew
        Runs the jobs of a batch.
    wholes
        Where results are made, and their pool.
    limit
        Bytes of all that is held beside what they begin with; None for no limit.

    Attributes
    ----------
    held
        What each register holds.
    sent_bytes
        Of the arrays of blocks that went to other members.
    allowance
        What may be held.
    """

    def __init__(
        self, registers: Blocks, mailbox: Mailbox, crew: ThreadPool, wholes: Wholes, limit: int | None
    ) -> None:
        self.held = {name: Register(block) for name, block in registers.items()}
        self.sent_bytes = 0
        self._given = {id(array) for block in registers.values() for array in arrays_of(block)}
        self._mailbox = mailbox
        self._others = tuple(one for one in mailbox.members if one != mailbox.owner)
        self._crew = crew
        self._wholes, self._pool = wholes, wholes.pool
        self.allowance = Allowance(limit, self.held, self._given, self._pool)
        claim = None if limit is None else self.allowance.claim
        self._memory = StepMemory(self._pool.take, self._pool.give, None, True, claim)
        self._tick = 0
        self._batched: MemberBatch | None = None
        self._inbox: dict[Tag, Any] = {}
        self._expected: dict[Tag, int] = {}
        self._awaited: Tag | None = None
        self._bell = threading.Semaphore(0)
        self._counting = threading.Lock()
        self._packed: set[tuple[Slot, int]] = set()  # registers, with their readers, that were
        self._looked: dict[int, int] = {}  # by batch, when it is looked at again whether it is small
        self._small: dict[int, bool] = {}
        mailbox.subscribe(self._arrived)

    def run(self, batched: MemberBatch) -> None:
        """Run this member's jobs of a batch."""
        self._tick += 1
        for name in batched.unread:
            self._drop(name)
        if batched.jobs:
            self._batched = batched
            if batched.rounds and self._is_small(batched):
                for one in batched.rounds:
                    self._run_round(one)
            else:
                self._crew.run(batched.schedule, self._do, self._let_go, self._begin)
            self._wholes.close()

    def next_tick(self) -> int:
        """Return a tick for an exchange between batches."""
        self._tick += 1
        return self._tick

    def put(self, name: Slot, held: Register) -> None:
        """Fill a register."""
        before = self.held.get(name)
        self.held[name] = held
        if before is not None:
            self._pool.release(before.buffer)

    def drop(self, names: Sequence[Slot]) -> None:
        """Empty registers, where they are filled."""
        for name in names:
            self._drop(name)

    def rename(self, pairs: Sequence[tuple[Slot, Slot]], dropped: Sequence[Slot]) -> None:
        """Fill registers with what others hold, all at the same time, and empty some."""
        moved = [(new, self.held[old]) for old, new in pairs]
        for _, held in moved:
            self._pool.keep(held.buffer)
        for new, held in moved:
            self.put(new, held)
        for name in dropped:
            self._drop(name)

    def exchange(self, here: Sequence[tuple[Slot, Sequence[int]]], there: Sequence[Slot]) -> None:
        """Send registers to members, and wait for those that others send."""
        self._tick += 1
        for name, readers in here:
            self._send(name, self.held[name], readers)
        for name in there:
            self.put(name, self._copied(self.wait((self._tick, name))))

    def broadcast(self, owner: int, value: Callable[[], Any]) -> Any:
        """Return a small value of one member, which tells all others."""
        return self.hear(self.tell(owner, value))

    def tell(self, owner: int, value: Callable[[], Any]) -> Signal:
        """Have one member tell a small value to all others, which hear it later."""
        self._tick += 1
        tag = (self._tick, "")
        if owner != self._mailbox.owner:
            return Signal(None, tag)
        word = value()
        for other in self._others:
            self._mailbox.post(other, tag, word)
        return Signal(word, None)

    def hear(self, word: Signal) -> Any:
        """Return the value that a member broadcast, once it has arrived."""
        return word.value if word.tag is None else self.wait(word.tag)

    def wait(self, tag: Tag) -> Any:
        """Return what another member sends under a tag, when it is here."""
        with self._crew.mutex:
            if tag in self._inbox:
                return self._inbox.pop(tag)
            self._awaited = tag
        while not self._bell.acquire(timeout=PATIENCE_SECONDS):
            self._mailbox.check()
        return self._inbox.pop(tag)

    def results(self, names: Sequence[Slot]) -> dict[Slot, Block]:
        """Return what registers hold, in memory that no other array is in."""
        blocks: dict[Slot, Block] = {}
        roots: set[int] = set()
        for name in names:
            held = self.held[name]
            value = held.value
            if isinstance(value, Dense):
                array = value.values
                root = array if array.base is None else array.base
                size = array.nbytes if held.buffer is None else held.buffer.num_bytes
                whole = held.buffer is not None or array.base is None
                shared = id(root) in roots or id(array) in self._given
                if not whole or shared or array.nbytes < 0.9 * size or not array.flags.c_contiguous:
                    value = Dense(array.copy())
                roots.add(id(root))
            blocks[name] = value
        return blocks

    def _drop(self, name: Slot) -> None:
        held = self.held.pop(name, None)
        if held is not None:
            self._pool.release(held.buffer)

    def _begin(self) -> list[int]:
        # As a batch begins: messages that came early are taken, the others are expected.
        assert self._batched is not None
        there = []
        for name, number in self._batched.landings.items():
            tag = (self._tick, name)
            if tag in self._inbox:
                self._landing(number).value = self._inbox.pop(tag)
                there.append(number)
            else:
                self._expected[tag] = number
        return there

    def _arrived(self, source: int, tag: Tag, value: object) -> None:
        self._crew.arrive(partial(self._taken, tag, value))

    def _taken(self, tag: Tag, value: Any) -> int:
        number = self._expected.pop(tag, None)
        if number is None:
            self._inbox[tag] = value
            if tag == self._awaited:
                self._awaited = None
                self._bell.release()
            return -1
        self._landing(number).value = value
        return number

    def _landing(self, number: int) -> ReceiveJob:
        assert self._batched is not None
        job = self._batched.jobs[number]
        assert isinstance(job, ReceiveJob)
        return job

    def _let_go(self, slot: int) -> None:
        batched = self._batched
        assert batched is not None
        if batched.dying[slot]:
            self._drop(batched.names[slot])

    def _is_small(self, batched: MemberBatch) -> bool:
        # Whether a thread that runs the jobs in order loses little by it.
        if self._tick >= self._looked.get(id(batched), 0):
            self._looked[id(batched)] = self._tick + _LOOK_TICKS
            size = sum(self._bytes_of(name) for name in batched.names)
            size += sum(job.counts[2] for some in batched.rounds for job in some.jobs)
            self._small[id(batched)] = size <= SMALL_BATCH_BYTES
        return self._small[id(batched)]

    def _bytes_of(self, name: Slot) -> int:
        held = self.held.get(name)
        return 0 if held is None or held.value is None else held.value.nbytes

    def _run_round(self, one: JobRound) -> None:
        jobs = one.jobs
        if len(jobs) > 1 and sum(map(self._is_large, jobs)) > 1:
            self._crew.share(lambda number: self._run(jobs[number], True), len(jobs))
        else:
            for job in jobs:
                self._run(job, True)
        for name in one.gone:
            self._drop(name)

    def _is_large(self, job: TaskJob) -> bool:
        # Whether it takes longer than another thread needs to wake.
        return job.is_dear or job.weight * sum(map(self._bytes_of, job.task.inputs)) >= LARGE_JOB_BYTES

    def _do(self, number: int) -> None:
        assert self._batched is not None
        job = self._batched.jobs[number]
        if isinstance(job, TaskJob):
            self._run(job)
        elif isinstance(job, ReceiveJob):
            self._land(job)
        else:
            self._send(job.name, self.held[job.name], job.readers)

    def _run(self, job: TaskJob, in_order: bool = False) -> None:
        pool, held = self._pool, self.held
        inputs = [held[name] for name in job.inputs]
        is_first = job.num_runs < FIRST_RUNS
        codes = num_specializations() if is_first else 0
        begin = job.begun = time.perf_counter()
        values: list[Any] = [one.value for one in inputs]
        joined: list[Register] = []
        try:
            if job.joins:
                joined = [self._joined(use, group) for use, group in job.joins]
            if job.prepared is None:
                made = joined.pop()
            else:
                if joined:
                    values += [one.value for one in joined]
                whole, out, memory = None, None, self._memory
                if job.hint is not None:
                    whole, out = self._wholes.place(job.hint)
                elif job.overwritten and job.form is not None:
                    out = self._overwritable(job, inputs, in_order)
                if out is not None:
                    memory = memory.into(out)
                value = job.prepared.run(values, memory)
                is_dense = type(value) is Dense
                if not is_dense or (value.values is not out and value.values.nbytes >= LARGE_BYTES):
                    pool.note_results(value, values)
                if whole is not None:
                    value, whole = self._settled(value, out, whole)
                made = Register(value, pool.hold(value), whole, 0 if job.hint is None else job.hint.index)
        except Exception as error:
            raise worker.TaskFailed(_failed(job, held, error)) from error
        for one in joined:
            pool.release(one.buffer)
        job.begun = 0.0  # before the seconds, so that nobody who looks adds both
        job.seconds += time.perf_counter() - begin
        if is_first or type(made.value) is not Dense:
            job.note(made.value, is_first and num_specializations() > codes)
        job.num_runs += 1
        self.put(job.task.key, made)
        if self.allowance.is_claimed:
            self.allowance.settle()
        if job.readers:
            self._send(job.task.key, made, job.readers)
        if job.is_unread:
            self._drop(job.task.key)

    def _overwritable(self, job: TaskJob, inputs: Sequence[Register], in_order: bool) -> NumericArray | None:
        # The memory of an input that dies with this task, where nothing else is in it.
        batched, uses = self._batched, self._crew.uses
        assert batched is not None
        for place in job.overwritten:
            one, slot = inputs[place], job.slots[place]
            if one.buffer is None or one.buffer.holders > 1:
                continue
            if in_order:
                is_last = job.inputs[place] in job.last_reads
            else:
                is_last = uses[slot] == 1 and batched.dying[slot]
            if not is_last:
                continue
            array: NumericArray = one.value.values
            if job.form != (array.shape, array.dtype) or not array.flags.c_contiguous:
                continue
            if not array.flags.writeable:
                array = array.view()
                array.flags.writeable = True
            return array
        return None

    def _settled(self, value: Any, out: NumericArray | None, whole: Whole) -> tuple[Any, Whole | None]:
        # The value in its part of a whole, if it can lie there.
        assert out is not None
        if type(value) is not Dense or value.shape != out.shape or value.dtype != out.dtype:
            return value, None
        if value.values is not out and not np.may_share_memory(value.values, out):
            np.copyto(out, value.values)
            buffer = self._pool.buffer_of(value.values)
            if buffer is not None and not buffer.holders:
                self._pool.give(value.values)
        return Dense(out), whole

    def _joined(self, use: JoinUse, group: int | None) -> Register:
        parts = [self.held[name] for name in use.parts]
        whole = parts[0].whole
        if group is not None and whole is not None:
            for index, part in enumerate(parts):
                if part.whole is not whole or part.index != index:
                    break
            else:
                self._pool.keep(whole.buffer)
                return Register(Dense(whole.array), whole.buffer)
        shape, dtype = use.operator.shape, use.operator.dtype
        values = [part.value for part in parts]
        fits = [
            type(value) is Dense and value.dtype == dtype and value.shape == (stop - start, *shape[1:])
            for value, (start, stop) in zip(values, use.bounds, strict=True)
        ]
        if not all(fits) or len(parts) == 1:
            joined = execute(use.operator, values)
            return Register(joined, self._pool.hold(joined))
        out = self._pool.take(shape, dtype)
        for value, (start, stop) in zip(values, use.bounds, strict=True):
            out[start:stop] = value.values
        block = Dense(out)
        return Register(block, self._pool.hold(block))

    def _land(self, job: ReceiveJob) -> None:
        value, job.value = job.value, None
        assert self._batched is not None
        places = self._batched.unpacking.get(job.name) if type(value) is np.ndarray else None
        self.put(job.name, self._copied(value, job, places))

    def _copied(self, value: Any, job: ReceiveJob | None = None, places: Places | None = None) -> Register:
        # A block as it came, in memory of this member; of a packed one only what came is filled.
        if isinstance(value, Csr):
            entries = None if value.values is None else value.values.copy()
            copied = Csr(value.shape, value.pointers.copy(), value.columns.copy(), entries, value.dtype)
            self._pool.note_results(copied, ())
            return Register(copied)
        if not isinstance(value, Dense | np.ndarray):
            return Register(value)
        array = value.values if isinstance(value, Dense) else value
        hint = None if job is None else job.hint
        shape = array.shape
        if places is not None:
            assert self._batched is not None
            assert job is not None
            shape = (self._batched.lengths[job.name], *shape[1:])
        whole = None
        if job is not None and hint is not None:
            neighbors = [self.held[name] for name in job.neighbors]
            found = self._wholes.place_beside(hint, neighbors) if neighbors else self._wholes.place(hint)
            if found is not None and found[1].shape == shape and found[1].dtype == array.dtype:
                whole, out = found
        if whole is None:
            out = self._pool.take(shape, array.dtype)
        if places is None:
            np.copyto(out, array)
        else:
            unpack(array, places, out)
        block = Dense(out)
        return Register(block, self._pool.hold(block), whole, 0 if hint is None else hint.index)

    def _send(self, name: Slot, held: Register, readers: Sequence[int]) -> None:
        packing = self._batched.packing if self._batched is not None else {}
        tag, value, pool = (self._tick, name), held.value, self._pool
        num_bytes = 0
        for reader in readers:
            places = packing.get((name, reader))
            if places is not None and is_worth_packing(value, places):
                form = (places.size, *value.shape[1:]), value.dtype
                if (name, reader) not in self._packed:
                    self._packed.add((name, reader))
                    pool.add(2, *form)  # the next is packed before the last one's receipt is here
                packed = pool.take(*form)
                pack(value.values, places, packed)
                num_bytes += packed.nbytes
                self._mailbox.post(reader, tag, packed, partial(pool.give, packed))
            else:
                pool.keep(held.buffer)
                num_bytes += sum(array.nbytes for array in arrays_of(value))
                self._mailbox.post(reader, tag, value, partial(pool.release, held.buffer))
        with self._counting:
            self.sent_bytes += num_bytes


def _failed(job: TaskJob, held: Mapping[Slot, Register], error: Exception) -> worker.TaskFailure:
    trace = traceback.format_exc()
    task = job.task
    running = None if job.prepared is None else job.prepared.running
    if isinstance(error, TooLargeError):  # a second time nothing would stop it
        return worker.TaskFailure(task.key, error, trace, running)
    try:  # once more, step by step: which operator was it?
        values = [held[name].value for name in task.inputs]
        failed = worker.run(task.key, task.kind.name, _AGAIN, task.owner, task.steps, *values)
    finally:
        worker.forget(_AGAIN)
    if isinstance(failed, worker.TaskFailure) and type(failed.error) is type(error):
        return failed
    return worker.TaskFailure(task.key, error, trace, running)

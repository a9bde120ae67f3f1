"""What members do in tests of the gang: stand-ins for the performer that worker processes can import."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from written import written

from matnb.backend.gang.iteration_boundary import Listener
from matnb.backend.gang.mailbox import Keeper, Mailbox, Tag
from matnb.backend.tasks.worker import Report, TaskFailed, TaskFailure
from matnb.blocks.formats import Block, Csr, Dense, Empty, csr_block, freeze
from matnb.blocks.kernels.elementwise.elementwise import Link
from matnb.program.kinds import PRODUCT
from matnb.program.operators import FusedKernel, Join, Multiply
from matnb.program.plan import Step, Task
from matnb.program.program import Batch, Iterate, Program

active: set[int] = set()  # members that perform in this process


class Inbox:
    """Collects what comes, and waits for it."""

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox, self._come = mailbox, threading.Condition()
        self._values: dict[Tag, object] = {}
        self.threads: set[str] = set()
        mailbox.subscribe(self._arrived)

    def _arrived(self, source: int, tag: Tag, value: object) -> None:
        with self._come:
            self.threads.add(threading.current_thread().name)
            self._values[tag] = value
            self._come.notify_all()

    def take(self, tag: Tag) -> Any:
        end = time.monotonic() + 20
        with self._come:
            while tag not in self._values:
                self._mailbox.check()
                assert time.monotonic() < end, f"{tag} never came"
                self._come.wait(0.02)
            return self._values.pop(tag)


@dataclass(frozen=True)
class Relay:
    """Members hand a vector round in a ring and add 1 at each step.

    After ``rounds`` the vector of a member is what the member ``rounds`` places before it began with, plus
    ``rounds``; a given register ``x`` and its number is where it begins, else its own number.
    """

    rounds: int
    length: int = 10
    pause_seconds: float = 0.0
    raises_on: int | None = None
    save_every: int | None = None

    def __call__(
        self,
        program: Program,
        registers: Mapping[str, Block],
        mailbox: Mailbox,
        num_threads: int,
        keeper: Keeper | None,
        begin: int = 0,
        on_progress: Callable[[int, float], None] | None = None,
        listener: Listener | None = None,
    ) -> Report:
        active.add(mailbox.owner)
        try:
            return self._perform(registers, mailbox, keeper, begin, on_progress)
        finally:
            active.discard(mailbox.owner)

    def _perform(
        self,
        registers: Mapping[str, Block],
        mailbox: Mailbox,
        keeper: Keeper | None,
        begin: int,
        on_progress: Callable[[int, float], None] | None,
    ) -> Report:
        owner, members = mailbox.owner, mailbox.members
        following = members[(members.index(owner) + 1) % len(members)]
        inbox = Inbox(mailbox)
        given = registers.get(f"x{owner}")
        value = np.full(self.length, float(owner)) if given is None else given.values
        for number in range(begin, self.rounds):
            mailbox.check()
            if self.raises_on == owner and number == 3:
                raise TaskFailed(TaskFailure("task", ValueError(f"on worker {owner}"), ""))
            if following != owner:
                mailbox.post(following, (number, "x"), Dense(value))
                value = inbox.take((number, "x")).values
            value = value + 1
            if keeper is not None and self.save_every and (number + 1) % self.save_every == 0:
                keeper.save(number + 1, {f"x{owner}": Dense(value)})
            if on_progress is not None:
                on_progress(number + 1, 0.0)
            time.sleep(self.pause_seconds)
        return report_of(owner, {f"y{owner}": freeze(Dense(value))}, self.rounds)


def report_of(owner: int, blocks: Mapping[str, Block], iterations: int = 0) -> Report:
    """Return the report of a member that leaves some blocks."""
    counts = {name: (block.nnz, block.nbytes) for name, block in blocks.items()}
    return Report(owner, blocks, counts=counts, iterations=iterations)


def relayed(rounds: int, num_members: int) -> list[float]:
    """Return what Relay leaves on each member."""
    return [(owner - rounds) % num_members + rounds for owner in range(num_members)]


def relay_program(owners: tuple[int, ...], given: bool = False) -> Program:
    """Return a program whose owners and state are those of Relay; it has no actions of its own."""
    loop = Iterate(
        tuple((f"x{owner}",) for owner in owners), tuple((f"x{owner}",) for owner in owners),
        tuple((f"x{owner}",) for owner in owners), "limit", None, "iteration", "taken", (),
    )  # fmt: skip
    held = {f"x{owner}": owner for owner in owners}
    results = {f"y{owner}": owner for owner in owners}
    return Program((loop,), held if given else {}, {**held, **results}, frozenset(), tuple(results))


SENT: dict[str, Block] = {
    "small": Dense(np.arange(12.0).reshape(3, 4)),
    "large": Dense(np.arange(300_000.0)),
    "columns": Dense(np.arange(60_000, dtype=np.float32).reshape(200, 300).T),
    "strided": Dense(np.arange(80_000)[::2]),
    "scalar": Dense(np.array(True)),
    "nothing": Dense(np.zeros((0, 3))),
    "pattern": Csr(
        (3, 9), np.array([0, 1, 1, 3], np.int32), np.array([2, 0, 8], np.int32), None, np.dtype("i8")
    ),
    "sparse": Csr(
        (20_000, 5), np.arange(20_001, dtype=np.int32), np.zeros(20_000, np.int32), np.arange(20_000.0),
        np.dtype("f8"),
    ),
    "empty": Empty((4, 5), np.dtype("f4")),
}  # fmt: skip


def exchange_all(
    program: Program,
    registers: Mapping[str, Block],
    mailbox: Mailbox,
    num_threads: int,
    keeper: Keeper | None,
    begin: int = 0,
    on_progress: Callable[[int, float], None] | None = None,
    listener: Listener | None = None,
) -> Report:
    """Send every kind of block from the first member to the second, who subscribes late.

    Each block is sent twice, and overwritten when it is acknowledged.
    """
    if mailbox.owner == mailbox.members[0]:
        acknowledged = [threading.Semaphore(0) for _ in SENT]
        for number, (name, block) in enumerate(SENT.items()):
            own = _writable(block)
            mailbox.post(mailbox.members[1], (number, name), own, acknowledged[number].release)
            assert acknowledged[number].acquire(timeout=10), f"{name} is not acknowledged"
            for array in _arrays(own):
                array[...] = 0
            assert not acknowledged[number].acquire(timeout=0), f"{name} is acknowledged twice"
        return report_of(mailbox.owner, {"y0": Dense(np.zeros(1))})
    time.sleep(0.2)
    inbox = Inbox(mailbox)
    come = {name: inbox.take((number, name)) for number, name in enumerate(SENT)}
    time.sleep(0.1)
    for name, block in SENT.items():
        assert type(come[name]) is type(block)
        assert (come[name].shape, come[name].dtype) == (block.shape, block.dtype)
        for array, other in zip(_arrays(come[name]), _arrays(block), strict=True):
            np.testing.assert_array_equal(array, other, name)
            assert array.flags.f_contiguous == other.flags.f_contiguous or not other.flags.forc
            assert not array.flags.writeable
    assert threading.current_thread().name not in inbox.threads
    return report_of(mailbox.owner, {"y1": Dense(np.ones(1))})


def _writable(block: Block) -> Block:
    match block:
        case Dense(values):
            return Dense(values.copy(order="K"))
        case Csr(shape, pointers, columns, values, dtype):
            return Csr(
                shape, pointers.copy(), columns.copy(), None if values is None else values.copy(), dtype
            )
    return block


def _arrays(block: Block) -> list[Any]:
    match block:
        case Dense(values):
            return [values]
        case Csr(_, pointers, columns, values, _):
            return [pointers, columns] if values is None else [pointers, columns, values]
    return []


def break_down(
    program: Program,
    registers: Mapping[str, Block],
    mailbox: Mailbox,
    num_threads: int,
    keeper: Keeper | None,
    begin: int = 0,
    on_progress: Callable[[int, float], None] | None = None,
    listener: Listener | None = None,
) -> Report:
    """Fail on the last member in a way that is not a task's, while the others wait."""
    if mailbox.owner == mailbox.members[-1]:
        raise ZeroDivisionError("by the performer itself")
    Inbox(mailbox).take((0, "never sent"))
    raise AssertionError("nothing comes")


def power_program(
    matrix: sp.csr_array, owners: tuple[int, ...], count: int
) -> tuple[Program, dict[str, Block]]:
    """Return ``x = 0.5 * (A @ x)``, ``count`` times from ones, by blocks of rows, and its given registers."""
    size, places = matrix.shape[0], tuple(range(len(owners)))
    cuts = np.linspace(0, size, len(owners) + 1).astype(int)
    dtype = np.dtype(np.float64)
    held: dict[str, int] = {"limit": owners[-1]}
    given: dict[str, Block] = {"limit": Dense(np.array(count))}
    join = Join(tuple((int(start),) for start in cuts[:-1]), (size,), dtype, False)
    half = FusedKernel((Link("multiply", (dtype, dtype), dtype, 0, False, (0, 1)),))
    tasks: list[Task] = []
    for place, owner in enumerate(owners):
        given[f"A{place}"] = csr_block(matrix[cuts[place] : cuts[place + 1]])
        given[f"first{place}"] = Dense(np.ones(cuts[place + 1] - cuts[place]))
        held |= {f"A{place}": owner, f"first{place}": owner}
        steps = (
            Step(join, tuple(place + 1 for place in places)),
            Step(Multiply("plus_times", dtype), (0, len(owners) + 1)),
            Step(written(np.array(0.5)), ()),
            Step(half, (len(owners) + 2, len(owners) + 3)),
        )
        tasks.append(Task(f"y{place}", steps, (f"A{place}", *(f"x{one}" for one in places)), owner, PRODUCT))
    states, firsts, ends = (tuple(f"{name}{place}" for place in places) for name in ("x", "first", "y"))
    loop = Iterate(
        (states,), (firsts,), (ends,), "limit", None, "iteration", "taken", (Batch(tuple(tasks), ends),)
    )
    named = {**held, **dict(zip(states, owners, strict=True)), "iteration": owners[0], "taken": owners[0]}
    return Program((loop,), held, named, frozenset(["iteration", "taken"]), (*states, "taken")), given

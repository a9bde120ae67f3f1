"""Chooses the workers for the tasks of an array, by bytes that workers and machines hold and exchange.

The load is that of NumS (section 5.1): the largest number of bytes that a machine holds, receives, and sends,
added up. Its search (LSHS, algorithm 1) gives each task the worker with which the load grows least. Beside it
two plain ways are looked at, each task where its largest operand is, or where its result is to be, and what
has the least load is taken: a greedy search alone may end above them. All follows from sizes and layouts, and
tasks are taken in a plan's order, so the same expressions on the same workers give the same plan.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from matnb.program.plan import Placement, Workers

# A byte between workers of one machine counts as so much of one between machines: two processes of a machine
# exchanged blocks at 0.3 to 0.6 GB/s (8 to 64 MB, measured), so four pairs of them as much as a link of 10 to
# 20 Gbit/s, which all workers of a machine share.
NEAR = 0.25
MOST_PARTS = 10_000  # of one array; more stay where their largest operand is
WAYS: tuple[Placement, ...] = ("owners", "home", "loads")


class PieceRead(NamedTuple):
    """Something that a task reads: what it is, the worker that has it, and its bytes."""

    name: Hashable
    worker: int
    num_bytes: int


class PlacedPart(NamedTuple):
    """A task that makes a part of a block: which block, the worker and bytes of that, and what it reads."""

    block: int
    home: int
    num_bytes: int
    pieces: tuple[PieceRead, ...]

    @property
    def workers(self) -> list[int]:
        """Those that have something of what it reads, that of the largest piece first, and its home."""
        by_size = sorted(self.pieces, key=lambda one: -one.num_bytes)
        return list(dict.fromkeys([*(one.worker for one in by_size), self.home]))


class SimulatedLoads:
    """What workers and machines hold, receive and send as tasks are placed."""

    def __init__(self, workers: Workers) -> None:
        machines = workers.machines or (0,) * len(workers.numbers)
        self._machines = dict(zip(workers.numbers, machines, strict=True))
        self._near, self._far = _Most(), _Most()
        self._copies: set[tuple[Hashable, int]] = set()  # of what is where
        self._machines_copies: set[tuple[Hashable, int]] = set()

    @property
    def total(self) -> float:
        """The load: bytes."""
        return self._far.total + NEAR * self._near.total

    def copy(self) -> SimulatedLoads:
        """Return the same loads, to go on from."""
        found = SimulatedLoads.__new__(SimulatedLoads)
        found._machines = self._machines
        found._copies, found._machines_copies = set(self._copies), set(self._machines_copies)
        found._near, found._far = self._near.copy(), self._far.copy()
        return found

    def note(self, owner: int, num_bytes: int, pieces: Iterable[PieceRead]) -> None:
        """Note a task: its worker, the bytes of its value, and what it reads."""
        machines, copies = self._machines, self._copies
        here, held = machines.get(owner, -1 - owner), num_bytes
        for name, where, size in pieces:
            if where == owner or (name, owner) in copies:
                continue
            copies.add((name, owner))
            held += size
            self._near.move(where, owner, size)
            there = machines.get(where, -1 - where)
            if there != here and (name, here) not in self._machines_copies:
                self._machines_copies.add((name, here))
                self._far.move(there, here, size)
        self._near.hold(owner, held)
        self._far.hold(here, held)

    def load_with(self, part: PlacedPart, worker: int) -> tuple[float, int]:
        """Return the load with a part made on a worker and read at home, and the bytes that travel for it."""
        machines, copies = self._machines, self._copies
        here = machines.get(worker, -1 - worker)
        near, far = self._near, self._far
        near_held, near_received, near_sent = near.most
        far_held, far_received, far_sent = far.most
        arriving = leaving = 0  # at the worker, and from other machines
        for name, where, size in part.pieces:
            if where == worker or (name, worker) in copies:
                continue
            arriving += size
            near_sent = max(near_sent, near.sent.get(where, 0) + size)
            there = machines.get(where, -1 - where)
            if there != here and (name, here) not in self._machines_copies:
                leaving += size
                far_sent = max(far_sent, far.sent.get(there, 0) + size)
        travelling, home, size = arriving + leaving, part.home, part.num_bytes
        near_received = max(near_received, near.received.get(worker, 0) + arriving)
        far_received = max(far_received, far.received.get(here, 0) + leaving)
        if worker != home and (("sum", part.block, worker), home) not in copies:
            travelling += size
            near_sent = max(near_sent, near.sent.get(worker, 0) + size)
            near_received = max(near_received, near.received.get(home, 0) + size)
            if (there := machines.get(home, -1 - home)) != here:
                travelling += size
                far_sent = max(far_sent, far.sent.get(here, 0) + size)
                far_received = max(far_received, far.received.get(there, 0) + size)
        near_held = max(near_held, near.held.get(worker, 0) + size + arriving)
        far_held = max(far_held, far.held.get(here, 0) + size + arriving)
        total = far_held + far_received + far_sent + NEAR * (near_held + near_received + near_sent)
        return total, travelling

    def add(self, part: PlacedPart, worker: int) -> None:
        """Note a part made on a worker, whose sum with others from there goes home once."""
        self.note(worker, part.num_bytes, part.pieces)
        if worker != part.home:
            self.note(part.home, 0, [PieceRead(("sum", part.block, worker), worker, part.num_bytes)])


class _Most:
    # Bytes held, received and sent by place, and the most of each.
    def __init__(self) -> None:
        self.held: dict[int, int] = {}
        self.received: dict[int, int] = {}
        self.sent: dict[int, int] = {}
        self.most = [0, 0, 0]

    @property
    def total(self) -> int:
        return sum(self.most)

    def copy(self) -> _Most:
        found = _Most()
        found.held, found.received, found.sent = dict(self.held), dict(self.received), dict(self.sent)
        found.most = list(self.most)
        return found

    def hold(self, place: int, num_bytes: int) -> None:
        self.held[place] = found = self.held.get(place, 0) + num_bytes
        if found > self.most[0]:
            self.most[0] = found

    def move(self, one: int, other: int, num_bytes: int) -> None:
        self.received[other] = found = self.received.get(other, 0) + num_bytes
        if found > self.most[1]:
            self.most[1] = found
        self.sent[one] = found = self.sent.get(one, 0) + num_bytes
        if found > self.most[2]:
            self.most[2] = found


def placed(
    loads: SimulatedLoads, parts: Sequence[PlacedPart], workers: Workers
) -> tuple[list[int], tuple[tuple[Placement, float], ...]]:
    """Return the worker of each part, and the load to which each way that was looked at leads."""
    if workers.placing == "turns":
        numbers = workers.numbers
        return [numbers[place % len(numbers)] for place in range(len(parts))], ()
    ways = WAYS if workers.placing == "loads" and len(parts) <= MOST_PARTS else ("owners",)
    options = [part.workers for part in parts]
    if all(len({one.worker for one in part.pieces}) < 2 for part in parts):
        return [some[0] for some in options], ()  # all that each reads is on one worker
    found: list[tuple[float, list[int]]] = []
    for way in ways:
        simulated, chosen = loads.copy(), []
        for part, some in zip(parts, options, strict=True):
            worker = some[0] if way == "owners" else part.home
            if way == "loads":
                worker = min(some, key=lambda one, part=part: simulated.load_with(part, one))  # type: ignore[misc]
            simulated.add(part, worker)
            chosen.append(worker)
        found.append((simulated.total, chosen))
    _, best = min(found, key=lambda one: one[0])
    return best, tuple((way, load) for way, (load, _) in zip(ways, found, strict=True))


def lightest(
    loads: SimulatedLoads,
    owners: Sequence[Sequence[int]],
    sizes: Sequence[int],
    pieces: Sequence[Sequence[PieceRead]],
) -> int:
    """Return which owners of an array's blocks, sizes and what they read have the least load."""
    totals = []
    for some in owners:
        simulated = loads.copy()
        for owner, size, read in zip(some, sizes, pieces, strict=True):
            simulated.note(owner, size, read)
        totals.append(simulated.total)
    return totals.index(min(totals))

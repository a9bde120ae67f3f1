"""Which workers run the tasks of an array, by the bytes that workers and machines would hold and exchange.

The load is that of NumS (section 5.1): the largest number of bytes that a machine holds, receives, and sends,
added up. Its search (LSHS, algorithm 1) gives each task the worker with which the load grows least. Beside it
two plain ways are looked at, each task where its largest operand is, or where its result is to be, and what
has the least load is taken: a greedy search alone may end above them. All follows from sizes and layouts, and
tasks are taken in a plan's order, so the same expressions on the same workers give the same plan.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from matnb.program.plan import Placing, Workers

# A byte between workers of one machine counts as so much of one between machines.
NEAR = 0.25
MOST_PARTS = 10_000  # of one array; more stay where their largest operand is
WAYS: tuple[Placing, ...] = ("owners", "home", "loads")
_HELD, _RECEIVED, _SENT = range(3)


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
        trips = self._trips(owner, pieces)
        far = self._far_trips(trips)
        held, machine = num_bytes + sum(one.num_bytes for one, _ in trips), self._machine_of(owner)
        self._copies.update((one.name, owner) for one, _ in trips)
        self._machines_copies.update((one.name, machine) for one, _ in trips)
        self._near.grow(owner, held, [(one.worker, to, one.num_bytes) for one, to in trips])
        self._far.grow(machine, held, far)

    def load_with(self, part: PlacedPart, worker: int) -> tuple[float, int]:
        """Return the load with a part made on a worker and read at home, and the bytes that travel for it."""
        moved = self._trips(worker, part.pieces)
        held = part.num_bytes + sum(one.num_bytes for one, _ in moved)
        moved += self._way_home(part, worker)
        near, far = [(one.worker, to, one.num_bytes) for one, to in moved], self._far_trips(moved)
        near_load = self._near.total_with(worker, held, near)
        load = self._far.total_with(self._machine_of(worker), held, far) + NEAR * near_load
        return load, sum(size for _, _, size in far) + sum(size for _, _, size in near)

    def add(self, part: PlacedPart, worker: int) -> None:
        """Note a part made on a worker, whose sum with others from there goes home once."""
        self.note(worker, part.num_bytes, part.pieces)
        self.note(part.home, 0, [piece for piece, _ in self._way_home(part, worker)])

    def _machine_of(self, worker: int) -> int:
        return self._machines.get(worker, -1 - worker)  # one that is not known is a machine of its own

    def _trips(self, owner: int, pieces: Iterable[PieceRead]) -> list[tuple[PieceRead, int]]:
        return [
            (one, owner) for one in pieces if one.worker != owner and (one.name, owner) not in self._copies
        ]

    def _way_home(self, part: PlacedPart, worker: int) -> list[tuple[PieceRead, int]]:
        # The sum of a worker's parts of a block goes once.
        sum_of_worker = PieceRead(("sum", part.block, worker), worker, part.num_bytes)
        return self._trips(part.home, [sum_of_worker])

    def _far_trips(self, trips: Iterable[tuple[PieceRead, int]]) -> list[tuple[int, int, int]]:
        # What goes from machine to machine, once for all workers of one.
        found = []
        for one, to in trips:
            there, here = self._machine_of(one.worker), self._machine_of(to)
            if there != here and (one.name, here) not in self._machines_copies:
                found.append((there, here, one.num_bytes))
        return found


class _Most:
    # Bytes held, received and sent by place, and the most of each.
    def __init__(self) -> None:
        self._loads: tuple[dict[int, int], ...] = ({}, {}, {})
        self._most = [0, 0, 0]

    @property
    def total(self) -> int:
        return sum(self._most)

    def copy(self) -> _Most:
        found = _Most()
        found._loads, found._most = tuple(map(dict, self._loads)), list(self._most)
        return found

    def grow(self, place: int, held: int, trips: Iterable[tuple[int, int, int]]) -> None:
        self._add(_HELD, place, held)
        for one, other, size in trips:
            self._add(_SENT, one, size)
            self._add(_RECEIVED, other, size)

    def _add(self, kind: int, place: int, num_bytes: int) -> None:
        loads = self._loads[kind]
        loads[place] = found = loads.get(place, 0) + num_bytes
        if found > self._most[kind]:
            self._most[kind] = found

    def total_with(self, place: int, held: int, trips: Iterable[tuple[int, int, int]]) -> int:
        most = list(self._most)
        most[_HELD] = max(most[_HELD], self._loads[_HELD].get(place, 0) + held)
        grown: dict[tuple[int, int], int] = {}
        for one, other, size in trips:
            for kind, where in ((_SENT, one), (_RECEIVED, other)):
                found = grown.get((kind, where), self._loads[kind].get(where, 0)) + size
                grown[kind, where] = found
                if found > most[kind]:
                    most[kind] = found
        return sum(most)


def placed(
    loads: SimulatedLoads, parts: Sequence[PlacedPart], workers: Workers
) -> tuple[list[int], tuple[tuple[Placing, float], ...]]:
    """Return the worker of each part, and the load to which each way that was looked at leads."""
    if workers.placing == "turns":
        numbers = workers.numbers
        return [numbers[place % len(numbers)] for place in range(len(parts))], ()
    ways = WAYS if workers.placing == "loads" and len(parts) <= MOST_PARTS else ("owners",)
    options = [part.workers for part in parts]
    if all(len(some) == 1 for some in options):
        return [some[0] for some in options], ()
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

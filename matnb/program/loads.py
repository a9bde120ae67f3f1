"""Which worker runs a task, by the bytes that workers and machines would hold, receive and send.

This is the simulated load of NumS (LSHS: section 5, algorithm 1): of the workers that have something of what
a task reads, the one with which the largest loads grow least. Tasks are taken in the order in which a plan
lists them, so the same expressions on the same workers give the same plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from matnb.program.plan import Choice, Slot, Workers

# What a byte between workers of one machine counts beside one between machines.
NEAR = 0.25
MOST_CHOICES = 10_000  # in a plan; what follows stays where its largest operand is
Moves: TypeAlias = Sequence[tuple[Slot | None, int, int]]  # what is read: its slot, where it is, its bytes
HELD, RECEIVED, SENT = range(3)


class Loads:
    """What workers and machines hold, receive and send as a plan is written.

    Attributes
    ----------
    choices
        By the number of the array.
    num_unplaced
        Of the tasks that stayed where their largest operand is since there were too many.
    """

    def __init__(self, workers: Workers) -> None:
        machines = workers.machines or (0,) * len(workers.numbers)
        self._machines = dict(zip(workers.numbers, machines, strict=True))
        self._way = workers.placing
        self._of_workers: tuple[dict[int, int], ...] = ({}, {}, {})
        self._of_machines: tuple[dict[int, int], ...] = ({}, {}, {})
        self._most_of_workers, self._most_of_machines = [0, 0, 0], [0, 0, 0]
        self._copies: set[tuple[Slot, int]] = set()
        self.choices: dict[int, list[Choice]] = {}
        self.num_choices = self.num_unplaced = 0

    @property
    def is_needed(self) -> bool:
        """Whether there is more than one worker."""
        return len(self._machines) > 1

    def note(self, slot: Slot, owner: int, num_bytes: int, inputs: Iterable[tuple[Slot, int, int]]) -> None:
        """Note a task: the slot, worker and bytes of its value; of its inputs, slot, worker and bytes."""
        held = num_bytes
        for source, where, size in inputs:
            if where == owner or (source, owner) in self._copies:
                continue
            self._copies.add((source, owner))
            held += size
            self._add(SENT, where, size, self._between(where, owner))
            self._add(RECEIVED, owner, size, self._between(where, owner))
        self._add(HELD, owner, held, True)

    def _between(self, one: int, other: int) -> bool:
        machines = self._machines
        return machines.get(one, -1 - one) != machines.get(other, -1 - other)

    def _add(self, kind: int, worker: int, num_bytes: int, leaves: bool) -> None:
        of_worker = self._of_workers[kind]
        of_worker[worker] = found = of_worker.get(worker, 0) + num_bytes
        self._most_of_workers[kind] = max(self._most_of_workers[kind], found)
        if leaves:
            of_machine, machine = self._of_machines[kind], self._machines.get(worker, -1 - worker)
            of_machine[machine] = found = of_machine.get(machine, 0) + num_bytes
            self._most_of_machines[kind] = max(self._most_of_machines[kind], found)

    def best(self, array: int, num_bytes: int, workers: Sequence[int], moves: Moves) -> int:
        """Return the worker of a task.

        Parameters
        ----------
        array
            The number of the array for which it is.
        num_bytes
            Of its value.
        workers
            Those that may run it; the first is that of its largest operand.
        moves
            What it reads.
        """
        if len(workers) == 1 or self._way == "owners":
            return workers[0]
        self.num_choices += 1
        if self._way == "turns":
            numbers = list(self._machines)
            return numbers[self.num_choices % len(numbers)]
        if self.num_choices > MOST_CHOICES:
            self.num_unplaced += 1
            return workers[0]
        options = [(worker, *self._load(worker, num_bytes, moves)) for worker in workers]
        taken = min(options, key=lambda one: one[1:])[0]
        shown = tuple((worker, load) for worker, load, _ in options)
        self.choices.setdefault(array, []).append(Choice(shown, taken))
        return taken

    def _load(self, worker: int, num_bytes: int, moves: Moves) -> tuple[float, int]:
        # The load with a task on a worker, and the bytes that travel for it.
        workers, machines, here = self._of_workers, self._of_machines, self._machines[worker]
        coming = leaving = 0
        most_sent, most_sent_far = self._most_of_workers[SENT], self._most_of_machines[SENT]
        sent: dict[int, int] = {}
        sent_far: dict[int, int] = {}
        for slot, where, size in moves:
            if where == worker or (slot, worker) in self._copies:
                continue
            coming += size
            sent[where] = sent.get(where, workers[SENT].get(where, 0)) + size
            most_sent = max(most_sent, sent[where])
            machine = self._machines.get(where, -1 - where)
            if machine != here:
                leaving += size
                sent_far[machine] = sent_far.get(machine, machines[SENT].get(machine, 0)) + size
                most_sent_far = max(most_sent_far, sent_far[machine])
        near = (
            max(self._most_of_workers[HELD], workers[HELD].get(worker, 0) + num_bytes + coming)
            + max(self._most_of_workers[RECEIVED], workers[RECEIVED].get(worker, 0) + coming)
            + most_sent
        )
        far = (
            max(self._most_of_machines[HELD], machines[HELD].get(here, 0) + num_bytes + coming)
            + max(self._most_of_machines[RECEIVED], machines[RECEIVED].get(here, 0) + leaving)
            + most_sent_far
        )
        return far + NEAR * near, leaving + coming

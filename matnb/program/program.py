"""Programs: plans with loops and branches, over slots; a gang runs one, or this process batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from matnb.errors import TooLargeError
from matnb.pictures.quantities import bytes_text
from matnb.program.plan import Slot, Task

Registers: TypeAlias = tuple[Slot, ...]  # that hold an array, block by block


@dataclass(frozen=True)
class Batch:
    """Tasks that run once whenever control comes by.

    Attributes
    ----------
    tasks
        Inputs before their users. An input is the slot of another task of the batch, or a register.
    results
        Slots of tasks whose values are read after the batch, as registers.
    """

    tasks: tuple[Task, ...]
    results: Registers


@dataclass(frozen=True)
class Iterate:
    """A loop.

    Attributes
    ----------
    state
        The registers that hold each array of the state, during an iteration and afterwards.
    first
        The registers, of the same owners, in which each begins.
    after
        The registers, of the same owners, that hold each array's next value when an iteration is done; one
        that is a register of ``state`` is an array that stays, or changes places with another.
    limit
        A register with the most iterations.
    until
        A register whose scalar ends the loop when it is true after an iteration, or None.
    iteration
        The register for the number of the iteration, on every worker.
    taken
        The register for the number of iterations that were taken, on every worker.
    body
        What an iteration does.
    most
        The most iterations, where that number was written down.
    """

    state: tuple[Registers, ...]
    first: tuple[Registers, ...]
    after: tuple[Registers, ...]
    limit: Slot
    until: Slot | None
    iteration: Slot
    taken: Slot
    body: tuple[Action, ...]
    most: int | None = None


@dataclass(frozen=True)
class Branch:
    """One of two ways, by a scalar.

    Attributes
    ----------
    predicate
        The register of the scalar.
    then, otherwise
        What is done.
    results
        The registers that hold the results.
    from_then, from_otherwise
        The registers, of the same owners, that hold them at the end of each way.
    """

    predicate: Slot
    then: tuple[Action, ...]
    otherwise: tuple[Action, ...]
    results: Registers
    from_then: Registers
    from_otherwise: Registers


Action: TypeAlias = Batch | Iterate | Branch


@dataclass(frozen=True)
class Program:
    """Plans with loops and branches.

    Attributes
    ----------
    actions
        In order.
    given
        Registers that are filled before the first action, with the worker that holds each.
    owners
        The worker that holds each register that is not a task's, ``given`` among them.
    everywhere
        Registers whose scalars every worker has.
    results
        Registers whose values are kept.
    keeps
        Whether members keep copies of the outermost loop's state, here and on a neighbor, while it runs.
    limits
        Of each worker whose memory has a limit, what is left of it beside all that is stored.
    by_member
        What members in this process have found out about the program, by their numbers.
    """

    actions: tuple[Action, ...]
    given: Mapping[Slot, int]
    owners: Mapping[Slot, int]
    everywhere: frozenset[Slot]
    results: Registers
    keeps: bool = True
    limits: Mapping[int, int] = field(default_factory=dict)
    by_member: dict[int, object] = field(default_factory=dict, init=False, compare=False, repr=False)

    def holding(self, slots: Iterable[Slot]) -> Program:
        """Return the program with further registers whose values are kept."""
        results = tuple(dict.fromkeys((*self.results, *slots)))
        return self if len(results) == len(self.results) else replace(self, results=results)

    def limited(self, keeps: bool, limits: Mapping[int, int]) -> Program:
        """Return the program under other limits; what members found out holds whatever these are."""
        limited = replace(self, keeps=keeps, limits=limits)
        object.__setattr__(limited, "by_member", self.by_member)
        return limited


def batches(actions: Iterable[Action]) -> Iterator[Batch]:
    """Yield the batches of a program in their order, those of bodies too."""
    for action in actions:
        match action:
            case Batch():
                yield action
            case Iterate():
                yield from batches(action.body)
            case Branch():
                yield from batches((*action.then, *action.otherwise))


# Of a vector's elements that a reader in a loop needs: of more it is sent the whole, since packing reads and
# writes those few once more on either side.
TOUCHED_AT_MOST = 0.75
EXPECTED = 10  # iterations of a loop in a loop, at most where a condition ends it


def weighted_tasks(
    actions: Iterable[Action], times: float = 1.0, between: Callable[[], None] = lambda: None
) -> Iterator[tuple[Task, float]]:
    """Yield each task, and how often it is done when the actions are so many ``times``.

    A loop counts as often as is written down, else as if it had ten iterations; of two ways the one of fewer
    tasks counts.

    Parameters
    ----------
    between
        Called before and after each loop and branch.
    """
    for action in actions:
        if isinstance(action, Batch):
            yield from ((task, times) for task in action.tasks)
            continue
        between()
        if isinstance(action, Iterate):
            expected = EXPECTED if action.most is None else action.most
            expected = expected if action.until is None else min(expected, EXPECTED)
            yield from weighted_tasks(action.body, expected * times, between)
        else:
            yield from weighted_tasks(min(action.then, action.otherwise, key=_num_tasks), times, between)
        between()


def _num_tasks(actions: Iterable[Action]) -> int:
    return sum(len(batch.tasks) for batch in batches(actions))


LESS_IN_LOOPS = (
    "keep the loop's sparse state sparse, take fewer iterations, release what is not needed, or start with "
    "more workers or a larger memory_limit"
)


def check_held(num_bytes: int, growth: int, limit_bytes: int) -> None:
    """Refuse to go on with a loop whose arrays have outgrown a worker's memory, or are about to.

    Parameters
    ----------
    num_bytes
        What the loop holds on the worker, beside what it was given.
    growth
        By how much its sparse state grew in the last iteration: as much is expected of the next one.
    limit_bytes
        What the worker has left for it.

    Raises
    ------
    TooLargeError
        With the numbers.
    """
    if num_bytes + growth > limit_bytes:
        growing = f", by {bytes_text(growth)} in the last iteration," if growth else ""
        raise TooLargeError(
            f"the arrays of a loop have grown to {bytes_text(num_bytes)}{growing} on a worker that has "
            f"{bytes_text(limit_bytes)} left for them; {LESS_IN_LOOPS}"
        )

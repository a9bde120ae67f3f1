"""The physical plan: tasks over registers, grouped in stages, each task pinned to a worker."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from matnb.blocks.grid import Region
from matnb.blocks.layout import Layout
from matnb.expr.nodes import Data, Expr, Literal
from matnb.program.kinds import Kind
from matnb.program.operators import Operator

MANY_WORKERS = 4  # fewer share rows: of squares as many bytes travel, and sums of rows end where they begin
Placement: TypeAlias = typing.Literal["loads", "owners", "home", "turns"]
Slot: TypeAlias = int  # the number of a value in a plan or a program


@dataclass(frozen=True)
class Step:
    """One operator of a task; ``arguments`` number its registers: the task's inputs, then earlier steps."""

    operator: Operator
    arguments: tuple[int, ...]


@dataclass(frozen=True)
class Task:
    """What one worker does in one go: a few steps over the values of other tasks; the last step is its value.

    Parameters
    ----------
    key
        The slot of its value.
    steps
        Run in order.
    inputs
        The slots that fill the first registers: of other tasks' values, or of what is given.
    owner
        Number of the worker that runs it.
    kind
        What it does: a product, a map, a reduction, ...
    working_bytes
        Memory for values of steps on the way, in addition to the task's own value.
    makes
        The number of the array of which it makes a block, or something on the way to one; see Stage. None
        where it belongs to no array of the plan.
    """

    key: Slot
    steps: tuple[Step, ...]
    inputs: tuple[Slot, ...]
    owner: int
    kind: Kind
    working_bytes: int = 0
    makes: int | None = None


@dataclass(frozen=True)
class PlacementChoice:
    """How the workers were chosen that make the parts of an array, whose tasks read from several.

    Attributes
    ----------
    num_parts
        How many tasks were placed.
    ways
        What was looked at, and the load to which each leads: bytes, as in ``program.loads``. Empty where each
        part reads from one worker alone.
    """

    num_parts: int
    ways: tuple[tuple[Placement, float], ...]

    @property
    def taken(self) -> Placement | None:
        """The way with the least load, the first of several."""
        return min(self.ways, key=lambda one: one[1])[0] if self.ways else None


@dataclass(frozen=True)
class Stage:
    """The tasks that together make one array; ``inside`` is what each of them computes, operands first.

    How many entries a sparse array will store is a guess; a dense one has none.

    Attributes
    ----------
    makes
        The number of the array in its plan, which its tasks have, too.
    way
        How it is made: equal where all that takes part is cut alike and owned by the same workers.
    placed
        How workers were chosen for the parts of its blocks, where it has parts.
    """

    makes: int
    way: str
    kind: Kind
    detail: str
    layout: Layout
    tasks: tuple[Slot, ...]
    estimated_bytes: int
    expression: Expr
    inside: tuple[Expr, ...]
    estimated_nnz: int | None = None
    placed: PlacementChoice | None = None


class PlanWork(NamedTuple):
    """How much there is to do, by shapes and counts of entries.

    Attributes
    ----------
    flops
        Floating-point operations.
    accessed_bytes
        Of arrays that are read and written.
    """

    flops: int
    accessed_bytes: int


@dataclass(frozen=True)
class StoredArray:
    """An array in blocks: where it is cut, who owns each, and where each is found.

    ``keys`` are slots in a plan or a program; of what is on the workers they are Dask's names of the blocks.
    ``is_guess`` where its counts are estimates, as those of a loop's sparse state are; ``num_begun`` are the
    entries of such a state as the loop begins, where more are counted with.
    """

    layout: Layout
    keys: tuple[Any, ...]
    block_nnz: tuple[int, ...] = ()
    block_bytes: tuple[int, ...] = ()
    is_guess: bool = False
    num_begun: int | None = None


@dataclass(frozen=True)
class Shipment:
    """A block of a user's data that has to be sent to its owner before the tasks run."""

    key: Slot
    expression: Data
    region: Region
    owner: int


@dataclass(frozen=True)
class InlineBlock:
    """A small block of a user's data, sent along with the tasks that read it."""

    expression: Data
    region: Region


@dataclass(frozen=True)
class Plan:
    """Tasks without loops, in stages.

    Nothing in it holds a value of a user's array: it is used again for other arrays of the same form.

    Parameters
    ----------
    tasks
        In an order in which inputs come before their users.
    stages
        For a user, and for measuring.
    shipments
        A user's data that the tasks read.
    outputs
        The arrays that stay on the workers afterwards.
    reused
        Arrays that were there already and are read.
    peaks
        For each worker the memory that the plan needs on top of what is used now.
    moved_bytes
        Bytes that go from one worker to another.
    scattered
        Sparse arrays whose transposes meet dense ones without being made, as often as they do.
    lasting
        Bytes of the values, by slot, made once for a loop, which stay as long; ``peaks`` have none of it.
    inline
        The slots of numbers and of small blocks of a user's data, which are sent along with the tasks: other
        runs of the same plan have others.
    work
        Of each stage.
    sizes
        About how many bytes each value has that is made, sent or read, by slot; not of what is inline.
    found
        What an engine found out about the tasks; plans for other expressions with these tasks share it.
    """

    tasks: tuple[Task, ...]
    stages: tuple[Stage, ...]
    shipments: tuple[Shipment, ...]
    outputs: Mapping[Expr, StoredArray]
    reused: Mapping[Expr, StoredArray]
    peaks: Mapping[int, int]
    moved_bytes: int
    scattered: tuple[Expr, ...] = ()
    lasting: Mapping[Slot, int] = field(default_factory=dict)
    inline: Mapping[Slot, Literal | InlineBlock] = field(default_factory=dict)
    work: tuple[PlanWork, ...] = ()
    sizes: Mapping[Slot, int] = field(default_factory=dict, compare=False, repr=False)
    found: dict[str, object] = field(default_factory=dict, compare=False, repr=False)

    @property
    def projected_bytes(self) -> int:
        """Memory that the plan needs on top of what is used now, over all workers."""
        return sum(self.peaks.values())


@dataclass(frozen=True)
class Workers:
    """The workers a plan is laid out over: their numbers, and how many threads and bytes each has.

    Attributes
    ----------
    machines
        The number of each one's machine, in the order of ``numbers``: those of one follow one another. All
        are on one machine where it is empty.
    node_grid
        How many machines lie along each axis of an array, where that was asked for.
    placing
        Where a task runs that reads from several workers: by the "loads" that would follow; or to compare
        with, on the "owners" of its largest operand, or on all workers in "turns".

    Raises
    ------
    ValueError
        Where there are machines, and not one for each worker.
    """

    numbers: tuple[int, ...]
    threads: int
    memory_bytes: int
    machines: tuple[int, ...] = ()
    node_grid: tuple[int, ...] | None = None
    placing: Placement = "loads"

    def __post_init__(self) -> None:
        if self.machines and len(self.machines) != len(self.numbers):
            raise ValueError(f"Workers: {len(self.machines)} machines for {len(self.numbers)} workers")

    @property
    def nodes(self) -> dict[int, list[int]]:
        """The workers of each machine; each worker by itself where many are on one machine."""
        found: dict[int, list[int]] = {}
        for number, machine in zip(self.numbers, self.machines, strict=False):
            found.setdefault(machine, []).append(number)
        if len(found) < 2 and len(self.numbers) >= MANY_WORKERS:
            return {number: [number] for number in self.numbers}
        return found

    @property
    def slots(self) -> int:
        """Tasks that run at the same time."""
        return len(self.numbers) * self.threads

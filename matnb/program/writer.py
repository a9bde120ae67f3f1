"""Writes the tasks of a plan: steps collected into tasks, blocks read with the exchanges they need."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Container, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from matnb.blocks.grid import Index, Region, intersect, region_shape, relative
from matnb.blocks.layout import Layout
from matnb.blocks.result_checks import ReturnSpec, run_checked
from matnb.expr.digest import digest_of
from matnb.expr.nodes import Data, Expr, Literal
from matnb.program.fusing import FusedStep, fused
from matnb.program.kinds import CUT, GATHER, MOVE, TRANSPOSE, Kind
from matnb.program.loads import PieceRead, PlacedPart, SimulatedLoads, lightest, placed
from matnb.program.matching import Product
from matnb.program.memory import estimate_bytes, peaks
from matnb.program.operators import Cut, Flip, Join, Multiply, Operator, Run
from matnb.program.plan import (
    InlineBlock,
    PlacementChoice,
    Plan,
    Shipment,
    Slot,
    Stage,
    Step,
    StoredArray,
    Task,
    Workers,
)
from matnb.program.regions import region_size
from matnb.registration import is_foreign

Reads: TypeAlias = Sequence[tuple[Expr, Region]]  # regions of arrays that a task reads
_RELAYED_BYTES = 64 * 1024  # below, a task more takes longer than what it spares


class TaskWriter:
    """Collects the steps of one task."""

    def __init__(self) -> None:
        self._inputs: list[Slot] = []
        self._steps: list[tuple[Operator, tuple[tuple[bool, int], ...]]] = []
        self._sizes: list[int] = []
        self._taken = 0

    def read(self, key: Slot) -> tuple[bool, int]:
        """Return the register that holds the value of a slot."""
        if key not in self._inputs:
            self._inputs.append(key)
        return True, self._inputs.index(key)

    def do(self, operator: Operator, *arguments: tuple[bool, int], num_bytes: int = 0) -> tuple[bool, int]:
        """Append a step whose value is about so large, and return its register."""
        self._steps.append((operator, arguments))
        self._sizes.append(num_bytes)
        return False, len(self._steps) - 1

    @property
    def is_copy(self) -> bool:
        """True while nothing is done: the value is a single input."""
        return not self._steps

    def take(self, num_bytes: int) -> None:
        """Note that a kernel takes so much while it runs, in addition to the values of steps."""
        self._taken = max(self._taken, num_bytes)

    def task(self, key: Slot, owner: int, kind: Kind, makes: int | None = None) -> Task:
        """Return the task; its last step is its value."""
        count = len(self._inputs)
        steps = [
            Step(operator, tuple(place if is_input else count + place for is_input, place in arguments))
            for operator, arguments in self._steps
        ]
        joined = fused(steps, count)
        working = self._working_bytes(steps, joined) + self._taken
        return Task(key, tuple(one.step for one in joined), tuple(self._inputs), owner, kind, working, makes)

    def _working_bytes(self, steps: Sequence[Step], joined: Sequence[FusedStep]) -> int:
        # The most that values of steps take at a time, but for the last one; each goes with its last reader.
        # One pass holds what it reads to its end, and all that is between where it cannot run by tiles.
        count = len(self._inputs)
        last = {place: number for number, one in enumerate(joined) for place in one.step.arguments}
        held = most = 0
        for number, one in enumerate(joined):
            size = self._sizes[one.members[-1]] if number < len(joined) - 1 else 0
            most = max(most, held + size + self._between_bytes(steps, one.members))
            held += size
            held -= sum(
                self._sizes[joined[place - count].members[-1]]
                for place in set(one.step.arguments)
                if place >= count and last[place] == number
            )
        return most

    def _between_bytes(self, steps: Sequence[Step], members: Sequence[int]) -> int:
        count = len(self._inputs)
        # A product is held to the end.
        last = {
            place - count: number
            for number in members
            for place in steps[number].arguments
            if place >= count and not isinstance(steps[place - count].operator, Multiply)
        }
        leaving: dict[int, int] = {}  # bytes that go after each step
        for one in members:
            if one in last:
                leaving[last[one]] = leaving.get(last[one], 0) + self._sizes[one]
        held = most = 0
        for number in members[:-1]:
            held += self._sizes[number]
            most = max(most, held)
            held -= leaving.get(number, 0)
        return most


class BlockTask(TaskWriter):
    """Collects the steps of the task that makes one block of an array.

    Attributes
    ----------
    node, key
        What it makes a block of, and the slot of the block.
    number, region, owner
        Of the block: its place in the grid's order, its part of the array, and the worker that has it.
    kind
        For measuring; may be set to another than that of the array's other tasks.
    num_bytes
        Of its value, about; may be set to what is known better.
    """

    def __init__(
        self, node: Expr, key: Slot, number: int, region: Region, owner: int, kind: Kind, num_bytes: int
    ) -> None:
        super().__init__()
        self.node, self.key, self.number, self.region, self.owner = node, key, number, region, owner
        self.kind, self.num_bytes = kind, num_bytes


@dataclass(frozen=True)
class Ending:
    """How a task that reads a reduction's value puts it together from shares: their slots, and the steps.

    ``parts`` are what picks each share out of the task's value, or None where that is the share.
    """

    keys: tuple[Slot, ...]
    parts: tuple[Operator | None, ...]
    operator: Operator

    def write(self, task: TaskWriter) -> tuple[bool, int]:
        """Write the steps, and return the register of the value."""
        shares = [task.read(key) for key in self.keys]
        picked = [
            share if part is None else task.do(part, share)
            for share, part in zip(shares, self.parts, strict=True)
        ]
        return task.do(self.operator, *picked)


class Slots:
    """Numbers the values of a plan or program, and its arrays.

    Parameters
    ----------
    constants
        Numbers that are given when the plan is sent, instead of being steps of tasks.
    repeats
        Whether tasks run again and again, where another message on the way would cost each time.

    Attributes
    ----------
    constants
        As given.
    owners
        The worker of each slot; constants have none.
    names
        The slots of further values that are there, by what they are.
    """

    def __init__(self, constants: Collection[Expr] = (), repeats: bool = False) -> None:
        self.constants, self.repeats = constants, repeats
        self.owners: dict[Slot, int] = {}
        self.names: dict[Hashable, Slot] = {}
        self._values, self._arrays = itertools.count(), itertools.count()
        self._blocks: dict[Hashable, Slot] = {}

    def new(self, owner: int | None = None) -> Slot:
        """Return the slot of another value."""
        slot = next(self._values)
        if owner is not None:
            self.owners[slot] = owner
        return slot

    def new_array(self) -> int:
        """Return the number of another array."""
        return next(self._arrays)

    def of(self, array: StoredArray) -> StoredArray:
        """Return a stored array in slots; a block that belongs to two arrays has one."""
        for name, owner in zip(array.keys, array.layout.owners, strict=True):
            if name not in self._blocks:
                self._blocks[name] = self.new(owner)
        return replace(array, keys=tuple(self._blocks[name] for name in array.keys))


class PlanWriter:
    """Collects tasks and stages, and the slots of the arrays they make.

    Parameters
    ----------
    stored
        Arrays that are there, in slots.
    entries
        Estimated entries of every expression.
    products
        How products are made.
    workers
        What the plan is laid out over.
    slots
        Of the plan, or of the program of which it is a part.
    steady
        Arrays that stay the same in a loop: what only lays them out anew runs once, before it.

    Attributes
    ----------
    names
        The slots of values that several tasks may want, by what they are.
    """

    def __init__(
        self,
        stored: Mapping[Expr, StoredArray],
        entries: Mapping[Expr, int],
        products: Mapping[Expr, Product],
        workers: Workers,
        slots: Slots,
        steady: Container[Expr] = (),
    ) -> None:
        self.workers, self.steady = workers, steady
        # What several workers of a machine read of another one comes to one of them, for all.
        several = not slots.repeats and len(set(workers.machines)) > 1
        self._machines = dict(zip(workers.numbers, workers.machines, strict=True)) if several else {}
        self._loads = SimulatedLoads(workers)
        self._placed: dict[int, PlacementChoice] = {}
        self.entries = entries
        self.products = products
        self.slots = slots
        self.registers: dict[Expr, StoredArray] = dict(stored)
        self.endings: dict[Expr, Ending] = {}
        self.reused: dict[Expr, StoredArray] = {}
        self._stored = stored
        self.names = dict(slots.names)
        self._tasks: list[Task] = []
        self._sizes: dict[Slot, int] = {}
        self._stages: list[Stage] = []
        self._shipments: list[Shipment] = []
        self._lasting: dict[Slot, int] = {}
        self._inline: dict[Slot, Literal | InlineBlock] = {}
        self._arrays: dict[Expr, int] = {}
        for array in stored.values():
            # An interrupted run did not tell its counts; then nobody knows how large its blocks are.
            self._sizes.update(zip(array.keys, array.block_bytes, strict=False))

    def bytes_of(self, node: Expr, region: Region | None = None) -> int:
        """Return the estimated bytes of an array, or of its part in a region."""
        whole = estimate_bytes(node, self.entries[node])
        if region is None:
            return whole
        return whole * region_size(region) // max(1, node.size)

    def entries_of(self, node: Expr, region: Region) -> int:
        """Return about how many entries of an array are in a region, a block's own where they are known."""
        array = self.registers.get(node)
        if array is not None and array.block_nnz and len(array.block_nnz) == len(array.keys):
            return sum(
                array.block_nnz[array.layout.grid.number(index)]
                for index in array.layout.grid.overlapping(region)
            )
        return self.entries[node] * region_size(region) // max(1, node.size)

    def add(
        self,
        task: TaskWriter,
        owner: int,
        kind: Kind,
        num_bytes: int,
        node: Expr | None = None,
        name: Hashable = None,
    ) -> Slot:
        """Add a task, unless a value of its name is there or on its way, and return the slot of its value.

        Parameters
        ----------
        node
            The expression of whose array it makes something; None for what belongs to no array.
        name
            What the value is, where other tasks may want the same.
        """
        found = self.found(name)
        if found is not None:
            return found
        slot = self.slots.new(owner)
        if name is not None:
            self.names[name] = slot
        self._put(slot, task, owner, kind, num_bytes, node)
        return slot

    def _put(
        self, slot: Slot, task: TaskWriter, owner: int, kind: Kind, num_bytes: int, node: Expr | None
    ) -> None:
        made = task.task(slot, owner, kind, None if node is None else self._number(node))
        if node is not None and node.is_foreign:
            made = _checked(made, node, task.region if isinstance(task, BlockTask) else None)
        self._tasks.append(made)
        self._sizes[slot] = num_bytes
        if len(self.workers.numbers) > 1:
            owners, sizes = self.slots.owners, self._sizes
            read = [PieceRead(one, owners.get(one, owner), sizes.get(one, 0)) for one in made.inputs]
            self._loads.note(owner, num_bytes, read)

    def _number(self, node: Expr) -> int:
        if node not in self._arrays:
            self._arrays[node] = self.slots.new_array()
        return self._arrays[node]

    def found(self, name: Hashable) -> Slot | None:
        """Return the slot of a value of this name, or None where there is none yet."""
        return self.names.get(name)

    def constant(self, node: Literal) -> Slot:
        """Return the slot of a number that is given when the plan is sent."""
        slot = self.found(node)
        if slot is None:
            slot = self.names[node] = self.slots.new()
            self._inline[slot] = node
        return slot

    def inline(self, node: Data, region: Region) -> Slot:
        """Return the slot of a small block of a user's data that is given when the plan is sent."""
        slot = self.slots.new()
        self._inline[slot] = InlineBlock(node, region)
        return slot

    def each_block(
        self, node: Expr, layout: Layout, kind: Kind, detail: str = "", inside: Sequence[Expr] = ()
    ) -> Iterator[BlockTask]:
        """Yield a task to write for each block of an array, add each, and note that the array is made.

        Parameters
        ----------
        node, layout
            The array, and how it is to lie.
        kind, detail
            For measuring, and for a user.
        inside
            What each task computes on the way, operands first.
        """
        places = zip(layout.grid.regions(), layout.owners, strict=True)
        keys = []
        for number, (region, owner) in enumerate(places):
            slot, size = self.slots.new(owner), self.bytes_of(node, region)
            yield (task := BlockTask(node, slot, number, region, owner, kind, size))
            self._put(slot, task, owner, task.kind, task.num_bytes, node)
            keys.append(slot)
        self.finish(node, layout, keys, kind, detail, inside)

    def part_of(self, block: BlockTask, part: TaskWriter, owner: int, kind: Kind, num_bytes: int) -> Slot:
        """Add a task that makes something of which a block is made, and return its slot."""
        return self.add(part, owner, kind, num_bytes, block.node)

    def _way_of(self, node: Expr, layout: Layout, inside: Sequence[Expr]) -> str:
        # How all that takes part in making an array lies.
        taking = (*(array.layout for one in node.operands if (array := self.registers.get(one))), layout)
        ways = [self.products[one].way for one in dict.fromkeys((*inside, node)) if one in self.products]
        return digest_of(*((one.grid.cuts, one.owners) for one in taking), *ways).hex()[:8]

    def add_lasting(
        self, task: TaskWriter, owner: int, kind: Kind, num_bytes: int, node: Expr, name: Hashable
    ) -> Slot:
        """Add a task as ``add`` does, whose value outlives the plan in a loop: it is not made each time."""
        if (found := self.found(name)) is not None:
            return found
        slot = self.add(task, owner, kind, 0, node, name)
        self._lasting[slot] = num_bytes
        return slot

    def ship(self, node: Data, region: Region, owner: int, num_bytes: int) -> Slot:
        """Add a block of a user's data, and return its slot."""
        slot = self.slots.new(owner)
        self._shipments.append(Shipment(slot, node, region, owner))
        self._sizes[slot] = num_bytes
        return slot

    def finish(
        self,
        node: Expr,
        layout: Layout,
        keys: Sequence[Slot],
        kind: Kind,
        detail: str,
        inside: Sequence[Expr] = (),
    ) -> None:
        """Note that the tasks added for an expression make its array, and what they compute on the way."""
        self.registers[node] = StoredArray(layout, tuple(keys))
        self.note_stage(node, layout, keys, kind, detail, inside)

    def leave(self, node: Expr, layout: Layout, ending: Ending) -> None:
        """Note that the task that reads a number puts it together."""
        self.registers[node] = StoredArray(layout, ())
        self.endings[node] = ending

    def note_stage(
        self,
        node: Expr,
        layout: Layout,
        keys: Sequence[Slot],
        kind: Kind,
        detail: str,
        inside: Sequence[Expr] = (),
    ) -> None:
        """Note tasks that make an array, or its shares, for a user; the node is the last thing they do."""
        number, way = self._number(node), self._way_of(node, layout, inside)
        size = self.bytes_of(node)
        nnz = self.entries[node] if node.sparse else None
        made = (*inside, node)
        self._stages.append(
            Stage(
                number,
                way,
                kind,
                detail,
                layout,
                tuple(keys),
                size,
                node,
                made,
                nnz,
                self._placed.get(number),
            )
        )

    def owner_of(self, key: Slot) -> int:
        """Return the worker that has a value."""
        return self.slots.owners[key]

    def home_of(self, node: Expr, region: Region) -> int:
        """Return the worker that has the first block of an array that meets a region, or its first block."""
        layout = self.registers[node].layout
        found = next(iter(layout.grid.overlapping(region)), None)
        return layout.owners[0 if found is None else layout.grid.number(found)]

    def block(self, node: Expr, region: Region, owner: int) -> Slot:
        """Return the slot of a value that holds exactly a region of an array, for a task on ``owner``.

        A whole block is used as it is. Any other region is put together once for each worker that needs it,
        and of another worker's block only the part inside the region travels.
        """
        array = self.registers[node]
        self.note_reuse(node)
        grid = array.layout.grid
        if grid.num_blocks == 1 and grid.region((0,) * grid.ndim) == region:
            return self._near(array.keys[0], node, region, owner)
        found = list(grid.overlapping(region))
        if len(found) == 1 and grid.region(found[0]) == region:
            return self._near(array.keys[grid.number(found[0])], node, region, owner)
        here = self._machines.get(owner)
        name = ("gathered", array.keys, region, ("worker", owner) if here is None else ("machine", here))
        if (there := self.found(name)) is not None:
            return there
        writer = TaskWriter()
        self._put_together(writer, node, region, owner, found)
        return self.add(writer, owner, GATHER, self.bytes_of(node, region), node, name)

    def _near(self, slot: Slot, node: Expr, region: Region, owner: int) -> Slot:
        # The slot of a value on a worker's machine, where another of its workers may want it, too.
        here, source = self._machines.get(owner), self.owner_of(slot)
        if here is None or here == self._machines.get(source) or self.bytes_of(node, region) < _RELAYED_BYTES:
            return slot
        task = TaskWriter()
        task.read(slot)
        return self.add(task, owner, MOVE, self.bytes_of(node, region), node, ("relayed", slot, here))

    def flipped(self, node: Expr, region: Region, owner: int) -> Slot:
        """Return the slot of the transpose of a region of a dense matrix, made once for each worker."""
        block = self.block(node, region, owner)
        task = TaskWriter()
        task.do(Flip((1, 0)), task.read(block))
        return self.add(task, owner, TRANSPOSE, self.bytes_of(node, region), node, ("flipped", block, owner))

    def _put_together(
        self, task: TaskWriter, node: Expr, region: Region, owner: int, found: Sequence[Index]
    ) -> tuple[bool, int]:
        array = self.registers[node]
        parts, offsets = [], []
        for index in found:
            number = array.layout.grid.number(index)
            source, bounds = array.keys[number], array.layout.grid.region(index)
            common = intersect(bounds, region)
            if common != bounds and array.layout.owners[number] != owner:
                parts.append(
                    task.read(self._near(self._cut_there(node, source, common, bounds), node, common, owner))
                )
            elif common != bounds:
                parts.append(task.do(cut_of(common, bounds), task.read(source)))
            else:
                parts.append(task.read(self._near(source, node, common, owner)))
            offsets.append(tuple(a - b for (a, _), (b, _) in zip(common, region, strict=True)))
        if len(parts) == 1 and not task.is_copy:
            return parts[0]
        joined = Join(tuple(offsets), region_shape(region), node.dtype, node.sparse)
        return task.do(joined, *parts, num_bytes=self.bytes_of(node, region))

    def read(
        self, task: TaskWriter, node: Expr, region: Region, owner: int, alone: bool = False
    ) -> tuple[bool, int]:
        """Return the register of a task on ``owner`` that holds a region of an array.

        What lies inside a block of the same worker is cut out by the task itself, which copies little. A task
        that reads it ``alone`` also puts together several blocks of the worker, which spares a task before.
        """
        if node in self.endings:
            return self.endings[node].write(task)
        array = self.registers[node]
        grid = array.layout.grid
        found = list(grid.overlapping(region)) if region_size(region) else []
        here = all(array.layout.owners[grid.number(index)] == owner for index in found)
        if not found or not here or grid.region(found[0]) == region or (len(found) > 1 and not alone):
            return task.read(self.block(node, region, owner))
        self.note_reuse(node)
        return self._put_together(task, node, region, owner, found)

    def _cut_there(self, node: Expr, source: Slot, common: Region, bounds: Region) -> Slot:
        writer = TaskWriter()
        writer.do(cut_of(common, bounds), writer.read(source))
        owner, num_bytes = self.owner_of(source), self.bytes_of(node, common)
        return self.add(writer, owner, CUT, num_bytes, node, ("cut", source, common))

    def place(self, node: Expr, layout: Layout, parts: Sequence[tuple[int, Reads]]) -> list[int]:
        """Return the workers of tasks that make parts of an array's blocks: where the loads grow least.

        ``parts`` have the number of the block of which each is one, and the regions of arrays that it reads.
        """
        sizes = [self.bytes_of(node, region) for region in layout.grid.regions()]
        wanted = [
            PlacedPart(block, layout.owners[block], sizes[block], self._pieces(reads))
            for block, reads in parts
        ]
        workers, ways = placed(self._loads, wanted, self.workers)
        self._placed[self._number(node)] = PlacementChoice(len(wanted), ways)
        return workers

    def lighter(self, node: Expr, layouts: Sequence[Layout], reads: Sequence[Reads]) -> Layout:
        """Return the layout of an array with the least load, of some of the same cuts; reads are by block."""
        if self.workers.placing != "loads":
            return layouts[0]
        sizes = [self.bytes_of(node, region) for region in layouts[0].grid.regions()]
        owners = [layout.owners for layout in layouts]
        return layouts[lightest(self._loads, owners, sizes, [self._pieces(some) for some in reads])]

    def _pieces(self, reads: Reads) -> tuple[PieceRead, ...]:
        # What of each block is read, by its slot where it is a value already.
        found: list[PieceRead] = []
        for node, region in reads:
            array = self.registers[node]
            grid = array.layout.grid
            for index in grid.overlapping(region) if array.keys else ():
                number, bounds = grid.number(index), grid.region(index)
                common, slot = intersect(bounds, region), array.keys[number]
                name: Hashable = slot if common == bounds else ("cut", slot, common)
                size = self._sizes.get(slot, 0) if common == bounds else 0
                size = size or self.bytes_of(node, common)
                found.append(PieceRead(self.found(name) or name, array.layout.owners[number], size))
        return tuple(found)

    def note_reuse(self, node: Expr) -> None:
        """Note that an array which was on the workers already is read."""
        if node in self._stored:
            self.reused[node] = self._stored[node]

    def plan(self, roots: Sequence[Expr]) -> Plan:
        """Return the plan whose outputs are the arrays of ``roots``; what none of them needs is not made."""
        outputs = {root: self.registers[root] for root in roots if root not in self._stored}
        needed = _needed({key for array in outputs.values() for key in array.keys}, self._tasks)
        tasks, owners = tuple(task for task in self._tasks if task.key in needed), self.slots.owners
        inline, shipments, stages = self._inline, self._shipments, self._stages
        if len(tasks) < len(self._tasks):
            inline = {slot: one for slot, one in inline.items() if slot in needed}
            shipments = [one for one in shipments if one.key in needed]
            made = [(one, tuple(key for key in one.tasks if key in needed)) for one in stages]
            stages = [replace(one, tasks=left) for one, left in made if left or not one.tasks]
        moved = {
            (key, task.owner)
            for task in tasks
            for key in task.inputs
            if owners.get(key, task.owner) != task.owner
        }
        shipped = [shipment.key for shipment in shipments]
        staying = {key for array in outputs.values() for key in array.keys}
        return Plan(
            tasks,
            tuple(stages),
            tuple(shipments),
            outputs,
            self.reused,
            peaks(tasks, self._sizes, owners, shipped, staying, self.workers.threads),
            sum(self._sizes.get(key, 0) for key, _ in moved),
            lasting=self._lasting,
            inline=inline,
            sizes=self._sizes,
        )


def _checked(task: Task, node: Expr, region: Region | None) -> Task:
    # With kernels of another package checked; what the last one returns is the block of a region, if any.
    steps = []
    for number, step in enumerate(task.steps):
        operator = step.operator
        if isinstance(operator, Run) and is_foreign(operator.kernel):
            form = None
            if region is not None and number == len(task.steps) - 1:
                form = region_shape(region), node.dtype, node.sparse
            expected = ReturnSpec(f"{type(node).__name__}: its kernel", form)
            operator = Run(run_checked, (operator.kernel, operator.parameters, expected))
        steps.append(replace(step, operator=operator))
    return replace(task, steps=tuple(steps))


def _needed(wanted: set[Slot], tasks: Sequence[Task]) -> set[Slot]:
    # What the tasks make on the way to what is wanted; all of it where nothing is named.
    if not wanted:
        return {task.key for task in tasks}
    needed = set(wanted)
    for task in reversed(tasks):
        if task.key in needed:
            needed.update(task.inputs)
    return needed


def cut_of(region: Region, bounds: Region) -> Cut:
    """Return the operator that cuts a region out of the block that covers ``bounds``."""
    return Cut(tuple((part.start, part.stop) for part in relative(region, bounds)))

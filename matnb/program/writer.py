"""The tasks of a plan as they are written: steps collected into tasks, blocks read with their exchanges."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from matnb.blocks.grid import Index, Region, intersect, region_shape, relative
from matnb.blocks.layout import Layout
from matnb.expr.digest import digest_of
from matnb.expr.nodes import Expr
from matnb.program.fusing import FusedStep, fused
from matnb.program.matching import Product
from matnb.program.memory import estimate_bytes, peaks
from matnb.program.operators import Cut, Flip, Join, Multiply, Operator
from matnb.program.plan import Plan, Shipment, Stage, Step, Stored, Task
from matnb.program.regions import region_size


class TaskWriter:
    """Collects the steps of one task."""

    def __init__(self) -> None:
        self._inputs: list[str] = []
        self._steps: list[tuple[Operator, tuple[tuple[bool, int], ...]]] = []
        self._sizes: list[int] = []
        self._taken = 0

    def read(self, key: str) -> tuple[bool, int]:
        """Return the register that holds another task's value."""
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
        """Note that a kernel takes so much while it runs, besides the values of steps."""
        self._taken = max(self._taken, num_bytes)

    def task(self, key: str, owner: int, kind: str, makes: int | None = None) -> Task:
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
        # The most that values of steps take at a time, besides the last one; each goes with its last reader.
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
    node, name
        What it makes a block of, and the task's name.
    number, region, owner
        Of the block: its place in the grid's order, its part of the array, and the worker that has it.
    kind
        For measuring; may be set to another than that of the array's other tasks.
    num_bytes
        Of its value, about; may be set to what is known better.
    """

    def __init__(
        self, node: Expr, name: str, number: int, region: Region, owner: int, kind: str, num_bytes: int
    ) -> None:
        super().__init__()
        self.node, self.name, self.number, self.region, self.owner = node, name, number, region, owner
        self.kind, self.num_bytes = kind, num_bytes
        self._num_parts = 0

    def name_part(self) -> str:
        """Return a name for a task that makes a part of what the block is made from."""
        self._num_parts += 1
        return f"{self.name}-part-{self._num_parts}"


@dataclass(frozen=True)
class Ending:
    """How a task that reads a reduction's value puts it together from shares: their keys, and the steps.

    ``parts`` are what picks each share out of the task's value, or None where that is the share.
    """

    keys: tuple[str, ...]
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


class PlanWriter:
    """Collects tasks and stages, and the registers of the arrays they make.

    Parameters
    ----------
    stored
        Arrays that are on the workers.
    entries
        Estimated entries of every expression.
    products
        How products are made.
    num_threads
        Tasks that a worker runs at a time.
    present
        Keys of other values that are on the workers, with their owners.
    numbers
        The workers.
    steady
        Arrays that stay the same in a loop: what only lays them out anew runs once, before it.
    """

    def __init__(
        self,
        stored: Mapping[Expr, Stored],
        entries: Mapping[Expr, int],
        products: Mapping[Expr, Product],
        num_threads: int,
        present: Mapping[str, int] | None = None,
        numbers: Sequence[int] = (),
        steady: Container[Expr] = (),
    ) -> None:
        self.numbers = numbers
        self.steady = steady
        self.entries = entries
        self.products = products
        self.num_threads = num_threads
        self.registers: dict[Expr, Stored] = dict(stored)
        self.endings: dict[Expr, Ending] = {}
        self.reused: dict[Expr, Stored] = {}
        self._stored = stored
        self._tasks: dict[str, Task] = {}
        self._sizes: dict[str, int] = {}
        self._owners: dict[str, int] = dict(present or {})
        self._stages: list[Stage] = []
        self._shipments: list[Shipment] = []
        self._lasting: dict[str, int] = {}
        self._num_added: dict[str, int] = {}
        self._numbers: dict[Expr, int] = {}
        for array in stored.values():
            self._owners.update(zip(array.keys, array.layout.owners, strict=True))
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
        self, name: str, task: TaskWriter, owner: int, kind: str, num_bytes: int, node: Expr | None = None
    ) -> str:
        """Add a task, unless the value of its name is there or on its way, and return its key.

        Parameters
        ----------
        node
            The expression of whose array it makes something; None for what belongs to no array.
        """
        if name not in self._owners:
            makes = None if node is None else self._number(node)
            self._tasks[name] = task.task(name, owner, kind, makes)
            self._sizes[name] = num_bytes
            self._owners[name] = owner
        return name

    def _number(self, node: Expr) -> int:
        return self._numbers.setdefault(node, len(self._numbers))

    def each_block(
        self, node: Expr, layout: Layout, kind: str, detail: str = "", inside: Sequence[Expr] = ()
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
        base = self.base_of(node, layout, inside=inside)
        places = zip(layout.grid.regions(), layout.owners, strict=True)
        keys = []
        for number, (region, owner) in enumerate(places):
            name, size = f"{base}-{number}", self.bytes_of(node, region)
            yield (task := BlockTask(node, name, number, region, owner, kind, size))
            keys.append(self.add(name, task, owner, task.kind, task.num_bytes, node))
        self.finish(node, layout, keys, kind, detail, inside)

    def part_of(self, block: BlockTask, part: TaskWriter, owner: int, kind: str, num_bytes: int) -> str:
        """Add a task that makes something of which a block is made, and return its key."""
        return self.add(block.name_part(), part, owner, kind, num_bytes, block.node)

    def add_for(self, node: Expr, task: TaskWriter, owner: int, kind: str, num_bytes: int) -> str:
        """Add a task that makes something on the way to an array, and return its key."""
        base = self.base_of(node)
        number = self._num_added[base] = self._num_added.get(base, 0) + 1
        return self.add(f"{base}-step-{number}", task, owner, kind, num_bytes, node)

    def base_of(self, node: Expr, *layouts: Layout, inside: Sequence[Expr] = ()) -> str:
        """Return what the names of an array's tasks begin with: it, and how all that takes part lies."""
        return f"{node.digest.hex()}-{self._way_of(node, *layouts, inside=inside)}"

    def _way_of(self, node: Expr, *layouts: Layout, inside: Sequence[Expr] = ()) -> str:
        taking = (*(array.layout for one in node.operands if (array := self.registers.get(one))), *layouts)
        ways = [self.products[one].way for one in dict.fromkeys((*inside, node)) if one in self.products]
        return digest_of(*((one.grid.cuts, one.owners) for one in taking), *ways).hex()[:8]

    def add_lasting(
        self, name: str, task: TaskWriter, owner: int, kind: str, num_bytes: int, node: Expr
    ) -> str:
        """Add a task as ``add`` does, whose value outlives the plan in a loop: it is not made each time."""
        if name not in self._owners:
            self._lasting[name] = num_bytes
            num_bytes = 0
        return self.add(name, task, owner, kind, num_bytes, node)

    def ship(self, shipment: Shipment, num_bytes: int) -> None:
        """Add a block of a user's data."""
        self._shipments.append(shipment)
        self._sizes[shipment.key] = num_bytes
        self._owners[shipment.key] = shipment.owner

    def has(self, key: str) -> bool:
        """Tell whether a task of this key was added."""
        return key in self._owners

    def finish(
        self,
        node: Expr,
        layout: Layout,
        keys: Sequence[str],
        kind: str,
        detail: str,
        inside: Sequence[Expr] = (),
    ) -> None:
        """Note that the tasks added for an expression make its array, and what they compute on the way."""
        self.registers[node] = Stored(layout, tuple(keys))
        self.note_stage(node, layout, keys, kind, detail, inside)

    def leave(self, node: Expr, layout: Layout, ending: Ending) -> None:
        """Note that the task that reads a number puts it together."""
        self.registers[node] = Stored(layout, ())
        self.endings[node] = ending

    def note_stage(
        self,
        node: Expr,
        layout: Layout,
        keys: Sequence[str],
        kind: str,
        detail: str,
        inside: Sequence[Expr] = (),
    ) -> None:
        """Note tasks that make an array, or its shares, for a user; the node is the last thing they do."""
        number, way = self._number(node), self._way_of(node, layout, inside=inside)
        size = self.bytes_of(node)
        nnz = self.entries[node] if node.sparse else None
        made = (*inside, node)
        self._stages.append(Stage(number, way, kind, detail, layout, tuple(keys), size, node, made, nnz))

    def owner_of(self, key: str) -> int:
        """Return the worker that has a task's value."""
        return self._owners[key]

    def home_of(self, node: Expr, region: Region) -> int:
        """Return the worker that has the first block of an array that meets a region, or its first block."""
        layout = self.registers[node].layout
        found = next(iter(layout.grid.overlapping(region)), None)
        return layout.owners[0 if found is None else layout.grid.number(found)]

    def block(self, node: Expr, region: Region, owner: int) -> str:
        """Return the key of a value that holds exactly a region of an array, for a task on ``owner``.

        A whole block is used as it is. Any other region is put together once for each worker that needs it,
        and of another worker's block only the part inside the region travels.
        """
        array = self.registers[node]
        self.note_reuse(node)
        grid = array.layout.grid
        if grid.num_blocks == 1 and grid.region((0,) * grid.ndim) == region:
            return array.keys[0]
        found = list(grid.overlapping(region))
        if len(found) == 1 and grid.region(found[0]) == region:
            return array.keys[grid.number(found[0])]
        key = f"{array.keys[0]}-at-{region_text(region)}-for-{owner}"
        if self.has(key):
            return key
        writer = TaskWriter()
        self._put_together(writer, node, region, owner, found)
        return self.add(key, writer, owner, "gather", self.bytes_of(node, region), node)

    def flipped(self, node: Expr, region: Region, owner: int) -> str:
        """Return the key of the transpose of a region of a dense matrix, made once for each worker."""
        block = self.block(node, region, owner)
        key = f"{block}-flipped-for-{owner}"
        if not self.has(key):
            task = TaskWriter()
            task.do(Flip((1, 0)), task.read(block))
            self.add(key, task, owner, "transpose", self.bytes_of(node, region), node)
        return key

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
                parts.append(task.read(self._cut_there(node, source, common, bounds)))
            elif common != bounds:
                parts.append(task.do(cut_of(common, bounds), task.read(source)))
            else:
                parts.append(task.read(source))
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

    def _cut_there(self, node: Expr, source: str, common: Region, bounds: Region) -> str:
        key = f"{source}-cut-{region_text(common)}"
        if not self.has(key):
            writer = TaskWriter()
            writer.do(cut_of(common, bounds), writer.read(source))
            self.add(key, writer, self._owners[source], "cut", self.bytes_of(node, common), node)
        return key

    def note_reuse(self, node: Expr) -> None:
        """Note that an array which was on the workers already is read."""
        if node in self._stored:
            self.reused[node] = self._stored[node]

    def plan(self, roots: Sequence[Expr]) -> Plan:
        """Return the plan whose outputs are the arrays of ``roots``."""
        outputs = {root: self.registers[root] for root in roots if root not in self._stored}
        tasks = tuple(self._tasks.values())
        moved = {
            (key, task.owner) for task in tasks for key in task.inputs if self._owners[key] != task.owner
        }
        shipped = [shipment.key for shipment in self._shipments]
        staying = {key for array in outputs.values() for key in array.keys}
        return Plan(
            tasks,
            tuple(self._stages),
            tuple(self._shipments),
            outputs,
            self.reused,
            peaks(tasks, self._sizes, self._owners, shipped, staying, self.num_threads),
            sum(self._sizes.get(key, 0) for key, _ in moved),
            lasting=self._lasting,
        )


def cut_of(region: Region, bounds: Region) -> Cut:
    """Return the operator that cuts a region out of the block that covers ``bounds``."""
    return Cut(tuple((part.start, part.stop) for part in relative(region, bounds)))


def region_text(region: Region) -> str:
    """Return a region as a short text for keys."""
    return "x".join(f"{start}.{stop}" for start, stop in region) or "0d"

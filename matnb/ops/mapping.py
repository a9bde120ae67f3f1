"""A user's function called block by block, lane by lane, on slabs of rows as a tree, or on whole arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeVar

import numpy as np
import scipy.sparse as sp

from matnb.blocks.formats import Block, Dense, csr_block, to_numpy, to_scipy
from matnb.blocks.grid import Grid, all_of, region_shape, whole
from matnb.blocks.kernels.calls import (
    Function,
    Output,
    call,
    call_on_block,
    call_on_slab,
    combine_results,
    packed_bytes,
    unpack,
    unpacked,
)
from matnb.blocks.layout import Layout
from matnb.errors import ShapeError
from matnb.expr.nodes import Expr, Shape, broadcast_shapes
from matnb.ops.lanes import lanes_layout
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.kinds import CALL, PART
from matnb.program.operators import Call, Run
from matnb.program.plan import Slot, Workers
from matnb.program.regions import operand_region, rows_region
from matnb.program.writer import BlockTask, PlanWriter, TaskWriter


@dataclass(frozen=True, eq=False, repr=False)
class MapBlocks(Expr):
    """What a user's function gives for each block of the first array, and what meets it of others.

    The result is cut as that array where it has its shape; else blocks have all of its axes but the first,
    and so has the result. With ``along``, the function is called on each lane along an axis instead, and the
    axes of what it gives stand in the place of that one. Where ``by_rows``, blocks are rows of all arrays,
    whose first axes are equally long. The last ``num_whole`` arrays are given whole.

    ``token`` distinguishes calls that are equal in all else; empty of a function that is pure.
    """

    inputs: tuple[Expr, ...]
    function: Function
    lengths: Shape
    element: np.dtype
    is_sparse: bool
    along: int | None
    token: bytes
    by_rows: bool = False
    num_whole: int = 0

    def __post_init__(self) -> None:
        first = self.inputs[0].shape
        if self.by_rows:
            _check_rows(self.inputs[: len(self.inputs) - self.num_whole], "map_blocks")
        for one in () if self.by_rows else self.cut[1:]:
            if broadcast_shapes(first, one.shape, name=self.function.name) != first:
                raise ShapeError(
                    f"map_blocks: an array of shape {one.shape} beside the first, of shape {first}: blocks "
                    "are those of the first, so give the larger one first"
                )
        if self.along is None and self.lengths[:1] != first[:1]:
            raise ShapeError(
                f"map_blocks: a result of shape {self.lengths} from an array of shape {first}: each block "
                "gives as many rows as it has, so that first axes are equal; reduce with np.sum(x, axis=0) "
                "and the like, with mn.reduce_blocks, or call mn.replicated on a small array"
            )
        self.settle(self.lengths, self.element, self.is_sparse, *self.inputs)
        if self.token:
            self.__dict__["is_made_anew"] = True

    @property
    def cut(self) -> tuple[Expr, ...]:
        """The arrays of which each call is given a block."""
        return self.inputs[: len(self.inputs) - self.num_whole]

    def _text(self, operands: Sequence[str]) -> str:
        return f"{self.function.name}({', '.join(operands)})"


def _check_rows(cut: Sequence[Expr], caller: str) -> None:
    if any(not one.shape for one in cut) or len({one.shape[0] for one in cut}) > 1:
        shapes = ", ".join(str(one.shape) for one in cut)
        raise ShapeError(f"{caller}: arrays have shapes {shapes}: their first axes must have the same length")


@means(MapBlocks)
def _(node: MapBlocks, operands: Sequence[Value]) -> Value:
    """Return what the function gives for the whole arrays."""
    whole_region = all_of(node.inputs[0].shape)
    found = call_on_block(
        _blocks_of(operands), node.function, node.shape, node.dtype, node.sparse, node.along,
        node.num_whole, whole_region,
    )  # fmt: skip
    return to_numpy(found) if isinstance(found, Dense) else to_scipy(found)


def _blocks_of(operands: Sequence[Value]) -> list[Block]:
    return [csr_block(one) if sp.issparse(one) else Dense(one) for one in operands]


# A user's function called on each block, where the block is.

_Part = TypeVar("_Part", bound=tuple[int, ...])  # cuts of an axis, or a range of it


@lowers(MapBlocks)
def _(node: MapBlocks, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that call a function; operands beside the first are read as they meet its blocks."""
    first = node.inputs[0]
    source = writer.registers[first].layout
    if node.by_rows:
        source = _rows_layout(node.cut, writer, workers)
    elif node.along is not None:
        source = lanes_layout(first, (node.along,), writer, workers)
    elif node.shape != first.shape:
        source = lanes_layout(first, range(1, first.ndim), writer, workers)
    cuts = _placed(node, source.grid.cuts, all_of(node.shape))
    read = list(source.grid.regions())
    for block in writer.each_block(node, Layout(Grid(cuts), source.owners), CALL, node.function.name):
        region = read[block.number]
        if node.by_rows:
            parts = [(one, rows_region(one.shape, region[0])) for one in node.cut]
        else:
            parts = [(one, operand_region(one.shape, region)) for one in node.cut]
        values = [writer.read(block, one, part, block.owner) for one, part in parts]
        values += [_whole_of(one, writer, block) for one in node.inputs[len(parts) :]]
        told = rows_region(first.shape, region[0]) if node.by_rows else region
        options = (node.function, region_shape(block.region), node.dtype, node.sparse, node.along)
        block.do(Run(call_on_block, (*options, node.num_whole, told)), *values)
        # The function gets copies of its own, and what it gives is copied.
        block.take(block.num_bytes + sum(writer.bytes_of(one, part) for one, part in parts))


def _rows_layout(cut: Sequence[Expr], writer: PlanWriter, workers: Workers) -> Layout:
    # Rows as the array that takes most is cut; a grid of one axis.
    heaviest = max(cut, key=writer.bytes_of)
    layout = lanes_layout(heaviest, range(1, heaviest.ndim), writer, workers)
    return Layout(Grid(layout.grid.cuts[:1]), layout.owners)


def _whole_of(node: Expr, writer: PlanWriter, task: BlockTask) -> tuple[bool, int]:
    return task.read(writer.block(node, all_of(node.shape), task.owner))


def _placed(node: MapBlocks, source: tuple[_Part, ...], whole: tuple[_Part, ...]) -> tuple[_Part, ...]:
    # Where the result is cut as the first array is, or what part of it follows from a part of that array.
    first = node.inputs[0]
    if node.along is None:
        is_alike = node.shape == first.shape and not node.by_rows
        return source if is_alike else (*source[:1], *whole[1:])
    behind = first.ndim - node.along - 1
    inside = whole[node.along : len(whole) - behind]
    return (*source[: node.along], *inside, *source[node.along + 1 :])


@dataclass(frozen=True, eq=False, repr=False)
class Replicated(Expr):
    """The results of a user's function on whole arrays, packed one after the other as bytes."""

    inputs: tuple[Expr, ...]
    function: Function
    outputs: tuple[Output, ...]

    def __post_init__(self) -> None:
        self.settle((packed_bytes(self.outputs),), np.dtype(np.uint8), False, *self.inputs)

    def form_text(self) -> str:
        """Return what it is."""
        return f"{len(self.outputs)} results together" if len(self.outputs) > 1 else "one result"

    def _text(self, operands: Sequence[str]) -> str:
        return f"{self.function.name}({', '.join(operands)})"


@dataclass(frozen=True, eq=False, repr=False)
class ReduceBlocks(Expr):
    """The results of a user's function on slabs of rows, combined by another, packed one after the other.

    The last ``num_whole`` arrays are given whole. ``is_tuple`` says that results come in a tuple.
    """

    inputs: tuple[Expr, ...]
    function: Function
    combine: Function
    outputs: tuple[Output, ...]
    is_tuple: bool
    num_whole: int

    def __post_init__(self) -> None:
        _check_rows(self.cut, "reduce_blocks")
        self.settle((packed_bytes(self.outputs),), np.dtype(np.uint8), False, *self.inputs)

    @property
    def cut(self) -> tuple[Expr, ...]:
        """The arrays of which each call is given a slab."""
        return self.inputs[: len(self.inputs) - self.num_whole]

    def slabs(self) -> list[tuple[int, int]]:
        """Return the rows of each slab: as lengths and dtypes have it, whatever holds the arrays."""
        row_bytes = sum(prod(one.shape[1:]) * one.dtype.itemsize for one in self.cut if not one.sparse)
        rows = min(_MOST_ROWS, max(1, _SLAB_BYTES // max(1, row_bytes)))
        length = self.inputs[0].shape[0]
        rows = max(1 << (rows.bit_length() - 1), -(-length // _MOST_SLABS))
        return [(start, min(start + rows, length)) for start in range(0, length, rows)] or [(0, 0)]

    def form_text(self) -> str:
        """Return what it is."""
        return f"{len(self.outputs)} results together" if len(self.outputs) > 1 else "one result"

    def _text(self, operands: Sequence[str]) -> str:
        return f"{self.combine.name} of {self.function.name}({', '.join(operands)})"


# Of slabs: where one fits the second cache's order of size, a call of Python's is little beside what it
# does; and not more of them than a plan is quickly written for.
_SLAB_BYTES = 4 * 1024 * 1024
_MOST_ROWS = 65_536
_MOST_SLABS = 1024


@dataclass(frozen=True, eq=False, repr=False)
class Part(Expr):
    """One of the results of a user's function."""

    call: Expr
    place: int

    def __post_init__(self) -> None:
        assert isinstance(self.call, Replicated | ReduceBlocks), "only such calls have parts"
        shape, dtype = self.call.outputs[self.place]
        self.settle(shape, dtype, False, self.call)

    def _text(self, operands: Sequence[str]) -> str:
        return f"result {self.place} of {operands[0]}"


@means(Replicated)
def _(node: Replicated, operands: Sequence[Value]) -> Value:
    return call(node.function, [Dense(dense(one)) for one in operands], node.outputs).values


@means(ReduceBlocks)
def _(node: ReduceBlocks, operands: Sequence[Value]) -> Value:
    """Return what the functions give for slabs of the whole arrays, neighbors combined first."""
    num_cut, results = len(node.cut), []
    for start, stop in node.slabs():
        given = [one[start:stop] if place < num_cut else one for place, one in enumerate(operands)]
        region = ((start, stop), *all_of(node.inputs[0].shape[1:]))
        results.append(call_on_slab(_blocks_of(given), node.function, node.outputs, node.num_whole, region))
    while len(results) > 1:
        pairs = [results[place : place + 2] for place in range(0, len(results), 2)]
        results = [
            combine_results(pair, node.combine, node.outputs, node.is_tuple) if len(pair) > 1 else pair[0]
            for pair in pairs
        ]
    return results[0].values


@means(Part)
def _(node: Part, operands: Sequence[Value]) -> Value:
    return unpacked(dense(operands[0]), node.call.outputs)[node.place]  # type: ignore[attr-defined]  # of a call


_COPIES_OF_INPUTS = 5


@lowers(Replicated)
def _(node: Replicated, writer: PlanWriter, workers: Workers) -> None:
    layout = Layout(Grid(((0, node.shape[0]),)), workers.numbers[:1])
    for block in writer.each_block(node, layout, CALL, node.function.name):
        values = [block.read(writer.block(one, all_of(one.shape), block.owner)) for one in node.inputs]
        block.do(Call(node.function, node.outputs), *values)
        # The function gets copies of its own, dense. NumPy's linear algebra copies them once more, in
        # LAPACK's order, and LAPACK asks for room of up to four more (gesdd); what it gives is copied out.
        inputs = sum(one.size * one.dtype.itemsize for one in node.inputs)
        block.take(_COPIES_OF_INPUTS * inputs + node.size)
        block.num_bytes = node.size


@lowers(ReduceBlocks)
def _(node: ReduceBlocks, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that call a function on each slab, where most of it is, and combine neighbors."""
    first, heaviest = node.inputs[0], max(node.cut, key=writer.bytes_of)
    slabs = node.slabs()
    homes = [writer.home_of(heaviest, rows_region(heaviest.shape, slab)) for slab in slabs]

    def reduce_slab(task: TaskWriter, place: int) -> None:
        rows, owner = slabs[place], homes[place]
        parts = [(one, rows_region(one.shape, rows)) for one in node.cut]
        values = [writer.read(task, one, part, owner, alone=True) for one, part in parts]
        whole_ones = node.inputs[len(parts) :]
        values += [task.read(writer.block(one, all_of(one.shape), owner)) for one in whole_ones]
        task.take(node.size + sum(writer.bytes_of(one, part) for one, part in parts))
        options = (node.function, node.outputs, node.num_whole, rows_region(first.shape, rows))
        task.do(Run(call_on_slab, options), *values)

    def combine_pair(task: TaskWriter, pair: Sequence[Slot]) -> None:
        task.take(_COPIES_OF_INPUTS * node.size)
        options = (node.combine, node.outputs, node.is_tuple)
        task.do(Run(combine_results, options), *map(task.read, pair))

    def combined(block: BlockTask, pair: Sequence[tuple[Slot, int]]) -> tuple[Slot, int]:
        task, owner = TaskWriter(), pair[0][1]
        combine_pair(task, [slot for slot, _ in pair])
        return writer.part_of(block, task, owner, CALL, node.size), owner

    layout, name = Layout(Grid(((0, node.size),)), (homes[0],)), node.function.name
    for block in writer.each_block(node, layout, CALL, name):
        block.num_bytes = node.size
        if len(slabs) == 1:
            reduce_slab(block, 0)
            continue
        made: list[tuple[Slot, int]] = []
        for place, owner in enumerate(homes):
            task = TaskWriter()
            reduce_slab(task, place)
            made.append((writer.part_of(block, task, owner, CALL, node.size), owner))
        while len(made) > 2:
            pairs = [made[place : place + 2] for place in range(0, len(made), 2)]
            made = [pair[0] if len(pair) == 1 else combined(block, pair) for pair in pairs]
        combine_pair(block, [slot for slot, _ in made])


@lowers(Part)
def _(node: Part, writer: PlanWriter, workers: Workers) -> None:
    call = node.call
    assert isinstance(call, Replicated | ReduceBlocks), "checked by the node"
    source = writer.registers[call]
    writer.note_reuse(call)
    layout = Layout(whole(node.shape), source.layout.owners[:1])
    for block in writer.each_block(node, layout, PART):
        block.do(Run(unpack, (call.outputs, node.place)), block.read(source.keys[0]))

"""Reads and writes at places known at run time, values combined by label, and calls on whole arrays."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from matnb.blocks.grid import Grid, Region, region_shape
from matnb.blocks.kernels.access import steps_within
from matnb.blocks.kernels.reductions import accumulator_dtype
from matnb.blocks.kernels.writing import put_sparse
from matnb.blocks.layout import Layout
from matnb.expr.nodes import Expr
from matnb.ops.lowering.combining import write_combined
from matnb.ops.lowering.picking import write_pick, write_place
from matnb.ops.lowering.registry import base_of
from matnb.ops.lowering.routing import write_routed
from matnb.ops.nodes.access import At, Gather, Part, Put, PutEach, Replicated, Scatter
from matnb.program.operators import (
    Accumulate,
    Call,
    GatherAt,
    OnlyPart,
    PickAt,
    PutAt,
    PutEachAt,
    Run,
    ScatterBy,
    Unpack,
)
from matnb.program.place import SMALL_BYTES, default_layout
from matnb.program.plan import Workers
from matnb.program.regions import operand_region, rows_region
from matnb.program.writer import PlanWriter, TaskWriter, cut_of

Access = At | Put | PutEach | Gather | Scatter | Replicated | Part


def lower_access(node: Access, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of a read or write at run time's places, of a combination by label, or of a call."""
    match node:
        case At():
            _lower_at(node, writer)
        case Put():
            _lower_put(node, writer)
        case PutEach() if node.free or _is_small(writer, node.index, node.value):
            _lower_put_each(node, writer)
        case PutEach():
            write_place(node, (node.index,), 0, writer)
        case Gather() if node.free or _is_small(writer, node.operand):
            _lower_gather(node, writer)
        case Gather():
            write_pick(node, (node.index,), 0, writer, workers)
        case Scatter():
            _lower_scatter(node, writer, workers)
        case Replicated():
            _lower_call(node, writer, workers)
        case Part():
            _lower_part(node, writer)


def _is_small(writer: PlanWriter, *nodes: Expr) -> bool:
    return sum(map(writer.bytes_of, nodes)) <= SMALL_BYTES


def _lower_at(node: At, writer: PlanWriter) -> None:
    # Each worker looks into its blocks along the axis; what it finds has length 1 there, or 0.
    source, axis, length = writer.registers[node.operand], node.axis, node.operand.shape[node.axis]
    grid = source.layout.grid
    kept = Grid((*grid.cuts[:axis], *grid.cuts[axis + 1 :]))
    base = base_of(node, writer)
    writer.note_reuse(node.operand)
    keys, owners = [], []
    for number, (index, region) in enumerate(zip(kept.indices(), kept.regions(), strict=True)):
        held: dict[int, list[tuple[int, str]]] = {}  # by owner: where each block begins, and its key
        for along, start in enumerate(grid.cuts[axis][:-1]):
            place = grid.number((*index[:axis], along, *index[axis:]))
            held.setdefault(source.layout.owners[place], []).append((start, source.keys[place]))
        size = writer.bytes_of(node, region)
        parts: list[str] = []
        for owner, blocks in held.items():
            task = TaskWriter()
            starts = tuple(start for start, _ in blocks)
            found = task.do(
                PickAt(axis, starts, length),
                task.read(writer.block(node.index, (), owner)),
                *(task.read(key) for _, key in blocks),
                num_bytes=size,
            )
            key = f"{base}-{number}"
            if len(held) == 1:
                task.do(OnlyPart(axis), found)
            else:
                key += f"-part-{len(parts)}"
            parts.append(writer.add(task.task(key, owner, "read"), size))
        home = next(iter(held))
        if len(parts) > 1:
            task = TaskWriter()
            task.do(OnlyPart(axis), *(task.read(part) for part in parts))
            parts = [writer.add(task.task(f"{base}-{number}", home, "read"), size)]
        keys.append(parts[0])
        owners.append(home)
    writer.finish(node, Layout(kept, tuple(owners)), keys, "read", f"one place on axis {axis}")


def _lower_put(node: Put, writer: PlanWriter) -> None:
    # Each block is written where it is; those which no part of the place can lie in are the operand's own.
    source = writer.registers[node.operand]
    key = tuple((one.start, one.stop, one.step) if isinstance(one, slice) else one for one in node.key)
    base = base_of(node, writer)
    writer.note_reuse(node.operand)
    keys = []
    for number, (region, owner) in enumerate(
        zip(source.layout.grid.regions(), source.layout.owners, strict=True)
    ):
        task = TaskWriter()
        block = task.read(source.keys[number])
        part = _written(node, region)
        if part is None:
            task.do(cut_of(region, region), block)
        else:
            value = writer.read(task, node.value, operand_region(node.value.shape, part), owner)
            numbers = [task.read(writer.block(index, (), owner)) for index in node.inputs]
            parameters = (key, region, node.shape)
            operator = Run(put_sparse, parameters) if node.sparse else PutAt(*parameters)
            task.do(operator, block, value, *numbers)
        keys.append(writer.add(task.task(f"{base}-{number}", owner, "put"), writer.bytes_of(node, region)))
    writer.finish(node, source.layout, keys, "put", "")


def _written(node: Put, region: Region) -> Region | None:
    # The part of the value that a block may get, or None for a block beside the place.
    part = []
    for chosen, (start, stop) in zip(node.key, region, strict=True):
        if isinstance(chosen, slice):
            low, high = steps_within((chosen.start, chosen.stop, chosen.step), start, stop)
            if low >= high:
                return None
            part.append((low, high))
        elif chosen is not None and not start <= chosen < stop:
            return None
    return tuple(part)


def _lower_put_each(node: PutEach, writer: PlanWriter) -> None:
    # Few places, or a loop: each block is written where it is, at those of all places that lie in it. What
    # stays the same from one iteration to the next travels once.
    source, length = writer.registers[node.operand], node.operand.shape[0]
    base = base_of(node, writer)
    writer.note_reuse(node.operand)
    keys = []
    for number, (region, owner) in enumerate(
        zip(source.layout.grid.regions(), source.layout.owners, strict=True)
    ):
        task = TaskWriter()
        block = task.read(source.keys[number])
        index = task.read(writer.block(node.index, ((0, node.index.shape[0]),), owner))
        part = ((0, node.index.shape[0]), *region[1:])
        value = writer.read(task, node.value, operand_region(node.value.shape, part), owner)
        task.do(PutEachAt(region[0][0], length), block, index, value)
        made = task.task(f"{base}-{number}", owner, "put")
        # The places as numbers in the block, which of them lie there, and what they get.
        row_bytes = prod(region_shape(region[1:])) * node.dtype.itemsize
        made = replace(made, working_bytes=made.working_bytes + node.index.size * (32 + row_bytes))
        keys.append(writer.add(made, writer.bytes_of(node, region)))
    writer.finish(node, source.layout, keys, "put", "by an index")


def _lower_gather(node: Gather, writer: PlanWriter) -> None:
    # A small operand, or a loop: it is gathered once for each worker, which takes from it at its part of the
    # index, into the same memory each time.
    layout = writer.registers[node.index].layout
    whole = tuple((0, length) for length in node.operand.shape)
    grid = Grid((*layout.grid.cuts, *whole[1:]))
    base = base_of(node, writer)
    keys = []
    for number, (region, owner) in enumerate(zip(grid.regions(), layout.owners, strict=True)):
        task = TaskWriter()
        operand = task.read(writer.block(node.operand, whole, owner))
        task.do(GatherAt(), operand, writer.read(task, node.index, region[:1], owner))
        keys.append(writer.add(task.task(f"{base}-{number}", owner, "gather"), writer.bytes_of(node, region)))
    writer.finish(node, Layout(grid, layout.owners), keys, "gather", "by an index")


def _lower_scatter(node: Scatter, writer: PlanWriter, workers: Workers) -> None:
    # Each block of values gives a share of the whole length; each owner combines its range of all shares.
    # Where a share would be longer than the block, values go to where their labels are combined instead.
    domain = _rows_layout(node.values, writer)
    if domain.grid.num_blocks == 1:
        domain = _rows_layout(node.labels, writer)
    layout = default_layout(node, writer.bytes_of(node), workers)
    base = base_of(node, writer, domain, layout)
    rows_a_block = node.labels.shape[0] // domain.grid.num_blocks
    if node.length > rows_a_block and layout.grid.counts[0] == layout.grid.num_blocks > 1 and not node.free:
        keys = write_routed(node, domain, layout, writer, base)
        writer.finish(node, layout, keys, "scatter", node.monoid)
        return
    # Products of floats go on from share to share, since a share of them alone may overflow.
    in_order = node.monoid == "times" and node.dtype.kind in "fc"
    shares: list[tuple[str, int]] = []
    for number, ((rows,), owner) in enumerate(zip(domain.grid.regions(), domain.owners, strict=True)):
        task = TaskWriter()
        values = writer.read(task, node.values, rows_region(node.values.shape, rows), owner)
        labels = writer.read(task, node.labels, (rows,), owner)
        before = [task.read(shares.pop()[0])] if in_order and shares else []
        task.do(ScatterBy(node.length, node.monoid, node.dtype, rows[0]), values, labels, *before)
        num_bytes = node.size * accumulator_dtype("sum", node.dtype).itemsize
        key = writer.add(task.task(f"{base}-share-{number}", owner, "scatter"), num_bytes)
        shares.append((key, owner))
    keys = write_combined(node, shares, Accumulate(node.monoid, node.dtype), layout, writer, base)
    writer.finish(node, layout, keys, "scatter", node.monoid)


def _rows_layout(node: Expr, writer: PlanWriter) -> Layout:
    # The cuts of the first axis alone, each part with the owner of the first block there.
    layout = writer.registers[node].layout
    grid = Grid(layout.grid.cuts[:1])
    rest = (0,) * (node.ndim - 1)
    return Layout(grid, tuple(layout.owners[layout.grid.number((*index, *rest))] for index in grid.indices()))


_COPIES_OF_INPUTS = 5


def _lower_call(node: Replicated, writer: PlanWriter, workers: Workers) -> None:
    owner = workers.numbers[0]
    task = TaskWriter()
    values = [
        task.read(writer.block(one, tuple((0, length) for length in one.shape), owner)) for one in node.inputs
    ]
    task.do(Call(node.function, node.outputs), *values)
    layout = Layout(Grid(((0, node.shape[0]),)), (owner,))
    made = task.task(f"{base_of(node, writer, layout)}-0", owner, "call")
    # The function gets copies of its own, dense. NumPy's linear algebra copies them once more, in LAPACK's
    # order, and LAPACK asks for room of up to four more (gesdd); what it gives is copied out.
    inputs = sum(one.size * one.dtype.itemsize for one in node.inputs)
    copied = _COPIES_OF_INPUTS * inputs + node.size
    made = replace(made, working_bytes=made.working_bytes + copied)
    writer.finish(node, layout, [writer.add(made, node.size)], "call", node.function.name)


def _lower_part(node: Part, writer: PlanWriter) -> None:
    call = node.call
    assert isinstance(call, Replicated), "checked by the node"
    source = writer.registers[call]
    writer.note_reuse(call)
    task = TaskWriter()
    task.do(Unpack(call.outputs, node.place), task.read(source.keys[0]))
    owner = source.layout.owners[0]
    layout = Layout(Grid(tuple((0, length) for length in node.shape)), (owner,))
    key = f"{base_of(node, writer, layout)}-0"
    writer.finish(
        node, layout, [writer.add(task.task(key, owner, "part"), writer.bytes_of(node))], "part", ""
    )

"""Reads and writes at listed places: each worker picks from its own blocks, and writes into them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

from matnb.blocks.grid import Grid, Region, regular_cuts
from matnb.blocks.kernels.picking import pick_parts, put_along, put_parts, send, take_along, write
from matnb.blocks.kernels.writing import put_where
from matnb.blocks.layout import Layout, spread
from matnb.expr.nodes import Expr
from matnb.ops.lowering.lanes import lanes_layout
from matnb.ops.lowering.registry import base_of, lowers
from matnb.ops.nodes.access import Gather, PutEach
from matnb.ops.nodes.picking import Pick, Place, PutAlong, PutWhere, TakeAlong
from matnb.program.operators import Run
from matnb.program.place import SMALL_BYTES
from matnb.program.plan import Workers
from matnb.program.regions import operand_region, region_size
from matnb.program.writer import PlanWriter, TaskWriter

_LISTED_BYTES = 8  # of a listed place on an axis


@lowers(Pick)
def lower_pick(node: Pick, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that pick at listed places."""
    write_pick(node, node.inputs, node.axis, writer, workers)


def write_pick(
    node: Pick | Gather, inputs: Sequence[Expr], axis: int, writer: PlanWriter, workers: Workers
) -> None:
    """Write the tasks that pick at listed places: a part for each block of the list and worker with blocks.

    An operand that is small is put together for each worker that picks.
    """
    source = writer.registers[node.operand].layout
    last = axis + len(inputs)
    beside = (*source.grid.cuts[:axis], *source.grid.cuts[last:])
    listed, owners_listed = _listed(node, inputs[0], beside, writer, workers)
    lengths = node.operand.shape[axis:last]
    whole = tuple((0, length) for length in lengths)
    is_small = writer.bytes_of(node.operand) <= SMALL_BYTES
    base = base_of(node, writer)
    writer.note_reuse(node.operand)
    ranges = list(pairwise(listed))
    cuts = (*source.grid.cuts[:axis], listed, *source.grid.cuts[last:])
    keys, owners = [], []
    for number, region in enumerate(Grid(cuts).regions()):
        part = region[axis]
        home = owners_listed[ranges.index(part)]
        size = writer.bytes_of(node, region)
        groups: dict[int, list[tuple[Region, str]]] = {}
        if is_small:
            block = writer.block(node.operand, (*region[:axis], *whole, *region[axis + 1 :]), home)
            groups[home] = [(whole, block)]
        else:
            groups = _by_owner(node.operand, region, axis, last, writer)
        if len(groups) == 1:
            home = next(iter(groups))
        parts = []
        for owner, blocks in groups.items():
            task = TaskWriter()
            places = [writer.read(task, index, (part,), owner) for index in inputs]
            task.take(2 * size + _LISTED_BYTES * (len(inputs) + 2) * (part[1] - part[0]))
            operator = Run(pick_parts, (len(inputs), axis, lengths, tuple(one for one, _ in blocks)))
            task.do(operator, *places, *(task.read(key) for _, key in blocks))
            key = f"{base}-{number}" if len(groups) == 1 else f"{base}-{number}-from-{owner}"
            parts.append(writer.add(task.task(key, owner, "pick"), size // len(groups)))
        if len(groups) > 1:
            task = TaskWriter()
            places = [writer.read(task, index, (part,), home) for index in inputs]
            task.take(_LISTED_BYTES * (len(inputs) + 2) * (part[1] - part[0]))
            found = tuple(tuple(one for one, _ in blocks) for blocks in groups.values())
            operator = Run(put_parts, (len(inputs), axis, lengths, found))
            task.do(operator, *places, *(task.read(key) for key in parts))
            parts = [writer.add(task.task(f"{base}-{number}", home, "pick"), size)]
        keys.append(parts[0])
        owners.append(home)
    writer.finish(node, Layout(Grid(cuts), tuple(owners)), keys, "gather", "by an index")


def _listed(
    node: Expr, index: Expr, beside: Sequence[tuple[int, ...]], writer: PlanWriter, workers: Workers
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    # How the list is cut, and who has each part: as it is, but finer where few places pick much.
    layout = writer.registers[index].layout
    (cuts,) = layout.grid.cuts
    is_one = len(cuts) == 2 and all(len(one) == 2 for one in beside)
    if is_one and writer.bytes_of(node) > SMALL_BYTES:
        cuts = regular_cuts(cuts[-1], workers.slots)
        return cuts, spread(len(cuts) - 1, workers.numbers)
    return cuts, layout.owners


def _by_owner(
    operand: Expr, region: Region, axis: int, last: int, writer: PlanWriter
) -> dict[int, list[tuple[Region, str]]]:
    # The blocks that meet a part of the result, by owner: where they are on the axes of the places, and keys.
    array = writer.registers[operand]
    grid = array.layout.grid
    spans = [range(count) for count in grid.counts[axis:last]]
    before = tuple(cuts.index(start) for cuts, (start, _) in zip(grid.cuts[:axis], region, strict=False))
    behind = tuple(
        cuts.index(start) for cuts, (start, _) in zip(grid.cuts[last:], region[axis + 1 :], strict=True)
    )
    groups: dict[int, list[tuple[Region, str]]] = {}
    for middle in product(*spans):
        place = grid.number((*before, *middle, *behind))
        bounds = grid.region((*before, *middle, *behind))[axis:last]
        groups.setdefault(array.layout.owners[place], []).append((bounds, array.keys[place]))
    return groups


@lowers(Place)
def lower_place(node: Place, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that write at listed places."""
    write_place(node, node.inputs, node.axis, writer)


def write_place(node: Place | PutEach, inputs: Sequence[Expr], axis: int, writer: PlanWriter) -> None:
    """Write the tasks that write at listed places: each block gets what belongs in it.

    Of values on other workers only those travel which some block of the worker gets.
    """
    source = writer.registers[node.operand]
    grid, owners = source.layout.grid, source.layout.owners
    last = axis + len(inputs)
    lengths = node.operand.shape[axis:last]
    base = base_of(node, writer)
    writer.note_reuse(node.operand)
    length = inputs[0].shape[0]
    small = sum(map(writer.bytes_of, (*inputs, node.value))) <= SMALL_BYTES
    layout = writer.registers[inputs[0]].layout
    listed = (0, length) if small else layout.grid.cuts[0]
    senders = layout.owners[:1] if small else layout.owners
    along = axis + node.value.ndim - len(node.target)
    is_each = along >= 0 and node.value.shape[along] != 1
    regions: dict[int, dict[Region, list[Region]]] = {}  # by owner, and place beside
    for region, owner in zip(grid.regions(), owners, strict=True):
        beside = (*region[:axis], *region[last:])
        regions.setdefault(owner, {}).setdefault(beside, []).append(region[axis:last])
    keys = []
    for number, (region, owner) in enumerate(zip(grid.regions(), owners, strict=True)):
        task = TaskWriter()
        block = task.read(source.keys[number])
        beside = (*region[:axis], *region[last:])
        arguments: list[tuple[bool, int]] = []
        sent: list[tuple[Region, ...]] = []
        for turn, (part, sender) in enumerate(zip(pairwise(listed), senders, strict=True)):
            target = operand_region(node.value.shape, (*beside[:axis], part, *beside[axis:]))
            arguments += [writer.read(task, index, (part,), owner) for index in inputs]
            if small or not is_each or sender == owner:
                arguments.append(writer.read(task, node.value, target, owner))
                sent.append(())
                continue
            there = tuple(regions[owner][beside])
            sending = TaskWriter()
            places = [writer.read(sending, index, (part,), sender) for index in inputs]
            value = writer.read(sending, node.value, target, sender)
            sending.take(_LISTED_BYTES * (len(inputs) + 2) * (part[1] - part[0]))
            sending.do(Run(send, (len(inputs), along, lengths, there)), *places, value)
            tag = f"{base}-{turn}-to-{owner}-{'.'.join(str(start) for start, _ in beside)}"
            size = writer.bytes_of(node.value, target) // max(1, len(regions))
            arguments.append(task.read(writer.add(sending.task(tag, sender, "send"), size)))
            sent.append(there)
        task.take(2 * _LISTED_BYTES * (len(inputs) + 2) * length + writer.bytes_of(node.value))
        operator = Run(write, (len(inputs), axis, lengths, region[axis:last], tuple(sent)))
        task.do(operator, block, *arguments)
        keys.append(writer.add(task.task(f"{base}-{number}", owner, "put"), writer.bytes_of(node, region)))
    writer.finish(node, source.layout, keys, "put", "by an index")


@lowers(PutWhere)
def lower_put_where(node: PutWhere, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that write where booleans are true, block by block."""
    source = writer.registers[node.operand]
    base = base_of(node, writer)
    writer.note_reuse(node.operand)
    keys = []
    for number, (region, owner) in enumerate(
        zip(source.layout.grid.regions(), source.layout.owners, strict=True)
    ):
        task = TaskWriter()
        block = task.read(source.keys[number])
        mask = writer.read(task, node.mask, operand_region(node.mask.shape, region), owner)
        value = writer.read(task, node.value, operand_region(node.value.shape, region), owner)
        task.do(Run(put_where), block, mask, value)
        keys.append(writer.add(task.task(f"{base}-{number}", owner, "put"), writer.bytes_of(node, region)))
    writer.finish(node, source.layout, keys, "put", "by booleans")


@lowers(TakeAlong, PutAlong)
def lower_along(node: TakeAlong | PutAlong, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that go along an axis, which is not cut, lane by lane."""
    heavier = max((node.operand, node.index), key=writer.bytes_of)
    layout = lanes_layout(heavier, [node.axis], writer, workers)
    others = [cuts for axis, cuts in enumerate(layout.grid.cuts) if axis != node.axis]
    own = (0, node.shape[node.axis])
    grid = Grid((*others[: node.axis], own, *others[node.axis :]))
    base = base_of(node, writer, layout)
    keys = []
    for number, (region, owner) in enumerate(zip(grid.regions(), layout.owners, strict=True)):
        task = TaskWriter()
        values = [
            writer.read(
                task,
                one,
                operand_region(
                    one.shape,
                    (*region[: node.axis], (0, length), *region[node.axis + 1 :]),
                ),
                owner,
            )
            for one, length in _lanes(node)
        ]
        task.take(
            2
            * _LISTED_BYTES
            * region_size((*region[: node.axis], (0, node.index.shape[node.axis]), *region[node.axis + 1 :]))
        )
        task.do(Run(take_along if isinstance(node, TakeAlong) else put_along, (node.axis,)), *values)
        keys.append(writer.add(task.task(f"{base}-{number}", owner, "lanes"), writer.bytes_of(node, region)))
    writer.finish(node, Layout(grid, layout.owners), keys, "lanes", f"along axis {node.axis}")


def _lanes(node: TakeAlong | PutAlong) -> list[tuple[Expr, int]]:
    # What is read, and its length along the axis.
    length = node.index.shape[node.axis]
    read = [(node.operand, node.operand.shape[node.axis]), (node.index, length)]
    return read if isinstance(node, TakeAlong) else [*read, (node.value, length)]

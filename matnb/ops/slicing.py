"""Slices and transposes of arrays that are cut in blocks."""

from __future__ import annotations

import itertools

from matnb.blocks.grid import Grid, intersect, region_shape
from matnb.blocks.layout import Layout
from matnb.expr.digest import digest_of
from matnb.expr.nodes import Index, Transpose
from matnb.program.operators import Flip, Join, Take
from matnb.program.place import default_layout
from matnb.program.plan import Workers
from matnb.program.regions import SlicePart, piece_cuts, slice_pieces
from matnb.program.writer import PlanWriter, TaskWriter, cut_of, region_text

_KEPT_BYTES = 24  # of an entry of a sparse block, while those of a slice are looked for


def lower_index(node: Index, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of a slice: each block that has a part in the result gives a block of the result."""
    source = writer.registers[node.operand]
    grid = source.layout.grid
    choices: list[tuple[SlicePart | int | None, ...]] = []
    cuts: list[tuple[int, ...]] = []
    axis = 0
    for part in node.key:
        if part is None:
            choices.append((None,))
            cuts.append((0, 1))
            continue
        if isinstance(part, slice):
            pieces = slice_pieces(grid.cuts[axis], part)
            cuts.append(piece_cuts(pieces))
            choices.append(pieces)
        else:
            choices.append((part,))
        axis += 1
    out = Grid(tuple(cuts))
    base = f"{node.digest.hex()}-{digest_of(grid.cuts, source.layout.owners).hex()[:8]}"
    if 0 in node.shape:
        _write_nothing(node, out, base, writer, workers.numbers[0])
        return
    writer.note_reuse(node.operand)
    keys, owned = [], []
    for number, chosen in enumerate(itertools.product(*choices)):
        block, key = _local(chosen, grid)
        place = grid.number(block)
        task = TaskWriter()
        task.do(Take(key), task.read(source.keys[place]))
        if node.operand.sparse:
            task.take(_KEPT_BYTES * writer.entries_of(node.operand, grid.region(block)))
        owner = source.layout.owners[place]
        keys.append(
            writer.add(task.task(f"{base}-{number}", owner, "slice"), writer.bytes_of(node) // out.num_blocks)
        )
        owned.append(owner)
    writer.finish(node, Layout(out, tuple(owned)), keys, "slice", "")


def _write_nothing(node: Index, grid: Grid, base: str, writer: PlanWriter, owner: int) -> None:
    keys = []
    for number, region in enumerate(grid.regions()):
        task = TaskWriter()
        task.do(Join((), region_shape(region), node.dtype, node.sparse))
        keys.append(writer.add(task.task(f"{base}-{number}", owner, "slice"), 0))
    writer.finish(node, Layout(grid, (owner,) * len(keys)), keys, "slice", "nothing")


LocalKey = tuple[tuple[int, int | None, int] | int | None, ...]


def _local(chosen: tuple[SlicePart | int | None, ...], grid: Grid) -> tuple[tuple[int, ...], LocalKey]:
    block: list[int] = []
    key: list[tuple[int, int | None, int] | int | None] = []
    for part in chosen:
        if part is None:
            key.append(None)
        elif isinstance(part, SlicePart):
            block.append(part.block)
            key.append(part.local)
        else:
            cuts = grid.cuts[len(block)]
            number = next(i for i, stop in enumerate(cuts[1:]) if part < stop)
            block.append(number)
            key.append(part - cuts[number])
    return tuple(block), tuple(key)


def lower_transpose(node: Transpose, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of a transpose.

    A dense array's blocks are flipped where they are. A sparse one is cut by rows again, so that a product
    with it needs no full-length reduction: every block gives a part to every new block.
    """
    source = writer.registers[node.operand]
    grid = source.layout.grid
    writer.note_reuse(node.operand)
    if not node.sparse:
        layout = _flipped(source.layout, node.axes)
    else:
        layout = default_layout(node, writer.bytes_of(node), workers)
    base = f"{node.digest.hex()}-{digest_of(grid.cuts, layout.grid.cuts, layout.owners).hex()[:8]}"
    back = [node.axes.index(axis) for axis in range(node.ndim)]
    keys = []
    for number, (region, owner) in enumerate(zip(layout.grid.regions(), layout.owners, strict=True)):
        wanted = tuple(region[axis] for axis in back)
        found = [index for index in grid.indices() if grid.region(index) == wanted] or list(
            grid.overlapping(wanted)
        )
        parts, offsets = [], []
        for index in found:
            place = grid.number(index)
            bounds = grid.region(index)
            common = intersect(bounds, wanted)
            task = TaskWriter()
            value = task.read(source.keys[place])
            if common != bounds:
                value = task.do(cut_of(common, bounds), value)
            task.do(Flip(node.axes), value)
            key = f"{base}-{number}" if len(found) == 1 else f"{base}-{number}-part-{region_text(common)}"
            where = owner if len(found) == 1 else source.layout.owners[place]
            size = writer.bytes_of(node.operand, common)
            parts.append(writer.add(task.task(key, where, "transpose"), size))
            offsets.append(
                tuple(common[axis][0] - begin for axis, (begin, _) in zip(node.axes, region, strict=True))
            )
        if len(found) != 1:
            task = TaskWriter()
            task.do(
                Join(tuple(offsets), region_shape(region), node.dtype, node.sparse),
                *(task.read(part) for part in parts),
            )
            parts = [writer.add(task.task(f"{base}-{number}", owner, "join"), writer.bytes_of(node, region))]
        keys.append(parts[0])
    writer.finish(node, layout, keys, "transpose", "")


def _flipped(layout: Layout, axes: tuple[int, ...]) -> Layout:
    grid = layout.grid.transpose(axes)
    back = [axes.index(axis) for axis in range(len(axes))]
    owners = tuple(
        layout.owners[layout.grid.number(tuple(index[axis] for axis in back))] for index in grid.indices()
    )
    return Layout(grid, owners)

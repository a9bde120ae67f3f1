"""What booleans pick: each part of the array gives a part of the result, and nothing moves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

from matnb.blocks.grid import Grid
from matnb.blocks.kernels.selecting import compress, count_true, expand, true_places
from matnb.blocks.layout import Layout
from matnb.ops.lowering.registry import base_of, lowers
from matnb.ops.nodes.selecting import Compress, CountTrue, Cuts, Expand, TruePlaces
from matnb.program.operators import Join, Run
from matnb.program.plan import Workers
from matnb.program.regions import rows_region
from matnb.program.writer import PlanWriter, TaskWriter

Range = tuple[int, int]
_PLACE_BYTES = 8
_SPARSE_PLACES = 5  # lists of places for the entries of a sparse block


@lowers(CountTrue)
def lower_count_true(node: CountTrue, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of a count for each part."""
    base = base_of(node, writer)
    keys, owners = [], []
    for number, rows in enumerate(pairwise(node.cuts)):
        owner = writer.home_of(node.mask, rows_region(node.mask.shape, rows))
        task = TaskWriter()
        mask = writer.read(task, node.mask, rows_region(node.mask.shape, rows), owner, alone=True)
        task.do(Run(count_true), mask)
        keys.append(writer.add(task.task(f"{base}-{number}", owner, "count"), 8))
        owners.append(owner)
    layout = Layout(Grid((tuple(range(len(node.cuts))),)), tuple(owners))
    writer.finish(node, layout, keys, "count", "what is true")


@lowers(Compress)
def lower_compress(node: Compress, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that pick from each part of the array; the axes beside stay cut as they are."""
    masked = node.mask.ndim
    beside = writer.registers[node.operand].layout.grid.cuts[masked:]
    base = base_of(node, writer)
    parts = _parts(node.before, node.after)
    grid = Grid((_ends(parts), *beside))
    keys, owners = [], []
    others = list(product(*(list(pairwise(cuts)) for cuts in beside)))
    chosen = product(parts or [((0, 0), (0, 0))], others)
    for number, ((rows, picked), rest) in enumerate(chosen):
        owner = writer.home_of(node.operand, (rows, *((0, length) for length in node.mask.shape[1:]), *rest))
        task = TaskWriter()
        if parts:
            region = (rows, *((0, length) for length in node.mask.shape[1:]))
            values = writer.read(task, node.operand, (*region, *rest), owner)
            task.do(Run(compress), values, writer.read(task, node.mask, region, owner))
            task.take(_PLACE_BYTES * (picked[1] - picked[0]))
        else:
            shape = tuple(stop - start for start, stop in (picked, *rest))
            task.do(Join((), shape, node.dtype, node.sparse))
        size = writer.bytes_of(node, (picked, *rest))
        keys.append(writer.add(task.task(f"{base}-{number}", owner, "select"), size))
        owners.append(owner)
    writer.finish(node, Layout(grid, tuple(owners)), keys, "select", "by booleans")


@lowers(Expand)
def lower_expand(node: Expand, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that write the values of each part of the array into it."""
    masked = node.mask.ndim
    beside = writer.registers[node.operand].layout.grid.cuts[masked:]
    grid = Grid((node.before, *((0, length) for length in node.mask.shape[1:]), *beside))
    base = base_of(node, writer)
    ends = dict(zip(pairwise(node.before), pairwise(node.after), strict=True))
    keys, owners = [], []
    for number, region in enumerate(grid.regions()):
        owner = writer.home_of(node.operand, region)
        task = TaskWriter()
        values = writer.read(task, node.operand, region, owner)
        mask = writer.read(task, node.mask, region[:masked], owner)
        new = writer.read(task, node.value, (ends[region[0]], *region[masked:]), owner)
        task.do(Run(expand), values, mask, new)
        start, stop = ends[region[0]]
        task.take(_PLACE_BYTES * (node.ndim + 1) * (stop - start))  # where they go, and they in that order
        keys.append(writer.add(task.task(f"{base}-{number}", owner, "put"), writer.bytes_of(node, region)))
        owners.append(owner)
    writer.finish(node, Layout(grid, tuple(owners)), keys, "put", "by booleans")


@lowers(TruePlaces)
def lower_true_places(node: TruePlaces, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that list the places in each part."""
    base = base_of(node, writer)
    parts = _parts(node.before, node.after)
    keys, owners = [], []
    for number, (rows, picked) in enumerate(parts or [((0, 0), (0, 0))]):
        owner = writer.home_of(node.mask, rows_region(node.mask.shape, rows))
        task = TaskWriter()
        if parts:
            region = rows_region(node.mask.shape, rows)
            mask = writer.read(task, node.mask, region, owner)
            task.do(Run(true_places, (node.axis, rows[0])), mask)
            task.take(_PLACE_BYTES * node.mask.ndim * (picked[1] - picked[0]))
            if node.mask.sparse:  # rows, ones of a pattern, and which are kept, before they are picked
                task.take(_SPARSE_PLACES * _PLACE_BYTES * writer.entries_of(node.mask, region))
        else:
            task.do(Join((), (0,), node.dtype, False))
        size = writer.bytes_of(node, (picked,))
        keys.append(writer.add(task.task(f"{base}-{number}", owner, "places"), size))
        owners.append(owner)
    writer.finish(node, Layout(Grid((_ends(parts),)), tuple(owners)), keys, "places", "of what is true")


def _parts(before: Cuts, after: Cuts) -> list[tuple[Range, Range]]:
    # The parts of which something is picked, and where that is in the result.
    pairs = zip(pairwise(before), pairwise(after), strict=True)
    return [(rows, picked) for rows, picked in pairs if picked[0] < picked[1]]


def _ends(parts: Sequence[tuple[Range, Range]]) -> Cuts:
    return (0, *(stop for _, (_, stop) in parts)) if parts else (0, 0)

"""Arrays with slices repeated: each block repeats its own, where it is."""

from __future__ import annotations

from itertools import pairwise

from matnb.blocks.grid import Grid, Region, region_shape, regular_cuts
from matnb.blocks.kernels import reshaping as kernels
from matnb.blocks.layout import Layout, spread
from matnb.ops.registry import base_of, lowers
from matnb.ops.reshaping import CountsOf, Repeat, RepeatEach
from matnb.program.operators import Join, Run
from matnb.program.place import SMALL_BYTES
from matnb.program.plan import Workers
from matnb.program.writer import PlanWriter, TaskWriter

_COUNT_BYTES = 8  # how often a slice is repeated


@lowers(Repeat)
def _(node: Repeat, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of a repetition, cut as the array is; what is too large for a block is cut again."""
    source = writer.registers[node.operand]
    cuts = list(source.layout.grid.cuts)
    along = [0]
    for start, stop in pairwise(cuts[node.axis]):
        length = (stop - start) * node.count
        share = writer.bytes_of(node) * length / max(1, node.shape[node.axis])
        most = max(SMALL_BYTES, writer.bytes_of(node) / workers.slots)
        parts = max(1, round(share / most)) if length else 1
        along += [start * node.count + one for one in regular_cuts(length, parts)[1:] if length]
    cuts[node.axis] = tuple(along) if len(along) > 1 else (0, 0)
    grid = Grid(tuple(cuts))
    is_finer = grid.num_blocks > source.layout.grid.num_blocks
    base = base_of(node, writer)
    keys, owners = [], []
    for number, region in enumerate(grid.regions()):
        start, stop = region[node.axis]
        first, last = start // max(1, node.count), -(-stop // max(1, node.count))
        wanted = _with(region, node.axis, (first, last))
        found = next(source.layout.grid.overlapping(wanted), None)
        task = TaskWriter()
        if found is None:
            owner = workers.numbers[0]
            task.do(Join((), region_shape(region), node.dtype, node.sparse))
        else:
            owner = source.layout.owners[source.layout.grid.number(found)]
            if is_finer:
                owner = spread(grid.num_blocks, workers.numbers)[number]
            part = writer.read(task, node.operand, wanted, owner)
            skipped = start - first * node.count
            task.take(_COUNT_BYTES * (last - first))
            task.do(Run(kernels.repeat, (node.count, node.axis, skipped, stop - start)), part)
        keys.append(writer.add(task.task(f"{base}-{number}", owner, "repeat"), writer.bytes_of(node, region)))
        owners.append(owner)
    writer.finish(node, Layout(grid, tuple(owners)), keys, "repeat", "")


def _with(region: Region, axis: int, part: tuple[int, int]) -> Region:
    return (*region[:axis], part, *region[axis + 1 :])


@lowers(CountsOf)
def _(node: CountsOf, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that count what each part becomes."""
    count = node.shape[0]
    layout = Layout(Grid((tuple(range(count + 1)),)), spread(count, workers.numbers))
    base = base_of(node, writer, layout)
    keys = []
    for number, (part, owner) in enumerate(zip(pairwise(node.cuts), layout.owners, strict=True)):
        task = TaskWriter()
        task.do(Run(kernels.counts_of), writer.read(task, node.counts, (part,), owner))
        keys.append(writer.add(task.task(f"{base}-{number}", owner, "count"), node.dtype.itemsize))
    writer.finish(node, layout, keys, "count", "")


@lowers(RepeatEach)
def _(node: RepeatEach, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that repeat slices by counts: each part of the array becomes a part of the result."""
    parts = [
        (before, after)
        for before, after in zip(pairwise(node.before), pairwise(node.after), strict=True)
        if after[0] < after[1]
    ]
    cuts = list(writer.registers[node.operand].layout.grid.cuts)
    cuts[node.axis] = (0, *(after[1] for _, after in parts)) if parts else (0, 0)
    grid = Grid(tuple(cuts))
    layout = Layout(grid, spread(grid.num_blocks, workers.numbers))
    base = base_of(node, writer, layout)
    before = {after: one for one, after in parts}
    keys = []
    for number, (region, owner) in enumerate(zip(grid.regions(), layout.owners, strict=True)):
        task = TaskWriter()
        if 0 in region_shape(region):
            task.do(Join((), region_shape(region), node.dtype, node.sparse))
        else:
            part = before[region[node.axis]]
            block = writer.read(task, node.operand, _with(region, node.axis, part), owner)
            counts = writer.read(task, node.counts, (part,), owner)
            task.take(2 * _COUNT_BYTES * (part[1] - part[0]))
            task.do(Run(kernels.repeat_each, (node.axis,)), block, counts)
        keys.append(writer.add(task.task(f"{base}-{number}", owner, "repeat"), writer.bytes_of(node, region)))
    writer.finish(node, layout, keys, "repeat", "by counts")

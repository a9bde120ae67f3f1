"""A person's function called on each block, where the block is."""

from __future__ import annotations

from typing import TypeVar

from matnb.blocks.grid import Grid
from matnb.blocks.kernels.calls import call_on_block
from matnb.blocks.layout import Layout
from matnb.ops.lowering.lanes import lanes_layout
from matnb.ops.lowering.registry import base_of, lowers
from matnb.ops.nodes.mapping import MapBlocks
from matnb.program.operators import Run
from matnb.program.plan import Workers
from matnb.program.regions import operand_region
from matnb.program.writer import PlanWriter, TaskWriter

_Part = TypeVar("_Part", bound=tuple[int, ...])  # cuts of an axis, or a range of it


@lowers(MapBlocks)
def lower_map_blocks(node: MapBlocks, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that call a function; operands beside the first are read as they meet its blocks."""
    first = node.inputs[0]
    source = writer.registers[first].layout
    if node.along is not None:
        source = lanes_layout(first, (node.along,), writer, workers)
    elif node.shape != first.shape:
        source = lanes_layout(first, range(1, first.ndim), writer, workers)
    base = base_of(node, writer, source)
    cuts = _placed(node, source.grid.cuts, tuple((0, length) for length in node.shape))
    keys = []
    for number, (region, owner) in enumerate(zip(source.grid.regions(), source.owners, strict=True)):
        made = _placed(node, region, tuple((0, length) for length in node.shape))
        shape = tuple(stop - start for start, stop in made)
        task = TaskWriter()
        parts = [operand_region(one.shape, region) for one in node.inputs]
        values = [writer.read(task, one, part, owner) for one, part in zip(node.inputs, parts, strict=True)]
        task.do(Run(call_on_block, (node.function, shape, node.dtype, node.sparse, node.along)), *values)
        # The function gets copies of its own, and what it gives is copied.
        size = writer.bytes_of(node, made)
        task.take(
            size + sum(writer.bytes_of(one, part) for one, part in zip(node.inputs, parts, strict=True))
        )
        keys.append(writer.add(task.task(f"{base}-{number}", owner, "call"), size))
    writer.finish(node, Layout(Grid(cuts), source.owners), keys, "call", node.function.name)


def _placed(node: MapBlocks, source: tuple[_Part, ...], whole: tuple[_Part, ...]) -> tuple[_Part, ...]:
    # Where the result is cut as the first array is, or what part of it follows from a part of that array.
    first = node.inputs[0]
    if node.along is None:
        return source if node.shape == first.shape else (*source[:1], *whole[1:])
    behind = first.ndim - node.along - 1
    inside = whole[node.along : len(whole) - behind]
    return (*source[: node.along], *inside, *source[node.along + 1 :])

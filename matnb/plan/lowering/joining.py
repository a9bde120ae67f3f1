"""Arrays put together: their blocks stay where they are and as they are cut."""

from __future__ import annotations

from itertools import accumulate

from matnb.blocks.grid import Grid, Region
from matnb.blocks.layout import Layout
from matnb.lazy.expr import Expr
from matnb.lazy.nodes.joining import Concatenate
from matnb.plan.lowering.registry import base_of, lowers
from matnb.plan.operators import Join
from matnb.plan.plan import Workers
from matnb.plan.tasks import PlanWriter, TaskWriter


@lowers(Concatenate)
def lower_concatenate(node: Concatenate, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of a concatenation: along its axis the cuts of all, beside it those of the largest."""
    starts = (0, *accumulate(one.shape[node.axis] for one in node.inputs))
    layouts = [writer.registers[one].layout for one in node.inputs]
    heaviest = layouts[max(range(len(layouts)), key=lambda one: writer.bytes_of(node.inputs[one]))]
    cuts = list(heaviest.grid.cuts)
    joined = [0]
    for layout, begin in zip(layouts, starts, strict=False):
        joined += [begin + one for one in layout.grid.cuts[node.axis][1:] if begin + one > joined[-1]]
    cuts[node.axis] = tuple(joined) if len(joined) > 1 else (0, 0)
    grid = Grid(tuple(cuts))
    base = base_of(node, writer)
    keys, owners = [], []
    for number, region in enumerate(grid.regions()):
        operand, inside = _where(node, starts, region)
        owner = _owner(writer, operand, inside, workers)
        task = TaskWriter()
        block = task.read(writer.block(operand, inside, owner))
        shape = tuple(stop - start for start, stop in region)
        task.do(Join(((0,) * node.ndim,), shape, node.dtype, node.sparse), block)
        keys.append(writer.add(task.task(f"{base}-{number}", owner, "join"), writer.bytes_of(node, region)))
        owners.append(owner)
    writer.finish(node, Layout(grid, tuple(owners)), keys, "concatenate", "")


def _where(node: Concatenate, starts: tuple[int, ...], region: Region) -> tuple[Expr, Region]:
    # The operand that has a region of the result, and the region in it.
    start, stop = region[node.axis]
    number = max(
        (one for one in range(len(node.inputs)) if starts[one] <= start and starts[one + 1] > starts[one]),
        default=0,
    )
    inside = (start - starts[number], stop - starts[number])
    return node.inputs[number], (*region[: node.axis], inside, *region[node.axis + 1 :])


def _owner(writer: PlanWriter, operand: Expr, region: Region, workers: Workers) -> int:
    layout = writer.registers[operand].layout
    found = next(iter(layout.grid.overlapping(region)), None)
    return workers.numbers[0] if found is None else layout.owners[layout.grid.number(found)]

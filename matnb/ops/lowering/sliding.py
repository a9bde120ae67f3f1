"""Windows, what reductions make of them, and convolutions: each block reads what it needs of others."""

from __future__ import annotations

from itertools import pairwise

from matnb.blocks.grid import Grid
from matnb.blocks.kernels import sliding as kernels
from matnb.blocks.layout import Layout
from matnb.expr.nodes import Expr
from matnb.ops.lowering.registry import base_of, lowers
from matnb.ops.nodes.sliding import Convolve, WindowReduce, Windows
from matnb.program.operators import Run
from matnb.program.plan import Workers
from matnb.program.writer import PlanWriter, TaskWriter

_TILES = 3 * 8 * kernels.TILE  # bytes of the elements that are away from their means


def _cuts(node: Expr, axis: int, length: int, offset: int, writer: PlanWriter) -> tuple[int, ...]:
    # An axis cut where the array that slides is, which has so many elements more before it.
    given = writer.registers[node].layout.grid.cuts[axis]
    return (0, *(cut - offset for cut in given if 0 < cut - offset < length), length)


def _owner_at(node: Expr, region: tuple[tuple[int, int], ...], writer: PlanWriter) -> int:
    layout = writer.registers[node].layout
    return layout.owners[layout.grid.number(next(iter(layout.grid.overlapping(region))))]


@lowers(Windows, WindowReduce)
def lower_windows(node: Windows | WindowReduce, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of windows: a block has those that begin in a block of the array."""
    operand, axis = node.operand, node.axis
    cuts = list(writer.registers[operand].layout.grid.cuts)
    cuts[axis] = _cuts(operand, axis, node.shape[axis], 0, writer)
    if isinstance(node, Windows):
        cuts.append((0, node.length))
        run = Run(kernels.windows, (node.length, axis))
    else:
        run = Run(kernels.windows_reduced, (node.operation, node.length, axis, node.dtype))
    grid, base = Grid(tuple(cuts)), base_of(node, writer)
    keys, owners = [], []
    for number, region in enumerate(grid.regions()):
        start, stop = region[axis]
        read = (*region[:axis], (start, stop + node.length - 1), *region[axis + 1 : operand.ndim])
        task, owner = TaskWriter(), _owner_at(operand, region[: operand.ndim], writer)
        block = writer.read(task, operand, read, owner, alone=True)
        size = writer.bytes_of(node, region)
        if isinstance(node, WindowReduce):
            task.take(2 * size + _TILES)
        task.do(run, block)
        keys.append(writer.add(task.task(f"{base}-{number}", owner, "windows"), size))
        owners.append(owner)
    detail = node.operation if isinstance(node, WindowReduce) else ""
    writer.finish(node, Layout(grid, tuple(owners)), keys, "windows", detail)


@lowers(Convolve)
def lower_convolve(node: Convolve, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of a convolution, cut as the array is; each has all weights."""
    operand, width = node.operand, node.weights.size
    grid = Grid((_cuts(operand, 0, node.length, node.start, writer),))
    base = base_of(node, writer)
    keys, owners = [], []
    for number, (low, high) in enumerate(pairwise(grid.cuts[0])):
        # Not fewer elements than weights, or NumPy takes the one for the other, and adds in another order.
        first = min(max(0, node.start + low - width + 1), operand.size - width)
        stop = min(max(node.start + high, first + width), operand.size)
        inside = min(max(node.start + low, 0), operand.size - 1)
        task, owner = TaskWriter(), _owner_at(operand, ((inside, inside + 1),), writer)
        part = writer.read(task, operand, ((first, stop),), owner, alone=True)
        weights = writer.read(task, node.weights, ((0, width),), owner)
        task.take(3 * (stop - first + width) * node.dtype.itemsize)
        task.do(Run(kernels.convolved, (first, node.start + low, high - low)), part, weights)
        keys.append(
            writer.add(
                task.task(f"{base}-{number}", owner, "convolve"), writer.bytes_of(node, ((low, high),))
            )
        )
        owners.append(owner)
    writer.finish(node, Layout(grid, tuple(owners)), keys, "convolve", f"{width} weights")

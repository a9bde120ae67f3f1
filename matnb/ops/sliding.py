"""What slides along an axis: windows, what reductions make of each, and sums of products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from matnb.blocks.grid import Grid
from matnb.blocks.kernels.reductions import sliding as kernels
from matnb.blocks.layout import Layout
from matnb.errors import ShapeError
from matnb.expr.nodes import Expr
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.kinds import JOINING, PRODUCTS, Kind
from matnb.program.operators import Run
from matnb.program.plan import Workers
from matnb.program.writer import PlanWriter

_CONVOLVE = Kind("convolve", shown=PRODUCTS)
_WINDOWS = Kind("windows", shown=JOINING)


def _slid(operand: Expr, length: int, axis: int) -> tuple[int, ...]:
    # The shape of an array whose axis has a place for each window, of at least one element.
    if not 1 <= length <= operand.shape[axis]:
        raise ShapeError(
            f"windows of length {length} do not fit axis {axis} of an array of shape {operand.shape}"
        )
    shape = list(operand.shape)
    shape[axis] -= length - 1
    return tuple(shape)


@dataclass(frozen=True, eq=False, repr=False)
class Windows(Expr):
    """Each stretch of so many neighbors along an axis, along a new last axis; dense."""

    plain: ClassVar[bool] = True
    operand: Expr
    length: int
    axis: int

    def __post_init__(self) -> None:
        shape = (*_slid(self.operand, self.length, self.axis), self.length)
        self.settle(shape, self.operand.dtype, False, self.operand)


@dataclass(frozen=True, eq=False, repr=False)
class WindowReduce(Expr):
    """What a reduction makes of each stretch of so many neighbors along an axis, of a dtype; dense.

    ``operation`` is "sum", "prod", "min", "max", "any", "all", or "deviation", the sum of squared distances
    from the mean.
    """

    plain: ClassVar[bool] = True
    operand: Expr
    operation: str
    length: int
    axis: int
    element: np.dtype

    def __post_init__(self) -> None:
        self.settle(_slid(self.operand, self.length, self.axis), self.element, False, self.operand)


@dataclass(frozen=True, eq=False, repr=False)
class WindowRolled(Expr):
    """What a reduction makes of the so many neighbors that end at each element of an axis; float64, dense.

    ``operation`` is "sum", "mean", "min", "max", or "var", for which ``less`` is taken from the count of
    numbers. NaN is left out, and a window of fewer than ``least`` numbers is NaN, as it is at the beginning.
    """

    plain: ClassVar[bool] = True
    operand: Expr
    operation: str
    length: int
    least: int
    axis: int
    less: int

    def __post_init__(self) -> None:
        self.settle(self.operand.shape, np.dtype(np.float64), False, self.operand)


@dataclass(frozen=True, eq=False, repr=False)
class Convolve(Expr):
    """Elements ``start`` to ``start + length`` of the full discrete convolution of two vectors of one dtype.

    It is zero before its first element and behind its last. ``operand`` is cut, ``weights`` go whole to all.
    """

    plain: ClassVar[bool] = True
    operand: Expr
    weights: Expr
    start: int
    length: int

    def __post_init__(self) -> None:
        self.settle((self.length,), self.operand.dtype, False, self.operand, self.weights)


_REDUCTIONS = {"sum": np.sum, "prod": np.prod, "min": np.min, "max": np.max, "any": np.any, "all": np.all}


@means(Windows)
def _(node: Windows, operands: Sequence[Value]) -> Value:
    """Return each stretch of neighbors along an axis."""
    found: Value = np.lib.stride_tricks.sliding_window_view(dense(operands[0]), node.length, node.axis)
    return found


@means(WindowReduce)
def _(node: WindowReduce, operands: Sequence[Value]) -> Value:
    """Return what a reduction makes of each stretch of neighbors."""
    seen = np.lib.stride_tricks.sliding_window_view(dense(operands[0]), node.length, node.axis)
    if node.operation == "deviation":
        wide = seen.astype(node.dtype)
        return np.asarray(np.square(wide - wide.mean(axis=-1, keepdims=True)).sum(axis=-1))
    options = {"dtype": node.dtype} if node.operation in ("sum", "prod") else {}
    return np.asarray(_REDUCTIONS[node.operation](seen, axis=-1, **options))  # type: ignore[operator]  # one of them


@means(WindowRolled)
def _(node: WindowRolled, operands: Sequence[Value]) -> Value:
    """Return what a reduction makes of the neighbors that end at each element."""
    values = np.moveaxis(dense(operands[0]), node.axis, -1).astype(np.float64)
    ahead = np.full((*values.shape[:-1], node.length - 1), np.nan)
    padded = np.concatenate([ahead, values], axis=-1)
    seen = np.lib.stride_tricks.sliding_window_view(padded, node.length, -1)
    is_number = ~np.isnan(seen)
    counts = is_number.sum(axis=-1)
    if node.operation in ("min", "max"):
        edge = np.inf if node.operation == "min" else -np.inf
        found = getattr(np, node.operation)(np.where(is_number, seen, edge), axis=-1)
    else:
        found = np.where(is_number, seen, 0.0).sum(axis=-1)
    if node.operation in ("mean", "var"):
        found = found / np.maximum(counts, 1)
    if node.operation == "var":
        found = np.square(np.where(is_number, seen - found[..., None], 0.0)).sum(axis=-1)
        found = found / np.maximum(counts - node.less, 1)
    fewest = node.least if node.operation == "sum" else max(node.least, node.less + 1)
    return np.ascontiguousarray(np.moveaxis(np.where(counts >= fewest, found, np.nan), -1, node.axis))


@means(Convolve)
def _(node: Convolve, operands: Sequence[Value]) -> Value:
    """Return a part of the convolution of two vectors."""
    full: np.ndarray = np.convolve(*map(dense, operands))  # type: ignore[call-overload]  # vectors of one dtype
    places = np.arange(node.start, node.start + node.length)
    inside = (places >= 0) & (places < full.size)
    return np.asarray(np.where(inside, full[np.clip(places, 0, full.size - 1)], node.dtype.type(0)))


# Windows, what reductions make of them, and convolutions: each block reads what it needs of others.

_WINDOW_BYTES = 32  # of an element of the stretch in front of the one at hand
_TILES = 3 * 8 * kernels.TILE  # bytes of the elements that are away from their means


def _cuts(node: Expr, axis: int, length: int, offset: int, writer: PlanWriter) -> tuple[int, ...]:
    # An axis cut where the array that slides is, which has so many elements more before it.
    given = writer.registers[node].layout.grid.cuts[axis]
    return (0, *(cut - offset for cut in given if 0 < cut - offset < length), length)


@lowers(Windows, WindowReduce)
def _(node: Windows | WindowReduce, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of windows: a block has those that begin in a block of the array."""
    operand, axis = node.operand, node.axis
    cuts = list(writer.registers[operand].layout.grid.cuts)
    cuts[axis] = _cuts(operand, axis, node.shape[axis], 0, writer)
    if isinstance(node, Windows):
        cuts.append((0, node.length))
        run = Run(kernels.windows, (node.length, axis))
    else:
        run = Run(kernels.windows_reduced, (node.operation, node.length, axis, node.dtype))
    grid = Grid(tuple(cuts))
    layout = Layout(grid, tuple(writer.home_of(operand, one[: operand.ndim]) for one in grid.regions()))
    detail = node.operation if isinstance(node, WindowReduce) else ""
    for block in writer.each_block(node, layout, _WINDOWS, detail):
        region, (start, stop) = block.region, block.region[axis]
        read = (*region[:axis], (start, stop + node.length - 1), *region[axis + 1 : operand.ndim])
        if isinstance(node, WindowReduce):
            block.take(2 * block.num_bytes + _TILES)
        block.do(run, writer.read(block, operand, read, block.owner, alone=True))


@lowers(WindowRolled)
def _(node: WindowRolled, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of rolling windows: a block reads what is in front of it, as far as a window goes."""
    axis = node.axis
    layout = writer.registers[node.operand].layout
    for block in writer.each_block(node, layout, _WINDOWS, node.operation):
        region, (start, stop) = block.region, block.region[axis]
        begin = max(0, start - node.length + 1)
        read = (*region[:axis], (begin, stop), *region[axis + 1 :])
        copies = 1 if node.operand.dtype == node.dtype and axis == node.ndim - 1 else 3
        block.take(copies * writer.bytes_of(node, read) + _WINDOW_BYTES * min(node.length, stop - begin))
        options = (node.operation, node.length, node.least, axis, begin, start - begin, node.less)
        block.do(
            Run(kernels.rolled, options), writer.read(block, node.operand, read, block.owner, alone=True)
        )


@lowers(Convolve)
def _(node: Convolve, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of a convolution, cut as the array is; each has all weights."""
    operand, width = node.operand, node.weights.size
    grid = Grid((_cuts(operand, 0, node.length, node.start, writer),))
    inside = (min(max(node.start + low, 0), operand.size - 1) for low in grid.cuts[0][:-1])
    layout = Layout(grid, tuple(writer.home_of(operand, ((one, one + 1),)) for one in inside))
    for block in writer.each_block(node, layout, _CONVOLVE, f"{width} weights"):
        ((low, high),) = block.region
        # Not fewer elements than weights, or NumPy takes the one for the other, and adds in another order.
        first = min(max(0, node.start + low - width + 1), operand.size - width)
        stop = min(max(node.start + high, first + width), operand.size)
        part = writer.read(block, operand, ((first, stop),), block.owner, alone=True)
        weights = writer.read(block, node.weights, ((0, width),), block.owner)
        block.take(3 * (stop - first + width) * node.dtype.itemsize)
        block.do(Run(kernels.convolved, (first, node.start + low, high - low)), part, weights)

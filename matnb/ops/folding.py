"""What leaves one value of each line of an array: the place of an extreme, or a ufunc's fold."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from matnb.blocks.grid import Index, Region
from matnb.blocks.kernels.reductions.folding import extreme_places, folded, least_and_greatest, share_bytes
from matnb.blocks.layout import Layout
from matnb.errors import ShapeError
from matnb.expr.nodes import Expr, Shape
from matnb.ops.reducing import kept_grid
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.kinds import Kind, Role
from matnb.program.operators import Run
from matnb.program.plan import Workers
from matnb.program.regions import region_size
from matnb.program.writer import PlanWriter, TaskWriter

_FOLD = Kind("reduce", Role.REDUCES, follows_cuts=True)

_PLACE = np.dtype(np.intp)

_PLACE_BYTES, _NUMBERS_AN_ENTRY = 8, 6  # what the places of extremes are found with in a sparse block


@dataclass(frozen=True, eq=False, repr=False)
class Extreme(Expr):
    """The place of the least or greatest element over an axis, or over all in the order of rows.

    ``operation`` is "argmin" or "argmax", where the first NaN is the extreme, or "nanargmin" or "nanargmax",
    where it is not. The first of equal elements counts.
    """

    plain: ClassVar[bool] = True
    operand: Expr
    operation: str
    axes: tuple[int, ...]
    keepdims: bool

    def __post_init__(self) -> None:
        if any(self.operand.shape[axis] == 0 for axis in self.axes):
            raise ShapeError(
                f"{self.operation} of an array of shape {self.operand.shape} over an axis of length 0"
            )
        self.settle(kept_shape(self.operand.shape, self.axes, self.keepdims), _PLACE, False, self.operand)


@dataclass(frozen=True, eq=False, repr=False)
class Fold(Expr):
    """A reduction by a ufunc in which neither order nor grouping matters, and that ``Reduce`` does not name.

    There is at least one element to each result.
    """

    plain: ClassVar[bool] = True
    operand: Expr
    ufunc: str
    axes: tuple[int, ...]
    keepdims: bool
    element: np.dtype

    def __post_init__(self) -> None:
        shape = kept_shape(self.operand.shape, self.axes, self.keepdims)
        self.settle(shape, self.element, False, self.operand)


def kept_shape(shape: Shape, axes: tuple[int, ...], keepdims: bool) -> Shape:
    """Return the shape that a reduction leaves of one."""
    if keepdims:
        return tuple(1 if axis in axes else length for axis, length in enumerate(shape))
    return tuple(length for axis, length in enumerate(shape) if axis not in axes)


@means(Extreme)
def _(node: Extreme, operands: Sequence[Value]) -> Value:
    """Return the places of extremes."""
    values = dense(operands[0])
    axis = node.axes[0] if len(node.axes) == 1 else None
    try:
        places = getattr(np, node.operation)(values, axis=axis, keepdims=node.keepdims)
    except ValueError as error:  # nothing but NaN
        raise ShapeError(f"{node.operation}: {error}") from None
    return np.asarray(places)


@means(Fold)
def _(node: Fold, operands: Sequence[Value]) -> Value:
    """Return what a ufunc makes of all elements over some axes."""
    values = dense(operands[0])
    for axis in reversed(node.axes):  # some ufuncs of NumPy take one axis at a time
        values = getattr(np, node.ufunc).reduce(values, axis=axis, keepdims=node.keepdims)
    return np.asarray(values).astype(node.dtype)


# One value of each line: each block's share where the block is, then the shares put together.


@lowers(Extreme)
def _(node: Extreme, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of the places of extremes."""
    operand = node.operand

    def share(region: Region) -> Run:
        start = tuple(begin for begin, _ in region)
        return Run(least_and_greatest, (node.operation, node.axes, start, operand.shape))

    parameters = (node.operation, node.axes, node.keepdims, operand.dtype)
    of_line = share_bytes((1,), operand.dtype)
    kind = Kind(node.operation, Role.REDUCES)
    _lower_lines(node, share, Run(extreme_places, parameters), of_line, writer, kind)


@lowers(Fold)
def _(node: Fold, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of a fold."""
    share = Run(folded, (node.ufunc, node.axes, True, node.dtype))
    # What is left has length 1 along the axes, over which a last fold changes nothing.
    parameters: tuple[Hashable, ...] = (node.ufunc, node.axes, node.keepdims, node.dtype)
    finish, kind = Run(folded, parameters), Kind(node.ufunc, Role.REDUCES)
    _lower_lines(node, lambda _: share, finish, node.dtype.itemsize, writer, kind)


def _copied_bytes(node: Extreme | Fold, region: Region, writer: PlanWriter) -> int:
    # Copies: along the axis and without NaN, or in another dtype; of a sparse block of what is stored.
    if isinstance(node, Fold):
        return node.dtype.itemsize * region_size(region)
    if node.operand.sparse:
        lines = sum(end - begin for begin, end in region)
        return _PLACE_BYTES * (_NUMBERS_AN_ENTRY * writer.entries_of(node.operand, region) + 6 * lines)
    return 2 * (node.operand.dtype.itemsize + 1) * region_size(region)


def _lower_lines(
    node: Extreme | Fold,
    share_of: Callable[[Region], Run],
    finish: Run,
    line_bytes: int,
    writer: PlanWriter,
    kind: Kind,
) -> None:
    layout, axes = writer.registers[node.operand].layout, node.axes
    grid = layout.grid
    groups: dict[Index, list[Index]] = {}
    for index in grid.indices():
        kept = tuple(0 if axis in axes else place for axis, place in enumerate(index))
        groups.setdefault(kept, []).append(index)
    owners = tuple(layout.owners[grid.number(kept)] for kept in groups)
    out = Layout(kept_grid(grid, axes, node.keepdims), owners)
    firsts = list(groups)
    for block in writer.each_block(node, out, _FOLD, kind.name):
        kept = firsts[block.number]
        group = groups[kept]
        num_lines = prod(length for axis, length in enumerate(grid.block_shape(kept)) if axis not in axes)
        parts = []
        for index in group:
            region, where = grid.region(index), layout.owners[grid.number(index)]
            own = block if len(group) == 1 else TaskWriter()
            value = writer.read(own, node.operand, region, where)
            own.take(_copied_bytes(node, region, writer))
            part = own.do(share_of(region), value, num_bytes=num_lines * line_bytes)
            if own is not block:
                part = block.read(writer.part_of(block, own, where, kind, num_lines * line_bytes))
            parts.append(part)
        block.take(max(1, len(parts)) * num_lines * line_bytes)
        block.do(finish, *parts)
        block.kind = kind

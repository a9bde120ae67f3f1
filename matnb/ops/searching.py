"""Elements looked up in another array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from matnb.blocks.grid import Region, all_of
from matnb.blocks.kernels.sorting import ordering
from matnb.errors import ShapeError
from matnb.expr.nodes import Expr
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.kinds import ELEMENTWISE, SEARCH, Kind
from matnb.program.operators import Accumulate, Run
from matnb.program.place import SMALL_BYTES, default_layout
from matnb.program.plan import Workers
from matnb.program.regions import region_size
from matnb.program.writer import PlanWriter, TaskWriter

_INTERPOLATE = Kind("interpolate", follows_cuts=True, shown=ELEMENTWISE)


@dataclass(frozen=True, eq=False, repr=False)
class Search(Expr):
    """Where each value belongs in an ascending 1-D array, as ``numpy.searchsorted`` has it."""

    plain: ClassVar[bool] = True
    ascending: Expr
    values: Expr
    side: str

    def __post_init__(self) -> None:
        if self.ascending.ndim != 1:
            raise ShapeError(
                f"searchsorted: the array to look in has shape {self.ascending.shape}, not one axis"
            )
        self.settle(self.values.shape, np.dtype(np.intp), False, self.ascending, self.values)


@dataclass(frozen=True, eq=False, repr=False)
class Member(Expr):
    """Whether each value is among the elements of another array of one axis; NaN is not."""

    plain: ClassVar[bool] = True
    among: Expr
    values: Expr

    def __post_init__(self) -> None:
        self.settle(self.values.shape, np.dtype(np.bool_), False, self.among, self.values)


@dataclass(frozen=True, eq=False, repr=False)
class Interpolate(Expr):
    """Values of a piecewise linear function; outside its points they are the last two of ``inputs``."""

    plain: ClassVar[bool] = True
    values: Expr
    inputs: tuple[Expr, ...]

    def __post_init__(self) -> None:
        kind = np.complex128 if self.inputs[1].dtype.kind == "c" else np.float64
        self.settle(self.values.shape, np.dtype(kind), False, self.values, *self.inputs)


@means(Search)
def _(node: Search, operands: Sequence[Value]) -> Value:
    """Return where values belong."""
    ascending, values = map(dense, operands)
    return np.asarray(np.searchsorted(ascending, values, side="left" if node.side == "left" else "right"))


@means(Member)
def _(node: Member, operands: Sequence[Value]) -> Value:
    """Return whether values are among others."""
    return np.isin(dense(operands[1]), dense(operands[0]))


@means(Interpolate)
def _(node: Interpolate, operands: Sequence[Value]) -> Value:
    """Return the values of a function between points."""
    values, places, heights, left, right = map(dense, operands)
    found = np.interp(values, places, heights, left[()], right[()])  # type: ignore[call-overload]  # numbers
    return np.asarray(found)


# Elements looked up in another array: the values travel to its blocks, or few blocks to the values.

_MEMBER_BYTES = 64  # an element


@lowers(Search, Member)
def _(node: Search | Member, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of a search: what is found in the blocks of each worker is put together."""
    other = node.ascending if isinstance(node, Search) else node.among
    layout = writer.registers[node.values].layout
    if layout.grid.num_blocks == 1:
        layout = default_layout(node, writer.bytes_of(node.values), workers)
    run = Run(ordering.search, (node.side,)) if isinstance(node, Search) else Run(ordering.is_member)
    together = Accumulate("plus" if isinstance(node, Search) else "lor", node.dtype)
    looked = writer.registers[other].layout
    small = writer.bytes_of(other) < SMALL_BYTES
    whole: Region = ((0, other.shape[0]),)
    held: dict[int, list[Region]] = {}
    for region, where in zip(looked.grid.regions(), looked.owners, strict=True):
        held.setdefault(where, []).append(region)
    for block in writer.each_block(node, layout, SEARCH):
        region, owner = block.region, block.owner
        if small or held.keys() == {owner}:
            regions = [whole] if small else held[owner]
            block.take(_taken(node, region, regions))
            values = writer.read(block, node.values, region, owner)
            block.do(run, values, *(block.read(writer.block(other, one, owner)) for one in regions))
            continue
        parts = []
        for where, regions in held.items():
            part = TaskWriter()
            values = part.read(writer.block(node.values, region, where))
            part.take(_taken(node, region, regions))
            part.do(run, values, *(part.read(writer.block(other, one, where)) for one in regions))
            parts.append(writer.part_of(block, part, where, SEARCH, block.num_bytes))
        block.do(together, *map(block.read, parts))


def _taken(node: Search | Member, region: Region, regions: list[Region]) -> int:
    # A search finds places block by block; to tell members, values and those of a block are put in order.
    count = region_size(region)
    if isinstance(node, Search):
        return 8 * count
    return _MEMBER_BYTES * (count + max(map(region_size, regions)))


@lowers(Interpolate)
def _(node: Interpolate, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of an interpolation: every worker has the points, which are few."""
    layout = writer.registers[node.values].layout
    for block in writer.each_block(node, layout, _INTERPOLATE):
        points = [block.read(writer.block(one, all_of(one.shape), block.owner)) for one in node.inputs]
        values = writer.read(block, node.values, block.region, block.owner)
        block.do(Run(ordering.interpolate), values, *points)

"""Arrays cut where a user asked: made so where they come from, or put together from other blocks."""

from __future__ import annotations

from collections.abc import Sequence

from matnb.blocks.grid import Grid, region_shape
from matnb.blocks.layout import Layout
from matnb.expr.nodes import Data, Expr, Load, Regrid
from matnb.ops.creation import lower_data, lower_load
from matnb.ops.maps import lower_map
from matnb.ops.reference import Value
from matnb.ops.registry import lowers, means
from matnb.program.kinds import Kind, Role
from matnb.program.operators import Join
from matnb.program.place import laid_out
from matnb.program.plan import Workers
from matnb.program.writer import PlanWriter

_REGRID = Kind("regrid", Role.REPARTITIONS)


@means(Regrid)
def _(node: Regrid, operands: Sequence[Value]) -> Value:
    """Return the same values."""
    return operands[0]


@lowers(Regrid)
def _(node: Regrid, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that make an array in the cuts that were asked for.

    Unless ranks were asked for the owners follow from the cuts alone, so that arrays cut alike lie alike,
    whatever they are made from.
    """
    layout = laid_out(Grid(node.cuts), workers, node.ranks)
    cut_before = _cut_before(node, writer)
    if cut_before is not None:
        _put_together(node, cut_before, layout, writer)
        return
    match node.operand:
        case Data() as source:
            lower_data(source, node, layout, writer)
        case Load() as source:
            lower_load(source, node, layout, writer, workers)
        case source:
            lower_map(node, [source], layout, writer)


def _cut_before(node: Regrid, writer: PlanWriter) -> Expr | None:
    # The array of the same values whose blocks are there; None where it is made straight from its source.
    source = node.operand
    if source.is_cheap:
        return None
    if source in writer.registers:
        return source
    if isinstance(source, Data | Load):
        # What came from outside once, for other cuts, is not loaded or sent again.
        others = (one for one in writer.registers if isinstance(one, Regrid) and one.operand is source)
        return next((one for one in others if one in writer.entries), None)
    return None


def _put_together(node: Regrid, source: Expr, layout: Layout, writer: PlanWriter) -> None:
    for block in writer.each_block(node, layout, _REGRID):
        value = block.read(writer.block(source, block.region, block.owner))
        shape = region_shape(block.region)
        block.do(Join(((0,) * node.ndim,), shape, node.dtype, node.sparse), value)

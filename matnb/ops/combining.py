"""Shares of the whole result, one a block, combined: each owner combines its range of all shares."""

from __future__ import annotations

from collections.abc import Sequence

from matnb.blocks.grid import all_of
from matnb.blocks.layout import Layout
from matnb.expr.nodes import Expr
from matnb.program.operators import Operator
from matnb.program.plan import Slot
from matnb.program.writer import PlanWriter, TaskWriter, cut_of


def write_combined(
    node: Expr,
    shares: Sequence[tuple[Slot, int]],
    combine: Operator,
    layout: Layout,
    writer: PlanWriter,
    kind: str,
    detail: str,
) -> None:
    """Write the tasks that combine shares of an array, each as large as the array.

    Parameters
    ----------
    shares
        Keys and owners, in the order in which they are combined.
    combine
        Makes a part of the array of the same part of each share.
    """
    whole = all_of(layout.grid.shape)
    for block in writer.each_block(node, layout, kind, detail):
        parts = []
        for share, where in shares:
            if where == block.owner or block.region == whole:
                value = block.read(share)
                parts.append(value if block.region == whole else block.do(cut_of(block.region, whole), value))
                continue
            cut = TaskWriter()
            cut.do(cut_of(block.region, whole), cut.read(share))
            parts.append(block.read(writer.part_of(block, cut, where, "cut", block.num_bytes)))
        block.do(combine, *parts)
        block.kind = "combine"

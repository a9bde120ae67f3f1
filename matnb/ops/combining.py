"""Shares of the whole result, one a block, combined: each owner combines its range of all shares."""

from __future__ import annotations

from collections.abc import Sequence

from matnb.blocks.layout import Layout
from matnb.expr.nodes import Expr
from matnb.program.operators import Operator
from matnb.program.writer import PlanWriter, TaskWriter, cut_of


def write_combined(
    node: Expr,
    shares: Sequence[tuple[str, int]],
    combine: Operator,
    layout: Layout,
    writer: PlanWriter,
    base: str,
) -> list[str]:
    """Write the tasks that combine shares of an array, each as large as the array; return their keys.

    Parameters
    ----------
    shares
        Keys and owners, in the order in which they are combined.
    combine
        Makes a part of the array of the same part of each share.
    """
    whole = tuple((0, length) for length in layout.grid.shape)
    keys = []
    for number, (region, owner) in enumerate(zip(layout.grid.regions(), layout.owners, strict=True)):
        task, size = TaskWriter(), writer.bytes_of(node, region)
        parts = []
        for share, where in shares:
            if where == owner or region == whole:
                value = task.read(share)
                parts.append(value if region == whole else task.do(cut_of(region, whole), value))
                continue
            cut = TaskWriter()
            cut.do(cut_of(region, whole), cut.read(share))
            parts.append(task.read(writer.add(cut.task(f"{share}-cut-{number}", where, "cut"), size)))
        task.do(combine, *parts)
        keys.append(writer.add(task.task(f"{base}-{number}", owner, "combine"), size))
    return keys

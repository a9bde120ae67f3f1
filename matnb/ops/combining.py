"""Shares of a result combined: by each owner its range of all shares, or as a tree between workers."""

from __future__ import annotations

from collections.abc import Sequence

from matnb.blocks.grid import all_of
from matnb.blocks.kernels.pairwise import middle
from matnb.blocks.kernels.reductions.reductions import accumulator_dtype
from matnb.blocks.layout import Layout
from matnb.expr.nodes import Expr
from matnb.program.kinds import ACCUMULATE, COMBINE, CUT, Kind
from matnb.program.operators import Accumulate, Operator
from matnb.program.place import SMALL_BYTES
from matnb.program.plan import Slot
from matnb.program.writer import BlockTask, PlanWriter, TaskWriter, cut_of

FEW_WORKERS = 8  # that one waits for at a time, for what is small


def write_combined(
    node: Expr,
    shares: Sequence[tuple[Slot, int]],
    combine: Operator,
    layout: Layout,
    writer: PlanWriter,
    kind: Kind,
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
            parts.append(block.read(writer.part_of(block, cut, where, CUT, block.num_bytes)))
        block.do(combine, *parts)
        block.kind = COMBINE


def write_sum(block: BlockTask, parts: Sequence[Slot], monoid: str, writer: PlanWriter) -> None:
    """Write the tasks that add parts of a block, in order, each as large as the block.

    They are added as a tree that follows from their number (``kernels.pairwise``), so sums have the same bits
    wherever parts of it are made: on the worker that has them, then on one of two workers (NumS, section 4).
    Small parts of few workers go straight to the block's.
    """
    owners = set(map(writer.owner_of, parts))
    is_small = len(owners) <= FEW_WORKERS and len(parts) * block.num_bytes < SMALL_BYTES
    if len(owners) > 1 and not is_small:
        cut = middle(len(parts))
        parts = [_added(some, block, monoid, writer) for some in (parts[:cut], parts[cut:])]
    elif owners != {block.owner} and not is_small:
        parts = [_added(parts, block, monoid, writer)]
    block.do(Accumulate(monoid, block.node.dtype), *map(block.read, parts))
    block.kind = ACCUMULATE


# Not a function in another: one that calls itself there would keep its block's expression until the garbage
# is collected, and with that the array, whatever is remembered.
def _added(parts: Sequence[Slot], block: BlockTask, monoid: str, writer: PlanWriter) -> Slot:
    # The slot of the sum of neighbors, on a worker that has some of them.
    if len(parts) == 1:
        return parts[0]
    if len(set(map(writer.owner_of, parts))) > 1:
        cut = middle(len(parts))
        parts = [_added(some, block, monoid, writer) for some in (parts[:cut], parts[cut:])]
    ends = [writer.owner_of(one) for one in parts]
    where = block.owner if block.owner in ends else ends[0]
    dtype = accumulator_dtype("sum", block.node.dtype)
    num_bytes = block.num_bytes * dtype.itemsize // block.node.dtype.itemsize
    task = TaskWriter()
    task.do(Accumulate(monoid, dtype), *map(task.read, parts))
    return writer.part_of(block, task, where, ACCUMULATE, num_bytes)

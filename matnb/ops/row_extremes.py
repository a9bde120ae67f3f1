"""The extremes of each row of functions of a product, which is not made as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from matnb.blocks.grid import Grid, Region, regular_cuts
from matnb.blocks.kernels.elementwise.elementwise import Link
from matnb.blocks.kernels.rows.row_extremes import RowSearch, row_extremes
from matnb.blocks.kernels.rows.row_tiles import TILE_BYTES
from matnb.blocks.kernels.sorting.ordering import firsts_record, part_of_firsts
from matnb.blocks.layout import Layout, spread
from matnb.expr.nodes import Expr
from matnb.ops.maps import called
from matnb.ops.ordering import firsts_of
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.kinds import PRODUCT
from matnb.program.operators import Run
from matnb.program.plan import Slot, Workers
from matnb.program.regions import operand_region
from matnb.program.writer import PlanWriter, TaskWriter


@dataclass(frozen=True, eq=False, repr=False)
class RowExtremes(Expr):
    """What is looked for in each row of functions of the product of two dense matrices.

    ``links`` number the product first, then ``inputs``, then themselves; the last one's value is searched,
    or the product without any. With ``is_places`` it is the places of what is found, else the elements, and
    ``keepdims`` keeps the axis of an extreme.
    """

    plain: ClassVar[bool] = True
    left: Expr
    right: Expr
    inputs: tuple[Expr, ...]
    links: tuple[Link, ...]
    search: RowSearch
    is_places: bool
    keepdims: bool

    def __post_init__(self) -> None:
        rows, count = self.left.shape[0], self.search.count
        shape = (rows, max(1, count)) if count or self.keepdims else (rows,)
        dtype = np.dtype(np.intp) if self.is_places else self.element
        self.settle(shape, dtype, False, self.left, self.right, *self.inputs)

    @property
    def element(self) -> np.dtype:
        """The dtype of what is searched."""
        return self.links[-1].dtype if self.links else self.left.dtype

    def _text(self, operands: Sequence[str]) -> str:
        functions = " ".join(link.name for link in self.links)
        found = f"{'largest' if self.search.is_largest else 'smallest'} {max(1, self.search.count)}"
        return f"rowextremes({', '.join(operands)}; {functions or 'product'}, {found})"


@means(RowExtremes)
def _(node: RowExtremes, operands: Sequence[Value]) -> Value:
    """Return the places or elements, of the product as a whole."""
    left, right, *others = map(dense, operands)
    values = [np.asarray(np.matmul(left, right)), *others]
    for link in node.links:
        values.append(np.asarray(called(link, [values[place] for place in link.arguments])))
    searched, search = values[-1] if node.links else values[0], node.search
    if search.count:
        return firsts_of(searched, search.count, search.is_largest, node.is_places)
    if node.is_places:
        find = np.argmax if search.is_largest else np.argmin
        return np.asarray(find(searched, axis=1, keepdims=node.keepdims))
    extreme = np.max if search.is_largest else np.min
    return np.asarray(extreme(searched, axis=1, keepdims=node.keepdims))


# Tasks: for some rows the product with all columns, tile by tile; places and elements are found at once.


@lowers(RowExtremes)
def _(node: RowExtremes, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that find places and elements, and those that pick either."""
    cuts, owners = _rows_of(node, writer, workers)
    columns = () if len(node.shape) == 1 else ((0, node.shape[1]),)
    words = [link.name for link in node.links]
    detail = " ".join(["plus_times;", *words, "and", "search of rows, in tiles"])
    for block in writer.each_block(node, Layout(Grid((cuts, *columns)), owners), PRODUCT, detail):
        packed = _write_search(node, block.region[0], block.owner, writer)
        block.do(Run(part_of_firsts, (node.element, node.is_places, not columns)), block.read(packed))


def _rows_of(
    node: RowExtremes, writer: PlanWriter, workers: Workers
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    # As the left operand's rows; where these are one block, a block a thread.
    layout = writer.registers[node.left].layout
    cuts = layout.grid.cuts[0]
    if len(cuts) > 2:
        width = layout.grid.num_blocks // (len(cuts) - 1)
        return cuts, layout.owners[::width]
    cuts = regular_cuts(node.shape[0], workers.slots)
    return cuts, spread(len(cuts) - 1, workers.numbers)


def _write_search(node: RowExtremes, rows: tuple[int, int], owner: int, writer: PlanWriter) -> Slot:
    name = ("extremes of rows", node.operands, node.links, node.search, rows, owner)
    found = writer.found(name)
    if found is not None:
        return found
    task, inner, columns = TaskWriter(), node.left.shape[1], node.right.shape[1]
    whole: Region = (rows, (0, columns))
    values = [
        writer.read(task, node.left, (rows, (0, inner)), owner),
        writer.read(task, node.right, ((0, inner), (0, columns)), owner),
        *(writer.read(task, one, operand_region(one.shape, whole), owner) for one in node.inputs),
    ]
    task.do(Run(row_extremes, (node.left.dtype, node.links, node.search)), *values)
    num_bytes = (rows[1] - rows[0]) * max(1, node.search.count) * firsts_record(node.element).itemsize
    task.take(TILE_BYTES + num_bytes)
    return writer.add(task, owner, PRODUCT, num_bytes, node, name)

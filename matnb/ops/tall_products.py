"""Products of a tall matrix's transpose with row-wise functions that are never materialized."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import ClassVar

import numpy as np

from matnb.blocks.grid import Grid, regular_cuts
from matnb.blocks.kernels.products.tall_products import TallFactor, rows_of_tile, tall_products
from matnb.blocks.layout import Layout
from matnb.expr.nodes import Expr
from matnb.ops.combining import write_sum
from matnb.ops.maps import called
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.kinds import PRODUCT
from matnb.program.operators import Run
from matnb.program.plan import Slot, Workers
from matnb.program.regions import operand_region
from matnb.program.writer import PlanWriter, TaskWriter

_TILES = 4  # of values that are alive at once


@dataclass(frozen=True, eq=False, repr=False)
class TallProducts(Expr):
    """The transpose of a dense matrix times each of some factors, side by side; a vector gives one column.

    ``inputs`` are the operands of all ``factors`` in order, and have as many rows as ``left`` or are
    stretched to these.
    """

    plain: ClassVar[bool] = True
    left: Expr
    inputs: tuple[Expr, ...]
    factors: tuple[TallFactor, ...]

    def __post_init__(self) -> None:
        shape = (self.left.shape[1], sum(self.widths))
        self.settle(shape, self.left.dtype, False, self.left, *self.inputs)

    @property
    def operands_of_factors(self) -> tuple[tuple[Expr, ...], ...]:
        """The inputs of each factor."""
        inputs = iter(self.inputs)
        return tuple(tuple(islice(inputs, one.num_operands)) for one in self.factors)

    @property
    def widths(self) -> tuple[int, ...]:
        """How many columns each factor has."""
        return tuple(1 if first.ndim == 1 else first.shape[1] for first, *_ in self.operands_of_factors)

    def _text(self, operands: Sequence[str]) -> str:
        left, *others = operands
        inputs = iter(others)
        texts = []
        for factor in self.factors:
            read = ", ".join(islice(inputs, factor.num_operands))
            texts.append(f"{' '.join(link.name for link in factor.links)}({read})" if factor.links else read)
        return f"tallproducts({left}.T @ {', '.join(texts)})"


@means(TallProducts)
def _(node: TallProducts, operands: Sequence[Value]) -> Value:
    """Return the products with each factor as a whole."""
    left, *others = map(dense, operands)
    inputs, products = iter(others), []
    for factor in node.factors:
        values = list(islice(inputs, factor.num_operands))
        for link in factor.links:
            values.append(np.asarray(called(link, [values[place] for place in link.arguments])))
        products.append(np.matmul(left.T, values[-1] if factor.links else values[0]))
    return np.concatenate([one.reshape(left.shape[1], -1) for one in products], axis=1)


# Tasks: for the rows of each block, all products, tile by tile; then the sum of what blocks gave.


@lowers(TallProducts)
def _(node: TallProducts, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that make the products of the rows of each block, and the one that adds them."""
    cuts, owners = _rows_of(node, writer)
    layout = Layout(Grid(tuple(regular_cuts(length, 1) for length in node.shape)), owners[:1])
    words = [*dict.fromkeys(link.name for factor in node.factors for link in factor.links)]
    others = f", {len(node.factors)} at once" if len(node.factors) > 1 else ""
    detail = " ".join(["plus_times of the transpose;", *words, "by tiles of rows"]) + others
    for block in writer.each_block(node, layout, PRODUCT, detail):
        if len(owners) == 1:
            _write_part(block, node, (cuts[0], cuts[-1]), block.owner, writer)
            continue
        parts: list[Slot] = []
        for rows, owner in zip(pairwise(cuts), owners, strict=True):
            task = TaskWriter()
            _write_part(task, node, rows, owner, writer)
            parts.append(writer.part_of(block, task, owner, PRODUCT, block.num_bytes))
        write_sum(block, parts, "plus", writer)


def _rows_of(node: TallProducts, writer: PlanWriter) -> tuple[tuple[int, ...], tuple[int, ...]]:
    # As in the heaviest operand, which stays where it is.
    tall = [one for one in node.operands if one.ndim and one.shape[0] == node.left.shape[0]]
    layout = writer.registers[max(tall, key=writer.bytes_of)].layout
    cuts = layout.grid.cuts[0]
    return cuts, layout.owners[:: layout.grid.num_blocks // (len(cuts) - 1)]


def _write_part(
    task: TaskWriter, node: TallProducts, rows: tuple[int, int], owner: int, writer: PlanWriter
) -> None:
    values = [writer.read(task, node.left, (rows, (0, node.left.shape[1])), owner)]
    for operands, width in zip(node.operands_of_factors, node.widths, strict=True):
        for one in operands:
            whole = (rows,) if operands[0].ndim == 1 else (rows, (0, width))
            values.append(writer.read(task, one, operand_region(one.shape, whole), owner))
    num_bytes, widest = writer.bytes_of(node), max(node.left.shape[1], *node.widths)
    tile_bytes = rows_of_tile(widest) * widest * node.dtype.itemsize
    task.take(_TILES * tile_bytes + 2 * num_bytes)
    task.do(Run(tall_products, (node.factors,)), *values, num_bytes=num_bytes)

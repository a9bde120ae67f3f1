"""Products of what sparse entries are over a product's elements at the same places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from matnb.blocks.grid import Grid, all_of
from matnb.blocks.kernels.products.quotient_products import quotient_product
from matnb.blocks.layout import Layout
from matnb.expr.nodes import Expr
from matnb.ops.lanes import lanes_layout
from matnb.ops.reference import Value, dense, positions
from matnb.ops.registry import lowers, means
from matnb.program.kinds import PRODUCT
from matnb.program.operators import Run
from matnb.program.plan import Workers
from matnb.program.regions import rows_region
from matnb.program.writer import PlanWriter


@dataclass(frozen=True, eq=False, repr=False)
class QuotientProduct(Expr):
    """``(S / maximum(U @ V.T + more, least)) @ W`` of a sparse S, in double precision; W is V where left out.

    Neither the product nor the quotients are stored.
    """

    plain: ClassVar[bool] = True
    entries: Expr
    inputs: tuple[Expr, ...]
    more: float
    least: float

    def __post_init__(self) -> None:
        shape = self.entries.shape[0], self.inputs[-1].shape[1]
        self.settle(shape, self.entries.dtype, False, self.entries, *self.inputs)

    def _text(self, operands: Sequence[str]) -> str:
        return f"quotientproduct({', '.join(operands)})"


@means(QuotientProduct)
def _(node: QuotientProduct, operands: Sequence[Value]) -> Value:
    """Return the product of the quotients by NumPy and SciPy."""
    entries, (left, right, *others) = sp.csr_array(operands[0]), map(dense, operands[1:])
    rows, columns = positions(entries)
    with np.errstate(all="ignore"):
        products = np.maximum((left @ right.T)[rows, columns] + node.more, node.least)
        quotients = sp.csr_array((entries.data / products, (rows, columns)), shape=entries.shape)
        return np.asarray(quotients @ (others[0] if others else right))


# Tasks: some rows of S and U, and all of V and W, which each worker has.


@lowers(QuotientProduct)
def _(node: QuotientProduct, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of rows."""
    matrix, (left, *small) = node.entries, node.inputs
    source, width = lanes_layout(matrix, (1,), writer, workers), node.shape[1]
    layout = Layout(Grid((source.grid.cuts[0], (0, width))), source.owners)
    for block in writer.each_block(node, layout, PRODUCT, "plus_times of quotients at entries"):
        rows = block.region[0]
        values = [
            writer.read(block, one, rows_region(one.shape, rows), block.owner) for one in (matrix, left)
        ]
        values += [block.read(writer.block(one, all_of(one.shape), block.owner)) for one in small]
        # Rows that are no multiple of four elements are copied.
        longer = [one for one in small if one.shape[1] % 4]
        num_elements = sum(one.shape[0] * (one.shape[1] + 3) for one in longer)
        if width % 4 or left.shape[1] % 4:
            num_elements += (rows[1] - rows[0]) * (width + left.shape[1] + 6)
        block.take(num_elements * node.dtype.itemsize)
        block.do(Run(quotient_product, (node.more, node.least)), *values)

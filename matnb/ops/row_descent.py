"""Stochastic gradient descent of linear scores by single rows: whole passes in one task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from matnb.blocks.formats import Dense, csr_block, to_numpy
from matnb.blocks.grid import Grid, all_of
from matnb.blocks.kernels.row_descent import HEAD, Descent, descend
from matnb.blocks.layout import Layout
from matnb.expr.nodes import Expr
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.operators import Run
from matnb.program.plan import Workers
from matnb.program.writer import PlanWriter


@dataclass(frozen=True, eq=False, repr=False)
class RowDescent(Expr):
    """What passes over rows come to, of which each is a step: the numbers of :func:`descend`.

    Inputs are the rows, dense or sparse, their targets, n x k, perhaps with a column of weights, and the
    state before. Steps follow from each other, so one worker has all rows.
    """

    inputs: tuple[Expr, ...]
    descent: Descent

    def __post_init__(self) -> None:
        rows, targets, state = self.inputs
        assert rows.ndim == targets.ndim == 2, "matrices"
        assert rows.shape[0] == targets.shape[0], "a target for each row"
        size = self.descent.state_size(rows.shape[1], targets.shape[1] - self.descent.is_weighted)
        assert state.shape == (size,), "a state of these rows"
        self._settle((HEAD + size + self.descent.passes,), np.dtype(np.float64), False, *self.inputs)

    def _text(self, operands: Sequence[str]) -> str:
        return f"row by row({', '.join(operands)})"


@means(RowDescent)
def _(node: RowDescent, operands: Sequence[Value]) -> Value:
    """Return what the loop does, which only a loop can say."""
    rows = csr_block(sp.csr_array(operands[0])) if sp.issparse(operands[0]) else Dense(dense(operands[0]))
    return to_numpy(descend([rows, *(Dense(dense(one)) for one in operands[1:])], node.descent))


@lowers(RowDescent)
def _(node: RowDescent, writer: PlanWriter, workers: Workers) -> None:
    """Write one task, where most of the rows are."""
    rows = node.inputs[0]
    owner = writer.home_of(rows, all_of(rows.shape))
    layout = Layout(Grid(((0, node.shape[0]),)), (owner,))
    for block in writer.each_block(node, layout, "scan", f"{rows.shape[0]} rows"):
        values = [writer.read(block, one, all_of(one.shape), block.owner) for one in node.inputs]
        copied = 0 if rows.dtype == np.float64 else writer.entries_of(rows, all_of(rows.shape))
        # An order of rows, the state three times.
        block.take(8 * (copied + 2 * rows.shape[0] + 4 * node.shape[0]))
        block.do(Run(descend, (node.descent,)), *values)

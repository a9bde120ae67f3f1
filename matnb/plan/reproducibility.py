"""Whether the last bits of what a program makes may follow where its arrays are cut."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from matnb.blocks.semiring import semiring_named
from matnb.blocks.sums import sums_as_tree
from matnb.expr.nodes import Expr, MaskedMatMul, MatMul, Reduce
from matnb.ops.row_extremes import RowExtremes
from matnb.ops.tall_products import TallProducts
from matnb.program.operators import Accumulate, Multiply, Operator, Push, PutTogether, ScatterBy
from matnb.program.plan import Stage, Task

_ROUNDED = ("plus", "times")  # monoids by which the order of floats shows


def depends_on_layout(stages: Iterable[Stage], tasks: Iterable[Task]) -> bool:
    """Tell whether the last bits of some stages' and tasks' results depend on the layout.

    Products by BLAS do, sums of parts as blocks are, and stages of a kind that says so. Sparse products
    by rows, elementwise functions and sums by the tree over the global index do not.
    """
    if any(_operator_follows(step.operator) for task in tasks for step in task.steps):
        return True
    return any(_stage_follows(stage) for stage in stages)


def _operator_follows(operator: Operator) -> bool:
    match operator:
        case Multiply(semiring, dtype, True) | Push(semiring, dtype):
            return _is_rounded(semiring_named(semiring).add.name, dtype)
        case Accumulate(monoid, dtype) | PutTogether(monoid, dtype) | ScatterBy(_, monoid, dtype):
            return _is_rounded(monoid, dtype)
    return False


def _stage_follows(stage: Stage) -> bool:
    if any(map(_node_follows, stage.inside)):
        return True
    return stage.kind.follows_cuts and stage.expression.dtype.kind in "fc"


def _node_follows(node: Expr) -> bool:
    match node:
        case RowExtremes() | TallProducts():
            return True  # BLAS may round by how high a tile is, and the first one begins where the block does
        case MatMul() | MaskedMatMul():
            is_dense = not any(one.sparse for one in node.operands)
            return is_dense and _is_rounded(semiring_named(node.semiring).add.name, node.dtype)
        case Reduce(operand, operation, axes):
            if operation == "prod":
                # Of complex numbers NumPy rounds as lines are long, of halves once a line.
                return node.dtype.kind == "c" or node.dtype == np.float16
            return operand.sparse and axes == (0,) and sums_as_tree(operation, node.dtype)
    return False


def _is_rounded(monoid: str, dtype: np.dtype) -> bool:
    return monoid in _ROUNDED and dtype.kind in "fc"

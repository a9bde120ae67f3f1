"""Whether the last bits of what a program makes may follow where its arrays are cut."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from matnb.blocks.semiring import semiring_named
from matnb.blocks.sums import sums_as_tree
from matnb.expr.nodes import Expr, MaskedMatMul, MatMul, Reduce
from matnb.ops.mapping import ReduceBlocks, Replicated
from matnb.ops.quotient_products import QuotientProduct
from matnb.ops.row_extremes import RowExtremes
from matnb.ops.tall_products import TallProducts
from matnb.program.operators import Accumulate, Multiply, Operator, Push, PutTogether, ScatterBy
from matnb.program.plan import Stage, Task

# Kinds of stages that go on from block to block, or leave blocks to a user's function; and those that make
# each element in one way however arrays are cut, but for what is asked of their nodes and operators.
_BY_BLOCKS = frozenset({"scan", "differences", "group", "quantile", "interpolate", "call"})
_BY_ELEMENTS = frozenset({
    "concatenate", "convolve", "count", "data", "diagonal", "distinct", "edges", "extent", "gather",
    "kron", "labels", "lanes", "load", "map", "pad", "part", "pick", "places", "product", "put", "read",
    "reduce", "regrid", "repeat", "reshape", "running", "scatter", "search", "segments", "select", "slice",
    "solve", "sort", "spread", "transpose", "triangle", "windows",
})  # fmt: skip
KINDS = _BY_BLOCKS | _BY_ELEMENTS
_ROUNDED = ("plus", "times")  # monoids by which the order of floats shows


def bits_follow_cuts(stages: Iterable[Stage], tasks: Iterable[Task]) -> bool:
    """Tell whether anything among some stages and tasks may have other last bits when blocks are cut anew.

    Products by BLAS do, sums of parts as blocks are, and stages of a kind that is not known. Sparse products
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
    made = stage.expression
    is_known = isinstance(made, MatMul | MaskedMatMul | QuotientProduct | Reduce | ReduceBlocks | Replicated)
    is_alone = stage.kind in ("reduce", "product") and len(stage.inside) == 1
    follows = stage.kind not in _BY_ELEMENTS or is_alone
    return follows and not is_known and made.dtype.kind in "fc"


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

"""The pass that adds up rows of quotients at the entries of a sparse array without storing the quotients."""

from __future__ import annotations

import numpy as np

from matnb.expr.nodes import Elementwise, Expr, MaskedMatMul, MatMul, Transpose
from matnb.expr.traverse import ExprGraph, Rewritten, Uses, rewrite
from matnb.ops.pattern import Pattern
from matnb.ops.quotient_products import QuotientProduct
from matnb.passes.constants import uniform
from matnb.passes.sampling import same_entries

_DOUBLE = np.dtype(np.float64)
_LONGEST = 512  # elements of rows: of longer ones the second look is not in the nearest cache


def multiply_quotients(graph: ExprGraph) -> Rewritten:
    """Multiply quotients of entries by a product's elements with a matrix as they are made."""
    if MaskedMatMul not in graph.kinds or MatMul not in graph.kinds:
        return Rewritten(graph, {})
    return rewrite(graph, _Rule(graph).together, downward=True)


class _Rule:
    # It asks who else reads what is made on the way, and which arrays store the same entries.

    def __init__(self, graph: ExprGraph) -> None:
        self._uses, self._stored = Uses(graph), same_entries(graph)

    def together(self, node: Expr) -> Expr | None:
        # (S / (U V' + c)) W, with U V' at the entries of S, row by row
        match node:
            case MatMul(Elementwise("divide", (matrix, under)) as quotient, right, "plus_times"):
                pass
            case _:
                return None
        if right.ndim != 2 or right.sparse or not matrix.sparse or matrix.ndim != 2:
            return None
        asked = self._asked(under)
        if asked is None or not self._uses.is_alone(quotient):
            return None
        product, more, least = asked
        left, inner = product.left, product.right
        kinds = {one.dtype for one in (matrix, left, inner, right, product, quotient, node)}
        if kinds != {_DOUBLE} or not self._is_at_entries(product, matrix):
            return None
        if left.sparse or inner.sparse or max(left.shape[1], right.shape[1]) > _LONGEST:
            return None
        turned = _turned(inner)
        factors = (left, turned) if turned is right else (left, turned, right)
        return QuotientProduct(matrix, factors, more, least)

    def _asked(self, under: Expr) -> tuple[MaskedMatMul, float, float] | None:
        # The product, what is added to it, and the least that it may be; -0.0 changes nothing.
        more, least = -0.0, -np.inf
        match under:
            case Elementwise("add" | "maximum" as name, inputs) if self._uses.is_alone(under):
                numbers = [value for one in inputs if (value := uniform(one)) is not None]
                others = [one for one in inputs if uniform(one) is None]
                if len(numbers) != 1 or numbers[0].dtype != _DOUBLE or np.isnan(numbers[0]):
                    return None
                more, least = (float(numbers[0]), least) if name == "add" else (more, float(numbers[0]))
                (under,) = others
        match under:
            case MaskedMatMul(_, _, _, "plus_times", False) if self._uses.is_alone(under):
                return under, more, least
        return None

    def _is_at_entries(self, product: MaskedMatMul, matrix: Expr) -> bool:
        match product.mask:
            case Pattern(inner):
                return self._stored.get(inner, inner) is self._stored.get(matrix, matrix)
        return False


def _turned(node: Expr) -> Expr:
    match node:
        case Transpose(inner, (1, 0)):
            return inner
    return Transpose(node, (1, 0))

"""The pass that has a tall matrix read once for products of its transpose, and functions made on the way."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from matnb.blocks.kernels.products.tall_products import TallFactor
from matnb.expr.nodes import Expr, Index, MatMul, Transpose
from matnb.expr.traverse import ExprGraph, Rewritten, Uses, rewrite
from matnb.ops.tall_products import TallProducts
from matnb.passes.row_chains import chain_of, made_for

_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
# Rows and elements of a matrix from which on it is worth it; elements of a product, which is added to once a
# tile, and columns, up to which it is.
_FEWEST_ROWS, _WORTH_TILES, _MOST_SUMS, _MOST_COLUMNS = 1 << 12, 1 << 18, 1 << 20, 1 << 11


def multiply_tall(graph: ExprGraph) -> Rewritten:
    """Make products of one tall matrix's transpose at once, and functions of other factors on the way."""
    if MatMul not in graph.kinds or Transpose not in graph.kinds:
        return Rewritten(graph, {})
    made = _at_once(graph)
    if not made:
        return Rewritten(graph, {})
    return rewrite(graph, made.get, downward=True, hides=False)


@dataclass(frozen=True)
class _Factor:
    # What a transpose meets in a product: an array, or functions of arrays, which come with their operands.
    product: MatMul
    operands: tuple[Expr, ...]
    meaning: TallFactor

    @property
    def width(self) -> int:
        return 1 if self.product.ndim == 1 else self.product.shape[1]


def _at_once(graph: ExprGraph) -> dict[Expr, Expr]:
    # X' f(x), X' g(y) = the columns of X' [f(x), g(y)], where neither product needs the other
    groups: dict[tuple[Expr, int], list[MatMul]] = {}
    depths: dict[Expr, int] = {}  # how many such products are made one after the other
    for node in graph.order:
        below = () if node in graph.known else node.operands
        depth = max((depths[one] for one in below), default=0)
        if isinstance(node, MatMul) and node not in graph.known and _is_tall(node, graph):
            depth += 1
            groups.setdefault((node.left, depth), []).append(node)
        depths[node] = depth + isinstance(node, TallProducts)
    if not groups:
        return {}
    uses, made = Uses(graph), dict[Expr, Expr]()
    for (turned, _), products in groups.items():
        factors = [_factor_of(one, uses) for one in products]
        if len(factors) > 1 or factors[0].meaning.links:
            made.update(_columns(turned.operands[0], factors))
    return made


def _columns(left: Expr, factors: list[_Factor]) -> dict[Expr, Expr]:
    inputs = tuple(operand for one in factors for operand in one.operands)
    together = TallProducts(left, inputs, tuple(one.meaning for one in factors))
    if len(factors) == 1 and factors[0].product.ndim == 2:
        return {factors[0].product: together}
    rows, found = slice(0, left.shape[1], 1), dict[Expr, Expr]()
    for one, end in zip(factors, accumulate(one.width for one in factors), strict=True):
        columns = end - 1 if one.product.ndim == 1 else slice(end - one.width, end, 1)
        found[one.product] = Index(together, (rows, columns))
    return found


def _is_tall(node: MatMul, graph: ExprGraph) -> bool:
    match node:
        case MatMul(Transpose(inner, (1, 0)) as turned, right, "plus_times"):
            is_dense = not inner.sparse and not right.sparse and turned not in graph.known
            alike = inner.dtype == right.dtype == node.dtype and node.dtype in _FLOATS
            fits = right.ndim <= 2 and node.size <= _MOST_SUMS and max(node.shape) <= _MOST_COLUMNS
            is_worth = inner.shape[0] >= _FEWEST_ROWS and inner.size >= _WORTH_TILES
            return is_dense and alike and fits and is_worth
    return False


def _factor_of(product: MatMul, uses: Uses) -> _Factor:
    # A vector is made before: it is small beside the matrix.
    head = product.right
    plain = _Factor(product, (head,), TallFactor(1))
    if head.ndim != 2 or not uses.is_alone(head):
        return plain
    functions = made_for(head, uses, lambda node: False)
    read = [one for function in functions for one in function.operands if one not in functions]
    first = next((one for one in read if one.shape == head.shape), None)
    if first is None or any(one.sparse for one in read):
        return plain
    others, links = chain_of(head, first, functions)
    return _Factor(product, (first, *others), TallFactor(1 + len(others), links)) if links else plain

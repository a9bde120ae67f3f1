"""The pass that has the extremes of a product's rows found tile by tile, so that the product is not made."""

from __future__ import annotations

import numpy as np

from matnb.blocks.kernels.rows.row_extremes import RowSearch
from matnb.expr.nodes import Expr, MatMul, Reduce, Transpose
from matnb.expr.traverse import ExprGraph, Rewritten, Uses, rewrite
from matnb.ops.folding import Extreme
from matnb.ops.ordering import Smallest, TopK
from matnb.ops.row_extremes import RowExtremes
from matnb.passes.row_chains import chain_of, made_for

_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
# Elements of a product, and rows, from which on tiles are worth it; bytes of what each worker is given whole.
_WORTH_TILES, _FEWEST_ROWS, _MOST_BYTES = 1 << 18, 64, 64 * 2**20


def search_rows(graph: ExprGraph) -> Rewritten:
    """Find the extremes, or the first elements, of rows of functions of a product without making it."""
    if MatMul not in graph.kinds or graph.kinds.isdisjoint((Extreme, Reduce, Smallest, TopK)):
        return Rewritten(graph, {})
    return rewrite(graph, _RowSearcher(Uses(graph)).searched, downward=True)


class _RowSearcher:
    # The rule, which asks who else reads what is made on the way.

    def __init__(self, uses: Uses) -> None:
        self._uses = uses

    def searched(self, node: Expr) -> Expr | None:
        # argmin(f(A B, x), axis 1) = the places of the least in each row of f(A B, x)
        asked = _asked(node)
        if asked is None:
            return None
        search, is_places, keepdims = asked
        (head,) = node.operands
        inside = self._inside(head)
        products = [one for one in inside if isinstance(one, MatMul)]
        if len(products) != 1 or not _is_worth(products[0]):
            return None
        (product,) = products
        assert isinstance(product, MatMul)
        inputs, links = chain_of(head, product, [one for one in inside if one is not product])
        if any(one.sparse or one.shape == head.shape for one in inputs):
            return None
        return RowExtremes(product.left, product.right, inputs, links, search, is_places, keepdims)

    def _inside(self, head: Expr) -> list[Expr]:
        # What is made for the searches of a head's rows alone, element by element, and products.
        if head in self._uses.kept or head.dtype not in _FLOATS or head.sparse:
            return []
        if any(_asked(one) is None for one in self._uses.of(head)):
            return []
        return made_for(head, self._uses, _is_product)


def _asked(node: Expr) -> tuple[RowSearch, bool, bool] | None:
    # What is looked for in rows, whether places are, and whether their axis stays.
    match node:
        case Extreme(operand, "argmin" | "argmax" as operation, (1,), keepdims) if operand.ndim == 2:
            return RowSearch(0, operation == "argmax"), True, keepdims
        case Reduce(operand, "min" | "max" as operation, (1,), keepdims) if operand.ndim == 2:
            same = node.dtype == operand.dtype
            return (RowSearch(0, operation == "max"), False, keepdims) if same else None
        case Smallest(_, count, is_places):
            return RowSearch(count, False), is_places, True
        case TopK(_, count, is_largest, is_places):
            return RowSearch(count, is_largest), is_places, True
    return None


def _is_product(node: Expr) -> bool:
    match node:
        case MatMul(left, right, "plus_times"):
            dense = not left.sparse and not right.sparse and left.ndim == right.ndim == 2
            return dense and left.dtype == right.dtype == node.dtype and node.dtype in _FLOATS
    return False


def _is_worth(product: MatMul) -> bool:
    # A transpose on the left is made where it is not read by rows.
    rows, right = product.shape[0], product.right
    fits = right.size * right.dtype.itemsize <= _MOST_BYTES and product.left.size > 0
    return fits and product.size >= _WORTH_TILES and rows >= _FEWEST_ROWS and not _turns(product.left)


def _turns(node: Expr) -> bool:
    return isinstance(node, Transpose)

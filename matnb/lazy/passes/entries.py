"""How many elements an array stores, as far as expressions alone tell: a guess for sparse ones."""

from __future__ import annotations

from collections.abc import Container
from math import prod

from matnb.blocks.kernels.elementwise import ANNIHILATORS
from matnb.lazy.expr import Create, Elementwise, Expr, Index, Load, MaskedMatMul, MatMul, Regrid, Transpose
from matnb.lazy.holdings import held
from matnb.lazy.traverse import topological

_A_ROW = 16  # where nothing is known of a sparse array: an average row of a graph


class Entries:
    """Estimates numbers of stored elements; what is below ``known`` expressions is not looked at."""

    def __init__(self, known: Container[Expr] = ()) -> None:
        self._known = known
        self._found: dict[Expr, float] = {}

    def of(self, root: Expr) -> float:
        """Return how many elements an expression stores, about."""
        for node in topological([root], _Either(self._found, self._known), _sparse_operands):
            if node not in self._found:
                most = float(prod(node.shape))
                self._found[node] = min(self._guess(node), most) if node.sparse else most
        return self._found[root]

    def _guess(self, node: Expr) -> float:
        found = {one: self._found.get(one, float(prod(one.shape))) for one in node.operands}
        if node in self._known and node.operands:
            return _A_ROW * node.shape[0]
        match node:
            case Load(source):
                return source.estimated_entries()
            case Create():
                return min(node.shape)
            case Transpose(operand) | Regrid(operand):
                return found[operand]
            case Index(operand):
                return max(1.0, found[operand] * prod(node.shape) / max(1, prod(operand.shape)))
            case MaskedMatMul(_, _, mask, _, complement) if mask.sparse and not complement:
                return found[mask]
            case MatMul(left, right) | MaskedMatMul(left, right):
                # each entry of the left meets an average row of the right
                return found[left] * found[right] / max(1, right.shape[0])
            case Elementwise(name, inputs):
                counts = {place: found[one] for place, one in enumerate(inputs) if one.sparse}
                meet = [count for place, count in counts.items() if place in ANNIHILATORS.get(name, ())]
                return min(meet) if meet else sum(counts.values())
        block = held(node)
        return _A_ROW * node.shape[0] if block is None else block.nnz


def _sparse_operands(node: Expr) -> tuple[Expr, ...]:
    # How many elements a dense array has its shape tells.
    return tuple(one for one in node.operands if one.sparse) if node.sparse else ()


class _Either:
    def __init__(self, one: Container[Expr], other: Container[Expr]) -> None:
        self._one, self._other = one, other

    def __contains__(self, node: object) -> bool:
        return node in self._one or node in self._other

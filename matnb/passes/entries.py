"""How many elements an array stores, as far as expressions alone tell: a guess for sparse ones."""

from __future__ import annotations

from collections.abc import Container, Mapping
from math import prod

from matnb.blocks.semiring import ANNIHILATORS
from matnb.expr.client_data import held
from matnb.expr.nodes import Create, Elementwise, Expr, Index, Load, MaskedMatMul, MatMul, Regrid, Transpose
from matnb.expr.traverse import Either, topological
from matnb.ops.contracting import Kron
from matnb.ops.coordinates import FromCoordinates
from matnb.ops.diagonals import DiagonalMatrix
from matnb.ops.dynamic_slicing import DynamicSlice, DynamicUpdate
from matnb.ops.indexing import Pick, Put, PutWhere
from matnb.ops.pattern import AtEntries, Pattern
from matnb.ops.reshaping import Repeat, RepeatEach
from matnb.ops.selecting import Compress, Expand, Select

_A_ROW = 16  # where nothing is known of a sparse array: an average row of a graph


class EntryEstimates:
    """Estimates numbers of stored elements; what is below ``known`` expressions is not looked at."""

    def __init__(self, known: Container[Expr] = ()) -> None:
        self._known = known
        self._found: dict[Expr, float] = {}

    def of(self, root: Expr) -> float:
        """Return how many elements an expression stores, about."""
        for node in topological([root], Either(self._found, self._known), _sparse_operands):
            if node not in self._found:
                most = float(prod(node.shape))
                self._found[node] = min(self._guess(node), most) if node.sparse else most
        return self._found[root]

    def _guess(self, node: Expr) -> float:
        if node in self._known and node.operands:
            return _A_ROW * node.shape[0]
        return guessed(
            node, {one: self._found.get(one, float(prod(one.shape))) for one in node.operands}, _A_ROW
        )


def guessed(node: Expr, found: Mapping[Expr, float], row: float) -> float:
    """Return how many elements a sparse expression stores, about, from those that its operands do.

    Parameters
    ----------
    found
        The operands'.
    row
        What is taken for a row where nothing is known.
    """
    match node:
        case Load(source):
            return source.estimated_entries()
        case Create():
            return min(node.shape)
        case FromCoordinates(values):
            return values.size
        case Transpose(operand) | Regrid(operand) | Select(operand) | Pattern(operand):
            return found[operand]
        case AtEntries(_, operand):
            return found[operand]
        case Kron(left, right):
            return found[left] * found[right]
        case DiagonalMatrix(operand):
            return operand.size
        case (
            Index(operand)
            | Compress(operand)
            | Pick(operand)
            | DynamicSlice(operand)
            | Repeat(operand)
            | RepeatEach(operand)
        ):
            return max(1.0, found[operand] * prod(node.shape) / max(1, prod(operand.shape)))
        case (
            Put(operand=operand, value=value)
            | PutWhere(operand=operand, value=value)
            | Expand(operand=operand, value=value)
            | DynamicUpdate(operand=operand, value=value)
        ):
            return found[operand] + found[value]
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
    if block is None and any(one.sparse for one in node.operands):
        return sum(found[one] for one in node.operands if one.sparse)
    return row * node.shape[0] if block is None else block.nnz


def _sparse_operands(node: Expr) -> tuple[Expr, ...]:
    # How many elements a dense array has its shape tells.
    return tuple(one for one in node.operands if one.sparse) if node.sparse else ()

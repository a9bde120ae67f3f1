"""Estimates how many elements an array stores from expressions alone."""

from __future__ import annotations

from collections.abc import Container, Mapping
from math import prod

from matnb.expr.client_data import held
from matnb.expr.nodes import Expr
from matnb.expr.traverse import Either, topological

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
    block = held(node)
    return node.estimated_entries(found, row) if block is None else block.nnz


def _sparse_operands(node: Expr) -> tuple[Expr, ...]:
    # How many elements a dense array has its shape tells.
    return tuple(one for one in node.operands if one.sparse) if node.sparse else ()

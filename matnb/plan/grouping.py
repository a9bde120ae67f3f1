"""Groups reductions that read the same blocks, so that one pass computes them all."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from matnb.blocks.kernels.reductions.reductions import is_multiplied_in_order
from matnb.expr.nodes import Broadcast, Elementwise, Expr, Literal, Reduce
from matnb.program.matching import Wiring

Groups = Mapping[Reduce, tuple[Reduce, ...]]


def reduction_groups(order: Sequence[Expr], wiring: Wiring, stored: Container[Expr]) -> Groups:
    """Return for every reduction that is made in one pass with others all of them, the first one first.

    They go over all axes of dense arrays of one shape that are made from each other, or from the same arrays,
    element by element; and none needs another one's value.

    Parameters
    ----------
    order
        Every expression, operands before users.
    wiring
        What they are made from.
    stored
        Those whose blocks are there already.
    """
    found: dict[tuple[Expr, int], list[Reduce]] = {}
    depths: dict[Expr, int] = {}  # most reductions on a way below, itself among them
    heads: dict[Expr, Expr] = {}  # of what is connected element by element

    def head_of(node: Expr) -> Expr:
        while heads.setdefault(node, node) is not node:
            heads[node] = heads[heads[node]]
            node = heads[node]
        return node

    reductions = []
    for node in order:
        if node in stored:
            depths[node] = 0
            continue
        depth = max((depths[operand] for operand in wiring.operands(node)), default=0)
        depths[node] = depth + isinstance(node, Reduce)
        if isinstance(node, Reduce):
            if _goes_over_all(node):
                reductions.append(node)
        elif isinstance(node, Elementwise | Broadcast) and wiring.fuses_operands(node):
            for operand in node.operands:
                if operand.shape == node.shape and not isinstance(operand, Literal):
                    heads[head_of(operand)] = head_of(node)
    for node in reductions:
        found.setdefault((head_of(node.operand), depths[node]), []).append(node)
    return {node: tuple(group) for group in found.values() if len(group) > 1 for node in group}


def _goes_over_all(node: Reduce) -> bool:
    given = node.operand
    is_apart = is_multiplied_in_order(node.operation, node.dtype)  # it goes on from block to block
    return given.ndim == len(node.axes) > 0 and not given.sparse and given.size > 0 and not is_apart

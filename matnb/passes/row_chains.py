"""Elementwise functions with a single reader, which can compute them a few rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from matnb.blocks.kernels.elementwise.elementwise import Link
from matnb.expr.nodes import Broadcast, Elementwise, Expr
from matnb.expr.traverse import Uses, topological

_MOST_FUNCTIONS = 64


def made_for(head: Expr, uses: Uses, is_made: Callable[[Expr], bool]) -> list[Expr]:
    """Return what is made for an expression alone, itself first: of its shape and dense.

    That is functions of real elements, and what ``is_made`` allows, below which nothing is looked for. What
    has a value or a name is none of it.
    """
    found: list[Expr] = []
    waiting = [head]
    while waiting:
        node = waiting.pop()
        if node in found or node.shape != head.shape or node.sparse or len(found) > _MOST_FUNCTIONS:
            continue
        is_function = _is_function(node)
        if (is_function or is_made(node)) and (node is head or node not in uses.kept):
            found.append(node)
            waiting += node.operands if is_function else []
    while True:
        others = [one for one in found if one is not head and any(user not in found for user in uses.of(one))]
        if not others:
            return found
        found = [one for one in found if one not in others]


def _is_function(node: Expr) -> bool:
    match node:
        case Elementwise():
            return all(one.dtype.kind != "c" for one in node.operands)
        case Broadcast(inner):
            return not inner.sparse
    return False


def chain_of(head: Expr, first: Expr, functions: Iterable[Expr]) -> tuple[tuple[Expr, ...], tuple[Link, ...]]:
    """Return what functions read beside their first operand, and they themselves as links.

    These number the first operand, then the others, then themselves in order.
    """
    within = set(functions)
    outside: dict[Expr, int] = {first: 0}
    order = [one for one in topological([head], _Outside(within)) if one in within]
    for node in order:
        for one in node.operands:
            if one not in within:
                outside.setdefault(one, len(outside))
    numbers, links = dict(outside), list[Link]()
    for node in order:
        arguments = tuple(numbers[one] for one in node.operands)
        if isinstance(node, Broadcast):  # functions stretch what they read
            numbers[node] = arguments[0]
            continue
        assert isinstance(node, Elementwise)
        numbers[node] = len(outside) + len(links)
        links.append(Link(node.name, node.input_dtypes, node.dtype, node.output, False, arguments))
    inputs = tuple(one for one in outside if one is not first)
    return inputs, tuple(links)


class _Outside:
    # All but some expressions.

    def __init__(self, functions: set[Expr]) -> None:
        self._functions = functions

    def __contains__(self, node: object) -> bool:
        return node not in self._functions

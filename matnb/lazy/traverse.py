"""Walks over expressions; iterative, since a loop in a cell makes graphs thousands deep."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from operator import attrgetter

from matnb.lazy.expr import Data, Expr

Rule = Callable[[Expr], Expr | None]
Operands = Callable[[Expr], tuple[Expr, ...]]
AS_RECORDED: Operands = attrgetter("operands")


def topological(
    roots: Iterable[Expr], known: Container[Expr] = (), operands: Operands = AS_RECORDED
) -> list[Expr]:
    """Return every expression under the roots once, operands before their users.

    Expressions in ``known`` are included, but not what is below them. ``operands`` tells what an expression
    is made from, where that is not what was recorded.
    """
    order: list[Expr] = []
    seen: set[Expr] = set()
    stack: list[tuple[Expr, bool]] = [(root, False) for root in reversed(list(roots))]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            if node not in known:
                stack.extend((operand, False) for operand in reversed(operands(node)) if operand not in seen)
    return order


def consumers(
    order: Iterable[Expr], known: Container[Expr] = (), operands: Operands = AS_RECORDED
) -> dict[Expr, list[Expr]]:
    """Return the users of every expression, in the given order, as often as they use it."""
    users: dict[Expr, list[Expr]] = {}
    for node in order:
        users.setdefault(node, [])
        if node not in known:
            for operand in operands(node):
                users.setdefault(operand, []).append(node)
    return users


def rewrite(roots: Mapping[str, Expr], rule: Rule, known: Container[Expr] = ()) -> dict[str, Expr]:
    """Apply a rule from the leaves up, again and again until it changes nothing, and return the new roots.

    Parameters
    ----------
    roots
        Named expressions.
    rule
        Returns the expression that replaces a node, or None to leave it.
    known
        Expressions whose values exist already; they are left as they are, and no rule sees what is below
        them, which need not exist any more.
    """
    hidden = {_stand_in(node): node for node in topological(roots.values(), known) if node in known}
    current = _replaced(roots, {node: stand_in for stand_in, node in hidden.items()})
    while True:
        new: dict[Expr, Expr] = {}
        for node in topological(current.values()):
            result = node.with_operands(*(new[operand] for operand in node.operands))
            while (changed := rule(result)) is not None and changed is not result:
                result = changed
            new[node] = result
        if all(new[root] is root for root in current.values()):
            return _replaced(current, hidden)
        current = {name: new[root] for name, root in current.items()}


def _stand_in(node: Expr) -> Expr:
    return Data(b"known " + node.digest, node.shape, node.dtype, node.sparse)


def _replaced(roots: Mapping[str, Expr], others: Mapping[Expr, Expr]) -> dict[str, Expr]:
    if not others:
        return dict(roots)
    new: dict[Expr, Expr] = {}
    for node in topological(roots.values(), others):
        new[node] = others.get(node) or node.with_operands(*(new[operand] for operand in node.operands))
    return {name: new[root] for name, root in roots.items()}

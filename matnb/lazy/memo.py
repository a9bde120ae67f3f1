"""Which results are worth keeping after a run; the store keeps and evicts them."""

from __future__ import annotations

from collections.abc import Container

from matnb.lazy.expr import Expr, Load, Transpose


def worth_keeping(node: Expr, live: Container[Expr]) -> bool:
    """Tell whether the blocks of an expression stay when they are computed on the way to a value.

    Those of a live handle do, so that the next iteration of a loop starts from them; and the transpose of a
    sparse array that is kept itself, since `A.T @ x` in a loop would transpose A every time.
    """
    return node in live or _is_kept_transpose(node, live)


def lifetime(node: Expr) -> Expr:
    """Return the expression with whose handles a kept array goes: a kept transpose stays with its operand."""
    match node:
        case Transpose(operand) if node.sparse:
            return operand
    return node


def _is_kept_transpose(node: Expr, live: Container[Expr]) -> bool:
    match node:
        case Transpose(operand) if node.sparse:
            return operand in live or isinstance(operand, Load)
    return False

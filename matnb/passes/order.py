"""The pass that sorts the operands of commutative operations, so that `b + a` is `a + b`."""

from __future__ import annotations

from matnb.expr.nodes import Elementwise, Expr, Literal
from matnb.expr.stable_order import place_of
from matnb.expr.traverse import ExprGraph, Rewritten, rewrite

# Operations by what they are with their operands exchanged, and the kinds of dtypes for which the bits stay.
# A complex product is rounded differently; of a zero and a negative zero, maximum gives the first.
_ANY, _REAL, _WHOLE = "biufc", "biuf", "biu"
_EXCHANGED = {
    "add": ("add", _ANY),
    "multiply": ("multiply", _REAL),
    "bitwise_and": ("bitwise_and", _WHOLE),
    "bitwise_or": ("bitwise_or", _WHOLE),
    "bitwise_xor": ("bitwise_xor", _WHOLE),
    "logical_and": ("logical_and", _ANY),
    "logical_or": ("logical_or", _ANY),
    "logical_xor": ("logical_xor", _ANY),
    "equal": ("equal", _ANY),
    "not_equal": ("not_equal", _ANY),
    "hypot": ("hypot", _REAL),
    "maximum": ("maximum", _WHOLE),
    "minimum": ("minimum", _WHOLE),
    "less": ("greater", _REAL),
    "greater": ("less", _REAL),
    "less_equal": ("greater_equal", _REAL),
    "greater_equal": ("less_equal", _REAL),
}


def order_operands(graph: ExprGraph) -> Rewritten:
    """Order the operands of what commutes by what they are, alike in every run; constants last."""
    # Nothing is hidden: another order over stored arrays than before they were stored would find none again.
    return rewrite(graph, ordered, hides=False)


def ordered(node: Expr) -> Expr | None:
    """Return an operation with its operands exchanged, where they are not in order."""
    # f(x, y) = g(y, x), where g is f if f commutes, and > for <
    match node:
        case Elementwise(name, (first, second), (dtype, other), element) if type(node) is Elementwise and (
            name in _EXCHANGED and dtype == other and _place(second) < _place(first)
        ):
            exchanged, kinds = _EXCHANGED[name]
            if dtype.kind in kinds:
                return Elementwise(exchanged, (second, first), (dtype, other), element)
    return None


def _place(operand: Expr) -> tuple[bool, tuple[bytes, bytes]]:
    return isinstance(operand, Literal), place_of(operand)

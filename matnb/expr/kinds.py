"""What two expressions have in common that differ at most in what they are made from."""

from __future__ import annotations

from collections.abc import Hashable

from matnb.expr.control import Body
from matnb.expr.interning import node_fields
from matnb.expr.nodes import Expr


def kind_of(node: Expr) -> Hashable:
    """Return what two expressions have in common that differ at most in what they are made from."""
    values = tuple(_plain(getattr(node, name)) for name in node_fields(type(node)).parameter_names)
    return type(node), values, node.shape, node.dtype, node.sparse, len(node.operands)


def _plain(value: object) -> Hashable:
    # 1, 1.0 and True are equal, as 0.0 and -0.0 are, and slices have no hash.
    match value:
        case Body():
            return value.digest
        case tuple():
            return tuple(map(_plain, value))
        case slice():
            return slice, value.start, value.stop, value.step
        case bool() | int() | float() | complex():
            return type(value), repr(value)
    assert isinstance(value, Hashable)
    return value

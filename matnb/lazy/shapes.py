"""Expressions of other shapes: the same elements in another one, or a slice along an axis."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import prod

from matnb.blocks.creation import Full
from matnb.errors import DTypeError, ShapeError
from matnb.expr.nodes import Create, Expr, Index, Literal, Shape
from matnb.lazy.indexing.keys import normalize_key
from matnb.ops.reshaping import Reshape


def reshaped(node: Expr, shape: Sequence[int]) -> Expr:
    """Return the expression of an array's elements, last axis fastest, in another shape.

    Parameters
    ----------
    shape
        Its lengths; one may be -1, which stands for what the others leave.

    Raises
    ------
    ShapeError
        When the elements do not fit.
    """
    lengths = _lengths(node, shape)
    if isinstance(node, Reshape):
        inner = node.operand
        if not inner.sparse or len(lengths) == 2:
            node = inner
    if lengths == node.shape:
        return node
    match node:
        case Literal(content, _, element):
            return Literal(content, lengths, element)
        case Create(Full(_, value, dtype)):
            return Create(Full(lengths, value, dtype))
    return Reshape(node, lengths)


def _lengths(node: Expr, shape: Sequence[int]) -> Shape:
    try:
        lengths = tuple(map(operator.index, shape))
    except TypeError:
        raise DTypeError(f"reshape: shape {shape!r} has lengths that are not integers") from None
    if lengths.count(-1) > 1 or any(length < -1 for length in lengths):
        raise ShapeError(f"reshape: shape {lengths} has more than one unknown, or a negative length")
    if -1 in lengths:
        others = prod(length for length in lengths if length != -1)
        if others == 0 or node.size % others:
            raise ShapeError(f"reshape: the {node.size} elements of shape {node.shape} do not fit {lengths}")
        lengths = tuple(node.size // others if length == -1 else length for length in lengths)
    if prod(lengths) != node.size:
        raise ShapeError(f"reshape: the {node.size} elements of shape {node.shape} do not fit {lengths}")
    return lengths


def flattened(node: Expr) -> Expr:
    """Return the expression of all elements along one axis."""
    return node if node.ndim == 1 else reshaped(node, (node.size,))


def sliced(node: Expr, axis: int, part: slice) -> Expr:
    """Return the expression of a slice along one axis."""
    return Index(node, normalize_key((slice(None),) * axis + (part,), node.shape))

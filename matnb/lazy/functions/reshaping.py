"""NumPy's functions that give an array's elements another shape."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import prod

import numpy as np

from matnb.blocks.creation import Full
from matnb.errors import DTypeError, OptionError, ShapeError
from matnb.expr.nodes import Create, Expr, Literal, Shape, Transpose
from matnb.lazy.array import DistArray, expression_of, wrap
from matnb.lazy.indexing.canonical import one_axis
from matnb.lazy.registry import implements
from matnb.ops.reshaping import Reshape

ShapeLike = int | Sequence[int]


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
        raise DTypeError(f"reshape: shape {shape!r} has lengths that are no whole numbers") from None
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


def laned(node: Expr, axis: int | None) -> tuple[Expr, int]:
    """Return an array and the number of an axis of it: of all elements along one axis where None is given.

    An array without axes has a first and last one, as in NumPy's functions that read along an axis.
    """
    if axis is None or (not node.ndim and axis in (0, -1)):
        return node if node.ndim == 1 else reshaped(node, (node.size,)), 0
    return node, one_axis(axis, node.ndim)


@implements(np.reshape)
def reshape(
    a: object, /, shape: ShapeLike, order: str | None = "C", *, copy: bool | None = None
) -> DistArray:
    """``numpy.reshape``; order "A" is "C", since blocks have no order in memory that a user sees."""
    if copy is False:
        raise OptionError("reshape(copy=False): arrays are never changed in place, so there are no views")
    lengths = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    node = expression_of(a)
    if order not in ("C", "F", "A", None):
        raise OptionError(f"reshape: order {order!r}: choose 'C', 'F' or 'A'")
    if order == "F":
        return wrap(_reversed(reshaped(_reversed(node), lengths[::-1])))
    return wrap(reshaped(node, lengths))


@implements(np.ravel)
def ravel(a: object, order: str = "C") -> DistArray:
    """``numpy.ravel``; orders "A" and "K" are "C"."""
    if order not in ("C", "F", "A", "K"):
        raise OptionError(f"ravel: order {order!r}: choose 'C', 'F', 'A' or 'K'")
    node = expression_of(a)
    return wrap(reshaped(_reversed(node) if order == "F" else node, (-1,) if node.size else (0,)))


def _reversed(node: Expr) -> Expr:
    return Transpose(node, tuple(reversed(range(node.ndim)))) if node.ndim > 1 else node

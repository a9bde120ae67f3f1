"""NumPy's ufuncs on vectors and matrices: matmul, vecdot, matvec, vecmat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matnb.errors import ShapeError, UnsupportedError
from matnb.expr.nodes import Expr, Reduce, Transpose, broadcast_shapes
from matnb.lazy import ufuncs
from matnb.lazy.contraction import contracted
from matnb.lazy.indexing.canonical import one_axis


def called(ufunc: np.ufunc, operands: Sequence[Expr], axis: int = -1) -> Expr:
    """Return the expression of a ufunc that works on vectors or matrices.

    Parameters
    ----------
    axis
        Of the vectors that ``vecdot`` multiplies.

    Raises
    ------
    ShapeError
        When the shapes do not fit.
    UnsupportedError
        For a ufunc that is not one of NumPy's own four.
    """
    left, right = operands[0], operands[-1]
    match ufunc.__name__:
        case "matmul":
            return ufuncs.call(np.matmul, (left, right))[0]
        case "vecdot":
            return vecdot(left, right, axis)
        case "matvec":
            return _stretched(left, right, 2, 1, "matvec")
        case "vecmat":
            return _stretched(ufuncs.call(np.conjugate, (left,))[0], right, 1, 2, "vecmat")
    raise UnsupportedError(f"the ufunc {ufunc.__name__!r} is not recorded: call it on x.compute()")


def vecdot(left: Expr, right: Expr, axis: int = -1) -> Expr:
    """Return the products of vectors along an axis of two arrays that broadcast."""
    if not left.shape or not right.shape:
        raise ShapeError("vecdot needs arrays of at least one axis, not a scalar")
    first, second = one_axis(axis, left.ndim), one_axis(axis, right.ndim)
    if left.shape[first] != right.shape[second]:
        raise ShapeError(
            f"vecdot of shapes {left.shape} and {right.shape}: axis {axis} must be equally long in both"
        )
    if left.ndim - first != right.ndim - second:  # counted from the first axis, of different numbers of axes
        left, right = _moved(left, first), _moved(right, second)
        first, second = left.ndim - 1, right.ndim - 1
    ndim = max(left.ndim, right.ndim)
    return products_summed(left, right, (ndim - (left.ndim - first),))


def _moved(node: Expr, axis: int) -> Expr:
    return Transpose(node, (*(one for one in range(node.ndim) if one != axis), axis))


def products_summed(left: Expr, right: Expr, axes: tuple[int, ...]) -> Expr:
    """Return the sum of ``conj(left) * right`` over axes, in the dtype of the product."""
    if left.dtype.kind == "c":
        (left,) = ufuncs.call(np.conjugate, (left,))
    (product,) = ufuncs.call(np.multiply, (left, right))
    return Reduce(product, "any" if product.dtype.kind == "b" else "sum", axes, False, product.dtype)


def _stretched(left: Expr, right: Expr, first: int, second: int, name: str) -> Expr:
    # matrices with vectors, or vectors with matrices, whose other axes broadcast
    if left.ndim < first or right.ndim < second:
        raise ShapeError(f"{name} of shapes {left.shape} and {right.shape}: give vectors and matrices")
    inner = right.shape[-second]
    if left.shape[-1] != inner:
        raise ShapeError(
            f"{name} of shapes {left.shape} and {right.shape}: the last axis of the first, {left.shape[-1]}, "
            f"must be {inner}"
        )
    batch = broadcast_shapes(left.shape[:-first], right.shape[:-second], name=name)
    stack = tuple(range(len(batch)))
    row, column, along = len(batch), len(batch) + 1, len(batch) + 2
    own = (*stack[len(batch) - left.ndim + first :], *((row,) if first == 2 else ()), along)
    other = (*stack[len(batch) - right.ndim + second :], along, *((column,) if second == 2 else ()))
    output = (*stack, row if first == 2 else column)
    return contracted([left, right], [own, other], output, np.result_type(left.dtype, right.dtype))

"""Reductions in which NaN takes no part, as expressions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matnb.errors import DTypeError
from matnb.expr.nodes import Broadcast, Elementwise, Expr
from matnb.lazy import folds, reductions
from matnb.lazy.reductions import Axis, check_mask, only_where
from matnb.lazy.ufuncs import astype, call, literal, number_dtype

_FOLDS = {"min": np.fmin, "max": np.fmax}


def has_nan(node: Expr) -> bool:
    """Tell whether elements of a dtype like this array's can be NaN."""
    return node.dtype.kind in "fc"


def without_nan(node: Expr, number: complex) -> Expr:
    """Return an array with a number in the place of NaN."""
    if not has_nan(node):
        return node
    dtypes = (np.dtype(np.bool_), node.dtype, node.dtype)
    return Elementwise(
        "where", (call(np.isnan, (node,))[0], literal(number, node.dtype), node), dtypes, node.dtype
    )


def extreme(
    node: Expr, operation: str, axis: Axis, keepdims: bool, initial: object, where: Expr | None
) -> Expr:
    """Return the least or greatest number: NaN where there is none."""
    if not has_nan(node):
        return reductions.reduce(node, operation, axis, keepdims, None, initial, where)
    if not node.sparse:
        return folds.folded(node, _FOLDS[operation], axis, keepdims, None, initial, where)
    last = np.inf if operation == "min" else -np.inf
    found = reductions.reduce(without_nan(node, last), operation, axis, keepdims, None, initial, where)
    if initial is not None:
        return found
    nothing = reductions.reduce(call(np.isnan, (node,))[0], "all", axis, keepdims)
    return reductions.where(nothing, literal(np.nan, node.dtype), found)


def mean(node: Expr, axis: Axis, keepdims: bool, dtype: npt.DTypeLike | None, where: Expr | None) -> Expr:
    """Return the arithmetic mean of the numbers."""
    if not has_nan(node):
        return reductions.mean(node, axis, keepdims, dtype, where)
    _check_dtype(dtype, "nanmean")
    return reductions.mean(without_nan(node, 0), axis, keepdims, dtype, _numbers(node, where))


def var(
    node: Expr,
    axis: Axis,
    keepdims: bool,
    ddof: float,
    dtype: npt.DTypeLike | None,
    where: Expr | None,
    center: Expr | None,
) -> Expr:
    """Return the variance of the numbers: NaN where there are no more of them than ``ddof``."""
    if not has_nan(node):
        return reductions.var(node, axis, keepdims, ddof, dtype, where, center)
    _check_dtype(dtype, "nanvar")
    numbers = _numbers(node, where)
    element = node.dtype if dtype is None else number_dtype(dtype)
    given = astype(without_nan(node, 0), element)
    if center is None:
        center = reductions.mean(given, axis, True, None, numbers)
    square = reductions.squares(call(np.subtract, (given, center))[0])
    wide = np.dtype(np.float32) if square.dtype == np.float16 else square.dtype
    total = reductions.reduce(square, "sum", axis, keepdims, wide, where=numbers)
    below = call(np.subtract, (reductions.number_of(node, axis, keepdims, numbers), ddof))[0]
    found = call(np.divide, (total, below))[0]
    enough = call(np.greater, (below, 0))[0]
    element = square.dtype if dtype is None else element
    return astype(only_where(found, enough, literal(np.nan, found.dtype)), element)


def _check_dtype(dtype: npt.DTypeLike | None, name: str) -> None:
    if dtype is not None and number_dtype(dtype).kind not in "fc":
        raise DTypeError(f"{name} of numbers that may be NaN has no dtype {dtype}: give one of floats")


def _numbers(node: Expr, where: Expr | None) -> Expr:
    # Where there is no NaN, and a mask is true.
    (numbers,) = call(np.logical_not, call(np.isnan, (node,)))
    if where is None:
        return numbers
    check_mask(where, node)
    whole = where if where.shape == node.shape else Broadcast(where, node.shape)
    return call(np.logical_and, (numbers, whole))[0]

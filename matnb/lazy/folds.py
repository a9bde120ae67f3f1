"""Folds and scans by any ufunc of NumPy in which grouping does not matter."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from matnb.errors import DTypeError, ShapeError, UnsupportedError
from matnb.expr.nodes import Broadcast, Expr
from matnb.lazy import reductions
from matnb.lazy.indexing.canonical import normalize_axes
from matnb.lazy.reductions import Axis, axes_of, check_mask, initial_value, only_where
from matnb.lazy.ufuncs import astype, call, literal, number_dtype
from matnb.ops.folding import Fold, kept_shape
from matnb.ops.scanning import Scan

_REDUCTIONS = {"add": "sum", "multiply": "prod", "minimum": "min", "maximum": "max",
               "logical_or": "any", "logical_and": "all"}  # fmt: skip
_OTHERS = ("fmin", "fmax", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm", "hypot",
           "logaddexp", "logaddexp2")  # fmt: skip


def folded(
    node: Expr,
    ufunc: np.ufunc,
    axis: Axis = 0,
    keepdims: bool = False,
    dtype: npt.DTypeLike | None = None,
    initial: object = None,
    where: Expr | None = None,
) -> Expr:
    """Return the expression of ``ufunc.reduce``.

    Raises
    ------
    UnsupportedError
        For a ufunc in which grouping matters.
    DTypeError, ShapeError
        As NumPy raises TypeError and ValueError.
    """
    name = associative(ufunc, "reduce")
    if name in _REDUCTIONS:
        if dtype is not None and name in ("minimum", "maximum"):
            node, dtype = astype(node, dtype), None
        return reductions.reduce(node, _REDUCTIONS[name], axis, keepdims, dtype, initial, where)
    axes = axes_of(axis, node.ndim)
    element = element_of(ufunc, "reduce", node.dtype, None if dtype is None else number_dtype(dtype))
    node = astype(node, element)
    first = None if initial is None else initial_value(initial, element)
    neutral = first
    if ufunc.identity is not None:
        neutral = literal(np.asarray(ufunc.identity).astype(element))
    if where is not None:
        check_mask(where, node)
        if neutral is None:
            raise ShapeError(f"{name}.reduce(where=) may pick nothing, which has no result: give initial=")
        node = only_where(node, where, neutral)
    if any(node.shape[one] == 0 for one in axes):
        if neutral is None:
            raise ShapeError(f"{name}.reduce of an array of shape {node.shape} over an axis without elements")
        whole = neutral if first is None else first
        return Broadcast(whole, kept_shape(node.shape, axes, bool(keepdims)))
    result: Expr
    if axes or first is not None or ufunc.identity is None:
        result = Fold(node, name, axes, bool(keepdims), element)
    else:  # np.gcd.reduce(-3) is 3: the identity takes part
        (result,) = call(ufunc, (literal(np.asarray(ufunc.identity).astype(element)), node))
    return result if first is None else astype(call(ufunc, (first, result))[0], element)


def scanned(node: Expr, ufunc: np.ufunc, axis: int = 0, dtype: npt.DTypeLike | None = None) -> Expr:
    """Return the expression of ``ufunc.accumulate``.

    Raises
    ------
    UnsupportedError
        For a ufunc in which grouping matters.
    DTypeError, ShapeError
        As NumPy raises TypeError and ValueError.
    """
    name = associative(ufunc, "accumulate")
    if not node.shape:
        raise DTypeError(f"{name}.accumulate of an array without axes")
    axes = normalize_axes(axis, node.ndim)
    if len(axes) != 1:
        raise ShapeError(f"{name}.accumulate goes along one axis, not axis={axis}")
    element = element_of(ufunc, "accumulate", node.dtype, None if dtype is None else number_dtype(dtype))
    return Scan(node, name, axes[0], element)


def associative(ufunc: np.ufunc, method: str) -> str:
    """Return the name of a ufunc in which grouping does not matter.

    Raises
    ------
    UnsupportedError
        For another one.
    """
    name = ufunc.__name__
    if name not in _REDUCTIONS and name not in _OTHERS:
        known = ", ".join((*_REDUCTIONS, *_OTHERS))
        raise UnsupportedError(
            f"np.{name}.{method} depends on how elements are grouped, and blocks are worked at together: "
            f"use one of {known}; or subtract a sum, divide by a product"
        )
    return name


@cache
def element_of(ufunc: np.ufunc, method: str, dtype: np.dtype, wanted: np.dtype | None) -> np.dtype:
    """Return the dtype of what a ufunc's method gives, from NumPy itself.

    Raises
    ------
    DTypeError
        When the ufunc has no loop for the dtypes.
    """
    places = ([0],) if method == "reduceat" else ()
    try:
        found: np.dtype = getattr(ufunc, method)(np.ones(1, dtype), *places, dtype=wanted).dtype
    except TypeError:
        asked = "" if wanted is None else f" and dtype={wanted}"
        raise DTypeError(f"{ufunc.__name__}.{method} is not defined for dtype {dtype}{asked}") from None
    return found

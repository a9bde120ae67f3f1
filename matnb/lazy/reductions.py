"""From a NumPy reduction to expressions: sum, prod, min, max, any, all, mean, var, std and counts."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from matnb.errors import DTypeError, UnsupportedError
from matnb.lazy.expr import Elementwise, Expr, Reduce
from matnb.lazy.indexing import normalize_axes
from matnb.lazy.ufuncs import astype, call, number_dtype

Axis = int | tuple[int, ...] | None
_BY_UFUNC = {"add": "sum", "multiply": "prod", "minimum": "min", "maximum": "max",
             "logical_or": "any", "logical_and": "all"}  # fmt: skip


def reduction_of(ufunc: np.ufunc) -> str:
    """Return the reduction that ``ufunc.reduce`` is.

    Raises
    ------
    UnsupportedError
        When it is none of ours, naming those that are.
    """
    if ufunc.__name__ not in _BY_UFUNC:
        known = ", ".join(f"np.{name}" for name in _BY_UFUNC)
        raise UnsupportedError(f"np.{ufunc.__name__}.reduce is not recorded; reduce with one of {known}")
    return _BY_UFUNC[ufunc.__name__]


def ufunc_reduce(ufunc: np.ufunc, node: Expr, dtype: object, options: dict[str, object]) -> Expr:
    """Return the expression of ``ufunc.reduce`` with its other options.

    Raises
    ------
    UnsupportedError
        For a ufunc or an option that is not recorded.
    """
    axis, keepdims = options.pop("axis", 0), bool(options.pop("keepdims", False))
    if options.get("initial") is None:
        options.pop("initial", None)
    if options:
        raise UnsupportedError(f"np.{ufunc.__name__}.reduce({', '.join(options)}=) is not recorded")
    return reduce(node, reduction_of(ufunc), axis, keepdims, dtype)  # type: ignore[arg-type]  # checked there


def reduce(
    node: Expr, operation: str, axis: Axis = None, keepdims: bool = False, dtype: npt.DTypeLike | None = None
) -> Expr:
    """Return a reduction's expression, of the dtype NumPy gives it.

    Raises
    ------
    ShapeError
        For an axis that is not there, or the min or max of nothing.
    DTypeError
        For ``dtype=`` on a reduction that has none.
    """
    axes = normalize_axes(axis, node.ndim)
    if operation in ("sum", "prod"):
        if dtype is None:
            element = _sum_dtype(node.dtype)
        else:
            element = number_dtype(dtype)
            node = astype(node, element)
    elif dtype is not None:
        raise DTypeError(f"{operation} takes no dtype; convert with astype first")
    elif operation in ("any", "all"):
        element = np.dtype(np.bool_)
    elif operation == "stored":
        element = np.dtype(np.int64)
    else:
        element = node.dtype
    return Reduce(node, operation, axes, bool(keepdims), element)


def mean(node: Expr, axis: Axis = None, keepdims: bool = False, dtype: npt.DTypeLike | None = None) -> Expr:
    """Return the arithmetic mean: the sum over the number of elements; integers become float64."""
    total, number = _total(node, axis, keepdims, dtype)
    element = _mean_dtype(node.dtype) if dtype is None else number_dtype(dtype)
    return astype(call(np.divide, (total, float(number)))[0], element)


def var(
    node: Expr, axis: Axis = None, keepdims: bool = False, ddof: float = 0, dtype: npt.DTypeLike | None = None
) -> Expr:
    """Return the variance: the mean square distance from the mean, over ``number - ddof``.

    That of all elements of a dense real array is found in one pass.
    """
    element = _mean_dtype(node.dtype) if dtype is None else number_dtype(dtype)
    if _is_one_pass(node, axis, element):
        whole = node if dtype is None else astype(node, element)
        wide = np.dtype(np.float32) if element == np.float16 else element
        away_from_mean = Reduce(whole, "deviation", tuple(range(node.ndim)), bool(keepdims), wide)
        below = float(max(node.size - ddof, 0))
        return astype(call(np.divide, (away_from_mean, below))[0], element)
    center = mean(node, axis, keepdims=True, dtype=element)
    (away,) = call(np.subtract, (astype(node, element), center))
    if element.kind == "c":
        (size,) = call(np.absolute, (away,))
        (square,) = call(np.square, (size,))
    else:
        (square,) = call(np.square, (away,))
    total, number = _total(square, axis, keepdims, None)
    return astype(call(np.divide, (total, float(max(number - ddof, 0))))[0], square.dtype)


def _is_one_pass(node: Expr, axis: Axis, element: np.dtype) -> bool:
    # Of sparse and complex arrays, and along some axes, what is away from the mean is made first.
    is_full = len(normalize_axes(axis, node.ndim)) == node.ndim > 0
    return is_full and not node.sparse and element.name in ("float64", "float32", "float16")


def std(
    node: Expr, axis: Axis = None, keepdims: bool = False, ddof: float = 0, dtype: npt.DTypeLike | None = None
) -> Expr:
    """Return the standard deviation: the root of the variance."""
    return call(np.sqrt, (var(node, axis, keepdims, ddof, dtype),))[0]


def count_nonzero(node: Expr, axis: Axis = None, keepdims: bool = False) -> Expr:
    """Return the number of elements that are not zero, int64; stored zeros are not counted."""
    away = node
    if node.dtype.kind != "b":
        (away,) = call(np.not_equal, (node, 0))
    return reduce(away, "sum", axis, keepdims)


def _total(node: Expr, axis: Axis, keepdims: bool, dtype: npt.DTypeLike | None) -> tuple[Expr, int]:
    axes = normalize_axes(axis, node.ndim)
    number = math.prod(node.shape[one] for one in axes)
    element = _mean_dtype(node.dtype) if dtype is None else number_dtype(dtype)
    # A half-precision sum overflows at 65504, so NumPy's mean sums it in single precision.
    wide = np.dtype(np.float32) if element == np.float16 else element
    return reduce(node, "sum", axis, keepdims, wide), number


def _sum_dtype(dtype: np.dtype) -> np.dtype:
    # NumPy sums booleans and narrow integers in the platform's 64 bits.
    if dtype.kind == "b" or (dtype.kind == "i" and dtype.itemsize < 8):
        return np.dtype(np.int64)
    if dtype.kind == "u" and dtype.itemsize < 8:
        return np.dtype(np.uint64)
    return dtype


def _mean_dtype(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.float64) if dtype.kind in "biu" else dtype


def where(condition: Expr, chosen: Expr, other: Expr) -> Expr:
    """Return the elements of ``chosen`` where the condition holds, else those of ``other``."""
    element = np.result_type(chosen.dtype, other.dtype)
    return Elementwise("where", (condition, chosen, other), (np.dtype(np.bool_), element, element), element)

"""From a NumPy reduction to expressions: sums, extremes, means, counts, folds, scans; without NaN, too."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import SPARSE_DTYPES
from matnb.errors import DTypeError, RangeError, ShapeError, UnsupportedError
from matnb.expr.nodes import (
    Broadcast,
    Elementwise,
    Expr,
    Index,
    Literal,
    OnEntries,
    Reduce,
    broadcast_shapes,
)
from matnb.lazy.indexing.keys import normalize_axes, with_new_axes, without_axes
from matnb.lazy.ufuncs import astype, call, literal, number_dtype
from matnb.ops.folding import Extreme, Fold, kept_shape
from matnb.ops.joining import Concatenate
from matnb.ops.pattern import Pattern
from matnb.ops.scanning import Scan
from matnb.ops.sliding import WindowReduce, Windows

Axis = int | tuple[int, ...] | None
# Each by the ufunc that combines two elements, and by what changes nothing where a mask is false.
_UFUNCS = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum,
           "any": np.logical_or, "all": np.logical_and}  # fmt: skip
_NEUTRAL = {"sum": 0, "prod": 1, "any": 0, "all": 1}


def axes_of(axis: Axis, ndim: int) -> tuple[int, ...]:
    """Return the axes of a reduction; an array without axes has a first and last one, as in NumPy."""
    return () if not ndim and axis in (0, -1) else normalize_axes(axis, ndim)


def reduce(
    node: Expr,
    operation: str,
    axis: Axis = None,
    keepdims: bool = False,
    dtype: npt.DTypeLike | None = None,
    initial: object = None,
    where: Expr | None = None,
) -> Expr:
    """Return a reduction's expression, of the dtype NumPy gives it.

    Parameters
    ----------
    initial
        A further element, a number or an expression without axes; None: none.
    where
        Booleans that broadcast to the array: which elements take part.

    Raises
    ------
    ShapeError
        For an axis that is not there, the min or max of nothing, or a mask that does not fit.
    DTypeError
        For ``dtype=`` on a reduction that has none.
    """
    axes = axes_of(axis, node.ndim)
    if isinstance(node, Windows) and initial is None and where is None:
        slid = _of_windows(node, operation, axes, bool(keepdims), dtype)
        if slid is not None:
            return slid
    element = _result_dtype(node.dtype, operation, dtype)
    if dtype is not None and operation in ("sum", "prod"):
        node = astype(node, element)
    if initial is None and where is None:
        return Reduce(node, operation, axes, bool(keepdims), element)
    return _with_initial_and_mask(node, operation, axes, bool(keepdims), element, initial, where)


def _result_dtype(given: np.dtype, operation: str, dtype: npt.DTypeLike | None) -> np.dtype:
    if operation in ("sum", "prod"):
        return _sum_dtype(given) if dtype is None else number_dtype(dtype)
    if dtype is not None and (operation not in ("any", "all") or number_dtype(dtype).kind != "b"):
        raise DTypeError(f"{operation} takes no dtype; convert with astype first")
    if operation in ("any", "all"):
        return np.dtype(np.bool_)
    return np.dtype(np.int64) if operation == "stored" else given


def _of_windows(
    node: Windows, operation: str, axes: tuple[int, ...], keepdims: bool, dtype: npt.DTypeLike | None
) -> Expr | None:
    # sum over w and i of x[i + w] is the sum over i of window sums: those need no windows; None elsewhere
    along: list[tuple[int, int]] = []
    made: Expr = node
    while isinstance(made, Windows):
        along.insert(0, (made.length, made.axis))
        made = made.operand
    ndim = made.ndim
    if operation not in _UFUNCS or not set(range(ndim, node.ndim)) <= set(axes):
        return None
    element = _result_dtype(node.dtype, operation, dtype)
    for length, axis in along:
        made = WindowReduce(made, operation, length, axis, element)
    rest = tuple(axis for axis in axes if axis < ndim)
    if rest:
        made = Reduce(made, operation, rest, keepdims, element)
    return with_new_axes(made, made.ndim, len(along)) if keepdims else made


def _with_initial_and_mask(
    node: Expr,
    operation: str,
    axes: tuple[int, ...],
    keepdims: bool,
    element: np.dtype,
    initial: object,
    where: Expr | None,
) -> Expr:
    # A reduction of the elements that a mask picks, and of an initial value.
    first = None if initial is None else initial_value(initial, element)
    if where is not None:
        check_mask(where, node)
        if operation in _NEUTRAL:
            node = only_where(node, where, literal(_NEUTRAL[operation], node.dtype))
        elif first is not None:
            node = only_where(node, where, first)
        else:
            raise ShapeError(
                f"{operation}(where=) may select no element, which has no {operation}: give initial="
            )
    if first is None:
        return Reduce(node, operation, axes, keepdims, element)
    if operation in ("min", "max") and any(node.shape[axis] == 0 for axis in axes):
        return Broadcast(first, kept_shape(node.shape, axes, keepdims))
    if operation == "prod" and element.kind in "fc" and axes and not node.sparse:
        return Reduce(_after(first, astype(node, element), axes), operation, axes, keepdims, element)
    return call(_UFUNCS[operation], (first, Reduce(node, operation, axes, keepdims, element)))[0]


def _after(first: Expr, node: Expr, axes: tuple[int, ...]) -> Expr:
    # An array with a number before its elements on some axes, as the first that a product meets.
    shape = [1 if axis in axes else length for axis, length in enumerate(node.shape)]
    before: Expr = Broadcast(first, tuple(shape))
    for axis in axes[1:]:
        shape[axis] = node.shape[axis] - 1
        if shape[axis] > 0:
            ones = Broadcast(literal(1, node.dtype), tuple(shape))
            before = Concatenate((before, ones), axis)
        shape[axis] = node.shape[axis]
    return Concatenate((before, node), axes[0])


def initial_value(initial: object, element: np.dtype) -> Expr:
    """Return the value that a reduction begins with, in its dtype."""
    if isinstance(initial, Expr):
        if initial.shape:
            raise ShapeError(f"initial= has shape {initial.shape}: give a number")
        return astype(initial, element)
    value = np.asarray(initial)
    if value.ndim or value.dtype.kind not in "biufc":
        raise DTypeError(f"initial={initial!r}: give a number")
    if type(initial) is complex and element.kind in "iuf":
        raise DTypeError(f"initial={initial}: give a real number for a result of dtype {element}")
    if type(initial) is int and element.kind in "iu" and value != value.astype(element):
        raise RangeError(f"initial={initial} does not fit dtype {element}")
    return literal(value.astype(element))


def only_where(node: Expr, where: Expr, other: Expr) -> Expr:
    """Return the elements where a mask is true, and another number, of the same dtype, elsewhere."""
    check_mask(where, node)
    dtypes = (np.dtype(np.bool_), node.dtype, node.dtype)
    # What a sparse array does not store is 0 on both sides, whatever the mask.
    is_zero = isinstance(other, Literal) and not other.value.any()
    choice = OnEntries if node.sparse and not where.sparse and is_zero else Elementwise
    return choice("where", (where, node, other), dtypes, node.dtype)


def check_mask(where: Expr, node: Expr) -> None:
    """Refuse a mask that is not of booleans, or does not broadcast to an array."""
    if where.dtype.kind != "b":
        raise DTypeError(f"where= of dtype {where.dtype}: give booleans, for example x != 0")
    if where.ndim > node.ndim or broadcast_shapes(where.shape, node.shape, name="where=") != node.shape:
        raise ShapeError(f"where= of shape {where.shape} does not broadcast to shape {node.shape}")


def mean(
    node: Expr,
    axis: Axis = None,
    keepdims: bool = False,
    dtype: npt.DTypeLike | None = None,
    where: Expr | None = None,
) -> Expr:
    """Return the arithmetic mean: the sum over the number of elements; integers become float64."""
    _check_axes(axis, node.ndim, where)
    total, number = _total(node, axis, keepdims, dtype, where)
    element = mean_dtype(node.dtype) if dtype is None else number_dtype(dtype)
    return astype(call(np.divide, (total, number))[0], element)


def var(
    node: Expr,
    axis: Axis = None,
    keepdims: bool = False,
    ddof: float = 0,
    dtype: npt.DTypeLike | None = None,
    where: Expr | None = None,
    center: Expr | None = None,
) -> Expr:
    """Return the variance: the mean square distance from the mean, over ``number - ddof``.

    That of all elements of a dense real array is found in one pass; a sparse array stays sparse.

    Parameters
    ----------
    center
        The mean along the same axes, which keep length 1; made when left out.
    """
    _check_axes(axis, node.ndim, where)
    element = mean_dtype(node.dtype) if dtype is None else number_dtype(dtype)
    if where is None and center is None and _is_one_pass(node, axis, element):
        whole = node if dtype is None else astype(node, element)
        wide = np.dtype(np.float32) if element == np.float16 else element
        away_from_mean = Reduce(whole, "deviation", tuple(range(node.ndim)), bool(keepdims), wide)
        below = float(max(node.size - ddof, 0))
        return astype(call(np.divide, (away_from_mean, below))[0], element)
    if where is None and center is None and isinstance(node, Windows):
        slid = _deviation_of_windows(node, axis, keepdims, ddof, element)
        if slid is not None:
            return slid
    if center is None:
        center = mean(node, axis, keepdims=True, dtype=element, where=where)
    total, element = _squares_from(node, center, axis, keepdims, dtype, where)
    number = number_of(node, axis, keepdims, where)
    if isinstance(number, Expr):
        below_one = call(np.maximum, (call(np.subtract, (number, ddof))[0], 0))[0]
        return astype(call(np.divide, (total, below_one))[0], element)
    return astype(call(np.divide, (total, float(max(number - ddof, 0))))[0], element)


def _check_axes(axis: Axis, ndim: int, where: Expr | None) -> None:
    # NumPy's means, unlike its sums and those of elements that a mask picks, find no axis in a number.
    if axis is not None and where is None:
        normalize_axes(axis, ndim)


def _squares_from(
    node: Expr,
    center: Expr,
    axis: Axis,
    keepdims: bool,
    dtype: npt.DTypeLike | None,
    where: Expr | None,
    number: Expr | None = None,
) -> tuple[Expr, np.dtype]:
    # The sum of the squares of what elements are away from the center, and the dtype of their mean.
    (away,) = call(np.subtract, (node, center))
    square = squares(away)
    # NumPy takes a mean of the dtype asked for from elements of their own, and sums in it again.
    element = square.dtype if dtype is None else number_dtype(dtype)
    if not (node.sparse and _is_of_lanes(center, node, axis) and away.dtype in SPARSE_DTYPES):
        return _total(square, axis, keepdims, element, where)[0], element
    # Each element that a sparse array does not store is as far away as 0 is.
    assert isinstance(away, Elementwise)
    at_entries = OnEntries(away.name, away.inputs, away.input_dtypes, away.element)
    total, whole = _total(squares(at_entries), axis, True, element, where)
    if where is None:
        stored = reduce(node, "stored", axis, True)
    else:
        stored = reduce(Pattern(node, np.dtype(np.bool_)), "sum", axis, True, where=where)
    (absent,) = call(np.subtract, (whole if number is None else number, stored))
    (of_absent,) = call(np.multiply, (absent, squares(center)))
    of_absent = only_where(of_absent, call(np.greater, (absent, 0))[0], literal(0, of_absent.dtype))
    (total,) = call(np.add, (total, of_absent))
    return total if keepdims else without_axes(total, axes_of(axis, node.ndim)), element


def _is_of_lanes(center: Expr, node: Expr, axis: Axis) -> bool:
    # Whether a center is the same for all elements that are reduced to one number.
    kept = kept_shape(node.shape, axes_of(axis, node.ndim), True)
    is_broadcast = center.ndim <= node.ndim and broadcast_shapes(center.shape, kept, name="mean=") == kept
    return kept != node.shape and is_broadcast


def squares(away: Expr) -> Expr:
    """Return the squares of numbers, or of the absolute values of complex ones."""
    return call(np.square, call(np.absolute, (away,)) if away.dtype.kind == "c" else (away,))[0]


def _is_one_pass(node: Expr, axis: Axis, element: np.dtype) -> bool:
    # Of sparse and complex arrays, and along some axes, what is away from the mean is made first.
    is_full = len(axes_of(axis, node.ndim)) == node.ndim > 0
    # That what is asked for holds the elements: where it does not, NumPy has its mean only in that dtype.
    is_held = element.name in ("float64", "float32", "float16") and np.can_cast(node.dtype, element)
    return is_full and not node.sparse and is_held


def _deviation_of_windows(
    node: Windows, axis: Axis, keepdims: bool, ddof: float, element: np.dtype
) -> Expr | None:
    # The variance of each window along one axis, of real numbers; None of others.
    is_one = axes_of(axis, node.ndim) == (node.ndim - 1,) and not isinstance(node.operand, Windows)
    if not is_one or element.kind != "f" or node.dtype.kind == "c":
        return None
    wide = np.dtype(np.float32) if element == np.float16 else element
    total = WindowReduce(node.operand, "deviation", node.length, node.axis, wide)
    made = astype(call(np.divide, (total, float(max(node.length - ddof, 0))))[0], element)
    return with_new_axes(made, made.ndim) if keepdims else made


def std(
    node: Expr,
    axis: Axis = None,
    keepdims: bool = False,
    ddof: float = 0,
    dtype: npt.DTypeLike | None = None,
    where: Expr | None = None,
    center: Expr | None = None,
) -> Expr:
    """Return the standard deviation: the root of the variance."""
    return root(var(node, axis, keepdims, ddof, dtype, where, center))


def root(square: Expr) -> Expr:
    """Return the square root in its own dtype.

    Raises
    ------
    DTypeError
        For an array of whole numbers, whose roots are none; NumPy cuts those of a single one.
    """
    (found,) = call(np.sqrt, (square,))
    if square.shape and not np.can_cast(found.dtype, square.dtype, "same_kind"):
        raise DTypeError(
            f"std: the square root of {found.dtype} cannot be stored as {square.dtype}: give a floating dtype"
        )
    return astype(found, square.dtype)


def count_nonzero(node: Expr, axis: Axis = None, keepdims: bool = False) -> Expr:
    """Return the number of elements that are not zero, int64; stored zeros are not counted."""
    away = node
    if node.dtype.kind != "b":
        (away,) = call(np.not_equal, (node, 0))
    return reduce(away, "sum", axis, keepdims)


def extreme_place(node: Expr, operation: str, axis: int | None = None, keepdims: bool = False) -> Expr:
    """Return the place of an extreme along an axis, or in all of the array in the order of rows.

    Parameters
    ----------
    operation
        "argmin", "argmax", "nanargmin" or "nanargmax".

    Raises
    ------
    ShapeError
        For an axis that is not there, or has no elements.
    DTypeError
        For several axes.
    """
    if axis is not None and not isinstance(axis, int | np.integer):
        raise DTypeError(f"{operation}: axis={axis!r}; give one axis, or None for all of them")
    axes = axes_of(axis, node.ndim)
    if not node.ndim:
        return Extreme(Index(node, (None,)), operation, (0,), False)
    if node.dtype.kind not in "fc":
        operation = operation.removeprefix("nan")
    return Extreme(node, operation, axes, bool(keepdims))


def number_of(node: Expr, axis: Axis, keepdims: bool, where: Expr | None) -> float | Expr:
    """Return how many elements take part in each result of a reduction."""
    if where is None:
        return float(math.prod(node.shape[one] for one in axes_of(axis, node.ndim)))
    check_mask(where, node)
    if where.shape == node.shape:
        return reduce(where, "sum", axis, keepdims)
    # A mask that is stretched is counted as it is, and never made as large as the array.
    axes = axes_of(axis, node.ndim)
    own = with_new_axes(where, 0, node.ndim - where.ndim)
    times = math.prod(node.shape[one] for one in axes if own.shape[one] == 1)
    (number,) = call(np.multiply, (reduce(own, "sum", axis, keepdims), times))
    return Broadcast(number, kept_shape(node.shape, axes, keepdims))


def _total(
    node: Expr, axis: Axis, keepdims: bool, dtype: npt.DTypeLike | None, where: Expr | None
) -> tuple[Expr, float | Expr]:
    element = mean_dtype(node.dtype) if dtype is None else number_dtype(dtype)
    # A half-precision sum overflows at 65504, so NumPy's mean sums it in single precision.
    wide = np.dtype(np.float32) if element == np.float16 else element
    number = number_of(node, axis, keepdims, where)
    return reduce(node, "sum", axis, keepdims, wide, where=where), number


def _sum_dtype(dtype: np.dtype) -> np.dtype:
    # NumPy sums booleans and narrow integers in the platform's 64 bits.
    if dtype.kind == "b" or (dtype.kind == "i" and dtype.itemsize < 8):
        return np.dtype(np.int64)
    if dtype.kind == "u" and dtype.itemsize < 8:
        return np.dtype(np.uint64)
    return dtype


def mean_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype of the mean of numbers of another."""
    return np.dtype(np.float64) if dtype.kind in "biu" else dtype


def where(condition: Expr, chosen: Expr, other: Expr) -> Expr:
    """Return the elements of ``chosen`` where the condition holds, else those of ``other``."""
    element = np.result_type(chosen.dtype, other.dtype)
    return Elementwise("where", (condition, chosen, other), (np.dtype(np.bool_), element, element), element)


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
        return reduce(node, _REDUCTIONS[name], axis, keepdims, dtype, initial, where)
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
            raise ShapeError(
                f"{name}.reduce(where=) may select no element, for which there is no result: give initial="
            )
        node = only_where(node, where, neutral)
    if any(node.shape[one] == 0 for one in axes):
        if neutral is None:
            raise ShapeError(f"{name}.reduce of an array of shape {node.shape} over an axis of length 0")
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
            f"np.{name}.{method} depends on the order of the operations, but blocks are combined in "
            "parallel: "
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


def nan_extreme(
    node: Expr, operation: str, axis: Axis, keepdims: bool, initial: object, mask: Expr | None
) -> Expr:
    """Return the least or greatest number: NaN where there is none."""
    if not has_nan(node):
        return reduce(node, operation, axis, keepdims, None, initial, mask)
    if not node.sparse:
        return folded(node, _FOLDS[operation], axis, keepdims, None, initial, mask)
    last = np.inf if operation == "min" else -np.inf
    found = reduce(without_nan(node, last), operation, axis, keepdims, None, initial, mask)
    if initial is not None:
        return found
    nothing = reduce(call(np.isnan, (node,))[0], "all", axis, keepdims)
    return where(nothing, literal(np.nan, node.dtype), found)


def nan_mean(node: Expr, axis: Axis, keepdims: bool, dtype: npt.DTypeLike | None, where: Expr | None) -> Expr:
    """Return the arithmetic mean of the numbers."""
    if not has_nan(node):
        return mean(node, axis, keepdims, dtype, where)
    _check_dtype(dtype, "nanmean")
    total, _ = _total(without_nan(node, 0), axis, keepdims, dtype, where)
    element = node.dtype if dtype is None else number_dtype(dtype)
    return astype(call(np.divide, (total, _count_of_numbers(node, axis, keepdims, where)))[0], element)


def nan_var(
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
        return var(node, axis, keepdims, ddof, dtype, where, center)
    _check_dtype(dtype, "nanvar")
    element = node.dtype if dtype is None else number_dtype(dtype)
    given = astype(without_nan(node, 0), element)
    numbers = _count_of_numbers(node, axis, True, where)
    if center is None:
        total, _ = _total(given, axis, True, None, where)
        center = astype(call(np.divide, (total, numbers))[0], element)
    among = where if given.sparse else _numbers(node, where)
    total, element = _squares_from(given, center, axis, keepdims, dtype, among, numbers)
    below = call(np.subtract, (_count_of_numbers(node, axis, keepdims, where), ddof))[0]
    found = call(np.divide, (total, below))[0]
    enough = call(np.greater, (below, 0))[0]
    return astype(only_where(found, enough, literal(np.nan, found.dtype)), element)


def _check_dtype(dtype: npt.DTypeLike | None, name: str) -> None:
    if dtype is not None and number_dtype(dtype).kind not in "fc":
        raise DTypeError(f"{name} of floats cannot have dtype {dtype}: give a floating dtype")


def _count_of_numbers(node: Expr, axis: Axis, keepdims: bool, where: Expr | None) -> Expr:
    # How many elements are not NaN, and picked by a mask.
    if not node.sparse:
        return reduce(_numbers(node, where), "sum", axis, keepdims)
    missing = reduce(call(np.isnan, (node,))[0], "sum", axis, keepdims, where=where)
    return call(np.subtract, (number_of(node, axis, keepdims, where), missing))[0]


def _numbers(node: Expr, where: Expr | None) -> Expr:
    # Where there is no NaN, and a mask is true.
    (numbers,) = call(np.logical_not, call(np.isnan, (node,)))
    if where is None:
        return numbers
    check_mask(where, node)
    whole = where if where.shape == node.shape else Broadcast(where, node.shape)
    return call(np.logical_and, (numbers, whole))[0]

"""NumPy's functions that look elements up: where they belong, and whether they are among others."""

from __future__ import annotations

import numpy as np

from matnb.errors import DTypeError, OptionError, ShapeError
from matnb.expr.nodes import Expr
from matnb.lazy.array import DistArray, expression_of, handle_of, wrap
from matnb.lazy.force import asked
from matnb.lazy.functions.reshaping import reshaped
from matnb.lazy.ordering import dense_of, flipped
from matnb.lazy.registry import implements
from matnb.lazy.ufuncs import astype, call
from matnb.ops.searching import Interpolate, Member, Search

_FEW_BYTES = 2**20  # points of a function: up to here every worker has them all


@implements(np.searchsorted)
def searchsorted(a: object, v: object, side: str = "left", sorter: object = None) -> DistArray:
    """``numpy.searchsorted``."""
    ascending, values = expression_of(a), expression_of(v)
    if side[:1].lower() not in ("l", "r"):
        raise OptionError(f"searchsorted: side={side!r}; give 'left' or 'right'")
    if sorter is not None:
        order = DistArray(expression_of(sorter))
        if order.dtype.kind not in "iu":
            raise DTypeError(f"searchsorted: sorter of dtype {order.dtype}: give the places of np.argsort")
        if order.shape != ascending.shape:
            raise ShapeError(f"searchsorted: sorter of shape {order.shape} for {ascending.shape}")
        ascending = DistArray(ascending)[order].expression
    return wrap(found_in(ascending, values, "left" if side[:1].lower() == "l" else "right"))


def found_in(ascending: Expr, values: Expr, side: str) -> Expr:
    """Return where values belong in an ascending array."""
    dtype = np.result_type(ascending.dtype, values.dtype)
    return Search(astype(dense_of(ascending), dtype), astype(dense_of(values), dtype), side)


@implements(np.digitize)
def digitize(x: object, bins: object, right: bool = False) -> DistArray:
    """``numpy.digitize``; whether bins that are a handle go up or down is asked for."""
    values, edges = expression_of(x), dense_of(expression_of(bins))
    if "c" in (values.dtype.kind, edges.dtype.kind):
        raise DTypeError("digitize: complex numbers are in no order; give real ones")
    if edges.ndim != 1:
        raise ShapeError(f"digitize: bins of shape {edges.shape}: give one axis")
    if _are_all(np.less_equal, edges):
        return wrap(found_in(edges, values, "left" if right else "right"))
    if not _are_all(np.greater_equal, edges):
        raise OptionError("digitize: bins go up and down; sort them first")
    found = found_in(flipped(edges, 0), values, "left" if right else "right")
    return wrap(call(np.subtract, (edges.shape[0], found))[0])


def _are_all(compare: np.ufunc, edges: Expr) -> bool:
    array = DistArray(edges)
    if edges.shape[0] < 2:
        return True
    return bool(asked(compare(array[:-1], array[1:]).all().expression, "the order of bins"))


def is_in(values: Expr, among: Expr) -> Expr:
    """Return whether each value is among others."""
    among = dense_of(reshaped(among, (-1,)))
    return Member(among, dense_of(values))


@implements(np.isin)
def isin(
    element: object,
    test_elements: object,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | None = None,
) -> DistArray:
    """``numpy.isin``."""
    if kind not in (None, "sort", "table"):
        raise OptionError(f"isin: kind={kind!r}; give None, 'sort' or 'table'")
    found = is_in(expression_of(element), expression_of(test_elements))
    return wrap(call(np.logical_not, (found,))[0] if invert else found)


@implements(np.interp)
def interp(
    x: object, xp: object, fp: object, left: object = None, right: object = None, period: float | None = None
) -> DistArray:
    """``numpy.interp``."""
    kind = np.complex128 if expression_of(fp).dtype.kind == "c" else np.float64
    if "c" in (expression_of(x).dtype.kind, expression_of(xp).dtype.kind):
        raise DTypeError("interp: complex numbers are in no order; give real places, heights may be complex")
    values = DistArray(astype(dense_of(expression_of(x)), np.float64))
    places = DistArray(astype(dense_of(expression_of(xp)), np.float64))
    heights = DistArray(astype(dense_of(expression_of(fp)), kind))
    if places.ndim != 1 or heights.ndim != 1:
        raise ShapeError(f"interp: points of shapes {places.shape} and {heights.shape}: give one axis")
    if places.shape != heights.shape or not places.size:
        raise ShapeError(f"interp: {places.size} places and {heights.size} heights: give as many, some")
    ends = [expression_of(one).dtype.kind for one in (left, right) if one is not None]
    if kind is np.float64 and "c" in ends:
        raise DTypeError(f"interp: left={left} and right={right} of real heights: give real numbers")
    if period is not None:
        if period == 0:
            raise OptionError("interp: period must be a number other than 0")
        period = abs(period)
        left = right = None
        values, places = values % period, places % period
        order = np.argsort(places)
        places, heights = places[order], heights[order]
        places = handle_of(np.concatenate((places[-1:] - period, places, places[:1] + period)))
        heights = handle_of(np.concatenate((heights[-1:], heights, heights[:1])))
    below = heights[0] if left is None else DistArray(astype(expression_of(left), kind))
    above = heights[-1] if right is None else DistArray(astype(expression_of(right), kind))
    if places.size * 8 <= _FEW_BYTES:
        inputs = tuple(one.expression for one in (places, heights, below, above))
        return wrap(Interpolate(values.expression, inputs))
    return _between(values, places, heights, below, above)


def _between(
    values: DistArray, places: DistArray, heights: DistArray, below: DistArray, above: DistArray
) -> DistArray:
    # As NumPy computes it, with the points looked up where they are.
    count = places.size
    after = DistArray(found_in(places.expression, values.expression, "right"))
    start = np.minimum(np.maximum(after - 1, 0), count - 2)
    flat = start.reshape(-1)
    shape = values.shape
    one, other = places[flat].reshape(shape), places[flat + 1].reshape(shape)
    low, high = heights[flat].reshape(shape), heights[flat + 1].reshape(shape)
    slope = (high - low) / (other - one)
    found = slope * (values - one) + low
    # Where that is no number, from the other end; or both are alike.
    again = slope * (values - other) + high
    again = handle_of(np.where(np.isnan(again) & (low == high), low, again))
    found = handle_of(np.where(np.isnan(found), again, found))
    found = handle_of(np.where(values == one, low, found))
    found = handle_of(np.where(values == places[-1], heights[-1], found))
    found = handle_of(np.where(values > places[-1], above, found))
    found = handle_of(np.where(values < places[0], below, found))
    return handle_of(np.where(np.isnan(values), values, found))

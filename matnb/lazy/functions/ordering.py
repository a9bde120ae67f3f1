"""NumPy's functions that put elements in order."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from matnb.errors import DTypeError, OptionError, ShapeError, UnsupportedError
from matnb.expr.nodes import Expr
from matnb.lazy.array import DistArray, expression_of, wrap
from matnb.lazy.functions.reshaping import laned
from matnb.lazy.indexing.canonical import one_axis
from matnb.lazy.ordering import arg_sorted_along, sorted_along
from matnb.lazy.registry import implements

_KINDS = (None, "quicksort", "mergesort", "heapsort", "stable")


def _ready(
    a: object, axis: int | None, kind: str | None, stable: bool | None, order: object
) -> tuple[Expr, int]:
    # The array, flattened where no axis is given, and the axis.
    if order is not None:
        raise OptionError("order= names fields, and arrays here hold numbers: leave it out")
    if kind is not None and kind[:1].lower() not in "qmhs":
        raise OptionError(f"kind={kind!r}: give one of {_KINDS[1:]}")
    if kind is not None and stable is not None:
        raise OptionError("kind= and stable= are two names of one choice: give one of them")
    node = expression_of(a)
    return laned(node, axis)


def _check_axis(a: object, axis: int | None) -> None:
    # NumPy finds the order of an array without axes, but does not put it in order.
    if axis is not None:
        one_axis(axis, expression_of(a).ndim)


@implements(np.sort)
def sort(
    a: object,
    axis: int | None = -1,
    kind: str | None = None,
    order: None = None,
    *,
    descending: bool = False,
    stable: bool | None = None,
) -> DistArray:
    """``numpy.sort``, and the standard's ``descending=``; dense. In descending order NaN are first."""
    _check_axis(a, axis)
    node, place = _ready(a, axis, kind, None if stable is True else stable, order)
    return wrap(sorted_along(node, place, bool(descending)))


@implements(np.argsort)
def argsort(
    a: object,
    axis: int | None = -1,
    kind: str | None = None,
    order: None = None,
    *,
    descending: bool = False,
    stable: bool | None = None,
) -> DistArray:
    """``numpy.argsort``, and the standard's ``descending=``; equal elements always as they come."""
    node, place = _ready(a, axis, kind, stable, order)
    return wrap(arg_sorted_along(node, place, bool(descending)))


@implements(np.partition)
def partition(
    a: object, kth: int | Sequence[int], axis: int | None = -1, kind: str = "introselect", order: None = None
) -> DistArray:
    """``numpy.partition``: all elements are in order, not only the one at ``kth``."""
    _check_axis(a, axis)
    node, place = _ready(a, axis, None, None, order)
    _check_places(kth, node.shape[place])
    return wrap(sorted_along(node, place))


@implements(np.argpartition)
def argpartition(
    a: object, kth: int | Sequence[int], axis: int | None = -1, kind: str = "introselect", order: None = None
) -> DistArray:
    """``numpy.argpartition``: all places are in order, not only the one at ``kth``."""
    node, place = _ready(a, axis, None, None, order)
    _check_places(kth, node.shape[place])
    return wrap(arg_sorted_along(node, place))


def _check_places(kth: int | Sequence[int], length: int) -> None:
    if np.asarray(kth).dtype.kind not in "biu":
        raise DTypeError(f"kth={kth!r}: give whole numbers")
    for one in np.atleast_1d(np.asarray(kth)).ravel():
        try:
            place = operator.index(one)
        except TypeError:
            raise DTypeError(f"kth={kth!r}: give whole numbers") from None
        if length and not -length <= place < length:  # NumPy leaves nothing as it is
            raise ShapeError(f"kth={place} of an axis of length {length}: give {-length} to {length - 1}")


@implements(np.lexsort)
def lexsort(keys: object, axis: int = -1) -> DistArray:
    """``numpy.lexsort`` of 1-D keys: sorted by the last of them, equal ones by the one before."""
    nodes = [expression_of(one) for one in keys]  # type: ignore[attr-defined]  # a sequence, or an array's rows
    if not nodes:
        raise DTypeError("lexsort: give at least one key")
    if any(one.shape != nodes[0].shape for one in nodes):
        raise ShapeError("lexsort: keys of several shapes")
    if any(one.ndim != 1 for one in nodes):
        raise UnsupportedError("lexsort of keys with several axes: sort the lanes one by one")
    order = wrap(arg_sorted_along(nodes[0], 0))
    for one in nodes[1:]:
        again = wrap(arg_sorted_along(DistArray(one)[order].expression, 0))
        order = order[again]
    return order

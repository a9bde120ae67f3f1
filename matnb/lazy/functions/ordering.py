"""NumPy's functions that put elements in order, look them up, and keep the distinct ones: arrays as sets."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from matnb.blocks.grid import regular_cuts
from matnb.errors import DTypeError, OptionError, ShapeError, UnsupportedError
from matnb.expr.nodes import Broadcast, Expr, Index
from matnb.lazy.array import DistArray, handle_of, wrap
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.evaluator import asked, evaluator
from matnb.lazy.fields import has_fields
from matnb.lazy.functions.indexing import take_along_axis
from matnb.lazy.functions.shaping import concatenate, laned, moved
from matnb.lazy.handles import expression_of
from matnb.lazy.indexing.compress import compressed
from matnb.lazy.indexing.keys import flipped, one_axis
from matnb.lazy.registry import implements
from matnb.lazy.shapes import reshaped
from matnb.lazy.ufuncs import astype, call
from matnb.ops.joining import Concatenate
from matnb.ops.ordering import ArgSort, Sort, TopK
from matnb.ops.searching import Interpolate, Member, Search
from matnb.ops.uniques import CountDistinct, Distinct, DistinctField

_FEW_LANES = 4  # up to so many lanes, each is sorted as an array of its own
_LONG_BYTES = 2**20  # of which each has more than this, so that its blocks are sorted side by side


def sorted_of(node: Expr) -> Expr:
    """Return the elements of a 1-D array ascending, NaN last."""
    return Sort(dense_of(node), 0)


def sorted_along(node: Expr, axis: int, descending: bool = False) -> Expr:
    """Return the elements of an array in order along an axis, in ascending order NaN last."""
    found = by_lanes(dense_of(node), axis, lambda lane, along: Sort(lane, along))
    return flipped(found, (axis,)) if descending else found


def arg_sorted_along(node: Expr, axis: int, descending: bool = False) -> Expr:
    """Return the places of an array's elements in order along an axis, equal ones as they come."""
    node = dense_of(node)
    if not descending:
        return by_lanes(node, axis, lambda lane, along: ArgSort(lane, along))
    # The last in ascending order are first, and of equal ones, the first as the array is turned round.
    found = by_lanes(flipped(node, (axis,)), axis, lambda lane, along: ArgSort(lane, along))
    return call(np.subtract, (node.shape[axis] - 1, flipped(found, (axis,))))[0]


def by_lanes(node: Expr, axis: int, function: Callable[[Expr, int], Expr], first: int = 0) -> Expr:
    """Return what a function of arrays and an axis gives, for each lane on its own where few are long.

    Parameters
    ----------
    first
        How many axes the function puts before those of the array.
    """
    lanes = node.size // max(1, node.shape[axis])
    if node.ndim == 1 or not 1 <= lanes <= _FEW_LANES:
        return function(node, axis)
    if node.shape[axis] * node.dtype.itemsize < _LONG_BYTES:
        return function(node, axis)
    lane = next((place for place, length in enumerate(node.shape) if length > 1 and place != axis), None)
    if lane is None:
        key = tuple(slice(0, length, 1) if place == axis else 0 for place, length in enumerate(node.shape))
        found = function(Index(node, key), 0)
        kept = tuple(slice(0, length, 1) for length in found.shape)
        back = tuple(kept[first] if place == axis else None for place in range(node.ndim))
        return Index(found, (*kept[:first], *back))
    parts = []
    for number in range(node.shape[lane]):
        key = tuple(
            slice(number, number + 1, 1) if place == lane else slice(0, length, 1)
            for place, length in enumerate(node.shape)
        )
        parts.append(by_lanes(Index(node, key), axis, function, first))
    return Concatenate(tuple(parts), first + lane)


def dense_of(node: Expr) -> Expr:
    """Return an array with every element stored."""
    return Broadcast(node, node.shape) if node.sparse else node


_KINDS = (None, "quicksort", "mergesort", "heapsort", "stable")


def _ready(
    a: object, axis: int | None, kind: str | None, stable: bool | None, order: object
) -> tuple[Expr, int]:
    # The array, flattened where no axis is given, and the axis.
    if order is not None:
        raise OptionError("order= is for structured arrays, which are not supported: leave it out")
    if kind is not None and kind[:1].lower() not in "qmhs":
        raise OptionError(f"kind={kind!r}: give one of {_KINDS[1:]}")
    if kind is not None and stable is not None:
        raise OptionError("kind= and stable= exclude each other: give one of them")
    node = expression_of(a)
    return laned(node, axis)


def _check_axis(a: object, axis: int | None) -> None:
    # NumPy finds the order of an array without axes, but does not put it in order.
    if axis is not None:
        one_axis(axis, expression_of(a).ndim)


@implements(np.sort)
def sort(
    a: ArrayLike,
    axis: int | None = -1,
    kind: str | None = None,
    order: None = None,
    *,
    descending: bool = False,
    stable: bool | None = None,
) -> DistArray:
    """``numpy.sort``, with the array API's ``descending=``; dense. In descending order NaN come first."""
    _check_axis(a, axis)
    node, place = _ready(a, axis, kind, None if stable is True else stable, order)
    return wrap(sorted_along(node, place, bool(descending)))


@implements(np.argsort)
def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    kind: str | None = None,
    order: None = None,
    *,
    descending: bool = False,
    stable: bool | None = None,
) -> DistArray:
    """``numpy.argsort``, with the array API's ``descending=``; always stable."""
    node, place = _ready(a, axis, kind, stable, order)
    return wrap(arg_sorted_along(node, place, bool(descending)))


@implements(np.partition)
def partition(
    a: ArrayLike,
    kth: int | Sequence[int],
    axis: int | None = -1,
    kind: str = "introselect",
    order: None = None,
) -> DistArray:
    """``numpy.partition``: fully sorted, not only at ``kth``."""
    _check_axis(a, axis)
    node, place = _ready(a, axis, None, None, order)
    _check_places(kth, node.shape[place])
    return wrap(sorted_along(node, place))


@implements(np.argpartition)
def argpartition(
    a: ArrayLike,
    kth: int | Sequence[int],
    axis: int | None = -1,
    kind: str = "introselect",
    order: None = None,
) -> DistArray:
    """``numpy.argpartition``: fully sorted, not only at ``kth``."""
    node, place = _ready(a, axis, None, None, order)
    _check_places(kth, node.shape[place])
    return wrap(arg_sorted_along(node, place))


def _check_places(kth: int | Sequence[int], length: int) -> None:
    if np.asarray(kth).dtype.kind not in "biu":
        raise DTypeError(f"kth={kth!r}: give integers")
    for one in np.atleast_1d(np.asarray(kth)).ravel():
        try:
            place = operator.index(one)
        except TypeError:
            raise DTypeError(f"kth={kth!r}: give integers") from None
        if length and not -length <= place < length:  # NumPy leaves nothing as it is
            raise ShapeError(
                f"kth={place} is out of bounds for an axis of length {length}: give {-length} to {length - 1}"
            )


_MOST_FIRST = 64  # of each lane, that are found without a sort in any case; and of long ones
_MOST_OF_LONG, _LONGER = 1024, 8


@has_fields
class TopElements(NamedTuple):
    """The first elements of lanes in an order, and their places."""

    values: DistArray
    places: DistArray


def topk(x: ArrayLike, k: int, axis: int = -1, largest: bool = True) -> TopElements:
    """Return the ``k`` largest or smallest elements along an axis, in order, and their indices.

    If the array is a large matrix product, or an elementwise function of one, it is never stored as a whole:
    it is computed and searched one tile at a time.

    Parameters
    ----------
    x
        An array with at least one axis; in a sparse one, elements that are not stored count as zeros.
    k
        An integer from 0 to the length of the axis.
    axis
        The axis along which elements are compared.
    largest
        True for the largest, in descending order; False for the smallest, in ascending order.

    Returns
    -------
    TopElements
        ``values``, of the array's dtype, and ``places``, their int64 indices, both with ``k`` elements along
        the axis. NaN is larger than any number, as in ``numpy.sort``; among equal elements the earlier comes
        first.

    Raises
    ------
    ShapeError
        When ``k`` is not from 0 to the axis' length, or the array has no axis.
    DTypeError
        When ``k`` or ``axis`` is not a whole number.

    Notes
    -----
    The name, the order and the arguments are those of ``torch.topk``. For small k, an element is inserted
    into the sorted list of the best so far if it beats the last of them (for a heap instead, see Knuth, The
    Art of Computer Programming, volume 3, section 5.3.3); for large k everything is sorted.

    Examples
    --------
    >>> import matnb as mn
    >>> found = mn.topk(mn.asarray([[3.0, 9.0, 9.0, 1.0], [2.0, 5.0, 4.0, 8.0]]), 2)
    >>> found.values.compute()
    array([[9., 9.],
           [8., 5.]])
    >>> found.places.compute()
    array([[1, 2],
           [3, 1]])
    """
    node = dense_of(expression_of(x))
    place = one_axis(axis, node.ndim)
    try:
        count = operator.index(k)
    except TypeError:
        raise DTypeError(f"topk: k={k!r}; give an integer") from None
    length = node.shape[place]
    if not 0 <= count <= length:
        raise ShapeError(f"topk: k={count} of an axis of length {length}; give 0 to {length}")
    few = _MOST_OF_LONG if _LONGER * count <= length else _MOST_FIRST
    if node.dtype.kind in "biuf" and node.dtype.itemsize <= 8 and 0 < count <= few:
        return TopElements(*(_firsts(node, place, count, bool(largest), places) for places in (False, True)))
    key = tuple(slice(0, count if one == place else full, 1) for one, full in enumerate(node.shape))
    places = wrap(Index(arg_sorted_along(node, place, bool(largest)), key))
    return TopElements(take_along_axis(DistArray(node), places, axis=place), places)


def _firsts(node: Expr, axis: int, count: int, is_largest: bool, is_places: bool) -> DistArray:
    # The first elements of lanes, or their places: of the rows of a matrix.
    last = moved(node, axis, node.ndim - 1)
    lanes = last.shape[:-1]
    matrix = last if last.ndim == 2 else reshaped(last, (prod(lanes), last.shape[-1]))
    found = reshaped(TopK(matrix, count, is_largest, is_places), (*lanes, count))
    return wrap(moved(found, node.ndim - 1, axis))


@implements(np.lexsort)
def lexsort(keys: ArrayLike, axis: int = -1) -> DistArray:
    """``numpy.lexsort`` for 1-D keys: the last key is the primary one."""
    nodes = [expression_of(one) for one in keys]  # type: ignore[attr-defined]  # a sequence, or an array's rows
    if not nodes:
        raise DTypeError("lexsort: give at least one key")
    if any(one.shape != nodes[0].shape for one in nodes):
        raise ShapeError("lexsort: keys have different shapes; give keys of the same shape")
    if any(one.ndim != 1 for one in nodes):
        raise UnsupportedError("lexsort of keys with several axes is not supported: sort each row on its own")
    order = wrap(arg_sorted_along(nodes[0], 0))
    for one in nodes[1:]:
        again = wrap(arg_sorted_along(DistArray(one)[order].expression, 0))
        order = order[again]
    return order


_FEW_BYTES = 2**20  # points of a function: up to here every worker has them all


@implements(np.searchsorted)
def searchsorted(a: ArrayLike, v: ArrayLike, side: str = "left", sorter: object = None) -> DistArray:
    """``numpy.searchsorted``."""
    ascending, values = expression_of(a), expression_of(v)
    if side[:1].lower() not in ("l", "r"):
        raise OptionError(f"searchsorted: side={side!r}; give 'left' or 'right'")
    if sorter is not None:
        order = DistArray(expression_of(sorter))
        if order.dtype.kind not in "iu":
            raise DTypeError(f"searchsorted: sorter of dtype {order.dtype}: give the indices from np.argsort")
        if order.shape != ascending.shape:
            raise ShapeError(f"searchsorted: sorter of shape {order.shape} for {ascending.shape}")
        ascending = DistArray(ascending)[order].expression
    return wrap(found_in(ascending, values, "left" if side[:1].lower() == "l" else "right"))


def found_in(ascending: Expr, values: Expr, side: str) -> Expr:
    """Return where values belong in an ascending array."""
    dtype = np.result_type(ascending.dtype, values.dtype)
    return Search(astype(dense_of(ascending), dtype), astype(dense_of(values), dtype), side)


@implements(np.digitize)
def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False) -> DistArray:
    """``numpy.digitize``; the direction of bins in a DistArray is computed immediately."""
    values, edges = expression_of(x), dense_of(expression_of(bins))
    if "c" in (values.dtype.kind, edges.dtype.kind):
        raise DTypeError("digitize: complex numbers have no order; give real ones")
    if edges.ndim != 1:
        raise ShapeError(f"digitize: bins have shape {edges.shape}: give a 1-d array")
    if _are_all(np.less_equal, edges):
        return wrap(found_in(edges, values, "left" if right else "right"))
    if not _are_all(np.greater_equal, edges):
        raise OptionError("digitize: bins must increase or decrease throughout; sort them first")
    found = found_in(flipped(edges, (0,)), values, "left" if right else "right")
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
    element: ArrayLike,
    test_elements: ArrayLike,
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
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike = None,
    right: ArrayLike = None,
    period: float | None = None,
) -> DistArray:
    """``numpy.interp``."""
    kind = np.complex128 if expression_of(fp).dtype.kind == "c" else np.float64
    if "c" in (expression_of(x).dtype.kind, expression_of(xp).dtype.kind):
        raise DTypeError("interp: x and xp must be real, as complex numbers have no order; fp may be complex")
    values = DistArray(astype(dense_of(expression_of(x)), np.float64))
    places = DistArray(astype(dense_of(expression_of(xp)), np.float64))
    heights = DistArray(astype(dense_of(expression_of(fp)), kind))
    if places.ndim != 1 or heights.ndim != 1:
        raise ShapeError(f"interp: xp and fp have shapes {places.shape} and {heights.shape}: give 1-d arrays")
    if places.shape != heights.shape or not places.size:
        raise ShapeError(
            f"interp: xp has {places.size} elements and fp has {heights.size}: give the same number, at "
            "least one"
        )
    ends = [expression_of(one).dtype.kind for one in (left, right) if one is not None]
    if kind is np.float64 and "c" in ends:
        raise DTypeError(f"interp: left={left} and right={right} with real fp: give real numbers")
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
    # Where that is not a number, from the other end; or both are alike.
    again = slope * (values - other) + high
    again = handle_of(np.where(np.isnan(again) & (low == high), low, again))
    found = handle_of(np.where(np.isnan(found), again, found))
    found = handle_of(np.where(values == one, low, found))
    found = handle_of(np.where(values == places[-1], heights[-1], found))
    found = handle_of(np.where(values > places[-1], above, found))
    found = handle_of(np.where(values < places[0], below, found))
    return handle_of(np.where(np.isnan(values), values, found))


_MOST_PARTS = 1000  # of what is distinct: each is a block


def unique_of(node: Expr, equal_nan: bool = True) -> Expr:
    """Return the distinct elements of an array, ascending; found at once, as their number depends on data.

    Raises
    ------
    LoopBodyError
        Inside the body of a loop or branch.
    """
    (values,) = _distinct(node, equal_nan, ("values",))
    return values.expression


def _distinct(given: Expr, equal_nan: bool, fields: tuple[str, ...]) -> list[DistArray]:
    flat = DistArray(dense_of(reshaped(given, (-1,))))
    what = "how many elements of np.unique there are"
    if flat.expression.free:
        asked(flat.expression, what)  # which refuses
    layout = evaluator().layout(flat.expression)
    if layout is None:
        # Cut as the array is, which is made first.
        evaluator().persist([flat.expression])
        layout = evaluator().layout(flat.expression)
    parts = 1 if layout is None else min(layout.grid.num_blocks, _MOST_PARTS)
    starts, places = "starts" in fields, "places" in fields
    cuts = regular_cuts(flat.size, parts)
    node = Distinct(flat.expression, cuts, equal_nan, starts, places)
    packed = DistArray(node)  # it lives until it is read
    counts = tuple(int(one) for one in asked(CountDistinct(node, node.ends), what))
    found: list[Expr] = [
        DistinctField(node, name, counts, cuts, flat.dtype, starts, places) for name in fields
    ]
    handles = [DistArray(one) for one in found]
    evaluator().persist(found)
    del packed
    return handles


@implements(np.unique)
def unique(
    ar: object,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> DistArray | tuple[DistArray, ...]:
    """``numpy.unique`` of all elements, ascending; computed immediately."""
    node = expression_of(ar)
    if axis is not None and node.ndim > 1:
        raise UnsupportedError(
            "np.unique(axis=) of an array with several axes is not supported: combine each row to "
            "one number, "
            "for example by a product with powers, and find the rows with return_index; or "
            "np.unique(x.compute(), axis=...)"
        )
    if axis is not None:
        one_axis(axis, node.ndim)  # refuses anything other than an axis
    fields = ("values", *(("places",) if return_index else ()), *(("starts",) if return_counts else ()))
    found = dict(zip(fields, _distinct(node, equal_nan, fields), strict=True))
    results = [found["values"]]
    if return_index:
        results.append(found["places"])
    if return_inverse:
        results.append(DistArray(_inverse(node, found["values"].expression, equal_nan)))
    if return_counts:
        results.append(_counts(found["starts"], node.size))
    return results[0] if len(results) == 1 else tuple(results)


def _inverse(node: Expr, values: Expr, equal_nan: bool) -> Expr:
    inverse = found_in(values, node, "left")
    if node.dtype.kind == "c":
        return _inverse_of_complex(node, values, inverse, equal_nan)
    if equal_nan or node.dtype.kind != "f":
        return inverse
    # Each NaN is an element of its own, in the order in which they come.
    missing = np.isnan(DistArray(dense_of(node)))
    flat = missing.reshape(-1)
    before = DistArray(expression_of(np.cumsum(flat.astype(np.int64)))) - 1
    own = DistArray(inverse) + before.reshape(missing.shape)
    return expression_of(np.where(missing, own, DistArray(inverse)))


def _inverse_of_complex(node: Expr, values: Expr, inverse: Expr, equal_nan: bool) -> Expr:
    # NaN in one part or both are in an order of their own behind all numbers; the first stands for all of
    # them, or each for itself.
    if equal_nan:
        return call(np.minimum, (inverse, max(0, values.size - 1)))[0]
    missing = np.isnan(DistArray(dense_of(node)))
    order = np.argsort(DistArray(dense_of(reshaped(node, (-1,)))), kind="stable")
    ranks = np.argsort(order, kind="stable") - (node.size - values.size)
    own = expression_of(ranks)
    own = own if own.shape == node.shape else reshaped(own, node.shape)
    return expression_of(np.where(missing, DistArray(own), DistArray(inverse)))


def _counts(starts: DistArray, total: int) -> DistArray:
    if not starts.size:
        return starts
    ends = expression_of(np.concatenate([starts[1:], np.array([total])]))
    return DistArray(call(np.subtract, (ends, starts.expression))[0])


def _result(name: str, *values: object) -> Any:
    # NumPy's own named tuples, as the functions return them.
    kind: Any = type(getattr(np, name)(np.empty(0)))
    return kind(*values)


@implements(np.unique_values)
def unique_values(x: ArrayLike, /) -> DistArray:
    """``numpy.unique_values``, ascending; every NaN counts as distinct."""
    return DistArray(unique_of(expression_of(x), equal_nan=False))


@implements(np.unique_counts)
def unique_counts(x: ArrayLike, /) -> Any:
    """``numpy.unique_counts``; every NaN counts as distinct."""
    values, counts = unique(x, return_counts=True, equal_nan=False)
    return _result("unique_counts", values, counts)


@implements(np.unique_inverse)
def unique_inverse(x: ArrayLike, /) -> Any:
    """``numpy.unique_inverse``; every NaN counts as distinct."""
    values, inverse = unique(x, return_inverse=True, equal_nan=False)
    return _result("unique_inverse", values, inverse)


@implements(np.unique_all)
def unique_all(x: ArrayLike, /) -> Any:
    """``numpy.unique_all``; every NaN counts as distinct."""
    found = unique(x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False)
    return _result("unique_all", *found)


def _flat(x: object) -> Expr:
    return dense_of(reshaped(expression_of(x), (-1,)))


def _alike(ar1: object, ar2: object) -> tuple[Expr, Expr]:
    one, other = _flat(ar1), _flat(ar2)
    dtype = np.result_type(one.dtype, other.dtype)
    return astype(one, dtype), astype(other, dtype)


def _kept(values: Expr, among: Expr, invert: bool, *others: Expr) -> list[Expr]:
    found = is_in(values, among)
    mask = call(np.logical_not, (found,))[0] if invert else found
    return [compressed(one, mask) for one in (values, *others)]


@implements(np.union1d)
def union1d(ar1: ArrayLike, ar2: ArrayLike) -> DistArray:
    """``numpy.union1d``; computed immediately."""
    return DistArray(unique_of(dense_of(concatenate((ar1, ar2), None).expression)))


@implements(np.intersect1d)
def intersect1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, return_indices: bool = False
) -> DistArray | tuple[DistArray, ...]:
    """``numpy.intersect1d``; computed immediately."""
    one, other = _alike(ar1, ar2)
    if not return_indices:
        values = one if assume_unique else unique_of(one)
        (found,) = _kept(values, other, False)
        return DistArray(sorted_of(found) if assume_unique else found)
    fields = ("values", "places")
    (first, places), (second, second_places) = (_distinct(node, True, fields) for node in (one, other))
    values, first_kept = _kept(first.expression, second.expression, False, places.expression)
    _, second_kept = _kept(second.expression, first.expression, False, second_places.expression)
    return DistArray(values), DistArray(first_kept), DistArray(second_kept)


@implements(np.setdiff1d)
def setdiff1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False) -> DistArray:
    """``numpy.setdiff1d``; computed immediately."""
    one = _flat(ar1)
    return DistArray(_kept(one if assume_unique else unique_of(one), _flat(ar2), True)[0])


@implements(np.setxor1d)
def setxor1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False) -> DistArray:
    """``numpy.setxor1d``; computed immediately."""
    nodes = [node if assume_unique else unique_of(node) for node in _alike(ar1, ar2)]
    parts = [DistArray(_kept(one, other, True)[0]) for one, other in (tuple(nodes), tuple(reversed(nodes)))]
    return DistArray(sorted_of(expression_of(np.concatenate(parts))))

"""A ufunc's ``at`` and ``reduceat``: at places that may repeat, and over runs of elements."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matnb.errors import DTypeError, IndexingError, ShapeError, UnsupportedError
from matnb.lazy import ufuncs
from matnb.lazy.access import Scatter
from matnb.lazy.array import DistArray, expression_of
from matnb.lazy.expr import Broadcast, Expr, Transpose, broadcast_shapes
from matnb.lazy.functions.reshaping import reshaped
from matnb.lazy.indexing import normalize_axes
from matnb.lazy.reductions import where as choose
from matnb.lazy.ufuncs import astype, call, literal

# What combines the values of one place before they meet what is there, and what then meets it.
_MONOIDS = {"add": "plus", "subtract": "plus", "multiply": "times", "divide": "times", "minimum": "min",
            "maximum": "max", "logical_or": "lor", "logical_and": "land"}  # fmt: skip
_FEW = 1000  # runs that are each worked out alone


def written_at(ufunc: np.ufunc, array: object, indices: object, *values: object) -> None:
    """Give a handle the version that ``ufunc.at`` makes of it: repeated places take part each time.

    Values of one place are combined before they meet the array, so sums of floats may round otherwise.

    Raises
    ------
    UnsupportedError
        For places in several arrays, or repeated ones of a ufunc whose order matters.
    """
    name = ufunc.__name__
    if not isinstance(array, DistArray):
        kind = type(array).__name__
        raise UnsupportedError(f"np.{name}.at into a {kind} from DistArrays: compute() them first")
    if len(values) != ufunc.nin - 1:
        raise DTypeError(f"np.{name}.at of a function of {ufunc.nin} arrays takes {ufunc.nin - 1} values")
    places = _places(indices)
    if places is None:  # each place once, or known by a mask
        old = array[indices]
        array[indices] = ufunc(old, *values)
        return
    if name not in _MONOIDS:
        known = ", ".join(f"np.{one}" for one in _MONOIDS)
        raise UnsupportedError(
            f"np.{name}.at with places that may repeat is not recorded; it is for {known}; where none "
            f"repeats, x[places] = np.{name}(x[places], ...)"
        )
    node = array.expression
    if not node.shape:
        raise IndexingError("an array without axes has no places")
    given = expression_of(values[0])
    if ufuncs.is_weak(values[0]):
        given = literal(np.asarray(values[0]).astype(np.result_type(node.dtype, values[0])))
    array._become(_scattered(ufunc, node, places, given))


def _places(indices: object) -> Expr | None:
    # Whole numbers in an array, which may repeat, along the first axis.
    if isinstance(indices, tuple):
        if len(indices) == 1:
            return _places(indices[0])
        if any(isinstance(one, DistArray | np.ndarray | list) for one in indices):
            raise UnsupportedError(
                "ufunc.at by several indices with an array among them is not recorded: flatten the array, "
                "and index by np.ravel_multi_index of the places"
            )
        return None
    if not isinstance(indices, DistArray | np.ndarray | list):
        return None
    index = expression_of(
        np.asarray(indices, np.intp) if isinstance(indices, list) and not indices else indices
    )
    if index.dtype.kind == "b" or not index.shape:
        return None
    if index.dtype.kind not in "iu":
        raise IndexingError(f"an index of dtype {index.dtype}: give whole numbers, or convert with astype")
    return index


def _scattered(ufunc: np.ufunc, node: Expr, places: Expr, given: Expr) -> Expr:
    monoid, rest, length = _MONOIDS[ufunc.__name__], node.shape[1:], node.shape[0]
    target = (*places.shape, *rest)
    (met,) = call(ufunc, (literal(0, node.dtype), literal(0, given.dtype)))
    if not np.can_cast(met.dtype, node.dtype, "same_kind"):
        raise DTypeError(
            f"np.{ufunc.__name__}.at: {met.dtype} does not go into dtype {node.dtype}; convert the "
            "array with astype first"
        )
    if met.dtype.kind == "b":
        monoid = {"plus": "lor", "times": "land"}.get(monoid, monoid)
    if broadcast_shapes(given.shape, target, name=f"{ufunc.__name__}.at") != target:
        raise ShapeError(f"values of shape {given.shape} do not fit places of shape {target}")
    values = given if given.shape == target else Broadcast(given, target)
    count, width = places.size, int(np.prod(rest, dtype=np.int64))
    labels = reshaped(places, (count,)) if places.ndim > 1 else places
    if labels.dtype.kind == "i":  # negative ones from the end
        labels = choose(call(np.less, (labels, 0))[0], call(np.add, (labels, length))[0], labels)
    wanted = (count, width) if rest else (count,)
    values = values if values.shape == wanted else reshaped(values, wanted)
    if node.sparse:
        node = Broadcast(node, node.shape)
    found: Expr = Scatter(values, labels, length, monoid)
    touched: Expr = Scatter(Broadcast(literal(True), (count,)), labels, length, "lor")
    if rest:
        found = found if found.shape == node.shape else reshaped(found, node.shape)
        touched = reshaped(touched, (length, *(1,) * len(rest)))
    (new,) = call(ufunc, (node, found))
    # What no place names stays as it is, negative zeros too.
    return choose(touched, astype(new, node.dtype), node)


def segments_reduced(
    ufunc: np.ufunc, array: object, indices: object, axis: int = 0, dtype: npt.DTypeLike | None = None
) -> Expr:
    """Return the expression of ``ufunc.reduceat``; the indices are known, in an array or a list.

    Raises
    ------
    IndexingError
        When an index is outside the axis.
    UnsupportedError
        For a ufunc that combines no values by label.
    """
    name = ufunc.__name__
    if name not in ("add", "multiply", "minimum", "maximum", "logical_or", "logical_and"):
        raise UnsupportedError(
            f"np.{name}.reduceat is not recorded; give the elements labels, and use mn.groupby or "
            "mn.scatter_reduce"
        )
    node = expression_of(array)
    starts = np.asarray(indices.compute() if isinstance(indices, DistArray) else indices)
    if starts.ndim != 1 or starts.dtype.kind not in "iu":
        raise IndexingError(f"reduceat: indices of shape {starts.shape} {starts.dtype}: give whole numbers")
    if not node.shape:
        raise DTypeError(f"{name}.reduceat of an array without axes")
    (place,) = normalize_axes(axis, node.ndim)
    length = node.shape[place]
    if starts.size and (starts.min() < 0 or starts.max() >= length):
        raise IndexingError(f"reduceat: an index outside an axis of length {length}")
    order = (place, *(one for one in range(node.ndim) if one != place))
    lines = node if place == 0 else Transpose(node, order)
    found = _runs(ufunc, lines if dtype is None else astype(lines, dtype), starts.astype(np.int64))
    return found if place == 0 else Transpose(found, tuple(int(one) for one in np.argsort(order)))


def _runs(ufunc: np.ufunc, node: Expr, starts: np.ndarray) -> Expr:
    # Runs of which each begins behind the one before are labels that go up; any others are worked out alone.
    monoid = _MONOIDS[ufunc.__name__]
    rest, length = node.shape[1:], node.shape[0]
    if node.sparse:
        node = Broadcast(node, node.shape)
    ends = np.append(starts[1:], length)
    if (ends > starts).all() and starts.size:
        from matnb.lazy.creation import arange

        handle = DistArray(node)[int(starts[0]) :]
        bounds = starts[1:] - starts[0]
        found = np.searchsorted(bounds, arange(length - int(starts[0])), side="right")
        labels = expression_of(found)
        values = handle.expression
        width = int(np.prod(rest, dtype=np.int64))
        if len(rest) > 1:
            values = reshaped(values, (values.shape[0], width))
        result: Expr = Scatter(values, labels, starts.size, monoid)
        return result if result.shape == (starts.size, *rest) else reshaped(result, (starts.size, *rest))
    if starts.size > _FEW:
        raise UnsupportedError(
            f"np.{ufunc.__name__}.reduceat over {starts.size} runs that overlap is not recorded: give "
            "indices that increase"
        )
    handle = DistArray(node)
    parts = [
        ufunc.reduce(handle[int(start) : max(int(stop), int(start) + 1)], axis=0)
        for start, stop in zip(starts, ends, strict=True)
    ]
    if not parts:
        return expression_of(np.zeros((0, *rest), ufunc.reduce(np.ones(1, node.dtype)).dtype))
    return expression_of(np.stack(parts))

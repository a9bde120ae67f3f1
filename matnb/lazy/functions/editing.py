"""NumPy's functions that put parts into arrays, drop some, or repeat the whole to a length."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

import numpy as np

from matnb.blocks.creation import Arange, Full
from matnb.errors import IndexingError, OptionError, ShapeError, UnsupportedError
from matnb.expr.nodes import Broadcast, Create, Expr, Index
from matnb.lazy.array import DistArray, expression_of, wrap
from matnb.lazy.creation import ShapeLike, shape_of
from matnb.lazy.force import asked
from matnb.lazy.functions.joining import joined, joined_ranges, with_axes
from matnb.lazy.functions.moving import tiled
from matnb.lazy.functions.reshaping import reshaped
from matnb.lazy.functions.shapes import moveaxis
from matnb.lazy.functions.splitting import sliced
from matnb.lazy.indexing.canonical import normalize_axes, normalize_key, one_axis
from matnb.lazy.indexing.getitem import converted
from matnb.lazy.reductions import reduce
from matnb.lazy.registry import implements, recorded
from matnb.lazy.ufuncs import call

_MOST_PARTS = 1000  # of an array that is put together from slices
Places = int | slice | Sequence[int]


def _along(arr: object, axis: int | None) -> tuple[Expr, int]:
    # An array and its axis; without one it is the array's elements in a row.
    node = expression_of(arr)
    if axis is None:
        return reshaped(node, (node.size,)), 0
    return node, one_axis(axis, node.ndim)


def _whole(places: object) -> np.ndarray:
    # Numbers a user lists; a list of none is as good as any.
    found = np.asarray(places)
    return found.astype(np.int64) if not found.size and found.dtype.kind == "f" else found


def _check_places(places: np.ndarray, length: int, most: int) -> np.ndarray:
    if places.dtype.kind not in "iu":
        raise IndexingError(f"places of dtype {places.dtype}: give whole numbers")
    if ((places < -length) | (places > most)).any():
        raise IndexingError(f"place {places[(places < -length) | (places > most)][0]} of length {length}")
    return np.where(places < 0, places + length, places)


def _check_parts(count: int, name: str, instead: str) -> None:
    if count > _MOST_PARTS:
        raise UnsupportedError(f"{name} at {count:,} places, each of which cuts the array: {instead}")


@implements(np.delete)
def delete(arr: object, obj: object, axis: int | None = None) -> DistArray:
    """``numpy.delete``; where ``obj`` is a DistArray of booleans, the length is asked for."""
    node, place = _along(arr, axis)
    length = node.shape[place]
    if isinstance(obj, slice):
        return wrap(_without_range(node, place, range(length)[obj]))
    chosen = expression_of(obj) if isinstance(obj, DistArray) else _whole(obj)
    if chosen.dtype.kind == "b":
        return _without_mask(node, place, expression_of(obj))
    _check_parts(chosen.size, "np.delete", "use x[mask], or np.delete(x, mask), where mask is of booleans")
    if isinstance(chosen, Expr):
        chosen = asked(chosen, "which elements np.delete drops")
    dropped = np.unique(_check_places(chosen.reshape(-1), length, length - 1))
    return wrap(_joined_ranges(node, place, dropped))


def _joined_ranges(node: Expr, axis: int, dropped: np.ndarray) -> Expr:
    # What lies between the places that are dropped.
    bounds = [-1, *dropped.tolist(), node.shape[axis]]
    ranges = [(low + 1, high) for low, high in pairwise(bounds) if low + 1 < high] or [(0, 0)]
    return joined_ranges(node, ranges, axis)


def _without_range(node: Expr, axis: int, dropped: range) -> Expr:
    if not dropped:
        return node
    step = abs(dropped.step)
    low, high = min(dropped), max(dropped) + 1
    if step == 1:
        return joined_ranges(node, [(0, low), (high, node.shape[axis])], axis)
    before, after = sliced(node, axis, slice(0, low)), sliced(node, axis, slice(high, None))
    # Between, the rows of a table each begin with what is dropped; of the last one nothing else is left.
    count = len(dropped) - 1
    middle = sliced(node, axis, slice(low, low + count * step))
    rows, width = prod(node.shape[:axis]) * count, prod(node.shape[axis + 1 :])
    kept = sliced(reshaped(middle, (rows, step * width)), 1, slice(width, None))
    shape = (*node.shape[:axis], count * (step - 1), *node.shape[axis + 1 :])
    return joined([before, reshaped(kept, shape), after], axis)


def _without_mask(node: Expr, axis: int, mask: Expr) -> DistArray:
    if mask.shape != (node.shape[axis],):
        raise ShapeError(f"np.delete: booleans of shape {mask.shape} for an axis of {node.shape[axis]}")
    kept = DistArray(call(np.logical_not, (mask,))[0])
    if axis == 0:
        return DistArray(node)[kept]
    return moveaxis(moveaxis(DistArray(node), axis, 0)[kept], 0, axis)


@implements(np.insert)
def insert(arr: object, obj: object, values: object, axis: int | None = None) -> DistArray:
    """``numpy.insert``; at 1,000 places at most."""
    node, place = _along(arr, axis)
    length = node.shape[place]
    new = converted(values, node.dtype)
    if isinstance(obj, slice):
        chosen = np.arange(length)[obj] if abs(obj.step or 1) * _MOST_PARTS >= length else np.arange(length)
    else:
        if isinstance(obj, DistArray):
            _check_parts(obj.size, "np.insert", "concatenate and sort by keys instead")
        chosen = _whole(
            asked(obj.expression, "where np.insert puts them") if isinstance(obj, DistArray) else obj
        )
    if chosen.dtype.kind == "b":
        chosen = np.flatnonzero(chosen) if chosen.ndim else chosen
    if chosen.ndim > 1:
        raise OptionError("np.insert: places in one row, or a single one")
    places = _check_places(chosen.reshape(-1), length, length)
    if places.size == 1 and not chosen.ndim and new.ndim:
        # NumPy reads values for a single place as what stands there: its first axis is the array's.
        new = expression_of(moveaxis(DistArray(with_axes(new, node.ndim)), 0, place))
    count = new.shape[place] if places.size == 1 and new.ndim == node.ndim else max(places.size, 0)
    _check_parts(places.size, "np.insert", "concatenate and sort by keys instead")
    shape = (*node.shape[:place], count, *node.shape[place + 1 :])
    new = new if new.shape == shape else Broadcast(new, shape)
    if places.size == 1:
        ranges = [(int(places[0]), slice(0, count))]
    else:
        order = np.argsort(places, kind="stable")
        ranges = [(int(places[one]), slice(int(one), int(one) + 1)) for one in order]
    parts, done = [], 0
    for where, part in ranges:
        if where > done:
            parts.append(sliced(node, place, slice(done, where)))
            done = where
        parts.append(sliced(new, place, part))
    parts.append(sliced(node, place, slice(done, None)))
    return wrap(joined(parts, place))


@implements(np.resize)
def resize(a: object, new_shape: ShapeLike) -> DistArray:
    """``numpy.resize``."""
    node, shape = expression_of(a), shape_of(new_shape)
    size = prod(shape)
    if not node.size or not size:
        return wrap(Create(Full(shape, bytes(node.dtype.itemsize), node.dtype)))
    flat = tiled(reshaped(node, (node.size,)), -(-size // node.size), 0)
    return wrap(reshaped(sliced(flat, 0, slice(0, size)), shape))


@implements(np.trim_zeros)
def trim_zeros(filt: object, trim: str = "fb", axis: int | Sequence[int] | None = None) -> DistArray:
    """``numpy.trim_zeros``; where the first and last other elements are is computed at once."""
    node = expression_of(filt)
    if not set(trim.lower()) <= set("fb"):
        raise OptionError(f"trim_zeros: trim {trim!r}; choose 'f', 'b' or 'fb'")
    axes = normalize_axes(None if axis is None else tuple(np.atleast_1d(axis).tolist()), node.ndim)
    key: list[slice] = [slice(None)] * node.ndim
    for one in axes:
        first, last = _bounds(node, one)
        key[one] = slice(
            first if "f" in trim.lower() else 0, last if "b" in trim.lower() else node.shape[one]
        )
        if first == last:
            key[one] = slice(0, 0)
    return wrap(Index(node, normalize_key(tuple(key), node.shape)))


def _bounds(node: Expr, axis: int) -> tuple[int, int]:
    # Where along an axis the first slice with an element that is not zero is, and the one after the last.
    length = node.shape[axis]
    if not node.size:
        return 0, 0
    some = call(np.not_equal, (node, 0))[0]
    if node.ndim > 1:
        others = tuple(place for place in range(node.ndim) if place != axis)
        some = reduce(some, "any", others)
    places = Create(Arange(0, 1, length, np.dtype(np.int64)))
    first = reduce(_chosen(some, places, length), "min")
    last = reduce(_chosen(some, places, -1), "max")
    found = asked(joined([reshaped(first, (1,)), reshaped(last, (1,))], 0), "what np.trim_zeros leaves")
    start, stop = found.tolist()
    return (0, 0) if stop < 0 else (start, stop + 1)


def _chosen(mask: Expr, places: Expr, otherwise: int) -> Expr:
    return expression_of(recorded(np.where)(DistArray(mask), DistArray(places), otherwise))

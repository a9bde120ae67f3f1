"""What a user reads and assigns by arrays of whole numbers, on any axes, as in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from matnb.blocks.formats import Dense
from matnb.errors import IndexingError
from matnb.expr.client_data import extent, held
from matnb.expr.nodes import Broadcast, Expr, Index, Literal, Shape, Transpose
from matnb.lazy.indexing.basic import basic, put, stripped
from matnb.lazy.indexing.keys import IndexKey, is_whole, parts_of, without_axes
from matnb.lazy.shapes import reshaped
from matnb.lazy.ufuncs import astype, literal
from matnb.ops.indexing import Pick, Put


def indexed(node: Expr, key: object) -> Expr:
    """Return what an index picks.

    Parameters
    ----------
    key
        As in NumPy, of integers, slices, ``...``, None, and expressions of whole numbers.

    Raises
    ------
    IndexingError
        For an integer or a known place out of range, too many entries, or an index of another kind.
    """
    parts = parts_of(key, node.shape)
    result = basic(node, parts)
    if not parts.lists:
        return result
    lists = parts.lists_by_axis()
    shape = parts.broadcast()
    check_places(lists, result.shape)
    if _is_crossing(list(lists.values()), shape):
        for place, (axis, index) in enumerate(lists.items()):
            result = Pick(result, (_part_of(index, place),), axis)
        if parts.is_first:
            result = turned(result, tuple(lists))
        return result
    result, axis = _side_by_side(result, tuple(lists), parts.is_first)
    picked: Expr = Pick(result, tuple(vectors(list(lists.values()), shape)), axis)
    if len(shape) == 1:
        return picked
    if picked.sparse:
        picked = Broadcast(picked, picked.shape)
    return reshaped(picked, (*picked.shape[:axis], *shape, *picked.shape[axis + 1 :]))


def assigned(node: Expr, key: object, value: Expr) -> Expr:
    """Return an array with a value written at a place; of equal places the last one stays.

    Parameters
    ----------
    key
        As in NumPy, of integers, slices, ``...``, None, and expressions of whole numbers.
    value
        Broadcasts to the place, and is converted to the array's dtype, as ``astype`` does.

    Raises
    ------
    ShapeError
        When the value does not fit the place.
    IndexingError
        For a known place out of range, and other kinds of indices.
    """
    parts = parts_of(key, node.shape)
    new = astype(value, node.dtype)
    if not parts.lists:
        return put(node, parts, new)
    region = basic(node, parts)
    return put_back(node, parts, _written(region, parts, new))


def put_back(node: Expr, parts: IndexKey, written: Expr) -> Expr:
    """Return an array with what its basic part became, all of it."""
    if None in parts.plain:
        dropped = {parts.axis_of(place) for place, part in enumerate(parts.plain) if part is None}
        written = without_axes(written, dropped)
    if is_whole(parts.plain, node.shape) and not parts.numbers:
        return written
    return put(node, IndexKey(parts.plain, parts.numbers, {}, False), written, drop_new_axes=True)


def _written(region: Expr, parts: IndexKey, new: Expr) -> Expr:
    lists = parts.lists_by_axis()
    shape = parts.broadcast()
    check_places(lists, region.shape)
    beside, axis = _side_by_side(region, tuple(lists), parts.is_first)
    places = vectors(list(lists.values()), shape)
    behind = beside.ndim - axis - len(places)
    new = stripped(new, axis + len(shape) + behind)
    if new.sparse:
        new = Broadcast(new, new.shape)
    if len(shape) != 1 and new.ndim > behind:
        whole = (*beside.shape[:axis], *shape, *beside.shape[axis + len(places) :])
        new = reshaped(Broadcast(new, whole), (*whole[:axis], prod(shape), *whole[axis + len(shape) :]))
    key = [slice(0, length, 1) for length in beside.shape]
    listed = (*key[:axis], *(None,) * len(places), *key[axis + len(places) :])
    written = Put(beside, new, tuple(places), listed)
    return written if beside is region else turned_back(written, tuple(lists))


def turned_back(node: Expr, axes: tuple[int, ...]) -> Expr:
    """Return an array whose first axes were some others, as it was."""
    order = _order(axes, node.ndim)
    back = tuple(order.index(one) for one in range(node.ndim))
    return node if back == tuple(range(node.ndim)) else Transpose(node, back)


def _side_by_side(node: Expr, axes: tuple[int, ...], is_first: bool) -> tuple[Expr, int]:
    # The array with the axes of the lists one after the other, and which is the first of them.
    if axes == tuple(range(axes[0], axes[0] + len(axes))) and not (is_first and axes[0]):
        return node, axes[0]
    return turned(node, axes), 0


def turned(node: Expr, axes: tuple[int, ...]) -> Expr:
    """Return an array with some axes first."""
    order = _order(axes, node.ndim)
    return node if order == tuple(range(node.ndim)) else Transpose(node, order)


def _order(axes: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    return (*axes, *(axis for axis in range(ndim) if axis not in axes))


def _is_crossing(lists: Sequence[Expr], shape: Shape) -> bool:
    # As np.ix_ makes them: each along an axis of its own, so that each picks on its own.
    if len(lists) < 2 or len(lists) != len(shape):
        return False
    return all(
        one.ndim == len(shape) and all(n == 1 for axis, n in enumerate(one.shape) if axis != place)
        for place, one in enumerate(lists)
    )


def _part_of(index: Expr, place: int) -> Expr:
    if isinstance(index, Literal):
        return literal(index.value.reshape(-1))
    key = tuple(slice(0, n, 1) if axis == place else 0 for axis, n in enumerate(index.shape))
    return Index(index, key)


def vectors(lists: Sequence[Expr], shape: Shape) -> list[Expr]:
    """Return lists of places at full length, in row order."""
    found: list[Expr] = []
    for index in lists:
        if isinstance(index, Literal):
            found.append(literal(np.broadcast_to(index.value, shape).reshape(-1)))
            continue
        whole = index if index.shape == shape else Broadcast(index, shape)
        found.append(whole if len(shape) == 1 else reshaped(whole, (prod(shape),)))
    return found


def check_places(lists: dict[int, Expr], shape: Shape) -> None:
    """Refuse places outside that are known now: later, an array assigned to would be beyond repair."""
    for axis, index in lists.items():
        length, known = shape[axis], extent(index)
        if known is not None and -length <= known[0] <= known[1] < length:
            continue
        block = Dense(index.value) if isinstance(index, Literal) else held(index)
        if isinstance(block, Dense):
            values = block.values
            outside = values[np.greater_equal(values, length) | np.less(values, -length)]
            if outside.size:
                raise IndexingError(f"index {outside[0]} is out of bounds for axis {axis} of length {length}")

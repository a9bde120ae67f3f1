"""What a user reads and assigns by slices and numbers, and what ``out=`` makes of an array."""

from __future__ import annotations

import numpy as np

from matnb.errors import DTypeError, ShapeError
from matnb.expr.nodes import Broadcast, Expr, Index, broadcast_shapes
from matnb.lazy.indexing.keys import IndexKey, is_whole, without_axes
from matnb.lazy.reductions import where as choose
from matnb.lazy.ufuncs import astype
from matnb.ops.indexing import Pick, Put


def basic(node: Expr, parts: IndexKey) -> Expr:
    """Return what the basic part of an index picks, and numbers known at run time."""
    result = node if is_whole(parts.plain, node.shape) else Index(node, parts.plain)
    for place in sorted(parts.numbers, reverse=True):
        gone = sum(isinstance(part, int) for part in parts.plain[:place])
        result = Pick(result, (parts.numbers[place],), place - gone)
    return result


def put(node: Expr, parts: IndexKey, new: Expr, drop_new_axes: bool = False) -> Expr:
    """Return an array with a value of its dtype written where the basic part of an index says.

    Parameters
    ----------
    new
        Broadcasts to the place; it has no axes for None if they are dropped.
    """
    if None in parts.plain and not drop_new_axes:
        new = _without_new_axes(new, parts)
    places = [place for place, part in enumerate(parts.plain) if part is not None]
    key: list[int | slice | None] = [
        None if place in parts.numbers else parts.plain[place] for place in places
    ]
    upward, new = _forward(key, stripped(new, sum(isinstance(part, slice) for part in key)))
    numbers = tuple(parts.numbers[place] for place in sorted(parts.numbers))
    written = Put(node, new, numbers, tuple(upward))
    if 0 in written.target:
        return node
    if written.target == node.shape and not numbers and new.shape == node.shape and new.sparse == node.sparse:
        return new
    if written.target == node.shape and not numbers and not node.sparse:
        return Broadcast(new, node.shape)
    if new.sparse and not (node.sparse and new.shape == written.target and len(new.shape) == 2):
        return Put(node, Broadcast(new, new.shape), numbers, written.key)  # what is written is dense
    return written


def _without_new_axes(new: Expr, parts: IndexKey) -> Expr:
    # A value for a place with new axes has length 1 there, if it has these axes at all.
    kept = [part for place, part in enumerate(parts.plain) if place not in parts.numbers]
    kept = [part for part in kept if not isinstance(part, int)]
    new = stripped(new, len(kept))
    key: list[int | slice | None] = []
    for part, length in zip(reversed(kept), reversed(new.shape), strict=False):
        if part is None and length != 1:
            raise ShapeError(f"a value of shape {new.shape} has length {length} where a new axis is")
        key.append(0 if part is None else slice(0, length, 1))
    return Index(new, tuple(reversed(key))) if 0 in key and new.ndim <= len(kept) else new


def _forward(parts: list[int | slice | None], new: Expr) -> tuple[list[int | slice | None], Expr]:
    # x[::-1] = v is x[::1] = v[::-1]: only slices that go up are left, and the value turns where they fell.
    upward: list[int | slice | None] = []
    turned: list[bool] = []  # for each axis of what is written
    for part in parts:
        if isinstance(part, slice) and part.step < 0:
            covered = range(*part.indices(part.start + 1))
            upward.append(slice(covered[-1], covered[0] + 1, -part.step))
        else:
            upward.append(part)
        if isinstance(part, slice):
            turned.append(part.step < 0)
    key = [
        slice(length - 1, None, -1) if falls and length > 1 else slice(0, length, 1)
        for falls, length in zip(reversed(turned), reversed(new.shape), strict=False)
    ]
    if all(one.step > 0 for one in key):
        return upward, new
    rest = (slice(0, length, 1) for length in new.shape[: new.ndim - len(key)])
    return upward, Index(new, (*rest, *reversed(key)))


def stripped(new: Expr, ndim: int) -> Expr:
    """Return a value without leading axes of length 1 that its place has not, as in NumPy."""
    extra = new.ndim - ndim
    if extra <= 0 or any(length != 1 for length in new.shape[:extra]):
        return new
    return without_axes(new, range(extra))


def replacing(old: Expr, new: Expr, where: Expr | None = None) -> Expr:
    """Return what ``out=`` makes of an array: the result in its dtype, where the booleans are true if given.

    Raises
    ------
    ShapeError
        When the shapes differ.
    DTypeError
        When the result would lose more than precision.
    """
    if old.shape != new.shape:
        raise ShapeError(f"out= has shape {old.shape} but the result has shape {new.shape}")
    if not np.can_cast(new.dtype, old.dtype, "same_kind"):
        raise DTypeError(
            f"a result of dtype {new.dtype} cannot be stored in an array of dtype {old.dtype}; "
            "convert it with astype"
        )
    result = astype(new, old.dtype)
    if where is None:
        return result
    if where.dtype.kind != "b" or broadcast_shapes(where.shape, old.shape, name="where=") != old.shape:
        raise ShapeError(
            f"where= has shape {where.shape} and dtype {where.dtype}: give booleans that broadcast "
            f"to {old.shape}"
        )
    return choose(where, result, old)

"""NumPy's functions that put elements at other places of the same axes: flipped, rolled, turned, tiled."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import prod

import numpy as np

from matnb.errors import DTypeError, ShapeError
from matnb.expr.nodes import Expr, Index
from matnb.lazy.array import DistArray, expression_of, wrap
from matnb.lazy.functions.joining import joined, joined_ranges
from matnb.lazy.functions.reshaping import reshaped
from matnb.lazy.functions.shapes import transposed
from matnb.lazy.functions.splitting import sliced
from matnb.lazy.indexing.canonical import normalize_axes, normalize_key
from matnb.lazy.registry import implements
from matnb.ops.reshaping import Repeat

_FEW = 16  # copies beside each other are that many blocks that are not copied, up to here


def flipped(node: Expr, axes: Sequence[int]) -> Expr:
    """Return the expression with the order of some axes' elements reversed."""
    key = tuple(slice(None, None, -1 if axis in axes else 1) for axis in range(node.ndim))
    return Index(node, normalize_key(key, node.shape))


@implements(np.flip)
def flip(m: object, axis: int | tuple[int, ...] | None = None) -> DistArray:
    """``numpy.flip``."""
    node = expression_of(m)
    return wrap(flipped(node, normalize_axes(axis, node.ndim)))


@implements(np.fliplr)
def fliplr(m: object) -> DistArray:
    """``numpy.fliplr``."""
    node = expression_of(m)
    if node.ndim < 2:
        raise ShapeError(f"fliplr of shape {node.shape}: give an array of two or more axes")
    return wrap(flipped(node, (1,)))


@implements(np.flipud)
def flipud(m: object) -> DistArray:
    """``numpy.flipud``."""
    node = expression_of(m)
    if not node.ndim:
        raise ShapeError("flipud of an array without axes")
    return wrap(flipped(node, (0,)))


@implements(np.rot90)
def rot90(m: object, k: int = 1, axes: Sequence[int] = (0, 1)) -> DistArray:
    """``numpy.rot90``."""
    node = expression_of(m)
    if len(axes) != 2 or len(normalize_axes(tuple(axes), node.ndim)) != 2:
        raise ShapeError(f"rot90: axes {tuple(axes)}; give two different ones")
    one, other = (axis % node.ndim for axis in axes)
    turns = k % 4
    if turns in (0, 2):
        return wrap(flipped(node, (one, other)) if turns else node)
    order = list(range(node.ndim))
    order[one], order[other] = other, one
    return wrap(transposed(flipped(node, (other if turns == 1 else one,)), order))


@implements(np.roll)
def roll(a: object, shift: int | Sequence[int], axis: int | tuple[int, ...] | None = None) -> DistArray:
    """``numpy.roll``: each block stays where it is, but for the one that is cut in two."""
    node = expression_of(a)
    if axis is None:
        flat = (1, node.size) if node.sparse else (node.size,)
        return wrap(reshaped(_rolled(reshaped(node, flat), len(flat) - 1, _sum(shift)), node.shape))
    axes = [axis] if isinstance(axis, int | np.integer) else list(axis)
    shifts, places = np.broadcast_arrays(np.asarray(shift), np.asarray(axes))
    if shifts.dtype.kind not in "iu":
        raise DTypeError(f"roll: shift {shift!r}; give whole numbers")
    if shifts.ndim > 1:
        raise ShapeError("roll: shift and axis are numbers or tuples of them")
    for one, place in zip(shifts.tolist(), places.tolist(), strict=True):
        node = _rolled(node, normalize_axes(place, node.ndim)[0], one)
    return wrap(node)


def _sum(shift: int | Sequence[int]) -> int:
    return sum(map(operator.index, shift)) if np.ndim(shift) else operator.index(shift)  # type: ignore[arg-type]  # as looked at


def _rolled(node: Expr, axis: int, shift: int) -> Expr:
    length = node.shape[axis]
    start = shift % length if length else 0
    if not start:
        return node
    return joined_ranges(node, [(length - start, length), (0, length - start)], axis)


def tiled(node: Expr, count: int, axis: int) -> Expr:
    """Return the expression of so many copies of an array, one beside the other along an axis."""
    if count == 1:
        return node
    if count == 0:
        return sliced(node, axis, slice(0, 0))
    if count <= _FEW:
        return joined([node] * count, axis)
    if node.sparse:
        whole = [tiled(node, _FEW, axis)] * (count // _FEW)
        return joined([*_in_turn(whole, axis), *[node] * (count % _FEW)], axis)
    before, after = node.shape[:axis], node.shape[axis + 1 :]
    rows = reshaped(node, (prod(before), 1, node.shape[axis] * prod(after)))
    return reshaped(Repeat(rows, count, 1), (*before, count * node.shape[axis], *after))


def _in_turn(parts: list[Expr], axis: int) -> list[Expr]:
    # Of many equal parts, a few of them put together.
    return [tiled(parts[0], len(parts), axis)] if len(parts) > _FEW else parts


@implements(np.tile)
def tile(A: object, reps: int | Sequence[int]) -> DistArray:
    """``numpy.tile``."""
    node = expression_of(A)
    counts = tuple(map(operator.index, reps)) if np.ndim(reps) else (operator.index(reps),)  # type: ignore[arg-type]  # as looked at
    if any(count < 0 for count in counts):
        raise ShapeError(f"tile: {counts} copies; counts cannot be negative")
    ndim = max(node.ndim, len(counts))
    counts = (1,) * (ndim - len(counts)) + counts
    if ndim > node.ndim:
        node = reshaped(node, (1,) * (ndim - node.ndim) + node.shape)
    for axis, count in enumerate(counts):
        node = tiled(node, count, axis)
    return wrap(node)

"""NumPy's functions on shapes: transposes, new and dropped axes, broadcasting, and arrays like others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from matnb.errors import ShapeError
from matnb.expr.nodes import Broadcast, Expr, Index, Transpose, broadcast_shapes
from matnb.lazy.array import DistArray, expression_of, wrap
from matnb.lazy.creation import Number, ShapeLike, full, shape_of
from matnb.lazy.functions.joining import at_least_three
from matnb.lazy.functions.reshaping import reshaped
from matnb.lazy.indexing.canonical import normalize_axes, one_axis
from matnb.lazy.reductions import axes_of
from matnb.lazy.registry import implements

Axes = int | Sequence[int]


def transposed(node: Expr, axes: Sequence[int] | None = None) -> Expr:
    """Return the expression with its axes in another order, reversed where none is given."""
    order = tuple(reversed(range(node.ndim))) if axes is None else _places(axes, node.ndim)
    if len(order) != node.ndim:
        raise ShapeError(f"axes {tuple(order)} do not reorder the {node.ndim} axes of the array")
    return node if order == tuple(range(node.ndim)) else Transpose(node, order)


def _places(axes: Axes, ndim: int) -> tuple[int, ...]:
    # In the order given, unlike those of normalize_axes.
    given = (axes,) if isinstance(axes, int | np.integer) else tuple(axes)
    normalize_axes(given, ndim)  # refuses those that are not there, or named twice
    return tuple(int(one) % ndim for one in given)


@implements(np.transpose, np.permute_dims)
def transpose(a: object, axes: Sequence[int] | None = None) -> DistArray:
    """``numpy.transpose``."""
    return wrap(transposed(expression_of(a), axes))


@implements(np.matrix_transpose)
def matrix_transpose(x: object, /) -> DistArray:
    """``numpy.matrix_transpose``."""
    node = expression_of(x)
    if node.ndim < 2:
        raise ShapeError(f"a matrix transpose of shape {node.shape} needs two axes")
    return wrap(transposed(node, (*range(node.ndim - 2), node.ndim - 1, node.ndim - 2)))


@implements(np.swapaxes)
def swapaxes(a: object, axis1: int, axis2: int) -> DistArray:
    """``numpy.swapaxes``."""
    node = expression_of(a)
    one, other = one_axis(axis1, node.ndim), one_axis(axis2, node.ndim)
    axes = list(range(node.ndim))
    axes[one], axes[other] = axes[other], axes[one]
    return wrap(transposed(node, axes))


@implements(np.moveaxis)
def moveaxis(a: object, source: Axes, destination: Axes) -> DistArray:
    """``numpy.moveaxis``."""
    node = expression_of(a)
    old, new = _places(source, node.ndim), _places(destination, node.ndim)
    if len(old) != len(new):
        raise ShapeError(f"moveaxis: {len(old)} axes to {len(new)} places; give one place an axis")
    order = [axis for axis in range(node.ndim) if axis not in old]
    for place, axis in sorted(zip(new, old, strict=True)):
        order.insert(place, axis)
    return wrap(transposed(node, order))


@implements(np.rollaxis)
def rollaxis(a: object, axis: int, start: int = 0) -> DistArray:
    """``numpy.rollaxis``."""
    node = expression_of(a)
    place = one_axis(axis, node.ndim)
    if not -node.ndim <= start <= node.ndim:
        raise ShapeError(f"rollaxis: start {start} for an array of {node.ndim} axes")
    before = start + node.ndim if start < 0 else start
    return moveaxis(DistArray(node), place, before - 1 if place < before else before)


@implements(np.broadcast_to)
def broadcast_to(array: object, shape: ShapeLike, subok: bool = False) -> DistArray:
    """``numpy.broadcast_to``."""
    return wrap(_stretched(expression_of(array), shape_of(shape)))


def _stretched(node: Expr, shape: tuple[int, ...]) -> Expr:
    return node if node.shape == shape else Broadcast(node, shape)


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: object, subok: bool = False) -> tuple[DistArray, ...]:
    """``numpy.broadcast_arrays``."""
    nodes = [expression_of(one) for one in args]
    shape = broadcast_shapes(*(node.shape for node in nodes), name="broadcast_arrays")
    return tuple(wrap(_stretched(node, shape)) for node in nodes)


@implements(np.expand_dims)
def expand_dims(a: object, axis: int | tuple[int, ...]) -> DistArray:
    """``numpy.expand_dims``."""
    node = expression_of(a)
    count = 1 if isinstance(axis, int | np.integer) else len(axis)
    new = normalize_axes(axis, node.ndim + count)
    lengths = iter(node.shape)
    key = tuple(None if place in new else slice(0, next(lengths), 1) for place in range(node.ndim + count))
    return wrap(Index(node, key))


@implements(np.squeeze)
def squeeze(a: object, axis: int | tuple[int, ...] | None = None) -> DistArray:
    """``numpy.squeeze``."""
    node = expression_of(a)
    if axis is None:
        dropped = tuple(place for place, length in enumerate(node.shape) if length == 1)
    else:
        dropped = axes_of(axis, node.ndim)
    if any(node.shape[place] != 1 for place in dropped):
        raise ShapeError(f"squeeze: shape {node.shape} has a length other than 1 on axis {axis}")
    if not dropped:
        return wrap(node)
    lengths = enumerate(node.shape)
    return wrap(Index(node, tuple(0 if place in dropped else slice(0, one, 1) for place, one in lengths)))


@implements(np.atleast_1d)
def atleast_1d(*arys: object) -> DistArray | tuple[DistArray, ...]:
    """``numpy.atleast_1d``."""
    return _each(arys, lambda node: node if node.ndim else reshaped(node, (1,)))


@implements(np.atleast_2d)
def atleast_2d(*arys: object) -> DistArray | tuple[DistArray, ...]:
    """``numpy.atleast_2d``."""
    return _each(arys, lambda node: node if node.ndim > 1 else reshaped(node, (1, node.size)))


@implements(np.atleast_3d)
def atleast_3d(*arys: object) -> DistArray | tuple[DistArray, ...]:
    """``numpy.atleast_3d``."""
    return _each(arys, at_least_three)


def _each(arrays: Sequence[object], shaped: Callable[[Expr], Expr]) -> DistArray | tuple[DistArray, ...]:
    results = tuple(wrap(shaped(expression_of(one))) for one in arrays)
    return results[0] if len(results) == 1 else results


@implements(np.shape)
def shape(a: object) -> tuple[int, ...]:
    """``numpy.shape``."""
    return expression_of(a).shape


@implements(np.ndim)
def ndim(a: object) -> int:
    """``numpy.ndim``."""
    return expression_of(a).ndim


@implements(np.size)
def size(a: object, axis: int | tuple[int, ...] | None = None) -> int:
    """``numpy.size``."""
    node = expression_of(a)
    return prod(node.shape[place] for place in normalize_axes(axis, node.ndim))


@implements(np.full_like)
def full_like(
    a: DistArray,
    fill_value: Number,
    dtype: npt.DTypeLike | None = None,
    order: str = "K",
    subok: bool = True,
    shape: ShapeLike | None = None,
    device: None = None,
) -> DistArray:
    """``numpy.full_like``; dense, also of a sparse array."""
    return full(a.shape if shape is None else shape, fill_value, a.dtype if dtype is None else dtype)


@implements(np.zeros_like, np.empty_like)
def zeros_like(
    a: DistArray,
    dtype: npt.DTypeLike | None = None,
    order: str = "K",
    subok: bool = True,
    shape: ShapeLike | None = None,
    device: None = None,
) -> DistArray:
    """``numpy.zeros_like``."""
    return full_like(a, 0, dtype, shape=shape)


@implements(np.ones_like)
def ones_like(
    a: DistArray,
    dtype: npt.DTypeLike | None = None,
    order: str = "K",
    subok: bool = True,
    shape: ShapeLike | None = None,
    device: None = None,
) -> DistArray:
    """``numpy.ones_like``."""
    return full_like(a, 1, dtype, shape=shape)

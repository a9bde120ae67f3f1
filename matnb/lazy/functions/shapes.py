"""NumPy's functions on shapes: transposes, new and dropped axes, broadcasting, and arrays like others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from matnb.errors import ShapeError
from matnb.lazy.array import DistArray, expression_of, wrap
from matnb.lazy.creation import Number, ShapeLike, full, shape_of
from matnb.lazy.expr import Broadcast, Index
from matnb.lazy.indexing import normalize_axes
from matnb.lazy.registry import implements


@implements(np.transpose, np.permute_dims)
def transpose(a: DistArray, axes: Sequence[int] | None = None) -> DistArray:
    """``numpy.transpose``."""
    return a.transpose() if axes is None else a.transpose(axes)


@implements(np.matrix_transpose)
def matrix_transpose(x: DistArray, /) -> DistArray:
    """``numpy.matrix_transpose``."""
    if x.ndim < 2:
        raise ShapeError(f"a matrix transpose of shape {x.shape} needs two axes")
    return x.transpose((*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


@implements(np.swapaxes)
def swapaxes(a: DistArray, axis1: int, axis2: int) -> DistArray:
    """``numpy.swapaxes``."""
    (one,), (other,) = normalize_axes(axis1, a.ndim), normalize_axes(axis2, a.ndim)
    axes = list(range(a.ndim))
    axes[one], axes[other] = axes[other], axes[one]
    return a.transpose(axes)


@implements(np.broadcast_to)
def broadcast_to(array: object, shape: ShapeLike, subok: bool = False) -> DistArray:
    """``numpy.broadcast_to``."""
    return wrap(Broadcast(expression_of(array), shape_of(shape)))


@implements(np.expand_dims)
def expand_dims(a: DistArray, axis: int | tuple[int, ...]) -> DistArray:
    """``numpy.expand_dims``."""
    count = 1 if isinstance(axis, int | np.integer) else len(axis)
    new = normalize_axes(axis, a.ndim + count)
    key = tuple(None if place in new else slice(None) for place in range(a.ndim + count))
    return a[key]


@implements(np.squeeze)
def squeeze(a: DistArray, axis: int | tuple[int, ...] | None = None) -> DistArray:
    """``numpy.squeeze``."""
    if axis is None:
        dropped = tuple(place for place, length in enumerate(a.shape) if length == 1)
    else:
        dropped = normalize_axes(axis, a.ndim)
    if any(a.shape[place] != 1 for place in dropped):
        raise ShapeError(f"squeeze: shape {a.shape} has a length other than 1 on axis {axis}")
    return wrap(
        Index(
            a.expression,
            tuple(0 if place in dropped else slice(0, length, 1) for place, length in enumerate(a.shape)),
        )
    )


@implements(np.shape)
def shape(a: DistArray) -> tuple[int, ...]:
    """``numpy.shape``."""
    return a.shape


@implements(np.ndim)
def ndim(a: DistArray) -> int:
    """``numpy.ndim``."""
    return a.ndim


@implements(np.size)
def size(a: DistArray, axis: int | None = None) -> int:
    """``numpy.size``."""
    return a.size if axis is None else a.shape[normalize_axes(axis, a.ndim)[0]]


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

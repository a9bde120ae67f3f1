"""NumPy's functions that read at listed places, and the lists that are known."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from matnb.blocks.creation import Arange
from matnb.errors import OptionError, ShapeError, UnsupportedError
from matnb.expr.nodes import Broadcast, Create, Expr, Index, Shape, broadcast_shapes
from matnb.lazy import ufuncs
from matnb.lazy.array import DistArray, expression_of, wrap
from matnb.lazy.functions.reshaping import laned, reshaped
from matnb.lazy.indexing.canonical import one_axis
from matnb.lazy.indexing.fancy import indexed
from matnb.lazy.registry import FUNCTIONS, implements, recorded
from matnb.lazy.ufuncs import astype, number_dtype
from matnb.ops.joining import Concatenate
from matnb.ops.picking import TakeAlong

_FEWEST_LANES = 8  # of fewer, each is cut instead


@implements(np.take)
def take(
    a: object, /, indices: object, axis: int | None = None, out: object = None, mode: str = "raise"
) -> DistArray:
    """``numpy.take``: sparse where rows or columns of a sparse array are taken."""
    node, index = expression_of(a), expression_of(indices)
    if not index.size and index.dtype.kind == "f":
        index = astype(index, np.int64)
    node, place = laned(node, axis)
    if mode != "raise":
        index = modulo(index, node.shape[place], mode)
    return within(wrap(indexed(node, (*(slice(None),) * place, index))), out)


@implements(np.take_along_axis)
def take_along_axis(arr: object, indices: object, axis: int | None = -1) -> DistArray:
    """``numpy.take_along_axis``; dense."""
    node, index = expression_of(arr), expression_of(indices)
    if axis is None:
        node, axis = node if node.ndim == 1 else reshaped(node, (-1,)), 0
    node, index, place = lanes_of(node, index, axis)
    if are_cut(node, place):
        return wrap(indexed(node, along_key(index, place)))
    return wrap(TakeAlong(node, index, place))


def lanes_of(node: Expr, index: Expr, axis: int) -> tuple[Expr, Expr, int]:
    """Return an array and places along an axis of it with the lanes of both."""
    place = one_axis(axis, node.ndim)
    if node.ndim != index.ndim:
        raise ShapeError(f"places of {index.ndim} axes for an array of {node.ndim}: give as many")
    ones = [(*one.shape[:place], 1, *one.shape[place + 1 :]) for one in (node, index)]
    lanes = broadcast_shapes(*ones, name="take_along_axis")
    wide = [(*lanes[:place], one.shape[place], *lanes[place + 1 :]) for one in (node, index)]
    node, index = (
        one if one.shape == shape else Broadcast(one, shape)
        for one, shape in zip((node, index), wide, strict=True)
    )
    return node, index, place


def are_cut(node: Expr, axis: int) -> bool:
    """Tell whether an array has too few lanes along an axis to give each worker some."""
    return node.ndim == 1 or prod(node.shape) < _FEWEST_LANES * node.shape[axis]


def along_key(index: Expr, axis: int) -> tuple[Expr, ...]:
    """Return the index that picks at places along an axis lane by lane."""
    return tuple(
        index if one == axis else _counted(length, one, index.ndim) for one, length in enumerate(index.shape)
    )


def _counted(length: int, axis: int, ndim: int) -> Expr:
    # 0, 1, ... along one of several axes.
    numbers = Create(Arange(0, 1, length, np.dtype(np.int64)))
    key: list[slice | None] = [None] * ndim
    key[axis] = slice(0, length, 1)
    return Index(numbers, tuple(key))


def modulo(index: Expr, length: int, mode: str) -> Expr:
    """Return places with those out of range brought into it as a mode says."""
    match mode:
        case "raise":
            return index
        case "wrap":
            return ufuncs.call(np.remainder, (index, length))[0]
        case "clip":
            (low,) = ufuncs.call(np.maximum, (index, 0))
            return ufuncs.call(np.minimum, (low, length - 1))[0]
    raise OptionError(f"mode={mode!r}: choose 'raise', 'wrap' or 'clip'")


def within(result: DistArray, out: object) -> DistArray:
    """Return a result, written into ``out=`` if that is given."""
    if out is None or out is np._NoValue:
        return result
    if not isinstance(out, DistArray):
        raise UnsupportedError(f"out= of type {type(out).__name__}: give a DistArray, or compute()")
    if out.shape != result.shape:
        raise ShapeError(f"out= of shape {out.shape} for a result of shape {result.shape}: give the same")
    recorded(np.copyto)(out, result)
    return out


@implements(np.indices)
def indices(
    dimensions: Sequence[int], dtype: npt.DTypeLike = int, sparse: bool = False
) -> DistArray | tuple[DistArray, ...]:
    """``numpy.indices``."""
    shape: Shape = tuple(dimensions)
    element = number_dtype(dtype)
    each = [astype(_counted(length, axis, len(shape)), element) for axis, length in enumerate(shape)]
    if sparse:
        return tuple(map(wrap, each))
    if not each:
        return wrap(ufuncs.literal(np.empty((0,), element)))
    whole = [Broadcast(one, shape) for one in each]
    rows = [Index(one, (None, *(slice(0, length, 1) for length in shape))) for one in whole]
    return wrap(rows[0] if len(rows) == 1 else Concatenate(tuple(rows), 0))


@implements(np.diag_indices)
def diag_indices(n: int, ndim: int = 2) -> tuple[DistArray, ...]:
    """``numpy.diag_indices``."""
    return (wrap(Create(Arange(0, 1, int(n), np.dtype(np.int64)))),) * ndim


@implements(np.diag_indices_from)
def diag_indices_from(arr: object) -> tuple[DistArray, ...]:
    """``numpy.diag_indices_from``."""
    shape = expression_of(arr).shape
    if len(shape) < 2 or len(set(shape)) != 1:
        raise ShapeError(f"diag_indices_from an array of shape {shape}: give two or more equal lengths")
    return diag_indices(shape[0], len(shape))


@implements(np.tril_indices_from)
def tril_indices_from(arr: object, k: int = 0) -> tuple[np.ndarray, ...]:
    """``numpy.tril_indices_from``: NumPy's arrays, which follow from the shape."""
    return np.tril_indices(*_two(arr, k))


@implements(np.triu_indices_from)
def triu_indices_from(arr: object, k: int = 0) -> tuple[np.ndarray, ...]:
    """``numpy.triu_indices_from``: NumPy's arrays, which follow from the shape."""
    return np.triu_indices(*_two(arr, k))


def _two(arr: object, k: int) -> tuple[int, int, int]:
    shape = expression_of(arr).shape
    if len(shape) != 2:
        raise ShapeError(f"indices of a triangle of an array of shape {shape}: give a matrix")
    return shape[0], k, shape[1]


# These follow from numbers alone.
FUNCTIONS.update({one: one for one in (np.tril_indices, np.triu_indices)})

"""NumPy's functions that put arrays together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from matnb.errors import DTypeError, ShapeError, UnsupportedError
from matnb.expr.nodes import Expr, Transpose
from matnb.lazy.array import DistArray, expression_of, operand_of, wrap
from matnb.lazy.functions.reshaping import reshaped
from matnb.lazy.functions.splitting import sliced
from matnb.lazy.indexing.canonical import one_axis
from matnb.lazy.registry import implements
from matnb.lazy.ufuncs import astype, chosen, number_dtype
from matnb.ops.joining import Concatenate

Nested = object  # an array, or lists of lists of them


def joined(nodes: Sequence[Expr], axis: int, dtype: np.dtype | None = None) -> Expr:
    """Return the expression of arrays one after the other, converted to a dtype they all go into."""
    element = np.result_type(*(node.dtype for node in nodes)) if dtype is None else dtype
    parts = tuple(astype(node, element) for node in nodes)
    return parts[0] if len(parts) == 1 else Concatenate(parts, axis)


def joined_ranges(node: Expr, ranges: Sequence[tuple[int, int]], axis: int) -> Expr:
    """Return the expression of parts of one array along an axis, one after the other."""
    if 2 * sum(stop - start for start, stop in ranges) < node.shape[axis]:
        # Of what is dropped for the most part nothing should stay behind in memory.
        return joined([sliced(node, axis, slice(*one)) for one in ranges], axis)
    return Concatenate((node,) * len(ranges), axis, tuple(ranges))


@implements(np.concatenate)
def concatenate(
    arrays: Sequence[object],
    /,
    axis: int | None = 0,
    out: object = None,
    *,
    dtype: npt.DTypeLike | None = None,
    casting: str = "same_kind",
) -> DistArray:
    """``numpy.concatenate``: sparse where all arrays are."""
    if isinstance(arrays, DistArray) and arrays.ndim > 1 and len(arrays):
        return _given(_rows_joined(arrays.expression, axis, dtype, casting), out, dtype, casting)
    nodes = _several(arrays, "concatenate")
    if axis is None:  # where NumPy takes numbers too, and Python's take on the dtype of the others
        nodes = chosen(list(map(operand_of, arrays))) if dtype is None else nodes
        nodes, axis = [reshaped(node, (node.size,)) for node in nodes], 0
    if any(not node.shape for node in nodes):
        raise ShapeError("concatenate: arrays without axes cannot be concatenated")
    place = one_axis(axis, nodes[0].ndim)
    element = number_dtype(dtype) if dtype is not None else np.result_type(*(one.dtype for one in nodes))
    _check_casts(nodes, element, casting)
    return _given(joined(nodes, place, element), out, dtype, casting)


def _rows_joined(node: Expr, axis: int | None, dtype: npt.DTypeLike | None, casting: str) -> Expr:
    # What one array has along its first axis, one after the other: a reshape of it.
    element = node.dtype if dtype is None else number_dtype(dtype)
    _check_casts([node], element, casting)
    node = astype(node, element)
    if axis is None:
        return reshaped(node, (node.size,))
    place = one_axis(axis, node.ndim - 1)
    rest = node.shape[1:]
    merged = (*rest[:place], node.shape[0] * rest[place], *rest[place + 1 :])
    return reshaped(moved(node, 0, place), merged)


def moved(node: Expr, axis: int, place: int) -> Expr:
    """Return the expression with an axis moved to another place."""
    order = [one for one in range(node.ndim) if one != axis]
    order.insert(place, axis)
    return node if axis == place else Transpose(node, tuple(order))


def _several(arrays: Sequence[object], name: str) -> list[Expr]:
    if isinstance(arrays, DistArray | np.ndarray):
        if not arrays.ndim:
            raise DTypeError(f"{name}: give a sequence of arrays")
        arrays = list(arrays)
    if len(arrays) == 0:
        raise ShapeError(f"{name}: give at least one array")
    return [expression_of(one) for one in arrays]


def _check_casts(nodes: Sequence[Expr], element: np.dtype, casting: str) -> None:
    for node in nodes:
        if not np.can_cast(node.dtype, element, casting):  # type: ignore[arg-type]  # one of NumPy's words
            raise DTypeError(f"{node.dtype} does not go into {element} by casting={casting!r}; use astype")


def _given(node: Expr, out: object, dtype: object, casting: str) -> DistArray:
    if out is None:
        return wrap(node)
    if dtype is not None:
        raise DTypeError("concatenate: give out= or dtype=, not both")
    if not isinstance(out, DistArray):
        raise UnsupportedError(f"out= of type {type(out).__name__}: give a DistArray, or compute()")
    if out.shape != node.shape:
        raise ShapeError(f"out= of shape {out.shape} for a result of shape {node.shape}")
    _check_casts([node], out.dtype, casting)
    out[...] = DistArray(astype(node, out.dtype))
    return out


@implements(np.stack)
def stack(
    arrays: Sequence[object],
    axis: int = 0,
    out: object = None,
    *,
    dtype: npt.DTypeLike | None = None,
    casting: str = "same_kind",
) -> DistArray:
    """``numpy.stack``: dense."""
    if isinstance(arrays, DistArray) and arrays.ndim and len(arrays):
        place = one_axis(axis, arrays.ndim)
        return concatenate(
            [DistArray(moved(arrays.expression, 0, place))], 0, out, dtype=dtype, casting=casting
        )
    nodes = _several(arrays, "stack")
    shape = nodes[0].shape
    if any(node.shape != shape for node in nodes):
        raise ShapeError(f"stack: shapes {', '.join(str(node.shape) for node in nodes)} are not all equal")
    place = one_axis(axis, len(shape) + 1)
    longer = (*shape[:place], 1, *shape[place:])
    handles = [DistArray(reshaped(node, longer)) for node in nodes]
    return concatenate(handles, place, out, dtype=dtype, casting=casting)


@implements(np.vstack)
def vstack(
    tup: Sequence[object], *, dtype: npt.DTypeLike | None = None, casting: str = "same_kind"
) -> DistArray:
    """``numpy.vstack``."""
    if isinstance(tup, DistArray) and tup.ndim == 2 and len(tup):
        return concatenate([tup], 0, dtype=dtype, casting=casting)
    nodes = [with_axes(node, 2) for node in _several(tup, "vstack")]
    return concatenate([DistArray(node) for node in nodes], 0, dtype=dtype, casting=casting)


@implements(np.hstack)
def hstack(
    tup: Sequence[object], *, dtype: npt.DTypeLike | None = None, casting: str = "same_kind"
) -> DistArray:
    """``numpy.hstack``."""
    nodes = [with_axes(node, 1) for node in _several(tup, "hstack")]
    axis = 0 if nodes[0].ndim == 1 else 1
    return concatenate([DistArray(node) for node in nodes], axis, dtype=dtype, casting=casting)


@implements(np.dstack)
def dstack(tup: Sequence[object]) -> DistArray:
    """``numpy.dstack``."""
    nodes = [at_least_three(node) for node in _several(tup, "dstack")]
    return concatenate([DistArray(node) for node in nodes], 2)


@implements(np.column_stack)
def column_stack(tup: Sequence[object]) -> DistArray:
    """``numpy.column_stack``."""
    nodes = _several(tup, "column_stack")
    columns = [reshaped(node, (node.size, 1)) if node.ndim < 2 else node for node in nodes]
    return concatenate([DistArray(node) for node in columns], 1)


def with_axes(node: Expr, count: int) -> Expr:
    """Return an array with leading axes of length 1, where it has fewer than ``count``."""
    return reshaped(node, (1,) * (count - node.ndim) + node.shape) if node.ndim < count else node


def at_least_three(node: Expr) -> Expr:
    """Return the expression with three axes at least, as ``numpy.atleast_3d`` adds them."""
    if node.ndim > 2:
        return node
    shape: tuple[int, ...] = (*node.shape, 1) if node.ndim == 2 else (1, *(node.shape or (1,)), 1)
    return reshaped(node, shape)


@implements(np.block)
def block(arrays: Nested) -> DistArray:
    """``numpy.block``."""
    depth = _depth(arrays)
    most = max(depth, *(one.ndim for one in _leaves(arrays)), 0)
    return wrap(_block(arrays, depth, most))


def _depth(arrays: Nested) -> int:
    if isinstance(arrays, tuple):
        raise DTypeError("block: a tuple; only lists nest arrays")
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        raise ShapeError("block: an empty list; give at least one array")
    depths = {_depth(one) for one in arrays}
    if len(depths) > 1:
        raise ShapeError("block: lists are not all as deep")
    return 1 + depths.pop()


def _leaves(arrays: Nested) -> list[Expr]:
    if isinstance(arrays, list):
        return [node for one in arrays for node in _leaves(one)]
    return [expression_of(arrays)]


def _block(arrays: Nested, depth: int, ndim: int) -> Expr:
    if isinstance(arrays, list):
        return joined([_block(one, depth - 1, ndim) for one in arrays], ndim - depth)
    return with_axes(expression_of(arrays), ndim)


@implements(np.append)
def append(arr: object, values: object, axis: int | None = None) -> DistArray:
    """``numpy.append``."""
    if axis is None:
        arr, values = (DistArray(expression_of(one)) for one in (arr, values))  # no number is weak here
    return concatenate((arr, values), axis)

"""NumPy's functions on shapes: reshaped, joined, split, transposed and broadcast arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from matnb.errors import DTypeError, OptionError, ShapeError, UnsupportedError
from matnb.expr.nodes import Broadcast, Expr, Index, Transpose, broadcast_shapes
from matnb.lazy.array import DistArray, wrap
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import Number, ShapeLike, asarray, full, shape_of
from matnb.lazy.handles import expression_of, operand_of
from matnb.lazy.indexing.keys import normalize_axes, one_axis, without_axes
from matnb.lazy.labels import keeps_labels, moves_labels
from matnb.lazy.lost_writes import owned, view
from matnb.lazy.reductions import axes_of
from matnb.lazy.registry import implements
from matnb.lazy.shapes import flattened, reshaped, sliced
from matnb.lazy.ufuncs import astype, chosen, number_dtype
from matnb.ops.joining import Concatenate


def laned(node: Expr, axis: int | None) -> tuple[Expr, int]:
    """Return an array and the number of an axis of it: of all elements along one axis where None is given.

    An array without axes has a first and last one, as in NumPy's functions that read along an axis.
    """
    if axis is None or (not node.ndim and axis in (0, -1)):
        return flattened(node), 0
    return node, one_axis(axis, node.ndim)


@implements(np.reshape)
@keeps_labels
def reshape(
    a: ArrayLike, /, shape: ShapeLike, order: str | None = "C", *, copy: bool | None = None
) -> DistArray:
    """``numpy.reshape``; order "A" means "C", since the memory layout of blocks is not visible."""
    if copy is False:
        raise OptionError("reshape(copy=False): arrays are never changed in place, so there are no views")
    lengths = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    node = expression_of(a)
    if order not in ("C", "F", "A", None):
        raise OptionError(f"reshape: order {order!r}: choose 'C', 'F' or 'A'")
    if order == "F":
        turned = wrap(_reversed(reshaped(_reversed(node), lengths[::-1])))
        return owned(turned) if node.ndim > 1 else view(turned, a)
    return view(wrap(reshaped(node, lengths)), a)


@implements(np.ravel)
def ravel(a: ArrayLike, order: str = "C") -> DistArray:
    """``numpy.ravel``; orders "A" and "K" mean "C"."""
    if order not in ("C", "F", "A", "K"):
        raise OptionError(f"ravel: order {order!r}: choose 'C', 'F', 'A' or 'K'")
    node = expression_of(a)
    found = wrap(reshaped(_reversed(node) if order == "F" else node, (-1,) if node.size else (0,)))
    return found if order == "F" and node.ndim > 1 else view(found, a)


def _reversed(node: Expr) -> Expr:
    return Transpose(node, tuple(reversed(range(node.ndim)))) if node.ndim > 1 else node


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
            raise DTypeError(f"cannot cast {node.dtype} to {element} with casting={casting!r}; use astype")


def _given(node: Expr, out: object, dtype: object, casting: str) -> DistArray:
    if out is None:
        return owned(wrap(node))  # a copy of one array, too
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
    """``numpy.block``; among rows of matrices, None is a sparse block without entries, as in SciPy's.

    Examples
    --------
    >>> import matnb as mn, scipy.sparse as sp
    >>> A = mn.asarray(sp.eye_array(2).tocsr())
    >>> mn.block([[A, None], [None, 2 * A]]).toarray()
    array([[1., 0., 0., 0.],
           [0., 1., 0., 0.],
           [0., 0., 2., 0.],
           [0., 0., 0., 2.]])
    """
    depth = _depth(arrays)
    arrays = _without_none(arrays) if depth == 2 else arrays
    most = max(depth, *(one.ndim for one in _leaves(arrays)), 0)
    return wrap(_block(arrays, depth, most))


def _without_none(rows: Any) -> Nested:
    # Blocks without entries where there are none, as high and wide as those beside them.
    if not any(one is None for row in rows for one in row):
        return rows
    if len({len(row) for row in rows}) > 1:
        raise ShapeError("block: with None in it, each row needs the same number of blocks")
    shapes = [[None if one is None else expression_of(one).shape for one in row] for row in rows]
    lines = [[one for one in line if one is not None] for line in (*shapes, *zip(*shapes, strict=True))]
    if not all(lines) or any(len(one) != 2 for line in lines for one in line):
        raise ShapeError("block: None stands beside matrices, and each row and column of blocks needs one")
    heights = [line[0][0] for line in lines[: len(shapes)]]
    widths = [line[0][1] for line in lines[len(shapes) :]]
    return [
        [
            asarray(sp.csr_array((height, width), dtype=np.bool_)) if one is None else one
            for one, width in zip(row, widths, strict=True)
        ]
        for row, height in zip(rows, heights, strict=True)
    ]


def _depth(arrays: Nested) -> int:
    if isinstance(arrays, tuple):
        raise DTypeError("block: got a tuple; give nested lists of arrays")
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        raise ShapeError("block: an empty list; give at least one array")
    depths = {_depth(one) for one in arrays}
    if len(depths) > 1:
        raise ShapeError("block: lists must all be nested to the same depth")
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
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> DistArray:
    """``numpy.append``."""
    if axis is None:
        arr, values = (DistArray(expression_of(one)) for one in (arr, values))  # no number is weak here
    return concatenate((arr, values), axis)


Places = int | Sequence[int]


@implements(np.array_split)
def array_split(ary: ArrayLike, indices_or_sections: Places, axis: int = 0) -> list[DistArray]:
    """``numpy.array_split``."""
    node = expression_of(ary)
    place = one_axis(axis, node.ndim)
    length = node.shape[place]
    if np.ndim(indices_or_sections):
        cuts = [0, *map(operator.index, indices_or_sections), length]  # type: ignore[arg-type]  # several
    else:
        count = int(operator.index(indices_or_sections))  # type: ignore[arg-type]  # one
        if count <= 0:
            raise ShapeError(f"array_split: {count} parts; give at least 1")
        each, more = divmod(length, count)
        cuts = [one * each + min(one, more) for one in range(count + 1)]
    return [wrap(sliced(node, place, slice(start, stop))) for start, stop in pairwise(cuts)]


@implements(np.split)
def split(ary: ArrayLike, indices_or_sections: Places, axis: int = 0) -> list[DistArray]:
    """``numpy.split``."""
    node = expression_of(ary)
    place = one_axis(axis, node.ndim)
    if not np.ndim(indices_or_sections):
        count = int(operator.index(indices_or_sections))  # type: ignore[arg-type]  # one
        if count <= 0 or node.shape[place] % count:
            raise ShapeError(
                f"split: length {node.shape[place]} of axis {axis} in {count} equal parts; use array_split"
            )
    return array_split(DistArray(node), indices_or_sections, axis)


@implements(np.hsplit)
def hsplit(ary: ArrayLike, indices_or_sections: Places) -> list[DistArray]:
    """``numpy.hsplit``."""
    node = _of_axes(ary, 1, "hsplit")
    return split(DistArray(node), indices_or_sections, 1 if node.ndim > 1 else 0)


@implements(np.vsplit)
def vsplit(ary: ArrayLike, indices_or_sections: Places) -> list[DistArray]:
    """``numpy.vsplit``."""
    return split(DistArray(_of_axes(ary, 2, "vsplit")), indices_or_sections, 0)


@implements(np.dsplit)
def dsplit(ary: ArrayLike, indices_or_sections: Places) -> list[DistArray]:
    """``numpy.dsplit``."""
    return split(DistArray(_of_axes(ary, 3, "dsplit")), indices_or_sections, 2)


def _of_axes(ary: object, count: int, name: str) -> Expr:
    node = expression_of(ary)
    if node.ndim < count:
        raise ShapeError(f"{name} of shape {node.shape}: give an array with {count} or more axes")
    return node


@implements(np.unstack)
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[DistArray, ...]:
    """``numpy.unstack``."""
    node = expression_of(x)
    if not node.shape:
        raise ShapeError("unstack: give an array with at least one axis")
    place = one_axis(axis, node.ndim)
    rest = (*node.shape[:place], *node.shape[place + 1 :])
    parts = (sliced(node, place, slice(number, number + 1)) for number in range(node.shape[place]))
    return tuple(wrap(reshaped(part, rest)) for part in parts)


Axes = int | Sequence[int]


def transposed(node: Expr, axes: Sequence[int] | None = None) -> Expr:
    """Return the expression with its axes in another order, reversed where none is given."""
    order = tuple(reversed(range(node.ndim))) if axes is None else _places(axes, node.ndim)
    if len(order) != node.ndim:
        raise ShapeError(f"axes {tuple(order)} are not a permutation of the array's {node.ndim} axes")
    return node if order == tuple(range(node.ndim)) else Transpose(node, order)


def _places(axes: Axes, ndim: int) -> tuple[int, ...]:
    # In the order given, unlike those of normalize_axes.
    given = (axes,) if isinstance(axes, int | np.integer) else tuple(axes)
    normalize_axes(given, ndim)  # refuses those that are not there, or named twice
    return tuple(int(one) % ndim for one in given)


@implements(np.transpose, np.permute_dims)
@moves_labels(np.transpose)
def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> DistArray:
    """``numpy.transpose``."""
    return wrap(transposed(expression_of(a), axes))


@implements(np.matrix_transpose)
@moves_labels(np.matrix_transpose)
def matrix_transpose(x: ArrayLike, /) -> DistArray:
    """``numpy.matrix_transpose``."""
    node = expression_of(x)
    if node.ndim < 2:
        raise ShapeError(f"a matrix transpose of shape {node.shape} needs two axes")
    return wrap(transposed(node, (*range(node.ndim - 2), node.ndim - 1, node.ndim - 2)))


@implements(np.swapaxes)
@moves_labels(np.swapaxes)
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> DistArray:
    """``numpy.swapaxes``."""
    node = expression_of(a)
    one, other = one_axis(axis1, node.ndim), one_axis(axis2, node.ndim)
    axes = list(range(node.ndim))
    axes[one], axes[other] = axes[other], axes[one]
    return wrap(transposed(node, axes))


@implements(np.moveaxis)
@moves_labels(np.moveaxis)
def moveaxis(a: ArrayLike, source: Axes, destination: Axes) -> DistArray:
    """``numpy.moveaxis``."""
    node = expression_of(a)
    old, new = _places(source, node.ndim), _places(destination, node.ndim)
    if len(old) != len(new):
        raise ShapeError(
            f"moveaxis: {len(old)} axes and {len(new)} destinations; give one destination for each axis"
        )
    order = [axis for axis in range(node.ndim) if axis not in old]
    for place, axis in sorted(zip(new, old, strict=True)):
        order.insert(place, axis)
    return wrap(transposed(node, order))


@implements(np.rollaxis)
@moves_labels(np.rollaxis)
def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> DistArray:
    """``numpy.rollaxis``."""
    node = expression_of(a)
    place = one_axis(axis, node.ndim)
    if not -node.ndim <= start <= node.ndim:
        raise ShapeError(f"rollaxis: start={start} is out of bounds for an array with {node.ndim} axes")
    before = start + node.ndim if start < 0 else start
    return moveaxis(DistArray(node), place, before - 1 if place < before else before)


@implements(np.broadcast_to)
def broadcast_to(array: ArrayLike, shape: ShapeLike, subok: bool = False) -> DistArray:
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
def expand_dims(a: ArrayLike, axis: int | tuple[int, ...]) -> DistArray:
    """``numpy.expand_dims``."""
    node = expression_of(a)
    count = 1 if isinstance(axis, int | np.integer) else len(axis)
    new = normalize_axes(axis, node.ndim + count)
    lengths = iter(node.shape)
    key = tuple(None if place in new else slice(0, next(lengths), 1) for place in range(node.ndim + count))
    return wrap(Index(node, key))


@implements(np.squeeze)
@keeps_labels
def squeeze(a: ArrayLike, axis: int | tuple[int, ...] | None = None) -> DistArray:
    """``numpy.squeeze``."""
    node = expression_of(a)
    if axis is None:
        dropped = tuple(place for place, length in enumerate(node.shape) if length == 1)
    else:
        dropped = axes_of(axis, node.ndim)
    if any(node.shape[place] != 1 for place in dropped):
        raise ShapeError(f"squeeze: axis {axis} of shape {node.shape} does not have length 1")
    return view(wrap(without_axes(node, dropped) if dropped else node), a)


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
    results = tuple(view(wrap(shaped(expression_of(one))), one) for one in arrays)
    return results[0] if len(results) == 1 else results


@implements(np.shape)
def shape(a: ArrayLike) -> tuple[int, ...]:
    """``numpy.shape``."""
    return expression_of(a).shape


@implements(np.ndim)
def ndim(a: ArrayLike) -> int:
    """``numpy.ndim``."""
    return expression_of(a).ndim


@implements(np.size)
def size(a: ArrayLike, axis: int | tuple[int, ...] | None = None) -> int:
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
    """``numpy.full_like``; dense, even for a sparse array."""
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

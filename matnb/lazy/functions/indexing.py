"""NumPy's functions that read, find, choose and write at places."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from matnb.blocks.creation import Arange
from matnb.errors import (
    DTypeError,
    IndexingError,
    LoopBodyError,
    OptionError,
    RangeError,
    ShapeError,
    UnsupportedError,
)
from matnb.expr.nodes import Broadcast, Create, Expr, Index, Shape, broadcast_shapes
from matnb.lazy import ufuncs
from matnb.lazy.array import DistArray, picked_by, wrap
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.evaluator import asked
from matnb.lazy.functions.shaping import laned
from matnb.lazy.handles import expression_of, holds_handles, operand_of
from matnb.lazy.indexing import dynamic
from matnb.lazy.indexing.basic import replacing
from matnb.lazy.indexing.compress import places_where
from matnb.lazy.indexing.fancy import assigned, indexed
from matnb.lazy.indexing.getitem import converted
from matnb.lazy.indexing.keys import one_axis, with_new_axes
from matnb.lazy.lost_writes import owned
from matnb.lazy.reductions import count_nonzero, where
from matnb.lazy.registry import FUNCTIONS, implements, recorded
from matnb.lazy.shapes import flattened, reshaped
from matnb.lazy.ufuncs import astype, literal, number_dtype
from matnb.ops.indexing import PutAlong, PutWhere, TakeAlong
from matnb.ops.joining import Concatenate

_FEWEST_LANES = 8  # of fewer, each is cut instead


@implements(np.take)
def take(
    a: ArrayLike, /, indices: ArrayLike, axis: int | None = None, out: object = None, mode: str = "raise"
) -> DistArray:
    """``numpy.take``: sparse if rows or columns of a sparse array are taken."""
    node, index = expression_of(a), expression_of(indices)
    if not index.size and index.dtype.kind == "f":
        index = astype(index, np.int64)
    node, place = laned(node, axis)
    if mode != "raise":
        index = modulo(index, node.shape[place], mode)
    return within(owned(wrap(indexed(node, (*(slice(None),) * place, index)))), out)


@implements(np.take_along_axis)
def take_along_axis(arr: ArrayLike, indices: ArrayLike, axis: int | None = -1) -> DistArray:
    """``numpy.take_along_axis``; dense."""
    node, index = expression_of(arr), expression_of(indices)
    if axis is None:
        node, axis = flattened(node), 0
    node, index, place = lanes_of(node, index, axis)
    if are_cut(node, place):
        return wrap(indexed(node, along_key(index, place)))
    return wrap(TakeAlong(node, index, place))


def lanes_of(node: Expr, index: Expr, axis: int) -> tuple[Expr, Expr, int]:
    """Return an array and places along an axis of it with the lanes of both."""
    place = one_axis(axis, node.ndim)
    if node.ndim != index.ndim:
        raise ShapeError(
            f"indices with {index.ndim} axes for an array with {node.ndim}: the numbers of axes must be "
            "the same"
        )
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
    """Return places with those out of range wrapped or clipped into it, as a mode says."""
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
        raise ShapeError(
            f"out= of shape {out.shape} for a result of shape {result.shape}: the shapes must be the same"
        )
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
    rows = [with_new_axes(one, 0) for one in whole]
    return wrap(rows[0] if len(rows) == 1 else Concatenate(tuple(rows), 0))


@implements(np.diag_indices)
def diag_indices(n: int, ndim: int = 2) -> tuple[DistArray, ...]:
    """``numpy.diag_indices``."""
    return (wrap(Create(Arange(0, 1, int(n), np.dtype(np.int64)))),) * ndim


@implements(np.diag_indices_from)
def diag_indices_from(arr: ArrayLike) -> tuple[DistArray, ...]:
    """``numpy.diag_indices_from``."""
    shape = expression_of(arr).shape
    if len(shape) < 2 or len(set(shape)) != 1:
        raise ShapeError(
            f"diag_indices_from an array of shape {shape}: give an array with two or more axes of the "
            "same length"
        )
    return diag_indices(shape[0], len(shape))


@implements(np.tril_indices_from)
def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[np.ndarray, ...]:
    """``numpy.tril_indices_from``: NumPy's arrays, which follow from the shape."""
    return np.tril_indices(*_two(arr, k))


@implements(np.triu_indices_from)
def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[np.ndarray, ...]:
    """``numpy.triu_indices_from``: NumPy's arrays, which follow from the shape."""
    return np.triu_indices(*_two(arr, k))


def _two(arr: object, k: int) -> tuple[int, int, int]:
    shape = expression_of(arr).shape
    if len(shape) != 2:
        raise ShapeError(f"indices of a triangle of an array of shape {shape}: give a matrix")
    return shape[0], k, shape[1]


# These follow from numbers alone.
FUNCTIONS.update({one: one for one in (np.tril_indices, np.triu_indices)})


@implements(np.nonzero)
def nonzero(a: ArrayLike, /) -> tuple[DistArray, ...]:
    """``numpy.nonzero``: indices along each axis, in row-major order; stored zeros do not count."""
    node = expression_of(a)
    if not node.shape:
        raise ShapeError("nonzero of an array without axes; use np.atleast_1d(x).nonzero()")
    return tuple(map(wrap, places_where(node)))


@implements(np.flatnonzero)
def flatnonzero(a: ArrayLike) -> DistArray:
    """``numpy.flatnonzero``."""
    node = expression_of(a)
    (places,) = places_where(flattened(node))
    return wrap(places)


@implements(np.argwhere)
def argwhere(a: ArrayLike) -> DistArray:
    """``numpy.argwhere``: the indices of each nonzero element, one per row."""
    node = expression_of(a)
    if not node.shape:
        count = int(bool(asked(node, "the shape of argwhere")))
        return wrap(literal(np.empty((count, 0), np.int64)))
    columns = [Index(one, (slice(0, one.shape[0], 1), None)) for one in places_where(node)]
    return wrap(columns[0] if len(columns) == 1 else Concatenate(tuple(columns), 1))


@implements(np.compress)
def compress(condition: ArrayLike, a: ArrayLike, axis: int | None = None, out: object = None) -> DistArray:
    """``numpy.compress``: the slices along an axis for which the condition is true."""
    node, mask = expression_of(a), astype(expression_of(condition), np.bool_)
    if mask.ndim != 1:
        raise ShapeError(f"compress: the condition has shape {mask.shape}: give a 1-d array")
    node, place = laned(node, axis)
    length, count = node.shape[place], mask.shape[0]
    if count > length:
        if asked(_any(mask, length), "how long compress's condition is"):
            raise IndexingError(
                f"compress: the condition is true beyond the end of axis {place}, of length {length}"
            )
        mask = Index(mask, (slice(0, length, 1),))
    elif count < length:
        key = tuple(slice(0, count if axis == place else n, 1) for axis, n in enumerate(node.shape))
        node = Index(node, key)
    return within(picked_by(node, (*(slice(None),) * place, DistArray(mask))), out)


def _any(mask: Expr, start: int) -> Expr:
    rest = DistArray(Index(mask, (slice(start, mask.shape[0], 1),)))
    return rest.any().expression


@implements(np.extract)
def extract(condition: ArrayLike, arr: ArrayLike) -> DistArray:
    """``numpy.extract``."""
    node, mask = expression_of(arr), astype(expression_of(condition), np.bool_)
    if node.shape != mask.shape:
        node, mask = (flattened(one) for one in (node, mask))
    if not node.shape:
        node, mask = reshaped(node, (1,)), reshaped(mask, (1,))
    return compress(DistArray(mask), DistArray(node)) if node.ndim == 1 else picked_by(node, DistArray(mask))


@implements(np.choose)
def choose(a: ArrayLike, choices: object, out: object = None, mode: str = "raise") -> DistArray:
    """``numpy.choose``; with ``mode="raise"`` the range of the indices is computed immediately."""
    number = expression_of(a)
    given = choices if isinstance(choices, Sequence) else list(DistArray(expression_of(choices)))
    if not given:
        raise ShapeError("choose: give at least one array to choose from")
    nodes = ufuncs.chosen(list(map(operand_of, given)))
    if number.dtype.kind not in "biu":
        raise DTypeError(f"choose: indices have dtype {number.dtype}: give integers")
    number = modulo(astype(number, np.int64) if number.dtype.kind == "b" else number, len(nodes), mode)
    if mode == "raise" and number.size:
        low, high = (int(asked(one.expression, "whether choose is in range")) for one in _bounds(number))
        if low < 0 or high >= len(nodes):
            raise ShapeError(f"choose: indices from {low} to {high} for {len(nodes)} arrays")
    shape = broadcast_shapes(number.shape, *(one.shape for one in nodes), name="choose")
    dtype = np.result_type(*(one.dtype for one in nodes))
    result = astype(nodes[-1], dtype)
    for place in range(len(nodes) - 2, -1, -1):
        (chosen,) = ufuncs.call(np.equal, (number, place))
        result = where(chosen, astype(nodes[place], dtype), result)
    return within(wrap(result if result.shape == shape else Broadcast(result, shape)), out)


def _bounds(number: Expr) -> tuple[DistArray, DistArray]:
    handle = DistArray(number)
    return handle.min(), handle.max()


@implements(np.select)
def select(condlist: Sequence[object], choicelist: Sequence[object], default: object = 0) -> DistArray:
    """``numpy.select``: for each element, the choice of the first condition that is true."""
    condlist, choicelist = list(condlist), list(choicelist)  # also the rows of one array
    if len(condlist) != len(choicelist):
        raise ShapeError(f"select: {len(condlist)} conditions for {len(choicelist)} choices")
    if not condlist:
        raise ShapeError("select: give at least one condition")
    conditions = [expression_of(one) for one in condlist]
    for place, one in enumerate(conditions):
        if one.dtype.kind != "b":
            raise DTypeError(f"select: condition {place} has dtype {one.dtype}: give booleans")
    nodes = ufuncs.chosen(list(map(operand_of, (*choicelist, default))))
    dtype = np.result_type(*(one.dtype for one in nodes))
    nodes = [astype(one, dtype) for one in nodes]
    shape = broadcast_shapes(*(one.shape for one in (*conditions, *nodes)), name="select")
    result = nodes[-1]
    for condition, chosen in zip(reversed(conditions), reversed(nodes[:-1]), strict=True):
        result = where(condition, chosen, result)
    return wrap(result if result.shape == shape else Broadcast(result, shape))


@implements(np.ix_)
def ix_(*args: object) -> tuple[DistArray, ...]:
    """``numpy.ix_``: index vectors that broadcast to a mesh; booleans select where they are true."""
    result = []
    for place, one in enumerate(args):
        node = expression_of(one)
        if node.ndim != 1:
            raise ShapeError(f"ix_: an array has shape {node.shape}: give 1-d arrays")
        if node.dtype.kind == "b":
            (node,) = places_where(node)
        if not node.size:
            node = astype(node, np.int64)
        key = [None] * len(args)
        result.append(wrap(Index(node, (*key[:place], slice(0, node.shape[0], 1), *key[place + 1 :]))))
    return tuple(result)


@implements(np.unravel_index)
def unravel_index(indices: ArrayLike, shape: int | Sequence[int], order: str = "C") -> tuple[DistArray, ...]:
    """``numpy.unravel_index``; outside of loops the range of the indices is checked immediately."""
    lengths = tuple(map(int, np.atleast_1d(shape)))
    node = expression_of(indices)
    size = math.prod(lengths)
    if node.dtype.kind not in "iu":
        raise DTypeError(f"unravel_index: indices have dtype {node.dtype}: give integers")
    _in_range(node, size, f"places in shape {lengths}")
    rest, places = DistArray(astype(node, np.int64)), []
    for length in lengths if order == "F" else reversed(lengths):
        places.append(rest % length)
        rest = rest // length
    return tuple(places if order == "F" else reversed(places))


@implements(np.ravel_multi_index)
def ravel_multi_index(
    multi_index: Sequence[object], dims: Sequence[int], mode: str | Sequence[str] = "raise", order: str = "C"
) -> DistArray:
    """``numpy.ravel_multi_index``; outside of loops the range of the indices is checked immediately."""
    given = multi_index if isinstance(multi_index, Sequence) else list(DistArray(expression_of(multi_index)))
    nodes = [expression_of(one) for one in given]
    lengths = tuple(map(int, np.atleast_1d(dims)))
    if len(nodes) != len(lengths):
        raise ShapeError(f"ravel_multi_index: {len(nodes)} arrays of indices for {len(lengths)} axes")
    modes = [mode] * len(nodes) if isinstance(mode, str) else list(mode)
    total: DistArray | None = None
    pairs = list(zip(nodes, lengths, modes, strict=True))
    for node, length, one in pairs if order == "C" else reversed(pairs):
        if node.dtype.kind not in "iu":
            raise DTypeError(f"ravel_multi_index: indices have dtype {node.dtype}: give integers")
        if one == "raise":
            _in_range(node, length, f"places on an axis of length {length}")
        place = DistArray(astype(modulo(node, length, one), np.int64))
        total = place if total is None else total * length + place
    assert total is not None, "there is an axis"
    return total


def _in_range(node: Expr, length: int, what: str) -> None:
    if node.free or not node.size:
        return
    low, high = (int(asked(one.expression, what)) for one in _bounds(node))
    if low < 0 or high >= length:
        raise ShapeError(f"{what}: they go from {low} to {high}")


_HOLDING = {int: "iufc", float: "fc", complex: "c"}  # kinds of dtypes that hold such numbers


@implements(np.copyto)
def copyto(dst: object, src: object, casting: str = "same_kind", where: object = True) -> None:
    """``numpy.copyto``."""
    array = _written(dst, np.copyto)
    if casting not in ("no", "equiv", "safe", "same_kind", "unsafe"):
        raise OptionError(
            f"copyto: casting={casting!r} is not known; choose 'no', 'equiv', 'safe', 'same_kind' or 'unsafe'"
        )
    if ufuncs.is_weak(src):
        if casting != "unsafe" and array.dtype.kind not in _HOLDING[type(src)]:
            raise DTypeError(f"copyto: cannot cast {src} to {array.dtype} with casting={casting!r}")
        given: Expr = ufuncs.forced(src, array.dtype)
    else:
        if casting == "unsafe" and isinstance(src, list | tuple) and not holds_handles(src):
            listed = np.asarray(src)
            if listed.dtype.hasobject:  # numbers wider than any dtype, which have a truth all the same
                src = _forced(listed, array.dtype)
        given = expression_of(src)
        if not np.can_cast(given.dtype, array.dtype, casting):  # type: ignore[arg-type]  # one of them
            raise DTypeError(f"copyto: cannot cast {given.dtype} to {array.dtype} with casting={casting!r}")
    _write(array, ufuncs.astype(given, array.dtype), None if where is True else expression_of(where))


def _forced(numbers: np.ndarray, dtype: np.dtype) -> np.ndarray:
    try:
        return numbers.astype(dtype)
    except OverflowError as error:
        raise RangeError(f"copyto: a number does not fit dtype {dtype}: {error}") from None
    except (TypeError, ValueError) as error:
        raise DTypeError(f"copyto: the values cannot be converted to {dtype}: {error}") from None


@implements(np.putmask)
def putmask(a: ArrayLike, /, mask: object, values: ArrayLike) -> None:
    """``numpy.putmask``: values of another shape repeat, in row-major order."""
    array, condition = _written(a, np.putmask), ufuncs.astype(expression_of(mask), np.bool_)
    new = _safely(values, array.dtype, np.putmask)
    if condition.shape != array.shape:
        if condition.size != array.size:
            raise ShapeError(
                f"putmask: a mask of shape {condition.shape} for an array of shape {array.shape}"
            )
        condition = reshaped(condition, array.shape)
    if not new.size:
        return
    if new.size != 1 and new.shape != array.shape:
        new = reshaped(_repeated(new, array.size), array.shape)
    _write(array, _single(new), condition)


@implements(np.place)
def place(arr: ArrayLike, mask: object, vals: object) -> None:
    """``numpy.place``; with several values the number of selected elements is computed immediately."""
    array, condition = _written(arr, np.place), ufuncs.astype(expression_of(mask), np.bool_)
    new = _safely(vals, array.dtype, np.place)
    if condition.shape != array.shape:
        if condition.size != array.size:
            raise ShapeError(f"place: a mask of shape {condition.shape} for an array of shape {array.shape}")
        condition = reshaped(condition, array.shape)
    if new.size == 1:
        _write(array, _single(new), condition)
        return
    count = int(asked(count_nonzero(condition), "how many values place needs"))
    if count and not new.size:
        raise ShapeError("place: vals is empty, but the mask selects elements")
    if count:
        array[DistArray(condition)] = DistArray(_repeated(new, count))


@implements(np.put)
def put(a: ArrayLike, ind: object, v: ArrayLike, mode: str = "raise") -> None:
    """``numpy.put``: flat indices in row-major order; values repeat, and the last write wins."""
    array = _written(a, np.put)
    index = expression_of(ind)
    new = converted(v, array.dtype)
    if not index.size or not new.size:
        return
    index = ufuncs.astype(modulo(index, array.size, mode), np.int64)
    flat = DistArray(flattened(index))
    if array.ndim > 1:
        if mode == "raise":  # negative ones count from the end
            below, ahead = (flat < 0).expression, (flat + array.size).expression
            flat = DistArray(where(below, ahead, flat.expression))
        key = tuple(unravel_index(flat, array.shape))
    else:
        key = (flat,)
    array[key] = DistArray(_single(new) if new.size == 1 else _repeated(new, flat.size))


@implements(np.put_along_axis)
def put_along_axis(arr: ArrayLike, indices: ArrayLike, values: ArrayLike, axis: int | None) -> None:
    """``numpy.put_along_axis``."""
    array = _written(arr, np.put_along_axis)
    node, index = array.expression, expression_of(indices)
    new = converted(values, array.dtype)
    if axis is None:
        put(array, DistArray(index), DistArray(new))
        return
    shape = node.shape
    node, index, place = lanes_of(node, index, axis)
    if node.shape != shape:
        raise ShapeError(
            f"put_along_axis: indices of shape {index.shape} do not fit an array of shape {shape}"
        )
    if node.sparse or are_cut(node, place):
        array._become(assigned(node, along_key(index, place), new))
    else:
        array._become(PutAlong(node, index, new, place))


@implements(np.fill_diagonal)
def fill_diagonal(a: ArrayLike, val: object, wrap: bool = False) -> None:
    """``numpy.fill_diagonal``."""
    array = _written(a, np.fill_diagonal)
    if array.ndim < 2:
        raise ShapeError("fill_diagonal: give an array with two axes or more")
    if array.ndim > 2 and len(set(array.shape)) != 1:
        raise ShapeError(f"fill_diagonal: an array of shape {array.shape} has axes of different lengths")
    if not array.size:
        return
    key: tuple[object, ...]
    if wrap and array.ndim == 2:
        places = np.arange(0, array.size, array.shape[1] + 1)
        key, count = (places // array.shape[1], places % array.shape[1]), len(places)
    else:
        count = min(array.shape)
        key = (DistArray(Create(Arange(0, 1, count, np.dtype(np.int64)))),) * array.ndim
    new = converted(val, array.dtype)
    array[key] = DistArray(_single(new) if new.size == 1 else _repeated(new, count))


def _safely(value: object, dtype: np.dtype, function: Callable[..., object]) -> Expr:
    # NumPy takes arrays here only where no value may be lost, but numbers and lists as assignment does.
    if isinstance(value, DistArray | np.ndarray) and not np.can_cast(value.dtype, dtype, "safe"):
        raise DTypeError(
            f"{function.__name__}: values of dtype {value.dtype} for an array of dtype {dtype}: use astype"
        )
    return converted(value, dtype)


def _repeated(new: Expr, count: int) -> Expr:
    # As many values, which begin anew when they are over.
    flat = flattened(new)
    if flat.shape[0] >= count:
        return flat if flat.shape[0] == count else Index(flat, (slice(0, count, 1),))
    places = DistArray(Create(Arange(0, 1, count, np.dtype(np.int64)))) % flat.shape[0]
    return indexed(flat, places.expression)


def _written(array: object, function: Callable[..., object]) -> DistArray:
    if not isinstance(array, DistArray):
        raise UnsupportedError(
            f"np.{function.__name__} into a {type(array).__name__} from DistArrays: compute() them first"
        )
    return array


def _single(new: Expr) -> Expr:
    # One element broadcasts to anything once its axes are gone.
    return DistArray(new)[(0,) * new.ndim].expression if new.size == 1 and new.ndim else new


def _write(array: DistArray, new: Expr, mask: Expr | None) -> None:
    if broadcast_shapes(new.shape, array.shape, name="assignment") != array.shape:
        raise ShapeError(f"a value of shape {new.shape} does not fit an array of shape {array.shape}")
    if mask is None:
        array[...] = DistArray(new)
        return
    if array.sparse:
        array._become(PutWhere(array.expression, mask, new))
        return
    whole = new if new.shape == array.shape else Broadcast(new, array.shape)
    array._become(replacing(array.expression, whole, mask))


def dynamic_slice(x: ArrayLike, start: object, size: int, axis: int = 0) -> DistArray:
    """Return ``size`` consecutive elements along an axis, starting at an index that may be computed.

    Parameters
    ----------
    x
        An array; of a sparse one the result is sparse.
    start
        An integer, or a 0-d integer DistArray such as :func:`matnb.iteration`: from 0 to the length of the
        axis minus ``size``. Negative indices are not supported, and the slice is never shortened.
    size
        An integer; it cannot be a DistArray.
    axis
        Of the array.

    Returns
    -------
    DistArray
        Of the array's shape and dtype, with ``size`` elements along the axis.

    Raises
    ------
    ShapeError
        For a size larger than the axis.
    IndexingError
        If the slice would reach beyond the axis; for a computed start, when it runs.
    DTypeError
        For a size that is not an integer, and a start that is not 0-d.

    Examples
    --------
    >>> import matnb as mn
    >>> x = mn.arange(12.0).reshape(6, 2)
    >>> means, _ = mn.iterate(
    ...     lambda total: total + mn.dynamic_slice(x, 2 * mn.iteration(), 2).mean(axis=0), mn.zeros(2),
    ...     max_iterations=3,
    ... )
    >>> means.compute()
    array([15., 18.])

    References
    ----------
    Named after ``jax.lax.dynamic_slice_in_dim``, which clamps the start; here an invalid start is an error.
    """
    node = expression_of(x)
    place = one_axis(axis, node.ndim)
    return wrap(dynamic.sliced(node, expression_of(start), _size(size), place))


def dynamic_update_slice(x: ArrayLike, update: object, start: object, axis: int = 0) -> DistArray:
    """Return an array with a slice along an axis replaced, starting at an index that may be computed.

    Parameters
    ----------
    x
        An array; a sparse one stays sparse.
    update
        The new elements, with as many axes as the array. Along axes other than ``axis`` its length is that of
        the array, or 1. It is converted to the array's dtype.
    start, axis
        As in :func:`matnb.dynamic_slice`.

    Raises
    ------
    ShapeError
        For an update that does not fit.
    IndexingError
        If the update would reach beyond the axis; for a computed start, when it runs.

    Examples
    --------
    >>> import matnb as mn
    >>> x, _ = mn.iterate(
    ...     lambda x: mn.dynamic_update_slice(x, mn.ones(2) * mn.iteration(), 2 * mn.iteration()),
    ...     mn.zeros(6), max_iterations=3,
    ... )
    >>> x.compute()
    array([0., 0., 1., 1., 2., 2.])
    """
    node, new = expression_of(x), expression_of(update)
    return wrap(dynamic.updated(node, new, expression_of(start), one_axis(axis, node.ndim)))


def _size(size: object) -> int:
    try:
        return operator.index(size)  # type: ignore[arg-type]  # what refuses others
    except LoopBodyError:
        raise DTypeError(
            "dynamic_slice: the size of a slice must be a known integer, not a DistArray"
        ) from None
    except TypeError:
        raise DTypeError(f"dynamic_slice: size {size!r}: give an integer") from None

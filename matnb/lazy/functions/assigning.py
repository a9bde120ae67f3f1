"""NumPy's functions that write to an array they are given: copyto, put, place and their kin."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from matnb.blocks.creation import Arange
from matnb.errors import DTypeError, OptionError, RangeError, ShapeError, UnsupportedError
from matnb.expr.nodes import Broadcast, Create, Expr, Index, broadcast_shapes
from matnb.lazy import ufuncs
from matnb.lazy.array import DistArray, expression_of
from matnb.lazy.creation import holds_handles
from matnb.lazy.force import asked
from matnb.lazy.functions.picking import along_key, are_cut, lanes_of, modulo
from matnb.lazy.functions.reshaping import reshaped
from matnb.lazy.functions.selecting import unravel_index
from matnb.lazy.indexing.basic import replacing
from matnb.lazy.indexing.fancy import assigned, indexed
from matnb.lazy.indexing.getitem import converted
from matnb.lazy.reductions import count_nonzero, where
from matnb.lazy.registry import implements
from matnb.ops.picking import PutAlong, PutWhere

_HOLDING = {int: "iufc", float: "fc", complex: "c"}  # kinds of dtypes that hold such numbers


@implements(np.copyto)
def copyto(dst: object, src: object, casting: str = "same_kind", where: object = True) -> None:
    """``numpy.copyto``."""
    array = _written(dst, np.copyto)
    if casting not in ("no", "equiv", "safe", "same_kind", "unsafe"):
        raise OptionError(f"copyto: casting={casting!r} is none of NumPy's")
    if ufuncs.is_weak(src):
        if casting != "unsafe" and array.dtype.kind not in _HOLDING[type(src)]:
            raise DTypeError(
                f"copyto: the number {src} does not go into {array.dtype} by casting={casting!r}"
            )
        given: Expr = ufuncs.forced(src, array.dtype)
    else:
        if casting == "unsafe" and isinstance(src, list | tuple) and not holds_handles(src):
            listed = np.asarray(src)
            if listed.dtype.hasobject:  # numbers wider than any dtype, which have a truth all the same
                src = _forced(listed, array.dtype)
        given = expression_of(src)
        if not np.can_cast(given.dtype, array.dtype, casting):  # type: ignore[arg-type]  # one of them
            raise DTypeError(f"copyto: {given.dtype} does not go into {array.dtype} by casting={casting!r}")
    _write(array, ufuncs.astype(given, array.dtype), None if where is True else expression_of(where))


def _forced(numbers: np.ndarray, dtype: np.dtype) -> np.ndarray:
    try:
        return numbers.astype(dtype)
    except OverflowError as error:
        raise RangeError(f"copyto: a number does not fit dtype {dtype}: {error}") from None
    except (TypeError, ValueError) as error:
        raise DTypeError(f"copyto: what is given does not go into {dtype}: {error}") from None


@implements(np.putmask)
def putmask(a: object, /, mask: object, values: object) -> None:
    """``numpy.putmask``: values of another shape repeat, each for its place in row order."""
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
def place(arr: object, mask: object, vals: object) -> None:
    """``numpy.place``: values repeat; of several it is asked how many are wanted."""
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
        raise ShapeError("place: no values for elements that the mask picks")
    if count:
        array[DistArray(condition)] = DistArray(_repeated(new, count))


@implements(np.put)
def put(a: object, ind: object, v: object, mode: str = "raise") -> None:
    """``numpy.put``: places count in row order, and values repeat; of equal places the last one stays."""
    array = _written(a, np.put)
    index = expression_of(ind)
    new = converted(v, array.dtype)
    if not index.size or not new.size:
        return
    index = ufuncs.astype(modulo(index, array.size, mode), np.int64)
    flat = DistArray(index if index.ndim == 1 else reshaped(index, (-1,)))
    if array.ndim > 1:
        if mode == "raise":  # negative ones count from the end
            below, ahead = (flat < 0).expression, (flat + array.size).expression
            flat = DistArray(where(below, ahead, flat.expression))
        key = tuple(unravel_index(flat, array.shape))
    else:
        key = (flat,)
    array[key] = DistArray(_single(new) if new.size == 1 else _repeated(new, flat.size))


@implements(np.put_along_axis)
def put_along_axis(arr: object, indices: object, values: object, axis: int | None) -> None:
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
        raise ShapeError(f"put_along_axis: places of shape {index.shape} for an array of shape {shape}")
    if node.sparse or are_cut(node, place):
        array._become(assigned(node, along_key(index, place), new))
    else:
        array._become(PutAlong(node, index, new, place))


@implements(np.fill_diagonal)
def fill_diagonal(a: object, val: object, wrap: bool = False) -> None:
    """``numpy.fill_diagonal``."""
    array = _written(a, np.fill_diagonal)
    if array.ndim < 2:
        raise ShapeError("fill_diagonal: give an array of two axes or more")
    if array.ndim > 2 and len(set(array.shape)) != 1:
        raise ShapeError(f"fill_diagonal: an array of shape {array.shape} with axes of several lengths")
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
    flat = new if new.ndim == 1 else reshaped(new, (-1,))
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

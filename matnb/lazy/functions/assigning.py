"""NumPy's functions that write to an array they are given: copyto, putmask and place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from matnb.errors import DTypeError, OptionError, ShapeError, UnsupportedError
from matnb.lazy import ufuncs
from matnb.lazy.array import DistArray, expression_of
from matnb.lazy.expr import Broadcast, Expr, broadcast_shapes
from matnb.lazy.places import fitting, replacing
from matnb.lazy.registry import implements
from matnb.lazy.ufuncs import Weak


@implements(np.copyto)
def copyto(dst: object, src: object, casting: str = "same_kind", where: object = True) -> None:
    """``numpy.copyto``."""
    array = _written(dst, np.copyto)
    if casting not in ("no", "equiv", "safe", "same_kind", "unsafe"):
        raise OptionError(f"copyto: casting={casting!r} is none of NumPy's")
    given: Expr | Weak
    if ufuncs.is_weak(src):
        given = src
    elif casting == "same_kind":
        given = expression_of(src)
    else:
        given = expression_of(src)
        if not np.can_cast(given.dtype, array.dtype, casting):  # type: ignore[arg-type]  # one of them
            raise DTypeError(f"copyto: {given.dtype} does not go into {array.dtype} by casting={casting!r}")
        given = ufuncs.astype(given, array.dtype)
    _write(array, fitting(given, array.dtype), None if where is True else expression_of(where))


@implements(np.putmask)
def putmask(a: object, mask: object, values: object) -> None:
    """``numpy.putmask`` with one value, or with values of the shape of the array."""
    array, condition = _written(a, np.putmask), expression_of(mask)
    new = fitting(values if ufuncs.is_weak(values) else expression_of(values), array.dtype)
    if condition.shape != array.shape:
        raise ShapeError(f"putmask: a mask of shape {condition.shape} for an array of shape {array.shape}")
    if new.size != 1 and new.shape != array.shape:
        raise UnsupportedError(
            f"putmask: values of shape {new.shape} that repeat are not recorded; give one value, or values "
            f"of shape {array.shape}"
        )
    _write(array, _single(new), ufuncs.astype(condition, np.bool_))


@implements(np.place)
def place(arr: object, mask: object, vals: object) -> None:
    """``numpy.place`` with one value."""
    array, condition = _written(arr, np.place), expression_of(mask)
    new = fitting(vals if ufuncs.is_weak(vals) else expression_of(vals), array.dtype)
    if new.size != 1 or condition.shape != array.shape:
        raise UnsupportedError(
            "place with several values, or a mask of another shape, is not recorded; use "
            "np.where(mask, new, old)"
        )
    _write(array, _single(new), ufuncs.astype(condition, np.bool_))


def _written(array: object, function: Callable[..., object]) -> DistArray:
    if not isinstance(array, DistArray):
        raise UnsupportedError(
            f"np.{function.__name__} into a {type(array).__name__} from DistArrays: compute() them first"
        )
    return array


def _single(new: Expr) -> Expr:
    # One element broadcasts to anything once its axes are gone.
    return DistArray(new)[(0,) * new.ndim].expression if new.size == 1 and new.ndim else new


def _write(array: DistArray, new: Expr, where: Expr | None) -> None:
    if broadcast_shapes(new.shape, array.shape, name="assignment") != array.shape:
        raise ShapeError(f"a value of shape {new.shape} does not fit an array of shape {array.shape}")
    if where is None:
        array[...] = DistArray(new)
        return
    whole = new if new.shape == array.shape else Broadcast(new, array.shape)
    array._become(replacing(array.expression, whole, where))

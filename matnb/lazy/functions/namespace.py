"""What ``matnb`` offers under NumPy's names: which are recorded, and which are NumPy's own."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from types import ModuleType

import numpy as np

from matnb.errors import UnsupportedError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import arange, asarray, linspace, meshgrid
from matnb.lazy.functions import dtypes, elementwise, sliding
from matnb.lazy.registry import FUNCTIONS, recorded

_CONSTANTS = ("e", "euler_gamma", "inf", "nan", "newaxis", "pi", "little_endian", "False_", "True_")
_DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
    "bool_", "byte", "short", "intc", "int_", "intp", "long", "longlong",
    "ubyte", "ushort", "uintc", "uint", "uintp", "ulong", "ulonglong",
    "half", "single", "double", "longdouble", "csingle", "cdouble", "clongdouble",
    "generic", "number", "integer", "signedinteger", "unsignedinteger", "inexact", "floating",
    "complexfloating", "dtype",
)  # fmt: skip
# Work on no array: dtypes, shapes, single numbers, and how NumPy computes and prints.
_PASSED_ON = (
    "isdtype", "issubdtype", "promote_types", "min_scalar_type", "typename", "mintypecode",
    "broadcast_shapes", "isscalar", "iterable", "ndindex", "s_", "index_exp", "exceptions", "testing",
    "errstate", "seterr", "geterr", "seterrcall", "geterrcall", "printoptions", "set_printoptions",
    "get_printoptions", "base_repr", "binary_repr", "format_float_positional", "format_float_scientific",
)  # fmt: skip


def numpy_names() -> dict[str, object]:
    """Return what ``matnb`` has under names of ``numpy``: dtypes, constants, ufuncs and functions."""
    own: dict[str, object] = {
        "ndarray": DistArray,
        "finfo": dtypes.finfo,
        "iinfo": dtypes.iinfo,
        "r_": RowConcatenator(),
        "c_": ColumnConcatenator(),
        "ogrid": OpenGrid(),
        "mgrid": FullGrid(),
        "sliding_window_view": sliding.sliding_window_view,
        "__array_namespace_info__": dtypes.NamespaceInfo,
        "__array_api_version__": "2024.12",
    }
    passed = {name: getattr(np, name) for name in (*_CONSTANTS, *_DTYPES, *_PASSED_ON)}
    ufuncs = {name: elementwise.named(name) for name, one in vars(np).items() if isinstance(one, np.ufunc)}
    return {**passed, **ufuncs, **recorded_in(np), **own}


def recorded_in(module: ModuleType) -> dict[str, Callable[..., object]]:
    """Return the recorded functions that a module of NumPy's has, by all its names of them."""
    return {
        name: FUNCTIONS[one]
        for name, one in vars(module).items()
        if not name.startswith("_") and isinstance(one, Hashable) and one in FUNCTIONS
    }


# NumPy's objects that make arrays of an index: ``r_``, ``c_``, ``mgrid`` and ``ogrid``.


class RowConcatenator:
    """``numpy.r_``: slices, numbers and arrays one after the other.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.r_[0:3, 10, [7, 8]].compute()
    array([ 0,  1,  2, 10,  7,  8])
    """

    def __getitem__(self, key: object) -> DistArray:
        found = recorded(np.concatenate)([recorded(np.atleast_1d)(one) for one in _arrays(key)])
        assert isinstance(found, DistArray)
        return found


class ColumnConcatenator:
    """``numpy.c_``: slices, numbers and arrays side by side as columns."""

    def __getitem__(self, key: object) -> DistArray:
        found = recorded(np.column_stack)([recorded(np.atleast_1d)(one) for one in _arrays(key)])
        assert isinstance(found, DistArray)
        return found


class OpenGrid:
    """``numpy.ogrid``: the axes of a grid, which stretch where they meet."""

    def __getitem__(self, key: object) -> DistArray | tuple[DistArray, ...]:
        if isinstance(key, slice):
            return _along(key)
        return meshgrid(*_axes(key), sparse=True, indexing="ij")


class FullGrid:
    """``numpy.mgrid``: the places of a grid's points, an axis after the other."""

    def __getitem__(self, key: object) -> DistArray:
        if isinstance(key, slice):
            return _along(key)
        found = recorded(np.stack)(meshgrid(*_axes(key), indexing="ij"))
        assert isinstance(found, DistArray)
        return found


def _axes(key: object) -> list[DistArray]:
    axes = [_along(one) for one in key if isinstance(one, slice)] if isinstance(key, tuple) else []
    if not axes or len(axes) != len(key):  # type: ignore[arg-type]  # a tuple
        raise UnsupportedError(f"a grid of {key!r}: give slices, as in mgrid[0:3, 0:1:5j]")
    kind = np.result_type(*(one.dtype for one in axes))
    return [one.astype(kind) for one in axes]


def _arrays(key: object) -> list[DistArray]:
    parts = key if isinstance(key, tuple) else (key,)
    if any(isinstance(one, str) for one in parts):
        raise UnsupportedError("r_ and c_ with a text: use np.concatenate, np.stack or np.column_stack")
    return [_along(one) if isinstance(one, slice) else asarray(one) for one in parts]


def _along(part: slice) -> DistArray:
    # An imaginary step is a count of numbers, both ends included.
    start = 0 if part.start is None else part.start
    step = 1 if part.step is None else part.step
    if isinstance(step, complex):
        made = linspace(start, part.stop, int(abs(step)))
        assert isinstance(made, DistArray)
        return made
    return arange(start, part.stop, step)

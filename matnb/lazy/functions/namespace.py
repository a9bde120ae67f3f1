"""What ``matnb`` offers under NumPy's names: which are recorded, and which are NumPy's own."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from types import ModuleType

import numpy as np

from matnb.lazy.array import DistArray
from matnb.lazy.functions import calling, dtypes, index_tricks, sliding
from matnb.lazy.registry import FUNCTIONS

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
        "r_": index_tricks.Joined(),
        "c_": index_tricks.Columns(),
        "ogrid": index_tricks.OpenGrid(),
        "mgrid": index_tricks.FullGrid(),
        "sliding_window_view": sliding.sliding_window_view,
        "__array_namespace_info__": dtypes.NamespaceInfo,
        "__array_api_version__": "2024.12",
    }
    passed = {name: getattr(np, name) for name in (*_CONSTANTS, *_DTYPES, *_PASSED_ON)}
    ufuncs = {name: calling.named(name) for name, one in vars(np).items() if isinstance(one, np.ufunc)}
    return {**passed, **ufuncs, **recorded_in(np), **own}


def recorded_in(module: ModuleType) -> dict[str, Callable[..., object]]:
    """Return the recorded functions that a module of NumPy's has, by all its names of them."""
    return {
        name: FUNCTIONS[one]
        for name, one in vars(module).items()
        if not name.startswith("_") and isinstance(one, Hashable) and one in FUNCTIONS
    }

"""How NumPy and Python see nested arrays: functions, conversion to an array, truth and ``in``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from matnb.errors import NotScalarError, UnsupportedError, no_attribute

# By default np.sort and np.argsort go along the last axis, all others along all of them.
_ORDERS = ("sort", "argsort")
_ALONG_ALL = (
    *("sum", "prod", "min", "max", "any", "all", "argmin", "argmax", "mean", "var", "std"),
    *("cumsum", "cumprod"),
)
_METHODS: dict[object, str] = {getattr(np, name): name for name in (*_ORDERS, *_ALONG_ALL)}

# What arrays have and nested ones do not, and what to write.
_INSTEAD = {
    "shape": "write N.num_segments or N.counts",
    "ndim": "write N.num_segments or N.counts",
    "size": "write N.num_values",
    "compute": "write N.values.compute() or N.tolist()",
    "to_list": "write N.tolist()",
    "to_numpy": "write N.values.compute()",
}


class NumpyCalls:
    """A nested array as NumPy's functions and Python's statements see it."""

    __slots__ = ()

    def __array_function__(
        self,
        function: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object],
        kwargs: Mapping[str, object],
    ) -> object:
        name, called = _METHODS.get(function), f"np.{function.__name__} of a nested array"
        if name is None or not args or args[0] is not self or len(args) > 2:
            raise UnsupportedError(
                f"{called}: use methods such as N.sum(), or functions of N.values, all values in one array; "
                "N.with_values(values) puts as many into the same segments"
            )
        options = dict(zip(("axis",), args[1:], strict=False)) | dict(kwargs)
        axis = options.pop("axis", -1 if name in _ORDERS else None)
        if axis not in (-1, getattr(self, "depth", 1)):
            raise UnsupportedError(
                f"{called} with axis={axis}: N.{name}(), axis=-1, goes along each segment, and "
                f"np.{name}(N.values) takes all values together"
            )
        if options.keys() - ({"ddof"} if name in ("var", "std") else set()):
            raise UnsupportedError(f"{called} with {', '.join(options)}: use N.{name}()")
        return getattr(self, name)(**options)

    def __array__(self, dtype: object = None, copy: bool | None = None) -> NoReturn:
        raise UnsupportedError(
            "a nested array cannot be converted to a NumPy array, as its segments may differ in length: use "
            "N.values, all values in one array, N.tolist(), or N.to_awkward()"
        )

    def __getattr__(self, name: str) -> NoReturn:
        owner = type(self).__name__
        if name.startswith("_"):  # libraries ask for protocols that there are not
            raise AttributeError(f"{owner} has no attribute {name!r}")
        raise no_attribute(owner, name, lambda: dir(type(self)), lambda: _INSTEAD.get(name, ""))

    def __bool__(self) -> bool:
        raise NotScalarError(
            "the truth value of a nested array is ambiguous: use N.values.any() or N.values.all() for all "
            "values, N.any() or N.all() for each segment, or len(N)"
        )

    def __contains__(self, value: Any) -> bool:
        equal: Any = self == value
        return bool(equal.values.any())


def check_call(ufunc: np.ufunc, method: str, options: Mapping[str, object]) -> None:
    """Refuse calls of a ufunc that do not go value by value.

    Raises
    ------
    UnsupportedError
        For methods, ``out=``, and products such as ``@``, with what to write.
    """
    if options.get("out") is not None:
        raise UnsupportedError(
            f"np.{ufunc.__name__} of a nested array with out=: nested arrays cannot be changed in place; "
            "write N = N + M for N += M"
        )
    if method != "__call__":
        raise UnsupportedError(
            f"np.{ufunc.__name__}.{method} of a nested array: use methods such as N.sum() or N.cumsum()"
        )
    if ufunc.signature is not None:
        raise UnsupportedError(
            f"np.{ufunc.__name__} of a nested array: (N * M).sum() multiplies segment by segment"
        )

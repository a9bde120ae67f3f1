"""How NumPy and Python see nested arrays: functions, conversion to an array, truth and ``in``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from matnb.errors import NotScalarError, UnsupportedError, no_attribute
from matnb.lazy.foreign_names import refuse_dask
from matnb.nested.structure import is_nested

# By default np.sort and np.argsort go along the last axis, all others along all of them.
_ORDERS = ("sort", "argsort")
_ALONG_ALL = (
    *("sum", "prod", "min", "max", "any", "all", "argmin", "argmax", "mean", "var", "std"),
    *("cumsum", "cumprod"),
)
_METHODS: dict[object, str] = {getattr(np, name): name for name in (*_ORDERS, *_ALONG_ALL)}

# Functions of elements that are no ufuncs: how many of their arguments stand beside each other, element by
# element, and the names of such arguments; the others are options.
_OF_ELEMENTS: dict[object, int] = {
    np.where: 3,
    np.clip: 3,
    np.isclose: 4,
    **dict.fromkeys((np.round, np.around, np.nan_to_num, np.isin, np.fix, np.sinc, np.i0), 1),
    **dict.fromkeys((np.real, np.imag, np.angle, np.isreal, np.iscomplex, np.isposinf, np.isneginf), 1),
}
_WITH_OPTION = (np.round, np.around, np.isin)  # which is usually given without its name
_OPERANDS = frozenset(("a", "b", "rtol", "atol", "x", "z", "val", "element", "min", "max", "a_min", "a_max"))

# What arrays have and nested ones do not, and what to write.
_INSTEAD = {
    "shape": "write N.num_segments or N.counts",
    "ndim": "write N.num_segments or N.counts",
    "size": "write N.num_values",
    "compute": "write N.values.compute() or N.tolist()",
    "to_list": "write N.tolist()",
    "T": "write N.transpose() for the two outermost levels, or N.flatten().T for the innermost segments",
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
        if function in _OF_ELEMENTS:
            return self._of_elements(function, args, kwargs)
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

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        check_call(ufunc, method, options)
        return self._elementwise(partial(getattr(ufunc, method), **options), inputs, ufunc.__name__)

    def _of_elements(
        self, function: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
    ) -> object:
        count, called = _OF_ELEMENTS[function], f"np.{function.__name__} of a nested array"
        names = [name for name in kwargs if name in _OPERANDS]
        options = {name: value for name, value in kwargs.items() if name not in names}
        if function is np.where and len(args) == 1:
            raise UnsupportedError(
                f"{called} with one argument: N[mask] selects values, and np.nonzero(mask.values) says where "
                "they are among all"
            )
        if any(map(is_nested, (*args[count:], *options.values()))):
            raise UnsupportedError(
                f"{called}: an option is nested: give numbers, or N.values, all values of an array"
            )
        if options.get("out") is not None or not options.get("copy", True):
            raise UnsupportedError(
                f"{called} with out= or copy=False: N cannot be changed in place; use what it returns"
            )
        if len(args) > count + (function in _WITH_OPTION):
            raise UnsupportedError(f"{called} with {len(args)} arguments: give N, and options by their names")

        inputs = [*args[:count], *(kwargs[name] for name in names)]
        # An argument that is left out, such as a bound, stays so.
        given = [place for place, one in enumerate(inputs) if one is not None and one is not np._NoValue]

        def call(*operands: object) -> object:
            whole = list(inputs)
            for place, one in zip(given, operands, strict=True):
                whole[place] = one
            first = min(count, len(args))
            named = dict(zip(names, whole[first:], strict=True))
            return function(*whole[:first], *args[count:], **named, **options)

        return self._elementwise(call, [inputs[place] for place in given], function.__name__)

    def clip(self, min: object = None, max: object = None) -> Any:
        """Return the values limited to at least ``min`` and at most ``max``, in the same segments.

        Parameters
        ----------
        min, max
            A number, a value for each segment, or a nested array of the same segments; None is no limit.

        Raises
        ------
        ShapeError
            For other segments, or other than one value for each.

        Examples
        --------
        >>> import matnb as mn
        >>> N = mn.nested.from_lists([[3, 1], [], [5]])
        >>> N.clip(2).tolist(), N.clip(max=N.mean()).tolist()
        ([[3, 2], [], [5]], [[2.0, 1.0], [], [5.0]])
        """
        return np.clip(self, min, max)  # type: ignore[call-overload]  # which comes back to this class

    def round(self, decimals: int = 0) -> Any:
        """Return the values rounded to some decimals, halves to even, as ``np.round``, in the same segments.

        Examples
        --------
        >>> import matnb as mn
        >>> mn.nested.from_lists([[1.25, 2.5], [0.125]]).round(1).tolist()
        [[1.2, 2.5], [0.1]]
        """
        return np.round(self, decimals)  # which comes back to this class

    def __array__(self, dtype: object = None, copy: bool | None = None) -> NoReturn:
        raise UnsupportedError(
            "a nested array cannot be converted to a NumPy array, as its segments may differ in length: use "
            "N.values, all values in one array, N.tolist(), or N.to_awkward(); functions of elements are "
            "NumPy's, such as np.where(N > 0, N, 0)"
        )

    def __getattr__(self, name: str) -> NoReturn:
        owner = type(self).__name__
        if name.startswith("_"):  # libraries ask for protocols that there are not
            refuse_dask(name, "a nested array")
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

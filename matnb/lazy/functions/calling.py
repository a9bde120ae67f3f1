"""The ufuncs as matnb names them: NumPy's own, which record also where no argument is a handle yet."""

from __future__ import annotations

from typing import Any

import numpy as np

from matnb.lazy.array import DistArray, expression_of

_NUMBERS = (bool, int, float, complex, np.generic)


class Ufunc:
    """A NumPy ufunc that gives DistArrays of lists and NumPy arrays, too; of numbers alone it gives NumPy's.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.add(2, [1.0, 2.0]).compute()
    array([3., 4.])
    >>> mn.maximum.reduce([3, 1, 2]).compute()
    np.int64(3)
    """

    def __init__(self, ufunc: np.ufunc) -> None:
        self.__wrapped__ = ufunc
        self.__name__ = ufunc.__name__
        self.__doc__ = f"``numpy.{ufunc.__name__}``."

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Return the results, elementwise."""
        return self.__wrapped__(*_handled(args, options), **options)

    def __getattr__(self, name: str) -> Any:
        # reduce, accumulate, outer, reduceat; and nin, nout, identity, types ... as they are, and `at`, which
        # changes the array that it is given
        found = getattr(self.__wrapped__, name)
        if name not in ("reduce", "accumulate", "outer", "reduceat"):
            return found
        return lambda *args, **options: found(*_handled(args, options), **options)

    def __reduce__(self) -> tuple[object, ...]:
        return named, (self.__name__,)

    def __repr__(self) -> str:
        return f"<matnb ufunc {self.__name__!r}>"


def named(name: str) -> Ufunc:
    """Return a ufunc by NumPy's name of it: the same one for every name that it has."""
    ufunc = getattr(np, name)
    if ufunc not in _ufuncs:
        _ufuncs[ufunc] = Ufunc(ufunc)
    return _ufuncs[ufunc]


_ufuncs: dict[np.ufunc, Ufunc] = {}


def _handled(args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, ...]:
    # One handle among the arguments is enough for NumPy to find its way here; into an array of its own NumPy
    # writes itself.
    if options.get("out") is not None:
        return args
    for one in (*args, *options.values()):
        if not isinstance(one, np.ndarray | np.generic) and hasattr(type(one), "__array_ufunc__"):
            return args
    for place, one in enumerate(args):
        if not isinstance(one, _NUMBERS) and one is not None:
            return (*args[:place], DistArray(expression_of(one)), *args[place + 1 :])
    return args

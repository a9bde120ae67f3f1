"""The methods of handles that are NumPy's functions under the same names."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from matnb.errors import UnsupportedError
from matnb.lazy.registry import recorded


def _method(name: str) -> Callable[..., Any]:
    function = getattr(np, name)
    call = function if isinstance(function, np.ufunc) else None

    @wraps(getattr(np.ndarray, name))
    def method(self: Methods, *args: object, **kwargs: object) -> object:
        return (call or recorded(function))(self, *args, **kwargs)

    method.__doc__ = f"``numpy.{name}`` of this array."
    return method


class Methods:
    """The methods of ``numpy.ndarray`` that call the function of their name."""

    __slots__ = ()

    # Each is NumPy's function of that name with the array first.

    argmax = _method("argmax")
    argmin = _method("argmin")
    argpartition = _method("argpartition")
    argsort = _method("argsort")
    choose = _method("choose")
    clip = _method("clip")
    conj = _method("conj")
    conjugate = _method("conjugate")
    cumprod = _method("cumprod")
    cumsum = _method("cumsum")
    diagonal = _method("diagonal")
    dot = _method("dot")
    nonzero = _method("nonzero")
    put = _method("put")
    ravel = _method("ravel")
    repeat = _method("repeat")
    round = _method("round")
    searchsorted = _method("searchsorted")
    squeeze = _method("squeeze")
    swapaxes = _method("swapaxes")
    take = _method("take")
    trace = _method("trace")

    def __setitem__(self, key: Any, value: Any) -> None:
        raise NotImplementedError

    def reshape(self, *shape: Any, order: str | None = "C", copy: bool | None = None) -> Any:
        """Return the elements, last axis fastest, in another shape; -1 is what the others leave."""
        lengths = shape[0] if len(shape) == 1 else shape
        return recorded(np.reshape)(self, lengths, order=order, copy=copy)

    def flatten(self, order: str = "C") -> Any:
        """Return the elements along one axis, last axis fastest."""
        return recorded(np.ravel)(self, order=order)

    def resize(self, *shape: Any, refcheck: bool = True) -> None:
        """Raise, since blocks are never resized where they are."""
        lengths = shape[0] if len(shape) == 1 else shape
        raise UnsupportedError(
            f"x.resize({lengths!r}) changes an array in place: x = np.resize(x, {lengths!r}), or np.pad"
        )

    def compress(self, condition: Any, axis: int | None = None, out: Any = None) -> Any:
        """Return the parts along an axis where a condition is true."""
        return recorded(np.compress)(condition, self, axis=axis, out=out)

    def sort(
        self, axis: int = -1, kind: str | None = None, order: None = None, *, stable: bool | None = None
    ) -> None:
        """Sort along an axis; the handle changes, as by an assignment."""
        self[...] = recorded(np.sort)(self, axis=axis, stable=stable)

    def partition(self, kth: Any, axis: int = -1, kind: str = "introselect", order: None = None) -> None:
        """Put what a sort would have at ``kth`` there, less before, more behind; the handle changes."""
        self[...] = recorded(np.partition)(self, kth, axis=axis)

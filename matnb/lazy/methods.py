"""The methods of handles that are NumPy's functions under the same names: one table."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from matnb.lazy.registry import recorded

# Each is the function of that name with the array first; where a method takes other arguments it is written
# out in the class of handles.
NAMES: tuple[str, ...] = ("squeeze", "swapaxes")


class Methods:
    """The methods of ``numpy.ndarray`` that call the function of their name."""

    __slots__ = ()


def _method(name: str) -> Callable[..., Any]:
    function = getattr(np, name)

    @wraps(getattr(np.ndarray, name))
    def method(self: Methods, *args: object, **kwargs: object) -> object:
        return recorded(function)(self, *args, **kwargs)

    method.__doc__ = f"``numpy.{name}`` of this array."
    return method


for _name in NAMES:
    setattr(Methods, _name, _method(_name))

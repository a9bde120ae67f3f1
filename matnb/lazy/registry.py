"""Which NumPy functions are recorded, and what other rooms make of methods: one dict and one decorator."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from matnb.errors import UnsupportedError

FUNCTIONS: dict[Callable[..., object], Callable[..., object]] = {}
# Methods that families give to DistArrays, dense or sparse, by name; what NumPy's arrays have is no family's.
METHODS: dict[str, Callable[..., object]] = {}
SPARSE_METHODS: dict[str, Callable[..., object]] = {}
_Function = TypeVar("_Function", bound=Callable[..., object])


def implements(*functions: Callable[..., object]) -> Callable[[_Function], _Function]:
    """Return a decorator that registers a function as the implementation of NumPy's for DistArrays."""

    def register(function: _Function) -> _Function:
        for one in functions:
            FUNCTIONS[one] = function
        if function.__doc__ is None:  # made for one of many similar functions, whose name it takes
            function.__name__ = function.__qualname__ = functions[0].__name__
            function.__doc__ = f"``numpy.{function.__name__}`` for DistArrays, computed on the workers."
        return function

    return register


def recorded(function: Callable[..., object]) -> Callable[..., object]:
    """Return what a NumPy function does on a DistArray.

    Raises
    ------
    UnsupportedError
        When it does nothing, naming the nearest way.
    """
    if function in FUNCTIONS:
        return FUNCTIONS[function]
    name = f"{function.__module__.replace('numpy', 'np', 1)}.{function.__name__}"
    raise UnsupportedError(
        f"{name} is not supported for DistArrays; compute them first, as in {name}(x.compute(), ...)"
    )

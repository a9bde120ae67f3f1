"""Which NumPy functions are recorded: one dict and one decorator."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

FUNCTIONS: dict[Callable[..., object], Callable[..., object]] = {}
_Function = TypeVar("_Function", bound=Callable[..., object])


def implements(*functions: Callable[..., object]) -> Callable[[_Function], _Function]:
    """Register what a NumPy function does on a DistArray."""

    def register(function: _Function) -> _Function:
        for one in functions:
            FUNCTIONS[one] = function
        return function

    return register

"""Which NumPy functions are recorded: one dict and one decorator."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from matnb.errors import UnsupportedError

FUNCTIONS: dict[Callable[..., object], Callable[..., object]] = {}
_Function = TypeVar("_Function", bound=Callable[..., object])


def implements(*functions: Callable[..., object]) -> Callable[[_Function], _Function]:
    """Register what a NumPy function does on a DistArray."""

    def register(function: _Function) -> _Function:
        for one in functions:
            FUNCTIONS[one] = function
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
    if function in (np.save, np.savez, np.savetxt):
        raise UnsupportedError(f"{name} of a DistArray: write it from the workers with mn.save(x, path)")
    raise UnsupportedError(
        f"{name} is not recorded for DistArray; compute its arrays first, as in {name}(x.compute(), ...)"
    )

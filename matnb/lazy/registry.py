"""Which NumPy functions are recorded: one dict and one decorator."""

from __future__ import annotations

from collections.abc import Callable

FUNCTIONS: dict[Callable[..., object], Callable[..., object]] = {}


def implements(*functions: Callable[..., object]) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Register what a NumPy function does on a DistArray."""

    def register(function: Callable[..., object]) -> Callable[..., object]:
        for one in functions:
            FUNCTIONS[one] = function
        return function

    return register

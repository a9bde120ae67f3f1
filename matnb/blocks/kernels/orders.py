"""The order of two values in a loop that is compiled for every dtype: complex numbers, which have none, too.

A loop asks while it runs for which semiring it adds, so those of min and of truths are compiled with it.
They are refused for complex numbers when they are recorded; here they only need to compile.
"""

from __future__ import annotations

from numba import types
from numba.extending import overload


def is_less(one: float, other: float) -> bool:
    """Tell in a compiled loop whether ``one < other``; never so of complex numbers."""
    return one < other


def least(one: float, other: float) -> float:
    """Return in a compiled loop ``min(one, other)``; of complex numbers the first."""
    return min(one, other)


def greatest(one: float, other: float) -> float:
    """Return in a compiled loop ``max(one, other)``; of complex numbers the first."""
    return max(one, other)


# Numba wants the names and annotations of what it is given and of what it gets back to agree: there are none.


@overload(is_less, inline="always")
def _is_less(one, other):  # type: ignore[no-untyped-def]  # see above
    if isinstance(one, types.Complex) or isinstance(other, types.Complex):
        return lambda one, other: False
    return lambda one, other: one < other


@overload(least, inline="always")
def _least(one, other):  # type: ignore[no-untyped-def]  # see above
    if isinstance(one, types.Complex) or isinstance(other, types.Complex):
        return lambda one, other: one
    return lambda one, other: min(one, other)


@overload(greatest, inline="always")
def _greatest(one, other):  # type: ignore[no-untyped-def]  # see above
    if isinstance(one, types.Complex) or isinstance(other, types.Complex):
        return lambda one, other: one
    return lambda one, other: max(one, other)

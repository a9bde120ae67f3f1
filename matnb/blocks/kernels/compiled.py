"""The one way a loop is compiled: Numba without the interpreter's lock, cached on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numba
import numpy as np

Loop = TypeVar("Loop", bound=Callable[..., object])
Scalar = TypeVar("Scalar", bound=np.generic)


def compiled(function: Loop) -> Loop:
    """Compile a loop at its first call for each combination of dtypes, and keep the machine code on disk.

    No threads of its own (blocks already run side by side) and no fast math (bits must not depend on it).
    """
    loop: Loop = numba.njit(nogil=True, cache=True)(function)
    return loop


def given(array: np.ndarray[tuple[int, ...], np.dtype[Scalar]]) -> np.ndarray:
    """Return an input of a loop as a read-only array in C order, so that each dtype is compiled only once."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view

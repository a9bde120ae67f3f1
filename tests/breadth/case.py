"""One call of a NumPy function, written once for NumPy and for matnb, and the arrays it is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Maker = Callable[[np.random.Generator], np.ndarray]


@dataclass(frozen=True)
class Case:
    """A call.

    Attributes
    ----------
    name
        NumPy's name of the function, or of the method or index; several cases may have one name.
    call
        Given ``np`` or ``mn`` and the arrays, NumPy's or handles; returns an array, or a tuple of them.
    makers
        Make the arrays.
    sparse
        Whether arrays of two axes may be sparse.
    tolerance
        Relative; 0 where the values are the same in any order of working.
    large
        Make arrays of a megabyte or more, for counting what is moved; none where another case does.
    """

    name: str
    call: Callable[..., Any]
    makers: tuple[Maker, ...]
    sparse: bool = True
    tolerance: float = 1e-12
    large: tuple[Maker, ...] = ()


def floats(*shape: int) -> Maker:
    """Return what makes an array of quarters with zeros, some equal."""
    return lambda rng: rng.integers(-8, 9, shape) / 4 * (rng.random(shape) < 0.7)


def whole(*shape: int, low: int = -5, high: int = 6, dtype: str = "int64") -> Maker:
    """Return what makes an array of whole numbers."""
    return lambda rng: rng.integers(low, high, shape).astype(dtype)


def truths(*shape: int) -> Maker:
    """Return what makes an array of booleans."""
    return lambda rng: rng.random(shape) < 0.4


def odd(*shape: int) -> Maker:
    """Return what makes an array with NaN, infinities and negative zeros."""

    def make(rng: np.random.Generator) -> np.ndarray:
        values = rng.integers(-3, 4, shape) / 2
        chosen = rng.random(shape)
        values[chosen < 0.1] = np.nan
        values[(chosen >= 0.1) & (chosen < 0.15)] = np.inf
        values[(chosen >= 0.15) & (chosen < 0.2)] = -np.inf
        return np.where((chosen > 0.8) & (values == 0), -0.0, values)

    return make

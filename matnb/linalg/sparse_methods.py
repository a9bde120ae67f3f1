"""What sparse DistArrays have from SciPy's: elementwise methods, functions in NumPy; ``setdiag``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from matnb.errors import OptionError
from matnb.lazy.array import DistArray
from matnb.lazy.registry import SPARSE_METHODS

# Of elements, zeros to zeros; and of two arrays, or an array and a number.
_OF_ONE = (
    *("arcsin", "arcsinh", "arctan", "arctanh", "ceil", "deg2rad", "expm1", "floor", "log1p", "rad2deg"),
    *("rint", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
)
_OF_TWO = ("maximum", "minimum", "multiply")


def _one(name: str) -> Callable[..., Any]:
    @wraps(getattr(sp.csr_array, name))
    def method(self: DistArray) -> Any:
        return getattr(np, name)(self)

    return method


def _two(name: str) -> Callable[..., Any]:
    @wraps(getattr(sp.csr_array, name))
    def method(self: DistArray, other: object) -> Any:
        return getattr(np, name)(self, other)

    return method


def power(self: DistArray, n: Any, dtype: npt.DTypeLike | None = None) -> Any:
    """Return the array with every element raised to a power above 0, as SciPy's method does."""
    return np.power(self if dtype is None else self.astype(dtype), n)


def setdiag(self: DistArray, values: Any, k: int = 0) -> None:
    """Set the elements of the k-th diagonal, or as many of its first as there are ``values``, as in SciPy.

    The handle stands for a new version of the array; earlier readers keep theirs.

    Raises
    ------
    OptionError
        Where the array has no k-th diagonal.
    """
    rows, columns = self.shape
    length = min(rows + min(k, 0), columns - max(k, 0))
    if length <= 0:
        raise OptionError(
            f"setdiag(k={k}): an array of shape {self.shape} has diagonals {1 - rows} to {columns - 1}"
        )
    if np.ndim(values):
        length = min(length, len(values))
    places = np.arange(length)
    self[places - min(k, 0), places + max(k, 0)] = values[:length] if np.ndim(values) else values


SPARSE_METHODS.update({name: _one(name) for name in _OF_ONE} | {name: _two(name) for name in _OF_TWO})
SPARSE_METHODS.update(power=power, setdiag=setdiag)

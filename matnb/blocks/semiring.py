"""Monoids and semirings, named as in GraphBLAS, over NumPy's ufuncs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matnb.errors import DTypeError, OptionError


@dataclass(frozen=True)
class Monoid:
    """An associative, commutative operation with an identity.

    Parameters
    ----------
    name
        GraphBLAS's name.
    ufunc
        Name of the NumPy ufunc that combines two values.
    """

    name: str
    ufunc: str

    def identity(self, dtype: np.dtype) -> np.generic:
        """Return the value that changes nothing: 0 for plus, the largest value for min, and so on.

        Raises
        ------
        DTypeError
            When the dtype has none, as complex numbers have no largest.
        """
        value: np.generic = dtype.type(self._identity(dtype))
        return value

    def _identity(self, dtype: np.dtype) -> float:
        largest = self.name == "min"
        match self.name, dtype.kind:
            case "plus" | "lor", _:
                return 0
            case "times" | "land", _:
                return 1
            case "min" | "max", "b":
                return largest
            case "min" | "max", "f":
                return np.inf if largest else -np.inf
            case "min" | "max", "i" | "u":
                bounds = np.iinfo(dtype)
                return bounds.max if largest else bounds.min
        raise DTypeError(f"monoid {self.name!r} has no identity for dtype {dtype}")


@dataclass(frozen=True)
class Semiring:
    """An additive monoid and a multiplication; ``pair`` multiplies any two stored entries to 1.

    Absent entries are absent, not zero: they take no part in a product.
    """

    name: str
    add: Monoid
    multiply: str

    def result_dtype(self, left: np.dtype, right: np.dtype) -> np.dtype:
        """Return the dtype of a product's entries.

        Raises
        ------
        DTypeError
            When the semiring is not defined for the dtypes.
        """
        match self.multiply:
            case "pair":
                return np.dtype(np.int64)
            case "land":
                return np.dtype(np.bool_)
            case "plus":
                if np.result_type(left, right).kind not in "iuf":
                    raise DTypeError(f"semiring {self.name!r} needs real numbers, not {left} and {right}")
                return np.result_type(left, right)
        return np.result_type(left, right)


PLUS = Monoid("plus", "add")
TIMES = Monoid("times", "multiply")
MIN = Monoid("min", "minimum")
MAX = Monoid("max", "maximum")
LOR = Monoid("lor", "logical_or")
LAND = Monoid("land", "logical_and")

MONOIDS = {monoid.name: monoid for monoid in (PLUS, TIMES, MIN, MAX, LOR, LAND)}

PLUS_TIMES = Semiring("plus_times", PLUS, "times")
MIN_PLUS = Semiring("min_plus", MIN, "plus")
PLUS_PAIR = Semiring("plus_pair", PLUS, "pair")
LOR_LAND = Semiring("lor_land", LOR, "land")

SEMIRINGS = {semiring.name: semiring for semiring in (PLUS_TIMES, MIN_PLUS, PLUS_PAIR, LOR_LAND)}


def semiring_named(name: str) -> Semiring:
    """Return a semiring by name.

    Raises
    ------
    OptionError
        For an unknown name, listing the known ones.
    """
    if name not in SEMIRINGS:
        raise OptionError(f"no semiring {name!r}; known: {', '.join(SEMIRINGS)}")
    return SEMIRINGS[name]

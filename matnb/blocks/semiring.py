"""Monoids and semirings, named as in GraphBLAS, over NumPy's ufuncs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

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
    """An additive monoid and a multiplication.

    ``pair`` multiplies any two stored entries to 1; ``first`` and ``second`` give the value of the left or
    the right one, whatever the other's. So ``min_first`` and ``lor_first`` take a vector ``x`` along the
    edges of a graph in ``x @ A``, and ``min_second`` and ``lor_second`` in ``A @ x``.

    Absent entries are absent, not zero: they take no part in a product. Where the addition is min or lor, an
    element of a dense vector that is its identity (inf, the largest integer, False) is absent too when the
    vector meets a sparse matrix: nothing is reached from there, and a largest integer does not wrap.
    """

    name: str
    add: Monoid
    multiply: str

    @property
    def turned(self) -> Semiring:
        """The semiring of the product of the transposes, in the other order."""
        turned = {"first": "second", "second": "first"}.get(self.multiply)
        return self if turned is None else Semiring(f"{self.add.name}_{turned}", self.add, turned)

    @property
    def leaves_out(self) -> bool:
        """True where elements of a dense vector are absent that are the identity of the addition."""
        return self.add.name in ("min", "lor")

    def result_dtype(self, left: np.dtype, right: np.dtype) -> np.dtype:
        """Return the dtype of a product's entries.

        Raises
        ------
        DTypeError
            When the semiring is not defined for the dtypes.
        """
        if self.add.name == "lor":
            return np.dtype(np.bool_)
        kept = {"first": (left,), "second": (right,)}.get(self.multiply, (left, right))
        if self.multiply == "pair":
            return np.dtype(np.int64)
        if self.add.name == "min" and np.result_type(*kept).kind not in "iuf":
            given = " and ".join(map(str, kept))
            raise DTypeError(f"semiring {self.name!r} needs real numbers, not {given}")
        return np.result_type(*kept)


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
MIN_FIRST = Semiring("min_first", MIN, "first")
MIN_SECOND = Semiring("min_second", MIN, "second")
LOR_FIRST = Semiring("lor_first", LOR, "first")
LOR_SECOND = Semiring("lor_second", LOR, "second")

SEMIRINGS = {
    semiring.name: semiring
    for semiring in (
        PLUS_TIMES, MIN_PLUS, PLUS_PAIR, LOR_LAND, MIN_FIRST, MIN_SECOND, LOR_FIRST, LOR_SECOND,
    )
}  # fmt: skip


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


_BOTH, _FIRST = frozenset({0, 1}), frozenset({0})

# Operands whose absent elements make the result absent whatever they meet, infinities and NaN included.
ANNIHILATORS: Mapping[str, frozenset[int]] = MappingProxyType(
    {
        "multiply": _BOTH,
        "logical_and": _BOTH,
        "bitwise_and": _BOTH,
        "divide": _FIRST,
        "true_divide": _FIRST,
        "floor_divide": _FIRST,
        "remainder": _FIRST,
        "fmod": _FIRST,
        "left_shift": _FIRST,
        "right_shift": _FIRST,
        "xlogy": _FIRST,
        "xlog1py": _FIRST,
    }
)

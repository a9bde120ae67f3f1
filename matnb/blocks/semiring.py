"""Monoids and semirings, named as in GraphBLAS, over NumPy's ufuncs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from matnb.errors import DTypeError, OptionError, suggestion


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

    Absent entries are absent, not zero: they take no part in a product. Where the addition is min or max and
    the multiplication plus, or they are lor and land, and with first and second, an element of a dense vector
    that is the addition's identity (inf, the largest integer, False) is absent too when the vector meets a
    sparse matrix: nothing is reached from there, and a largest integer does not wrap.
    """

    name: str
    add: Monoid
    multiply: str

    @property
    def turned(self) -> Semiring:
        """The semiring of the product of the transposes, in the other order."""
        turned = {"first": "second", "second": "first"}.get(self.multiply)
        return self if turned is None else SEMIRINGS[f"{self.add.name}_{turned}"]

    @property
    def leaves_out(self) -> bool:
        """True where elements of a dense vector are absent that are the identity of the addition."""
        goes_on = {"min": "plus", "max": "plus", "lor": "land"}.get(self.add.name)
        return goes_on is not None and self.multiply in (goes_on, "first", "second")

    @property
    def is_pushed(self) -> bool:
        """True where a dense vector that meets a sparse matrix is pushed along the rows of what it has."""
        return self.leaves_out and self.add.name != "max"

    def pushes(self, dtype: np.dtype) -> bool:
        """Tell whether a product of this dtype is pushed: whole numbers are added in any order, too."""
        return self.is_pushed or (
            self.add.name == "plus" and self.multiply in ("times", "first") and dtype.kind in "iu"
        )

    @property
    def is_of_truths(self) -> bool:
        """True where truths are added, so that entries count by whether they are zero."""
        return self.add.name in ("lor", "land")

    @property
    def is_general(self) -> bool:
        """True where products have no loop of their own, nor one of a semiring that gives the same."""
        return (self.add.name, self.multiply) not in _WITH_LOOPS

    @property
    def is_shared(self) -> bool:
        """True where the parts of a heavy row are multiplied apart."""
        if self.add.name == "plus":
            return self.multiply in ("times", "pair")
        return self.is_pushed

    def result_dtype(self, left: np.dtype, right: np.dtype) -> np.dtype:
        """Return the dtype of a product's entries.

        Raises
        ------
        DTypeError
            When the semiring is not defined for the dtypes.
        """
        if self.is_of_truths:
            return np.dtype(np.bool_)
        kept = {"first": (left,), "second": (right,)}.get(self.multiply, (left, right))
        if self.multiply == "pair":
            return np.dtype(np.int64)
        orders = {"min", "max"} & {self.add.name, self.multiply}
        if orders and np.result_type(*kept).kind not in "iuf":
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

# Reductions of what sparse arrays store, where an absent element is no zero; and those of all elements.
OF_STORED = {f"{name} of stored": name for name in ("prod", "min", "max", "all")}

MULTIPLICATIONS = ("times", "plus", "min", "max", "first", "second", "pair", "land", "lor")
_OF_TRUTHS = ("land", "lor")

SEMIRINGS = {
    f"{add.name}_{multiply}": Semiring(f"{add.name}_{multiply}", add, multiply)
    for add in MONOIDS.values()
    for multiply in MULTIPLICATIONS
    if add.name in ("lor", "land") or multiply not in _OF_TRUTHS
}
# Any of the pairs that met: as each is 1, so is that.
SEMIRINGS["any_pair"] = Semiring("any_pair", LOR, "pair")

PLUS_TIMES = SEMIRINGS["plus_times"]
MIN_PLUS = SEMIRINGS["min_plus"]
PLUS_PAIR = SEMIRINGS["plus_pair"]
LOR_LAND = SEMIRINGS["lor_land"]
MIN_FIRST = SEMIRINGS["min_first"]
MIN_SECOND = SEMIRINGS["min_second"]
LOR_FIRST = SEMIRINGS["lor_first"]
_WITH_LOOPS = {
    ("plus", "times"), ("plus", "pair"), ("plus", "first"), ("plus", "second"), ("min", "plus"),
    ("min", "first"), ("min", "second"), ("lor", "land"), ("lor", "first"), ("lor", "second"),
    ("lor", "pair"),
}  # fmt: skip


def semiring_named(name: str) -> Semiring:
    """Return a semiring by name.

    Raises
    ------
    OptionError
        For an unknown name, listing the known ones.
    """
    if name not in SEMIRINGS:
        raise OptionError(f"unknown semiring {name!r}; {suggestion(name, SEMIRINGS)}")
    return SEMIRINGS[name]


def semiring(add: str, multiply: str) -> Semiring:
    """Return a semiring with the given addition and multiplication, for ``matmul(A, B, semiring=)``.

    Parameters
    ----------
    add
        A monoid: "plus", "times", "min", "max", "lor" or "land"; "any" only with "pair".
    multiply
        "times", "plus", "min", "max", "first" or "second" (the value of the left or right entry), "pair" (1);
        with "lor" and "land" also "land" and "lor", which treat entries as booleans.

    Raises
    ------
    OptionError
        For an unknown name, and for an addition and a multiplication that cannot be combined.

    Notes
    -----
    Names are GraphBLAS's: Davis, "Algorithm 1000: SuiteSparse:GraphBLAS", TOMS 45 (2019). Results have
    NumPy's result type of both operands; with "first" and "second" the dtype of that operand, with "pair"
    int64, and with booleans bool.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp, matnb as mn
    >>> widths = mn.asarray(sp.csr_array([[0.0, 5.0, 2.0], [0.0, 0.0, 4.0]]))
    >>> mn.matmul(widths, np.array([9.0, 3.0, 1.0]), semiring=mn.semiring("max", "min")).compute()
    array([3., 1.])
    """
    name = f"{add}_{multiply}"
    if name in SEMIRINGS:
        return SEMIRINGS[name]
    if add not in (*MONOIDS, "any"):
        raise OptionError(f"no monoid {add!r}; {suggestion(add, [*MONOIDS, 'any'])}")
    if multiply not in MULTIPLICATIONS:
        raise OptionError(f"no multiplication {multiply!r}; {suggestion(multiply, MULTIPLICATIONS)}")
    if add == "any":
        raise OptionError(
            "'any' takes one of several products, which are all the same for 'pair' only, not for "
            f"{multiply!r}"
        )
    raise OptionError(f"{multiply!r} gives booleans: use 'lor' or 'land' to add them, not {add!r}")


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

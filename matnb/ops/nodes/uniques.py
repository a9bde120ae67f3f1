"""Nodes that list the distinct elements of an array: how many there are is known only when they are found."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import ClassVar

import numpy as np

from matnb.blocks.kernels.uniques import FIELDS, packed_length
from matnb.expr.nodes import Expr


@dataclass(frozen=True, eq=False, repr=False)
class Distinct(Expr):
    """What is distinct in each part of a 1-D array in ascending order, packed as bytes.

    The parts end at ``cuts`` of the order. An element that is equal to the last one of the part before is not
    in the next one. Of NaN there is one where they are ``equal_nan``. ``starts`` tells whether how many
    elements come before each is packed too, ``places`` whether the first place of each in the array is.
    """

    plain: ClassVar[bool] = True
    operand: Expr
    cuts: tuple[int, ...]
    equal_nan: bool
    starts: bool
    places: bool

    def __post_init__(self) -> None:
        self._settle((self.ends[-1],), np.dtype(np.uint8), False, self.operand)

    @property
    def ends(self) -> tuple[int, ...]:
        """Where the bytes of the parts end, 0 first."""
        return ends_of(self.cuts, self.operand.dtype, self.starts, self.places)


@dataclass(frozen=True, eq=False, repr=False)
class CountDistinct(Expr):
    """How many distinct elements each part has, packed as bytes that end at ``ends``."""

    plain: ClassVar[bool] = True
    operand: Expr
    ends: tuple[int, ...]

    def __post_init__(self) -> None:
        self._settle((len(self.ends) - 1,), np.dtype(np.int64), False, self.operand)


@dataclass(frozen=True, eq=False, repr=False)
class DistinctField(Expr):
    """The values, starts or places of what is distinct, packed as bytes; the rest is as of :class:`Distinct`.

    ``counts`` are those of the parts, and ``element`` the dtype of the values.
    """

    plain: ClassVar[bool] = True
    operand: Expr
    field: str
    counts: tuple[int, ...]
    cuts: tuple[int, ...]
    element: np.dtype
    starts: bool
    places: bool

    def __post_init__(self) -> None:
        assert self.field in FIELDS, "one of what is packed"
        dtype = self.element if self.field == "values" else np.dtype(np.int64)
        self._settle((sum(self.counts),), dtype, False, self.operand)

    @property
    def ends(self) -> tuple[int, ...]:
        """Where the bytes of the parts end, 0 first."""
        return ends_of(self.cuts, self.element, self.starts, self.places)


def ends_of(cuts: tuple[int, ...], dtype: np.dtype, starts: bool, places: bool) -> tuple[int, ...]:
    """Return where the bytes of parts end, 0 first, that have up to so many distinct elements."""
    lengths = (packed_length(stop - start, dtype, starts, places) for start, stop in pairwise(cuts))
    return (0, *accumulate(lengths))

"""Nodes of arrays whose elements are those of another one in row-major order: reshaped, or repeated."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from matnb.errors import ShapeError
from matnb.expr.nodes import Expr, Shape


@dataclass(frozen=True, eq=False, repr=False)
class Reshape(Expr):
    """The elements of an array, last axis fastest, in another shape; sparse where both have two axes."""

    plain: ClassVar[bool] = True
    operand: Expr
    lengths: Shape

    def __post_init__(self) -> None:
        if prod(self.lengths) != self.operand.size:
            raise ShapeError(
                f"reshape: {self.operand.size} elements of shape {self.operand.shape} do not fit shape "
                f"{self.lengths}, which has {prod(self.lengths)}"
            )
        sparse = self.operand.sparse and len(self.lengths) == 2
        self._settle(self.lengths, self.operand.dtype, sparse, self.operand)


@dataclass(frozen=True, eq=False, repr=False)
class Repeat(Expr):
    """An array with each element, or each slice along an axis, so many times, one beside the other."""

    plain: ClassVar[bool] = True
    operand: Expr
    count: int
    axis: int

    def __post_init__(self) -> None:
        given = self.operand.shape
        shape = (*given[: self.axis], given[self.axis] * self.count, *given[self.axis + 1 :])
        self._settle(shape, self.operand.dtype, self.operand.sparse, self.operand)


@dataclass(frozen=True, eq=False, repr=False)
class CountsOf(Expr):
    """The sums of whole numbers in the parts that ``cuts`` bound; -1 where one of them is negative."""

    plain: ClassVar[bool] = True
    counts: Expr
    cuts: tuple[int, ...]

    def __post_init__(self) -> None:
        self._settle((len(self.cuts) - 1,), np.dtype(np.int64), False, self.counts)


@dataclass(frozen=True, eq=False, repr=False)
class RepeatEach(Expr):
    """An array with each slice along an axis as often as a vector says.

    ``before`` cuts that axis, and ``after`` says where what each part becomes ends in the result.
    """

    plain: ClassVar[bool] = True
    operand: Expr
    counts: Expr
    axis: int
    before: tuple[int, ...]
    after: tuple[int, ...]

    def __post_init__(self) -> None:
        given = self.operand.shape
        if self.counts.shape != (given[self.axis],):
            raise ShapeError(f"{self.counts.shape} counts for axis {self.axis} of shape {given}")
        shape = (*given[: self.axis], self.after[-1], *given[self.axis + 1 :])
        self._settle(shape, self.operand.dtype, self.operand.sparse, self.operand, self.counts)

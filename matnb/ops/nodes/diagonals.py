"""Nodes of diagonals: taken from arrays, made to matrices, and what is above or below them dropped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from matnb.blocks.formats import SPARSE_DTYPES
from matnb.errors import ShapeError
from matnb.expr.nodes import Expr


@dataclass(frozen=True, eq=False, repr=False)
class Diagonal(Expr):
    """The diagonal of two axes, ``offset`` places right of the main one, as the last axis; dense."""

    plain: ClassVar[bool] = True
    operand: Expr
    offset: int
    rows: int
    columns: int

    def __post_init__(self) -> None:
        given = self.operand.shape
        if len(given) < 2 or self.rows == self.columns:
            raise ShapeError(f"a diagonal of shape {given} goes along two different axes")
        rest = tuple(one for axis, one in enumerate(given) if axis not in (self.rows, self.columns))
        self._settle((*rest, self.length), self.operand.dtype, False, self.operand)

    @property
    def start(self) -> tuple[int, int]:
        """Row and column of its first element."""
        return max(0, -self.offset), max(0, self.offset)

    @property
    def length(self) -> int:
        """How many elements it has."""
        (row, column), given = self.start, self.operand.shape
        return max(0, min(given[self.rows] - row, given[self.columns] - column))


@dataclass(frozen=True, eq=False, repr=False)
class DiagonalMatrix(Expr):
    """The square matrix with a vector on a diagonal; sparse where its dtype can be."""

    plain: ClassVar[bool] = True
    operand: Expr
    offset: int

    def __post_init__(self) -> None:
        (length,) = self.operand.shape
        side = length + abs(self.offset)
        dtype = self.operand.dtype
        self._settle((side, side), dtype, dtype in SPARSE_DTYPES, self.operand)


@dataclass(frozen=True, eq=False, repr=False)
class Triangle(Expr):
    """Matrices of the last two axes with zeros above a diagonal, or below it where it is ``upper``."""

    plain: ClassVar[bool] = True
    operand: Expr
    offset: int
    upper: bool

    def __post_init__(self) -> None:
        if self.operand.ndim < 2:
            raise ShapeError(f"a triangle of shape {self.operand.shape} needs two axes")
        given = self.operand
        self._settle(given.shape, given.dtype, given.sparse, given)

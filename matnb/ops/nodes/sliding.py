"""Nodes of what slides along an axis: windows, what reductions make of each, and sums of products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from matnb.errors import ShapeError
from matnb.expr.nodes import Expr


def _slid(operand: Expr, length: int, axis: int) -> tuple[int, ...]:
    # The shape of an array whose axis has a place for each window, of at least one element.
    if not 1 <= length <= operand.shape[axis]:
        raise ShapeError(f"windows of length {length} on axis {axis} of shape {operand.shape}")
    shape = list(operand.shape)
    shape[axis] -= length - 1
    return tuple(shape)


@dataclass(frozen=True, eq=False, repr=False)
class Windows(Expr):
    """Each stretch of so many neighbors along an axis, along a new last axis; dense."""

    plain: ClassVar[bool] = True
    operand: Expr
    length: int
    axis: int

    def __post_init__(self) -> None:
        shape = (*_slid(self.operand, self.length, self.axis), self.length)
        self._settle(shape, self.operand.dtype, False, self.operand)


@dataclass(frozen=True, eq=False, repr=False)
class WindowReduce(Expr):
    """What a reduction makes of each stretch of so many neighbors along an axis, of a dtype; dense.

    ``operation`` is "sum", "prod", "min", "max", "any", "all", or "deviation", the sum of squared distances
    from the mean.
    """

    plain: ClassVar[bool] = True
    operand: Expr
    operation: str
    length: int
    axis: int
    element: np.dtype

    def __post_init__(self) -> None:
        self._settle(_slid(self.operand, self.length, self.axis), self.element, False, self.operand)


@dataclass(frozen=True, eq=False, repr=False)
class Convolve(Expr):
    """Elements ``start`` to ``start + length`` of the full discrete convolution of two vectors of one dtype.

    It is zero before its first element and behind its last. ``operand`` is cut, ``weights`` go whole to all.
    """

    plain: ClassVar[bool] = True
    operand: Expr
    weights: Expr
    start: int
    length: int

    def __post_init__(self) -> None:
        self._settle((self.length,), self.operand.dtype, False, self.operand, self.weights)

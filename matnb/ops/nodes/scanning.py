"""Nodes along an axis: what a ufunc makes of the elements up to each one, and differences of neighbors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from matnb.expr.nodes import Expr


@dataclass(frozen=True, eq=False, repr=False)
class Scan(Expr):
    """``ufunc.accumulate`` along an axis, by an associative ufunc; dense."""

    plain: ClassVar[bool] = True
    operand: Expr
    ufunc: str
    axis: int
    element: np.dtype

    def __post_init__(self) -> None:
        self._settle(self.operand.shape, self.element, False, self.operand)


@dataclass(frozen=True, eq=False, repr=False)
class Differences(Expr):
    """Each element but the first of an axis less the one before it, of truths whether they differ; dense."""

    plain: ClassVar[bool] = True
    operand: Expr
    axis: int

    def __post_init__(self) -> None:
        shape = list(self.operand.shape)
        shape[self.axis] -= 1
        self._settle(tuple(shape), self.operand.dtype, False, self.operand)

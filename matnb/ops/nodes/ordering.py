"""Nodes that put elements in order, and those that pick the ones at places of the order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from matnb.expr.nodes import Expr


@dataclass(frozen=True, eq=False, repr=False)
class Sort(Expr):
    """The elements ascending along an axis, NaN last; dense."""

    plain: ClassVar[bool] = True
    operand: Expr
    axis: int

    def __post_init__(self) -> None:
        self._settle(self.operand.shape, self.operand.dtype, False, self.operand)


@dataclass(frozen=True, eq=False, repr=False)
class ArgSort(Expr):
    """The places along an axis of the elements in ascending order, equal ones as they come."""

    plain: ClassVar[bool] = True
    operand: Expr
    axis: int

    def __post_init__(self) -> None:
        self._settle(self.operand.shape, np.dtype(np.intp), False, self.operand)

"""The node of a scan: what a ufunc makes of the elements up to each one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from matnb.lazy.expr import Expr


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

"""Nodes that tell quantiles, along axes or of all elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from matnb.blocks.kernels.quantiles import Wanted, quantiles_along
from matnb.expr.nodes import Expr


@dataclass(frozen=True, eq=False, repr=False)
class Quantiles(Expr):
    """Quantiles along some axes, which stay with length 1; those of ``wanted`` come first."""

    plain: ClassVar[bool] = True
    operand: Expr
    axes: tuple[int, ...]
    wanted: Wanted

    def __post_init__(self) -> None:
        shape = self.operand.shape
        kept = tuple(1 if axis in self.axes else length for axis, length in enumerate(shape))
        with np.errstate(all="ignore"):
            tried = quantiles_along(np.ones((1,) * len(shape), self.operand.dtype), self.axes, self.wanted)
        self._settle((*self.wanted.shape, *kept), tried.dtype, False, self.operand)

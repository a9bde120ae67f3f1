"""Nodes that look elements up in another array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from matnb.errors import ShapeError
from matnb.expr.nodes import Expr


@dataclass(frozen=True, eq=False, repr=False)
class Search(Expr):
    """Where each value belongs in an ascending 1-D array, as ``numpy.searchsorted`` has it."""

    plain: ClassVar[bool] = True
    ascending: Expr
    values: Expr
    side: str

    def __post_init__(self) -> None:
        if self.ascending.ndim != 1:
            raise ShapeError(
                f"searchsorted: the array to look in has shape {self.ascending.shape}, not one axis"
            )
        self._settle(self.values.shape, np.dtype(np.intp), False, self.ascending, self.values)


@dataclass(frozen=True, eq=False, repr=False)
class Member(Expr):
    """Whether each value is among the elements of another array of one axis; NaN is not."""

    plain: ClassVar[bool] = True
    among: Expr
    values: Expr

    def __post_init__(self) -> None:
        self._settle(self.values.shape, np.dtype(np.bool_), False, self.among, self.values)


@dataclass(frozen=True, eq=False, repr=False)
class Interpolate(Expr):
    """Values of a piecewise linear function between points, beyond which it is ``inputs``' last two."""

    plain: ClassVar[bool] = True
    values: Expr
    inputs: tuple[Expr, ...]

    def __post_init__(self) -> None:
        kind = np.complex128 if self.inputs[1].dtype.kind == "c" else np.float64
        self._settle(self.values.shape, np.dtype(kind), False, self.values, *self.inputs)

"""Nodes that leave one value of each line of an array: the place of an extreme, or a ufunc's fold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from matnb.errors import ShapeError
from matnb.expr.nodes import Expr, Shape

_PLACE = np.dtype(np.intp)


@dataclass(frozen=True, eq=False, repr=False)
class Extreme(Expr):
    """The place of the least or greatest element over an axis, or over all in the order of rows.

    ``operation`` is "argmin" or "argmax", where the first NaN is the extreme, or "nanargmin" or "nanargmax",
    where it is not. The first of equal elements counts.
    """

    plain: ClassVar[bool] = True
    operand: Expr
    operation: str
    axes: tuple[int, ...]
    keepdims: bool

    def __post_init__(self) -> None:
        if any(self.operand.shape[axis] == 0 for axis in self.axes):
            raise ShapeError(
                f"{self.operation} of an array of shape {self.operand.shape} over an axis without elements"
            )
        self._settle(kept_shape(self.operand.shape, self.axes, self.keepdims), _PLACE, False, self.operand)


@dataclass(frozen=True, eq=False, repr=False)
class Fold(Expr):
    """A reduction by a ufunc in which neither order nor grouping matters, and that ``Reduce`` does not name.

    There is at least one element to each result.
    """

    plain: ClassVar[bool] = True
    operand: Expr
    ufunc: str
    axes: tuple[int, ...]
    keepdims: bool
    element: np.dtype

    def __post_init__(self) -> None:
        shape = kept_shape(self.operand.shape, self.axes, self.keepdims)
        self._settle(shape, self.element, False, self.operand)


def kept_shape(shape: Shape, axes: tuple[int, ...], keepdims: bool) -> Shape:
    """Return the shape that a reduction leaves of one."""
    if keepdims:
        return tuple(1 if axis in axes else length for axis, length in enumerate(shape))
    return tuple(length for axis, length in enumerate(shape) if axis not in axes)

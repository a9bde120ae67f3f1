"""Nodes that put arrays together."""

from __future__ import annotations

from dataclasses import dataclass

from matnb.errors import DTypeError, ShapeError
from matnb.lazy.expr import Expr


@dataclass(frozen=True, eq=False, repr=False)
class Concatenate(Expr):
    """Arrays of one dtype one after the other along an axis; sparse where all of them are."""

    inputs: tuple[Expr, ...]
    axis: int

    def __post_init__(self) -> None:
        first = self.inputs[0]
        if any(one.dtype != first.dtype for one in self.inputs):
            raise DTypeError("concatenate: arrays of several dtypes; convert them with astype first")
        rest = _without(first, self.axis)
        for one in self.inputs:
            if one.ndim != first.ndim or _without(one, self.axis) != rest:
                raise ShapeError(
                    f"concatenate: shapes {first.shape} and {one.shape} differ not on axis {self.axis} alone"
                )
        length = sum(one.shape[self.axis] for one in self.inputs)
        shape = (*first.shape[: self.axis], length, *first.shape[self.axis + 1 :])
        self._settle(shape, first.dtype, all(one.sparse for one in self.inputs), *self.inputs)


def _without(node: Expr, axis: int) -> tuple[int, ...]:
    return (*node.shape[:axis], *node.shape[axis + 1 :])

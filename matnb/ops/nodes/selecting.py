"""Nodes of what booleans pick, whose lengths were asked for: counts, elements, places, values put there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from matnb.errors import DTypeError, ShapeError
from matnb.expr.nodes import Expr, Shape

Cuts = tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class CountTrue(Expr):
    """How many elements are not zero in each part of the first axis, which ``cuts`` bound."""

    plain: ClassVar[bool] = True
    mask: Expr
    cuts: Cuts

    def __post_init__(self) -> None:
        if not self.mask.shape or self.cuts[-1] != self.mask.shape[0]:
            raise ShapeError(f"parts {self.cuts} of an array of shape {self.mask.shape}")
        self._settle((len(self.cuts) - 1,), np.dtype(np.int64), False, self.mask)


@dataclass(frozen=True, eq=False, repr=False)
class Compress(Expr):
    """The elements where booleans for the first axes are true, one after the other along one axis.

    ``before`` cuts the first axis of the array, and ``after`` says where what is picked from each part ends
    in the result. Rows of a sparse array stay sparse; single elements of one are dense.
    """

    plain: ClassVar[bool] = True
    operand: Expr
    mask: Expr
    before: Cuts
    after: Cuts

    def __post_init__(self) -> None:
        _check(self.operand, self.mask, self.before, self.after)
        shape = (self.after[-1], *self.operand.shape[self.mask.ndim :])
        sparse = self.operand.sparse and self.mask.ndim == 1
        self._settle(shape, self.operand.dtype, sparse, self.operand, self.mask)


@dataclass(frozen=True, eq=False, repr=False)
class Expand(Expr):
    """An array with values, one for each element or row where booleans for the first axes are true.

    ``before`` and ``after`` are those of Compress.
    """

    plain: ClassVar[bool] = True
    operand: Expr
    mask: Expr
    value: Expr
    before: Cuts
    after: Cuts

    def __post_init__(self) -> None:
        _check(self.operand, self.mask, self.before, self.after)
        if self.value.shape != self.target:
            raise ShapeError(f"values of shape {self.value.shape} for elements of shape {self.target}")
        if self.value.dtype != self.operand.dtype:
            raise DTypeError(f"values of dtype {self.value.dtype} for elements of dtype {self.operand.dtype}")
        own = self.operand
        self._settle(own.shape, own.dtype, own.sparse, own, self.mask, self.value)

    @property
    def target(self) -> Shape:
        """The shape of what is written over."""
        return (self.after[-1], *self.operand.shape[self.mask.ndim :])


@dataclass(frozen=True, eq=False, repr=False)
class TruePlaces(Expr):
    """Where elements are not zero, in row order: their places on one axis.

    ``before`` cuts the first axis of the array, and ``after`` says where those of each part end.
    """

    plain: ClassVar[bool] = True
    mask: Expr
    axis: int
    before: Cuts
    after: Cuts

    def __post_init__(self) -> None:
        self._settle((self.after[-1],), np.dtype(np.int64), False, self.mask)


def _check(operand: Expr, mask: Expr, before: Cuts, after: Cuts) -> None:
    if mask.dtype.kind != "b" or not mask.shape or mask.shape != operand.shape[: mask.ndim]:
        raise ShapeError(
            f"booleans of shape {mask.shape} {mask.dtype} for an array of shape {operand.shape}: give some "
            "for its first axes"
        )
    if before[-1] != mask.shape[0] or len(before) != len(after):
        raise ShapeError(f"parts {before} and {after} of an axis of length {mask.shape[0]}")

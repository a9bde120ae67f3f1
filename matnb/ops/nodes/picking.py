"""Nodes that read and write at places which arrays of whole numbers list, on any axes, sparse or dense."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from matnb.errors import IndexingError, ShapeError
from matnb.expr.nodes import Expr, Shape, broadcast_shapes


@dataclass(frozen=True, eq=False, repr=False)
class Pick(Expr):
    """What lies at the places that vectors list, one a place for each of as many axes from ``axis`` on.

    One axis is left of those. Rows or columns of a sparse array are sparse, single elements dense.
    """

    plain: ClassVar[bool] = True
    operand: Expr
    inputs: tuple[Expr, ...]
    axis: int

    def __post_init__(self) -> None:
        shape = listed_shape(self.operand, self.inputs, self.axis)
        sparse = self.operand.sparse and len(self.inputs) == 1
        self._settle(shape, self.operand.dtype, sparse, self.operand, *self.inputs)


@dataclass(frozen=True, eq=False, repr=False)
class Place(Expr):
    """An array with a value, which broadcasts, written at places listed as in Pick; the last one stays."""

    plain: ClassVar[bool] = True
    operand: Expr
    value: Expr
    inputs: tuple[Expr, ...]
    axis: int

    def __post_init__(self) -> None:
        _check_value(self.value, self.target)
        own = self.operand
        self._settle(own.shape, own.dtype, own.sparse, own, self.value, *self.inputs)

    @property
    def target(self) -> Shape:
        """The shape of what is written over."""
        return listed_shape(self.operand, self.inputs, self.axis)


@dataclass(frozen=True, eq=False, repr=False)
class PutWhere(Expr):
    """A sparse array with a value, which broadcasts, written where booleans are true; zeros are left out."""

    plain: ClassVar[bool] = True
    operand: Expr
    mask: Expr
    value: Expr

    def __post_init__(self) -> None:
        own = self.operand
        _check_value(self.mask, own.shape)
        _check_value(self.value, own.shape)
        self._settle(own.shape, own.dtype, own.sparse, own, self.mask, self.value)


@dataclass(frozen=True, eq=False, repr=False)
class TakeAlong(Expr):
    """Elements at places on one axis that are listed for each lane of it; dense."""

    plain: ClassVar[bool] = True
    operand: Expr
    index: Expr
    axis: int

    def __post_init__(self) -> None:
        _check_lanes(self.operand, self.index, self.axis)
        self._settle(self.index.shape, self.operand.dtype, False, self.operand, self.index)


@dataclass(frozen=True, eq=False, repr=False)
class PutAlong(Expr):
    """A dense array with values written at places on one axis that are listed for each lane of it."""

    plain: ClassVar[bool] = True
    operand: Expr
    index: Expr
    value: Expr
    axis: int

    def __post_init__(self) -> None:
        _check_lanes(self.operand, self.index, self.axis)
        _check_value(self.value, self.index.shape)
        own = self.operand
        self._settle(own.shape, own.dtype, False, own, self.index, self.value)


def listed_shape(operand: Expr, inputs: tuple[Expr, ...], axis: int) -> Shape:
    """Return the shape of what vectors pick from an array."""
    for index in inputs:
        if index.dtype.kind not in "iu":
            raise IndexingError(
                f"an index of dtype {index.dtype}: give whole numbers, or convert with astype"
            )
        if index.ndim != 1 or index.shape != inputs[0].shape:
            raise ShapeError(f"places of shapes {[one.shape for one in inputs]}: give vectors of one length")
    return (*operand.shape[:axis], *inputs[0].shape, *operand.shape[axis + len(inputs) :])


def _check_value(value: Expr, target: Shape) -> None:
    if broadcast_shapes(value.shape, target, name="assignment") != target:
        raise ShapeError(f"a value of shape {value.shape} does not fit elements of shape {target}")


def _check_lanes(operand: Expr, index: Expr, axis: int) -> None:
    if index.dtype.kind not in "iu":
        raise IndexingError(f"an index of dtype {index.dtype}: give whole numbers, or convert with astype")
    rest = [(*one.shape[:axis], *one.shape[axis + 1 :]) for one in (operand, index)]
    if operand.ndim != index.ndim or rest[0] != rest[1]:
        raise ShapeError(f"places of shape {index.shape} along axis {axis} of an array of {operand.shape}")

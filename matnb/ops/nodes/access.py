"""Nodes that read and write at places known only at run time, draw anew, and call a person's function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from matnb.blocks.creation import Random
from matnb.blocks.kernels.access import reduced_dtype
from matnb.blocks.kernels.calls import Function, Output, packed_bytes
from matnb.blocks.semiring import MONOIDS
from matnb.errors import DTypeError, IndexingError, ShapeError, UnsupportedError
from matnb.expr.nodes import Expr, Key, Shape, broadcast_shapes


@dataclass(frozen=True, eq=False, repr=False)
class At(Expr):
    """One place on an axis, which is dropped: ``index`` is a whole number without axes; dense."""

    operand: Expr
    index: Expr
    axis: int

    def __post_init__(self) -> None:
        _check_index(self.index, 0)
        shape = self.operand.shape
        rest = (*shape[: self.axis], *shape[self.axis + 1 :])
        self._settle(rest, self.operand.dtype, False, self.operand, self.index)


@dataclass(frozen=True, eq=False, repr=False)
class Put(Expr):
    """An array with a value, which broadcasts, written at a place; a sparse one stays sparse.

    ``key`` has an entry for every axis: a number, a slice with bounds whose step is positive, or None for
    the next of ``inputs``, whole numbers without axes.
    """

    operand: Expr
    value: Expr
    inputs: tuple[Expr, ...]
    key: Key

    def __post_init__(self) -> None:
        for index in self.inputs:
            _check_index(index, 0)
        target = self.target
        if broadcast_shapes(self.value.shape, target, name="assignment") != target:
            raise ShapeError(f"a value of shape {self.value.shape} does not fit elements of shape {target}")
        own = self.operand
        self._settle(own.shape, own.dtype, own.sparse, own, self.value, *self.inputs)

    @property
    def target(self) -> Shape:
        """The shape of what is written over."""
        return tuple(
            len(range(part.start, part.stop, part.step)) for part in self.key if isinstance(part, slice)
        )


@dataclass(frozen=True, eq=False, repr=False)
class PutEach(Expr):
    """A dense array with elements, or rows of its first axis, written at the places that ``index`` lists.

    ``value`` broadcasts to one element, or row, for each of them. Of equal places the last one stays.
    """

    operand: Expr
    index: Expr
    value: Expr

    def __post_init__(self) -> None:
        _check_index(self.index, 1)
        target = self.target
        if broadcast_shapes(self.value.shape, target, name="assignment") != target:
            raise ShapeError(f"a value of shape {self.value.shape} does not fit elements of shape {target}")
        self._settle(self.operand.shape, self.operand.dtype, False, self.operand, self.index, self.value)

    @property
    def target(self) -> Shape:
        """The shape of what is written over."""
        return (*self.index.shape, *self.operand.shape[1:])


@dataclass(frozen=True, eq=False, repr=False)
class Gather(Expr):
    """Elements of a dense array, or rows of its first axis, at the places that ``index`` lists."""

    operand: Expr
    index: Expr

    def __post_init__(self) -> None:
        _check_index(self.index, 1)
        shape = (*self.index.shape, *self.operand.shape[1:])
        self._settle(shape, self.operand.dtype, False, self.operand, self.index)


@dataclass(frozen=True, eq=False, repr=False)
class Scatter(Expr):
    """Values, or rows of values, of the same label combined by a monoid: ``length`` of them, dense."""

    values: Expr
    labels: Expr
    length: int
    monoid: str

    def __post_init__(self) -> None:
        if (
            self.labels.ndim != 1
            or self.values.ndim not in (1, 2)
            or self.values.shape[:1] != self.labels.shape
        ):
            raise ShapeError(
                f"labels of shape {self.labels.shape} for values of shape {self.values.shape}: give one a "
                "value, or one a row of a matrix"
            )
        if self.values.sparse or self.labels.sparse:
            raise UnsupportedError(
                "values and labels of scatter_reduce are dense; combine the rows of a sparse matrix by a "
                "product with a sparse matrix that has a one for each row in the column of its label"
            )
        _check_index(self.labels, 1)
        dtype = reduced_dtype(MONOIDS[self.monoid], self.values.dtype)
        shape = (self.length, *self.values.shape[1:])
        self._settle(shape, dtype, False, self.values, self.labels)


@dataclass(frozen=True, eq=False, repr=False)
class Draw(Expr):
    """Random numbers that differ with whole numbers without axes, such as those of iterations."""

    is_source: ClassVar[bool] = True
    creation: Random
    inputs: tuple[Expr, ...]

    def __post_init__(self) -> None:
        for number in self.inputs:
            _check_index(number, 0)
        self._settle(self.creation.shape, self.creation.dtype, False, *self.inputs)


@dataclass(frozen=True, eq=False, repr=False)
class Replicated(Expr):
    """The results of a person's function on whole arrays, packed one after the other as bytes."""

    inputs: tuple[Expr, ...]
    function: Function
    outputs: tuple[Output, ...]

    def __post_init__(self) -> None:
        self._settle((packed_bytes(self.outputs),), np.dtype(np.uint8), False, *self.inputs)


@dataclass(frozen=True, eq=False, repr=False)
class Part(Expr):
    """One of the results of a person's function."""

    call: Expr
    place: int

    def __post_init__(self) -> None:
        assert isinstance(self.call, Replicated), "only such a call has parts"
        shape, dtype = self.call.outputs[self.place]
        self._settle(shape, dtype, False, self.call)


def _check_index(index: Expr, ndim: int) -> None:
    if index.dtype.kind not in "iu":
        raise IndexingError(f"an index of dtype {index.dtype}: give whole numbers, or convert with astype")
    if index.ndim != ndim:
        raise DTypeError(f"an index of shape {index.shape} where one of {ndim} axes belongs")

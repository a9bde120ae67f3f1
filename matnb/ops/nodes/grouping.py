"""Nodes that tell keys apart part by part: codes, what has them, and values combined by them.

The parts are those of one axis that ``before`` cuts. The distinct keys of a part are in ascending order and
stand side by side with those of the other parts; ``after`` says where those of each part end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from matnb.blocks.kernels.access import reduced_dtype
from matnb.blocks.kernels.reductions import accumulator_dtype
from matnb.blocks.semiring import MONOIDS
from matnb.errors import DTypeError, ShapeError
from matnb.expr.nodes import Expr

Cuts = tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Codes(Expr):
    """Of each key its place among the distinct keys of its part; NaN is one key, the last."""

    plain: ClassVar[bool] = True
    keys: Expr
    before: Cuts

    def __post_init__(self) -> None:
        if self.keys.ndim != 1 or self.keys.sparse:
            raise ShapeError(f"keys of shape {self.keys.shape}: give one axis, dense")
        if self.keys.dtype.kind not in "biuf" or self.keys.dtype.itemsize > 8:
            raise DTypeError(f"keys of dtype {self.keys.dtype}: give real numbers of up to double precision")
        _check(self.keys, self.before)
        self._settle(self.keys.shape, np.dtype(np.int32), False, self.keys)


@dataclass(frozen=True, eq=False, repr=False)
class NumCodes(Expr):
    """How many distinct keys each part has."""

    plain: ClassVar[bool] = True
    codes: Expr
    before: Cuts

    def __post_init__(self) -> None:
        _check(self.codes, self.before)
        self._settle((len(self.before) - 1,), np.dtype(np.int64), False, self.codes)


@dataclass(frozen=True, eq=False, repr=False)
class PartKeys(Expr):
    """The distinct keys of each part."""

    plain: ClassVar[bool] = True
    keys: Expr
    codes: Expr
    before: Cuts
    after: Cuts

    def __post_init__(self) -> None:
        _check(self.codes, self.before)
        self._settle((self.after[-1],), self.keys.dtype, False, self.keys, self.codes)


@dataclass(frozen=True, eq=False, repr=False)
class Combined(Expr):
    """The values, or rows, of each distinct key of a part combined, in the dtype they are summed in.

    With "count" instead of a monoid, how many there are.
    """

    plain: ClassVar[bool] = True
    values: Expr
    codes: Expr
    monoid: str
    before: Cuts
    after: Cuts

    def __post_init__(self) -> None:
        _check(self.codes, self.before)
        if self.values.shape[:1] != self.codes.shape or self.values.ndim > 2 or self.values.sparse:
            raise ShapeError(
                f"values of shape {self.values.shape} for {self.codes.size} keys: give one value or row a key"
            )
        if self.monoid == "count":
            self._settle((self.after[-1],), np.dtype(np.int64), False, self.values, self.codes)
            return
        dtype = reduced_dtype(MONOIDS[self.monoid], self.values.dtype)
        wide = accumulator_dtype("sum", dtype) if self.monoid == "plus" else dtype
        self._settle((self.after[-1], *self.values.shape[1:]), wide, False, self.values, self.codes)


@dataclass(frozen=True, eq=False, repr=False)
class Picked(Expr):
    """For each key the element, or row, that stands for it among those for distinct keys of its part."""

    plain: ClassVar[bool] = True
    elements: Expr
    codes: Expr
    before: Cuts
    after: Cuts

    def __post_init__(self) -> None:
        _check(self.codes, self.before)
        _check(self.elements, self.after)
        shape = (*self.codes.shape, *self.elements.shape[1:])
        self._settle(shape, self.elements.dtype, False, self.elements, self.codes)


def _check(node: Expr, cuts: Cuts) -> None:
    if cuts[-1] != node.shape[0]:
        raise ShapeError(f"parts {cuts} of an array of shape {node.shape}")

"""Nodes that count values: between edges, or by label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matnb.errors import DTypeError, IndexingError, ShapeError
from matnb.expr.nodes import Expr


@dataclass(frozen=True, eq=False, repr=False)
class Extent(Expr):
    """The least and the greatest element, side by side; NaN where one is NaN."""

    operand: Expr

    def __post_init__(self) -> None:
        if not self.operand.size:
            raise ShapeError(f"the least of an array of shape {self.operand.shape}, which has no element")
        self._settle((2,), self.operand.dtype, False, self.operand)


@dataclass(frozen=True, eq=False, repr=False)
class Edges(Expr):
    """The edges of ``count`` equal bins over an extent, as NumPy finds them."""

    extent: Expr
    count: int
    element: np.dtype

    def __post_init__(self) -> None:
        self._settle((self.count + 1,), self.element, False, self.extent)


@dataclass(frozen=True, eq=False, repr=False)
class Binned(Expr):
    """How many places have their values between edges, or the sums of their weights; dense.

    ``inputs`` are an array of values for each axis of the result, all of one shape, then the edges for each,
    then perhaps weights. ``is_equal`` tells of each axis whether its bins are equally wide.
    """

    inputs: tuple[Expr, ...]
    num_axes: int
    is_equal: tuple[bool, ...]
    element: np.dtype

    def __post_init__(self) -> None:
        edges = self.inputs[self.num_axes : 2 * self.num_axes]
        places = {one.shape for one in (*self.values, *self.weights)}
        if len(places) > 1:
            raise ShapeError(f"values and weights of shapes {sorted(places)}: give one weight a value")
        for one in self.values:
            if one.dtype.kind == "c":
                raise DTypeError(
                    f"values of dtype {one.dtype} have no order and lie in no bins: bin their parts"
                )
        self._settle(tuple(one.size - 1 for one in edges), self.element, False, *self.inputs)

    @property
    def values(self) -> tuple[Expr, ...]:
        """The values, an array an axis."""
        return self.inputs[: self.num_axes]

    @property
    def edges(self) -> tuple[Expr, ...]:
        """The edges, for each axis."""
        return self.inputs[self.num_axes : 2 * self.num_axes]

    @property
    def weights(self) -> tuple[Expr, ...]:
        """The weights, if there are any."""
        return self.inputs[2 * self.num_axes :]


@dataclass(frozen=True, eq=False, repr=False)
class Count(Expr):
    """How often each whole number below ``length`` occurs; others are an error."""

    labels: Expr
    length: int

    def __post_init__(self) -> None:
        if self.labels.dtype.kind not in "biu":
            raise IndexingError(
                f"labels of dtype {self.labels.dtype}: give whole numbers, or convert with astype"
            )
        self._settle((self.length,), np.dtype(np.int64), False, self.labels)

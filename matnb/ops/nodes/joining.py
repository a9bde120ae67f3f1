"""Nodes that put arrays together."""

from __future__ import annotations

from dataclasses import dataclass

from matnb.errors import DTypeError, ShapeError
from matnb.expr.nodes import Expr


@dataclass(frozen=True, eq=False, repr=False)
class Concatenate(Expr):
    """Arrays of one dtype one after the other along an axis; sparse where all of them are.

    ``ranges`` are what of that axis is taken of each, from a start to before a stop; all, if none are given.
    """

    inputs: tuple[Expr, ...]
    axis: int
    ranges: tuple[tuple[int, int], ...] = ()

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
        length = sum(stop - start for start, stop in self.parts)
        shape = (*first.shape[: self.axis], length, *first.shape[self.axis + 1 :])
        self._settle(shape, first.dtype, all(one.sparse for one in self.inputs), *self.inputs)

    @property
    def parts(self) -> tuple[tuple[int, int], ...]:
        """What of the axis is taken of each array."""
        return self.ranges or tuple((0, one.shape[self.axis]) for one in self.inputs)


@dataclass(frozen=True, eq=False, repr=False)
class Pad(Expr):
    """An array with a few more elements around it: its edges repeated, or else constants.

    ``widths`` and ``constants`` are for each axis those before and behind; the constants are elements' bytes.
    """

    operand: Expr
    widths: tuple[tuple[int, int], ...]
    constants: tuple[tuple[bytes, bytes], ...] = ()

    def __post_init__(self) -> None:
        given = self.operand
        shape = tuple(
            before + one + after for one, (before, after) in zip(given.shape, self.widths, strict=True)
        )
        zeros = bool(self.constants) and not any(any(one) for pair in self.constants for one in pair)
        self._settle(shape, given.dtype, given.sparse and zeros, given)


def _without(node: Expr, axis: int) -> tuple[int, ...]:
    return (*node.shape[:axis], *node.shape[axis + 1 :])

"""Nodes of products whose axes have names, and of Kronecker's."""

from __future__ import annotations

from dataclasses import dataclass

from matnb.errors import DTypeError, ShapeError
from matnb.expr.nodes import Expr


@dataclass(frozen=True, eq=False, repr=False)
class Contract(Expr):
    """A sum of products of elements, as ``numpy.einsum`` writes it, of arrays of one dtype; dense.

    ``names`` has a number for each axis of each array, ``output`` those of the result. What the first array
    is cut by cuts the work, and it is multiplied with the others in their order. Of several arrays, none is
    sparse or has a name twice; a single one may be a sparse matrix whose axes have one name.
    """

    inputs: tuple[Expr, ...]
    names: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]

    def __post_init__(self) -> None:
        first = self.inputs[0]
        if any(one.dtype != first.dtype for one in self.inputs):
            raise DTypeError("einsum: arrays of several dtypes; convert them with astype first")
        lengths = self.lengths
        for one, own in zip(self.inputs, self.names, strict=True):
            if one.shape != tuple(lengths[name] for name in own):
                raise ShapeError(f"einsum: axes {own} of shape {one.shape} do not fit the others")
        self._settle(tuple(lengths[name] for name in self.output), first.dtype, False, *self.inputs)

    @property
    def lengths(self) -> dict[int, int]:
        """The length of each name."""
        return {
            name: length
            for one, own in zip(self.inputs, self.names, strict=True)
            for name, length in zip(own, one.shape, strict=True)
        }


@dataclass(frozen=True, eq=False, repr=False)
class Kron(Expr):
    """The Kronecker product of arrays of one dtype and as many axes; sparse where one of them is."""

    left: Expr
    right: Expr

    def __post_init__(self) -> None:
        if self.left.ndim != self.right.ndim or self.left.dtype != self.right.dtype:
            raise ShapeError(f"kron: {self.left!r} and {self.right!r} are not of as many axes and one dtype")
        shape = tuple(a * b for a, b in zip(self.left.shape, self.right.shape, strict=True))
        self._settle(shape, self.left.dtype, self.left.sparse or self.right.sparse, self.left, self.right)

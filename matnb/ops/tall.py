"""QR decompositions of tall matrices, slab of rows by slab: triangles, and the bases that belong to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from matnb.blocks.grid import Grid
from matnb.blocks.kernels.rows.slabs import basis_of_slab, triangle_of_slab
from matnb.blocks.layout import Layout
from matnb.errors import ShapeError
from matnb.expr.nodes import Expr, Shape
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.kinds import SOLVE
from matnb.program.operators import Run
from matnb.program.plan import Workers
from matnb.program.regions import rows_region
from matnb.program.writer import PlanWriter

# Of a slab: few enough for plans and for what reads the result, and enough for every thread. It is at least
# three times as high as wide, so that triangles are a third of a matrix, or less.
_SLAB_BYTES = 8 * 1024 * 1024
_MOST_SLABS = 1024
_LEAST_HEIGHT = 3


def slab_cuts(shape: Shape, dtype: np.dtype) -> tuple[int, ...]:
    """Return where slabs of a matrix begin and end, as its shape and dtype alone have it.

    Each has as many rows as columns, or more, but where there is one alone.
    """
    length, width = shape
    rows = max(
        1, _LEAST_HEIGHT * width, _SLAB_BYTES // max(1, width * dtype.itemsize), -(-length // _MOST_SLABS)
    )
    cuts = list(range(0, length, rows)) or [0]
    if len(cuts) > 1 and length - cuts[-1] < width:
        cuts.pop()
    return (*cuts, length)


@dataclass(frozen=True, eq=False, repr=False)
class SlabTriangles(Expr):
    """R of the QR decomposition of each slab of rows of matrices side by side, one below the other."""

    inputs: tuple[Expr, ...]
    element: np.dtype

    def __post_init__(self) -> None:
        if len({one.shape[0] for one in self.inputs}) > 1:
            shapes = " and ".join(str(one.shape) for one in self.inputs)
            raise ShapeError(f"matrices have shapes {shapes}: they must have the same number of rows")
        self.settle(((len(self.cuts) - 1) * self.width, self.width), self.element, False, *self.inputs)

    @property
    def width(self) -> int:
        """How many columns there are in all."""
        return sum(one.shape[1] for one in self.inputs)

    @property
    def cuts(self) -> tuple[int, ...]:
        """Where slabs begin and end."""
        return slab_cuts((self.inputs[0].shape[0], self.width), self.element)

    def _text(self, operands: Sequence[str]) -> str:
        return f"triangles({', '.join(operands)})"


@dataclass(frozen=True, eq=False, repr=False)
class SlabBases(Expr):
    """Q of the QR decomposition of each slab of rows, multiplied with its rows of another matrix.

    That one has a row for each of the triangles, which :class:`SlabTriangles` has.
    """

    matrix: Expr
    after: Expr

    def __post_init__(self) -> None:
        expected = (len(self.cuts) - 1) * self.matrix.shape[1]
        if self.after.shape[0] != expected:
            raise ShapeError(f"a matrix of shape {self.after.shape} behind slabs of {expected} columns")
        self.settle((self.matrix.shape[0], self.after.shape[1]), self.after.dtype, False, *self._given)

    @property
    def _given(self) -> tuple[Expr, Expr]:
        return self.matrix, self.after

    @property
    def cuts(self) -> tuple[int, ...]:
        """Where slabs begin and end."""
        return slab_cuts(self.matrix.shape, self.after.dtype)

    def rows_after(self, place: int) -> tuple[int, int]:
        """Return the rows of the other matrix that belong to a slab."""
        width = self.matrix.shape[1]
        return place * width, (place + 1) * width

    def _text(self, operands: Sequence[str]) -> str:
        return f"bases({operands[0]}) @ {operands[1]}"


@means(SlabTriangles)
def _(node: SlabTriangles, operands: Sequence[Value]) -> Value:
    """Return what NumPy gives for the slabs; signs of its rows may be others than workers find."""
    matrix = np.concatenate([dense(one) for one in operands], axis=1, dtype=node.dtype)
    return np.concatenate([np.linalg.qr(matrix[a:b])[1] for a, b in pairwise(node.cuts)])


@means(SlabBases)
def _(node: SlabBases, operands: Sequence[Value]) -> Value:
    """Return what NumPy gives for the slabs; signs are those of :class:`SlabTriangles`."""
    matrix, after = dense(operands[0]).astype(node.dtype, copy=False), dense(operands[1])
    bases = [np.linalg.qr(matrix[a:b])[0] for a, b in pairwise(node.cuts)]
    return np.concatenate([own @ after[slice(*node.rows_after(n))] for n, own in enumerate(bases)])


# Each slab is decomposed where its first row lies: a second time for its basis, which costs little more than
# to keep one as large as the matrix and to read it again.

_WORKING_DOUBLES = 4  # of a slab: NumPy's copy, LAPACK's columns, the bases of its leaves, their triangles


@lowers(SlabTriangles)
def _(node: SlabTriangles, writer: PlanWriter, workers: Workers) -> None:
    heaviest, width = max(node.inputs, key=writer.bytes_of), node.width
    slabs = list(pairwise(node.cuts))
    owners = tuple(writer.home_of(heaviest, rows_region(heaviest.shape, rows)) for rows in slabs)
    cuts = tuple(width * place for place in range(len(slabs) + 1))
    for block in writer.each_block(node, Layout(Grid((cuts, (0, width))), owners), SOLVE, "qr of slabs"):
        start, stop = slabs[block.number]
        parts = [rows_region(one.shape, (start, stop)) for one in node.inputs]
        values = [
            writer.read(block, one, part, block.owner, alone=True)
            for one, part in zip(node.inputs, parts, strict=True)
        ]
        block.take(_WORKING_DOUBLES * (stop - start) * width * max(8, node.dtype.itemsize))
        block.do(Run(triangle_of_slab, (node.dtype,)), *values)


@lowers(SlabBases)
def _(node: SlabBases, writer: PlanWriter, workers: Workers) -> None:
    matrix, after = node.matrix, node.after
    slabs = list(pairwise(node.cuts))
    owners = tuple(writer.home_of(matrix, rows_region(matrix.shape, rows)) for rows in slabs)
    grid = Grid((node.cuts, (0, node.shape[1])))
    for block in writer.each_block(node, Layout(grid, owners), SOLVE, "qr of slabs"):
        start, stop = slabs[block.number]
        own = writer.read(block, matrix, rows_region(matrix.shape, (start, stop)), block.owner, alone=True)
        part = rows_region(after.shape, node.rows_after(block.number))
        block.take(_WORKING_DOUBLES * (stop - start) * matrix.shape[1] * max(8, node.dtype.itemsize))
        block.do(Run(basis_of_slab, (node.dtype,)), own, writer.read(block, after, part, block.owner))

"""Diagonals: taken from arrays, made to matrices, and what is above or below them dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from matnb.blocks.formats import SPARSE_DTYPES
from matnb.blocks.grid import Grid, Region, region_shape
from matnb.blocks.kernels.shaping import diagonals as kernels
from matnb.blocks.layout import Layout
from matnb.errors import ShapeError
from matnb.expr.nodes import Expr
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.kinds import JOINING, Kind
from matnb.program.operators import Join, Run
from matnb.program.place import default_layout
from matnb.program.plan import Workers
from matnb.program.writer import PlanWriter

_DIAGONAL = Kind("diagonal", shown=JOINING)
_TRIANGLE = Kind("triangle", shown=JOINING)


@dataclass(frozen=True, eq=False, repr=False)
class Diagonal(Expr):
    """The diagonal of two axes, ``offset`` places right of the main one, as the last axis; dense."""

    plain: ClassVar[bool] = True
    operand: Expr
    offset: int
    rows: int
    columns: int

    def __post_init__(self) -> None:
        given = self.operand.shape
        if len(given) < 2 or self.rows == self.columns:
            raise ShapeError(f"a diagonal of an array of shape {given} needs two different axes")
        rest = tuple(one for axis, one in enumerate(given) if axis not in (self.rows, self.columns))
        self.settle((*rest, self.length), self.operand.dtype, False, self.operand)

    @property
    def start(self) -> tuple[int, int]:
        """Row and column of its first element."""
        return max(0, -self.offset), max(0, self.offset)

    @property
    def length(self) -> int:
        """How many elements it has."""
        (row, column), given = self.start, self.operand.shape
        return max(0, min(given[self.rows] - row, given[self.columns] - column))


@dataclass(frozen=True, eq=False, repr=False)
class DiagonalMatrix(Expr):
    """The square matrix with a vector on a diagonal; sparse where its dtype can be."""

    plain: ClassVar[bool] = True
    operand: Expr
    offset: int

    def __post_init__(self) -> None:
        (length,) = self.operand.shape
        side = length + abs(self.offset)
        dtype = self.operand.dtype
        self.settle((side, side), dtype, dtype in SPARSE_DTYPES, self.operand)

    def _entries(self, of: Mapping[Expr, float], row: float) -> float:
        return self.operand.size


@dataclass(frozen=True, eq=False, repr=False)
class Triangle(Expr):
    """Matrices of the last two axes with zeros above a diagonal, or below it where it is ``upper``."""

    plain: ClassVar[bool] = True
    operand: Expr
    offset: int
    upper: bool

    def __post_init__(self) -> None:
        if self.operand.ndim < 2:
            raise ShapeError(f"tril and triu need two axes or more; got shape {self.operand.shape}")
        given = self.operand
        self.settle(given.shape, given.dtype, given.sparse, given)


@means(Diagonal)
def _(node: Diagonal, operands: Sequence[Value]) -> Value:
    """Return the elements of a diagonal."""
    return dense(operands[0]).diagonal(node.offset, node.rows, node.columns)


@means(DiagonalMatrix)
def _(node: DiagonalMatrix, operands: Sequence[Value]) -> Value:
    """Return the matrix of a diagonal, of which a sparse one stores no zeros."""
    values = dense(operands[0])
    if not node.sparse:
        return np.diag(values, node.offset)
    places = np.flatnonzero(values)
    rows, columns = places + max(0, -node.offset), places + max(0, node.offset)
    return sp.csr_array((values[places], (rows, columns)), shape=(node.shape[0], node.shape[1]))


@means(Triangle)
def _(node: Triangle, operands: Sequence[Value]) -> Value:
    """Return what is on one side of a diagonal."""
    (value,) = operands
    if node.sparse:
        return sp.csr_array((sp.triu if node.upper else sp.tril)(value, node.offset))
    return (np.triu if node.upper else np.tril)(dense(value), node.offset)


# Diagonals and triangles: every block gives what it has of them, where it is.

_PLACED_BYTES = 3 * 8  # of a sparse entry: its column, its row and how far they are from each other


@lowers(Diagonal)
def _(node: Diagonal, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of a diagonal, which is cut wherever it goes from a block to another."""
    source = writer.registers[node.operand]
    grid = source.layout.grid
    row, column = node.start
    bends = {cut - row for cut in grid.cuts[node.rows]} | {cut - column for cut in grid.cuts[node.columns]}
    along = (0, *sorted(cut for cut in bends if 0 < cut < node.length), node.length)
    others = [axis for axis in range(node.operand.ndim) if axis not in (node.rows, node.columns)]
    out = Grid((*(grid.cuts[axis] for axis in others), along if node.length else (0, 0)))
    crossed = [
        None if 0 in region_shape(region) else next(grid.overlapping(_crossing(node, others, region)))
        for region in out.regions()
    ]
    owners = (source.layout.owners[grid.number(one)] if one else workers.numbers[0] for one in crossed)
    for block in writer.each_block(node, Layout(out, tuple(owners)), _DIAGONAL):
        index = crossed[block.number]
        if index is None:
            block.do(Join((), region_shape(block.region), node.dtype, False))
            continue
        writer.note_reuse(node.operand)
        bounds, (start, stop) = grid.region(index), block.region[-1]
        offset = node.offset + bounds[node.rows][0] - bounds[node.columns][0]
        run = Run(kernels.diagonal, (offset, node.rows, node.columns, stop - start))
        block.do(run, block.read(source.keys[grid.number(index)]))


def _crossing(node: Diagonal, others: list[int], region: Region) -> Region:
    # The part of the array that a block of its diagonal goes through.
    (row, column), (start, stop) = node.start, region[-1]
    parts = dict(zip(others, region[:-1], strict=True))
    parts[node.rows] = (row + start, row + stop)
    parts[node.columns] = (column + start, column + stop)
    return tuple(parts[axis] for axis in range(node.operand.ndim))


@lowers(DiagonalMatrix)
def _(node: DiagonalMatrix, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of a matrix with a diagonal; a sparse one is cut by rows as the vector is."""
    vector = writer.registers[node.operand]
    length, side = node.operand.shape[0], node.shape[0]
    row, column = max(0, -node.offset), max(0, node.offset)
    if node.sparse and length:
        inner = (cut + row for cut in vector.layout.grid.cuts[0][1:-1])
        grid = Grid(((0, *inner, side), (0, side)))
        layout = Layout(grid, vector.layout.owners)
    else:
        layout = default_layout(node, writer.bytes_of(node), workers)
    for block in writer.each_block(node, layout, _DIAGONAL, "matrix"):
        (top, bottom), (left, right) = block.region
        start = min(max(0, top - row, left - column), length)
        stop = max(start, min(length, bottom - row, right - column))
        shape = region_shape(block.region)
        if start == stop:
            block.do(Join((), shape, node.dtype, node.sparse))
        else:
            place = (start + row - top, start + column - left)
            part = writer.read(block, node.operand, ((start, stop),), block.owner)
            block.take(4 * 8 * (stop - start))  # where they go
            block.do(Run(kernels.diagonal_matrix, (*place, shape, node.sparse)), part)


@lowers(Triangle)
def _(node: Triangle, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of a triangle, cut as the matrix is."""
    source = writer.registers[node.operand]
    writer.note_reuse(node.operand)
    for block in writer.each_block(node, source.layout, _TRIANGLE, "upper" if node.upper else "lower"):
        (top, _), (left, _) = block.region[-2:]
        if node.sparse:
            block.take(_PLACED_BYTES * writer.entries_of(node.operand, block.region))
        run = Run(kernels.triangle, (node.offset + top - left, node.upper))
        block.do(run, block.read(source.keys[block.number]))

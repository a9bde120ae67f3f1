"""Diagonals: taken from arrays, made to matrices, and what is above or below them dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from matnb.blocks.formats import SPARSE_DTYPES
from matnb.blocks.grid import Grid, Region, region_shape
from matnb.blocks.kernels import diagonals as kernels
from matnb.blocks.layout import Layout
from matnb.errors import ShapeError
from matnb.expr.nodes import Expr
from matnb.ops.registry import Value, base_of, dense, lowers, means
from matnb.program.operators import Join, Run
from matnb.program.place import default_layout
from matnb.program.plan import Workers
from matnb.program.writer import PlanWriter, TaskWriter


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
            raise ShapeError(f"a diagonal of shape {given} goes along two different axes")
        rest = tuple(one for axis, one in enumerate(given) if axis not in (self.rows, self.columns))
        self._settle((*rest, self.length), self.operand.dtype, False, self.operand)

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
        self._settle((side, side), dtype, dtype in SPARSE_DTYPES, self.operand)


@dataclass(frozen=True, eq=False, repr=False)
class Triangle(Expr):
    """Matrices of the last two axes with zeros above a diagonal, or below it where it is ``upper``."""

    plain: ClassVar[bool] = True
    operand: Expr
    offset: int
    upper: bool

    def __post_init__(self) -> None:
        if self.operand.ndim < 2:
            raise ShapeError(f"a triangle of shape {self.operand.shape} needs two axes")
        given = self.operand
        self._settle(given.shape, given.dtype, given.sparse, given)


@means(Diagonal)
def _(node: Diagonal, operands: Sequence[Value]) -> Value:
    """Return the elements of a diagonal."""
    return dense(operands[0]).diagonal(node.offset, node.rows, node.columns)


@means(DiagonalMatrix)
def _(node: DiagonalMatrix, operands: Sequence[Value]) -> Value:
    """Return the matrix of a diagonal."""
    made = np.diag(dense(operands[0]), node.offset)
    return sp.csr_array(made) if node.sparse else made


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
    crossed = {cut - row for cut in grid.cuts[node.rows]} | {cut - column for cut in grid.cuts[node.columns]}
    along = (0, *sorted(cut for cut in crossed if 0 < cut < node.length), node.length)
    others = [axis for axis in range(node.operand.ndim) if axis not in (node.rows, node.columns)]
    out = Grid((*(grid.cuts[axis] for axis in others), along if node.length else (0, 0)))
    base = base_of(node, writer)
    keys, owners = [], []
    for number, region in enumerate(out.regions()):
        task = TaskWriter()
        owner = workers.numbers[0]
        if 0 in region_shape(region):
            task.do(Join((), region_shape(region), node.dtype, False))
        else:
            wanted = _crossing(node, others, region)
            (index,) = grid.overlapping(wanted)
            bounds, place = grid.region(index), grid.number(index)
            offset = node.offset + bounds[node.rows][0] - bounds[node.columns][0]
            length = region[-1][1] - region[-1][0]
            writer.note_reuse(node.operand)
            task.do(
                Run(kernels.diagonal, (offset, node.rows, node.columns, length)),
                task.read(source.keys[place]),
            )
            owner = source.layout.owners[place]
        keys.append(
            writer.add(task.task(f"{base}-{number}", owner, "diagonal"), writer.bytes_of(node, region))
        )
        owners.append(owner)
    writer.finish(node, Layout(out, tuple(owners)), keys, "diagonal", "")


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
    base = base_of(node, writer, layout)
    keys = []
    for number, (region, owner) in enumerate(zip(layout.grid.regions(), layout.owners, strict=True)):
        (top, bottom), (left, right) = region
        start = min(max(0, top - row, left - column), length)
        stop = max(start, min(length, bottom - row, right - column))
        task = TaskWriter()
        shape = region_shape(region)
        if start == stop:
            task.do(Join((), shape, node.dtype, node.sparse))
        else:
            place = (start + row - top, start + column - left)
            part = writer.read(task, node.operand, ((start, stop),), owner)
            task.take(4 * 8 * (stop - start))  # where they go
            task.do(Run(kernels.diagonal_matrix, (*place, shape, node.sparse)), part)
        keys.append(
            writer.add(task.task(f"{base}-{number}", owner, "diagonal"), writer.bytes_of(node, region))
        )
    writer.finish(node, layout, keys, "diagonal", "matrix")


@lowers(Triangle)
def _(node: Triangle, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of a triangle, cut as the matrix is."""
    source = writer.registers[node.operand]
    writer.note_reuse(node.operand)
    base = base_of(node, writer)
    layout = source.layout
    keys = []
    for number, (region, owner) in enumerate(zip(layout.grid.regions(), layout.owners, strict=True)):
        (top, _), (left, _) = region[-2:]
        task = TaskWriter()
        if node.sparse:
            task.take(_PLACED_BYTES * writer.entries_of(node.operand, region))
        task.do(Run(kernels.triangle, (node.offset + top - left, node.upper)), task.read(source.keys[number]))
        keys.append(
            writer.add(task.task(f"{base}-{number}", owner, "triangle"), writer.bytes_of(node, region))
        )
    writer.finish(node, layout, keys, "triangle", "upper" if node.upper else "lower")

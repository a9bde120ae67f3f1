"""Rows of a matrix and others: their squared distances, and which of the others are nearest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from matnb.blocks.grid import Grid, Region, all_of, regular_cuts
from matnb.blocks.kernels.rows.row_distances import FEW_ROWS, TILE_ROWS, nearest_rows, squared_distances
from matnb.blocks.kernels.rows.row_tiles import TILE_BYTES
from matnb.blocks.layout import Layout, spread
from matnb.errors import OptionError, ShapeError
from matnb.expr.nodes import Expr
from matnb.ops.lanes import lanes_layout
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.kinds import SEARCH
from matnb.program.operators import Run
from matnb.program.plan import Workers
from matnb.program.regions import region_size, rows_region
from matnb.program.writer import PlanWriter

_MANY = 1 << 20  # distances, from which on threads share them


def _check(inputs: Sequence[Expr], caller: str) -> None:
    rows, others = inputs[:2]
    if rows.ndim != 2 or others.ndim != 2 or rows.shape[1] != others.shape[1]:
        raise ShapeError(
            f"{caller}: rows of shape {others.shape} for a matrix of shape {rows.shape}: "
            "give matrices with the same number of columns"
        )


@dataclass(frozen=True, eq=False, repr=False)
class NearestRows(Expr):
    """The places of the ``count`` nearest of other rows to each row of a matrix, the nearest first.

    Inputs are the matrix and the other rows, which are whole on each worker.
    """

    inputs: tuple[Expr, ...]
    count: int

    def __post_init__(self) -> None:
        _check(self.inputs, "nearest rows")
        rows, others = self.inputs
        if not 0 < self.count <= others.shape[0]:
            raise OptionError(f"nearest rows: {self.count} of {others.shape[0]}; give 1 to that number")
        self.settle((rows.shape[0], self.count), np.dtype(np.int64), False, *self.inputs)

    def _text(self, operands: Sequence[str]) -> str:
        return f"nearest({', '.join(operands)})"


@dataclass(frozen=True, eq=False, repr=False)
class RowDistances(Expr):
    """The squared distances of the rows of a matrix to others, to all or to those at places of its own.

    Inputs are the matrix, the other rows, which are whole on each worker, and perhaps places, as many in each
    row. The others may be sparse where places are given.
    """

    inputs: tuple[Expr, ...]

    def __post_init__(self) -> None:
        _check(self.inputs, "squared distances")
        rows, others, *places = self.inputs
        if places and (places[0].ndim != 2 or places[0].shape[0] != rows.shape[0]):
            raise ShapeError(
                f"squared distances: places of shape {places[0].shape} for a matrix of shape {rows.shape}: "
                "give a row of places for each row"
            )
        assert places or not others.sparse
        width = places[0].shape[1] if places else others.shape[0]
        self.settle((rows.shape[0], width), np.dtype(np.float64), False, *self.inputs)

    def _text(self, operands: Sequence[str]) -> str:
        return f"squared distances({', '.join(operands)})"


def _distances(rows: Value, others: Value) -> np.ndarray:
    differences = dense(rows).astype(np.float64)[:, None] - dense(others).astype(np.float64)
    found: np.ndarray = (differences**2).sum(axis=2)
    return found


@means(NearestRows)
def _(node: NearestRows, operands: Sequence[Value]) -> Value:
    """Return the places of the least sums of squared differences."""
    return np.argsort(_distances(*operands), axis=1, kind="stable")[:, : node.count]


@means(RowDistances)
def _(node: RowDistances, operands: Sequence[Value]) -> Value:
    """Return sums of squared differences."""
    found = _distances(*operands[:2])
    return np.take_along_axis(found, dense(operands[2]), axis=1) if len(operands) > 2 else found


@lowers(NearestRows, RowDistances)
def _(node: NearestRows | RowDistances, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of rows; each worker has all others."""
    matrix, others, *places = node.inputs
    cuts, owners = _rows_of(matrix, others, writer, workers)
    count = node.count if isinstance(node, NearestRows) else 0
    layout = Layout(Grid((cuts, (0, node.shape[1]))), owners)
    for block in writer.each_block(node, layout, SEARCH, f"{others.shape[0]} rows"):
        region = rows_region(matrix.shape, block.region[0])
        values = [writer.read(block, matrix, region, block.owner)]
        values.append(block.read(writer.block(others, all_of(others.shape), block.owner)))
        values += [
            writer.read(block, one, rows_region(one.shape, block.region[0]), block.owner) for one in places
        ]
        block.take(8 * _numbers_beside(node, region, writer))
        block.do(Run(nearest_rows, (count,)) if count else Run(squared_distances), *values)


def _rows_of(
    matrix: Expr, others: Expr, writer: PlanWriter, workers: Workers
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    # As those of the matrix; where these are one block whose distances are many, a block a thread.
    source = lanes_layout(matrix, (1,), writer, workers)
    cuts, num_rows = source.grid.cuts[0], matrix.shape[0]
    if len(cuts) > 2 or num_rows < 2 or num_rows * others.shape[0] < _MANY:
        return cuts, source.owners
    cuts = regular_cuts(num_rows, min(num_rows, workers.slots))
    return cuts, spread(len(cuts) - 1, workers.numbers)


def _numbers_beside(node: NearestRows | RowDistances, region: Region, writer: PlanWriter) -> int:
    # The result twice, entries of sparse rows in float64, and what is made of the others.
    matrix, others, *places = node.inputs
    num_rows, p = region_size(region) // max(1, matrix.shape[1]), matrix.shape[1]
    found = 2 * num_rows * node.shape[1] + (writer.entries_of(matrix, region) if matrix.sparse else 0)
    if others.sparse:
        found += 0 if matrix.sparse else 2 * region_size(region)
        entries = writer.entries_of(others, all_of(others.shape))
        return found + (2 * entries + 2 * others.shape[0] + p if not places else entries)
    copied = 0 if others.dtype == np.float64 else others.size
    if places:
        return found + p + copied * (others.dtype.kind != "f")
    if not matrix.sparse and isinstance(node, NearestRows) and others.shape[0] > FEW_ROWS:
        return found + num_rows * p + 2 * TILE_ROWS * p + TILE_BYTES // 8
    return found + others.size + copied + 3 * others.shape[0] + p

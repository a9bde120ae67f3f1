"""Rows of a matrix and others: their squared distances, and which of the others are nearest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from matnb.blocks.grid import Grid, all_of
from matnb.blocks.kernels.row_distances import nearest_rows, squared_distances
from matnb.blocks.layout import Layout
from matnb.errors import OptionError, ShapeError
from matnb.expr.nodes import Expr
from matnb.ops.lanes import lanes_layout
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.operators import Run
from matnb.program.plan import Workers
from matnb.program.regions import rows_region
from matnb.program.writer import PlanWriter


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

    Inputs are the matrix, and the other rows, which are dense and whole on each worker; perhaps places of
    candidates, as many for each row, and a number for each below whose root no other row is near. These
    make it faster, and change nothing.
    """

    inputs: tuple[Expr, ...]
    count: int

    def __post_init__(self) -> None:
        _check(self.inputs, "nearest rows")
        rows, others, *candidates = self.inputs
        most = candidates[0].shape[1] if candidates else others.shape[0]
        if not 0 < self.count <= most:
            raise OptionError(f"nearest rows: {self.count} of {most}; give 1 to that number")
        self._settle((rows.shape[0], self.count), np.dtype(np.int64), False, *self.inputs)

    def _text(self, operands: Sequence[str]) -> str:
        return f"nearest({', '.join(operands)})"


@dataclass(frozen=True, eq=False, repr=False)
class RowDistances(Expr):
    """The squared distances of the rows of a matrix to others, to all or to those at places of its own.

    Inputs are the matrix, the other rows, which are dense and whole on each worker, and perhaps places, as
    many in each row.
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
        width = places[0].shape[1] if places else others.shape[0]
        self._settle((rows.shape[0], width), np.dtype(np.float64), False, *self.inputs)

    def _text(self, operands: Sequence[str]) -> str:
        return f"squared distances({', '.join(operands)})"


def _distances(rows: Value, others: Value) -> np.ndarray:
    given = rows.toarray() if sp.issparse(rows) else dense(rows)
    differences = given.astype(np.float64)[:, None] - dense(others).astype(np.float64)
    found: np.ndarray = (differences**2).sum(axis=2)
    return found


@means(NearestRows)
def _(node: NearestRows, operands: Sequence[Value]) -> Value:
    """Return the places of the least sums of squared differences."""
    return np.argsort(_distances(*operands[:2]), axis=1, kind="stable")[:, : node.count]


@means(RowDistances)
def _(node: RowDistances, operands: Sequence[Value]) -> Value:
    """Return sums of squared differences."""
    found = _distances(*operands[:2])
    return np.take_along_axis(found, dense(operands[2]), axis=1) if len(operands) > 2 else found


@lowers(NearestRows, RowDistances)
def _(node: NearestRows | RowDistances, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of rows; each worker has all others."""
    matrix, others, *small = node.inputs
    source = lanes_layout(matrix, (1,), writer, workers)
    layout = Layout(Grid((source.grid.cuts[0], (0, node.shape[1]))), source.owners)
    count = node.count if isinstance(node, NearestRows) else 0
    for block in writer.each_block(node, layout, "search", f"{others.shape[0]} rows"):
        rows = block.region[0]
        values = [writer.read(block, matrix, rows_region(matrix.shape, rows), block.owner)]
        values.append(block.read(writer.block(others, all_of(others.shape), block.owner)))
        values += [writer.read(block, one, rows_region(one.shape, rows), block.owner) for one in small]
        # The others twice, a copy in float64 of the rows, and four arrays of places and distances.
        taken = 2 * others.size + 3 * others.shape[0] + others.shape[1]
        taken += writer.entries_of(matrix, rows_region(matrix.shape, rows))
        width = max([node.shape[1], *(one.size // max(1, one.shape[0]) for one in small)])
        block.take(8 * (taken + 4 * (rows[1] - rows[0]) * width))
        block.do(Run(nearest_rows, (count,)) if count else Run(squared_distances), *values)

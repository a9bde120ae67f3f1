"""Sparse arrays from values and the row and column of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from matnb.blocks.formats import SPARSE_DTYPES
from matnb.blocks.kernels.shaping.coordinates import DUPLICATES, entries_within, merge_entries
from matnb.errors import DTypeError, IndexingError, OptionError, ShapeError
from matnb.expr.nodes import Expr
from matnb.ops.reference import Value, dense, from_flat_positions
from matnb.ops.registry import lowers, means
from matnb.program.kinds import PART, SCATTER
from matnb.program.operators import Run
from matnb.program.place import default_layout
from matnb.program.plan import Workers
from matnb.program.writer import PlanWriter, TaskWriter


@dataclass(frozen=True, eq=False, repr=False)
class FromCoordinates(Expr):
    """A sparse array of entries, given by values, rows and columns; ``duplicates`` says what several give."""

    plain: ClassVar[bool] = True
    values: Expr
    rows: Expr
    columns: Expr
    lengths: tuple[int, int]
    duplicates: str

    def __post_init__(self) -> None:
        shapes = [one.shape for one in (self.values, self.rows, self.columns)]
        if len(set(shapes)) != 1 or len(shapes[0]) != 1:
            raise ShapeError(
                f"values, rows and columns of shapes {shapes}: give 1-d arrays of the same length"
            )
        for name, one in (("rows", self.rows), ("columns", self.columns)):
            if one.dtype.kind not in "iu":
                raise DTypeError(f"{name} has dtype {one.dtype}: give integers")
        if self.values.dtype not in SPARSE_DTYPES:
            known = ", ".join(map(str, SPARSE_DTYPES))
            raise DTypeError(f"a sparse array cannot have dtype {self.values.dtype}; supported: {known}")
        if self.duplicates not in DUPLICATES:
            raise OptionError(f"duplicates={self.duplicates!r}: choose {', '.join(map(repr, DUPLICATES))}")
        if self.duplicates in ("min", "max") and self.values.dtype.kind == "c":
            raise DTypeError(f"duplicates={self.duplicates!r}: complex numbers have no order")
        self.settle(self.lengths, self.values.dtype, True, self.values, self.rows, self.columns)

    def _entries(self, of: Mapping[Expr, float], row: float) -> float:
        return self.values.size

    def _text(self, operands: Sequence[str]) -> str:
        values, rows, columns = operands
        rule = "" if self.duplicates == "sum" else f", duplicates={self.duplicates}"
        return f"coo_array(({values}, ({rows}, {columns})){rule})"


@means(FromCoordinates)
def _(node: FromCoordinates, operands: Sequence[Value]) -> Value:
    """Return the array, with entries at one place combined in their order."""
    values, rows, columns = (dense(one) for one in operands)
    for name, places, length in (("row", rows, node.shape[0]), ("column", columns, node.shape[1])):
        outside = np.flatnonzero((places < 0) | (places >= length))
        if len(outside):
            raise IndexingError(
                f"{name} {places[outside[0]]} of entry {outside[0]:,} is outside {node.shape}"
            )
    flat = rows.astype(np.int64) * max(1, node.shape[1]) + columns.astype(np.int64)
    order = np.argsort(flat, kind="stable")
    flat, values = flat[order], values[order]
    is_first = np.append(True, flat[1:] != flat[:-1])[: len(flat)]
    firsts = np.flatnonzero(is_first)
    match node.duplicates:
        case "error" if len(firsts) < len(flat):
            place = divmod(int(flat[np.flatnonzero(~is_first)[0]]), node.shape[1])
            raise OptionError(f"coordinates {place} occur more than once, and duplicates='error'")
        case "last":
            data = values[np.append(firsts[1:], len(flat))[: len(firsts)] - 1]
        case "sum" | "min" | "max" as rule:
            combine = {"sum": np.add, "min": np.minimum, "max": np.maximum}[rule]
            is_wide = rule == "sum" and node.dtype.kind in "fc"
            wide = values.astype(np.result_type(node.dtype, np.float64)) if is_wide else values
            total = wide[firsts].copy()
            combine.at(total, (np.cumsum(is_first) - 1)[~is_first], wide[~is_first])
            data = total.astype(node.dtype)
        case _:
            data = values[firsts]
    return from_flat_positions(flat[firsts], data, node.shape)


_PICKED_BYTES, _MERGED_BYTES = 16, 48  # an entry: its place; sorted by rows, then by columns


# Tasks: the entries that a worker has go by rows to the block that each belongs to.


@lowers(FromCoordinates)
def _(node: FromCoordinates, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that pick what each block gets of each part of the entries, and put that together."""
    layout = default_layout(node, writer.bytes_of(node), workers)
    (cuts,) = writer.registers[node.values].layout.grid.cuts
    num_blocks = max(1, layout.grid.num_blocks)
    for block in writer.each_block(node, layout, SCATTER, "by coordinates"):
        parts = []
        for start, stop in pairwise(cuts):
            region = ((start, stop),)
            owner = writer.home_of(node.values, region)
            task = TaskWriter()
            read = [writer.read(task, one, region, owner) for one in node.operands]
            task.do(Run(entries_within, (block.region, node.shape, start)), *read)
            task.take(_PICKED_BYTES * (stop - start))
            size = (node.dtype.itemsize + 8) * (stop - start) // num_blocks
            parts.append(writer.part_of(block, task, owner, PART, size))
        offset = (block.region[0][0], block.region[1][0])
        block.do(Run(merge_entries, (node.duplicates, offset, node.dtype)), *map(block.read, parts))
        block.take(block.num_bytes + _MERGED_BYTES * node.values.size // num_blocks)

"""What booleans pick, whose length was asked for: counts, elements, places, values; large entries alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from matnb.blocks.grid import Grid, region_shape
from matnb.blocks.kernels.calls import Function, truths_of
from matnb.blocks.kernels.shaping.selecting import (
    compress,
    count_true,
    expand,
    prune,
    select,
    select_by,
    stored_entries,
    true_places,
)
from matnb.blocks.layout import Layout
from matnb.errors import DTypeError, ShapeError
from matnb.expr.nodes import Expr, Shape, entries_of_part
from matnb.ops.reference import Value, dense, flat_positions, from_flat_positions, positions
from matnb.ops.registry import lowers, means
from matnb.program.kinds import COUNT, PICKING, PUT, Kind
from matnb.program.operators import Join, Run
from matnb.program.plan import Workers
from matnb.program.regions import rows_region
from matnb.program.writer import PlanWriter

_PLACES = Kind("places", shown=PICKING)
_SELECT = Kind("select", shown=PICKING)

Cuts = tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class CountTrue(Expr):
    """How many elements are not zero in each part of the first axis, which ``cuts`` bound."""

    plain: ClassVar[bool] = True
    mask: Expr
    cuts: Cuts

    def __post_init__(self) -> None:
        if not self.mask.shape or self.cuts[-1] != self.mask.shape[0]:
            raise ShapeError(f"parts {self.cuts} of an array of shape {self.mask.shape}")
        self.settle((len(self.cuts) - 1,), np.dtype(np.int64), False, self.mask)


@dataclass(frozen=True, eq=False, repr=False)
class Compress(Expr):
    """The elements where booleans for the first axes are true, one after the other along one axis.

    ``before`` cuts the first axis of the array, and ``after`` says where what is picked from each part ends
    in the result. Rows of a sparse array stay sparse; single elements of one are dense.
    """

    plain: ClassVar[bool] = True
    operand: Expr
    mask: Expr
    before: Cuts
    after: Cuts

    def __post_init__(self) -> None:
        _check(self.operand, self.mask, self.before, self.after)
        shape = (self.after[-1], *self.operand.shape[self.mask.ndim :])
        sparse = self.operand.sparse and self.mask.ndim == 1
        self.settle(shape, self.operand.dtype, sparse, self.operand, self.mask)

    def _entries(self, of: Mapping[Expr, float], row: float) -> float:
        return entries_of_part(self, self.operand, of)

    def _text(self, operands: Sequence[str]) -> str:
        return f"{operands[0]}[{operands[1]}]"


@dataclass(frozen=True, eq=False, repr=False)
class Expand(Expr):
    """An array with values, one for each element or row where booleans for the first axes are true.

    ``before`` and ``after`` are those of Compress.
    """

    plain: ClassVar[bool] = True
    operand: Expr
    mask: Expr
    value: Expr
    before: Cuts
    after: Cuts

    def __post_init__(self) -> None:
        _check(self.operand, self.mask, self.before, self.after)
        if self.value.shape != self.target:
            raise ShapeError(
                f"values of shape {self.value.shape} cannot be assigned to elements of shape {self.target}"
            )
        if self.value.dtype != self.operand.dtype:
            raise DTypeError(
                f"values of dtype {self.value.dtype} cannot be assigned to elements of dtype "
                f"{self.operand.dtype}"
            )
        own = self.operand
        self.settle(own.shape, own.dtype, own.sparse, own, self.mask, self.value)

    @property
    def target(self) -> Shape:
        """The shape of what is written over."""
        return (self.after[-1], *self.operand.shape[self.mask.ndim :])

    def _entries(self, of: Mapping[Expr, float], row: float) -> float:
        return of[self.operand] + of[self.value]


@dataclass(frozen=True, eq=False, repr=False)
class TruePlaces(Expr):
    """Where elements are not zero, in row order: their places on one axis.

    ``before`` cuts the first axis of the array, and ``after`` says where those of each part end.
    """

    plain: ClassVar[bool] = True
    mask: Expr
    axis: int
    before: Cuts
    after: Cuts

    def __post_init__(self) -> None:
        self.settle((self.after[-1],), np.dtype(np.int64), False, self.mask)


@dataclass(frozen=True, eq=False, repr=False)
class StoredEntries(Expr):
    """What a sparse array stores, row by row: the "values" of its entries, or their "columns".

    ``before`` cuts its rows, and ``after`` says where the entries of each part end.
    """

    plain: ClassVar[bool] = True
    operand: Expr
    wanted: str
    before: Cuts
    after: Cuts

    def __post_init__(self) -> None:
        assert self.operand.sparse, "what is stored of it is asked for"
        dtype = self.operand.dtype if self.wanted == "values" else np.dtype(np.int64)
        self.settle((self.after[-1],), dtype, False, self.operand)


@dataclass(frozen=True, eq=False, repr=False)
class Prune(Expr):
    """A sparse array without the entries that are not larger than a threshold; NaN stay.

    Of 0 it is without stored zeros.
    """

    plain: ClassVar[bool] = True
    operand: Expr
    threshold: float

    def __post_init__(self) -> None:
        if not self.operand.sparse:
            raise ShapeError("stored entries can be dropped from a sparse array only")
        self.settle(self.operand.shape, self.operand.dtype, True, self.operand)


@dataclass(frozen=True, eq=False, repr=False)
class Select(Expr):
    """A sparse array without the entries where booleans of its shape are not true."""

    plain: ClassVar[bool] = True
    operand: Expr
    mask: Expr

    def __post_init__(self) -> None:
        own = self.operand
        if not own.sparse or self.mask.shape != own.shape or self.mask.dtype.kind != "b":
            raise ShapeError(
                f"booleans of shape {self.mask.shape} {self.mask.dtype} for entries of shape {own.shape}"
            )
        self.settle(own.shape, own.dtype, True, own, self.mask)

    def _entries(self, of: Mapping[Expr, float], row: float) -> float:
        return of[self.operand]


@dataclass(frozen=True, eq=False, repr=False)
class SelectBy(Expr):
    """A sparse array without the entries where a user's function of row, column and value is not true."""

    plain: ClassVar[bool] = True
    operand: Expr
    function: Function

    def __post_init__(self) -> None:
        if not self.operand.sparse:
            raise ShapeError("stored entries can be selected from a sparse array only")
        self.settle(self.operand.shape, self.operand.dtype, True, self.operand)

    def _text(self, operands: Sequence[str]) -> str:
        return f"select({operands[0]}, {self.function.name})"


def _check(operand: Expr, mask: Expr, before: Cuts, after: Cuts) -> None:
    if mask.dtype.kind != "b" or not mask.shape or mask.shape != operand.shape[: mask.ndim]:
        raise ShapeError(
            f"booleans of shape {mask.shape} {mask.dtype} for an array of shape {operand.shape}: give some "
            "for its first axes"
        )
    if before[-1] != mask.shape[0] or len(before) != len(after):
        raise ShapeError(f"parts {before} and {after} of an axis of length {mask.shape[0]}")


@means(CountTrue)
def _(node: CountTrue, operands: Sequence[Value]) -> Value:
    """Return how many there are in each part."""
    mask = dense(operands[0])
    return np.array([np.count_nonzero(mask[start:stop]) for start, stop in pairwise(node.cuts)], np.int64)


@means(Compress)
def _(node: Compress, operands: Sequence[Value]) -> Value:
    """Return what is picked."""
    values, mask = operands[0], dense(operands[1])
    if node.sparse:
        return sp.csr_array(values)[np.flatnonzero(mask)]
    return np.asarray(dense(values)[mask])


@means(Expand)
def _(node: Expand, operands: Sequence[Value]) -> Value:
    """Return the array with the values written."""
    values = dense(operands[0]).copy()
    values[dense(operands[1])] = dense(operands[2])
    return sp.csr_array(values) if node.sparse else values


@means(TruePlaces)
def _(node: TruePlaces, operands: Sequence[Value]) -> Value:
    """Return the places on one axis."""
    return np.asarray(np.nonzero(dense(operands[0]))[node.axis], np.int64)


@means(StoredEntries)
def _(node: StoredEntries, operands: Sequence[Value]) -> Value:
    """Return the values or columns of stored entries."""
    own = sp.csr_array(operands[0])
    if node.wanted == "values":
        return np.asarray(own.data)
    return positions(own)[1].astype(np.int64)


@means(Prune)
def _(node: Prune, operands: Sequence[Value]) -> Value:
    """Return the array without small entries."""
    kept = sp.coo_array(operands[0])
    # as NumPy compares: of whole numbers the least has no absolute value
    sizes = np.abs(kept.data if kept.dtype.kind in "fc" else kept.data.astype(np.float64))
    is_large = ~(sizes <= node.threshold)
    places = (kept.row[is_large], kept.col[is_large])
    rows, columns = node.shape
    return sp.csr_array((kept.data[is_large], places), shape=(rows, columns))


@means(Select)
def _(node: Select, operands: Sequence[Value]) -> Value:
    """Return the array with the entries where the booleans are true."""
    own = sp.csr_array(operands[0])
    places = flat_positions(own)
    kept = dense(operands[1]).reshape(-1)[places]
    return from_flat_positions(places[kept], own.data[kept], node.shape)


@means(SelectBy)
def _(node: SelectBy, operands: Sequence[Value]) -> Value:
    """Return the array with the entries of which the function says so."""
    own = sp.csr_array(operands[0])
    places = flat_positions(own)
    rows, columns = positions(own)
    kept = truths_of(node.function, (rows.astype(np.int64), columns.astype(np.int64), own.data))
    return from_flat_positions(places[kept], own.data[kept], node.shape)


# What booleans pick: each part of the array gives a part of the result, and nothing moves.

Range = tuple[int, int]
_PLACE_BYTES = 8
_SPARSE_PLACES = 5  # lists of places for the entries of a sparse block


@lowers(CountTrue)
def _(node: CountTrue, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of a count for each part."""
    regions = [rows_region(node.mask.shape, rows) for rows in pairwise(node.cuts)]
    owners = tuple(writer.home_of(node.mask, region) for region in regions)
    layout = Layout(Grid((tuple(range(len(node.cuts))),)), owners)
    for block in writer.each_block(node, layout, COUNT, "what is true"):
        mask = writer.read(block, node.mask, regions[block.number], block.owner, alone=True)
        block.do(Run(count_true), mask)


@lowers(Compress)
def _(node: Compress, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that pick from each part of the array; the axes beside stay cut as they are."""
    masked = node.mask.ndim
    beside = writer.registers[node.operand].layout.grid.cuts[masked:]
    parts = _parts(node.before, node.after)
    others = list(product(*(list(pairwise(cuts)) for cuts in beside)))
    read = [
        (rows_region(node.mask.shape, rows), rest)
        for (rows, _), rest in product(parts or [((0, 0), (0, 0))], others)
    ]
    owners = tuple(writer.home_of(node.operand, (*region, *rest)) for region, rest in read)
    layout = Layout(Grid((_ends(parts), *beside)), owners)
    for block in writer.each_block(node, layout, _SELECT, "by booleans"):
        if not parts:
            block.do(Join((), region_shape(block.region), node.dtype, node.sparse))
            continue
        region, rest = read[block.number]
        values = writer.read(block, node.operand, (*region, *rest), block.owner)
        block.do(Run(compress), values, writer.read(block, node.mask, region, block.owner))
        block.take(_PLACE_BYTES * (block.region[0][1] - block.region[0][0]))


@lowers(Expand)
def _(node: Expand, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that write the values of each part of the array into it."""
    masked = node.mask.ndim
    beside = writer.registers[node.operand].layout.grid.cuts[masked:]
    grid = Grid((node.before, *((0, length) for length in node.mask.shape[1:]), *beside))
    ends = dict(zip(pairwise(node.before), pairwise(node.after), strict=True))
    layout = Layout(grid, tuple(writer.home_of(node.operand, region) for region in grid.regions()))
    for block in writer.each_block(node, layout, PUT, "by booleans"):
        region, owner = block.region, block.owner
        values = writer.read(block, node.operand, region, owner)
        mask = writer.read(block, node.mask, region[:masked], owner)
        new = writer.read(block, node.value, (ends[region[0]], *region[masked:]), owner)
        block.do(Run(expand), values, mask, new)
        start, stop = ends[region[0]]
        block.take(_PLACE_BYTES * (node.ndim + 1) * (stop - start))  # where they go, and they in that order


@lowers(Prune)
def _(node: Prune, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that drop entries, each where its block is."""
    source = writer.registers[node.operand]
    writer.note_reuse(node.operand)
    each = 1 + (node.dtype.itemsize if node.threshold else 0)  # whether it stays, and its size
    for block in writer.each_block(node, source.layout, _SELECT, "large entries"):
        block.do(Run(prune, (node.threshold,)), block.read(source.keys[block.number]))
        block.take(each * writer.entries_of(node.operand, block.region))


@lowers(Select)
def _(node: Select, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that drop entries by booleans, each where its block of the array is."""
    source = writer.registers[node.operand]
    writer.note_reuse(node.operand)
    for block in writer.each_block(node, source.layout, _SELECT, "entries by booleans"):
        value = block.read(source.keys[block.number])
        block.do(Run(select), value, writer.read(block, node.mask, block.region, block.owner))
        each = 1 + (0 if node.mask.sparse else 2 * _PLACE_BYTES)  # whether it stays, and where it is
        block.take(each * writer.entries_of(node.operand, block.region))


@lowers(SelectBy)
def _(node: SelectBy, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that drop entries by a user's function, each where its block is."""
    source = writer.registers[node.operand]
    writer.note_reuse(node.operand)
    for block in writer.each_block(node, source.layout, _SELECT, node.function.name):
        start = (block.region[0][0], block.region[1][0])
        block.do(Run(select_by, (node.function, start)), block.read(source.keys[block.number]))
        each = 1 + 2 * _PLACE_BYTES + 2 * node.dtype.itemsize  # places, and a copy for the function
        block.take(each * writer.entries_of(node.operand, block.region))


@lowers(TruePlaces)
def _(node: TruePlaces, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that list the places in each part."""
    parts = _parts(node.before, node.after)
    regions = [rows_region(node.mask.shape, rows) for rows, _ in parts or [((0, 0), (0, 0))]]
    layout = Layout(Grid((_ends(parts),)), tuple(writer.home_of(node.mask, region) for region in regions))
    for block in writer.each_block(node, layout, _PLACES, "of what is true"):
        if not parts:
            block.do(Join((), (0,), node.dtype, False))
            continue
        region, ((start, stop),) = regions[block.number], block.region
        mask = writer.read(block, node.mask, region, block.owner)
        block.do(Run(true_places, (node.axis, region[0][0])), mask)
        block.take(_PLACE_BYTES * node.mask.ndim * (stop - start))
        if node.mask.sparse:  # rows, ones of a pattern, and which are kept, before they are picked
            block.take(_SPARSE_PLACES * _PLACE_BYTES * writer.entries_of(node.mask, region))


@lowers(StoredEntries)
def _(node: StoredEntries, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that list the entries of each part: values stay where they are, in the same memory."""
    parts = _parts(node.before, node.after)
    regions = [rows_region(node.operand.shape, rows) for rows, _ in parts or [((0, 0), (0, 0))]]
    owners = tuple(writer.home_of(node.operand, region) for region in regions)
    for block in writer.each_block(node, Layout(Grid((_ends(parts),)), owners), _PLACES, "of entries"):
        if not parts:
            block.do(Join((), (0,), node.dtype, False))
            continue
        entries = writer.read(block, node.operand, regions[block.number], block.owner)
        block.do(Run(stored_entries, (node.wanted,)), entries)


def _parts(before: Cuts, after: Cuts) -> list[tuple[Range, Range]]:
    # The parts of which something is picked, and where that is in the result.
    pairs = zip(pairwise(before), pairwise(after), strict=True)
    return [(rows, picked) for rows, picked in pairs if picked[0] < picked[1]]


def _ends(parts: Sequence[tuple[Range, Range]]) -> Cuts:
    return (0, *(stop for _, (_, stop) in parts)) if parts else (0, 0)

"""Values combined by labels; distinct keys numbered part by part: codes, and what has them.

The parts are those of one axis that ``before`` cuts. The distinct keys of a part are in ascending order and
stand side by side with those of the other parts; ``after`` says where those of each part end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from matnb.blocks.grid import Grid, Region
from matnb.blocks.kernels.reductions.labels import labels_within, reduced_dtype, reduced_within, values_within
from matnb.blocks.kernels.reductions.reductions import accumulator_dtype
from matnb.blocks.kernels.sorting import grouping as kernels
from matnb.blocks.layout import Layout
from matnb.blocks.semiring import MONOIDS
from matnb.errors import DTypeError, IndexingError, ShapeError, UnsupportedError
from matnb.expr.nodes import Expr
from matnb.ops.combining import write_combined
from matnb.ops.indexing import check_index
from matnb.ops.lanes import lanes_layout
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.kinds import REDUCTIONS, SCAN, SCATTER, SEND, Kind
from matnb.program.operators import Accumulate, Run, ScatterBy
from matnb.program.place import default_layout
from matnb.program.plan import Slot, Workers
from matnb.program.regions import rows_region
from matnb.program.writer import PlanWriter, TaskWriter

_GROUP = Kind("group", follows_cuts=True, shown=REDUCTIONS)
_RUNNING = Kind("running", shown=REDUCTIONS)

Cuts = tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Codes(Expr):
    """Of each key its place among the distinct keys of its part; NaN is one key, the last."""

    plain: ClassVar[bool] = True
    keys: Expr
    before: Cuts

    def __post_init__(self) -> None:
        if self.keys.ndim != 1 or self.keys.sparse:
            raise ShapeError(f"keys have shape {self.keys.shape}: give a dense 1-d array")
        if self.keys.dtype.kind not in "biuf" or self.keys.dtype.itemsize > 8:
            raise DTypeError(f"keys have dtype {self.keys.dtype}: give real numbers of at most 64 bits")
        _check(self.keys, self.before)
        self.settle(self.keys.shape, np.dtype(np.int32), False, self.keys)


@dataclass(frozen=True, eq=False, repr=False)
class NumCodes(Expr):
    """How many distinct keys each part has."""

    plain: ClassVar[bool] = True
    codes: Expr
    before: Cuts

    def __post_init__(self) -> None:
        _check(self.codes, self.before)
        self.settle((len(self.before) - 1,), np.dtype(np.int64), False, self.codes)


@dataclass(frozen=True, eq=False, repr=False)
class PartKeys(Expr):
    """The distinct keys of each part."""

    plain: ClassVar[bool] = True
    keys: Expr
    codes: Expr
    before: Cuts
    after: Cuts

    def __post_init__(self) -> None:
        _check(self.codes, self.before)
        self.settle((self.after[-1],), self.keys.dtype, False, self.keys, self.codes)


@dataclass(frozen=True, eq=False, repr=False)
class Combined(Expr):
    """The values, or rows, of each distinct key of a part combined, in the dtype they are summed in.

    With "count" instead of a monoid, how many there are.
    """

    plain: ClassVar[bool] = True
    values: Expr
    codes: Expr
    monoid: str
    before: Cuts
    after: Cuts

    def __post_init__(self) -> None:
        _check(self.codes, self.before)
        if self.values.shape[:1] != self.codes.shape or self.values.ndim > 2 or self.values.sparse:
            raise ShapeError(
                f"values of shape {self.values.shape} for {self.codes.size} keys: give one value or "
                "row for each key"
            )
        if self.monoid == "count":
            self.settle((self.after[-1],), np.dtype(np.int64), False, self.values, self.codes)
            return
        dtype = reduced_dtype(MONOIDS[self.monoid], self.values.dtype)
        wide = accumulator_dtype("sum", dtype) if self.monoid == "plus" else dtype
        self.settle((self.after[-1], *self.values.shape[1:]), wide, False, self.values, self.codes)


@dataclass(frozen=True, eq=False, repr=False)
class Picked(Expr):
    """For each key the element, or row, that stands for it among those for distinct keys of its part."""

    plain: ClassVar[bool] = True
    elements: Expr
    codes: Expr
    before: Cuts
    after: Cuts

    def __post_init__(self) -> None:
        _check(self.codes, self.before)
        _check(self.elements, self.after)
        shape = (*self.codes.shape, *self.elements.shape[1:])
        self.settle(shape, self.elements.dtype, False, self.elements, self.codes)


def _check(node: Expr, cuts: Cuts) -> None:
    if cuts[-1] != node.shape[0]:
        raise ShapeError(f"parts {cuts} of an array of shape {node.shape}")


@means(Codes)
def _(node: Codes, operands: Sequence[Value]) -> Value:
    """Return the place of each key among those of its part."""
    keys = dense(operands[0])
    found = np.zeros(keys.shape, node.dtype)
    for start, stop in pairwise(node.before):
        found[start:stop] = np.unique(keys[start:stop], return_inverse=True)[1]
    return found


@means(NumCodes)
def _(node: NumCodes, operands: Sequence[Value]) -> Value:
    """Return how many distinct keys each part has."""
    array = dense(operands[0])
    counts = [array[start:stop].max(initial=-1) + 1 for start, stop in pairwise(node.before)]
    return np.array(counts, node.dtype)


@means(PartKeys)
def _(node: PartKeys, operands: Sequence[Value]) -> Value:
    """Return the distinct keys of each part."""
    keys, places = map(dense, operands)
    found = np.zeros(node.shape, node.dtype)
    for (start, stop), (first, last) in _parts(node):
        found[first:last][places[start:stop]] = keys[start:stop]
    return found


@means(Combined)
def _(node: Combined, operands: Sequence[Value]) -> Value:
    """Return the values of each distinct key of a part combined."""
    values, places = map(dense, operands)
    monoid = MONOIDS["plus" if node.monoid == "count" else node.monoid]
    if node.monoid == "count":
        values = np.ones(values.shape[:1], node.dtype)
    found = np.full(node.shape, monoid.identity(node.dtype), node.dtype)
    for (start, stop), (first, last) in _parts(node):
        part = values[start:stop].astype(node.dtype)
        getattr(np, monoid.ufunc).at(found[first:last], places[start:stop], part)
    return found


@means(Picked)
def _(node: Picked, operands: Sequence[Value]) -> Value:
    """Return for each key what stands for it."""
    elements, places = map(dense, operands)
    found = np.zeros(node.shape, node.dtype)
    for (start, stop), (first, last) in _parts(node):
        found[start:stop] = elements[first:last][places[start:stop]]
    return found


def _parts(
    node: PartKeys | Combined | Picked,
) -> Sequence[tuple[tuple[int, int], tuple[int, int]]]:
    return list(zip(pairwise(node.before), pairwise(node.after), strict=True))


# Distinct keys part by part, each part where it is: nothing moves.

_CODED_BYTES = 72  # a key, if all are distinct: the table of those that are known
_PICKED_BYTES = 24  # a row: its place, and its value as it is summed


@lowers(Codes)
def _(node: Codes, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that give keys codes."""
    runs = [Run(kernels.codes_of)] * (len(node.before) - 1)
    _write(node, [(node.keys, node.before)], runs, node.before, node.keys, writer, workers)


@lowers(NumCodes)
def _(node: NumCodes, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that count distinct keys."""
    runs = [Run(kernels.num_codes)] * node.size
    _write(node, [(node.codes, node.before)], runs, tuple(range(node.size + 1)), node.codes, writer, workers)


@lowers(PartKeys)
def _(node: PartKeys, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that list distinct keys."""
    runs = [Run(kernels.placed, (stop - start,)) for start, stop in pairwise(node.after)]
    read = [(node.keys, node.before), (node.codes, node.before)]
    _write(node, read, runs, node.after, node.codes, writer, workers)


@lowers(Combined)
def _(node: Combined, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that combine values by key."""
    runs = [
        Run(kernels.reduced, (stop - start, node.monoid, node.dtype)) for start, stop in pairwise(node.after)
    ]
    read = [(node.values, node.before), (node.codes, node.before)]
    _write(node, read, runs, node.after, node.codes, writer, workers)


@lowers(Picked)
def _(node: Picked, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that pick for each key what stands for it."""
    runs = [Run(kernels.picked)] * (len(node.before) - 1)
    read = [(node.elements, node.after), (node.codes, node.before)]
    _write(node, read, runs, node.before, node.codes, writer, workers)


def _write(
    node: Expr,
    read: list[tuple[Expr, Cuts]],
    runs: list[Run],
    cuts: Cuts,
    home: Expr,
    writer: PlanWriter,
    workers: Workers,
) -> None:
    # A task a part: it reads that part of each array, where the part of ``home`` is.
    places = read[-1][1]
    layout = Layout(
        Grid((cuts, *((0, length) for length in node.shape[1:]))),
        tuple(writer.home_of(home, (rows,)) for rows in pairwise(places)),
    )
    for block in writer.each_block(node, layout, _GROUP, "by key"):
        number = block.number
        values = [
            writer.read(block, one, rows_region(one.shape, (parts[number], parts[number + 1])), block.owner)
            for one, parts in read
        ]
        block.do(runs[number], *values)
        num_rows = places[number + 1] - places[number]
        block.take((_CODED_BYTES if isinstance(node, Codes) else _PICKED_BYTES) * num_rows)


@dataclass(frozen=True, eq=False, repr=False)
class Scatter(Expr):
    """Values, or rows of values, of the same label combined by a monoid: ``length`` of them, dense."""

    values: Expr
    labels: Expr
    length: int
    monoid: str

    def __post_init__(self) -> None:
        if (
            self.labels.ndim != 1
            or self.values.ndim not in (1, 2)
            or self.values.shape[:1] != self.labels.shape
        ):
            raise ShapeError(
                f"labels of shape {self.labels.shape} for values of shape {self.values.shape}: give one a "
                "value, or one a row of a matrix"
            )
        if self.values.sparse or self.labels.sparse:
            raise UnsupportedError(
                "values and labels of scatter_reduce are dense; combine the rows of a sparse matrix by a "
                "product with a sparse matrix that has a one for each row in the column of its label"
            )
        check_index(self.labels, 1)
        dtype = reduced_dtype(MONOIDS[self.monoid], self.values.dtype)
        shape = (self.length, *self.values.shape[1:])
        self.settle(shape, dtype, False, self.values, self.labels)

    def _text(self, operands: Sequence[str]) -> str:
        return f"scatter_reduce({', '.join(operands)}, {self.length}, {self.monoid})"


@dataclass(frozen=True, eq=False, repr=False)
class Running(Expr):
    """What values, or rows of values, of the same label make up to each one by a monoid; dense.

    In the order of rows, so with the same bits for any cuts. There are ``length`` labels.
    """

    plain: ClassVar[bool] = True
    values: Expr
    labels: Expr
    length: int
    monoid: str

    def __post_init__(self) -> None:
        assert self.values.shape[:1] == self.labels.shape, "checked by the caller"
        dtype = reduced_dtype(MONOIDS[self.monoid], self.values.dtype)
        self.settle(self.values.shape, dtype, False, self.values, self.labels)


@means(Running)
def _(node: Running, operands: Sequence[Value]) -> Value:
    values, labels = map(dense, operands)
    monoid = MONOIDS[node.monoid]
    table = np.full((node.length, *values.shape[1:]), monoid.identity(node.dtype), node.dtype)
    found = np.empty(node.shape, node.dtype)
    for place, label in enumerate(labels):
        if not 0 <= label < node.length:
            raise IndexingError(f"label {label} at position {place}: labels go from 0 to {node.length - 1}")
        table[label] = getattr(np, monoid.ufunc)(table[label], values[place].astype(node.dtype))
        found[place] = table[label]
    return found


@lowers(Running)
def _(node: Running, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of running totals: a number for each label goes from block to block of rows."""
    layout = lanes_layout(node.values, range(1, node.ndim), writer, workers)
    lines = node.size // max(1, node.shape[0])
    table_bytes = node.length * lines * node.dtype.itemsize
    before: list[Slot] = []
    places = list(zip(layout.grid.regions(), layout.owners, strict=True))

    def read(task: TaskWriter, region: Region, owner: int) -> list[tuple[bool, int]]:
        values = writer.read(task, node.values, region, owner)
        return [values, writer.read(task, node.labels, region[:1], owner), *map(task.read, before[-1:])]

    tables: dict[int, list[Slot]] = {0: []}
    for number, (region, owner) in enumerate(places[:-1]):
        task = TaskWriter()
        options = (node.length, node.monoid, node.dtype, region[0][0])
        task.do(Run(kernels.running_table, options), *read(task, region, owner))
        before = [writer.add(task, owner, SCAN, table_bytes, node)]
        tables[number + 1] = before
    for block in writer.each_block(node, layout, _RUNNING, node.monoid):
        before = tables[block.number]
        options = (node.length, node.monoid, node.dtype, block.region[0][0])
        block.take(table_bytes + block.num_bytes)
        block.do(Run(kernels.running, options), *read(block, block.region, block.owner))


@means(Scatter)
def _(node: Scatter, operands: Sequence[Value]) -> Value:
    values, labels = map(dense, operands)
    for position, label in enumerate(labels):
        if not 0 <= label < node.length:
            raise IndexingError(
                f"label {label} at position {position}: labels go from 0 to {node.length - 1}"
            )
    monoid = MONOIDS[node.monoid]
    # as the workers do: float sums are rounded once, at the end
    is_sum = node.monoid == "plus" and node.dtype.kind in "fc"
    wide = np.result_type(node.dtype, np.float64) if is_sum or node.dtype == np.float16 else node.dtype
    totals = np.full(node.shape, monoid.identity(node.dtype), wide)
    getattr(np, monoid.ufunc).at(totals, labels.astype(np.int64), values.astype(wide))
    return totals.astype(node.dtype)


@lowers(Scatter)
def _(node: Scatter, writer: PlanWriter, workers: Workers) -> None:
    # Each block of values gives a share of the whole length; each owner combines its range of all shares.
    # Where a share would be longer than the block, values go to where their labels are combined instead.
    domain = _rows_layout(node.values, writer)
    if domain.grid.num_blocks == 1:
        domain = _rows_layout(node.labels, writer)
    layout = default_layout(node, writer.bytes_of(node), workers)
    rows_a_block = node.labels.shape[0] // domain.grid.num_blocks
    if node.length > rows_a_block and layout.grid.counts[0] == layout.grid.num_blocks > 1 and not node.free:
        _write_routed(node, domain, layout, writer)
        return
    # Products of floats go on from share to share, since a share of them alone may overflow.
    in_order = node.monoid == "times" and node.dtype.kind in "fc"
    shares: list[tuple[Slot, int]] = []
    for (rows,), owner in zip(domain.grid.regions(), domain.owners, strict=True):
        task = TaskWriter()
        values = writer.read(task, node.values, rows_region(node.values.shape, rows), owner)
        labels = writer.read(task, node.labels, (rows,), owner)
        before = [task.read(shares.pop()[0])] if in_order and shares else []
        task.do(ScatterBy(node.length, node.monoid, node.dtype, rows[0]), values, labels, *before)
        num_bytes = node.size * accumulator_dtype("sum", node.dtype).itemsize
        shares.append((writer.add(task, owner, SCATTER, num_bytes, node), owner))
    write_combined(node, shares, Accumulate(node.monoid, node.dtype), layout, writer, SCATTER, node.monoid)


def _rows_layout(node: Expr, writer: PlanWriter) -> Layout:
    # The cuts of the first axis alone, each part with the owner of the first block there.
    layout = writer.registers[node].layout
    grid = Grid(layout.grid.cuts[:1])
    rest = (0,) * (node.ndim - 1)
    return Layout(grid, tuple(layout.owners[layout.grid.number((*index, *rest))] for index in grid.indices()))


_CHOSEN_BYTES = 12  # a label: whether it is in a range, and what it is there


def _write_routed(node: Scatter, domain: Layout, layout: Layout, writer: PlanWriter) -> None:
    """Write the tasks that combine values by label, each range of labels by one.

    Where there are very many labels each value goes to the worker that combines its range.

    Parameters
    ----------
    domain
        How values and labels are taken, by rows.
    layout
        Of the result; its first axis alone is cut.
    """
    for block in writer.each_block(node, layout, SCATTER, node.monoid):
        within, owner, pairs, parts = block.region[0], block.owner, [], []
        for (rows,), where in zip(domain.grid.regions(), domain.owners, strict=True):
            if where == owner:
                pairs.append(writer.read(block, node.values, rows_region(node.values.shape, rows), owner))
                pairs.append(writer.read(block, node.labels, (rows,), owner))
                parts.append(rows[0])
                continue
            parts.append(-1)
            chosen, sent = TaskWriter(), TaskWriter()
            chosen.take(_CHOSEN_BYTES * (rows[1] - rows[0]))
            sent.take(_CHOSEN_BYTES * (rows[1] - rows[0]))
            labels = writer.read(chosen, node.labels, (rows,), where)
            chosen.do(Run(labels_within, (within, node.length, rows[0])), labels)
            values = writer.read(sent, node.values, rows_region(node.values.shape, rows), where)
            sent.do(Run(values_within, (within,)), values, writer.read(sent, node.labels, (rows,), where))
            for sending, array in ((sent, node.values), (chosen, node.labels)):
                size = writer.bytes_of(array, rows_region(array.shape, rows)) // layout.grid.num_blocks
                pairs.append(block.read(writer.part_of(block, sending, where, SEND, size)))
        run = Run(reduced_within, (tuple(parts), within, node.length, node.monoid, node.dtype))
        read_bytes = writer.bytes_of(node.values) + writer.bytes_of(node.labels)
        block.take(3 * read_bytes // layout.grid.num_blocks)
        block.do(run, *pairs)

"""Reads and writes at single places known only at run time, draws made anew, calls of a user's function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from matnb.blocks.creation import Random, drawn_anew
from matnb.blocks.formats import Dense, to_numpy
from matnb.blocks.grid import Grid, Region
from matnb.blocks.kernels.calls import Function, Output, call, packed_bytes, unpack, unpacked
from matnb.blocks.kernels.indexing import only, pick, put_sparse, steps_within
from matnb.blocks.kernels.labels import labels_within, reduced_dtype, reduced_within, values_within
from matnb.blocks.kernels.reductions import accumulator_dtype
from matnb.blocks.layout import Layout
from matnb.blocks.semiring import MONOIDS
from matnb.errors import IndexingError, ShapeError, UnsupportedError
from matnb.expr.nodes import Expr, Key, Shape, broadcast_shapes
from matnb.ops.combining import write_combined
from matnb.ops.picking import check_index
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.operators import Accumulate, Call, PutAt, Run, ScatterBy
from matnb.program.place import default_layout
from matnb.program.plan import Workers
from matnb.program.regions import operand_region, rows_region
from matnb.program.writer import PlanWriter, TaskWriter, cut_of


@dataclass(frozen=True, eq=False, repr=False)
class At(Expr):
    """One place on an axis, which is dropped: ``index`` is a whole number without axes; dense."""

    operand: Expr
    index: Expr
    axis: int

    def __post_init__(self) -> None:
        check_index(self.index, 0)
        shape = self.operand.shape
        rest = (*shape[: self.axis], *shape[self.axis + 1 :])
        self._settle(rest, self.operand.dtype, False, self.operand, self.index)


@dataclass(frozen=True, eq=False, repr=False)
class Put(Expr):
    """An array with a value, which broadcasts, written at a place; a sparse one stays sparse.

    ``key`` has an entry for every axis: a number, a slice with bounds whose step is positive, or None for
    the next of ``inputs``, whole numbers without axes.
    """

    operand: Expr
    value: Expr
    inputs: tuple[Expr, ...]
    key: Key

    def __post_init__(self) -> None:
        for index in self.inputs:
            check_index(index, 0)
        target = self.target
        if broadcast_shapes(self.value.shape, target, name="assignment") != target:
            raise ShapeError(f"a value of shape {self.value.shape} does not fit elements of shape {target}")
        own = self.operand
        self._settle(own.shape, own.dtype, own.sparse, own, self.value, *self.inputs)

    @property
    def target(self) -> Shape:
        """The shape of what is written over."""
        return tuple(
            len(range(part.start, part.stop, part.step)) for part in self.key if isinstance(part, slice)
        )


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
        self._settle(shape, dtype, False, self.values, self.labels)


@dataclass(frozen=True, eq=False, repr=False)
class Draw(Expr):
    """Random numbers that differ with whole numbers without axes, such as those of iterations."""

    is_source: ClassVar[bool] = True
    creation: Random
    inputs: tuple[Expr, ...]

    def __post_init__(self) -> None:
        for number in self.inputs:
            check_index(number, 0)
        self._settle(self.creation.shape, self.creation.dtype, False, *self.inputs)


@dataclass(frozen=True, eq=False, repr=False)
class Replicated(Expr):
    """The results of a user's function on whole arrays, packed one after the other as bytes."""

    inputs: tuple[Expr, ...]
    function: Function
    outputs: tuple[Output, ...]

    def __post_init__(self) -> None:
        self._settle((packed_bytes(self.outputs),), np.dtype(np.uint8), False, *self.inputs)


@dataclass(frozen=True, eq=False, repr=False)
class Part(Expr):
    """One of the results of a user's function."""

    call: Expr
    place: int

    def __post_init__(self) -> None:
        assert isinstance(self.call, Replicated), "only such a call has parts"
        shape, dtype = self.call.outputs[self.place]
        self._settle(shape, dtype, False, self.call)


@means(At)
def _(node: At, operands: Sequence[Value]) -> Value:
    array, index = operands[0], dense(operands[1])
    places = _checked(index, node.operand.shape[node.axis], node.axis)
    if sp.issparse(array):
        chosen = int(places)
        row = array[[chosen], :] if node.axis == 0 else array[:, [chosen]]
        return dense(row).reshape(node.shape)
    return np.asarray(np.take(array, places, axis=node.axis))


@means(Put)
def _(node: Put, operands: Sequence[Value]) -> Value:
    array, value = dense(operands[0]).copy(), dense(operands[1])
    numbers = iter(operands[2:])
    place = [
        int(_checked(dense(next(numbers)), array.shape[axis], axis)) if one is None else one
        for axis, one in enumerate(node.key)
    ]
    array[(*place, ...)] = value.astype(array.dtype)
    return sp.csr_array(array) if node.sparse else array


@means(Draw)
def _(node: Draw, operands: Sequence[Value]) -> Value:
    drawn = drawn_anew(node.creation, [int(dense(one)) for one in operands])
    return to_numpy(drawn.make(tuple((0, length) for length in node.shape)))


@means(Replicated)
def _(node: Replicated, operands: Sequence[Value]) -> Value:
    return call(node.function, [Dense(dense(one)) for one in operands], node.outputs).values


@means(Part)
def _(node: Part, operands: Sequence[Value]) -> Value:
    return unpacked(dense(operands[0]), node.call.outputs)[node.place]  # type: ignore[attr-defined]  # of a call


def _checked(index: np.ndarray, length: int, axis: int) -> np.ndarray:
    for number in index.flat:
        if not -length <= int(number) < length:
            raise IndexingError(f"index {number} on axis {axis} of length {length}")
    return index.astype(np.int64)


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


@lowers(At)
def _(node: At, writer: PlanWriter, workers: Workers) -> None:
    # Each worker looks into its blocks along the axis; what it finds has length 1 there, or 0.
    source, axis, length = writer.registers[node.operand], node.axis, node.operand.shape[node.axis]
    grid = source.layout.grid
    kept = Grid((*grid.cuts[:axis], *grid.cuts[axis + 1 :]))
    writer.note_reuse(node.operand)
    crossed = [  # the blocks on the axis, for each block of the result
        [grid.number((*index[:axis], along, *index[axis:])) for along in range(grid.counts[axis])]
        for index in kept.indices()
    ]
    layout = Layout(kept, tuple(source.layout.owners[numbers[0]] for numbers in crossed))
    for block in writer.each_block(node, layout, "read", f"one place on axis {axis}"):
        held: dict[int, list[tuple[int, str]]] = {}  # by owner: where each block begins, and its key
        for start, place in zip(grid.cuts[axis], crossed[block.number], strict=False):
            held.setdefault(source.layout.owners[place], []).append((start, source.keys[place]))
        parts = []
        for owner, blocks in held.items():
            task = block if len(held) == 1 else TaskWriter()
            found = task.do(
                Run(pick, (axis, tuple(start for start, _ in blocks), length)),
                task.read(writer.block(node.index, (), owner)),
                *(task.read(key) for _, key in blocks),
                num_bytes=block.num_bytes,
            )
            if task is not block:
                found = block.read(writer.part_of(block, task, owner, "read", block.num_bytes))
            parts.append(found)
        block.do(Run(only, (axis,)), *parts)


@lowers(Put)
def _(node: Put, writer: PlanWriter, workers: Workers) -> None:
    # Each block is written where it is; those which no part of the place can lie in are the operand's own.
    source = writer.registers[node.operand]
    key = tuple((one.start, one.stop, one.step) if isinstance(one, slice) else one for one in node.key)
    writer.note_reuse(node.operand)
    for block in writer.each_block(node, source.layout, "put"):
        region, owner = block.region, block.owner
        old = block.read(source.keys[block.number])
        part = _written(node, region)
        if part is None:
            block.do(cut_of(region, region), old)
            continue
        value = writer.read(block, node.value, operand_region(node.value.shape, part), owner)
        numbers = [block.read(writer.block(index, (), owner)) for index in node.inputs]
        parameters = (key, region, node.shape)
        block.do(Run(put_sparse, parameters) if node.sparse else PutAt(*parameters), old, value, *numbers)


def _written(node: Put, region: Region) -> Region | None:
    # The part of the value that a block may get, or None for a block beside the place.
    part = []
    for chosen, (start, stop) in zip(node.key, region, strict=True):
        if isinstance(chosen, slice):
            low, high = steps_within((chosen.start, chosen.stop, chosen.step), start, stop)
            if low >= high:
                return None
            part.append((low, high))
        elif chosen is not None and not start <= chosen < stop:
            return None
    return tuple(part)


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
    shares: list[tuple[str, int]] = []
    for (rows,), owner in zip(domain.grid.regions(), domain.owners, strict=True):
        task = TaskWriter()
        values = writer.read(task, node.values, rows_region(node.values.shape, rows), owner)
        labels = writer.read(task, node.labels, (rows,), owner)
        before = [task.read(shares.pop()[0])] if in_order and shares else []
        task.do(ScatterBy(node.length, node.monoid, node.dtype, rows[0]), values, labels, *before)
        num_bytes = node.size * accumulator_dtype("sum", node.dtype).itemsize
        shares.append((writer.add_for(node, task, owner, "scatter", num_bytes), owner))
    write_combined(node, shares, Accumulate(node.monoid, node.dtype), layout, writer, "scatter", node.monoid)


def _rows_layout(node: Expr, writer: PlanWriter) -> Layout:
    # The cuts of the first axis alone, each part with the owner of the first block there.
    layout = writer.registers[node].layout
    grid = Grid(layout.grid.cuts[:1])
    rest = (0,) * (node.ndim - 1)
    return Layout(grid, tuple(layout.owners[layout.grid.number((*index, *rest))] for index in grid.indices()))


_COPIES_OF_INPUTS = 5


@lowers(Replicated)
def _(node: Replicated, writer: PlanWriter, workers: Workers) -> None:
    layout = Layout(Grid(((0, node.shape[0]),)), workers.numbers[:1])
    for block in writer.each_block(node, layout, "call", node.function.name):
        values = [
            block.read(writer.block(one, tuple((0, length) for length in one.shape), block.owner))
            for one in node.inputs
        ]
        block.do(Call(node.function, node.outputs), *values)
        # The function gets copies of its own, dense. NumPy's linear algebra copies them once more, in
        # LAPACK's order, and LAPACK asks for room of up to four more (gesdd); what it gives is copied out.
        inputs = sum(one.size * one.dtype.itemsize for one in node.inputs)
        block.take(_COPIES_OF_INPUTS * inputs + node.size)
        block.num_bytes = node.size


@lowers(Part)
def _(node: Part, writer: PlanWriter, workers: Workers) -> None:
    call = node.call
    assert isinstance(call, Replicated), "checked by the node"
    source = writer.registers[call]
    writer.note_reuse(call)
    layout = Layout(Grid(tuple((0, length) for length in node.shape)), source.layout.owners[:1])
    for block in writer.each_block(node, layout, "part"):
        block.do(Run(unpack, (call.outputs, node.place)), block.read(source.keys[0]))


# Values of very many labels: each goes to the worker that combines a range of labels.

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
    for block in writer.each_block(node, layout, "scatter", node.monoid):
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
                pairs.append(block.read(writer.part_of(block, sending, where, "send", size)))
        run = Run(reduced_within, (tuple(parts), within, node.length, node.monoid, node.dtype))
        read_bytes = writer.bytes_of(node.values) + writer.bytes_of(node.labels)
        block.take(3 * read_bytes // layout.grid.num_blocks)
        block.do(run, *pairs)

"""Distinct keys numbered part by part: codes, what has them, and values combined by them.

The parts are those of one axis that ``before`` cuts. The distinct keys of a part are in ascending order and
stand side by side with those of the other parts; ``after`` says where those of each part end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from matnb.blocks.grid import Grid
from matnb.blocks.kernels import grouping as kernels
from matnb.blocks.kernels.labels import reduced_dtype
from matnb.blocks.kernels.reductions import accumulator_dtype
from matnb.blocks.layout import Layout
from matnb.blocks.semiring import MONOIDS
from matnb.errors import DTypeError, ShapeError
from matnb.expr.nodes import Expr
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.operators import Run
from matnb.program.plan import Workers
from matnb.program.regions import rows_region
from matnb.program.writer import PlanWriter

Cuts = tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Codes(Expr):
    """Of each key its place among the distinct keys of its part; NaN is one key, the last."""

    plain: ClassVar[bool] = True
    keys: Expr
    before: Cuts

    def __post_init__(self) -> None:
        if self.keys.ndim != 1 or self.keys.sparse:
            raise ShapeError(f"keys of shape {self.keys.shape}: give one axis, dense")
        if self.keys.dtype.kind not in "biuf" or self.keys.dtype.itemsize > 8:
            raise DTypeError(f"keys of dtype {self.keys.dtype}: give real numbers of up to double precision")
        _check(self.keys, self.before)
        self._settle(self.keys.shape, np.dtype(np.int32), False, self.keys)


@dataclass(frozen=True, eq=False, repr=False)
class NumCodes(Expr):
    """How many distinct keys each part has."""

    plain: ClassVar[bool] = True
    codes: Expr
    before: Cuts

    def __post_init__(self) -> None:
        _check(self.codes, self.before)
        self._settle((len(self.before) - 1,), np.dtype(np.int64), False, self.codes)


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
        self._settle((self.after[-1],), self.keys.dtype, False, self.keys, self.codes)


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
                f"values of shape {self.values.shape} for {self.codes.size} keys: give one value or row a key"
            )
        if self.monoid == "count":
            self._settle((self.after[-1],), np.dtype(np.int64), False, self.values, self.codes)
            return
        dtype = reduced_dtype(MONOIDS[self.monoid], self.values.dtype)
        wide = accumulator_dtype("sum", dtype) if self.monoid == "plus" else dtype
        self._settle((self.after[-1], *self.values.shape[1:]), wide, False, self.values, self.codes)


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
        self._settle(shape, self.elements.dtype, False, self.elements, self.codes)


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
    for block in writer.each_block(node, layout, "group", "by key"):
        number = block.number
        values = [
            writer.read(block, one, rows_region(one.shape, (parts[number], parts[number + 1])), block.owner)
            for one, parts in read
        ]
        block.do(runs[number], *values)
        num_rows = places[number + 1] - places[number]
        block.take((_CODED_BYTES if isinstance(node, Codes) else _PICKED_BYTES) * num_rows)

"""Rows of one table found in another by their keys, and elements taken at such places.

The side that is looked in is the smaller one, and bounded: each worker makes a table of its keys once, in
which the rows of the other side are found where they lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from matnb.blocks.formats import Dense, NumericArray
from matnb.blocks.grid import Region
from matnb.blocks.kernels.compiled import compiled, given, prefetch
from matnb.errors import DTypeError, ShapeError
from matnb.expr.nodes import Expr
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.kinds import GATHER, SEARCH
from matnb.program.operators import Run
from matnb.program.place import default_layout
from matnb.program.plan import Slot, Workers
from matnb.program.writer import PlanWriter, TaskWriter

MOST_LOOKED_IN = 1 << 22  # rows of the side that is looked in: a table of at most 134 MB on each worker
MOST_TAKEN_BYTES = 64 * 1024 * 1024  # of an array from which each worker takes elements at any place

_HEADER = 4  # numbers before a table: high bits that make a slot, or 0; the least key, the length, rows
_SPREAD = 4  # whole numbers are their own places where their range is at most so many times their number
_FEW = 1 << 16  # and where it is no longer than this
_AHEAD = 12  # keys whose slots are on their way to the cache


@dataclass(frozen=True, eq=False, repr=False)
class Matches(Expr):
    """Of each key the first place among others where it is, or their number; NaN is one key."""

    plain: ClassVar[bool] = True
    keys: Expr
    among: Expr

    def __post_init__(self) -> None:
        if self.keys.ndim != 1 or self.among.ndim != 1 or self.keys.sparse or self.among.sparse:
            raise ShapeError(f"keys of shapes {self.keys.shape} and {self.among.shape}: give dense vectors")
        dtype = self.keys.dtype
        if dtype != self.among.dtype or dtype.kind not in "biuf" or dtype.itemsize > 8:
            raise DTypeError(f"keys of dtypes {dtype} and {self.among.dtype}: give one of at most 64 bits")
        assert self.among.shape[0] <= MOST_LOOKED_IN, "seen to by the caller"
        self.settle(self.keys.shape, np.dtype(np.int32), False, self.keys, self.among)


@dataclass(frozen=True, eq=False, repr=False)
class Taken(Expr):
    """The elements at places; where a place is negative NaN, or of whole numbers and booleans ``fill``."""

    plain: ClassVar[bool] = True
    operand: Expr
    places: Expr
    fill: int

    def __post_init__(self) -> None:
        assert self.places.ndim == self.operand.ndim == 1, "of columns"
        self.settle(self.places.shape, self.operand.dtype, False, self.operand, self.places)


@means(Matches)
def _(node: Matches, operands: Sequence[Value]) -> Value:
    keys, among = map(dense, operands)
    if not among.size:
        return np.zeros(keys.shape, node.dtype)
    distinct, first = np.unique(among, return_index=True)
    near = np.minimum(np.searchsorted(distinct, keys), len(distinct) - 1)
    is_same = (distinct[near] == keys) | ((distinct[near] != distinct[near]) & (keys != keys))
    return np.where(is_same, first[near], len(among)).astype(node.dtype)


@means(Taken)
def _(node: Taken, operands: Sequence[Value]) -> Value:
    values, places = map(dense, operands)
    return taken([Dense(values), Dense(places)], node.fill).values


@lowers(Matches)
def _(node: Matches, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that find keys, each where they are, in the table of its worker."""
    layout = writer.registers[node.keys].layout
    if layout.grid.num_blocks == 1:
        layout = default_layout(node, writer.bytes_of(node.keys), workers)
    for block in writer.each_block(node, layout, SEARCH, "by key"):
        keys = writer.read(block, node.keys, block.region, block.owner)
        block.do(Run(found_in_table), keys, block.read(_table(node, writer, block.owner)))
        block.take(2 * 8 * (block.region[0][1] - block.region[0][0]))


def _table(node: Matches, writer: PlanWriter, owner: int) -> Slot:
    name = ("table of keys", node.among, owner)
    if (found := writer.found(name)) is not None:
        return found
    task, length = TaskWriter(), node.among.shape[0]
    whole: Region = ((0, length),)
    task.do(Run(table_of_keys), task.read(writer.block(node.among, whole, owner)))
    task.take(8 * length)
    return writer.add(task, owner, SEARCH, 8 * (_HEADER + 2 * _num_slots(length)), node, name)


@lowers(Taken)
def _(node: Taken, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that take elements: each worker has the whole array once."""
    whole: Region = ((0, node.operand.shape[0]),)
    for block in writer.each_block(node, writer.registers[node.places].layout, GATHER, "by row"):
        operand = block.read(writer.block(node.operand, whole, block.owner))
        block.do(
            Run(taken, (node.fill,)), operand, writer.read(block, node.places, block.region, block.owner)
        )
        block.take(8 * (block.region[0][1] - block.region[0][0]))


def taken(values: Sequence[Dense], fill: int) -> Dense:
    """Return the elements of the first array at places; where these are negative NaN, or ``fill``."""
    array: Any = values[0].values
    places: Any = values[1].values
    if not array.size:
        found = np.empty(places.shape, array.dtype)
        found[...] = np.nan if array.dtype.kind in "fc" else fill
        return Dense(found)
    found = np.take(array, places, mode="clip")
    if (is_none := places < 0).any():
        found[is_none] = np.nan if array.dtype.kind in "fc" else fill
    return Dense(found)


# The table of keys: of whole numbers of a narrow range one place for each; else pairs of keys and places,
# found by hash and linear probing from there.


def _num_slots(length: int) -> int:
    return 1 << max(4, (2 * length - 1).bit_length())


def table_of_keys(values: Sequence[Dense]) -> Dense:
    """Return what finds the first place of each key: int64, after a header of four numbers.

    Peak memory: 16 bytes a slot, of which there are two to four for a key.
    """
    keys = _bits(values[0].values)
    low, high = (int(keys.min()), int(keys.max())) if keys.size else (0, 0)
    length = high - low + 1
    if values[0].values.dtype.kind != "f" and length <= max(_FEW, _SPREAD * keys.size):
        table = np.empty(_HEADER + (length + 1) // 2, np.int64)
        table[:_HEADER] = 0, low, length, keys.size
        _fill_places(given(keys), low, table[_HEADER:].view(np.int32)[:length])
        return Dense(table)
    count = _num_slots(keys.size)
    table = np.empty(_HEADER + 2 * count, np.int64)
    table[:_HEADER] = 65 - count.bit_length(), low, count, keys.size
    _fill_slots(given(keys), table[_HEADER:], np.uint64(table[0]))
    return Dense(table)


def found_in_table(values: Sequence[Dense]) -> Dense:
    """Return of each key the place that a table has for it, or the number of the table's keys; int32."""
    keys, table = _bits(values[0].values), values[1].values
    shift, low, length, missing = (int(one) for one in table[:_HEADER])
    found = np.empty(keys.shape, np.int32)
    body = given(table[_HEADER:])
    if shift:
        _find_slots(given(keys), body, np.uint64(shift), missing, found)
    else:
        _find_places(given(keys), low, given(body.view(np.int32)[:length]), missing, found)
    return Dense(found)


def _bits(keys: NumericArray) -> NumericArray:
    # 64 bits that are equal where keys are.
    if keys.dtype.kind != "f":
        wide = keys.astype(np.uint64 if keys.dtype.kind in "bu" else np.int64, copy=False)
        return wide.view(np.int64)
    floats = keys.astype(np.float64) + 0.0  # which makes 0.0 of -0.0
    floats[np.isnan(floats)] = np.nan
    return floats.view(np.int64)


@compiled
def _fill_places(keys: NumericArray, low: int, places: NumericArray) -> None:
    places[:] = keys.size
    for number in range(keys.size - 1, -1, -1):
        places[np.uint64(keys[number] - low)] = number


@compiled
def _find_places(
    keys: NumericArray, low: int, places: NumericArray, missing: int, found: NumericArray
) -> None:
    length = np.uint64(places.size)
    for number in range(keys.size):
        at = np.uint64(keys[number]) - np.uint64(low)
        found[number] = places[at] if at < length else missing


@compiled
def _fill_slots(keys: NumericArray, slots: NumericArray, shift: np.uint64) -> None:
    # A slot is the high bits of a product with 2^64 over the golden ratio, which spreads patterns.
    factor, one = np.uint64(0x9E3779B97F4A7C15), np.uint64(1)
    mask = np.uint64(slots.size // 2 - 1)
    for at in range(slots.size // 2):
        slots[2 * at + 1] = -1
    for number in range(keys.size):
        key = keys[number]
        slot = (np.uint64(key) * factor) >> shift
        while slots[slot + slot + one] >= 0 and slots[slot + slot] != key:
            slot = (slot + one) & mask
        if slots[slot + slot + one] < 0:
            slots[slot + slot] = key
            slots[slot + slot + one] = number


@compiled
def _find_slots(
    keys: NumericArray, slots: NumericArray, shift: np.uint64, missing: int, found: NumericArray
) -> None:
    factor, one = np.uint64(0x9E3779B97F4A7C15), np.uint64(1)
    mask = np.uint64(slots.size // 2 - 1)
    for number in range(keys.size):
        if number + _AHEAD < keys.size:
            later = (np.uint64(keys[number + _AHEAD]) * factor) >> shift
            prefetch(slots, later + later)
        key = keys[number]
        slot = (np.uint64(key) * factor) >> shift
        while slots[slot + slot + one] >= 0 and slots[slot + slot] != key:
            slot = (slot + one) & mask
        place = slots[slot + slot + one]
        found[number] = missing if place < 0 else place

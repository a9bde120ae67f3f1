"""Blocks of another shape from the same elements: transposes, cuts, joins, slices, broadcasts."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from types import EllipsisType
from typing import TypeAlias

import numpy as np

from matnb.blocks.formats import (
    MAX_ENTRIES,
    Block,
    Csr,
    Dense,
    Empty,
    IndexArray,
    NumericArray,
    SparseBlock,
    is_sparse,
    narrow,
    to_numpy,
)
from matnb.blocks.kernels.casting import cast
from matnb.blocks.kernels.patterns import Places, as_csr, settled
from matnb.blocks.kernels.registry import Family
from matnb.blocks.kernels.runs import Filling, moved_to_columns, runs_between
from matnb.errors import ShapeError, TooLargeError, UnsupportedError

SHAPING = Family("kernel")
Part: TypeAlias = tuple[tuple[int, ...], Block]
Key: TypeAlias = tuple[slice | int | None, ...]


def transpose(block: Block, axes: Sequence[int]) -> Block:
    """Return the block with its axes in another order: a copy, contiguous or in row order.

    A sparse block whose axes stay in their order is returned as it is.

    Raises
    ------
    ShapeError
        When ``axes`` does not name every axis once.
    """
    if sorted(axes) != list(range(len(block.shape))):
        raise ShapeError(f"axes {tuple(axes)} of a block of shape {block.shape}: name every axis once")
    return SHAPING.find("transpose", block)(block, tuple(axes))


def cut(block: Block, slices: tuple[slice, ...]) -> Block:
    """Return a rectangle of a block.

    A Dense result is a view. A sparse one of whole rows shares columns and values with the block.

    Parameters
    ----------
    slices
        One an axis, of step 1.

    Raises
    ------
    ShapeError
        When the slices do not fit.
    """
    if len(slices) != len(block.shape) or any(one.step not in (None, 1) for one in slices):
        raise ShapeError(f"cut {slices} of a block of shape {block.shape}: give one slice of step 1 an axis")
    return SHAPING.find("cut", block)(block, slices)


def take(block: Block, key: Key) -> Block:
    """Return what basic indexing with slices of any step, integers and new axes makes of a block.

    Slices of a sparse block stay sparse; with an integer or a new axis the result is Dense. Shares no memory.

    Raises
    ------
    ShapeError
        When the key has more slices and integers than the block has axes, or an integer is out of range.
    """
    named = [one for one in key if one is not None]
    if len(named) > len(block.shape):
        raise ShapeError(f"index of {len(named)} axes for a block of shape {block.shape}")
    for one, length in zip(named, block.shape, strict=False):
        if not isinstance(one, slice) and not -length <= one < length:
            raise ShapeError(f"index {one} on an axis of length {length}")
    return SHAPING.find("take", block)(block, key)


def join(parts: Sequence[Part], shape: tuple[int, ...], dtype: np.dtype, sparse: bool) -> Block:
    """Put rectangles together to one block.

    Parameters
    ----------
    parts
        Where in the result each rectangle begins, and the rectangle. They tile the result; what no part
        covers is absent, or 0 in a Dense result.
    shape, dtype, sparse
        Of the result. A single part that is all of it already is returned as it is.

    Raises
    ------
    ShapeError
        When a part reaches outside the result.
    TooLargeError
        When a sparse result stores more entries than a block can.
    UnsupportedError
        When a Dense part is to be part of a sparse result.
    """
    for offset, part in parts:
        starts_outside = len(offset) != len(shape) or len(part.shape) != len(shape)
        if starts_outside or any(
            a < 0 or a + length > total for a, length, total in zip(offset, part.shape, shape, strict=True)
        ):
            raise ShapeError(f"a part of shape {part.shape} at {offset} reaches outside the shape {shape}")
    if len(parts) == 1:
        only = parts[0][1]
        if only.shape == shape and only.dtype == dtype and is_sparse(only) == sparse:
            return only
    if sparse:
        return _join_sparse(parts, (shape[0], shape[1]), dtype)
    is_covered = sum(prod(part.shape) for _, part in parts) == prod(shape)
    values = np.empty(shape, dtype) if is_covered else np.zeros(shape, dtype)
    for offset, part in parts:
        place = tuple(slice(a, a + length) for a, length in zip(offset, part.shape, strict=True))
        values[place] = cast(to_numpy(part), dtype)
    return Dense(values)


def broadcast(block: Block, shape: tuple[int, ...]) -> Dense:
    """Return the block stretched to a shape by NumPy's rules, in memory of its own.

    Raises
    ------
    ShapeError
        When it cannot be.
    """
    values = to_numpy(block)
    try:
        return Dense(np.broadcast_to(values, shape).copy())
    except ValueError:
        raise ShapeError(f"shape {block.shape} does not stretch to {shape}") from None


def densify(block: Block) -> Dense:
    """Return the block with every element stored: itself if it is Dense."""
    return block if isinstance(block, Dense) else Dense(to_numpy(block))


@SHAPING.register("transpose", Dense)
def _transpose_dense(block: Dense, axes: tuple[int, ...]) -> Block:
    return Dense(block.values.transpose(axes).copy(order="C"))


@SHAPING.register("transpose", Empty)
def _transpose_empty(block: Empty, axes: tuple[int, int]) -> Block:
    return block if axes == (0, 1) else Empty(block.shape[::-1], block.dtype)


@SHAPING.register("transpose", Csr)
def _transpose_csr(block: Csr, axes: tuple[int, int]) -> Block:
    if axes == (0, 1):
        return block
    pointers, columns, values = moved_to_columns(block, block.values)
    return Csr(block.shape[::-1], pointers, columns, None if block.values is None else values, block.dtype)


@SHAPING.register("cut", Dense)
def _cut_dense(block: Dense, slices: tuple[slice, ...]) -> Block:
    key: tuple[slice | EllipsisType, ...] = (*slices, ...)
    return Dense(block.values[key])  # the ellipsis keeps a block of no axes an array


@SHAPING.register("cut", Empty)
def _cut_empty(block: Empty, slices: tuple[slice, slice]) -> Block:
    rows, columns = (range(length)[one] for length, one in zip(block.shape, slices, strict=True))
    return Empty((len(rows), len(columns)), block.dtype)


@SHAPING.register("cut", Csr)
def _cut_csr(block: Csr, slices: tuple[slice, slice]) -> Block:
    rows = range(block.shape[0])[slices[0]]
    columns = range(block.shape[1])[slices[1]]
    return settled(_keep_columns(_cut_rows(block, rows), columns))


@SHAPING.register("take", Dense)
def _take_dense(block: Dense, key: Key) -> Block:
    return Dense(block.values[(*key, ...)].copy(order="C"))


@SHAPING.register("take", Empty)
@SHAPING.register("take", Csr)
def _take_sparse(block: SparseBlock, key: Key) -> Block:
    ranges: list[range] = []
    rest: list[slice | int | None] = []
    lengths = iter(block.shape)
    for one in key:
        if one is None:
            rest.append(one)
            continue
        length = next(lengths)
        if isinstance(one, slice):
            ranges.append(range(length)[one])
            rest.append(slice(None))
        else:  # one row or column, whose axis goes when the rest has become dense
            ranges.append(range(length)[one : one + 1 or None])
            rest.append(0)
    rows, columns = [*ranges, *(range(length) for length in lengths)]
    taken = _take_ranges(block, rows, columns)
    if all(isinstance(one, slice) for one in rest):
        return taken
    return Dense(to_numpy(taken)[(*rest, ...)].copy())


def _take_ranges(block: SparseBlock, rows: range, columns: range) -> SparseBlock:
    if isinstance(block, Empty):
        return Empty((len(rows), len(columns)), block.dtype)
    ascending = columns if columns.step > 0 else columns[::-1]
    taken = _keep_columns(_gather_rows(block, rows), ascending)
    if columns.step < 0:
        places = _run_places(taken.pointers[1:] - 1, np.diff(taken.pointers), -1)
        width = np.int32(len(columns) - 1)
        taken = Csr(
            taken.shape, taken.pointers, width - taken.columns[places], _picked(taken, places), taken.dtype
        )
    return settled(taken)


def _cut_rows(block: Csr, rows: range) -> Csr:
    first, last = block.pointers[rows.start], block.pointers[max(rows.start, rows.stop)]
    pointers = block.pointers[rows.start : rows.start + len(rows) + 1] - first
    values = None if block.values is None else block.values[first:last]
    return Csr((len(rows), block.shape[1]), pointers, block.columns[first:last], values, block.dtype)


def _gather_rows(block: Csr, rows: range) -> Csr:
    wanted = np.arange(rows.start, rows.stop, rows.step)
    return _runs(block, block.pointers[wanted], np.diff(block.pointers)[wanted], range(block.shape[1]))


def _runs(block: Csr, starts: IndexArray, counts: IndexArray, columns: range) -> Csr:
    # A row of each run of entries, all within the columns.
    pointers = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=pointers[1:])
    shape = (len(counts), len(columns))
    filling = Filling(shape, pointers, block.dtype, pattern_only=block.values is None)
    filling.add(block, starts, counts, 0, -columns.start)
    return filling.block


def _run_places(starts: IndexArray, counts: IndexArray, step: int) -> Places:
    # Runs of consecutive places, each from its start, upwards or downwards, one after the other.
    within = np.arange(int(counts.sum(dtype=np.int64))) - np.repeat(
        np.cumsum(counts, dtype=np.int64) - counts, counts
    )
    return np.repeat(starts.astype(np.int64), counts) + step * within


def _keep_columns(block: Csr, columns: range) -> Csr:
    if columns == range(block.shape[1]):
        return block
    if columns.step == 1:
        return _runs(block, *runs_between(block, columns.start, max(columns.start, columns.stop)), columns)
    kept = (block.columns >= columns.start) & (block.columns < columns.stop)
    kept &= (block.columns - columns.start) % columns.step == 0
    before = np.zeros(block.nnz + 1, np.int32)
    np.cumsum(kept, out=before[1:])
    places = np.flatnonzero(kept)
    renumbered = (block.columns[places] - np.int32(columns.start)) // np.int32(columns.step)
    shape = (block.shape[0], len(columns))
    return Csr(shape, before[block.pointers], renumbered, _picked(block, places), block.dtype)


def _picked(block: Csr, places: Places) -> NumericArray | None:
    return None if block.values is None else block.values[places]


def _join_sparse(parts: Sequence[Part], shape: tuple[int, int], dtype: np.dtype) -> Block:
    filled: list[tuple[int, int, Csr]] = []
    for (row, column), part in ((offset, part) for offset, part in parts if part.nnz):
        if isinstance(part, Dense):
            raise UnsupportedError("no join of (Dense, ...) to a sparse block; known: Csr and Empty parts")
        filled.append((row, column, as_csr(part)))
    filled.sort(key=lambda one: one[1])  # so that the columns of each row come in order
    counts = np.zeros(shape[0] + 1, np.int64)
    for row, _, part in filled:
        counts[row + 1 : row + 1 + part.shape[0]] += np.diff(part.pointers)
    pointers = np.cumsum(counts)
    total = int(pointers[-1])
    if total > MAX_ENTRIES:
        raise TooLargeError(f"a block of {total:,} entries: cut the array into more blocks")
    pattern_only = all(part.values is None for _, _, part in filled)
    filling = Filling(shape, narrow(pointers), dtype, pattern_only)
    for row, column, part in filled:
        values = None if part.values is None else cast(part.values, dtype)
        cast_part = Csr(part.shape, part.pointers, part.columns, values, dtype)
        filling.add(cast_part, part.pointers[:-1], np.diff(part.pointers), row, column)
    return settled(filling.block)

"""Blocks of another shape: transposes, cuts, joins, slices, broadcasts, margins, elements in row order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    cast,
    is_sparse,
    narrow,
    to_numpy,
)
from matnb.blocks.kernels.patterns import BlockFiller, Places, as_csr, moved_to_columns, runs_between, settled
from matnb.blocks.kernels.registry import Family
from matnb.errors import ShapeError, TooLargeError, UnsupportedError

SHAPING = Family("kernel")
Part: TypeAlias = tuple[tuple[int, ...], Block]
Key: TypeAlias = tuple[slice | int | None, ...]
Memory: TypeAlias = Callable[[tuple[int, ...], np.dtype], NumericArray]  # with any elements


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


def join(
    parts: Sequence[Part],
    shape: tuple[int, ...],
    dtype: np.dtype,
    sparse: bool,
    memory: Memory = np.empty,
) -> Block:
    """Put rectangles together to one block.

    Parameters
    ----------
    parts
        Where in the result each rectangle begins, and the rectangle. They tile the result; what no part
        covers is absent, or 0 in a Dense result.
    shape, dtype, sparse
        Of the result. A single part that is all of it already is returned as it is.
    memory
        Where a Dense result is made; asked at most once.

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
    values = memory(shape, dtype)
    if not is_covered:
        values.fill(0)
    for offset, part in parts:
        place = tuple(slice(a, a + length) for a, length in zip(offset, part.shape, strict=True))
        values[place] = cast(to_numpy(part), dtype)
    return Dense(values)


_ROUNDED_BYTES = 128  # at most, of which memory is larger than an array in it that begins with a cache line


def adjoining(parts: Sequence[Part], shape: tuple[int, ...], dtype: np.dtype) -> NumericArray | None:
    """Return rows put together as a view, where they lie one after the other and are all of an array.

    Parameters
    ----------
    parts, shape, dtype
        Dense ones, as for :func:`join`.

    Returns
    -------
    numpy.ndarray or None
        None where only a copy can be what is wanted.
    """
    arrays = [part.values for _, part in parts if isinstance(part, Dense)]
    size = prod(shape) * dtype.itemsize
    if len(arrays) < len(parts) or not (arrays and shape and size):
        return None
    root = root_of(arrays[0])
    if not root.flags.c_contiguous or root.nbytes - size > _ROUNDED_BYTES:
        return None  # a view would keep what is not its own
    begin = arrays[0].ctypes.data
    at = begin
    for (offset, _), array in zip(parts, arrays, strict=True):
        is_next = array.ctypes.data == at and offset[0] * (size // shape[0]) == at - begin
        are_rows = array.shape[1:] == shape[1:] and array.dtype == dtype and array.flags.c_contiguous
        if not is_next or not are_rows or root_of(array) is not root:
            return None
        at += array.nbytes
    if at != begin + size:
        return None
    start = begin - root.ctypes.data
    whole = root.reshape(-1).view(np.uint8)[start : start + size].view(dtype).reshape(shape)
    whole.flags.writeable = False
    return whole


def root_of(array: NumericArray) -> NumericArray:
    """Return the array whose memory another one looks at."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def broadcast(block: Block, shape: tuple[int, ...], memory: Memory = np.empty) -> Dense:
    """Return the block stretched to a shape by NumPy's rules, in memory that is asked for once.

    Raises
    ------
    ShapeError
        When it cannot be.
    """
    values = to_numpy(block)
    try:
        stretched = np.broadcast_to(values, shape)
    except ValueError:
        raise ShapeError(f"shape {block.shape} does not stretch to {shape}") from None
    out = memory(shape, values.dtype)
    np.copyto(out, stretched)
    return Dense(out)


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
    filling = BlockFiller(shape, pointers, block.dtype, pattern_only=block.values is None)
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
    filling = BlockFiller(shape, narrow(pointers), dtype, pattern_only)
    for row, column, part in filled:
        values = None if part.values is None else cast(part.values, dtype)
        cast_part = Csr(part.shape, part.pointers, part.columns, values, dtype)
        filling.add(cast_part, part.pointers[:-1], np.diff(part.pointers), row, column)
    return settled(filling.block)


Pairs = tuple[tuple[int, int], ...]
Constants = tuple[tuple[bytes, bytes], ...]


def pad(values: Sequence[Block], widths: Pairs, constants: Constants) -> Block:
    """Return a block with its edges repeated around it, or constants; a sparse one with what is absent.

    Parameters
    ----------
    widths
        For each axis how many are put before and behind.
    constants
        As many, each the bytes of an element; none for the edges.
    """
    (block,) = values
    if isinstance(block, Dense):
        return Dense(padded_values(block.values, widths, constants))
    (top, bottom), (left, right) = widths
    shape = (block.shape[0] + top + bottom, block.shape[1] + left + right)
    if isinstance(block, Empty):
        return Empty(shape, block.dtype)
    return Csr(
        shape,
        np.pad(block.pointers, (top, bottom), mode="edge"),
        narrow(block.columns.astype(np.int64) + left) if left else block.columns,
        block.values,
        block.dtype,
    )


def padded_values(values: NumericArray, widths: Pairs, constants: Constants) -> NumericArray:
    """Return elements with their edges repeated around them, or with constants there."""
    if not constants:
        return np.pad(values, widths, mode="edge")
    numbers = [[np.frombuffer(one, values.dtype)[0] for one in pair] for pair in constants]
    return np.pad(values, widths, constant_values=numbers)


def flat_part(values: Sequence[Block], start: int, stop: int) -> Block:
    """Return a range of the elements of a block, last axis fastest: a view where they lie so."""
    (block,) = values
    if isinstance(block, Dense):
        return Dense(block.values.reshape(-1)[start:stop])
    flat, entries = _entries(block, start, stop)
    found = np.zeros(stop - start, block.dtype)
    found[flat - start] = 1 if entries is None else entries
    return Dense(found)


def flat_join(values: Sequence[Block], shape: tuple[int, ...]) -> Block:
    """Return the elements of blocks one after the other, in a shape; a view of a single one."""
    parts = [to_numpy(block).reshape(-1) for block in values]
    return Dense((parts[0] if len(parts) == 1 else np.concatenate(parts)).reshape(shape))


def entries_part(
    values: Sequence[Block], origin: int, start: int, stop: int, shape: tuple[int, int]
) -> Block:
    """Return a sparse block of which one part comes from a range of another block's elements.

    Parameters
    ----------
    origin
        Which element of the new block is the first of the old one, negative before it.
    start, stop
        The range, in the old block.
    shape
        Of the new block.
    """
    (block,) = values
    flat, entries = _entries(block, start, stop)  # type: ignore[arg-type]  # sparse, as its array is
    rows, columns = np.divmod(flat + origin, shape[1])
    pointers = np.zeros(shape[0] + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=shape[0]), out=pointers[1:])
    return settled(Csr(shape, narrow(pointers), narrow(columns), entries, block.dtype))


def entries_join(values: Sequence[Block], shape: tuple[int, int]) -> Block:
    """Return sparse blocks of one shape as one, each with elements after those of the one before it."""
    parts = [as_csr(block) for block in values if block.nnz]
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return Empty(shape, values[0].dtype)
    if sum(part.nnz for part in parts) > MAX_ENTRIES:
        raise TooLargeError("a sparse block with too many entries: cut the array into more blocks")
    pointers = narrow(np.sum(np.stack([part.pointers for part in parts]), axis=0, dtype=np.int64))
    columns = np.concatenate([part.columns for part in parts])
    only_ones = all(part.values is None for part in parts)
    entries = None if only_ones else np.concatenate([part.entries for part in parts])
    return Csr(shape, pointers, columns, entries, parts[0].dtype)


def _entries(block: Csr | Empty, start: int, stop: int) -> tuple[Places, NumericArray | None]:
    # Places and values of the entries among a range of a block's elements.
    block = as_csr(block)
    width = max(1, block.shape[1])
    first, last = start // width, -(-stop // width)
    begin, end = block.pointers[first], block.pointers[last]
    rows = np.repeat(np.arange(first, last, dtype=np.int64), np.diff(block.pointers[first : last + 1]))
    flat = rows * width + block.columns[begin:end]
    kept = slice(*np.searchsorted(flat, (start, stop)))
    return flat[kept], None if block.values is None else block.values[begin:end][kept]


def repeat(values: Sequence[Block], count: int, axis: int, skipped: int, length: int) -> Block:
    """Return a block with each slice along an axis so many times, or so much of that after some slices."""
    (block,) = values
    if isinstance(block, Dense) and length == block.shape[axis] * count:
        return Dense(np.repeat(block.values, count, axis))
    counts = np.full(block.shape[axis], count)
    counts[0] -= skipped
    counts[-1] -= counts.sum() - length
    return repeat_each([block, Dense(counts)], axis)


def repeat_each(values: Sequence[Block], axis: int) -> Block:
    """Return a block with each slice along an axis as often as the second block says."""
    block, counts = values[0], to_numpy(values[1]).astype(np.int64, copy=False)
    if isinstance(block, Dense):
        return Dense(np.repeat(block.values, counts, axis))
    total = int(counts.sum())
    shape = (total, block.shape[1]) if axis == 0 else (block.shape[0], total)
    block = as_csr(block)
    if axis == 0:
        rows = np.repeat(np.arange(counts.size), counts)
        times = np.diff(block.pointers).astype(np.int64)[rows]
        ends = np.cumsum(times)
        places = _consecutive(block.pointers[rows].astype(np.int64), times)
        columns: Places = block.columns[places].astype(np.int64)
    else:
        times = counts[block.columns]
        ends = np.concatenate(([0], np.cumsum(times)))[block.pointers[1:]]
        places = np.repeat(np.arange(block.nnz), times)
        columns = _consecutive((np.cumsum(counts) - counts)[block.columns], times)
    if places.size > MAX_ENTRIES:
        raise TooLargeError("a sparse block with too many entries: cut the array into more blocks")
    pointers = narrow(np.concatenate(([0], ends)))
    entries = None if block.values is None else block.values[places]
    return settled(Csr(shape, pointers, narrow(columns), entries, block.dtype))


def _consecutive(starts: Places, lengths: Places) -> Places:
    # Consecutive numbers from each start on, so many of them.
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum())


def counts_of(values: Sequence[Block]) -> Block:
    """Return the sum of counts, or -1 where one is negative."""
    counts = to_numpy(values[0])
    total = -1 if np.less(counts, 0).any() else counts.sum(dtype=np.int64)
    return Dense(np.array([total], np.int64))

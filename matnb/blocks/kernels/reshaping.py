"""Blocks whose elements, in row-major order, are put in other shapes, or repeated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matnb.blocks.formats import MAX_ENTRIES, Block, Csr, Dense, Empty, NumericArray, narrow, to_numpy
from matnb.blocks.kernels.patterns import Places, as_csr, settled
from matnb.errors import TooLargeError


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
    parts = [as_csr(block) for block in values if block.nnz]  # type: ignore[arg-type]  # sparse
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
        places = _runs(block.pointers[rows].astype(np.int64), times)
        columns: Places = block.columns[places].astype(np.int64)
    else:
        times = counts[block.columns]
        ends = np.concatenate(([0], np.cumsum(times)))[block.pointers[1:]]
        places = np.repeat(np.arange(block.nnz), times)
        columns = _runs((np.cumsum(counts) - counts)[block.columns], times)
    if places.size > MAX_ENTRIES:
        raise TooLargeError("a sparse block with too many entries: cut the array into more blocks")
    pointers = narrow(np.concatenate(([0], ends)))
    entries = None if block.values is None else block.values[places]
    return settled(Csr(shape, pointers, narrow(columns), entries, block.dtype))


def _runs(starts: Places, lengths: Places) -> Places:
    # Consecutive numbers from each start on, so many of them.
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum())


def counts_of(values: Sequence[Block]) -> Block:
    """Return the sum of counts, or -1 where one is negative."""
    counts = to_numpy(values[0])
    total = -1 if np.less(counts, 0).any() else counts.sum(dtype=np.int64)
    return Dense(np.array([total], np.int64))

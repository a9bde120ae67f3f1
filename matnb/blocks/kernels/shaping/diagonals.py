"""Blocks of diagonals and triangles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matnb.blocks.formats import Block, Csr, Dense, Empty, IndexArray, narrow, to_numpy
from matnb.blocks.kernels.patterns import as_csr, rows_of
from matnb.blocks.kernels.shaping.selecting import entries_kept


def diagonal(values: Sequence[Block], offset: int, rows: int, columns: int, length: int) -> Block:
    """Return elements of a diagonal of a block, as the last axis, in memory of their own.

    Parameters
    ----------
    offset
        How far right of the block's main diagonal it is.
    rows, columns
        The axes along which it goes.
    length
        How many elements are wanted.
    """
    (block,) = values
    if not isinstance(block, Dense):
        block = as_csr(block)
        found = np.zeros(length, block.dtype)
        row = rows_of(block)
        column, first = block.columns, max(0, -offset if rows == 0 else offset)
        places = np.flatnonzero(column - row == (offset if rows == 0 else -offset))
        found[row[places] - first] = 1 if block.values is None else block.values[places]
        return Dense(found)
    taken = block.values.diagonal(offset, rows, columns)
    return Dense(np.array(taken, order="C"))


def diagonal_matrix(
    values: Sequence[Block], row: int, column: int, shape: tuple[int, int], is_sparse: bool
) -> Block:
    """Return a block of a matrix with a vector's elements on a diagonal, from a row and column on.

    A sparse one stores no zeros, as those of SciPy's ``diags_array(v).tocsr()``.
    """
    vector = to_numpy(values[0])
    if not is_sparse:
        made = np.zeros(shape, vector.dtype)
        places = np.arange(vector.size)
        made[places + row, places + column] = vector
        return Dense(made)
    if not vector.size:
        return Empty(shape, vector.dtype)
    pointers: IndexArray = np.clip(np.arange(shape[0] + 1) - row, 0, vector.size).astype(np.int32)
    columns = narrow(np.arange(column, column + vector.size))
    return entries_kept(Csr(shape, pointers, columns, vector.copy(), vector.dtype), vector != 0)


def triangle(values: Sequence[Block], offset: int, upper: bool) -> Block:
    """Return a block with zeros below a diagonal of the last two axes, or above it."""
    (block,) = values
    if isinstance(block, Dense):
        return _dense_triangle(block, offset, upper)
    if isinstance(block, Empty):
        return block
    distance = block.columns.astype(np.int64) - rows_of(block)
    kept = distance >= offset if upper else distance <= offset
    return entries_kept(block, kept)


def _dense_triangle(block: Dense, offset: int, upper: bool) -> Dense:
    # Row i keeps the columns from i + offset on, or those up to there.
    values = block.values
    num_rows, num_columns = values.shape[-2:]
    if upper:
        whole, ends = slice(0, max(0, 1 - offset)), num_columns - offset
    else:
        whole, ends = slice(min(num_rows, max(0, num_columns - 1 - offset)), num_rows), -offset
    if len(range(num_rows)[whole]) == num_rows:
        return block
    made = np.zeros(values.shape, values.dtype)
    made[..., whole, :] = values[..., whole, :]
    partly = range(whole.stop, min(num_rows, ends)) if upper else range(max(0, ends), whole.start)
    for row in partly:
        kept = slice(row + offset, None) if upper else slice(0, row + offset + 1)
        made[..., row, kept] = values[..., row, kept]
    return Dense(made)

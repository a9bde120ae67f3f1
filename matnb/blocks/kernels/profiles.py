"""Where the entries of a block are, in a few numbers; and blocks that keep no others alive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Block, Csr, Dense

_MOST_ALIVE = 4 / 3  # of its own bytes, that a block may keep alive


def entry_profile(blocks: Sequence[Block], num_parts: int) -> Dense:
    """Return places of the rows with the entries before each, so that between two places is an equal share.

    A row that holds a share or more is between two places, so that it is known exactly.

    Parameters
    ----------
    blocks
        A single one, of two axes; the rows of a Dense block count alike.
    num_parts
        Shares.

    Returns
    -------
    Dense
        int64, (2, n): the places from 0 to the number of rows, and the entries before them. n is at most
        twice ``num_parts``.
    """
    (block,) = blocks
    num_rows = block.shape[0]
    if not isinstance(block, Csr) or not block.nnz:
        return Dense(np.array([[0, num_rows], [0, block.nnz]], np.int64))
    pointers = block.pointers
    shares = np.arange(1, num_parts) * (block.nnz / num_parts)
    ends = np.searchsorted(pointers, shares, side="left")
    places = np.unique(np.concatenate(([0], ends - 1, ends, [num_rows]))).clip(0, num_rows)
    return Dense(np.stack((places, pointers[places].astype(np.int64))))


def entry_counts(blocks: Sequence[Block], row_edges: tuple[int, ...], column_edges: tuple[int, ...]) -> Dense:
    """Return how many entries of a block are between edges of its rows and of its columns.

    Parameters
    ----------
    blocks
        A single one, of two axes.
    row_edges, column_edges
        Increasing, from 0 to the length of the axis.

    Returns
    -------
    Dense
        int64, a row and a column less than there are edges.
    """
    (block,) = blocks
    counts = np.zeros((len(row_edges) - 1, len(column_edges) - 1), np.int64)
    if isinstance(block, Csr):
        columns = np.searchsorted(column_edges, block.columns, side="right") - 1
        for place, (start, stop) in enumerate(pairwise(row_edges)):
            own = columns[block.pointers[start] : block.pointers[stop]]
            counts[place] = np.bincount(own, minlength=counts.shape[1])
    return Dense(counts)


def on_its_own(blocks: Sequence[Block]) -> Block:
    """Return the single block, or a copy of one that is but a part of what it keeps alive.

    A block of some rows shares its memory with the block they were cut from, which cannot go before it.
    """
    (block,) = blocks
    if isinstance(block, Dense):
        values = block.values
        return Dense(values.copy(order="C")) if _keeps_others((values,)) else block
    if not isinstance(block, Csr):
        return block
    arrays = (block.columns,) if block.values is None else (block.columns, block.values)
    if not _keeps_others(arrays):
        return block
    own = None if block.values is None else block.values.copy()
    return replace(block, columns=block.columns.copy(), values=own)


def _keeps_others(arrays: tuple[npt.NDArray[np.generic], ...]) -> bool:
    alive = sum(_owner_bytes(array) for array in arrays)
    return alive > _MOST_ALIVE * sum(array.nbytes for array in arrays)


def _owner_bytes(array: npt.NDArray[np.generic]) -> int:
    # Of the memory that an array lies in.
    owner: object = array
    while isinstance(owner, np.ndarray) and owner.base is not None:
        array, owner = owner, owner.base
    if isinstance(owner, np.ndarray):
        return owner.nbytes
    return memoryview(owner).nbytes if isinstance(owner, bytes | bytearray | memoryview) else array.nbytes

"""What booleans pick of blocks, how many, where, and values written there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Block, Csr, Dense, Empty, NumericArray, csr_block, to_numpy, to_scipy
from matnb.blocks.kernels.compiled import compiled, given
from matnb.blocks.kernels.indexing import entries_at, replaced

Places: TypeAlias = npt.NDArray[np.int64]
_WORDS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
_FEWEST = 1024  # of fewer elements NumPy picks as soon


def count_true(values: Sequence[Block]) -> Dense:
    """Return how many elements of a block are not zero, as an array of one element."""
    (block,) = values
    match block:
        case Empty():
            count = 0
        case Csr():
            count = block.nnz if block.values is None else int(np.count_nonzero(block.values))
        case Dense():
            count = int(np.count_nonzero(block.values))
    return Dense(np.array([count], np.int64))


def compress(values: Sequence[Block]) -> Block:
    """Return the elements, or rows, of a block where booleans for its first axes are true.

    Parameters
    ----------
    values
        The block and the booleans.

    Returns
    -------
    Block
        Rows of a sparse block are sparse, all else is Dense.
    """
    block, mask = values
    chosen = to_numpy(mask)
    if isinstance(block, Dense):
        return Dense(_picked(block.values, chosen))
    if chosen.ndim == 1:
        return rows_of(block, np.flatnonzero(chosen))
    rows, columns = true_places_of(mask)
    return Dense(entries_at(block, rows, columns))


def expand(values: Sequence[Block]) -> Block:
    """Return a block with new elements, or rows, where booleans for its first axes are true.

    Parameters
    ----------
    values
        The block, the booleans, and what is written, in row order.
    """
    block, mask, new = values
    chosen = to_numpy(mask)
    if isinstance(block, Dense):
        written = block.values.copy(order="C")
        written[chosen] = to_numpy(new)
        return Dense(written)
    rows, columns = np.nonzero(chosen if chosen.ndim == 2 else np.broadcast_to(chosen[:, None], block.shape))
    return replaced(block, rows, columns, None, (rows, columns, to_numpy(new).reshape(-1)))


def true_places(values: Sequence[Block], axis: int, start: int) -> Dense:
    """Return where elements of a block are not zero, in row order: their places on an axis.

    Parameters
    ----------
    start
        Where the block begins on the first axis.
    """
    places = true_places_of(values[0])[axis]
    return Dense(places + start if axis == 0 and start else places)


def true_places_of(block: Block) -> tuple[Places, ...]:
    """Return where elements of a block are not zero: places on each axis, in row order."""
    if isinstance(block, Dense):
        return np.nonzero(block.values)
    matrix = to_scipy(block)
    rows = np.repeat(np.arange(block.shape[0]), np.diff(matrix.indptr))
    kept = np.flatnonzero(matrix.data)
    return rows[kept], matrix.indices[kept].astype(np.int64)


def rows_of(block: Csr | Empty, rows: Places) -> Block:
    """Return rows of a sparse block, in the order given."""
    if isinstance(block, Empty) or not len(rows):
        return Empty((len(rows), block.shape[1]), block.dtype)
    return csr_block(to_scipy(block)[rows])


def _picked(values: NumericArray, mask: NumericArray) -> NumericArray:
    # NumPy asks with a branch, and which elements are picked is mostly past predicting.
    word = _WORDS.get(values.dtype.itemsize)
    if word is None or values.shape != mask.shape or values.size < _FEWEST:
        return np.ascontiguousarray(values[mask])
    count = int(np.count_nonzero(mask))
    out = np.empty(count + 1, word)  # the last is written over and over where nothing is picked
    _keep(given(mask).reshape(-1).view(np.uint8), given(values).reshape(-1).view(word), out)
    return out[:count].view(values.dtype)


@compiled
def _keep(mask: NumericArray, values: NumericArray, out: NumericArray) -> None:
    place = np.uint64(0)
    for i in range(np.uint64(values.size)):
        out[place] = values[i]
        place += np.uint64(mask[i])

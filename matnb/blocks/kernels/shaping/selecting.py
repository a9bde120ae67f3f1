"""What booleans pick of blocks, how many, where, values written there; and entries that are large enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import (
    Block,
    Csr,
    Dense,
    Empty,
    IndexArray,
    NumericArray,
    SparseBlock,
    csr_block,
    to_numpy,
    to_scipy,
)
from matnb.blocks.kernels.calls import Function, truths_of
from matnb.blocks.kernels.compiled import UnsignedArray, compiled, given, is_worth_compiling, unsigned
from matnb.blocks.kernels.patterns import rows_of as entry_rows
from matnb.blocks.kernels.patterns import settled, values_at
from matnb.blocks.kernels.shaping.indexing import entries_at, replaced

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


def prune(values: Sequence[Block], threshold: float) -> Block:
    """Return a sparse block without the entries that are not larger than a threshold; NaN stay.

    Of 0 it is without stored zeros, -0.0 among them.

    Returns
    -------
    Block
        The block itself where all entries stay. Peak memory: the result, a byte for each entry of the block,
        and where the threshold is not 0 the size of each.
    """
    (block,) = values
    if not isinstance(block, Csr):
        return block
    if block.values is None:
        return block if threshold < 1 else Empty(block.shape, block.dtype)
    with np.errstate(all="ignore"):
        kept = _is_large(block.values, threshold)
    return entries_kept(block, kept)


def _is_large(values: NumericArray, threshold: float) -> NumericArray:
    large: NumericArray  # or first, what is small
    if threshold == 0:
        large = np.not_equal(values, 0)
        return large
    if values.dtype.kind == "c":
        large = np.less_equal(np.abs(values), threshold)
    else:  # of whole numbers the least has no absolute value
        large = np.less_equal(values, threshold)
        np.logical_and(large, np.greater_equal(values, -threshold), out=large)
    return np.logical_not(large, out=large)


def select(values: Sequence[Block]) -> Block:
    """Return a sparse block without the entries where booleans of its shape, sparse or Dense, are not true.

    Returns
    -------
    Block
        The block itself where all entries stay. Peak memory: the result, and a byte for each entry; for Dense
        booleans the places of the entries.
    """
    block, mask = values
    if not isinstance(block, Csr):
        return block
    if isinstance(mask, Dense):
        kept = mask.values[entry_rows(block), block.columns]
    else:
        kept = values_at(block, mask)
    return entries_kept(block, kept)


def select_by(values: Sequence[Block], function: Function, start: tuple[int, int]) -> Block:
    """Return a sparse block without the entries where a user's function is not true.

    Parameters
    ----------
    function
        Called with rows and columns in the whole array, int64, and values: copies, all of the block at once.
    start
        The first row and column of the block in the array.

    Raises
    ------
    KernelError, ShapeError, DTypeError
        Where the function raises, or gives no boolean for each entry.
    """
    (block,) = values
    if not isinstance(block, Csr):
        return block
    rows, columns = (one.astype(np.int64) for one in (entry_rows(block), block.columns))
    rows += start[0]
    columns += start[1]
    own = block.entries if block.values is None else block.values.copy()
    return entries_kept(block, truths_of(function, (rows, columns, own)))


def entries_kept(block: Csr, kept: NumericArray) -> SparseBlock:
    """Return a sparse block with those of its entries where booleans, one for each, are true."""
    if kept.all():
        return block
    pointers = np.zeros(block.shape[0] + 1, np.int32)
    _count_rows(unsigned(block.pointers), given(kept).view(np.uint8), pointers)
    columns: IndexArray = _picked(block.columns, kept)  # type: ignore[assignment]  # of their dtype
    entries = None if block.values is None else _picked(block.values, kept)
    return settled(Csr(block.shape, pointers, columns, entries, block.dtype))


@compiled
def _count_rows(pointers: UnsignedArray, kept: NumericArray, out: NumericArray) -> None:
    count = np.int32(0)
    for row in range(np.uint64(pointers.size - 1)):
        for place in range(pointers[row], pointers[row + np.uint64(1)]):
            count += np.int32(kept[place])
        out[row + np.uint64(1)] = count


def true_places(values: Sequence[Block], axis: int, start: int) -> Dense:
    """Return where elements of a block are not zero, in row order: their places on an axis.

    Parameters
    ----------
    start
        Where the block begins on the first axis.
    """
    places = true_places_of(values[0])[axis]
    return Dense(places + start if axis == 0 and start else places)


def stored_entries(values: Sequence[Block], wanted: str) -> Dense:
    """Return the "values" of a sparse block's entries, in the block's own memory, or their "columns"."""
    (block,) = values
    if not isinstance(block, Csr):
        return Dense(np.empty(0, block.dtype if wanted == "values" else np.int64))
    return Dense(block.entries if wanted == "values" else unsigned(block.columns).astype(np.int64))


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
    kept = given(mask).reshape(-1).view(np.uint8), given(values).reshape(-1).view(word), out
    if not is_worth_compiling(_keep, values.size, *kept):
        return np.ascontiguousarray(values[mask])
    _keep(*kept)
    return out[:count].view(values.dtype)


@compiled
def _keep(mask: NumericArray, values: NumericArray, out: NumericArray) -> None:
    place = np.uint64(0)
    for i in range(np.uint64(values.size)):
        out[place] = values[i]
        place += np.uint64(mask[i])

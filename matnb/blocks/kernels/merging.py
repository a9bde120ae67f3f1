"""Two sparse blocks walked side by side: the entries that either or both store, and the values there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from matnb.blocks.formats import MAX_ENTRIES, Csr, IndexArray, NumericArray
from matnb.blocks.kernels.compiled import UnsignedArray, compiled, unsigned
from matnb.blocks.kernels.runs import words_of
from matnb.errors import TooLargeError

TILE_ENTRIES = 1 << 16  # that a tile of both blocks stays in cache, and threads seldom meet between tiles

# Fills its third argument from the values of two blocks at the same entries.
Combine = Callable[[NumericArray, NumericArray, NumericArray], object]
_Walk = Callable[..., None]


def united(
    blocks: tuple[Csr, Csr],
    values: tuple[NumericArray, NumericArray],
    absent: tuple[np.generic, np.generic],
    dtype: np.dtype,
    combine: Combine,
) -> Csr:
    """Return a value at each entry that either block stores.

    Peak memory: a result of the entries of both blocks together, and tiles.

    Parameters
    ----------
    blocks
        Of one shape.
    values
        What the entries of each count as: one for each entry, or a single one for all.
    absent
        What each block counts as where it stores no entry; of the dtypes of ``values``.
    dtype, combine
        Of the result, and how it comes from both.

    Returns
    -------
    Csr
        Shares its pattern with a block that has the same. It may have no entry.
    """
    most = blocks[0].nnz + blocks[1].nnz
    pointers, columns, results = (
        np.zeros(blocks[0].shape[0] + 1, np.int32),
        np.empty(most, np.int32),
        np.empty(most, dtype),
    )
    tiles = [np.empty(min(most, 2 * TILE_ENTRIES), one.dtype) for one in values]
    fills = [words_of(np.array([one], tile.dtype))[0] for one, tile in zip(absent, tiles, strict=True)]
    count = 0
    for places, parts, end in _walked(_unite, blocks, values, pointers, columns):
        filled = [tile[: end - count] for tile in tiles]
        for one, fill, where, part in zip(filled, fills, places, parts, strict=True):
            _scatter(words_of(one, False), where, words_of(part), fill)
        combine(filled[0], filled[1], results[count:end])
        count = end
    return _trimmed(blocks, pointers, columns, results, count)


def met(
    blocks: tuple[Csr, Csr],
    values: tuple[NumericArray, NumericArray],
    dtype: np.dtype,
    combine: Combine,
) -> Csr:
    """Return a value at each entry that both blocks store; parameters and result as of :func:`united`.

    Peak memory: a result of the entries of the smaller block, and tiles.
    """
    most = min(block.nnz for block in blocks)
    pointers, columns, results = (
        np.zeros(blocks[0].shape[0] + 1, np.int32),
        np.empty(most, np.int32),
        np.empty(most, dtype),
    )
    tiles = [np.empty(min(most, TILE_ENTRIES), one.dtype) for one in values]
    count = 0
    for places, parts, end in _walked(_meet, blocks, values, pointers, columns):
        filled = [tile[: end - count] for tile in tiles]
        for one, where, part in zip(filled, places, parts, strict=True):
            _gather(words_of(one, False), where, words_of(part))
        combine(filled[0], filled[1], results[count:end])
        count = end
    return _trimmed(blocks, pointers, columns, results, count)


def merged_pattern(one: Csr, other: Csr, both: bool) -> Csr:
    """Return the pattern of the entries that ``both`` blocks store, or that either does.

    Peak memory: as of :func:`met` and :func:`united`, without values.
    """
    blocks, none = (one, other), np.empty(1, np.bool_)
    most = min(one.nnz, other.nnz) if both else one.nnz + other.nnz
    pointers, columns = np.zeros(one.shape[0] + 1, np.int32), np.empty(most, np.int32)
    count = 0
    for _, _, end in _walked(_meet if both else _unite, blocks, (none, none), pointers, columns):
        count = end
    return _trimmed(blocks, pointers, columns, None, count)


def spread(pattern: Csr, block: Csr, values: NumericArray) -> NumericArray:
    """Return the values of a block at the entries of a pattern, 0 where it stores none."""
    found = np.zeros(pattern.nnz, values.dtype)
    whole = np.broadcast_to(values, (block.nnz,))  # a single value is there for all
    _spread(
        unsigned(pattern.pointers),
        unsigned(pattern.columns),
        unsigned(block.pointers),
        unsigned(block.columns),
        words_of(whole),
        words_of(found, False),
    )
    return found


def _walked(
    walk: _Walk,
    blocks: tuple[Csr, Csr],
    values: tuple[NumericArray, NumericArray],
    pointers: IndexArray,
    columns: IndexArray,
) -> Iterator[tuple[tuple[UnsignedArray, UnsignedArray], tuple[NumericArray, NumericArray], int]]:
    # Writes the pattern a tile at a time; yields places in the tile, the values that belong to them, and how
    # many entries there are by now. A tile ends anywhere in a row, so no row is too long for one.
    places = np.empty(TILE_ENTRIES + 1, np.uint32), np.empty(TILE_ENTRIES + 1, np.uint32)
    patterns = [array for block in blocks for array in (unsigned(block.pointers), unsigned(block.columns))]
    singles = [np.repeat(one, TILE_ENTRIES) if one.size == 1 else None for one in values]
    state = np.zeros(4, np.uint64)
    ends = [0, 0]
    row = 0
    while row < blocks[0].shape[0]:
        walk(state, *patterns, pointers.view(np.uint32), columns.view(np.uint32), *places)
        starts = ends
        row, *ends, count = state.tolist()
        part_a, part_b = (
            one[start:end] if single is None else single[: end - start]
            for one, single, start, end in zip(values, singles, starts, ends, strict=True)
        )
        yield places, (part_a, part_b), count


def _trimmed(
    blocks: tuple[Csr, Csr],
    pointers: IndexArray,
    columns: IndexArray,
    values: NumericArray | None,
    count: int,
) -> Csr:
    if count > MAX_ENTRIES:
        raise TooLargeError(f"a block of {count:,} entries: cut the array into more blocks")
    dtype = blocks[0].dtype if values is None else values.dtype
    if values is not None:
        values.resize(count, refcheck=False)  # gives what is too much back, in place: nobody else has seen it
    for block in blocks:
        if block.nnz == count:  # a union that adds nothing to one block, or all of it is in the other
            return Csr(block.shape, block.pointers, block.columns, values, dtype)
    columns.resize(count, refcheck=False)
    return Csr(blocks[0].shape, pointers, columns, values, dtype)


@compiled
def _unite(
    state: UnsignedArray,
    pointers_a: UnsignedArray,
    columns_a: UnsignedArray,
    pointers_b: UnsignedArray,
    columns_b: UnsignedArray,
    pointers: UnsignedArray,
    columns: UnsignedArray,
    places_a: UnsignedArray,
    places_b: UnsignedArray,
) -> None:
    row, a, b, count = state[0], state[1], state[2], state[3]
    one, num_rows, tile = np.uint64(1), np.uint64(pointers_a.size - 1), np.uint64(places_a.size - 1)
    first_a, first_b, first = a, b, count
    stop_a, stop_b = min(np.uint64(columns_a.size), a + tile), min(np.uint64(columns_b.size), b + tile)
    while row < num_rows:
        row_a, row_b = np.uint64(pointers_a[row + one]), np.uint64(pointers_b[row + one])
        end_a, end_b = min(row_a, stop_a), min(row_b, stop_b)
        # Without a branch on the columns, which no processor can foresee: an entry that stays gets its place
        # again, and the last one counts.
        while a < end_a and b < end_b:
            column_a, column_b = columns_a[a], columns_b[b]
            columns[count] = min(column_a, column_b)
            places_a[a - first_a] = count - first
            places_b[b - first_b] = count - first
            a += np.uint64(column_a <= column_b)
            b += np.uint64(column_b <= column_a)
            count += one
        if b == row_b:  # and not only the tile at its end
            more = end_a - a
            for step in range(more):
                columns[count + step] = columns_a[a + step]
            for step in range(more):
                places_a[a - first_a + step] = count - first + step
            a, count = a + more, count + more
        if a == row_a:
            more = end_b - b
            for step in range(more):
                columns[count + step] = columns_b[b + step]
            for step in range(more):
                places_b[b - first_b + step] = count - first + step
            b, count = b + more, count + more
        if a < row_a or b < row_b:
            break
        row += one
        pointers[row] = count
    state[0], state[1], state[2], state[3] = row, a, b, count


@compiled
def _meet(
    state: UnsignedArray,
    pointers_a: UnsignedArray,
    columns_a: UnsignedArray,
    pointers_b: UnsignedArray,
    columns_b: UnsignedArray,
    pointers: UnsignedArray,
    columns: UnsignedArray,
    places_a: UnsignedArray,
    places_b: UnsignedArray,
) -> None:
    row, a, b, count = state[0], state[1], state[2], state[3]
    one, num_rows, tile = np.uint64(1), np.uint64(pointers_a.size - 1), np.uint64(places_a.size - 1)
    first_a, first_b, first = a, b, count
    stop_a, stop_b = min(np.uint64(columns_a.size), a + tile), min(np.uint64(columns_b.size), b + tile)
    while row < num_rows:
        row_a, row_b = np.uint64(pointers_a[row + one]), np.uint64(pointers_b[row + one])
        end_a, end_b = min(row_a, stop_a), min(row_b, stop_b)
        while a < end_a and b < end_b:
            column_a, column_b = columns_a[a], columns_b[b]
            columns[count] = column_a
            places_a[count - first] = a - first_a
            places_b[count - first] = b - first_b
            count += np.uint64(column_a == column_b)
            a += np.uint64(column_a <= column_b)
            b += np.uint64(column_b <= column_a)
        if b == row_b:
            a = end_a
        if a == row_a:
            b = end_b
        if a < row_a or b < row_b:
            break
        row += one
        pointers[row] = count
    state[0], state[1], state[2], state[3] = row, a, b, count


@compiled
def _scatter(out: NumericArray, places: UnsignedArray, values: NumericArray, absent: np.generic) -> None:
    out[:] = absent
    for number in range(values.size):
        out[places[number]] = values[number]


@compiled
def _gather(out: NumericArray, places: UnsignedArray, values: NumericArray) -> None:
    for number in range(out.size):
        out[number] = values[places[number]]


@compiled
def _spread(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    pointers_b: UnsignedArray,
    columns_b: UnsignedArray,
    values: NumericArray,
    out: NumericArray,
) -> None:
    for row in range(pointers.size - 1):
        place, end = np.uint64(pointers[row]), np.uint64(pointers[row + 1])
        b, end_b = np.uint64(pointers_b[row]), np.uint64(pointers_b[row + 1])
        while place < end and b < end_b:
            column, column_b = columns[place], columns_b[b]
            if column == column_b:
                out[place] = values[b]
            place += np.uint64(column <= column_b)
            b += np.uint64(column_b <= column)

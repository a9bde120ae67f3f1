"""Where sparse blocks have entries: walked side by side, copied in runs, moved to rows of their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import MAX_ENTRIES, Block, Csr, Dense, Empty, IndexArray, NumericArray, SparseBlock
from matnb.blocks.kernels import by_numpy
from matnb.blocks.kernels.compiled import UnsignedArray, compiled, given, is_worth_compiling, unsigned
from matnb.errors import TooLargeError

_MOVING = 4  # times as long as what NumPy does otherwise with an element
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def words_of(values: NumericArray, is_input: bool = True) -> NumericArray:
    """Return values for a loop that only moves them: it is compiled for each size, not for each dtype."""
    array = given(values) if is_input else values
    return array.view(_WORDS[array.dtype.itemsize]) if array.dtype.itemsize in _WORDS else array


class BlockFiller:
    """A block that is filled with runs of others' entries.

    Parameters
    ----------
    shape, pointers
        Of the block. The pointers say how many entries its rows will have.
    dtype
        Of its values.
    pattern_only
        Without values.
    """

    def __init__(
        self, shape: tuple[int, int], pointers: IndexArray, dtype: np.dtype, pattern_only: bool
    ) -> None:
        num_entries = int(pointers[-1])
        values = None if pattern_only else np.empty(num_entries, dtype)
        self.block = Csr(shape, pointers, np.empty(num_entries, np.int32), values, dtype)
        self._following = pointers[:-1].view(np.uint32).copy()

    def add(self, block: Csr, starts: IndexArray, counts: IndexArray, row: int, column: int) -> None:
        """Copy to each row, from ``row`` on, the next so many entries of a block, and shift their columns.

        ``starts`` and ``counts`` have one for each row. The values are of the dtype that is filled.
        """
        out, ones = self.block, np.ones(1, self.block.dtype)
        room = out.pointers[row : row + len(counts) + 1]
        if np.array_equal(counts, np.diff(room)) and np.array_equal(starts[1:], starts[:-1] + counts[:-1]):
            self._add_whole_rows(block, slice(room[0], room[-1]), starts[0] if starts.size else 0, column)
            return
        pattern = (unsigned(starts), unsigned(counts), unsigned(block.columns))
        places = self._following[row : row + len(counts)]
        shift = np.uint32(column % 2**32)  # a negative one wraps to what it should be
        columns = out.columns.view(np.uint32)
        moved: tuple[NumericArray, NumericArray] = given(np.empty(0, np.uint64)), np.empty(0, np.uint64)
        if out.values is not None:
            values = np.broadcast_to(ones, (block.nnz,)) if block.values is None else block.values
            moved = words_of(values), words_of(out.values, False)
        copied = *pattern, moved[0], shift, places, columns, moved[1]
        is_compiled = is_worth_compiling(_copy_runs, _MOVING * block.nnz, *copied)
        (_copy_runs if is_compiled else by_numpy.copy_runs)(*copied)

    def _add_whole_rows(self, block: Csr, target: slice, start: int, column: int) -> None:
        source = slice(start, start + target.stop - target.start)
        np.add(block.columns[source], np.int32(column), out=self.block.columns[target])
        if self.block.values is not None:
            self.block.values[target] = 1 if block.values is None else block.values[source]


def runs_between(block: Csr, first: int, stop: int) -> tuple[IndexArray, IndexArray]:
    """Return where in each row the entries of columns from ``first`` to before ``stop`` are, and how many."""
    starts, counts = (np.empty(block.shape[0], np.uint32) for _ in range(2))
    pattern = unsigned(block.pointers), unsigned(block.columns)
    found = *pattern, np.uint32(first), np.uint32(stop), starts, counts
    if not is_worth_compiling(_find_runs, block.nnz, *found):
        return by_numpy.runs_between(block, first, stop)
    _find_runs(*found)
    return starts.view(np.int32), counts.view(np.int32)


def moved_to_columns(block: Csr, values: NumericArray | None) -> tuple[IndexArray, IndexArray, NumericArray]:
    """Return pointers and columns of the transposed block, and the values, if any, at their new places.

    Peak memory: what is returned, and the pointers once more.
    """
    pointers = np.zeros(block.shape[1] + 1, np.int32)
    rows = np.empty(block.nnz, np.int32)
    moved = np.empty(0 if values is None else block.nnz, np.uint64 if values is None else values.dtype)
    both = words_of(moved if values is None else values), words_of(moved, False)
    pattern = unsigned(block.pointers), unsigned(block.columns)
    arrays = *pattern, both[0], pointers.view(np.uint32), rows.view(np.uint32), both[1]
    if not is_worth_compiling(_move, block.nnz, *arrays):
        return by_numpy.moved_to_columns(block, values)
    _move(*arrays)
    return pointers, rows, moved


@compiled
def _copy_runs(
    starts: UnsignedArray,
    counts: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    shift: np.uint32,
    places: UnsignedArray,
    out_columns: UnsignedArray,
    out_values: NumericArray,
) -> None:
    has_values = out_values.size > 0
    for row in range(np.uint64(starts.size)):
        source, target = np.uint64(starts[row]), np.uint64(places[row])
        count = np.uint64(counts[row])
        for number in range(count):
            out_columns[target + number] = columns[source + number] + shift
        if has_values:
            for number in range(count):
                out_values[target + number] = values[source + number]
        places[row] = target + count


@compiled
def _find_runs(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    first: np.uint32,
    stop: np.uint32,
    starts: UnsignedArray,
    counts: UnsignedArray,
) -> None:
    one = np.uint64(1)
    for row in range(np.uint64(starts.size)):
        begin, end = np.uint64(pointers[row]), np.uint64(pointers[row + one])
        for place in range(2):  # where columns reach the first one, then where they reach the other
            wanted = stop if place else first
            low, high = begin, end
            while low < high:
                middle = (low + high) >> one
                below = columns[middle] < wanted
                low = middle + one if below else low
                high = high if below else middle
            if place:
                counts[row] = low - begin
            else:
                starts[row], begin = low, low


@compiled
def _move(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    starts: UnsignedArray,
    rows: UnsignedArray,
    moved: NumericArray,
) -> None:
    one = np.uint64(1)
    for place in range(np.uint64(columns.size)):
        starts[np.uint64(columns[place]) + one] += np.uint32(1)
    for column in range(np.uint64(starts.size - 1)):
        starts[column + one] += starts[column]
    following = starts.copy()
    has_values = moved.size > 0
    for row in range(np.uint64(pointers.size - 1)):
        for source in range(np.uint64(pointers[row]), np.uint64(pointers[row + one])):
            index = columns[source]
            target = np.uint64(following[index])
            rows[target] = row
            if has_values:
                moved[target] = values[source]
            following[index] = target + one


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
    fills = [words_of(np.array([one], each.dtype))[0] for one, each in zip(absent, values, strict=True)]
    return _combined(blocks, values, fills, dtype, combine)


def met(
    blocks: tuple[Csr, Csr],
    values: tuple[NumericArray, NumericArray],
    dtype: np.dtype,
    combine: Combine,
) -> Csr:
    """Return a value at each entry that both blocks store; parameters and result as of :func:`united`.

    Peak memory: a result of the entries of the smaller block, and tiles.
    """
    return _combined(blocks, values, None, dtype, combine)


def _combined(
    blocks: tuple[Csr, Csr],
    values: tuple[NumericArray, NumericArray],
    fills: Sequence[np.generic] | None,
    dtype: np.dtype,
    combine: Combine,
) -> Csr:
    # Where both store an entry; with what stands for the absent ones, where either does.
    sizes = [block.nnz for block in blocks]
    most, in_tile = (min(sizes), TILE_ENTRIES) if fills is None else (sum(sizes), 2 * TILE_ENTRIES)
    pointers, columns = np.zeros(blocks[0].shape[0] + 1, np.int32), np.empty(most, np.int32)
    results = np.empty(most, dtype)
    tiles = [np.empty(min(most, in_tile), one.dtype) for one in values]
    count = 0
    for places, parts, end in _walked(_meet if fills is None else _unite, blocks, values, pointers, columns):
        filled = [tile[: end - count] for tile in tiles]
        for number, (one, where, part) in enumerate(zip(filled, places, parts, strict=True)):
            if fills is None:
                _gather(words_of(one, False), where, words_of(part))
            else:
                _scatter(words_of(one, False), where, words_of(part), fills[number])
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


Places = npt.NDArray[np.int64]


def as_csr(block: Block) -> Csr:
    """Return a sparse block as Csr, an Empty one without entries."""
    assert not isinstance(block, Dense), "its caller has looked"
    if isinstance(block, Csr):
        return block
    nothing = np.empty(0, np.int32)
    return Csr(
        block.shape, np.zeros(block.shape[0] + 1, np.int32), nothing, nothing.astype(block.dtype), block.dtype
    )


def settled(block: Csr) -> SparseBlock:
    """Return the block itself, or Empty when it stores nothing."""
    return block if block.nnz else Empty(block.shape, block.dtype)


def pattern_of(block: SparseBlock, dtype: np.dtype) -> Csr:
    """Return the pattern of a block as a pattern-only block that shares its memory."""
    block = as_csr(block)
    return Csr(block.shape, block.pointers, block.columns, None, dtype)


def ones(values: Sequence[Block], dtype: np.dtype) -> SparseBlock:
    """Return a sparse block as a pattern-only one, which shares its memory."""
    (block,) = values
    assert not isinstance(block, Dense)
    return settled(pattern_of(block, dtype))


def at_entries(values: Sequence[Block]) -> SparseBlock:
    """Return the elements of a sparse block at the entries that another stores, whose memory it shares."""
    block, pattern = values
    assert not isinstance(block, Dense)
    assert not isinstance(pattern, Dense)
    at = as_csr(pattern)
    return settled(Csr(at.shape, at.pointers, at.columns, values_at(at, block), block.dtype))


def rows_of(block: Csr) -> IndexArray:
    """Return the row of each stored entry."""
    return np.repeat(np.arange(block.shape[0], dtype=np.int32), np.diff(block.pointers))


def same_pattern(one: Csr, other: Csr) -> bool:
    """Tell whether two blocks store the same entries: at once if they share the memory of their pattern."""
    return one.shape == other.shape and all(
        a is b or (a.size == b.size and np.array_equal(a, b))
        for a, b in ((one.pointers, other.pointers), (one.columns, other.columns))
    )


def union(one: Csr, other: Csr) -> Csr:
    """Return the pattern of entries that are stored in either block."""
    if same_pattern(one, other):
        return pattern_of(one, one.dtype)
    return pattern_of(merged_pattern(one, other, both=False), one.dtype)


def intersection(one: Csr, other: Csr) -> Csr:
    """Return the pattern of entries that are stored in both blocks."""
    if same_pattern(one, other):
        return pattern_of(one, one.dtype)
    return pattern_of(merged_pattern(one, other, both=True), one.dtype)


def values_at(pattern: Csr, block: SparseBlock) -> NumericArray:
    """Return the values of a block at the entries of a pattern, 0 where the block stores none."""
    block = as_csr(block)
    if same_pattern(pattern, block):
        return block.entries
    return spread(pattern, block, np.ones(1, block.dtype) if block.values is None else block.values)


def transposed_order(block: Csr) -> tuple[IndexArray, IndexArray, IndexArray]:
    """Return row pointers and columns of the transposed block, and where each of its entries was."""
    pointers, columns, order = moved_to_columns(block, np.arange(block.nnz, dtype=np.int32))
    return pointers, columns, order.view(np.int32)

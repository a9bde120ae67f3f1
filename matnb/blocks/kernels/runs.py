"""Runs of entries copied from rows of a block to those of another, or moved to the rows of their columns."""

from __future__ import annotations

import numpy as np

from matnb.blocks.formats import Csr, IndexArray, NumericArray
from matnb.blocks.kernels.compiled import UnsignedArray, compiled, given, unsigned

_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def words_of(values: NumericArray, is_input: bool = True) -> NumericArray:
    """Return values for a loop that only moves them: it is compiled for each size, not for each dtype."""
    array = given(values) if is_input else values
    return array.view(_WORDS[array.dtype.itemsize]) if array.dtype.itemsize in _WORDS else array


class Filling:
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
        if out.values is None:
            nothing = np.empty(0, np.uint64)
            _copy_runs(*pattern, given(nothing), shift, places, columns, nothing)
        else:
            values = np.broadcast_to(ones, (block.nnz,)) if block.values is None else block.values
            _copy_runs(*pattern, words_of(values), shift, places, columns, words_of(out.values, False))

    def _add_whole_rows(self, block: Csr, target: slice, start: int, column: int) -> None:
        source = slice(start, start + target.stop - target.start)
        np.add(block.columns[source], np.int32(column), out=self.block.columns[target])
        if self.block.values is not None:
            self.block.values[target] = 1 if block.values is None else block.values[source]


def runs_between(block: Csr, first: int, stop: int) -> tuple[IndexArray, IndexArray]:
    """Return where in each row the entries of columns from ``first`` to before ``stop`` are, and how many."""
    starts, counts = (np.empty(block.shape[0], np.uint32) for _ in range(2))
    _find_runs(
        unsigned(block.pointers), unsigned(block.columns), np.uint32(first), np.uint32(stop), starts, counts
    )
    return starts.view(np.int32), counts.view(np.int32)


def moved_to_columns(block: Csr, values: NumericArray | None) -> tuple[IndexArray, IndexArray, NumericArray]:
    """Return pointers and columns of the transposed block, and the values, if any, at their new places.

    Peak memory: what is returned, and the pointers once more.
    """
    pointers = np.zeros(block.shape[1] + 1, np.int32)
    rows = np.empty(block.nnz, np.int32)
    moved = np.empty(0 if values is None else block.nnz, np.uint64 if values is None else values.dtype)
    _move(
        unsigned(block.pointers),
        unsigned(block.columns),
        words_of(moved if values is None else values),
        pointers.view(np.uint32),
        rows.view(np.uint32),
        words_of(moved, False),
    )
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

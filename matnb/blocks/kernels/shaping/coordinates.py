"""Sparse blocks from values and the row and column of each, of which several may be at one place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import (
    MAX_ENTRIES,
    Block,
    Csr,
    Empty,
    IndexArray,
    NumericArray,
    SparseBlock,
    cast,
    to_numpy,
)
from matnb.blocks.grid import Region
from matnb.blocks.kernels.compiled import (
    UnsignedArray,
    compiled,
    given,
    inlined,
    is_worth_compiling,
    unsigned,
)
from matnb.blocks.kernels.patterns import as_csr, settled
from matnb.blocks.kernels.products.sparse_product_loops import Words, is_less, trailing_zeros
from matnb.blocks.kernels.reductions.reductions import accumulator_dtype
from matnb.errors import IndexingError, OptionError, TooLargeError

Places = npt.NDArray[np.int64]
# What becomes of values at one place: for the loop a number, so that it is compiled once for a dtype.
DUPLICATES = ("sum", "last", "first", "min", "max", "error")
_SUM, _LAST, _FIRST, _MIN, _MAX, _ERROR = map(np.int64, range(6))
_FEW = np.int64(32)  # entries of a row that are sorted by insertion
_BY_NUMPY = (_SUM, _LAST, _FIRST, _ERROR)
_SORTING = 32  # times as long as what NumPy does otherwise with an element
_TOTALS_BYTES = 1 << 19  # of a row that is combined by column: what a core's cache holds
_ONE = np.uint64(1)


def entries_within(
    values: Sequence[Block], region: Region, shape: tuple[int, int], start: int
) -> SparseBlock:
    """Return those of some entries that are in a region, by rows, each row's in the order they were given.

    The columns of a row are in no order, and may be there more than once: such a block goes to
    :func:`merge_entries` alone. Peak memory: the result, and places that are not int64 as such.

    Parameters
    ----------
    values
        Values, rows and columns of the entries, Dense, of one axis.
    region
        Of the array.
    shape
        Of the array.
    start
        The number of the first entry, for errors.

    Raises
    ------
    IndexingError
        For the first row or column outside the array.
    """
    entries, rows, columns = map(to_numpy, values)
    for axis, places in enumerate((rows, columns)):
        _check(places, axis, shape, start)
    (first, last), (left, right) = region
    pointers = np.zeros(last - first + 1, np.int32)
    bounds = np.array([first, last, left, right], np.int64)
    row, column = (given(cast(one, np.dtype(np.int64))) for one in (rows, columns))
    if not is_worth_compiling(_count, _SORTING * row.size, row, column, bounds, pointers):
        return _within_by_numpy(row, column, entries, region)
    count = int(_count(row, column, bounds, pointers))
    if count > MAX_ENTRIES:
        raise TooLargeError(f"a block of {count:,} entries: cut the array into more blocks")
    found, kept = np.empty(count, np.int32), np.empty(count, entries.dtype)
    if count:
        _sort_in(row, column, given(entries), bounds, pointers[:-1].copy(), found, kept)
    return settled(Csr((last - first, right - left), pointers, found, kept, entries.dtype))


def _within_by_numpy(rows: Places, columns: Places, entries: NumericArray, region: Region) -> SparseBlock:
    # For the first calls; as the loops do it, with a third of the memory once more.
    (first, last), (left, right) = region
    inside = np.flatnonzero((rows >= first) & (rows < last) & (columns >= left) & (columns < right))
    row = rows[inside] - first
    inside = inside[np.argsort(row, kind="stable")]
    found: IndexArray = (columns[inside] - left).astype(np.int32)
    return settled(
        Csr(
            (last - first, right - left),
            _pointers_of(row, last - first),
            found,
            entries[inside],
            entries.dtype,
        )
    )


def _pointers_of(rows: Places, num_rows: int) -> IndexArray:
    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=num_rows))]).astype(np.int32)


def _check(places: NumericArray, axis: int, shape: tuple[int, int], start: int) -> None:
    if not places.size or (places.min() >= 0 and places.max() < shape[axis]):
        return
    outside = np.less(places, 0) | np.greater_equal(places, shape[axis])
    number = int(np.argmax(outside))
    name = "row" if axis == 0 else "column"
    raise IndexingError(
        f"{name} {places[number]} of entry {start + number:,} is outside an array of shape {shape}: {name}s "
        f"go from 0 to {shape[axis] - 1}"
    )


def merge_entries(
    values: Sequence[Block], duplicates: str, offset: tuple[int, int], dtype: np.dtype
) -> SparseBlock:
    """Return a sparse block of entries that :func:`entries_within` found, in the order of these parts.

    Entries at one place are combined in the order they were given, however that is cut into parts; ones are
    left to the pattern. Peak memory: the result, all entries by rows, and eight bytes for each of the
    longest row's.

    Parameters
    ----------
    values
        The parts, of one shape.
    duplicates
        One of ``DUPLICATES``.
    offset
        The first row and column of the block, for errors.
    dtype
        Of the result; sums are wide until they are whole.

    Raises
    ------
    OptionError
        With "error", for a place that comes twice.
    """
    parts = [as_csr(one) for one in values]
    shape, total = parts[0].shape, sum(one.nnz for one in parts)
    if not total:
        return Empty(shape, dtype)
    if total > MAX_ENTRIES:
        raise TooLargeError(f"a block of {total:,} entries: cut the array into more blocks")
    wide = accumulator_dtype("sum", dtype) if duplicates == "sum" else dtype
    pointers = np.zeros(shape[0] + 1, np.int32)
    for one in parts:
        pointers += one.pointers
    code, width = np.int64(DUPLICATES.index(duplicates)), shape[1]
    columns, entries = np.empty(total, np.int32), np.empty(total, wide)
    totals, seen = np.empty(0, wide), np.zeros(0, np.uint64)
    merged = code, pointers, columns, entries, totals, seen
    if code in _BY_NUMPY and not is_worth_compiling(_merge, _SORTING * total, *merged):
        count, row, column = _merge_by_numpy(code, parts, pointers, columns, entries)
    else:
        following = pointers[:-1].copy()
        for one in parts:
            _append(
                unsigned(one.pointers), unsigned(one.columns), given(cast(one.entries, wide)),
                following, columns, entries,
            )  # fmt: skip
        if code != _ERROR and width * wide.itemsize <= _TOTALS_BYTES and total > shape[0] * _FEW // 2:
            totals, seen = np.empty(width, wide), np.zeros((width + 63) // 64, np.uint64)
        with np.errstate(all="ignore"):
            count, row, column = map(int, _merge(code, pointers, columns, entries, totals, seen))
    if count < 0:
        place = (int(row) + offset[0], int(column) + offset[1])
        raise OptionError(f"coordinates {place} occur more than once, and duplicates='error'")
    columns.resize(int(count), refcheck=False)
    entries.resize(int(count), refcheck=False)
    kept = cast(entries, dtype)
    return Csr(shape, pointers, columns, None if np.all(kept == 1) else kept, dtype)


def _merge_by_numpy(
    code: np.int64, parts: Sequence[Csr], pointers: IndexArray, columns: IndexArray, entries: NumericArray
) -> tuple[int, int, int]:
    # What ``_append`` and ``_merge`` do, for the first calls; least and greatest are left to them.
    num_rows = pointers.size - 1
    given_rows = np.concatenate([np.repeat(np.arange(num_rows), np.diff(one.pointers)) for one in parts])
    given_columns = np.concatenate([one.columns for one in parts])
    order = np.lexsort((given_columns, given_rows))
    row, column = given_rows[order], given_columns[order]
    values = np.concatenate([cast(one.entries, entries.dtype) for one in parts])[order]
    is_new = np.concatenate([[True], (row[1:] != row[:-1]) | (column[1:] != column[:-1])])
    first = np.flatnonzero(is_new)
    if code == _ERROR and first.size < order.size:
        place = np.flatnonzero(~is_new)[0]
        return -1, int(row[place]), int(column[place])
    taken = np.concatenate([first[1:], [order.size]]) - 1 if code == _LAST else first
    columns[: first.size], found = column[first], values[taken]
    if code == _SUM:
        with np.errstate(all="ignore"):
            np.add.at(found, np.cumsum(is_new)[~is_new] - 1, values[~is_new])  # one after the other
    entries[: first.size] = found
    pointers[:] = _pointers_of(row[first], num_rows)
    return first.size, 0, 0


@compiled
def _count(rows: Places, columns: Places, bounds: Places, pointers: IndexArray) -> np.int64:
    # Leaves pointers as those of rows; returns how many entries there are. Without a branch: of rows in no
    # order, which are in the region cannot be foretold.
    total, height = np.int64(0), np.uint64(bounds[1] - bounds[0])
    width = np.uint64(bounds[3] - bounds[2])
    for i in range(rows.size):
        row, column = np.uint64(rows[i] - bounds[0]), np.uint64(columns[i] - bounds[2])
        is_inside = np.int32(row < height) & np.int32(column < width)
        pointers[min(row + _ONE, height)] += is_inside
        total += np.int64(is_inside)
    for i in range(1, pointers.size):
        pointers[i] += pointers[i - 1]
    return total


@compiled
def _sort_in(
    rows: Places,
    columns: Places,
    values: NumericArray,
    bounds: Places,
    following: IndexArray,
    out_columns: IndexArray,
    out: NumericArray,
) -> None:
    height, width = np.uint64(bounds[1] - bounds[0]), np.uint64(bounds[3] - bounds[2])
    for i in range(rows.size):
        row, column = np.uint64(rows[i] - bounds[0]), np.uint64(columns[i] - bounds[2])
        if row < height and column < width:
            place = np.uint64(following[row])
            following[row] += np.int32(1)
            out_columns[place] = np.int32(column)
            out[place] = values[i]


@compiled
def _append(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    following: IndexArray,
    out_columns: IndexArray,
    out: NumericArray,
) -> None:
    for row in range(pointers.size - 1):
        place = following[row]
        for one in range(pointers[row], pointers[row + 1]):
            out_columns[place] = columns[one]
            out[place] = values[one]
            place += np.int32(1)
        following[row] = place


@compiled
def _merge(
    code: np.int64,
    pointers: IndexArray,
    columns: IndexArray,
    values: NumericArray,
    totals: NumericArray,
    seen: Words,
) -> tuple[np.int64, np.int64, np.int64]:
    # Sorts each row by columns, entries of one column in their order, and combines those, in place. Returns
    # how many are left; or -1, and the first place that comes twice where that is an error. Rows of which
    # every word of 64 columns has an entry or so are combined by column in ``totals``, if that has any.
    count, begin = np.int64(0), np.int64(pointers[0])
    for row in range(pointers.size - 1):
        end = np.int64(pointers[row + 1])
        if totals.size and end - begin > _FEW and end - begin > seen.size:
            for i in range(begin, end):
                column = np.uint64(columns[i])
                word, bit = column >> np.uint64(6), _ONE << (column & np.uint64(63))
                if seen[word] & bit:
                    _combine(code, totals, column, values[i])
                else:
                    seen[word] |= bit
                    totals[column] = values[i]
            for part in range(seen.size):
                bits = seen[part]
                seen[part] = 0
                while bits != 0:
                    column = (np.uint64(part) << np.uint64(6)) + trailing_zeros(bits)
                    bits &= bits - _ONE
                    columns[count], values[count] = np.int32(column), totals[column]
                    count += 1
            pointers[row + 1] = count
            begin = end
            continue
        for low in range(begin, end, _FEW):
            for i in range(low + 1, min(low + _FEW, end)):
                column, value, place = columns[i], values[i], i
                while place > low and columns[place - 1] > column:
                    columns[place], values[place] = columns[place - 1], values[place - 1]
                    place -= 1
                columns[place], values[place] = column, value
        if end - begin > _FEW:
            # Sorted runs are merged in pairs. Numba's own argsort takes two seconds to compile.
            old_columns = np.empty(end - begin, columns.dtype)
            old_values = np.empty(end - begin, values.dtype)
            length = _FEW
            while length < end - begin:
                for i in range(begin, end):
                    old_columns[i - begin], old_values[i - begin] = columns[i], values[i]
                for low in range(0, end - begin, 2 * length):
                    left, right = np.int64(low), min(low + length, end - begin)
                    middle, stop = right, min(low + 2 * length, end - begin)
                    for i in range(low, stop):
                        if right == stop or (left < middle and old_columns[left] <= old_columns[right]):
                            taken, left = left, left + 1
                        else:
                            taken, right = right, right + 1
                        columns[begin + i], values[begin + i] = old_columns[taken], old_values[taken]
                length *= 2
        first = count
        for i in range(begin, end):
            if count > first and columns[count - 1] == columns[i]:
                if code == _ERROR:
                    return np.int64(-1), np.int64(row), np.int64(columns[i])
                _combine(code, values, np.uint64(count - 1), values[i])
            else:
                columns[count], values[count] = columns[i], values[i]
                count += 1
        pointers[row + 1] = count
        begin = end
    return count, np.int64(0), np.int64(0)


@inlined
def _combine(code: np.int64, totals: NumericArray, place: np.uint64, value: float) -> None:
    if code == _SUM:
        totals[place] += value
    elif code == _LAST:
        totals[place] = value
    elif code == _MIN:
        if is_less(value, totals[place]) or value != value:
            totals[place] = value
    elif code == _MAX and (is_less(totals[place], value) or value != value):
        totals[place] = value

"""Squared distances of the rows of a block to other rows, as sums of squared differences, and the nearest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Block, Csr, Dense, Empty, NumericArray, entries_as, to_numpy
from matnb.blocks.kernels.compiled import UnsignedArray, compiled, given, unsigned
from matnb.blocks.kernels.patterns import as_csr

DoubleArray = npt.NDArray[np.float64]
PlaceArray = npt.NDArray[np.int64]
_TILE = 256  # of the other rows, whose sums stay in the nearest cache
_CANCELLED = 1e-4  # of a squared length: less than this share of it has lost too many digits


def nearest_rows(values: Sequence[Block], count: int) -> Dense:
    """Return for each row of a block the places of the nearest of other rows, the nearest first.

    |x - y|^2 by the product x'y is a difference of large numbers, in which what is near is lost beside one
    row that is far. Here it is summed up from differences: for candidates, or of a row with all others at a
    time, since nothing is written but what is found. Of equally near rows the earlier comes first.

    Peak memory: the other rows twice and the result, in float64, and those of a float32 block once more;
    with candidates four times as much as these, and the rows of the block once more.

    Parameters
    ----------
    values
        A block of n x p, dense or sparse, and the other rows, m x p and dense. Perhaps n x q places of
        candidates, and n bounds: no other row is nearer than the root of that. Where the last of those
        found is not within the bound, all rows are looked at.
    count
        How many, at most m, or q.

    Returns
    -------
    Dense
        n x ``count``, int64.
    """
    rows, others = _rows(values[0]), values[1]
    if len(values) == 2:
        return Dense(_searched(rows, np.arange(values[0].shape[0]), _columns(others), count))
    candidates = to_numpy(values[2]).astype(np.int64, copy=False)
    bounds: DoubleArray = to_numpy(values[3]).astype(np.float64, copy=False)
    squares = _measured(rows, others, candidates)
    order = np.lexsort((candidates, squares), axis=1)[:, :count]
    places = np.take_along_axis(candidates, order, axis=1)
    last = np.take_along_axis(squares, order[:, -1:], axis=1)[:, 0]
    if (unsure := np.flatnonzero(~(last < bounds))).size:
        places[unsure] = _searched(rows, unsure, _columns(others), count)
    return Dense(places)


def squared_distances(values: Sequence[Block]) -> Dense:
    """Return the squared distances of each row of a block to all others, or to those at some places.

    Peak memory: the other rows twice and the result, in float64, and those of a float32 block once more.

    Parameters
    ----------
    values
        A block of n x p, dense or sparse; the other rows, m x p and dense; perhaps n x k places of them.

    Returns
    -------
    Dense
        n x m, or n x k, float64.
    """
    rows = _rows(values[0])
    if len(values) > 2:
        return Dense(_measured(rows, values[1], to_numpy(values[2]).astype(np.int64, copy=False)))
    columns = _columns(values[1])
    found = np.empty((values[0].shape[0], columns.shape[1]))
    if isinstance(rows, Csr):
        _fill_sparse(*_entries(rows), columns, found)
    else:
        _fill(given(rows), columns, found)
    return Dense(found)


def _searched(rows: Csr | NumericArray, chosen: PlaceArray, columns: DoubleArray, count: int) -> PlaceArray:
    places = np.empty((chosen.size, count), np.int64)
    found = np.empty(places.shape)
    if isinstance(rows, Csr):
        _search_sparse(*_entries(rows), given(chosen), columns, found, places)
    else:
        own = rows if chosen.size == len(rows) else rows[chosen]
        _search(given(own), columns, found, places)
    return places


def _measured(rows: Csr | NumericArray, others: Block, places: PlaceArray) -> DoubleArray:
    found, doubles = np.empty(places.shape), given(to_numpy(others).astype(np.float64, copy=False))
    if isinstance(rows, Csr):
        _measure_sparse(*_entries(rows), doubles, given(places), found)
    else:
        _measure(given(rows), doubles, given(places), found)
    return found


def _rows(block: Block) -> Csr | NumericArray:
    if isinstance(block, Csr | Empty):
        return as_csr(block)
    values = to_numpy(block)
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)


def _columns(others: Block) -> DoubleArray:
    # One other row a column, so that sums of all of them go on side by side.
    columns: DoubleArray = given(to_numpy(others).T.astype(np.float64, copy=False))
    return columns


def _entries(rows: Csr) -> tuple[UnsignedArray, UnsignedArray, DoubleArray]:
    return unsigned(rows.pointers), unsigned(rows.columns), given(entries_as(rows, np.dtype(np.float64)))


@compiled
def _put(found: DoubleArray, places: PlaceArray, row: int, before: int, distance: float, place: int) -> None:
    # Into what is sorted, behind those that are as near; ``before`` others were seen.
    at = min(before, places.shape[1] - 1)
    while at > 0 and found[row, at - 1] > distance:
        found[row, at], places[row, at] = found[row, at - 1], places[row, at - 1]
        at -= 1
    found[row, at], places[row, at] = distance, place


@compiled
def _sum_four(
    rows: NumericArray, first: int, columns: DoubleArray, start: int, width: int, sums: DoubleArray
) -> None:
    # Of four rows, or the last one several times, since each number of the others is then read once for all.
    last = rows.shape[0] - 1
    one, two, three = min(first + 1, last), min(first + 2, last), min(first + 3, last)
    a, b, c, d = sums[0], sums[1], sums[2], sums[3]
    for place in range(width):
        a[place], b[place], c[place], d[place] = 0.0, 0.0, 0.0, 0.0
    for feature in range(rows.shape[1]):
        w, x = np.float64(rows[first, feature]), np.float64(rows[one, feature])
        y, z = np.float64(rows[two, feature]), np.float64(rows[three, feature])
        others = columns[feature]
        for place in range(width):
            other = others[start + place]
            difference = w - other
            a[place] += difference * difference
            difference = x - other
            b[place] += difference * difference
            difference = y - other
            c[place] += difference * difference
            difference = z - other
            d[place] += difference * difference


@compiled
def _search(rows: NumericArray, columns: DoubleArray, found: DoubleArray, places: PlaceArray) -> None:
    count, num_others = places.shape[1], columns.shape[1]
    sums = np.empty((4, _TILE))
    for first in range(0, rows.shape[0], 4):
        for start in range(0, num_others, _TILE):
            width = min(_TILE, num_others - start)
            _sum_four(rows, first, columns, start, width, sums)
            for number in range(min(4, rows.shape[0] - first)):
                row = first + number
                for place in range(width):
                    other = start + place
                    if other < count or sums[number, place] < found[row, count - 1]:
                        _put(found, places, row, other, sums[number, place], other)


@compiled
def _fill(rows: NumericArray, columns: DoubleArray, found: DoubleArray) -> None:
    sums = np.empty((4, _TILE))
    for first in range(0, rows.shape[0], 4):
        for start in range(0, columns.shape[1], _TILE):
            width = min(_TILE, columns.shape[1] - start)
            _sum_four(rows, first, columns, start, width, sums)
            for number in range(min(4, rows.shape[0] - first)):
                for place in range(width):
                    found[first + number, start + place] = sums[number, place]


@compiled
def _measure(rows: NumericArray, others: DoubleArray, places: PlaceArray, found: DoubleArray) -> None:
    # In the order of features, as above: the same bits.
    for row in range(rows.shape[0]):
        for number in range(places.shape[1]):
            other, total = places[row, number], 0.0
            for feature in range(rows.shape[1]):
                difference = np.float64(rows[row, feature]) - others[other, feature]
                total += difference * difference
            found[row, number] = total


@compiled
def _squares(columns: DoubleArray) -> DoubleArray:
    squares = np.zeros(columns.shape[1])
    for feature in range(columns.shape[0]):
        for place in range(columns.shape[1]):
            squares[place] += columns[feature, place] * columns[feature, place]
    return squares


@compiled
def _sum_entries(
    columns_of: UnsignedArray, entries: DoubleArray, begin: int, end: int, columns: DoubleArray,
    squares: DoubleArray, has_entry: npt.NDArray[np.bool_], sums: DoubleArray, rest: DoubleArray,
) -> None:  # fmt: skip
    # Where a row has an entry, squared differences; elsewhere the others' squares, which are the whole less
    # those there, and summed up themselves where little of the whole is left.
    num_others = columns.shape[1]
    for place in range(num_others):
        sums[place], rest[place] = 0.0, squares[place]
    for entry in range(begin, end):
        others, value = columns[columns_of[entry]], entries[entry]
        for place in range(num_others):
            difference = value - others[place]
            sums[place] += difference * difference
            rest[place] -= others[place] * others[place]
    is_marked = False
    for place in range(num_others):
        if rest[place] < _CANCELLED * squares[place]:
            if not is_marked:
                is_marked = True
                for entry in range(begin, end):
                    has_entry[columns_of[entry]] = True
            rest[place] = 0.0
            for feature in range(columns.shape[0]):
                if not has_entry[feature]:
                    rest[place] += columns[feature, place] * columns[feature, place]
        sums[place] += rest[place]
    if is_marked:
        for entry in range(begin, end):
            has_entry[columns_of[entry]] = False


@compiled
def _search_sparse(
    pointers: UnsignedArray, columns_of: UnsignedArray, entries: DoubleArray, chosen: PlaceArray,
    columns: DoubleArray, found: DoubleArray, places: PlaceArray,
) -> None:  # fmt: skip
    count, num_others = places.shape[1], columns.shape[1]
    squares, has_entry = _squares(columns), np.zeros(columns.shape[0], np.bool_)
    sums, rest = np.empty(num_others), np.empty(num_others)
    for number in range(chosen.size):
        begin, end = int(pointers[chosen[number]]), int(pointers[chosen[number] + 1])
        _sum_entries(columns_of, entries, begin, end, columns, squares, has_entry, sums, rest)
        for place in range(num_others):
            if place < count or sums[place] < found[number, count - 1]:
                _put(found, places, number, place, sums[place], place)


@compiled
def _fill_sparse(
    pointers: UnsignedArray, columns_of: UnsignedArray, entries: DoubleArray, columns: DoubleArray,
    found: DoubleArray,
) -> None:  # fmt: skip
    squares, has_entry = _squares(columns), np.zeros(columns.shape[0], np.bool_)
    rest = np.empty(columns.shape[1])
    for row in range(found.shape[0]):
        begin, end = int(pointers[row]), int(pointers[row + 1])
        _sum_entries(columns_of, entries, begin, end, columns, squares, has_entry, found[row], rest)


@compiled
def _measure_sparse(
    pointers: UnsignedArray, columns_of: UnsignedArray, entries: DoubleArray, others: DoubleArray,
    places: PlaceArray, found: DoubleArray,
) -> None:  # fmt: skip
    dense = np.zeros(others.shape[1])
    for row in range(places.shape[0]):
        begin, end = int(pointers[row]), int(pointers[row + 1])
        for entry in range(begin, end):
            dense[columns_of[entry]] = entries[entry]
        for number in range(places.shape[1]):
            other, total = places[row, number], 0.0
            for feature in range(dense.size):
                difference = dense[feature] - others[other, feature]
                total += difference * difference
            found[row, number] = total
        for entry in range(begin, end):
            dense[columns_of[entry]] = 0.0

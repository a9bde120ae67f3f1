"""Squared distances of the rows of a block to other rows, as sums of squared differences, and the nearest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Block, Csr, Dense, Empty, NumericArray, entries_as, to_numpy
from matnb.blocks.kernels.compiled import UnsignedArray, compiled, given, unsigned
from matnb.blocks.kernels.patterns import as_csr
from matnb.blocks.kernels.rows.row_tiles import spans

DoubleArray = npt.NDArray[np.float64]
PlaceArray = npt.NDArray[np.int64]
_TILE = 256  # of the other rows, whose sums stay in the nearest cache
_CANCELLED = 1e-4  # of a squared length: less than this share of it has lost too many digits
# Of products: other rows and elements of a tile, other rows of an index, and products looked at together.
TILE_ROWS, _TILE_SIZE, _INDEX_ROWS, _CHUNK = 1 << 11, 1 << 18, 1 << 15, 64
FEW_ROWS = 256  # that are not worth products
_LEAST = np.finfo(np.float64).tiny


def nearest_rows(values: Sequence[Block], count: int) -> Dense:
    """Return for each row of a block the places of the nearest of other rows, the nearest first.

    |x - y|^2 = |x|^2 + |y|^2 - 2 x'y is a difference of large numbers, in which what is near is lost beside
    one row that is far. So products of tiles of rows, which are fast, only say which rows may be nearer than
    the nearest up to now: by what a product is rounded by at most, a share of |x|^2 + |y|^2. For these, and
    for all where the others are few, squared differences are summed up, feature by feature. Of equally near
    rows the earlier comes first.

    Peak memory: the result twice, in float64, and for two dense matrices the rows of the block, some other
    rows and a tile; for sparse others two numbers a row, and some of the rows once more; for sparse rows and
    dense others, or few others, these twice.

    Parameters
    ----------
    values
        A block of n x p and the other rows, m x p, dense or sparse.
    count
        How many, at most m.

    Returns
    -------
    Dense
        n x ``count``, int64.
    """
    rows, others = _rows(values[0]), _rows(values[1])
    places = np.empty((values[0].shape[0], count), np.int64)
    found = np.empty(places.shape)
    if isinstance(others, Csr):
        rows = _sparse(rows)
        share = _unsure_share(others.shape[1])
        _search_by_index(*_entries(rows), *_entries(others), others.shape[1], share, found, places)
    elif isinstance(rows, Csr):
        _search_sparse(*_entries(rows), _columns(others), found, places)
    elif len(others) <= FEW_ROWS:
        _search(given(rows), _columns(others), found, places)
    else:
        _search_by_products(rows, others, found, places)
    return Dense(places)


def _unsure_share(num_features: int) -> float:
    # Sums of p products, in any order, are wrong by p times as much as the largest is rounded by: Higham
    # 2002, "Accuracy and Stability of Numerical Algorithms", 3.1. Here it is those of a product, of two
    # lengths and of the distance itself, each at most twice |x|^2 + |y|^2.
    share: float = 8 * (num_features + 8) * np.finfo(np.float64).eps
    return share


def _search_by_products(
    rows: NumericArray, others: NumericArray, found: DoubleArray, places: PlaceArray
) -> None:
    # Lengths and products are those of differences from the middle of the others, however far that is from 0.
    num_features = rows.shape[1]
    kept = 1 - _unsure_share(num_features)
    height = max(1, _TILE_SIZE // TILE_ROWS)
    tile = np.empty((min(height, len(rows)), TILE_ROWS))
    with np.errstate(over="ignore", invalid="ignore"):
        middle = others.mean(axis=0, dtype=np.float64)
        own = rows - middle
        lengths = kept * np.einsum("ij,ij->i", own, own)
        for begin, end in spans(len(others), TILE_ROWS):
            them = others[begin:end] - middle
            their_lengths = kept * np.einsum("ij,ij->i", them, them)
            for top, bottom in spans(len(rows), height):
                products = tile[: bottom - top, : end - begin]
                np.matmul(own[top:bottom], them.T, out=products)
                _keep_nearest(
                    given(products), lengths[top:bottom], their_lengths, begin, given(rows[top:bottom]),
                    given(others), found[top:bottom], places[top:bottom],
                )  # fmt: skip


def squared_distances(values: Sequence[Block]) -> Dense:
    """Return the squared distances of each row of a block to all others, or to those at some places.

    Peak memory: the result, and without places the other rows twice, in float64, and those of a float32 block
    once more.

    Parameters
    ----------
    values
        A block of n x p, dense or sparse; the other rows, m x p, which may be sparse with places; perhaps
        n x k places of them.

    Returns
    -------
    Dense
        n x m, or n x k, float64.
    """
    rows, others = _rows(values[0]), _rows(values[1])
    if len(values) > 2:
        return Dense(_measured(rows, others, to_numpy(values[2]).astype(np.int64, copy=False)))
    assert not isinstance(others, Csr)
    columns = _columns(others)
    found = np.empty((values[0].shape[0], columns.shape[1]))
    if isinstance(rows, Csr):
        _fill_sparse(*_entries(rows), columns, found)
    else:
        _fill(given(rows), columns, found)
    return Dense(found)


def _measured(rows: Csr | NumericArray, others: Csr | NumericArray, places: PlaceArray) -> DoubleArray:
    found = np.empty(places.shape)
    if isinstance(others, Csr):
        _measure_entries(*_entries(_sparse(rows)), *_entries(others), given(places), found)
    elif isinstance(rows, Csr):
        _measure_sparse(*_entries(rows), given(others), given(places), found)
    else:
        _measure(given(rows), given(others), given(places), found)
    return found


def _rows(block: Block) -> Csr | NumericArray:
    if isinstance(block, Csr | Empty):
        return as_csr(block)
    values = to_numpy(block)
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)


def _sparse(rows: Csr | NumericArray) -> Csr:
    if isinstance(rows, Csr):
        return rows
    has_entry = rows != 0
    pointers = np.concatenate([[0], has_entry.sum(axis=1).cumsum()]).astype(np.int32)
    n, p = rows.shape
    return Csr((n, p), pointers, has_entry.nonzero()[1].astype(np.int32), rows[has_entry], rows.dtype)


def _columns(others: NumericArray) -> DoubleArray:
    # One other row a column, so that sums of all of them go on side by side.
    columns: DoubleArray = given(others.T.astype(np.float64, copy=False))
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
def _squared_distance(x: NumericArray, y: NumericArray) -> float:
    # In the order of features, as above: the same bits.
    total = 0.0
    for feature in range(x.size):
        difference = np.float64(x[feature]) - np.float64(y[feature])
        total += difference * difference
    return total


@compiled
def _measure(rows: NumericArray, others: NumericArray, places: PlaceArray, found: DoubleArray) -> None:
    for row in range(rows.shape[0]):
        for number in range(places.shape[1]):
            found[row, number] = _squared_distance(rows[row], others[places[row, number]])


@compiled
def _keep_nearest(
    products: DoubleArray, lengths: DoubleArray, their_lengths: DoubleArray, begin: int, rows: NumericArray,
    others: NumericArray, found: DoubleArray, places: PlaceArray,
) -> None:  # fmt: skip
    count, width = places.shape[1], products.shape[1]
    for row in range(products.shape[0]):
        limit = np.inf if begin < count else found[row, count - 1] - lengths[row] + _LEAST
        for start in range(0, width, _CHUNK):
            stop, num_near = min(width, start + _CHUNK), 0
            for place in range(start, stop):
                num_near += not (their_lengths[place] - 2 * products[row, place] >= limit)
            if num_near == 0 and begin + start >= count:
                continue
            for place in range(start, stop):
                other = begin + place
                if other >= count and their_lengths[place] - 2 * products[row, place] >= limit:
                    continue
                distance = _squared_distance(rows[row], others[other])
                if other < count or distance < found[row, count - 1]:
                    _put(found, places, row, other, distance, other)
                    if other >= count - 1:
                        limit = found[row, count - 1] - lengths[row] + _LEAST


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
    pointers: UnsignedArray, columns_of: UnsignedArray, entries: DoubleArray, columns: DoubleArray,
    found: DoubleArray, places: PlaceArray,
) -> None:  # fmt: skip
    count, num_others = places.shape[1], columns.shape[1]
    squares, has_entry = _squares(columns), np.zeros(columns.shape[0], np.bool_)
    sums, rest = np.empty(num_others), np.empty(num_others)
    for row in range(places.shape[0]):
        begin, end = int(pointers[row]), int(pointers[row + 1])
        _sum_entries(columns_of, entries, begin, end, columns, squares, has_entry, sums, rest)
        for place in range(num_others):
            if place < count or sums[place] < found[row, count - 1]:
                _put(found, places, row, place, sums[place], place)


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
    pointers: UnsignedArray, columns_of: UnsignedArray, entries: DoubleArray, others: NumericArray,
    places: PlaceArray, found: DoubleArray,
) -> None:  # fmt: skip
    # As the sums of all others above, by the entries: the same bits.
    squares, has_entry = _squares_of_rows(others), np.zeros(others.shape[1], np.bool_)
    for row in range(places.shape[0]):
        begin, end = int(pointers[row]), int(pointers[row + 1])
        for number in range(places.shape[1]):
            place = places[row, number]
            total, rest = 0.0, squares[place]
            for entry in range(begin, end):
                there = np.float64(others[place, columns_of[entry]])
                difference = entries[entry] - there
                total += difference * difference
                rest -= there * there
            if rest < _CANCELLED * squares[place]:
                rest = _rest(columns_of[begin:end], others[place], has_entry)
            found[row, number] = total + rest


@compiled
def _squares_of_rows(others: NumericArray) -> DoubleArray:
    squares = np.zeros(others.shape[0])
    for row in range(others.shape[0]):
        for feature in range(others.shape[1]):
            squares[row] += np.float64(others[row, feature]) * np.float64(others[row, feature])
    return squares


@compiled
def _rest(columns_of: UnsignedArray, other: NumericArray, has_entry: npt.NDArray[np.bool_]) -> float:
    for column in columns_of:
        has_entry[column] = True
    total = 0.0
    for feature in range(other.size):
        if not has_entry[feature]:
            total += np.float64(other[feature]) * np.float64(other[feature])
    for column in columns_of:
        has_entry[column] = False
    return total


@compiled
def _squared_distance_of_entries(
    columns_of: UnsignedArray, entries: DoubleArray, at: int, end: int, their_columns: UnsignedArray,
    their_entries: DoubleArray, their_at: int, their_end: int,
) -> float:  # fmt: skip
    # Of two sparse rows, in the order of features: the bits of the dense rows.
    total = 0.0
    while at < end or their_at < their_end:
        difference = 0.0
        if their_at == their_end or (at < end and columns_of[at] < their_columns[their_at]):
            difference = entries[at]
            at += 1
        elif at == end or their_columns[their_at] < columns_of[at]:
            difference = their_entries[their_at]
            their_at += 1
        else:
            difference = entries[at] - their_entries[their_at]
            at += 1
            their_at += 1
        total += difference * difference
    return total


@compiled
def _measure_entries(
    pointers: UnsignedArray, columns_of: UnsignedArray, entries: DoubleArray, their_pointers: UnsignedArray,
    their_columns: UnsignedArray, their_entries: DoubleArray, places: PlaceArray, found: DoubleArray,
) -> None:  # fmt: skip
    for row in range(places.shape[0]):
        begin, end = int(pointers[row]), int(pointers[row + 1])
        for number in range(places.shape[1]):
            other = places[row, number]
            found[row, number] = _squared_distance_of_entries(
                columns_of, entries, begin, end, their_columns, their_entries,
                int(their_pointers[other]), int(their_pointers[other + 1]),
            )  # fmt: skip


@compiled
def _lengths_of(pointers: UnsignedArray, entries: DoubleArray, kept: float) -> DoubleArray:
    lengths = np.zeros(pointers.size - 1)
    for row in range(lengths.size):
        for entry in range(int(pointers[row]), int(pointers[row + 1])):
            lengths[row] += entries[entry] * entries[entry]
        lengths[row] *= kept
    return lengths


@compiled
def _index(
    pointers: UnsignedArray, columns_of: UnsignedArray, entries: DoubleArray, begin: int, end: int,
    starts: PlaceArray,
) -> tuple[npt.NDArray[np.uint32], DoubleArray]:  # fmt: skip
    # For each feature the rows from ``begin`` that have it, and their entries, from where ``starts`` says.
    starts[:] = 0
    first, last = int(pointers[begin]), int(pointers[end])
    for entry in range(first, last):
        starts[columns_of[entry] + 1] += 1
    for feature in range(1, starts.size):
        starts[feature] += starts[feature - 1]
    having, values = np.empty(last - first, np.uint32), np.empty(last - first)
    for row in range(begin, end):
        for entry in range(int(pointers[row]), int(pointers[row + 1])):
            at = starts[columns_of[entry]]
            having[at], values[at] = row - begin, entries[entry]
            starts[columns_of[entry]] += 1
    for feature in range(starts.size - 1, 0, -1):
        starts[feature] = starts[feature - 1]
    starts[0] = 0
    return having, values


@compiled
def _search_by_index(
    pointers: UnsignedArray, columns_of: UnsignedArray, entries: DoubleArray, their_pointers: UnsignedArray,
    their_columns: UnsignedArray, their_entries: DoubleArray, num_features: int, share: float,
    found: DoubleArray, places: PlaceArray,
) -> None:  # fmt: skip
    count, num_others = places.shape[1], their_pointers.size - 1
    lengths = _lengths_of(pointers, entries, 1 - share)
    their_lengths = _lengths_of(their_pointers, their_entries, 1 - share)
    products, starts = np.empty(min(num_others, _INDEX_ROWS)), np.empty(num_features + 1, np.int64)
    for begin in range(0, num_others, _INDEX_ROWS):
        stop = min(num_others, begin + _INDEX_ROWS)
        having, values = _index(their_pointers, their_columns, their_entries, begin, stop, starts)
        for row in range(places.shape[0]):
            first, last = int(pointers[row]), int(pointers[row + 1])
            products[:] = 0.0
            for entry in range(first, last):
                value = entries[entry]
                for at in range(starts[columns_of[entry]], starts[columns_of[entry] + 1]):
                    products[having[at]] += value * values[at]
            limit = np.inf if begin < count else found[row, count - 1] - lengths[row] + _LEAST
            for other in range(begin, stop):
                if other >= count and their_lengths[other] - 2 * products[other - begin] >= limit:
                    continue
                distance = _squared_distance_of_entries(
                    columns_of, entries, first, last, their_columns, their_entries,
                    int(their_pointers[other]), int(their_pointers[other + 1]),
                )  # fmt: skip
                if other < count or distance < found[row, count - 1]:
                    _put(found, places, row, other, distance, other)
                    if other >= count - 1:
                        limit = found[row, count - 1] - lengths[row] + _LEAST

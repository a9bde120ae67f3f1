"""Orders within segments of a vector: their values sorted, or the places or ranks of these.

Segments are sorted in pieces that NumPy has a network of vector instructions for, those of one length as rows
of a matrix, and the pieces of a long segment are merged. Places are sorted as whole numbers, in which what is
left of a value's key stands before its place: no two are equal, so equal values keep their order.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import NumericArray
from matnb.blocks.kernels.by_numpy import CALL, sorted_segments
from matnb.blocks.kernels.compiled import compiled, given, is_worth_compiling
from matnb.blocks.kernels.sorting.ordering import keys_of, merge

# Longer pieces NumPy partitions first: 13 ns a value for 1,000 doubles and 34 ns for 40,000, where pieces
# of 256 take 2 ns, and each round of merging 1.3.
_NETWORK_BYTES, _MOST_IN_PIECE = 2048, 512
_FEW = 8  # values, which are sorted at once
_TILE = 2**14  # values of rows that are sorted together: they stay in cache
TILE_BYTES = 8 * _TILE

Pointers = npt.NDArray[np.int64]
PackedKeys = npt.NDArray[np.uint64]


def sort_segments(values: NumericArray, pointers: Pointers) -> None:
    """Sort the values of each segment in place, NaN last.

    Peak memory: the values of the longest segment once more, 16 bytes for each segment and 8 for each 256
    values, ``TILE_BYTES``.
    """
    width = min(_MOST_IN_PIECE, _NETWORK_BYTES // values.dtype.itemsize)
    numbers = values.view(np.uint8) if values.dtype == np.bool_ else values
    ends = pointers[1:]
    sorts = numbers, given(pointers), given(ends), width, _no_pieces(width)
    amount = numbers.size + CALL * ends.size
    if np.diff(pointers).max(initial=0) <= width and not is_worth_compiling(_sort_few, amount, *sorts):
        sorted_segments(numbers, pointers, _FEW)
        return
    if numbers.dtype.kind == "f":
        ends = ends.copy()
        _move_nan(numbers, given(pointers), width, ends)
    _sort_pieces(numbers, pointers, ends, width)


def places_of(values: NumericArray, pointers: Pointers) -> npt.NDArray[np.int64]:
    """Return the places of the values of each segment in ascending order, equal ones as they come, NaN last.

    Peak memory: the result and as much again for keys and for the longest segment, and what
    ``sort_segments`` says of segments and tiles.
    """
    if not values.size:
        return np.empty(0, np.int64)
    keys = given(keys_of(values))
    packed = np.empty(values.size, np.uint64)
    dropped = np.empty(pointers.size - 1, np.uint8)
    _pack(keys, given(pointers), packed, dropped)
    _sort_pieces(packed, pointers, pointers[1:], _NETWORK_BYTES // packed.itemsize)
    _unpack(keys, given(pointers), given(dropped), packed)
    return packed.view(np.int64)


def ranks_of_places(places: npt.NDArray[np.int64], pointers: Pointers) -> npt.NDArray[np.int64]:
    """Return the rank of each value within its segment, of their places in order."""
    ranks = np.empty(places.size, np.int64)
    _rank(given(places), given(pointers), ranks)
    return ranks


@compiled
def _rank(places: Pointers, pointers: Pointers, ranks: Pointers) -> None:
    for k in range(pointers.size - 1):
        begin = pointers[k]
        for place in range(begin, pointers[k + 1]):
            ranks[begin + places[place]] = place - begin


# Numbers sorted in pieces, and merged.


def _sort_pieces(values: NumericArray, pointers: Pointers, ends: Pointers, width: int) -> None:
    # Segments go from a pointer up to an end; what lies behind that stays.
    counts = _no_pieces(width)
    longest = _sort_few(values, given(pointers), given(ends), width, counts)
    bounds = np.cumsum(counts)
    starts = np.empty(bounds[-1], np.int64)
    _list_pieces(given(pointers), given(ends), width, bounds[:-1].copy(), starts)
    room = np.empty(min(_TILE, values.size), values.dtype)
    for length in (np.flatnonzero(counts) - 1).tolist():
        for some in _tiles(starts[bounds[length] : bounds[length + 1]], length):
            begin, end = int(some[0]), int(some[-1]) + length
            if end - begin == some.size * length:
                values[begin:end].reshape(-1, length).sort(axis=1)
                continue
            rows = room[: some.size * length].reshape(-1, length)
            _copy_rows(values, given(some), rows)
            rows.sort(axis=1)
            _copy_back(rows, given(some), values)
    if longest > width:
        _merge_pieces(values, given(pointers), given(ends), width, np.empty(longest, values.dtype))


def _no_pieces(width: int) -> Pointers:
    # The counts of pieces of each length up to ``width``, one place on.
    return np.zeros(width + 2, np.int64)


def _tiles(starts: Pointers, length: int) -> Iterator[Pointers]:
    step = max(1, _TILE // length)
    for at in range(0, starts.size, step):
        yield starts[at : at + step]


@compiled
def _sort_few(values: NumericArray, pointers: Pointers, ends: Pointers, width: int, counts: Pointers) -> int:
    # Sort pieces of a few values, count the others by length, each one place on, for where those of a length
    # begin, and return how long the longest segment is.
    longest = 0
    for k in range(ends.size):
        begin, end = pointers[k], ends[k]
        longest = max(longest, end - begin)
        while end - begin > width:
            counts[width + 1] += 1
            begin += width
        if end - begin > _FEW:
            counts[end - begin + 1] += 1
            continue
        for place in range(begin + 1, end):
            value, at = values[place], place
            while at > begin and value == value:  # NaN stays behind what is there
                other = values[at - 1]
                if not (other > value or other != other):
                    break
                values[at] = other
                at -= 1
            values[at] = value
    return longest


@compiled
def _list_pieces(pointers: Pointers, ends: Pointers, width: int, upto: Pointers, starts: Pointers) -> None:
    # Where pieces begin, those of one length behind each other.
    for k in range(ends.size):
        begin, end = pointers[k], ends[k]
        while end - begin > _FEW:
            length = min(width, end - begin)
            starts[upto[length]] = begin
            upto[length] += 1
            begin += length


@compiled
def _copy_rows(values: NumericArray, starts: Pointers, rows: NumericArray) -> None:
    for number in range(np.uint64(starts.size)):
        begin = np.uint64(starts[number])
        for at in range(np.uint64(rows.shape[1])):
            rows[number, at] = values[begin + at]


@compiled
def _copy_back(rows: NumericArray, starts: Pointers, values: NumericArray) -> None:
    for number in range(np.uint64(starts.size)):
        begin = np.uint64(starts[number])
        for at in range(np.uint64(rows.shape[1])):
            values[begin + at] = rows[number, at]


@compiled
def _merge_pieces(
    values: NumericArray, pointers: Pointers, ends: Pointers, width: int, room: NumericArray
) -> None:
    for k in range(ends.size):
        begin, end = pointers[k], ends[k]
        source, target, count, length = values[begin:end], room[: end - begin], end - begin, width
        is_back = True
        while length < count:
            for at in range(0, count, 2 * length):
                middle, stop = min(at + length, count), min(at + 2 * length, count)
                merge(source[at:middle], source[middle:stop], target[at:stop])
            source, target, length, is_back = target, source, 2 * length, not is_back
        if not is_back:
            target[:] = source


@compiled
def _num_nan(values: NumericArray) -> int:
    count = 0
    for value in values:
        count += value != value
    return count


@compiled
def _move_nan(values: NumericArray, pointers: Pointers, width: int, ends: Pointers) -> None:
    # Move the NaN of segments that are merged behind all else, and write where each of these ends then.
    for k in range(ends.size):
        end = ends[k]
        if end - pointers[k] <= width or not _num_nan(values[pointers[k] : end]):
            continue
        at = pointers[k]
        while at < end:
            value = values[at]
            if value == value:
                at += 1
            else:
                end -= 1
                values[at], values[end] = values[end], value
        ends[k] = end


# Places with keys before them.


@compiled
def _pack(keys: Pointers, pointers: Pointers, packed: PackedKeys, dropped: npt.NDArray[np.uint8]) -> None:
    # Above each place what is left of its key beyond the least one, without as many bits as have no room.
    for k in range(dropped.size):
        begin, end = np.uint64(pointers[k]), np.uint64(pointers[k + 1])
        dropped[k] = 0
        if end - begin < np.uint64(2):
            if begin < end:
                packed[begin] = np.uint64(0)
            continue
        least, most = _range_of(keys[begin:end])
        place_bits = _num_bits(end - begin - np.uint64(1))
        bits = place_bits + _num_bits(np.uint64(most - least))
        lost = bits - np.uint64(64) if bits > np.uint64(64) else np.uint64(0)
        dropped[k] = lost
        for at in range(end - begin):
            key = np.uint64(keys[begin + at] - least) >> lost
            packed[begin + at] = (key << place_bits) | at


@compiled
def _range_of(keys: Pointers) -> tuple[int, int]:
    least = most = keys[0]
    for key in keys:
        least, most = min(least, key), max(most, key)
    return int(least), int(most)


@compiled
def _num_bits(number: np.uint64) -> np.uint64:
    bits = np.uint64(0)
    for step in (np.uint64(32), np.uint64(16), np.uint64(8), np.uint64(4), np.uint64(2), np.uint64(1)):
        if number >> step:
            number, bits = number >> step, bits + step
    return bits + number


@compiled
def _unpack(keys: Pointers, pointers: Pointers, dropped: npt.NDArray[np.uint8], packed: PackedKeys) -> None:
    for k in range(dropped.size):
        begin, end = np.uint64(pointers[k]), np.uint64(pointers[k + 1])
        if begin == end:
            continue
        place_bits = _num_bits(end - begin - np.uint64(1))
        if dropped[k]:
            _settle(keys[begin:end], packed[begin:end], place_bits)
        mask = (np.uint64(1) << place_bits) - np.uint64(1)
        for at in range(begin, end):
            packed[at] &= mask


@compiled
def _settle(keys: Pointers, packed: PackedKeys, place_bits: np.uint64) -> None:
    # Keys that share what is packed of them differ in so few bits that there is room for all of these.
    mask = (np.uint64(1) << place_bits) - np.uint64(1)
    start = 0
    while start < packed.size:
        prefix, stop = packed[start] >> place_bits, start + 1
        first = least = keys[packed[start] & mask]
        is_alike = True
        while stop < packed.size and packed[stop] >> place_bits == prefix:
            key = keys[packed[stop] & mask]
            is_alike = is_alike and key == first
            if key < least:
                least = key
            stop += 1
        if not is_alike:
            for at in range(start, stop):
                place = packed[at] & mask
                packed[at] = (np.uint64(keys[place] - least) << place_bits) | place
            _sort_by_gaps(packed[start:stop])
        start = stop


@compiled
def _sort_by_gaps(values: PackedKeys) -> None:
    # Shell's sort: what comes here is mostly two or three, and rarely any number.
    gap = 1
    while 9 * gap < 4 * values.size:
        gap = 9 * gap // 4 + 1
    while gap > 0:
        for place in range(gap, values.size):
            value, at = values[place], place
            while at >= gap and values[at - gap] > value:
                values[at] = values[at - gap]
                at -= gap
            values[at] = value
        gap = 4 * gap // 9

"""Elements of blocks put in order, merged, ranked and looked up.

Places in arrays are unsigned in loops: Python's negative indices cost a comparison an access. Elements are
compared as numbers: there is no NaN among them, but where it is said where they go.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Block, Dense, NumericArray, cast, to_numpy
from matnb.blocks.kernels.by_numpy import firsts
from matnb.blocks.kernels.compiled import compiled, given, inlined, is_worth_compiling

Places = np.ndarray[tuple[int], np.dtype[np.int64]]
_Place = np.uint64
_ZERO, _ONE = np.uint64(0), np.uint64(1)
# What elements are compared as, by their dtype, so that a loop is compiled for few.
_COMPARED: dict[str, np.dtype] = {
    **dict.fromkeys(("bool", "int8", "int16", "uint8", "uint16", "uint32"), np.dtype(np.int64)),
    "float16": np.dtype(np.float32),
}


@compiled
def merge(left: NumericArray, right: NumericArray, out: NumericArray) -> None:
    """Write the elements of two sorted arrays in order.

    The four quarters of the result are written side by side: each choice has to wait for the one before it,
    so a processor has time for four.
    """
    quarter = out.size // 4
    size, k = _Place(quarter), _ZERO
    i, p = _ZERO, _Place(_num_of_left(left, right, quarter))
    u, x = _Place(_num_of_left(left, right, 2 * quarter)), _Place(_num_of_left(left, right, 3 * quarter))
    j, q, v, y = _ZERO, size - p, size + size - u, size + size + size - x
    i_end, p_end, u_end, x_end = p, u, x, _Place(left.size)
    j_end, q_end, v_end, y_end = q, v, y, _Place(right.size)
    while True:
        # so many steps reach no end
        count = min(
            min(min(i_end - i, j_end - j), min(p_end - p, q_end - q)),
            min(min(u_end - u, v_end - v), min(x_end - x, y_end - y)),
        )
        if count == _ZERO:
            break
        for number in range(count):
            at = k + _Place(number)
            one, other = left[i], right[j]
            is_right = _Place(other < one)
            out[at] = other if other < one else one
            j += is_right
            i += _ONE - is_right
            at += size
            one, other = left[p], right[q]
            is_right = _Place(other < one)
            out[at] = other if other < one else one
            q += is_right
            p += _ONE - is_right
            at += size
            one, other = left[u], right[v]
            is_right = _Place(other < one)
            out[at] = other if other < one else one
            v += is_right
            u += _ONE - is_right
            at += size
            one, other = left[x], right[y]
            is_right = _Place(other < one)
            out[at] = other if other < one else one
            y += is_right
            x += _ONE - is_right
        k += _Place(count)
    _merge_rest(left, right, i, i_end, j, j_end, out, k)
    _merge_rest(left, right, p, p_end, q, q_end, out, k + size)
    _merge_rest(left, right, u, u_end, v, v_end, out, k + size + size)
    _merge_rest(left, right, x, x_end, y, y_end, out, k + size + size + size)


@compiled
def _num_of_left(left: NumericArray, right: NumericArray, count: int) -> int:
    # How many of the first elements of all are of the left array; of equal ones its own come first.
    low, high = max(0, count - right.size), min(count, left.size)
    while low < high:
        middle = (low + high) >> 1
        if right[count - middle - 1] < left[middle]:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def _merge_rest(
    left: NumericArray,
    right: NumericArray,
    i: np.uint64,
    i_end: np.uint64,
    j: np.uint64,
    j_end: np.uint64,
    out: NumericArray,
    k: np.uint64,
) -> None:
    while True:
        count = min(i_end - i, j_end - j)
        if count == _ZERO:
            break
        for number in range(count):
            one, other = left[i], right[j]
            is_right = _Place(other < one)
            out[k + _Place(number)] = other if other < one else one
            j += is_right
            i += _ONE - is_right
        k += _Place(count)
    while i < i_end:
        out[k] = left[i]
        i += _ONE
        k += _ONE
    while j < j_end:
        out[k] = right[j]
        j += _ONE
        k += _ONE


@compiled
def merge_with_places(
    left: NumericArray,
    right: NumericArray,
    left_places: Places,
    right_places: Places,
    out: NumericArray,
    places: Places,
) -> None:
    """Write the elements of two sorted arrays in order, and their places; of equal ones the left's first."""
    i, j, k = _ZERO, _ZERO, _ZERO
    i_end, j_end = _Place(left.size), _Place(right.size)
    while True:
        count = min(i_end - i, j_end - j)
        if count == _ZERO:
            break
        for number in range(count):
            step = k + _Place(number)
            one, other = left[i], right[j]
            a, b = left_places[i], right_places[j]
            is_right = _Place(other < one)
            out[step] = other if other < one else one
            places[step] = b if other < one else a
            j += is_right
            i += _ONE - is_right
        k += _Place(count)
    while i < i_end:
        out[k], places[k] = left[i], left_places[i]
        i += _ONE
        k += _ONE
    while j < j_end:
        out[k], places[k] = right[j], right_places[j]
        j += _ONE
        k += _ONE


Keys = npt.NDArray[np.int64]
PackedKeys = npt.NDArray[np.uint64]

_MOST_ALIKE = 32  # keys that share what is packed of them are put in order one by one, up to so many


@compiled
def pack(keys: Keys, least: int, dropped: int, place_bits: int, packed: PackedKeys) -> None:
    """Write what is left of each key above ``least`` without its lowest bits, and below it its place."""
    for place in range(keys.size):
        key = np.uint64(keys[place] - least) >> np.uint64(dropped)
        packed[place] = (key << np.uint64(place_bits)) | np.uint64(place)


@compiled
def settle(keys: Keys, packed: PackedKeys, place_bits: int) -> bool:
    """Put in order by their whole keys, then by place, what shares what is packed of its keys.

    Parameters
    ----------
    packed
        Sorted; changed here.

    Returns
    -------
    False where too many share it; nothing can be said of the order then.
    """
    shift, mask = np.uint64(place_bits), (np.uint64(1) << np.uint64(place_bits)) - np.uint64(1)
    start = 0
    while start < packed.size:
        prefix = packed[start] >> shift
        stop = start + 1
        is_alike = True
        while stop < packed.size and packed[stop] >> shift == prefix:
            is_alike = is_alike and keys[packed[stop] & mask] == keys[packed[start] & mask]
            stop += 1
        if stop - start > 1 and not is_alike:
            if stop - start > _MOST_ALIKE:
                return False
            for one in range(start + 1, stop):
                moved = packed[one]
                key = keys[moved & mask]
                place = one
                # Places of equal keys ascend already.
                while place > start and keys[packed[place - 1] & mask] > key:
                    packed[place] = packed[place - 1]
                    place -= 1
                packed[place] = moved
        start = stop
    return True


Counts = npt.NDArray[np.int64]

_SORTING = 4  # times as long as what NumPy does otherwise with an element
_FEW = 4096  # up to here the elements of pieces are sorted again, which takes less than to merge them
MERGED = "biuf"  # kinds that compiled loops compare; complex numbers and half precision NumPy sorts again


def smallest(values: Sequence[Block], count: int, is_places: bool) -> Dense:
    """Return the first elements of each row in ascending order, NaN last, or their places.

    Places of equal elements ascend; elements have the bits that :func:`sort` gives. Elements are doubles,
    singles or whole numbers of as many bytes. Peak memory: the elements and their places, and a copy of a
    block that is not in row order.
    """
    elements = given(to_numpy(values[0]))
    out = np.empty((len(elements), count), elements.dtype)
    places = np.empty((len(elements), count), np.int64)
    add_firsts(elements, 0, False, out, places)
    if is_places:
        return Dense(places)
    for row in np.flatnonzero((out == 0).any(axis=1)) if out.dtype.kind == "f" else ():
        # NumPy's sort leaves zeros of both signs in an order of its own
        signs = np.signbit(elements[row][elements[row] == 0])
        if signs.any() and not signs.all():
            out[row] = np.sort(elements[row])[:count]
    return Dense(out)


def add_firsts(
    values: NumericArray, begin: int, is_largest: bool, out: NumericArray, places: NumericArray
) -> None:
    """Put the columns of a matrix, which are those from ``begin`` on, in among the firsts of its rows.

    They are in ascending order with NaN last, or ``is_largest`` in descending order with NaN first; of equal
    ones the earlier comes first. Of columns before, ``out`` and ``places`` hold the firsts already.
    """
    arrays = values, begin, is_largest, out, places
    (_add_firsts if is_worth_compiling(_add_firsts, _SORTING * values.size, *arrays) else firsts)(*arrays)


@compiled
def _add_firsts(
    values: NumericArray, begin: int, is_largest: bool, out: NumericArray, places: NumericArray
) -> None:
    # Each element goes in behind those that it does not precede. Of a long row few precede the last, so eight
    # at a time are asked whether any does; NaN precede nothing, or are last themselves, and are asked apart.
    flat, length, last = values.reshape(-1), values.shape[1], out.shape[1] - 1
    for row in range(values.shape[0]):
        worst, i = out[row, last], 0
        while i < length:
            end = min(i + 8, length)
            is_asked = begin + i > last and worst == worst and i + 8 <= length
            if is_asked and not _any_precedes(flat, np.uint64(row * length + i), worst, is_largest):
                i = end
                continue
            for column in range(i, end):
                value = flat[np.uint64(row * length + column)]
                j = min(begin + column, last)
                if begin + column > last and not _precedes(value, worst, is_largest):
                    continue
                while j > 0:
                    before = out[row, j - 1]
                    if not _precedes(value, before, is_largest):
                        break
                    out[row, j], places[row, j] = before, places[row, j - 1]
                    j -= 1
                out[row, j], places[row, j] = value, begin + column
                worst = out[row, last]
            i = end


@inlined
def _any_precedes(flat: NumericArray, i: np.uint64, worst: float, is_largest: bool) -> bool:
    # whether one of eight elements may; without a branch between them
    if is_largest:
        found: bool = not (
            (flat[i] <= worst)
            & (flat[i + _ONE] <= worst)
            & (flat[i + np.uint64(2)] <= worst)
            & (flat[i + np.uint64(3)] <= worst)
            & (flat[i + np.uint64(4)] <= worst)
            & (flat[i + np.uint64(5)] <= worst)
            & (flat[i + np.uint64(6)] <= worst)
            & (flat[i + np.uint64(7)] <= worst)
        )
    else:
        found = (
            (flat[i] < worst)
            | (flat[i + _ONE] < worst)
            | (flat[i + np.uint64(2)] < worst)
            | (flat[i + np.uint64(3)] < worst)
            | (flat[i + np.uint64(4)] < worst)
            | (flat[i + np.uint64(5)] < worst)
            | (flat[i + np.uint64(6)] < worst)
            | (flat[i + np.uint64(7)] < worst)
        )
    return found


@inlined
def _precedes(one: float, other: float, is_largest: bool) -> bool:
    if is_largest:
        return one > other or (one != one and other == other)
    return one < other or (other != other and one == one)


def firsts_record(dtype: np.dtype) -> np.dtype:
    """Return the dtype of an element and its place, as the firsts of rows are packed."""
    return np.dtype([("place", np.int64), ("value", dtype)])


def pack_firsts(places: NumericArray, values: NumericArray) -> Dense:
    """Return places and elements as bytes along one more axis, of which ``part_of_firsts`` gives either."""
    record = np.empty(places.shape, firsts_record(values.dtype))
    record["place"], record["value"] = places, values
    return Dense(record.view(np.uint8).reshape(*places.shape, record.dtype.itemsize))


def part_of_firsts(values: Sequence[Block], dtype: np.dtype, is_places: bool, squeezed: bool) -> Dense:
    """Return the places or the elements, of this dtype, that were packed; ``squeezed`` as one column."""
    record = np.ascontiguousarray(to_numpy(values[0])).view(firsts_record(dtype))[..., 0]
    found = np.ascontiguousarray(record["place" if is_places else "value"])
    return Dense(found[:, 0] if squeezed else found)


def firsts_of_rows(values: Sequence[Block], count: int, is_largest: bool, start: int = 0) -> Dense:
    """Return the smallest elements of each row in ascending order, and their places from ``start``, packed.

    Or the largest in descending order. NaN are larger than all numbers, and of equal elements the earlier
    comes first. Elements are real numbers or booleans. Peak memory: the elements and places twice, and a copy
    of a block that is not in row order, or of other dtypes than doubles, singles and their whole numbers.
    """
    elements = to_numpy(values[0])
    wide = _COMPARED.get(elements.dtype.name, elements.dtype)
    out = np.empty((len(elements), count), wide)
    places = np.empty((len(elements), count), np.int64)
    add_firsts(given(cast(elements, wide)), 0, is_largest, out, places)
    return pack_firsts(places + start if start else places, cast(out, elements.dtype))


def merged_firsts(values: Sequence[Block], dtype: np.dtype, count: int, is_largest: bool) -> Dense:
    """Return the firsts of rows from those of several blocks of columns, the earlier blocks first."""
    parts = [to_numpy(one).view(firsts_record(dtype))[..., 0] for one in values]
    record = np.concatenate(parts, axis=1)
    found = to_numpy(firsts_of_rows([Dense(np.ascontiguousarray(record["value"]))], count, is_largest))
    at = found.view(firsts_record(dtype))[..., 0]["place"]
    return pack_firsts(*(np.take_along_axis(record[name], at, axis=1) for name in ("place", "value")))


def sort(blocks: Sequence[Block], axis: int) -> Dense:
    """Return a block with its elements ascending along an axis."""
    return Dense(np.sort(to_numpy(blocks[0]), axis=axis))


def arg_sort(blocks: Sequence[Block], axis: int, start: int) -> Dense:
    """Return the places of a block's elements in ascending order, equal ones as they come.

    Parameters
    ----------
    start
        Where the block begins on the axis.
    """
    values = to_numpy(blocks[0])
    places = ordered_places(values) if values.ndim == 1 else np.argsort(values, axis=axis, kind="stable")
    return Dense(places + start if start else places)


def ordered_places(values: NumericArray) -> Counts:
    """Return the places of the elements of a 1-D array in ascending order, equal ones as they come.

    Keys and places are packed in whole numbers, which NumPy sorts several times faster than places by keys.
    """
    if values.size <= _FEW or values.dtype.kind not in MERGED:
        return np.argsort(values, kind="stable")
    keys = keys_of(values)
    least = int(keys.min())
    if not is_worth_compiling(pack, _SORTING * values.size, keys):
        return np.argsort(values, kind="stable")
    place_bits = (values.size - 1).bit_length()
    dropped = max(0, (int(keys.max()) - least).bit_length() - (64 - place_bits))
    packed = np.empty(values.size, np.uint64)
    pack(keys, least, dropped, place_bits, packed)
    packed.sort()
    if dropped and not settle(keys, packed, place_bits):
        return np.argsort(values, kind="stable")
    packed &= np.uint64((1 << place_bits) - 1)
    return packed.view(np.int64)


def keys_of(values: np.ndarray) -> Counts:
    """Return whole numbers in the order of real elements, of equal ones the same, those of NaN last."""
    # of floats their bits, turned round where they are negative
    if values.dtype.kind != "f":
        is_wide = values.dtype == np.uint64
        return (values ^ np.uint64(1 << 63)).view(np.int64) if is_wide else values.astype(np.int64)
    kind, bits = (np.float64, 63) if values.dtype == np.float64 else (np.float32, 31)
    wide: np.ndarray = values.astype(kind)
    wide += kind(0.0)  # -0.0 is equal to 0.0
    if np.isnan(wide.max()):
        wide[np.isnan(wide)] = np.nan  # of one sign, last
    found: np.ndarray = wide.view(np.int64 if bits == 63 else np.int32)
    found ^= (found >> bits) & (2**bits - 1)
    return found.astype(np.int64, copy=False)


def picked(blocks: Sequence[Block], start: int) -> Dense:
    """Return the elements of a 1-D block at places of the whole array; the block begins at ``start``."""
    values, places = (to_numpy(one) for one in blocks)
    return Dense(values[places - start])


# Which elements have certain ranks among all those of several sorted blocks. Every block tells a sample; how
# many elements of each block are below each of them says between which two a rank is, and only the elements
# between those are looked at.


def sample(blocks: Sequence[Block], most: int) -> Dense:
    """Return up to so many elements of a sorted block, evenly spaced."""
    values = to_numpy(blocks[0])
    count = min(most, values.size)
    return Dense(values[np.arange(count) * values.size // max(1, count)])


def distinct(blocks: Sequence[Block]) -> Dense:
    """Return the distinct elements of samples, ascending; of NaN there is one."""
    return Dense(np.unique(np.concatenate([to_numpy(one) for one in blocks])))


def count_below(blocks: Sequence[Block]) -> Dense:
    """Return how many elements of a sorted block are below some values, how many not above, and all."""
    values, wanted = (to_numpy(one) for one in blocks)
    counts = np.empty((2, wanted.size + 1), np.int64)
    counts[0, :-1] = np.searchsorted(values, wanted, side="left")
    counts[1, :-1] = np.searchsorted(values, wanted, side="right")
    counts[:, -1] = values.size
    return Dense(counts)


def ranks_of(blocks: Sequence[Block], *ranks: int) -> Dense:
    """Return ranks known before anything is."""
    return Dense(np.array(ranks, np.int64))


def bracket(blocks: Sequence[Block]) -> Dense:
    """Return where in each sorted block to look for ranks: rows of begins, of ends, and how many are taken.

    The element of a rank is, of those between begins and ends in order, the one that as many come before as
    the last row says.

    Parameters
    ----------
    blocks
        The ranks, then what :func:`count_below` gave for each sorted block.
    """
    ranks = to_numpy(blocks[0])
    counts = np.array([to_numpy(one) for one in blocks[1:]])  # by block: (left, right) x values
    below, within = counts[:, 0, :-1], counts[:, 1, :-1]
    totals = counts[:, 0, :-1].sum(axis=0), counts[:, 1, :-1].sum(axis=0)
    number, lengths = len(counts), counts[:, 0, -1]
    found = np.zeros((2 * number + 1, ranks.size), np.int64)
    for column, rank in enumerate(ranks):
        place = int(np.searchsorted(totals[0], rank, side="right")) - 1
        if place >= 0 and rank < totals[1][place]:
            # an element of a sample: of equal ones, those of earlier blocks come first
            equal = within[:, place] - below[:, place]
            before = np.append(0, np.cumsum(equal)[:-1])
            begins = below[:, place] + np.clip(rank - totals[0][place] - before, 0, equal)
            ends = begins.copy()
            ends[np.flatnonzero((before <= rank - totals[0][place]) & (equal > 0))[-1]] += 1
        else:
            begins = within[:, place] if place >= 0 else np.zeros(number, np.int64)
            ends = below[:, place + 1] if place + 1 < below.shape[1] else lengths
        found[:number, column], found[number:-1, column] = begins, ends
        found[-1, column] = rank - begins.sum()
    return Dense(found)


def window(blocks: Sequence[Block], number: int) -> Dense:
    """Return the elements of a sorted block that brackets enclose, those of one rank after the other's."""
    values, brackets = (to_numpy(one) for one in blocks)
    count = len(brackets) // 2
    pieces = [
        values[start:stop] for start, stop in zip(brackets[number], brackets[count + number], strict=True)
    ]
    return Dense(np.concatenate([values[:0], *pieces]))


def splits(blocks: Sequence[Block]) -> Dense:
    """Return for each rank, and each sorted block, how many of its elements come before; and all.

    Parameters
    ----------
    blocks
        What :func:`bracket` gave, the windows of all blocks, then the counts of all blocks.
    """
    brackets, windows, order = _windows(blocks[: 1 + (len(blocks) - 1) // 2])
    number = len(windows)
    lengths = [to_numpy(one)[0, -1] for one in blocks[1 + number :]]
    found = np.zeros((brackets.shape[1] + 2, number), np.int64)
    for rank, (sources, _) in enumerate(order):
        taken = np.bincount(sources[: brackets[-1, rank]], minlength=number)
        found[rank + 1] = brackets[:number, rank] + taken
    found[-1] = lengths
    return Dense(found)


def at_ranks(blocks: Sequence[Block]) -> Dense:
    """Return the elements of ranks, from what :func:`bracket` gave and the windows of all blocks."""
    brackets, windows, order = _windows(blocks)
    found = np.empty(brackets.shape[1], windows[0].dtype)
    for rank, (_, values) in enumerate(order):
        found[rank] = values[brackets[-1, rank]]
    return Dense(found)


def _windows(
    blocks: Sequence[Block],
) -> tuple[Counts, list[NumericArray], list[tuple[Counts, NumericArray]]]:
    # Brackets, windows, and for each rank the blocks that its elements in order are of, and the elements.
    windows = [to_numpy(one) for one in blocks[1:]]
    brackets: Counts = to_numpy(blocks[0])  # type: ignore[assignment]  # as bracket() made them
    number = len(windows)
    lengths = brackets[number:-1] - brackets[:number]
    ends = np.cumsum(lengths, axis=1)
    order = []
    for rank in range(brackets.shape[1]):
        pieces = [
            one[stop - length : stop]
            for one, stop, length in zip(windows, ends[:, rank], lengths[:, rank], strict=True)
        ]
        values = np.concatenate(pieces)
        sources = np.repeat(np.arange(number), lengths[:, rank])
        ascending = np.argsort(values, kind="stable")
        order.append((sources[ascending], values[ascending]))
    return brackets, windows, order


def piece(blocks: Sequence[Block], number: int, part: int) -> Dense:
    """Return the part of a sorted block, of that number, between two rows of splits."""
    splits_of = to_numpy(blocks[1])
    return Dense(to_numpy(blocks[0])[splits_of[part, number] : splits_of[part + 1, number]])


def merged(blocks: Sequence[Block]) -> Dense:
    """Return sorted pieces put together to one."""
    pieces = [to_numpy(one) for one in blocks]
    out = np.empty(sum(one.size for one in pieces), pieces[0].dtype)
    merge_into(pieces, out)
    return Dense(out)


def merge_into(pieces: Sequence[NumericArray], out: NumericArray) -> None:
    """Write the elements of sorted arrays in order."""
    if not _is_merged(out.size, out.dtype):
        out[:] = np.sort(np.concatenate(pieces), kind="stable")
        return
    numbers = [without_nan(one) for one in pieces]
    filled = sum(one.size for one in numbers)
    _merge_all(numbers, out[:filled])
    if filled < out.size:
        out[filled:] = np.nan


def _merge_all(pieces: Sequence[NumericArray], out: NumericArray) -> None:
    rest = [one for one in pieces if one.size]
    while len(rest) > 2:
        made = []
        for left, right in zip(rest[::2], rest[1::2], strict=False):
            both = np.empty(left.size + right.size, out.dtype)
            _merge_two(left, right, both)
            made.append(both)
        rest = made + rest[len(rest) // 2 * 2 :]
    if len(rest) == 2:
        _merge_two(rest[0], rest[1], out)
    elif rest:
        out[:] = rest[0]


def _merge_two(left: NumericArray, right: NumericArray, out: NumericArray) -> None:
    arrays = _seen(left), _seen(right), _written(out)
    if is_worth_compiling(merge, out.size, *arrays):
        merge(*arrays)
    else:
        out[: left.size], out[left.size :] = left, right
        out.sort(kind="stable")


def merged_places(blocks: Sequence[Block]) -> Dense:
    """Return where the elements of sorted pieces come from, in the order of all: their places put together.

    Parameters
    ----------
    blocks
        The pieces' elements, then the pieces' places.
    """
    number = len(blocks) // 2
    values, places = ([to_numpy(one) for one in part] for part in (blocks[:number], blocks[number:]))
    return Dense(merged_pairs(values, places)[1])


def merged_pairs(
    values: Sequence[NumericArray], places: Sequence[NumericArray]
) -> tuple[NumericArray, NumericArray]:
    """Return the elements of sorted arrays in order, and their places; equal ones in the arrays' order."""
    dtype = values[0].dtype
    if not _is_merged(sum(one.size for one in values), dtype):
        joined = np.concatenate(values)
        ascending = np.argsort(joined, kind="stable")
        return joined[ascending], np.concatenate(places)[ascending]
    # NaN are last, in the order of the pieces.
    numbers = [without_nan(one) for one in values]
    nans = [
        (one[kept.size :], where[kept.size :])
        for one, kept, where in zip(values, numbers, places, strict=True)
    ]
    rest = [(one, where[: one.size]) for one, where in zip(numbers, places, strict=True)]
    while len(rest) > 1:
        made = []
        for (left, left_places), (right, right_places) in zip(rest[::2], rest[1::2], strict=False):
            out = np.empty(left.size + right.size, dtype), np.empty(left.size + right.size, np.int64)
            inputs = (_seen(left), _seen(right), given(left_places), given(right_places))
            arrays = *inputs, _written(out[0]), out[1]
            if is_worth_compiling(merge_with_places, _SORTING * out[1].size, *arrays):
                merge_with_places(*arrays)
            else:
                every = np.concatenate([left, right])
                order = np.argsort(every, kind="stable")
                out[0][:], out[1][:] = every[order], np.concatenate([left_places, right_places])[order]
            made.append(out)
        rest = made + rest[len(rest) // 2 * 2 :]
    if not any(one.size for one, _ in nans):
        return rest[0]
    found, where = zip(*rest, *nans, strict=True)
    return np.concatenate(found), np.concatenate(where)


def _is_merged(size: int, dtype: np.dtype) -> bool:
    return size > _FEW and dtype.kind in MERGED and dtype != np.float16


def without_nan(values: NumericArray) -> NumericArray:
    """Return an ascending array without the NaN at its end."""
    if values.dtype.kind not in "fc" or not values.size or values[-1] == values[-1]:
        return values
    if values.dtype.kind == "c":
        return values[: np.searchsorted(np.isnan(values), True)]
    return values[: np.searchsorted(values, np.nan)]


def _seen(values: NumericArray) -> NumericArray:
    return given(_written(values))


def _written(values: NumericArray) -> NumericArray:
    # Truths compare as bytes do.
    return values.view(np.uint8) if values.dtype == np.bool_ else values


def search(blocks: Sequence[Block], side: str) -> Dense:
    """Return how many elements of ascending blocks come before each value: the sum over the blocks.

    Parameters
    ----------
    blocks
        The values, then blocks of the array.
    side
        "left": those below a value; "right": also those equal to it.
    """
    values, *pieces = (to_numpy(one) for one in blocks)
    before = "left" if side == "left" else "right"
    counts = np.zeros(values.shape, np.int64)
    for one in pieces:
        counts += np.searchsorted(one, values, side=before)  # type: ignore[call-overload]  # a literal
    return Dense(counts)


def is_member(blocks: Sequence[Block]) -> Dense:
    """Return whether each value is in one of some blocks: the values, then the blocks."""
    values, *pieces = (to_numpy(one) for one in blocks)
    found = np.isin(values, pieces[0])
    for one in pieces[1:]:
        found |= np.isin(values, one)
    return Dense(found)


def interpolate(blocks: Sequence[Block]) -> Dense:
    """Return the values of a piecewise linear function: where, its places and heights, and beyond them."""
    values, places, heights, left, right = (np.asarray(to_numpy(one)) for one in blocks)
    found = np.interp(values, places, heights, left[()], right[()])  # type: ignore[call-overload]  # numbers
    return Dense(np.asarray(found))

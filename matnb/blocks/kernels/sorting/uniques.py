"""The distinct elements of sorted pieces, packed as bytes, and what is picked out of these."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matnb.blocks.formats import Block, Dense, NumericArray, to_numpy
from matnb.blocks.kernels.compiled import compiled
from matnb.blocks.kernels.sorting.ordering import MERGED, merge_into, merged_pairs, without_nan

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


@compiled
def keep_first(values: NumericArray, starts: Numbers | None, kept: int) -> int:
    """Move the first of each run of equal elements to the front; return how many there are.

    Parameters
    ----------
    values
        In order, at least one; what is behind those returned is undefined afterwards.
    starts
        Gets the place of each that stays, if it is given.
    kept
        0 where the first run began before the array, so that none of it stays, else 1.
    """
    last = values[0]
    if starts is not None:
        starts[0] = 0
    count = kept
    for place in range(1, values.size):
        one = values[place]
        values[count] = one  # in any case, and counted where it differs
        if starts is not None:
            starts[count] = place
        count += one != last
        last = one
    return count


FIELDS = ("values", "starts", "places")
_COUNT_BYTES = 8  # before the elements


def packed_length(length: int, dtype: np.dtype, starts: bool, places: bool) -> int:
    """Return how many bytes hold up to so many distinct elements."""
    return _COUNT_BYTES + -(-length * dtype.itemsize // 8) * 8 + 8 * length * (starts + places)


def piece_and_last(blocks: Sequence[Block], number: int, part: int) -> Dense:
    """Return a part of a sorted block, as ``ordering.piece`` does, after the element before it."""
    values, splits = (to_numpy(one) for one in blocks)
    start, stop = splits[part, number], splits[part + 1, number]
    return Dense(values[max(start - 1, 0) : stop])


def distinct(
    blocks: Sequence[Block], part: int, rank: int, equal_nan: bool, starts: bool, places: bool
) -> Dense:
    """Return the distinct elements of a part of the order, packed: their count, then they; starts; places.

    Parameters
    ----------
    blocks
        The splits, the pieces that :func:`piece_and_last` gave of all blocks, and if ``places`` those of the
        places of the elements.
    part, rank
        The number of the part, and how many elements come before it.
    """
    splits, *pieces = (to_numpy(one) for one in blocks)
    number = splits.shape[1]
    ahead = [int(one) for one in splits[part] > 0]
    last = np.sort(np.array([one[0] for one, is_one in zip(pieces, ahead, strict=False) if is_one]))[-1:]
    pieces = [one[skipped:] for one, skipped in zip(pieces, ahead * (1 + places), strict=True)]
    dtype, length = pieces[0].dtype, sum(one.size for one in pieces[:number])
    packed = np.empty(packed_length(length, dtype, starts, places), np.uint8)
    fields = _fields(packed, length, dtype, starts, places)
    values = fields["values"]
    where = None
    if places:
        values[:], where = merged_pairs(pieces[:number], pieces[number:])
    else:
        merge_into(pieces, values)
    firsts: Numbers | None = None
    if starts:
        firsts = fields["starts"]  # type: ignore[assignment]  # as they are seen
    elif places:
        firsts = np.empty(length, np.int64)
    count = _kept(values, last, firsts, equal_nan)
    packed[:_COUNT_BYTES].view(np.int64)[0] = count
    if where is not None and firsts is not None:
        fields["places"][:count] = where[firsts[:count]]
    if starts and firsts is not None:
        firsts[:count] += rank
    return Dense(packed)


def count_of(blocks: Sequence[Block]) -> Dense:
    """Return how many distinct elements are packed."""
    return Dense(to_numpy(blocks[0])[:_COUNT_BYTES].view(np.int64).copy())


def field_of(
    blocks: Sequence[Block], name: str, length: int, dtype: np.dtype, starts: bool, places: bool
) -> Dense:
    """Return one of what is packed for up to ``length`` elements; a view where most of it is used."""
    packed = to_numpy(blocks[0])
    count = int(packed[:_COUNT_BYTES].view(np.int64)[0])
    found = _fields(packed, length, dtype, starts, places)[name][:count]
    return Dense(found if 2 * count * found.itemsize > packed.size else found.copy())


def _fields(
    packed: NumericArray, length: int, dtype: np.dtype, starts: bool, places: bool
) -> dict[str, NumericArray]:
    begin = packed_length(length, dtype, False, False)
    found = {"values": packed[_COUNT_BYTES : _COUNT_BYTES + length * dtype.itemsize].view(dtype)}
    for name in [name for name, is_there in (("starts", starts), ("places", places)) if is_there]:
        found[name] = packed[begin : begin + 8 * length].view(np.int64)
        begin += 8 * length
    return found


def _kept(values: NumericArray, last: NumericArray, starts: Numbers | None, equal_nan: bool) -> int:
    # Moves what is distinct to the front, and notes where in the order it began.
    numbers = without_nan(values)
    count = 0
    if numbers.size:
        is_new = int(not last.size or bool(last[0] != numbers[0]))
        if values.dtype.kind in MERGED and values.dtype != np.float16:
            seen = numbers.view(np.uint8) if values.dtype == np.bool_ else numbers
            count = keep_first(seen, starts, is_new)
        else:
            places = np.flatnonzero(np.append(bool(is_new), numbers[1:] != numbers[:-1]))
            count = places.size
            values[:count] = numbers[places]
            if starts is not None:
                starts[:count] = places
    more = values.size - numbers.size
    if equal_nan and more:
        more = 0 if last.size and bool(np.isnan(last[0])) else 1
    values[count : count + more] = values[numbers.size : numbers.size + more].copy()
    if starts is not None:
        starts[count : count + more] = np.arange(numbers.size, numbers.size + more)
    return count + more

"""Functions of the values of segments, made a tile at a time and reduced at once: none is held as a whole.

So the sum of products of values with what places pick from a vector, which is a sparse matrix times a vector,
goes over the values once. Sums of floats are those of the tree over places within the segment, as of values
that are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Block, Dense, NumericArray, cast, signed, to_numpy
from matnb.blocks.kernels.compiled import compiled, given
from matnb.blocks.kernels.elementwise.chains import apply_chain
from matnb.blocks.kernels.elementwise.elementwise import Link
from matnb.blocks.kernels.reductions.sum_loops import (
    LEAF,
    MOST_NODES,
    ROOM,
    Floats,
    push_run,
    sum_part,
    sum_rows,
    sum_stack,
)
from matnb.blocks.kernels.shaping.indexing import gather
from matnb.blocks.sums import VectorSum, single_or_double, sums_as_tree
from matnb.errors import IndexingError
from matnb.nested.kernels.segments import UFUNCS, multiply_up, reduce_filled

_TILE = 2**14  # values: what functions make of them stays in the near caches
_PRODUCTS = LEAF * LEAF
_0 = np.uint64(0)


@dataclass(frozen=True)
class SegmentFold:
    """Functions of values of segments, which are reduced but not held.

    Attributes
    ----------
    operands
        A kind and the places of what it reads among all that is read, for each operand of the functions.
        "values": as they are; "number": one for all; "segments": one of each segment; "picked": elements of a
        vector, and the places that pick them; "placed": those at the places of values within segments.
    links
        The functions, which number the operands first, then themselves in order. Without any the first
        operand is reduced.
    dtype
        Of what is reduced.
    spans
        Of all that is read, what part of it a block needs: as many as "values" or "segments", or the "whole".
    """

    operands: tuple[tuple[str, tuple[int, ...]], ...]
    links: tuple[Link, ...]
    dtype: np.dtype
    spans: tuple[str, ...]


class _Tiles:
    # What the functions make of some values, tile by tile; a segment is cut where leaves of its tree end.

    def __init__(
        self, read: Sequence[Block], fold: SegmentFold, pointers: npt.NDArray[np.int64], place: int
    ) -> None:
        self._arrays = [to_numpy(one) for one in read]
        self._fold, self._pointers, self._place = fold, pointers, place

    def __iter__(self) -> Iterator[tuple[NumericArray, int, int, int]]:
        # A tile, where it begins, and the first segment that meets it and the one after the last.
        pointers, begin, length = self._pointers, 0, int(self._pointers[-1])
        while begin < length:
            end = min(begin + _TILE, length)
            last = int(np.searchsorted(pointers, end, "left"))
            if pointers[last] > end:
                inside = end - int(pointers[last - 1])
                end -= min((inside + self._place) % LEAF, inside)
                last -= int(end == pointers[last - 1])
            first = int(np.searchsorted(pointers, begin, "right")) - 1
            yield self._made(begin, end, first, last), begin, first, last
            begin = end

    def _made(self, begin: int, end: int, first: int, last: int) -> NumericArray:
        operands = [
            self._operand(kind, [self._arrays[at] for at in places], begin, end, first, last)
            for kind, places in self._fold.operands
        ]
        if not self._fold.links:
            return operands[0]
        return to_numpy(apply_chain(self._fold.links, [Dense(one) for one in operands]))

    def _operand(
        self, kind: str, read: list[NumericArray], begin: int, end: int, first: int, last: int
    ) -> NumericArray:
        if kind == "values":
            return read[0][begin:end]
        if kind == "number":
            return read[0]
        if kind == "picked":
            return to_numpy(gather(Dense(read[0]), Dense(read[1][begin:end])))
        out = np.empty(end - begin, read[0].dtype)
        pointers = given(self._pointers[first : last + 1])
        if kind == "segments":
            _spread_numbers(given(read[0][first:last]), pointers, begin, end, out)
        else:
            _pick_placed(given(read[0]), pointers, begin, end, self._place, out)
        return out


@compiled
def _spread_numbers(
    numbers: NumericArray, pointers: npt.NDArray[np.int64], begin: int, end: int, out: NumericArray
) -> None:
    for k in range(numbers.size):
        for place in range(max(pointers[k], begin), min(pointers[k + 1], end)):
            out[place - begin] = numbers[k]


@compiled
def _pick_placed(
    x: NumericArray, pointers: npt.NDArray[np.int64], begin: int, end: int, shift: int, out: NumericArray
) -> None:
    for k in range(pointers.size - 1):
        for place in range(max(pointers[k], begin), min(pointers[k + 1], end)):
            out[place - begin] = x[place - pointers[k] + shift]


def folded(
    values: Sequence[Block],
    fold: SegmentFold,
    operation: str,
    dtype: np.dtype,
    identity: object,
    start: int,
    stop: int,
) -> Dense:
    """Return what an operation leaves of functions of each segment's values, ``identity`` of an empty one.

    Parameters
    ----------
    values
        What is read for values from ``start`` to ``stop``, which begin and end with segments, and the offsets
        of these; without any value the offsets alone.
    operation
        "sum", "prod", "min", "max", "any" or "all".

    Returns
    -------
    Dense
        The bits of functions that are made first. Peak memory: the result, and a tile for each function.
    """
    *read, offsets = values
    pointers = (np.clip(to_numpy(offsets), start, stop) - start).astype(np.int64, copy=False)
    out = np.full(pointers.size - 1, identity, dtype)
    if start == stop:
        return Dense(out)
    factors = _factors(read, fold) if sums_as_tree(operation, dtype) else None
    if factors is not None:
        return Dense(cast(_sums_of_products(*factors, pointers), dtype))
    tiles = _Tiles(read, fold, pointers, 0)
    with np.errstate(all="ignore"):
        if sums_as_tree(operation, dtype):
            return Dense(cast(_sums_of(tiles, pointers), dtype))
        for made, begin, first, last in tiles:
            local = np.clip(pointers[first : last + 1], begin, begin + made.size) - begin
            _reduce_tile(made, local, operation, bool(begin > pointers[first]), out[first:last])
    return Dense(out)


def _reduce_tile(
    made: NumericArray, local: npt.NDArray[np.int64], operation: str, continues: bool, out: NumericArray
) -> None:
    # The segments of a tile, of which the first may go on.
    if operation == "prod" and out.dtype.kind in "fc":
        multiply_up(given(cast(made, out.dtype)), given(local), out)
        return
    before = out[:1].copy()
    reduce_filled(made, local, operation, out)
    if continues:
        out[:1] = UFUNCS[operation](before, out[:1])


def _sums_of(tiles: _Tiles, pointers: npt.NDArray[np.int64]) -> NumericArray:
    sums = np.zeros(pointers.size - 1)
    stack, buffer, top = np.empty(MOST_NODES), np.empty(ROOM), 0
    whole = given(pointers)
    for made, begin, first, last in tiles:
        tile = given(single_or_double(made))
        top = _sum_tile(tile, whole, begin, first, last, stack, top, buffer, sums)
    return sums


@compiled
def _sum_tile(
    values: NumericArray,
    pointers: npt.NDArray[np.int64],
    begin: int,
    first: int,
    last: int,
    stack: Floats,
    top: int,
    buffer: Floats,
    out: Floats,
) -> int:
    # As ``sum_rows``; of a segment that goes on in the next tile the nodes stay on the stack.
    end = begin + values.size
    none: Any = np.int64(0)  # as in sum_contiguous
    whole: Any = np.bool_(True)
    for k in range(first, last):
        low, high = pointers[k], pointers[k + 1]
        count = high - low
        if count == 0:
            continue
        if count < LEAF:
            out[k] = sum_part(values, np.uint64(low - begin), np.uint64(count), buffer) + 0.0
            continue
        at, upto = max(low, begin), min(high, end)
        top = push_run(values, low - begin, at - low, upto - low, none, whole, stack, top, buffer)
        if upto == high:
            out[k] = sum_stack(stack, top)
            top = none
    return top


def _factors(
    read: Sequence[Block], fold: SegmentFold
) -> tuple[NumericArray, NumericArray, NumericArray] | None:
    # Values, what is picked for each of them, and the places, where their product is all that is summed.
    kinds = dict(fold.operands)
    if len(fold.links) != 1 or fold.links[0].name != "multiply" or set(kinds) != {"values", "picked"}:
        return None
    at, places = kinds["picked"]
    values, x = to_numpy(read[kinds["values"][0]]), to_numpy(read[at])
    is_float = values.dtype in (np.float64, np.float32) and values.dtype == x.dtype == fold.dtype
    return (values, x, signed(to_numpy(read[places]))) if is_float and len(fold.operands) == 2 else None


def _sums_of_products(
    values: NumericArray, x: NumericArray, places: NumericArray, pointers: npt.NDArray[np.int64]
) -> NumericArray:
    sums = np.zeros(pointers.size - 1)
    tile = np.empty(_PRODUCTS, values.dtype)
    bad = _sum_products(given(values), given(x), given(places), given(pointers), tile, sums)
    if bad >= 0:
        raise IndexingError(f"index {places[bad]} is out of bounds for axis 0 of length {x.size}")
    return sums


@compiled
def _sum_products(
    values: NumericArray,
    x: NumericArray,
    places: NumericArray,
    pointers: npt.NDArray[np.int64],
    tile: NumericArray,
    out: Floats,
) -> int:
    # As ``sum_rows`` of products that are made some segments at a time, or leaves of a long one: the first
    # place that is out of range.
    stack, buffer = np.empty(MOST_NODES), np.empty(ROOM)
    none: Any = np.int64(0)  # as in sum_contiguous
    whole: Any = np.bool_(True)
    k = none
    while k < out.size:
        low, last = pointers[k], k
        while last < out.size and pointers[last + 1] - low <= tile.size:
            last += 1
        if last > k:
            bad = _multiply_into(tile, values, x, places, low, pointers[last])
            if bad >= 0:
                return bad
            sum_rows(pointers[k : last + 1] - low, tile, out[k:last])
            k = last
            continue
        count, top = pointers[k + 1] - low, none
        for at in range(0, count, tile.size):
            upto = min(at + tile.size, count)
            bad = _multiply_into(tile, values, x, places, low + at, low + upto)
            if bad >= 0:
                return bad
            top = push_run(tile, -at, at, upto, none, whole, stack, top, buffer)
        out[k] = sum_stack(stack, top)
        k += 1
    return -1


@compiled
def _multiply_into(
    tile: NumericArray, values: NumericArray, x: NumericArray, places: NumericArray, begin: int, end: int
) -> int:
    # Without a branch for each place, which costs as much as picking its element; and unsigned, or each
    # access would ask whether it counts from the end.
    some, where, size, is_any = values[begin:end], places[begin:end], np.int64(x.size), False
    for at in range(np.uint64(end - begin)):
        place = np.int64(where[at])
        from_start = place + size if place < 0 else place
        is_bad = np.uint64(from_start) >= np.uint64(size)
        is_any |= bool(is_bad)
        tile[at] = some[at] * x[_0 if is_bad else np.uint64(from_start)]
    if is_any:
        for number in range(begin, end):
            if not -size <= np.int64(places[number]) < size:
                return number
    return -1


def folded_share(
    values: Sequence[Block], fold: SegmentFold, operation: str, dtype: np.dtype, place: int, count: int
) -> Dense:
    """Return what a part of one segment has for the whole, as ``segments.share`` of what functions make.

    Parameters
    ----------
    values
        What is read for ``count`` values from a place within the segment on; behind it, of a product of
        floats, what the part before makes of it.
    """
    read, before = values[: len(fold.spans)], values[len(fold.spans) :]
    tiles = _Tiles(read, fold, np.array([0, count]), place)
    with np.errstate(all="ignore"):
        if sums_as_tree(operation, dtype):
            total = VectorSum(place)
            for made, *_ in tiles:
                total.add(made)
            return Dense(total.share())
        identity = np.ones(1, dtype) if operation == "prod" else np.zeros(1, dtype)
        out = to_numpy(before[0]).copy() if before else identity
        for made, begin, *_ in tiles:
            _reduce_tile(made, np.array([0, made.size]), operation, bool(begin), out)
    return Dense(out)

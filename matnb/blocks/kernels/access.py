"""Elements read and written at places known only when a kernel runs, and values combined by label."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Block, Dense, NumericArray, to_numpy
from matnb.blocks.grid import Region
from matnb.blocks.kernels.casting import cast
from matnb.blocks.kernels.labels import reduce_by_label
from matnb.blocks.kernels.shaping import densify, take
from matnb.blocks.semiring import LAND, LOR, PLUS, TIMES, Monoid
from matnb.errors import DTypeError, IndexingError, ShapeError

Place = tuple[slice | int, ...]  # of a block, local


def place_of(index: Block, length: int, axis: int) -> int:
    """Return an index without axes as a place on an axis, counted from its start.

    Raises
    ------
    IndexingError
        When it is out of range.
    """
    number = int(to_numpy(index)[()])
    if not -length <= number < length:
        raise IndexingError(f"index {number} on axis {axis} of length {length}")
    return number % length


def pick(values: Sequence[Block], axis: int, starts: Sequence[int], length: int) -> Dense:
    """Return the elements at one place of an axis, which keeps length 1; length 0 where no block has it.

    Parameters
    ----------
    values
        The place, as a block of one element, negative from the end; then blocks that differ along the axis
        only.
    starts
        Where on the axis each block begins.
    length
        Of the axis of the whole array.

    Returns
    -------
    Dense
        In memory of its own.

    Raises
    ------
    IndexingError
        When the index is out of range.
    """
    index, *blocks = values
    place = place_of(index, length, axis)
    for block, start in zip(blocks, starts, strict=True):
        if start <= place < start + block.shape[axis]:
            chosen = slice(place - start, place - start + 1)
            return densify(take(block, (*(slice(None),) * axis, chosen)))
    shape = list(blocks[0].shape)
    shape[axis] = 0
    return Dense(np.empty(shape, blocks[0].dtype))


def only(values: Sequence[Dense], axis: int) -> Dense:
    """Return what :func:`pick` found in one of several parts, without the axis; it shares their memory."""
    (found,) = (part.values for part in values if part.shape[axis] == 1)
    return Dense(found.reshape((*found.shape[:axis], *found.shape[axis + 1 :])))


def local_place(
    key: Sequence[tuple[int, int, int] | int | None],
    region: Region,
    shape: tuple[int, ...],
    indices: Sequence[Block],
) -> Place | None:
    """Return a place of a whole array as one of a block, or None where nothing of it lies there.

    Parameters
    ----------
    key
        For each axis bounds and a step above 0, a number, or None for the next of ``indices``.
    region
        Of the block.
    shape
        Of the whole array.

    Raises
    ------
    IndexingError
        When an index is out of range.
    """
    remaining = iter(indices)
    place: list[slice | int] = []
    outside = False
    for axis, (chosen, (start, stop)) in enumerate(zip(key, region, strict=True)):
        if isinstance(chosen, tuple):
            low, high = steps_within(chosen, start, stop)
            outside |= low >= high
            first, last = (chosen[0] + chosen[2] * number - start for number in (low, high - 1))
            place.append(slice(first, last + 1, chosen[2]))
            continue
        number = place_of(next(remaining), shape[axis], axis) if chosen is None else chosen
        outside |= not start <= number < stop
        place.append(number - start)
    return None if outside else tuple(place)


def steps_within(chosen: tuple[int, int, int], start: int, stop: int) -> tuple[int, int]:
    """Return which elements of a slice lie between two bounds, as a range of their numbers, empty if none.

    Parameters
    ----------
    chosen
        Bounds and a step above 0.
    """
    begin, _, step = chosen
    count = len(range(*chosen))
    low, high = (min(max(0, -(-(bound - begin) // step)), count) for bound in (start, stop))
    return low, high


def put_into(block: Dense, place: Place | None, value: Dense, out: NumericArray | None = None) -> Dense:
    """Return a block with a value written at a place.

    Parameters
    ----------
    place
        A number or slice for every axis; None where nothing of the place lies in the block.
    value
        Broadcasts to the place, and is converted to the block's dtype.
    out
        Where the result goes: the block's own memory, of which only the place is written then, or memory that
        shares nothing with it. None for new memory, or for the block itself where it stays as it is.
    """
    if place is None and out is None:
        return block
    values = block.values.copy(order="C") if out is None else out
    if out is not None and not np.may_share_memory(out, block.values):
        np.copyto(out, block.values)
    if place is not None:
        values[(*place, ...)] = cast(value.values, block.dtype)
    return Dense(values)


def put_each(
    block: Dense, index: Dense, value: Dense, start: int, length: int, out: NumericArray | None = None
) -> Dense:
    """Return a block with values written at places of the whole array's first axis; of equal ones, the last.

    Parameters
    ----------
    index
        Whole numbers of one axis; negative ones count from the end.
    value
        Broadcasts to an element, or row, for each, and is converted to the block's dtype.
    start, length
        Where on the axis the block begins, and the length of the whole.
    out
        As in :func:`put_into`.

    Raises
    ------
    IndexingError
        For the first index that is out of range.
    """
    places = _in_range(index, length).astype(np.int64)
    places[places < 0] += length
    places -= start
    values = block.values.copy(order="C") if out is None else out
    if out is not None and not np.may_share_memory(out, block.values):
        np.copyto(out, block.values)
    here = np.flatnonzero((places >= 0) & (places < block.shape[0]))
    # NumPy promises that of equal places the last one stays
    new = cast(value.values, block.dtype)
    values[places[here]] = np.broadcast_to(new, (len(places), *block.shape[1:]))[here]
    return Dense(values)


def gather(operand: Dense, index: Dense, out: NumericArray | None = None) -> Dense:
    """Return elements, or rows of the first axis, at the places of an index.

    Parameters
    ----------
    index
        Whole numbers of one axis; negative ones count from the end.
    out
        Where the result goes, or None for new memory.

    Raises
    ------
    IndexingError
        For the first index that is out of range.
    """
    places = _in_range(index, operand.shape[0])
    values = np.empty((len(places), *operand.shape[1:]), operand.dtype) if out is None else out
    if places.size:
        # The range is known to be right, and without a check NumPy writes straight into the result.
        np.take(operand.values, places, axis=0, out=values, mode="wrap")
    return Dense(values)


def scatter(
    values: Dense,
    labels: Dense,
    length: int,
    monoid: Monoid,
    dtype: np.dtype,
    start: int,
    before: Dense | None = None,
) -> Dense:
    """Combine the values, or rows, of the same label, as :func:`labels.reduce_by_label` does.

    Parameters
    ----------
    labels
        Whole numbers of any dtype.
    start
        Where in the whole array the labels begin, for the message.
    before
        What they are combined with, if it is given.

    Raises
    ------
    IndexingError
        For the first label that is out of range.
    """
    places = signed(labels.values)
    try:
        return reduce_by_label(
            values.values, places, length, monoid, dtype, None if before is None else before.values
        )
    except ShapeError:
        outside = np.flatnonzero((places < 0) | (places >= length))
        if not len(outside):
            raise
        bad = int(outside[0])
        raise IndexingError(
            f"label {labels.values[bad]} at position {start + bad}: labels go from 0 to {length - 1}"
        ) from None


def reduced_dtype(monoid: Monoid, dtype: np.dtype) -> np.dtype:
    """Return the dtype of values combined by label: that of NumPy's reduction over them.

    Raises
    ------
    DTypeError
        For values without an order and min or max, and for extended precision.
    """
    if monoid in (LOR, LAND):
        return np.dtype(np.bool_)
    if dtype.kind in "fc" and dtype.itemsize > (8 if dtype.kind == "f" else 16):
        raise DTypeError(f"values of dtype {dtype} by label: convert to double precision with astype first")
    if monoid in (PLUS, TIMES) and dtype.kind in "biu":
        return np.result_type(np.add.reduce(np.empty(0, dtype)))
    monoid.identity(dtype)
    return dtype


def _in_range(index: Dense, length: int) -> npt.NDArray[np.int32] | npt.NDArray[np.int64]:
    places = signed(index.values)
    if places.size and not -length <= places.min() <= places.max() < length:
        bad = int(np.flatnonzero((places < -length) | (places >= length))[0])
        raise IndexingError(f"index {index.values[bad]} on axis 0 of length {length}")
    return places


def signed(places: NumericArray) -> npt.NDArray[np.int32] | npt.NDArray[np.int64]:
    """Return whole numbers of any dtype as signed ones: beyond 63 bits no array has a place, nor then."""
    if places.dtype == np.int32:
        return places.view(np.int32)
    if places.dtype == np.uint64:
        places = np.minimum(places, np.uint64(np.iinfo(np.int64).max))
    return places.astype(np.int64, copy=False)

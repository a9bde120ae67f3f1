"""Blocks read and written at places: numbers, slices, and lists of whole numbers; each knows what it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from matnb.blocks.formats import (
    Block,
    Csr,
    Dense,
    Empty,
    NumericArray,
    cast,
    csr_block,
    is_sparse,
    signed,
    to_numpy,
    to_scipy,
)
from matnb.blocks.grid import Region, all_of, window_start
from matnb.blocks.kernels.compiled import compiled, given, is_worth_compiling
from matnb.blocks.kernels.shaping.shaping import Memory, cut, densify, join, take
from matnb.errors import IndexingError

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
        raise IndexingError(f"index {number} is out of bounds for axis {axis} of length {length}")
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


def _in_range(index: Dense, length: int) -> npt.NDArray[np.int32] | npt.NDArray[np.int64]:
    places = signed(index.values)
    if places.size and not -length <= places.min() <= places.max() < length:
        bad = int(np.flatnonzero((places < -length) | (places >= length))[0])
        raise IndexingError(f"index {index.values[bad]} is out of bounds for axis 0 of length {length}")
    return places


Places: TypeAlias = npt.NDArray[np.integer]
New: TypeAlias = tuple[Places, Places, NumericArray]  # rows, columns and values, no place twice


def take_window(
    blocks: Sequence[Block],
    starts: Sequence[int],
    axis: int,
    window: tuple[int, int],
    memory: Memory = np.empty,
    may_share: bool = False,
) -> Block:
    """Return what blocks have of a stretch of an axis, in memory of its own; of length 0 where that is none.

    Parameters
    ----------
    blocks, starts
        Neighbors on the axis, and where each begins.
    window
        The bounds of the stretch on the axis.
    may_share
        Whether it may lie in the memory of a dense block that has all of it in C order.
    """
    parts: list[tuple[tuple[int, ...], Block]] = []
    first = blocks[0]
    covered = 0
    for block, start in zip(blocks, starts, strict=True):
        low, high = max(window[0], start), min(window[1], start + block.shape[axis])
        if low < high:
            key = [slice(0, length) for length in block.shape]
            key[axis] = slice(low - start, high - start)
            offset = tuple(covered if one == axis else 0 for one in range(len(key)))
            parts.append((offset, cut(block, tuple(key))))
            covered += high - low
    if may_share and len(parts) == 1:
        view = parts[0][1]
        if isinstance(view, Dense) and view.values.flags.c_contiguous:
            return view
    shape = (*first.shape[:axis], covered, *first.shape[axis + 1 :])
    return _beside(parts, shape, first.dtype, is_sparse(first), memory)


def join_window(
    parts: Sequence[Block], axis: int, shape: tuple[int, ...], dtype: np.dtype, sparse: bool, memory: Memory
) -> Block:
    """Return parts of a stretch one after the other along an axis, in memory of its own."""
    placed: list[tuple[tuple[int, ...], Block]] = []
    covered = 0
    for one in parts:
        if one.shape[axis]:
            placed.append((tuple(covered if own == axis else 0 for own in range(len(shape))), one))
            covered += one.shape[axis]
    return _beside(placed, shape, dtype, sparse, memory)


def _beside(
    parts: Sequence[tuple[tuple[int, ...], Block]],
    shape: tuple[int, ...],
    dtype: np.dtype,
    sparse: bool,
    memory: Memory,
) -> Block:
    if sparse or len(parts) != 1:
        return join(parts, shape, dtype, sparse, memory)
    target = memory(shape, dtype)
    np.copyto(target, to_numpy(parts[0][1]))
    return Dense(target)


def put_window(
    block: Dense,
    value: Dense,
    axis: int,
    start: int,
    window: tuple[int, int],
    out: NumericArray | None = None,
) -> Dense:
    """Return a block with a value written over a stretch of an axis, as :func:`put_into` does.

    Parameters
    ----------
    value
        Of the whole stretch; broadcasts along the other axes.
    start, window
        Where on the axis the block begins, and the bounds of the stretch.
    """
    low, high = max(window[0], start), min(window[1], start + block.shape[axis])
    if low >= high:
        return put_into(block, None, value, out)
    before = (slice(None),) * axis
    part = value.values[(*before, slice(low - window[0], high - window[0]))]
    return put_into(block, (*before, slice(low - start, high - start)), Dense(part), out)


def put_sparse(
    values: Sequence[Block],
    key: tuple[tuple[int, int, int] | int | None, ...],
    region: Region,
    shape: tuple[int, ...],
) -> Block:
    """Return a sparse block with a value written at a place of the whole array, as PutAt does to dense ones.

    Parameters
    ----------
    values
        The block, the value, which broadcasts and may be sparse, and the places that ``key`` leaves out.
    """
    block, new = values[0], values[1]
    place = local_place(key, region, shape, values[2:])
    assert not isinstance(block, Dense), "a sparse array's"
    if place is None:
        return block
    axes = [
        range(length)[one if isinstance(one, slice) else slice(one, one + 1)]
        for one, length in zip(place, block.shape, strict=True)
    ]
    target = tuple(len(one) for one in axes)
    rows: Places
    columns: Places
    if isinstance(new, Dense):
        dropped = tuple(number for number, one in enumerate(place) if not isinstance(one, slice))
        values_there = new.values
        if values_there.any():
            kept = tuple(length for number, length in enumerate(target) if number not in dropped)
            whole = np.broadcast_to(values_there, kept).reshape(target)
            rows, columns = np.nonzero(whole)
            entries = whole[rows, columns]
        else:
            rows = columns = np.zeros(0, np.int64)
            entries = np.zeros(0, block.dtype)
    else:
        matrix = to_scipy(new)
        rows = np.repeat(np.arange(new.shape[0]), np.diff(matrix.indptr))
        columns, entries = matrix.indices, matrix.data
    there = [
        one.start + one.step * local.astype(np.int64)
        for one, local in zip(axes, (rows, columns), strict=True)
    ]
    return replaced(block, None, None, (axes[0], axes[1]), (there[0], there[1], entries))


def put_window_sparse(
    values: Sequence[Block], axis: int, size: int, region: Region, shape: tuple[int, ...]
) -> Block:
    """Return a sparse block with a value written over a stretch of an axis of the whole array.

    Parameters
    ----------
    values
        The block, the value, of the whole stretch along the axis, and where the stretch begins.
    region, shape
        Of the block, and of the whole array.
    """
    block, new, index = values
    start = window_start(int(to_numpy(index)[()]), size, shape[axis], axis)
    low, high = max(start, region[axis][0]), min(start + size, region[axis][1])
    if low >= high:
        return block
    part = [slice(0, length) for length in new.shape]
    part[axis] = slice(low - start, high - start)
    key: list[tuple[int, int, int] | int | None] = [(*bounds, 1) for bounds in region]
    key[axis] = (low, high, 1)
    return put_sparse([block, cut(new, tuple(part))], tuple(key), region, shape)


def put_where(values: Sequence[Block]) -> Block:
    """Return a sparse block with a value, which broadcasts, written where booleans are true."""
    block, mask, new = values
    assert not isinstance(block, Dense), "a sparse array's"
    rows, columns = np.nonzero(np.broadcast_to(to_numpy(mask), block.shape))
    entries = np.broadcast_to(to_numpy(new), block.shape)[rows, columns]
    return replaced(block, rows, columns, None, (rows, columns, entries))


def replaced(
    block: Csr | Empty,
    rows: Places | None,
    columns: Places | None,
    crossing: tuple[Places | range | None, Places | range | None] | None,
    new: New,
) -> Csr | Empty:
    """Return a sparse block without what was at some places, and with new entries there; no zeros among them.

    Parameters
    ----------
    rows, columns
        Of each place, or None for
    crossing
        all where these rows and columns cross; None stands for all rows, or all columns.
    new
        The entries that come.
    """
    matrix = to_scipy(block)
    height, width = block.shape
    old_rows = np.repeat(np.arange(height), np.diff(matrix.indptr))
    if crossing is None:
        assert rows is not None
        assert columns is not None
        stays = ~np.isin(old_rows * width + matrix.indices, rows * width + columns)
    else:
        stays = ~(_among(old_rows, crossing[0]) & _among(matrix.indices, crossing[1]))
    wanted = new[2] != 0
    made = sp.coo_array(
        (
            np.concatenate([matrix.data[stays], new[2][wanted].astype(block.dtype)]),
            (
                np.concatenate([old_rows[stays], new[0][wanted]]),
                np.concatenate([matrix.indices[stays], new[1][wanted]]),
            ),
        ),
        shape=block.shape,
    )
    result = sp.csr_array(made)
    result.sort_indices()
    return csr_block(result)


def _among(places: Places, chosen: Places | range | None) -> npt.NDArray[np.bool_]:
    if chosen is None:
        return np.ones(len(places), np.bool_)
    if isinstance(chosen, range):  # not listed, as it may be all of a long axis
        turn, rest = np.divmod(places.astype(np.int64) - chosen.start, chosen.step)
        return np.asarray((rest == 0) & (turn >= 0) & (turn < len(chosen)))
    return np.isin(places, chosen)


def entries_at(block: Csr | Empty, rows: Places, columns: Places) -> NumericArray:
    """Return the elements of a sparse block at places, which may be absent ones."""
    if isinstance(block, Empty) or not len(rows):
        return np.zeros(len(rows), block.dtype)
    found = to_scipy(block)[rows, columns]
    return np.asarray(found).reshape(-1)


PlacesOnAxis: TypeAlias = npt.NDArray[np.int64]
_WORDS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
_FEWEST = 1024  # of fewer elements NumPy picks as soon


def pick_parts(
    values: Sequence[Block], num_axes: int, axis: int, lengths: tuple[int, ...], regions: tuple[Region, ...]
) -> Block:
    """Return what lies at listed places in some blocks, in the order of those places that lie there.

    Parameters
    ----------
    values
        Vectors of places, one for each of ``num_axes`` axes from ``axis`` on, then the blocks.
    lengths
        Of those axes, of the whole array.
    regions
        Of each block, on those axes.

    Raises
    ------
    IndexingError
        For the first place that is out of range.
    """
    places = _places(values[:num_axes], axis, lengths)
    blocks = values[num_axes:]
    covers = regions == (all_of(lengths),)
    if all(isinstance(block, Dense) for block in blocks) and num_axes == 1 and blocks[0].shape[1:] == ():
        return Dense(_elements(places[0], [to_numpy(block) for block in blocks], [one for (one,) in regions]))
    positions = [np.arange(len(places[0]))] if covers else [_inside(places, region) for region in regions]
    parts = [
        _picked(block, [one[found] - start for one, (start, _) in zip(places, region, strict=True)], axis)
        for block, region, found in zip(blocks, regions, positions, strict=True)
    ]
    if len(parts) == 1:
        return parts[0]
    every = np.sort(np.concatenate(positions))
    return _together(parts, [np.searchsorted(every, one) for one in positions], axis, len(every))


def put_parts(
    values: Sequence[Block],
    num_axes: int,
    axis: int,
    lengths: tuple[int, ...],
    groups: tuple[tuple[Region, ...], ...],
) -> Block:
    """Return what lies at listed places, from what :func:`pick_parts` found in several groups of blocks.

    Parameters
    ----------
    values
        The vectors of places, then the groups' parts.
    groups
        The regions of the blocks of each.
    """
    places = _places(values[:num_axes], axis, lengths)
    positions = [_inside_any(places, regions) for regions in groups]
    return _together(values[num_axes:], positions, axis, len(places[0]))


def send(
    values: Sequence[Block], num_axes: int, axis: int, lengths: tuple[int, ...], regions: tuple[Region, ...]
) -> Block:
    """Return those of the values to be written whose places lie in some regions.

    Parameters
    ----------
    values
        Vectors of places, and the values: one a place along ``axis``.
    """
    found = _inside_any(_places(values[:num_axes], axis, lengths), regions)
    new = to_numpy(values[num_axes])
    return Dense(np.take(new, found, axis=new.ndim - 1 if axis >= new.ndim else axis))


def write(
    values: Sequence[Block],
    num_axes: int,
    axis: int,
    lengths: tuple[int, ...],
    region: Region,
    sent: tuple[tuple[Region, ...], ...],
) -> Block:
    """Return a block with values written at listed places; of equal ones the last stays.

    Parameters
    ----------
    values
        The block; then, once or more, vectors of places and the values that broadcast to them.
    region
        Of the block, on the axes of the places.
    sent
        For each of the values the regions of the places it has values for, or none where it has them for all.
    """
    block, rest = values[0], values[1:]
    listed: list[list[PlacesOnAxis]] = []
    news: list[NumericArray] = []
    for number, regions in enumerate(sent):
        turn = rest[number * (num_axes + 1) : (number + 1) * (num_axes + 1)]
        places = _places(turn[:num_axes], axis, lengths)
        new = to_numpy(turn[num_axes])
        if regions:
            found = _inside_any(places, regions)
            places = [one[found] for one in places]
        here = _inside(places, region)
        if not len(here):
            continue
        new = new.reshape((1,) * (len(block.shape) - num_axes + 1 - new.ndim) + new.shape)
        if new.shape[axis] != 1:
            new = np.take(new, here, axis=axis)
        listed.append([one[here] - start for one, (start, _) in zip(places, region, strict=True)])
        news.append(new)
    if not listed:
        return block
    if is_sparse(block):
        return _written_sparse(block, listed, news, axis)
    written = to_numpy(block).copy(order="C")
    for local, new in zip(listed, news, strict=True):
        # NumPy promises that of equal places the last one stays
        written[_key(axis, local)] = cast(new, written.dtype)
    return Dense(written)


def take_along(values: Sequence[Block], axis: int) -> Dense:
    """Return elements at the places on an axis that are listed for each lane of it."""
    operand, index = (to_numpy(one) for one in values)
    (places,) = _places([Dense(index)], axis, (operand.shape[axis],))
    return Dense(np.take_along_axis(operand, places, axis))


def put_along(values: Sequence[Block], axis: int) -> Dense:
    """Return a block with values written at the places on an axis that are listed for each lane of it."""
    operand, index, new = (to_numpy(one) for one in values)
    (places,) = _places([Dense(index)], axis, (operand.shape[axis],))
    written = operand.copy(order="C")
    np.put_along_axis(written, places, cast(new, written.dtype), axis)
    return Dense(written)


def _places(vectors: Sequence[Block], axis: int, lengths: tuple[int, ...]) -> list[PlacesOnAxis]:
    # Counted from the start, and known to be in range.
    result = []
    for number, (vector, length) in enumerate(zip(vectors, lengths, strict=True)):
        places = signed(to_numpy(vector)).astype(np.int64, copy=False)
        if places.size:
            low, high = places.min(), places.max()
            if low < -length or high >= length:
                bad = places[(places < -length) | (places >= length)][0]
                raise IndexingError(
                    f"index {bad} is out of bounds for axis {axis + number} of length {length}"
                )
            if low < 0:
                places = np.where(places < 0, places + length, places)
        result.append(places)
    return result


def _inside(places: Sequence[PlacesOnAxis], region: Region) -> PlacesOnAxis:
    inside: npt.NDArray[np.bool_] = np.ones(len(places[0]), np.bool_)
    for one, (start, stop) in zip(places, region, strict=True):
        inside &= (one >= start) & (one < stop)
    return np.flatnonzero(inside)


def _inside_any(places: Sequence[PlacesOnAxis], regions: Sequence[Region]) -> PlacesOnAxis:
    if len(regions) == 1:
        return _inside(places, regions[0])
    return np.sort(np.concatenate([_inside(places, region) for region in regions]))


def _key(axis: int, places: Sequence[PlacesOnAxis]) -> tuple[Any, ...]:
    return (*(slice(None),) * axis, *places)


def _picked(block: Block, local: Sequence[PlacesOnAxis], axis: int) -> Block:
    if isinstance(block, Dense):
        if len(local) == 1:
            return Dense(np.take(block.values, local[0], axis=axis))
        return Dense(np.ascontiguousarray(block.values[_key(axis, local)]))
    if len(local) == 2:
        return Dense(entries_at(block, local[0], local[1]))
    matrix = to_scipy(block)
    return csr_block(sp.csr_array(matrix[local[0]] if axis == 0 else matrix[:, local[0]]))


def _together(parts: Sequence[Block], positions: Sequence[PlacesOnAxis], axis: int, count: int) -> Block:
    # Parts of the result, put where they belong along an axis.
    first = parts[0]
    if isinstance(first, Dense):
        shape = (*first.shape[:axis], count, *first.shape[axis + 1 :])
        values = np.empty(shape, first.dtype)
        for part, place in zip(parts, positions, strict=True):
            values[_key(axis, [place])] = to_numpy(part)
        return Dense(values)
    order = np.argsort(np.concatenate(positions))
    matrices = [to_scipy(part) for part in parts if not isinstance(part, Dense)]
    if axis == 0:
        return csr_block(sp.csr_array(sp.csr_array(sp.vstack(matrices))[order]))
    return csr_block(sp.csr_array(sp.csr_array(sp.hstack(matrices))[:, order]))


def _written_sparse(
    block: Block, listed: Sequence[Sequence[PlacesOnAxis]], news: Sequence[NumericArray], axis: int
) -> Block:
    assert not isinstance(block, Dense), "asked before"
    for local, new in zip(listed, news, strict=True):
        count = len(local[0])
        # only the last of equal places is written
        width = block.shape[1]
        key = local[0] if len(local) == 1 else local[0] * width + local[1]
        _, last = np.unique(key[::-1], return_index=True)
        kept = count - 1 - last
        chosen = [one[kept] for one in local]
        if len(local) == 2:
            value = np.broadcast_to(new, (count,))[kept]
            block = replaced(block, chosen[0], chosen[1], None, (chosen[0], chosen[1], value))
            continue
        shape = (count, width) if axis == 0 else (block.shape[0], count)
        whole = np.take(np.broadcast_to(new, shape), kept, axis=axis) if new.any() else np.zeros((0, 0))
        rows, columns = np.nonzero(whole)
        value = whole[rows, columns]
        if axis == 0:
            block = replaced(block, None, None, (chosen[0], None), (chosen[0][rows], columns, value))
        else:
            block = replaced(block, None, None, (None, chosen[0]), (rows, chosen[0][columns], value))
    return block


def _elements(
    places: PlacesOnAxis, blocks: Sequence[NumericArray], ranges: Sequence[tuple[int, int]]
) -> NumericArray:
    # One pass over the places for each block, without lists of those that lie in it.
    dtype = blocks[0].dtype
    word = _WORDS.get(dtype.itemsize)
    if word is None or places.size < _FEWEST:
        found = [_inside([places], (one,)) for one in ranges]
        every = np.sort(np.concatenate(found))
        values = np.empty(len(every), dtype)
        for block, (start, _), at in zip(blocks, ranges, found, strict=True):
            values[np.searchsorted(every, at)] = block[places[at] - start]
        return values
    listed = given(places)
    inside = np.zeros(len(places), np.uint8)
    values = np.empty(len(places), word)
    total = 0
    for block, (start, stop) in zip(blocks, ranges, strict=True):
        picked = listed, start, stop, given(block).view(word), values, inside
        is_compiled = is_worth_compiling(_pick_range, places.size, *picked)
        total += (_pick_range if is_compiled else _picked_by_numpy)(*picked)
    if total == len(places):
        return values.view(dtype)
    return values[inside.view(np.bool_)].view(dtype)


def _picked_by_numpy(
    places: PlacesOnAxis, start: int, stop: int, block: NumericArray, out: NumericArray, inside: NumericArray
) -> int:
    found = np.flatnonzero((places >= start) & (places < stop))
    out[found], inside[found] = block[places[found] - start], 1
    return found.size


@compiled
def _pick_range(
    places: PlacesOnAxis, start: int, stop: int, block: NumericArray, out: NumericArray, inside: NumericArray
) -> int:
    total = 0
    length = np.uint64(stop - start)
    for i in range(places.size):
        local = np.uint64(places[i] - start)  # before the start it is huge
        if local < length:
            out[i] = block[local]
            inside[i] = 1
            total += 1
    return total

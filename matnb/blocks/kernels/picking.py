"""Blocks read and written at listed places: each block gives or takes what of them lies in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from matnb.blocks.formats import Block, Dense, NumericArray, csr_block, is_sparse, to_numpy, to_scipy
from matnb.blocks.grid import Region
from matnb.blocks.kernels.access import signed
from matnb.blocks.kernels.casting import cast
from matnb.blocks.kernels.compiled import compiled, given
from matnb.blocks.kernels.selecting import entries_at
from matnb.blocks.kernels.writing import replaced
from matnb.errors import IndexingError

Places: TypeAlias = npt.NDArray[np.int64]
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
    covers = regions == (tuple((0, length) for length in lengths),)
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
    listed: list[list[Places]] = []
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


def _places(vectors: Sequence[Block], axis: int, lengths: tuple[int, ...]) -> list[Places]:
    # Counted from the start, and known to be in range.
    result = []
    for number, (vector, length) in enumerate(zip(vectors, lengths, strict=True)):
        places = signed(to_numpy(vector)).astype(np.int64, copy=False)
        if places.size:
            low, high = places.min(), places.max()
            if low < -length or high >= length:
                bad = places[(places < -length) | (places >= length)][0]
                raise IndexingError(f"index {bad} on axis {axis + number} of length {length}")
            if low < 0:
                places = np.where(places < 0, places + length, places)
        result.append(places)
    return result


def _inside(places: Sequence[Places], region: Region) -> Places:
    inside: npt.NDArray[np.bool_] = np.ones(len(places[0]), np.bool_)
    for one, (start, stop) in zip(places, region, strict=True):
        inside &= (one >= start) & (one < stop)
    return np.flatnonzero(inside)


def _inside_any(places: Sequence[Places], regions: Sequence[Region]) -> Places:
    if len(regions) == 1:
        return _inside(places, regions[0])
    return np.sort(np.concatenate([_inside(places, region) for region in regions]))


def _key(axis: int, places: Sequence[Places]) -> tuple[Any, ...]:
    return (*(slice(None),) * axis, *places)


def _picked(block: Block, local: Sequence[Places], axis: int) -> Block:
    if isinstance(block, Dense):
        if len(local) == 1:
            return Dense(np.take(block.values, local[0], axis=axis))
        return Dense(np.ascontiguousarray(block.values[_key(axis, local)]))
    if len(local) == 2:
        return Dense(entries_at(block, local[0], local[1]))
    matrix = to_scipy(block)
    return csr_block(sp.csr_array(matrix[local[0]] if axis == 0 else matrix[:, local[0]]))


def _together(parts: Sequence[Block], positions: Sequence[Places], axis: int, count: int) -> Block:
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
    block: Block, listed: Sequence[Sequence[Places]], news: Sequence[NumericArray], axis: int
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
    places: Places, blocks: Sequence[NumericArray], ranges: Sequence[tuple[int, int]]
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
        total += _pick_range(listed, start, stop, given(block).view(word), values, inside)
    if total == len(places):
        return values.view(dtype)
    return values[inside.view(np.bool_)].view(dtype)


@compiled
def _pick_range(
    places: Places, start: int, stop: int, block: NumericArray, out: NumericArray, inside: NumericArray
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

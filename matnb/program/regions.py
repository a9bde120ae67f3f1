"""Arithmetic on regions: what part of an operand a part of a result needs."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from math import prod

from matnb.blocks.grid import Region, region_shape


def region_size(region: Region) -> int:
    """Return the number of elements of a region."""
    return prod(region_shape(region))


def rows_region(shape: tuple[int, ...], rows: tuple[int, int]) -> Region:
    """Return a range of the first axis, with all of the others."""
    return (rows, *((0, length) for length in shape[1:]))


def operand_region(shape: tuple[int, ...], region: Region) -> Region:
    """Return what a region of a result needs of an operand that was broadcast to it."""
    aligned = region[len(region) - len(shape) :]
    return tuple((0, 1) if length == 1 else part for length, part in zip(shape, aligned, strict=True))


@dataclass(frozen=True)
class SlicePart:
    """What a slice picks out of one block on one axis: the range of the result, and the local slice."""

    block: int
    start: int
    stop: int
    local: tuple[int, int | None, int]


def slice_pieces(cuts: tuple[int, ...], chosen: slice) -> tuple[SlicePart, ...]:
    """Return what a slice picks out of each block of an axis, in the order of the result.

    Parameters
    ----------
    cuts
        The axis's cuts.
    chosen
        With explicit start and step, and bounds inside the axis.
    """
    covered = range(*chosen.indices(cuts[-1]))
    start, step, count = covered.start, covered.step, len(covered)
    pieces = []
    for block, (low, high) in enumerate(itertools.pairwise(cuts)):
        if step > 0:
            first, last = -(-(low - start) // step), -(-(high - start) // step)
        else:
            first, last = (start - high) // -step + 1, (start - low) // -step + 1
        first, last = max(first, 0), min(last, count)
        if first < last:
            begin, end = start + first * step - low, start + (last - 1) * step - low
            stop = end + (1 if step > 0 else -1)
            pieces.append(SlicePart(block, first, last, (begin, None if stop < 0 else stop, step)))
    return tuple(sorted(pieces, key=lambda piece: piece.start))


def piece_cuts(pieces: tuple[SlicePart, ...]) -> tuple[int, ...]:
    """Return the cuts of the axis that the pieces make up."""
    return (0, *(piece.stop for piece in pieces)) if pieces else (0, 0)

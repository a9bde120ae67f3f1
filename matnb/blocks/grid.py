"""Where an array is cut: non-uniform cuts on every axis of an N-D array."""

from __future__ import annotations

import itertools
import math
import operator
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeGuard

import numpy as np

from matnb.errors import IndexingError, ShapeError

MOST_PARTS = 100_000  # of one axis; more would take longer to write down than to compute
Index = tuple[int, ...]
Region = tuple[tuple[int, int], ...]  # per axis the half-open range [start, stop)
BlocksSpec = int | Sequence[int | Sequence[int] | None] | Literal["auto"] | None


@dataclass(frozen=True)
class Grid:
    """The cuts of an array.

    Parameters
    ----------
    cuts
        For each axis the increasing positions ``(0, ..., length)``; an axis of length 0 has cuts ``(0, 0)``.

    Raises
    ------
    ShapeError
        When cuts do not start at 0, or do not increase.
    """

    cuts: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        for axis, cuts in enumerate(self.cuts):
            empty = cuts == (0, 0)
            if not empty and (
                len(cuts) < 2 or cuts[0] != 0 or any(a >= b for a, b in itertools.pairwise(cuts))
            ):
                raise ShapeError(
                    f"cuts {list(cuts)} on axis {axis}: start at 0, increase, and end at the axis's length"
                )

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the array."""
        return tuple(cuts[-1] for cuts in self.cuts)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.cuts)

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of blocks along each axis."""
        return tuple(len(cuts) - 1 for cuts in self.cuts)

    @property
    def num_blocks(self) -> int:
        """Number of blocks in all; 1 for a 0-d array."""
        return math.prod(self.counts)

    def indices(self) -> Iterator[Index]:
        """Yield the index of every block, last axis fastest."""
        return itertools.product(*(range(count) for count in self.counts))

    def number(self, index: Index) -> int:
        """Return the place of a block in the order of :meth:`indices`."""
        place = 0
        for position, count in zip(index, self.counts, strict=True):
            place = place * count + position
        return place

    def region(self, index: Index) -> Region:
        """Return the global half-open range of a block on every axis."""
        return tuple((cuts[i], cuts[i + 1]) for cuts, i in zip(self.cuts, index, strict=True))

    def regions(self) -> Iterator[Region]:
        """Yield the region of every block, in the order of :meth:`indices`."""
        return (self.region(index) for index in self.indices())

    def block_shape(self, index: Index) -> tuple[int, ...]:
        """Return the shape of a block."""
        return tuple(stop - start for start, stop in self.region(index))

    def overlapping(self, region: Region) -> Iterator[Index]:
        """Yield the blocks that share an element with a region; a region with no element has none."""
        spans = []
        for cuts, (start, stop) in zip(self.cuts, region, strict=True):
            if start >= stop:
                return iter(())
            spans.append(range(bisect_right(cuts, start) - 1, bisect_left(cuts, stop)))
        return itertools.product(*spans)

    def transpose(self, axes: Sequence[int]) -> Grid:
        """Return the grid of the transposed array."""
        return Grid(tuple(self.cuts[axis] for axis in axes))


def regular_cuts(length: int, count: int) -> tuple[int, ...]:
    """Return cuts of an axis into ``count`` nearly equal parts, fewer when the axis is shorter than that."""
    if length == 0:
        return (0, 0)
    count = max(1, min(count, length))
    return tuple(length * i // count for i in range(count + 1))


def finer_cuts(cuts: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Return the cuts with each part of an axis cut in up to ``count`` nearly equal ones."""
    inner = [
        start + place
        for start, stop in itertools.pairwise(cuts)
        for place in regular_cuts(stop - start, min(count, max(1, stop - start)))[:-1]
    ]
    return (*inner, cuts[-1])


def whole(shape: Sequence[int]) -> Grid:
    """Return the grid with a single block."""
    return Grid(all_of(shape))


def regular(shape: Sequence[int], counts: Sequence[int]) -> Grid:
    """Return the grid with ``counts`` nearly equal parts along each axis."""
    if len(shape) != len(counts):
        raise ShapeError(
            f"{len(counts)} block counts for an array with {len(shape)} axes: give one for each axis"
        )
    return Grid(tuple(regular_cuts(length, count) for length, count in zip(shape, counts, strict=True)))


def leaves_cuts(blocks: BlocksSpec) -> TypeGuard[Literal["auto"] | None]:
    """Tell whether a user's ``blocks=`` leaves it to matnb where an array is cut."""
    return blocks is None or (isinstance(blocks, str) and blocks == "auto")


def grid_from(shape: Sequence[int], blocks: BlocksSpec) -> Grid:
    """Return the grid that a user's ``blocks=`` asks for.

    Parameters
    ----------
    shape
        The array's shape.
    blocks
        A count (of blocks along the first axis), or for each axis a count, cuts ``[0, 10, 25, 100]``, or None
        for an uncut axis. None and "auto" leave it to others: one block.

    Raises
    ------
    ShapeError
        When the number of axes, a count or the cuts do not fit the shape.
    """
    if leaves_cuts(blocks):
        return whole(shape)
    per_axis: Sequence[int | Sequence[int] | None]
    if isinstance(blocks, int | np.integer):
        per_axis = (blocks, *[None] * (len(shape) - 1)) if shape else ()
    elif isinstance(blocks, str | dict) or not isinstance(blocks, Iterable):
        raise ShapeError(f"blocks={blocks!r}: give 'auto', a count, or counts, cuts or None for each axis")
    else:
        per_axis = tuple(blocks)
        if len(per_axis) != len(shape):
            raise ShapeError(
                f"blocks={blocks!r} has {len(per_axis)} items, but the array has {len(shape)} axes: "
                "give one for each axis"
            )
    cuts: list[tuple[int, ...]] = []
    for axis, (length, wanted) in enumerate(zip(shape, per_axis, strict=True)):
        if wanted is None:
            cuts.append((0, length))
        elif isinstance(wanted, int | np.integer):
            if not 1 <= wanted <= MOST_PARTS:
                raise ShapeError(f"{wanted} blocks on axis {axis}: give 1 to {MOST_PARTS:,}")
            cuts.append(regular_cuts(length, int(wanted)))
        else:
            try:
                axis_cuts = tuple(operator.index(cut) for cut in wanted)
            except TypeError:
                raise ShapeError(f"blocks={blocks!r}: give counts, cuts or None for axis {axis}") from None
            if not axis_cuts or axis_cuts[-1] != length:
                raise ShapeError(f"cuts {list(wanted)} on axis {axis} must end at its length, {length}")
            cuts.append(axis_cuts)
    return Grid(tuple(cuts))


def window_start(start: int, size: int, length: int, axis: int) -> int:
    """Return where a stretch of an axis begins, which a run has told.

    Raises
    ------
    IndexingError
        When some of it is not on the axis.
    """
    if not 0 <= start <= length - size:
        raise IndexingError(
            f"a slice of {size} from {start} on axis {axis} of length {length}: it begins at 0 to "
            f"{length - size}, as its length is fixed"
        )
    return start


def intersect(one: Region, other: Region) -> Region:
    """Return the region common to two overlapping regions."""
    return tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(one, other, strict=True))


def all_of(shape: Sequence[int]) -> Region:
    """Return the region of a whole array."""
    return tuple((0, length) for length in shape)


def relative(region: Region, origin: Region) -> tuple[slice, ...]:
    """Return the slices that cut ``region`` out of the block that covers ``origin``."""
    return tuple(slice(a - c, b - c) for (a, b), (c, _) in zip(region, origin, strict=True))


def region_shape(region: Region) -> tuple[int, ...]:
    """Return the shape of a region."""
    return tuple(stop - start for start, stop in region)

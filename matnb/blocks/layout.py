"""Where an array is cut and who owns each block; the same of its rows alone; and moves between layouts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from matnb.blocks.grid import Grid, Region, intersect
from matnb.errors import ShapeError

LARGE_BYTES = 512 * 10**6  # blocks above this are cut further, to keep transfers and copies small


@dataclass(frozen=True)
class Cuts:
    """How the rows of arrays that lie alike are cut, and which worker owns each part."""

    cuts: tuple[int, ...]
    owners: tuple[int, ...]

    @property
    def num_blocks(self) -> int:
        """How many parts there are."""
        return len(self.owners)

    def ranges(self) -> tuple[tuple[int, int], ...]:
        """Return where each part begins and ends."""
        return tuple(pairwise(self.cuts))


@dataclass(frozen=True)
class Move:
    """One rectangle of an array that goes from a block of the old layout to a block of the new.

    ``source`` and ``target`` are block numbers; a move whose owners are equal costs no transfer.
    """

    region: Region
    source: int
    target: int
    source_owner: int
    target_owner: int


@dataclass(frozen=True)
class Layout:
    """Cuts and owners.

    Parameters
    ----------
    grid
        Where the array is cut.
    owners
        The owner number of every block, in the order of ``grid.indices()``.
    """

    grid: Grid
    owners: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.owners) != self.grid.num_blocks:
            raise ShapeError(f"{len(self.owners)} owners for {self.grid.num_blocks} blocks: give one a block")

    @property
    def rows(self) -> Cuts:
        """How the rows are cut, where no other axis is: see :attr:`cuts_rows_alone`."""
        return Cuts(self.grid.cuts[0], self.owners)

    @property
    def cuts_rows_alone(self) -> bool:
        """Whether there are rows, and no other axis is cut."""
        return bool(self.grid.shape) and all(count == 1 for count in self.grid.counts[1:])

    def with_rows(self, new: Cuts) -> Layout:
        """Return a layout with other cuts and owners of the rows, whose other axes are not cut."""
        return Layout(Grid((new.cuts, *self.grid.cuts[1:])), new.owners)

    def cuts_only(self, axes: Collection[int]) -> bool:
        """Return whether no axis but these is cut."""
        return all(count == 1 or axis in axes for axis, count in enumerate(self.grid.counts))

    def along(self, axes: Collection[int], shape: Sequence[int]) -> Layout:
        """Return the layout of an array of another shape that lies as this, which cuts these axes only."""
        cuts = (self.grid.cuts[axis] if axis in axes else (0, length) for axis, length in enumerate(shape))
        return Layout(Grid(tuple(cuts)), self.owners)

    def cuts_along(self, axis: int) -> Cuts:
        """Return the cuts of an axis, with the owners of the blocks at the first places of the others."""
        counts = self.grid.counts
        first = (
            tuple(part if one == axis else 0 for one in range(len(counts))) for part in range(counts[axis])
        )
        return Cuts(self.grid.cuts[axis], tuple(self.owners[self.grid.number(index)] for index in first))

    def changed_axis(self, new: Layout) -> int:
        """Return the axis that another layout cuts in most parts, of those that it cuts otherwise, if any."""
        pairs = zip(self.grid.cuts, new.grid.cuts, strict=True)
        changed = [axis for axis, (old, other) in enumerate(pairs) if old != other]
        return max(changed or range(new.grid.ndim), key=lambda axis: new.grid.counts[axis])

    def diff(self, new: Layout) -> tuple[Move, ...]:
        """Return the moves that make ``new`` from this layout: every element once.

        Raises
        ------
        ShapeError
            When the two layouts are of different shapes.
        """
        if self.grid.shape != new.grid.shape:
            raise ShapeError(f"no moves from shape {self.grid.shape} to shape {new.grid.shape}")
        moves = []
        for target, region in enumerate(new.grid.regions()):
            for index in self.grid.overlapping(region):
                source = self.grid.number(index)
                common = intersect(self.grid.region(index), region)
                moves.append(Move(common, source, target, self.owners[source], new.owners[target]))
        return tuple(moves)


def spread(num_blocks: int, workers: Sequence[int]) -> tuple[int, ...]:
    """Return owners that give each worker a consecutive, nearly equal share of the blocks."""
    return tuple(workers[number * len(workers) // num_blocks] for number in range(num_blocks))

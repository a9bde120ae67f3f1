"""A grid with the owner of each block, and the moves that lead from one layout to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matnb.blocks.grid import Grid, Region, intersect
from matnb.errors import ShapeError

LARGE_BYTES = 512 * 10**6  # blocks above this are cut further, to keep transfers and copies small


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

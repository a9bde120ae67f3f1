"""The blocks of an array gathered into at most so many cells, so that a map of many blocks stays small."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from matnb.pictures.facts import ArrayFacts

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Cells:
    """A grid of cells, each of one block or of several neighbors; a 1-D array is a single row.

    Parameters
    ----------
    row_cuts, column_cuts
        Where the cells are cut, in elements.
    entries, owners, blocks
        Of every cell: stored entries, the owner of most of them, how many blocks it gathers.
    """

    row_cuts: Counts
    column_cuts: Counts
    entries: Counts
    owners: Counts
    blocks: Counts

    @property
    def density(self) -> npt.NDArray[np.float64]:
        """Share of each cell's elements that are stored."""
        areas = np.outer(np.diff(self.row_cuts), np.diff(self.column_cuts))
        density: npt.NDArray[np.float64] = self.entries / areas
        return density


def gather(facts: ArrayFacts, limit: int) -> Cells | None:
    """Return at most ``limit`` cells along each axis, or None for an array that has no map.

    A map is of a 1-D or 2-D array with elements whose cuts are known.
    """
    if facts.cuts is None or len(facts.cuts) not in (1, 2) or 0 in facts.shape:
        return None
    cuts = [np.asarray(axis, dtype=np.int64) for axis in facts.cuts]
    if len(cuts) == 1:
        cuts.insert(0, np.array([0, 1]))
    shape = (cuts[0].size - 1, cuts[1].size - 1)
    area = np.outer(np.diff(cuts[0]), np.diff(cuts[1]))
    entries = np.asarray(facts.block_nnz, dtype=np.int64).reshape(shape) if facts.block_nnz else area
    owners = np.asarray(facts.owners, dtype=np.int64).reshape(shape) if facts.owners else np.zeros_like(area)
    row_starts, column_starts = _starts(shape[0], limit), _starts(shape[1], limit)
    return Cells(
        row_cuts=np.append(cuts[0][row_starts], cuts[0][-1]),
        column_cuts=np.append(cuts[1][column_starts], cuts[1][-1]),
        entries=_sums(entries, row_starts, column_starts),
        owners=_owners_of_most(owners, entries, row_starts, column_starts),
        blocks=_sums(np.ones_like(area), row_starts, column_starts),
    )


def _starts(count: int, limit: int) -> Counts:
    # As many blocks in every cell, not as many elements: the finely cut part is the interesting one.
    cells = min(count, limit)
    return np.arange(cells) * count // cells


def _sums(values: Counts, row_starts: Counts, column_starts: Counts) -> Counts:
    return np.add.reduceat(np.add.reduceat(values, row_starts, axis=0), column_starts, axis=1)


def _owners_of_most(owners: Counts, entries: Counts, row_starts: Counts, column_starts: Counts) -> Counts:
    shape = (row_starts.size, column_starts.size)
    if shape == owners.shape:
        return owners
    row_cells = np.searchsorted(row_starts, np.arange(owners.shape[0]), side="right") - 1
    column_cells = np.searchsorted(column_starts, np.arange(owners.shape[1]), side="right") - 1
    cells = row_cells[:, None] * shape[1] + column_cells[None, :]
    names, ranks = np.unique(owners, return_inverse=True)
    pairs, places = np.unique(cells.ravel() * names.size + ranks.ravel(), return_inverse=True)
    # One more for each block, so that a cell of empty blocks goes to the owner of most of them.
    weights = np.bincount(places, weights=entries.ravel() + 1.0)
    cell, owner = np.divmod(pairs, names.size)
    order = np.lexsort((owner, -weights, cell))
    first = order[np.unique(cell[order], return_index=True)[1]]
    return np.reshape(names[owner[first]], shape)

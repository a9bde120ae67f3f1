"""matnb's own .npz files: the cuts and an array or three for each block, read in parallel by block."""

# Members, each a .npy as np.load reads it: "matnb" (the version), "sparse", "dtype", "pattern", "nnz"
# (entries of each block), "cuts_AXIS", and for block number k in the order of Grid.indices() "block_k" if
# dense, else "block_k_pointers", "block_k_columns" and "block_k_values" (no values where the block is
# pattern-only, nothing at all where it is empty).

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod

import numpy as np

from matnb.blocks.formats import LARGEST_LENGTH, Block, Csr, Dense, Empty, SparseBlock, narrow
from matnb.blocks.grid import Grid, Region, region_shape, relative
from matnb.errors import ShapeError
from matnb.io.archive import Archive, open_archive
from matnb.io.entries import Entries, block_of, entries_in
from matnb.io.files import File
from matnb.io.npy import NUMBERS
from matnb.io.slabs import Slab, common, dense_of
from matnb.io.source import Found, Piece, PlainSource, split_range

MARK = "matnb"
VERSION = 1


@dataclass(frozen=True, eq=False)
class Blocks:
    """Blocks of a piece, each with its region."""

    blocks: tuple[tuple[Region, Block], ...]

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + sum(block.nbytes for _, block in self.blocks)


@dataclass(frozen=True)
class SavedFound:
    """What is known of the array."""

    found: Found


@dataclass(frozen=True)
class Saved(PlainSource):
    """An array that matnb saved; ``grid`` is how it was cut then."""

    file: File
    grid: Grid
    dtype: np.dtype
    sparse: bool
    pattern: bool
    nnz: int

    def __repr__(self) -> str:
        return f"Saved({self.file!r})"

    def identity(self) -> tuple[str | int, ...]:
        """Return what tells the result from any other."""
        return ("saved", *self.file.identity)

    def estimated_entries(self) -> int:
        """Return how many entries there are."""
        return self.nnz

    def pieces(self, count: int) -> tuple[Piece, ...]:
        """Return ranges of block numbers."""
        return split_range(0, self.grid.num_blocks, count, 1)

    def parsing_bytes(self, piece: Piece, num_pieces: int) -> tuple[int, int]:
        """Return what the blocks take, and half as much as one that is checked."""
        rows = 0 if not self.sparse else 8 * (self.grid.shape[0] + self.grid.num_blocks)
        held = ((self.dtype.itemsize + (8 if self.sparse else 0)) * self.nnz + rows) // max(1, num_pieces)
        return held, held

    def parse(self, piece: Piece) -> Blocks:
        """Read the blocks of a piece, checking every index."""
        with open_archive(self.file) as archive:
            regions = islice(self.grid.regions(), piece.start, piece.stop)
            return Blocks(
                tuple(
                    (region, self._block(archive, number, region))
                    for number, region in enumerate(regions, piece.start)
                )
            )

    def _block(self, archive: Archive, number: int, region: Region) -> Block:
        shape, name = region_shape(region), f"block_{number}"
        if not self.sparse:
            dense = archive.header(name)
            if dense.shape != shape or dense.dtype.newbyteorder("=") != self.dtype:
                raise self.file.error(
                    f"{name} is {dense.shape} of {dense.dtype}, not {shape} of {self.dtype}"
                )
            return Dense(archive.array(name))
        if f"{name}_pointers" not in archive.names:
            return Empty((shape[0], shape[1]), self.dtype)
        num_pointers, num_columns = (
            archive.num_indices(f"{name}_pointers"),
            archive.num_indices(f"{name}_columns"),
        )
        if num_pointers != shape[0] + 1:
            raise self.file.error(f"{name}: {num_pointers} pointers for {shape[0]} rows")
        if f"{name}_values" in archive.names:
            values_header = archive.header(f"{name}_values")
            if values_header.shape != (num_columns,) or values_header.dtype.newbyteorder("=") != self.dtype:
                raise self.file.error(
                    f"{name}: {values_header.shape} values of {values_header.dtype} for {num_columns} entries"
                )
        pointers, columns = archive.indices(f"{name}_pointers"), archive.indices(f"{name}_columns")
        if pointers[0] != 0 or pointers[-1] != columns.size:
            raise self.file.error(
                f"{name}: pointers do not lead from 0 to {columns.size} over {shape[0]} rows"
            )
        if bool((np.diff(pointers) < 0).any()):
            raise self.file.error(f"{name}: pointers decrease")
        if columns.size and not 0 <= int(columns.min()) <= int(columns.max()) < shape[1]:
            raise self.file.error(f"{name}: a column is not in 0 to {shape[1] - 1}")
        inner = np.ones(columns.size, np.bool_)
        inner[pointers[:-1][pointers[:-1] < columns.size]] = False  # the first entry of a row follows none
        if bool((columns[1:] <= columns[:-1])[inner[1:]].any()):
            raise self.file.error(f"{name}: the columns of a row are not in order")
        values = archive.array(f"{name}_values") if f"{name}_values" in archive.names else None
        if values is None and not self.pattern:
            values = np.ones(columns.size, self.dtype)  # blocks with values and without were saved together
        return Csr((shape[0], shape[1]), narrow(pointers), narrow(columns), values, self.dtype)

    def summary(self, parsed: Blocks) -> None:
        """Return nothing: the file says all."""

    def merge(self, summaries: Sequence[None]) -> SavedFound:
        """Return what is known of the array."""
        return SavedFound(Found(self.grid.shape, self.dtype, self.sparse, self.pattern, self.nnz))

    def part(self, parsed: Blocks, context: SavedFound, region: Region) -> tuple[Block | Slab | Entries, ...]:
        """Return what blocks of a piece have in a region: the block itself where it is the region."""
        parts: list[Block | Slab | Entries] = []
        for own, block in parsed.blocks:
            both = common(own, region)
            if own == region:
                parts.append(block)
            elif both is not None and isinstance(block, Dense):
                parts.append(Slab(both, block.values[relative(both, own)].copy()))
            elif both is not None and isinstance(block, Csr):
                parts.append(entries_in(_global_entries(block, own), region))
        return tuple(parts)

    def assemble(
        self, parts: Sequence[Sequence[Block | Slab | Entries]], context: SavedFound, region: Region
    ) -> Block:
        """Return the block of a region."""
        found = [one for part in parts for one in part]
        for one in found:
            if isinstance(one, Dense | Csr | Empty):
                return one
        if self.sparse:
            return block_of([one for one in found if isinstance(one, Entries)], region, self.dtype)
        return dense_of([one for one in found if isinstance(one, Slab)], region, self.dtype)


def _global_entries(block: SparseBlock, region: Region) -> Entries:
    assert isinstance(block, Csr)  # the caller leaves empty blocks out
    rows = np.repeat(np.arange(region[0][0], region[0][1], dtype=np.int32), np.diff(block.pointers))
    return Entries(rows, block.columns + np.int32(region[1][0]), block.values)


def open_saved(file: File, archive: Archive) -> Saved:
    """Return the source of a file that matnb saved.

    Raises
    ------
    FileFormatError
        When what it says does not fit together.
    """
    version = archive.flag(MARK)
    if version != VERSION:
        raise file.error(f"version {version} of matnb's format; this matnb reads version {VERSION}")
    try:
        dtype = np.dtype(archive.word("dtype"))
    except TypeError as error:
        raise file.error(f"member 'dtype': {error}") from None
    sparse, pattern = bool(archive.flag("sparse")), bool(archive.flag("pattern"))
    cuts: list[tuple[int, ...]] = []
    while f"cuts_{len(cuts)}" in archive.names:
        cuts.append(tuple(archive.facts(f"cuts_{len(cuts)}")))
    try:
        grid = Grid(tuple(cuts))
    except ShapeError as error:
        raise file.error(str(error)) from None
    nnz = archive.facts("nnz")
    if dtype.kind not in NUMBERS or len(nnz) != grid.num_blocks:
        raise file.error(f"dtype {dtype}, {len(nnz)} counts and {grid.num_blocks} blocks do not fit together")
    if sparse and (grid.ndim != 2 or max(grid.shape) > LARGEST_LENGTH):
        raise file.error(f"a sparse array of shape {grid.shape}")
    total = sum(nnz) if sparse else prod(grid.shape)
    return Saved(file, grid, dtype.newbyteorder("="), sparse, pattern, total)

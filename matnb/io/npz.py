""".npz files: SciPy's sparse matrices, and matnb's own, which saved.py reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import LARGEST_LENGTH, Block
from matnb.blocks.grid import Region
from matnb.io.archive import Archive, open_archive
from matnb.io.entries import Entries, block_of, entries_in
from matnb.io.files import File
from matnb.io.saved import MARK, open_saved
from matnb.io.source import Found, Piece, PlainSource, Source, reader

_FORMATS = ("csr", "csc", "coo", "bsr", "dia")


@dataclass(frozen=True)
class Loaded:
    """What is known of the matrix."""

    found: Found


@dataclass(frozen=True)
class ScipyNpz(PlainSource):
    """A matrix that ``scipy.sparse.save_npz`` wrote; its members are compressed, so one worker reads it."""

    file: File
    shape: tuple[int, int]
    num_stored: int
    item_bytes: int

    def __repr__(self) -> str:
        return f"ScipyNpz({self.file!r})"

    def identity(self) -> tuple[str | int, ...]:
        """Return what tells the result from any other."""
        return ("npz", *self.file.identity)

    def estimated_entries(self) -> int:
        """Return how many entries are stored."""
        return self.num_stored

    def pieces(self, count: int) -> tuple[Piece, ...]:
        """Return the whole."""
        return (Piece(0, 0, 1),)

    def parsing_bytes(self, piece: Piece, num_pieces: int) -> tuple[int, int]:
        """Return what the entries take, and the members that they are made from."""
        return (8 + self.item_bytes) * self.num_stored, (32 + self.item_bytes) * self.num_stored + 8 * sum(
            self.shape
        )

    def parse(self, piece: Piece) -> Entries:
        """Read the matrix, checking every index."""
        with open_archive(self.file) as archive:
            match archive.word("format"):
                case "coo":
                    return self._coo(archive)
                case "dia":
                    return self._dia(archive)
                case kind:
                    return self._compressed(archive, kind)

    def _coo(self, archive: Archive) -> Entries:
        rows, columns, data = archive.indices("row"), archive.indices("col"), archive.array("data")
        self._check(rows, self.shape[0], "row")
        self._check(columns, self.shape[1], "col")
        return _entries(rows, columns, data)

    def _dia(self, archive: Archive) -> Entries:
        offsets, data = archive.indices("offsets"), archive.array("data")
        if np.unique(offsets).size != offsets.size:
            raise self.file.error("a diagonal is listed twice")
        # data[k, j] is the element in column j of diagonal k
        rows = np.arange(data.shape[1]) - offsets[:, None].astype(np.int64)
        inside = (
            (rows >= 0) & (rows < self.shape[0]) & (np.arange(data.shape[1]) < self.shape[1]) & (data != 0)
        )
        return _entries(rows[inside], np.nonzero(inside)[1], data[inside])

    def _compressed(self, archive: Archive, kind: str) -> Entries:
        indices, pointers, data = archive.indices("indices"), archive.indices("indptr"), archive.array("data")
        height, width = data.shape[1:] if kind == "bsr" else (1, 1)
        lengths = (self.shape[0] // height, self.shape[1] // width)
        major, minor = lengths if kind != "csc" else lengths[::-1]
        if pointers[0] != 0 or pointers[-1] != indices.size:
            raise self.file.error(
                f"pointers do not lead from 0 to {indices.size} over {major} rows or columns"
            )
        counts = np.diff(pointers)
        if bool((pointers[1:] < pointers[:-1]).any()):
            raise self.file.error("pointers decrease")
        self._check(indices, minor, "indices")
        owners = np.repeat(np.arange(major), counts)
        rows, columns = (indices, owners) if kind == "csc" else (owners, indices)
        if kind == "bsr":
            rows = (
                rows[:, None, None] * height + np.arange(height)[:, None] + np.zeros(width, np.int64)
            ).ravel()
            columns = (
                columns[:, None, None] * width + np.zeros((height, 1), np.int64) + np.arange(width)
            ).ravel()
        return _entries(rows, columns, data.ravel())

    def _check(self, indices: npt.NDArray[np.integer], length: int, name: str) -> None:
        outside = np.flatnonzero((indices < 0) | (indices >= length))
        if outside.size:
            raise self.file.error(f"{name}[{outside[0]}] = {indices[outside[0]]} is not in 0 to {length - 1}")

    def summary(self, parsed: Entries) -> tuple[int, np.dtype]:
        """Return the number of entries and their type."""
        return parsed.rows.size, np.asarray(parsed.values).dtype

    def merge(self, summaries: Sequence[tuple[int, np.dtype]]) -> Loaded:
        """Return what is known of the matrix."""
        ((num_entries, dtype),) = summaries
        return Loaded(Found(self.shape, dtype, sparse=True, nnz=num_entries))

    def part(self, parsed: Entries, context: Loaded, region: Region) -> Entries:
        """Return the entries that lie in a region, with local positions."""
        return entries_in(parsed, region)

    def assemble(self, parts: Sequence[Entries], context: Loaded, region: Region) -> Block:
        """Return the block of a region; entries stored twice are summed, zeros kept."""
        return block_of(parts, region, context.found.dtype)


def _entries(
    rows: npt.NDArray[np.integer], columns: npt.NDArray[np.integer], data: npt.NDArray[np.generic]
) -> Entries:
    return Entries(rows.astype(np.int32, copy=False), columns.astype(np.int32, copy=False), data)


@reader("npz", ".npz")
def open_npz(file: File) -> Source:
    """Return the source of a .npz file that SciPy or matnb wrote.

    Raises
    ------
    FileFormatError
        When it is neither.
    """
    with open_archive(file) as archive:
        if MARK in archive.names:
            return open_saved(file, archive)
        if "format" not in archive.names:
            names = ", ".join(sorted(archive.names)[:20])
            raise file.error(
                f"is no sparse matrix of SciPy's and not matnb's own: it has {names or 'no member'}"
            )
        kind, shape = archive.word("format"), archive.facts("shape")
        if kind not in _FORMATS:
            raise file.error(f"a sparse matrix in format {kind!r}: only {', '.join(_FORMATS)} are read")
        if len(shape) != 2:
            raise file.error(f"a sparse array of {len(shape)} axes: sparse arrays here have two")
        rows, columns = shape
        if min(rows, columns) < 0 or max(rows, columns) > LARGEST_LENGTH:
            raise file.error(f"claims shape {(rows, columns)}; at most {LARGEST_LENGTH} are read")
        return ScipyNpz(
            file,
            (rows, columns),
            _checked_members(archive, kind, (rows, columns)),
            archive.header("data").dtype.itemsize,
        )


def _checked_members(archive: Archive, kind: str, shape: tuple[int, int]) -> int:
    # The entries that are stored, where the members' headers fit together: before any of them is inflated.
    data = archive.header("data").shape
    if kind == "coo":
        others: tuple[int, ...] = archive.num_indices("row"), archive.num_indices("col")
        fit = len(data) == 1 and others == (data[0], data[0])
    elif kind == "dia":
        others = (archive.num_indices("offsets"),)
        fit = len(data) == 2 and data[0] == others[0]
    else:
        others = (archive.num_indices("indices"),)
        fit = len(data) == (3 if kind == "bsr" else 1) and data[0] == others[0]
    if not fit:
        raise archive.file.error(f"members do not fit together: data of shape {data}, indices {others}")
    if kind in ("csr", "csc", "bsr"):
        height, width = data[1:] if kind == "bsr" else (1, 1)
        if not height or not width or shape[0] % height or shape[1] % width:
            raise archive.file.error(f"blocks of {height} x {width} do not fill the shape {shape}")
        major = shape[1] // width if kind == "csc" else shape[0] // height
        if archive.num_indices("indptr") != major + 1:
            raise archive.file.error(
                f"pointers do not lead from 0 to {others[0]} over {major} rows or columns"
            )
    return prod(data)

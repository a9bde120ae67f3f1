""".npz files: SciPy's sparse matrices, and matnb's own with an array or three for each block."""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from math import prod
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import LARGEST_LENGTH, Block, Csr, Dense, Empty, SparseBlock, narrow
from matnb.blocks.grid import Grid, Region, region_shape, relative
from matnb.errors import ShapeError
from matnb.io.entries import Entries, Slab, block_of, common, dense_of, entries_in
from matnb.io.files import INFLATE_LIMIT, File
from matnb.io.npy import NUMBERS, NpyHeader, read_header
from matnb.io.source import Piece, PlainContext, PlainSource, Source, SourceFacts, reader, split_range

_LARGEST_TEXT = 1000  # bytes of a member that is a word
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # of others it is not known how far they inflate
_READ_BYTES = 1 << 20
_ENCRYPTED = 1  # of a member's flags
_HEAD = struct.Struct("<26xHH")  # what stands before a member: lengths of its name and of what follows that
_MOST_FACTS = 1_000_000  # numbers of a member that tells of the others: cuts, counts of blocks


class _Inside:
    """A stream in which no place before its beginning or after its end is looked for, as zipfile may."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self._stream, self._size = stream, size
        self.read, self.tell = stream.read, stream.tell
        self.readinto = stream.readinto  # type: ignore[attr-defined]  # a raw stream's

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        begin = {os.SEEK_SET: 0, os.SEEK_END: self._size}.get(whence)
        place = offset + (self._stream.tell() if begin is None else begin)
        if not 0 <= place <= self._size:
            raise zipfile.BadZipFile(f"something at {place} of {self._size} bytes")
        return self._stream.seek(place)


class _UncompressedMember(io.RawIOBase):
    """A member that is not compressed, read to where it is wanted; its checksum is looked at as it ends."""

    def __init__(self, stream: IO[bytes], begin: int, member: zipfile.ZipInfo) -> None:
        super().__init__()
        self._stream, self._place, self._member = stream, begin, member
        self._stop, self._sum = begin + member.file_size, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        room = buffer[: self._stop - self._place]
        self._stream.seek(self._place)  # which members that are read in turns share
        have: int = self._stream.readinto(room)  # type: ignore[attr-defined]  # a file's has it
        self._sum = zlib.crc32(room[:have], self._sum)
        self._place += have
        if self._place == self._stop and self._sum != self._member.CRC:
            raise zipfile.BadZipFile(f"Bad CRC-32 for file {self._member.filename!r}")
        return have


def fill_from(stream: IO[bytes], room: npt.NDArray[np.uint8]) -> int:
    """Read bytes until an array has as many as it can take, or there are no more; returns how many there are.

    Bit by bit, so that memory is taken for what is there and not for what is claimed, and a checksum is
    worked out while the bytes are in the cache.
    """
    view, have = room.data, 0
    while part := stream.readinto(view[have : have + _READ_BYTES]):  # type: ignore[attr-defined]  # both have it
        have += part
    return have


class Archive:
    """An open .npz file; made by :func:`open_archive`."""

    def __init__(self, file: File, opened: zipfile.ZipFile, stream: _Inside) -> None:
        self.file, self._zip, self._stream = file, opened, stream
        self.names = {name[:-4] for name in opened.namelist() if name.endswith(".npy")}

    def array(self, name: str, kinds: str = NUMBERS) -> npt.NDArray[np.generic]:
        """Return a member, in this machine's byte order.

        Raises
        ------
        FileFormatError
            When it is missing, not of the kinds of dtype wanted, or has not as many elements as it claims.
        """
        with self.opened(name, kinds) as (header, stream):
            data = np.empty(header.num_bytes, np.uint8)
            have = fill_from(stream, data)
            have += len(stream.read(1))  # where it ends the checksum is looked at
        if have != header.num_bytes:
            raise self.file.error(f"member {name!r} ends after {have} of {header.num_bytes} bytes")
        values = data.view(header.dtype)
        shaped = values.reshape(header.shape, order="F" if header.fortran else "C")
        return shaped.astype(header.dtype.newbyteorder("="), copy=False)

    def part(self, name: str, start: int, stop: int) -> npt.NDArray[np.generic]:
        """Return some elements of a member on one axis; what is compressed is read as a whole.

        The checksum of what is not compressed is not looked at, as the rest is not read.
        """
        header = self.header(name)
        member = self._zip.getinfo(f"{name}.npy")
        if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & _ENCRYPTED:
            return self.array(name)[start:stop]
        values = np.empty(stop - start, header.dtype)
        self._stream.seek(self._begin_of(member) + header.begin + start * header.dtype.itemsize)
        room = values.view(np.uint8)
        have = fill_from(self._stream, room)  # type: ignore[arg-type]  # it has what is called
        if have < room.size:
            raise self.file.error(f"member {name!r} ends {room.size - have} bytes early")
        return values.astype(header.dtype.newbyteorder("="), copy=False)

    def header(self, name: str) -> NpyHeader:
        """Return what a member says of itself, checked as :meth:`array` does; reads no more."""
        with self.opened(name, NUMBERS) as (header, _):
            return header

    @contextmanager
    def opened(self, name: str, kinds: str = NUMBERS) -> Iterator[tuple[NpyHeader, IO[bytes]]]:
        """Open a member after its header, which is checked, to read its elements bit by bit."""
        if name not in self.names:
            raise self.file.error(f"has no member {name!r}; members: {', '.join(sorted(self.names)[:20])}")
        member = self._zip.getinfo(f"{name}.npy")
        with self._zip.open(member) as stream:
            try:
                header = read_header(stream)
            except ValueError as error:
                raise self.file.error(f"member {name!r}: {error}") from None
            if header.dtype.kind not in kinds:
                raise self.file.error(f"member {name!r} has elements of dtype {header.dtype}")
            if member.compress_type not in _PACKED:
                raise self.file.error(f"member {name!r} is compressed in a way that is not read")
            follow = member.file_size - header.begin
            packed = min(member.compress_size, self.file.size)
            room = packed * (1 if member.compress_type == zipfile.ZIP_STORED else INFLATE_LIMIT)
            if header.num_bytes != follow or follow > room:
                raise self.file.error(
                    f"member {name!r}: shape {header.shape} of {header.dtype} needs {header.num_bytes} "
                    f"bytes; {min(follow, room)} follow at most"
                )
            if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & _ENCRYPTED:
                yield header, stream
                return
            stored = _UncompressedMember(self._stream, self._begin_of(member), member)  # type: ignore[arg-type]
            stored.read(header.begin)
            yield header, stored  # type: ignore[misc]  # a raw stream is read as any binary file

    def _begin_of(self, member: zipfile.ZipInfo) -> int:
        # Where the bytes of a member are that was opened, and so has a sound header of its own.
        self._stream.seek(member.header_offset)
        head = self._stream.read(_HEAD.size)
        name_length, extra_length = _HEAD.unpack(head)
        return int(member.header_offset + _HEAD.size + name_length + extra_length)

    def num_indices(self, name: str) -> int:
        """Return the length of a member of whole numbers on one axis; reads its header only."""
        header = self.header(name)
        if header.dtype.kind not in "iu" or len(header.shape) != 1:
            raise self.file.error(
                f"member {name!r} of dtype {header.dtype} and shape {header.shape}: whole numbers on "
                "1 axes are expected"
            )
        return header.shape[0]

    def indices(self, name: str) -> npt.NDArray[np.integer]:
        """Return a member of whole numbers on one axis."""
        self.num_indices(name)
        values = self.array(name)
        assert values.dtype.kind in "iu", "its header says so"
        return values.astype(np.int64 if values.dtype == np.uint64 else values.dtype, copy=False)

    def facts(self, name: str) -> list[int]:
        """Return a member of whole numbers that tells of the others, so that it is no large one."""
        if self.num_indices(name) > _MOST_FACTS:
            raise self.file.error(f"member {name!r} has more than {_MOST_FACTS} numbers")
        found: list[int] = self.indices(name).tolist()
        return found

    def flag(self, name: str) -> int:
        """Return a member that is a single number."""
        if self.header(name).shape != ():
            raise self.file.error(f"member {name!r} is not a single number")
        return int(np.real(self.array(name).item()))

    def word(self, name: str) -> str:
        """Return a member that is a short text."""
        with self.opened(name, "SU") as (header, _):
            if header.shape != () or header.num_bytes > _LARGEST_TEXT:
                raise self.file.error(f"member {name!r} is not a word")
        value = self.array(name, "SU").item()
        return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)


@contextmanager
def open_archive(file: File) -> Iterator[Archive]:
    """Open a .npz file; what is wrong with the zip becomes FileFormatError."""
    with file.open() as stream:
        try:
            inside = _Inside(stream, file.size)
            with zipfile.ZipFile(inside) as opened:
                yield Archive(file, opened, inside)
        except (zipfile.BadZipFile, zlib.error, EOFError, UnicodeDecodeError) as error:
            raise file.error(f"is not a zip file, or a damaged one: {error}") from None
        except (
            NotImplementedError,
            RuntimeError,
        ) as error:  # what zipfile raises for other codecs and for passwords
            raise file.error(f"a zip file of a kind that is not read: {error}") from None


# Members, each a .npy as np.load reads it: "matnb" (the version), "sparse", "dtype", "pattern", "nnz"
# (entries of each block), "cuts_AXIS", and for block number k in the order of Grid.indices() "block_k" if
# dense, else "block_k_pointers", "block_k_columns" and "block_k_values" (no values where the block is
# pattern-only, nothing at all where it is empty). Since version 2 a sparse array has SciPy's members instead,
# "format", "shape", "indptr", "indices" and "data", so that scipy.sparse.load_npz reads it, and of matnb's
# own "pattern", "cuts_0" and "sums", checksums of the columns and values between these cuts. The labels of a
# graph's vertices are "labels", numbers or texts.


MARK, LABELS = "matnb", "labels"
_LABEL_KINDS = "iuU"
DENSE_VERSION, VERSION = 1, 2


@dataclass(frozen=True, eq=False)
class Blocks:
    """Blocks of a piece, each with its region."""

    blocks: tuple[tuple[Region, Block], ...]

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + sum(block.nbytes for _, block in self.blocks)


@dataclass(frozen=True)
class SavedArray(PlainSource):
    """An array that matnb saved; ``grid`` is how it was cut then."""

    file: File
    grid: Grid
    dtype: np.dtype
    sparse: bool
    pattern: bool
    nnz: int
    sums: tuple[int, ...] = ()

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
        if self.sums:
            return self._rows(archive, number, region)
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
        self._check(name, pointers, columns, shape)
        values = archive.array(f"{name}_values") if f"{name}_values" in archive.names else None
        if values is None and not self.pattern:
            values = np.ones(columns.size, self.dtype)  # blocks with values and without were saved together
        return Csr((shape[0], shape[1]), narrow(pointers), narrow(columns), values, self.dtype)

    def _rows(self, archive: Archive, number: int, region: Region) -> Block:
        # The rows between two cuts, of an array of SciPy's.
        (top, bottom), (_, width) = region
        name = f"rows {top} to {bottom}"
        pointers = archive.part("indptr", top, bottom + 1).astype(np.int64)
        start, stop = int(pointers[0]), int(pointers[-1])
        if not 0 <= start <= stop <= self.nnz:
            raise self.file.error(f"{name}: pointers lead from {start} to {stop} of {self.nnz} entries")
        columns: npt.NDArray[np.int32] = archive.part("indices", start, stop).astype(np.int32, copy=False)
        values = None if self.pattern else archive.part("data", start, stop)
        sums = (
            zlib.crc32(columns.data),
            self.sums[2 * number + 1] if values is None else zlib.crc32(values.data),
        )
        if sums != self.sums[2 * number : 2 * number + 2]:
            raise self.file.error(f"{name}: a checksum is wrong: the file is damaged")
        pointers -= start
        self._check(name, pointers, columns, (bottom - top, width))
        if not columns.size:
            return Empty((bottom - top, width), self.dtype)
        return Csr((bottom - top, width), narrow(pointers), narrow(columns), values, self.dtype)

    def _check(
        self,
        name: str,
        pointers: npt.NDArray[np.integer],
        columns: npt.NDArray[np.integer],
        shape: Sequence[int],
    ) -> None:
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

    def summary(self, parsed: Blocks) -> None:
        """Return nothing: the file says all."""

    def merge(self, summaries: Sequence[None]) -> PlainContext:
        """Return what is known of the array."""
        return PlainContext(SourceFacts(self.grid.shape, self.dtype, self.sparse, self.pattern, self.nnz))

    def part(
        self, parsed: Blocks, context: PlainContext, region: Region
    ) -> tuple[Block | Slab | Entries, ...]:
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
        self, parts: Sequence[Sequence[Block | Slab | Entries]], context: PlainContext, region: Region
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


def saved_labels(source: Source) -> npt.NDArray[np.generic] | None:
    """Return the labels that rows and columns had when a matrix was saved, None for another source."""
    if not isinstance(source, SavedArray) or len(source.grid.shape) != 2:
        return None
    with open_archive(source.file) as archive:
        if LABELS not in archive.names:
            return None
        with archive.opened(LABELS, _LABEL_KINDS) as (found, _):
            if found.shape != source.grid.shape[:1] or source.grid.shape != found.shape * 2:
                raise source.file.error(f"labels of shape {found.shape} for an array of {source.grid.shape}")
        return archive.array(LABELS, _LABEL_KINDS)


def open_saved(file: File, archive: Archive) -> SavedArray:
    """Return the source of a file that matnb saved.

    Raises
    ------
    FileFormatError
        When what it says does not fit together.
    """
    version = archive.flag(MARK)
    if version not in (DENSE_VERSION, VERSION):
        raise file.error(f"version {version} of matnb's format; this matnb reads versions up to {VERSION}")
    if version == VERSION:
        return _saved_rows(file, archive)
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
    return SavedArray(file, grid, dtype.newbyteorder("="), sparse, pattern, total)


def _saved_rows(file: File, archive: Archive) -> SavedArray:
    # A sparse array in SciPy's layout.
    data, indices = archive.header("data"), archive.header("indices")
    shape, sums = archive.facts("shape"), archive.facts("sums")
    rows = archive.facts("cuts_0")
    try:
        grid = Grid((tuple(rows), (0, shape[1]) if len(shape) == 2 else ()))
    except ShapeError as error:
        raise file.error(str(error)) from None
    fits = (
        archive.word("format") == "csr"
        and list(grid.shape) == shape
        and max(shape) <= LARGEST_LENGTH
        and len(sums) == 2 * (len(rows) - 1)
        and len(data.shape) == 1
        and indices.shape == data.shape
        and indices.dtype.newbyteorder("=") == np.int32
        and archive.num_indices("indptr") == shape[0] + 1
    )
    if not fits:
        raise file.error("members do not fit together: cuts, checksums, pointers, indices and values")
    dtype = data.dtype.newbyteorder("=")
    return SavedArray(file, grid, dtype, True, bool(archive.flag("pattern")), data.shape[0], tuple(sums))


_FORMATS = ("csr", "csc", "coo", "bsr", "dia")


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

    def merge(self, summaries: Sequence[tuple[int, np.dtype]]) -> PlainContext:
        """Return what is known of the matrix."""
        ((num_entries, dtype),) = summaries
        return PlainContext(SourceFacts(self.shape, dtype, sparse=True, nnz=num_entries))

    def part(self, parsed: Entries, context: PlainContext, region: Region) -> Entries:
        """Return the entries that lie in a region, with local positions."""
        return entries_in(parsed, region)

    def assemble(self, parts: Sequence[Entries], context: PlainContext, region: Region) -> Block:
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
                f"is neither a sparse matrix of SciPy's nor matnb's own: it has {names or 'no member'}; "
                "of several arrays load each with mn.asarray(np.load(path)[name])"
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

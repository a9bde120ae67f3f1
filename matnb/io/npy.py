"""NumPy's .npy files, mapped into memory where they are on disk; nothing that is pickled is ever loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import IO, Literal

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy_format

from matnb.blocks.formats import Block
from matnb.blocks.grid import Region
from matnb.io.files import File
from matnb.io.remote import RemoteFile
from matnb.io.slabs import Slab, common, dense_of
from matnb.io.source import Found, Piece, PlainSource, Source, reader, split_range

SMALLEST_PIECE_BYTES = 1 << 16
NUMBERS = "biufc"  # kinds of dtype that an array may have


@dataclass(frozen=True)
class Header:
    """What a .npy file says of itself, and where the elements begin."""

    shape: tuple[int, ...]
    dtype: np.dtype
    fortran: bool
    begin: int

    @property
    def num_bytes(self) -> int:
        """Bytes that the elements claim to take."""
        return prod(self.shape) * self.dtype.itemsize


def read_header(stream: IO[bytes]) -> Header:
    """Return the header of a .npy file or member.

    Raises
    ------
    ValueError
        When it is none, or one of elements that are no numbers.
    """
    try:
        version = npy_format.read_magic(stream)
        # versions 2 and 3 differ in how names of fields are written, which numbers do not have
        read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
        shape, fortran, dtype = read(stream)
    except ValueError as error:
        raise ValueError(f"no header of a npy file: {error}") from None
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"version {version} of the npy format is not known")
    if dtype.hasobject:
        raise ValueError("holds pickled objects, which are never loaded: save numbers")
    if any(length < 0 for length in shape):
        raise ValueError(f"a shape of {shape}")
    return Header(shape, dtype, fortran, stream.tell())


@dataclass(frozen=True)
class Npy(PlainSource):
    """A .npy file, cut along its slowest axis."""

    file: File
    header: Header

    def __repr__(self) -> str:
        return f"Npy({self.file!r})"

    @property
    def dtype(self) -> np.dtype:
        """Type of the elements in this machine's byte order."""
        return self.header.dtype.newbyteorder("=")

    @property
    def _axis(self) -> int:
        return len(self.header.shape) - 1 if self.header.fortran else 0

    def identity(self) -> tuple[str | int, ...]:
        """Return what tells the result from any other."""
        return ("npy", *self.file.identity)

    def estimated_entries(self) -> int:
        """Return how many elements there are."""
        return prod(self.header.shape)

    def pieces(self, count: int) -> tuple[Piece, ...]:
        """Return ranges of the slowest axis."""
        shape = self.header.shape
        if not shape or not prod(shape):
            return (Piece(0, 0, 1),)
        length = shape[self._axis]
        return split_range(0, length, count, SMALLEST_PIECE_BYTES * length // self.header.num_bytes)

    def parse(self, piece: Piece) -> Piece:
        """Return the piece: its elements are read when a region asks for them, so none is held twice."""
        return piece

    def summary(self, parsed: Piece) -> None:
        """Return nothing: the header says all."""

    def merge(self, summaries: Sequence[None]) -> NpyFound:
        """Return what is known of the array."""
        shape = self.header.shape
        return NpyFound(Found(shape, self.dtype, sparse=False, nnz=prod(shape)))

    def part(self, parsed: Piece, context: NpyFound, region: Region) -> Slab | None:
        """Return the rectangle of a piece that lies in a region."""
        own = [(0, length) for length in self.header.shape]
        if own and self.header.num_bytes:
            own[self._axis] = (parsed.start, parsed.stop)
        both = common(tuple(own), region)
        if both is None:
            return None
        with self.file.open() as stream:
            chosen = self._chosen(stream, both)
            return Slab(both, np.array(chosen, self.dtype, order="C", subok=False))

    def _chosen(self, stream: IO[bytes], region: Region) -> npt.NDArray[np.generic]:
        header = self.header
        order: Literal["F", "C"] = "F" if header.fortran else "C"
        if not isinstance(self.file, RemoteFile):
            mapped = np.memmap(stream, header.dtype, "r", header.begin, header.shape, order)
            return mapped[tuple(slice(*span) for span in region)] if region else mapped.reshape(())
        if not region:
            stream.seek(header.begin)
            return np.frombuffer(stream.read(header.dtype.itemsize), header.dtype).reshape(())
        # Slices of the slowest axis lie side by side in the file.
        start, stop = region[self._axis]
        slice_bytes = header.num_bytes // header.shape[self._axis]
        stream.seek(header.begin + start * slice_bytes)
        shape = list(header.shape)
        shape[self._axis] = stop - start
        data = np.frombuffer(stream.read((stop - start) * slice_bytes), header.dtype)
        within = [(0, stop - start) if axis == self._axis else span for axis, span in enumerate(region)]
        return data.reshape(shape, order=order)[tuple(slice(*span) for span in within)]

    def assemble(self, parts: Sequence[Slab | None], context: NpyFound, region: Region) -> Block:
        """Return the block of a region."""
        return dense_of([part for part in parts if part is not None], region, self.dtype)


@dataclass(frozen=True)
class NpyFound:
    """What is known of the array."""

    found: Found


@reader("npy", ".npy")
def open_npy(file: File) -> Source:
    """Return the source of a .npy file.

    Raises
    ------
    FileFormatError
        When it is none, holds objects, or is shorter or longer than its header says.
    """
    with file.open() as stream:
        try:
            header = read_header(stream)
        except ValueError as error:
            raise file.error(str(error)) from None
    if header.dtype.kind not in NUMBERS:
        raise file.error(f"holds elements of dtype {header.dtype}: only numbers and booleans are read")
    follow = file.size - header.begin
    if header.num_bytes != follow:
        raise file.error(
            f"shape {header.shape} of {header.dtype} needs {header.num_bytes} bytes; {follow} follow"
        )
    return Npy(file, header)

"""NumPy's .npy files, mapped into memory where they are on disk; nothing that is pickled is ever loaded."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import IO, Literal

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy_format

from matnb.blocks.formats import Block
from matnb.blocks.grid import Region
from matnb.io.entries import Slab, common, dense_of
from matnb.io.files import File, RemoteFile
from matnb.io.source import Piece, PlainContext, PlainSource, Source, SourceFacts, reader, split_range

SMALLEST_PIECE_BYTES = 1 << 16
NUMBERS = "biufc"  # kinds of dtype that an array may have
_LONGEST_HEADER = 10_000  # bytes, as NumPy has it
_MOST_AXES = 64
_KEYS = {"descr", "fortran_order", "shape"}
_ENTRY = re.compile(
    r"""\s*(['"])(descr|fortran_order|shape)\1\s*:\s*"""
    r"""(True|False|'[^']*'|"[^"]*"|\([-0-9L,\s]*\)|\[.*\])\s*(?:,|\Z)""",
    re.DOTALL,
)


@dataclass(frozen=True)
class NpyHeader:
    """What a .npy file says of itself, and where the elements begin."""

    shape: tuple[int, ...]
    dtype: np.dtype
    fortran: bool
    begin: int

    @property
    def num_bytes(self) -> int:
        """Bytes that the elements claim to take."""
        return prod(self.shape) * self.dtype.itemsize


def read_header(stream: IO[bytes]) -> NpyHeader:
    """Return the header of a .npy file or member.

    Raises
    ------
    ValueError
        When it is none, or one of elements that are not numbers.
    """
    begin = stream.read(8)
    if len(begin) < 8 or not begin.startswith(npy_format.MAGIC_PREFIX):
        raise ValueError(f"not a valid .npy header: the magic bytes are {begin[:6]!r}")
    version = begin[6], begin[7]
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"version {version} of the npy format is not known")
    word = stream.read(2 if version == (1, 0) else 4)
    length = int.from_bytes(word, "little")
    if length > _LONGEST_HEADER:
        raise ValueError(f"not a valid .npy header: it claims {length} bytes")
    written = stream.read(length)
    if len(written) < length or not word:
        raise ValueError(f"not a valid .npy header: it ends after {len(written)} of {length} bytes")
    # Versions 2 and 3 differ in how names of fields are written, which numbers do not have.
    entries = _entries(written.decode("latin1"))
    shape = _shape_of(entries["shape"])
    return NpyHeader(shape, _dtype_of(entries["descr"]), entries["fortran_order"] == "True", stream.tell())


def _entries(text: str) -> dict[str, str]:
    # What is written for each key. The text is that of a dict of Python's, which nobody needs Python to read:
    # its own parser gives up on hostile text in a dozen ways.
    inside, place, found = text.strip(), 1, {}
    if inside[:1] == "{" and inside[-1:] == "}":
        while entry := _ENTRY.match(inside, place, len(inside) - 1):
            found[entry[2]] = entry[3]
            place = entry.end()
    rest = inside[place:-1].strip()
    right = found.keys() == _KEYS and not rest and found["fortran_order"] in ("True", "False")
    if not right or found["shape"][0] != "(":
        shown = text[:60].strip()
        raise ValueError(f"not a valid .npy header: {shown!r} has no descr, fortran_order and shape alone")
    return found


def _shape_of(text: str) -> tuple[int, ...]:
    words = [word.strip().removesuffix("L") for word in text[1:-1].split(",")]
    if words[-1] == "":  # after the last comma
        words.pop()
    if not all(re.fullmatch(r"-?[0-9]{1,19}", word) for word in words):
        raise ValueError(f"a shape of {text[:60]}")
    shape = tuple(map(int, words))
    # NumPy counts in 63 bits, without axes of no length; what has an element is refused by what follows.
    is_odd = 0 in shape and prod(filter(None, shape)) >= 2**58
    if is_odd or len(shape) > _MOST_AXES or any(length < 0 for length in shape):
        raise ValueError(f"a shape of {text[:60]}")
    return shape


def _dtype_of(text: str) -> np.dtype:
    described = text[1:-1]
    if re.fullmatch(r"[<>=|]?O[0-9]*", described):
        raise ValueError("holds pickled objects, which are never loaded: save numbers")
    if text[0] == "[" or not re.fullmatch(r"[<>=|]?([?biufcSU][0-9]{0,9})", described):
        raise ValueError(f"holds elements of dtype {described[:60]}: only numbers and booleans are read")
    try:
        dtype = np.dtype(described)
    except (TypeError, ValueError) as error:
        raise ValueError(f"holds elements of dtype {described}: {error}") from None
    if not dtype.itemsize:
        raise ValueError(f"holds elements of dtype {described}, which take no bytes")
    return dtype


@dataclass(frozen=True)
class Npy(PlainSource):
    """A .npy file, cut along its slowest axis."""

    file: File
    header: NpyHeader

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

    def parsing_bytes(self, piece: Piece, num_pieces: int) -> tuple[int, int]:
        """Return nothing: elements are read when a block is made."""
        return 0, 0

    def parse(self, piece: Piece) -> Piece:
        """Return the piece: its elements are read when a region asks for them, so none is held twice."""
        return piece

    def summary(self, parsed: Piece) -> None:
        """Return nothing: the header says all."""

    def merge(self, summaries: Sequence[None]) -> PlainContext:
        """Return what is known of the array."""
        shape = self.header.shape
        return PlainContext(SourceFacts(shape, self.dtype, sparse=False, nnz=prod(shape)))

    def part(self, parsed: Piece, context: PlainContext, region: Region) -> Slab | None:
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

    def assemble(self, parts: Sequence[Slab | None], context: PlainContext, region: Region) -> Block:
        """Return the block of a region."""
        return dense_of([part for part in parts if part is not None], region, self.dtype)


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

"""Matrix Market files, coordinate and array (Boisvert, Pozo and Remington, NIST IR 5935, 1996)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import LARGEST_LENGTH, Block, Dense
from matnb.blocks.grid import Region, region_shape
from matnb.errors import FileFormatError
from matnb.io.digits import Places
from matnb.io.entries import Entries, ReaderValue, block_of, entries_in, joined
from matnb.io.files import File
from matnb.io.lines import Chunk, columns_of, head_lines, read_chunks, read_in_order, text_pieces
from matnb.io.source import ORDERING_BYTES, Piece, PlainSource, Source, SourceFacts, reader

_DTYPES = {"real": np.dtype(np.float64), "double": np.dtype(np.float64), "integer": np.dtype(np.int64),
           "unsigned-integer": np.dtype(np.uint64), "complex": np.dtype(np.complex128),
           "pattern": np.dtype(np.float64)}  # fmt: skip
_NUMBERS_A_VALUE = {"complex": 2, "pattern": 0}  # real and imaginary part; of other fields 1
_MIRRORS = {"general": 0, "symmetric": 1, "skew-symmetric": -1, "hermitian": 1}
_LONGEST_HEADER_LINE = 200


@dataclass(frozen=True)
class MatrixMarketHeader:
    """What the first lines say, and where the entries begin."""

    layout: str
    field: str
    symmetry: str
    shape: tuple[int, int]
    num_listed: int
    begin: int

    @property
    def dtype(self) -> np.dtype:
        """Type of the elements."""
        return _DTYPES[self.field]

    @property
    def mirror(self) -> int:
        """0 where all entries are listed, else the sign of an entry's mirror image."""
        return _MIRRORS[self.symmetry]

    @property
    def is_hermitian(self) -> bool:
        """Whether a mirror image is the complex conjugate."""
        return self.symmetry == "hermitian"

    @property
    def numbers_a_value(self) -> int:
        """How many numbers each line has in addition to the positions."""
        return _NUMBERS_A_VALUE.get(self.field, 1)


@dataclass(frozen=True, eq=False)
class ArrayElements(ReaderValue):
    """Elements of an array in the order of the file, column by column."""

    values: npt.NDArray[np.generic]


@dataclass(frozen=True)
class EntryCounts:
    """Of one piece: its number, the entries it lists, and how many of them have a mirror image."""

    number: int
    num_listed: int
    num_images: int


@dataclass(frozen=True)
class MatrixMarketContext:
    """What is known of the array, and the number of the first value in each piece."""

    found: SourceFacts
    firsts: tuple[int, ...]


@dataclass(frozen=True)
class MatrixMarket(PlainSource):
    """A Matrix Market file; blocks are sparse for coordinates and dense for an array."""

    file: File
    header: MatrixMarketHeader

    def __repr__(self) -> str:
        return f"MatrixMarket({self.file!r})"

    def identity(self) -> tuple[str | int, ...]:
        """Return what tells the result from any other."""
        return ("matrixmarket", *self.file.identity)

    def estimated_entries(self) -> int:
        """Return how many entries there are at most."""
        if self.header.layout == "array":
            return prod(self.header.shape)
        return self.header.num_listed * (2 if self.header.mirror else 1)

    def pieces(self, count: int) -> tuple[Piece, ...]:
        """Return byte ranges."""
        return text_pieces(self.file, self.header.begin, count)

    def parsing_bytes(self, piece: Piece, num_pieces: int) -> tuple[int, int]:
        """Return what the entries of a piece take: no more than its bytes have room for."""
        text = self.file.largest_text if self.file.compressed else piece.stop - piece.start
        listed = min(self.header.num_listed, text // _shortest(self.header.layout, self.header.field) + 1)
        places = 8 if self.header.layout == "coordinate" else 0
        held = listed * (places + (0 if self.header.field == "pattern" else self.header.dtype.itemsize))
        return held, held

    def placing_bytes(self, found: SourceFacts) -> int:
        """Return what entries take while they are put in order; those of an array are given places too."""
        return ORDERING_BYTES * (found.nnz or 0)

    def parse(self, piece: Piece) -> tuple[int, Entries | ArrayElements]:
        """Read the lines of a piece."""
        is_array = self.header.layout == "array"
        entries: list[Entries] = []
        values: list[npt.NDArray[np.generic]] = []
        num_listed = 0
        for chunk in read_chunks(self.file, piece, self.header.begin):
            if is_array:
                values.append(read_in_order(chunk, self._array_values))
                num_listed += values[-1].size
            else:
                entries.append(read_in_order(chunk, self._entries))
                num_listed += entries[-1].rows.size
            if num_listed > self.header.num_listed:
                raise self._wrong_count(f"at least {num_listed}")
        if is_array:
            return piece.number, ArrayElements(np.concatenate([np.empty(0, self.header.dtype), *values]))
        return piece.number, joined(entries, None if self.header.field == "pattern" else self.header.dtype)

    def _entries(self, chunk: Chunk) -> Entries:
        starts, stops = columns_of(chunk, 2 + self.header.numbers_a_value)
        rows, columns = (self._indices(chunk, starts[:, axis], stops[:, axis], axis) for axis in (0, 1))
        if self.header.field == "pattern":
            return Entries(rows, columns, None)
        return Entries(rows, columns, self._values(chunk, starts[:, 2:], stops[:, 2:]))

    def _indices(self, chunk: Chunk, starts: Places, stops: Places, axis: int) -> npt.NDArray[np.int32]:
        length, name = self.header.shape[axis], ("row", "column")[axis]
        return (chunk.integers_within(starts, stops, 1, length, name) - 1).astype(np.int32)

    def _values(self, chunk: Chunk, starts: Places, stops: Places) -> npt.NDArray[np.generic]:
        if self.header.field != "complex":
            return self._numbers(chunk, starts[:, 0], stops[:, 0])
        # Not added as real + 1j * imaginary, which an infinity would make a NaN of.
        values = np.empty(len(starts), self.header.dtype)
        values.real, values.imag = (self._numbers(chunk, starts[:, part], stops[:, part]) for part in (0, 1))
        return values

    def _numbers(self, chunk: Chunk, starts: Places, stops: Places) -> npt.NDArray[np.generic]:
        match self.header.field:
            case "integer":
                return chunk.integers(starts, stops)
            case "unsigned-integer":
                return chunk.unsigned(starts, stops)
            case _:
                return chunk.floats(starts, stops)

    def _array_values(self, chunk: Chunk) -> npt.NDArray[np.generic]:
        return self._values(chunk, *columns_of(chunk, self.header.numbers_a_value))

    def summary(self, parsed: tuple[int, Entries | ArrayElements]) -> EntryCounts:
        """Return the counts of a piece."""
        number, listed = parsed
        if isinstance(listed, ArrayElements):
            return EntryCounts(number, listed.values.size, 0)
        num_images = int(np.count_nonzero(listed.rows != listed.columns)) if self.header.mirror else 0
        return EntryCounts(number, listed.rows.size, num_images)

    def merge(self, summaries: Sequence[EntryCounts]) -> MatrixMarketContext:
        """Return what is known of the array, if there are as many entries as the header says."""
        num_listed = sum(counts.num_listed for counts in summaries)
        if num_listed != self.header.num_listed:
            raise self._wrong_count(str(num_listed))
        firsts = np.cumsum([0, *(counts.num_listed for counts in summaries)])
        is_array = self.header.layout == "array"
        nnz = num_listed + sum(counts.num_images for counts in summaries)
        found = SourceFacts(
            self.header.shape,
            self.header.dtype,
            sparse=not is_array,
            pattern=self.header.field == "pattern",
            nnz=prod(self.header.shape) if is_array else nnz,
        )
        return MatrixMarketContext(found, tuple(firsts.tolist()))

    def _wrong_count(self, counted: str) -> FileFormatError:
        return self.file.error(
            f"{counted} entries where the header says {self.header.num_listed}: truncated, or another header"
        )

    def part(
        self, parsed: tuple[int, Entries | ArrayElements], context: MatrixMarketContext, region: Region
    ) -> Entries:
        """Return the entries that lie in a region, mirror images too, with local positions."""
        number, listed = parsed
        if isinstance(listed, ArrayElements):
            listed = self._placed(context.firsts[number], listed.values)
        return entries_in(listed, region, self.header.mirror, conjugated=self.header.is_hermitian)

    def _placed(self, first: int, values: npt.NDArray[np.generic]) -> Entries:
        # An array lists its columns one after another; a symmetric one from the diagonal, a skew one from
        # below it.
        num_rows, num_columns = self.header.shape
        order = np.arange(first, first + values.size)
        # Each in its narrow dtype at once: there are as many as elements.
        if not self.header.mirror:
            columns = (order // max(1, num_rows)).astype(np.int32)
            order %= max(1, num_rows)
        else:
            above = np.arange(num_columns) + (self.header.mirror < 0)
            begins = np.concatenate([[0], np.cumsum(num_rows - above)])
            columns = (np.searchsorted(begins, order, "right") - 1).astype(np.int32)
            order -= begins[columns]
            order += above[columns]
        return Entries(order.astype(np.int32), columns, values)

    def assemble(self, parts: Sequence[Entries], context: MatrixMarketContext, region: Region) -> Block:
        """Return the block of a region; entries listed twice are summed."""
        if self.header.layout == "coordinate":
            return block_of(parts, region, self.header.dtype)
        elements = np.zeros(region_shape(region), self.header.dtype)
        for part in parts:
            elements[part.rows, part.columns] = part.values
        return Dense(elements)


@reader("matrixmarket", ".mtx", ".mtx.gz")
def open_matrix_market(file: File) -> Source:
    """Return the source of a Matrix Market file.

    Raises
    ------
    FileFormatError
        When the first lines are no header, or claim more entries than the file has room for.
    """
    lines = head_lines(file)
    line, number, begin = next(lines)
    layout, field, mirror = _banner(file, line)
    for line, number, begin in lines:
        if not line.startswith(b"%") and line.strip():
            return MatrixMarket(file, _sizes(file, line, number, begin, (layout, field, mirror)))
    raise file.error(f"ends before the line of sizes, after {number} lines")


def _banner(file: File, line: bytes) -> tuple[str, str, str]:
    if line.startswith(b"\xef\xbb\xbf"):
        raise file.error("starts with a UTF-8 byte order mark: save it without", 1)
    words = line[:_LONGEST_HEADER_LINE].decode("ascii", "replace").split()
    if not words or words[0] != "%%MatrixMarket":
        raise file.error("does not start with %%MatrixMarket: not a Matrix Market file", 1)
    if len(words) != 5 or len(line) > _LONGEST_HEADER_LINE:
        raise file.error("the header is not '%%MatrixMarket matrix LAYOUT FIELD SYMMETRY'", 1)
    _, thing, layout, field, symmetry = (word.lower() for word in words)
    if thing != "matrix" or layout not in ("coordinate", "array"):
        raise file.error(f"holds a {thing!r} as {layout!r}: only matrix, coordinate or array", 1)
    if field not in _DTYPES or symmetry not in _MIRRORS:
        fields, symmetries = ", ".join(_DTYPES), ", ".join(_MIRRORS)
        raise file.error(f"{field} {symmetry}: only {fields}; {symmetries}", 1)
    if field == "pattern" and (layout == "array" or symmetry == "skew-symmetric"):
        raise file.error(f"a pattern cannot be {layout} {symmetry}", 1)
    if field == "unsigned-integer" and symmetry == "skew-symmetric":
        raise file.error("unsigned integers cannot be skew-symmetric: half of them would be negative", 1)
    if symmetry == "hermitian" and field != "complex":
        raise file.error(f"{field} {symmetry}: only a complex matrix is hermitian", 1)
    return layout, field, symmetry


def _shortest(layout: str, field: str) -> int:
    # Bytes of the shortest line of an entry.
    return (0 if layout == "array" else 4) + 2 * _NUMBERS_A_VALUE.get(field, 1)


def _sizes(
    file: File, line: bytes, number: int, begin: int, banner: tuple[str, str, str]
) -> MatrixMarketHeader:
    layout, field, symmetry = banner
    mirror = _MIRRORS[symmetry]
    words = line.split()
    expected = "ROWS COLUMNS ENTRIES" if layout == "coordinate" else "ROWS COLUMNS"
    if len(words) != len(expected.split()) or not all(re.fullmatch(rb"[0-9]{1,30}", word) for word in words):
        shown = line[:60].decode("utf-8", "replace").strip()
        raise file.error(f"{shown!r} is not the line of sizes, {expected}", number)
    rows, columns, *rest = map(int, words)
    if mirror and rows != columns:
        raise file.error(f"a symmetric matrix of {rows} rows and {columns} columns", number)
    if max(rows, columns) > LARGEST_LENGTH:
        raise file.error(
            f"claims {rows} rows and {columns} columns; at most {LARGEST_LENGTH} are read", number
        )
    if layout == "coordinate":
        num_listed = rest[0]
    else:
        num_listed = rows * columns
        if mirror:
            num_listed = rows * (rows + mirror) // 2
    room = file.largest_text - begin + 1  # the last newline may be missing
    if num_listed * _shortest(layout, field) > room:
        text = (
            f"claims {num_listed} entries, but the {max(0, room - 1)} bytes that follow have no room for them"
        )
        raise file.error(text, number)
    return MatrixMarketHeader(layout, field, symmetry, (rows, columns), num_listed, begin)

"""Numeric CSV with a header (RFC 4180) into a dense matrix of named columns; missing values are NaN."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Block
from matnb.blocks.grid import Region, relative
from matnb.errors import OptionError
from matnb.io.digits import MARGIN, BadToken, Places, parse_floats, shown
from matnb.io.files import File
from matnb.io.lines import Chunk, head_lines, read_chunks, text_pieces
from matnb.io.measured import Measured
from matnb.io.slabs import Slab, common, dense_of
from matnb.io.source import Found, Piece, PlainSource, Source, reader

_FLOAT = np.dtype(np.float64)
_QUOTE, _RETURN, _SPACE, _NEWLINE = 34, 13, 32, 10
_MOST_SPACES = 64  # around a number; more are no CSV that a person wrote


@dataclass(frozen=True, eq=False)
class Rows(Measured):
    """Rows of a piece."""

    number: int
    values: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Stacked:
    """What is known of the table, and the number of the first row of each piece."""

    found: Found
    firsts: tuple[int, ...]


@dataclass(frozen=True)
class Table(PlainSource):
    """A CSV file; ``picked`` are the places of the columns that are read."""

    file: File
    begin: int
    names: tuple[str, ...]
    picked: tuple[int, ...]
    delimiter: str

    def __repr__(self) -> str:
        return f"Table({self.file!r})"

    def identity(self) -> tuple[str | int, ...]:
        """Return what tells the result from any other."""
        return ("csv", *self.file.identity, self.delimiter, *self.picked)

    def estimated_entries(self) -> int:
        """Return about how many elements there are."""
        return self.file.size // (4 * len(self.names)) * len(self.picked)

    def pieces(self, count: int) -> tuple[Piece, ...]:
        """Return byte ranges."""
        return text_pieces(self.file, self.begin, count)

    def parse(self, piece: Piece) -> Rows:
        """Read the lines of a piece."""
        none = np.empty((0, len(self.picked)))
        chunks = [self._rows(chunk) for chunk in read_chunks(self.file, piece, self.begin)]
        return Rows(piece.number, np.concatenate([none, *chunks]))

    def _rows(self, chunk: Chunk) -> npt.NDArray[np.float64]:
        starts, stops = self._fields(chunk)
        values = np.empty((starts.shape[0], len(self.picked)))
        for place, column in enumerate(self.picked):
            values[:, place] = self._numbers(chunk, starts[:, column], stops[:, column], column)
        return values

    def _fields(self, chunk: Chunk) -> tuple[Places, Places]:
        # Where the fields of each line start and stop; a line without a character is skipped.
        buffer = chunk.text.buffer
        is_separator = buffer == ord(self.delimiter)
        if (buffer == _QUOTE).any():
            is_separator &= ~_quoted(chunk, ord(self.delimiter))
        is_separator[chunk.newlines] = True
        is_separator[:MARGIN] = False
        stops = np.flatnonzero(is_separator)
        starts = np.concatenate([[MARGIN], stops[:-1] + 1])
        is_last = buffer[stops] == _NEWLINE
        is_first = np.concatenate([[True], is_last[:-1]])
        blank = is_first & is_last & (buffer[starts] <= _RETURN)
        if blank.any():
            starts, stops, is_last = starts[~blank], stops[~blank], is_last[~blank]
        num_fields = len(self.names)
        if starts.size % num_fields == 0:
            ends = is_last.reshape(-1, num_fields)
            if bool(ends[:, -1].all()) and not bool(ends[:, :-1].any()):
                return starts.reshape(-1, num_fields), stops.reshape(-1, num_fields)
        counts = np.diff(np.flatnonzero(is_last), prepend=-1)
        line = int(np.flatnonzero(counts != num_fields)[0])
        position = int(starts[counts[:line].sum()])
        raise chunk.error_at(position, f"{counts[line]} fields where the header has {num_fields}")

    def _numbers(self, chunk: Chunk, starts: Places, stops: Places, column: int) -> npt.NDArray[np.float64]:
        buffer = chunk.text.buffer
        starts, stops = _trimmed(buffer, starts, stops)
        quoted = (stops - starts >= 2) & (buffer[starts] == _QUOTE) & (buffer[stops - 1] == _QUOTE)
        if quoted.any():
            starts, stops = _trimmed(buffer, starts + quoted, stops - quoted)
        present = np.flatnonzero(stops > starts)
        values = np.full(starts.size, np.nan)
        try:
            values[present] = parse_floats(chunk.text, starts[present], stops[present])
        except BadToken as bad:
            place = present[bad.number]
            text = shown(chunk.text.bytes_at(int(starts[place]), int(stops[place])))
            advice = "columns= picks the columns to read"
            reason = f"{text} in column {self.names[column]!r} is not a number; {advice}"
            raise chunk.error_at(int(starts[place]), reason) from None
        return values

    def summary(self, parsed: Rows) -> int:
        """Return the number of rows of a piece."""
        return len(parsed.values)

    def merge(self, summaries: Sequence[int]) -> Stacked:
        """Return what is known of the table."""
        firsts = np.cumsum([0, *summaries]).tolist()
        shape = (firsts[-1], len(self.picked))
        names = tuple(self.names[column] for column in self.picked)
        found = Found(shape, _FLOAT, sparse=False, nnz=shape[0] * shape[1], names=names)
        return Stacked(found, tuple(firsts))

    def part(self, parsed: Rows, context: Stacked, region: Region) -> Slab | None:
        """Return the rectangle of a piece that lies in a region."""
        num_rows, num_columns = parsed.values.shape
        first = context.firsts[parsed.number]
        own = ((first, first + num_rows), (0, num_columns))
        both = common(own, region)
        return None if both is None else Slab(both, parsed.values[relative(both, own)].copy())

    def assemble(self, parts: Sequence[Slab | None], context: Stacked, region: Region) -> Block:
        """Return the block of a region."""
        return dense_of([part for part in parts if part is not None], region, _FLOAT)


def _trimmed(buffer: npt.NDArray[np.uint8], starts: Places, stops: Places) -> tuple[Places, Places]:
    # Without spaces, tabs and the carriage return around a field.
    for _ in range(_MOST_SPACES):
        space = (starts < stops) & (buffer[starts] <= _SPACE)
        if not space.any():
            break
        starts = starts + space
    for _ in range(_MOST_SPACES):
        space = (starts < stops) & (buffer[stops - 1] <= _SPACE)
        if not space.any():
            break
        stops = stops - space
    return starts, stops


def _quoted(chunk: Chunk, delimiter: int) -> npt.NDArray[np.bool_]:
    # Which bytes are inside quotes. A quote opens at the start of a field and closes at its end; "" is one
    # inside.
    buffer = chunk.text.buffer
    quotes = np.flatnonzero(buffer == _QUOTE)
    inside = (np.cumsum(buffer == _QUOTE, dtype=np.uint8) & 1).astype(np.bool_)
    broken = chunk.newlines[inside[chunk.newlines]]
    if broken.size:
        text = "a quoted field that goes on in the next line; write one row a line"
        raise chunk.error_at(int(broken[0]), text)
    opening, closing = quotes[0::2], quotes[1::2]
    before, after = buffer[opening - 1], buffer[closing + 1]
    starts_field = (opening == MARGIN) | (before == delimiter) | (before == _NEWLINE) | (before == _QUOTE)
    ends_field = (after == delimiter) | (after == _NEWLINE) | (after == _RETURN) | (after == _QUOTE)
    stray = np.concatenate([opening[~starts_field], closing[~ends_field]])
    if stray.size:
        raise chunk.error_at(int(stray.min()), "a quote in the middle of a field; quote the whole field")
    return inside


@reader("csv", ".csv", ".csv.gz")
def open_table(file: File, columns: Sequence[str] | None = None, delimiter: str = ",") -> Source:
    """Return the source of a CSV table, whose first line names its columns.

    Parameters
    ----------
    file
        The table; fields may be quoted, but not over a line break.
    columns
        Names of the columns to read, in the order wanted; None reads all, which must be numbers.
    delimiter
        The character between fields.

    Raises
    ------
    OptionError
        For a name that no column has, or more than one.
    FileFormatError
        When the header is no text, or all columns are read and two have one name.
    """
    if (
        not isinstance(delimiter, str)
        or len(delimiter) != 1
        or delimiter in '"\r\n'
        or not delimiter.isascii()
    ):
        raise OptionError(f"delimiter={delimiter!r}: give one character, not a quote or line break")
    line, _, begin = next(head_lines(file))
    if line.count(b'"') % 2:
        raise file.error("a quoted name that goes on in the next line; write the header in one", 1)
    try:
        text = line.removeprefix(b"\xef\xbb\xbf").decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise file.error(f"the header is not UTF-8 text: {error.reason}", 1) from None
    names = tuple(name.strip() for name in next(csv.reader([text], delimiter=delimiter), []))
    if not names:
        raise file.error("the first line, which should name the columns, is blank", 1)
    return Table(file, begin, names, _picked(file, names, columns), delimiter)


def _picked(file: File, names: tuple[str, ...], columns: Sequence[str] | None) -> tuple[int, ...]:
    if columns is None:
        for place, name in enumerate(names):
            if name in names[:place]:
                advice = "give each a name of its own, or pick others with columns="
                raise file.error(f"{names.count(name)} columns named {name!r}: {advice}", 1)
        return tuple(range(len(names)))
    if isinstance(columns, str) or not columns:
        raise OptionError(f"columns={columns!r}: give a list of names")
    for name in columns:
        if names.count(name) != 1:
            known = ", ".join(map(repr, names[:50]))
            raise OptionError(
                f"{file.shown}: {names.count(name)} columns named {name!r}; the header has {known}"
            )
    return tuple(names.index(name) for name in columns)

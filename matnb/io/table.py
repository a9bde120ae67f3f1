"""CSV (RFC 4180) into a dense matrix of named columns; and what it shares with other readers of tables."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Block
from matnb.blocks.grid import Region, relative
from matnb.errors import OptionError
from matnb.io.digits import MARGIN, BadToken, Places, parse_floats, shown
from matnb.io.entries import ReaderValue, Slab, common, dense_of
from matnb.io.files import File
from matnb.io.lines import Chunk, check_skip, head_lines, read_chunks, text_pieces
from matnb.io.source import Found, Piece, PlainSource, Source, choose, reader

FLOAT = np.dtype(np.float64)
_LARGEST_EXACT = 2.0**53 - 1  # the next one is what 2**53 + 1 is read as, too
DType: TypeAlias = str | type | np.dtype
DTypes: TypeAlias = DType | Mapping[str, DType] | None


@dataclass(frozen=True)
class Content:
    """What the values of a column are, as far as they were seen.

    Attributes
    ----------
    missing
        How many are missing.
    truths, numbers
        How many are written as true or false, and how many as numbers.
    whole
        Whether all numbers are written as whole ones that a double holds exactly.
    """

    missing: int = 0
    truths: int = 0
    numbers: int = 0
    whole: bool = True

    def __add__(self, other: Content) -> Content:
        return Content(
            self.missing + other.missing,
            self.truths + other.truths,
            self.numbers + other.numbers,
            self.whole and other.whole,
        )

    @property
    def dtype(self) -> np.dtype:
        """The dtype that holds all of it: of whole numbers or truths with a missing one, float64."""
        if self.missing or not (self.truths or self.numbers):
            return FLOAT
        if not self.numbers:
            return np.dtype(np.bool_)
        return np.dtype(np.int64) if self.whole else FLOAT


def are_exact(values: npt.NDArray[np.float64]) -> bool:
    """Tell whether all values are whole and small enough to be told from their neighbors; NaN is left out."""
    with np.errstate(invalid="ignore"):
        good = (np.abs(values) <= _LARGEST_EXACT) & (values == np.floor(values))
    return bool((good | np.isnan(values)).all())


@dataclass(frozen=True, eq=False)
class Rows(ReaderValue):
    """Rows of a piece, missing values as NaN, and what each column of them holds."""

    number: int
    values: npt.NDArray[np.float64]
    contents: tuple[Content, ...]


@dataclass(frozen=True)
class Stacked:
    """What is known of the table, and the number of the first row of each piece."""

    found: Found
    firsts: tuple[int, ...]


@dataclass(frozen=True)
class Tabular(PlainSource):
    """A table; ``picked`` are the places of the columns that are read, ``wanted`` the dtypes asked for."""

    file: File
    names: tuple[str, ...]
    picked: tuple[int, ...]
    wanted: tuple[tuple[str, np.dtype], ...]

    def summary(self, parsed: Rows) -> tuple[int, tuple[Content, ...]]:
        """Return the number of rows of a piece, and what its columns hold."""
        return len(parsed.values), parsed.contents

    def merge(self, summaries: Sequence[tuple[int, tuple[Content, ...]]]) -> Stacked:
        """Return what is known of the table.

        Raises
        ------
        FileFormatError
            For a column of numbers and truths, or one that is not of the dtype asked for.
        """
        firsts = np.cumsum([0, *(rows for rows, _ in summaries)]).tolist()
        shape = (firsts[-1], len(self.picked))
        names = tuple(self.names[column] for column in self.picked)
        dtypes = tuple(
            self._dtype(name, sum((contents[place] for _, contents in summaries), Content()))
            for place, name in enumerate(names)
        )
        nnz = shape[0] * shape[1]
        return Stacked(Found(shape, FLOAT, sparse=False, nnz=nnz, names=names, dtypes=dtypes), tuple(firsts))

    def _dtype(self, name: str, content: Content) -> np.dtype:
        if content.truths and content.numbers:
            counts = f"{content.truths} values that are true or false and {content.numbers} numbers"
            raise self.file.error(f"column {name!r} has {counts}: columns=[...] picks the columns to read")
        wanted = dict(self.wanted).get(name)
        if wanted is None:
            return content.dtype
        if content.missing and wanted.kind not in "fc":
            advice = "read it as float64, where they are NaN"
            raise self.file.error(f"column {name!r} has {content.missing} missing values: {advice}")
        if wanted.kind in "iu" and not content.whole:
            raise self.file.error(
                f"column {name!r} has values that are not whole, or beyond 2**53: read it as float64"
            )
        return wanted

    def part(self, parsed: Rows, context: Stacked, region: Region) -> Slab | None:
        """Return the rectangle of a piece that lies in a region."""
        num_rows, num_columns = parsed.values.shape
        first = context.firsts[parsed.number]
        own = ((first, first + num_rows), (0, num_columns))
        both = common(own, region)
        return None if both is None else Slab(both, parsed.values[relative(both, own)].copy())

    def assemble(self, parts: Sequence[Slab | None], context: Stacked, region: Region) -> Block:
        """Return the block of a region."""
        return dense_of([part for part in parts if part is not None], region, FLOAT)


def wanted_dtypes(file: File, dtype: DTypes, names: Sequence[str]) -> tuple[tuple[str, np.dtype], ...]:
    """Return the dtype asked for of each column, given one for all or one a name.

    Raises
    ------
    OptionError
        For one that is no dtype of numbers, or a name that is not read.
    """
    if dtype is None:
        return ()
    by_name = dtype if isinstance(dtype, Mapping) else dict.fromkeys(names, dtype)
    wanted = []
    for name, one in by_name.items():
        if name not in names:
            raise OptionError(
                f"{file.shown}: dtype= of {name!r}, a column that is not read: {_listed(names)}"
            )
        try:
            made = np.dtype(one)
        except TypeError:
            made = np.dtype(object)
        if made.kind not in "biuf":
            raise OptionError(f"dtype={one!r}: columns are numbers: give a bool, integer or float dtype")
        wanted.append((name, made))
    return tuple(wanted)


def picked_columns(file: File, names: Sequence[str], columns: Sequence[str] | None) -> tuple[int, ...]:
    """Return the places of the columns to read; None reads all.

    Raises
    ------
    OptionError
        For a name that no column has, or more than one.
    FileFormatError
        When all are read and two have one name.
    """
    if columns is None:
        for place, name in enumerate(names):
            if name in names[:place]:
                advice = "give each a name of its own, or pick others with columns="
                raise file.error(f"{names.count(name)} columns named {name!r}: {advice}", 1)
        return tuple(range(len(names)))
    if isinstance(columns, str) or not isinstance(columns, Sequence) or not columns:
        raise OptionError(f"columns={columns!r}: give a list of names")
    for name in columns:
        if names.count(name) != 1:
            count = names.count(name)
            raise OptionError(
                f"{file.shown}: {count} columns named {name!r}; the header has {_listed(names)}"
            )
    return tuple(names.index(name) for name in columns)


def not_numbers(names: Sequence[str], bad: Sequence[str]) -> str:
    """Return what a message says of columns that are no numbers: how to leave them out."""
    good = [name for name in names if name not in bad]
    if not good:
        return "columns=[...] picks the columns to read, and none here holds numbers"
    also = f" (not numbers: {_listed(bad)})" if len(bad) > 1 else ""
    return f"columns=[{_listed(good)}] reads the others{also}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:50]))


_QUOTE, _RETURN, _SPACE, _NEWLINE, _POINT, _NINE = 34, 13, 32, 10, 46, 57
_MOST_SPACES = 64  # around a number; more are no CSV that a user wrote
# As pandas reads them; "nan" is one that parsing numbers knows too.
MISSING = (
    *("NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NULL", "null", "None"),
    *("NaN", "nan", "NAN", "-NaN", "-nan"),
)
_TRUE, _FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")


@dataclass(frozen=True)
class Table(Tabular):
    """A CSV file; ``begin`` is where its rows do, ``missing`` are texts that stand for no value."""

    begin: int
    delimiter: str
    missing: tuple[str, ...]
    room_bytes: int | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return f"Table({self.file!r})"

    def identity(self) -> tuple[str | int, ...]:
        """Return what tells the result from any other."""
        told = repr((self.names, self.wanted, self.missing))
        return ("csv", *self.file.identity, self.delimiter, self.begin, *self.picked, told)

    def estimated_entries(self) -> int:
        """Return about how many elements there are."""
        return self.file.size // (4 * len(self.names)) * len(self.picked)

    def pieces(self, count: int) -> tuple[Piece, ...]:
        """Return byte ranges."""
        return text_pieces(self.file, self.begin, count)

    def parsing_bytes(self, piece: Piece, num_pieces: int) -> tuple[int, int]:
        """Return what numbers of three digits would take."""
        rows = self.file.stated_text() // (4 * len(self.names)) // max(1, num_pieces) + 1
        held = 8 * rows * len(self.picked)
        return held, held

    def within(self, room_bytes: int) -> Table:
        """Return the table with a limit of what reading a piece of it may take."""
        return replace(self, room_bytes=room_bytes)

    def parse(self, piece: Piece) -> Rows:
        """Read the lines of a piece."""
        values = [np.empty((0, len(self.picked)))]
        contents, held = [Content()] * len(self.picked), 0
        for chunk in read_chunks(self.file, piece, self.begin):
            rows, more = self._rows(chunk, [content.whole for content in contents])
            values.append(rows)
            held += rows.nbytes
            self.file.check_room(2 * held, self.room_bytes)  # they are put together
            contents = [one + other for one, other in zip(contents, more, strict=True)]
        return Rows(piece.number, np.concatenate(values), tuple(contents))

    def _rows(self, chunk: Chunk, maybe_whole: list[bool]) -> tuple[npt.NDArray[np.float64], list[Content]]:
        starts, stops = self._fields(chunk)
        values = np.empty((starts.shape[0], len(self.picked)))
        contents: list[Content] = []
        bad: dict[str, tuple[int, str]] = {}
        for place, column in enumerate(self.picked):
            try:
                content = self._numbers(
                    chunk, starts[:, column], stops[:, column], values[:, place], maybe_whole[place]
                )
                contents.append(content)
            except _NotNumber as error:
                bad[self.names[column]] = (error.position, error.text)
        if bad:
            name = min(bad, key=lambda one: bad[one][0])
            position, text = bad[name]
            advice = not_numbers([self.names[column] for column in self.picked], list(bad))
            raise chunk.error_at(position, f"{text} in column {name!r} is not a number; {advice}")
        return values, contents

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

    def _numbers(
        self, chunk: Chunk, starts: Places, stops: Places, values: npt.NDArray[np.float64], maybe_whole: bool
    ) -> Content:
        buffer = chunk.text.buffer
        starts, stops = _trimmed(buffer, starts, stops)
        quoted = (stops - starts >= 2) & (buffer[starts] == _QUOTE) & (buffer[stops - 1] == _QUOTE)
        if quoted.any():
            starts, stops = _trimmed(buffer, starts + quoted, stops - quoted)
        values[:] = np.nan
        present, truths = np.flatnonzero(stops > starts), 0
        try:
            if self._odd_missing:
                present, truths = self._without_words(buffer, starts, stops, present, values)
            numbers = parse_floats(chunk.text, starts[present], stops[present])
        except BadToken:
            # Most columns have no words, so they are looked for only when one was met.
            present, truths = self._without_words(buffer, starts, stops, present, values)
            try:
                numbers = parse_floats(chunk.text, starts[present], stops[present])
            except BadToken as bad:
                place = present[bad.number]
                text = shown(chunk.text.bytes_at(int(starts[place]), int(stops[place])))
                raise _NotNumber(int(starts[place]), text) from None
        values[present] = numbers
        missing = int(np.isnan(values).sum())
        whole = (
            maybe_whole and are_exact(numbers) and not _any_between(chunk, starts[present], stops[present])
        )
        return Content(missing, truths, values.size - missing - truths, whole)

    def _without_words(
        self,
        buffer: npt.NDArray[np.uint8],
        starts: Places,
        stops: Places,
        present: Places,
        values: npt.NDArray[np.float64],
    ) -> tuple[Places, int]:
        # Which of the fields present are no words, and how many say true or false, whose values are set.
        words = present
        if not self._odd_missing:
            words = present[~_BEGINS_NUMBER[buffer[starts[present]]]]
        gone = np.zeros(starts.size, np.bool_)
        for text in (*MISSING, *self.missing):
            gone[words[_are(buffer, starts[words], stops[words], text)]] = True
        truths = 0
        for texts, truth in ((_TRUE, 1.0), (_FALSE, 0.0)):
            for text in texts:
                places = words[_are(buffer, starts[words], stops[words], text)]
                values[places] = truth
                gone[places] = True
                truths += places.size
        return present[~gone[present]], truths

    @property
    def _odd_missing(self) -> bool:
        # Whether what stands for no value may look like a number.
        return any(_BEGINS_NUMBER[text.encode()[0]] for text in self.missing)


class _NotNumber(Exception):  # noqa: N818  stays here: all columns of the lines are checked before one is reported
    """A text that is neither a number, nor true or false, nor missing; and where it is."""

    def __init__(self, position: int, text: str) -> None:
        self.position, self.text = position, text
        super().__init__(position, text)


_BEGINS_NUMBER = np.zeros(256, np.bool_)
_BEGINS_NUMBER[list(b"+-.0123456789")] = True


def _are(buffer: npt.NDArray[np.uint8], starts: Places, stops: Places, text: str) -> npt.NDArray[np.bool_]:
    # Which fields are a text.
    letters = text.encode()
    same: npt.NDArray[np.bool_] = stops - starts == len(letters)
    for place, letter in enumerate(letters):
        if not same.any():
            break
        same &= buffer[np.minimum(starts + place, buffer.size - 1)] == letter
    return same


def _any_between(chunk: Chunk, starts: Places, stops: Places) -> bool:
    # Whether some number is written with a point, an exponent or a letter, as floats are.
    buffer = chunk.text.buffer
    marks = np.flatnonzero((buffer == _POINT) | (buffer > _NINE))
    return bool((np.searchsorted(marks, starts) < np.searchsorted(marks, stops)).any())


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
def open_table(
    file: File,
    columns: Sequence[str] | None = None,
    delimiter: str = ",",
    header: bool = True,
    names: Sequence[str] | None = None,
    na_values: Sequence[str | float] = (),
    dtype: DTypes = None,
    skip: int = 0,
) -> Source:
    """Return the source of a CSV table.

    Empty fields and those that say NA, NaN, null, None and the like are missing: NaN. A column of whole
    numbers without one is of int64, one of true and false without one of bool, every other of float64.

    Parameters
    ----------
    file
        The table; fields may be quoted, but not over a line break.
    columns
        Names of the columns to read, in the order wanted; None reads all, which must be numbers.
    delimiter
        The character between fields.
    header
        Whether the first line names the columns.
    names
        Names of the columns, all of them, instead of the header's; without both they are "0", "1", ....
    na_values
        More texts, or numbers, that stand for a missing value.
    dtype
        Of all columns, or a mapping of names to dtypes, instead of what the values say.
    skip
        Lines before the header, or where there is none before the first row, that are not read.

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
    choose("header", header, (True, False))
    check_skip(skip)
    begin = end = 0
    line, number = b"", 0
    for line, number, end in head_lines(file):  # noqa: B007  the last one is the header
        if number > skip:
            break
        begin = end
    if number <= skip:
        raise file.error(f"has {number} lines, and all of them are skipped")
    found = _header(file, line, delimiter, number)
    if not header:
        found = tuple(map(str, range(len(found))))
    if names is not None:
        if isinstance(names, str) or len(names) != len(found):
            raise OptionError(f"{file.shown}: names={names!r}: give a list of {len(found)} names")
        found = tuple(names)
    picked = picked_columns(file, found, columns)
    wanted = wanted_dtypes(file, dtype, [found[column] for column in picked])
    listed = [na_values] if isinstance(na_values, str | int | float) else list(na_values)
    missing = tuple(text for text in map(_as_text, listed) if text)
    return Table(file, found, picked, wanted, end if header else begin, delimiter, missing)


def _as_text(value: object) -> str:
    if not isinstance(value, str | int | float):
        raise OptionError(f"na_values: {value!r} is neither a text nor a number")
    return str(value)


def _header(file: File, line: bytes, delimiter: str, number: int) -> tuple[str, ...]:
    if line.count(b'"') % 2:
        raise file.error("a quoted name that goes on in the next line; write the header in one", number)
    try:
        text = line.removeprefix(b"\xef\xbb\xbf").decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise file.error(f"the header is not UTF-8 text: {error.reason}", number) from None
    if "\r" in text:
        raise file.error("lines that end in a carriage return alone: save it with line feeds", number)
    try:
        names = tuple(name.strip() for name in next(csv.reader([text], delimiter=delimiter), []))
    except csv.Error as error:
        raise file.error(f"the header cannot be read: {error}", number) from None
    if not names:
        raise file.error("the first line, which should name the columns, is blank", number)
    return names

"""CSV (RFC 4180) into typed columns: Arrow reads the lines, and what it refuses is looked into here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from matnb.errors import FileFormatError, OptionError
from matnb.io.columns import (
    ColumnKind,
    DTypes,
    RowSpan,
    TablePart,
    TableSource,
    fit_float64,
    kind_of,
    no_common_type,
    picked_columns,
    values_of,
    wanted_dtypes,
)
from matnb.io.csv_head import (
    PANDAS_OPTIONS,
    Skip,
    checked_dialect,
    checked_text,
    first_line,
    found_dialect,
    header_names,
    or_edges,
    warn_of,
    way_of_count,
    ways_of_names,
)
from matnb.io.csv_inference import with_types
from matnb.io.digits import MARGIN, shown
from matnb.io.encodings import RecodedFile, TextFile, encoding_name, has_one_byte_letters
from matnb.io.files import File
from matnb.io.lines import WHOLE_TEXT, Lines, text_pieces
from matnb.io.quotes import Dialect, Quotes, quotes_of, read_rows
from matnb.io.source import Piece, Source, choose, reader
from matnb.io.texts import (
    CODE,
    DECIMAL_COMMA,
    EXACT,
    FALSE,
    NUMBER,
    POINTS,
    READ_AS_TEXT,
    TRIED,
    TRUE,
    USUAL_MARKS,
    WHOLE,
    WIDER,
    WITH_OFFSET,
    WORDS,
    Marks,
    MissingTexts,
    NaValues,
    arrow_type,
    checked_marks,
    date_way,
    forms_of,
    missing_texts,
    present,
    values_in,
    without_numbers,
    words_among,
)

if TYPE_CHECKING:
    import pyarrow

CHUNK_BYTES = 1 << 20  # no less than the longest row
_RETURN, _NEWLINE, _TAB, _SPACE = 13, 10, 9, 32
_MINUS, _PLUS, _ZERO, _X = 45, 43, 48, 120
_SAYS = {
    "bool": "true or false",
    "int64": "a whole number",
    "uint64": "a whole number from 0 on",
    "float64": "a number",
    "date32": "a date",
    "timestamp[us]": "a time",
    "timestamp[ns]": "a time",
    "timestamp[us, UTC]": "a time with an offset",
    "timestamp[ns, UTC]": "a time with an offset",
    "duration[us]": "a duration such as 1 days 02:03:04",
    "duration[ns]": "a duration such as 1 days 02:03:04",
}
_INTEGERS, _NUMBERS = ("int64", "uint64"), ("int64", "uint64", "float64")


@dataclass(frozen=True)
class CsvTable(TableSource):
    """A CSV file.

    Attributes
    ----------
    types
        The type that the values of each column that is read are written as; none before :meth:`sampled`.
    wanted
        The dtypes asked for, by name.
    begin
        The byte at which its rows begin.
    missing
        The texts that stand for no value.
    marks
        How numbers are written.
    encoding
        Of the text.
    quoted_text
        Whether quoted fields are text.
    is_headless
        Whether there is no header.
    finds_marks
        Whether the values tell how numbers are written.
    dates
        The columns that have to be dates or times.
    stop
        The byte from which on nothing is read.
    """

    file: File
    names: tuple[str, ...]
    picked: tuple[int, ...]
    types: tuple[str, ...]
    wanted: tuple[tuple[str, str], ...]
    begin: int
    dialect: Dialect
    missing: MissingTexts
    row_bytes: int
    marks: Marks = USUAL_MARKS
    encoding: str = "utf-8"
    quoted_text: bool = True
    is_headless: bool = False
    finds_marks: bool = False
    dates: tuple[str, ...] = ()
    stop: int = WHOLE_TEXT
    room_bytes: int | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return f"CsvTable({self.file!r})"

    def identity(self) -> tuple[str | int, ...]:
        """Return what tells the result from any other."""
        reading = repr(
            (self.names, self.types, self.wanted, self.missing, self.marks, self.dialect, self.dates)
        )
        how = (self.encoding, int(self.quoted_text), self.begin, self.stop)
        return ("csv", *self.file.identity, *how, *self.picked, reading)

    @property
    def kinds(self) -> tuple[ColumnKind, ...]:
        """What the columns that are read hold, unless later ones are floats, or times of the day."""
        kinds = [kind_of(arrow_type(one)) for one in self.types]
        return tuple(one for one in kinds if one is not None)

    @property
    def may_widen(self) -> bool:
        """Whether pieces may hold numbers of other types."""
        return True

    @property
    def stream(self) -> TextFile:
        """The text; in an encoding of which no line can be read alone, from the beginning on as UTF-8."""
        is_whole = self.encoding != "utf-8" and not has_one_byte_letters(self.encoding)
        return RecodedFile(self.file, self.encoding) if is_whole else self.file

    def estimated_entries(self) -> int:
        """Return about how many elements there are."""
        return min(self.file.size, self.stop) // self.row_bytes * len(self.picked)

    def pieces(self, count: int) -> tuple[Piece, ...]:
        """Return byte ranges."""
        return text_pieces(self.stream, self.begin, count, self.stop)

    def parsing_bytes(self, piece: Piece, num_pieces: int) -> tuple[int, int]:
        """Return what rows as long as the first ones would take, and Arrow's columns beside."""
        rows = min(self.file.stated_text(), self.stop) // self.row_bytes // max(1, num_pieces) + 1
        held = rows * sum(4 if one == "text" else 8 for one in self.types)
        return held, held + 4 * CHUNK_BYTES

    def sampled(self) -> CsvTable:
        """Return the table with the types of its columns."""
        (made,) = with_types([self])
        return made

    def within(self, room_bytes: int) -> CsvTable:
        """Return the table with a limit of what reading a piece of it may take."""
        return replace(self, room_bytes=room_bytes)

    def parse(self, piece: Piece) -> TablePart:
        """Read the rows of a piece; an error waits for those of the pieces before it."""
        chunks: list[list[pyarrow.Array]] = []
        held = 0
        span: RowSpan | None = None
        end = None if self.stream.compressed else min(self.stream.size, self.stop)
        try:
            for lines in read_rows(self.stream, piece, self.begin, self.dialect, CHUNK_BYTES):
                stop = (span.stop if span else lines.origin) + len(lines.data)
                span = RowSpan(lines.origin, stop, piece.start == self.begin, end)
                columns = self._columns(lines)
                if columns:
                    chunks.append(columns)
                    held += sum(one.nbytes for one in columns)
                    self.file.check_room(2 * held, self.room_bytes)  # they are put together
            return replace(self._joined(piece.number, chunks), span=span)
        except FileFormatError as error:
            return TablePart(piece.number, error=error, span=span)

    def error_after(self, span: RowSpan) -> FileFormatError:
        """Return the first error of the rows after some, where pieces do not fit to each other."""
        try:
            for _ in replace(self, begin=span.stop).parts(
                Piece(0, span.stop, min(self.file.size, self.stop))
            ):
                pass  # none of the rows is kept
        except FileFormatError as error:
            return error
        return self.file.error(f"quotes that do not pair, after byte {span.stop:,}")

    def parts(self, piece: Piece) -> Iterator[TablePart]:
        """Yield the columns of some rows of a piece at a time."""
        for lines in read_rows(self.stream, piece, self.begin, self.dialect, CHUNK_BYTES):
            yield self._joined(piece.number, [columns] if (columns := self._columns(lines)) else [])

    def _joined(self, number: int, chunks: list[list[pyarrow.Array]]) -> TablePart:
        import pyarrow

        made, wanted = [], dict(self.wanted)
        for place, (name, word) in enumerate(zip(self.read_names, self.types, strict=True)):
            arrays = [columns[place] for columns in chunks]
            if len({one.type for one in arrays}) > 1:  # whole numbers, and then floats; days, and then times
                try:
                    arrays = _of_one_type(arrays, word)
                except pyarrow.ArrowInvalid:
                    raise self.file.error(no_common_type(name)) from None
            empty = pyarrow.null() if word in READ_AS_TEXT else arrow_type(word)  # of any offset
            one = pyarrow.chunked_array(arrays, None if arrays else empty)
            for place_in_chunks in range(len(chunks)):
                chunks[place_in_chunks][place] = None  # its memory goes as soon as it may
            if wanted.get(name, "text") != "text":
                one = self._cast(name, one, wanted[name])
            made.append(values_of(one))
        return TablePart(number, len(made[0].values) if made else 0, tuple(made))

    def _cast(self, name: str, column: pyarrow.ChunkedArray, dtype: str) -> pyarrow.ChunkedArray:
        import pyarrow

        element = np.dtype(dtype)
        unit = np.datetime_data(element)[0] if element.kind == "M" else ""
        arrow = arrow_type(f"timestamp[{unit}]") if unit not in ("", "D") else None
        try:
            if unit == "D":
                return column.cast(pyarrow.date32())
            return column.cast(arrow or pyarrow.from_numpy_dtype(element), safe=element.kind in "iuM")
        except pyarrow.ArrowInvalid as error:
            raise self.file.error(f"column {name!r} is not of dtype {dtype}: {error}") from None

    # Rows as Arrow's columns

    def _plain_lines(self, lines: Lines) -> Lines:
        # In UTF-8, and without comments.
        data = self.dialect.plain(lines.data)
        if self.encoding != "utf-8" and isinstance(lines.file, File):
            try:
                data = data.decode(self.encoding).encode()
            except UnicodeDecodeError as error:
                chunk = replace(lines, data=data).chunk()
                reason = f"byte {data[error.start]:#x} is not {self.encoding}: {error.reason}"
                raise chunk.error_at(MARGIN + error.start, reason) from None
            if self.encoding == "iso8859-1" and (odd := re.search(rb"\xc2[\x80-\x9f]", data)):
                reason = f'byte {odd[0][1]:#x} is no letter of latin-1; encoding="cp1252" has letters there'
                raise replace(lines, data=data).chunk().error_at(MARGIN + odd.start(), reason)
        data = data[:-1] if data.endswith(b"\r") else data  # of the last line of the file
        return Lines(lines.file, data, lines.origin, lines.lines_before)

    def _columns(self, lines: Lines) -> list[pyarrow.Array]:
        return self._plain_columns(self._plain_lines(lines))

    def _plain_columns(self, lines: Lines) -> list[pyarrow.Array]:
        # Of lines in UTF-8 without comments.
        from pyarrow import ArrowInvalid

        data = lines.data
        if not data.strip(b"\r\n"):
            return []
        integers = [one for one, word in zip(self.picked, self.types, strict=True) if word in _INTEGERS]
        is_odd = bool(integers) and _has_odd_integers(data, ord(self.dialect.delimiter), integers)
        is_plain = _is_plain(data)
        if not is_plain:
            self._check_rows(lines)
        if not is_odd and not self.marks.thousands:
            try:
                made = self._made_of_text(self.read(data, self._read_types()))
            except ArrowInvalid:
                pass
            else:
                if made is not None and not self._may_be_inexact(made):
                    return self._without_given(made)
        if is_plain:
            self._check_rows(lines)
        return self._looked_into(lines)

    def _read_types(self) -> list[pyarrow.DataType]:
        import pyarrow

        return [pyarrow.string() if one in READ_AS_TEXT else arrow_type(one) for one in self.types]

    def _made_of_text(self, columns: list[pyarrow.Array]) -> list[pyarrow.Array] | None:
        # The columns with values for texts that were read as such; None if one is no value.
        wanted = dict(self.wanted)
        for place, (name, word) in enumerate(zip(self.read_names, self.types, strict=True)):
            if word in READ_AS_TEXT:
                made, row = self.converted(name, columns[place], word, name not in wanted, False)
                if row is not None:
                    return None
                columns[place] = made
        return columns

    def _may_be_inexact(self, columns: Sequence[pyarrow.Array]) -> bool:
        # Whether a column of floats has large ones, which may have been written as whole numbers, or NaN
        # where that is text unless the user names it.
        wanted = dict(self.wanted)
        for column, name, word in zip(columns, self.read_names, self.types, strict=True):
            if word == "float64" and name not in wanted and len(column) > column.null_count:
                values = column.to_numpy(zero_copy_only=False)
                largest = max(values.max(), -values.min())
                if largest != largest:  # there are missing ones
                    largest = np.nanmax(np.abs(values), initial=0)
                    if "nan" not in self.missing.of(name).words and column.drop_null().is_nan().true_count:
                        return True
                if largest >= EXACT:
                    return True
        return False

    def _without_given(self, columns: Sequence[pyarrow.Array]) -> list[pyarrow.Array]:
        # Numbers that stand for no value however they are written, as -999.0 does where -999 was named; and
        # texts that do so in quotes too.
        made = []
        for column, name, word in zip(columns, self.read_names, self.types, strict=True):
            missing = self.missing.of(name)
            if word == "text" and missing.given:
                column = present(column.cast("string"), missing.given).dictionary_encode()
            made.append(without_numbers(column, missing.numbers))
        return made

    def read(self, data: bytes, types: Sequence[pyarrow.DataType]) -> list[pyarrow.Array]:
        """Return the columns of whole rows, each of a type.

        Raises
        ------
        pyarrow.ArrowInvalid
            For a row that Arrow does not read, and a value that is not of its type.
        """
        # One call of Arrow takes the same texts as missing in all columns; other columns need another call.
        found: dict[int, pyarrow.Array] = {}
        missing = [self.missing.of(name).words for name in self.read_names]
        for words in dict.fromkeys(missing):
            places = [place for place, one in enumerate(missing) if one == words]
            chosen = [types[place] for place in places]
            columns = self._read_some(data, [self.picked[place] for place in places], chosen, words)
            found.update(zip(places, columns, strict=True))
        return [found[place] for place in range(len(self.picked))]

    def _read_some(
        self, data: bytes, picked: Sequence[int], types: Sequence[pyarrow.DataType], missing: Sequence[str]
    ) -> list[pyarrow.Array]:
        from pyarrow import BufferReader
        from pyarrow import csv as arrow_csv

        # Names of columns may be alike, numbers are not.
        numbers = [str(place) for place in range(len(self.names))]
        chosen = [numbers[place] for place in picked]
        table = arrow_csv.read_csv(
            BufferReader(data),
            arrow_csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=numbers),
            arrow_csv.ParseOptions(delimiter=self.dialect.delimiter, newlines_in_values=b'"' in data),
            arrow_csv.ConvertOptions(
                column_types=dict(zip(chosen, types, strict=True)),
                include_columns=chosen,
                null_values=list(missing),
                true_values=list(TRUE),
                false_values=list(FALSE),
                strings_can_be_null=True,
                quoted_strings_can_be_null=not self.quoted_text,
                decimal_point=self.marks.decimal,
            ),
        )
        return [_one_array(table.column(place)) for place in range(len(chosen))]

    def _check_rows(self, lines: Lines) -> None:
        # Rows before one that is broken are looked into first, since theirs is the first error.
        chunk = lines.chunk()
        quotes = quotes_of(chunk, self.dialect.delimiter)
        broken = quotes.first_error(len(self.names), self.is_headless)
        if broken is not None:
            position, reason = broken
            stop = quotes.row_start(position)
            before = lines.data[: stop - MARGIN]
            if before.strip(b"\r\n"):
                self._plain_columns(Lines(lines.file, before, lines.origin, lines.lines_before))
            raise chunk.error_at(position, reason)
        self._check_quoted(quotes)

    @property
    def takes_delimiters(self) -> bool:
        """Whether a quoted field that has a delimiter is text; numbers have them where they are marks."""
        return self.dialect.delimiter not in (self.marks.decimal, self.marks.thousands)

    def _check_quoted(self, quotes: Quotes) -> None:
        # Refuse text in a column that holds something else as far as was known.
        import pyarrow

        if not self.quoted_text or not quotes.places.size:
            return
        chunk = quotes.chunk
        fields = quotes.fields(len(self.names), self.takes_delimiters)
        asked = {name for name, _ in self.wanted} | {*self.dates}
        typed = [
            place
            for place, name, word in zip(self.picked, self.read_names, self.types, strict=True)
            if word != "text" and name not in asked
        ]
        is_typed = np.zeros(len(self.names), np.bool_)
        is_typed[typed] = True
        wrong = np.flatnonzero(~fields.is_empty & is_typed[fields.columns])
        if not wrong.size:
            return
        place = int(wrong[0])
        start, name = int(fields.starts[place]), self.names[int(fields.columns[place])]
        word = self.types[self.read_names.index(name)]
        before = quotes.row_start(start)
        data = chunk.text.bytes_at(MARGIN, before)
        if data.strip(b"\r\n"):
            before_it = Lines(chunk.file, data, chunk.origin, chunk.lines_before)
            self._plain_columns(before_it)  # theirs comes first
        text = re.match(rb'"((?:[^"]|"")*)"', chunk.text.bytes_at(start, start + 200) + b'"')
        value = b"" if text is None else text[1]
        reason = _reason(self, name, word, value.decode(errors="replace"))
        if values_in(pyarrow.array([value.decode(errors="replace")]), word, self.marks) is not None:
            reason = (
                f"{shown(value)} in column {name!r} is quoted, and so text, not {_SAYS[word]}; "
                f'dtype={{{name!r}: "text"}} reads all as text, quoted_text=False takes no notice of quotes'
            )
        raise chunk.error_at(start, reason)

    def _looked_into(self, lines: Lines) -> list[pyarrow.Array]:
        # The columns as text, from which values are made one by one column: spaces around them are left out,
        # and the error names the line of the first that is none.
        import pyarrow

        chunk = lines.chunk()
        texts = self.read(
            lines.data, [arrow_type(one) if one == "text" else pyarrow.string() for one in self.types]
        )
        made, bad = [], []
        wanted = dict(self.wanted)
        for text, name, word in zip(texts, self.read_names, self.types, strict=True):
            column, row = self.converted(name, text, word, name not in wanted, name not in wanted)
            made.append(column)
            if row is not None:
                bad.append((row, name, word, text[row].as_py()))
        if bad:
            row, name, word, value = min(bad, key=lambda one: one[0])
            reason = _reason(self, name, word, value.strip(), texts[self.read_names.index(name)][row:])
            if self.is_headless and row == lines.lines_before == 0 and lines.origin == self.begin:
                reason += ", and header=0 says that the first line has names"
            quotes = quotes_of(chunk, self.dialect.delimiter)
            raise chunk.error_at(int(quotes.row_starts[~quotes.is_blank][row]), reason)
        return self._without_given(made)

    def converted(
        self, name: str, texts: pyarrow.Array, word: str, may_widen: bool, exact: bool
    ) -> tuple[pyarrow.Array | None, int | None]:
        """Return the values of texts, or else the number of the first that is not of the type.

        Parameters
        ----------
        name
            Of the column.
        texts
            As they are written.
        word
            The type, as Arrow writes it.
        may_widen
            Whether values may be of a wider type instead.
        exact
            Whether a float of a whole number has to be that number.
        """
        from pyarrow import compute

        if word == "text":
            return texts, None
        words = self.missing.of(name).words
        there, takes_nan = present(compute.utf8_trim_whitespace(texts), words), "nan" in words or not exact
        made = values_in(there, word, self.marks, exact, takes_nan)
        if made is None and exact and word in _INTEGERS and (code := _first_code(there)) is not None:
            first = self.converted(name, texts[:code], word, may_widen, exact)[1]
            return None, code if first is None else first
        while made is None and may_widen and word in WIDER:
            word = WIDER[word]
            made = values_in(there, word, self.marks, exact, takes_nan)
        if made is not None:
            return made, None
        low, high = 0, len(there)  # values before `low` are good, those before `high` are not
        while high - low > 1:
            middle = (low + high) // 2
            if values_in(there[low:middle], word, self.marks, exact, takes_nan) is None:
                high = middle
            else:
                low = middle
        return None, low


def _reason(table: CsvTable, name: str, word: str, value: str, texts: pyarrow.Array | None = None) -> str:
    # Why a text is no value of its column, of which it is the first of some texts.
    is_asked = name in dict(table.wanted)
    said = f"{shown(value.encode())} in column {name!r}"
    advice = f'dtype={{{name!r}: "text"}} reads it as text'
    if not is_asked and re.match(CODE, value) and word in _INTEGERS:
        return f'{said} begins with a zero, as codes do; {advice}, dtype={{{name!r}: "int64"}} as a number'
    if re.match(WHOLE, value) and word in _NUMBERS:
        what = (
            f"does not fit {word}" if is_asked else "is a whole number that no type of numbers holds exactly"
        )
        return f"{said} {what}; {advice}"
    while not is_asked and word in WIDER:
        word = WIDER[word]
    ways = [advice]
    if not is_asked and not re.match(NUMBER, value) and forms_of(value):
        if re.match("[0-9]{4}-", value):
            ways.insert(0, f"parse_dates=[{name!r}] reads a column of dates")
        else:
            ways[0] += f", of which t[{name!r}].{date_way([value], 'makes times')}"
    if word in _NUMBERS and re.match(DECIMAL_COMMA, value) and table.marks.are_usual:
        ways.insert(
            0,
            'decimal="," and thousands="." read such numbers'
            if "." in value
            else 'decimal="," reads such numbers',
        )
    elif word in _NUMBERS and re.match(POINTS, value) and table.marks == Marks(","):
        ways.insert(0, 'thousands="." reads such numbers')
    elif re.match(WORDS, value):
        codes = [value] if word == "bool" else words_among(texts, table.missing.of(name).words) or [value]
        it = "it" if len(codes) == 1 else "them"
        ways.insert(0, f"na_values={codes!r} takes {it} as missing")
    return f"{said} is not {_SAYS[word]}; {', '.join(ways)}"


def _first_code(texts: pyarrow.Array) -> int | None:
    # Where the first text is that begins with a zero as a code does.
    from pyarrow import compute

    found = compute.index(compute.match_substring_regex(texts, CODE), True).as_py()
    return None if found < 0 else found


def _of_one_type(arrays: Sequence[pyarrow.Array], word: str) -> list[pyarrow.Array]:
    # ArrowInvalid where no type holds the numbers of all.
    from pyarrow import timestamp
    from pyarrow.types import is_integer, is_null

    types = {one.type for one in arrays}
    zoned_types = [one for one in types if word in WITH_OFFSET and not is_null(one)]
    if zoned_types:
        zones = {one.tz for one in zoned_types}
        unit = "ns" if any(one.unit == "ns" for one in zoned_types) else "us"
        zoned = timestamp(unit, zones.pop() if len(zones) == 1 else "UTC")
        return [one.cast(zoned) for one in arrays]
    widest = next(one for one in (*TRIED[::-1], word) if arrow_type(one) in types)
    # Arrow refuses all integers from 2**53 on as floats, also those that are floats exactly.
    integers = [one.fill_null(0).to_numpy() for one in arrays if is_integer(one.type)]
    are_exact = widest == "float64" and all(fit_float64(one).all() for one in integers)
    return [one.cast(arrow_type(widest), safe=not are_exact) for one in arrays]


def _is_plain(data: bytes) -> bool:
    # Whether there are no quotes, no odd control characters and no carriage returns alone.
    if b'"' in data:
        return False
    buffer = np.frombuffer(data, np.uint8)
    is_return = buffer == _RETURN
    is_newline = buffer == _NEWLINE
    is_control = (buffer < 32) & ~is_newline & ~is_return & (buffer != _TAB)
    return not (is_control.any() or is_return[-1:].any() or (is_return[:-1] & ~is_newline[1:]).any())


def _has_odd_integers(data: bytes, delimiter: int, columns: Sequence[int]) -> bool:
    # Whether a field begins with a zero that has a sign, or with 0x, behind spaces and signs; or one of some
    # columns with a zero before another digit.
    buffer = np.frombuffer(b"\n\n" + data + b"\n", np.uint8)
    begins, ends = np.zeros((2, 256), np.bool_)
    begins[[delimiter, _NEWLINE, _SPACE, _TAB]] = True
    ends[[delimiter, _NEWLINE, _SPACE, _TAB, _RETURN, _ZERO]] = True
    zeros = np.flatnonzero(buffer[2:-1] == _ZERO) + 2
    before = buffer[zeros - 1]
    signs = zeros[(before == _MINUS) | (before == _PLUS)]
    signs = signs[begins[buffer[signs - 2]]]
    if ((buffer[signs - 1] == _MINUS) & ends[buffer[signs + 1]]).any():
        return True
    zeros = zeros[begins[before]]
    after = buffer[zeros + 1]
    if ((after | 32) == _X).any() or ((buffer[signs + 1] | 32) == _X).any():
        return True
    codes = zeros[after - np.uint8(_ZERO) < 10]
    if not codes.size or b'"' in data:
        return bool(codes.size)
    breaks, marks = np.flatnonzero(buffer == _NEWLINE), np.flatnonzero(buffer == delimiter)
    starts = breaks[np.searchsorted(breaks, codes) - 1]
    places = np.searchsorted(marks, codes) - np.searchsorted(marks, starts)
    return bool(np.isin(places, columns).any())


def _one_array(column: pyarrow.ChunkedArray) -> pyarrow.Array:
    import pyarrow

    if column.num_chunks == 1:
        return column.chunk(0)
    return pyarrow.concat_arrays(column.chunks) if column.num_chunks else pyarrow.array([], column.type)


@reader(
    "csv",
    *(f".{kind}{how}" for how in ("", ".gz", ".zst", ".bz2", ".xz", ".zip") for kind in ("csv", "tsv")),
    words={"sep": "delimiter", "usecols": "columns", "skiprows": "skip"},
    instead=PANDAS_OPTIONS,
)
def open_table(
    file: File,
    columns: Sequence[str | int] | None = None,
    delimiter: str | None = None,
    header: bool | int | str | None = "infer",
    names: Sequence[str] | None = None,
    na_values: NaValues = (),
    keep_default_na: bool = True,
    dtype: DTypes = None,
    parse_dates: Sequence[str | int] | None = None,
    skip: Skip = 0,
    nrows: int | None = None,
    encoding: str = "utf-8",
    decimal: str | None = None,
    thousands: str | None = None,
    comment: str | None = None,
    quoted_text: bool = True,
) -> Source:
    """Return the source of a CSV table.

    Quoted fields are text: "02134", "NA" and "true" in quotes stay as they are written, and may have line
    breaks inside. Other fields that are empty or say NA, NaN, null, None and the like are missing. The types
    of columns are inferred from the first 256 kB and from places all over the file: whole numbers, numbers,
    true and false, dates and times as ISO 8601 writes them, or text. A column of whole numbers in which other
    numbers follow becomes floats; a value of another type is an error. Whole numbers that no type of numbers
    holds exactly stay text, with a warning, and so do those of a column in which some begin with zeros, as
    codes do. UTF-16 with a mark at the beginning, and a line "sep=;" there, are taken as they say.

    Parameters
    ----------
    file
        The table.
    columns
        Names of the columns to read, or their numbers from 0 on, in the order wanted; None reads all.
    delimiter
        The character between fields, or ``"\\s+"`` for any number of spaces; None is the comma, semicolon,
        tab, "|" or space that splits the lines into equally many fields.
    header
        Whether a line names the columns: True, or the number of that line among those that are not blank,
        from 0 on; or False or None. "infer": the first, unless there are ``names``.
    names
        Names of the columns, all of them: of a file without a header, or with ``header=0`` instead of the
        header's. Without both they are "0", "1", ....
    na_values
        More texts, or numbers, that stand for a missing value, in quotes too: of all columns, or a mapping of
        names to those of a column.
    keep_default_na
        Whether empty fields, NA, NaN, null, None and the like are missing; False leaves ``na_values`` alone.
    dtype
        Of all columns, or a mapping of names to dtypes, instead of what the values say: numbers, "text", or
        "datetime64[us]" and the like.
    parse_dates
        Columns that have to be dates or times, in quotes too; others are where their values say so.
    skip
        Lines at the beginning that are not read; or the numbers, from 0 on, of lines before the first row,
        such as [1] for units under the header.
    nrows
        How many rows are read, from the first on; None reads all.
    encoding
        Of the text, such as "cp1252", "latin-1" or "utf-16"; in an encoding with letters of several bytes,
        such as UTF-16, one worker reads the file.
    decimal, thousands
        The characters in numbers: before the part below one, and between thousands. None is a point and
        nothing; or, in a file whose columns commas do not separate, a comma and a point if these make numbers
        of what else is text.
    comment
        The character that begins a comment, outside quotes, which goes to the end of the line.
    quoted_text
        False ignores quotes, for files in which numbers are quoted as well.

    Raises
    ------
    OptionError
        For a name that no column has, or more than one.
    FileFormatError
        When the header is not text, or all columns are read and two have one name; for a file of another
        format, and lines that are split otherwise than the first.

    Warns
    -----
    FileContentWarning
        For columns that stay text since no type of numbers holds their whole numbers exactly, and where the
        file may mean something else than what was read.
    """
    choose("keep_default_na", keep_default_na, (True, False))
    choose("quoted_text", quoted_text, (True, False))
    before_header = _rows_before_header(header, names is not None)
    dialect = checked_dialect(delimiter, comment)
    marks = checked_marks(decimal, thousands)
    encoding = checked_text(file, encoding_name(encoding))
    table = CsvTable(file, (), (), (), (), 0, dialect, MissingTexts(), 1, marks, encoding, quoted_text)
    first = first_line(table, skip, before_header)
    if delimiter is None:
        dialect = found_dialect(replace(table, dialect=dialect), first)
    found = header_names(file, first, dialect)
    if delimiter not in (None, ",") and len(found) == 1 and "," in found[0]:
        warn_of(
            file, f"read as one column: no {delimiter!r} is in {found[0]!r}, and commas may be what separates"
        )
    if before_header is None:
        found = tuple(map(str, range(len(found))))
    elif header == "infer" and '"' not in first.text and all(re.match(NUMBER, one) for one in found):
        warn_of(
            file,
            f"the first line, {found[0]!r}{'' if len(found) == 1 else ', ...'}, was read as names: "
            f"header=None reads it as a row{or_edges(found)}",
        )
    if names is not None:
        if isinstance(names, str) or (before_header is None and len(names) != len(found)):
            raise OptionError(f"{file.shown}: {way_of_count(names, len(found), dialect.delimiter)}")
        found = tuple(map(str, names))
    picked = picked_columns(file, found, columns, ways_of_names(found))
    read = [found[column] for column in picked]
    table = replace(
        table,
        names=found,
        picked=picked,
        wanted=wanted_dtypes(str(file.shown), dtype, read),
        begin=first.begin if before_header is None else first.end,
        dialect=dialect,
        missing=missing_texts(na_values, keep_default_na, found),
        is_headless=before_header is None,
        finds_marks=decimal is None and thousands is None and dialect.delimiter != "," and len(found) > 1,
        dates=_dates(file, parse_dates, found),
    )
    return table if nrows is None else replace(table, stop=_end_of_rows(table, nrows))


def _rows_before_header(header: object, has_names: bool) -> int | None:
    # None where there is no header.
    if header == "infer":
        return None if has_names else 0
    if header is None or header is False:
        return None
    if not isinstance(header, int) or header < 0:
        raise OptionError(
            f'header={header!r}: give "infer", True, False, None or the number of the line with the names; a '
            "second line of names is left out by skip=[1]"
        )
    return 0 if header is True else header


def _dates(file: File, parse_dates: object, names: Sequence[str]) -> tuple[str, ...]:
    if parse_dates is None or parse_dates is False:
        return ()
    if not isinstance(parse_dates, list | tuple):
        raise OptionError(
            f"parse_dates={parse_dates!r}: give a list of columns; those of ISO 8601 are read without"
        )
    return tuple(names[one] for one in picked_columns(file, names, parse_dates)) if parse_dates else ()


def _end_of_rows(table: CsvTable, count: int) -> int:
    # The byte at which as many rows end.
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise OptionError(f"nrows={count!r}: give a number of rows, 0 or more")
    start, dialect = table.begin, table.dialect
    if not count:
        return start
    for lines in read_rows(table.stream, Piece(0, start, WHOLE_TEXT), start, dialect, CHUNK_BYTES):
        newlines = np.flatnonzero(np.frombuffer(lines.data, np.uint8) == _NEWLINE)
        is_end = np.searchsorted(dialect.quotes(lines.data), newlines) % 2 == 0
        place = 0
        for end in (newlines[is_end] + 1).tolist():
            count -= bool(dialect.plain(lines.data[place:end]).strip(b"\r\n"))
            place = end
            if not count:
                return start + int(end)
        start += len(lines.data)
    return WHOLE_TEXT

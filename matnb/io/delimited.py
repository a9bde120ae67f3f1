"""CSV (RFC 4180) into typed columns: Arrow reads the lines, and what it refuses is looked into here."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from matnb.errors import FileFormatError, OptionError
from matnb.io.columns import (
    ColumnKind,
    DTypes,
    TablePart,
    TableSource,
    kind_of,
    picked_columns,
    values_of,
    wanted_dtypes,
)
from matnb.io.digits import MARGIN, shown
from matnb.io.files import File
from matnb.io.lines import Chunk, Lines, check_skip, head_lines, num_newlines, read_lines, text_pieces
from matnb.io.source import Piece, Source, choose, reader

if TYPE_CHECKING:
    import pyarrow

CHUNK_BYTES = 1 << 20  # no less than the longest line
_HEAD_BYTES, _WINDOW_BYTES, _NUM_WINDOWS = 1 << 18, 1 << 14, 16  # of the text that types are told from
_QUOTE, _RETURN, _NEWLINE, _TAB, _SPACE = 34, 13, 10, 9, 32
_MINUS, _PLUS, _ZERO, _X = 45, 43, 48, 120
# As pandas reads them; "nan" is one that parsing numbers knows too.
MISSING = (
    *("NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NULL", "null", "None"),
    *("NaN", "nan", "NAN", "-NaN", "-nan"),
)
_TRUE, _FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")
_SAYS = {
    "bool": "true or false",
    "int64": "a whole number",
    "float64": "a number",
    "date32": "a date",
    "timestamp[us]": "a time",
    "timestamp[ns]": "a time",
    "timestamp[us, UTC]": "a time with a zone",
}
# What values of a type are tried as, where they are not of it.
_WIDER = {"int64": "float64", "date32": "timestamp[us]", "timestamp[us]": "timestamp[ns]"}
_TRIED = ("int64", "float64", "bool", "date32", "timestamp[us]", "timestamp[ns]", "timestamp[us, UTC]")
_ODD_INTEGER = r"^(-0+|[+-]?0[xX].*)$"  # a zero with a sign is a float's; Arrow takes sixteens for integers
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_FEWEST_NUMBERS, _NUMBERS_AMONG = 20, 0.95  # of which it takes a column to be one of numbers but for mistakes


@dataclass(frozen=True)
class CsvTable(TableSource):
    """A CSV file.

    Attributes
    ----------
    types
        Of each column that is read what its values are written as.
    wanted
        The dtypes asked for, by name.
    begin
        Where its rows do.
    missing
        More texts that stand for no value.
    """

    file: File
    names: tuple[str, ...]
    picked: tuple[int, ...]
    types: tuple[str, ...]
    wanted: tuple[tuple[str, str], ...]
    begin: int
    delimiter: str
    missing: tuple[str, ...]
    row_bytes: int
    room_bytes: int | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return f"CsvTable({self.file!r})"

    def identity(self) -> tuple[str | int, ...]:
        """Return what tells the result from any other."""
        told = repr((self.names, self.types, self.wanted, self.missing))
        return ("csv", *self.file.identity, self.delimiter, self.begin, *self.picked, told)

    @property
    def kinds(self) -> tuple[ColumnKind, ...]:
        """What the columns that are read hold, unless later ones are floats, or times of the day."""
        kinds = [kind_of(_arrow_type(one)) for one in self.types]
        return tuple(one for one in kinds if one is not None)

    def estimated_entries(self) -> int:
        """Return about how many elements there are."""
        return self.file.size // self.row_bytes * len(self.picked)

    def pieces(self, count: int) -> tuple[Piece, ...]:
        """Return byte ranges."""
        return text_pieces(self.file, self.begin, count)

    def parsing_bytes(self, piece: Piece, num_pieces: int) -> tuple[int, int]:
        """Return what rows as long as the first ones would take, and Arrow's columns beside."""
        rows = self.file.stated_text() // self.row_bytes // max(1, num_pieces) + 1
        held = rows * sum(4 if one == "text" else 8 for one in self.types)
        return held, held + 4 * CHUNK_BYTES

    def within(self, room_bytes: int) -> CsvTable:
        """Return the table with a limit of what reading a piece of it may take."""
        return replace(self, room_bytes=room_bytes)

    def parse(self, piece: Piece) -> TablePart:
        """Read the lines of a piece; an error is kept, so that the first of the file is told."""
        chunks: list[list[pyarrow.Array]] = []
        held = 0
        try:
            for lines in read_lines(self.file, piece, self.begin, CHUNK_BYTES):
                columns = self._columns(lines)
                if columns:
                    chunks.append(columns)
                    held += sum(one.nbytes for one in columns)
                    self.file.check_room(2 * held, self.room_bytes)  # they are put together
            return self._joined(piece.number, chunks)
        except FileFormatError as error:
            return TablePart(piece.number, error=error)

    def parts(self, piece: Piece) -> Iterator[TablePart]:
        """Yield the columns of some rows of a piece at a time."""
        for lines in read_lines(self.file, piece, self.begin, CHUNK_BYTES):
            yield self._joined(piece.number, [columns] if (columns := self._columns(lines)) else [])

    def _joined(self, number: int, chunks: list[list[pyarrow.Array]]) -> TablePart:
        import pyarrow

        made, wanted = [], dict(self.wanted)
        for place, (name, word) in enumerate(zip(self.read_names, self.types, strict=True)):
            arrays = [columns[place] for columns in chunks]
            types = {one.type for one in arrays}
            if len(types) > 1:  # whole numbers, and then floats; days, and then times
                widest = next(one for one in (*_TRIED[::-1], word) if _arrow_type(one) in types)
                arrays = [one.cast(_arrow_type(widest)) for one in arrays]
            one = pyarrow.chunked_array(arrays, None if arrays else _arrow_type(word))
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
        arrow = _arrow_type(f"timestamp[{unit}]") if unit not in ("", "D") else None
        try:
            if unit == "D":
                return column.cast(pyarrow.date32())
            return column.cast(arrow or pyarrow.from_numpy_dtype(element), safe=element.kind in "iuM")
        except pyarrow.ArrowInvalid as error:
            raise self.file.error(f"column {name!r} is not of dtype {dtype}: {error}") from None

    # Lines as Arrow's columns

    def _columns(self, lines: Lines) -> list[pyarrow.Array]:
        from pyarrow import ArrowInvalid

        data = lines.data[:-1] if lines.data.endswith(b"\r") else lines.data  # of the last line of the file
        if not data.strip(b"\r\n"):
            return []
        is_odd = "int64" in self.types and _has_odd_integers(data, ord(self.delimiter))
        try:
            if not is_odd and _is_plain(data):
                return self._read(data, [_arrow_type(one) for one in self.types])
        except ArrowInvalid:
            pass
        return self._looked_into(Lines(lines.file, data, lines.origin, lines.lines_before))

    def _read(
        self, data: bytes, types: Sequence[pyarrow.DataType], as_written: bool = False
    ) -> list[pyarrow.Array]:
        from pyarrow import BufferReader
        from pyarrow import csv as arrow_csv

        # Names of columns may be alike, numbers are not.
        numbers = [str(place) for place in range(len(self.names))]
        chosen = [numbers[place] for place in self.picked]
        table = arrow_csv.read_csv(
            BufferReader(data),
            arrow_csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=numbers),
            arrow_csv.ParseOptions(delimiter=self.delimiter),
            arrow_csv.ConvertOptions(
                column_types=dict(zip(chosen, types, strict=True)),
                include_columns=chosen,
                null_values=[] if as_written else ["", *MISSING, *self.missing],
                true_values=list(_TRUE),
                false_values=list(_FALSE),
                strings_can_be_null=not as_written,
            ),
        )
        return [_one_array(table.column(place)) for place in range(len(chosen))]

    def _looked_into(self, lines: Lines) -> list[pyarrow.Array]:
        # The columns as text, from which values are made one by one column: spaces around them are left out,
        # and the first that is none is told with its line. Lines before one that is not a row come first.
        import pyarrow

        chunk = lines.chunk()
        broken = self._first_broken(lines, chunk)
        if broken is not None:
            position, reason = broken
            before = lines.data[
                : int(chunk.newlines[chunk.newlines < position].max(initial=MARGIN - 1)) + 1 - MARGIN
            ]
            if before.strip(b"\r\n"):
                self._looked_into(Lines(lines.file, before, lines.origin, lines.lines_before))
            raise chunk.error_at(position, reason)
        texts = self._read(lines.data, [pyarrow.string()] * len(self.picked), as_written=True)
        made, bad = [], []
        wanted = dict(self.wanted)
        for text, name, word in zip(texts, self.read_names, self.types, strict=True):
            column, row = self._converted(text, word, name not in wanted)
            made.append(column)
            if row is not None:
                bad.append((row, name, word, text[row].as_py()))
        if bad:
            row, name, word, value = min(bad, key=lambda one: one[0])
            word = word if name in wanted else _WIDER.get(word, word)
            advice = f'dtype={{{name!r}: "text"}} reads it as text'
            raise chunk.error_at(
                self._row_start(chunk, row),
                f"{shown(value.strip().encode())} in column {name!r} is not {_SAYS[word]}; {advice}",
            )
        return made

    def _converted(
        self, texts: pyarrow.Array, word: str, may_widen: bool
    ) -> tuple[pyarrow.Array | None, int | None]:
        # The values; or the number of the first that is none.
        from pyarrow import compute

        if word == "text":
            return _present(texts, self.missing).dictionary_encode(), None
        present = _present(compute.utf8_trim_whitespace(texts), self.missing)
        made = _values(present, word)
        while made is None and may_widen and word in _WIDER:
            word = _WIDER[word]
            made = _values(present, word)
        if made is not None:
            return made, None
        low, high = 0, len(present)  # values before `low` are good, those before `high` are not
        while high - low > 1:
            middle = (low + high) // 2
            if _values(present[low:middle], word) is None:
                high = middle
            else:
                low = middle
        return None, low

    def _row_start(self, chunk: Chunk, row: int) -> int:
        # Where the line of a row starts; blank ones are not rows.
        starts = np.concatenate([[MARGIN], chunk.newlines[:-1] + 1])
        return int(starts[~_blank(chunk, starts)][row])

    def _first_broken(self, lines: Lines, chunk: Chunk) -> tuple[int, str] | None:
        # The first place where the lines are no rows of fields of UTF-8, and why.
        found = []
        for check in (lines.check_controls, _check_returns, _check_text):
            try:
                check(chunk)
            except FileFormatError as error:
                found.append((_line_start(chunk, error), error.reason))
        inside = np.zeros(chunk.text.buffer.size, np.bool_)
        if (chunk.text.buffer == _QUOTE).any():
            try:
                inside = _quoted(chunk, ord(self.delimiter))
            except FileFormatError as error:
                found.append((_line_start(chunk, error), error.reason))
        if not found:
            is_end = (chunk.text.buffer == ord(self.delimiter)) & ~inside
            is_end[:MARGIN] = False
            starts = np.concatenate([[MARGIN], chunk.newlines[:-1] + 1])
            counts = np.diff(np.searchsorted(np.flatnonzero(is_end), chunk.newlines), prepend=0) + 1
            wrong = np.flatnonzero((counts != len(self.names)) & ~_blank(chunk, starts))
            if wrong.size:
                line = int(wrong[0])
                reason = f"{counts[line]} fields where the header has {len(self.names)}"
                found.append((int(starts[line]), reason))
        return min(found) if found else None


def _is_plain(data: bytes) -> bool:
    # Whether there are no quotes, no odd control characters and no carriage returns alone.
    if b'"' in data:
        return False
    buffer = np.frombuffer(data, np.uint8)
    is_return = buffer == _RETURN
    is_newline = buffer == _NEWLINE
    is_control = (buffer < 32) & ~is_newline & ~is_return & (buffer != _TAB)
    return not (is_control.any() or is_return[-1:].any() or (is_return[:-1] & ~is_newline[1:]).any())


def _has_odd_integers(data: bytes, delimiter: int) -> bool:
    # Whether a field begins with a zero that has a sign, or with 0x, behind spaces and signs.
    buffer = np.frombuffer(b"\n" + data + b"\n", np.uint8)
    minus = np.flatnonzero((buffer[1:-2] == _MINUS) & (buffer[2:-1] == _ZERO)) + 1
    minus = minus[np.isin(buffer[minus - 1], (delimiter, _NEWLINE, _SPACE, _TAB))]
    if np.isin(buffer[minus + 2], (delimiter, _NEWLINE, _RETURN, _SPACE, _TAB, _ZERO)).any():
        return True
    base = np.flatnonzero((buffer[1:-2] == _ZERO) & ((buffer[2:-1] | 32) == _X)) + 1
    return bool(np.isin(buffer[base - 1], (delimiter, _NEWLINE, _SPACE, _TAB, _MINUS, _PLUS)).any())


def _arrow_type(word: str) -> pyarrow.DataType:
    import pyarrow

    if word == "text":
        return pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    unit, _, zone = word.removeprefix("timestamp[").rstrip("]").partition(", ")
    return pyarrow.timestamp(unit, zone or None) if word.startswith("timestamp") else _plain_type(word)


def _plain_type(word: str) -> pyarrow.DataType:
    import pyarrow

    return pyarrow.date32() if word == "date32" else pyarrow.from_numpy_dtype(np.dtype(word))


def _one_array(column: pyarrow.ChunkedArray) -> pyarrow.Array:
    import pyarrow

    if column.num_chunks == 1:
        return column.chunk(0)
    return pyarrow.concat_arrays(column.chunks) if column.num_chunks else pyarrow.array([], column.type)


def _present(texts: pyarrow.Array, missing: Sequence[str]) -> pyarrow.Array:
    # Nulls where a text stands for no value.
    from pyarrow import compute

    return compute.if_else(compute.is_in(texts, _texts(["", *MISSING, *missing])), None, texts)


def _values(texts: pyarrow.Array, word: str) -> pyarrow.Array | None:
    # Texts without spaces as values of a type; None where one is not of it.
    from pyarrow import ArrowInvalid, compute

    if word == "bool":
        is_true = compute.is_in(texts, _texts(_TRUE))
        is_one = compute.or_(is_true, compute.is_in(texts, _texts(_FALSE)))
        if not compute.all(compute.or_(is_one, texts.is_null()), min_count=0).as_py():
            return None
        return compute.if_else(texts.is_null(), None, is_true)
    if word in ("int64", "float64"):
        if word == "int64":
            odd = compute.match_substring_regex(texts, _ODD_INTEGER)
            if compute.any(odd, min_count=0).as_py():
                return None
        texts = compute.replace_substring_regex(texts, r"^\+([0-9.iI])", r"\1")
    try:
        return texts.cast(_arrow_type(word))
    except ArrowInvalid:
        return None


def _texts(texts: Sequence[str]) -> pyarrow.Array:
    import pyarrow

    return pyarrow.array(texts)


def _line_start(chunk: Chunk, error: FileFormatError) -> int:
    # Where the line of an error starts in the chunk.
    assert error.line is not None
    number = error.line - chunk.line_at(MARGIN)
    return MARGIN if number <= 0 else int(chunk.newlines[number - 1]) + 1


def _blank(chunk: Chunk, starts: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    buffer = chunk.text.buffer
    is_return = (buffer[starts] == _RETURN) & (chunk.newlines - starts == 1)
    found: npt.NDArray[np.bool_] = is_return | (buffer[starts] == _NEWLINE)
    return found


def _check_returns(chunk: Chunk) -> None:
    buffer = chunk.text.buffer
    returns = np.flatnonzero(buffer == _RETURN)
    alone = returns[buffer[returns + 1] != _NEWLINE]
    if alone.size:
        text = "a carriage return that no line feed follows: save it with line feeds"
        raise chunk.error_at(int(alone[0]), text)


def _check_text(chunk: Chunk) -> None:
    try:
        chunk.text.buffer.tobytes().decode()
    except UnicodeDecodeError as error:
        advice = "save it as UTF-8"
        raise chunk.error_at(error.start, f"is not UTF-8 text: {error.reason}; {advice}") from None


def _quoted(chunk: Chunk, delimiter: int) -> npt.NDArray[np.bool_]:
    # Which bytes are inside quotes. A quote opens at the start of a field and closes at its end; "" is one
    # inside.
    buffer = chunk.text.buffer
    quotes = np.flatnonzero(buffer == _QUOTE)
    inside = (np.cumsum(buffer == _QUOTE, dtype=np.uint8) & 1).astype(np.bool_)
    broken = chunk.newlines[inside[chunk.newlines]]
    opening, closing = quotes[0::2], quotes[1::2]
    before, after = buffer[opening - 1], buffer[closing + 1]
    starts_field = (opening == MARGIN) | (before == delimiter) | (before == _NEWLINE) | (before == _QUOTE)
    ends_field = (after == delimiter) | (after == _NEWLINE) | (after == _RETURN) | (after == _QUOTE)
    stray = np.concatenate([opening[~starts_field], closing[~ends_field]])
    if broken.size and not (stray.size and stray.min() < broken[0]):
        text = "a quoted field that goes on in the next line; write one row a line"
        raise chunk.error_at(int(broken[0]), text)
    if stray.size:
        raise chunk.error_at(int(stray.min()), "a quote in the middle of a field; quote the whole field")
    return inside


# What the values of a column are written as, from some of the text.


def _sample(file: File, begin: int, head_bytes: int = _HEAD_BYTES) -> bytes:
    # Lines of the beginning, and where any byte can be gone to of places all over the file.
    with file.text() as stream:
        stream.seek(begin)
        head = _read_up_to(stream, head_bytes)
        if len(head) < head_bytes:
            return head
        found = [_whole_lines(head)]
        if not file.compressed:
            for number in range(1, _NUM_WINDOWS + 1):
                place = begin + (file.size - begin) * number // (_NUM_WINDOWS + 1)
                if place > begin + head_bytes:
                    stream.seek(place)
                    found.append(_whole_lines(_read_up_to(stream, _WINDOW_BYTES).partition(b"\n")[2]))
    return b"".join(found)


def _whole_lines(data: bytes) -> bytes:
    return data[: data.rfind(b"\n") + 1]


def _read_up_to(stream: object, count: int) -> bytes:
    found = b""
    while len(found) < count and (more := stream.read(count - len(found))):  # type: ignore[attr-defined]
        found += more
    return found


def types_of_all(tables: Sequence[CsvTable]) -> tuple[str, ...]:
    """Return what the columns of several files are written as, told from some of the text of each."""
    head_bytes = max(_WINDOW_BYTES, _HEAD_BYTES // len(tables))
    return _told_types(tables, [_sample(table.file, table.begin, head_bytes) for table in tables])


def _told_types(tables: Sequence[CsvTable], samples: Sequence[bytes]) -> tuple[str, ...]:
    # The narrowest type of all values of each column; text, where Arrow does not read the lines.
    import pyarrow

    texts = [_sampled_texts(table, data) for table, data in zip(tables, samples, strict=True)]
    wanted, types = dict(tables[0].wanted), []
    for place, name in enumerate(tables[0].read_names):
        asked = wanted.get(name)
        written = pyarrow.concat_arrays([one[place] for one in texts])
        types.append(_asked_type(asked) if asked else _told_type(tables[0], written))
    return tuple(types)


def _sampled_texts(table: CsvTable, data: bytes) -> list[pyarrow.Array]:
    import pyarrow

    none = [pyarrow.array([], pyarrow.string())] * len(table.picked)
    if not data.strip(b"\r\n"):
        return none
    try:
        return table._read(data, [pyarrow.string()] * len(table.picked), as_written=True)
    except pyarrow.ArrowInvalid:
        # Errors in lines are raised when these are read; types follow from the lines that are rows.
        rows = b"".join(line for line in data.splitlines(True) if _is_row(table, line))
        if 0 < len(rows) < len(data):
            return _sampled_texts(table, rows)
        return [pyarrow.array(["?"])] * len(table.picked)


def _is_row(table: CsvTable, line: bytes) -> bool:
    has_fields = line.count(table.delimiter.encode()) == len(table.names) - 1
    return has_fields and b'"' not in line and line.decode(errors="replace").encode() == line


def _told_type(table: CsvTable, texts: pyarrow.Array) -> str:
    from pyarrow import compute

    distinct = texts.unique()
    for word in _TRIED:
        few = distinct[:10]  # which most often tell already
        if all(table._converted(one, word, False)[1] is None for one in (few, distinct)):
            present = _present(distinct, table.missing)
            is_none = present.null_count == len(present)
            return "float64" if is_none else word
    # Of a column of numbers, one that is none is a mistake, and told.
    written = _present(texts, table.missing).drop_null()
    trimmed = compute.utf8_trim_whitespace(written)
    num_numbers = compute.sum(compute.match_substring_regex(trimmed, _NUMBER)).as_py() or 0
    are_many = len(trimmed) >= _FEWEST_NUMBERS and num_numbers >= _NUMBERS_AMONG * len(trimmed)
    return "float64" if are_many else "text"


def _asked_type(dtype: str) -> str:
    if dtype == "text":
        return dtype
    element = np.dtype(dtype)
    if element.kind == "M":
        unit = np.datetime_data(element)[0]
        return {"D": "date32", "ns": "timestamp[ns]"}.get(unit, "timestamp[us]")
    return {"b": "bool", "f": "float64"}.get(element.kind, "int64")


@reader("csv", ".csv", ".csv.gz", ".csv.zst")
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

    Empty fields and those that say NA, NaN, null, None and the like are missing. What a column holds is told
    from the first 256 kB and from places all over the file: whole numbers, numbers, true and false, dates and
    times as ISO 8601 writes them, or text. Where whole numbers are followed by others, all of the column are
    floats; a value of another kind is an error.

    Parameters
    ----------
    file
        The table; fields may be quoted, but not over a line break.
    columns
        Names of the columns to read, in the order wanted; None reads all.
    delimiter
        The character between fields.
    header
        Whether the first line names the columns.
    names
        Names of the columns, all of them, instead of the header's; without both they are "0", "1", ....
    na_values
        More texts, or numbers, that stand for a missing value.
    dtype
        Of all columns, or a mapping of names to dtypes, instead of what the values say: numbers, "text", or
        "datetime64[us]" and the like.
    skip
        Lines before the header, or where there is none before the first row, that are not read.

    Raises
    ------
    OptionError
        For a name that no column has, or more than one.
    FileFormatError
        When the header is not text, or all columns are read and two have one name.
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
    table = CsvTable(file, found, picked, (), wanted, end if header else begin, delimiter, missing, 1)
    data = _sample(file, table.begin)
    lines = max(1, num_newlines(data))
    return replace(table, types=_told_types([table], [data]), row_bytes=max(1, len(data) // lines))


def _as_text(value: object) -> str:
    if not isinstance(value, str | int | float):
        raise OptionError(f"na_values: {value!r} is neither a string nor a number")
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

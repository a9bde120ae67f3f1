"""The head of a CSV file: what else it may be, its encoding, its delimiter, and where its rows begin."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from matnb.errors import FileContentWarning, OptionError, warn
from matnb.io.encodings import RecodedFile
from matnb.io.files import File, read_up_to
from matnb.io.lines import LONGEST_LINE, check_skip, head_lines
from matnb.io.quotes import Dialect, ragged_way, unquoted

if TYPE_CHECKING:
    from matnb.io.delimited import CsvTable

WINDOW_BYTES = 1 << 14  # of a sample
_SNIFFED_ROWS = 50  # from which the delimiter is inferred
_DELIMITERS = (",", ";", "\t", "|")
_RARE_DELIMITERS = ";\t|:^~!# "  # of a column that seems to be several
_WHITESPACE = r"\s+"
# What to do where an option of pandas, or its name in polars and NumPy, is none here.
_WAYS = {
    "index_col": "tables have no index, and the column is read as any other",
    "chunksize iterator": "mn.sources.files(path, batch_size=1000) reads some rows at a time",
    "skipfooter skip_footer": "nrows= stops before the last lines",
    "date_format date_parser dayfirst": 't["day"].to_datetime("%d.%m.%Y") makes dates of text',
    "true_values false_values": 't["paid"] == "yes" makes true and false of text',
    "na_filter": "keep_default_na=False takes no text for a missing value",
    "compression": "the end of the file's name says it, such as .csv.gz, .csv.bz2 and .csv.zip",
    "engine low_memory memory_map float_precision dtype_backend cache_dates verbose skip_blank_lines": (
        "leave it out, Arrow reads the file in parallel without it"
    ),
    "quotechar quoting doublequote escapechar lineterminator skipinitialspace on_bad_lines "
    "converters encoding_errors": "mn.table(pandas.read_csv(path, ...)) reads it in this process",
    "separator delim": "write delimiter=",
    "n_rows max_rows": "write nrows=",
    "skip_rows skip_header": "write skip=",
    "has_header": "write header=",
    "null_values missing_values nullstr": "write na_values=",
    "schema schema_overrides dtypes": "write dtype=",
    "try_parse_dates": "write parse_dates=",
}
PANDAS_OPTIONS = {name: way for names, way in _WAYS.items() for name in names.split()}
# What files are that were taken for text, by how they begin.
_OTHER_FORMATS = (
    (
        rb"PK\x03\x04",
        "is a ZIP archive or a workbook of Excel: mn.table(pandas.read_excel(path)) reads a workbook, and an "
        "archive of one CSV file is named .csv.zip",
    ),
    (rb"\xd0\xcf\x11\xe0", "is a workbook of an older Excel: mn.table(pandas.read_excel(path)) reads it"),
    (rb"PAR1", 'is a Parquet file: kind="parquet" reads it'),
    (rb"ARROW1|FEA1", 'is an Arrow or Feather file: kind="arrow" reads it'),
    (rb"\x1f\x8b", "is compressed by gzip: name it .csv.gz"),
    (rb"BZh[1-9]1AY", "is compressed by bzip2: name it .csv.bz2"),
    (rb"\xfd7zXZ\x00", "is compressed by xz: name it .csv.xz"),
    (rb"\x28\xb5\x2f\xfd", "is compressed by Zstandard: name it .csv.zst"),
    (
        rb"SQLite format 3\x00",
        "is a database of SQLite: mn.table(pandas.read_sql(query, connection)) reads one",
    ),
    (rb"%PDF-", "is a PDF document: export its table as CSV first"),
    (
        rb"\s*(<!doctype|<html|<\?xml|<head|<body|<table|<!--)",
        "is HTML or XML: mn.table(pandas.read_html(path)[0]) or mn.table(pandas.read_xml(path)) reads it",
    ),
    (
        rb'\s*(\{\s*["}]|\[\s*[\[{"\]])',
        "is JSON: mn.table(pandas.read_json(path)) reads it, with lines=True where each line is an object",
    ),
)
Skip: TypeAlias = int | Sequence[int]


class HeadLine(NamedTuple):
    """The header or, where there is none, the first row.

    Attributes
    ----------
    begin
        The byte at which it begins.
    end
        The byte at which the rows after it begin.
    number
        Its line.
    text
        What is written there.
    delimiter
        What a line "sep=;" before it says, "" where there is none.
    """

    begin: int
    end: int
    number: int
    text: str
    delimiter: str = ""


def checked_text(file: File, encoding: str) -> str:
    """Return the encoding of a file of text, which a mark at its beginning may tell.

    Raises
    ------
    FileFormatError
        For a file of another format, and one that seems to be UTF-16 without a mark.
    """
    with file.text() as stream:
        start = read_up_to(stream, 512)
    for pattern, said in _OTHER_FORMATS:
        if re.match(pattern, start.removeprefix(codecs.BOM_UTF8), re.IGNORECASE):
            raise file.error(said)
    if encoding != "utf-8":
        return encoding
    if start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    for name, zeros, letters in (("le", start[1::2], start[::2]), ("be", start[::2], start[1::2])):
        if len(start) > 1 and not zeros.strip(b"\0") and b"\0" not in letters:
            raise file.error(f'is UTF-16 text without a mark: encoding="utf-16-{name}" reads it', 1)
    return encoding


def checked_dialect(delimiter: object, comment: object) -> Dialect:
    """Return how rows are written, with a comma where no delimiter was given.

    Raises
    ------
    OptionError
        For anything else than one character.
    """
    is_spaced = delimiter == _WHITESPACE
    for option, value in (("delimiter", " " if is_spaced else delimiter), ("comment", comment)):
        is_character = isinstance(value, str) and len(value) == 1 and value not in '"\r\n' and value.isascii()
        if value is not None and not is_character:
            raise OptionError(
                f"{option}={value!r}: give one character, not a quote or line break"
                + (rf', or "{_WHITESPACE}" for any number of spaces' if option == "delimiter" else "")
            )
    return Dialect(" " if is_spaced else str(delimiter or ","), str(comment or ""), is_spaced)


def first_line(table: CsvTable, skip: Skip, header: int | None) -> HeadLine:
    """Return the header, or else the first row; blank lines and comments before it are left out.

    Parameters
    ----------
    table
        The file, and how its rows are written but for the delimiter.
    skip
        How many lines are left out, or which, counted from 0.
    header
        How many rows before the header are left out; None where there is none.
    """
    skipped = _skipped(skip)
    begin = end = number = first = mark = 0
    kept, delimiter, left = b"", "", header or 0
    file = table.file
    lines = head_lines(table.stream)
    for line, number, end in lines:
        if number == 1 and line.startswith(codecs.BOM_UTF8) and table.encoding == "utf-8":
            line, mark = line.removeprefix(codecs.BOM_UTF8), len(codecs.BOM_UTF8)
        kept += line
        plain = table.dialect.plain(kept)
        stated = re.fullmatch(rb'"?sep=(.)"?', plain.strip()) if number == 1 else None  # Excel's
        is_blank = not plain.strip(b"\r\n" if plain == kept else None)
        if not first and (number - 1 in skipped or is_blank or stated):
            begin, kept, delimiter = end, b"", stated[1].decode("latin-1") if stated else delimiter
            continue
        first = first or number
        if plain.count(b'"') % 2 and len(kept) <= LONGEST_LINE:
            continue  # a quoted name goes on in the next line
        if not left:
            break
        left, begin, kept, first = left - 1, end, b"", 0
    if not first:
        raise file.error(f"has {number} lines, and all of them are blank, comments or skipped")
    plain = table.dialect.plain(kept)
    if plain.count(b'"') % 2:
        raise file.error("a quoted name that is not closed", first)
    try:
        text = plain.decode("utf-8" if isinstance(table.stream, RecodedFile) else table.encoding)
    except UnicodeDecodeError as error:
        what = "UTF-8" if table.encoding == "utf-8" else table.encoding
        advice = 'name the encoding, as in encoding="cp1252"'
        raise file.error(f"the header is not {what} text: {error.reason}; {advice}", first) from None
    after = {one for one in skipped if one >= number}
    if after and header is not None:  # such as a row of units
        for _, last, stop in lines:
            if last - 1 not in after:
                break
            after.discard(last - 1)
            end = stop
    if after:
        raise OptionError(
            f"skip={skip!r}: only lines before the first row are left out; load all, and choose rows by a "
            "condition on a column"
        )
    return HeadLine(begin or mark, end, first, text, delimiter)


def _skipped(skip: Skip) -> range | set[int]:
    if not isinstance(skip, Sequence) or isinstance(skip, str):
        check_skip(skip)
        return range(skip)
    for one in skip:
        check_skip(one)
    return set(skip)


def header_names(file: File, head: HeadLine, dialect: Dialect) -> tuple[str, ...]:
    """Return the names in a header, without spaces around those that are not quoted."""
    line, delimiter = dialect.plain(head.text.encode()).decode().rstrip("\r\n"), dialect.delimiter
    if "\r" in unquoted(line):
        raise file.error("lines that end in a carriage return alone: save it with line feeds", head.number)
    try:
        names = next(csv.reader(line.splitlines(True), delimiter=delimiter), [])
    except csv.Error as error:
        raise file.error(f"the header cannot be read: {error}", head.number) from None
    # Spaces around a name are part of it where it is quoted.
    starts = [field.startswith('"') for field in re.sub(r'"(?:[^"]|"")*"', '""', line).split(delimiter)]
    return tuple(name if is_quoted else name.strip() for name, is_quoted in zip(names, starts, strict=True))


class _DelimiterSplit(NamedTuple):
    """How a delimiter splits the head and the rows after it."""

    delimiter: str
    width: int  # fields of the head
    rows: list[tuple[int, int]]  # of some rows after it, the lines and the fields

    @property
    def share(self) -> float:
        """How many rows have as many fields as the head."""
        return sum(count == self.width for _, count in self.rows) / len(self.rows) if self.rows else 1.0


def found_dialect(table: CsvTable, head: HeadLine) -> Dialect:
    """Return how rows are written, with the delimiter that splits them into as many fields as the first line.

    Raises
    ------
    FileFormatError
        Where the lines are split, but not as the first one.

    Warns
    -----
    FileContentWarning
        Where two delimiters do that, or one that may separate columns was not taken.
    """
    if head.delimiter:
        return replace(table.dialect, delimiter=head.delimiter)
    with table.stream.text() as stream:
        stream.seek(head.end)
        data = read_up_to(stream, WINDOW_BYTES)
    rows = table.dialect.plain(data[: data.rfind(b"\n") + 1] if len(data) == WINDOW_BYTES else data)
    text = rows.decode(errors="replace")
    order = sorted(_DELIMITERS, key=lambda one: one != "\t") if ".tsv" in table.file.name else _DELIMITERS
    splits = [_DelimiterSplit(one, _fields_of(head.text, one), _lengths(text, one)) for one in order]
    likely = [one for one in splits if one.width > 1 and one.share >= 0.5]
    exact = [one for one in likely if one.share == 1]
    if likely:
        best = max(exact or likely, key=lambda one: one.width)
        for rival in exact:
            if rival is not best and rival.rows:
                warn_of(
                    table.file,
                    f"both {best.delimiter!r} and {rival.delimiter!r} split all lines into equally many "
                    f"fields; {best.delimiter!r} was taken: delimiter= says which it is",
                )
        return replace(table.dialect, delimiter=best.delimiter)
    if (spaces := _spaces(head.text, text)) is not None:
        return replace(table.dialect, delimiter=" ", is_spaced=spaces)
    _check_one_column(table.file, head, splits)
    if splits[0].width == 1:
        _warn_of_one_column(table.file, head.text.strip("\r\n"), text)
    return replace(table.dialect, delimiter=_DELIMITERS[0])


def _fields_of(text: str, delimiter: str) -> int:
    return next((count for _, count in _lengths(text, delimiter)), 1)


def _lengths(text: str, delimiter: str) -> list[tuple[int, int]]:
    # Of some rows that are not blank, the last lines and the numbers of fields.
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    found: list[tuple[int, int]] = []
    with suppress(csv.Error):  # reading the row reports what is wrong with it
        found.extend((rows.line_num, len(row)) for row in islice(rows, _SNIFFED_ROWS) if row)
    return found


def _spaces(head: str, text: str) -> bool | None:
    # Whether single spaces do not do, where spaces split all lines alike and not only words of one column.
    rows = [line for line in text.splitlines()[:_SNIFFED_ROWS] if line.strip()]
    words = [line.split() for line in (head, *rows)]
    if not rows or len(words[0]) < 2 or any(len(one) != len(words[0]) for one in words) or '"' in head + text:
        return None
    if not any(all(_is_number(one) for one in column) for column in zip(*words[1:], strict=True)):
        return None
    return any(" ".join(one) != line.rstrip("\r\n") for one, line in zip(words, (head, *rows), strict=True))


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


def _check_one_column(file: File, head: HeadLine, splits: Sequence[_DelimiterSplit]) -> None:
    # Refuse lines of which most are split alike, but the first one is not, and guesses at one column.
    lines = head.text.count("\n") or 1
    for one in splits:
        if not one.rows:
            continue
        ((most, times),) = Counter(count for _, count in one.rows).most_common(1)
        begins = next(place for place, (_, count) in enumerate(one.rows) if count == most)
        is_likely = most > 1 and times > 1 and 2 * times >= len(one.rows)
        if is_likely and (one.width == 1 or (begins and times > 2)):
            at = head.number + lines - 1 + one.rows[begins][0]
            comment = re.match(r"[#%;!/*]", head.text)
            raise file.error(
                f"{_fields(one.width)} where line {at} and others have {most}, separated by "
                f"{one.delimiter!r}: skip={at - 1} begins there"
                + (f", comment={comment[0]!r} leaves such lines out" if comment else "")
                + ", and delimiter= says what separates columns",
                head.number,
            )
    for one in splits[1:]:
        if splits[0].width == 1 < one.width and any(count > 1 for _, count in one.rows):
            raise file.error(
                f"{_fields(one.width)} if {one.delimiter!r} separates columns, and other lines have others: "
                f'give delimiter={one.delimiter!r}, or delimiter="," for one column',
                head.number,
            )


def _fields(count: int) -> str:
    return f"{count} field{'' if count == 1 else 's'}"


def _warn_of_one_column(file: File, head: str, text: str) -> None:
    rows = [unquoted(line) for line in text.splitlines()[:_SNIFFED_ROWS] if line.strip()]
    for one in _RARE_DELIMITERS:
        count = len(re.findall(" +" if one == " " else re.escape(one), unquoted(head).strip()))
        if (
            count
            and rows
            and all(len(re.findall(" +", row.strip())) if one == " " else row.count(one) for row in rows)
        ):
            advice = (
                r'delimiter=" ", or "\s+" for any number; mn.table(pandas.read_fwf(path)) has fixed widths'
                if one == " "
                else f"delimiter={one!r}"
            )
            warn_of(file, f"read as one column, {head!r}: if {one!r} separates columns, give {advice}")
            return


def warn_of(file: File, said: str) -> None:
    """Warn of what a file may mean beside what was read."""
    warn(f"{file.shown}: {said}", FileContentWarning)


def or_edges(names: Sequence[str]) -> str:
    """Return what may be meant by a first line of names that are numbers: a list of edges."""
    are_ids = len(names) in (2, 3) and all(re.fullmatch("[0-9]+", one) for one in names[:2])
    return ', and kind="edges" a list of edges, if it is one' * are_ids


def ways_of_names(names: Sequence[str]) -> str:
    """Return what to write where names in the header are alike or missing."""
    title = "skip=1 leaves out a title line, " if names.count("") >= len(names) - 1 else ""
    own = "names=[...] with header=0 gives each a name of its own, header=None reads the line as a row"
    return f"{title}{own}, "


def way_of_count(names: object, count: int, mark: str) -> str:
    """Return what to write where a file without a header has other columns than names were given."""
    return (
        f"names={names!r}: give a list of {count} names, as the first row has; of rows of several lengths, "
        f"{ragged_way(mark, True)}"
    )

"""Types of the columns of a CSV file, and its delimiter, inferred from a sample of its text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from matnb.errors import FileContentWarning, warn
from matnb.io.digits import MARGIN
from matnb.io.encodings import RecodedFile
from matnb.io.files import read_up_to
from matnb.io.lines import Lines, num_newlines
from matnb.io.quotes import Dialect, quotes_of, unquoted
from matnb.io.texts import NUMBER, TRIED, WITH_OFFSET, offsets_in, present, values_in, without_thousands

if TYPE_CHECKING:
    import pyarrow

    from matnb.io.delimited import CsvTable

_HEAD_BYTES, _WINDOW_BYTES, _NUM_WINDOWS = 1 << 18, 1 << 14, 16  # of the sample
_SNIFFED_ROWS = 50  # from which the delimiter is inferred
_DELIMITERS = (",", ";", "\t", "|")
_FEWEST_NUMBERS, _NUMBERS_AMONG = 20, 0.95  # of which it takes a column to be one of numbers but for mistakes


def _sample(table: CsvTable, head_bytes: int) -> bytes:
    # Rows of the beginning, and from places all over a file in which any byte can be sought.
    file, dialect = table.stream, table.dialect
    with file.text() as stream:
        stream.seek(table.begin)
        head = read_up_to(stream, head_bytes)
        if len(head) < head_bytes:
            return _plain_text(table, head)
        found = [head[: dialect.row_end(head, None) + 1]]
        if not file.compressed:
            for number in range(1, _NUM_WINDOWS + 1):
                place = table.begin + (file.size - table.begin) * number // (_NUM_WINDOWS + 1)
                if place > table.begin + head_bytes:
                    stream.seek(place)
                    found.append(_rows_in(read_up_to(stream, _WINDOW_BYTES), dialect))
    return _plain_text(table, b"".join(found))


def _rows_in(window: bytes, dialect: Dialect) -> bytes:
    # The whole rows of a window; none where it may begin inside quotes or outside.
    inside = False if b'"' not in window else dialect.begins_inside(window, False)
    if inside is None:
        return b""
    start = dialect.row_end(window, 0, inside) + 1
    return window[start : start + dialect.row_end(window[start:], None) + 1] if start else b""


def _plain_text(table: CsvTable, data: bytes) -> bytes:
    # In UTF-8, and without comments.
    data = table.dialect.without_comments(data)
    if table.encoding == "utf-8" or isinstance(table.stream, RecodedFile):
        return data
    return data.decode(table.encoding, "replace").encode()


def with_types(tables: Sequence[CsvTable]) -> list[CsvTable]:
    """Return files with the same columns with the types of these, inferred from a sample of each.

    Warns
    -----
    FileContentWarning
        For times with several offsets, which become UTC, and for whole numbers that no type holds exactly,
        which stay text.
    """
    head_bytes = max(_WINDOW_BYTES, _HEAD_BYTES // max(1, len(tables)))
    samples = [_sample(table, head_bytes) for table in tables]
    types = _inferred_types(tables, samples) if tables else ()
    return [
        replace(table, types=types, row_bytes=max(1, len(data) // max(1, num_newlines(data))))
        for table, data in zip(tables, samples, strict=True)
    ]


def _inferred_types(tables: Sequence[CsvTable], samples: Sequence[bytes]) -> tuple[str, ...]:
    # The narrowest type of all values of each column; text where Arrow does not read the lines.
    import pyarrow

    parts = list(zip(tables, samples, strict=True))
    texts = [_texts(table, data) for table, data in parts]
    quoted, quoted_empty = Counter[int](), set[int]()
    for table, data in parts:
        counts, empty = _quoted_columns(table, data)
        for place, column in enumerate(table.picked):  # which is another one in each file
            quoted[place] += counts[column]
            if column in empty:
                quoted_empty.add(place)
    wanted, types, inexact = dict(tables[0].wanted), [], []
    for place, name in enumerate(tables[0].read_names):
        written = pyarrow.concat_arrays([one[place] for one in texts])
        if name in wanted:
            types.append(type_of_dtype(wanted[name]))
        elif quoted[place] and not _are_mistakes(quoted[place], len(written) - written.null_count):
            types.append("text")
        else:
            word, is_none, is_inexact = _inferred_type(tables[0], name, written)
            types.append("text" if is_none and place in quoted_empty else word)
            if word in WITH_OFFSET and len(offsets := offsets_in(_trimmed(written))) > 1:
                warn(
                    f"{tables[0].file.shown}: times of column {name!r} have the offsets {', '.join(offsets)} "
                    f'and are read as UTC: t[{name!r}].to_zone("Europe/Berlin") has the clocks of a zone',
                    FileContentWarning,
                )
            if is_inexact:
                inexact.append(name)
    if inexact:
        warn(
            f"{tables[0].file.shown}: {', '.join(map(repr, inexact[:20]))} read as text, with whole numbers "
            f'that no type of numbers holds exactly; dtype={{{inexact[0]!r}: "float64"}} reads them rounded',
            FileContentWarning,
        )
    return tuple(types)


def _trimmed(texts: pyarrow.Array) -> pyarrow.Array:
    from pyarrow import compute

    return compute.utf8_trim_whitespace(texts)


def _texts(table: CsvTable, data: bytes) -> list[pyarrow.Array]:
    import pyarrow

    none = [pyarrow.array([], pyarrow.string())] * len(table.picked)
    if not data.strip(b"\r\n"):
        return none
    try:
        return table.read(data, [pyarrow.string()] * len(table.picked))
    except pyarrow.ArrowInvalid:
        # Errors in lines are raised when these are read; types follow from the lines that are rows.
        rows = b"".join(line for line in data.splitlines(True) if _is_row(table, line))
        if 0 < len(rows) < len(data):
            return _texts(table, rows)
        return [pyarrow.array(["?"])] * len(table.picked)


def _is_row(table: CsvTable, line: bytes) -> bool:
    has_fields = line.count(table.dialect.delimiter.encode()) == len(table.names) - 1
    return has_fields and b'"' not in line and line.decode(errors="replace").encode() == line


def _are_mistakes(count: int, total: int) -> bool:
    # Whether values that are not numbers are errors, rather than a sign that the column is text.
    return total >= _FEWEST_NUMBERS and total - count >= _NUMBERS_AMONG * total


def _quoted_columns(table: CsvTable, data: bytes) -> tuple[Counter[int], set[int]]:
    # How many quoted fields, which are text, each column has, and which columns have empty ones in quotes.
    if not table.quoted_text or b'"' not in data:
        return Counter(), set()
    quotes = quotes_of(Lines(table.file, data, 0, 0).chunk(), table.dialect.delimiter)
    broken = quotes.broken()
    if broken is not None:
        return _quoted_columns(table, data[: quotes.row_start(broken[0]) - MARGIN])
    fields = quotes.fields(len(table.names), table.takes_delimiters)
    counts = Counter(fields.columns[~fields.is_empty].tolist())
    return counts, set(fields.columns[fields.is_empty].tolist())


def _inferred_type(table: CsvTable, name: str, texts: pyarrow.Array) -> tuple[str, bool, bool]:
    # The type, whether there is no value, and whether numbers stay text since no type holds them.
    from pyarrow import compute

    words = table.missing.of(name).words
    written, takes_nan = present(_trimmed(texts), words).drop_null(), "nan" in words
    if not len(written):
        return "float64", True, False
    distinct = written.unique()
    for word in TRIED:
        some = (distinct[:10], distinct)  # the first of which most often suffice
        if all(values_in(one, word, table.marks, True, takes_nan) is not None for one in some):
            return word, False, False
    if values_in(written, "float64", table.marks, takes_nan=takes_nan) is not None:
        return "text", False, True
    # In a column of numbers, a value that is not one is an error.
    plain = without_thousands(written, table.marks)
    plain = compute.replace_substring(plain, table.marks.decimal, ".")
    num_numbers = compute.sum(compute.match_substring_regex(plain, NUMBER)).as_py() or 0
    are_many = _are_mistakes(len(written) - num_numbers, len(written))
    return "float64" if are_many else "text", False, False


def type_of_dtype(dtype: str) -> str:
    """Return the type that values are read as, where a user wants a dtype of them."""
    if dtype in ("text", "uint64"):
        return dtype
    element = np.dtype(dtype)
    if element.kind == "M":
        unit = np.datetime_data(element)[0]
        return {"D": "date32", "ns": "timestamp[ns]"}.get(unit, "timestamp[us]")
    return {"b": "bool", "f": "float64"}.get(element.kind, "int64")


def sniffed_delimiter(table: CsvTable, first: str) -> str:
    """Return what splits the rows into as many fields as the first line; a comma where nothing does."""
    with table.stream.text() as stream:
        stream.seek(table.begin)
        data = read_up_to(stream, _WINDOW_BYTES)
    rows = unquoted(_plain_text(table, data).decode(errors="replace")).splitlines()
    rows = [row for row in (rows if len(data) < _WINDOW_BYTES else rows[:-1]) if row.strip()][:_SNIFFED_ROWS]
    head = unquoted(first)
    for delimiter in _DELIMITERS:
        count = head.count(delimiter)
        if count and all(row.count(delimiter) == count for row in rows):
            return delimiter
    return _DELIMITERS[0]

"""Types of the columns of a CSV file, and how its numbers are written, inferred from a sample of its text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from matnb.errors import OptionError
from matnb.io.csv_head import WINDOW_BYTES, warn_of
from matnb.io.digits import MARGIN, shown
from matnb.io.encodings import RecodedFile
from matnb.io.files import read_up_to
from matnb.io.lines import Lines, num_newlines
from matnb.io.quotes import Dialect, quotes_of
from matnb.io.texts import (
    CODE,
    NUMBER,
    POINTS,
    SYMBOL,
    TRIED,
    WITH_OFFSET,
    Marks,
    date_way,
    offsets_in,
    present,
    values_in,
    without_thousands,
)

if TYPE_CHECKING:
    import pyarrow

    from matnb.io.delimited import CsvTable

_HEAD_BYTES, _NUM_WINDOWS = 1 << 18, 16  # of the sample
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
                    found.append(_rows_in(read_up_to(stream, WINDOW_BYTES), dialect))
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
    data = table.dialect.plain(data)
    if table.encoding == "utf-8" or isinstance(table.stream, RecodedFile):
        return data
    if not data.isascii() and "\ufffd" not in (
        text := data[: data.rfind(b"\n") + 1].decode(errors="replace")
    ):
        letter = next((one for one in text if not one.isascii()), None)
        if letter is not None:
            read = letter.encode().decode(table.encoding, "replace")
            warn_of(
                table.file,
                f"is UTF-8 text, of which encoding={table.encoding!r} makes {read!r} for {letter!r}",
            )
    return data.decode(table.encoding, "replace").encode()


def with_types(tables: Sequence[CsvTable]) -> list[CsvTable]:
    """Return files with the same columns with the types of these, inferred from a sample of each.

    Warns
    -----
    FileContentWarning
        For times with several offsets, which become UTC, and for whole numbers that no type holds exactly,
        which stay text.
    """
    head_bytes = max(WINDOW_BYTES, _HEAD_BYTES // max(1, len(tables)))
    samples = [_sample(table, head_bytes) for table in tables]
    if tables:
        tables, types = _inferred(tables, samples)
    return [
        replace(table, types=types, row_bytes=max(1, len(data) // max(1, num_newlines(data))))
        for table, data in zip(tables, samples, strict=True)
    ]


def _inferred(
    tables: Sequence[CsvTable], samples: Sequence[bytes]
) -> tuple[Sequence[CsvTable], tuple[str, ...]]:
    # The tables with the marks of their numbers, and the types of their columns.
    import pyarrow

    texts = [_texts(table, data) for table, data in zip(tables, samples, strict=True)]
    written = [pyarrow.concat_arrays(column) for column in zip(*texts, strict=True)]
    quoted = _quoted(tables, samples)
    marks = _found_marks(tables[0], written, quoted[0])
    tables = [replace(table, marks=marks) for table in tables]
    types = _inferred_types(tables[0], written, quoted)
    _warn_of_doubts(tables[0], written, types, quoted[0])
    _warn_of_points(tables[0], written, types)
    return tables, types


def _found_marks(table: CsvTable, columns: Sequence[pyarrow.Array], quoted: Counter[int]) -> Marks:
    # A comma before the part below one, and points between thousands, where these make numbers of columns
    # that are text otherwise, and no others of any.
    if not table.finds_marks:
        return table.marks
    there = [_values(table, place, column) for place, column in enumerate(columns) if not quoted[place]]
    found = Marks(",", "." if any(_any_match(one, r"\.[0-9]{3},") for one in there) else "")
    is_sure = False
    for one in there:
        is_usual = values_in(one, "float64") is not None
        is_other = values_in(one, "float64", found) is not None
        if (is_usual and not is_other) or (is_other and not is_usual and not _any_match(one, ",")):
            return table.marks
        # 1,234 alone may be thousands.
        is_sure |= is_other and _any_match(one, r",([0-9]{1,2}|[0-9]{4,})$|[0-9]{4},|^[+-]?0,|\..*,")
    return found if is_sure else table.marks


def _values(table: CsvTable, place: int, column: pyarrow.Array) -> pyarrow.Array:
    words = table.missing.of(table.read_names[place]).words
    return present(_trimmed(column), words).drop_null().unique()


def _any_match(texts: pyarrow.Array, pattern: str) -> bool:
    from pyarrow import compute

    return bool(compute.any(compute.match_substring_regex(texts, pattern), min_count=0).as_py())


def _quoted(tables: Sequence[CsvTable], samples: Sequence[bytes]) -> tuple[Counter[int], set[int]]:
    # How many fields of each column are quoted, and which columns have empty ones in quotes.
    quoted, quoted_empty = Counter[int](), set[int]()
    for table, data in zip(tables, samples, strict=True):
        counts, empty = _quoted_columns(table, data)
        for place, column in enumerate(table.picked):  # which is another one in each file
            quoted[place] += counts[column]
            if column in empty:
                quoted_empty.add(place)
    return quoted, quoted_empty


def _inferred_types(
    table: CsvTable, columns: Sequence[pyarrow.Array], quotes: tuple[Counter[int], set[int]]
) -> tuple[str, ...]:
    # The narrowest type of all values of each column; text where Arrow does not read the lines.
    quoted, quoted_empty = quotes
    wanted, types, inexact = dict(table.wanted), [], []
    for place, (name, written) in enumerate(zip(table.read_names, columns, strict=True)):
        if name in wanted:
            types.append(type_of_dtype(wanted[name]))
        elif name in table.dates:
            types.append(_type_of_dates(table, name, written))
        elif quoted[place] and not _are_mistakes(quoted[place], len(written) - written.null_count):
            types.append("text")
        else:
            word, is_none, is_inexact = _inferred_type(table, name, written, not quoted[place])
            types.append("text" if is_none and place in quoted_empty else word)
            if word in WITH_OFFSET and len(offsets := offsets_in(_trimmed(written))) > 1:
                warn_of(
                    table.file,
                    f"times of column {name!r} have the offsets {', '.join(offsets)} and are read as UTC: "
                    f't[{name!r}].to_zone("Europe/Berlin") has the clocks of a zone',
                )
            if is_inexact:
                inexact.append(name)
    if inexact:
        warn_of(
            table.file,
            f"{', '.join(map(repr, inexact[:20]))} read as text, with whole numbers that no type of numbers "
            f'holds exactly; dtype={{{inexact[0]!r}: "float64"}} reads them rounded',
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


def _warn_of_doubts(
    table: CsvTable, columns: Sequence[pyarrow.Array], types: Sequence[str], quoted: Counter[int]
) -> None:
    # Of columns that are text and may mean something else.
    from pyarrow import compute

    doubts: dict[str, list[str]] = {}
    is_split = table.dialect.delimiter != ","  # else numbers with commas need quotes
    wanted, firsts = dict(table.wanted), []
    are_all_quoted = all(
        len(one) and quoted[place] == compute.sum(compute.not_equal(one, ""), min_count=0).as_py()
        for place, one in enumerate(columns)
    )
    for place, (name, column, word) in enumerate(zip(table.read_names, columns, types, strict=True)):
        is_number = compute.match_substring_regex(_trimmed(column), NUMBER).fill_null(False)
        firsts.append(len(column) > 0 and is_number[0].as_py())
        if word != "text" or name in wanted:
            continue
        distinct = _values(table, place, column)
        odd = distinct.filter(compute.invert(compute.match_substring_regex(distinct, NUMBER)))
        said, in_quotes = "", ", with quoted_text=False, as some are in quotes" if quoted[place] else ""
        if not quoted[place] and len(odd) and is_number.true_count > 1 and not _any_other(odd, SYMBOL):
            symbols = ", ".join(sorted(map(repr, odd.to_pylist()[:5])))
            said = f"with numbers but for {symbols}: na_values=[{symbols}] takes these for missing values"
        elif 2 - table.is_headless <= is_number.true_count == len(column) - 1 and not firsts[-1]:
            way = (
                "header=0 if that is a row of names"
                if table.is_headless
                else "skip=[1] leaves out the line after a header, such as units"
            )
            said = f"with numbers but in the first row: {way}"
        elif len(distinct) and not len(odd) and are_all_quoted and not _any_match(distinct, CODE):
            said = "with numbers in quotes, as all fields are: quoted_text=False reads numbers"
        elif (
            in_quotes
            and not table.marks.are_usual
            and values_in(distinct, "float64", table.marks) is not None
        ):
            said = "with numbers in quotes: quoted_text=False reads numbers"
        elif len(odd) and not _any_other(odd, "^'.*'$"):
            way = 'mn.table(pandas.read_csv(path, quotechar="\'")) reads the file in this process'
            said = f"with single quotes, which quote nothing here: {way}"
        elif table.marks in (Marks(), Marks(",")) and _are_pointed(distinct):
            first = repr(distinct[0].as_py())
            said = f'with numbers such as {first}: thousands="." says what the point is{in_quotes}'
        elif table.marks.are_usual and any(
            values_in(distinct, "float64", one) is not None for one in _COMMA_MARKS
        ):
            said = (
                (
                    f"with numbers such as {distinct[0].as_py()!r}: "
                    f'decimal="," or thousands="," says what the comma is{in_quotes * is_split}'
                )
                if _any_match(distinct, ",")
                else ""
            )
        if said:
            doubts.setdefault(said, []).append(name)
    for said, names in doubts.items():
        if "first row" not in said or not any(firsts):
            warn_of(table.file, f"{', '.join(map(repr, names[:20]))} read as text, {said}")


def _warn_of_points(table: CsvTable, columns: Sequence[pyarrow.Array], types: Sequence[str]) -> None:
    # Points with three digits after them are between thousands, too, where semicolons separate columns.
    if not table.finds_marks or not table.marks.are_usual or table.dialect.delimiter != ";":
        return
    from pyarrow import compute

    found = {}
    for place, (name, column, word) in enumerate(zip(table.read_names, columns, types, strict=True)):
        if word in ("float32", "float64") and name not in dict(table.wanted):
            distinct = _values(table, place, column)
            pointed = distinct.filter(compute.match_substring(distinct, "."))
            if _any_other(pointed, POINTS):
                return
            if len(pointed):
                found[name] = pointed[0].as_py()
    if found:
        value = next(iter(found.values()))
        warn_of(
            table.file,
            f"{', '.join(map(repr, list(found)[:20]))} may have points between thousands: {value!r} was read "
            f'as {float(value)!r}, thousands="." reads {value.replace(".", "")}; decimal="." the former',
        )


_COMMA_MARKS = (Marks(",", "."), Marks(".", ","))


def _are_pointed(texts: pyarrow.Array) -> bool:
    # Whether points are between thousands, and nothing else is there but other whole numbers and commas.
    is_so = _any_match(texts, POINTS) and not _any_match(texts, ",.*,")
    return is_so and not _any_other(texts, rf"{POINTS}|^[+-]?[0-9]{{1,3}}(,[0-9]+)?$")


def _any_other(texts: pyarrow.Array, pattern: str) -> bool:
    from pyarrow import compute

    return not compute.all(compute.match_substring_regex(texts, pattern), min_count=0).as_py()


def _type_of_dates(table: CsvTable, name: str, texts: pyarrow.Array) -> str:
    word = _inferred_type(table, name, texts, False)[0]
    if word.startswith(("date", "timestamp")):
        return word
    there = present(_trimmed(texts), table.missing.of(name).words).drop_null()
    if not len(there):
        return "timestamp[us]"
    raise OptionError(
        f"{table.file.shown}: parse_dates: {shown(there[0].as_py().encode())} in column {name!r} is not a "
        f"date or time of ISO 8601: load it without, and t[{name!r}]."
        f"{date_way(there.unique().to_pylist()[:1000], 'says what it is')}"
    )


def _inferred_type(
    table: CsvTable, name: str, texts: pyarrow.Array, may_be_codes: bool
) -> tuple[str, bool, bool]:
    # The type, whether there is no value, and whether numbers stay text since no type holds them.
    from pyarrow import compute

    words = table.missing.of(name).words
    written, takes_nan = present(_trimmed(texts), words).drop_null(), "nan" in words
    if not len(written):
        return "float64", True, False
    distinct = written.unique()
    if may_be_codes and _any_match(distinct, CODE):
        return "text", False, False
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

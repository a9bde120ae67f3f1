"""Tables from files, and into Parquet, Arrow IPC (Feather) and CSV, some rows at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from matnb.errors import OptionError, UnsupportedError, suggestion
from matnb.expr.nodes import Expr
from matnb.io.durations import NO_TIME, duration_texts
from matnb.io.files import suffix_of
from matnb.io.source import SourceFacts
from matnb.io.write import written_whole
from matnb.lazy.array import DistArray
from matnb.lazy.registry import LOADED, writes
from matnb.location import Location
from matnb.tables.incoming import column_of
from matnb.tables.outgoing import SUFFIXES, with_strings
from matnb.tables.table import Table, table

if TYPE_CHECKING:
    import pyarrow

_ROWS = 1 << 20  # of a row group
_NONE = "NA"  # what stands for no value where nothing cannot


def _loaded_table(found: SourceFacts, nodes: Sequence[Expr]) -> Table:
    # The table of the columns that a reader found, and of their arrays.
    handles = iter([DistArray(node) for node in nodes])
    columns = {}
    for one in found.columns:
        codes = next(handles)
        mask = next(handles) if one.kind.has_mask and one.num_missing else None
        columns[one.name] = column_of(one, codes, mask)
    return Table(columns, frozenset(one.name for one in found.columns if one.num_missing == 0))._look()


LOADED["table"] = _loaded_table


@writes(Table, suffixes=SUFFIXES)
def save_table(data: object, path: str | os.PathLike[str], sep: str = ",", decimal: str = ".") -> None:
    """Compute a table and write it, a million rows at a time; the file appears whole or not at all.

    Parameters
    ----------
    sep, decimal
        Of CSV: what is between values, and before the fraction of floats.

    Raises
    ------
    OptionError
        For an ending that is not of a table, and for signs that numbers have otherwise.
    UnsupportedError
        For times of years without four digits, in CSV.
    """
    if isinstance(data, DistArray):
        is_graph = data.sparse and data.ndim == 2 and data.shape[0] == data.shape[1]
        raise OptionError(
            f"{Location(os.fsdecode(path))}: an array is written as .npz, .npy or .mtx"
            f"{', a graph with its ids as .edges' * is_graph}; "
            "P.to_pandas().to_csv(path) writes a pivot with its labels"
        )
    made, suffix = data if isinstance(data, Table) else table(data), suffix_of(path)
    if suffix not in SUFFIXES:
        raise OptionError(
            f"{Location(os.fsdecode(path))}: no writer of tables for suffix {suffix!r}; "
            f"{suggestion(suffix, SUFFIXES)}; t.to_matrix() is an array, t.to_pandas() has pandas' writers: "
            "to_csv(path, index=False) compresses .csv.gz, as .parquet is"
        )
    marks = sep, decimal
    if marks != (",", ".") and suffix != ".csv":
        raise OptionError(f"sep={sep!r}, decimal={decimal!r}: these are of .csv, not of {suffix}")
    if len(sep) != 1 or sep in '."\n\r-+0123456789' or decimal not in ".," or sep == decimal:
        raise OptionError(
            f'sep={sep!r}, decimal={decimal!r}: give sep=";" and decimal=",", or leave both out'
        )
    with written_whole(path) as stream:
        _write(made, suffix, stream, marks)


def _slices(made: Table) -> Iterator[pyarrow.Table]:
    for start in range(0, max(1, len(made)), _ROWS):
        yield with_strings(made._rows(slice(start, start + _ROWS)).to_arrow())


def _write(made: Table, suffix: str, stream: Any, marks: tuple[str, str]) -> None:
    import pyarrow.parquet

    writer: Any = None
    for part in _slices(made):
        if writer is None:
            makers = {".parquet": pyarrow.parquet.ParquetWriter, ".csv": partial(_CsvWriter, marks=marks)}
            writer = makers.get(suffix, pyarrow.ipc.new_file)(stream, part.schema)
        writer.write_table(part)
    writer.close()


class _CsvWriter:
    """Rows of an Arrow table as text that reads as the same values: only text is quoted, and all of it."""

    def __init__(self, stream: Any, schema: pyarrow.Schema, marks: tuple[str, str]) -> None:
        self._stream = stream
        self._sep, self._decimal = marks
        stream.write((self._sep.join(map(_quoted, schema.names)) + "\n").encode())

    def write_table(self, part: pyarrow.Table) -> None:
        """Write some rows."""
        from pyarrow import compute

        if not part.num_rows:
            return
        columns = [
            _texts(name, part.column(name).combine_chunks(), self._decimal) for name in part.column_names
        ]
        if len(columns) == 1:  # a line that is blank is no row
            columns[0] = compute.if_else(compute.equal(columns[0], ""), _large(_NONE), columns[0])
        rows = compute.binary_join_element_wise(*columns, _large(self._sep))
        rows = compute.binary_join_element_wise(rows, _large("\n"), _large(""))
        _, offsets, letters = rows.buffers()
        places = np.frombuffer(offsets, np.int64)[rows.offset : rows.offset + len(rows) + 1]
        self._stream.write(memoryview(letters)[places[0] : places[-1]])

    def close(self) -> None:
        """Do nothing: the stream is another's."""


def _large(text: str) -> pyarrow.Scalar:
    import pyarrow

    return pyarrow.scalar(text, pyarrow.large_string())


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _texts(name: str, column: pyarrow.Array | pyarrow.ChunkedArray, decimal: str) -> pyarrow.Array:
    # The values as CSV has them, nothing where they are missing.
    import pyarrow
    from pyarrow import compute, types

    kind = column.type
    if types.is_duration(kind):
        _check_lengths(name, column)
        written = duration_texts(column.cast(pyarrow.int64()).fill_null(NO_TIME).to_numpy(), kind.unit)
        return compute.fill_null(pyarrow.array(written, pyarrow.large_string()), "")
    texts = column.cast(pyarrow.large_string())
    if types.is_timestamp(kind) and kind.tz:
        texts = _with_whole_offsets(texts, column)
    if types.is_string(kind) or types.is_large_string(kind):
        inside = compute.replace_substring(texts, '"', '""')
        texts = compute.binary_join_element_wise(_large('"'), inside, _large('"'), _large(""))
    elif types.is_floating(kind):  # 3.0 and not 3, which is an integer
        is_whole = compute.match_substring_regex(texts, "^-?[0-9]+$")
        with_point = compute.binary_join_element_wise(texts, _large(".0"), _large(""))
        texts = compute.if_else(is_whole, with_point, texts)
        texts = compute.replace_substring(texts, ".", decimal)
    elif types.is_timestamp(kind) or types.is_date(kind):
        _check_years(name, texts)
    return compute.fill_null(texts, "")


def _check_lengths(name: str, durations: pyarrow.Array) -> None:
    # Texts are read as microseconds, or nanoseconds if they have some.
    import pyarrow

    try:
        if durations.type.unit != "ns":
            durations.cast(pyarrow.duration("us"))
    except pyarrow.ArrowInvalid:
        raise UnsupportedError(
            f"column {name!r} has durations beyond 64 bits of microseconds, as which CSV is read: save as "
            ".parquet or .feather"
        ) from None


def _with_whole_offsets(texts: pyarrow.Array, times: pyarrow.Array) -> pyarrow.Array:
    # Of UTC where an offset has seconds, which texts have not.
    import pyarrow
    from pyarrow import compute

    again = pyarrow.timestamp(times.type.unit, "UTC")
    is_same = compute.equal(texts.cast(again), times.cast(again))
    return compute.if_else(is_same, texts, times.cast(again).cast(pyarrow.large_string()))


def _check_years(name: str, texts: pyarrow.Array) -> None:
    # Of four digits, as all that reads times takes them.
    from pyarrow import compute

    is_usual = compute.match_substring_regex(texts, "^[0-9]{4}-")
    if not compute.all(is_usual, min_count=0).as_py():
        raise UnsupportedError(
            f"column {name!r} has times before the year 0 or after 9999, which CSV has no way to write: "
            "save as .parquet or .feather"
        )

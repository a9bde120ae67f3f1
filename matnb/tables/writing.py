"""Tables into files: Parquet, Arrow IPC (Feather) and CSV, some rows at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from matnb.errors import OptionError, suggestion
from matnb.io.files import suffix_of
from matnb.io.write import written_whole
from matnb.location import Location
from matnb.tables.table import Table, table

if TYPE_CHECKING:
    import pyarrow

_ROWS = 1 << 20  # of a row group
_SUFFIXES = (".parquet", ".arrow", ".feather", ".csv")


def is_for_tables(path: str | os.PathLike[str]) -> bool:
    """Tell whether the end of a path means a table."""
    return suffix_of(path) in _SUFFIXES


def save_table(data: object, path: str | os.PathLike[str]) -> None:
    """Compute a table and write it, a million rows at a time; the file appears whole or not at all.

    Raises
    ------
    OptionError
        For an ending that is not of a table.
    """
    made, suffix = data if isinstance(data, Table) else table(data), suffix_of(path)
    if suffix not in _SUFFIXES:
        raise OptionError(
            f"{Location(os.fsdecode(path))}: no writer of tables for suffix {suffix!r}; "
            f"{suggestion(suffix, _SUFFIXES)}; t.to_matrix() is an array"
        )
    with written_whole(path) as stream:
        _write(made, suffix, stream)


def _slices(made: Table) -> Iterator[pyarrow.Table]:
    for start in range(0, max(1, len(made)), _ROWS):
        yield made._rows(slice(start, start + _ROWS)).to_arrow()


def _write(made: Table, suffix: str, stream: Any) -> None:
    import pyarrow.csv
    import pyarrow.parquet

    writer: Any = None
    for part in _slices(made):
        if suffix == ".csv":
            part = part.cast(_plain_schema(part.schema))
        if writer is None:
            makers = {".parquet": pyarrow.parquet.ParquetWriter, ".csv": pyarrow.csv.CSVWriter}
            writer = makers.get(suffix, pyarrow.ipc.new_file)(stream, part.schema)
        writer.write_table(part)
    writer.close()


def _plain_schema(schema: pyarrow.Schema) -> pyarrow.Schema:
    # Of text without dictionaries, which CSV has none of.
    import pyarrow

    kinds = [getattr(one.type, "value_type", one.type) for one in schema]
    return pyarrow.schema(list(zip(schema.names, kinds, strict=True)))

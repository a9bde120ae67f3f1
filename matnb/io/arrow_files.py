"""Parquet and Arrow IPC (Feather) files into typed columns, by row groups and record batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from matnb.errors import FileContentWarning, FileFormatError, warn
from matnb.io.columns import (
    ColumnKind,
    DTypes,
    TablePart,
    TableSource,
    is_rounded,
    kind_of,
    picked_columns,
    values_of,
    wanted_dtypes,
)
from matnb.io.files import File
from matnb.io.source import Piece, Source, reader, split_range

if TYPE_CHECKING:
    import pyarrow
    from pyarrow.ipc import RecordBatchFileReader
    from pyarrow.parquet import ParquetFile

_BATCH_ROWS = 1 << 16


@dataclass(frozen=True)
class ArrowTable(TableSource):
    """A Parquet or Arrow IPC file.

    Attributes
    ----------
    column_kinds
        What the columns that are read hold.
    heights, group_bytes
        The rows of its row groups or record batches, and their sizes inflated.
    wanted
        The dtypes asked for, by name.
    has_decimals
        Whether there are decimal numbers, whose type on the workers depends on their values.
    """

    file: File
    names: tuple[str, ...]
    picked: tuple[int, ...]
    column_kinds: tuple[ColumnKind, ...]
    heights: tuple[int, ...]
    group_bytes: tuple[int, ...]
    wanted: tuple[tuple[str, str], ...]
    is_parquet: bool
    has_decimals: bool = field(default=False, kw_only=True)

    def __repr__(self) -> str:
        return f"{'Parquet' if self.is_parquet else 'Arrow'}Table({self.file!r})"

    @property
    def kinds(self) -> tuple[ColumnKind, ...]:
        """What the columns that are read hold."""
        return self.column_kinds

    @property
    def may_widen(self) -> bool:
        """Whether row groups may hold integers of other types, as those of decimal numbers may."""
        return self.has_decimals

    def identity(self) -> tuple[str | int, ...]:
        """Return what tells the result from any other."""
        return ("arrow", *self.file.identity, *self.picked, repr(self.wanted))

    def estimated_entries(self) -> int:
        """Return how many elements there are."""
        return sum(self.heights) * len(self.picked)

    def pieces(self, count: int) -> tuple[Piece, ...]:
        """Return ranges of row groups."""
        return split_range(0, len(self.heights), count, 1)

    def parsing_bytes(self, piece: Piece, num_pieces: int) -> tuple[int, int]:
        """Return what the values of a piece take, and the group decoded or the column joined beside them."""
        rows = sum(self.heights[piece.start : piece.stop])
        sizes = [one.stored.itemsize for one in self.column_kinds]
        beside = max(rows * max(sizes, default=0), *self.group_bytes[piece.start : piece.stop], 0)
        return rows * sum(sizes), rows * sum(sizes) + beside

    def parse(self, piece: Piece) -> TablePart:
        """Read the row groups of a piece; an error waits for those of the pieces before it."""
        import pyarrow

        try:
            batches = list(self.batches(piece))
            whole = pyarrow.Table.from_batches(batches, None if batches else self._schema())
            num_rows, columns = whole.num_rows, whole.columns
            del batches, whole
            return self._part(piece, num_rows, columns)
        except FileFormatError as error:
            return TablePart(piece.number, error=error)
        finally:
            pyarrow.default_memory_pool().release_unused()  # it keeps them for itself

    def parts(self, piece: Piece) -> Iterator[TablePart]:
        """Yield the columns of some rows of a piece at a time."""
        import pyarrow

        for batch in self.batches(piece):
            yield self._part(piece, batch.num_rows, pyarrow.Table.from_batches([batch]).columns)

    def _part(self, piece: Piece, num_rows: int, columns: list[pyarrow.ChunkedArray]) -> TablePart:
        # It takes the columns from their list, so that no two of them are there twice.
        wanted = dict(self.wanted)
        values = []
        for name in self.read_names:
            column = columns.pop(0)
            if name in wanted:
                column = self._cast(name, column, wanted[name])
            values.append(values_of(column))
            if is_rounded(column, values[-1]):
                way = f'dtype={{{name!r}: "text"}} reads them as text'
                raise self.file.error(f"column {name!r} has whole numbers beyond 64 bits; {way}")
        return TablePart(piece.number, num_rows, tuple(values))

    def _cast(self, name: str, column: pyarrow.ChunkedArray, dtype: str) -> pyarrow.ChunkedArray:
        import pyarrow

        arrow = pyarrow.string() if dtype == "text" else pyarrow.from_numpy_dtype(np.dtype(dtype))
        if pyarrow.types.is_timestamp(column.type) and column.type.tz and pyarrow.types.is_timestamp(arrow):
            arrow = pyarrow.timestamp(arrow.unit, column.type.tz)  # the dtype says the unit alone
        try:
            return column.cast(arrow, safe=np.dtype(dtype).kind != "f" if dtype != "text" else True)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError) as error:
            raise self.file.error(f"column {name!r} is not of dtype {dtype}: {error}") from None

    def _schema(self) -> pyarrow.Schema:
        with opened_file(self.file, self.is_parquet) as opened:
            schema = opened.schema_arrow if self.is_parquet else opened.schema
        import pyarrow

        return pyarrow.schema([schema.field(place) for place in self.picked])

    def batches(self, piece: Piece) -> Iterator[pyarrow.RecordBatch]:
        """Yield the batches of a piece's row groups, no more of them than there should be."""
        groups = range(piece.start, min(piece.stop, len(self.heights)))
        claimed, last = sum(self.heights[group] for group in groups), 0
        with opened_file(self.file, self.is_parquet, self._texts()) as opened:
            for batch in self._decoded(opened, groups):
                last += batch.num_rows
                if last > claimed:
                    break
                batch.validate(full=True)
                yield batch
        if last != claimed:
            raise self.file.error(
                f"row groups {piece.start} to {piece.stop} do not have the number of rows they claim"
            )

    def _texts(self) -> tuple[str, ...]:
        return tuple(
            name for name, kind in zip(self.read_names, self.column_kinds, strict=True) if kind.word == "text"
        )

    def _decoded(
        self, opened: ParquetFile | RecordBatchFileReader, groups: Sequence[int]
    ) -> Iterator[pyarrow.RecordBatch]:
        if self.is_parquet:
            names = list(self.read_names)
            for batch in opened.iter_batches(_BATCH_ROWS, list(groups), names, use_threads=False):
                yield batch.select(names)
            return
        for group in groups:
            yield opened.get_batch(group).select(list(self.picked))


@contextmanager
def opened_file(
    file: File, is_parquet: bool, texts: Sequence[str] = ()
) -> Iterator[ParquetFile | RecordBatchFileReader]:
    """Open a Parquet or Arrow IPC file; what is wrong with it is an error that names it."""
    import pyarrow

    with file.open() as stream:
        try:
            if is_parquet:
                from pyarrow.parquet import ParquetFile

                with ParquetFile(stream, pre_buffer=False, read_dictionary=list(texts)) as opened:
                    yield opened
            else:
                from pyarrow import ipc

                with ipc.open_file(stream) as opened:
                    yield opened
        except (pyarrow.ArrowException, OSError) as error:
            if isinstance(error, FileFormatError):
                raise
            kind = "a Parquet" if is_parquet else "an Arrow IPC (Feather, version 2)"
            raise file.error(f"is not {kind} file, or a damaged one: {error}") from None


@reader("parquet", ".parquet", ".pq")
def open_parquet(file: File, columns: Sequence[str] | None = None, dtype: DTypes = None) -> Source:
    """Return the source of a Parquet table; it is read by row groups, in parallel.

    Parameters
    ----------
    file
        The table.
    columns
        Names of the columns to read, in the order wanted; None reads all.
    dtype
        Of all columns, or a mapping of names to dtypes, instead of the file's.

    Raises
    ------
    OptionError
        For an unknown column.
    FileFormatError
        When it is not a Parquet file, or a column is of lists or another type that no table holds.

    Warns
    -----
    FileContentWarning
        For decimal numbers with a fraction, which are read as floats, and for categories that have an order.
    """
    with opened_file(file, True) as opened:
        schema, metadata = opened.schema_arrow, opened.metadata
        groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
        heights = tuple(group.num_rows for group in groups)
        sizes = tuple(max(0, group.total_byte_size) for group in groups)
    if any(height < 0 for height in heights):
        raise file.error("has a row group with a negative number of rows")
    return _table_of(file, schema, columns, dtype, (heights, sizes), True)


@reader("arrow", ".arrow", ".feather", ".ipc")
def open_arrow(file: File, columns: Sequence[str] | None = None, dtype: DTypes = None) -> Source:
    """Return the source of an Arrow IPC file, as Feather's are; it is read by record batches, in parallel.

    Parameters and errors are those of :func:`open_parquet`.
    """
    with opened_file(file, False) as opened:
        schema = opened.schema
        batches = [opened.get_batch(number) for number in range(opened.num_record_batches)]
        heights = tuple(batch.num_rows for batch in batches)
        sizes = tuple(batch.nbytes for batch in batches)
    return _table_of(file, schema, columns, dtype, (heights, sizes), False)


def lists_in(arrow: pyarrow.DataType) -> tuple[int, np.dtype] | None:
    """Return how many levels of lists there are, and the dtype for the numbers or booleans in these.

    None for another type: of no lists, or of lists of anything else.
    """
    from pyarrow import types

    depth = 0
    while types.is_list(arrow) or types.is_large_list(arrow):
        arrow, depth = arrow.value_type, depth + 1
    is_number = types.is_boolean(arrow) or types.is_integer(arrow) or types.is_floating(arrow)
    if not depth or not is_number:
        return None
    return depth, np.dtype(np.float32 if types.is_float16(arrow) else arrow.to_pandas_dtype())


def _table_of(
    file: File,
    schema: pyarrow.Schema,
    columns: Sequence[str] | None,
    dtype: DTypes,
    groups: tuple[tuple[int, ...], tuple[int, ...]],
    is_parquet: bool,
) -> ArrowTable:
    from pyarrow import types

    names = tuple(schema.names)
    picked = picked_columns(file, names, columns)
    kinds = [kind_of(schema.field(place).type) for place in picked]
    bad = [names[place] for place, kind in zip(picked, kinds, strict=True) if kind is None]
    if bad:
        good = [names[place] for place in picked if names[place] not in bad]
        others = f"; columns=[{', '.join(map(repr, good[:50]))}] reads the others" if good else ""
        listed = [name for name in bad if lists_in(schema.field(names.index(name)).type) is not None]
        lists = f"; mn.nested.load(path, {listed[0]!r}) reads lists of numbers" if listed else ""
        raise file.error(
            f"column {bad[0]!r} is of type {schema.field(names.index(bad[0])).type}, which tables do not "
            f"support{f' ({len(bad)} columns have such types)' if len(bad) > 1 else ''}{others}{lists}"
        )
    fields = {names[place]: schema.field(place).type for place in picked}
    decimals = [name for name, one in fields.items() if types.is_decimal(one) and one.scale != 0]
    if decimals:
        warn(
            f"{file.shown}: decimal numbers in {', '.join(map(repr, decimals))} are read as floats, which "
            "rounds them",
            FileContentWarning,
        )
    for name in (name for name, one in fields.items() if types.is_dictionary(one) and one.ordered):
        warn(
            f"{file.shown}: the categories of {name!r} have an order, which is not read: "
            f"t.with_columns(order=t[{name!r}].map({{category: number, ...}})) has their numbers",
            FileContentWarning,
        )
    wanted = wanted_dtypes(str(file.shown), dtype, [names[place] for place in picked])
    found = tuple(one for one in kinds if one is not None)
    has_decimals = any(map(types.is_decimal, fields.values()))
    return ArrowTable(file, names, picked, found, *groups, wanted, is_parquet, has_decimals=has_decimals)

"""A column of lists of numbers in Parquet and Arrow IPC files: their lengths, and the numbers in a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Block
from matnb.blocks.grid import Region, relative
from matnb.errors import FileFormatError, OptionError, suggestion
from matnb.io.arrow_files import ArrowTable, element_of, opened_file
from matnb.io.columns import number
from matnb.io.entries import ReaderValue, Slab, common, dense_of
from matnb.io.files import File, find_file
from matnb.io.folders import TableFiles, Where, found_paths
from matnb.io.source import READERS, Found, Piece, PlainSource

if TYPE_CHECKING:
    import pyarrow

_KINDS = ("parquet", "arrow")
_OFFSET_BYTES = 8


@dataclass(frozen=True, eq=False)
class ListsPart(ReaderValue):
    """The lists of a piece: their lengths, and the elements of all; or the error that reading it met."""

    number: int
    counts: npt.NDArray[np.int64]
    values: npt.NDArray[np.generic]
    error: FileFormatError | None = None


@dataclass(frozen=True)
class ListsFacts:
    """How many lists a piece has, and how many elements these have together."""

    num_lists: int
    num_values: int
    error: FileFormatError | None


@dataclass(frozen=True)
class ListsContext:
    """What the pieces say together: the number of the first list and of the first element of each."""

    found: Found
    first_lists: tuple[int, ...]
    first_values: tuple[int, ...]


@dataclass(frozen=True)
class ListsTable(ArrowTable):
    """One file of which a column of lists is read.

    Attributes
    ----------
    num_elements
        At most so many elements each row group or record batch has.
    """

    num_elements: tuple[int, ...]

    def estimated_entries(self) -> int:
        """Return about how many elements all lists have."""
        return sum(self.num_elements)

    def parsing_bytes(self, piece: Piece, num_pieces: int) -> tuple[int, int]:
        """Return what the lists of a piece take, and as much and the group decoded beside them."""
        groups = slice(piece.start, piece.stop)
        counts = sum(self.heights[groups]) * _OFFSET_BYTES
        held = counts + sum(self.num_elements[groups]) * self.column_kinds[0].stored.itemsize
        return held, held + max(self.group_bytes[groups], default=0)

    def parse(self, piece: Piece) -> ListsPart:  # type: ignore[override]  # lists instead of columns
        """Read the row groups of a piece."""
        import pyarrow

        counts, values = [np.empty(0, np.int64)], [np.empty(0, self.column_kinds[0].stored)]
        try:
            for batch in self.batches(piece):
                lengths, elements = self._lists(batch.column(0))
                counts.append(lengths)
                values.append(elements)
        except FileFormatError as error:
            return ListsPart(piece.number, counts[0], values[0], error)
        part = ListsPart(piece.number, np.concatenate(counts), np.concatenate(values))
        pyarrow.default_memory_pool().release_unused()  # it keeps them for itself
        return part

    def _lists(self, column: pyarrow.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.generic]]:
        # Lengths and elements, which are copied when all are put together.
        name = self.read_names[0]
        if column.null_count:
            raise self.file.error(
                f"column {name!r} has {column.null_count:,} missing lists: write empty ones"
            )
        offsets = column.offsets.to_numpy().astype(np.int64, copy=False)
        elements = column.values.slice(offsets[0], offsets[-1] - offsets[0])
        if elements.null_count:
            raise self.file.error(
                f"column {name!r} has {elements.null_count:,} missing values in lists: write NaN, or leave "
                "them out"
            )
        return np.diff(offsets), elements.to_numpy(zero_copy_only=False)


@dataclass(frozen=True)
class ListColumn(PlainSource):
    """A column of lists: all their "values" one after the other, or the "counts" of these by list.

    Attributes
    ----------
    table
        A :class:`ListsTable`, or several.
    element
        The dtype of the elements.
    """

    table: ListsTable | TableFiles
    element: np.dtype
    field: Literal["values", "counts"] = "values"

    def __repr__(self) -> str:
        return f"{self.field} of lists {self.table.read_names[0]!r} of {self.table!r}"

    @property
    def file(self) -> File:
        """The first file."""
        return self.table.file

    @property
    def num_lists(self) -> int:
        """How many lists there are, as the files say."""
        tables = self.table.tables if isinstance(self.table, TableFiles) else (self.table,)
        return sum(sum(one.heights) for one in tables if isinstance(one, ListsTable))

    def reading(self) -> ListColumn:
        """Return the source that is read through once for both arrays."""
        return replace(self, field="values")

    def lengths(self) -> ListColumn:
        """Return the source of the lengths of the lists."""
        return replace(self, field="counts")

    def identity(self) -> tuple[str | int, ...]:
        """Return what tells the array from any other."""
        return ("lists", self.field, self.element.str, *self.table.identity())

    def estimated_entries(self) -> int:
        """Return about how many elements there are."""
        return self.num_lists if self.field == "counts" else self.table.estimated_entries()

    def pieces(self, count: int) -> tuple[Piece, ...]:
        """Return ranges of row groups."""
        return self.table.pieces(count)

    def parsing_bytes(self, piece: Piece, num_pieces: int) -> tuple[int, int]:
        """Return what a piece takes, and what reading it takes in addition."""
        return self.table.parsing_bytes(piece, num_pieces)

    def parse(self, piece: Piece) -> ListsPart:
        """Read a piece."""
        return self.table.parse(piece)  # type: ignore[return-value]  # its tables are ListsTable

    def summary(self, parsed: ListsPart) -> ListsFacts:
        """Return what is known of a piece."""
        return ListsFacts(parsed.counts.size, parsed.values.size, parsed.error)

    def merge(self, summaries: Sequence[ListsFacts]) -> ListsContext:
        """Return what is known of the column.

        Raises
        ------
        FileFormatError
            The first that reading met.
        """
        for one in summaries:
            if one.error is not None:
                raise one.error
        lists = np.cumsum([0, *(one.num_lists for one in summaries)]).tolist()
        values = np.cumsum([0, *(one.num_values for one in summaries)]).tolist()
        is_counts = self.field == "counts"
        dtype = np.dtype(np.int64) if is_counts else self.element
        found = Found(((lists if is_counts else values)[-1],), dtype, False)
        return ListsContext(found, tuple(lists), tuple(values))

    def part(self, parsed: ListsPart, context: ListsContext, region: Region) -> Slab | None:
        """Return what a piece has of a region."""
        is_counts = self.field == "counts"
        elements = parsed.counts if is_counts else parsed.values
        first = (context.first_lists if is_counts else context.first_values)[parsed.number]
        own = ((first, first + elements.size),)
        both = common(own, region)
        if both is None:
            return None
        dtype = np.int64 if is_counts else self.element
        return Slab(both, elements[relative(both, own)].astype(dtype))

    def assemble(self, parts: Sequence[Slab | None], context: ListsContext, region: Region) -> Block:
        """Return the block of a region."""
        dtype = np.dtype(np.int64) if self.field == "counts" else self.element
        return dense_of([part for part in parts if part is not None], region, dtype)


def open_lists(where: Where, column: str, kind: str | None = None) -> ListColumn:
    """Return the source of a column of lists of numbers, in one file or several.

    Parameters
    ----------
    where
        A Parquet or Arrow IPC file; or a folder, a pattern or a list of them.
    column
        Its name.
    kind
        "parquet" or "arrow", where the suffix does not say.

    Raises
    ------
    OptionError
        For another kind of file, or a name that no column has.
    FileFormatError
        When it is not a file of its kind, or the column is not of lists of numbers or booleans.
    MissingFileError
        When there is no such file.
    """
    if kind is not None and kind not in _KINDS:
        raise OptionError(f"kind={kind!r}: {suggestion(kind, _KINDS, 'choose one of')}")
    tables = [_table(path, column, kind) for path in found_paths(where, kind, _KINDS)]
    element = np.result_type(*(one.column_kinds[0].stored for one in tables))
    if len(tables) == 1:
        return ListColumn(tables[0], element)
    return ListColumn(TableFiles(tables[0].file, (column,), (0,), tuple(tables)), element)


def _table(path: str, column: str, kind: str | None) -> ListsTable:
    file = find_file(path)
    suffixes = {one: READERS[one].suffixes for one in _KINDS}
    kind = kind or next((one for one in _KINDS if file.name.lower().endswith(suffixes[one])), None)
    if kind is None:
        known = ", ".join(f"{one!r} ({' '.join(suffixes[one])})" for one in _KINDS)
        raise OptionError(
            f"{file.shown}: lists are read from Parquet and Arrow files; give kind= as one of {known}"
        )
    file.check_readable()
    is_parquet = kind == "parquet"
    with opened_file(file, is_parquet) as opened:
        schema = opened.schema_arrow if is_parquet else opened.schema
        place, element = _checked(file, schema, column)
        heights, sizes, elements = (_of_groups if is_parquet else _of_batches)(opened, place, column)
    if any(height < 0 for height in heights):
        raise file.error("has a row group with a negative number of rows")
    names, kinds = tuple(schema.names), (number(element),)
    return ListsTable(file, names, (place,), kinds, heights, sizes, (), is_parquet, elements)


def _checked(file: File, schema: pyarrow.Schema, column: str) -> tuple[int, np.dtype]:
    # Where the column is, and the dtype of its elements.
    names = schema.names
    if names.count(column) != 1:
        wrong = (
            f"{names.count(column)} columns named {column!r}" if column in names else f"no column {column!r}"
        )
        raise OptionError(f"{file.shown}: {wrong}; {suggestion(column, names)}")
    place = names.index(column)
    element = element_of(schema.field(place).type)
    if element is None:
        raise file.error(
            f"column {column!r} is of type {schema.field(place).type}, not of lists of numbers or booleans"
        )
    return place, element


_Groups = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def _of_groups(opened: pyarrow.parquet.ParquetFile, place: int, column: str) -> _Groups:
    # Of row groups the rows, the bytes of all columns, and the elements; an empty list counts as one of them.
    metadata = opened.metadata
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    leaves = [one.path.split(".")[0] for one in map(opened.schema.column, range(metadata.num_columns))]
    leaf = leaves.index(column) if column in leaves else 0
    return (
        tuple(one.num_rows for one in groups),
        tuple(max(0, one.total_byte_size) for one in groups),
        tuple(max(0, one.column(leaf).num_values) for one in groups),
    )


def _of_batches(opened: pyarrow.ipc.RecordBatchFileReader, place: int, column: str) -> _Groups:
    # Of record batches the same.
    batches = [opened.get_batch(group) for group in range(opened.num_record_batches)]
    return (
        tuple(one.num_rows for one in batches),
        tuple(one.nbytes for one in batches),
        tuple(len(one.column(place).values) for one in batches),
    )

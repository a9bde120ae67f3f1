"""A column of lists of numbers in Parquet and Arrow IPC files: their lengths, and the numbers in a row.

Lists may have lists in them, of as many levels in every row. Files of such a column are written here, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Block
from matnb.blocks.grid import Region, relative
from matnb.errors import FileFormatError, OptionError, suggestion
from matnb.io.arrow_files import ArrowTable, lists_in, opened_file
from matnb.io.columns import number
from matnb.io.entries import ReaderValue, Slab, common, dense_of
from matnb.io.files import File, find_file, suffix_of
from matnb.io.folders import TableFiles, Where, found_paths
from matnb.io.source import READERS, Piece, PlainSource, SourceFacts
from matnb.io.write import written_whole
from matnb.location import Location

if TYPE_CHECKING:
    import pyarrow

_KINDS = ("parquet", "arrow")
_OFFSET_BYTES = 8
_COLUMN = "values"  # of a file that is written
# Parquet's dictionary of distinct values is given up for being large at the end of a list only: 15 million
# values in one list took 12.4 s with it, and 0.6 s without. This many took half a second with it.
_LONG = 1 << 20
_Counts = tuple[npt.NDArray[np.int64], ...]  # the lengths of the lists of each level, the outermost first


@dataclass(frozen=True, eq=False)
class ListsPart(ReaderValue):
    """The lists of a piece: their lengths, and the elements of all; or the error that reading it met."""

    number: int
    counts: _Counts
    values: npt.NDArray[np.generic]
    error: FileFormatError | None = None


@dataclass(frozen=True)
class ListsFacts:
    """How many lists a piece has at each level, and how many elements these have together."""

    num_lists: tuple[int, ...]
    num_values: int
    error: FileFormatError | None


@dataclass(frozen=True)
class ListColumnFacts(SourceFacts):
    """What is known of a column of lists: of its values, and how many lists there are at each level."""

    num_lists: tuple[int, ...] = ()


@dataclass(frozen=True)
class ListsContext:
    """What the pieces say together, whatever of the column is wanted.

    Attributes
    ----------
    firsts
        The number of the first list of each piece and level, and last the number of its first element.
    """

    found: ListColumnFacts
    firsts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class ListsTable(ArrowTable):
    """One file of which a column of lists is read.

    Attributes
    ----------
    num_elements
        At most so many elements, or lists of an inner level, each row group or record batch has.
    depth
        How many levels of lists there are.
    """

    num_elements: tuple[int, ...]
    depth: int

    def estimated_entries(self) -> int:
        """Return about how many elements all lists have."""
        return sum(self.num_elements)

    def parsing_bytes(self, piece: Piece, num_pieces: int) -> tuple[int, int]:
        """Return what the lists of a piece take, and as much and the group decoded beside them."""
        groups = slice(piece.start, piece.stop)
        num_elements = sum(self.num_elements[groups])
        counts = (sum(self.heights[groups]) + (self.depth - 1) * num_elements) * _OFFSET_BYTES
        held = counts + num_elements * self.column_kinds[0].stored.itemsize
        return held, held + max(self.group_bytes[groups], default=0)

    def parse(self, piece: Piece) -> ListsPart:  # type: ignore[override]  # lists instead of columns
        """Read the row groups of a piece."""
        import pyarrow

        values = [np.empty(0, self.column_kinds[0].stored)]
        counts = [[np.empty(0, np.int64)] for _ in range(self.depth)]
        try:
            for batch in self.batches(piece):
                *lengths, elements = self._lists(batch.column(0))
                for own, one in zip(counts, lengths, strict=True):
                    own.append(one)
                values.append(elements)
        except FileFormatError as error:
            return ListsPart(piece.number, tuple(own[0] for own in counts), values[0], error)
        part = ListsPart(piece.number, tuple(map(np.concatenate, counts)), np.concatenate(values))
        pyarrow.default_memory_pool().release_unused()  # it keeps them for itself
        return part

    def _lists(self, column: pyarrow.Array) -> list[np.ndarray]:
        # Lengths of each level and the elements, which are copied when all are put together.
        name, found = self.read_names[0], []
        for _ in range(self.depth):
            if column.null_count:
                raise self.file.error(
                    f"column {name!r} has {column.null_count:,} missing lists: write empty ones"
                )
            offsets = column.offsets.to_numpy().astype(np.int64, copy=False)
            found.append(np.diff(offsets))
            column = column.values.slice(offsets[0], offsets[-1] - offsets[0])
        if column.null_count:
            raise self.file.error(
                f"column {name!r} has {column.null_count:,} missing values in lists: write NaN, or leave "
                "them out"
            )
        return [*found, column.to_numpy(zero_copy_only=False)]


@dataclass(frozen=True)
class ListColumn(PlainSource):
    """A column of lists: all their values one after the other, or the lengths of the lists of a level.

    Attributes
    ----------
    table
        A :class:`ListsTable`, or several.
    element
        The dtype of the elements.
    level
        The level whose lengths are read, the outermost 0; None for the values.
    """

    table: ListsTable | TableFiles
    element: np.dtype
    level: int | None = None

    def __repr__(self) -> str:
        field = "values" if self.level is None else "lengths"
        return f"{field} of lists {self.table.read_names[0]!r} of {self.table!r}"

    @property
    def file(self) -> File:
        """The first file."""
        return self.table.file

    @property
    def num_lists(self) -> int:
        """How many lists of the outermost level there are, as the files say."""
        tables = self.table.tables if isinstance(self.table, TableFiles) else (self.table,)
        return sum(sum(one.heights) for one in tables if isinstance(one, ListsTable))

    def reading(self) -> ListColumn:
        """Return the source that is read through once for all arrays."""
        return replace(self, level=None)

    def lengths(self, level: int = 0) -> ListColumn:
        """Return the source of the lengths of the lists of a level."""
        return replace(self, level=level)

    def identity(self) -> tuple[str | int, ...]:
        """Return what tells the array from any other."""
        field = "values" if self.level is None else self.level
        return ("lists", field, self.element.str, *self.table.identity())

    def estimated_entries(self) -> int:
        """Return about how many elements there are."""
        return self.num_lists if self.level == 0 else self.table.estimated_entries()

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
        return ListsFacts(tuple(one.size for one in parsed.counts), parsed.values.size, parsed.error)

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
        sizes = zip(*((*one.num_lists, one.num_values) for one in summaries), strict=True)
        firsts = [np.cumsum([0, *own]).tolist() for own in sizes]
        *num_lists, num_values = (own[-1] for own in firsts)
        length = num_values if self.level is None else num_lists[self.level]
        found = ListColumnFacts((length,), self._dtype, False, num_lists=tuple(num_lists))
        return ListsContext(found, tuple(map(tuple, firsts)))

    @property
    def _dtype(self) -> np.dtype:
        return self.element if self.level is None else np.dtype(np.int64)

    def part(self, parsed: ListsPart, context: ListsContext, region: Region) -> Slab | None:
        """Return what a piece has of a region."""
        elements = parsed.values if self.level is None else parsed.counts[self.level]
        first = context.firsts[-1 if self.level is None else self.level][parsed.number]
        own = ((first, first + elements.size),)
        both = common(own, region)
        if both is None:
            return None
        return Slab(both, elements[relative(both, own)].astype(self._dtype))

    def assemble(self, parts: Sequence[Slab | None], context: ListsContext, region: Region) -> Block:
        """Return the block of a region."""
        return dense_of([part for part in parts if part is not None], region, self._dtype)


def open_lists(where: Where, column: str | None = None, kind: str | None = None) -> ListColumn:
    """Return the source of a column of lists of numbers, in one file or several.

    Parameters
    ----------
    where
        A Parquet or Arrow IPC file; or a folder, a pattern or a list of them.
    column
        Its name; by default that of the only column of lists of numbers.
    kind
        "parquet" or "arrow", where the suffix does not say.

    Raises
    ------
    OptionError
        For another kind of file, or a name that no column has.
    FileFormatError
        When it is not a file of its kind, or the column is not of lists of numbers or booleans, or those of
        one file have other levels.
    MissingFileError
        When there is no such file.
    """
    if kind is not None and kind not in _KINDS:
        raise OptionError(f"kind={kind!r}: {suggestion(kind, _KINDS, 'choose one of')}")
    first, *others = found_paths(where, kind, _KINDS)
    tables = [_table(first, column, kind)]
    (column,) = tables[0].read_names
    tables += [_table(path, column, kind) for path in others]
    for one in tables:
        if one.depth != tables[0].depth:
            raise one.file.error(
                f"column {column!r} has {one.depth} levels of lists where {tables[0].file.shown} has "
                f"{tables[0].depth}"
            )
    element = np.result_type(*(one.column_kinds[0].stored for one in tables))
    if len(tables) == 1:
        return ListColumn(tables[0], element)
    return ListColumn(TableFiles(tables[0].file, (column,), (0,), tuple(tables)), element)


def _table(path: str, column: str | None, kind: str | None) -> ListsTable:
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
        place, depth, element = _checked(file, schema, column)
        groups = _of_groups(opened, schema.names[place]) if is_parquet else _of_batches(opened, place, depth)
        heights, sizes, elements = groups
    if any(height < 0 for height in heights):
        raise file.error("has a row group with a negative number of rows")
    names, kinds = tuple(schema.names), (number(element),)
    return ListsTable(file, names, (place,), kinds, heights, sizes, (), is_parquet, elements, depth)


def _checked(file: File, schema: pyarrow.Schema, column: str | None) -> tuple[int, int, np.dtype]:
    # Where the column is, how many levels of lists it has, and the dtype of its elements.
    names = schema.names
    if column is None:
        listed = [one.name for one in schema if lists_in(one.type) is not None]
        if len(listed) != 1:
            which = f"columns {', '.join(map(repr, listed))} are" if listed else "no column is"
            raise OptionError(f"{file.shown}: {which} of lists of numbers; give column= as one that is")
        (column,) = listed
    if names.count(column) != 1:
        wrong = (
            f"{names.count(column)} columns named {column!r}" if column in names else f"no column {column!r}"
        )
        raise OptionError(f"{file.shown}: {wrong}; {suggestion(column, names)}")
    place = names.index(column)
    found = lists_in(schema.field(place).type)
    if found is None:
        raise file.error(
            f"column {column!r} is of type {schema.field(place).type}, not of lists of numbers or booleans"
        )
    return place, *found


_Groups = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def _of_groups(opened: pyarrow.parquet.ParquetFile, column: str) -> _Groups:
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


def _of_batches(opened: pyarrow.ipc.RecordBatchFileReader, place: int, depth: int) -> _Groups:
    # Of record batches the same; of several levels the most of any.
    batches = [opened.get_batch(group) for group in range(opened.num_record_batches)]
    return (
        tuple(one.num_rows for one in batches),
        tuple(one.nbytes for one in batches),
        tuple(_most_elements(one.column(place), depth) for one in batches),
    )


def _most_elements(column: pyarrow.Array, depth: int) -> int:
    most = 0
    for _ in range(depth):
        column = column.values
        most = max(most, len(column))
    return most


# Writing.

ListsChunk = tuple[np.ndarray, Sequence[np.ndarray]]  # values, and offsets of each level, the outermost first


def lists_of(values: np.ndarray, levels: Sequence[np.ndarray]) -> pyarrow.LargeListArray:
    """Return Arrow's lists, which share the memory of values and of the offsets of each level."""
    import pyarrow

    found = pyarrow.array(values)
    for offsets in reversed(levels):
        found = pyarrow.LargeListArray.from_arrays(pyarrow.array(offsets), found)
    return found


def check_lists_target(path: str | os.PathLike[str]) -> str:
    """Return the suffix of a file that lists can be written to.

    Raises
    ------
    OptionError
        For another one.
    """
    suffix, known = suffix_of(path), [one for kind in _KINDS for one in READERS[kind].suffixes]
    if suffix not in known:
        raise OptionError(
            f"{Location(os.fsdecode(path))}: nested arrays are saved as a column of lists, not with suffix "
            f"{suffix!r}; {suggestion(suffix, known)}; N.values and N.offsets can be saved as arrays"
        )
    return suffix


def write_lists(path: str | os.PathLike[str], chunks: Iterable[ListsChunk], longest: int) -> None:
    """Write a column of lists named "values", a row group or record batch for each chunk, at least one.

    The file appears whole or not at all. One chunk is held at a time. ``longest`` is how many numbers the
    longest list has, those of the lists in it included.

    Raises
    ------
    OptionError, MissingFileError, WriteError
        As :func:`matnb.io.write.write`.
    """
    import pyarrow
    from pyarrow import parquet

    suffix, writer = check_lists_target(path), None
    with written_whole(path) as stream:
        for values, levels in chunks:
            part = pyarrow.table({_COLUMN: lists_of(values, levels)})
            if writer is None:
                if suffix in READERS["parquet"].suffixes:
                    writer = parquet.ParquetWriter(stream, part.schema, use_dictionary=longest <= _LONG)
                else:
                    writer = pyarrow.ipc.new_file(stream, part.schema)
            writer.write_table(part)
        assert writer is not None, "at least one chunk"
        writer.close()

"""Several files as one: those of a folder, a pattern or a list, and the table that they hold together."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from matnb.errors import FileFormatError, MissingFileError, OptionError
from matnb.io.columns import ColumnKind, TablePart, TableSource, wider
from matnb.io.delimited import CsvTable, types_of_all
from matnb.io.files import File, near_file
from matnb.io.source import READERS, Piece, Source, open_source

Where: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
_TABLES = ("csv", "parquet", "arrow")  # kinds of file
_MOST_NAMES = 20  # that an error lists


@dataclass(frozen=True)
class FilePiece(Piece):
    """A piece of one of several files: which of them it is, and into how many pieces that one is cut."""

    place: int
    num_pieces: int


@dataclass(frozen=True)
class TableFiles(TableSource):
    """Tables with the same columns, one below the other.

    Attributes
    ----------
    file
        The first.
    tables
        All of them, in order.
    """

    file: File
    names: tuple[str, ...]
    picked: tuple[int, ...]
    tables: tuple[TableSource, ...]

    def __repr__(self) -> str:
        return f"TableFiles({self.file!r} and {len(self.tables) - 1} more)"

    @property
    def kinds(self) -> tuple[ColumnKind, ...]:
        """What the columns that are read hold, as far as is known before they are read."""
        return _kinds_of_all(self.tables)

    def identity(self) -> tuple[str | int, ...]:
        """Return what tells the tables from any others."""
        return ("files", len(self.tables), *(part for table in self.tables for part in table.identity()))

    def estimated_entries(self) -> int:
        """Return about how many elements there are."""
        return sum(table.estimated_entries() for table in self.tables)

    def pieces(self, count: int) -> tuple[Piece, ...]:
        """Return the pieces of the files, at least one of each; large files are cut into more."""
        sizes = [max(1, table.file.size) for table in self.tables]
        found: list[FilePiece] = []
        for place, (table, size) in enumerate(zip(self.tables, sizes, strict=True)):
            own = table.pieces(max(1, count * size // sum(sizes)))
            found += [
                FilePiece(len(found) + number, piece.start, piece.stop, place, len(own))
                for number, piece in enumerate(own)
            ]
        return tuple(found)

    def parsing_bytes(self, piece: Piece, num_pieces: int) -> tuple[int, int]:
        """Return what a piece holds once it is read, and what reading it takes in addition."""
        assert isinstance(piece, FilePiece), "it is one of pieces()"
        return self.tables[piece.place].parsing_bytes(piece, piece.num_pieces)

    def within(self, room_bytes: int) -> TableFiles:
        """Return the tables with a limit of what reading a piece of them may take."""
        return replace(self, tables=tuple(table.within(room_bytes) for table in self.tables))

    def parse(self, piece: Piece) -> TablePart:
        """Read a piece of one of the files."""
        assert isinstance(piece, FilePiece), "it is one of pieces()"
        part = self.tables[piece.place].parse(piece)
        return replace(part, span=(*part.span, piece.place)) if part.span else part

    @property
    def may_widen(self) -> bool:
        """Whether pieces may hold integers and others of one column that no type holds together."""
        return any(table.may_widen or table.kinds != self.tables[0].kinds for table in self.tables)

    def error_from(self, place: int, span: tuple[int, ...]) -> FileFormatError:
        """Return the first error of the rows of a file from a byte on."""
        return self.tables[span[-1]].error_from(place, span)

    def parts(self, piece: Piece) -> Iterator[TablePart]:
        """Yield the columns of some rows of a piece at a time."""
        assert isinstance(piece, FilePiece), "it is one of pieces()"
        return self.tables[piece.place].parts(piece)  # type: ignore[no-any-return]  # as TableSource says


def _kinds_of_all(tables: Sequence[TableSource]) -> tuple[ColumnKind, ...]:
    # A column that is of whole numbers in one file and of floats in another is of floats.
    found = list(tables[0].kinds)
    for table in tables[1:]:
        for place, kind in enumerate(table.kinds):
            both = wider(found[place], kind)
            if both is None:
                raise table.file.error(
                    f"column {table.read_names[place]!r} holds {kind.shown} where {tables[0].file.shown} has "
                    f"{found[place].shown}"
                )
            found[place] = both
    return tuple(found)


def open_files(where: Where, *, kind: str | None = None, **options: object) -> Source:
    """Return the source that reads a file, or the tables of a folder, of a pattern or of a list.

    Parameters
    ----------
    where
        What :func:`open_source` takes; or a folder, of which CSV, Parquet and Arrow files are read but no
        folder inside; a pattern such as ``"trips/*.csv"``, both in the order of names; or a list.
    kind, **options
        As of :func:`open_source`, for every file.

    Raises
    ------
    FileFormatError
        When a file has other columns than the first one, or a column of another type.
    MissingFileError
        When there is no such file, or none in the folder or of the pattern.
    OptionError
        For several files of which one is no table.
    """
    paths = found_paths(where, kind, _TABLES)
    first = open_source(paths[0], kind=kind, **options)
    if len(paths) == 1:
        return first
    tables: list[TableSource] = []
    for path in paths:
        source = open_source(path, kind=kind, **options) if tables else first
        if not isinstance(source, TableSource):
            raise OptionError(
                f"{path}: several files are loaded together only if all are tables, and this file is not "
                "a table"
            )
        if tables and sorted(source.read_names) == sorted(tables[0].read_names):
            if source.read_names != tables[0].read_names:
                ordered = {**options, "columns": list(tables[0].read_names)}
                source = open_source(path, kind=kind, **ordered)
                assert isinstance(source, TableSource), "as before"
        elif tables:
            raise source.file.error(
                f"has the columns {_listed(source.read_names)} where {tables[0].file.shown} has "
                f"{_listed(tables[0].read_names)}"
            )
        tables.append(source)
    texts = [table for table in tables if isinstance(table, CsvTable)]
    if len(texts) == len(tables):
        types = types_of_all(texts)
        tables = [replace(table, types=types) for table in texts]
    _kinds_of_all(tables)
    names = tables[0].read_names
    return TableFiles(tables[0].file, names, tuple(range(len(names))), tuple(tables))


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(map(repr, names[:_MOST_NAMES])) + more


def found_paths(where: Where, kind: str | None, kinds: Sequence[str]) -> list[str]:
    """Return the paths that a path, a folder, a pattern or a list stands for, in order.

    Parameters
    ----------
    where
        What the user gave.
    kind
        The kind of all files; None goes by the suffix.
    kinds
        Of a folder's files, those that are read where ``kind`` is None.

    Raises
    ------
    MissingFileError
        When there is none.
    OptionError
        For an empty list.
    """
    if not isinstance(where, str | os.PathLike):
        if not isinstance(where, Sequence) or not all(isinstance(one, str | os.PathLike) for one in where):
            raise OptionError(f"{where!r} is not a file: give a path, a URL as a string, or a list of them")
        if not where:
            raise OptionError("the list is empty: give at least one path")
        return [os.fsdecode(one) for one in where]
    path = os.fsdecode(where)
    local = os.path.expanduser(path)
    if "://" in path or os.path.isfile(local):  # a url has no pattern: its "?" begins a query
        return [path]
    if os.path.isdir(local):
        suffixes = tuple(suffix for one in kinds for suffix in READERS[one].suffixes)
        names = sorted(name for name in os.listdir(local) if not name.startswith("."))
        found = [os.path.join(path, name) for name in names if kind or name.lower().endswith(suffixes)]
        if not found:
            raise MissingFileError(
                f"{path}: no file here can be read; the suffixes are {', '.join(suffixes)}"
            )
        return found
    if not glob.has_magic(path):
        return [path]  # opening it says what is wrong
    found = sorted(glob.glob(local))
    if not found:
        raise MissingFileError(f"{path}: no file matches the pattern{near_file(local)}")
    return found

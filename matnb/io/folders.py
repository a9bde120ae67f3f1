"""Several files as one: those of a folder, a pattern or a list, and the table that they hold together.

Names of folders may hold values of columns, as Hive and Spark write them: in Age=20/part-0.parquet all rows
have an Age of 20.
"""

from __future__ import annotations

import datetime
import glob
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias
from urllib.parse import unquote

import numpy as np

from matnb.errors import FileFormatError, MissingFileError, OptionError
from matnb.io.columns import (
    ColumnKind,
    ColumnValues,
    DType,
    RowSpan,
    TablePart,
    TableSource,
    kind_of,
    values_of,
    wanted_dtypes,
    wider,
)
from matnb.io.csv_inference import type_of_dtype, with_types
from matnb.io.delimited import CsvTable
from matnb.io.files import File, near_file
from matnb.io.source import (
    READERS,
    Piece,
    Source,
    in_words_of,
    open_header,
    open_source,
    refuse_elsewhere,
)
from matnb.io.texts import arrow_type, values_in

Where: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
_TABLES = ("csv", "parquet", "arrow")  # kinds of file
_KEY = re.compile("[^=]+=.*")  # the name of a folder that has a value
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_MOST_NAMES = 20  # that an error lists


@dataclass(frozen=True)
class FilePiece(Piece):
    """A piece of one of several files: which of them it is, and into how many pieces that one is cut."""

    place: int
    num_pieces: int


@dataclass(frozen=True)
class FolderKey:
    """A column whose values stand in the names of folders.

    Attributes
    ----------
    name
        What it is called.
    type
        What its values are, as Arrow writes it.
    values
        Of each file, None where it is missing.
    """

    name: str
    type: str
    values: tuple[int | float | bool | str | datetime.date | None, ...]

    @property
    def kind(self) -> ColumnKind:
        """What the column holds."""
        found = kind_of(arrow_type(self.type))
        assert found is not None, "of a type that tables have"
        return found

    def column(self, place: int, num_rows: int) -> ColumnValues:
        """Return the column in some rows of a file."""
        import pyarrow

        plain = "string" if self.type == "text" else arrow_type(self.type)
        one = values_of(pyarrow.array([self.values[place]], plain))
        missing = None if one.missing is None else np.repeat(one.missing, num_rows)
        return replace(one, values=np.repeat(one.values, num_rows), missing=missing)


@dataclass(frozen=True)
class TableFiles(TableSource):
    """Tables with the same columns, one below the other.

    Attributes
    ----------
    file
        The first.
    tables
        All of them, in order.
    keys
        The columns whose values are in the names of folders, after those of the files.
    """

    file: File
    names: tuple[str, ...]
    picked: tuple[int, ...]
    tables: tuple[TableSource, ...]
    keys: tuple[FolderKey, ...] = ()

    def __repr__(self) -> str:
        return f"TableFiles({self.file!r} and {len(self.tables) - 1} more)"

    @property
    def kinds(self) -> tuple[ColumnKind, ...]:
        """What the columns that are read hold, as far as is known before they are read."""
        found = (*_kinds_of_all(self.tables), *(key.kind for key in self.keys))
        return tuple(found[place] for place in self.picked)

    def identity(self) -> tuple[str | int, ...]:
        """Return what tells the tables from any others."""
        files = (part for table in self.tables for part in table.identity())
        return ("files", len(self.tables), *files, *self.picked, repr(self.keys))

    def estimated_entries(self) -> int:
        """Return about how many elements there are."""
        return sum(
            table.estimated_entries() // max(1, len(table.picked)) * len(self.picked) for table in self.tables
        )

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
        table = self.tables[piece.place]
        held, extra = table.parsing_bytes(piece, piece.num_pieces)
        rows = table.estimated_entries() // max(1, len(table.picked)) // max(1, piece.num_pieces)
        return held + 8 * len(self.keys) * rows, extra

    def within(self, room_bytes: int) -> TableFiles:
        """Return the tables with a limit of what reading a piece of them may take."""
        return replace(self, tables=tuple(table.within(room_bytes) for table in self.tables))

    def parse(self, piece: Piece) -> TablePart:
        """Read a piece of one of the files."""
        assert isinstance(piece, FilePiece), "it is one of pieces()"
        part = self._with_keys(self.tables[piece.place].parse(piece), piece.place)
        if not isinstance(part, TablePart) or part.span is None:  # files of lists have parts of their own
            return part
        return replace(part, span=part.span._replace(file=piece.place))

    def _with_keys(self, part: TablePart, place: int) -> TablePart:
        if not self.keys or part.error is not None:
            return part
        columns = (*part.columns, *(key.column(place, part.num_rows) for key in self.keys))
        return replace(part, columns=tuple(columns[one] for one in self.picked))

    @property
    def may_widen(self) -> bool:
        """Whether pieces may hold integers and others of one column that no type holds together."""
        return any(table.may_widen or table.kinds != self.tables[0].kinds for table in self.tables)

    def error_after(self, span: RowSpan) -> FileFormatError:
        """Return the first error of the rows of a file after some."""
        return self.tables[span.file].error_after(span)

    def parts(self, piece: Piece) -> Iterator[TablePart]:
        """Yield the columns of some rows of a piece at a time."""
        assert isinstance(piece, FilePiece), "it is one of pieces()"
        for part in self.tables[piece.place].parts(piece):
            yield self._with_keys(part, piece.place)


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
        What :func:`open_source` takes; or a folder, of which CSV, Parquet and Arrow files are read but of
        folders inside only those named ``key=value``; a pattern such as ``"trips/*.csv"``, both in the order
        of names; or a list. Such keys become columns.
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
    options = in_words_of({"usecols": "columns"}, options)
    paths, by_path = keyed_paths(where, kind, _TABLES)
    if len(paths) > 1 and options.get("nrows") is not None:
        raise OptionError(
            f"nrows={options['nrows']!r} is of one file; t.head(n) has the first rows of several"
        )
    if any(by_path):
        return _partitioned(paths, by_path, kind, options)
    if len(paths) == 1:
        return open_source(paths[0], kind=kind, **options)
    return _together(paths, kind, options)


def _partitioned(
    paths: Sequence[str],
    by_path: Sequence[Mapping[str, str | None]],
    kind: str | None,
    options: Mapping[str, object],
) -> TableFiles:
    # Tables with the values of more columns in the names of their folders.
    for path, values in zip(paths, by_path, strict=True):
        if values.keys() != by_path[0].keys():
            mine, others = ", ".join(map(repr, values)), ", ".join(map(repr, by_path[0]))
            raise OptionError(
                f"{path}: has the keys {mine or '(none)'} in the names of its folders where {paths[0]} has "
                f"{others or '(none)'}"
            )
    columns, dtype = options.get("columns"), options.get("dtype")
    own = {name: one for name, one in options.items() if name not in ("columns", "dtype")}
    names, counted = list(by_path[0]), []
    is_list = isinstance(columns, Sequence) and not isinstance(columns, str)
    picked_names = list(columns) if is_list else []  # type: ignore[call-overload]  # opening refuses any other
    if any(isinstance(one, int) for one in picked_names):
        raise OptionError(f"columns={columns!r}: where folders have keys, give names")
    if not set(names).isdisjoint([*picked_names, *(dtype if isinstance(dtype, Mapping) else ())]):
        # The header tells which of them the files have themselves, and a column of which rows are counted.
        inner = [name for name in picked_names if name not in names]
        first = open_header(paths[0], kind, {**own, "columns": inner} if inner else own)
        if isinstance(first, TableSource):
            names, counted = [name for name in names if name not in first.names], list(first.names[:1])
    if columns is not None:
        own["columns"] = columns
    if is_list:
        own["columns"] = [name for name in picked_names if name not in names] or counted
    if isinstance(dtype, Mapping):
        own["dtype"] = {name: one for name, one in dtype.items() if name not in names}
    elif dtype is not None:
        own["dtype"] = dtype
    tables = _together(paths, kind, own)
    keys = tuple(
        _key(
            name,
            [values[name] for values in by_path],
            dtype.get(name) if isinstance(dtype, Mapping) else dtype,  # type: ignore[arg-type]  # checked there
        )
        for name in names
        if name not in tables.names  # else the files have it themselves
    )
    found = (*tables.names, *(key.name for key in keys))
    wanted = found if columns is None else columns
    picked = tuple(found.index(str(name)) for name in wanted)  # type: ignore[attr-defined]  # a sequence
    return replace(tables, names=found, picked=picked, keys=keys)


def _key(name: str, values: Sequence[str | None], dtype: DType | None) -> FolderKey:
    # Whole numbers and days where all are written as these are; else text, such as "01".
    import pyarrow

    there = [value for value in values if value is not None]
    if dtype is not None:
        ((_, wanted),) = wanted_dtypes(name, {name: dtype}, [name])
        word = type_of_dtype(wanted)
    elif there and all(re.fullmatch("0|-?[1-9][0-9]*", one) for one in there):
        word = "int64"
    else:
        word = "date32" if there and all(_DAY.fullmatch(one) for one in there) else "text"
    made = None if word == "text" else values_in(pyarrow.array(values, "string"), word)
    if made is not None:
        return FolderKey(name, word, tuple(made.to_pylist()))
    if dtype is not None and word != "text":
        raise OptionError(f"dtype={dtype!r} of {name!r}: folders have values such as {there[0]!r}")
    return FolderKey(name, "text", tuple(values))


def _together(paths: Sequence[str], kind: str | None, options: Mapping[str, object]) -> TableFiles:
    tables: list[TableSource] = []
    for path in paths:
        source = open_header(path, kind, options)
        if not isinstance(source, TableSource):
            raise OptionError(
                f"{path}: several files are loaded together only if all are tables, and this file is not "
                "a table"
            )
        if tables and sorted(source.read_names) == sorted(tables[0].read_names):
            if source.read_names != tables[0].read_names:
                ordered = {**options, "columns": list(tables[0].read_names)}
                source = open_header(path, kind, ordered)
                assert isinstance(source, TableSource), "as before"
        elif tables:
            raise source.file.error(
                f"has the columns {_listed(source.read_names)} where {tables[0].file.shown} has "
                f"{_listed(tables[0].read_names)}; columns= picks those that all have"
            )
        tables.append(source)
    texts = iter(with_types([table for table in tables if isinstance(table, CsvTable)]))
    tables = [next(texts) if isinstance(table, CsvTable) else table for table in tables]
    _kinds_of_all(tables)
    names = tables[0].read_names
    return TableFiles(tables[0].file, names, tuple(range(len(names))), tuple(tables))


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(map(repr, names[:_MOST_NAMES])) + more


def found_paths(where: Where, kind: str | None, kinds: Sequence[str]) -> list[str]:
    """Return the paths that a path, a folder, a pattern or a list stands for; see :func:`keyed_paths`."""
    return keyed_paths(where, kind, kinds)[0]


def keyed_paths(
    where: Where, kind: str | None, kinds: Sequence[str]
) -> tuple[list[str], list[dict[str, str | None]]]:
    """Return the paths that a path, a folder, a pattern or a list stands for, and what their folders say.

    Parameters
    ----------
    where
        What the user gave.
    kind
        The kind of all files; None goes by the suffix.
    kinds
        Of a folder's files, those that are read where ``kind`` is None.

    Returns
    -------
    tuple
        The paths in order, and of each the values of keys in the names of its folders below that of a folder,
        of a pattern's beginning, or of all files of a list.

    Raises
    ------
    MissingFileError
        When there is none.
    OptionError
        For an empty list.
    """
    if not isinstance(where, str | os.PathLike):
        if not isinstance(where, Sequence) or not all(isinstance(one, str | os.PathLike) for one in where):
            if hasattr(where, "read"):
                raise OptionError("an open file: write mn.table(pandas.read_csv(file)), or give its path")
            raise OptionError(f"{where!r} is not a file: give a path, a URL as a string, or a list of them")
        if not where:
            raise OptionError("the list is empty: give at least one path")
        paths = [os.fsdecode(one) for one in where]
        folders = [_folders_of(path) for path in paths]
        shared = [len(set(level)) == 1 for level in zip(*folders, strict=False)]
        start = shared.index(False) if False in shared else len(shared)
        return paths, [_values_of_folders(path, start) for path in paths]
    path = os.fsdecode(where)
    local = os.path.expanduser(path)
    if "://" in path or os.path.isfile(local):  # a url has no pattern: its "?" begins a query
        return [path], [{}]
    if os.path.isdir(local):
        suffixes = tuple(suffix for one in kinds for suffix in READERS[one].suffixes)
        found = [os.path.join(path, name) for name in _names_in(local, "" if kind else suffixes)]
        if not found:
            refuse_elsewhere(
                path, "x.zarr" if {".zarray", ".zgroup", "zarr.json"} & {*os.listdir(local)} else local
            )
            rows = [end for one in ("svmlight", "lda-c", "npz", "npy") for end in READERS[one].suffixes]
            way = (
                "; mn.sources.files(path, batch_size=n) gives batches of the rows in the files that are here"
            )
            raise MissingFileError(
                f"{path}: no file here can be read as one table; the suffixes are {', '.join(suffixes)}"
                f"{way if _names_in(local, tuple(rows)) else ''}"
            )
        return found, [_values_of_folders(one, len(_parts_of(path))) for one in found]
    if not glob.has_magic(path):
        return [path], [{}]  # opening it raises the error
    found = sorted(glob.glob(local))
    if not found:
        raise MissingFileError(f"{path}: no file matches the pattern{near_file(local)}")
    fixed = next(place for place, part in enumerate(_parts_of(local)) if glob.has_magic(part))
    return found, [_values_of_folders(one, fixed) for one in found]


def _names_in(folder: str, suffixes: str | tuple[str, ...]) -> list[str]:
    # The files of a folder, and of folders in it that are named by keys, as paths from there.
    found = []
    for name in sorted(name for name in os.listdir(folder) if not name.startswith(".")):
        path = os.path.join(folder, name)
        if _KEY.fullmatch(name) and os.path.isdir(path):
            found += [os.path.join(name, one) for one in _names_in(path, suffixes)]
        elif name.lower().endswith(suffixes):
            found.append(name)
    return found


def _parts_of(path: str) -> list[str]:
    # However many slashes are between them, or at the end.
    return [one for one in path.replace(os.sep, "/").split("/") if one not in ("", ".")]


def _folders_of(path: str) -> list[str]:
    return _parts_of(path)[:-1]


def _values_of_folders(path: str, start: int) -> dict[str, str | None]:
    keys = [one.partition("=")[::2] for one in _folders_of(path)[start:] if _KEY.fullmatch(one)]
    return {unquote(key): None if value == _NO_VALUE else unquote(value) for key, value in keys}

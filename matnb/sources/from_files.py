"""Sources of files: each is read from its beginning, some rows at a time, and batches go on across them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import IO, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from matnb.blocks.formats import Dense, to_numpy, to_scipy
from matnb.errors import ColumnError, FileContentWarning, OptionError, ShapeError, suggestion, warn
from matnb.io.arrow_files import ArrowTable
from matnb.io.columns import ColumnValues, TablePart, TableSource
from matnb.io.files import File, find_file
from matnb.io.folders import Where, keyed_paths
from matnb.io.npy import Npy, NpyHeader
from matnb.io.npz import Archive, fill_from, open_archive
from matnb.io.pairs import Pairs
from matnb.io.source import READERS, Source, open_source
from matnb.sources.batches import BatchSource
from matnb.sources.from_memory import drawn_from
from matnb.sources.rows import Demand, RowPart, Series, Values, check_finite

SLAB_BYTES = 1 << 23  # that are read at once
BLOCK_BYTES = 1 << 20  # of a table's rows that are written at once
Slab: TypeAlias = tuple[Values, Values | None]


class FileRows(ABC):
    """The rows of one file.

    Attributes
    ----------
    file
        The version of it that is read, and no other.
    width, num_rows
        Columns of X, and rows; None where only reading tells.
    """

    def __init__(self, file: File, width: int | None, num_rows: int | None) -> None:
        self.file, self.width, self.num_rows = file, width, num_rows

    @abstractmethod
    def slabs(self, wanted: Demand) -> Iterator[Slab]:
        """Yield X and y, some rows at a time."""


class _NpyRows(FileRows):
    """A matrix of .npy, of which one column may be the target."""

    def __init__(self, source: Npy, target: str | int | None) -> None:
        shape = source.header.shape
        if len(shape) != 2:
            raise source.file.error(f"has shape {shape}: rows and features are two axes")
        if isinstance(target, str):
            raise OptionError(
                f"target={target!r}: the columns of {source.file.shown} have no names; give a number"
            )
        if target is not None and not -shape[1] <= target < shape[1]:
            raise OptionError(f"target={target}: {source.file.shown} has {shape[1]} columns")
        super().__init__(source.file, shape[1] - (target is not None), shape[0])
        self._source, self._target = source, target

    def slabs(self, wanted: Demand) -> Iterator[Slab]:
        source = self._source
        num_rows, width = source.header.shape
        context, (piece,) = source.merge([None]), source.pieces(1)
        step = max(1, SLAB_BYTES // max(1, width * source.dtype.itemsize))
        for start, stop in _ranges(num_rows, step, wanted):
            found = source.part(piece, context, ((start, stop), (0, width)))
            values = np.empty((stop - start, 0), source.dtype) if found is None else found.values
            if self._target is None:
                yield values, None
            else:
                yield np.delete(values, self._target, axis=1), values[:, self._target]


class _NpzRows(FileRows):
    """Members X and y of a .npz file, or SciPy's rows of a sparse matrix and a member y beside them."""

    def __init__(self, archive: Archive) -> None:
        self._is_sparse = "X" not in archive.names
        if self._is_sparse:
            rows, width = archive.facts("shape")
        else:
            header = archive.header("X")
            if len(header.shape) != 2 or header.fortran:
                order = " in Fortran's order" if header.fortran else ""
                raise archive.file.error(f"member 'X' of shape {header.shape}{order}: give rows by features")
            rows, width = header.shape
        self._has_targets = "y" in archive.names
        if self._has_targets:
            shape = archive.header("y").shape
            if not shape or shape[0] != rows or archive.header("y").fortran:
                raise archive.file.error(f"member 'y' of shape {shape} for {rows} rows")
        super().__init__(archive.file, width, rows)

    def slabs(self, wanted: Demand) -> Iterator[Slab]:
        with ExitStack() as stack:
            archive = stack.enter_context(open_archive(self.file))
            targets = stack.enter_context(archive.opened("y")) if self._has_targets else None
            rows = self._sparse_rows if self._is_sparse else self._dense_rows
            for X in rows(archive, stack, wanted):
                yield X, None if targets is None else self._filled(*targets, X.shape[0])

    def _dense_rows(self, archive: Archive, stack: ExitStack, wanted: Demand) -> Iterator[Values]:
        header, stream = stack.enter_context(archive.opened("X"))
        assert self.num_rows is not None
        step = max(1, SLAB_BYTES * self.num_rows // max(1, header.num_bytes))
        for start, stop in _ranges(self.num_rows, step, wanted):
            yield self._filled(header, stream, stop - start)

    def _sparse_rows(self, archive: Archive, stack: ExitStack, wanted: Demand) -> Iterator[Values]:
        assert self.num_rows is not None
        assert self.width is not None
        pointers = archive.indices("indptr").astype(np.int64)
        data = stack.enter_context(archive.opened("data"))
        indices = stack.enter_context(archive.opened("indices"))
        if (
            pointers.size != self.num_rows + 1
            or pointers[0] != 0
            or bool((pointers[1:] < pointers[:-1]).any())
            or data[0].shape != indices[0].shape
            or data[0].shape != (pointers[-1],)
        ):
            raise self.file.error("members do not fit together: pointers, indices and values")
        row_bytes = (data[0].num_bytes + indices[0].num_bytes) // max(1, self.num_rows)
        for start, stop in _ranges(self.num_rows, SLAB_BYTES // max(1, row_bytes), wanted):
            count = int(pointers[stop] - pointers[start])
            columns, values = self._filled(*indices, count), self._filled(*data, count)
            if count and (columns.min() < 0 or columns.max() >= self.width):
                raise self.file.error(f"an index that is not in 0 to {self.width - 1}")
            yield _rows_of(values, columns, pointers[start : stop + 1], self.width)

    def _filled(self, header: NpyHeader, stream: IO[bytes], rows: int) -> npt.NDArray[np.generic]:
        # The next elements of a member, in this machine's byte order.
        values = np.empty((rows, *header.shape[1:]), header.dtype)
        room = values.reshape(-1).view(np.uint8)
        have = fill_from(stream, room)
        if have < room.size:
            raise self.file.error(f"a member ends {room.size - have} bytes early")
        return values.astype(header.dtype.newbyteorder("="), copy=False)


class _TableRows(FileRows):
    """Columns of a CSV or Parquet table, the target last among them if there is one."""

    def __init__(self, source: TableSource, has_target: bool) -> None:
        rows = sum(source.heights) if isinstance(source, ArrowTable) else None
        super().__init__(source.file, len(source.picked) - has_target, rows)
        bad = [
            name
            for name, kind in zip(source.read_names, source.kinds, strict=True)
            if kind.word not in ("bool", "number", "null")
        ]
        if bad:
            good = ", ".join(repr(name) for name in source.read_names if name not in bad)
            raise source.file.error(f"column {bad[0]!r} is not numeric; columns=[{good}] reads the others")
        self._source, self._has_target = source, has_target

    def slabs(self, wanted: Demand) -> Iterator[Slab]:
        # Columns are written where the rows wanted next will lie, so that slabs need not be joined after.
        slab, filled, seen = np.empty((0, 0)), 0, 0
        target = np.empty(0)
        for part in self._parts():
            start = 0
            while start < part.num_rows:
                if not filled:
                    rows = self._rows_at_once(part.num_rows - start, seen, wanted)
                    slab, target = np.empty((rows, self.width or 0)), np.empty(rows)
                count = min(part.num_rows - start, len(slab) - filled)
                cut, room = slice(start, start + count), slice(filled, filled + count)
                features = part.columns[:-1] if self._has_target else part.columns
                _fill_rows(slab[room], [_cut(one, cut) for one in features])
                if self._has_target:
                    _fill_rows(target[room, None], [_cut(part.columns[-1], cut)])
                start, filled, seen = start + count, filled + count, seen + count
                if filled == len(slab):
                    yield slab, target if self._has_target else None
                    filled = 0

    def _parts(self) -> Iterator[TablePart]:
        # From the beginning on: only rows before it tell whether a byte of text is inside quotes.
        for piece in self._source.pieces(1):
            yield from self._source.parts(piece)

    def _rows_at_once(self, parsed: int, seen: int, wanted: Demand) -> int:
        # What fills up before the file ends: those of one part where it is not known how many there are.
        if self.num_rows is None or wanted.rows is None:
            return parsed
        return max(1, min(wanted.rows, self.num_rows - seen))


def _cut(column: ColumnValues, rows: slice) -> ColumnValues:
    missing = None if column.missing is None else column.missing[rows]
    return replace(column, values=column.values[rows], missing=missing)


def _fill_rows(rows: npt.NDArray[np.float64], columns: Sequence[ColumnValues]) -> None:
    # Some rows at a time, which stay in the cache while one column after the other is written into them.
    step = max(64, BLOCK_BYTES // (8 * max(1, len(columns))))
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        for place, column in enumerate(columns):
            rows[block, place] = column.values[block]
    for place, column in enumerate(columns):
        if column.missing is not None:
            rows[column.missing, place] = np.nan


class _PairRows(FileRows):
    """Rows of svmlight or LDA-C; ``width`` and ``base`` are set once all files of a source have them."""

    def __init__(self, source: Pairs) -> None:
        known = source.n_features is not None and source.zero_based != "auto"
        super().__init__(source.file, source.n_features if known else None, None)
        self.source = source
        self.base = source.base_of([]) if known else 0

    def look(self) -> tuple[int, int]:
        """Read the file through; returns the lowest and the highest index."""
        source = self.source
        facts = [source.summary(source.parse(piece)) for piece in source.pieces(_count_of(self.file))]
        return min(one.lowest for one in facts), max(one.highest for one in facts)

    def slabs(self, wanted: Demand) -> Iterator[Slab]:
        source = self.source
        assert self.width is not None
        for piece in source.pieces(_count_of(self.file)):
            lines = source.parse(piece)
            columns = lines.indices - np.int32(self.base)
            if columns.size and int(columns.max()) >= self.width:
                raise self.file.error(
                    f"index {int(columns.max()) + self.base} is beyond {self.width} columns"
                )
            pointers = np.concatenate([[0], np.cumsum(lines.counts)])
            X = _rows_of(lines.values, columns, pointers, self.width)
            X.sum_duplicates()
            yield X, None if source.documents else lines.heads


class _WholeRows(FileRows):
    """A matrix of another kind, read as a whole."""

    def __init__(self, file: File, source: Source) -> None:
        super().__init__(file, None, None)
        self._source = source

    def slabs(self, wanted: Demand) -> Iterator[Slab]:
        source = self._source
        parsed = [source.parse(piece) for piece in source.pieces(1)]
        context = source.merge([source.summary(one) for one in parsed])
        shape = context.found.shape
        if len(shape) != 2:
            raise self.file.error(f"has shape {shape}: rows and features are two axes")
        region = ((0, shape[0]), (0, shape[1]))
        block = source.assemble([source.part(one, context, region) for one in parsed], context, region)
        yield to_numpy(block) if isinstance(block, Dense) else to_scipy(block), None


def _rows_of(
    values: npt.NDArray[np.generic],
    columns: npt.NDArray[np.generic],
    pointers: npt.NDArray[np.int64],
    width: int,
) -> sp.csr_array:
    # Indices of one width: SciPy would copy all of them to the wider one.
    index = np.int32 if columns.dtype.itemsize <= 4 else np.int64
    counted = (pointers - pointers[0]).astype(index)
    indices = columns.astype(index, copy=False)
    return sp.csr_array((values, indices, counted), shape=(len(pointers) - 1, width))


def _ranges(length: int, step: int, wanted: Demand) -> Iterator[tuple[int, int]]:
    # Of rows that are read at once: as many as are wanted, where that is known.
    start = 0
    while start < length:
        stop = min(length, start + max(1, step if wanted.rows is None else wanted.rows))
        yield start, stop
        start = stop


def _count_of(file: File) -> int:
    return max(1, file.size // SLAB_BYTES)


class _Files(Series):
    """Rows of files, one after the other."""

    def __init__(self, files: Sequence[FileRows]) -> None:
        self._files = tuple(files)
        self._check_widths()

    def __repr__(self) -> str:
        first = self._files[0].file
        return f"{first!r}" if len(self._files) == 1 else f"{len(self._files)} files from {first!r} on"

    @property
    def num_rows(self) -> int | None:
        rows = [one.num_rows for one in self._files]
        return sum(one for one in rows if one is not None) if None not in rows else None

    def _check_widths(self) -> None:
        first, *others = self._files
        for one in others:
            if first.width is not None and one.width is not None and one.width != first.width:
                raise ShapeError(
                    f"{one.file.shown} has {one.width} columns where {first.file.shown} has {first.width}: "
                    "all rows of a source have one width"
                )

    def _settle(self) -> None:
        # Of rows without a header nobody knows how many columns there are before all were read.
        unknown = [one for one in self._files if isinstance(one, _PairRows) and one.width is None]
        if not unknown:
            return
        looks = [one.look() for one in unknown]
        lowest, highest = min(low for low, _ in looks), max(high for _, high in looks)
        for one in unknown:
            base = int(lowest > 0) if one.source.zero_based == "auto" else one.source.base_of([])
            one.base, one.width = base, one.source.n_features
            if one.width is None:
                one.width = max(0, highest + 1 - base)
        self._check_widths()

    def parts(self, order: np.random.Generator | None, wanted: Demand) -> Iterator[RowPart]:
        self._settle()
        numbers = np.arange(len(self._files))
        for number in numbers if order is None else order.permutation(numbers):
            rows, first = self._files[number], 0
            for X, y in rows.slabs(wanted):
                part = RowPart(X, y, first, str(rows.file.shown))
                check_finite(part)
                # Counted from the file's number on, so that rows of small files are held out too.
                yield RowPart(X, y, first + int(number), part.where)
                first += len(part)


def files(
    where: Where,
    *,
    batch_size: int,
    target: str | int | None = None,
    kind: str | None = None,
    shuffle: bool = False,
    seed: int = 0,
    **options: object,
) -> BatchSource:
    """Return a source of the rows of files; nothing but headers is read until a batch is needed.

    A thread in this process reads the files, some rows at a time, so they may be larger than memory.

    Parameters
    ----------
    where
        A file, a folder (its files of known kinds), a pattern such as ``"tweets/*.npz"``, both in the order
        of names, or a list of files or urls in the order they are read. ``.npz`` (members X and y, or what
        ``scipy.sparse.save_npz`` writes, with a member y if one is added), ``.npy``, ``.csv``, ``.parquet``,
        ``.svm``, ``.ldac``, and what else :func:`matnb.load` reads.
    batch_size
        Rows per batch; batches continue across files.
    target
        The column that is y: a name of a table, a number of a .npy file.
    kind
        As in :func:`matnb.load`, where a name's end does not say.
    shuffle, seed
        As in :func:`memory`: files are read in random order, and rows are shuffled within 64 batches.
    **options
        Of the reader, as in :func:`matnb.load`: ``columns=`` of tables, those of CSV; of svmlight and LDA-C
        ``n_features=``
        (and ``zero_based=``), without which everything is read once to find out.

    Raises
    ------
    MissingFileError
        If the file does not exist.
    OptionError
        For unknown kinds and options; at its batch for NaN or infinity, with file, row and column.
    ShapeError
        For files of unequal width: immediately, or at the batch where it is noticed.
    FileFormatError
        For a malformed file, or one that has changed since; at its batch.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> for day in range(2):
    ...     np.savez(f"day{day}.npz", X=np.full((3, 2), day), y=np.arange(3))
    >>> source = mn.sources.files("day*.npz", batch_size=4)
    >>> [(batch.X.shape, batch.y.compute().tolist()) for batch in source]
    [((4, 2), [0, 1, 2, 0]), ((2, 2), [1, 2])]
    """
    paths, keys = keyed_paths(where, kind, tuple(READERS))
    if any(keys):
        names = ", ".join(sorted({repr(name) for one in keys for name in one}))
        warn(
            f"the values of {names} in the names of folders are not read here; mn.load reads them as columns",
            FileContentWarning,
        )
    if len(paths) > 1 and options.get("nrows") is not None:
        raise OptionError(f"nrows={options['nrows']!r} is of one file: take the first batches of several")
    rows = [_opened(path, target, kind, options) for path in paths]
    return BatchSource(_Files(rows), batch_size, drawn_from(shuffle, seed))


def _opened(path: str, target: str | int | None, kind: str | None, options: dict[str, object]) -> FileRows:
    file = find_file(path)
    if kind == "npz" or (kind is None and file.name.lower().endswith(".npz")):
        file.check_readable()
        with open_archive(file) as archive:
            is_csr = "format" in archive.names and archive.word("format") == "csr"
            if "X" in archive.names or is_csr:
                _without(target, file)
                return _NpzRows(archive)
    source = open_source(path, kind=kind, **options)
    if isinstance(source, Npy):
        return _NpyRows(source, target)
    if isinstance(source, TableSource):
        if target is None:
            return _TableRows(source, False)
        names = [source.names[place] for place in source.picked]
        if not isinstance(target, str) or target not in source.names:
            near = suggestion(target, source.names)
            raise ColumnError(f"{file.shown}: no column {target!r} for target=; {near}")
        columns = [*(name for name in names if name != target), target]
        made = open_source(path, kind=kind, **{**options, "columns": columns})
        assert isinstance(made, TableSource)
        return _TableRows(made, True)
    _without(target, file)
    return _PairRows(source) if isinstance(source, Pairs) else _WholeRows(file, source)


def _without(target: str | int | None, file: File) -> None:
    if target is not None:
        raise OptionError(f"target={target!r}: {file.shown} is not a table; leave target= out")

"""Writing arrays to files block by block; a file appears whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy_format

from matnb.blocks.formats import Block, Csr, Dense, Empty, NumericArray, to_numpy
from matnb.blocks.grid import Grid, Region, region_shape
from matnb.errors import (
    DTypeError,
    MatnbError,
    MissingFileError,
    OptionError,
    ShapeError,
    WriteError,
    suggestion,
)
from matnb.io.edge_lines import EDGE_SUFFIXES, write_edges
from matnb.io.files import file_system, is_remote, local_path, suffix_of, upload
from matnb.io.npz import DENSE_VERSION, LABELS, MARK, VERSION
from matnb.io.temporary import temporary_folder
from matnb.location import Location

Fetch = Callable[[int], Block]
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # the same array gives the same file
_SPOOL_NUMBERS = 1 << 17  # read at once
_BATCH = 1 << 15  # lines of text made at once
_VALUE_WIDTH = 24  # of "-1.7976931348623157e+308"
_COUNT_WIDTH = 19
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write(
    path: str | os.PathLike[str],
    grid: Grid,
    dtype: np.dtype,
    sparse: bool,
    fetch: Fetch,
    labels: npt.NDArray[Any] | None = None,
) -> None:
    """Write an array; the suffix says how: ``.npy``, ``.npz`` (SciPy's if sparse), ``.mtx``, or an edge list.

    The file is written beside its place under another name and moved there when it is whole and on the disk;
    after an error or interrupt nothing is left. One block is held at a time; of a sparse ``.npz`` those that
    lie beside each other, as SciPy's has one row after the other.

    Parameters
    ----------
    path
        Where to write; a file that is there is replaced.
    grid, dtype, sparse
        Cuts, type and kind of the array.
    fetch
        Returns the block of a number, in the order of ``grid.indices()``.
    labels
        Of rows and columns, which ``.npz`` and edge lists keep.

    What goes to a url is written to a temporary folder first, and sent from there.

    Raises
    ------
    OptionError
        For a suffix that is not known, or not for this kind of array.
    MissingFileError
        When the folder is not there.
    WriteError
        When the system does not let the file be written, as on a full disk.
    """
    _, suffix = check_target(path)
    with written_whole(path) as stream:
        if suffix in EDGE_SUFFIXES:
            write_edges(stream, grid, dtype, sparse, fetch, labels)
        elif suffix == ".npz":
            _write_npz(stream, grid, dtype, sparse, fetch, labels)
        else:
            _WRITERS[suffix](stream, grid, dtype, sparse, fetch)


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a new file that takes its place, here or at a url, when all was written, and is gone otherwise.

    Raises
    ------
    OptionError, UnsupportedError, MissingFileError
        As :func:`check_target`.
    WriteError
        When the system does not let the file be written, as on a full disk.
    """
    target = checked_place(path)
    if not is_remote(target):
        with _written_here(path, target) as stream:
            yield stream
        return
    with temporary_folder() as folder:
        local = os.path.join(folder, "whole")
        with _written_here(path, local) as stream:
            yield stream
        upload(local, Location(target))


@contextmanager
def _written_here(path: str | os.PathLike[str], target: str) -> Iterator[IO[bytes]]:
    try:
        with _atomically(target) as stream:
            yield stream
    except MatnbError:  # of a block that could not be computed; some of these are OSErrors too
        raise
    except OSError as error:
        raise _write_error(path, target, error) from error


def check_target(path: str | os.PathLike[str]) -> tuple[str, str]:
    """Return where a path or url points and how it is to be written, before anything is computed for it.

    Raises
    ------
    OptionError
        For a suffix or protocol that is not known, or a directory.
    UnsupportedError
        When the url's protocol needs a package that is not installed.
    MissingFileError
        When the folder is not there.
    """
    suffix = suffix_of(path)
    if suffix not in (known := (*_WRITERS, ".npz", *EDGE_SUFFIXES)):
        shown = Location(os.fsdecode(path))
        way = f"; nx.write{suffix.replace('.', '_')}(mn.graph.to_networkx(A), path) writes a graph"
        raise OptionError(
            f"{shown}: cannot write files with suffix {suffix!r}; {suggestion(suffix, known)}"
            + way * (suffix in (".graphml", ".gexf", ".gml"))
        )
    return checked_place(path), suffix


def checked_place(path: str | os.PathLike[str]) -> str:
    """Return where a path or url points, if a file may be written; errors as :func:`check_target`."""
    given = os.fsdecode(path)
    shown = Location(given)
    if is_remote(given):
        file_system(shown)  # raises for a protocol that is not known
        return given
    target = os.path.abspath(os.path.expanduser(local_path(given)))
    if os.path.isdir(target):
        raise OptionError(f"{shown}: is a directory; give the name of a file")
    if not os.path.isdir(os.path.dirname(target)):
        raise MissingFileError(f"{shown}: there is no folder {os.path.dirname(target)}")
    return target


def _write_error(path: str | os.PathLike[str], target: str, error: OSError) -> WriteError:
    advice = "make room there, or save elsewhere" if error.errno in _NO_ROOM else "save elsewhere"
    kept = "; the file of that name is as it was" if os.path.exists(target) else ""
    found = WriteError(
        f"{Location(os.fsdecode(path))}: cannot be written: {error.strerror or error}: {advice}{kept}"
    )
    found.errno = error.errno
    return found


@contextmanager
def _atomically(target: str) -> Iterator[IO[bytes]]:
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(temporary, "x+b") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:  # an interrupt too must leave nothing
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    if hasattr(os, "O_DIRECTORY"):  # the name too is to be on the disk
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _write_npy(stream: IO[bytes], grid: Grid, dtype: np.dtype, sparse: bool, fetch: Fetch) -> None:
    if sparse:
        raise OptionError(
            ".npy holds dense arrays: save a sparse one as .npz or .mtx, or make it dense first"
        )
    header = {"shape": grid.shape, "fortran_order": False, "descr": npy_format.dtype_to_descr(dtype)}
    npy_format.write_array_header_1_0(stream, header)
    begin = stream.tell()
    # Not by a memory map, which ends the process where the disk is full.
    for number, region in enumerate(grid.regions()):
        values = np.ascontiguousarray(to_numpy(fetch(number)), dtype)
        if not values.size:
            continue
        starts = _run_starts(grid.shape, region)
        for start, run in zip(starts, values.reshape(len(starts), -1), strict=True):
            stream.seek(begin + start * dtype.itemsize)
            stream.write(run.data)


def _run_starts(shape: tuple[int, ...], region: Region) -> npt.NDArray[np.int64]:
    # Where, counted in elements, the runs of a region begin that lie in one piece in the file: the last axes
    # that the region spans whole, and its part of the axis before them.
    outer = len(shape) - 1
    while outer > 0 and region[outer] == (0, shape[outer]):
        outer -= 1
    starts = np.zeros(1, np.int64)
    for axis, ((start, stop), length) in enumerate(zip(region, shape, strict=True)):
        places = np.arange(start, stop if axis < outer else start + 1)
        starts = (starts[:, None] * length + places).ravel()
    return starts


def _write_npz(
    stream: IO[bytes],
    grid: Grid,
    dtype: np.dtype,
    sparse: bool,
    fetch: Fetch,
    labels: npt.NDArray[Any] | None,
) -> None:
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        members = _Members(archive, os.path.dirname(str(stream.name)))
        if labels is not None:
            members.add(LABELS, labels)
        if sparse:
            members.add(MARK, VERSION)
            _write_rows(members, grid, dtype, fetch)
            return
        members.add(MARK, DENSE_VERSION)
        members.add("sparse", False)
        members.add("dtype", np.bytes_(dtype.str))
        for axis, cuts in enumerate(grid.cuts):
            members.add(f"cuts_{axis}", np.array(cuts, np.int64))
        counts = []
        for number in range(grid.num_blocks):
            block = fetch(number)
            if not isinstance(block, Dense):
                raise DTypeError(f"block {number} is {type(block).__name__} in a dense array")
            counts.append(block.nnz)
            members.add(f"block_{number}", block.values.astype(dtype, copy=False))
        members.add("pattern", False)
        members.add("nnz", np.array(counts, np.int64))


class _Members:
    """The members of a .npz that is written, each a .npy."""

    def __init__(self, archive: zipfile.ZipFile, folder: str) -> None:
        self._archive, self.folder = archive, folder

    def add(self, name: str, values: npt.ArrayLike) -> None:
        """Write an array."""
        with self._opened(name, zipfile.ZIP_STORED) as part:
            npy_format.write_array(part, np.asanyarray(values), allow_pickle=False)

    def add_long(self, name: str, values: _Spool, dtype: np.dtype, is_packed: bool = False) -> None:
        """Write the numbers that were put aside."""
        header = {"shape": (values.count,), "fortran_order": False, "descr": npy_format.dtype_to_descr(dtype)}
        with self._opened(name, zipfile.ZIP_DEFLATED if is_packed else zipfile.ZIP_STORED) as part:
            npy_format.write_array_header_1_0(part, header)
            for piece in values.pieces():
                part.write(piece.astype(dtype, copy=False).data)

    def _opened(self, name: str, packing: int) -> IO[bytes]:
        member = zipfile.ZipInfo(f"{name}.npy", _ZIP_TIME)
        member.compress_type = packing
        return self._archive.open(member, "w", force_zip64=True)


class _Spool:
    """Numbers put aside in a file without a name, until it is known how many there are."""

    def __init__(self, folder: str, dtype: npt.DTypeLike) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  closed by __exit__
        self._dtype, self.count = np.dtype(dtype), 0

    def __enter__(self) -> _Spool:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def put(self, values: npt.NDArray[np.generic]) -> None:
        """Put some aside."""
        self._file.write(np.ascontiguousarray(values, self._dtype).data)
        self.count += values.size

    def pieces(self) -> Iterator[npt.NDArray[np.generic]]:
        """Yield them in order."""
        self._file.seek(0)
        while data := self._file.read(_SPOOL_NUMBERS * self._dtype.itemsize):
            yield np.frombuffer(data, self._dtype)


def _write_rows(members: _Members, grid: Grid, dtype: np.dtype, fetch: Fetch) -> None:
    # As scipy.sparse.save_npz does. Beside that stand where rows were cut, and checksums of the entries
    # between, so that workers read and check them side by side.
    num_columns, pattern = len(grid.cuts[1]) - 1, True
    sums: list[tuple[int, int]] = []
    folder = members.folder
    with (
        _Spool(folder, np.int64) as pointers,
        _Spool(folder, np.int32) as columns,
        _Spool(folder, dtype) as values,
    ):
        pointers.put(np.zeros(1, np.int64))
        for band in range(len(grid.cuts[0]) - 1):
            blocks = [fetch(band * num_columns + place) for place in range(num_columns)]
            counts, found, entries = _rows_of_band(blocks, grid.cuts[1])
            pattern &= entries is None
            ones = np.ones(found.size, dtype) if entries is None else entries.astype(dtype, copy=False)
            pointers.put(columns.count + np.cumsum(counts))
            columns.put(found)
            values.put(ones)
            sums.append((zlib.crc32(found.data), zlib.crc32(np.ascontiguousarray(ones).data)))
        index = np.dtype(np.int32 if columns.count < 2**31 else np.int64)
        members.add("format", np.bytes_("csr"))
        members.add("_is_array", True)
        members.add("shape", np.array(grid.shape, np.int64))
        members.add("pattern", pattern)
        members.add("cuts_0", np.array(grid.cuts[0], np.int64))
        members.add("sums", np.array(sums, np.int64).ravel())
        members.add_long("indptr", pointers, index)
        members.add_long("indices", columns, np.dtype(np.int32))
        members.add_long("data", values, dtype, is_packed=pattern)


def _rows_of_band(
    blocks: Sequence[Block], cuts: Sequence[int]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.generic] | None]:
    # How many entries each row of a band has, their columns, and their values; None where all are ones.
    parts = [(block, start) for block, start in zip(blocks, cuts, strict=False) if isinstance(block, Csr)]
    for block in blocks:
        if not isinstance(block, Csr | Empty):
            raise DTypeError(f"a block is {type(block).__name__} in a sparse array")
    num_rows = blocks[0].shape[0]
    counts = np.zeros(num_rows, np.int64)
    for block, _ in parts:
        counts += np.diff(block.pointers)
    if not parts:
        return counts, np.empty(0, np.int32), None
    columns = np.concatenate([(block.columns + np.int64(start)).astype(np.int32) for block, start in parts])
    has_values = any(block.values is not None for block, _ in parts)
    values = np.concatenate([block.entries for block, _ in parts]) if has_values else None
    if len(parts) > 1:
        rows = [np.repeat(np.arange(num_rows, dtype=np.int32), np.diff(block.pointers)) for block, _ in parts]
        order = np.argsort(np.concatenate(rows), kind="stable")
        columns, values = columns[order], None if values is None else values[order]
    return counts, columns, values


def _write_mtx(stream: IO[bytes], grid: Grid, dtype: np.dtype, sparse: bool, fetch: Fetch) -> None:
    if grid.ndim != 2:
        raise ShapeError(
            f"an array with {grid.ndim} axes: a Matrix Market file holds a matrix; save it as .npy or .npz"
        )
    if not sparse:
        _write_dense_mtx(stream, grid, dtype, fetch)
    elif not _write_sparse_mtx(stream, grid, dtype, fetch, pattern=True):
        stream.seek(0)
        stream.truncate()
        _write_sparse_mtx(stream, grid, dtype, fetch, pattern=False)


def _write_sparse_mtx(stream: IO[bytes], grid: Grid, dtype: np.dtype, fetch: Fetch, pattern: bool) -> bool:
    # False, and nothing of use written, when a block has values after blocks that have none.
    field, total, style = _field(dtype), 0, f"%d %d {' '.join(_styles(dtype))}\n"
    begin = None
    for number, region in enumerate(grid.regions()):
        block = fetch(number)
        if not isinstance(block, Csr):
            continue
        if begin is None:
            pattern = pattern and block.values is None
            begin = _write_sparse_head(stream, "pattern" if pattern else field, grid)
        if pattern and block.values is not None:
            return False
        rows = np.repeat(np.arange(region[0][0] + 1, region[0][1] + 1), np.diff(block.pointers))
        columns = block.columns + np.int64(region[1][0] + 1)
        for start in range(0, block.nnz, _BATCH):
            part = slice(start, start + _BATCH)
            positions = rows[part].tolist(), columns[part].tolist()
            if pattern:
                lines = [f"{row} {column}\n" for row, column in zip(*positions, strict=True)]
            else:
                numbers = _numbers(block.entries[part])
                lines = [style % entry for entry in zip(*positions, *numbers, strict=True)]
            stream.write("".join(lines).encode())
        total += block.nnz
    if begin is None:
        begin = _write_sparse_head(stream, field, grid)
    stream.seek(begin)  # the count is known now
    stream.write(b"%*d" % (_COUNT_WIDTH, total))
    return True


def _write_sparse_head(stream: IO[bytes], field: str, grid: Grid) -> int:
    rows, columns = grid.shape
    stream.write(f"%%MatrixMarket matrix coordinate {field} general\n{rows} {columns} ".encode())
    begin = stream.tell()
    stream.write(b" " * _COUNT_WIDTH + b"\n")
    return begin


def _write_dense_mtx(stream: IO[bytes], grid: Grid, dtype: np.dtype, fetch: Fetch) -> None:
    # Every value takes the same room, so that a block can be written into its place of each column.
    num_rows, num_columns = grid.shape
    stream.write(f"%%MatrixMarket matrix array {_field(dtype)} general\n{num_rows} {num_columns}\n".encode())
    begin, styles = stream.tell(), _styles(dtype)
    width = (_VALUE_WIDTH + 1) * len(styles)
    style = " ".join(one.replace("%", f"%-{_VALUE_WIDTH}") for one in styles) + "\n"
    for number, region in enumerate(grid.regions()):
        values = to_numpy(fetch(number))
        (top, _), (left, _) = region
        for column in range(region_shape(region)[1]):
            stream.seek(begin + ((left + column) * num_rows + top) * width)
            for start in range(0, values.shape[0], _BATCH):
                numbers = _numbers(values[start : start + _BATCH, column])
                stream.write("".join([style % value for value in zip(*numbers, strict=True)]).encode())


def _field(dtype: np.dtype) -> str:
    return {"f": "real", "c": "complex", "u": "unsigned-integer"}.get(dtype.kind, "integer")


def _styles(dtype: np.dtype) -> tuple[str, ...]:
    # How the numbers of one value are written.
    return {"f": ("%.17g",), "c": ("%.17g", "%.17g")}.get(dtype.kind, ("%d",))


def _numbers(values: NumericArray) -> list[list[object]]:
    return [part.tolist() for part in ((values.real, values.imag) if values.dtype.kind == "c" else (values,))]


_WRITERS = {".npy": _write_npy, ".mtx": _write_mtx}

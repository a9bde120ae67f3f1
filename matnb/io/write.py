"""Writing arrays to files block by block; a file appears whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO

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
from matnb.io.files import file_system, is_remote, local_path, suffix_of, upload
from matnb.io.npz import MARK, VERSION
from matnb.io.temporary import temporary_folder
from matnb.location import Location

Fetch = Callable[[int], Block]
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # the same array gives the same file
_BATCH = 1 << 15  # lines of text made at once
_VALUE_WIDTH = 24  # of "-1.7976931348623157e+308"
_COUNT_WIDTH = 19
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write(path: str | os.PathLike[str], grid: Grid, dtype: np.dtype, sparse: bool, fetch: Fetch) -> None:
    """Write an array; the suffix says how: ``.npy`` (dense), ``.npz`` (matnb's own) or ``.mtx``.

    The file is written beside its place under another name and moved there when it is whole and on the disk;
    after an error or interrupt nothing is left. One block is held at a time.

    Parameters
    ----------
    path
        Where to write; a file that is there is replaced.
    grid, dtype, sparse
        Cuts, type and kind of the array.
    fetch
        Returns the block of a number, in the order of ``grid.indices()``.

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
    if suffix not in _WRITERS:
        shown = Location(os.fsdecode(path))
        raise OptionError(
            f"{shown}: cannot write files with suffix {suffix!r}; {suggestion(suffix, _WRITERS)}"
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


def _write_npz(stream: IO[bytes], grid: Grid, dtype: np.dtype, sparse: bool, fetch: Fetch) -> None:
    counts, pattern = [], sparse
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:

        def member(name: str, values: npt.ArrayLike) -> None:
            with archive.open(zipfile.ZipInfo(f"{name}.npy", _ZIP_TIME), "w", force_zip64=True) as part:
                npy_format.write_array(part, np.asanyarray(values), allow_pickle=False)

        member(MARK, VERSION)
        member("sparse", sparse)
        member("dtype", np.bytes_(dtype.str))
        for axis, cuts in enumerate(grid.cuts):
            member(f"cuts_{axis}", np.array(cuts, np.int64))
        for number in range(grid.num_blocks):
            block = fetch(number)
            counts.append(block.nnz)
            match block:
                case Dense(values) if not sparse:
                    member(f"block_{number}", values.astype(dtype, copy=False))
                case Csr(_, pointers, columns, values, _) if sparse:
                    member(f"block_{number}_pointers", pointers)
                    member(f"block_{number}_columns", columns)
                    if values is not None:
                        pattern = False
                        member(f"block_{number}_values", values.astype(dtype, copy=False))
                case Empty() if sparse:
                    pass
                case _:
                    raise DTypeError(
                        f"block {number} is {type(block).__name__} in an array with sparse={sparse}"
                    )
        member("pattern", pattern)
        member("nnz", np.array(counts, np.int64))


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
    return {"f": "real", "c": "complex"}.get(dtype.kind, "integer")


def _styles(dtype: np.dtype) -> tuple[str, ...]:
    # How the numbers of one value are written.
    return {"f": ("%.17g",), "c": ("%.17g", "%.17g")}.get(dtype.kind, ("%d",))


def _numbers(values: NumericArray) -> list[list[object]]:
    return [part.tolist() for part in ((values.real, values.imag) if values.dtype.kind == "c" else (values,))]


_WRITERS = {".npy": _write_npy, ".npz": _write_npz, ".mtx": _write_mtx}

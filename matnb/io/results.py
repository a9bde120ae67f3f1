"""Results as files, which are read without executing anything, in a folder that only this user writes to."""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import stat
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from hmac import compare_digest
from io import BufferedReader
from math import prod
from typing import IO, Any, TypeVar

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import LARGEST_LENGTH, SPARSE_DTYPES, Block, Csr, Dense, Empty
from matnb.blocks.grid import Grid, Region, region_shape
from matnb.errors import DTypeError, FileFormatError, MatnbError, OptionError, warn
from matnb.pictures.quantities import bytes_text
from matnb.version import VERSION as MATNB

KEY_BYTES = 32
_KEY_NAME = "results.key"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_MOST_LINKS = 40  # as the system follows


def make_folder(folder: str) -> None:
    """Make a folder that is not there, and those above it, so that only this user can write to them.

    Python's makedirs gives its mode to the last folder alone, so that where new files are the group's, those
    above it would be refused.

    Raises
    ------
    OSError
        When it cannot be made, or is not a folder.
    """
    missing, path = [], os.path.abspath(folder)
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for each in reversed(missing):
        try:
            os.mkdir(each, 0o700)
        except FileExistsError:  # made by another process meanwhile, or no folder
            if not os.path.isdir(each):
                raise


def folder_problem(folder: str) -> str | None:
    """Return who else could put files into a folder, and the command that mends it; None if nobody.

    All folders above are looked at, and all links on the way: who can move one of them can put another in
    its place. That of a folder where all may write and none may move what is another's (``/tmp``) is fine.

    Raises
    ------
    OSError
        When the folder is not there, or cannot be looked at.
    """
    if not hasattr(os, "geteuid"):
        return None
    path = os.path.abspath(folder)
    found = os.stat(path)
    if found.st_uid != os.geteuid():
        return f"it belongs to {_user(found.st_uid)}: give a folder of yours, or chown it to you"
    if found.st_mode & _OTHERS_WRITE:
        return (
            f"others may write to it (mode {_mode(found)}): chmod go-w {shlex.quote(os.path.realpath(path))}"
        )
    for step in _way_to(path):
        status = os.lstat(step)
        own = status.st_uid in (0, os.geteuid()) or step == os.sep
        if not own:
            return f"{step}, on the way to it, belongs to {_user(status.st_uid)}: give a folder elsewhere"
        shared = status.st_mode & _OTHERS_WRITE and not status.st_mode & stat.S_ISVTX
        if stat.S_ISDIR(status.st_mode) and shared:
            return (
                f"others may write to {step} (mode {_mode(status)}), above it: chmod go-w {shlex.quote(step)}"
            )
    return None


def file_problem(path: str, found: os.stat_result) -> str | None:
    """Return why a file is not one that this user alone wrote, or None."""
    if not stat.S_ISREG(found.st_mode) or (hasattr(os, "geteuid") and found.st_uid != os.geteuid()):
        return "is not a plain file of yours"
    if os.name == "posix" and found.st_mode & _OTHERS_WRITE:
        return f"may be written by others (mode {_mode(found)}): chmod go-w {shlex.quote(path)}"
    return None


def result_key(folder: str, option: str) -> bytes:
    """Return the key in a folder; drawn when there is none yet, by whichever process comes first.

    Parameters
    ----------
    option
        What it is needed for, which errors begin with.

    Raises
    ------
    OptionError
        When there can be none, or others can read or write it.
    """
    path = os.path.join(folder, _KEY_NAME)
    try:
        make_folder(folder)
        problem = folder_problem(folder)
        if problem is not None:
            raise OptionError(f"{option}: the folder of the key of your results, {folder}: {problem}")
        if not os.path.lexists(path):
            _draw(folder, path)
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, "rb") as stream:
            found = os.fstat(descriptor)
            key = stream.read(KEY_BYTES + 1)
    except OSError as error:
        raise OptionError(
            f"{option}: the key of your results cannot be kept in {path} ({error.strerror or error}); "
            "XDG_DATA_HOME names another place"
        ) from None
    problem = file_problem(path, found)
    if problem is None and os.name == "posix" and found.st_mode & 0o077:
        problem = f"may be read by others (mode {_mode(found)})"
    if problem is None and len(key) != KEY_BYTES:
        problem = f"has {len(key)} bytes, and should have {KEY_BYTES}"
    if problem is not None:
        raise OptionError(
            f"{option}: the key of your results, {path}, {problem}; rm {shlex.quote(path)} makes matnb "
            "create a new one; results are then computed again"
        )
    return key


def _draw(folder: str, path: str) -> None:
    # Written whole before it has its name, and the name is given once: two processes have the same key.
    temporary = os.path.join(folder, f".{secrets.token_hex(8)}.tmp")
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(secrets.token_bytes(KEY_BYTES))
        try:
            os.link(temporary, path)
        except FileExistsError:
            return
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)


def _way_to(path: str) -> Iterator[str]:
    # Each folder and link that is passed, those that links lead through too.
    waiting, seen = [path], set()
    num_links = 0
    while waiting:
        step = waiting.pop()
        if step in seen:
            continue
        seen.add(step)
        yield step
        if (above := os.path.dirname(step)) != step:
            waiting.append(above)
        if os.path.islink(step) and num_links < _MOST_LINKS:
            num_links += 1
            waiting.append(os.path.normpath(os.path.join(os.path.realpath(above), os.readlink(step))))


def _user(number: int) -> str:
    return "root" if number == 0 else f"user {number}"


def _mode(found: os.stat_result) -> str:
    return f"{stat.S_IMODE(found.st_mode):04o}"


# The checksums are made with a key of the user's, so that nobody else can make a file that is believed.
# The file: a head of fixed size (mark, version, begin, length and checksum of the table), then the arrays of
# each block in the order of Grid.indices(), little-endian, then the table. A dense block is its elements; a
# sparse one its pointers and columns (int32) and, unless it is a pattern, its values; an empty one nothing.


Fetch = Callable[[int], Block]
_MARK, _VERSION = b"\x93matnb\r\n", 3  # files of version 2 may hold wrong values (decision 0060)
_HEAD = struct.Struct("<8sIQQ16s")
_LARGEST_TABLE = 16 * 10**6  # bytes: some 100,000 blocks
_TABLE, _BLOCK = b"matnb table", b"matnb block"  # so that the checksum of a block is that of no table
_INDEX = np.dtype("<i4")
_DTYPES = frozenset(["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"])
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True)
class About:
    """What is known of a result.

    Attributes
    ----------
    digest
        Of its expression.
    text
        How it was made, for a user.
    seconds
        What it would cost to make again.
    """

    digest: bytes
    grid: Grid
    dtype: np.dtype
    sparse: bool
    text: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class _ResultPiece:
    # Of one block: kind, stored entries, where its bytes are, and their checksum.
    kind: str
    nnz: int
    begin: int
    num_bytes: int
    checksum: str


@dataclass(frozen=True, eq=False)
class Result:
    """An open file of a result, whose table has been checked; made by :func:`opened_result`."""

    about: About
    num_bytes: int
    _path: str
    _stream: BufferedReader
    _regions: tuple[Region, ...]
    _pieces: tuple[_ResultPiece, ...]
    _key: bytes

    def sizes(self) -> tuple[int, ...]:
        """Return the bytes of each block."""
        return tuple(piece.num_bytes for piece in self._pieces)

    def block(self, number: int) -> Block:
        """Return one block, checked.

        Raises
        ------
        FileFormatError
            When its bytes are not those that were written.
        """
        piece, shape = self._pieces[number], region_shape(self._regions[number])
        data = bytearray(piece.num_bytes)  # no more than the file has
        self._stream.seek(piece.begin)
        if self._stream.readinto(data) != len(data) or not compare_digest(
            _checksum(data, _BLOCK, self._key), piece.checksum
        ):
            raise FileFormatError(self._path, f"block {number} is damaged")
        dtype = self.about.dtype
        if piece.kind == "empty":
            return Empty((shape[0], shape[1]), dtype)
        if piece.kind == "dense":
            return Dense(self._values(data).reshape(shape))
        pointers = _native(data[: 4 * (shape[0] + 1)], _INDEX)
        columns = _native(data[pointers.nbytes : pointers.nbytes + 4 * piece.nnz], _INDEX)
        if not _fit(pointers, columns, shape[1]):
            raise FileFormatError(self._path, f"block {number} has pointers and columns that do not fit")
        values = None
        if piece.kind == "csr":
            values = self._values(data[pointers.nbytes + columns.nbytes :])
        return Csr((shape[0], shape[1]), pointers, columns, values, dtype)

    def _values(self, data: bytearray) -> npt.NDArray[Any]:
        values = _native(data, self.about.dtype.newbyteorder("<"))
        if values.dtype.kind == "b" and values.size and int(values.view(np.uint8).max()) > 1:
            raise FileFormatError(self._path, "has truth values that are neither 0 nor 1")
        return values


def writable(dtype: np.dtype) -> bool:
    """Tell whether results of a dtype can be written: those that are the same on every machine."""
    return dtype.str[1:] in _DTYPES


def write_result(stream: IO[bytes], about: About, fetch: Fetch, key: bytes) -> None:
    """Write a result; one block is held at a time.

    Parameters
    ----------
    fetch
        Returns the block of a number, in the order of ``about.grid.indices()``.
    key
        The writer's; readers must have the same.
    """
    stream.write(bytes(_HEAD.size))
    listed = []
    for number in range(about.grid.num_blocks):
        kind, nnz, arrays = _parts(fetch(number), about)
        checksum = blake2b(digest_size=16, key=key, person=_BLOCK)
        for array in arrays:
            if array.size:
                little = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
                data = little.reshape(-1).view(np.uint8).data
                checksum.update(data)
                stream.write(data)
        listed.append((kind, nnz, checksum.hexdigest()))
    table = {
        "matnb": MATNB,
        "digest": about.digest.hex(),
        "dtype": about.dtype.str[1:],
        "sparse": about.sparse,
        "cuts": about.grid.cuts,
        "text": about.text,
        "seconds": about.seconds,
        "blocks": listed,
    }
    written, begin = json.dumps(table).encode(), stream.tell()
    stream.write(written)
    stream.seek(0)
    stream.write(
        _HEAD.pack(_MARK, _VERSION, begin, len(written), bytes.fromhex(_checksum(written, _TABLE, key)))
    )


def _parts(block: Block, about: About) -> tuple[str, int, list[npt.NDArray[Any]]]:
    match block:
        case Dense(values) if not about.sparse:
            return "dense", values.size, [values.astype(about.dtype, copy=False)]
        case Csr(_, pointers, columns, None, _) if about.sparse:
            return "pattern", columns.size, [pointers, columns]
        case Csr(_, pointers, columns, values, _) if about.sparse and values is not None:
            return "csr", columns.size, [pointers, columns, values.astype(about.dtype, copy=False)]
        case Empty() if about.sparse:
            return "empty", 0, []
    raise DTypeError(f"a block {type(block).__name__} in a result with sparse={about.sparse}")


def is_own(path: str) -> bool:
    """Tell whether a path names a plain file of this user, or nothing."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return True
    return stat.S_ISREG(found.st_mode) and (not hasattr(os, "geteuid") or found.st_uid == os.geteuid())


@contextmanager
def opened_result(path: str, digest: bytes, key: bytes) -> Iterator[Result]:
    """Open the file of a result and check its table; nothing of the size that it claims is made before.

    Raises
    ------
    FileFormatError
        When it is not a file that was written with this key for this digest, whole.
    OSError
        When the system does not let it be read.
    """
    descriptor = os.open(path, os.O_RDONLY | _NO_FOLLOW)
    found = os.fstat(descriptor)
    if (problem := file_problem(path, found)) is not None:
        os.close(descriptor)
        raise FileFormatError(path, problem)
    with os.fdopen(descriptor, "rb") as stream:
        try:
            result = _checked(path, stream, found.st_size, digest, key)
        except FileFormatError:
            raise
        except (LookupError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
            raise FileFormatError(path, f"has a table that makes no sense: {error}") from None
        yield result


def _checked(path: str, stream: BufferedReader, size: int, digest: bytes, key: bytes) -> Result:
    head = stream.read(_HEAD.size)
    if len(head) != _HEAD.size or not head.startswith(_MARK):
        raise FileFormatError(path, "was not written by matnb")
    _, version, begin, length, checksum = _HEAD.unpack(head)
    if version != _VERSION:
        raise FileFormatError(path, f"is of version {version}; this matnb reads version {_VERSION}")
    if begin < _HEAD.size or begin + length != size or length > _LARGEST_TABLE:
        raise FileFormatError(path, f"has {size} bytes, and should have {begin + length}")
    stream.seek(begin)
    written = stream.read(length)
    if not compare_digest(_checksum(written, _TABLE, key), checksum.hex()):
        raise FileFormatError(path, "was not written with your key, or is damaged")
    table = json.loads(written)
    if table["digest"] != digest.hex():
        raise FileFormatError(path, "holds the result of another expression than its name says")
    if table["dtype"] not in _DTYPES or not isinstance(table["sparse"], bool):
        raise FileFormatError(path, f"has elements of dtype {table['dtype']!r}")
    dtype, sparse = np.dtype(table["dtype"]), table["sparse"]
    grid = Grid(tuple(tuple(map(_count, cuts)) for cuts in table["cuts"]))
    if sparse and (grid.ndim != 2 or max(grid.shape) > LARGEST_LENGTH or dtype not in SPARSE_DTYPES):
        raise FileFormatError(path, f"has a sparse array of shape {grid.shape} and dtype {dtype}")
    if len(table["blocks"]) != grid.num_blocks:
        raise FileFormatError(path, f"lists {len(table['blocks'])} of {grid.num_blocks} blocks")
    regions, pieces, at = tuple(grid.regions()), [], _HEAD.size
    for region, (kind, nnz, one) in zip(regions, table["blocks"], strict=True):
        num_bytes = _size(kind, _count(nnz), region_shape(region), dtype, sparse)
        pieces.append(_ResultPiece(kind, nnz, at, num_bytes, one))
        at += num_bytes
    if at != begin:
        raise FileFormatError(path, f"has {begin - _HEAD.size} bytes of blocks, and lists {at - _HEAD.size}")
    about = About(digest, grid, dtype, sparse, str(table["text"]), float(table["seconds"]))
    return Result(about, begin - _HEAD.size, path, stream, regions, tuple(pieces), key)


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise ValueError(f"{value!r} is not a count")
    return value


def _size(kind: str, nnz: int, shape: tuple[int, ...], dtype: np.dtype, sparse: bool) -> int:
    # Bytes of a block, if it is one of those that may be.
    if kind == "dense" and not sparse and nnz == prod(shape):
        return nnz * dtype.itemsize
    if kind == "empty" and sparse and not nnz:
        return 0
    if kind in ("csr", "pattern") and sparse and nnz <= LARGEST_LENGTH:
        return 4 * (shape[0] + 1) + nnz * (4 + (dtype.itemsize if kind == "csr" else 0))
    raise ValueError(f"no block of shape {shape} is {kind!r} with {nnz} entries")


def _native(data: bytearray, dtype: np.dtype) -> npt.NDArray[Any]:
    return np.frombuffer(data, dtype).astype(dtype.newbyteorder("="), copy=False)


def _fit(pointers: npt.NDArray[np.int32], columns: npt.NDArray[np.int32], width: int) -> bool:
    # Kernels read at these places unchecked.
    if pointers[0] != 0 or pointers[-1] != columns.size or bool((pointers[1:] < pointers[:-1]).any()):
        return False
    if not columns.size:
        return True
    inner = np.ones(columns.size, np.bool_)
    inner[pointers[:-1][pointers[:-1] < columns.size]] = False  # the first entry of a row follows none
    ordered = not bool((columns[1:] <= columns[:-1])[inner[1:]].any())
    return ordered and 0 <= int(columns.min()) <= int(columns.max()) < width


def _checksum(data: bytes | bytearray, of: bytes, key: bytes) -> str:
    return blake2b(data, digest_size=16, key=key, person=of).hexdigest()


_NAME = re.compile(r"[0-9a-f]{32}")
_TEMPORARY = re.compile(r"\.[0-9a-f]{32}\.[0-9a-f]{12}\.tmp")
_ABANDONED_SECONDS = 3600.0  # after which nobody is writing a temporary file any more
_SMALLEST_BYTES = 4096  # that a file takes on a disk
_Read = TypeVar("_Read")


class ResultFolder:
    """Results on disk. What is wrong with a file is warned of once, and the file is left alone.

    Parameters
    ----------
    path
        The folder; made if it is not there.
    budget_bytes
        What all files may take; those used longest ago go first.
    key_folder
        Where the key of this user's results is, or is drawn: a file that was made without it is not believed.

    Raises
    ------
    OptionError
        When the folder cannot be made or written to, or others can write to it; and when there is no key.
    """

    def __init__(self, path: str | os.PathLike[str], budget_bytes: int, key_folder: str) -> None:
        self.path = os.path.abspath(os.path.expanduser(os.fspath(path)))
        self._budget_bytes = budget_bytes
        self._bad: set[str] = set()
        self._names: dict[str, int] = {}
        self._listed_ns = -1
        self._full = False  # nothing more is written where the disk did not let us
        try:
            make_folder(self.path)
            problem = folder_problem(self.path)
            if problem is None:
                with tempfile.TemporaryFile(dir=self.path):
                    pass
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            raise OptionError(
                f"memo_dir={os.fspath(path)!r}: no folder to write to ({reason or error}): "
                "give another, or leave memo_dir out"
            ) from None
        if problem is not None:
            raise OptionError(f"memo_dir={os.fspath(path)!r}: {problem}")
        self._key = result_key(key_folder, f"memo_dir={os.fspath(path)!r}")

    @property
    def num_bytes(self) -> int:
        """Bytes of the files, as far as they are known."""
        return sum(self._names.values())

    def refresh(self) -> None:
        """Look for what other processes wrote or removed."""
        try:
            changed = os.stat(self.path).st_mtime_ns
            if changed == self._listed_ns:
                return
            with os.scandir(self.path) as found:
                self._names = {
                    one.name: max(_SMALLEST_BYTES, one.stat(follow_symlinks=False).st_size)
                    for one in found
                    if _NAME.fullmatch(one.name)
                }
            self._listed_ns = changed
        except OSError as error:  # gone, or a file of it went meanwhile
            self._listed_ns = -1
            if not os.path.isdir(self.path):
                self._names = {}
                self._warn_of_writing(error)

    def __contains__(self, digest: object) -> bool:
        """Tell whether there is a file for an expression, and nothing wrong was seen of it."""
        return isinstance(digest, bytes) and (name := digest.hex()) in self._names and name not in self._bad

    def __iter__(self) -> Iterator[bytes]:
        """Yield the digests of the files."""
        yield from [bytes.fromhex(name) for name in self._names if name not in self._bad]

    def read(self, digest: bytes, use: Callable[[Result], _Read], is_use: bool = True) -> _Read | None:
        """Return what ``use`` makes of a result; None where its file is not one that can be used.

        Files that are used longest ago go first; what is only looked at is not used.

        The file of another, and a damaged one, which ``use`` may find too, are warned of.
        """
        name = digest.hex()
        path = os.path.join(self.path, name)
        reason = ""
        try:
            with opened_result(path, digest, self._key) as result:
                found = use(result)
            if is_use:
                with suppress(OSError):
                    os.utime(path)
            return found
        except FileFormatError as error:
            reason = str(error)
        except FileNotFoundError:
            self._names.pop(name, None)  # another process removed it
            return None
        except MatnbError:
            raise
        except OSError as error:
            reason = f"{path}: {error.strerror or error}"
        self._bad.add(name)
        warn(
            f"a stored result is not used and will be computed again: {reason}; delete the file if it is not "
            "yours",
        )
        return None

    def write(self, about: About, fetch: Fetch, num_bytes: int = 0) -> None:
        """Write a result, unless it is there; a disk that does not let it be written is warned of once."""
        name = about.digest.hex()
        if self._full or about.digest in self or num_bytes > self._budget_bytes:
            return
        if name in self._bad and not is_own(os.path.join(self.path, name)):
            return  # warned of when it was to be read; not ours to replace
        temporary = os.path.join(self.path, f".{name}.{secrets.token_hex(6)}.tmp")
        try:
            with open(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b") as stream:
                write_result(stream, about, fetch, self._key)
                size = stream.seek(0, os.SEEK_END)
            os.replace(temporary, os.path.join(self.path, name))
        except MatnbError:  # of a block that could not be had; some of these are OSErrors too
            raise
        except OSError as error:
            self._warn_of_writing(error)
            return
        finally:  # after an error or interrupt
            with suppress(OSError):
                os.unlink(temporary)
        self._bad.discard(name)
        self._names[name] = max(_SMALLEST_BYTES, size)
        if self.num_bytes > self._budget_bytes:
            self._trim()

    def clear(self) -> None:
        """Remove every result."""
        self._listed_ns = -1
        self.refresh()
        for name in list(self._names):
            self._remove(name)

    def _remove(self, name: str) -> None:
        with suppress(OSError):
            os.unlink(os.path.join(self.path, name))
        self._names.pop(name, None)

    def _trim(self) -> None:
        used: list[tuple[float, str, int]] = []
        abandoned = time.time() - _ABANDONED_SECONDS
        with suppress(OSError), os.scandir(self.path) as found:
            for one in found:
                with suppress(OSError):
                    status = one.stat(follow_symlinks=False)
                    if _NAME.fullmatch(one.name):
                        used.append((status.st_mtime, one.name, max(_SMALLEST_BYTES, status.st_size)))
                    elif _TEMPORARY.fullmatch(one.name) and status.st_mtime < abandoned:
                        os.unlink(one.path)
        total = sum(size for _, _, size in used)
        for _, name, size in sorted(used):
            if total <= self._budget_bytes:
                return
            self._remove(name)
            total -= size

    def _warn_of_writing(self, error: OSError) -> None:
        if not self._full:
            self._full = True
            warn(
                f"results are no longer written to {self.path} in this session: "
                f"{error.strerror or error}; the limit of the files is memo={bytes_text(self._budget_bytes)}",
            )

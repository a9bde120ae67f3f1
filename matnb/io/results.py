"""One result as a file: the raw bytes of its blocks and a table in JSON; reading it executes nothing."""

# The checksums are made with a key of the user's, so that nobody else can make a file that is believed.
# The file: a head of fixed size (mark, version, begin, length and checksum of the table), then the arrays of
# each block in the order of Grid.indices(), little-endian, then the table. A dense block is its elements; a
# sparse one its pointers and columns (int32) and, unless it is a pattern, its values; an empty one nothing.

from __future__ import annotations

import json
import os
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from hmac import compare_digest
from io import BufferedReader
from math import prod
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import LARGEST_LENGTH, SPARSE_DTYPES, Block, Csr, Dense, Empty
from matnb.blocks.grid import Grid, Region, region_shape
from matnb.errors import DTypeError, FileFormatError
from matnb.io.private import file_problem
from matnb.version import VERSION as MATNB

Fetch = Callable[[int], Block]
_MARK, _VERSION = b"\x93matnb\r\n", 2
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
        Of whoever writes; who reads must have the same.
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
        raise FileFormatError(path, "is no result that matnb wrote")
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
        raise ValueError(f"{value!r} is no count")
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

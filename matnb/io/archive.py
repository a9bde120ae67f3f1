"""Arrays in a zip file, as np.savez lays them out, read without trusting what the file claims."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import numpy as np
import numpy.typing as npt

from matnb.io.files import INFLATE_LIMIT, File
from matnb.io.npy import NUMBERS, NpyHeader, read_header

_LARGEST_TEXT = 1000  # bytes of a member that is a word
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # of others it is not known how far they inflate
_READ_BYTES = 1 << 20
_MOST_FACTS = 1_000_000  # numbers of a member that tells of the others: cuts, counts of blocks


class _Inside:
    """A stream in which no place before its beginning or after its end is looked for, as zipfile may."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self._stream, self._size = stream, size
        self.read, self.tell = stream.read, stream.tell

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        begin = {os.SEEK_SET: 0, os.SEEK_END: self._size}.get(whence)
        place = offset + (self._stream.tell() if begin is None else begin)
        if not 0 <= place <= self._size:
            raise zipfile.BadZipFile(f"something at {place} of {self._size} bytes")
        return self._stream.seek(place)


class Archive:
    """An open .npz file; made by :func:`open_archive`."""

    def __init__(self, file: File, opened: zipfile.ZipFile) -> None:
        self.file, self._opened = file, opened
        self.names = {name[:-4] for name in opened.namelist() if name.endswith(".npy")}

    def array(self, name: str, kinds: str = NUMBERS) -> npt.NDArray[np.generic]:
        """Return a member, in this machine's byte order.

        Raises
        ------
        FileFormatError
            When it is missing, not of the kinds of dtype wanted, or has not as many elements as it claims.
        """
        with self._checked(name, kinds) as (header, stream):
            # Filled bit by bit, so that memory is taken for what is there and not for what is claimed.
            data, have = np.empty(header.num_bytes, np.uint8), 0
            while part := stream.read(_READ_BYTES):  # to the end, where the checksum is looked at
                room = data[have : have + len(part)]
                have += len(part)
                room[:] = np.frombuffer(part, np.uint8)[: room.size]
                if have > header.num_bytes:
                    break
        if have != header.num_bytes:
            raise self.file.error(f"member {name!r} ends after {have} of {header.num_bytes} bytes")
        values = data.view(header.dtype)
        shaped = values.reshape(header.shape, order="F" if header.fortran else "C")
        return shaped.astype(header.dtype.newbyteorder("="), copy=False)

    def header(self, name: str) -> NpyHeader:
        """Return what a member says of itself, checked as :meth:`array` does; reads no more."""
        with self._checked(name, NUMBERS) as (header, _):
            return header

    @contextmanager
    def _checked(self, name: str, kinds: str) -> Iterator[tuple[NpyHeader, IO[bytes]]]:
        if name not in self.names:
            raise self.file.error(f"has no member {name!r}; members: {', '.join(sorted(self.names)[:20])}")
        member = self._opened.getinfo(f"{name}.npy")
        with self._opened.open(member) as stream:
            try:
                header = read_header(stream)
            except ValueError as error:
                raise self.file.error(f"member {name!r}: {error}") from None
            if header.dtype.kind not in kinds:
                raise self.file.error(f"member {name!r} has elements of dtype {header.dtype}")
            if member.compress_type not in _PACKED:
                raise self.file.error(f"member {name!r} is compressed in a way that is not read")
            follow = member.file_size - header.begin
            packed = min(member.compress_size, self.file.size)
            room = packed * (1 if member.compress_type == zipfile.ZIP_STORED else INFLATE_LIMIT)
            if header.num_bytes != follow or follow > room:
                raise self.file.error(
                    f"member {name!r}: shape {header.shape} of {header.dtype} needs {header.num_bytes} "
                    f"bytes; {min(follow, room)} follow at most"
                )
            yield header, stream

    def num_indices(self, name: str) -> int:
        """Return the length of a member of whole numbers on one axis; reads its header only."""
        header = self.header(name)
        if header.dtype.kind not in "iu" or len(header.shape) != 1:
            raise self.file.error(
                f"member {name!r} of dtype {header.dtype} and shape {header.shape}: whole numbers on "
                "1 axes are expected"
            )
        return header.shape[0]

    def indices(self, name: str) -> npt.NDArray[np.integer]:
        """Return a member of whole numbers on one axis."""
        self.num_indices(name)
        values = self.array(name)
        assert values.dtype.kind in "iu", "its header says so"
        return values.astype(np.int64 if values.dtype == np.uint64 else values.dtype, copy=False)

    def facts(self, name: str) -> list[int]:
        """Return a member of whole numbers that tells of the others, so that it is no large one."""
        if self.num_indices(name) > _MOST_FACTS:
            raise self.file.error(f"member {name!r} has more than {_MOST_FACTS} numbers")
        found: list[int] = self.indices(name).tolist()
        return found

    def flag(self, name: str) -> int:
        """Return a member that is a single number."""
        if self.header(name).shape != ():
            raise self.file.error(f"member {name!r} is not a single number")
        return int(np.real(self.array(name).item()))

    def word(self, name: str) -> str:
        """Return a member that is a short text."""
        with self._checked(name, "SU") as (header, _):
            if header.shape != () or header.num_bytes > _LARGEST_TEXT:
                raise self.file.error(f"member {name!r} is not a word")
        value = self.array(name, "SU").item()
        return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)


@contextmanager
def open_archive(file: File) -> Iterator[Archive]:
    """Open a .npz file; what is wrong with the zip becomes FileFormatError."""
    with file.open() as stream:
        try:
            with zipfile.ZipFile(_Inside(stream, file.size)) as opened:
                yield Archive(file, opened)
        except (zipfile.BadZipFile, zlib.error, EOFError, UnicodeDecodeError) as error:
            raise file.error(f"is not a zip file, or a damaged one: {error}") from None
        except (
            NotImplementedError,
            RuntimeError,
        ) as error:  # what zipfile raises for other codecs and for passwords
            raise file.error(f"a zip file of a kind that is not read: {error}") from None

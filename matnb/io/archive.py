"""Arrays in a zip file, as np.savez lays them out, read without trusting what the file claims."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import IO

import numpy as np
import numpy.typing as npt

from matnb.io.files import INFLATE_LIMIT, File
from matnb.io.npy import NUMBERS, Header, read_header

_LARGEST_TEXT = 1000  # bytes of a member that is a word


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
            data = stream.read()
        if len(data) != header.num_bytes:
            raise self.file.error(f"member {name!r} ends after {len(data)} of {header.num_bytes} bytes")
        values = np.frombuffer(data, header.dtype, prod(header.shape))
        shaped = values.reshape(header.shape, order="F" if header.fortran else "C")
        return shaped.astype(header.dtype.newbyteorder("="), copy=False)

    def header(self, name: str) -> Header:
        """Return what a member says of itself, checked as :meth:`array` does; reads no more."""
        with self._checked(name, NUMBERS) as (header, _):
            return header

    @contextmanager
    def _checked(self, name: str, kinds: str) -> Iterator[tuple[Header, IO[bytes]]]:
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
            follow = member.file_size - header.begin
            packed = min(member.compress_size, self.file.size)
            room = packed * (1 if member.compress_type == zipfile.ZIP_STORED else INFLATE_LIMIT)
            if header.num_bytes != follow or follow > room:
                raise self.file.error(
                    f"member {name!r}: shape {header.shape} of {header.dtype} needs {header.num_bytes} "
                    f"bytes; {min(follow, room)} follow at most"
                )
            yield header, stream

    def indices(self, name: str, ndim: int = 1) -> npt.NDArray[np.integer]:
        """Return a member of whole numbers with ``ndim`` axes."""
        values = self.array(name)
        if values.dtype.kind not in "iu" or values.ndim != ndim:
            raise self.file.error(
                f"member {name!r} of dtype {values.dtype} and shape {values.shape}: whole numbers on "
                f"{ndim} axes are expected"
            )
        return values.astype(np.int64 if values.dtype == np.uint64 else values.dtype, copy=False)

    def word(self, name: str) -> str:
        """Return a member that is a short text."""
        values = self.array(name, "SU")
        if values.shape != () or values.nbytes > _LARGEST_TEXT:
            raise self.file.error(f"member {name!r} is not a word")
        value = values.item()
        return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)


@contextmanager
def open_archive(file: File) -> Iterator[Archive]:
    """Open a .npz file; what is wrong with the zip becomes FileFormatError."""
    with file.open() as stream:
        try:
            with zipfile.ZipFile(stream) as opened:
                yield Archive(file, opened)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise file.error(f"is not a zip file, or a damaged one: {error}") from None
        except (
            NotImplementedError,
            RuntimeError,
        ) as error:  # what zipfile raises for other codecs and for passwords
            raise file.error(f"a zip file of a kind that is not read: {error}") from None

"""Files behind a url, through fsspec: byte ranges read where they are needed, as one version of the file."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from matnb.errors import MatnbError, MissingFileError, OptionError, UnsupportedError, WriteError
from matnb.io.files import File, find_local
from matnb.location import Location

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_AHEAD_BYTES = 1 << 20  # asked for at once, as an answer from afar takes as long as some MB of it
# What a file system says of a version, by its own name: object stores have a tag, others a time.
_VERSION_WORDS = (
    "ETag",
    "etag",
    "e_tag",
    "md5Hash",
    "content_md5",
    "Content-MD5",
    "Digest",
    "generation",
    "VersionId",
    "LastModified",
    "last_modified",
    "Last-Modified",
    "updated",
    "mtime",
    "modified",
    "created",
)


@dataclass(frozen=True)
class RemoteFile(File):
    """One version of a file that fsspec reads, at a url; ``version`` is its tag or time there."""

    version: str

    __repr__ = File.__repr__

    @property
    def name(self) -> str:
        """Last part of the url's path."""
        return os.path.basename(without_query(self.path))

    @property
    def identity(self) -> tuple[str | int, ...]:
        """What tells this version of the file from any other."""
        return *super().identity, self.version

    def check_readable(self) -> None:
        """Raise FileFormatError for an empty file; that it is there, :func:`find_remote` has seen."""
        if self.size == 0:
            raise self.error("is empty (zero bytes)")

    def open(self) -> IO[bytes]:
        """Open the file for reading its bytes, if it is still this version.

        Raises
        ------
        MissingFileError
            When it is not there, or not readable from here.
        FileFormatError
            When it has changed.
        """
        system, path = file_system(self.location)
        now = _told(system, path, self.location)
        if (now.size, now.version) != (self.size, self.version):
            raise self.error("has changed since it was opened: load it again")
        return _Ranges(self, system, path)  # type: ignore[return-value]  # a raw stream is read as any binary file


class _Ranges(io.RawIOBase):
    """The bytes of a file, asked for by range; two streams never share a position, as fsspec's may."""

    def __init__(self, file: RemoteFile, system: AbstractFileSystem, path: str) -> None:
        super().__init__()
        self._file, self._system, self._path = file, system, path
        self._position = 0
        self._first, self._held = 0, b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        begin = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._file.size}[whence]
        self._position = max(0, begin + offset)
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        count = min(len(buffer), self._file.size - self._position)
        if count <= 0:
            return 0
        start = self._position - self._first
        if start < 0 or start + count > len(self._held):
            self._fetch(self._position, max(count, _AHEAD_BYTES))
            start = self._position - self._first
        buffer[:count] = self._held[start : start + count]
        self._position += count
        return count

    def _fetch(self, start: int, count: int) -> None:
        stop = min(start + count, self._file.size)
        with _foreign(self._file.location, MissingFileError):
            data = self._system.cat_file(self._path, start=start, end=stop)
        if len(data) == self._file.size and stop - start < len(data):
            start, stop = 0, self._file.size  # a server that knows no ranges sent all
        if len(data) != stop - start:
            raise self._file.error(f"{len(data)} bytes came where {stop - start} were asked for")
        self._first, self._held = start, data


def is_remote(path: str) -> bool:
    """Tell whether a path is a url that is not of this machine's files."""
    return "://" in path and not path.startswith("file://")


def without_query(url: str) -> str:
    """Return a url without its query and fragment, so that its end is that of a file's name."""
    return re.split(r"[?#]", url, maxsplit=1)[0]


def find_file(path: str | os.PathLike[str]) -> File:
    """Return the present version of a file, given its path or url; errors as of :func:`find_remote`."""
    given = os.fsdecode(path)
    return find_remote(Location(given)) if is_remote(given) else find_local(given)


def find_remote(url: Location) -> RemoteFile:
    """Return the present version of the file at a url.

    Raises
    ------
    MissingFileError
        When it is not there, or may not be read.
    UnsupportedError
        When the url's protocol needs a package that is not installed.
    OptionError
        For a protocol that is not known.
    """
    return _told(*file_system(url), url)


def file_system(url: Location) -> tuple[AbstractFileSystem, str]:
    """Return the file system of a url and the path in it; errors as of :func:`find_remote`."""
    from fsspec.core import url_to_fs

    with _foreign(url, OptionError):
        system, path = url_to_fs(url.real)
    return system, path


def _told(system: AbstractFileSystem, path: str, url: Location) -> RemoteFile:
    with _foreign(url, MissingFileError):
        told: Mapping[str, object] = dict(system.info(path))
    size = told.get("size")
    if told.get("type") == "directory":
        raise MissingFileError(f"{url}: is a directory, not a file")
    if not isinstance(size, int):
        raise UnsupportedError(f"{url}: the server does not say how long it is: download it first")
    version = "; ".join(f"{word}={told[word]}" for word in _VERSION_WORDS if told.get(word) is not None)
    return RemoteFile(url, size, 0, 0, 0, url, version)


@contextmanager
def _foreign(url: Location, kind: type[OptionError | MissingFileError | WriteError]) -> Iterator[None]:
    # Around one call of a file system, which is the code of any package that fsspec finds: botocore's errors
    # and aiohttp's derive from Exception alone, so there is no list of them. None of matnb runs inside.
    try:
        yield
    except (MatnbError, MemoryError):
        raise
    except Exception as error:
        raise _refused(url, kind, error) from None


def _refused(
    url: Location, kind: type[OptionError | MissingFileError | WriteError], error: Exception
) -> MatnbError:
    protocol, reason = str(url).split("://", 1)[0], url.reason(error)
    if isinstance(error, ImportError):
        return UnsupportedError(f"{url}: {protocol}:// needs a package that is not installed: {reason}")
    if kind is OptionError:
        return OptionError(
            f"{url}: {reason}: give a path, or a url that fsspec knows, such as s3://, https://"
        )
    if kind is WriteError:
        return WriteError(f"{url}: cannot be written: {reason}: save elsewhere")
    note = ": what is in memory is seen in one process only" if protocol == "memory" else ""
    return MissingFileError(f"{url}: cannot be read here: {reason}{note}")


def upload(local: str, url: Location) -> None:
    """Put a file that was written here at a url.

    Raises
    ------
    WriteError
        When it cannot be written there.
    """
    system, path = file_system(url)
    with _foreign(url, WriteError):
        system.put_file(local, path)

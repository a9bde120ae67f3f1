"""Files behind a url, through fsspec: byte ranges read where they are needed, as one version of the file."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

from matnb.errors import MissingFileError, OptionError, UnsupportedError, WriteError
from matnb.io.files import File, find_local

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
    """One version of a file that fsspec reads; ``path`` is its url, ``version`` its tag or time there."""

    version: str

    __repr__ = File.__repr__

    @property
    def name(self) -> str:
        """Last part of the url's path."""
        return os.path.basename(urlsplit(self.path).path)

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
        system, path = file_system(self.path)
        now = _told(system, path, self.shown)
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
        try:
            data = self._system.cat_file(self._path, start=start, end=stop)
        except OSError as error:
            raise _not_read(self._file.shown, error) from None
        if len(data) == self._file.size and stop - start < len(data):
            start, stop = 0, self._file.size  # a server that knows no ranges sent all
        if len(data) != stop - start:
            raise self._file.error(f"{len(data)} bytes came where {stop - start} were asked for")
        self._first, self._held = start, data


def is_remote(path: str) -> bool:
    """Tell whether a path is a url that is not of this machine's files."""
    return "://" in path and not path.startswith("file://")


def find_file(path: str | os.PathLike[str]) -> File:
    """Return the present version of a file, given its path or url; errors as of :func:`find_remote`."""
    shown = os.fspath(path)
    if isinstance(shown, bytes):
        shown = os.fsdecode(shown)
    return find_remote(shown) if is_remote(shown) else find_local(shown)


def find_remote(url: str) -> RemoteFile:
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


def file_system(url: str) -> tuple[AbstractFileSystem, str]:
    """Return the file system of a url and the path in it; errors as of :func:`find_remote`."""
    from fsspec.core import url_to_fs

    protocol = url.split("://", 1)[0]
    try:
        system, path = url_to_fs(url)
    except ImportError as error:
        raise UnsupportedError(
            f"{url}: {protocol}:// needs a package that is not installed: {error}"
        ) from None
    except ValueError as error:
        raise OptionError(
            f"{url}: {error}: give a path, or a url that fsspec knows, such as s3://, https://"
        ) from None
    return system, path


def _told(system: AbstractFileSystem, path: str, shown: str) -> RemoteFile:
    try:
        told: Mapping[str, object] = system.info(path)
    except OSError as error:
        raise _not_read(shown, error) from None
    size = told.get("size")
    if told.get("type") == "directory":
        raise MissingFileError(f"{shown}: is a directory, not a file")
    if not isinstance(size, int):
        raise UnsupportedError(f"{shown}: the server does not say how long it is: download it first")
    version = "; ".join(f"{word}={told[word]}" for word in _VERSION_WORDS if told.get(word) is not None)
    return RemoteFile(shown, size, 0, 0, 0, shown, version)


def _not_read(shown: str, error: OSError) -> MissingFileError:
    protocol = shown.split("://", 1)[0]
    note = ": what is in memory is seen in one process only" if protocol == "memory" else ""
    return MissingFileError(
        f"{shown}: cannot be read here: {error.strerror or error or 'no such file'}{note}"
    )


def upload(local: str, url: str) -> None:
    """Put a file that was written here at a url.

    Raises
    ------
    WriteError
        When it cannot be written there.
    """
    system, path = file_system(url)
    try:
        system.put_file(local, path)
    except (OSError, NotImplementedError) as error:
        raise WriteError(f"{url}: cannot be written: {error}: save elsewhere") from None

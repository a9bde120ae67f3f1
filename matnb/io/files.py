"""A file as a value: where it is and which version of it; and the errors that name it."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO
from urllib.parse import unquote

from matnb.errors import FileFormatError, MissingFileError, TooLargeError, UnsupportedError
from matnb.location import Location
from matnb.pictures.quantities import bytes_text

_LONGEST_REASON = 500  # letters
INFLATE_LIMIT = 1032  # deflate makes at most this many bytes of one


@dataclass(frozen=True)
class File:
    """One version of a file.

    Attributes
    ----------
    location
        Absolute path, or url.
    size, mtime_ns, inode, ctime_ns
        Bytes, time of the last change, and what also tells a file that was written anew in the same size and
        given its old time: another version is another value.
    shown
        The path as the user wrote it, for messages.
    """

    location: Location
    size: int
    mtime_ns: int
    inode: int
    ctime_ns: int
    shown: Location = field(compare=False)

    def __repr__(self) -> str:
        return repr(self.shown)

    @property
    def identity(self) -> tuple[str | int, ...]:
        """What tells this version of the file from any other."""
        return self.path, self.size, self.mtime_ns, self.inode, self.ctime_ns

    @property
    def path(self) -> str:
        """Where it is, secrets included: to open it with, and never to be shown."""
        return self.location.real

    @property
    def name(self) -> str:
        """Last part of the path, whose end tells what is inside."""
        return os.path.basename(self.path)

    @property
    def compressed(self) -> bool:
        """Whether the text inside is compressed, so that only one worker can read it."""
        return self.name.lower().endswith(".gz")

    @property
    def largest_text(self) -> int:
        """Upper bound of the bytes of text inside."""
        return self.size * INFLATE_LIMIT if self.compressed else self.size

    def stated_text(self) -> int:
        """Return the bytes of text inside; of compressed text what its end claims, which may be wrong."""
        if not self.compressed:
            return self.size
        with self.open() as stream:
            stream.seek(max(0, self.size - 4))
            return max(self.size, int.from_bytes(stream.read(4), "little"))

    def check_room(self, taken_bytes: int, room_bytes: int | None) -> None:
        """Refuse to read on where that takes more memory than there is; None is no limit.

        Raises
        ------
        TooLargeError
            With the numbers.
        """
        if room_bytes is not None and taken_bytes > room_bytes:
            raise TooLargeError(
                f"{self.shown}: reading it takes over {bytes_text(taken_bytes)} on a worker, which has room "
                f"for {bytes_text(room_bytes)}: start with a larger memory_limit or more workers, "
                "decompress it so that all of them read it, or load a part of it"
            )

    def error(self, reason: str, line: int | None = None) -> FileFormatError:
        """Return the error that names this file."""
        if len(reason) > _LONGEST_REASON:  # a name in the file may be as long as the file
            reason = f"{reason[:_LONGEST_REASON]}..."
        return FileFormatError(str(self.shown), reason, line)

    def check_readable(self) -> None:
        """Raise FileFormatError for a directory or an empty file, MissingFileError if it cannot be opened."""
        if os.path.isdir(self.path):
            raise self.error("is a directory, not a file")
        if self.size == 0:
            raise self.error("is empty (zero bytes)")
        with self.open():
            pass

    def open(self) -> IO[bytes]:
        """Open the file for reading its bytes, if it is still this version.

        Raises
        ------
        MissingFileError
            When it is not there, or not visible or readable from here.
        FileFormatError
            When it has changed.
        """
        try:
            stream = open(self.path, "rb", buffering=0)  # noqa: SIM115  the caller closes it
        except OSError as error:
            raise MissingFileError(f"{self.shown}: cannot be read here: {error.strerror}") from None
        # A worker's machine may have a copy, which has an inode and a change time of its own.
        now = os.fstat(stream.fileno())
        if (now.st_size, now.st_mtime_ns) != (self.size, self.mtime_ns):
            stream.close()
            raise self.error("has changed since it was opened: load it again")
        return stream

    @contextmanager
    def text(self) -> Iterator[IO[bytes]]:
        """Open the text of the file, decompressed; damaged compression becomes FileFormatError."""
        with self.open() as stream:
            if not self.compressed:
                yield stream
                return
            try:
                with gzip.GzipFile(fileobj=stream, mode="rb") as inflated:
                    yield inflated  # type: ignore[misc]  # a GzipFile is read as any binary file
            except EOFError:
                raise self.error("compressed data ends early: the file is truncated") from None
            except (gzip.BadGzipFile, zlib.error) as error:
                raise self.error(f"is not a gzip file, or a damaged one: {error}") from None


def local_path(shown: str) -> str:
    """Return the path of a ``file://`` url, and a path as it is.

    Raises
    ------
    UnsupportedError
        For a ``file://`` url of another machine.
    """
    if not shown.startswith("file://"):
        return shown
    machine, path = re.fullmatch(r"file://([^/?#]*)([^?#]*).*", shown, re.DOTALL).groups()  # type: ignore[union-attr]  # any text fits
    if machine not in ("", "localhost"):
        raise UnsupportedError(
            f"{Location(shown)}: a file of another machine: copy it here and give its path"
        )
    return unquote(path)


def find_local(shown: str) -> File:
    """Return the present version of a file of this machine, given its path or ``file://`` url.

    Raises
    ------
    MissingFileError
        When it is not there.
    UnsupportedError
        For a ``file://`` url of another machine.
    """
    absolute, given = os.path.abspath(os.path.expanduser(local_path(shown))), Location(shown)
    try:
        found = os.stat(absolute)
    except OSError as error:
        raise MissingFileError(f"{given}: {error.strerror or 'no such file'}") from None
    except ValueError as error:  # a NUL in the name
        raise MissingFileError(f"{given!r}: {error}") from None
    return _version(absolute, found, given)


def _version(path: str, found: os.stat_result, shown: Location) -> File:
    return File(Location(path), found.st_size, found.st_mtime_ns, found.st_ino, found.st_ctime_ns, shown)

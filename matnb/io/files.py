"""A file as a value: where it is, here or behind a url, which version of it; and the errors that name it."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import lzma
import os
import platform
import re
import stat
import threading
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, is_dataclass
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import unquote

from matnb.errors import (
    FileFormatError,
    MatnbError,
    MissingFileError,
    OptionError,
    TooLargeError,
    UnsupportedError,
    WriteError,
    near_name,
)
from matnb.location import Location
from matnb.pictures.quantities import bytes_text

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_LONGEST_REASON = 500  # letters
# How much of a file is compared with another of its size: all of a small one, else parts.
_END_BYTES, _MIDDLE_BYTES, _NUM_MIDDLES = 1 << 16, 1 << 14, 8
COMPARED_BYTES = 2 * _END_BYTES + _NUM_MIDDLES * _MIDDLE_BYTES
_MOST_DIGESTS = 4096
_FORWARD, _OTHER_COMPRESSIONS = (".zst", ".bz2"), (".xz", ".zip")
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
    digest
        Of its beginning, its end and parts between, by which a copy on another machine is known: all else
        but the size is another there.
    device, machine
        Where the inode counts: a number of the system's, and the name of the machine.
    """

    location: Location
    size: int
    mtime_ns: int
    inode: int
    ctime_ns: int
    shown: Location = field(compare=False)
    digest: str = ""
    device: int = field(default=0, compare=False)
    machine: str = field(default="", compare=False)

    def __repr__(self) -> str:
        return repr(self.shown)

    @property
    def identity(self) -> tuple[str | int, ...]:
        """What tells this version of the file from any other."""
        return self.path, self.size, self.mtime_ns, self.inode, self.ctime_ns, self.digest

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
        return self.name.lower().endswith((".gz", *_FORWARD, *_OTHER_COMPRESSIONS))

    @property
    def largest_text(self) -> int:
        """Upper bound of the bytes of text inside."""
        return self.size * INFLATE_LIMIT if self.compressed else self.size

    def stated_text(self) -> int:
        """Return the bytes of text inside; of compressed text what its end claims, which may be wrong."""
        if not self.name.lower().endswith(".gz"):
            return self.size  # what others say of their length may be left out
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
            raise self._asked_for(MissingFileError(self._not_here(error))) from None
        try:
            if not self._is_that_of(stream):
                raise self._asked_for(self.error(self._other_here()))
        except BaseException:
            stream.close()
            raise
        return stream

    def _asked_for(self, error: MatnbError) -> MatnbError:
        # Who opened the file can tell whether it has changed, or is another one where this is raised.
        error.file = self
        return error

    def _is_that_of(self, stream: io.FileIO) -> bool:
        # Whether what was opened is this version, or a copy of it on the machine of a worker. A copy has its
        # own inode and times, so that only what is in it counts; a large file that is the same one and was
        # written to since may differ in parts that are not compared.
        now = os.fstat(stream.fileno())
        if now.st_size != self.size:
            return False
        is_the_one = (now.st_ino, now.st_dev, _machine()) == (self.inode, self.device, self.machine)
        if is_the_one and now.st_mtime_ns != self.mtime_ns and self.size > COMPARED_BYTES:
            return False
        if is_the_one and (now.st_mtime_ns, now.st_ctime_ns) == (self.mtime_ns, self.ctime_ns):
            return True
        return _remembered_digest(self.path, now, stream) == self.digest

    def _not_here(self, error: OSError) -> str:
        found = f"{self.shown}: cannot be read here, on {_machine()}: {error.strerror}"
        if self.machine == _machine() and error.errno != errno.ENOENT:
            return found
        return (
            f"{found}; it was there on {self.machine}: copy it to the same path on every machine, or put it "
            "in a folder that all of them share, or give a url that all can read, such as s3:// or https://"
        )

    def _other_here(self) -> str:
        if self.machine == _machine():
            return "has changed since it was opened: load it again"
        return (
            f"has changed since it was opened, or is another file on {_machine()} than on {self.machine}: "
            f"copy that of {self.machine} to the same path on every machine, and load it again"
        )

    @contextmanager
    def text(self) -> Iterator[IO[bytes]]:
        """Open the text of the file, decompressed; damaged compression becomes FileFormatError."""
        with self.open() as stream:
            if not self.compressed:
                yield stream
                return
            if self.name.lower().endswith(_FORWARD):
                yield from self._forward(stream)
                return
            if self.name.lower().endswith(_OTHER_COMPRESSIONS):
                yield from self._other(stream)
                return
            try:
                with gzip.GzipFile(fileobj=stream, mode="rb") as inflated:
                    yield inflated  # type: ignore[misc]  # a GzipFile is read as any binary file
            except EOFError:
                raise self.error("compressed data ends early: the file is truncated") from None
            except (gzip.BadGzipFile, zlib.error) as error:
                raise self.error(f"is not a gzip file, or a damaged one: {error}") from None

    def _other(self, stream: IO[bytes]) -> Iterator[IO[bytes]]:
        try:
            if not self.name.lower().endswith(".zip"):
                with lzma.LZMAFile(stream) as inflated:
                    yield inflated
                return
            with zipfile.ZipFile(stream) as archive:
                names = [
                    one for one in archive.namelist() if not one.endswith("/") and "__MACOSX/" not in one
                ]
                if len(names) != 1:
                    raise self.error(f"has {len(names)} files in it: extract them, and load their folder")
                with archive.open(names[0]) as member:
                    yield member
        except (lzma.LZMAError, zipfile.BadZipFile, zlib.error, RuntimeError, EOFError) as error:
            raise self.error(f"cannot be decompressed: {error}") from None

    def _forward(self, stream: IO[bytes]) -> Iterator[IO[bytes]]:
        import pyarrow

        kind = "zstd" if self.name.lower().endswith(".zst") else "bz2"
        try:
            with pyarrow.CompressedInputStream(stream, kind) as inflated:
                yield _Forward(inflated)  # type: ignore[misc]  # as above
        except (pyarrow.ArrowException, OSError) as error:
            if isinstance(error, MatnbError):
                raise
            what = "Zstandard" if kind == "zstd" else "bzip2"
            raise self.error(f"is not a {what} file, or a damaged one: {error}") from None


class _Forward(io.RawIOBase):
    """What a stream gives that can only be read on: places before the present one are not gone back to."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__()
        self._stream, self._position = stream, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        while self._position < offset and self.read(min(1 << 20, offset - self._position)):
            pass
        return self._position


def files_of(part: object) -> Iterator[File]:
    """Yield the files of a source: it is made of records, some of which list several."""
    if isinstance(part, File):
        yield part
    elif is_dataclass(part):
        for field in fields(part):
            yield from files_of(getattr(part, field.name))
    elif isinstance(part, tuple):
        for one in part:
            yield from files_of(one)


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
            f"{Location(shown)}: a file on another machine: copy it here and give its path"
        )
    return unquote(path)


def find_local(shown: str) -> File:
    """Return the present version of a file of this machine, given its path or ``file://`` url.

    Raises
    ------
    MissingFileError
        If the file does not exist.
    UnsupportedError
        For a ``file://`` url of another machine.
    """
    absolute, given = os.path.abspath(os.path.expanduser(local_path(shown))), Location(shown)
    try:
        found = os.stat(absolute)
        if stat.S_ISREG(found.st_mode):
            with suppress(PermissionError), open(absolute, "rb", buffering=0) as stream:
                found = os.fstat(stream.fileno())
                return _version(absolute, found, given, _digest_of(found.st_size, stream))
    except OSError as error:
        raise MissingFileError(f"{given}: {error.strerror or 'no such file'}{near_file(absolute)}") from None
    except ValueError as error:  # a NUL in the name
        raise MissingFileError(f"{given!r}: {error}") from None
    return _version(absolute, found, given)


def near_file(path: str) -> str:
    """Return the end of a sentence about a file that is not there: which of its folder has such a name."""
    folder, name = os.path.split(path)
    try:
        near = near_name(name, os.listdir(folder or os.curdir))
        # Files of a kind are alike by their suffixes alone.
        is_like = near is not None and near_name(os.path.splitext(name)[0], [os.path.splitext(near)[0]])
        return f"; did you mean {near!r}?" if is_like else ""
    except (OSError, ValueError):
        return ""


def _version(path: str, found: os.stat_result, shown: Location, digest: str = "") -> File:
    times = found.st_mtime_ns, found.st_ino, found.st_ctime_ns
    return File(Location(path), found.st_size, *times, shown, digest, found.st_dev, _machine())


def seen_from_here(error: MatnbError, where: str) -> MatnbError:
    """Return what a worker's error about a file that it could not read means, as seen where it was opened.

    Parameters
    ----------
    where
        Which worker, in words.
    """
    file = error.file
    if not isinstance(file, File):
        return error
    try:
        file.open().close()
    except (MissingFileError, FileFormatError) as same:
        return same  # it has changed, or has gone, for all
    todo = "copy it to the same path on every machine, or put it in a folder that all of them share"
    if isinstance(error, FileFormatError):
        return file.error(f"the file that {where} has there is not the one here, on {_machine()}: {todo}")
    text = f"{file.shown}: cannot be read by {where}, though it can here, on {_machine()}: {todo}"
    return MissingFileError(f"{text}, or give a url that all can read, such as s3:// or https://")


def _machine() -> str:
    return platform.node() or "this machine"


_digests: OrderedDict[tuple[str | int, ...], str] = OrderedDict()
_digests_lock = threading.Lock()


def _digest_of(size: int, stream: io.FileIO) -> str:
    # That of an open file, which is read from its beginning again after.
    hashed = hashlib.blake2b(digest_size=16)
    for start, stop in _compared_spans(size):
        stream.seek(start)
        hashed.update(read_up_to(stream, stop - start))
    stream.seek(0)
    return hashed.hexdigest()


def _remembered_digest(path: str, version: os.stat_result, stream: io.FileIO) -> str:
    # Pieces open a file again and again.
    key = path, version.st_size, version.st_mtime_ns, version.st_ino, version.st_dev, version.st_ctime_ns
    with _digests_lock:
        if key in _digests:
            _digests.move_to_end(key)
            return _digests[key]
    found = _digest_of(version.st_size, stream)
    with _digests_lock:
        _digests[key] = found
        while len(_digests) > _MOST_DIGESTS:
            _digests.popitem(last=False)
    return found


def _compared_spans(size: int) -> list[tuple[int, int]]:
    if size <= COMPARED_BYTES:
        return [(0, size)]
    step = (size - 2 * _END_BYTES - _MIDDLE_BYTES) // (_NUM_MIDDLES - 1)
    starts = [_END_BYTES + step * number for number in range(_NUM_MIDDLES)]
    middles = [(start, start + _MIDDLE_BYTES) for start in starts]
    return [(0, _END_BYTES), *middles, (size - _END_BYTES, size)]


def read_up_to(stream: IO[bytes], count: int) -> bytes:
    """Return the next bytes of a stream, fewer only at its end; one call may return less than it is asked."""
    found = b""
    while len(found) < count and (more := stream.read(count - len(found))):
        found += more
    return found


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

    version: str = ""

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

    def readinto(self, buffer: Any) -> int:
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
            raise self._file.error(f"received {len(data)} bytes where {stop - start} were requested")
        self._first, self._held = start, data


def is_remote(path: str) -> bool:
    """Tell whether a path is a url that is not of this machine's files."""
    return "://" in path and not path.startswith("file://")


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Return the suffix of a path or url, such as ``.npz``, in small letters."""
    given = os.fsdecode(path)
    return os.path.splitext(without_query(given) if "://" in given else given)[1].lower()


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
        raise UnsupportedError(f"{url}: the server does not report its size: download it first")
    version = "; ".join(f"{word}={told[word]}" for word in _VERSION_WORDS if told.get(word) is not None)
    return RemoteFile(url, size, 0, 0, 0, url, version=version)


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

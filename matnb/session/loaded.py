"""The files that this process has loaded, for who wants to know later what results came from."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass

from matnb.errors import MatnbError
from matnb.io.files import File, find_local
from matnb.io.remote import RemoteFile
from matnb.io.source import Source

_PIECE_BYTES = 1 << 20
_lock = threading.Lock()
_files: dict[File, None] = {}
_hashes: dict[File, str] = {}  # a version of a file is read through once


@dataclass(frozen=True)
class LoadedFile:
    """One file that was loaded.

    Attributes
    ----------
    path
        As it was written.
    size
        In bytes.
    sha256
        Hash of its content as it was loaded; empty where that is not known.
    version
        Of a file elsewhere, what its system calls this version.
    problem
        What is the matter with it now.
    """

    path: str
    size: int
    sha256: str = ""
    version: str = ""
    problem: str = ""


def note_loaded(source: Source) -> None:
    """Remember that the files of a source were loaded, in the versions that it read."""
    with _lock:
        _files.update(dict.fromkeys(_files_of(source)))


def _files_of(part: object) -> Iterator[File]:
    # A source is made of records; a list of vertices, say, is a file beside the first.
    if isinstance(part, File):
        yield part
    elif is_dataclass(part):
        for field in fields(part):
            yield from _files_of(getattr(part, field.name))


def forget_loaded() -> None:
    """Remember none of them."""
    with _lock:
        _files.clear()


def files_loaded() -> tuple[LoadedFile, ...]:
    """Return the files that were loaded, by path; reads those that are here, to hash them."""
    with _lock:
        files = sorted(_files, key=lambda one: (one.shown, one.mtime_ns))
    return tuple(map(_looked_at, files))


def _looked_at(file: File) -> LoadedFile:
    if isinstance(file, RemoteFile):
        return LoadedFile(file.shown, file.size, version=file.version)
    problem = ""
    try:
        if find_local(file.path) != file:
            problem = "has changed since it was loaded"
        elif file not in _hashes:
            _hashes[file] = _hash(file)
    except FileNotFoundError:
        problem = "is not there any more"
    except (MatnbError, OSError) as error:
        problem = f"cannot be read: {error}"
    return LoadedFile(file.shown, file.size, _hashes.get(file, ""), problem=problem)


def _hash(file: File) -> str:
    hashed = hashlib.sha256()
    with file.open() as stream:
        while piece := stream.read(_PIECE_BYTES):
            hashed.update(piece)
    return hashed.hexdigest()

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
_files: dict[File, str] = {}  # with what was counted in each
_hashes: dict[File, str] = {}  # a version of a file is read through once


@dataclass(frozen=True)
class LoadedFile:
    """One file that was loaded.

    Attributes
    ----------
    path
        As it was written; of a url without user, password, query and fragment.
    size
        In bytes.
    sha256
        Hash of its content as it was loaded; empty where that is not known.
    version
        Of a file elsewhere, what its system calls this version.
    problem
        What is the matter with it now.
    counts
        Of an edge list: its vertices, edges, merged ones and loops.
    """

    path: str
    size: int
    sha256: str = ""
    version: str = ""
    problem: str = ""
    counts: str = ""


def note_loaded(source: Source, counts: str = "") -> None:
    """Remember that the files of a source were loaded, in the versions that it read, and what was in it."""
    with _lock:
        for place, file in enumerate(files_of(source)):
            _files[file] = counts if place == 0 else ""


def files_of(part: object) -> Iterator[File]:
    """Yield the files of a source: it is made of records, and a list of vertices is one beside the first."""
    if isinstance(part, File):
        yield part
    elif is_dataclass(part):
        for field in fields(part):
            yield from files_of(getattr(part, field.name))


def forget_loaded() -> None:
    """Remember none of them."""
    with _lock:
        _files.clear()


def files_loaded() -> tuple[LoadedFile, ...]:
    """Return the files that were loaded, by path; reads those that are here, to hash them."""
    with _lock:
        files = sorted(_files.items(), key=lambda one: (str(one[0].shown), one[0].mtime_ns))
    return tuple(_looked_at(file, counts) for file, counts in files)


def _looked_at(file: File, counts: str) -> LoadedFile:
    if isinstance(file, RemoteFile):
        return LoadedFile(str(file.shown), file.size, version=file.version, counts=counts)
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
    return LoadedFile(str(file.shown), file.size, _hashes.get(file, ""), problem=problem, counts=counts)


def _hash(file: File) -> str:
    hashed = hashlib.sha256()
    with file.open() as stream:
        while piece := stream.read(_PIECE_BYTES):
            hashed.update(piece)
    return hashed.hexdigest()

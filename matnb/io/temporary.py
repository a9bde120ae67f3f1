"""Folders for temporary files: private, gone when they are left, and those of processes that were killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_PREFIX = "matnb-"
_NOTE = "in-use"  # a file that its process has locked, as long as that lives


@contextlib.contextmanager
def temporary_folder(kind: str = "", parent: str | None = None) -> Iterator[Path]:
    """Give a folder that nobody else may enter, until it is left.

    A process that is killed leaves its folder behind: the next call of the same user removes it.

    Parameters
    ----------
    kind
        Comes into its name.
    parent
        The folder that it is in; by default that for temporary files.

    Examples
    --------
    >>> with temporary_folder() as folder:
    ...     (folder / "values").touch()
    >>> folder.exists()
    False
    """
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{kind}", dir=parent))
    remove_abandoned(folder.parent)
    note: int | None = None
    try:
        note = _locked_note(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if note is not None:
            os.close(note)  # which also unlocks it, after the folder has gone


def remove_abandoned(parent: Path) -> None:
    """Remove the folders of this user's processes that have ended without doing so.

    Only its lock says whether a process has ended, since the lock goes with the process, however that ends;
    another process may have its number by now. A folder without a lock is left alone.
    """
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX) and _is_own_folder(entry):
                _remove_if_abandoned(entry.path)


def _is_own_folder(entry: os.DirEntry[str]) -> bool:
    with contextlib.suppress(OSError):  # gone meanwhile
        return entry.is_dir(follow_symlinks=False) and (
            entry.stat(follow_symlinks=False).st_uid == os.geteuid()
        )
    return False


def _locked_note(folder: Path) -> int | None:
    # Under another name until it is locked, so that none is there that is not; None where locks are unknown.
    fresh = folder / f"{_NOTE}.new"
    note = os.open(fresh, os.O_CREAT | os.O_RDWR | os.O_EXCL, 0o600)
    try:
        fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(note)
        fresh.unlink()
        return None
    fresh.rename(folder / _NOTE)
    return note


def _remove_if_abandoned(folder: str) -> None:
    try:
        note = os.open(os.path.join(folder, _NOTE), os.O_RDWR | os.O_NOFOLLOW)
    except OSError:  # of an earlier version, or just being made or removed
        return
    try:
        fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # its process lives
        return
    else:
        with contextlib.suppress(OSError):  # as while its worker processes still end: the next one removes it
            _remove_but_note(folder)
            shutil.rmtree(folder)
    finally:
        os.close(note)


def _remove_but_note(folder: str) -> None:
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif name != _NOTE:
            os.unlink(path)

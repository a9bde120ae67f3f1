"""Whether only this user can write to a folder, and the key that marks what this user wrote."""

from __future__ import annotations

import os
import secrets
import shlex
import stat
from collections.abc import Iterator

from matnb.errors import OptionError

KEY_BYTES = 32
_KEY_NAME = "results.key"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_MOST_LINKS = 40  # as the system follows


def make_folder(folder: str) -> None:
    """Make a folder that is not there, and those above it, so that only this user can write to them.

    Python's makedirs gives its mode to the last folder alone, so that where new files are the group's, those
    above it would be refused.

    Raises
    ------
    OSError
        When it cannot be made, or is no folder.
    """
    missing, path = [], os.path.abspath(folder)
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for each in reversed(missing):
        try:
            os.mkdir(each, 0o700)
        except FileExistsError:  # made by another process meanwhile, or no folder
            if not os.path.isdir(each):
                raise


def folder_problem(folder: str) -> str | None:
    """Return who else could put files into a folder, and the command that mends it; None if nobody.

    All folders above are looked at, and all links on the way: who can move one of them can put another in
    its place. That of a folder where all may write and none may move what is another's (``/tmp``) is fine.

    Raises
    ------
    OSError
        When the folder is not there, or cannot be looked at.
    """
    if not hasattr(os, "geteuid"):
        return None
    path = os.path.abspath(folder)
    found = os.stat(path)
    if found.st_uid != os.geteuid():
        return f"it belongs to {_user(found.st_uid)}: give a folder of yours, or chown it to you"
    if found.st_mode & _OTHERS_WRITE:
        return (
            f"others may write to it (mode {_mode(found)}): chmod go-w {shlex.quote(os.path.realpath(path))}"
        )
    for step in _way_to(path):
        status = os.lstat(step)
        own = status.st_uid in (0, os.geteuid()) or step == os.sep
        if not own:
            return f"{step}, on the way to it, belongs to {_user(status.st_uid)}: give a folder elsewhere"
        shared = status.st_mode & _OTHERS_WRITE and not status.st_mode & stat.S_ISVTX
        if stat.S_ISDIR(status.st_mode) and shared:
            return (
                f"others may write to {step} (mode {_mode(status)}), above it: chmod go-w {shlex.quote(step)}"
            )
    return None


def file_problem(path: str, found: os.stat_result) -> str | None:
    """Return why a file is not one that this user alone wrote, or None."""
    if not stat.S_ISREG(found.st_mode) or (hasattr(os, "geteuid") and found.st_uid != os.geteuid()):
        return "is no plain file of yours"
    if os.name == "posix" and found.st_mode & _OTHERS_WRITE:
        return f"may be written by others (mode {_mode(found)}): chmod go-w {shlex.quote(path)}"
    return None


def result_key(folder: str, option: str) -> bytes:
    """Return the key in a folder; drawn when there is none yet, by whichever process comes first.

    Parameters
    ----------
    option
        What it is needed for, which errors begin with.

    Raises
    ------
    OptionError
        When there can be none, or others can read or write it.
    """
    path = os.path.join(folder, _KEY_NAME)
    try:
        make_folder(folder)
        problem = folder_problem(folder)
        if problem is not None:
            raise OptionError(f"{option}: the folder of the key of your results, {folder}: {problem}")
        if not os.path.lexists(path):
            _draw(folder, path)
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, "rb") as stream:
            found = os.fstat(descriptor)
            key = stream.read(KEY_BYTES + 1)
    except OSError as error:
        raise OptionError(
            f"{option}: the key of your results cannot be kept in {path} ({error.strerror or error}); "
            "XDG_DATA_HOME names another place"
        ) from None
    problem = file_problem(path, found)
    if problem is None and os.name == "posix" and found.st_mode & 0o077:
        problem = f"may be read by others (mode {_mode(found)})"
    if problem is None and len(key) != KEY_BYTES:
        problem = f"has {len(key)} bytes, and should have {KEY_BYTES}"
    if problem is not None:
        raise OptionError(
            f"{option}: the key of your results, {path}, {problem}; rm {shlex.quote(path)} lets another be "
            "drawn, and results be computed again"
        )
    return key


def _draw(folder: str, path: str) -> None:
    # Written whole before it has its name, and the name is given once: two processes have the same key.
    temporary = os.path.join(folder, f".{secrets.token_hex(8)}.tmp")
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(secrets.token_bytes(KEY_BYTES))
        try:
            os.link(temporary, path)
        except FileExistsError:
            return
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)


def _way_to(path: str) -> Iterator[str]:
    # Each folder and link that is passed, those that links lead through too.
    waiting, seen = [path], set()
    num_links = 0
    while waiting:
        step = waiting.pop()
        if step in seen:
            continue
        seen.add(step)
        yield step
        if (above := os.path.dirname(step)) != step:
            waiting.append(above)
        if os.path.islink(step) and num_links < _MOST_LINKS:
            num_links += 1
            waiting.append(os.path.normpath(os.path.join(os.path.realpath(above), os.readlink(step))))


def _user(number: int) -> str:
    return "root" if number == 0 else f"user {number}"


def _mode(found: os.stat_result) -> str:
    return f"{stat.S_IMODE(found.st_mode):04o}"

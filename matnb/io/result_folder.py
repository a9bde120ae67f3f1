"""A folder of results, each a file under the digest of its expression; bounded in bytes, safe to share."""

from __future__ import annotations

import os
import re
import secrets
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

from matnb.errors import FileFormatError, MatnbError, OptionError
from matnb.io.private import folder_problem, make_folder, result_key
from matnb.io.results import About, Fetch, Result, is_own, opened_result, write_result
from matnb.pictures.quantities import bytes_text

_NAME = re.compile(r"[0-9a-f]{32}")
_TEMPORARY = re.compile(r"\.[0-9a-f]{32}\.[0-9a-f]{12}\.tmp")
_ABANDONED_SECONDS = 3600.0  # after which nobody is writing a temporary file any more
_SMALLEST_BYTES = 4096  # that a file takes on a disk
_Read = TypeVar("_Read")


class ResultFolder:
    """Results on disk. What is wrong with a file is warned of once, and the file is left alone.

    Parameters
    ----------
    path
        The folder; made if it is not there.
    budget_bytes
        What all files may take; those used longest ago go first.
    key_folder
        Where the key of this user's results is, or is drawn: a file that was made without it is not believed.

    Raises
    ------
    OptionError
        When the folder cannot be made or written to, or others can write to it; and when there is no key.
    """

    def __init__(self, path: str | os.PathLike[str], budget_bytes: int, key_folder: str) -> None:
        self.path = os.path.abspath(os.path.expanduser(os.fspath(path)))
        self._budget_bytes = budget_bytes
        self._bad: set[str] = set()
        self._names: dict[str, int] = {}
        self._listed_ns = -1
        self._full = False  # nothing more is written where the disk did not let us
        try:
            make_folder(self.path)
            problem = folder_problem(self.path)
            if problem is None:
                with tempfile.TemporaryFile(dir=self.path):
                    pass
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            raise OptionError(
                f"memo_dir={os.fspath(path)!r}: no folder to write to ({reason or error}): "
                "give another, or leave memo_dir out"
            ) from None
        if problem is not None:
            raise OptionError(f"memo_dir={os.fspath(path)!r}: {problem}")
        self._key = result_key(key_folder, f"memo_dir={os.fspath(path)!r}")

    @property
    def num_bytes(self) -> int:
        """Bytes of the files, as far as they are known."""
        return sum(self._names.values())

    def refresh(self) -> None:
        """Look for what other processes wrote or removed."""
        try:
            changed = os.stat(self.path).st_mtime_ns
            if changed == self._listed_ns:
                return
            with os.scandir(self.path) as found:
                self._names = {
                    one.name: max(_SMALLEST_BYTES, one.stat(follow_symlinks=False).st_size)
                    for one in found
                    if _NAME.fullmatch(one.name)
                }
            self._listed_ns = changed
        except OSError as error:  # gone, or a file of it went meanwhile
            self._listed_ns = -1
            if not os.path.isdir(self.path):
                self._names = {}
                self._warn_of_writing(error)

    def __contains__(self, digest: object) -> bool:
        """Tell whether there is a file for an expression, and nothing wrong was seen of it."""
        return isinstance(digest, bytes) and (name := digest.hex()) in self._names and name not in self._bad

    def __iter__(self) -> Iterator[bytes]:
        """Yield the digests of the files."""
        yield from [bytes.fromhex(name) for name in self._names if name not in self._bad]

    def read(self, digest: bytes, use: Callable[[Result], _Read], is_use: bool = True) -> _Read | None:
        """Return what ``use`` makes of a result; None where its file is not one that can be used.

        Files that are used longest ago go first; what is only looked at is not used.

        The file of another, and a damaged one, which ``use`` may find too, are warned of.
        """
        name = digest.hex()
        path = os.path.join(self.path, name)
        reason = ""
        try:
            with opened_result(path, digest, self._key) as result:
                found = use(result)
            if is_use:
                with suppress(OSError):
                    os.utime(path)
            return found
        except FileFormatError as error:
            reason = str(error)
        except FileNotFoundError:
            self._names.pop(name, None)  # another process removed it
            return None
        except MatnbError:
            raise
        except OSError as error:
            reason = f"{path}: {error.strerror or error}"
        self._bad.add(name)
        warnings.warn(
            f"a remembered result is not used, and is computed again: {reason}; remove the file if it is not "
            "yours",
            stacklevel=2,
        )
        return None

    def write(self, about: About, fetch: Fetch, num_bytes: int = 0) -> None:
        """Write a result, unless it is there; a disk that does not let it be written is warned of once."""
        name = about.digest.hex()
        if self._full or about.digest in self or num_bytes > self._budget_bytes:
            return
        if name in self._bad and not is_own(os.path.join(self.path, name)):
            return  # warned of when it was to be read; not ours to replace
        temporary = os.path.join(self.path, f".{name}.{secrets.token_hex(6)}.tmp")
        try:
            with open(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b") as stream:
                write_result(stream, about, fetch, self._key)
                size = stream.seek(0, os.SEEK_END)
            os.replace(temporary, os.path.join(self.path, name))
        except MatnbError:  # of a block that could not be had; some of these are OSErrors too
            raise
        except OSError as error:
            self._warn_of_writing(error)
            return
        finally:  # after an error or interrupt
            with suppress(OSError):
                os.unlink(temporary)
        self._bad.discard(name)
        self._names[name] = max(_SMALLEST_BYTES, size)
        if self.num_bytes > self._budget_bytes:
            self._trim()

    def clear(self) -> None:
        """Remove every result."""
        self._listed_ns = -1
        self.refresh()
        for name in list(self._names):
            self._remove(name)

    def _remove(self, name: str) -> None:
        with suppress(OSError):
            os.unlink(os.path.join(self.path, name))
        self._names.pop(name, None)

    def _trim(self) -> None:
        used: list[tuple[float, str, int]] = []
        abandoned = time.time() - _ABANDONED_SECONDS
        with suppress(OSError), os.scandir(self.path) as found:
            for one in found:
                with suppress(OSError):
                    status = one.stat(follow_symlinks=False)
                    if _NAME.fullmatch(one.name):
                        used.append((status.st_mtime, one.name, max(_SMALLEST_BYTES, status.st_size)))
                    elif _TEMPORARY.fullmatch(one.name) and status.st_mtime < abandoned:
                        os.unlink(one.path)
        total = sum(size for _, _, size in used)
        for _, name, size in sorted(used):
            if total <= self._budget_bytes:
                return
            self._remove(name)
            total -= size

    def _warn_of_writing(self, error: OSError) -> None:
        if not self._full:
            self._full = True
            warnings.warn(
                f"results are not written to {self.path} any more in this session: "
                f"{error.strerror or error}; the limit of the files is memo={bytes_text(self._budget_bytes)}",
                stacklevel=3,
            )

"""Text in other encodings than UTF-8: read as UTF-8, and which encodings can be read in pieces."""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, TypeAlias

from matnb.errors import FileFormatError, OptionError
from matnb.io.files import File

_READ_BYTES = 1 << 18


def encoding_name(encoding: str) -> str:
    """Return Python's name of an encoding; UTF-8 with a mark in front is UTF-8.

    Raises
    ------
    OptionError
        For one that Python does not know, or not of text.
    """
    try:
        name = codecs.lookup(encoding).name
        "a".encode(name)
    except (LookupError, TypeError, ValueError):
        raise OptionError(
            f"encoding={encoding!r}: give the name of an encoding, such as 'utf-8', 'cp1252', 'latin-1' or "
            "'utf-16'"
        ) from None
    return "utf-8" if name in ("utf-8-sig", "ascii") else name


def has_one_byte_letters(encoding: str) -> bool:
    """Tell whether each byte is a letter, as of ASCII: any line of such text can be read alone."""
    try:
        if bytes(range(128)).decode(encoding) != bytes(range(128)).decode("ascii"):
            return False
    except UnicodeDecodeError:
        return False
    for byte in range(128, 256):
        try:
            letter = codecs.getincrementaldecoder(encoding)().decode(bytes([byte]), False)
        except UnicodeDecodeError:  # none of the alphabet, as five bytes are in cp1252
            continue
        if len(letter) != 1:
            return False
    return True


@dataclass(frozen=True)
class RecodedFile:
    """A file of text in an encoding that is read from its beginning, as UTF-8."""

    file: File
    encoding: str

    @property
    def compressed(self) -> bool:
        """Whether only one worker can read it, as it is here."""
        return True

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.file.size

    def stated_text(self) -> int:
        """Return about how many bytes of text there are."""
        return self.file.stated_text()

    def error(self, reason: str, line: int | None = None) -> FileFormatError:
        """Return the error that names the file."""
        return self.file.error(reason, line)

    @contextmanager
    def text(self) -> Iterator[IO[bytes]]:
        """Open the text as UTF-8."""
        with self.file.text() as stream:
            yield _AsUtf8(self, stream)  # type: ignore[misc]  # a raw stream is read as any binary file


TextFile: TypeAlias = File | RecodedFile


class _AsUtf8(io.RawIOBase):
    """What a stream has in another encoding, from its beginning on."""

    def __init__(self, file: RecodedFile, stream: IO[bytes]) -> None:
        super().__init__()
        self._file, self._stream = file, stream
        self._decoder = codecs.getincrementaldecoder(file.encoding)()
        self._ready, self._position, self._lines, self._is_end = b"", 0, 0, False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and not self._is_end:
            data = self._stream.read(_READ_BYTES)
            self._is_end = not data
            try:
                text = self._decoder.decode(data, final=self._is_end)
            except UnicodeError as error:
                reason = f"is not {self._file.encoding} text: {getattr(error, 'reason', error)}"
                raise self._file.error(reason, self._lines + 1) from None
            if not self._position:
                text = text.removeprefix("\ufeff")
            self._lines += text.count("\n")
            self._ready = text.encode()
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        self._position += count
        return count

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        while self._position < offset and self.read(min(1 << 20, offset - self._position)):
            pass
        return self._position

"""Lines of a text file by byte range, in bounded chunks: a piece owns the lines that start in its range."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, TypeVar

import numpy as np
import numpy.typing as npt

from matnb.errors import FileFormatError, OptionError
from matnb.io.digits import (
    MARGIN,
    BadToken,
    Places,
    Text,
    parse_floats,
    parse_integers,
    parse_unsigned,
    shown,
    text_of,
    token_places,
)
from matnb.io.encodings import TextFile
from matnb.io.files import File
from matnb.io.source import Piece, split_range

Numbers = TypeVar("Numbers", npt.NDArray[np.int64], npt.NDArray[np.uint64], npt.NDArray[np.float64])
_Read = TypeVar("_Read")

CHUNK_BYTES = 1 << 18  # measured best of 64 KB to 8 MB: the parser's temporaries stay in cache
SMALLEST_PIECE = 1 << 15  # below this a task costs more than its reading
LONGEST_LINE = 1 << 20  # of formats whose lines hold a few numbers
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # what it begins with
WHOLE_TEXT = 2**62  # where the only piece of a compressed file ends


@dataclass(frozen=True, eq=False)
class Chunk:
    """Whole lines of a piece, and where they are in the file.

    Parameters
    ----------
    file, text
        The file, and the lines.
    origin
        Byte of the (decompressed) file from which lines are counted.
    lines_before
        Lines between ``origin`` and this chunk.
    newlines
        Positions of the newlines in the text's buffer.
    """

    file: TextFile
    text: Text
    origin: int
    lines_before: int
    newlines: Places

    def line_at(self, position: int) -> int:
        """Return the 1-based line of a position; counts the lines of the file before this piece."""
        before = int(np.searchsorted(self.newlines, position))
        return count_lines(self.file, self.origin) + self.lines_before + before + 1

    def error_at(self, position: int, reason: str) -> FileFormatError:
        """Return the error that names the line of a position."""
        return self.file.error(reason, self.line_at(position))

    def integers(self, starts: Places, stops: Places) -> npt.NDArray[np.int64]:
        """Return tokens as whole numbers; the first that is none is an error at its line."""
        return self._numbers(parse_integers, starts, stops)

    def unsigned(self, starts: Places, stops: Places) -> npt.NDArray[np.uint64]:
        """Return tokens as whole numbers from 0 on, below 2**64; the first that is none is an error."""
        return self._numbers(parse_unsigned, starts, stops)

    def floats(self, starts: Places, stops: Places) -> npt.NDArray[np.float64]:
        """Return tokens as numbers of double precision; the first that is none is an error at its line."""
        return self._numbers(parse_floats, starts, stops)

    def integers_within(
        self, starts: Places, stops: Places, lowest: int, highest: int, name: str
    ) -> npt.NDArray[np.int64]:
        """Return tokens as whole numbers; the first below or above the bounds is an error, too."""
        numbers = self.integers(starts, stops)
        outside = np.flatnonzero((numbers < lowest) | (numbers > highest))
        if outside.size:
            reason = f"{name} {numbers[outside[0]]} is not in {lowest} to {highest}"
            raise self.error_at(int(starts[outside[0]]), reason)
        return numbers

    def _numbers(
        self, parse: Callable[[Text, Places, Places], Numbers], starts: Places, stops: Places
    ) -> Numbers:
        try:
            return parse(self.text, starts, stops)
        except BadToken as bad:
            raise self.error_at(int(starts[bad.number]), bad.reason) from None


def read_in_order(chunk: Chunk, read: Callable[[Chunk], _Read]) -> _Read:
    """Return what is read of a chunk, in which an error is that of the first bad line.

    One check after the other looks at all lines, so that the first to fail need not be that of the first
    line; which lines are looked at together follows the cuts.
    """
    try:
        return read(chunk)
    except FileFormatError as error:
        before = -1 if error.line is None else error.line - chunk.line_at(MARGIN)
        if before > 0:
            stop = int(chunk.newlines[before - 1]) + 1
            text = Text(chunk.text.buffer[:stop])
            read_in_order(
                Chunk(chunk.file, text, chunk.origin, chunk.lines_before, chunk.newlines[:before]), read
            )
        raise


def text_pieces(file: TextFile, begin: int, count: int, stop: int = WHOLE_TEXT) -> tuple[Piece, ...]:
    """Return byte ranges of the text from ``begin`` to ``stop``; a compressed file is one piece."""
    if file.compressed:
        return (Piece(0, begin, stop),)
    return split_range(begin, min(file.size, stop), count, SMALLEST_PIECE)


def head_lines(file: TextFile, longest: int = LONGEST_LINE) -> Iterator[tuple[bytes, int, int]]:
    """Yield the lines of a file from its beginning, each with its 1-based number and the next one's start.

    Raises
    ------
    FileFormatError
        For a line that is too long to be one of a header, or has a NUL byte, or when there is none.
    """
    with file.text() as stream:
        buffered = io.BufferedReader(stream)  # type: ignore[type-var]  # of either kind of stream
        number = end = 0
        while line := buffered.readline(longest + 1):
            number += 1
            end += len(line)
            if len(line) > longest:
                raise file.error(
                    f"a line of more than {longest} bytes: not a text file of this kind?", number
                )
            if number == 1 and line.startswith(_UTF_16):
                raise file.error("is UTF-16 text; save it as UTF-8", number)
            if b"\0" in line:
                raise file.error("a NUL byte: not a text file?", number)
            yield line, number, end
        if not number:
            raise file.error("holds no text")


def check_skip(skip: int) -> None:
    """Check a number of lines to skip.

    Raises
    ------
    OptionError
        When it is not a whole number, or negative.
    """
    if not isinstance(skip, int) or isinstance(skip, bool) or skip < 0:
        raise OptionError(f"skip={skip!r}: give a number of lines, 0 or more")


def count_lines(file: TextFile, stop: int) -> int:
    """Return the number of newlines before a byte of the (decompressed) file."""
    number = 0
    with file.text() as stream:
        while stop > 0 and (data := stream.read(min(stop, 1 << 20))):
            number += num_newlines(data)
            stop -= len(data)
    return number


def num_newlines(data: bytes) -> int:
    """Return the number of newlines in bytes; ``data.count`` takes five times as long."""
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == 10))


def read_chunks(file: File, piece: Piece, begin: int, longest: int = LONGEST_LINE) -> Iterator[Chunk]:
    """Yield the lines that start in a piece, in chunks of about ``CHUNK_BYTES``.

    Raises
    ------
    FileFormatError
        For a line that is longer than allowed, or a control character.
    """
    for lines in read_lines(file, piece, begin, CHUNK_BYTES, longest):
        chunk = lines.chunk()
        lines.check_controls(chunk)
        yield chunk


@dataclass(frozen=True, eq=False)
class Lines:
    """Whole lines of a piece as bytes, and where they are in the file, as of :class:`Chunk`."""

    file: TextFile
    data: bytes
    origin: int
    lines_before: int

    def chunk(self) -> Chunk:
        """Return the lines as what tokens are looked for in."""
        text = text_of(self.data)
        return Chunk(self.file, text, self.origin, self.lines_before, np.flatnonzero(text.buffer == 10))

    def check_controls(self, chunk: Chunk) -> None:
        """Refuse control characters.

        Raises
        ------
        FileFormatError
            For the first.
        """
        buffer = chunk.text.buffer
        control = np.flatnonzero(buffer < 32)
        codes = buffer[control]
        odd = np.flatnonzero((codes != 9) & (codes != 10) & (codes != 13))
        if odd.size:
            code = int(codes[odd[0]])
            raise chunk.error_at(int(control[odd[0]]), f"a control character (byte {code}): not a text file?")


def read_lines(
    file: File, piece: Piece, begin: int, chunk_bytes: int, longest: int = LONGEST_LINE
) -> Iterator[Lines]:
    """Yield the lines that start in a piece, about ``chunk_bytes`` at a time.

    Parameters
    ----------
    file, piece
        What to read.
    begin
        Where the first line of the data starts.
    longest
        Bytes of the longest line allowed.

    Raises
    ------
    FileFormatError
        For a longer line.
    """
    with file.text() as stream:
        position = _skip(stream, piece.start if piece.start == begin else piece.start - 1)
        carried, size, lines = b"", chunk_bytes, 0
        origin = -1 if piece.start > begin else begin  # -1: still inside a line of the piece before
        while data := stream.read(size):
            block = carried + data
            position += len(data)
            if origin < 0:
                first = block.find(b"\n") + 1
                if first == 0:
                    _check_length(file, position - len(block), block, longest)
                    carried, size = block, len(block)
                    continue
                origin = position - len(block) + first
                block = block[first:]
            if origin >= piece.stop:
                return
            begins = position - len(block)  # of the block, a line's start
            last = block.find(b"\n", max(0, piece.stop - 1 - begins)) if position >= piece.stop else -1
            cut = last + 1 if last >= 0 else block.rfind(b"\n") + 1
            if cut:
                whole = block[:cut]
                yield Lines(file, whole, origin, lines)
                lines += num_newlines(whole)
            carried, size = block[cut:], chunk_bytes
            if last >= 0:
                return
            if len(carried) > chunk_bytes:
                _check_length(file, position - len(carried), carried, longest)
                size = len(carried)
        if carried and origin >= 0:
            yield Lines(file, carried, origin, lines)


def _skip(stream: IO[bytes], position: int) -> int:
    # GzipFile seeks by reading, in bounded memory
    stream.seek(position)
    return position


def _check_length(file: File, start: int, line: bytes, longest: int) -> None:
    if len(line) > longest:
        raise file.error(f"a line of more than {longest} bytes", count_lines(file, start) + 1)


def columns_of(
    chunk: Chunk, num_columns: int, commas: bool = False, least: int | None = None
) -> tuple[Places, Places]:
    """Return where the tokens of each line start and stop, as two (lines, columns) arrays; skips blank lines.

    Parameters
    ----------
    chunk
        Lines.
    num_columns
        Tokens of every line that is not blank.
    commas
        Whether a comma separates tokens as a space does.
    least
        Where lines may have fewer or more tokens: how many are needed; maybe no others are returned.

    Raises
    ------
    FileFormatError
        For the first line with another number of tokens, or two commas without anything between.
    """
    buffer, newlines = chunk.text.buffer, chunk.newlines
    is_token = buffer > 32
    if commas:
        is_comma = buffer == 44
        empty = np.flatnonzero(is_comma[1:] & is_comma[:-1])
        if empty.size:
            raise chunk.error_at(int(empty[0]), "an empty column between two commas")
        is_token &= ~is_comma
    starts, stops = token_places(is_token)
    if starts.size == newlines.size * num_columns:
        by_line = starts.reshape(-1, num_columns)
        ends = stops.reshape(-1, num_columns)
        if bool((ends[:, -1] <= newlines).all() and (by_line[1:, 0] > newlines[:-1]).all()):
            return by_line, ends
    counts = np.diff(np.searchsorted(starts, newlines), prepend=0)
    differs = counts != num_columns if least is None else counts < least
    wrong = np.flatnonzero(differs & (counts != 0))
    if wrong.size:
        line = int(wrong[0])
        begin = int(newlines[line - 1]) + 1 if line else MARGIN
        found = shown(chunk.text.bytes_at(begin, int(newlines[line])).strip())
        raise chunk.error_at(begin, f"{int(counts[line])} columns where {num_columns} are expected: {found}")
    if least is None:
        return starts.reshape(-1, num_columns), stops.reshape(-1, num_columns)
    kept = (np.cumsum(counts) - counts)[counts != 0, np.newaxis] + np.arange(least)
    return starts[kept], stops[kept]


def blank_comments(chunk: Chunk, marks: bytes) -> None:
    """Overwrite comments, from one of ``marks`` to the end of its line, with spaces."""
    buffer = chunk.text.buffer
    is_mark = np.zeros(buffer.size, np.bool_)
    for mark in marks:
        is_mark |= buffer == mark
    places = np.flatnonzero(is_mark)
    if not places.size:
        return
    lines = np.searchsorted(chunk.newlines, places)
    first = np.flatnonzero(np.diff(lines, prepend=-1))
    steps = np.zeros(buffer.size + 1, np.int8)
    steps[places[first]] = 1
    steps[chunk.newlines[lines[first]]] -= 1
    buffer[np.cumsum(steps[:-1], dtype=np.int8).astype(np.bool_)] = 32

"""Rows of text with quotes by byte range: a line break inside quotes ends none, wherever pieces are cut."""

# A byte is inside quotes if an odd number of quotes come before it (RFC 4180: a quote inside is written
# twice, which is an even number). A piece does not know that number. It follows both assumptions until one of
# them meets a quote that cannot be where it is (Ge et al. 2019, "Speculative distributed CSV data parsing for
# big data analytics"); only where both can be right are the quotes before the piece counted. That each piece
# begins where the one before it ended is checked when the pieces are put together.

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import IO

import numpy as np
import numpy.typing as npt

from matnb.io.digits import MARGIN, Places
from matnb.io.encodings import TextFile
from matnb.io.lines import LONGEST_LINE, Chunk, Lines, count_lines, num_newlines
from matnb.io.source import Piece

_QUOTE, _RETURN, _NEWLINE, _TAB = 34, 13, 10, 9
_READ_BYTES = 1 << 20
_NOWHERE = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Dialect:
    """How rows are written.

    Attributes
    ----------
    delimiter
        The character between fields.
    comment
        What begins a comment, which goes to the end of the line; "" where there are none.
    is_spaced
        Whether any number of spaces and tabs is one delimiter, and those around a line are none.
    """

    delimiter: str
    comment: str = ""
    is_spaced: bool = False

    def quotes(self, data: bytes, inside: bool = False) -> Places:
        """Return where quotes are, in text that begins inside quotes or not; those in comments are none."""
        found = np.flatnonzero(np.frombuffer(data, np.uint8) == _QUOTE)
        for start, stop in self.comments(data, inside):
            found = found[(found < start) | (found >= stop)]
        return found

    def comments(self, data: bytes, inside: bool = False) -> list[tuple[int, int]]:
        """Return where comments begin and end; a mark inside quotes begins none."""
        mark = self.comment.encode()
        if not mark or mark not in data:
            return []
        found: list[tuple[int, int]] = []
        place, begin = 0, -1
        while True:
            quote = data.find(b'"', place)
            if inside:
                if quote < 0:
                    return found
                place, inside = quote + 1, False
                continue
            if begin < place:
                begin = data.find(mark, place)
                if begin < 0:
                    return found
            if 0 <= quote < begin:
                place, inside = quote + 1, True
                continue
            end = data.find(b"\n", begin)
            place = len(data) if end < 0 else end
            found.append((begin, place))

    def without_comments(self, data: bytes, inside: bool = False) -> bytes:
        """Return text without its comments, and without spaces between a quote and a comment."""
        kept, place = [], 0
        for start, stop in self.comments(data, inside):
            line = data.rfind(b"\n", place, start) + 1 or place
            is_alone = (line == 0 or data[line - 1 : line] == b"\n") and not data[line:start].strip()
            part = data[place : line if is_alone else start]
            kept.append(part.rstrip(b" \t") if part.rstrip(b" \t").endswith(b'"') else part)
            place = stop
        return b"".join([*kept, data[place:]])

    def plain(self, data: bytes) -> bytes:
        """Return rows without comments, and with one space between fields that any number separates."""
        data = self.without_comments(data)
        if not self.is_spaced:
            return data
        # Spaces in quotes stay: every second part is inside.
        parts = data.split(b'"')
        parts[::2] = [re.sub(rb"[ \t]+", b" ", one) for one in parts[::2]]
        return re.sub(rb"(^|\n) | (?=\r?\n|\r?\Z)", rb"\1", b'"'.join(parts))

    def row_end(self, data: bytes, start: int | None, inside: bool = False) -> int:
        """Return the first line break from ``start`` on that ends a row, -1 if none; None: the last one."""
        if b'"' not in data and not inside:
            return data.rfind(b"\n") if start is None else data.find(b"\n", start)
        quotes = self.quotes(data, inside) if self.comment else None
        place = data.rfind(b"\n") if start is None else data.find(b"\n", start)
        before, last = int(inside), 0
        while place >= 0:
            # Quotes up to here, fewer again where it goes back.
            low, high = min(last, place), max(last, place)
            if quotes is not None:
                count = int(np.searchsorted(quotes, high) - np.searchsorted(quotes, low))
            else:
                count = int(np.count_nonzero(np.frombuffer(data, np.uint8, high - low, low) == _QUOTE))
            before += count if place > last else -count
            if before % 2 == 0:
                return place
            last = place
            place = data.rfind(b"\n", 0, place) if start is None else data.find(b"\n", place + 1)
        return -1

    def begins_inside(self, data: bytes, is_end: bool) -> bool | None:
        """Tell whether text from some byte on begins inside quotes; None where both can be."""
        if b'"' not in data:
            # Inside, a row would go on for longer than rows may.
            return False if is_end or len(data) >= LONGEST_LINE else None
        stray, quotes = [], []
        # Spaces at the end may be those before a comment, which follows a quote as the end of its line does.
        known = data.rstrip(b" \t") if self.comment and not is_end else data
        for inside in (False, True):
            buffer = np.frombuffer(self.without_comments(known, inside), np.uint8)
            quotes.append(np.flatnonzero(buffer == _QUOTE))
            stray.append(_first_stray(buffer, quotes[inside], ord(self.delimiter), inside))
        if stray[0] != stray[1]:
            return stray[0] < stray[1]
        if is_end:  # where no quote is open
            fits = [(quotes[inside].size + inside) % 2 == 0 for inside in (False, True)]
        elif len(data) >= LONGEST_LINE:
            fits = [self.row_end(data, 0, inside) >= 0 for inside in (False, True)]
        else:
            return None
        return fits[1] if fits[0] != fits[1] else None


def _first_stray(buffer: npt.NDArray[np.uint8], quotes: Places, delimiter: int, inside: bool) -> int:
    # Where the first quote is that neither opens nor closes a field; beyond any text if none.
    opening, closing = quotes[int(inside) :: 2], quotes[1 - int(inside) :: 2]
    unopening = opening[~_opens(buffer, opening, delimiter)]
    stray = np.concatenate([unopening, _unclosing(buffer, closing, delimiter)])
    return int(stray.min(initial=_NOWHERE))


def _opens(buffer: npt.NDArray[np.uint8], quotes: Places, delimiter: int) -> npt.NDArray[np.bool_]:
    before = buffer[quotes - 1]
    found: npt.NDArray[np.bool_] = before == delimiter  # np.isin takes five times as long
    found |= before == _NEWLINE
    found |= before == _QUOTE
    found |= quotes == 0
    return found


def _field_start(buffer: npt.NDArray[np.uint8], opening: Places, place: int) -> int:
    # Where the quoted field opens that a place is in: a quote that is written twice closes it and opens it.
    starts = opening[(opening <= place) & ((opening == 0) | (buffer[opening - 1] != _QUOTE))]
    return int(starts[-1]) if starts.size else place


def _unclosing(buffer: npt.NDArray[np.uint8], quotes: Places, delimiter: int) -> Places:
    after = buffer[np.minimum(quotes + 1, buffer.size - 1)]
    closes = (after == delimiter) | (after == _NEWLINE)
    if not closes.all():
        closes |= (after == _RETURN) | (after == _QUOTE) | (quotes == buffer.size - 1)
    found: Places = quotes[~closes]
    return found


def _inside_at(file: TextFile, begin: int, stop: int, dialect: Dialect) -> bool:
    # Whether a byte is inside quotes, by those from the first row on.
    inside, carried = False, b""
    with file.text() as stream:
        stream.seek(begin)
        place = begin
        while place < stop and (data := stream.read(min(_READ_BYTES, stop - place))):
            place += len(data)
            carried += data
            cut = len(carried) if not dialect.comment or place >= stop else carried.rfind(b"\n") + 1
            inside ^= bool(dialect.quotes(carried[:cut], inside).size % 2)
            carried = carried[cut:]
    return inside


def read_rows(
    file: TextFile, piece: Piece, begin: int, dialect: Dialect, chunk_bytes: int
) -> Iterator[Lines]:
    """Yield the rows that start in a piece, about ``chunk_bytes`` at a time.

    Parameters
    ----------
    file, piece
        What to read.
    begin
        Where the first row starts.

    Raises
    ------
    FileFormatError
        For a row that is longer than ``LONGEST_LINE``.
    """
    with file.text() as stream:
        block, origin = b"", begin
        if piece.start > begin:
            found = _first_row(file, stream, piece.start - 1, begin, dialect, chunk_bytes)
            if found is None:
                return
            origin, block = found
        else:
            stream.seek(begin)
        start, lines, size, is_end = origin, 0, chunk_bytes, False
        while start < piece.stop and not is_end:
            data = b"" if len(block) > size else stream.read(size)
            is_end = not data and len(block) <= size
            block = block + data if block else data
            reaches = start + len(block) >= piece.stop
            last = dialect.row_end(block, max(0, piece.stop - 1 - start)) if reaches else -1
            cut = (last if last >= 0 else dialect.row_end(block, None)) + 1
            if is_end:
                cut = cut if last >= 0 else len(block)
            if cut:
                whole = block[:cut]
                yield Lines(file, whole, origin, lines)
                lines += num_newlines(whole)
                start, block, size = start + cut, block[cut:], chunk_bytes
            elif len(block) > LONGEST_LINE:
                raise _too_long(file, start, block, dialect)
            else:
                size = max(chunk_bytes, len(block))


def _too_long(file: TextFile, start: int, block: bytes, dialect: Dialect) -> Exception:
    quotes = dialect.quotes(block)
    if quotes.size % 2:
        reason = f"a quoted field that is not closed within {LONGEST_LINE:,} bytes"
        opening = _field_start(np.frombuffer(block, np.uint8), quotes[0::2], int(quotes[-1]))
        return file.error(reason, count_lines(file, start + opening) + 1)
    return file.error(f"a line of more than {LONGEST_LINE} bytes", count_lines(file, start) + 1)


def _first_row(
    file: TextFile, stream: IO[bytes], place: int, begin: int, dialect: Dialect, chunk_bytes: int
) -> tuple[int, bytes] | None:
    # Where the first row after a byte starts, and what was read from there on; None where there is none. The
    # byte may be in a comment, which ends with its line, so that what comes after that line is looked at.
    stream.seek(place)
    block = b""
    while True:
        data = stream.read(chunk_bytes)
        block += data
        is_end = not data or place + len(block) >= file.size
        is_enough = is_end or len(block) >= LONGEST_LINE
        start = block.find(b"\n") + 1 if dialect.comment else 0
        if dialect.comment and not start:
            if is_enough:
                return None
            continue
        text = block[start:]
        inside = dialect.begins_inside(text, is_end)
        if inside is None and is_enough:
            inside = _inside_at(file, begin, place + start, dialect)
        if inside is not None:
            end = -1 if start and not inside else dialect.row_end(text, 0, inside)
            if end >= 0 or (start and not inside):
                return place + start + end + 1, text[end + 1 :]
            if is_enough:  # the piece in which a row starts raises that it is too long
                return None


@dataclass(frozen=True, eq=False)
class Quotes:
    """The quotes of whole rows.

    Attributes
    ----------
    chunk
        The rows.
    delimiter
        The byte between fields.
    places
        Of the quotes.
    """

    chunk: Chunk
    delimiter: int
    places: Places

    @cached_property
    def inside(self) -> npt.NDArray[np.bool_]:
        """Which bytes are inside quotes, the first quote among them."""
        return (np.cumsum(self.chunk.text.buffer == _QUOTE, dtype=np.uint8) & 1).astype(np.bool_)

    def outside(self, places: Places) -> Places:
        """Return the places that are not inside quotes."""
        return places[~self.inside[places]] if self.places.size else places

    @cached_property
    def row_ends(self) -> Places:
        """Where the rows end, blank ones too."""
        return self.outside(self.chunk.newlines)

    @cached_property
    def row_starts(self) -> Places:
        """Where the rows begin, blank ones too."""
        ends = self.row_ends
        return np.concatenate([[MARGIN], ends[:-1] + 1]) if ends.size else ends

    @cached_property
    def is_blank(self) -> npt.NDArray[np.bool_]:
        """Which rows are blank lines."""
        buffer, starts = self.chunk.text.buffer, self.row_starts
        is_return = (buffer[starts] == _RETURN) & (self.row_ends - starts == 1)
        found: npt.NDArray[np.bool_] = is_return | (buffer[starts] == _NEWLINE)
        return found

    def row_start(self, position: int) -> int:
        """Return where the row begins that has the byte at a position."""
        ends = self.row_ends
        return int(ends[ends < position].max(initial=MARGIN - 1)) + 1

    def first_error(self, num_columns: int, is_headless: bool) -> tuple[int, str] | None:
        """Return the first place where the text is not UTF-8 or a row has other fields, and why."""
        found = [self.broken(), self._control(), self._return_alone(), self._other_encoding()]
        counts = np.diff(np.searchsorted(self.between, self.row_ends), prepend=0) + 1
        wrong = np.flatnonzero((counts != num_columns) & ~self.is_blank)
        if wrong.size:
            row = int(wrong[0])
            mark = chr(self.delimiter)
            way = "complete the line, read only those before it with nrows="
            if counts[row] > num_columns:
                names = ", give names=[...] with header=0 if all rows are so long" * (not is_headless)
                way = f"quote a field that has {mark!r} in it{names}"
            reason = (
                f"{counts[row]} fields where the {'first row' if is_headless else 'header'} has "
                f"{num_columns}: {way}, or {ragged_way(mark, is_headless)}"
            )
            found.append((int(self.row_starts[row]), reason))
        # After a quote that does not belong there, nothing in the row is what it seems.
        errors = [one for one in found if one is not None]
        return min(errors, key=lambda one: self.row_start(one[0]), default=None)

    def _control(self) -> tuple[int, str] | None:
        buffer = self.chunk.text.buffer
        control = np.flatnonzero(buffer < 32)
        codes = buffer[control]
        odd = self.outside(control[(codes != _TAB) & (codes != _NEWLINE) & (codes != _RETURN)])
        if not odd.size:
            return None
        return int(odd[0]), f"a control character (byte {buffer[odd[0]]}): not a text file?"

    def _return_alone(self) -> tuple[int, str] | None:
        buffer = self.chunk.text.buffer
        returns = np.flatnonzero(buffer == _RETURN)
        alone = self.outside(returns[buffer[returns + 1] != _NEWLINE])
        if not alone.size:
            return None
        return int(alone[0]), "a carriage return that no line feed follows: save it with line feeds"

    def _other_encoding(self) -> tuple[int, str] | None:
        try:
            self.chunk.text.buffer.tobytes().decode()
        except UnicodeDecodeError as error:
            advice = 'save it as UTF-8, or name what it is, as in encoding="cp1252"'
            return error.start, f"is not UTF-8 text: {error.reason}; {advice}"
        return None

    def broken(self) -> tuple[int, str] | None:
        """Return the first quote inside a field, or that opens a field which is not closed, and why."""
        if not self.places.size:
            return None
        buffer = self.chunk.text.buffer
        opening, closing = self.places[0::2], self.places[1::2]
        opens = _opens(buffer, opening, self.delimiter) | (opening == MARGIN)
        found = [(int(place), _IN_A_FIELD) for place in opening[~opens][:1]]
        stray = _unclosing(buffer, closing, self.delimiter)[:1]
        found += [(_field_start(buffer, opening, int(place)), _IN_A_FIELD) for place in stray]
        if opening.size > closing.size:
            start = _field_start(buffer, opening, int(opening[-1]))
            found.append((start, "a quoted field that is not closed"))
        return min(found, default=None)

    @cached_property
    def between(self) -> Places:
        """The delimiters between fields."""
        found = np.flatnonzero(self.chunk.text.buffer == self.delimiter)
        return self.outside(found[found >= MARGIN])

    def fields(self, num_columns: int, takes_delimiters: bool) -> QuotedFields:
        """Return the fields that are quoted, of rows that are not broken.

        Parameters
        ----------
        num_columns
            Of the rows.
        takes_delimiters
            Whether fields with a delimiter count, which have to be quoted whatever they are.
        """
        buffer, ends = self.chunk.text.buffer, self.row_ends
        opening, closing = self.places[0::2], self.places[1::2]
        # "" inside a field closes it and opens it again.
        starts = opening[buffer[opening - 1] != _QUOTE]
        stops = closing[buffer[closing + 1] != _QUOTE]
        is_end = np.zeros(buffer.size, np.bool_)
        is_end[self.between] = True
        is_end[ends[~self.is_blank]] = True
        columns = np.cumsum(is_end, dtype=np.int32)[starts] % num_columns
        is_empty = stops - starts == 1
        if not takes_delimiters:
            delimiters = np.flatnonzero(buffer == self.delimiter)
            has_none = np.searchsorted(delimiters, stops) == np.searchsorted(delimiters, starts)
            starts, columns, is_empty = starts[has_none], columns[has_none], is_empty[has_none]
        return QuotedFields(starts, columns, is_empty)


@dataclass(frozen=True, eq=False)
class QuotedFields:
    """Fields that are quoted: where they start, their columns, and whether they are empty."""

    starts: Places
    columns: npt.NDArray[np.int32]
    is_empty: npt.NDArray[np.bool_]


_IN_A_FIELD = "a quote in the middle of a field; quote the whole field, and write a quote inside twice"


def quotes_of(chunk: Chunk, delimiter: str) -> Quotes:
    """Return the quotes of whole rows without comments."""
    return Quotes(chunk, ord(delimiter), np.flatnonzero(chunk.text.buffer == _QUOTE))


def unquoted(text: str) -> str:
    """Return text without what is in quotes."""
    return re.sub(r'"[^"]*"', "", text)


def ragged_way(mark: str, is_headless: bool) -> str:
    """Return how pandas reads rows of different lengths, which has no column for more than the first has."""
    options = f"{f', sep={mark!r}' * (mark != ',')}{', skiprows=1' * (not is_headless)}"
    return (
        f"mn.table(pandas.read_csv(path{options}, header=None, names=[...])), with as many names as the "
        "longest row has fields, reads it in this process"
    )

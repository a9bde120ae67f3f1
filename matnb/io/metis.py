"""METIS graph files: line k lists the neighbors of vertex k (METIS 5 manual, section 4.1.1)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import LARGEST_LENGTH, Block
from matnb.blocks.grid import Region
from matnb.errors import FileFormatError
from matnb.io.digits import MARGIN, Places, token_places
from matnb.io.entries import Entries, ReaderValue, block_of, entries_in, joined
from matnb.io.files import File
from matnb.io.lines import LONGEST_LINE, Chunk, head_lines, read_chunks, read_in_order, text_pieces
from matnb.io.source import Piece, PlainSource, Source, SourceFacts, reader

_FLOAT = np.dtype(np.float64)
_PERCENT = 37
_AGAIN_BYTES = 1 << 26  # of a piece, when a bad file is read again
_LONGEST_NUMBER = 40  # bytes, its space included


@dataclass(frozen=True)
class MetisHeader:
    """What the first line says; ``num_skipped`` numbers are in front of each vertex's neighbors."""

    num_vertices: int
    num_edges: int
    num_skipped: int
    weighted: bool
    begin: int

    @property
    def longest_line(self) -> int:
        """Bytes of the longest line there can be: that of a vertex with an edge to every other."""
        num_numbers = self.num_skipped + self.num_vertices * (2 if self.weighted else 1)
        return max(LONGEST_LINE, _LONGEST_NUMBER * num_numbers)


@dataclass(frozen=True, eq=False)
class Lists(ReaderValue):
    """Neighbours that the lines of a piece list; rows count from the piece's first vertex."""

    number: int
    num_lines: int
    num_last_blank: int
    entries: Entries


@dataclass(frozen=True)
class LineCounts:
    """Of one piece: vertices, blank lines at its end, and neighbors."""

    num_lines: int
    num_last_blank: int
    num_listed: int


@dataclass(frozen=True)
class MetisContext:
    """What is known of the graph, and the first vertex of each piece."""

    found: SourceFacts
    firsts: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class MetisEntries(ReaderValue):
    """Entries of a region, and the fingerprint of those that the other ends of its edges list."""

    entries: Entries
    mirrored: int


@dataclass(frozen=True)
class Metis(PlainSource):
    """An undirected graph; edge weights, if any, are the values."""

    file: File
    header: MetisHeader

    def __repr__(self) -> str:
        return f"Metis({self.file!r})"

    def identity(self) -> tuple[str | int, ...]:
        """Return what tells the result from any other."""
        return ("metis", *self.file.identity)

    def estimated_entries(self) -> int:
        """Return how many entries there are."""
        return 2 * self.header.num_edges

    def pieces(self, count: int) -> tuple[Piece, ...]:
        """Return byte ranges."""
        return text_pieces(self.file, self.header.begin, count)

    def parsing_bytes(self, piece: Piece, num_pieces: int) -> tuple[int, int]:
        """Return what the neighbors of a piece take: no more than its bytes have room for."""
        text = self.file.largest_text if self.file.compressed else piece.stop - piece.start
        held = min(2 * self.header.num_edges, text // 2 + 1) * (16 if self.header.weighted else 8)
        return held, held

    def parse(self, piece: Piece) -> Lists:
        """Read the lines of a piece."""
        chunks: list[Entries] = []
        num_lines = num_last_blank = 0
        for chunk in read_chunks(self.file, piece, self.header.begin, self.header.longest_line):
            counts, entries = read_in_order(chunk, partial(self._lists, first=num_lines))
            chunks.append(entries)
            num_lines += counts.size
            filled = np.flatnonzero(counts)
            num_last_blank = (
                counts.size - 1 - int(filled[-1]) if filled.size else num_last_blank + counts.size
            )
            if num_lines - num_last_blank > self.header.num_vertices:
                raise self._wrong_lines(f"at least {num_lines - num_last_blank}")
        values = _FLOAT if self.header.weighted else None
        return Lists(piece.number, num_lines, num_last_blank, joined(chunks, values))

    def _lists(self, chunk: Chunk, first: int) -> tuple[Places, Entries]:
        # The number of tokens of each vertex's line, and the neighbors.
        buffer, newlines, skipped = chunk.text.buffer, chunk.newlines, self.header.num_skipped
        is_token = buffer > 32
        begins = np.concatenate([[MARGIN], newlines[:-1] + 1]) if newlines.size else newlines
        is_vertex = buffer[begins] != _PERCENT
        for line in np.flatnonzero(~is_vertex):
            is_token[begins[line] : newlines[line]] = False
        starts, stops = token_places(is_token)
        counts = np.diff(np.searchsorted(starts, newlines), prepend=0)
        if skipped:
            is_vertex &= counts > 0  # every vertex has a weight or size, so a blank line is none
        counts, begins = counts[is_vertex], begins[is_vertex]
        own = counts - skipped if skipped else counts
        wrong = np.flatnonzero((own < 0) | (own % 2 != 0) if self.header.weighted else own < 0)
        if wrong.size:
            first_wrong = int(wrong[0])
            reason = f"{counts[first_wrong]} numbers: not {skipped} in front"
            reason += " and then pairs of neighbor and weight" if self.header.weighted else ""
            raise chunk.error_at(int(begins[first_wrong]), reason)
        lines = np.repeat(np.arange(counts.size), counts)
        places = np.arange(starts.size) - np.repeat(np.cumsum(counts) - counts, counts) - skipped
        chunk.integers_within(starts[places < 0], stops[places < 0], 0, 2**62, "vertex weight")
        chosen = places >= 0
        if self.header.weighted:
            is_weight = chosen & (places % 2 == 1)
            chosen &= ~is_weight
            values = chunk.floats(starts[is_weight], stops[is_weight])
        neighbors = chunk.integers_within(
            starts[chosen], stops[chosen], 1, self.header.num_vertices, "neighbor"
        )
        rows = (lines[chosen] + first).astype(np.int32)
        return counts, Entries(
            rows, (neighbors - 1).astype(np.int32), values if self.header.weighted else None
        )

    def summary(self, parsed: Lists) -> LineCounts:
        """Return the counts of a piece."""
        return LineCounts(parsed.num_lines, parsed.num_last_blank, parsed.entries.rows.size)

    def merge(self, summaries: Sequence[LineCounts]) -> MetisContext:
        """Return what is known of the graph, if it has as many vertices and edges as the header says."""
        header = self.header
        num_lines = sum(counts.num_lines for counts in summaries)
        num_blank = 0
        for counts in reversed(summaries):
            num_blank += counts.num_last_blank
            if counts.num_last_blank < counts.num_lines:
                break
        if not num_lines - num_blank <= header.num_vertices <= num_lines:
            raise self._wrong_lines(str(num_lines))
        num_listed = sum(counts.num_listed for counts in summaries)
        if num_listed != 2 * header.num_edges:
            raise self.file.error(
                f"{num_listed} neighbors are listed, but the {header.num_edges} edges of the header make "
                f"{2 * header.num_edges}: each edge is listed at both its ends"
            )
        firsts = np.cumsum([0, *(counts.num_lines for counts in summaries)])
        shape = (header.num_vertices, header.num_vertices)
        found = SourceFacts(shape, _FLOAT, sparse=True, pattern=not header.weighted, nnz=num_listed)
        return MetisContext(found, tuple(firsts.tolist()))

    def _wrong_lines(self, counted: str) -> FileFormatError:
        return self.file.error(
            f"{counted} lines of vertices where the header says {self.header.num_vertices}"
        )

    def part(self, parsed: Lists, context: MetisContext, region: Region) -> MetisEntries:
        """Return the entries that lie in a region, and what the other ends of its edges say."""
        listed, mirrored = _both_ends(parsed, context.firsts[parsed.number], region)
        return MetisEntries(listed, fingerprint(mirrored))

    def assemble(self, parts: Sequence[MetisEntries], context: MetisContext, region: Region) -> Block:
        """Return the block of a region, if its edges are listed once at both their ends."""
        here, there = (
            sum(one) % 2**64
            for one in ((fingerprint(part.entries) for part in parts), (part.mirrored for part in parts))
        )
        if here != there:
            raise self._asymmetry(region)
        block = block_of([part.entries for part in parts], region, _FLOAT)
        if block.nnz != sum(part.entries.rows.size for part in parts):
            raise self._asymmetry(region)
        return block

    def _asymmetry(self, region: Region) -> FileFormatError:
        # Reads the file again, since only now does it matter which edge it is.
        listed, mirrored, first = [], [], 0
        for piece in self.pieces(1 + self.file.size // _AGAIN_BYTES):
            parsed = self.parse(piece)
            here, there = _both_ends(parsed, first, region)
            listed.append(here)
            mirrored.append(there)
            first += parsed.num_lines
        values = _FLOAT if self.header.weighted else None
        one, two, wrong = odd_edge(joined(listed, values), joined(mirrored, values))
        one, two = one + region[0][0] + 1, two + region[1][0] + 1
        match wrong:
            case "twice":
                return self._at_vertex(one, f"vertex {one} lists {two} twice")
            case "listed":
                return self._at_vertex(one, f"vertex {one} lists {two}, but {two} does not list {one}")
            case "mirrored":
                return self._at_vertex(two, f"vertex {two} lists {one}, but {one} does not list {two}")
        return self._at_vertex(one, f"the edge of {one} and {two} has another weight at its other end")

    def _at_vertex(self, vertex: int, reason: str) -> FileFormatError:
        seen = 0
        for line, number, end in head_lines(self.file, self.header.longest_line):
            if (
                end > self.header.begin
                and not line.startswith(b"%")
                and (line.strip() or not self.header.num_skipped)
            ):
                seen += 1
                if seen == vertex:
                    return self.file.error(reason, number)
        return self.file.error(reason)


def _both_ends(parsed: Lists, first: int, region: Region) -> tuple[Entries, Entries]:
    entries = parsed.entries
    rows = entries.rows + np.int32(first)
    listed = Entries(rows, entries.columns, entries.values)
    mirrored = Entries(entries.columns, rows, entries.values)
    return entries_in(listed, region), entries_in(mirrored, region)


@reader("metis", ".graph", ".graph.gz", ".metis", ".metis.gz")
def open_metis(file: File) -> Source:
    """Return the source of a METIS graph.

    Raises
    ------
    FileFormatError
        When its first line is no header, or claims more than the file has room for.
    """
    for line, number, begin in head_lines(file):
        if line.startswith(b"%") or not line.strip():
            continue
        words = line.split()
        shown = line[:60].decode("utf-8", "backslashreplace").strip()
        if not 2 <= len(words) <= 4 or not all(re.fullmatch(rb"[0-9]{1,18}", word) for word in words):
            raise file.error(f"{shown!r} is not a METIS header: VERTICES EDGES [FORMAT [WEIGHTS]]", number)
        num_vertices, num_edges = int(words[0]), int(words[1])
        code = words[2].rjust(3, b"0") if len(words) > 2 else b"000"
        if not re.fullmatch(rb"[01]{3}", code):
            raise file.error(f"format {words[2].decode()!r}: three digits 0 or 1 are expected", number)
        num_weights = int(words[3]) if len(words) > 3 else 1
        num_skipped = (code[0] == 49) + (code[1] == 49) * num_weights
        room = max(0, file.largest_text - begin) + 1
        if num_vertices > min(room, LARGEST_LENGTH) or num_edges * 4 > room or num_skipped > room:
            text = f"claims {num_vertices} vertices and {num_edges} edges, but only {room - 1} bytes follow"
            raise file.error(text, number)
        return Metis(file, MetisHeader(num_vertices, num_edges, num_skipped, code[2] == 49, begin))
    raise file.error("has no header: every line is blank or a comment")


# Whether entries and their mirror images are the same: a fingerprint, and the edge that differs.

_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))  # of splitmix64 (Steele, Lea and Flood 2014)


def fingerprint(entries: Entries) -> int:
    """Return a 64-bit number that follows from positions and values, in whatever order they are.

    It is the sum of a hash of each entry, so those of parts add up to that of the whole, modulo 2**64.
    """
    words = _keys(entries).astype(np.uint64)
    words += np.uint64(0x9E3779B97F4A7C15)
    _mix(words)
    if entries.values is not None:
        words ^= (entries.values.astype(np.float64) + 0.0).view(np.uint64)  # adding 0 makes -0.0 a 0.0
        _mix(words)
    return int(words.sum(dtype=np.uint64))


def _mix(words: npt.NDArray[np.uint64]) -> None:
    for shift, factor in _STEPS:
        words ^= words >> np.uint64(shift)
        words *= np.uint64(factor)
    words ^= words >> np.uint64(31)


def _keys(entries: Entries) -> npt.NDArray[np.int64]:
    return (entries.rows.astype(np.int64) << 32) | entries.columns


def odd_edge(
    listed: Entries, mirrored: Entries
) -> tuple[int, int, Literal["twice", "listed", "mirrored", "value"]]:
    """Return an entry by which two collections differ, as row and column, and how.

    "twice" is listed more than once, "listed" and "mirrored" are in one only, and a "value" differs.
    """
    keys, other = np.sort(_keys(listed)), np.sort(_keys(mirrored))
    for place in np.flatnonzero(keys[1:] == keys[:-1])[:1]:
        return *_position(keys[place]), "twice"
    if not np.array_equal(keys, other):
        end = np.int64(2**63 - 1)  # stands behind the shorter of the two
        shared = min(keys.size, other.size) + 1
        ours, theirs = np.append(keys, end)[:shared], np.append(other, end)[:shared]
        place = np.flatnonzero(ours != theirs)[0]
        how: Literal["listed", "mirrored"] = "listed" if ours[place] < theirs[place] else "mirrored"
        return *_position(min(ours[place], theirs[place])), how
    values, others = (np.asarray(one.values)[np.argsort(_keys(one))] for one in (listed, mirrored))
    return *_position(keys[np.argmax(values != others)]), "value"


def _position(key: np.int64) -> tuple[int, int]:
    return int(key) >> 32, int(key) & 0xFFFFFFFF

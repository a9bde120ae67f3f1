"""Rows written as pairs INDEX:VALUE, of svmlight or libsvm with a target each, and documents of LDA-C."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import LARGEST_LENGTH, Block, Dense
from matnb.blocks.grid import Region
from matnb.errors import OptionError
from matnb.io.digits import Places, shown, token_places
from matnb.io.entries import Entries, ReaderValue, block_of, entries_in
from matnb.io.files import File
from matnb.io.lines import Chunk, blank_comments, read_chunks, read_in_order, text_pieces
from matnb.io.source import Piece, PlainSource, Source, SourceFacts, choose, reader

_FLOAT, _COUNT = np.dtype(np.float64), np.dtype(np.int64)
_COLON = 58
_QID = tuple(b"qid")
_LONGEST_LINE = 1 << 28  # bytes: a row may have an entry in each of many columns
_SMALLEST_PAIR = 4  # bytes of one, its space included


@dataclass(frozen=True, eq=False)
class PairLines(ReaderValue):
    """Rows of a piece; indices as they are written.

    Attributes
    ----------
    number
        Of the piece.
    heads
        What is in front of each row's pairs.
    counts
        Pairs of each row.
    indices, values
        Of the pairs, row after row.
    """

    number: int
    heads: npt.NDArray[np.float64]
    counts: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.generic]


@dataclass(frozen=True)
class PairFacts:
    """Of one piece: the targets of its rows, pairs, and the bounds of their indices."""

    heads: npt.NDArray[np.float64]
    num_pairs: int
    lowest: int
    highest: int


@dataclass(frozen=True)
class PairsContext:
    """What is known of the matrix: what its first column is written as, where pieces begin, and targets."""

    found: SourceFacts
    base: int
    firsts: tuple[int, ...]
    heads: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Pairs(PlainSource):
    """A file of rows; ``documents`` are those of LDA-C, whose lines begin with the number of their pairs."""

    file: File
    documents: bool
    zero_based: bool | str
    n_features: int | None
    room_bytes: int | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return f"Pairs({self.file!r})"

    @property
    def dtype(self) -> np.dtype:
        """Type of the values: counts are whole."""
        return _COUNT if self.documents else _FLOAT

    def identity(self) -> tuple[str | int, ...]:
        """Return what tells the result from any other."""
        kind = "lda-c" if self.documents else "svmlight"
        return (
            kind,
            *self.file.identity,
            str(self.zero_based),
            -1 if self.n_features is None else self.n_features,
        )

    def estimated_entries(self) -> int:
        """Return about how many entries there are."""
        return self.file.size // (2 * _SMALLEST_PAIR)

    def pieces(self, count: int) -> tuple[Piece, ...]:
        """Return byte ranges."""
        return text_pieces(self.file, 0, count)

    def parsing_bytes(self, piece: Piece, num_pieces: int) -> tuple[int, int]:
        """Return what the shortest pairs would take."""
        held = 12 * (self.file.stated_text() // _SMALLEST_PAIR // max(1, num_pieces) + 1)
        return held, 2 * held

    def within(self, room_bytes: int) -> Pairs:
        """Return the source with a limit of what reading a piece of it may take."""
        return replace(self, room_bytes=room_bytes)

    def parse(self, piece: Piece) -> PairLines:
        """Read the lines of a piece."""
        none = PairLines(
            0, np.empty(0), np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, self.dtype)
        )
        found, held = [none], 0
        for chunk in read_chunks(self.file, piece, 0, _LONGEST_LINE):
            found.append(read_in_order(chunk, self._lines))
            held += found[-1].__sizeof__()
            self.file.check_room(3 * held, self.room_bytes)  # they are put together, and then in order
        return PairLines(
            piece.number,
            np.concatenate([one.heads for one in found]),
            np.concatenate([one.counts for one in found]),
            np.concatenate([one.indices for one in found]),
            np.concatenate([one.values for one in found]),
        )

    def _lines(self, chunk: Chunk) -> PairLines:
        if not self.documents:
            blank_comments(chunk, b"#")
        buffer = chunk.text.buffer
        is_colon = buffer == _COLON
        is_token = (buffer > 32) & ~is_colon
        starts, stops = token_places(is_token)
        heads = np.flatnonzero(np.diff(np.searchsorted(chunk.newlines, starts), prepend=-1))
        counts = np.diff(heads, append=starts.size) - 1
        is_pair = np.ones(starts.size, np.bool_)
        is_pair[heads] = False
        colons = np.flatnonzero(is_colon)
        stray = colons[~(is_token[colons - 1] & is_token[colons + 1])]
        if stray.size:
            raise chunk.error_at(int(stray[0]), "a colon that is not between an index and its value")
        lefts, rights = _pairs(chunk, starts, stops, is_pair)
        counts //= 2
        if not self.documents:
            counts, lefts, rights = _without_queries(chunk, starts, heads, counts, lefts, rights)
        highest = LARGEST_LENGTH if self.n_features is None else self.n_features
        lowest = 0 if self.zero_based in (True, "auto") else 1
        indices = chunk.integers_within(
            starts[lefts], stops[lefts], lowest, highest - (self.zero_based is True), "index"
        ).astype(np.int32)
        if not self.documents:
            _check_ascending(chunk, starts[heads], counts, indices)
            values: npt.NDArray[np.generic] = chunk.floats(starts[rights], stops[rights])
            return PairLines(0, chunk.floats(starts[heads], stops[heads]), counts, indices, values)
        told = chunk.integers(starts[heads], stops[heads])
        wrong = np.flatnonzero(told != counts)
        if wrong.size:
            reason = f"claims {told[wrong[0]]} terms and lists {counts[wrong[0]]}"
            raise chunk.error_at(int(starts[heads[wrong[0]]]), reason)
        values = chunk.integers_within(starts[rights], stops[rights], 0, 2**53, "count")
        return PairLines(0, told.astype(np.float64), counts, indices, values)

    def summary(self, parsed: PairLines) -> PairFacts:
        """Return the facts of a piece."""
        lowest, highest = parsed.indices.min(initial=LARGEST_LENGTH), parsed.indices.max(initial=-1)
        return PairFacts(parsed.heads, parsed.indices.size, int(lowest), int(highest))

    def merge(self, summaries: Sequence[PairFacts]) -> PairsContext:
        """Return what is known of the matrix.

        Raises
        ------
        FileFormatError
            When an index is beyond ``n_features``.
        """
        base = self.base_of(summaries)
        width = max([0, *(one.highest + 1 - base for one in summaries)])
        if self.n_features is not None:
            if width > self.n_features:
                raise self.file.error(f"index {width - 1 + base} is beyond n_features={self.n_features}")
            width = self.n_features
        heads = np.concatenate([np.empty(0), *(one.heads for one in summaries)])
        firsts = np.cumsum([0, *(one.heads.size for one in summaries)]).tolist()
        found = SourceFacts(
            (firsts[-1], width),
            self.dtype,
            sparse=True,
            nnz=sum(one.num_pairs for one in summaries),
            has_labels=not self.documents,
            labels_dtype=_FLOAT,
        )
        return PairsContext(found, base, tuple(firsts), heads)

    def base_of(self, summaries: Sequence[PairFacts]) -> int:
        """Return what the first column is written as, 0 or 1: "auto" is 1 unless an index 0 occurs."""
        if self.zero_based == "auto":
            return int(all(one.lowest > 0 for one in summaries))
        return 0 if self.zero_based else 1

    def part(self, parsed: PairLines, context: PairsContext, region: Region) -> Entries:
        """Return the entries that lie in a region, with local positions."""
        first = context.firsts[parsed.number]
        rows = np.repeat(np.arange(first, first + parsed.counts.size, dtype=np.int32), parsed.counts)
        return entries_in(Entries(rows, parsed.indices - np.int32(context.base), parsed.values), region)

    def assemble(self, parts: Sequence[Entries], context: PairsContext, region: Region) -> Block:
        """Return the block of a region; counts of a term listed twice are added."""
        return block_of(parts, region, self.dtype)

    def labels(self, context: PairsContext, start: int, stop: int) -> Block:
        """Return the targets of a range of rows."""
        return Dense(context.heads[start:stop])


def _pairs(
    chunk: Chunk,
    starts: Places,
    stops: Places,
    is_pair: npt.NDArray[np.bool_],
) -> tuple[Places, Places]:
    # Which tokens are left and right of a colon.
    parted = np.flatnonzero(is_pair)
    lefts, rights = parted[::2], parted[1::2]
    if lefts.size == rights.size and bool((stops[lefts] + 1 == starts[rights]).all()):
        is_good = chunk.text.buffer[stops[lefts]] == _COLON
        if bool(is_good.all()):
            return lefts, rights
    # The first token that is not on one side of a colon alone, as pairs are, or a head that is on one.
    after, before = chunk.text.buffer[stops] == _COLON, chunk.text.buffer[starts - 1] == _COLON
    place = int(np.flatnonzero(np.where(is_pair, after == before, after | before))[0])
    text = shown(chunk.text.bytes_at(int(starts[place]), int(stops[place])))
    raise chunk.error_at(int(starts[place]), f"{text} is not a pair INDEX:VALUE, or no target before them")


def _without_queries(
    chunk: Chunk,
    starts: Places,
    heads: Places,
    counts: npt.NDArray[np.int64],
    lefts: Places,
    rights: Places,
) -> tuple[npt.NDArray[np.int64], Places, Places]:
    # Pairs qid:NUMBER, which ranking has, are left out.
    is_query = np.ones(lefts.size, np.bool_)
    for place, code in enumerate(_QID):
        is_query &= chunk.text.buffer[starts[lefts] + place] == code
    if not is_query.any():
        return counts, lefts, rights
    rows = np.searchsorted(heads, lefts[is_query]) - 1
    return counts - np.bincount(rows, minlength=counts.size), lefts[~is_query], rights[~is_query]


def _check_ascending(
    chunk: Chunk, lines: Places, counts: npt.NDArray[np.int64], indices: npt.NDArray[np.int32]
) -> None:
    descends = np.flatnonzero(np.diff(indices) <= 0) + 1
    begins = np.cumsum(counts) - counts
    wrong = descends[~np.isin(descends, begins)]
    if wrong.size:
        row = int(np.searchsorted(np.cumsum(counts), wrong[0], "right"))
        place = int(wrong[0])
        reason = f"index {indices[place]} after {indices[place - 1]}: indices of a row ascend"
        raise chunk.error_at(int(lines[row]), reason)


def _width(n_features: object, name: str) -> int | None:
    if n_features is None:
        return None
    if (
        isinstance(n_features, bool)
        or not isinstance(n_features, int | np.integer)
        or not 0 <= n_features <= LARGEST_LENGTH
    ):
        raise OptionError(f"{name}={n_features!r}: give an integer from 0 to {LARGEST_LENGTH}")
    return int(n_features)


@reader("svmlight", ".svm", ".svm.gz", ".svmlight", ".svmlight.gz", ".libsvm", ".libsvm.gz")
def open_svmlight(file: File, zero_based: bool | str = "auto", n_features: int | None = None) -> Source:
    """Return the source of rows of svmlight or libsvm: a sparse matrix whose labels are the rows' targets.

    A line is ``TARGET INDEX:VALUE ...``, indices ascending; ``#`` begins a comment, ``qid:`` is left out.

    Parameters
    ----------
    file
        The rows.
    zero_based
        Whether the first column is written as 0; "auto" when one is.
    n_features
        Columns; by default as many as there are indices.
    """
    choose("zero_based", zero_based, (True, False, "auto"))
    return Pairs(file, False, zero_based, _width(n_features, "n_features"))


@reader("lda-c", ".ldac", ".ldac.gz")
def open_documents(file: File, n_features: int | None = None) -> Source:
    """Return the source of documents as Blei's LDA-C has them: documents by terms, int64 counts.

    A line is ``M TERM:COUNT ...`` with M pairs; terms are numbers from 0.

    Parameters
    ----------
    file
        The documents.
    n_features
        Terms; by default one more than the largest that occurs.
    """
    return Pairs(file, True, True, _width(n_features, "n_features"))

"""Edge lists as SNAP, LDBC and cugraph publish them: a source, a target and perhaps a weight a line."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import LARGEST_LENGTH, Block, Dense
from matnb.blocks.grid import Region
from matnb.errors import FileFormatError, OptionError
from matnb.io.entries import DUPLICATES, Entries, ReaderValue, block_of, entries_in
from matnb.io.files import File, find_file
from matnb.io.lines import (
    Chunk,
    blank_comments,
    check_skip,
    columns_of,
    head_lines,
    read_chunks,
    read_in_order,
    text_pieces,
)
from matnb.io.source import EdgeCounts, Piece, PlainSource, Source, SourceFacts, choose, reader

_FLOAT = np.dtype(np.float64)
_COMMENTS = b"#%"
_BYTES_PER_EDGE = 12  # a guess, for the plan's projection
# Whole numbers from 1973 to 2286, where they are seconds, and the same in finer units.
_TIMES = (10**8, 10**10)
_TIMES_IN = (1, 10**3, 10**6, 10**9)
_TABLE_LIMIT = 16  # ids are looked up in a table of at most this many places for each vertex
Ids = npt.NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class PieceEdges(ReaderValue):
    """Edges of a piece in the order of the file, with the ids of the file."""

    sources: Ids
    targets: Ids
    weights: npt.NDArray[np.float64] | None
    number: int = 0


@dataclass(frozen=True, eq=False)
class Facts(ReaderValue):
    """Of one piece: edges, loops among them, the largest id (-1 if none), and sorted ids if relabelled.

    ``loops`` are the vertices that have one, sorted. Beside the first line of the list, ``is_again`` tells
    which of its two numbers come again and ``largest_else`` is the largest id. ``times`` are the least and
    largest weight, where all of them may be times.
    """

    num_edges: int
    num_loops: int
    largest: int
    ids: Ids | None
    loops: Ids
    is_again: tuple[bool, bool]
    largest_else: int
    times: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class EdgeListContext(ReaderValue):
    """What is known of the graph; ``ids`` are the vertices' in order, None where they are the numbers."""

    found: SourceFacts
    ids: Ids | None


@dataclass(frozen=True)
class EdgeList(PlainSource):
    """An edge list; entry [i, j] is the edge from vertex i to vertex j, in an undirected graph [j, i] too."""

    file: File
    begin: int
    num_columns: int
    weighted: bool
    relabel: bool = True
    directed: bool = True
    self_loops: str = "keep"
    duplicates: str = "merge"
    num_vertices: int | None = None
    vertices: File | None = None
    room_bytes: int | None = field(default=None, compare=False)
    first: tuple[int, ...] = ()  # the numbers of the first line, where it may tell what follows
    comments: bytes = _COMMENTS
    guessed: bool = False  # that the third column is weights
    uneven: bool = False  # whether lines may have weights or none, which are not read

    def __repr__(self) -> str:
        return f"EdgeList({self.file!r})"

    @property
    def pattern(self) -> bool:
        """Whether entries have no values; those of a list without weights have some when they are counted."""
        return not self.weighted and self.duplicates != "sum"

    def identity(self) -> tuple[str | int, ...]:
        """Return what tells the result from any other."""
        options = (
            int(self.weighted),
            int(self.relabel),
            int(self.directed),
            self.self_loops,
            self.duplicates,
            int(self.guessed),
        )
        num_vertices = -1 if self.num_vertices is None else self.num_vertices
        vertices = () if self.vertices is None else self.vertices.identity
        marks = self.comments.hex()
        return ("edges", *self.file.identity, *options, num_vertices, *vertices, self.begin, marks)

    def estimated_entries(self) -> int:
        """Return about how many entries there are."""
        return self.file.size // _BYTES_PER_EDGE * (1 if self.directed else 2)

    def pieces(self, count: int) -> tuple[Piece, ...]:
        """Return byte ranges."""
        return text_pieces(self.file, self.begin, count)

    def parsing_bytes(self, piece: Piece, num_pieces: int) -> tuple[int, int]:
        """Return what the edges of short lines would take."""
        edges = self.file.stated_text() // (6 if self.weighted else 4) // max(1, num_pieces) + 1
        held = edges * (16 if self.weighted else 8)
        return held, 2 * held

    def within(self, room_bytes: int) -> EdgeList:
        """Return the list with a limit of what reading a piece of it may take."""
        return replace(self, room_bytes=room_bytes)

    def parse(self, piece: Piece) -> PieceEdges:
        """Read the lines of a piece."""
        none = np.empty(0, np.int32)
        chunks, held = [], 0
        for chunk in read_chunks(self.file, piece, self.begin):
            chunks.append(read_in_order(chunk, self._edges))
            held += chunks[-1].__sizeof__()
            self.file.check_room(3 * held, self.room_bytes)  # they are put together, and their ids sorted
        weights = None
        if self.weighted:
            found = (chunk.weights for chunk in chunks if chunk.weights is not None)
            weights = np.concatenate([np.empty(0), *found])
        return PieceEdges(
            np.concatenate([none, *(chunk.sources for chunk in chunks)]),
            np.concatenate([none, *(chunk.targets for chunk in chunks)]),
            weights,
            piece.number,
        )

    def _edges(self, chunk: Chunk) -> PieceEdges:
        blank_comments(chunk, self.comments)
        try:
            starts, stops = columns_of(chunk, self.num_columns, True, 2 if self.uneven else None)
        except FileFormatError as error:
            if not error.reason.startswith(("2 columns where", "3 columns where")) or self.uneven:
                raise
            way = "where only some edges have weights, weights=False reads the edges without them"
            if len(self.first) == self.num_columns == 2:
                way = f"if the first line is a header such as 'n m', skip=1 leaves it out; {way}"
            raise FileFormatError(error.path, f"{error.reason}; {way}", error.line) from None
        sources, targets = (
            ids_of(chunk, starts[:, column], stops[:, column], self._limit) for column in (0, 1)
        )
        weights = None
        if self.weighted:
            weights = chunk.floats(starts[:, 2], stops[:, 2])
        if self.self_loops == "drop":
            kept = sources != targets
            sources, targets = sources[kept], targets[kept]
            weights = None if weights is None else weights[kept]
        return PieceEdges(sources, targets, weights)

    @property
    def _limit(self) -> int | None:
        if self.relabel:
            return None
        return LARGEST_LENGTH if self.num_vertices is None else self.num_vertices

    def summary(self, parsed: PieceEdges) -> Facts:
        """Return the facts of a piece."""
        both = np.concatenate([parsed.sources, parsed.targets])
        loops = parsed.sources[parsed.sources == parsed.targets]
        largest = int(both.max(initial=-1))
        is_again, largest_else = (False, False), largest
        if self.first:
            rest = parsed.number == 0  # the first edge is in front there
            others = parsed.sources[rest:], parsed.targets[rest:]
            one, two = (any(bool((ids == number).any()) for ids in others) for number in self.first[:2])
            is_again = one, two
            largest_else = max(int(ids.max(initial=-1)) for ids in others)
        ids = _distinct(both) if self.relabel else None
        times = None
        if self.guessed and parsed.weights is not None:
            times = _times(parsed.weights)
        return Facts(
            parsed.sources.size, loops.size, largest, ids, _distinct(loops), is_again, largest_else, times
        )

    def merge(self, summaries: Sequence[Facts]) -> EdgeListContext:
        """Return what is known of the graph; reads the file of its vertices."""
        listed = np.empty(0, np.int32) if self.vertices is None else read_vertices(self.vertices, self._limit)
        ids = None
        if self.relabel:
            ids = _distinct(np.concatenate([listed, *(one.ids for one in summaries if one.ids is not None)]))
            num_vertices = ids.size
            if num_vertices and int(ids[-1]) == num_vertices - 1:
                ids = None  # 0, 1, 2, ...: the ids are the numbers
        else:
            largest = max([int(listed.max(initial=-1)), *(one.largest for one in summaries)])
            num_vertices = largest + 1 if self.num_vertices is None else self.num_vertices
        num_edges = sum(one.num_edges for one in summaries)
        num_images = 0 if self.directed else num_edges - sum(one.num_loops for one in summaries)
        found = SourceFacts(
            (num_vertices, num_vertices),
            _FLOAT,
            sparse=True,
            pattern=self.pattern,
            nnz=num_edges + num_images,
            has_labels=ids is not None,
            edges=self._counts(summaries, num_vertices),
        )
        return EdgeListContext(found, ids)

    def _counts(self, summaries: Sequence[Facts], num_vertices: int) -> EdgeCounts:
        num_edges, num_loops = (
            sum(one.num_edges for one in summaries),
            sum(one.num_loops for one in summaries),
        )
        own = _distinct(np.concatenate([np.empty(0, np.int32), *(one.loops for one in summaries)])).size
        sizes: tuple[int, ...] = ()
        if self.first and self.first[-1] == num_edges - 1 > 0:
            # Its last number is how many edges follow, and the one before is enough for their vertices.
            needed = max(one.largest_else for one in summaries)
            if self.relabel:
                is_again = [any(one.is_again[place] for one in summaries) for place in (0, 1)]
                alone = {one for one, again in zip(self.first, is_again, strict=False) if not again}
                needed = num_vertices - len(alone)
            sizes = self.first if min(self.first[:-1]) >= needed else ()
        times = self._seeming_times(summaries) if self.guessed else ()
        return EdgeCounts(num_vertices, num_edges, num_loops, own, self.directed, sizes, times)

    def _seeming_times(self, summaries: Sequence[Facts]) -> tuple[int, ...]:
        # The first and last of what the third column has, where it seems to be times.
        known = [one.times for one in summaries if one.num_edges]
        found = [one for one in known if one is not None]
        if not found or len(found) < len(known):
            return ()
        first, last = min(low for low, _ in found), max(high for _, high in found)
        return (int(first), int(last)) if _is_narrow(first, last) else ()

    def part(self, parsed: PieceEdges, context: EdgeListContext, region: Region) -> Entries:
        """Return the edges that lie in a region, both directions of undirected ones, with local positions."""
        mirror = 0 if self.directed else 1
        if context.ids is None:
            rows, columns = (ids.astype(np.int32, copy=False) for ids in (parsed.sources, parsed.targets))
            return entries_in(Entries(rows, columns, parsed.weights), region, mirror)
        chosen = self._touching(parsed, context.ids, region)
        weights = None if parsed.weights is None else parsed.weights[chosen]
        rows, columns = (numbers_of(context.ids, ids[chosen]) for ids in (parsed.sources, parsed.targets))
        return entries_in(Entries(rows, columns, weights), region, mirror)

    def _touching(self, parsed: PieceEdges, ids: Ids, region: Region) -> npt.NDArray[np.bool_]:
        # Numbers follow the order of ids, so a range of numbers is a range of ids: only edges that lie in the
        # region, or whose mirror image does, are given their numbers.
        (rows, columns) = region
        chosen = _between(parsed.sources, ids, rows)
        chosen &= _between(parsed.targets, ids, columns)
        if not self.directed:
            image = _between(parsed.targets, ids, rows)
            image &= _between(parsed.sources, ids, columns)
            chosen |= image
        return chosen

    def assemble(self, parts: Sequence[Entries], context: EdgeListContext, region: Region) -> Block:
        """Return the block of a region."""
        return block_of(parts, region, _FLOAT, self.duplicates)

    def labels(self, context: EdgeListContext, start: int, stop: int) -> Block:
        """Return the ids of a range of vertices."""
        if context.ids is None:
            return super().labels(context, start, stop)
        return Dense(context.ids[start:stop].astype(np.int64))


def _times(weights: npt.NDArray[np.float64]) -> tuple[float, float] | None:
    if not weights.size:
        return None
    first, last = float(weights.min()), float(weights.max())
    is_whole = _is_narrow(first, last) and bool((np.floor(weights) == weights).all())
    return (first, last) if is_whole else None


def _is_narrow(first: float, last: float) -> bool:
    # As the times of one graph are: counts and sums of money go over several powers of ten.
    in_units = any(_TIMES[0] * one <= first <= last < _TIMES[1] * one for one in _TIMES_IN)
    return in_units and last < 2 * first


def _distinct(ids: Ids) -> Ids:
    # In order; np.unique hashes first, which took 60 times as long for 4 million ids.
    ids = np.sort(ids)
    return ids[np.concatenate([[True], ids[1:] != ids[:-1]])] if ids.size else ids


def _between(values: Ids, ids: Ids, span: tuple[int, int]) -> npt.NDArray[np.bool_]:
    start, stop = span
    if start >= stop:
        return np.zeros(values.size, np.bool_)
    inside: npt.NDArray[np.bool_] = values >= ids[start]
    inside &= values <= ids[stop - 1]
    return inside


def numbers_of(ids: Ids, values: Ids) -> npt.NDArray[np.int32]:
    """Return the places of values among sorted ids that hold them all."""
    if not values.size:
        return np.empty(0, np.int32)
    num_vertices, lowest = ids.size, int(ids[0])
    span = int(ids[-1]) - lowest + 1
    if span == num_vertices:
        return (values - ids.dtype.type(lowest)).astype(np.int32)
    if span <= _TABLE_LIMIT * num_vertices and values.size > span // _TABLE_LIMIT:
        table: npt.NDArray[np.int32] = np.zeros(span, np.int32)
        table[ids - ids.dtype.type(lowest)] = np.arange(num_vertices, dtype=np.int32)
        return np.take(table, values - ids.dtype.type(lowest))
    order = np.argsort(values)  # looked up in order, they find their neighbors in the cache
    numbers = np.empty(values.size, np.int32)
    numbers[order] = np.searchsorted(ids, values[order])
    return numbers


def ids_of(
    chunk: Chunk, starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64], limit: int | None
) -> Ids:
    """Return tokens as ids, from 0 on and below the limit; 32-bit where they fit."""
    try:
        ids = chunk.integers(starts, stops)
    except FileFormatError as error:
        row = int(np.searchsorted(chunk.newlines, starts[0]))
        begin = int(chunk.newlines[row - 1]) + 1 if row else 0
        line = bytes(chunk.text.buffer[begin : chunk.newlines[row]])
        tokens = (chunk.text.bytes_at(start, stop) for start, stop in zip(starts, stops, strict=True))
        bad = next((one for one in tokens if not one.lstrip(b"+-").isdigit()), b"")
        way = _WAY_OF_NUMBERS if _is_number(bad) else way_of_names(line)
        raise FileFormatError(error.path, f"{error.reason}; {way}", error.line) from None
    outside = ids < 0
    if limit is not None:
        outside |= ids >= limit
    if bool(outside.any()):
        place = int(np.flatnonzero(outside)[0])
        room = "negative" if limit is None else f"not in 0 to {limit - 1}"
        advice = "; relabel=True takes any ids" if limit == LARGEST_LENGTH else ""
        raise chunk.error_at(int(starts[place]), f"vertex {ids[place]} is {room}{advice}")
    return ids.astype(np.int32) if ids.max(initial=0) < 2**31 else ids


def way_of_names(line: bytes) -> str:
    """Return what there is to do about ids that are no numbers, such as names and web addresses.

    Parameters
    ----------
    line
        A line of the list, by which NetworkX or pandas are told what is between its columns.
    """
    edge, braces, _ = line.partition(b"{")
    between = next((one for one in (", ", ",", "\t") if one.encode() in edge.strip()), " ")
    words = [one for one in edge.strip().split(between.encode()) if one]
    if b'"' in edge:
        way = "nx.from_pandas_edgelist(pd.read_csv(path, header=None), 0, 1, create_using=nx.DiGraph)"
    else:
        name = "read_weighted_edgelist" if len(words) > 2 and not braces else "read_edgelist"
        delimiter = "" if between == " " else f'delimiter="{between}", '.replace("\t", "\\t")
        way = f"nx.{name}(path, {delimiter}create_using=nx.DiGraph)"
    return (
        f"the first two columns are ids, whole numbers: a list of names is read by mn.asarray({way}); "
        'kind="csv" reads a table, mn.loadtxt(path) a matrix'
    )


_WAY_OF_NUMBERS = (
    "the first two columns of an edge list are ids, whole numbers; mn.loadtxt(path) reads a matrix"
)


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def read_vertices(file: File, limit: int | None) -> Ids:
    """Return the ids that a file of vertices lists, one a line."""
    chunks: list[Ids] = [np.empty(0, np.int32)]
    for chunk in read_chunks(file, text_pieces(file, 0, 1)[0], 0):
        blank_comments(chunk, _COMMENTS)
        starts, stops = columns_of(chunk, 1)
        chunks.append(ids_of(chunk, starts[:, 0], stops[:, 0], limit))
    return np.concatenate(chunks)


@reader("edges", ".txt", ".txt.gz", ".e", ".e.gz", ".edges", ".edges.gz", ".edgelist", ".edgelist.gz")
def open_edges(
    file: File,
    relabel: bool = True,
    directed: bool = True,
    weights: bool | str = "auto",
    self_loops: str = "keep",
    duplicates: str | None = None,
    num_vertices: int | None = None,
    vertices: str | os.PathLike[str] | None = None,
    skip: int = 0,
    comments: str = "#%",
) -> Source:
    """Return the source of an edge list: comments, and columns separated by spaces, tabs or commas.

    A web address before the first edge, as archived SNAP files have it, is skipped. A first line that has the
    numbers of vertices and edges is an edge as any other, unless it is skipped; where the numbers fit what
    follows, :func:`matnb.load` warns.

    Parameters
    ----------
    file
        The list.
    relabel
        Number the vertices in the order of their ids; False takes ids as numbers from 0.
    directed
        False gives each edge in both directions, listed in one or in both.
    weights
        Whether the third column is read as weights; "auto": when there is one. :func:`matnb.load` warns where
        it seems to be times instead. With False, some lines may have weights and others none.
    self_loops
        "keep" or "drop".
    duplicates
        What an edge listed more than once becomes: "merge" (one entry, of the first weight), "sum" (of an
        undirected edge both directions count), "first", "last", "min" or "max". By default "merge" without
        weights and "last" with them, so that the matrix is that of NetworkX's read_edgelist and
        read_weighted_edgelist as DiGraph or, undirected, Graph.
    num_vertices
        With ``relabel=False``: how many there are; by default one more than the largest id.
    vertices
        A file that lists ids, one a line, of which some may have no edge; beside an LDBC ``X.e`` its ``X.v``
        is found without asking.
    skip
        Lines at the beginning that are not read.
    comments
        Each of these characters begins a comment, which goes to the end of its line; "" for none.
    """
    choose("relabel", relabel, (True, False))
    choose("directed", directed, (True, False))
    choose("weights", weights, (True, False, "auto"))
    choose("self_loops", self_loops, ("keep", "drop"))
    choose("duplicates", duplicates, (None, *DUPLICATES))
    if num_vertices is not None:
        if relabel:
            raise OptionError("num_vertices= is for relabel=False: with relabel=True the ids are counted")
        if isinstance(num_vertices, bool) or not 0 <= num_vertices <= LARGEST_LENGTH:
            raise OptionError(f"num_vertices={num_vertices!r}: give an integer from 0 to {LARGEST_LENGTH}")
    check_skip(skip)
    marks = _marks(comments)
    begin, num_columns, line, first = _first_edge(file, skip, marks, weights is False)
    if num_columns < 2 or (num_columns == 2 and weights is True):
        raise file.error(f"{num_columns} columns where an edge needs {3 if weights is True else 2}", line)
    if num_columns > 3 and weights == "auto":
        raise file.error(f"{num_columns} columns: say weights=True to take the third, or weights=False", line)
    weighted = num_columns > 2 and weights is not False
    listed = None if vertices is None else find_file(vertices)
    if listed is not None:
        listed.check_readable()
    elif file.path.endswith(".e") and os.path.isfile(file.path[:-2] + ".v"):
        listed = find_file(f"{file.shown.real[:-2]}.v")
    if duplicates is None:
        duplicates = "last" if weighted else "merge"
    return EdgeList(
        file, begin, num_columns, weighted, relabel, directed, self_loops, duplicates, num_vertices, listed,
        None, first, marks, weighted and weights == "auto", weights is False,
    )  # fmt: skip


def _marks(comments: str) -> bytes:
    # What begins a comment must not be what a number has, or what is between two.
    usual = isinstance(comments, str) and comments.isascii() and comments.isprintable()
    if not usual or re.search(r"[\w\s.,+-]", comments):
        raise OptionError(
            f"comments={comments!r}: give characters such as '#%' that occur in no number or separator"
        )
    return comments.encode()


def _first_edge(
    file: File, skip: int, marks: bytes, no_weights: bool
) -> tuple[int, int, int, tuple[int, ...]]:
    # Where the first edge begins, how many columns it has, its line, and its numbers where all are whole.
    begin = number = 0
    names: tuple[list[str], int] | None = None  # the words of a line that may be names of columns, its number
    for line, number, end in head_lines(file):
        words = line.replace(b",", b" ").split()
        if number == 1 and line.startswith(b"\xef\xbb\xbf"):
            raise file.error("starts with a UTF-8 byte order mark: save it without", 1)
        if (
            number > skip
            and words
            and line.lstrip()[0] not in marks
            and not (len(words) == 1 and b"://" in line)
        ):
            kept = next((place for place, word in enumerate(words) if word[0] in marks), len(words))
            whole = all(re.fullmatch(rb"[0-9]{1,18}", word) for word in words[:kept])
            are_ids = kept > 1 and all(re.fullmatch(rb"[0-9]+", word) for word in words[:2])
            if are_ids and words[2:] and words[2].startswith(b"{") and not no_weights:
                way = "mn.asarray(nx.read_edgelist(path, nodetype=int, create_using=nx.DiGraph))"
                reason = "has attributes as a dict, which weights=False leaves out; with them it is read by"
                raise file.error(f"{reason} {way}", number)
            if names and are_ids:
                weights = (
                    f"; the third column, {names[0][2]!r}, becomes weights then: weights=False leaves it out"
                )
                raise file.error(
                    f"{names[0][0]!r} is not a whole number: if it is the name of a column, skip={names[1]} "
                    'leaves that line out, and kind="csv" reads a table'
                    + weights
                    * (len(words) > 2 and not no_weights),
                    names[1],
                )
            if not names and kept > 1 and not re.match(rb"[-+0-9]", words[0]):
                names, first = (
                    ([*(one.decode(errors="replace") for one in words), "", ""], number),
                    (begin, kept, number, ()),
                )
                begin = end
                continue
            if names:
                break
            return begin, kept, number, tuple(map(int, words[:kept])) if whole and kept in (2, 3) else ()
        begin = end
    if names:
        return first
    if skip and number <= skip:
        raise file.error(f"has {number:,} lines, and skip={skip} leaves all of them out")
    return begin, 2, number, ()

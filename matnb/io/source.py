"""What readers and generators are to the rest of matnb: pieces of work that run anywhere, in any order."""

# The engine runs, on workers: parse(piece) and summary(parsed) for each piece, merge(summaries) once, then
# for each block part(parsed, context, region) where the piece was parsed and assemble(parts, context, region)
# at the block's owner, each as the kernel of this file that calls it. `read_here` in ops/creation.py is the
# same in one process.

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Protocol, Self, TypeAlias, TypeVar

import numpy as np

from matnb.blocks.formats import Block, Dense
from matnb.blocks.grid import Region, region_shape
from matnb.blocks.result_checks import ReturnSpec, checked_block
from matnb.errors import FileFormatError, MatnbError, OptionError, UnsupportedError, suggestion
from matnb.io.files import File, find_file
from matnb.registration import Registry, is_foreign, name_and_place

ROW_ENTRIES = 4  # what a row costs in a product with a vector, beside its entries: 3.8 ns to 0.8 an entry
_NUMBERS = np.dtype(np.int64)
ORDERING_BYTES = 48  # of an entry, while a block of entries is put together

# Each reader has its own; they are picklable, and read-only once returned.
Parsed: TypeAlias = Any
Summary: TypeAlias = Any
Part: TypeAlias = Any


@dataclass(frozen=True)
class EdgeCounts:
    """What a list of edges had in it.

    Attributes
    ----------
    num_vertices
        Rows of the matrix.
    num_listed, num_loops, num_own_loops
        Edges that are listed, loops among them, and loops of which each vertex counts once.
    is_directed
        Whether an edge is one entry, and not two.
    sizes
        The numbers of the first line, where they are the count of what follows rather than an edge.
    times
        The least and the largest number of a third column that seems to be times rather than weights.
    """

    num_vertices: int
    num_listed: int
    num_loops: int
    num_own_loops: int
    is_directed: bool
    sizes: tuple[int, ...] = ()
    times: tuple[int, ...] = ()

    def told(self, num_stored: int) -> str:
        """Return the counts as a text, given how many entries the matrix has."""
        num_edges = num_stored if self.is_directed else (num_stored + self.num_own_loops) // 2
        merged = self.num_listed - num_edges
        kept = f"{self.num_vertices:,} vertices, {num_edges:,} edges"
        return f"{kept}, {merged:,} merged, {self.num_loops:,} loop{'' if self.num_loops == 1 else 's'}"


@dataclass(frozen=True)
class SourceFacts:
    """What is known of an array once its source was read through.

    Attributes
    ----------
    shape
        Lengths of the array.
    dtype
        Type of its elements.
    sparse
        Whether its blocks are sparse.
    pattern
        Whether the source lists no values, so that blocks are pattern-only. (A block of a Matrix Market
        pattern in which an entry is listed twice has values, since SciPy counts such entries.)
    nnz
        Entries listed, mirrored ones included: what is stored, or more where duplicates are merged.
    columns
        Of a table: ``ColumnFacts`` of each of its columns, which are arrays of their own.
    has_labels
        Whether vertices have original ids that differ from their numbers, or rows have targets.
    labels_dtype
        Type of these.
    edges
        Of an edge list.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    sparse: bool
    pattern: bool = False
    nnz: int | None = None
    columns: tuple[Any, ...] = ()
    has_labels: bool = False
    labels_dtype: np.dtype = _NUMBERS
    edges: EdgeCounts | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns of a table."""
        return tuple(one.name for one in self.columns)

    @property
    def dtypes(self) -> tuple[np.dtype, ...]:
        """The dtypes of the columns of a table, as NumPy knows the values."""
        return tuple(one.kind.dtype for one in self.columns)


@dataclass(frozen=True)
class Piece:
    """A share of the work: a range of bytes, rows, blocks or edges, and its place in the order."""

    number: int
    start: int
    stop: int


class Context(Protocol):
    """What the pieces together say, which every part of a block needs."""

    @property
    def found(self) -> SourceFacts:
        """What is known of the array."""


class Source(Protocol):
    """Where an array comes from; a hashable, picklable value, equal when it gives the same array."""

    def identity(self) -> tuple[str | int, ...]:
        """Return the kind, the file's url, size and time, and every option that changes the result."""

    def estimated_entries(self) -> int:
        """Return about how many entries there are, without reading."""

    def sampled(self) -> Source:
        """Return the source with what a sample of its file tells beside the header."""

    def reading(self) -> Source:
        """Return the source whose pieces are read: a table, where this is one of its columns."""

    def row_cuts(self, count: int, transposed: bool = False) -> tuple[int, ...] | None:
        """Return cuts of the rows in ``count`` parts of about equal work, if known without reading.

        A row is as much work as its entries and ``ROW_ENTRIES`` more. ``transposed``: cuts of the columns.
        """

    def pieces(self, count: int) -> tuple[Piece, ...]:
        """Return at most ``count`` pieces of about equal work; reads nothing."""

    def parsing_bytes(self, piece: Piece, num_pieces: int) -> tuple[int, int]:
        """Return what a piece holds once it is read, and what reading it takes in addition, from sizes alone.

        An upper bound where a header tells how much there is; else a guess, and :meth:`within` is the bound.
        """

    def placing_bytes(self, found: SourceFacts) -> int:
        """Return what it takes to put all that was read in its places, beside the pieces and the blocks."""

    def within(self, room_bytes: int) -> Source:
        """Return the source with a limit of what reading one piece may take; none where headers bound it."""

    def parse(self, piece: Piece) -> Parsed:
        """Read one piece.

        Raises
        ------
        TooLargeError
            When it takes more than the limit that :meth:`within` set.
        """

    def summary(self, parsed: Parsed) -> Summary:
        """Return the small facts of a piece that :meth:`merge` needs."""

    def merge(self, summaries: Sequence[Summary]) -> Context:
        """Return the Context of all pieces, given their facts in order; checks counts."""

    def part(self, parsed: Parsed, context: Any, region: Region) -> Part:
        """Return the entries of a piece that lie in a region."""

    def assemble(self, parts: Sequence[Part], context: Any, region: Region) -> Block:
        """Return the block of a region, given its parts in the order of the pieces."""

    def labels(self, context: Any, start: int, stop: int) -> Block:
        """Return the original ids of vertices ``start`` to ``stop`` as a dense block."""


@dataclass(frozen=True)
class PlainContext:
    """A context that says no more than what is known of the array."""

    found: SourceFacts


class PlainSource:
    """What most sources have in common: no vertex ids of their own, and no word on rows before reading."""

    def sampled(self) -> Self:
        """Return the source itself, of which the header tells all."""
        return self

    def reading(self) -> Self:
        """Return the source itself."""
        return self

    def row_cuts(self, count: int, transposed: bool = False) -> tuple[int, ...] | None:
        """Return None: where the entries are is not known without reading."""
        return None

    def parsing_bytes(self, piece: Piece, num_pieces: int) -> tuple[int, int]:
        """Return what entries with positions and values take, and as much while they are put together."""
        held = 24 * self.estimated_entries() // max(1, num_pieces)
        return held, held

    def placing_bytes(self, found: SourceFacts) -> int:
        """Return what putting entries in order takes: keys, values, their order, and copies of these."""
        return ORDERING_BYTES * (found.nnz or 0) if found.sparse else 0

    def within(self, room_bytes: int) -> Self:
        """Return the source as it is."""
        return self

    def estimated_entries(self) -> int:
        """Return about how many entries there are, without reading."""
        raise NotImplementedError

    def labels(self, context: Any, start: int, stop: int) -> Block:
        """Return the numbers of rows ``start`` to ``stop``."""
        return Dense(np.arange(start, stop))


@dataclass(frozen=True)
class Reader:
    """A registered way to open a file: its options are the keyword parameters of ``open``.

    ``words`` are other libraries' names of options, and ``instead`` what does what others' options do.
    """

    kind: str
    suffixes: tuple[str, ...]
    open: Callable[..., Source]
    words: Mapping[str, str]
    instead: Mapping[str, str]

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options."""
        return tuple(inspect.signature(self.open).parameters)[1:]


READERS: Registry[str, Reader] = Registry("the reader", lambda one: one.open)
_Open = TypeVar("_Open", bound=Callable[..., Source])


def reader(
    kind: str,
    *suffixes: str,
    words: Mapping[str, str] | None = None,
    instead: Mapping[str, str] | None = None,
) -> Callable[[_Open], _Open]:
    """Register a function ``open(file, **options)`` for a kind of file and the suffixes that mean it.

    A suffix begins with a dot; of several that a name ends in, the longest counts.

    Raises
    ------
    OptionError
        For a kind that has a reader, or a suffix that another kind has.
    """
    for suffix in suffixes:
        taken = next((one for one in READERS.values() if suffix in one.suffixes and one.kind != kind), None)
        if taken is not None:
            raise OptionError(
                f"reader {kind!r}: files with the suffix {suffix!r} are of the kind {taken.kind!r}; leave it "
                f"out, and give kind={kind!r} where such a file is loaded"
            )
        if not suffix.startswith(".") or suffix != suffix.lower():
            raise OptionError(f"reader {kind!r}: a suffix is in small letters, after a dot, not {suffix!r}")

    def register(function: _Open) -> _Open:
        READERS[kind] = Reader(kind, suffixes, function, words or {}, instead or {})
        return function

    return register


def open_source(path: str | os.PathLike[str], *, kind: str | None = None, **options: object) -> Source:
    """Return the source that reads a file; reads its header, and of a text table a sample.

    Parameters
    ----------
    path
        A path, or a url that fsspec reads.
    kind
        How to read it: "matrixmarket", "npz", "npy", "edges", "metis", "svmlight", "lda-c", "csv",
        "parquet" or "arrow"; None goes by the suffix.
    **options
        What the reader of the kind takes.

    Raises
    ------
    OptionError
        For an unknown kind, suffix or option; the message lists what exists.
    MissingFileError
        If the file does not exist.
    FileFormatError
        When its header is not that of its kind.
    UnsupportedError
        When the url's protocol, or the kind, needs a package that is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> np.save("three.npy", np.arange(3.0))
    >>> open_source("three.npy").pieces(1)
    (Piece(number=0, start=0, stop=3),)
    """
    return open_header(path, kind, options).sampled()


def open_header(path: str | os.PathLike[str], kind: str | None, options: Mapping[str, object]) -> Source:
    """Return the source that reads a file, as far as the header tells; see :func:`open_source`."""
    if not isinstance(path, str | os.PathLike):
        raise OptionError(f"{path!r} is not a file: give a path, or a URL as a string")
    file = find_file(path)
    found = READERS.get(kind) if kind is not None else _by_suffix(file.name)
    if found is None:
        known = {one.kind: f"{one.kind!r} ({' '.join(one.suffixes[:4])})" for one in READERS.values()}
        if kind is None:
            refuse_elsewhere(file.shown, file.name, _netcdf_suffixes(file))
        wrong = f"no kind {kind!r}" if kind is not None else "no reader for this suffix"
        near = suggestion(kind, known, "give kind= as one of", lambda one: known[str(one)])
        raise OptionError(f"{file.shown}: {wrong}; {near}")
    named = in_words_of(found.words, options)
    for option in named:
        if option not in found.options:
            near = found.instead.get(option) or suggestion(option, (*found.options, *found.words))
            raise OptionError(f"{file.shown}: no option {option!r} for kind {found.kind!r}; {near}")
    file.check_readable()
    return _opened(found, file, named) if is_foreign(found.open) else found.open(file, **named)


def _opened(found: Reader, file: File, options: Mapping[str, object]) -> Source:
    # By a reader of another package, whose errors name the file, too.
    which = f"the reader of kind {found.kind!r}, {name_and_place(found.open)},"
    try:
        source = found.open(file, **options)
    except (MatnbError, MemoryError):
        raise
    except ImportError as error:
        raise UnsupportedError(f"{file.shown}: {which} needs a package: {error}") from error
    except Exception as error:  # whatever another package raises
        raise file.error(f"{which} raised {type(error).__name__}: {error}") from error
    if not callable(getattr(source, "identity", None)):
        raise file.error(f"{which} returned {type(source).__name__}: return a source, such as WholeFile(...)")
    return source


def refuse_elsewhere(shown: object, name: str, netcdf: tuple[str, ...] = ()) -> None:
    """Raise where another library reads what has a name; one with these last suffixes is a file of NetCDF-3.

    Raises
    ------
    OptionError
        With what to write.
    """
    tables = {f"mn.table(pandas.{way}) makes a table": one for way, one in _ELSEWHERE.items()}
    arrays = {_NETCDF: netcdf, **_ARRAYS_ELSEWHERE}
    arrays = {f"mn.asarray({way}) makes an array": one for way, one in arrays.items()}
    for way, suffixes in (tables | arrays).items():
        if name.lower().endswith(suffixes):
            raise OptionError(f"{shown}: is not read here; {way} of it")


def _netcdf_suffixes(file: File) -> tuple[str, ...]:
    # Of files that say in their first bytes that HDF5 does not read them.
    if not file.name.lower().endswith(_OF_NETCDF):
        return ()
    with file.open() as opened:
        return _OF_NETCDF if opened.read(3) == b"CDF" else ()


def in_words_of(words: Mapping[str, str], options: Mapping[str, object]) -> dict[str, object]:
    """Return options by the reader's names, given what others call these.

    Raises
    ------
    OptionError
        Where one is given by two names.
    """
    for one, own in words.items():
        if one in options and own in options:
            raise OptionError(f"{one}= and {own}= are one option: give one of them")
    return {words.get(one, one): value for one, value in options.items()}


# What of pandas reads other files.
_ELSEWHERE = {
    "read_excel(path)": (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods"),
    "read_json(path)": (".json", ".json.gz"),
    "read_json(path, lines=True)": (".jsonl", ".ndjson", ".jsonl.gz"),
    "read_html(path)[0]": (".html", ".htm"),
    "read_xml(path)": (".xml",),
    "read_stata(path)": (".dta",),
    "read_sas(path)": (".sas7bdat", ".xpt"),
    "read_spss(path)": (".sav",),
    "read_orc(path)": (".orc",),
    "read_fwf(path)": (".fwf",),
    "read_pickle(path)": (".pkl", ".pickle"),
}
_OF_NETCDF = (".nc", ".nc4", ".cdf")
_NETCDF = 'scipy.io.netcdf_file(path, mmap=False).variables["name"][:]'
_ARRAYS_ELSEWHERE = {
    'h5py.File(path)["name"]': (".h5", ".hdf5", ".hdf", *_OF_NETCDF),
    'zarr.open(path)["name"]': (".zarr", ".zarr.zip"),
    'scipy.io.loadmat(path)["name"]': (".mat",),
    "matplotlib.image.imread(path)": (".png", ".jpg", ".jpeg", ".tif", ".tiff"),
}


def _by_suffix(name: str) -> Reader | None:
    fitting = [
        (len(suffix), one)
        for one in READERS.values()
        for suffix in one.suffixes
        if name.lower().endswith(suffix)
    ]
    return max(fitting, key=itemgetter(0), default=(0, None))[1]


def choose(option: str, value: object, allowed: Sequence[object]) -> None:
    """Check that an option is one of the allowed values.

    Raises
    ------
    OptionError
        When it is not; the message lists them.
    """
    if not any(value is one or (isinstance(value, str) and value == one) for one in allowed):
        raise OptionError(f"{option}={value!r}: {suggestion(value, allowed, 'choose one of')}")


def split_range(start: int, stop: int, count: int, smallest: int) -> tuple[Piece, ...]:
    """Return a range as at most ``count`` nearly equal pieces, each of ``smallest`` or more unless alone."""
    length = stop - start
    count = max(1, min(count, length // max(1, smallest)))
    cuts = [start + length * number // count for number in range(count + 1)]
    return tuple(Piece(number, cuts[number], cuts[number + 1]) for number in range(count))


# What a source does as kernels, which get the values of other tasks first and then their parameters.


@dataclass(frozen=True)
class BadPiece:
    """A piece that is malformed, in the place of what is read of it and of its facts."""

    error: FileFormatError


def parse_piece(values: Sequence[Any], source: Source, piece: Piece) -> Parsed:
    """Return a piece that was read; an error waits for those of the pieces before it."""
    # Pieces are read side by side, and the one that fails first is another one each time.
    try:
        return source.parse(piece)
    except FileFormatError as error:
        return BadPiece(error)


def facts_of_piece(values: Sequence[Any], source: Source) -> Summary:
    """Return the small facts of a piece that was read."""
    (parsed,) = values
    return parsed if isinstance(parsed, BadPiece) else source.summary(parsed)


def merge_facts(values: Sequence[Any], source: Source) -> Context:
    """Return the facts of all pieces put together and checked.

    Raises
    ------
    FileFormatError
        That of the first piece which has one, however the pieces were cut and whichever was read first.
    """
    for one in values:
        if isinstance(one, BadPiece):
            raise one.error
    return source.merge(values)


def found_in_source(values: Sequence[Any]) -> SourceFacts:
    """Return what is known of a source whose facts were merged."""
    (context,) = values
    found: SourceFacts = context.found
    return found


def part_of_piece(values: Sequence[Any], source: Source, region: Region) -> Part:
    """Return the entries of a piece, which comes before the merged facts, that lie in a region."""
    parsed, context = values
    return source.part(parsed, context, region)


def assemble_block(values: Sequence[Any], source: Source, region: Region) -> Block:
    """Return the block of a region; the parts of the pieces come after the merged facts."""
    context, *parts = values
    block = source.assemble(parts, context, region)
    if is_foreign(type(source)):
        found = context.found
        expected = ReturnSpec(repr(source), (region_shape(region), found.dtype, found.sparse))
        block = checked_block(block, source.assemble, expected)
    return block


def labels_of_rows(values: Sequence[Any], source: Source, start: int, stop: int) -> Block:
    """Return a range of the original ids of a graph's vertices, from the merged facts."""
    (context,) = values
    return source.labels(context, start, stop)

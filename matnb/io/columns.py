"""Typed columns of a table: how Arrow's become arrays of numbers, and those of all pieces one block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Block
from matnb.blocks.grid import Region, relative
from matnb.errors import FileFormatError, OptionError, suggestion
from matnb.io.durations import NO_TIME, STORED_UNITS, unit_ratio
from matnb.io.entries import ReaderValue, Slab, common, dense_of
from matnb.io.files import File
from matnb.io.source import Piece, PlainSource, SourceFacts
from matnb.io.texts import EXACT, integers_of

if TYPE_CHECKING:
    import pyarrow

DType: TypeAlias = str | type | np.dtype
DTypes: TypeAlias = DType | Mapping[str, DType] | None
MOST_COLUMNS = 4000  # each is an array of its own


@dataclass(frozen=True)
class ColumnKind:
    """What a column holds, and how workers keep it.

    Attributes
    ----------
    word
        "bool", "number", "text", "datetime" or "timedelta"; "null" where every value is missing, so that
        values of other pieces or files may be of any kind.
    stored
        Dtype on the workers: of text int32, the places of labels; of times int64, a count of units.
    unit
        Of times, as NumPy writes it.
    zone
        Of times, whose counts are of UTC then: such as "Europe/Berlin" or "+01:00".
    """

    word: str
    stored: np.dtype
    unit: str = ""
    zone: str = ""

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the values as NumPy knows it."""
        if self.word == "text":
            return np.dtypes.StringDType()
        return np.dtype(f"{self.word}64[{self.unit}]") if self.unit else self.stored

    @property
    def shown(self) -> str:
        """What a column of the kind is called in messages."""
        if self.zone:
            return zoned_name(self.unit, self.zone)
        return "text" if self.word == "text" else str(self.dtype)

    @property
    def has_mask(self) -> bool:
        """Whether an array beside marks missing values: floats have NaN, times NaT, text no label."""
        return self.stored.kind in "biu" and self.word in ("bool", "number")


TEXT = ColumnKind("text", np.dtype(np.int32))
NULL = ColumnKind("null", np.dtype(np.float64))


def zoned_name(unit: str, zone: str) -> str:
    """Return the dtype of times with a zone as text, as pandas writes it.

    Examples
    --------
    >>> zoned_name("us", "Europe/Berlin")
    'datetime64[us, Europe/Berlin]'
    """
    return f"datetime64[{unit}, {zone}]"


def number(dtype: npt.DTypeLike) -> ColumnKind:
    """Return the kind of a column of numbers or booleans."""
    made = np.dtype(dtype)
    return ColumnKind("bool" if made.kind == "b" else "number", made)


def time(word: str, unit: str, zone: str = "") -> ColumnKind:
    """Return the kind of a column of "datetime" or "timedelta"."""
    return ColumnKind(word, np.dtype(np.int64), unit, zone)


def wider(one: ColumnKind, other: ColumnKind) -> ColumnKind | None:
    """Return the kind that holds the values of two, None where there is none."""
    if one == other or other == NULL:
        return one
    if one == NULL:
        return other
    if one.word != other.word:
        return None
    if one.unit:
        if bool(one.zone) != bool(other.zone):
            return None
        zone = one.zone if one.zone == other.zone else "UTC"  # instants of two zones
        return time(one.word, max(one.unit, other.unit, key=STORED_UNITS.index), zone)
    return number(np.result_type(one.stored, other.stored))


def kind_of(arrow: pyarrow.DataType) -> ColumnKind | None:
    """Return the kind of a column of an Arrow type; None for those that have none, such as lists."""
    from pyarrow import types

    if types.is_dictionary(arrow):
        return kind_of(arrow.value_type)
    if types.is_boolean(arrow) or types.is_integer(arrow) or types.is_floating(arrow):
        return number(arrow.to_pandas_dtype())
    if types.is_null(arrow):
        return NULL
    if types.is_decimal(arrow):
        is_whole = arrow.scale == 0 and arrow.precision <= 18  # others are looked at
        return number(np.int64 if is_whole else np.float64)
    if types.is_string(arrow) or types.is_large_string(arrow) or str(arrow) == "string_view":
        return TEXT
    if types.is_date(arrow):
        return time("datetime", "D" if types.is_date32(arrow) else "ms")
    if types.is_timestamp(arrow):
        return time("datetime", arrow.unit, arrow.tz or "")
    return time("timedelta", arrow.unit) if types.is_duration(arrow) or types.is_time(arrow) else None


@dataclass(frozen=True)
class ColumnFacts:
    """What is known of a column that was read through.

    Attributes
    ----------
    name, kind
        What it is called, and what it holds.
    num_missing
        How many values are missing; None where that is not known.
    labels
        Of text: the distinct values by code point, an Arrow array of strings.
    """

    name: str
    kind: ColumnKind
    num_missing: int | None
    labels: pyarrow.Array | None = field(default=None, compare=False)


@dataclass(frozen=True, eq=False)
class ColumnValues:
    """The values of a column, where they are missing if a mask tells, and the labels of its codes."""

    kind: ColumnKind
    values: npt.NDArray[Any]
    missing: npt.NDArray[np.bool_] | None = None
    labels: pyarrow.Array | None = None

    @property
    def num_missing(self) -> int:
        """How many values are missing."""
        if self.kind.has_mask:
            return 0 if self.missing is None else int(np.count_nonzero(self.missing))
        if self.kind.word == "text":
            return int(np.count_nonzero(self.values < 0))
        return int(np.count_nonzero(self.values == NO_TIME if self.kind.unit else np.isnan(self.values)))

    @property
    def nbytes(self) -> int:
        """Bytes that they take."""
        mask = 0 if self.missing is None else self.missing.nbytes
        return self.values.nbytes + mask + (0 if self.labels is None else self.labels.nbytes)


def values_of(column: pyarrow.Array | pyarrow.ChunkedArray) -> ColumnValues:
    """Return an Arrow column as arrays of numbers; the type has a kind."""
    import pyarrow

    if isinstance(column, pyarrow.ChunkedArray):
        column = column.unify_dictionaries() if pyarrow.types.is_dictionary(column.type) else column
        column = column.combine_chunks()
        if isinstance(column, pyarrow.ChunkedArray):  # of no chunk, or of dictionaries
            column = column.chunk(0) if column.num_chunks else pyarrow.array([], column.type)
    kind = kind_of(column.type)
    assert kind is not None, "checked by the caller"
    if kind.word == "text":
        return _codes_of(column)
    if pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pyarrow.types.is_decimal(column.type) and column.type.scale == 0:
        whole = integers_of(column)
        column = column if whole is None else whole
        kind = kind_of(column.type) or kind
    if kind.unit:
        if pyarrow.types.is_date32(column.type) or pyarrow.types.is_time32(column.type):
            column = column.cast(pyarrow.int32())
        return ColumnValues(kind, _plain(column.cast(pyarrow.int64()), NO_TIME))
    if not kind.has_mask:
        if column.type != pyarrow.from_numpy_dtype(kind.stored):
            column = column.cast(pyarrow.from_numpy_dtype(kind.stored))
        return ColumnValues(kind, _plain(column, np.nan))
    missing = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    return ColumnValues(kind, _plain(column, False if kind.word == "bool" else 0), missing)


def is_rounded(column: pyarrow.Array | pyarrow.ChunkedArray, values: ColumnValues) -> bool:
    """Tell whether whole decimal numbers became floats, since no type of 64 bits has all of them."""
    from pyarrow import types

    return types.is_decimal(column.type) and column.type.scale == 0 and values.kind.stored.kind == "f"


def _plain(column: pyarrow.Array, instead: object) -> npt.NDArray[Any]:
    import pyarrow

    if column.null_count:
        column = column.fill_null(pyarrow.scalar(instead, column.type))
    return column.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]  # pyarrow has no types


def _codes_of(column: pyarrow.Array) -> ColumnValues:
    import pyarrow

    if not pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if column.type.index_type != pyarrow.int32():  # -1 is to stand among places that may be unsigned
        column = column.cast(pyarrow.dictionary(pyarrow.int32(), column.type.value_type))
    codes = _plain(column.indices, -1) if column.indices.null_count else column.indices.to_numpy()
    codes = codes.astype(np.int32, copy=False)
    labels = column.dictionary
    if labels.type != pyarrow.string():
        labels = labels.cast(pyarrow.string())
    # A dictionary may list what no row has, nothing, and a label twice.
    counts = np.bincount(codes[codes >= 0], minlength=len(labels))
    if labels.null_count or not counts.all() or len(labels.unique()) < len(labels):
        distinct = labels.filter(pyarrow.array(counts > 0)).drop_null().unique()
        codes = _renumbered(codes, labels, distinct)
        labels = distinct
    return ColumnValues(TEXT, codes, labels=labels)


def _renumbered(
    codes: npt.NDArray[np.int32], labels: pyarrow.Array, wanted: pyarrow.Array
) -> npt.NDArray[np.int32]:
    return places_among(labels, wanted)[codes]


def places_among(labels: pyarrow.Array, wanted: pyarrow.Array) -> npt.NDArray[np.int32]:
    """Return of each label its place among others, -1 where it is not there; then -1, for no label."""
    from pyarrow import compute

    places = compute.index_in(labels, wanted, skip_nulls=True).fill_null(-1).to_numpy(zero_copy_only=False)
    return np.append(places, -1).astype(np.int32)


def by_code_point(labels: Sequence[pyarrow.Array]) -> pyarrow.Array:
    """Return the distinct labels of several arrays, by code point, which is the order of their UTF-8."""
    import pyarrow

    distinct = pyarrow.chunked_array(labels, pyarrow.string()).unique()
    return distinct.take(pyarrow.compute.sort_indices(distinct))


# The columns of pieces, put together.


class RowSpan(NamedTuple):
    """Where the rows of a piece of text are, in bytes.

    Attributes
    ----------
    start, stop
        Where the first begins and the last ends.
    is_first
        Whether they are the first of their file.
    end
        Where the text ends, None for a compressed file.
    file
        Its place among the files.
    """

    start: int
    stop: int
    is_first: bool
    end: int | None
    file: int = 0


@dataclass(frozen=True, eq=False)
class TablePart(ReaderValue):
    """The columns of a piece; or the error that reading it met, which waits for those of pieces before it.

    Only text has a ``span``.
    """

    number: int
    num_rows: int = 0
    columns: tuple[ColumnValues, ...] = ()
    error: FileFormatError | None = None
    span: RowSpan | None = None

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + sum(one.nbytes for one in self.columns)


@dataclass(frozen=True)
class PartFacts:
    """What is known of a piece: its rows, and of each column the kind, the missing values, the labels.

    ``integers`` has of each column of integers what is known of them, where other pieces may have others.
    """

    num_rows: int
    columns: tuple[tuple[ColumnKind, int, Any], ...]
    error: FileFormatError | None
    span: RowSpan | None = None
    integers: tuple[IntegerFacts | None, ...] = ()


@dataclass(frozen=True)
class IntegerFacts:
    """The least and the largest of some integers, and whether doubles hold all of them."""

    lowest: int
    highest: int
    are_exact: bool


def _integer_facts(values: npt.NDArray[Any]) -> IntegerFacts | None:
    if values.dtype.kind not in "iu" or not values.size:
        return None
    lowest, highest = int(values.min()), int(values.max())
    are_exact = max(-lowest, highest) <= EXACT or bool(fit_float64(values).all())
    return IntegerFacts(lowest, highest, are_exact)


def fit_float64(values: Any) -> Any:
    """Return which integers or booleans a float64 holds exactly: of a NumPy array, or of a DistArray."""
    dtype = values.dtype
    if dtype.kind == "b" or dtype.itemsize < 8:
        return np.ones_like(values, np.bool_)
    # A float beyond the dtype is the nearest to numbers that are not floats: the largest of 64 bits are odd.
    floats = values.astype(np.float64)
    is_within = floats < 2.0 ** (63 if dtype.kind == "i" else 64)
    return is_within & (np.where(is_within, floats, 0.0).astype(dtype) == values)


@dataclass(frozen=True)
class TableContext:
    """What the pieces say together.

    Attributes
    ----------
    found
        What is known of the table.
    firsts
        Number of the first row of each piece, and how many there are.
    places
        Of each piece, and of each of its columns of text, the place of each label among all of them.
    """

    found: SourceFacts
    firsts: tuple[int, ...]
    places: tuple[tuple[npt.NDArray[np.int32] | None, ...], ...]


class TableSource(PlainSource):
    """A table: what readers of its kinds of file have in common.

    Attributes
    ----------
    file
        The table.
    names
        Of all columns.
    picked
        The places of the columns that are read.
    """

    file: File
    names: tuple[str, ...]
    picked: tuple[int, ...]

    def pieces(self, count: int) -> tuple[Piece, ...]:
        """Return at most so many pieces."""
        raise NotImplementedError

    def identity(self) -> tuple[str | int, ...]:
        """Return what tells the table from any other."""
        raise NotImplementedError

    @property
    def kinds(self) -> tuple[ColumnKind, ...]:
        """What the columns that are read hold, as far as is known before they are read."""
        raise NotImplementedError

    @property
    def may_widen(self) -> bool:
        """Whether pieces may hold integers and others of one column that no type holds together."""
        return False

    def error_after(self, span: RowSpan) -> FileFormatError:
        """Return the first error of the rows after some, where the next piece does not follow."""
        raise NotImplementedError

    @property
    def read_names(self) -> tuple[str, ...]:
        """The names of the columns that are read."""
        return tuple(self.names[place] for place in self.picked)

    def summary(self, parsed: TablePart) -> PartFacts:
        """Return what is known of a piece."""
        facts = tuple((one.kind, one.num_missing, one.labels) for one in parsed.columns)
        integers = tuple(_integer_facts(one.values) for one in parsed.columns) if self.may_widen else ()
        return PartFacts(parsed.num_rows, facts, parsed.error, parsed.span, integers)

    def merge(self, summaries: Sequence[PartFacts]) -> TableContext:
        """Return what is known of the table.

        Raises
        ------
        FileFormatError
            The first that reading met; and for a column that holds different things in two pieces.
        """
        last: RowSpan | None = None
        for one in summaries:
            if one.span is not None:
                if last is not None and last.stop != (last.end if one.span.is_first else one.span.start):
                    raise self.error_after(last)
                last = one.span if one.span.end is not None else None
            if one.error is not None:
                raise one.error
        if last is not None and last.stop != last.end:
            raise self.error_after(last)
        firsts = tuple(np.cumsum([0, *(one.num_rows for one in summaries)]).tolist())
        facts, places = [], []
        for place, name in enumerate(self.read_names):
            column = [one.columns[place] for one in summaries]
            known = self._facts(name, column, [one.integers[place] for one in summaries if one.integers])
            facts.append(known)
            places.append(
                [
                    None if known.labels is None or one[2] is None else places_among(one[2], known.labels)
                    for one in column
                ]
            )
        shape = (firsts[-1], len(facts))
        found = SourceFacts(shape, np.dtype(np.float64), False, nnz=shape[0] * shape[1], columns=tuple(facts))
        by_piece = tuple(zip(*places, strict=True)) if places else ((),) * len(summaries)
        return TableContext(found, firsts, by_piece)

    def _facts(
        self,
        name: str,
        column: Sequence[tuple[ColumnKind, int, Any]],
        integers: Sequence[IntegerFacts | None] = (),
    ) -> ColumnFacts:
        kind = column[0][0]
        for other, _, _ in column[1:]:
            both = wider(kind, other)
            if both is None:
                raise self.file.error(f"column {name!r} holds {kind.shown} at first and {other.shown} later")
            kind = both
        kinds = {one[0] for one in column}
        if kind.stored.kind == "f" and any(one.stored.kind in "iu" for one in kinds):
            kind = self._common_integer_kind(name, kind, kinds, [one for one in integers if one is not None])
        kind = number(np.float64) if kind == NULL else kind
        labels = by_code_point([one[2] for one in column if one[0] == TEXT]) if kind.word == "text" else None
        return ColumnFacts(name, kind, sum(one[1] for one in column), labels)

    def _common_integer_kind(
        self, name: str, kind: ColumnKind, kinds: Iterable[ColumnKind], integers: Sequence[IntegerFacts]
    ) -> ColumnKind:
        # The kind that has integers of some pieces and the numbers of others.
        if integers and all(one.stored.kind in "iu" for one in kinds if one != NULL):
            if all(one.lowest >= 0 for one in integers):
                return number(np.uint64)
            if all(one.highest < 2**63 for one in integers):
                return number(np.int64)
        if all(one.are_exact for one in integers):
            return kind
        raise self.file.error(no_common_type(name))

    def part(self, parsed: TablePart, context: TableContext, region: Region) -> Slab | None:
        """Return the rectangle of a piece that lies in a region of all columns, as floats.

        Of text these are the places of labels, of times counts. Arrays of tables are those of
        :class:`ColumnSource`.
        """
        rows, (left, right) = region
        made = []
        for place in range(left, right):
            found = ColumnSource(self, place).part(parsed, context, (rows,))
            if found is None:
                return None
            values = found.values.astype(np.float64)
            if context.found.columns[place].kind.has_mask:
                gone = ColumnSource(self, place, mask=True).part(parsed, context, (rows,))
                assert gone is not None, "of the same rows"
                values[gone.values.astype(np.bool_)] = np.nan
            made.append(values)
            rows_there = found.region[0]
        return Slab((rows_there, (left, right)), np.stack(made, axis=1)) if made else None

    def assemble(self, parts: Sequence[Slab | None], context: TableContext, region: Region) -> Block:
        """Return the block of a region of all columns."""
        return dense_of([part for part in parts if part is not None], region, np.dtype(np.float64))

    def parse(self, piece: Piece) -> TablePart:
        """Read a piece."""
        raise NotImplementedError

    def parts(self, piece: Piece) -> Any:
        """Yield the columns of some rows of a piece at a time."""
        raise NotImplementedError


@dataclass(frozen=True)
class ColumnSource(PlainSource):
    """One column of a table: its values, or where they are missing."""

    table: TableSource
    place: int
    mask: bool = False

    def __repr__(self) -> str:
        name = self.table.read_names[self.place]
        return f"{'missing of ' if self.mask else ''}{name!r} of {self.table!r}"

    @property
    def file(self) -> File:
        """The table's."""
        return self.table.file

    def reading(self) -> Any:
        """Return the table, which is read through once for all its columns."""
        return self.table

    def identity(self) -> tuple[str | int, ...]:
        """Return what tells the column from any other."""
        return ("column", self.place, int(self.mask), *self.table.identity())

    def estimated_entries(self) -> int:
        """Return about how many rows there are."""
        return self.table.estimated_entries() // max(1, len(self.table.picked))

    def pieces(self, count: int) -> tuple[Piece, ...]:
        """Return the table's."""
        return self.table.pieces(count)

    def parse(self, piece: Piece) -> TablePart:
        """Read a piece of the table."""
        return self.table.parse(piece)

    def summary(self, parsed: TablePart) -> PartFacts:
        """Return what is known of a piece."""
        return self.table.summary(parsed)

    def merge(self, summaries: Sequence[PartFacts]) -> TableContext:
        """Return what is known of the column, where it is read alone."""
        whole = self.table.merge(summaries)
        columns = whole.found.columns
        found = SourceFacts(whole.found.shape[:1], self._dtype(whole), False, columns=columns)
        return TableContext(found, whole.firsts, whole.places)

    def _dtype(self, context: TableContext) -> np.dtype:
        if self.mask:
            return np.dtype(np.bool_)
        return context.found.columns[self.place].kind.stored  # type: ignore[no-any-return]

    def part(self, parsed: TablePart, context: TableContext, region: Region) -> Slab | None:
        """Return the rows of a piece that lie in a region."""
        first = context.firsts[parsed.number]
        own = ((first, first + parsed.num_rows),)
        both = common(own, region)
        if both is None:
            return None
        column, rows = parsed.columns[self.place], relative(both, own)
        dtype = self._dtype(context)
        if column.kind == NULL:
            return Slab(both, self._absent(both[0][1] - both[0][0], context))
        if self.mask:
            found = np.zeros(parsed.num_rows, np.bool_) if column.missing is None else column.missing
            return Slab(both, found[rows].copy())
        places = context.places[parsed.number][self.place]
        values = column.values[rows]
        if places is not None:
            return Slab(both, places[values])
        unit = context.found.columns[self.place].kind.unit
        if column.kind.unit != unit:
            fine = values * unit_ratio(column.kind.unit, unit)
            return Slab(both, np.where(values == NO_TIME, NO_TIME, fine))
        if values.dtype == dtype:
            return Slab(both, values.copy())
        made = values.astype(dtype)
        if column.missing is not None and dtype.kind == "f":  # whole numbers here, floats in another piece
            made[column.missing[rows]] = np.nan
        return Slab(both, made)

    def _absent(self, num_rows: int, context: TableContext) -> npt.NDArray[Any]:
        # Values that are all missing, of the kind that the column is elsewhere.
        kind = context.found.columns[self.place].kind
        if self.mask:
            return np.ones(num_rows, np.bool_)
        absent = -1 if kind.word == "text" else NO_TIME if kind.unit else 0 if kind.has_mask else np.nan
        return np.full(num_rows, absent, kind.stored)

    def assemble(self, parts: Sequence[Slab | None], context: TableContext, region: Region) -> Block:
        """Return the block of a region."""
        return dense_of([part for part in parts if part is not None], region, self._dtype(context))


def no_common_type(name: str) -> str:
    """Return the reason why no type holds the integers of a column together with its other numbers."""
    return (
        f"column {name!r} has whole numbers that no type of numbers holds together with its other numbers; "
        f'dtype={{{name!r}: "text"}} keeps all of them, dtype={{{name!r}: "float64"}} rounds them'
    )


# What a user asks of columns.


def picked_columns(
    file: File, names: Sequence[str], columns: Sequence[str | int] | None, ways: str = ""
) -> tuple[int, ...]:
    """Return the places of the columns to read, given names or places; None reads all.

    ``ways`` says what else helps where two have one name.

    Raises
    ------
    OptionError
        For a name that no column has, or more than one.
    FileFormatError
        When all are read and two have one name, or there are too many.
    """
    if columns is None:
        if len(names) > MOST_COLUMNS:
            raise file.error(
                f"has {len(names):,} columns; a table has {MOST_COLUMNS:,} at most: pick some with columns=",
                1,
            )
        for name, times in Counter(names).most_common(1):
            if times > 1:
                raise file.error(f"{times} columns named {name!r}: {ways}columns= picks others", 1)
        return tuple(range(len(names)))
    if isinstance(columns, str) or not isinstance(columns, Sequence) or not columns:
        raise OptionError(f"columns={columns!r}: give a list of names")
    found: dict[str, int] = {}
    for one in columns:
        place = one if isinstance(one, int) and 0 <= one < len(names) else -1
        if place < 0 and one not in names:
            raise OptionError(f"{file.shown}: no column {one!r}; {suggestion(one, names)}")
        name = names[place] if place >= 0 else str(one)
        if place < 0 and names.count(name) > 1:
            raise OptionError(f"{file.shown}: {names.count(name)} columns named {name!r}")
        if name in found:
            raise OptionError(f"columns={columns!r}: {name!r} is listed twice")
        found[name] = place if place >= 0 else names.index(name)
    return tuple(found.values())


def wanted_dtypes(where: str, dtype: DTypes, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the dtype asked for of each column, as NumPy writes it or "text": one for all, or one a name.

    Raises
    ------
    OptionError
        For one that no column has, or a name that is not read.
    """
    if dtype is None:
        return ()
    by_name = dtype if isinstance(dtype, Mapping) else dict.fromkeys(names, dtype)
    wanted = []
    for name, one in by_name.items():
        if name not in names:
            raise OptionError(f"{where}: dtype= of {name!r}, a column that is not read: {_listed(names)}")
        if one is str or one in ("text", "str", "string", "category"):
            wanted.append((name, "text"))
            continue
        try:
            made = np.dtype(one)
        except TypeError:
            made = np.dtype(object)
        has_unit = made.kind == "M" and made.name.removeprefix("datetime64[").rstrip("]") in STORED_UNITS
        if made.kind not in "biuf" and not has_unit:
            raise OptionError(
                f'dtype={one!r}: give a bool, integer or float dtype, "text", or a time such as '
                '"datetime64[us]"'
            )
        wanted.append((name, made.name))
    return tuple(wanted)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:50]))

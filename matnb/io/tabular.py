"""What readers of tables share: rows of columns as numbers, what each column holds, how pieces meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Block
from matnb.blocks.grid import Region, relative
from matnb.errors import OptionError
from matnb.io.files import File
from matnb.io.measured import ReaderValue
from matnb.io.slabs import Slab, common, dense_of
from matnb.io.source import Found, PlainSource

FLOAT = np.dtype(np.float64)
_LARGEST_EXACT = 2.0**53 - 1  # the next one is what 2**53 + 1 is read as, too
DType: TypeAlias = str | type | np.dtype
DTypes: TypeAlias = DType | Mapping[str, DType] | None


@dataclass(frozen=True)
class Content:
    """What the values of a column are, as far as they were seen.

    Attributes
    ----------
    missing
        How many are missing.
    truths, numbers
        How many are written as true or false, and how many as numbers.
    whole
        Whether all numbers are written as whole ones that a double holds exactly.
    """

    missing: int = 0
    truths: int = 0
    numbers: int = 0
    whole: bool = True

    def __add__(self, other: Content) -> Content:
        return Content(
            self.missing + other.missing,
            self.truths + other.truths,
            self.numbers + other.numbers,
            self.whole and other.whole,
        )

    @property
    def dtype(self) -> np.dtype:
        """The dtype that holds all of it: of whole numbers or truths with a missing one, float64."""
        if self.missing or not (self.truths or self.numbers):
            return FLOAT
        if not self.numbers:
            return np.dtype(np.bool_)
        return np.dtype(np.int64) if self.whole else FLOAT


def are_exact(values: npt.NDArray[np.float64]) -> bool:
    """Tell whether all values are whole and small enough to be told from their neighbors; NaN is left out."""
    with np.errstate(invalid="ignore"):
        good = (np.abs(values) <= _LARGEST_EXACT) & (values == np.floor(values))
    return bool((good | np.isnan(values)).all())


@dataclass(frozen=True, eq=False)
class Rows(ReaderValue):
    """Rows of a piece, missing values as NaN, and what each column of them holds."""

    number: int
    values: npt.NDArray[np.float64]
    contents: tuple[Content, ...]


@dataclass(frozen=True)
class Stacked:
    """What is known of the table, and the number of the first row of each piece."""

    found: Found
    firsts: tuple[int, ...]


@dataclass(frozen=True)
class Tabular(PlainSource):
    """A table; ``picked`` are the places of the columns that are read, ``wanted`` the dtypes asked for."""

    file: File
    names: tuple[str, ...]
    picked: tuple[int, ...]
    wanted: tuple[tuple[str, np.dtype], ...]

    def summary(self, parsed: Rows) -> tuple[int, tuple[Content, ...]]:
        """Return the number of rows of a piece, and what its columns hold."""
        return len(parsed.values), parsed.contents

    def merge(self, summaries: Sequence[tuple[int, tuple[Content, ...]]]) -> Stacked:
        """Return what is known of the table.

        Raises
        ------
        FileFormatError
            For a column of numbers and truths, or one that is not of the dtype asked for.
        """
        firsts = np.cumsum([0, *(rows for rows, _ in summaries)]).tolist()
        shape = (firsts[-1], len(self.picked))
        names = tuple(self.names[column] for column in self.picked)
        dtypes = tuple(
            self._dtype(name, sum((contents[place] for _, contents in summaries), Content()))
            for place, name in enumerate(names)
        )
        nnz = shape[0] * shape[1]
        return Stacked(Found(shape, FLOAT, sparse=False, nnz=nnz, names=names, dtypes=dtypes), tuple(firsts))

    def _dtype(self, name: str, content: Content) -> np.dtype:
        if content.truths and content.numbers:
            counts = f"{content.truths} values that are true or false and {content.numbers} numbers"
            raise self.file.error(f"column {name!r} has {counts}: columns=[...] picks the columns to read")
        wanted = dict(self.wanted).get(name)
        if wanted is None:
            return content.dtype
        if content.missing and wanted.kind not in "fc":
            advice = "read it as float64, where they are NaN"
            raise self.file.error(f"column {name!r} has {content.missing} missing values: {advice}")
        if wanted.kind in "iu" and not content.whole:
            raise self.file.error(
                f"column {name!r} has values that are not whole, or beyond 2**53: read it as float64"
            )
        return wanted

    def part(self, parsed: Rows, context: Stacked, region: Region) -> Slab | None:
        """Return the rectangle of a piece that lies in a region."""
        num_rows, num_columns = parsed.values.shape
        first = context.firsts[parsed.number]
        own = ((first, first + num_rows), (0, num_columns))
        both = common(own, region)
        return None if both is None else Slab(both, parsed.values[relative(both, own)].copy())

    def assemble(self, parts: Sequence[Slab | None], context: Stacked, region: Region) -> Block:
        """Return the block of a region."""
        return dense_of([part for part in parts if part is not None], region, FLOAT)


def wanted_dtypes(file: File, dtype: DTypes, names: Sequence[str]) -> tuple[tuple[str, np.dtype], ...]:
    """Return the dtype asked for of each column, given one for all or one a name.

    Raises
    ------
    OptionError
        For one that is no dtype of numbers, or a name that is not read.
    """
    if dtype is None:
        return ()
    by_name = dtype if isinstance(dtype, Mapping) else dict.fromkeys(names, dtype)
    wanted = []
    for name, one in by_name.items():
        if name not in names:
            raise OptionError(
                f"{file.shown}: dtype= of {name!r}, a column that is not read: {_listed(names)}"
            )
        try:
            made = np.dtype(one)
        except TypeError:
            made = np.dtype(object)
        if made.kind not in "biuf":
            raise OptionError(f"dtype={one!r}: columns are numbers: give a bool, integer or float dtype")
        wanted.append((name, made))
    return tuple(wanted)


def picked_columns(file: File, names: Sequence[str], columns: Sequence[str] | None) -> tuple[int, ...]:
    """Return the places of the columns to read; None reads all.

    Raises
    ------
    OptionError
        For a name that no column has, or more than one.
    FileFormatError
        When all are read and two have one name.
    """
    if columns is None:
        for place, name in enumerate(names):
            if name in names[:place]:
                advice = "give each a name of its own, or pick others with columns="
                raise file.error(f"{names.count(name)} columns named {name!r}: {advice}", 1)
        return tuple(range(len(names)))
    if isinstance(columns, str) or not isinstance(columns, Sequence) or not columns:
        raise OptionError(f"columns={columns!r}: give a list of names")
    for name in columns:
        if names.count(name) != 1:
            count = names.count(name)
            raise OptionError(
                f"{file.shown}: {count} columns named {name!r}; the header has {_listed(names)}"
            )
    return tuple(names.index(name) for name in columns)


def not_numbers(names: Sequence[str], bad: Sequence[str]) -> str:
    """Return what a message says of columns that are no numbers: how to leave them out."""
    good = [name for name in names if name not in bad]
    if not good:
        return "columns=[...] picks the columns to read, and none here holds numbers"
    also = f" (not numbers: {_listed(bad)})" if len(bad) > 1 else ""
    return f"columns=[{_listed(good)}] reads the others{also}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:50]))

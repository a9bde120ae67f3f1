"""Columns that are not plain arrays: what they have in common, and those of text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
import numpy.typing as npt

from matnb.blocks.foreign import is_missing_value
from matnb.errors import DTypeError, NotScalarError, OptionError, ShapeError, suggestion
from matnb.io.columns import by_code_point, places_among
from matnb.io.durations import NO_TIME
from matnb.io.texts import NO_VALUE, checked_marks, numbers_in, present, times_in
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray
from matnb.lazy.foreign_names import refuse_dask
from matnb.tables.pandas_names import OF_COLUMNS, no_table_name
from matnb.tables.showing import short_text

if TYPE_CHECKING:
    import pyarrow

    from matnb.tables.masked import MaskedColumn
    from matnb.tables.table import Table
    from matnb.tables.times import TimeColumn


class Column:
    """A column of text, of times, or of integers with missing values; workers store it as integers.

    Attributes
    ----------
    codes
        The stored integers, a 1-D DistArray.
    may_miss
        Whether values may be missing.
    name
        The column's name in its table.
    """

    name = ""
    seen: tuple[list[str], list[str]] | None = None  # texts of its first and last values, where known
    __array_ufunc__: Any = None  # operators of NumPy's arrays and of DistArray leave the work to this class
    __hash__ = None  # type: ignore[assignment]  # it compares value by value

    def __init__(self, codes: DistArray, may_miss: bool = True) -> None:
        self.codes, self.may_miss = codes, may_miss

    def _like(self, codes: DistArray, may_miss: bool | None = None) -> Self:
        # The same kind of column with other values.
        raise NotImplementedError

    @property
    def dtype(self) -> np.dtype:
        """The values' NumPy dtype."""
        raise NotImplementedError

    @property
    def missing(self) -> DistArray:
        """A boolean mask of missing values."""
        raise NotImplementedError

    def _here(self, codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
        # The values as NumPy's, given the numbers.
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        """Its length, as a tuple."""
        return self.codes.shape

    def __len__(self) -> int:
        return self.codes.shape[0]

    def __bool__(self) -> NoReturn:
        raise NotScalarError("the truth value of a column is ambiguous: compare it, and use .any() or .all()")

    def __getitem__(self, key: Any) -> Self:
        self._check_key(key)
        return self._like(self.codes[key])

    def _check_key(self, key: object) -> None:
        if isinstance(key, int | np.integer):
            raise OptionError(f"column[{key}]: give a slice, a mask or numbers of rows")

    def compute(self) -> npt.NDArray[Any]:
        """Compute the column and return a NumPy array: text as objects, times as datetime64.

        Raises
        ------
        TooLargeError
            If the values exceed the session's ``compute_limit``.
        """
        return self._here(np.asarray(self.codes.compute()))

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        values = self.compute()
        return values if dtype is None else values.astype(dtype)

    def value_counts(self) -> Table:
        """Return the counts of values, the most frequent first; ties are ordered by value."""
        from matnb.tables.table import Table  # which is made of columns

        name = self.name or "value"
        return Table({name: self}).value_counts(name)

    def isna(self) -> DistArray:
        """Return a boolean mask of missing values."""
        return self.missing

    def isin(self, values: Iterable[object]) -> DistArray:
        """Return a boolean mask of values that are in a list or another column.

        None, NaN and NaT stand for missing values. A value that the column cannot have is in no row, such as
        2.5 among whole numbers.

        Raises
        ------
        DTypeError
            For values of another kind, such as a string for a column of numbers.
        OptionError
            For one value instead of a list.
        """
        if isinstance(values, Column | DistArray):
            values = list(np.asarray(values))
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise OptionError(f"isin({values!r}): give a list of values")
        given = list(values)
        there = [one for one in given if not is_missing_value(one)]
        numbers = [number for one in there if (number := self._number(one)) is not None]
        found: Any = np.isin(self.codes, np.array(numbers, self.codes.dtype))
        if self.may_miss:
            found = found | self.missing if len(there) < len(given) else found & ~self.missing
        return found  # type: ignore[no-any-return]  # a handle

    def _number(self, value: object) -> int | None:
        # The number that stands for a value; None where there is none.
        raise NotImplementedError

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_") or "codes" not in self.__dict__:  # libraries ask for protocols
            refuse_dask(name, "a column of a table")
            raise AttributeError(name)
        known = [one for one in dir(type(self)) if not one.startswith("_")]
        raise no_table_name(f"a column of {self._word()}", name, OF_COLUMNS, lambda: known)

    def _word(self) -> str:
        return str(self.dtype)

    def _shown(self, text: str) -> str:
        # A value of ``seen``: nothing is written where it is missing.
        return text or "missing"

    def __repr__(self) -> str:
        summary = f"column{f' {self.name!r}' if self.name else ''} of {len(self):,} x {self._word()}"
        if self.seen is None:
            from matnb.tables.table import Table  # which is made of columns

            note = Table({self.name: self})._looked()
            summary = f"{summary}; {note}" if note else summary
        if self.seen is None or not self.seen[0]:
            return summary
        first, last = (", ".join(map(self._shown, part)) for part in self.seen)
        return f"{first}{', ..., ' if last else ''}{last}\n{summary}"


def is_missing(column: DistArray | Column) -> DistArray | None:
    """Return where values of a column are missing; None where none can be."""
    if isinstance(column, Column):
        return column.missing if column.may_miss else None
    return column != column if column.dtype.kind == "f" else None


class OrderedColumn(Column, ABC):
    """A column whose values have an order; a missing one is unequal to all, and neither less nor greater."""

    __hash__ = None  # type: ignore[assignment]  # it compares value by value

    @abstractmethod
    def _compared(self, other: object, compare: Callable[[Any, Any], Any]) -> DistArray:
        """Return where a comparison with a value or a column holds; nowhere where a value is missing."""

    def __eq__(self, other: object) -> DistArray:  # type: ignore[override]  # value by value
        return self._compared(other, lambda a, b: a == b)

    def __ne__(self, other: object) -> DistArray:  # type: ignore[override]
        return ~(self == other)  # type: ignore[no-any-return]  # True where a value is missing, as of NaN

    def __lt__(self, other: object) -> DistArray:
        return self._compared(other, lambda a, b: a < b)

    def __le__(self, other: object) -> DistArray:
        return self._compared(other, lambda a, b: a <= b)

    def __gt__(self, other: object) -> DistArray:
        return self._compared(other, lambda a, b: a > b)

    def __ge__(self, other: object) -> DistArray:
        return self._compared(other, lambda a, b: a >= b)


class TextColumn(OrderedColumn):
    """Text as categories: workers store indices into the labels, -1 for missing text.

    Attributes
    ----------
    labels
        The distinct strings, sorted by code point, an Arrow array.

    Examples
    --------
    >>> import matnb as mn
    >>> t = mn.table({"zone": ["b", "a", "b"]})
    >>> t["zone"].codes.compute()
    array([1, 0, 1], dtype=int32)
    >>> (t["zone"] == "b").compute()
    array([ True, False,  True])
    """

    def __init__(self, codes: DistArray, labels: pyarrow.Array, may_miss: bool = True) -> None:
        super().__init__(codes, may_miss)
        self.labels = labels

    def _like(self, codes: DistArray, may_miss: bool | None = None) -> Self:
        return type(self)(codes, self.labels, self.may_miss if may_miss is None else may_miss)

    @property
    def dtype(self) -> np.dtype:
        """NumPy's string dtype."""
        return np.dtypes.StringDType()

    def _word(self) -> str:
        return "text"

    def _shown(self, text: str) -> str:
        is_empty = not text and self.labels.index("").as_py() >= 0
        if text or (is_empty and not self.may_miss):
            return repr(short_text(text))
        return "'' or missing" if is_empty else "missing"

    @property
    def missing(self) -> DistArray:
        """A boolean mask of missing values."""
        return self.codes < 0  # type: ignore[no-any-return]

    def _here(self, codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
        labels = np.array([*self.labels.to_pylist(), None], object)
        return labels[codes]  # type: ignore[no-any-return]

    def _number(self, value: object) -> int | None:
        if not isinstance(value, str):
            raise DTypeError(f"{value!r} cannot be compared with a column of text: give strings")
        place: int = self.labels.index(value).as_py()
        return None if place < 0 else place

    def _compared(self, other: object, compare: Callable[[Any, Any], Any]) -> DistArray:
        if isinstance(other, TextColumn):
            both = by_code_point([self.labels, other.labels])
            one, two = (_renumbered(column, both) for column in (self, other))
            found = compare(one, two)
            return found & ~self.missing & ~other.missing  # type: ignore[no-any-return]
        if is_missing_value(other):
            return self.codes != self.codes  # type: ignore[no-any-return]  # nothing compares with it
        if not isinstance(other, str):
            raise DTypeError(
                f"a column of text cannot be compared with {shown_value(other)}: give a string, or a column "
                "of text"
            )
        # Labels ascend, so that the place between two of them stands for a text that is none of them.
        below = int(np.count_nonzero([one < other for one in self.labels.to_pylist()]))
        is_there = self.labels.index(other).as_py() >= 0
        found = compare(self.codes, below if is_there else below - 0.5)
        return found if not self.may_miss else found & ~self.missing  # type: ignore[no-any-return]

    # Numbers and times

    def to_float(self, decimal: str = ".", thousands: str | None = None, errors: str = "raise") -> DistArray:
        """Return the texts as numbers, float64; NaN where they are missing.

        A sign of a currency in front or at the end is left out, "50%" is 0.5, and the texts that
        :func:`matnb.load` takes for missing are NaN, as "" and "n/a".

        Parameters
        ----------
        decimal, thousands
            The characters before the part below one, and between thousands.
        errors
            "raise", or "coerce" to make texts that are not numbers missing.

        Raises
        ------
        DTypeError
            For a text that is no number; the message has some of them.

        Examples
        --------
        >>> import matnb as mn
        >>> t = mn.table({"price": ["$3.50", "1,200.00", "50%", None]})
        >>> t["price"].to_float(thousands=",").compute()
        array([3.5e+00, 1.2e+03, 5.0e-01,     nan])
        """
        texts = self._texts()
        found = numbers_in(texts, checked_marks(decimal, thousands), whole=False)
        self._check_converted(
            texts, found.is_null(), "a number", errors, 'decimal="," and thousands="." read "1.234,5"'
        )
        values = found.to_numpy(zero_copy_only=False)
        return asarray(np.append(values, np.nan))[self.codes]

    def to_int(
        self, decimal: str = ".", thousands: str | None = None, errors: str = "raise"
    ) -> DistArray | MaskedColumn:
        """Return the texts as whole numbers, int64, or uint64 if one is 2**63 or larger.

        Takes the same options as :meth:`to_float`, and leaves out the same signs; no digit is lost.

        Raises
        ------
        DTypeError
            For a text that is no whole number, or one that 64 bits do not hold.

        Examples
        --------
        >>> import matnb as mn
        >>> t = mn.table({"zip": ["02134", "10115"]})
        >>> t["zip"].to_int().compute()
        array([ 2134, 10115])
        """
        texts = self._texts()
        found = numbers_in(texts, checked_marks(decimal, thousands), whole=True)
        self._check_converted(
            texts, found.is_null(), "a whole number of 64 bits", errors, "to_float() takes others"
        )
        from matnb.tables.masked import MaskedColumn  # which is a column

        gone = found.is_null().to_numpy(zero_copy_only=False)
        numbers = found.fill_null(0).to_numpy()
        values: Any = asarray(np.append(numbers, np.zeros(1, numbers.dtype)))
        if not gone.any() and not self.may_miss:
            return values[self.codes]  # type: ignore[no-any-return]  # a handle
        mask: Any = asarray(np.append(gone, [True]))
        return MaskedColumn(values[self.codes], mask[self.codes])

    def to_datetime(self, format: str | None = None, errors: str = "raise") -> TimeColumn:
        """Return the texts as dates, or as dates and times of microseconds.

        Parameters
        ----------
        format
            How they are written, as ``"%d.%m.%Y %H:%M"`` in :meth:`datetime.datetime.strptime`; None for ISO
            8601, which may be of nanoseconds.
        errors
            "raise", or "coerce" to make texts that are not times missing.

        Raises
        ------
        DTypeError
            For a text that is no time, or one of ISO 8601 with an offset; the message has some of them.
        UnsupportedError
            For a format with a zone.

        Examples
        --------
        >>> import matnb as mn
        >>> t = mn.table({"day": ["31.12.2020", None]})
        >>> t["day"].to_datetime("%d.%m.%Y").compute()
        array(['2020-12-31',        'NaT'], dtype='datetime64[D]')
        """
        import pyarrow

        from matnb.tables.times import TimeColumn  # which is a column

        texts = self._texts()
        values, unit = times_in(texts, format)
        gone = np.isnat(values)
        what = "a time of ISO 8601 without an offset" if format is None else f"a time of the form {format!r}"
        self._check_converted(texts, pyarrow.array(gone), what, errors, 'give another form as in "%d.%m.%Y"')
        counts: Any = asarray(np.append(values.view(np.int64), [NO_TIME]))
        return TimeColumn(counts[self.codes], "datetime", unit, self.may_miss or bool(gone.any()))

    def _texts(self) -> pyarrow.Array:
        # The labels without spaces around them, nulls where they stand for no value.
        import pyarrow
        from pyarrow import compute

        return present(compute.utf8_trim_whitespace(self.labels.cast(pyarrow.string())), NO_VALUE)

    def _check_converted(
        self, texts: pyarrow.Array, gone: pyarrow.Array, what: str, errors: str, way: str
    ) -> None:
        # Labels that no row has any longer are not checked.
        from pyarrow import compute

        if errors not in ("raise", "coerce"):
            raise OptionError(
                f"errors={errors!r}: {suggestion(errors, ('raise', 'coerce'), 'choose one of')}"
            )
        is_wrong = compute.and_(gone, texts.is_valid()).to_numpy(zero_copy_only=False)
        if errors == "coerce" or not is_wrong.any():
            return
        wrong = np.flatnonzero(is_wrong)
        here: Any = np.isin(self.codes, wrong.astype(np.int32))
        count = int(here.sum())
        if count:
            codes: Any = self.codes[here]
            places = dict.fromkeys([int(codes.min()), int(codes.max())])
            some = [short_text(self.labels[place].as_py()) for place in places]
            name = f"column {self.name!r}" if self.name else "the column"
            shown = ", ".join(map(repr, some))
            raise DTypeError(
                f"{name} has {count:,} value{'s that are' if count > 1 else ' that is'} not {what}, such as "
                f'{shown}; {way}, and errors="coerce" makes such values missing'
            )


def _renumbered(column: TextColumn, labels: pyarrow.Array) -> DistArray:
    # The codes of a column among other labels.
    places = places_among(column.labels, labels)
    return asarray(places)[column.codes]


def shown_value(value: object) -> str:
    """Return a value that a user gave as an error shows it; a column is shown by its type."""
    return f"a column of {value._word()}" if isinstance(value, Column) else repr(value)


def check_length(name: str, length: int, wanted: int) -> None:
    """Refuse a column that is longer or shorter than another.

    Raises
    ------
    ShapeError
        With both lengths.
    """
    if length != wanted:
        raise ShapeError(f"column {name!r} has {length:,} rows where others have {wanted:,}")

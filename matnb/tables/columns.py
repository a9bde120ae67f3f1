"""Columns that are not plain arrays: text, times, and whole numbers of which some are missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from matnb.errors import DTypeError, OptionError, ShapeError, suggestion
from matnb.io.columns import NO_TIME, ColumnFacts, by_code_point, places_among
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray
from matnb.lazy.foreign_names import refuse_dask
from matnb.pictures.tables import short_text
from matnb.tables.pandas_names import OF_COLUMNS, no_table_name

if TYPE_CHECKING:
    import pyarrow

    from matnb.tables.table import Table

_UNITS = {"D": "D", "day": "D", "h": "h", "hour": "h", "m": "m", "minute": "m", "s": "s", "second": "s"}
_UNITS |= {"month": "M", "M": "M", "year": "Y", "Y": "Y", "ms": "ms", "us": "us", "ns": "ns"}
_IN_DAY = {"D": 1, "h": 24, "m": 1440, "s": 86_400, "ms": 86_400_000, "us": 86_400_000_000}
_IN_DAY |= {"ns": 86_400_000_000_000}


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

    def __getitem__(self, key: Any) -> Self:
        if isinstance(key, int | np.integer):
            raise OptionError(f"column[{key}]: give a slice, a mask or numbers of rows")
        return self._like(self.codes[key])

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
        """Return a boolean mask of values that are in a list."""
        numbers = np.array([one for value in values for one in self._numbers(value)], np.int64)
        return np.isin(self.codes, numbers)  # type: ignore[return-value]  # a handle

    def _numbers(self, value: object) -> list[int]:
        # The numbers that stand for a value, of which there is one or none.
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
        told = f"column{f' {self.name!r}' if self.name else ''} of {len(self):,} x {self._word()}"
        if self.seen is None:
            return f"{told}, values not computed: compute() returns them"
        first, last = (", ".join(map(self._shown, part)) for part in self.seen)
        return f"{first}{', ..., ' if last else ''}{last}\n{told}"


def is_missing(column: DistArray | Column) -> DistArray | None:
    """Return where values of a column are missing; None where none can be."""
    if isinstance(column, Column):
        return column.missing if column.may_miss else None
    return column != column if column.dtype.kind == "f" else None


class TextColumn(Column):
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

    def _numbers(self, value: object) -> list[int]:
        if value is None:
            return [-1]
        if not isinstance(value, str):
            raise DTypeError(f"{value!r} cannot be compared with a column of text")
        place = self.labels.index(value).as_py()
        return [] if place < 0 else [place]

    def _compared(self, other: object, compare: Callable[[Any, Any], Any], name: str) -> DistArray:
        if isinstance(other, TextColumn):
            both = by_code_point([self.labels, other.labels])
            one, two = (_renumbered(column, both) for column in (self, other))
            found = compare(one, two)
            return found & ~self.missing & ~other.missing  # type: ignore[no-any-return]
        if not isinstance(other, str):
            raise DTypeError(
                f"a column of text cannot be compared with {other!r}: give a string, or a column of text"
            )
        # Labels ascend, so that the place between two of them stands for a text that is none of them.
        below = int(np.count_nonzero([one < other for one in self.labels.to_pylist()]))
        is_there = self.labels.index(other).as_py() >= 0
        found = compare(self.codes, below if is_there else below - 0.5)
        return found if not self.may_miss else found & ~self.missing  # type: ignore[no-any-return]

    def __eq__(self, other: object) -> DistArray:  # type: ignore[override]  # value by value
        return self._compared(other, lambda a, b: a == b, "==")

    def __ne__(self, other: object) -> DistArray:  # type: ignore[override]
        return self._compared(other, lambda a, b: a != b, "!=")

    def __lt__(self, other: object) -> DistArray:
        return self._compared(other, lambda a, b: a < b, "<")

    def __le__(self, other: object) -> DistArray:
        return self._compared(other, lambda a, b: a <= b, "<=")

    def __gt__(self, other: object) -> DistArray:
        return self._compared(other, lambda a, b: a > b, ">")

    def __ge__(self, other: object) -> DistArray:
        return self._compared(other, lambda a, b: a >= b, ">=")


def _renumbered(column: TextColumn, labels: pyarrow.Array) -> DistArray:
    # The codes of a column among other labels.
    places = places_among(column.labels, labels)
    return asarray(places)[column.codes]


class MaskedColumn(Column, NDArrayOperatorsMixin):
    """Integers or booleans with missing values, which are kept as a separate mask.

    Comparisons are False where a value is missing; arithmetic uses :meth:`to_float`.

    Examples
    --------
    >>> import matnb as mn
    >>> t = mn.table({"people": [1, None, 3]})
    >>> t["people"].compute()
    array([ 1., nan,  3.])
    >>> float(t["people"].sum())
    4.0
    """

    def __init__(self, codes: DistArray, mask: DistArray, may_miss: bool = True) -> None:
        super().__init__(codes, may_miss)
        self._mask = mask

    def _like(self, codes: DistArray, may_miss: bool | None = None) -> Self:
        raise NotImplementedError("a masked column has two arrays")

    def __getitem__(self, key: Any) -> MaskedColumn:
        return MaskedColumn(self.codes[key], self._mask[key], self.may_miss)

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the values."""
        return self.codes.dtype

    def _word(self) -> str:
        return f"{self.dtype} or missing"

    @property
    def missing(self) -> DistArray:
        """A boolean mask of missing values."""
        return self._mask

    def compute(self) -> npt.NDArray[Any]:
        """Compute the column and return it as float64, with NaN for missing values."""
        return np.asarray(self.to_float().compute())

    def _numbers(self, value: object) -> list[int]:
        return [int(value)]  # type: ignore[call-overload]  # or it raises

    def isin(self, values: Iterable[object]) -> DistArray:
        """Return a boolean mask of values that are not missing and are in a list."""
        return super().isin(values) & ~self._mask  # type: ignore[no-any-return]

    def to_float(self) -> DistArray:
        """Return the values as float64, with NaN for missing ones."""
        return np.where(self._mask, np.nan, self.codes.astype(np.float64))  # type: ignore[return-value]

    def __matnb_array__(self) -> DistArray:
        return self.to_float()

    def present(self) -> DistArray:
        """Return the values that are not missing; their number is computed immediately."""
        return self.codes[~self._mask]

    def sum(self) -> DistArray:
        """Return the sum, skipping missing values."""
        return np.nansum(self.to_float())

    def mean(self) -> DistArray:
        """Return the mean, skipping missing values."""
        return np.nanmean(self.to_float())  # type: ignore[return-value]

    def std(self, ddof: int = 0) -> DistArray:
        """Return the standard deviation, skipping missing values."""
        return np.nanstd(self.to_float(), ddof=ddof)  # type: ignore[return-value]

    def min(self) -> DistArray:
        """Return the minimum, skipping missing values."""
        return np.nanmin(self.to_float())

    def max(self) -> DistArray:
        """Return the maximum, skipping missing values."""
        return np.nanmax(self.to_float())

    def __eq__(self, other: object) -> DistArray:  # type: ignore[override]
        return (self.codes == _plain(other)) & ~self._mask  # type: ignore[no-any-return]

    def __ne__(self, other: object) -> DistArray:  # type: ignore[override]
        return (self.codes != _plain(other)) & ~self._mask  # type: ignore[no-any-return]

    def __lt__(self, other: object) -> DistArray:
        return (self.codes < _plain(other)) & ~self._mask  # type: ignore[no-any-return]

    def __le__(self, other: object) -> DistArray:
        return (self.codes <= _plain(other)) & ~self._mask  # type: ignore[no-any-return]

    def __gt__(self, other: object) -> DistArray:
        return (self.codes > _plain(other)) & ~self._mask  # type: ignore[no-any-return]

    def __ge__(self, other: object) -> DistArray:
        return (self.codes >= _plain(other)) & ~self._mask  # type: ignore[no-any-return]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        return getattr(ufunc, method)(*map(_plain, inputs), **options)

    def __array_function__(
        self, function: Callable[..., Any], types: object, args: Any, kwargs: Mapping[str, object]
    ) -> object:
        return function(*map(_plain, args), **{name: _plain(one) for name, one in kwargs.items()})


def _plain(other: object) -> Any:
    return other.to_float() if isinstance(other, MaskedColumn) else other


class TimeColumn(Column):
    """Dates and times, or durations, as NumPy's datetime64 and timedelta64; missing values are NaT.

    The difference of two times is a duration; durations can be added to times and to each other. Both can be
    compared with columns of their kind, NumPy scalars, and strings that NumPy can parse; comparisons with NaT
    are False.

    Attributes
    ----------
    word, unit
        "datetime" or "timedelta", and the unit, as NumPy writes it.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> t = mn.table({"when": np.array(["2020-01-01T10:30", "2021-03-04T23:00"], "datetime64[s]")})
    >>> t["when"].hour.compute()
    array([10, 23])
    >>> (t["when"] >= "2021-01-01").compute()
    array([False,  True])
    >>> t["when"].truncate("month").compute().astype(str).tolist()
    ['2020-01-01T00:00:00', '2021-03-01T00:00:00']
    """

    def __init__(self, codes: DistArray, word: str, unit: str, may_miss: bool = True) -> None:
        super().__init__(codes, may_miss)
        self.word, self.unit = word, unit

    def _like(self, codes: DistArray, may_miss: bool | None = None) -> Self:
        return type(self)(codes, self.word, self.unit, self.may_miss if may_miss is None else may_miss)

    @property
    def dtype(self) -> np.dtype:
        """NumPy's dtype, with the unit."""
        return np.dtype(f"{self.word}64[{self.unit}]")

    @property
    def missing(self) -> DistArray:
        """A boolean mask of missing values."""
        return self.codes == NO_TIME  # type: ignore[no-any-return]

    def _here(self, codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return codes.view(self.dtype)

    def _numbers(self, value: object) -> list[int]:
        return [int(self._scalar(value).view(np.int64))]

    def _scalar(self, value: object) -> Any:
        try:
            made = np.asarray(value).astype(f"{self.word}64")
            finer = np.asarray(made).astype(self.dtype)
        except (ValueError, TypeError):
            raise DTypeError(f"{value!r} is not a {self.word}, which this column holds") from None
        if not np.isnat(made) and finer.astype(made.dtype) != made:
            raise DTypeError(f"{value!r} is not a whole number of the column's unit, {self.unit}")
        return finer

    def _other(self, value: object) -> tuple[TimeColumn, TimeColumn | int]:
        # This column and another, or a scalar's number, in one unit.
        if not isinstance(value, TimeColumn):
            if isinstance(value, str | np.datetime64 | np.timedelta64) or hasattr(value, "isoformat"):
                made = np.asarray(value, f"{self.word}64")
                unit = np.datetime_data(made.dtype)[0]
                if unit in _IN_DAY and _IN_DAY[unit] > _IN_DAY[self.unit]:
                    return self.to_unit(unit), int(made.view(np.int64))
            return self, self._numbers(value)[0]
        unit = max(self.unit, value.unit, key=_IN_DAY.__getitem__)
        return self.to_unit(unit), value.to_unit(unit)

    def to_unit(self, unit: str) -> TimeColumn:
        """Return the times in another unit, rounded down if it is coarser."""
        if unit == self.unit:
            return self
        if unit not in _IN_DAY:
            raise OptionError(f"unit {unit!r}; {suggestion(unit, _IN_DAY)}")
        if _IN_DAY[unit] > _IN_DAY[self.unit]:
            made: Any = self.codes * (_IN_DAY[unit] // _IN_DAY[self.unit])
        else:
            made = self.codes // (_IN_DAY[self.unit] // _IN_DAY[unit])
        return TimeColumn(self._kept(made, self), self.word, unit, self.may_miss)

    def _kept(self, made: Any, *columns: Column) -> Any:
        for column in columns:
            if column.may_miss:
                made = np.where(column.missing, NO_TIME, made)
        return made

    def _compared(self, other: object, compare: Callable[[Any, Any], Any]) -> DistArray:
        if isinstance(other, TimeColumn) and other.word != self.word:
            raise DTypeError(f"a column of {self.dtype} cannot be compared with one of {other.dtype}")
        one, two = self._other(other)
        found = compare(one.codes, two if isinstance(two, int) else two.codes)
        for column in (one, two):
            if isinstance(column, TimeColumn) and column.may_miss:
                found = found & ~column.missing
        return found  # type: ignore[no-any-return]  # a handle

    def __eq__(self, other: object) -> DistArray:  # type: ignore[override]
        return self._compared(other, lambda a, b: a == b)

    def __ne__(self, other: object) -> DistArray:  # type: ignore[override]
        return self._compared(other, lambda a, b: a != b)

    def __lt__(self, other: object) -> DistArray:
        return self._compared(other, lambda a, b: a < b)

    def __le__(self, other: object) -> DistArray:
        return self._compared(other, lambda a, b: a <= b)

    def __gt__(self, other: object) -> DistArray:
        return self._compared(other, lambda a, b: a > b)

    def __ge__(self, other: object) -> DistArray:
        return self._compared(other, lambda a, b: a >= b)

    def _lengths(self, other: object) -> TimeColumn | np.timedelta64 | None:
        # A length of time, that is added.
        if isinstance(other, TimeColumn):
            return other if other.word == "timedelta" else None
        if isinstance(other, np.timedelta64):
            return other
        return np.timedelta64(other) if isinstance(other, timedelta) else None

    def _moved(self, other: TimeColumn | np.timedelta64, sign: int) -> TimeColumn:
        if isinstance(other, TimeColumn):
            unit = max(self.unit, other.unit, key=_IN_DAY.__getitem__)
            one, two = self.to_unit(unit), other.to_unit(unit)
            made: Any = one.codes + two.codes if sign > 0 else one.codes - two.codes
            return TimeColumn(self._kept(made, one, two), self.word, unit, self.may_miss or other.may_miss)
        unit = np.datetime_data(other.dtype)[0]
        unit = unit if _IN_DAY.get(unit, 0) > _IN_DAY[self.unit] else self.unit
        one = self.to_unit(unit)
        count = int(other.astype(f"timedelta64[{unit}]").astype(np.int64))
        return TimeColumn(self._kept(one.codes + sign * count, one), self.word, unit, self.may_miss)

    def __add__(self, other: object) -> TimeColumn:
        length = self._lengths(other)
        if length is None:
            if isinstance(other, TimeColumn) and self.word == "timedelta":
                return other._moved(self, 1)
            raise DTypeError(f"{other!r} cannot be added to a column of {self.dtype}: give a duration")
        return self._moved(length, 1)

    __radd__ = __add__

    def __sub__(self, other: object) -> TimeColumn:
        length = self._lengths(other)
        if length is not None:
            return self._moved(length, -1)
        if self.word == "timedelta":
            raise DTypeError(f"{other!r} cannot be subtracted from a column of {self.dtype}: give a duration")
        one, two = self._other(other)
        made: Any = one.codes - (two if isinstance(two, int) else two.codes)
        others = [column for column in (one, two) if isinstance(column, TimeColumn)]
        may_miss = any(column.may_miss for column in others)
        return TimeColumn(self._kept(made, *others), "timedelta", one.unit, may_miss)

    def __truediv__(self, other: object) -> DistArray:
        length = self._lengths(other)
        if self.word != "timedelta" or length is None:
            raise DTypeError(f"a column of {self.dtype} cannot be divided by {other!r}: give a duration")
        if not isinstance(length, TimeColumn):
            made = np.datetime_data(length.dtype)[0]
            unit = made if _IN_DAY.get(made, 0) > _IN_DAY[self.unit] else self.unit
            one = self.to_unit(unit)
            return one._or_nan(one.codes / float(length.astype(f"timedelta64[{unit}]").astype(np.int64)))  # type: ignore[no-any-return]
        unit = max(self.unit, length.unit, key=_IN_DAY.__getitem__)
        one, two = self.to_unit(unit), length.to_unit(unit)
        return two._or_nan(one._or_nan(one.codes / two.codes))  # type: ignore[no-any-return]

    def total_seconds(self) -> DistArray:
        """Return durations in seconds, float64; NaN for missing values."""
        return self / np.timedelta64(1, "s")

    def _or_nan(self, made: Any) -> Any:
        return np.where(self.missing, np.nan, made) if self.may_miss else made

    def truncate(self, unit: str) -> TimeColumn:
        """Return the times rounded down to the "year", "month", "day", "hour", "minute" or "second".

        Raises
        ------
        OptionError
            For an unknown unit.
        """
        wanted = _UNITS.get(unit)
        if wanted is None:
            raise OptionError(f"truncate: unit {unit!r}; {suggestion(unit, _UNITS)}")
        if wanted in ("M", "Y"):
            self._check("datetime", "truncate")
            year, month, _ = self._civil()
            days = _days_of(year, month if wanted == "M" else 1)
            return self._like(self._kept(days * _IN_DAY[self.unit], self))
        if _IN_DAY[wanted] >= _IN_DAY[self.unit]:
            return self
        step = _IN_DAY[self.unit] // _IN_DAY[wanted]
        return self._like(self._kept(self.codes // step * step, self))

    def _check(self, word: str, name: str) -> None:
        if self.word != word:
            raise DTypeError(f"{name} of a column of {self.dtype}: it needs a column of {word}s")

    def _days(self) -> Any:
        return self.codes // _IN_DAY[self.unit]

    def _civil(self) -> tuple[Any, Any, Any]:
        # Year, month and day of days since 1970: H. Hinnant, "chrono-compatible low-level date algorithms".
        # Years begin in March, and 400 of them, an era, have 146,097 days.
        shifted = self._days() + 719_468
        era = shifted // 146_097
        day_of_era = shifted - era * 146_097
        year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
        day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
        place = (5 * day_of_year + 2) // 153
        day = day_of_year - (153 * place + 2) // 5 + 1
        month = np.where(place < 10, place + 3, place - 9)
        year = year_of_era + era * 400 + (month <= 2)
        return year, month, day

    def _field(self, name: str, make: Callable[[], Any]) -> DistArray | MaskedColumn:
        self._check("datetime", name)
        found = make()
        if not self.may_miss:
            return found  # type: ignore[no-any-return]  # a handle
        return MaskedColumn(np.where(self.missing, 0, found), self.missing)  # type: ignore[arg-type]

    def _within_day(self, large: int, small: int) -> Any:
        # How many units of which a day has `large` are there, over those of which it has `small`.
        per_day = _IN_DAY[self.unit]
        if per_day < large:
            return self.codes * 0
        return self.codes % (per_day // small) // (per_day // large)

    @property
    def year(self) -> DistArray | MaskedColumn:
        """Years, int64."""
        return self._field("year", lambda: self._civil()[0])

    @property
    def month(self) -> DistArray | MaskedColumn:
        """Months, 1 to 12."""
        return self._field("month", lambda: self._civil()[1])

    @property
    def day(self) -> DistArray | MaskedColumn:
        """Days of the month, from 1 on."""
        return self._field("day", lambda: self._civil()[2])

    @property
    def hour(self) -> DistArray | MaskedColumn:
        """Hours of the day, 0 to 23."""
        return self._field("hour", lambda: self._within_day(24, 1))

    @property
    def minute(self) -> DistArray | MaskedColumn:
        """Minutes of the hour."""
        return self._field("minute", lambda: self._within_day(1440, 24))

    @property
    def second(self) -> DistArray | MaskedColumn:
        """Whole seconds of the minute."""
        return self._field("second", lambda: self._within_day(86_400, 1440))

    @property
    def weekday(self) -> DistArray | MaskedColumn:
        """Days of the week: 0 is Monday, as in Python's datetime."""
        return self._field("weekday", lambda: (self._days() + 3) % 7)


def _days_of(year: Any, month: Any) -> Any:
    # Days since 1970 of the first of a month: the same paper.
    year = year - (month <= 2)
    era = year // 400
    of_era = year - era * 400
    place = (month + 9) % 12
    of_year = (153 * place + 2) // 5
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def column_of(facts: ColumnFacts, codes: DistArray, mask: DistArray | None) -> DistArray | Column:
    """Return a column of a table, given what is known of it and its arrays."""
    may_miss = facts.num_missing != 0
    if facts.kind.word == "text":
        return TextColumn(codes, facts.labels, may_miss)
    if facts.kind.unit:
        return TimeColumn(codes, facts.kind.word, facts.kind.unit, may_miss)
    return codes if mask is None else MaskedColumn(codes, mask)


def check_length(name: str, length: int, wanted: int) -> None:
    """Refuse a column that is longer or shorter than another.

    Raises
    ------
    ShapeError
        With both lengths.
    """
    if length != wanted:
        raise ShapeError(f"column {name!r} has {length:,} rows where others have {wanted:,}")

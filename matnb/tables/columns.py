"""Columns that are not plain arrays: what they have in common, and those of text."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from inspect import signature
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn, Self, cast

import numpy as np
import numpy.typing as npt

from matnb.blocks.foreign import is_missing_value
from matnb.errors import (
    DTypeError,
    FileContentWarning,
    NotScalarError,
    OptionError,
    RangeError,
    UnsupportedError,
    suggestion,
    warn,
)
from matnb.io.columns import by_code_point, places_among
from matnb.io.durations import MOST_TIME, NO_TIME
from matnb.io.texts import NO_VALUE, checked_marks, offsets_in, present, strings
from matnb.lazy.array import DistArray
from matnb.lazy.creation import arange, asarray
from matnb.lazy.element_reads import chunks_of
from matnb.lazy.foreign_names import refuse_dask
from matnb.lazy.functions.mapping import replicated
from matnb.tables.column_arrays import column_array
from matnb.tables.column_orders import ColumnOrders
from matnb.tables.conversions import (
    doubtful_points,
    form_way,
    number_way,
    numbers_in,
    times_in,
    whole_number_way,
    zoned_times_in,
)
from matnb.tables.dtypes import kind_of_dtype, numbers_dtype
from matnb.tables.makers import makers
from matnb.tables.pandas_names import OF_COLUMNS, no_table_name
from matnb.tables.row_orders import check_length, check_order, check_rows
from matnb.tables.showing import short_text
from matnb.tables.strings import HasText

_SHORT, _LONG = 40, 100  # letters of a value that an error writes into code, and beside it
_FILLS = ("ffill", "bfill", "pad", "backfill")

if TYPE_CHECKING:
    import pyarrow

    from matnb.tables.masked import MaskedColumn
    from matnb.tables.table import Table
    from matnb.tables.times import TimeColumn


class Column(ColumnOrders):
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
        check_rows(codes.expression)
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

    @property
    def size(self) -> int:
        """How many values it has, missing ones too."""
        return len(self)

    @property
    def ndim(self) -> int:
        """How many axes it has: one."""
        return 1

    @property
    def empty(self) -> bool:
        """Whether it has no values."""
        return not len(self)

    def __len__(self) -> int:
        return self.codes.shape[0]

    def __bool__(self) -> NoReturn:
        raise NotScalarError(
            "the truth value of a column is ambiguous: compare it, and use .any() or .all(); & and | need "
            "brackets around comparisons, as in (x > 1) & (y > 1)"
        )

    def __getitem__(self, key: Any) -> Any:
        # Of one row its value, which is computed; of several a column.
        if isinstance(key, int | np.integer):
            return self._here(np.asarray(self.codes[key].compute())[None])[0]
        return self._like(self.codes[key])

    def __setitem__(self, key: Any, value: object) -> NoReturn:
        given = f"np.arange(len(x)) == {key}" if isinstance(key, int) else "mask"
        shown = repr(value) if len(repr(value)) <= _SHORT else "value"
        raise UnsupportedError(
            f"a column of {self._word()} is not changed: write x = x.mask({given}, {shown}), and "
            f"t = t.with_columns({self.name or 'name'}=x)"
        )

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

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(map(self._here, chunks_of(self.codes.expression)))

    def __contains__(self, value: object) -> bool:
        return bool(self.isin([value]).any())

    def __matnb_array__(self) -> DistArray:
        """Refuse to be an array of numbers.

        Raises
        ------
        DTypeError
            With what is one.
        """
        name = repr(self.name or "zone")
        raise DTypeError(
            f"a column of {self._word()} is not an array of numbers: t.groupby({name}) groups by it, "
            "x.to_numpy() is an array of NumPy's, and x.codes are whole numbers for the values"
        )

    # Missing values

    def isna(self) -> DistArray:
        """Return a boolean mask of missing values."""
        return self.missing

    def notna(self) -> DistArray:
        """Return a boolean mask of values that are there."""
        return ~self.missing  # type: ignore[no-any-return]  # operators of arrays give Any

    isnull, notnull = isna, notna

    def fillna(self, value: object = None, method: object = None) -> Any:
        """Return the column with a value where one is missing.

        Parameters
        ----------
        value
            One value, or a column of as many rows, whose values fill those of this one.

        Raises
        ------
        DTypeError
            For a value that the column cannot have.
        """
        if method is not None or (isinstance(value, str) and value in _FILLS and self._word() != "text"):
            raise OptionError("fillna does not fill from other rows: write x.ffill() or x.bfill()")
        if is_missing_value(value):
            raise OptionError(f"fillna({value!r}): give a value that is not missing")
        if not self.may_miss:
            return self._plain()
        if isinstance(value, DistArray) and not value.ndim:
            value = replicated(_given, value, like=value.dtype.type(0))
        found = as_column(self._chosen(self.notna(), value))
        return found._plain() if isinstance(value, Column | DistArray) else found._complete()

    def ffill(self) -> Any:
        """Return the column with each missing value replaced by the last one before it that is there."""
        if not len(self):
            return self
        there: Any = np.where(self.missing, 0, arange(len(self)))
        return self[np.maximum.accumulate(there)]

    def bfill(self) -> Any:
        """Return the column with each missing value replaced by the first one after it that is there."""
        if not len(self):
            return self
        there: Any = np.where(self.missing, len(self) - 1, arange(len(self)))
        return self[np.minimum.accumulate(there[::-1])[::-1]]

    def dropna(self) -> Any:
        """Return the values that are not missing; their number is computed immediately."""
        return self[self.notna()]._complete() if self.may_miss else self

    def where(self, cond: object, other: object = None) -> Any:
        """Return the column with another value, or none, where a condition does not hold.

        Parameters
        ----------
        cond
            A mask of as many booleans, or a function that returns one for the column.
        other
            A value, a column of as many rows, or None for missing values.
        """
        return self._chosen(self._mask_of(cond), other)

    def mask(self, cond: object, other: object = None) -> Any:
        """Return the column with another value, or none, where a condition holds; see ``where``."""
        return self._chosen(~self._mask_of(cond), other)

    def _mask_of(self, cond: Any) -> DistArray:
        found = cond(self._plain()) if callable(cond) else cond
        found = asarray(found.__matnb_mask__() if isinstance(found, Column) else found)
        if found.dtype.kind != "b" or found.shape != self.shape:
            raise DTypeError(
                f"a condition of {found.dtype} and shape {found.shape}: give {len(self):,} booleans, as in "
                "x.where(x > 0)"
            )
        return found

    # Values

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
            raise OptionError(f"isin({shown_value(values)}): give a list of values")
        given = list(values)
        there = [one for one in given if not is_missing_value(one)]
        numbers = [number for number in self._numbers(there) if number is not None]
        found: Any = np.isin(self.codes, np.array(numbers, self.codes.dtype))
        if self.may_miss:
            found = found | self.missing if len(there) < len(given) else found & ~self.missing
        return found  # type: ignore[no-any-return]  # operators of arrays give Any

    def between(self, left: object, right: object, inclusive: str = "both") -> DistArray:
        """Return a boolean mask of values from ``left`` to ``right``; missing values are not between.

        Parameters
        ----------
        inclusive
            Which of the two ends belong to it: "both", "neither", "left" or "right".
        """
        ends = ("both", "neither", "left", "right")
        if inclusive not in ends:
            raise OptionError(f"inclusive={inclusive!r}: {suggestion(inclusive, ends, 'choose one of')}")
        x: Any = self._plain()
        low = x >= left if inclusive in ("both", "left") else x > left
        return low & (x <= right if inclusive in ("both", "right") else x < right)  # type: ignore[no-any-return]  # operators of arrays give Any

    def clip(self, lower: Any = None, upper: Any = None) -> Any:
        """Return the column with values below ``lower`` and above ``upper`` replaced by these."""
        found: Any = self
        for bound, is_beyond in ((lower, operator.lt), (upper, operator.gt)):
            if not is_missing_value(bound):
                found = found.mask(is_beyond(found._plain(), bound), bound)
        return found

    def replace(self, to_replace: object, value: object = None, regex: bool = False) -> Any:
        """Return the column with some values replaced by others; whole values, not parts of texts.

        Parameters
        ----------
        to_replace
            A value, a list of values, or a dict of new values by old ones. None and NaN stand for missing
            values.
        value
            The new value, or a list of as many; None and NaN for missing ones.

        Raises
        ------
        DTypeError
            For a value that the column cannot have.

        Examples
        --------
        >>> import matnb as mn
        >>> t = mn.table({"answer": ["yes", "Y", "no"]})
        >>> t["answer"].replace({"Y": "yes", "no": None}).compute().tolist()
        ['yes', 'yes', nan]
        """
        if regex:
            raise OptionError("replace takes whole values: write x.str.replace(pattern, text, regex=True)")
        return makers.replaced(self, to_replace, value)

    def map(self, arg: Mapping[Any, object] | Callable[[Any], object], na_action: str = "ignore") -> Any:
        """Return for each value what a dict or a function gives for it; missing values stay missing.

        A function is called here, once for each distinct value, not once for each row. A value that is not in
        the dict becomes missing.

        Examples
        --------
        >>> import matnb as mn
        >>> t = mn.table({"size": ["S", "L", "S"]})
        >>> t["size"].map({"S": 36, "L": 44}).compute(), t["size"].map(str.lower).compute().tolist()
        (array([36, 44, 36]), ['s', 'l', 's'])
        """
        return makers.mapped(self, arg)

    def shift(self, periods: int = 1) -> Any:
        """Return the column moved down by some rows, up if negative; rows without a value are missing."""
        if isinstance(periods, bool) or not isinstance(periods, int | np.integer):
            raise OptionError(f"shift({periods!r}): give a number of rows")
        if not len(self):
            return self
        places: Any = arange(len(self)) - int(periods)
        there = (places >= 0) & (places < len(self))
        return self[np.clip(places, 0, len(self) - 1)]._chosen(there, None)

    def duplicated(self, keep: object = "first") -> DistArray:
        """Return a mask of values that come again: all but the "first" or "last", or all (False)."""
        return makers.duplicated([self._plain()], keep)  # type: ignore[no-any-return]  # operators of arrays give Any

    # Statistics

    def unique(self) -> npt.NDArray[Any]:
        """Compute the distinct values in order of appearance, a missing one included."""
        return np.asarray(self[makers.first_rows(self)])

    def nunique(self, dropna: bool = True) -> int:
        """Compute the number of distinct values, missing ones left out unless ``dropna=False``."""
        return makers.num_distinct(self, dropna)

    def count(self) -> DistArray:
        """Return the number of values that are not missing."""
        return self.notna().sum()

    def value_counts(self, normalize: bool = False, ascending: bool = False, dropna: bool = True) -> Table:
        """Return the counts of values, the most frequent first; ties are ordered by value.

        Parameters
        ----------
        normalize
            Whether to return shares of all rows that are counted, in a column ``proportion``.
        ascending
            Whether the least frequent comes first.
        dropna
            Whether to leave out missing values, which else are the last of equally many.
        """
        return makers.counted(self, self.name or "value", normalize, ascending, dropna)

    # NumPy's functions of these names give axis=, out= and dtype=, of which there is no choice.

    def min(self, axis: int | None = None, out: None = None, *, skipna: bool = True) -> Any:
        """Compute the least value; None of text, NaT of times, if there is none.

        Missing values are skipped; with ``skipna=False`` the result is missing where one is.
        """
        return makers.extreme(self, "min", axis, out, skipna)

    def max(self, axis: int | None = None, out: None = None, *, skipna: bool = True) -> Any:
        """Compute the greatest value; None of text, NaT of times, if there is none.

        Missing values are skipped; with ``skipna=False`` the result is missing where one is.
        """
        return makers.extreme(self, "max", axis, out, skipna)

    def idxmin(self) -> int:
        """Compute the first row that has the least value."""
        return makers.place_of_extreme(self, np.argmin, "idxmin")

    def idxmax(self) -> int:
        """Compute the first row that has the greatest value."""
        return makers.place_of_extreme(self, np.argmax, "idxmax")

    def mean(
        self, axis: int | None = None, dtype: None = None, out: None = None, *, skipna: bool = True
    ) -> Any:
        """Return the mean of times or durations; missing values are skipped unless ``skipna=False``."""
        return makers.statistic(self, "mean", axis, out, skipna)

    def sum(
        self, axis: int | None = None, dtype: None = None, out: None = None, *, skipna: bool = True,
        min_count: int = 0,
    ) -> Any:  # fmt: skip
        """Return the sum of durations; missing values are skipped unless ``skipna=False``.

        Of fewer values than ``min_count`` it is NaT.
        """
        found = makers.statistic(self, "sum", axis, out, skipna)
        return found if min_count <= 0 or int(self.count()) >= min_count else found + np.timedelta64("NaT")

    def std(
        self, axis: int | None = None, dtype: None = None, out: None = None, ddof: int = 1, *,
        skipna: bool = True,
    ) -> Any:  # fmt: skip
        """Return the standard deviation of times or durations, a duration; missing values are skipped."""
        return makers.statistic(self, "std", axis, out, skipna, ddof=ddof)

    def median(self, axis: int | None = None, out: None = None, *, skipna: bool = True) -> Any:
        """Return the median of numbers, times or durations; missing values are skipped."""
        return makers.statistic(self, "median", axis, out, skipna)

    def quantile(self, q: Any = 0.5) -> Any:
        """Return one quantile, or an array of several; missing values are skipped."""
        return makers.statistic(self, "quantile", q=q)

    def mode(self) -> npt.NDArray[Any]:
        """Compute the most frequent values, ascending; several if equally many."""
        return makers.most_frequent(self)  # type: ignore[no-any-return]  # operators of arrays give Any

    def corr(self, other: Any, method: str = "pearson") -> float:
        """Compute Pearson's correlation with another column of numbers, of the rows that have both."""
        if method != "pearson":
            names = self.name or "a", getattr(other, "name", "") or "b"
            makers.table(dict(zip(names, (self._plain(), other), strict=True))).corr(method)
        table = makers.table({"x": self._plain(), "y": other})
        check_order(table[["x"]], table["y"], "the other column")
        return float(np.asarray(table.corr()["y"])[0])

    def sample(
        self, n: int | None = None, frac: float | None = None, replace: bool = False, random_state: Any = None
    ) -> Any:
        """Return values drawn at random, as ``Table.sample`` does of rows."""
        return makers.table({"x": self._plain()}).sample(n, frac, replace, random_state)["x"]

    def describe(self) -> Table:
        """Return what ``Table.describe`` does of a table of this column."""
        return makers.table({self.name or "value": self._plain()}).describe()

    # Rows before

    def diff(self, periods: int = 1) -> Any:
        """Return the difference from the row before, or from one further up."""
        self._check_numbers("diff")
        return self._plain() - as_column(self.shift(periods))._plain()

    def pct_change(self, periods: int = 1) -> Any:
        """Return the share by which numbers differ from the row before, or from one further up."""
        self._check_numbers("pct_change")
        return self._plain() / as_column(self.shift(periods))._plain() - 1

    def _check_numbers(self, name: str) -> None:
        if self._word() == "text":
            raise DTypeError(f"{name} of a column of text: x.to_float() are numbers")

    # Other forms

    def head(self, n: int = 5) -> Any:
        """Return the first values."""
        return self[:n]

    def tail(self, n: int = 5) -> Any:
        """Return the last values."""
        return self[max(0, len(self) - n) :]

    def to_numpy(self, dtype: npt.DTypeLike | None = None, copy: bool = False) -> npt.NDArray[Any]:
        """Compute the column and return a NumPy array of its own, in a dtype if one is given."""
        return self.__array__(dtype)

    def tolist(self) -> list[Any]:
        """Compute the column and return a list."""
        return self.to_numpy().tolist()  # type: ignore[no-any-return]  # operators of arrays give Any

    to_list = tolist

    def astype(self, dtype: Any, errors: str = "raise") -> Any:
        """Return the column converted to a dtype of NumPy's or pandas': such as text to numbers.

        Raises
        ------
        DTypeError
            For values that the dtype does not have, and where no conversion is meaningful.
        """
        raise NotImplementedError

    def copy(self) -> Self:
        """Return the column: it is not changed by anything."""
        return self

    def _plain(self) -> Any:
        # What a user has of it: an array where values are those of arrays.
        return self

    def _complete(self) -> Any:
        # The same values, of which none is missing.
        return self._like(self.codes, may_miss=False)

    def _chosen(self, where: DistArray, other: Any) -> Any:
        # The values where a mask is true, and else another value, those of a column, or none.
        if isinstance(other, Column):
            check_length("other", len(other), len(self))
        one, two = self._other(other)
        if isinstance(two, int) and abs(two) >= MOST_TIME and not is_missing_value(other):
            raise RangeError(f"a column of {self._word()} cannot have {other!r}, which is beyond 64 bits")
        codes: Any = np.where(where, one.codes, two if isinstance(two, int) else two.codes)
        may_miss = two.may_miss if isinstance(two, Column) else is_missing_value(other)
        return one._like(codes.astype(one.codes.dtype), self.may_miss or may_miss)

    def _other(self, other: object) -> tuple[Column, Column | int]:
        # This column and another, or what stands for a value, in the same numbers.
        raise NotImplementedError

    def _number(self, value: object) -> int | None:
        # The number that stands for a value; None where there is none.
        raise NotImplementedError

    def _numbers(self, values: Sequence[object]) -> list[Any]:
        # The same of several values.
        return [self._number(one) for one in values]

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_") or "codes" not in self.__dict__:  # libraries ask for protocols
            refuse_dask(name, "a column of a table")
            raise AttributeError(name)
        known = [one for one in dir(type(self)) if not one.startswith("_")]
        ways = next(one for kind, one in OF_COLUMNS.items() if self._word().startswith(kind))
        ways = {**{one: f"write x.{way}" for one, way in self._of_accessors(name)}, **ways}
        raise no_table_name(f"a column of {self._word()}", name, ways, lambda: known)

    def _of_accessors(self, name: str) -> Iterator[tuple[str, str]]:
        # A name that .str or .dt has, and how it is written there.
        for accessor in ("str", "dt"):
            owner = getattr(self, accessor) if hasattr(type(self), accessor) else None
            if owner is not None and name in dir(owner):
                way = getattr(type(owner), name, None)
                yield name, f"{accessor}.{name}{_call_text(way) if callable(way) else ''}"

    def _word(self) -> str:
        return str(self.dtype)

    def _shown(self, text: str) -> str:
        # A value of ``seen``: nothing is written where it is missing.
        return text or "missing"

    def __repr__(self) -> str:
        summary = f"column{f' {self.name!r}' if self.name else ''} of {len(self):,} x {self._word()}"
        if self.seen is None:
            note = makers.table({self.name: self})._looked()
            summary = f"{summary}; {note}" if note else summary
        if self.seen is None or not self.seen[0]:
            return summary
        first, last = (", ".join(map(self._shown, part)) for part in self.seen)
        return f"{first}{', ..., ' if last else ''}{last}\n{summary}"

    def _repr_html_(self) -> str:
        # A value in each row, as in a table.
        return makers.table({self.name or "values": self})._repr_mimebundle_()["text/html"]


def _given(value: Any) -> Any:
    # The mean of an array, for example, is missing if one of its values is.
    if value != value:
        raise OptionError(
            "fillna: the value is NaN itself; x.mean() and t.mean() of a table's columns skip NaN"
        )
    return value


def as_column(one: DistArray | Column) -> Column:
    """Return a column, whose methods are pandas', of an array or a column of a table."""
    return one if isinstance(one, Column) else makers.numbers(one)


def is_missing(column: DistArray | Column) -> DistArray | None:
    """Return where values of a column are missing; None where none can be."""
    if isinstance(column, Column):
        return column.missing if column.may_miss else None
    return column != column if column.dtype.kind == "f" else None


class OrderedColumn(Column, ABC):
    """A column whose values have an order; a missing one is unequal to all, and neither less nor greater."""

    @abstractmethod
    def _compared(self, other: object, compare: Callable[[Any, Any], Any]) -> DistArray:
        """Return where a comparison with a value or a column holds; nowhere where a value is missing."""

    def __eq__(self, other: object) -> DistArray:  # type: ignore[override]  # value by value
        return self._compared(other, lambda a, b: a == b)

    def __ne__(self, other: object) -> DistArray:  # type: ignore[override]
        return ~(self == other)  # type: ignore[no-any-return]  # operators of arrays give Any

    def __lt__(self, other: object) -> DistArray:
        return self._compared(other, lambda a, b: a < b)

    def __le__(self, other: object) -> DistArray:
        return self._compared(other, lambda a, b: a <= b)

    def __gt__(self, other: object) -> DistArray:
        return self._compared(other, lambda a, b: a > b)

    def __ge__(self, other: object) -> DistArray:
        return self._compared(other, lambda a, b: a >= b)

    def __and__(self, other: object) -> NoReturn:
        # They bind more closely than comparisons: no brackets make `a == "x" & b > 1` mean `"x" & b` first.
        raise DTypeError(
            f"& and | of a column of {self._word()}: write comparisons in brackets, as in "
            '(t["zone"] == "a") & (t["fare"] > 5)'
        )

    __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __and__

    def argmin(self, axis: int | None = None, out: None = None) -> int:
        """Compute the first row that has the least value, as ``idxmin`` does."""
        return self.idxmin()

    def argmax(self, axis: int | None = None, out: None = None) -> int:
        """Compute the first row that has the greatest value, as ``idxmax`` does."""
        return self.idxmax()


class TextColumn(HasText, OrderedColumn):
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
        is_empty = not text and self._number("") is not None
        if text or (is_empty and not self.may_miss):
            return repr(short_text(text))
        return "'' or missing" if is_empty else "missing"

    @property
    def missing(self) -> DistArray:
        """A boolean mask of missing values."""
        return self.codes < 0  # type: ignore[no-any-return]  # operators of arrays give Any

    def _here(self, codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if len(codes) < len(self.labels):  # a few rows of many texts
            import pyarrow

            found = self.labels.take(pyarrow.array(codes, mask=codes < 0)).to_numpy(zero_copy_only=False)
            found[codes < 0] = np.nan  # missing as in pandas: x != x
            return found  # type: ignore[no-any-return]  # operators of arrays give Any
        labels = np.array([*self.labels.to_pylist(), np.nan], object)
        return labels[codes]  # type: ignore[no-any-return]  # operators of arrays give Any

    def _place(self, text: str) -> tuple[int, bool]:
        # How many labels are before a text, and whether it is one of them: labels ascend.
        place = bisect_left(self.labels, text, key=lambda one: one.as_py())
        return place, place < len(self.labels) and self.labels[place].as_py() == text

    def _number(self, value: object) -> int | None:
        if not isinstance(value, str):
            raise DTypeError(f"{shown_value(value)} cannot be compared with a column of text: give strings")
        place, is_there = self._place(value)
        return place if is_there else None

    def _numbers(self, values: Sequence[object]) -> list[int | None]:
        if not all(isinstance(one, str) for one in values):
            return super()._numbers(values)  # which refuses one
        places = places_among(strings(cast(Sequence[str], values)), self.labels)[:-1]
        return [None if place < 0 else place for place in places.tolist()]

    def _other(self, other: object) -> tuple[TextColumn, TextColumn | int]:
        if is_missing_value(other):
            return self, -1
        if not isinstance(other, TextColumn | str):
            raise DTypeError(f"a column of text cannot have {shown_value(other)}: give strings")
        new = other.labels if isinstance(other, TextColumn) else strings([other])
        labels = by_code_point([self.labels, new])
        one = TextColumn(_renumbered(self, labels), labels, self.may_miss)
        if isinstance(other, TextColumn):
            return one, TextColumn(_renumbered(other, labels), labels, other.may_miss)
        return one, int(labels.index(other).as_py())

    def _compared(self, other: object, compare: Callable[[Any, Any], Any]) -> DistArray:
        other = makers.texts_like(other, len(self))
        if isinstance(other, TextColumn):
            one, two = self._other(other)
            assert isinstance(two, TextColumn), "as the other is"
            found = compare(one.codes, two.codes)
            return column_array(found & ~self.missing & ~other.missing)  # type: ignore[no-any-return]  # operators of arrays give Any
        if is_missing_value(other):
            return self.codes != self.codes  # type: ignore[no-any-return]  # operators of arrays give Any
        if not isinstance(other, str):
            raise DTypeError(
                f"a column of text cannot be compared with {shown_value(other)}: give a string, or a column "
                "of text"
            )
        # The place between two labels stands for a text that is none of them.
        below, is_there = self._place(other)
        found = compare(self.codes, below if is_there else below - 0.5)
        return found if not self.may_miss else found & ~self.missing  # type: ignore[no-any-return]  # operators of arrays give Any

    # Numbers and times

    def to_float(
        self, decimal: str | None = None, thousands: str | None = None, errors: str = "raise"
    ) -> DistArray:
        """Return the texts as numbers, float64; NaN where they are missing.

        A sign of a currency in front or at the end is left out, "50%" is 0.5, "(3.50)" is -3.5, "inf" and
        "-Infinity" are infinite, and the texts that :func:`matnb.load` takes for missing are NaN, as "" and
        "n/a".

        Parameters
        ----------
        decimal, thousands
            The characters before the part below one, a point or, if ``thousands`` is a point, a comma; and
            between thousands, of which a space is of any width. Without either, numbers whose points may all
            be between thousands, as in "1.200", are warned of.
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
        self._check_converted(texts, found.is_null(), "a number", errors, number_way)
        if decimal is None and thousands is None:
            self._warn_of_points(texts, "to_float")
        values = found.to_numpy(zero_copy_only=False)
        return column_array(asarray(np.append(values, np.nan))[self.codes], self.name)  # type: ignore[no-any-return]  # operators of arrays give Any

    def to_int(
        self, decimal: str | None = None, thousands: str | None = None, errors: str = "raise"
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
        self._check_converted(texts, found.is_null(), "a whole number of 64 bits", errors, whole_number_way)
        if decimal is None and thousands is None:
            self._warn_of_points(texts, "to_int")
        gone = found.is_null().to_numpy(zero_copy_only=False)
        numbers = found.fill_null(0).to_numpy()
        values: Any = asarray(np.append(numbers, np.zeros(1, numbers.dtype)))
        if not gone.any() and not self.may_miss:
            return column_array(values[self.codes], self.name)  # type: ignore[no-any-return]  # operators of arrays give Any
        mask: Any = asarray(np.append(gone, [True]))
        return makers.masked(values[self.codes], mask[self.codes])

    def to_datetime(self, format: str | Sequence[str] | None = None, errors: str = "raise") -> TimeColumn:
        """Return the texts as dates, or as dates and times of microseconds.

        Parameters
        ----------
        format
            How they are written, as ``"%d.%m.%Y %H:%M"`` in :meth:`datetime.datetime.strptime`; of a list the
            first that fits a text. None for ISO 8601, which may be of nanoseconds; times of ISO 8601 that all
            have an offset get the zone of that offset, UTC if there are several.
        errors
            "raise", or "coerce" to make texts that are not times missing.

        Raises
        ------
        DTypeError
            For a text that is no time, or times with an offset among others; the message has some of them.
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

        texts = self._texts()
        if format is None and (zoned := self._zoned(texts)) is not None:
            instants = np.append(zoned.cast(pyarrow.int64()).fill_null(NO_TIME).to_numpy(), [NO_TIME])
            codes, may_miss = asarray(instants)[self.codes], self.may_miss or zoned.null_count > 0
            return makers.times(codes, "datetime", zoned.type.unit, may_miss, zoned.type.tz)
        values, unit = times_in(texts, format)
        gone = np.isnat(values)
        form = format if format is None or isinstance(format, str) else list(format)
        what = "a time of ISO 8601 without an offset" if form is None else f"a time of the form {form!r}"
        self._check_converted(texts, pyarrow.array(gone), what, errors, form_way)
        counts: Any = asarray(np.append(values.view(np.int64), [NO_TIME]))
        return makers.times(counts[self.codes], "datetime", unit, self.may_miss or bool(gone.any()))

    def _zoned(self, texts: pyarrow.Array) -> Any:
        # Times with offsets, of labels that a row has.
        found = zoned_times_in(texts)
        if found is not None or not offsets_in(texts):
            return found
        from pyarrow import compute

        is_used = np.zeros(len(texts) + 1, np.bool_)
        is_used[np.asarray(np.unique(self.codes))] = True
        return zoned_times_in(compute.if_else(is_used[:-1], texts, None))

    def astype(self, dtype: Any, errors: str = "raise") -> Any:
        """Return the texts as numbers, dates or times; ``to_float`` and the like have options.

        Raises
        ------
        DTypeError
            For texts that are not of the dtype, and booleans.
        """
        kind = kind_of_dtype(dtype)
        if kind == "text":
            return self
        if kind in "iuf":
            made = self.to_float(errors=errors) if kind == "f" else self.to_int(errors=errors)
            return made.astype(numbers_dtype(dtype))
        if kind == "M":
            found = self.to_datetime(errors=errors)
            unit = (
                np.datetime_data(np.dtype(dtype))[0] if dtype not in ("datetime", "datetime64") else "generic"
            )
            return found if unit == "generic" else found.to_unit(unit)
        raise DTypeError(
            f'astype({dtype!r}) of a column of text: x == "true" are booleans, x.to_float() are numbers'
        )

    def _texts(self) -> pyarrow.Array:
        # The labels without spaces around them, nulls where they stand for no value.
        import pyarrow
        from pyarrow import compute

        return present(compute.utf8_trim_whitespace(self.labels.cast(pyarrow.string())), NO_VALUE)

    def _warn_of_points(self, texts: pyarrow.Array, method: str) -> None:
        if (found := doubtful_points(texts)) is not None:
            name = f"column {self.name!r}" if self.name else "the column"
            warn(
                f"{name} may have points between thousands: {short_text(found[0])!r} was read as "
                f'{float(found[1])}, {method}(thousands=".") reads '
                f'{found[1].replace(".", "")}, {method}(decimal=".") the former',
                FileContentWarning,
            )

    def _check_converted(
        self, texts: pyarrow.Array, gone: pyarrow.Array, what: str, errors: str, way: Any
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
            way = way(some) if callable(way) else way
            raise DTypeError(
                f"{name} has {count:,} value{'s that are' if count > 1 else ' that is'} not {what}, such as "
                f'{shown}; {way}, and errors="coerce" makes such values missing'
            )


def _renumbered(column: TextColumn, labels: pyarrow.Array) -> DistArray:
    # The codes of a column among other labels.
    places = places_among(column.labels, labels)
    return asarray(places)[column.codes]


def _call_text(function: Callable[..., object]) -> str:
    # A call of a method, with what it needs.
    given = list(signature(function).parameters.values())[1:]
    needed = [one.name for one in given if one.default is one.empty and one.kind < one.VAR_POSITIONAL]
    return f"({', '.join(needed)})"


def shown_value(value: Any) -> str:
    """Return a value that a user gave as an error shows it: columns and arrays by their types."""
    if isinstance(value, Column):
        return f"a column of {value._word()}"
    is_array = getattr(value, "ndim", 0)
    text = f"an array of {getattr(value, 'dtype', object)}" if is_array else repr(value)
    return text if len(text) <= _LONG else f"{text[: _LONG - 3]}..."

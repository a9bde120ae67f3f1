"""Operators of columns of times and durations, from either side: sums, differences, multiples and shares."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from matnb.blocks.foreign import is_missing_value
from matnb.errors import DTypeError
from matnb.io.durations import NO_TIME, STORED_UNITS, stored_unit
from matnb.lazy.array import DistArray
from matnb.lazy.creation import full
from matnb.tables.column_arrays import column_array
from matnb.tables.columns import Column, as_column, shown_value
from matnb.tables.makers import makers
from matnb.tables.masked import MaskedColumn
from matnb.tables.row_orders import check_length

if TYPE_CHECKING:
    from matnb.tables.times import TimeColumn

_BEYOND = 2.0**63  # the least float that is no duration any more
_NO_LENGTH = np.timedelta64("NaT")


class HasTimeOperators:
    """What operators make of a column of times or durations, as in pandas.

    The other operand may be a scalar of NumPy's, Python's or pandas', an array or Series of times or
    durations, or another column. A multiple of a duration is cut towards zero to its unit, as by NumPy.
    """

    __pandas_priority__ = 5000  # a Series leaves the work to this class

    def __neg__(self: Any) -> TimeColumn:
        self._check("timedelta", "-x")
        return self._like(-self.codes)  # type: ignore[no-any-return]  # operators of arrays give Any

    def __pos__(self: Any) -> TimeColumn:
        self._check("timedelta", "+x")
        return self  # type: ignore[no-any-return]  # operators of arrays give Any

    def abs(self: Any) -> TimeColumn:
        """Return durations without their sign."""
        self._check("timedelta", "abs")
        return self._like(abs(self.codes))  # type: ignore[no-any-return]  # operators of arrays give Any

    __abs__ = abs

    def __add__(self: Any, other: object) -> TimeColumn:
        length = _length_of(other)
        if length is not None:
            return self._moved(length, 1)  # type: ignore[no-any-return]  # operators of arrays give Any
        if self.word == "timedelta" and (times := _times_beside(self, other)) is not None:
            return times._moved(self, 1)
        raise DTypeError(
            f"{shown_value(other)} cannot be added to a column of {self._word()}: give a duration"
        )

    __radd__ = __add__

    def __sub__(self: Any, other: object) -> TimeColumn:
        length = None if self.word == "datetime" and _is_nat(other) else _length_of(other)
        if length is not None:
            return self._moved(length, -1)  # type: ignore[no-any-return]  # operators of arrays give Any
        if self.word == "timedelta":
            raise DTypeError(
                f"{shown_value(other)} cannot be subtracted from a column of {self._word()}: give a duration"
            )
        return _since(self, other)

    def __rsub__(self: Any, other: object) -> TimeColumn:
        if self.word == "datetime":
            if not _is_nat(other) and _length_of(other) is not None:
                raise DTypeError(
                    f"a column of {self._word()} cannot be subtracted from {shown_value(other)}: give a time"
                )
            return -_since(self, other)
        if (length := _length_of(other)) is not None:
            return (-self)._moved(length, 1)  # type: ignore[no-any-return]  # operators of arrays give Any
        if (times := _times_beside(self, other)) is None:
            raise DTypeError(
                f"a column of {self._word()} cannot be subtracted from {shown_value(other)}: give a time or "
                "a duration"
            )
        return times._moved(self, -1)

    def __mul__(self: Any, other: object) -> TimeColumn:
        one, numbers, gone = _beside_numbers(self, other, "multiplied", "give a number")
        return _cut(one, one.codes * numbers, gone)

    __rmul__ = __mul__

    def __truediv__(self: Any, other: object) -> Any:
        length = _length_of(other) if self.word == "timedelta" else None
        if length is None:
            return _share(self, other)
        if isinstance(length, Column):
            one, two = _in_one_unit(self, length)
            return two._or_nan(one._or_nan(one.codes / two.codes))
        unit = finer(self.unit, stored_unit(np.datetime_data(length.dtype)[0]))
        one = self.to_unit(unit)
        return one._or_nan(one.codes / float(length / np.timedelta64(1, unit)))  # type: ignore[call-overload]

    def __rtruediv__(self: Any, other: object) -> DistArray:
        return _durations(self, other) / self  # type: ignore[no-any-return]  # operators of arrays give Any

    def __floordiv__(self: Any, other: object) -> Any:
        if self.word != "timedelta" or _length_of(other) is None:
            return _share(self, other)
        return _whole_shares(self, _durations(self, other))

    def __rfloordiv__(self: Any, other: object) -> Any:
        return _whole_shares(_durations(self, other), self)

    def __mod__(self: Any, other: object) -> TimeColumn:
        return _remainders(self, _durations(self, other))

    def __rmod__(self: Any, other: object) -> TimeColumn:
        return _remainders(_durations(self, other), self)

    def __divmod__(self: Any, other: object) -> tuple[Any, TimeColumn]:
        lengths = _durations(self, other)
        return _whole_shares(self, lengths), _remainders(self, lengths)

    def __rdivmod__(self: Any, other: object) -> tuple[Any, TimeColumn]:
        lengths = _durations(self, other)
        return _whole_shares(lengths, self), _remainders(lengths, self)

    def _moved(self: Any, other: TimeColumn | np.timedelta64, sign: int) -> TimeColumn:
        # Later, or earlier, by durations.
        if not isinstance(other, np.timedelta64):
            one, two = _in_one_unit(self, other)
            made: Any = one.codes + two.codes if sign > 0 else one.codes - two.codes
            may_miss = self.may_miss or other.may_miss
            return makers.times(self._kept(made, one, two), self.word, one.unit, may_miss, self.zone)
        if np.isnat(other):
            return self._like(self.codes * 0 + NO_TIME, True)  # type: ignore[no-any-return]  # operators of arrays give Any
        unit = finer(self.unit, stored_unit(np.datetime_data(other.dtype)[0]))
        one = self.to_unit(unit)
        count = int(other.astype(f"timedelta64[{unit}]").astype(np.int64))
        made = self._kept(one.codes + sign * count, one)
        return makers.times(made, self.word, unit, self.may_miss, self.zone)


def finer(one: str, other: str) -> str:
    """Return the finer of two units of times."""
    return max(one, other, key=STORED_UNITS.index)


def check_length_of(duration: Any) -> None:
    """Refuse a duration of months, years or no unit.

    Raises
    ------
    DTypeError
        With the duration.
    """
    unit = np.datetime_data(duration.dtype)[0]
    if unit in ("Y", "M", "generic") and not np.isnat(duration):
        raise DTypeError(f"{duration!r} has no length in seconds: give days, hours or shorter units")


def times_of(value: Any) -> TimeColumn | None:
    """Return a column of times or durations that is given as such, or as another library's array."""
    if isinstance(value, makers.times):
        return value
    is_array = getattr(value, "ndim", 0) == 1 and getattr(getattr(value, "dtype", None), "kind", "") in "mM"
    return cast("TimeColumn", as_column(makers.column_from("", value))) if is_array else None


def _is_nat(value: object) -> bool:
    # pandas' value for a time or a duration that is missing.
    return isinstance(value, datetime) and is_missing_value(value)


def _length_of(value: Any) -> TimeColumn | np.timedelta64 | None:
    if _is_nat(value):
        return _NO_LENGTH
    if isinstance(value, timedelta | np.timedelta64):
        # pandas' durations have nanoseconds.
        made: np.timedelta64 = value.to_numpy() if hasattr(value, "to_numpy") else np.timedelta64(value)
        check_length_of(made)
        return made
    times = times_of(value)
    return times if times is not None and times.word == "timedelta" else None


def _times_beside(column: TimeColumn, value: Any) -> TimeColumn | None:
    # Times that are given as a column or an array, or as one time for all rows.
    if (times := times_of(value)) is not None:
        return times
    if isinstance(value, date | np.datetime64):
        return cast("TimeColumn", makers.constant("", value, len(column)))
    return None


def _since(column: TimeColumn, other: object) -> TimeColumn:
    # How long after others, or after one time, times are.
    one, two = column._other(other)
    if isinstance(two, int) and two == NO_TIME:
        return makers.times(column.codes * 0 + NO_TIME, "timedelta", column.unit)
    made: Any = one.codes - (two if isinstance(two, int) else two.codes)
    others = [each for each in (one, two) if isinstance(each, makers.times)]
    may_miss = any(each.may_miss for each in others)
    return makers.times(column._kept(made, *others), "timedelta", one.unit, may_miss)


def _in_one_unit(one: TimeColumn, two: TimeColumn) -> tuple[TimeColumn, TimeColumn]:
    check_length("other", len(two), len(one))
    unit = finer(one.unit, two.unit)
    return one.to_unit(unit), two.to_unit(unit)


def _durations(column: TimeColumn, other: object) -> TimeColumn:
    # Another operand as a column of durations.
    length = _length_of(other) if column.word == "timedelta" else None
    if length is None:
        _refuse(column, other, "divided", "give a duration")
    if not isinstance(length, np.timedelta64):
        return length
    if np.isnat(length):
        return column._like(column.codes * 0 + NO_TIME, True)
    unit = stored_unit(np.datetime_data(length.dtype)[0])
    count = int(length.astype(f"timedelta64[{unit}]").astype(np.int64))
    return makers.times(full(len(column), count, np.int64), "timedelta", unit, False)


def _refuse(column: TimeColumn, other: object, done: str, way: str) -> NoReturn:
    way = way if column.word == "timedelta" else "durations can be, as in x - x.min()"
    raise DTypeError(f"a column of {column._word()} and {shown_value(other)} cannot be {done}: {way}")


def _beside_numbers(column: Any, other: Any, done: str, way: str) -> tuple[TimeColumn, Any, Any]:
    # The column in a unit that has fractions of its own, numbers to multiply or divide it by, and where these
    # are missing, None for nowhere.
    is_several = getattr(other, "ndim", 0) > 0
    if is_several and not isinstance(other, Column | DistArray):
        other = makers.column_from("", other)
    kind = getattr(getattr(other, "dtype", None), "kind", "")
    is_number = kind in tuple("iuf") or (isinstance(other, int | float) and not isinstance(other, bool))
    if column.word != "timedelta" or not is_number:
        _refuse(column, other, done, way)
    if is_several:
        check_length("other", len(other), len(column))
    one = column.to_unit(finer(column.unit, "s"))
    return (one, other.codes, other.missing) if isinstance(other, MaskedColumn) else (one, other, None)


def _cut(column: TimeColumn, found: Any, gone: Any) -> TimeColumn:
    # Durations of numbers that may have a fraction, or be none.
    if found.dtype.kind == "f":
        is_there = np.abs(found) < _BEYOND
        found = np.where(is_there, np.trunc(found), 0).astype(np.int64)
        gone = ~is_there if gone is None else gone | ~is_there
    if gone is not None:
        found = np.where(gone, NO_TIME, found)
    return column._like(column._kept(found, column), column.may_miss or gone is not None)


def _share(column: Any, other: Any) -> TimeColumn:
    # A duration over a number.
    one, numbers, gone = _beside_numbers(column, other, "divided", "give a duration or a number")
    is_float = isinstance(numbers, float) or getattr(numbers, "dtype", np.dtype(int)).kind == "f"
    if is_float:
        return _cut(one, one.codes / numbers, gone)
    is_none: Any = numbers == 0
    safe: Any = np.where(is_none, 1, numbers)
    # Whole numbers beyond 2**53 stay exact.
    found = (one.codes - np.fmod(one.codes, safe)) // safe
    return _cut(one, found, is_none if gone is None else gone | is_none)


def _whole_shares(one: TimeColumn, two: TimeColumn) -> Any:
    one, two = _in_one_unit(one, two)
    by: Any = two.codes
    found: Any = np.where(by == 0, 0, one.codes // np.where(by == 0, 1, by))
    gone = [each.missing for each in (one, two) if each.may_miss]
    if not gone:
        return column_array(found)
    return MaskedColumn(found, gone[0] if len(gone) == 1 else gone[0] | gone[1])


def _remainders(one: TimeColumn, two: TimeColumn) -> TimeColumn:
    one, two = _in_one_unit(one, two)
    by: Any = two.codes
    found: Any = np.where(by == 0, one.codes, one.codes % np.where(by == 0, 1, by))
    return one._like(one._kept(found, one, two), one.may_miss or two.may_miss)

"""Columns of times, with a zone or without, and of durations."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from matnb.blocks.foreign import is_missing_value
from matnb.errors import DTypeError, OptionError, suggestion
from matnb.io.columns import zoned_name
from matnb.io.durations import (
    MOST_TIME,
    NO_TIME,
    PER_DAY,
    PER_SECOND,
    STORED_UNITS,
    stored_unit,
    unit_ratio,
)
from matnb.io.texts import OFFSET, whole_offset
from matnb.lazy.array import DistArray, handle_of
from matnb.tables.column_arrays import column_array
from matnb.tables.columns import Column, OrderedColumn, shown_value
from matnb.tables.datetimes import HasTimes
from matnb.tables.dtypes import kind_of_dtype
from matnb.tables.makers import makers
from matnb.tables.masked import MaskedColumn
from matnb.tables.row_orders import check_length
from matnb.tables.showing import duration_text
from matnb.tables.steps import days_of
from matnb.tables.time_operators import HasTimeOperators, check_length_of, finer, times_of
from matnb.tables.zones import (
    checked_zone,
    floored,
    instants_of,
    never_shown,
    offset_text,
    offsets_from_utc,
    shown_twice,
    steps_of,
    twice_shown,
)

if TYPE_CHECKING:
    import pyarrow

_UNITS = {"D": "D", "day": "D", "h": "h", "hour": "h", "m": "m", "minute": "m", "s": "s", "second": "s"}
_UNITS |= {"month": "M", "M": "M", "year": "Y", "Y": "Y", "ms": "ms", "us": "us", "ns": "ns"}
# The offset that ends a text of a time.
_WITH_OFFSET = re.compile(rf"(.*\d[T ].*\d)\s*(Z|{OFFSET})")


@dataclass(frozen=True)
class ZonedDtype:
    """The dtype of times with a zone, for which NumPy has none.

    Attributes
    ----------
    unit, zone
        The unit as NumPy writes it, and the zone's name.

    Examples
    --------
    >>> str(ZonedDtype("us", "Europe/Berlin"))
    'datetime64[us, Europe/Berlin]'
    """

    unit: str
    zone: str
    kind: ClassVar[str] = "M"

    def __str__(self) -> str:
        return zoned_name(self.unit, self.zone)

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    @property
    def name(self) -> str:
        """The dtype as text."""
        return str(self)


class TimeColumn(HasTimes, HasTimeOperators, OrderedColumn):
    """Dates and times, or durations, as NumPy's datetime64 and timedelta64; missing values are NaT.

    The difference of two times is a duration; durations can be added to times and to each other. Both can be
    compared with columns of their kind, NumPy scalars, and strings that NumPy can parse. Missing values
    compare as NaT does: ``!=`` is True, all other comparisons are False.

    Times with a zone are instants. What they show is what clocks of the zone do: ``hour``, ``day``,
    ``truncate``, and strings without an offset that they are compared with. Two columns of different zones
    are compared and subtracted as instants; one with a zone and one without are not.

    Attributes
    ----------
    word, unit
        "datetime" or "timedelta", and the unit, as NumPy writes it.
    zone
        The time zone, such as "Europe/Berlin" or "+01:00"; "" without one.

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

    def __init__(self, codes: DistArray, word: str, unit: str, may_miss: bool = True, zone: str = "") -> None:
        super().__init__(codes, may_miss)
        self.word, self.unit, self.zone = word, unit, checked_zone(zone) if zone else ""

    def _like(self, codes: DistArray, may_miss: bool | None = None) -> Self:
        known = self.may_miss if may_miss is None else may_miss
        return type(self)(codes, self.word, self.unit, known, self.zone)

    def _word(self) -> str:
        return str(self.dtype)

    @property
    def dtype(self) -> np.dtype | ZonedDtype:  # type: ignore[override]
        """NumPy's dtype, with the unit; of times with a zone a dtype that names it."""
        return ZonedDtype(self.unit, self.zone) if self.zone else self._plain_dtype

    @property
    def _plain_dtype(self) -> np.dtype:
        return np.dtype(f"{self.word}64[{self.unit}]")

    @property
    def missing(self) -> DistArray:
        """A boolean mask of missing values."""
        return self.codes == NO_TIME  # type: ignore[no-any-return]  # operators of arrays give Any

    def _here(self, codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if not self.zone:
            return codes.view(self._plain_dtype)
        found = np.empty(len(codes), object)
        try:
            found[:] = self.arrow_of(codes).to_pylist()
        except (ValueError, OverflowError) as error:
            raise DTypeError(
                f"a column of {self._word()} has a time that Python's datetime cannot hold: {error}; "
                "to_arrow() has the whole table"
            ) from None
        return found

    def arrow_of(self, codes: npt.NDArray[Any]) -> pyarrow.Array:
        """Return computed numbers as Arrow's times."""
        import pyarrow

        values = codes.view(self._plain_dtype)
        if self.word == "timedelta" and self.unit == "D":  # which Arrow has of dates alone
            values = values.astype("m8[s]")
        times = pyarrow.array(values, mask=codes == NO_TIME)
        if not self.zone:
            return times
        return times.cast(pyarrow.int64()).cast(pyarrow.timestamp(self.unit, self.zone))

    def compute(self) -> npt.NDArray[Any]:
        """Compute the column and return a NumPy array.

        Times without a zone and durations are datetime64 and timedelta64. These have no zone, so that times
        with one are objects: Python's ``datetime`` with the zone, and None.

        Raises
        ------
        DTypeError
            For a time with a zone that Python's ``datetime`` cannot be, such as one of a year beyond 9999.
        TooLargeError
            If the values exceed the session's ``compute_limit``.
        """
        return super().compute()

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if self.zone and dtype is not None and np.dtype(dtype).kind != "O":
            raise DTypeError(
                f"a column of {self._word()} as {np.dtype(dtype)}, which has no zone: x.to_zone(None) are "
                'times of its clocks, x.to_zone("UTC").to_zone(None) those of UTC'
            )
        return super().__array__(dtype, copy)

    def to_datetime(self, format: object = None, errors: str = "raise") -> TimeColumn:
        """Return the column, whose values are dates and times already.

        Raises
        ------
        DTypeError
            For durations.
        """
        self._check("datetime", "to_datetime")
        return self

    def texts_of(self, codes: npt.NDArray[Any]) -> list[str]:
        """Return computed numbers as they are shown: times of clocks with their offset, "" where missing."""
        if self.word == "timedelta":
            return [duration_text(one, self.unit) for one in np.asarray(codes, np.int64).tolist()]
        offsets: list[str] = [""] * len(codes)
        if self.zone:
            known = np.where(codes == NO_TIME, 0, codes)
            moved = np.broadcast_to(offsets_from_utc(known, self.unit, self.zone), codes.shape)
            offsets = [offset_text(one) for one in (moved // PER_SECOND[self.unit]).tolist()]
            codes = np.where(codes == NO_TIME, NO_TIME, known + moved)
        texts = np.asarray(codes, np.int64).view(self._plain_dtype).astype(str).tolist()
        return [
            "" if text == "NaT" else text.replace("T", " ").removesuffix(".000000") + offset
            for text, offset in zip(texts, offsets, strict=True)
        ]

    def to_zone(self, zone: str | None) -> TimeColumn:
        """Return the same instants in another zone; with None, times without a zone as the clocks show them.

        Raises
        ------
        DTypeError
            For times without a zone.
        OptionError
            For an unknown zone.

        Examples
        --------
        >>> import pandas as pd, matnb as mn
        >>> t = mn.table({"when": pd.Series(["2020-06-01T22:30"], dtype="datetime64[us, UTC]")})
        >>> t["when"].to_zone("Europe/Berlin").hour.compute()
        array([0])
        """
        if not self.zone:
            raise DTypeError(
                f"to_zone of a column of {self._word()}, which has no zone: give the times one before "
                "mn.table, as dt.tz_localize of pandas and dt.replace_time_zone of polars do"
            )
        if zone is None:
            return TimeColumn(self._kept(self._wall(), self), self.word, self.unit, self.may_miss)
        return TimeColumn(self.codes, self.word, self.unit, self.may_miss, checked_zone(zone))

    def _wall(self) -> Any:
        # What clocks show, as if it were of UTC.
        codes: Any = self.codes
        return codes + offsets_from_utc(codes, self.unit, self.zone) if self.zone else codes

    def _number(self, value: object) -> int | None:
        count, unit = self._read(value)
        if finer(unit, self.unit) == self.unit:
            count *= unit_ratio(unit, self.unit)
        elif count % (ratio := unit_ratio(self.unit, unit)):
            return None
        else:
            count //= ratio
        return count if abs(count) <= MOST_TIME else None

    def _read(self, value: object) -> tuple[int, str]:
        # A value given by a user as a count of a unit: of times with a zone an instant.
        if is_missing_value(value):
            return NO_TIME, self.unit
        given, offset = value, None
        if self.word == "datetime":
            if isinstance(value, str) and (found := _WITH_OFFSET.fullmatch(value)):
                zone = "+00:00" if found[2] == "Z" else whole_offset(found[2])
                given, offset = found[1], int(steps_of(zone)[1][0])
            elif isinstance(value, datetime) and (moved := value.utcoffset()) is not None:
                given, offset = value.replace(tzinfo=None), moved.days * 86_400 + moved.seconds
        if callable(to_numpy := getattr(given, "to_numpy", None)):  # pandas' times have nanoseconds
            given = to_numpy()
        kind = getattr(getattr(given, "dtype", None), "kind", "f" if isinstance(given, int | float) else "")
        if kind in tuple("biufcmM") and kind != self._plain_dtype.kind:
            raise DTypeError(f"{shown_value(value)} is not a {self.word}, which this column holds")
        if offset is not None and not self.zone:
            raise DTypeError(f"{value!r} has an offset, and the column of {self._word()} has no zone")
        if self.word == "timedelta" and isinstance(given, np.timedelta64):
            check_length_of(given)
        try:
            made = np.asarray(given).astype(f"{self.word}64")
            given_unit, step = np.datetime_data(made.dtype)
            unit = stored_unit(given_unit)
            if given_unit not in PER_DAY:
                made, given_unit, step = made.astype(f"{self.word}64[{unit}]"), unit, 1
        except (ValueError, TypeError):
            raise DTypeError(f"{shown_value(value)} is not a {self.word}, which this column holds") from None
        if made.ndim:
            raise DTypeError(f"{shown_value(value)} is not one {self.word}: give one, or a column of them")
        count = int(made.view(np.int64))
        if count != NO_TIME:
            count *= step * unit_ratio(given_unit, unit)
        if self.zone and count != NO_TIME:
            fine = finer(unit, "s")
            count *= unit_ratio(unit, fine)
            if offset is None:
                return _instant_of(self, count, fine, value), fine
            return count - offset * PER_SECOND[fine], fine
        return count, unit

    def _other(self, value: object) -> tuple[TimeColumn, TimeColumn | int]:
        # This column and another, or a scalar's number, in one unit.
        if (times := times_of(value)) is not None:
            value = times
            check_length("other", len(value), len(self))
            if value.word != self.word:
                raise DTypeError(f"{shown_value(value)} has no {self.word}s, which this column holds")
            if bool(self.zone) != bool(value.zone):
                raise DTypeError(
                    f"a column of {self._word()} and one of {value._word()}: only one has a zone; "
                    "x.to_zone(None) are its times without one"
                )
            unit = finer(self.unit, value.unit)
            return self.to_unit(unit), value.to_unit(unit)
        count, unit = self._read(value)
        if count == NO_TIME:
            return self, NO_TIME
        fine = finer(self.unit, unit)
        count *= unit_ratio(unit, fine)
        return self.to_unit(fine), min(max(count, -MOST_TIME), MOST_TIME)

    def to_unit(self, unit: str) -> TimeColumn:
        """Return the times in another unit, rounded down if it is coarser; days have no zone.

        Columns have units that files have too: hours and minutes are rounded down, and kept as seconds.
        """
        if unit == self.unit:
            return self
        if unit not in PER_DAY:
            raise OptionError(f"unit {unit!r}; {suggestion(unit, PER_DAY)}")
        if unit not in STORED_UNITS:
            return self.truncate(unit).to_unit(stored_unit(unit))
        if self.zone and unit not in PER_SECOND:
            return self.to_zone(None).to_unit(unit)
        if finer(unit, self.unit) == unit:
            made: Any = self.codes * unit_ratio(self.unit, unit)
        else:
            made = self.codes // unit_ratio(unit, self.unit)
        return TimeColumn(self._kept(made, self), self.word, unit, self.may_miss, self.zone)

    def astype(self, dtype: Any, errors: str = "raise") -> Any:
        """Return the times in another unit, or as text, ``str``."""
        return times_as(self, dtype)

    def _kept(self, made: Any, *columns: Column) -> Any:
        for column in columns:
            if column.may_miss:
                made = np.where(column.missing, NO_TIME, made)
        return made

    def _compared(self, other: object, compare: Callable[[Any, Any], Any]) -> DistArray:
        if isinstance(other, TimeColumn) and other.word != self.word:
            raise DTypeError(f"a column of {self._word()} cannot be compared with one of {other._word()}")
        one, two = self._other(other)
        if isinstance(two, int) and two == NO_TIME:
            return self.codes != self.codes  # type: ignore[no-any-return]  # operators of arrays give Any
        found = compare(one.codes, two if isinstance(two, int) else two.codes)
        for column in (one, two):
            if isinstance(column, TimeColumn) and column.may_miss:
                found = found & ~column.missing
        return found  # type: ignore[no-any-return]  # operators of arrays give Any

    def total_seconds(self) -> DistArray:
        """Return durations in seconds, float64; NaN for missing values."""
        return self / np.timedelta64(1, "s")  # type: ignore[no-any-return]  # operators of arrays give Any

    def _or_nan(self, made: Any) -> Any:
        return column_array(np.where(self.missing, np.nan, made) if self.may_miss else made)

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
            days = days_of(year, month if wanted == "M" else 1)
            return self._shown_at(days * PER_DAY[self.unit])
        if PER_DAY[wanted] >= PER_DAY[self.unit]:
            return self
        step = unit_ratio(wanted, self.unit)
        if self.zone and wanted == "D":
            return self._shown_at(self._days() * step)
        if self.zone:
            return self._like(self._kept(floored(self.codes, step, self.unit, self.zone), self))
        return self._like(self._kept(self.codes // step * step, self))

    def _shown_at(self, walls: Any) -> TimeColumn:
        # When clocks show times first.
        made = instants_of(walls, self.unit, self.zone) if self.zone else walls
        return self._like(self._kept(made, self))

    def _check(self, word: str, name: str) -> None:
        if self.word != word:
            raise DTypeError(f"{name} of a column of {self._word()}: it needs a column of {word}s")

    def _days(self) -> Any:
        return self._wall() // PER_DAY[self.unit]

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
            return found  # type: ignore[no-any-return]  # operators of arrays give Any
        return MaskedColumn(handle_of(np.where(self.missing, 0, found)), self.missing)

    def _within_day(self, large: int, small: int) -> Any:
        # How many units of which a day has `large` are there, over those of which it has `small`.
        per_day = PER_DAY[self.unit]
        if per_day < large:
            return self.codes * 0
        return self._wall() % (per_day // small) // (per_day // large)

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


def times_as(column: TimeColumn, dtype: Any) -> Any:
    """Return times as a dtype: of another unit, or text.

    Raises
    ------
    DTypeError
        For another dtype.
    """
    kind = kind_of_dtype(dtype)
    if kind == "text":
        return makers.mapped_numbers(column, column.texts_of)
    if kind == column._plain_dtype.kind:
        unit = np.datetime_data(np.dtype(dtype))[0]
        return column if unit == "generic" else column.to_unit(unit)
    way = (
        "x.total_seconds() are floats"
        if column.word == "timedelta"
        else "x.year, x.hour and so on are numbers"
    )
    raise DTypeError(f"astype({dtype!r}) of a column of {column._word()}: {way}")


def _instant_of(column: TimeColumn, wall: int, unit: str, value: object) -> int:
    given = np.array([wall])
    instant = instants_of(given, unit, column.zone)
    is_two = shown_twice(given, unit=unit, zone=column.zone)[0]
    if not is_two and instant + offsets_from_utc(instant, unit, column.zone) == given:
        return int(instant[0])
    shown = TimeColumn(column.codes, column.word, unit, zone=column.zone).texts_of(instant)[0]
    say = twice_shown if is_two else never_shown
    raise DTypeError(
        f"{shown_value(value)} beside a column of {column._word()}: {say(wall, unit, column.zone)}; write an "
        f'offset, as in "{shown}"'
    )


makers.times = TimeColumn

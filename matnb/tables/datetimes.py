"""``column.dt``: parts of dates and times, and times of other clocks, by pandas' names."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from matnb.errors import DTypeError, OptionError, ShapeError
from matnb.io.durations import PER_DAY, PER_SECOND
from matnb.lazy.array import handle_of
from matnb.lazy.creation import arange, asarray
from matnb.lazy.functions.mapping import map_blocks
from matnb.tables.accessors import keeps_names
from matnb.tables.makers import makers
from matnb.tables.masked import MaskedColumn
from matnb.tables.pandas_names import OF_TIMES, no_table_name
from matnb.tables.steps import floored_to
from matnb.tables.zones import checked_zone, first_of_two, localized, shown_twice

if TYPE_CHECKING:
    from matnb.tables.columns import TextColumn
    from matnb.tables.times import TimeColumn

_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December"),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_OF_NONE = ("raise", "shift_forward", "shift_backward", "NaT")
_SAME = ("year", "month", "day", "hour", "minute", "second", "weekday")  # as the column has them
_OF_DURATIONS = ("days", "seconds", "total_seconds")  # which times have not
_OF_BOTH = ("floor", "unit")


@keeps_names
class TimeMethods:
    """Parts of times and durations by pandas' names: ``t["when"].dt.hour``.

    ``year``, ``month``, ``day``, ``hour``, ``minute``, ``second`` and ``weekday`` are those of the column
    itself. Times with a zone have the parts that clocks of the zone show.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> t = mn.table({"when": np.array(["2020-01-31T10:30", "2021-03-04T23:00"], "datetime64[s]")})
    >>> t["when"].dt.quarter.compute(), t["when"].dt.day_name().compute().tolist()
    (array([1, 1]), ['Friday', 'Thursday'])
    """

    def __init__(self, column: TimeColumn) -> None:
        self._column = column

    def __dir__(self) -> list[str]:
        if self._column.word == "timedelta":
            return [*_OF_DURATIONS, *_OF_BOTH]
        return [*(one for one in super().__dir__() if one not in _OF_DURATIONS), *_SAME]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in _SAME:
            return getattr(self._column, name)
        known = [one for one in dir(self) if not one.startswith("_")]
        raise no_table_name("x.dt", name, OF_TIMES, lambda: known)

    @property
    def dayofweek(self) -> Any:
        """Days of the week: 0 is Monday."""
        return self._column.weekday

    day_of_week = dayofweek

    @property
    def dayofyear(self) -> Any:
        """Days of the year, from 1 on."""
        return self._part("dayofyear", lambda x: x._days() - x.truncate("year")._days() + 1)

    day_of_year = dayofyear

    @property
    def quarter(self) -> Any:
        """Quarters of the year, 1 to 4."""
        return self._part("quarter", lambda x: (x._civil()[1] + 2) // 3)

    @property
    def days_in_month(self) -> Any:
        """How many days the month has."""
        return self._part("days_in_month", _days_in_month)

    @property
    def is_month_start(self) -> Any:
        """Where it is the first day of a month."""
        return self._part("is_month_start", lambda x: x._civil()[2] == 1)

    @property
    def is_month_end(self) -> Any:
        """Where it is the last day of a month."""
        return self._part("is_month_end", lambda x: x._civil()[2] == _days_in_month(x))

    @property
    def is_leap_year(self) -> Any:
        """Where the year has 366 days."""
        return self._part("is_leap_year", lambda x: _is_leap(x._civil()[0]))

    @property
    def microsecond(self) -> Any:
        """Microseconds of the second."""
        return self._part("microsecond", _microseconds)

    @property
    def date(self) -> TimeColumn:
        """Dates, without the time of the day."""
        self._column._check("datetime", "date")
        return (self._column.to_zone(None) if self._column.zone else self._column).to_unit("D")

    @property
    def tz(self) -> str | None:
        """The name of the time zone; None without one."""
        return self._column.zone or None

    @property
    def unit(self) -> str:
        """The unit, as NumPy writes it."""
        return self._column.unit

    def isocalendar(self) -> Any:
        """Return a table of ISO 8601's years, weeks and days of the week, 1 to 7."""
        days = self._part("isocalendar", lambda x: x._days())
        raw: Any = days.codes if isinstance(days, MaskedColumn) else days
        thursday: Any = raw - (raw + 3) % 7 + 3
        year = _plain_date(thursday).year
        first = _plain_date(thursday).truncate("year").codes
        parts = {"year": year, "week": (thursday - first) // 7 + 1, "day": (raw + 3) % 7 + 1}
        if isinstance(days, MaskedColumn):
            return makers.table({name: MaskedColumn(one, days.missing) for name, one in parts.items()})
        return makers.table(parts)

    def month_name(self) -> TextColumn:
        """Return the names of months, in English."""
        return self._column.month.map(dict(enumerate(_MONTHS, 1)))  # type: ignore[no-any-return]  # operators of arrays give Any

    def day_name(self) -> TextColumn:
        """Return the names of days of the week, in English."""
        return self._column.weekday.map(dict(enumerate(_DAYS)))  # type: ignore[no-any-return]  # operators of arrays give Any

    def normalize(self) -> TimeColumn:
        """Return the times at midnight."""
        return self._column.truncate("day")

    def floor(self, freq: str) -> TimeColumn:
        """Return times rounded down to steps: "D", "h", "15min", "W", "MS", "QS", "YS" and the like.

        Weeks begin on Monday; "W-SAT" are those that end on Saturday. Weeks, months, quarters and years are
        named by their first day. Of times with a zone steps are those of its clocks.

        Raises
        ------
        OptionError
            For another step.
        """
        return floored_to(self._column, freq)

    def strftime(self, date_format: str) -> TextColumn:
        """Return the times as text in a form such as ``"%Y-%m"``, each distinct one in this process.

        Raises
        ------
        DTypeError
            For durations.
        """
        self._column._check("datetime", "strftime")
        return self._column.map(  # type: ignore[no-any-return]  # operators of arrays give Any
            lambda when: (when if hasattr(when, "strftime") else when.astype("M8[us]").item()).strftime(
                date_format
            )
        )

    def tz_convert(self, tz: str | None) -> TimeColumn:
        """Return the same instants in another zone; with None, times of UTC's clocks without a zone."""
        return self._column.to_zone("UTC").to_zone(None) if tz is None else self._column.to_zone(tz)

    def tz_localize(
        self, tz: str | None, ambiguous: object = "raise", nonexistent: object = "raise"
    ) -> TimeColumn:
        """Return times as clocks of a zone show them, with that zone; with None, without their zone.

        Parameters
        ----------
        tz
            A name such as "Europe/Berlin", or an offset such as "+01:00".
        ambiguous
            What times are that clocks show twice, when they are set back: "raise"; "infer" from their order,
            for which they are computed; "NaT"; or booleans, one or one for each row, which are True for the
            first of two, summer time.
        nonexistent
            What times are that clocks leave out, when they are set forward: "raise"; "shift_forward" to when
            they are set; "shift_backward" to just before; "NaT"; or a timedelta by which they are moved.

        Raises
        ------
        DTypeError
            For durations, and times that have a zone.
        OptionError
            For an unknown zone or word, and, once computed, for a time that clocks show twice or leave out.
        ShapeError
            For booleans of another length.

        Examples
        --------
        >>> import numpy as np, matnb as mn
        >>> t = mn.table({"when": np.array(["2024-03-31T02:30"], "datetime64[s]")})
        >>> t["when"].dt.tz_localize("Europe/Berlin", nonexistent="shift_forward").hour.compute()
        array([3])
        """
        if tz is None:
            return self._column.to_zone(None)
        return _with_zone(self._column, tz, ambiguous, nonexistent)

    # Durations

    def total_seconds(self) -> Any:
        """Return durations in seconds, float64."""
        return self._column.total_seconds()

    @property
    def days(self) -> Any:
        """Whole days of durations, rounded down."""
        return self._part("days", lambda x: x.codes // PER_DAY[x.unit], "timedelta")

    @property
    def seconds(self) -> Any:
        """Whole seconds of durations beside their days, from 0 on."""
        return self._part("seconds", _seconds_of_day, "timedelta")

    def _part(self, name: str, make: Callable[[Any], Any], word: str = "datetime") -> Any:
        self._column._check(word, name)
        found, x = make(self._column), self._column
        if not x.may_miss:
            return found
        if found.dtype.kind == "b":
            return found & ~x.missing
        return MaskedColumn(handle_of(np.where(x.missing, 0, found)), x.missing)


def _is_leap(year: Any) -> Any:
    return (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))


def _days_in_month(column: Any) -> Any:
    year, month, _ = column._civil()
    long = 30 + (month + month // 8) % 2
    return np.where(month == 2, 28 + _is_leap(year), long)


def _microseconds(column: Any) -> Any:
    per_second = PER_SECOND.get(column.unit, 1)
    return column._wall() % per_second * 1_000_000 // per_second


def _seconds_of_day(column: Any) -> Any:
    per_day = PER_DAY[column.unit]
    return column.codes % per_day // max(1, per_day // 86_400) if per_day >= 86_400 else column.codes * 0


def _plain_date(days: Any) -> Any:
    return makers.times(days, "datetime", "D", may_miss=False)


def _with_zone(column: TimeColumn, tz: str, ambiguous: object, nonexistent: object) -> TimeColumn:
    column._check("datetime", "tz_localize")
    if column.zone:
        raise DTypeError(f"tz_localize of times of {column.zone}: dt.tz_convert shows another zone's")
    zone = checked_zone(tz)
    x = column.to_unit("s") if column.unit == "D" else column
    of_none = _of_none(nonexistent, x.unit)
    is_first = _first(x, zone, ambiguous)
    kernel = partial(
        localized,
        unit=x.unit,
        zone=zone,
        ambiguous=str(ambiguous) if is_first is None else "raise",
        nonexistent=of_none,
    )
    given = (x.codes,) if is_first is None else (x.codes, is_first)
    made = map_blocks(kernel, *given, shape=x.codes.shape, dtype=np.int64, pure=True)
    may_miss = x.may_miss or of_none == "NaT" or (isinstance(ambiguous, str) and ambiguous == "NaT")
    return makers.times(made, x.word, x.unit, may_miss, zone)


def _of_none(nonexistent: object, unit: str) -> str | int:
    if isinstance(nonexistent, str) and nonexistent in _OF_NONE:
        return nonexistent
    if isinstance(nonexistent, timedelta | np.timedelta64):
        return int(np.timedelta64(nonexistent).astype(f"m8[{unit}]").astype(np.int64))
    words = ", ".join(map(repr, _OF_NONE))
    raise OptionError(f"nonexistent={nonexistent!r}: choose one of {words}, or give a timedelta")


def _first(column: TimeColumn, zone: str, ambiguous: Any) -> Any:
    # Which of times that clocks show twice are the first; None where a word says what they are.
    codes: Any = column.codes
    if isinstance(ambiguous, str):
        if ambiguous in ("raise", "NaT"):
            return None
        if ambiguous != "infer":
            raise OptionError(f'ambiguous={ambiguous!r}: choose "raise", "infer", "NaT", or give booleans')
        kernel = partial(shown_twice, unit=column.unit, zone=zone)
        is_two = map_blocks(kernel, codes, shape=codes.shape, dtype=np.bool_, pure=True)
        rows = np.flatnonzero(is_two)
        found = first_of_two(np.asarray(codes[rows]), np.asarray(rows), column.unit, zone)
        return np.isin(arange(len(codes)), asarray(np.asarray(rows)[found]))
    if isinstance(ambiguous, bool | np.bool_):
        return asarray(np.full(1, ambiguous)) if len(codes) else asarray(np.empty(0, np.bool_))
    array = ambiguous if hasattr(ambiguous, "dtype") else np.asarray(ambiguous)
    if array.dtype.kind != "b" or array.ndim != 1:
        raise OptionError(
            f"ambiguous= of {array.dtype} with {array.ndim} axes: give booleans, one for each row"
        )
    if len(array) != len(codes):
        raise ShapeError(f"ambiguous= has {len(array):,} rows where the column has {len(codes):,}")
    return asarray(array)


class HasTimes:
    """What a column of times has beside its own methods."""

    @property
    def dt(self) -> TimeMethods:
        """Parts of the times, by pandas' names, as in ``x.dt.hour``: a ``TimeMethods``."""
        return TimeMethods(self)  # type: ignore[arg-type]

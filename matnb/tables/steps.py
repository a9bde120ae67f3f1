"""Times in steps of clocks and calendars, hours, days, weeks, months and the like: rounded, or in bins."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from matnb.errors import OptionError, suggestion
from matnb.io.durations import MOST_TIME, PER_DAY, unit_ratio
from matnb.tables.zones import floored

if TYPE_CHECKING:
    from matnb.tables.times import TimeColumn

# What users write for the unit of a step, in pandas and polars.
_STEPS = {
    "Y": "Y YS YE A AS year years y", "Q": "Q QS QE quarter quarters q", "M": "M MS ME month months mo",
    "W": "W week weeks w", "D": "D d day days", "h": "h H hour hours", "m": "min T m minute minutes",
    "s": "s S sec second seconds", "ms": "ms L", "us": "us U", "ns": "ns N",
}  # fmt: skip
_UNIT_OF = {word: unit for unit, words in _STEPS.items() for word in words.split()}
_BY_THEIR_END = ("Y", "YE", "A", "Q", "QE", "M", "ME")  # pandas' words, by whose last day bins are called
_MONTHS_OF = {"M": 1, "Q": 3, "Y": 12}
_LAST_DAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")  # of weeks, as in pandas' "W-SAT"
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_FREQUENCY = re.compile(r"\s*(\d*)\s*([A-Za-z]+)(?:-([A-Za-z]+))?\s*")


class _Frequency(NamedTuple):
    # So many of a unit. Periods of the calendar begin with a month, 0 to 11, or a day of 1970's first week.
    number: int
    unit: str
    begin: int
    by_end: bool


def floored_to(column: TimeColumn, freq: str) -> TimeColumn:
    """Return times rounded down to steps that a text such as "15min" names, of the clocks of their zone.

    Steps are counted from 1970, those of durations from zero; periods of the calendar are their first days.

    Raises
    ------
    OptionError
        For a text that names no step.
    """
    step = _step_of(freq)
    if step.unit in (*_MONTHS_OF, "W"):
        column._check("datetime", f"steps of {freq!r}")
        place = _period(column, step) // step.number * step.number
        return column._shown_at(_first_day(place, step) * PER_DAY[column.unit])
    fine, length = _in_units_of(column, step)
    if fine.zone and length <= unit_ratio("h", fine.unit):
        return _within_an_hour(fine, length)
    return fine._shown_at(fine._wall() // length * length)


def binned_in(column: TimeColumn, freq: str) -> TimeColumn:
    """Return by what times are called in groups of steps: pandas' labels of its ``Grouper``.

    Steps of several are counted from the first time: hours and shorter ones from its midnight, others from
    its day, week, month, quarter or year. What ends with its label, such as weeks and "ME", has the first as
    the last of several.

    Raises
    ------
    OptionError
        For a text that names no step.
    """
    step = _step_of(freq)
    if column.word == "timedelta":
        return floored_to(column, freq)
    if step.unit in (*_MONTHS_OF, "W", "D"):
        place = _period(column, step)
        if step.number > 1:
            first = _period(_first_of(column), step)
            beyond = place - first
            place = (
                first + (-(-beyond // step.number) if step.by_end else beyond // step.number) * step.number
            )
        days = _first_day(place + 1, step) - 1 if step.by_end else _first_day(place, step)
        return column._shown_at(days * PER_DAY[column.unit])
    fine, length = _in_units_of(column, step)
    if unit_ratio("h" if fine.zone else "D", fine.unit) % length == 0:
        return floored_to(column, freq)  # whatever the first day is
    # Of a zone these are lengths of time, whatever its clocks do meanwhile.
    start: Any = _first_of(fine).truncate("day").codes
    return fine._like(fine._kept(start + (fine.codes - start) // length * length, fine))


def _period(column: TimeColumn, step: _Frequency) -> Any:
    # The number of the unit of a calendar in which times lie.
    if step.unit == "D":
        return column._days()
    if step.unit == "W":
        return (column._days() - step.begin) // 7
    year, month, _ = column._civil()
    return (year * 12 + month - 1 - step.begin) // _MONTHS_OF[step.unit]


def _first_day(place: Any, step: _Frequency) -> Any:
    if step.unit == "D":
        return place
    if step.unit == "W":
        return place * 7 + step.begin
    months = place * _MONTHS_OF[step.unit] + step.begin
    return days_of(months // 12, months % 12 + 1)


def _in_units_of(column: TimeColumn, step: _Frequency) -> tuple[TimeColumn, int]:
    # A column that has the unit of a step or a finer one, or whole steps, and the step in its unit.
    count, unit = step.number, step.unit
    if PER_DAY[column.unit] >= PER_DAY[unit]:
        return column, count * unit_ratio(unit, column.unit)
    there = unit_ratio(column.unit, unit)
    if count % there == 0 or there % count == 0:  # and all times are at steps, if these are shorter
        return column, max(1, count // there)
    return _in_units_of(column.to_unit("s" if unit in ("h", "m", "s") else unit), step)


def _first_of(column: TimeColumn) -> TimeColumn:
    # One row, so that it goes with each.
    codes: Any = np.where(column.missing, MOST_TIME, column.codes) if column.may_miss else column.codes
    least = codes.min().reshape(1) if len(column) else codes
    return column._like(least, False)


def _within_an_hour(column: TimeColumn, step: int) -> TimeColumn:
    # An hour that clocks show twice counts as two.
    return column._like(column._kept(floored(column.codes, step, column.unit, column.zone), column))


def _step_of(freq: object) -> _Frequency:
    found = _FREQUENCY.fullmatch(freq) if isinstance(freq, str) else None
    if found is None or found[2] not in _UNIT_OF or found[1].strip("0") == "" != found[1]:
        way = suggestion(found[2], _UNIT_OF) if found else ""
        near = f"; {way}" if way.startswith("did") else ""
        raise OptionError(
            f'freq={freq!r}: give a step such as "D", "h", "15min", "W", "MS", "QS" or "YS"{near}'
        )
    count, unit, anchor = int(found[1] or 1), _UNIT_OF[found[2]], (found[3] or "").upper()
    known = _LAST_DAYS if unit == "W" else _MONTHS if unit in "QY" else ()
    if anchor and anchor not in known:
        raise OptionError(
            f'freq={freq!r}: weeks may have a last day, as in "W-SAT", and quarters and years a month, as in '
            '"QS-FEB", with which they begin, or "YE-MAR", with which they end'
        )
    by_end = unit == "W" or found[2] in _BY_THEIR_END
    if unit == "W":  # 1970 began with a Thursday
        return _Frequency(count, unit, (_LAST_DAYS.index(anchor or "SUN") + 1 - 3) % 7, by_end)
    return _Frequency(count, unit, (_MONTHS.index(anchor) + by_end) % 12 if anchor else 0, by_end)


def days_of(year: Any, month: Any) -> Any:
    """Return the days since 1970 of the first of a month: the same paper."""
    year = year - (month <= 2)
    era = year // 400
    of_era = year - era * 400
    place = (month + 9) % 12
    of_year = (153 * place + 2) // 5
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468

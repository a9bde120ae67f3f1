"""Times rounded down to steps of clocks and calendars: hours, days, weeks, months and the like."""

from __future__ import annotations

import re

from matnb.errors import OptionError, suggestion
from matnb.io.durations import PER_DAY, unit_ratio
from matnb.tables.times import TimeColumn, days_of

# What users write for the unit of a step, in pandas and polars.
_STEPS = {
    "Y": "Y YS YE A AS year years y", "Q": "Q QS QE quarter quarters q", "M": "M MS ME month months mo",
    "W": "W week weeks w", "D": "D d day days", "h": "h H hour hours", "m": "min T m minute minutes",
    "s": "s S sec second seconds", "ms": "ms L", "us": "us U", "ns": "ns N",
}  # fmt: skip
_UNIT_OF = {word: unit for unit, words in _STEPS.items() for word in words.split()}
_MONTHS_OF = {"M": 1, "Q": 3, "Y": 12}
_LAST_DAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")  # of weeks, as in pandas' "W-SAT"
_FREQUENCY = re.compile(r"\s*(\d*)\s*([A-Za-z]+)(?:-([A-Za-z]+))?\s*")


def floored_to(column: TimeColumn, freq: str, last_day: bool = False) -> TimeColumn:
    """Return times rounded down to steps that a text such as "15min" names, of the clocks of their zone.

    With ``last_day``, weeks are called by their last day, as pandas' are, and not by their first.

    Raises
    ------
    OptionError
        For a text that names no step.
    """
    count, unit, ends = _step_of(freq)
    if unit in _MONTHS_OF:
        column._check("datetime", f"steps of {freq!r}")
        year, month, _ = column._civil()
        months = count * _MONTHS_OF[unit]
        number = (year * 12 + month - 1) // months * months
        return column._shown_at(days_of(number // 12, number % 12 + 1) * PER_DAY[column.unit])
    if unit == "W":
        column._check("datetime", f"steps of {freq!r}")
        first = (ends + 1 - 3) % 7  # the day of 1970 with which a week begins: the first was a Thursday
        length = 7 * count
        days = (column._days() - first) // length * length + first + (length - 1 if last_day else 0)
        return column._shown_at(days * PER_DAY[column.unit])
    if PER_DAY[column.unit] < PER_DAY[unit]:  # dates in hours, and the like
        if count * PER_DAY[column.unit] % PER_DAY[unit] and count > 1:
            return floored_to(column.to_unit("s" if unit in "hms" else unit), freq)
        return column
    step = count * unit_ratio(unit, column.unit)
    if column.zone and step <= unit_ratio("h", column.unit):
        return _within_an_hour(column, step)
    return column._shown_at(column._wall() // step * step)


def _within_an_hour(column: TimeColumn, step: int) -> TimeColumn:
    # An hour that clocks show twice counts as two.
    from matnb.tables.zones import floored

    return column._like(column._kept(floored(column.codes, step, column.unit, column.zone), column))


def _step_of(freq: object) -> tuple[int, str, int]:
    found = _FREQUENCY.fullmatch(freq) if isinstance(freq, str) else None
    if found is None or found[2] not in _UNIT_OF or found[1] == "0":
        way = suggestion(found[2], _UNIT_OF) if found else ""
        near = f"; {way}" if way.startswith("did") else ""
        raise OptionError(
            f'freq={freq!r}: give a step such as "D", "h", "15min", "W", "MS", "QS" or "YS"{near}'
        )
    unit, anchor = _UNIT_OF[found[2]], (found[3] or "").upper()
    if anchor and (unit != "W" or anchor not in _LAST_DAYS):
        raise OptionError(
            f'freq={freq!r}: weeks may have a last day, as in "W-SAT"; years and quarters begin in January'
        )
    return int(found[1] or 1), unit, _LAST_DAYS.index(anchor or "SUN")

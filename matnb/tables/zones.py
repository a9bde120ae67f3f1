"""Time zones: how far clocks are from UTC, on workers and here, and which instant a clock shows.

Times are counts of a unit since 1970. A zone is a name of the tz database, or an offset such as "+01:00".
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import numpy as np
import numpy.typing as npt

from matnb.errors import OptionError, suggestion
from matnb.io.durations import DAY_SECONDS, NO_TIME, PER_SECOND
from matnb.io.texts import OFFSET, whole_offset
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray

# Clocks are looked at every second day: no zone has changed twice within three days. The rules of today go
# on, and repeat after 400 years, which are whole weeks.
_STEP = 2 * DAY_SECONDS
_FIRST, _LAST_CYCLE = -5_364_662_400, 2_114_380_800  # 1800 and 2037
_CYCLE = 146_097 * DAY_SECONDS

Steps = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


def checked_zone(name: Any) -> str:
    """Return the name of a zone.

    Raises
    ------
    OptionError
        For one that is neither an offset nor in the tz database.
    """
    if isinstance(name, str) and re.fullmatch(OFFSET, name):
        return whole_offset(name)
    try:
        return ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        pass
    near = suggestion(name, sorted(available_timezones())) if isinstance(name, str) else ""
    raise OptionError(
        f'time zone {name!r}: give a name such as "Europe/Berlin", or an offset such as "+01:00"'
        f"{f'; {near}' if near.startswith('did') else ''}"
    )


@cache
def steps_of(zone: str) -> Steps:
    """Return when the offset of a zone changes, and the offsets before, between and after, in seconds."""
    zone = checked_zone(zone)
    if re.fullmatch(OFFSET, zone):
        offset = (3600 * int(zone[1:3]) + 60 * int(zone[4:])) * (-1 if zone[0] == "-" else 1)
        return np.empty(0, np.int64), np.array([offset])
    if zone == "UTC":
        return np.empty(0, np.int64), np.zeros(1, np.int64)
    clock = ZoneInfo(zone)

    def offset_at(second: int) -> int:
        found = datetime.fromtimestamp(second, clock).utcoffset()
        assert found is not None, "of a zone"
        return found.days * DAY_SECONDS + found.seconds

    changes, offsets = [], [offset_at(_FIRST)]
    for second in range(_FIRST + _STEP, _LAST_CYCLE + _CYCLE + _STEP, _STEP):
        now = offset_at(second)
        if now != offsets[-1]:
            before, after = second - _STEP, second
            while after - before > 1:
                middle = (before + after) // 2
                before, after = (middle, after) if offset_at(middle) == offsets[-1] else (before, middle)
            changes.append(after)
            offsets.append(now)
    return np.array(changes, np.int64), np.array(offsets, np.int64)


def offsets_from_utc(instants: Any, unit: str, zone: str) -> Any:
    """Return the UTC offset at each instant, or one number for a zone whose offset never changes."""
    changes, offsets = _steps(unit, zone)
    return offsets[0] if len(offsets) == 1 else _table(offsets, instants)[_places(instants, changes, unit)]


def instants_of(walls: Any, unit: str, zone: str) -> Any:
    """Return the first instant of each local time; for a skipped one, when the clocks were set forward."""
    early, late, is_early, is_late, skipped = _candidates(walls, unit, zone)
    return np.where(is_early, early, np.where(is_late, late, skipped))


def _candidates(walls: Any, unit: str, zone: str) -> tuple[Any, Any, Any, Any, Any]:
    # Instants with the offsets before and after a change nearby, where clocks then show these times, and
    # when the last change before was.
    changes, offsets = _steps(unit, zone)
    if len(offsets) == 1:
        made, is_shown = walls - offsets[0], walls == walls
        return made, made, is_shown, is_shown, made
    # Clocks are at most 16 hours from UTC and change at most once within three days.
    margin = 3 * DAY_SECONDS * PER_SECOND[unit] // 2
    early = walls - offsets_from_utc(walls - margin, unit, zone)
    late = walls - offsets_from_utc(walls + margin, unit, zone)
    is_early, is_late = (one + offsets_from_utc(one, unit, zone) == walls for one in (early, late))
    starts = np.concatenate([changes[:1], changes])
    skipped = _table(starts, walls)[_places(early, changes, unit)]
    return early, late, is_early, is_late, skipped


def shown_twice(walls: npt.NDArray[np.int64], *, unit: str, zone: str) -> npt.NDArray[np.bool_]:
    """Return a mask of the local times that occur twice in a zone."""
    early, late, is_early, is_late, _ = _candidates(np.where(walls == NO_TIME, 0, walls), unit, zone)
    return is_early & is_late & (early != late) & (walls != NO_TIME)  # type: ignore[no-any-return]  # operators of arrays give Any


def localized(
    walls: npt.NDArray[np.int64],
    is_first: npt.NDArray[np.bool_] | None = None,
    *,
    unit: str,
    zone: str,
    ambiguous: str,
    nonexistent: str | int,
) -> npt.NDArray[np.int64]:
    """Convert local times to instants; options say what to do with those that occur twice or never.

    Parameters
    ----------
    walls
        Counts of a unit; ``NO_TIME`` stays so.
    is_first
        Of times that clocks show twice, which are the first; None if ``ambiguous`` says what they are.
    ambiguous
        "raise" or "NaT".
    nonexistent
        "raise", "shift_forward", "shift_backward", "NaT", or by how many units such times are moved.

    Raises
    ------
    OptionError
        For a time that is to raise.
    """
    gone = walls == NO_TIME
    walls = np.where(gone, 0, walls)
    early, late, is_early, is_late, skipped = _candidates(walls, unit, zone)
    if not isinstance(nonexistent, str):
        walls = np.where(~(is_early | is_late), walls + nonexistent, walls)
        early, late, is_early, is_late, skipped = _candidates(walls, unit, zone)
    is_none, is_two = ~(is_early | is_late) & ~gone, is_early & is_late & (early != late) & ~gone
    if is_none.any() and (nonexistent == "raise" or not isinstance(nonexistent, str)):
        raise OptionError(never_shown(int(walls[is_none][0]), unit, zone) + _OF_NONE)
    if is_two.any() and is_first is None and ambiguous == "raise":
        raise OptionError(twice_shown(int(walls[is_two][0]), unit, zone) + _OF_TWO)
    made = np.where(is_early, early, np.where(is_late, late, skipped - (nonexistent == "shift_backward")))
    if is_first is not None:
        made = np.where(is_two & ~is_first, late, made)
    elif ambiguous == "NaT":
        gone |= is_two
    if nonexistent == "NaT":
        gone |= is_none
    return np.where(gone, NO_TIME, made)


_OF_NONE = (
    '; give tz_localize nonexistent="shift_forward" for when they are set forward, "shift_backward", "NaT", '
    "or a timedelta to move such times by"
)
_OF_TWO = (
    '; give tz_localize ambiguous="infer" for times in their order, "NaT", or booleans, which are True for '
    "the first of two: summer time"
)


def never_shown(wall: int, unit: str, zone: str) -> str:
    """Return the words of an error for a local time that the clocks skip."""
    return f"clocks of {zone} are set forward over {_text(wall, unit)}, which they do not show"


def twice_shown(wall: int, unit: str, zone: str) -> str:
    """Return the words of an error for a local time that occurs twice."""
    return f"clocks of {zone} are set back and show {_text(wall, unit)} twice"


def _text(wall: int, unit: str) -> str:
    return str(np.array([wall]).view(f"M8[{unit}]")[0]).replace("T", " ")


def first_of_two(walls: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], unit: str, zone: str) -> Any:
    """Tell which of the local times that occur twice come first, judged by their order: pandas' "infer".

    Parameters
    ----------
    walls, rows
        Times that clocks show twice, and their rows, ascending: in rows one after another time goes on, but
        for one step back.

    Raises
    ------
    OptionError
        For times without a step back, or with several.
    """
    found = np.zeros(len(rows), np.bool_)
    for run in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(rows) != 1) + 1) if len(rows) else ():
        backs = np.flatnonzero(np.diff(walls[run]) <= 0)
        if len(backs) != 1:
            raise OptionError(
                f'ambiguous="infer": {twice_shown(int(walls[run[0]]), unit, zone)}, and from row '
                f"{int(rows[run[0]])} on times go back {len(backs)} times, not once; give booleans, "
                'which are True for the first of two, or ambiguous="NaT"'
            )
        found[run[: backs[0] + 1]] = True
    return found


def floored(instants: Any, step: int, unit: str, zone: str) -> Any:
    """Round instants down to a step of local time, an hour or less, but not past a change of offset."""
    changes, _ = _steps(unit, zone)
    offset = offsets_from_utc(instants, unit, zone)
    down = instants - (instants + offset) % step
    if not len(changes):
        return down
    starts = np.concatenate([changes[:1], changes])
    start = _table(starts, instants)[_places(instants, changes, unit)]
    return np.where(offsets_from_utc(down, unit, zone) == offset, down, start)


def offset_text(seconds: int) -> str:
    """Return an offset as ISO 8601 writes it, with seconds where it has some."""
    minutes, rest = divmod(abs(seconds), 60)
    text = f"{'-' if seconds < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
    return f"{text}:{rest:02d}" if rest else text


def _steps(unit: str, zone: str) -> Steps:
    changes, offsets = steps_of(zone)
    per_second = PER_SECOND[unit]
    count = int(np.count_nonzero(changes < 2**63 // per_second - 2 * DAY_SECONDS))  # nanoseconds end in 2262
    return changes[:count] * per_second, offsets[: count + 1] * per_second


def _places(instants: Any, changes: npt.NDArray[np.int64], unit: str) -> Any:
    # How many changes lie before, with all that is after a cycle of 400 years moved into it.
    if unit != "ns":
        first, cycle = _LAST_CYCLE * PER_SECOND[unit], _CYCLE * PER_SECOND[unit]
        instants = instants - np.maximum((instants - first) // cycle, 0) * cycle
    return np.searchsorted(_table(changes, instants), instants, side="right")


def _table(values: npt.NDArray[np.int64], like: object) -> Any:
    return asarray(values) if isinstance(like, DistArray) else values

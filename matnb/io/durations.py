"""Lengths of time as text, such as "1 days 02:03:04.5", as pandas writes and reads them, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow

NO_TIME, MOST_TIME = np.iinfo(np.int64).min, np.iinfo(np.int64).max  # the first is NumPy's "not a time"
DAY_SECONDS = 86_400
PER_SECOND = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}
# Units as NumPy writes them, from coarse to fine, and how many of each a day has.
PER_DAY = {"D": 1, "h": 24, "m": 1440} | {unit: DAY_SECONDS * count for unit, count in PER_SECOND.items()}
STORED_UNITS = ("D", *PER_SECOND)  # of columns: Arrow, and so files, have no others
_CLOCK = r"(?P<h>[0-9]{2}):(?P<m>[0-9]{2}):(?P<s>[0-9]{2})(?P<f>\.[0-9]{1,9})?"
_PARTS = rf"^(?P<days>-?[0-9]+) days? (?P<sign>\+?){_CLOCK}$"


def unit_ratio(coarse: str, fine: str) -> int:
    """Return how many of one unit of time are in another.

    Examples
    --------
    >>> unit_ratio("h", "s")
    3600
    """
    return PER_DAY[fine] // PER_DAY[coarse]


def stored_unit(unit: str) -> str:
    """Return the coarsest unit of columns that has all times of a unit; of picoseconds and less, the finest.

    Examples
    --------
    >>> [stored_unit(unit) for unit in ("Y", "D", "h", "us", "ps")]
    ['D', 'D', 's', 'us', 'ns']
    """
    if unit in ("Y", "M", "W"):
        return "D"
    per_day = PER_DAY.get(unit, PER_DAY["ns"])
    return next(one for one in STORED_UNITS if PER_DAY[one] >= per_day)


def duration_texts(counts: npt.NDArray[Any], unit: str) -> list[str | None]:
    """Return counts of a unit as text: "-1 days +23:59:59" is a second below zero; None where one is missing.

    Examples
    --------
    >>> import numpy as np
    >>> duration_texts(np.array([1153, 93784, -1]), "s")
    ['0 days 00:19:13', '1 days 02:03:04', '-1 days +23:59:59']
    >>> duration_texts(np.array([1_500_000]), "us")
    ['0 days 00:00:01.500000']
    """
    found: list[str | None] = []
    if unit == "D":
        counts, unit = np.where(counts == NO_TIME, NO_TIME, counts * DAY_SECONDS), "s"
    per_second = PER_SECOND[unit]
    nanoseconds = 10**9 // per_second
    for count in np.asarray(counts, np.int64).tolist():
        if count == NO_TIME:
            found.append(None)
            continue
        days, rest = divmod(count, DAY_SECONDS * per_second)
        seconds, fraction = divmod(rest, per_second)
        clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        part = f".{fraction * nanoseconds:09d}".removesuffix("000") if fraction else ""  # 6 digits, or 9
        found.append(f"{days} days {'+' if days < 0 else ''}{clock}{part}")
    return found


def durations_of(texts: pyarrow.Array) -> pyarrow.Array | None:
    """Return texts as durations of microseconds, or nanoseconds where some have more than six digits.

    None where a text is no duration, or is beyond 64 bits.
    """
    import pyarrow
    from pyarrow import compute

    parts = compute.extract_regex(texts, _PARTS)
    if parts.null_count > texts.null_count:
        return None
    days, _, hours, minutes, seconds, fraction = (parts.field(place) for place in range(6))
    if compute.any(compute.greater(compute.utf8_length(days), 10), min_count=0).as_py():
        return None  # more than any unit has
    days, hours, minutes, seconds = (_numbers(one) for one in (days, hours, minutes, seconds))
    digits = compute.utf8_rpad(compute.utf8_ltrim(fraction, "."), 9, "0")
    nanoseconds = _numbers(digits)
    is_fine = bool((nanoseconds % 1000).any())
    per_second, part = (10**9, nanoseconds) if is_fine else (10**6, nanoseconds // 1000)
    rest = (hours * 3600 + minutes * 60 + seconds) * per_second + part  # of a day, or of some
    whole = DAY_SECONDS * per_second
    if (
        days.size
        and not -(MOST_TIME // whole) <= days.min() <= days.max() <= (MOST_TIME - int(rest.max())) // whole
    ):
        counts = [int(day) * whole + int(own) for day, own in zip(days, rest, strict=True)]
        if max(map(abs, counts)) > MOST_TIME:
            return None
        made = np.array(counts, np.int64)
    else:
        made = days * whole + rest
    arrow = pyarrow.array(made, mask=np.asarray(texts.is_null()))
    return arrow.cast(pyarrow.duration("ns" if is_fine else "us"))


def _numbers(texts: pyarrow.Array) -> npt.NDArray[np.int64]:
    import pyarrow
    from pyarrow import compute

    known = compute.if_else(compute.equal(texts, ""), "0", texts).fill_null("0")
    return known.cast(pyarrow.int64()).to_numpy()  # type: ignore[no-any-return]  # pyarrow has no types

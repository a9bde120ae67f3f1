"""Lengths of time as text, such as "1 days 02:03:04.5", as pandas writes and reads them, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow

_PER_SECOND = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}
_DAY, _NONE = 86_400, np.iinfo(np.int64).min  # the second is NumPy's "not a time"
_MOST = 2**63 - 1
_CLOCK = r"(?P<h>[0-9]{2}):(?P<m>[0-9]{2}):(?P<s>[0-9]{2})(?P<f>\.[0-9]{1,9})?"
_PARTS = rf"^(?P<days>-?[0-9]+) days? (?P<sign>\+?){_CLOCK}$"


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
        counts, unit = np.where(counts == _NONE, _NONE, counts * _DAY), "s"
    per_second = _PER_SECOND[unit]
    digits = len(str(per_second)) - 1
    for count in np.asarray(counts, np.int64).tolist():
        if count == _NONE:
            found.append(None)
            continue
        days, rest = divmod(count, _DAY * per_second)
        seconds, fraction = divmod(rest, per_second)
        clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        part = f".{fraction:0{digits}d}" if fraction else ""
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
    days, _, hours, minutes, seconds, fraction = (
        np.array(parts.field(place).fill_null("").to_pylist(), object) for place in range(6)
    )
    is_fine = any(len(one) > 7 and one[7:].strip("0") for one in fraction)
    per_second, digits = (10**9, 9) if is_fine else (10**6, 6)
    there = ~np.asarray(texts.is_null())
    counts = np.zeros(len(texts), np.int64)
    for place in np.flatnonzero(there):
        whole = int(days[place]) * _DAY + int(hours[place]) * 3600 + int(minutes[place]) * 60
        whole += int(seconds[place])
        part = int(fraction[place][1 : digits + 1].ljust(digits, "0")) if fraction[place] else 0
        count = whole * per_second + part
        if abs(count) > _MOST:
            return None
        counts[place] = count
    made = pyarrow.array(counts, mask=~there)
    return made.cast(pyarrow.duration("ns" if is_fine else "us"))

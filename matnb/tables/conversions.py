"""Texts of a column as numbers and times, where a user asks for them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from matnb.errors import UnsupportedError
from matnb.io.texts import (
    POINTS,
    WHOLE,
    WITH_OFFSET,
    Marks,
    date_way,
    integers_of,
    values_in,
    without_thousands,
)

if TYPE_CHECKING:
    import pyarrow

# Numbers in brackets are negative, as bookkeepers write them, with the sign of a currency or without.
_IN_BRACKETS = r"^(\p{Sc}?)\s*\(([^()+-]*)\)$"
# Between thousands stand spaces of several widths, and negative numbers may have a minus of their own.
_SPACES, _MINUS = "[\u00a0\u2009\u202f]", "\u2212"
_GROUPED = re.compile(r"\d,\d{3}(\D|$)")
_POINTED = re.compile(r"(^|[^\d.])[1-9]\d{0,2}(\.\d{3})+([^\d.]|$)")
_DECIMAL_COMMA = re.compile(r"\d\.\d{3},\d|(^|\D)\d*,(\d{1,2}|\d{4,})(\D|$)")


def numbers_in(texts: pyarrow.Array, marks: Marks, whole: bool) -> pyarrow.Array:
    """Return each text as a number, null where it is none.

    A sign of a currency in front or at the end is left out, a percent sign divides by 100, and brackets are
    those of negative numbers.

    Parameters
    ----------
    texts
        An Arrow array of strings.
    marks
        How numbers are written.
    whole
        Whether they are whole numbers, int64 or, if one needs it and none is negative, uint64; else float64.
    """
    import pyarrow
    from pyarrow import compute

    texts = _without_signs(texts)
    if marks.thousands == " ":
        texts = compute.replace_substring_regex(texts, _SPACES, " ")
    is_percent = compute.match_substring_regex(texts, r"[0-9.]\s*%$")
    texts = compute.if_else(is_percent, compute.replace_substring_regex(texts, r"\s*%$", ""), texts)
    texts, point = without_thousands(texts, marks), re.escape(marks.decimal)
    infinite = "" if whole else "|(?i:inf(inity)?)"
    is_number = compute.match_substring_regex(
        texts, rf"^[+-]?(([0-9]+({point}[0-9]*)?|{point}[0-9]+)([eE][+-]?[0-9]+)?{infinite})$"
    )
    texts = compute.if_else(is_number, compute.replace_substring(texts, marks.decimal, "."), None)
    texts = compute.replace_substring_regex(texts, r"^\+", "")
    if whole:
        texts = compute.if_else(is_percent, None, compute.replace_substring_regex(texts, r"\.0*$", ""))
        return _integers(compute.if_else(compute.match_substring_regex(texts, WHOLE), texts, None))
    has_exponent = compute.match_substring_regex(texts, "[eE]")
    hundredth = compute.binary_join_element_wise(texts, "e-2", "")  # so that it is rounded once
    plain = compute.if_else(compute.and_not(is_percent, has_exponent), hundredth, texts)
    made = plain.cast(pyarrow.float64())
    divided = compute.divide(made, 100.0)
    return compute.if_else(compute.and_(is_percent, has_exponent), divided, made)


def _without_signs(texts: pyarrow.Array) -> pyarrow.Array:
    # Without signs of currencies and brackets.
    from pyarrow import compute

    texts = compute.replace_substring(compute.utf8_trim_whitespace(texts), _MINUS, "-")
    texts = compute.replace_substring_regex(texts, _IN_BRACKETS, r"-\1\2")
    texts = compute.replace_substring_regex(texts, r"^([+-]?)\s*\p{Sc}\s*([+-]?)", r"\1\2")
    return compute.replace_substring_regex(texts, r"\s*\p{Sc}$", "")


def doubtful_points(texts: pyarrow.Array) -> tuple[str, str] | None:
    """Return a text whose points may be between thousands, and its number; None if some point is not."""
    from pyarrow import compute

    plain = _without_signs(texts)
    pointed = plain.filter(compute.match_substring(plain, "."))
    if not compute.all(compute.match_substring_regex(pointed, POINTS)).as_py():
        return None
    place = compute.index(compute.match_substring_regex(plain, r"^[^.]*[.][0-9]{3}$"), True).as_py()
    return None if place < 0 else (texts[place].as_py(), plain[place].as_py())


def _integers(texts: pyarrow.Array) -> pyarrow.Array:
    # Whole numbers of the narrower type that holds them; null where none does.
    import pyarrow

    made = integers_of(texts)
    if made is not None:
        return made
    digits = [None if text is None else text.lstrip("-0") for text in texts.to_pylist()]
    numbers = [
        None if some is None or len(some) > 20 else int(text)
        for some, text in zip(digits, texts.to_pylist(), strict=True)
    ]
    there = [one for one in numbers if one is not None]
    is_large = max(there, default=0) >= 2**63 and min(there) >= 0
    low, high = (0, 2**64) if is_large else (-(2**63), 2**63)
    kept = [one if one is not None and low <= one < high else None for one in numbers]
    return pyarrow.array(kept, pyarrow.uint64() if is_large else pyarrow.int64())


# A day that there is, alone or with a time of the day.
_LEAP_YEAR = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_ISO_DAY = (
    "(?:[0-9]{4}-(?:(?:0[13-9]|1[0-2])-(?:0[1-9]|[12][0-9]|30)|(?:0[13578]|1[02])-31"
    f"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP_YEAR}-02-29)"
)
_ISO_CLOCK = "[ T](?:[01][0-9]|2[0-3])(?::[0-5][0-9](?::[0-5][0-9](?:[.][0-9]{1,9})?)?)?"
_ISO_TIME = f"^{_ISO_DAY}(?:{_ISO_CLOCK})?$"
_OF_THE_DAY = re.compile("%[HIMSfpcXT]")


def times_in(
    texts: pyarrow.Array, format: str | Sequence[str] | None
) -> tuple[npt.NDArray[np.datetime64], str]:
    """Return each text as a count of a unit since 1970, ``NaT`` where it is none, and the unit.

    Parameters
    ----------
    texts
        An Arrow array of strings.
    format
        As :meth:`datetime.datetime.strptime` has it; or several, of which the first that fits counts. None
        for ISO 8601.
    """
    if format is not None and not isinstance(format, str):
        found = [times_in(texts, one) for one in format]
        unit = "us" if any(unit == "us" for _, unit in found) else "D"
        made = np.full(len(texts), "NaT", f"M8[{unit}]")
        for values, _ in reversed(found):
            made = np.where(np.isnat(values), made, values.astype(made.dtype))
        return made, unit
    if format is None:
        return _iso_times(texts)
    listed = [None if text is None else text.strip() for text in texts.to_pylist()]
    moments = []
    for text in listed:
        try:
            moment = None if text is None else datetime.datetime.strptime(text, format)
        except ValueError:
            moment = None
        if moment is not None and moment.tzinfo is not None:
            raise UnsupportedError(f"to_datetime({format!r}): zones are not read; leave %z and %Z out")
        moments.append(moment)
    unit = "us" if _OF_THE_DAY.search(format) else "D"
    return np.array([np.datetime64("NaT") if one is None else one for one in moments], f"M8[{unit}]"), unit


def _iso_times(texts: pyarrow.Array) -> tuple[npt.NDArray[np.datetime64], str]:
    # In the coarsest unit that holds all that are times.
    from pyarrow import compute

    texts = compute.utf8_trim_whitespace(texts)
    times = compute.if_else(compute.match_substring_regex(texts, _ISO_TIME), texts, None)
    for word, unit in (("date32", "D"), ("timestamp[us]", "us"), ("timestamp[ns]", "ns")):
        if (made := values_in(times, word)) is not None:
            return made.to_numpy(zero_copy_only=False).astype(f"M8[{unit}]"), unit
    # Beside days of long ago, nanoseconds have no room.
    times = compute.replace_substring_regex(times, r"([.][0-9]{6})0+$", r"\1")
    return _iso_times(compute.if_else(compute.match_substring_regex(times, "[.][0-9]{7}"), None, times))


def zoned_times_in(texts: pyarrow.Array) -> pyarrow.Array | None:
    """Return texts of ISO 8601 with offsets as times with a zone, UTC's if several; None if not all are."""
    if texts.null_count == len(texts):
        return None
    found = (values_in(texts, word) for word in WITH_OFFSET)
    return next((one for one in found if one is not None and getattr(one.type, "tz", None)), None)


def form_way(texts: Sequence[str]) -> str:
    """Return what to write for texts that are no times as they are."""
    return f"{date_way(texts, 'reads it')}, a list of forms reads several"


def number_way(texts: Sequence[str]) -> str:
    """Return what to write for texts that are no numbers as they are."""
    if any(re.search(r"\d[ \u00a0\u2009\u202f]\d{3}", text) for text in texts):
        return 'thousands=" " and decimal="," read "1 234,5"'
    if any(_DECIMAL_COMMA.search(text) for text in texts):
        return 'decimal="," and thousands="." read "1.234,5"'
    if any(_POINTED.search(text) for text in texts):
        return 'thousands="." reads "1.234"'
    if any(_GROUPED.search(text) for text in texts):
        return 'thousands="," reads "1,234.5"'
    return 'x.str.replace("USD ", "") leaves words out'


def whole_number_way(texts: Sequence[str]) -> str:
    """Return what to write for texts that are no whole numbers as they are."""
    is_pointed = any(_POINTED.search(text) for text in texts)
    return 'thousands="." reads "1.234"' if is_pointed else "to_float() takes others"

"""How numbers are written for a user: counts, bytes, shares, shapes, seconds."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

_BYTE_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def count_text(number: int) -> str:
    """Return a count with its thousands set apart: ``103,689``."""
    return f"{number:,}"


def plural_text(number: int, noun: str) -> str:
    """Return a count with its noun: ``1 block``, ``1,024 blocks``, ``2 entries``, ``2 arrays``."""
    if number == 1:
        return f"1 {noun}"
    changes = noun.endswith("y") and noun[-2] not in "aeiou"
    return f"{count_text(number)} {noun[:-1] + 'ies' if changes else noun + 's'}"


def axes_text(axes: Sequence[int]) -> str:
    """Return what axes are called, in the plural: ``rows``, ``columns``, ``rows and columns``."""
    names = ("rows", "columns")
    words = [names[axis] if axis < len(names) else f"places of axis {axis}" for axis in axes]
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def bytes_text(num_bytes: int) -> str:
    """Return a size to three digits in decimal units: ``830 kB``."""
    size, unit = float(num_bytes), 0
    # 999.5 and above would be written as 1e+03, so it goes to the next unit
    while size >= 999.5 and unit < len(_BYTE_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.3g} {_BYTE_UNITS[unit]}"


def rate_text(number: float) -> str:
    """Return a large number to three digits with its prefix, before a unit: ``3.2 G``, ``820 M``."""
    place = 0
    while number >= 999.5 and place < len(_BYTE_UNITS) - 1:
        number, place = number / 1000, place + 1
    return f"{number:.3g} {_BYTE_UNITS[place][:-1]}"


def share_text(share: float) -> str:
    """Return a share as a percentage to three digits, never with an exponent: ``0.205 %``."""
    return f"{Decimal(f'{100 * share:.3g}'):f} %"


def shape_text(shape: Sequence[int], sign: str = "x") -> str:
    """Return lengths joined by a sign: ``7115 x 7115``; a 0-d shape is ``scalar``."""
    return f" {sign} ".join(str(length) for length in shape) if shape else "scalar"


def seconds_text(seconds: float) -> str:
    """Return a duration in the unit that suits it: ``12 ms``, ``3.4 s``, ``2 min 5 s``, ``1 h 40 min``."""
    if seconds < 0.9995:
        return f"{1000 * seconds:.3g} ms"
    if seconds < 59.95:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"

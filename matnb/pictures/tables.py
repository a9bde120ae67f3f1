"""A table as a user sees it: its first and last rows under names and types, as text and as HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from matnb.pictures.escaping import escaped
from matnb.pictures.quantities import plural_text

Rows = Sequence[Sequence[str]]
Seen = tuple[Rows, Rows] | None  # the first rows, and the last where there are more
Told = Sequence[tuple[str, str]]  # names and types
_MOST_COLUMNS, _LONGEST = 12, 24  # that are shown, and letters of text
_OF_DIGITS = re.compile(r"(-?\d+ days )?[-+:.\dTZ ]{1,40}")  # numbers, times and durations, which may be text
_CELL = "padding:1px 10px 1px 0;border:none;background:transparent;white-space:pre"
_TYPE = f"{_CELL};opacity:.6;font-weight:normal"
_RIGHT, _LEFT = ";text-align:right;font-variant-numeric:tabular-nums", ";text-align:left"


def value_text(value: object) -> str:
    """Return a value of a row: nothing where it is missing, floats to six places or six digits."""
    if value is None:
        return ""
    if not isinstance(value, float):
        return str(value)
    if value == 0 or 1e-4 <= abs(value) < 1e12:
        return np.format_float_positional(value, precision=6, trim="0")
    return f"{value:.6g}"


def _are_numbers(types: Sequence[str]) -> list[bool]:
    return [one.startswith(("int", "uint", "float")) for one in types]


def _counted(shape: tuple[int, int]) -> str:
    return f"{plural_text(shape[0], 'row')} x {plural_text(shape[1], 'column')}"


def _picked(told: Told) -> list[int | None]:
    # Which columns are shown; None stands for those between.
    if len(told) <= _MOST_COLUMNS:
        return list(range(len(told)))
    half = _MOST_COLUMNS // 2
    return [*range(half), None, *range(len(told) - half, len(told))]


def short_text(text: str) -> str:
    """Return a text on one line, cut where it is long."""
    is_whole = len(text) <= _LONGEST or _OF_DIGITS.fullmatch(text)
    cut = text if is_whole else f"{text[: _LONGEST - 3]}..."
    return "".join(" " if one.isspace() else one for one in cut)


def _grid(told: Told, seen: Seen) -> list[list[str]]:
    # Names, types and rows of what is shown.
    places = _picked(told)
    rows: list[list[str]] = [["..." if place is None else short_text(told[place][0]) for place in places]]
    rows.append(["..." if place is None else told[place][1] for place in places])
    first, last = seen if seen is not None else ([], [])
    for part in (first, [["..."] * len(told)] if last else [], last):
        rows += [
            ["..." if place is None else _cell(row[place], told[place]) for place in places] for row in part
        ]
    return rows


def _cell(value: str, column: tuple[str, str]) -> str:
    # Text may be long; a number or a time that is cut is another one.
    return short_text(value) if column[1] == "text" else value


def table_text(shape: tuple[int, int], told: Told, seen: Seen) -> str:
    """Return how many rows and columns there are, then names, types, and the rows that were looked at."""
    grid = _grid(told, seen)
    widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
    pads = [str.rjust if are else str.ljust for are in _are_numbers(grid[1])]
    lines = [
        "  ".join(pad(text, width) for pad, text, width in zip(pads, row, widths, strict=True)).rstrip()
        for row in grid
    ]
    hint = [] if seen is not None else ["rows not computed: head() shows some"]
    return "\n".join([_counted(shape), *lines, *hint])


def table_html(shape: tuple[int, int], told: Told, seen: Seen) -> str:
    """Return the same as an HTML table."""
    names, types, *rows = _grid(told, seen)
    sides = [_RIGHT if are else _LEFT for are in _are_numbers(types)]

    def cells(row: Sequence[str], style: str, kind: str) -> str:
        made = "".join(
            f'<{kind} style="{style}{side}">{escaped(text)}</{kind}>'
            for text, side in zip(row, sides, strict=True)
        )
        return f"<tr>{made}</tr>"

    body = "".join(cells(row, _CELL, "td") for row in rows)
    hint = "" if seen is not None else "; rows not computed: head() shows some"
    return (
        '<div style="overflow-x:auto"><table style="border-collapse:collapse">'
        f"<thead>{cells(names, _CELL, 'th')}{cells(types, _TYPE, 'th')}</thead><tbody>{body}</tbody></table>"
        f'<div style="opacity:.7">{escaped(_counted(shape) + hint)}</div></div>'
    )

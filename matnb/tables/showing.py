"""A table as a user sees it: its first and last rows under names and types, and what these may cost."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from math import inf

import numpy as np

from matnb.expr.control import Cond, Loop
from matnb.expr.nodes import Expr, MatMul
from matnb.io.durations import DAY_SECONDS, NO_TIME, PER_DAY
from matnb.lazy.array import DistArray
from matnb.lazy.evaluator import evaluator
from matnb.pictures.escaping import escaped
from matnb.pictures.quantities import bytes_text, plural_text
from matnb.program.memory import estimate_bytes

Rows = Sequence[Sequence[str]]
ShownRows = tuple[Rows, Rows] | None  # the first rows, and the last where there are more
ColumnTexts = Sequence[tuple[str, str]]  # names and types
_MOST_COLUMNS, _FEWEST_COLUMNS, _LONGEST = 20, 2, 24  # that are shown, and letters of text
_OF_DIGITS = re.compile(r"[-+:.\dTZdhms ]{1,40}")  # numbers, times and durations, which may be text
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
    return [one.startswith(("int", "uint", "float", "timedelta")) for one in types]


def _counted(shape: tuple[int, int]) -> str:
    return f"{plural_text(shape[0], 'row')} x {plural_text(shape[1], 'column')}"


def _picked(told: ColumnTexts, most: int = _MOST_COLUMNS) -> list[int | None]:
    # Which columns are shown; None stands for those between.
    if len(told) <= most:
        return list(range(len(told)))
    return [*range(most - most // 2), None, *range(len(told) - most // 2, len(told))]


def short_text(text: str) -> str:
    """Return a text on one line, cut where it is long."""
    is_whole = len(text) <= _LONGEST or _OF_DIGITS.fullmatch(text)
    cut = text if is_whole else f"{text[: _LONGEST - 3]}..."
    return "".join(" " if one.isspace() else one for one in cut)


def _grid(told: ColumnTexts, seen: ShownRows, most: int = _MOST_COLUMNS) -> list[list[str]]:
    # Names, types and rows of what is shown.
    places = _picked(told, most)
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


def _fitting(told: ColumnTexts, seen: ShownRows) -> tuple[list[list[str]], list[int]]:
    # As many columns as the terminal is wide, as pandas shows them, and at least the first and the last.
    # What is written elsewhere does not depend on where.
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    widest = shutil.get_terminal_size().columns if is_terminal else inf
    most = min(_MOST_COLUMNS, len(told))
    while True:
        grid = _grid(told, seen, most)
        widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
        if most <= _FEWEST_COLUMNS or sum(widths) + 2 * (len(widths) - 1) <= widest:
            return grid, widths
        most -= 1


def table_text(shape: tuple[int, int], told: ColumnTexts, seen: ShownRows, note: str = "") -> str:
    """Return how many rows and columns there are, then names, types, and the rows that were looked at.

    Parameters
    ----------
    shape, told, seen
        The table's numbers of rows and columns, the names and types of these, and what is known of the rows.
    note
        What is said of the rows: what they took, or why there are none.
    """
    grid, widths = _fitting(told, seen)
    pads = [str.rjust if are else str.ljust for are in _are_numbers(grid[1])]
    lines = [
        "  ".join(pad(text, width) for pad, text, width in zip(pads, row, widths, strict=True)).rstrip()
        for row in grid
    ]
    return "\n".join([_counted(shape), *lines, *([note] if note else [])])


def table_html(shape: tuple[int, int], told: ColumnTexts, seen: ShownRows, note: str = "") -> str:
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
    words = f"{_counted(shape)}; {note}" if note else _counted(shape)
    return (
        '<div style="overflow-x:auto"><table style="border-collapse:collapse">'
        f"<thead>{cells(names, _CELL, 'th')}{cells(types, _TYPE, 'th')}</thead><tbody>{body}</tbody></table>"
        f'<div style="opacity:.7">{escaped(words)}</div></div>'
    )


def label_text(label: object) -> str:
    """Return a label of a row or column of a matrix: times without a T, durations as they are read."""
    if isinstance(label, np.timedelta64):
        unit = np.datetime_data(label.dtype)[0]
        return duration_text(int(label.astype(np.int64)), unit if unit in PER_DAY else "ns")
    if isinstance(label, np.datetime64):
        return str(label).replace("T", " ").removesuffix(".000000")
    return short_text(value_text(label))


def labeled_text(grid: Sequence[Sequence[str]]) -> str:
    """Return rows of text, of which the first and the first of each are labels, as a table of text."""
    widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
    lines = []
    for first, *rest in grid:
        cells = [f"{first:<{widths[0]}}", *map(str.rjust, rest, widths[1:])]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def labeled_html(grid: Sequence[Sequence[str]], note: str = "") -> str:
    """Return the same as an HTML table, and a note below it."""
    rows = []
    for place, (first, *rest) in enumerate(grid):
        kind = "th" if place == 0 else "td"
        cells = "".join(f'<{kind} style="{_CELL}{_RIGHT}">{escaped(one)}</{kind}>' for one in rest)
        rows.append(f'<tr><th style="{_CELL}{_LEFT}">{escaped(first)}</th>{cells}</tr>')
    table = f'<table style="border-collapse:collapse">{"".join(rows)}</table>' if grid else ""
    below = f'<div style="opacity:.7">{escaped(note)}</div>' if note else ""
    return f'<div style="overflow-x:auto">{table}{below}</div>'


def duration_text(count: int, unit: str) -> str:
    """Return a count of a unit as it is read at a glance; "" where it is missing.

    Examples
    --------
    >>> duration_text(1_153_000_000, "us"), duration_text(-93_600, "s"), duration_text(0, "D")
    ('19m 13s', '-1d 2h', '0s')
    >>> duration_text(3_600_500, "ms")
    '1h 0m 0.5s'
    """
    if count == NO_TIME:
        return ""
    per_day = PER_DAY[unit]
    per_second = max(1, per_day // DAY_SECONDS)
    seconds, rest = divmod(abs(count) * max(1, DAY_SECONDS // per_day), per_second)
    minutes, seconds = divmod(seconds, 60)
    fraction = f"{rest:0{len(str(per_second)) - 1}d}".rstrip("0") if rest else ""
    parts = {"d": minutes // 1440, "h": minutes // 60 % 24, "m": minutes % 60}
    texts = [f"{part}{name}" for name, part in parts.items()]
    texts.append(f"{seconds}.{fraction}s" if fraction else f"{seconds}s")
    while len(texts) > 1 and texts[0].startswith("0"):
        del texts[0]
    while len(texts) > 1 and texts[-1] in ("0s", "0m", "0h"):
        del texts[-1]
    return f"{'-' if count < 0 else ''}{' '.join(texts)}"


# Rows that are not there yet are computed to be shown, unless that takes long.

MOST_BYTES = 4 * 10**9  # that are gone through unasked: a few seconds
_TOLD_BYTES = 10**8  # from which on it is said
_PER_TERM = 8  # multiplications of a product in the time that a byte takes


def looked(
    handles: Sequence[DistArray],
    look: Callable[[], object],
    noun: str = "rows",
    way: str = "head() shows some",
) -> str:
    """Fetch rows to be shown, and return what is said of them; nothing that is shown raises.

    Parameters
    ----------
    handles
        The table's columns, or what else is needed.
    look
        Fetches the rows.
    noun, way
        What is fetched, and how a user has it computed.
    """
    if not evaluator().has_session():
        return f"{noun} not computed, since no session is running: {way}"
    try:
        work = work_bytes([one.expression for one in handles])
        if work > MOST_BYTES:
            what = "a loop runs" if work == inf else f"about {bytes_text(int(work))} are gone through"
            return f"{noun} not computed, since {what} for them: {way}"
        look()
    except Exception as error:  # of a file, of the workers, or of a function of the user's
        return f"{noun} not computed: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
    return f"about {bytes_text(int(work))} were gone through for these {noun}" if work >= _TOLD_BYTES else ""


def takes_long(handles: Sequence[DistArray]) -> bool:
    """Return whether rows are computed to be shown, and a user waits for them."""
    if not evaluator().has_session():
        return False
    return _TOLD_BYTES <= work_bytes([one.expression for one in handles]) <= MOST_BYTES


def work_bytes(nodes: Iterable[Expr]) -> float:
    """Return about how many bytes are made to compute expressions, without what is stored; inf with a loop.

    Examples
    --------
    >>> import matnb as mn
    >>> work_bytes([(mn.ones(1000) + mn.ones(1000)).expression])
    16000.0
    """
    total, seen, waiting = 0.0, set[Expr](), list(nodes)
    while waiting:
        node = waiting.pop()
        if node in seen or evaluator().layout(node) is not None:
            continue
        seen.add(node)
        if isinstance(node, Loop | Cond):
            return inf
        waiting += node.operands
        total += estimate_bytes(node, node.shape[0] if node.sparse and node.shape else node.size)
        if isinstance(node, MatMul):  # how many entries a sparse operand has is not known here
            inner = 1 if node.left.sparse or node.right.sparse else node.left.shape[-1]
            total += node.size * inner / _PER_TERM
    return total

"""What is remembered, as a table: a line for each result, with its size, its uses and where it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matnb.pictures.escaping import escaped
from matnb.pictures.quantities import bytes_text, count_text, plural_text, seconds_text, shape_text

MAX_ROWS = 50  # one line sums up the rest
_LONGEST = 44  # characters of an expression in the text
_COLUMNS = ("result", "shape", "dtype", "bytes", "hits", "where", "handle", "to make")
_CELL = "text-align:left;padding:1px 12px 1px 0;border:none;background:transparent"


@dataclass(frozen=True)
class MemoEntry:
    """One result that is remembered.

    Attributes
    ----------
    expression
        The line of code that made it, or the operation.
    shape, dtype, num_bytes
        Of the array; bytes of all blocks.
    hits
        How often it was found instead of being made.
    seconds
        What making it took.
    where
        "value" in this process, on the "workers", or on "disk".
    has_handle
        Whether a name or another handle still stands for it.
    names
        Those names, as far as they are known.
    """

    expression: str
    shape: tuple[int, ...]
    dtype: str
    num_bytes: int
    hits: int
    seconds: float
    where: str
    has_handle: bool
    names: tuple[str, ...] = ()


def memo_text(entries: Sequence[MemoEntry], measured: bool = True) -> str:
    """Return a table of text, the last line with the sums; without ``measured`` the same every time."""
    rows = _rows(entries, measured, _LONGEST)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows] if entries else []
    return "\n".join([*lines, _sum(entries)])


def memo_html(entries: Sequence[MemoEntry], measured: bool = True) -> str:
    """Return the table as HTML."""
    head, *rows = _rows(entries, measured, None)
    table = (
        '<table style="border-collapse:collapse;border:none;margin:0;font-size:13px">'
        f"{_html_row('th', head)}{''.join(_html_row('td', row) for row in rows)}</table>"
    )
    note = f'<div style="font-size:12px;margin:4px 0;opacity:.8">{escaped(_sum(entries))}</div>'
    return f'<div style="overflow-x:auto">{table if entries else ""}{note}</div>'


def _html_row(tag: str, row: Sequence[str]) -> str:
    # An expression may take several lines, a number with its unit may not.
    styles = [_CELL] + [f"{_CELL};white-space:nowrap"] * (len(row) - 1)
    cells = "".join(
        f'<{tag} style="{style}">{escaped(word)}</{tag}>' for style, word in zip(styles, row, strict=True)
    )
    return f'<tr style="background:transparent">{cells}</tr>'


def _gathered(entries: Sequence[MemoEntry]) -> list[list[MemoEntry]]:
    # Those that are written alike, as the first rows of a table's columns, in one.
    alike: dict[tuple[object, ...], list[MemoEntry]] = {}
    for one in entries:
        key = (one.names, one.expression, one.shape, one.dtype, one.where, one.has_handle)
        alike.setdefault(key, []).append(one)
    return list(alike.values())


def _rows(entries: Sequence[MemoEntry], measured: bool, longest: int | None) -> list[tuple[str, ...]]:
    every = [_COLUMNS, *(_row(some, longest) for some in _gathered(entries)[:MAX_ROWS])]
    return every if measured else [row[:-1] for row in every]


def _row(some: Sequence[MemoEntry], longest: int | None) -> tuple[str, ...]:
    one, seconds = some[0], sum(each.seconds for each in some)
    text = ", ".join(one.names) or " ".join(one.expression.split())
    count = f"{count_text(len(some))} of " if len(some) > 1 else ""
    return (
        count + (text if longest is None else _shortened(text, longest - len(count))),
        shape_text(one.shape),
        one.dtype,
        bytes_text(sum(each.num_bytes for each in some)),
        count_text(sum(each.hits for each in some)),
        one.where,
        "yes" if one.has_handle else "",
        seconds_text(seconds) if seconds > 0 else "",
    )


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def _sum(entries: Sequence[MemoEntry]) -> str:
    if not entries:
        return "nothing is remembered"
    words = [plural_text(len(entries), "entry")]
    for where in ("workers", "value", "disk"):
        here = [one for one in entries if one.where == where]
        if here:
            place = {"workers": "on workers", "value": "as values", "disk": "on disk"}[where]
            words.append(f"{bytes_text(sum(one.num_bytes for one in here))} {place}")
    hidden = sum(map(len, _gathered(entries)[MAX_ROWS:]))
    more = f"; {plural_text(hidden, 'more entry')} not shown" if hidden else ""
    return f"{', '.join(words)}{more}"

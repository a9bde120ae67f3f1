"""The parts of an array as a user sees them, as text and as HTML: number, region and worker."""

from __future__ import annotations

from collections.abc import Sequence

from matnb.pictures.escaping import escaped

Rows = Sequence[tuple[str, str, str]]
_HEAD = ("part", "region", "owner")
_CELL = "padding:1px 10px 1px 0;border:none;background:transparent;text-align:left"


def parts_text(title: str, rows: Rows, num_left: int) -> str:
    """Return the title and a line for each part; ``num_left`` are there but not shown."""
    widths = [max(map(len, column)) for column in zip(_HEAD, *rows, strict=True)]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    more = [f"and {num_left:,} more"] if num_left else []
    return "\n".join([title, *lines, *more])


def parts_html(title: str, rows: Rows, num_left: int) -> str:
    """Return the same as an HTML table."""

    def cells(row: Sequence[str], kind: str) -> str:
        return "".join(f'<{kind} style="{_CELL}">{escaped(text)}</{kind}>' for text in row)

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    more = f'<div style="opacity:.7">and {num_left:,} more</div>' if num_left else ""
    return (
        f'<div style="overflow-x:auto"><div>{escaped(title)}</div><table style="border-collapse:collapse">'
        f"<thead><tr>{cells(_HEAD, 'th')}</tr></thead><tbody>{body}</tbody></table>{more}</div>"
    )

"""The load monitor for a person: each worker now and over the last while, as SVG, as HTML and as text."""

from __future__ import annotations

from collections.abc import Sequence

from matnb.pictures.escaping import escaped
from matnb.pictures.monitor_facts import MonitorFacts
from matnb.pictures.monitor_kinds import OTHER
from matnb.pictures.monitor_panels import (
    EVEN_TALL,
    WIDE,
    colors_of,
    faint_of,
    imbalance_panel,
    memory_panel,
    rows_height,
    work_panel,
    work_text,
)
from matnb.pictures.monitor_rows import (
    MOST_POINTS,
    Row,
    head_of,
    imbalances,
    kinds_of,
    load_text,
    memory_text,
    notes_of,
    percent_text,
    progress_of,
    rate_text,
    rows_of,
    state_text,
    when_text,
    window_text,
)
from matnb.pictures.quantities import count_text
from matnb.pictures.standalone_svg import FONT, NAMESPACE, THEMES

MOST_BYTES = 40_000  # of the HTML, and of the SVG
_DETAILS = ((MOST_POINTS, True), (30, True), (25, False), (12, False), (0, False))  # tried in turn
_MANY = 24  # rows for which the first two, and kinds of work in the table, would be too much
_GAP = 24
_HEADS = ("busy", "by kind of work", "memory", "run", "wait", "in", "out")


def monitor_text(facts: MonitorFacts) -> str:
    """Return the load monitor as a table, a line for each worker."""
    lines = [state_text(facts), load_text(facts), *notes_of(facts)]
    rows = _table_rows(rows_of(facts))
    if rows:
        rows = [(head_of(facts), *_HEADS), *rows]
        used = [any(row[place] for row in rows[1:]) for place in range(len(rows[0]))]
        rows = [tuple(word for word, is_used in zip(row, used, strict=True) if is_used) for row in rows]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines += ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join(lines)


def monitor_html(facts: MonitorFacts, *, with_table: bool = True, is_open: bool = False) -> str:
    """Return the load monitor as HTML of at most 40 kB: pictures, and their numbers as a table.

    Parameters
    ----------
    facts
        What is shown.
    with_table
        Whether the numbers are there as a table, which a person opens and a screen reader reads.
    is_open
        Whether it is open.
    """
    rows, window, name = rows_of(facts), window_text(facts), head_of(facts)
    head = _head(facts) + _legend(rows)
    tail = "".join(
        f'<div style="font-size:12px;opacity:.8">{escaped(note)}</div>' for note in notes_of(facts)
    )
    tail += _table(rows, name, is_open) if with_table and rows else ""
    tall = rows_height(len(rows))
    for num_points, with_titles in _DETAILS[2 if len(rows) > _MANY else 0 :]:
        panels = []
        if rows:
            work = work_panel(rows, window, num_points, with_titles, name)
            held = memory_panel(rows, with_titles, name)
            panels.append(_panel(work, tall, f"Load of workers: {load_text(facts)}"))
            panels.append(_panel(held, tall, "Memory, tasks and bytes of workers"))
        panels.append(_panel(_even_panel(facts), EVEN_TALL, "Imbalance over time"))
        side = f"display:flex;flex-wrap:wrap;gap:6px {_GAP}px;margin:6px 0"
        text = f'<div style="line-height:1.4">{head}<div style="{side}">{"".join(panels)}</div>{tail}</div>'
        if len(text.encode()) <= MOST_BYTES:
            break
    return text


def monitor_svg(facts: MonitorFacts) -> str:
    """Return the load monitor as an SVG document of at most 40 kB, for a light or a dark background."""
    rows = rows_of(facts)
    for num_points, with_titles in _DETAILS[2 if len(rows) > _MANY else 0 :]:
        text = _document(facts, rows, num_points, with_titles)
        if len(text.encode()) <= MOST_BYTES:
            break
    return text


def _document(facts: MonitorFacts, rows: Sequence[Row], num_points: int, with_titles: bool) -> str:
    window, name = window_text(facts), head_of(facts)
    y, parts = 14, []
    parts.append(f'<text y="{y}" font-size="13" font-weight="bold">{escaped(state_text(facts))}</text>')
    for words in (load_text(facts), *notes_of(facts)):
        y += 17
        parts.append(f'<text y="{y}" opacity=".8">{escaped(words)}</text>')
    wide = 2 * WIDE + _GAP
    if (done := progress_of(facts)) is not None:
        y += 8
        parts.append(_progress(done, wide, y))
        y += 4
    x, kinds = 0, kinds_of(rows)
    y += 20 if kinds else 0
    for kind, color in colors_of(kinds).items():
        parts.append(f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{color}"{faint_of(kind)}/>')
        parts.append(f'<text x="{x + 14}" y="{y}">{escaped(kind)}</text>')
        x += 32 + 7 * len(kind)
    y += 10
    if rows:
        parts.append(
            f'<g transform="translate(0 {y})">{work_panel(rows, window, num_points, with_titles, name)}</g>'
        )
        shift = f"translate({WIDE + _GAP} {y})"
        parts.append(f'<g transform="{shift}">{memory_panel(rows, with_titles, name)}</g>')
        y += rows_height(len(rows)) + 6
    parts.append(f'<g transform="translate(0 {y})">{_even_panel(facts)}</g>')
    y += EVEN_TALL
    size = f'width="{wide + 8}" height="{y + 8}" viewBox="-4 0 {wide + 8} {y + 8}"'
    label = escaped(f"Load monitor: {state_text(facts)}; {load_text(facts)}")
    return (
        f'<svg{NAMESPACE} role="img" aria-label="{label}" {size} font-family="{FONT}" font-size="11" '
        f'fill="currentColor">{THEMES}{"".join(parts)}</svg>'
    )


def _even_panel(facts: MonitorFacts) -> str:
    return imbalance_panel(imbalances(facts), window_text(facts), when_text(facts))


def _head(facts: MonitorFacts) -> str:
    bar = ""
    if (done := progress_of(facts)) is not None:
        bar = (
            '<svg aria-hidden="true" width="100%" height="4" viewBox="0 0 1000 4" preserveAspectRatio="none" '
            f'style="display:block;margin:3px 0;max-width:728px">{_progress(done, 1000, 0)}</svg>'
        )
    return (
        f'<div style="font-size:13px"><b>{escaped(state_text(facts))}</b></div>'
        f'<div style="font-size:12px;opacity:.8">{escaped(load_text(facts))}</div>{bar}'
    )


def _progress(done: float, wide: int, y: int) -> str:
    return (
        f'<rect y="{y}" width="{wide}" height="4" fill="currentColor" fill-opacity=".2"/>'
        f'<rect y="{y}" width="{round(wide * done)}" height="4" fill="currentColor" fill-opacity=".7"/>'
    )


def _legend(rows: Sequence[Row]) -> str:
    words = []
    for kind, color in colors_of(kinds_of(rows)).items():
        faint = ";opacity:.45" if kind == OTHER else ""
        swatch = f"display:inline-block;width:.8em;height:.8em;margin-right:4px;background:{color}{faint}"
        words.append(f'<span style="margin-right:14px"><span style="{swatch}"></span>{escaped(kind)}</span>')
    return f'<div style="font-size:12px;margin-top:4px">{"".join(words)}</div>' if words else ""


def _panel(inside: str, tall: int, label: str) -> str:
    return (
        f'<svg role="img" aria-label="{escaped(label)}" width="{WIDE + 2}" height="{tall}" '
        f'viewBox="-1 0 {WIDE + 2} {tall}" font-size="11" fill="currentColor" '
        f'style="max-width:100%;height:auto">{inside}</svg>'
    )


def _table_rows(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    kinds = kinds_of(rows)
    return [
        (row.label, "lost", "", "", "", "", "", "")
        if row.is_lost
        else (
            row.label,
            percent_text(row.share),
            work_text(row, kinds),
            memory_text(row),
            count_text(row.num_running),
            count_text(row.num_queued),
            rate_text(row.received_bytes),
            rate_text(row.sent_bytes),
        )
        for row in rows
    ]


def _table(rows: Sequence[Row], name: str, is_open: bool) -> str:
    every = [(name, *_HEADS), *_table_rows(rows)]
    if len(rows) > _MANY:
        every = [(*row[:2], *row[3:]) for row in every]
    head = "".join(f'<th scope="col">{word}</th>' for word in every[0])
    lines = [
        f"<tr><th>{label}</th>{''.join(f'<td>{escaped(word)}</td>' for word in words)}</tr>"
        for label, *words in every[1:]
    ]
    opened = ' open=""' if is_open else ""
    return (
        f'<details{opened} style="font-size:12px;margin:6px 0;opacity:.8">'
        '<summary style="cursor:pointer">as a table</summary><div style="overflow-x:auto">'
        '<table cellpadding="2" style="border-collapse:collapse;border:none;margin:0;font-size:12px;'
        f'text-align:left;white-space:nowrap"><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody>'
        "</table></div></details>"
    )

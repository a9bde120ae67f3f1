"""The load monitor for a user: each worker now and over the last while, as SVG, as HTML and as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from matnb.pictures.escaping import escaped
from matnb.pictures.quantities import bytes_text, count_text, plural_text
from matnb.pictures.svg_style import COLORS
from matnb.program.kinds import (
    ELEMENTWISE,
    EXCHANGE,
    FUNCTIONS,
    JOINING,
    OTHER,
    PICKING,
    PRODUCTS,
    READING,
    REDUCTIONS,
    SORTING,
)
from matnb.widgets.monitor_rows import (
    FULL,
    MOST_POINTS,
    MonitorFacts,
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
    short_memory_text,
    state_text,
    when_text,
    window_text,
    work_of,
)

MOST_BYTES = 40_000  # of the HTML
_DETAILS = ((MOST_POINTS, True), (30, True), (25, False), (12, False), (0, False))  # tried in turn
_MANY = 24  # rows for which the first two, and kinds of work in the table, would be too much
_GAP = 24
_SUMMARY = '<summary style="cursor:pointer">as a table</summary>'
# As high as the line that opens the table, which is not there while the picture changes.
_NO_TABLE = (
    f'<details aria-hidden="true" style="font-size:12px;margin:6px 0;visibility:hidden">{_SUMMARY}</details>'
)
_HEADS = ("by kind of work", "memory", "run", "wait", "in", "out")


def monitor_text(facts: MonitorFacts) -> str:
    """Return the load monitor as a table, a line for each worker."""
    lines = [state_text(facts), load_text(facts), *notes_of(facts)]
    rows = _table_rows(rows_of(facts))
    if rows:
        rows = [(head_of(facts), busy_head(facts), *_HEADS), *rows]
        used = [any(row[place] for row in rows[1:]) for place in range(len(rows[0]))]
        rows = [tuple(word for word, is_used in zip(row, used, strict=True) if is_used) for row in rows]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines += ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join(lines)


def monitor_html(
    facts: MonitorFacts, *, with_table: bool = True, is_open: bool = False, leaves_room: bool = True
) -> str:
    """Return the load monitor as HTML of at most 40 kB: pictures, and their numbers as a table.

    Parameters
    ----------
    facts
        What is shown.
    with_table
        Whether the numbers are there as a table, which a user opens and a screen reader reads.
    is_open
        Whether it is open.
    leaves_room
        Whether the line that opens it has its place where it is not there: buttons take that place.
    """
    rows, window, name = rows_of(facts), window_text(facts), head_of(facts)
    head = _head(facts) + _legend(rows)
    tail = "".join(
        f'<div style="font-size:12px;opacity:.8">{escaped(note)}</div>' for note in notes_of(facts)
    )
    if rows:
        room = _NO_TABLE if leaves_room else ""
        tail += _table(rows, name, busy_head(facts), is_open) if with_table else room
    tall = rows_height(len(rows))
    for num_points, with_titles in _DETAILS[2 if len(rows) > _MANY else 0 :]:
        panels = []
        if rows:
            work = work_panel(rows, window, num_points, with_titles, name, busy_head(facts))
            held = memory_panel(rows, with_titles, name)
            panels.append(_panel(work, tall, f"Load of workers: {load_text(facts)}"))
            panels.append(_panel(held, tall, "Memory, tasks and bytes of workers"))
        panels.append(_panel(_even_panel(facts), EVEN_TALL, "Imbalance over time"))
        side = f"display:flex;flex-wrap:wrap;gap:6px {_GAP}px;margin:6px 0"
        text = f'<div style="line-height:1.4">{head}<div style="{side}">{"".join(panels)}</div>{tail}</div>'
        if len(text.encode()) <= MOST_BYTES:
            break
    return text


def _even_panel(facts: MonitorFacts) -> str:
    return imbalance_panel(imbalances(facts), window_text(facts), when_text(facts))


def busy_head(facts: MonitorFacts) -> str:
    """Return what is above the shares of busy time: of when they are, where nothing runs."""
    return "busy" if facts.is_running else f"busy {when_text(facts)}"


def _head(facts: MonitorFacts) -> str:
    bar = ""
    if (done := progress_of(facts)) is not None:
        bar = (
            '<svg aria-hidden="true" width="100%" height="4" viewBox="0 0 1000 4" preserveAspectRatio="none" '
            f'style="display:block;max-width:728px">{_progress(done, 1000, 0)}</svg>'
        )
    return (
        f'<div style="font-size:13px"><b>{escaped(state_text(facts))}</b></div>'
        f'<div style="font-size:12px;opacity:.8">{escaped(load_text(facts))}</div>'
        f'<div style="height:4px;padding:3px 0">{bar}</div>'  # as high without a bar
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
    return f'<div style="font-size:12px;margin-top:4px;min-height:17px">{"".join(words)}</div>'


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


def _table(rows: Sequence[Row], name: str, busy: str, is_open: bool) -> str:
    every = [(name, busy, *_HEADS), *_table_rows(rows)]
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
        f'{_SUMMARY}<div style="overflow-x:auto">'
        '<table cellpadding="2" style="border-collapse:collapse;border:none;margin:0;font-size:12px;'
        f'text-align:left;white-space:nowrap"><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody>'
        "</table></div></details>"
    )


# What the load monitor draws: how busy workers are, what they hold and exchange, and how evenly.

WIDE = 352  # pixels of a panel
HEAD, EVEN_TALL = 20, 62  # what is above the rows, and the panel of imbalance
_BAR, _BAR_WIDE, _SHARE, _LINE, _LINE_WIDE = 62, 136, 204, 244, 108  # the panel of work
_HOLD, _HOLD_WIDE, _HELD = 62, 40, 107  # the panel of memory
_ENDS = (("run", 218), ("wait", 250), ("in/s", 301), ("out/s", WIDE))  # and where its numbers end
_FEW, _SOME = 16, 32  # rows that are tall, and less so
_FULL_COLOR = "#d55e00"
_PREFERRED = {
    PRODUCTS: 0, ELEMENTWISE: 1, REDUCTIONS: 2, JOINING: 3, READING: 4, EXCHANGE: 5, SORTING: 6, PICKING: 7,
}  # fmt: skip
_INK = (FUNCTIONS, OTHER)  # drawn in the color of text: these two are told apart by how faint they are
_LEAST_TOP = 2.0  # of the scale of imbalance


def row_height(num_rows: int) -> int:
    """Return the pixels from one row to the next."""
    return 22 if num_rows <= _FEW else 16 if num_rows <= _SOME else 12


def rows_height(num_rows: int) -> int:
    """Return the height of a panel of rows."""
    return HEAD + num_rows * row_height(num_rows) + 4


def colors_of(kinds: Sequence[str]) -> dict[str, str]:
    """Return a color for each kind of work: always the same, but for kinds that have no word."""
    taken = {kind: _PREFERRED[kind] for kind in kinds if kind in _PREFERRED}
    for kind in kinds:
        if kind not in taken and kind not in _INK:
            wanted = sum(map(ord, kind)) % len(COLORS)
            free = [one for one in range(len(COLORS)) if one not in taken.values()]
            taken[kind] = wanted if wanted in free else free[0]
    return {kind: COLORS[taken[kind]] if kind in taken else "currentColor" for kind in kinds}


def work_panel(
    rows: Sequence[Row],
    window: str,
    num_points: int,
    with_titles: bool,
    head: str = "worker",
    busy: str = "busy",
) -> str:
    """Return what is inside an ``<svg>``: for each row its busy share by kind of work, and over time."""
    kinds = kinds_of(rows)
    colors = colors_of(kinds)
    bars: dict[str, list[str]] = {kind: [] for kind in kinds}
    frames, lines = [], []
    num_points = min(num_points, max((len(row.history) for row in rows), default=0))
    for row, top, tall in _placed(rows):
        frames.append(f"M{_BAR} {top}h{_BAR_WIDE}v{tall}h-{_BAR_WIDE}zM{_LINE} {top + tall}h{_LINE_WIDE}")
        done = 0.0
        for kind, share in () if row.is_lost else work_of(row, kinds):
            start, stop = round(_BAR_WIDE * done), round(_BAR_WIDE * (done + share))
            done += share
            if stop > start:
                bars[kind].append(f"M{_BAR + start} {top}h{stop - start}v{tall}h-{stop - start}z")
        lines.append(_area(row.history, num_points, top + tall, tall))
    shares = ["lost" if row.is_lost else percent_text(row.share) for row in rows]
    parts = [
        _heads([(0, head), (_BAR, busy), (_LINE, escaped(window))]),
        *(_path(path, f'fill="{colors[kind]}"{faint_of(kind)}') for kind, path in bars.items()),
        _path(lines, 'fill="currentColor" fill-opacity=".5"'),
        _path(frames, 'fill="none" stroke="currentColor" stroke-opacity=".35"'),
        _column(rows, [row.label for row in rows], 0),
        _column(rows, shares, _SHARE),
    ]
    return "".join([*parts, *(_titles(rows, _work_title) if with_titles else ())])


def memory_panel(rows: Sequence[Row], with_titles: bool, head: str = "worker") -> str:
    """Return what is inside an ``<svg>``: for each row its memory, its tasks, and bytes in and out."""
    bars: dict[str, list[str]] = {"frames": [], "held": [], "full": []}
    for row, top, tall in _placed(rows):
        if row.limit_bytes and not row.is_lost:
            bars["frames"].append(f"M{_HOLD} {top}h{_HOLD_WIDE}v{tall}h-{_HOLD_WIDE}z")
            wide = round(_HOLD_WIDE * row.full)
            if wide:
                bars["full" if row.full >= FULL else "held"].append(f"M{_HOLD} {top}h{wide}v{tall}h-{wide}z")
    held = ["lost" if row.is_lost else short_memory_text(row) for row in rows]
    numbers = [
        ("", "", "", "")
        if row.is_lost
        else (
            _short(row.num_running),
            _short(row.num_queued),
            rate_text(row.received_bytes).removesuffix("/s"),
            rate_text(row.sent_bytes).removesuffix("/s"),
        )
        for row in rows
    ]
    ends = "".join(f'<text x="{x}" y="11">{word}</text>' for word, x in _ENDS)
    parts = [
        _heads([(0, head), (_HOLD, "memory")]),
        f'<g opacity=".7" text-anchor="end">{ends}</g>',
        _path(bars["held"], 'fill="currentColor" fill-opacity=".4"'),
        _path(bars["full"], f'fill="{_FULL_COLOR}"'),
        _path(bars["frames"], 'fill="none" stroke="currentColor" stroke-opacity=".35"'),
        _column(rows, [row.label for row in rows], 0),
        _column(rows, held, _HELD if bars["frames"] else _HOLD),
    ]
    for (_, x), words in zip(_ENDS, zip(*numbers, strict=True), strict=True):
        parts.append(_column(rows, words, x, ' text-anchor="end"'))
    return "".join([*parts, *(_titles(rows, _memory_title) if with_titles else ())])


def imbalance_panel(uneven: Sequence[float], window: str, when: str = "now") -> str:
    """Return what is inside an ``<svg>``: the busiest worker's load over the mean, over time."""
    top, tall = HEAD, EVEN_TALL - HEAD - 6
    most = max([_LEAST_TOP, *uneven])
    x = [_BAR + round(_place(place, len(uneven)) * (WIDE - _BAR)) for place in range(len(uneven))]
    y = [top + tall - round(tall * (one - 1.0) / (most - 1.0)) for one in uneven]
    points = " ".join(f"{at},{high}" for at, high in zip(x, y, strict=True))
    line = (
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.5"/>'
        if len(x) > 1
        else ""
    )
    now = f"{uneven[-1]:.2f} {when}".rstrip() if uneven else "not known yet"
    scale = f'<path d="M{_BAR} {top}h{WIDE - _BAR}M{_BAR} {top + tall}h{WIDE - _BAR}" stroke-opacity=".35"/>'
    title = "the busiest worker's seconds over the mean; 1.0 is even"
    return (
        f'<g opacity=".7">{_text(_BAR, 11, f"imbalance: {now}")}'
        f'<text x="{WIDE}" y="11" text-anchor="end">{escaped(window)}</text>'
        f'<g text-anchor="end"><text x="{_BAR - 5}" y="{top + 8}">{most:.1f}</text>'
        f'<text x="{_BAR - 5}" y="{top + tall}">1.0</text></g></g>'
        f'<g stroke="currentColor" fill="none">{scale}</g>{line}'
        f'<rect x="{_BAR}" y="{top}" width="{WIDE - _BAR}" height="{tall}" fill="none" pointer-events="all">'
        f"<title>{title}</title></rect>"
    )


def work_text(row: Row, kinds: Sequence[str]) -> str:
    """Return the shares of the kinds of work that took any."""
    shares = [(kind, share) for kind, share in work_of(row, kinds) if share >= 0.005]
    return ", ".join(f"{kind} {percent_text(share)}" for kind, share in shares)


def _area(history: Sequence[float], num_points: int, floor: int, tall: int) -> str:
    # The newest is at the right edge, whatever there is; of neighbors on one point the largest is seen.
    many = min(num_points, len(history))
    if not many:
        return ""
    values = history
    if many < len(history):
        cuts = [round(len(history) * place / many) for place in range(many + 1)]
        values = tuple([max(history[cuts[place] : cuts[place + 1]]) for place in range(many)])
    wide = _LINE_WIDE / num_points
    x = [_LINE + round(wide * (num_points - many + place)) for place in range(many + 1)]
    y = [round(tall * one) for one in values]
    if not any(y):
        return ""
    parts, begin = [f"M{x[0]} {floor}"], 0
    for place in range(1, many + 1):
        if place == many or y[place] != y[begin]:
            up = y[begin] - (y[begin - 1] if begin else 0)
            parts.append(f"{f'v{-up}' if up else ''}h{x[place] - x[begin]}")
            begin = place
    return f"{''.join(parts)}V{floor}z"


def _placed(rows: Sequence[Row]) -> Iterator[tuple[Row, int, int]]:
    """Yield each row with the top and the height of its bar."""
    step = row_height(len(rows))
    for place, row in enumerate(rows):
        yield row, HEAD + place * step, step - (8 if step > 16 else 4)


def _path(parts: Sequence[str], look: str) -> str:
    whole = "".join(parts)
    return f'<path {look} d="{whole}"/>' if whole else ""


def _heads(words: Sequence[tuple[int, str]]) -> str:
    return f'<g opacity=".7">{"".join(_text(x, 11, word) for x, word in words)}</g>'


def _column(rows: Sequence[Row], words: Sequence[str], x: int, look: str = "") -> str:
    shift = f' transform="translate({x} 0)"' if x else ""
    size = ' font-size="10"' if row_height(len(rows)) < 16 else ""
    texts = (
        _text(0, top + tall - 1, escaped(word), faint=row.is_lost)
        for (row, top, tall), word in zip(_placed(rows), words, strict=True)
        if word
    )
    return f"<g{shift}{size}{look}>{''.join(texts)}</g>"


def _short(number: int) -> str:
    if number < 10_000:
        return count_text(number)
    return f"{number / 1e3:.0f}k" if number < 999_500 else f"{number / 1e6:.0f}M"


def _place(place: int, many: int) -> float:
    return place / (many - 1) if many > 1 else 1.0


def faint_of(kind: str) -> str:
    """Return how faint a kind's color is, as an attribute."""
    return ' fill-opacity=".45"' if kind == OTHER else ""


def _text(x: int, y: int, words: str, faint: bool = False) -> str:
    at = f' x="{x}"' if x else ""
    look = ' opacity=".5"' if faint else ""
    return f'<text{at} y="{y}"{look}>{words}</text>'


def _titles(rows: Sequence[Row], title_of: Callable[[Row, Sequence[str]], str]) -> Iterator[str]:
    kinds = kinds_of(rows)
    yield '<g fill="none" pointer-events="all">'
    for row, top, tall in _placed(rows):
        box = f'y="{top}" width="{WIDE}" height="{tall}"'
        yield f"<rect {box}><title>{escaped(title_of(row, kinds))}</title></rect>"
    yield "</g>"


def _work_title(row: Row, kinds: Sequence[str]) -> str:
    if row.is_lost:
        return f"{row.title}: lost"
    return f"{row.title}: {percent_text(row.share)} busy; {work_text(row, kinds)}".rstrip("; ")


def _memory_title(row: Row, kinds: Sequence[str]) -> str:
    if row.is_lost:
        return f"{row.title}: lost"
    memory = (memory_text(row) or "memory not told") + (", nearly full" if row.full >= FULL else "")
    tasks = f"{count_text(row.num_running)} tasks run, {count_text(row.num_queued)} wait"
    return f"{memory}; {tasks}; {rate_text(row.received_bytes)} in, {rate_text(row.sent_bytes)} out"


# What a report shows in the load monitor's place: counts, which are the same every time.

NOTE = "Loads, memory and seconds are shown live."


@dataclass(frozen=True)
class MonitorCounts:
    """What was heard and does not follow from any clock.

    Attributes
    ----------
    num_workers
        Of the session, 0 without one.
    num_runs, num_tasks, moved_bytes
        Over all runs, those of loops' bodies counted once.
    num_loops, num_iterations
        That ended.
    num_repartitions
        Of those that come out the same every time.
    """

    num_workers: int = 0
    num_runs: int = 0
    num_tasks: int = 0
    moved_bytes: int = 0
    num_loops: int = 0
    num_iterations: int = 0
    num_repartitions: int = 0


def counts_text(counts: MonitorCounts) -> str:
    """Return the counts, and what is not told, in two lines."""
    return f"{_line(counts)}\n{NOTE}"


def counts_html(counts: MonitorCounts) -> str:
    """Return the same as HTML."""
    return (
        f'<div><div style="font-size:13px">{escaped(_line(counts))}</div>'
        f'<div style="font-size:12px;opacity:.8">{NOTE}</div></div>'
    )


def _line(counts: MonitorCounts) -> str:
    if not counts.num_workers:
        return "load monitor: no session yet"
    words = [plural_text(counts.num_workers, "worker"), plural_text(counts.num_runs, "run")]
    words.append(f"{plural_text(counts.num_tasks, 'task')}, {bytes_text(counts.moved_bytes)} moved")
    if counts.num_loops:
        iterations = plural_text(counts.num_iterations, "iteration")
        words.append(f"{plural_text(counts.num_loops, 'loop')} of {iterations} together")
    if counts.num_repartitions:
        words.append(plural_text(counts.num_repartitions, "repartition"))
    return f"load monitor: {', '.join(words)}"

"""The history of balancing for a person: what was re-cut, why, what was predicted and what came."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from matnb.pictures.facts import DecisionFacts, HistoryFacts, StripFacts
from matnb.pictures.quantities import bytes_text, count_text, plural_text, seconds_text
from matnb.pictures.strips import HEIGHT, WIDTH, imbalance_of, load_text, strips

MOST_SHOWN = 20  # the newest; of the others only their number is told
MOST_BYTES = 80_000  # of the HTML; where it would be more, fewer are shown
_FEWER = (MOST_SHOWN, 12, 7, 4, 2)
_TEXT_WIDE = 48  # characters of a strip
_BLOCKS = 12  # cuts that are written out
_MARKS = "0123456789abcdefghijklmnopqrstuvwxyz"
_HEAD = ("arrays", "", "after", "policy", "imbalance", "saves", "costs", "moves", "saved", "cost", "reason")
_CELL = "text-align:left;padding:1px 12px 1px 0;border:none;white-space:nowrap"
_NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'
_STYLE = (
    "<style>svg{color:#1a1a1a;background:#fff}"
    "@media(prefers-color-scheme:dark){svg{color:#e8e8e8;background:#16181c}}</style>"
)
_LEGEND = "A color for each worker, stronger where it takes longer; the dashed line is the mean."
_FONT = "system-ui,Helvetica,Arial,DejaVu Sans,sans-serif"


def is_repeatable(policy: str, acts: bool, by_entries: bool) -> bool:
    """Tell whether a decision comes out the same every time, as it must to be told of in a report."""
    match policy:
        case "entries":
            return True
        case "asked":
            return by_entries
        case "replay":
            return acts
    return False


def history_text(facts: HistoryFacts) -> str:
    """Return the newest decisions as a table, below each that was acted upon its cuts before and after."""
    shown = _shown(facts)
    rows = [_HEAD, *(_row(one, facts.measured) for one in shown)]
    used = [any(row[place] for row in rows[1:]) for place in range(len(_HEAD))]
    rows = [tuple(word for word, is_used in zip(row, used, strict=True) if is_used) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    lines = [_head(facts), *_older(facts)]
    for place, row in enumerate(rows if shown else ()):
        lines.append("  ".join([*map(str.ljust, row, widths), row[-1]]).rstrip())
        if place and shown[place - 1].acts:
            decision = shown[place - 1]
            lines += [f"  before {_text_strip(decision.before)}", f"  after  {_text_strip(decision.after)}"]
    return "\n".join(lines)


def history_html(facts: HistoryFacts) -> str:
    """Return the newest decisions as HTML: strips of those acted upon, a gray line for each refused."""
    for limit in _FEWER:
        text = _page(facts, limit)
        if len(text.encode()) <= MOST_BYTES:
            break
    return text


def _page(facts: HistoryFacts, limit: int) -> str:
    shown = _told(facts)[-limit:]
    parts = [_small(_head(facts)), *map(_small, _older(facts, limit))]
    parts += [_html(one, facts.measured) for one in shown]
    if any(one.acts for one in shown):
        parts.append(_small(_LEGEND))
    if shown:
        parts.append(_table(shown, facts.measured))
    return f"<div>{''.join(parts)}</div>"


def history_svg(facts: HistoryFacts) -> str:
    """Return the newest decisions as an SVG document for a light or a dark background."""
    y, parts = 0, []
    for line in (_head(facts), *_older(facts)):
        y += 16
        parts.append(f'<text x="0" y="{y}" opacity=".8">{escape(line)}</text>')
    for one in _shown(facts):
        y += 28 if one.acts else 24
        look = 'font-weight="bold"' if one.acts else 'opacity=".6"'
        for place, line in enumerate(_wrapped(f"{_title(one)}{_why(one, facts.measured)}")):
            y += 15 if place else 0
            parts.append(f'<text x="0" y="{y}" {look}>{escape(line)}</text>')
        if one.acts:
            parts.append(f'<g transform="translate(0 {y + 8})">{strips(one, facts.measured)}</g>')
            y += HEIGHT + 8
            for line in _promises(one, facts.measured):
                y += 15
                parts.append(f'<text x="0" y="{y}" opacity=".8">{escape(line)}</text>')
    y += 22
    parts.append(f'<text x="0" y="{y}" opacity=".8">{_LEGEND}</text>')
    size = f'width="{WIDTH + 8}" height="{y + 12}" viewBox="-4 0 {WIDTH + 8} {y + 12}"'
    return (
        f'<svg{_NAMESPACE} role="img" aria-label="{escape(_head(facts))}" {size} font-family="{_FONT}" '
        f'font-size="11" fill="currentColor">{_STYLE}{"".join(parts)}</svg>'
    )


def last_text(facts: HistoryFacts) -> str:
    """Return the setting, and the newest decision with what it was to bring and brought."""
    newest = _told(facts)[-1:]
    lines = [f"rebalance={facts.setting}"]
    for one in newest:
        lines += [f"{_title(one)}{_why(one, facts.measured)}", *_promises(one, facts.measured)]
    if not newest:
        lines.append(f"no decision yet{_hidden(facts)}")
    return "\n".join(lines)


def decisions_text(facts: HistoryFacts) -> str:
    """Return a line for each decision."""
    lines = [f"{_title(one)}{_why(one, facts.measured)}" for one in _told(facts)]
    return "\n".join(lines) or f"done{_hidden(facts)}"


def _told(facts: HistoryFacts) -> list[DecisionFacts]:
    return [
        one
        for one in facts.decisions
        if facts.measured or is_repeatable(one.policy, one.acts, one.by_entries)
    ]


def _shown(facts: HistoryFacts) -> list[DecisionFacts]:
    return _told(facts)[-MOST_SHOWN:]


def _head(facts: HistoryFacts) -> str:
    told = _told(facts)
    num_acted = sum(one.acts for one in told)
    counts = f"{plural_text(len(told), 'decision')}, {count_text(num_acted)} to re-cut"
    words = f"rebalance={facts.setting}: {counts}"
    return f"{words}{_hidden(facts)}"


def _hidden(facts: HistoryFacts) -> str:
    if facts.measured or facts.setting in ("entries", "off", "replay"):
        return ""
    return "; those by measured seconds are not told of here"


def _older(facts: HistoryFacts, limit: int = MOST_SHOWN) -> list[str]:
    older = _told(facts)[:-limit]
    lines = []
    if older:
        num_acted = sum(one.acts for one in older)
        lines.append(f"and {plural_text(len(older), 'older decision')}, {num_acted} to re-cut")
    if facts.num_dropped and facts.measured:
        lines.append(f"{plural_text(facts.num_dropped, 'decision')} before them not kept")
    return lines


def _title(one: DecisionFacts) -> str:
    when = f"after iteration {count_text(one.iteration)}" if one.iteration else "before the first iteration"
    how = ", heavy rows shared" if one.acts and one.strategy == "uniform" else ""
    return f"{one.name} {'re-cut' if one.acts else 'kept'} {when} ({one.policy}{how})"


def _why(one: DecisionFacts, measured: bool) -> str:
    times = f", {one.num_repeats} times in a row" if measured and one.num_repeats > 1 else ""
    return f"{times}: {_reason(one, measured)}"


def _reason(one: DecisionFacts, measured: bool) -> str:
    # The numbers of a reason are measured ones, but for entries.
    return one.reason if measured or one.policy == "entries" else one.reason.partition(":")[0]


def _promises(one: DecisionFacts, measured: bool) -> list[str]:
    """Return what was predicted and what was measured, a line each."""
    if not one.acts or not measured:
        return []
    lines = [
        f"predicted: {_saving(one.saving_seconds, one.num_remaining)}costs {seconds_text(one.cost_seconds)}, "
        f"moves {bytes_text(one.moved_bytes)}"
    ]
    if one.gained is not None:
        saved = one.gained.saving_seconds
        words = "" if math.isnan(saved) else f"an iteration takes {_less(saved)}, "
        lines.append(
            f"measured: {words}cost {seconds_text(one.gained.cost_seconds)}, "
            f"moved {bytes_text(one.gained.moved_bytes)}"
        )
    return lines


def _saving(seconds: float, num_remaining: float) -> str:
    if not seconds or not math.isfinite(seconds):
        return ""
    many = "" if math.isinf(num_remaining) else f" in each of {count_text(round(num_remaining))}"
    return f"saves {seconds_text(seconds)}{many}, "


def _less(seconds: float) -> str:
    return f"{seconds_text(abs(seconds))} {'less' if seconds >= 0 else 'more'}"


def _row(one: DecisionFacts, measured: bool) -> tuple[str, ...]:
    gained = one.gained if measured else None
    times = f" {count_text(one.num_repeats)}x" if measured and one.num_repeats > 1 else ""
    has_loads = bool(one.before.loads) and (measured or one.by_entries)
    balance = f"{imbalance_of(one.before.loads):.2f}" if has_loads else ""
    if has_loads and one.acts and one.after.loads:
        balance += f" -> {imbalance_of(one.after.loads):.2f}"
    promised = one.acts and measured
    saved = None if gained is None or math.isnan(gained.saving_seconds) else gained.saving_seconds
    return (
        one.name,
        "re-cut" if one.acts else f"kept{times}",
        count_text(one.iteration),
        one.policy,
        balance,
        seconds_text(one.saving_seconds) if promised and one.saving_seconds > 0 else "",
        seconds_text(one.cost_seconds) if promised else "",
        bytes_text(one.moved_bytes) if one.acts else "",
        "" if saved is None else ("-" if saved < 0 else "") + seconds_text(abs(saved)),
        "" if gained is None else seconds_text(gained.cost_seconds),
        _reason(one, measured),
    )


def _text_strip(strip: StripFacts) -> str:
    # A mark for each part of the rows, that of the worker which owns its middle.
    length, block, marks = strip.cuts[-1], 0, []
    for place in range(_TEXT_WIDE):
        row = (2 * place + 1) * length / (2 * _TEXT_WIDE)
        while block < len(strip.owners) - 1 and strip.cuts[block + 1] <= row:
            block += 1
        marks.append(_MARKS[strip.owners[block] % len(_MARKS)])
    return f"{''.join(marks)}  {_cuts_text(strip)}"


def _cuts_text(strip: StripFacts) -> str:
    inner = strip.cuts[1:-1]
    words = ", ".join(map(count_text, inner[:_BLOCKS])) + (", ..." if len(inner) > _BLOCKS else "")
    return f"{plural_text(len(strip.owners), 'block')}{f', cut at {words}' if inner else ''}"


def _wrapped(text: str, wide: int = 116) -> Iterator[str]:
    while len(text) > wide:
        at = text.rfind(" ", 1, wide)
        at = at if at > 0 else wide
        yield text[:at]
        text = text[at:].lstrip()
    yield text


def _small(text: str) -> str:
    return f'<div style="font-size:12px;opacity:.8">{escape(text)}</div>'


def _html(one: DecisionFacts, measured: bool) -> str:
    title, why = escape(_title(one)), escape(_why(one, measured))
    if not one.acts:
        return f'<div style="font-size:11px;margin:8px 0;opacity:.6">{title}{why}</div>'
    drawing = (
        f'<svg role="img" aria-label="{escape(_described(one, measured))}" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="-1 -1 {WIDTH} {HEIGHT}" font-size="11" fill="currentColor" '
        f'style="max-width:100%;height:auto;display:block;margin-bottom:3px">{strips(one, measured)}</svg>'
    )
    lines = "".join(map(_small, _promises(one, measured)))
    return (
        f'<div style="margin:10px 0"><div style="font-size:13px;margin-bottom:4px"><b>{title}</b>{why}</div>'
        f"{drawing}{lines}</div>"
    )


def _described(one: DecisionFacts, measured: bool) -> str:
    words = f"{one.name}: {_cuts_text(one.before)}; after: {_cuts_text(one.after)}"
    if one.before.loads and (measured or one.by_entries):
        words += (
            f"; imbalance {imbalance_of(one.before.loads):.2f}, predicted {imbalance_of(one.after.loads):.2f}"
        )
    return words


def _table(shown: Sequence[DecisionFacts], measured: bool) -> str:
    """Return all numbers as a table that opens; it is also what a screen reader reads."""
    rows = [(*_row(one, measured), *_ends(one, measured)) for one in shown]
    head = (*_HEAD[:1], "done", *_HEAD[2:], "before", "after", "loads")
    body = "".join(_html_row("td", row) for row in rows)
    return (
        '<details style="font-size:12px;margin:6px 0;opacity:.8"><summary style="cursor:pointer">as a table'
        '</summary><div style="overflow-x:auto">'
        '<table style="border-collapse:collapse;border:none;margin:0;font-size:12px">'
        f"<thead>{_html_row('th', head)}</thead><tbody>{body}</tbody></table></div></details>"
    )


def _ends(one: DecisionFacts, measured: bool) -> tuple[str, str, str]:
    after = _cuts_text(one.after) if one.acts else ""
    if not measured and not one.by_entries:
        return _cuts_text(one.before), after, ""
    unit = "entries" if one.by_entries else "seconds"
    told = [("before", one.before.loads, unit)]
    told += [("predicted", one.after.loads, unit)] if one.acts else []
    if measured and one.gained is not None:
        told.append(("measured", one.gained.loads, "seconds"))
    words = [
        f"{when}: {', '.join(f'worker {owner} {load_text(load, kind)}' for owner, load in loads[:_BLOCKS])}"
        for when, loads, kind in told
        if loads
    ]
    return _cuts_text(one.before), after, "; ".join(words)


def _html_row(tag: str, row: Sequence[str]) -> str:
    scope = ' scope="col"' if tag == "th" else ""
    cells = "".join(f'<{tag}{scope} style="{_CELL}">{escape(word)}</{tag}>' for word in row)
    return f'<tr style="background:transparent">{cells}</tr>'

"""The history of balancing as HTML, in which one goes from decision to decision, and as an SVG document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from matnb.pictures.escaping import escaped, shortened
from matnb.pictures.facts import DecisionFacts, HistoryFacts, StripFacts
from matnb.pictures.history import (
    ENDS,
    HEAD,
    MOST_SHOWN,
    cuts_text,
    ends,
    head,
    is_compared,
    load_text,
    older,
    outcome,
    promises,
    row,
    title,
    told,
    why,
)
from matnb.pictures.imbalance import imbalance
from matnb.pictures.quantities import axes_text, count_text, share_text
from matnb.pictures.svg_style import FONT, NAMESPACE, THEMES, color_of
from matnb.pictures.views import STYLE, View, table_html, views_html

MOST_BYTES = 40_000  # of the HTML; where it would be more, fewer are shown
_FEWER = (30, 24, 20, 17, 14, 12, 10, 8, 6, 4, 2, 1)
_FEW = 3  # are seen at once
_DETAILED = 6  # up to here hovering tells of every block
_LEGEND = "A color for each worker, stronger where it takes longer; the dashed line is the mean."
_LONGEST_HINT = 160  # characters
_LONGEST_NAME = 24  # of arrays, where one decision is chosen among others
_LOOK = "max-width:100%;height:auto;display:block"
_LINE = 18  # pixels of the line of iterations
_MOST_TICKS = 24  # on it, of what was refused


def history_html(facts: HistoryFacts) -> str:
    """Return the history as HTML of at most 40 kB, with all of its numbers as a table.

    Each decision shows its cuts as strips before and after, those considered where it was refused, and where
    in the run it was. Of more than three, one is seen at a time.
    """
    return _fitting(facts)[0]


def num_left_out(facts: HistoryFacts) -> int:
    """Return how many of the listed decisions do not fit the HTML."""
    return _fitting(facts)[1]


def _fitting(facts: HistoryFacts) -> tuple[str, int]:
    for limit in _FEWER:
        text = _page(facts, limit)
        if len(text.encode()) <= MOST_BYTES:
            break
    return text, max(0, len(told(facts)) - limit)


def _page(facts: HistoryFacts, limit: int) -> str:
    every = told(facts)
    shown = _chosen(every, limit)
    left_out = [one for place, one in enumerate(every) if place not in shown]
    parts = [STYLE, _small(head(facts)), *map(_small, older(facts, left_out, "other"))]
    if left_out:
        parts.append(_small('mn.history().save("history.txt") writes all of them'))
    detailed = len(shown) <= _DETAILED
    drawn = {place: decision_html(every, place, facts.measured, detailed) for place in shown}
    if len(shown) <= _FEW:
        parts += drawn.values()
    else:
        names = decision_names([every[place] for place in shown])
        views = [
            View(name, html, _hint(every[place]))
            for name, (place, html) in zip(names, drawn.items(), strict=True)
        ]
        acted = [number for number, place in enumerate(shown) if every[place].acts]
        parts.append(views_html(views, acted[-1] if acted else len(shown) - 1, "decisions"))
    if shown:
        parts.append(_small(_LEGEND))
        rows = [(*row(every[place], facts.measured), *ends(every[place], facts.measured)) for place in shown]
        parts.append(table_html((*HEAD[:1], "done", *HEAD[2:], *ENDS), rows))
    for section in facts.sections:
        parts += map(_small, section.sentences[-limit:][-_FEW:])
        parts.append(table_html(section.head, section.rows[-limit:], section.title))
    return f"<div>{''.join(parts)}</div>"


def _chosen(every: Sequence[DecisionFacts], limit: int) -> list[int]:
    # The newest, but of what was acted upon more than of what was refused.
    acted = [place for place, one in enumerate(every) if one.acts][-max(1, limit * 3 // 4) :]
    kept = [place for place, one in enumerate(every) if not one.acts]
    others = kept[len(kept) - min(len(kept), limit - len(acted)) :]
    return sorted([*acted, *others])


def decision_names(every: Sequence[DecisionFacts]) -> list[str]:
    """Return a short name for each decision: of the arrays, when, and what was decided; each another one."""
    names: list[str] = []
    times: Counter[str] = Counter()
    for one in every:
        when = f"iteration {count_text(one.iteration)}" if one.iteration else "start"
        name = f"{shortened(one.name, _LONGEST_NAME)}, {when}: {outcome(one)}"
        times[name] += 1
        names.append(f"{name} ({times[name]})" if times[name] > 1 else name)
    return names


def _hint(one: DecisionFacts) -> str:
    return title(one)[:_LONGEST_HINT]


def decision_html(
    every: Sequence[DecisionFacts], place: int, measured: bool = True, detailed: bool = True
) -> str:
    """Return one of some decisions: its strips, its numbers, and where in its run it was taken."""
    one = every[place]
    label = _described(one, measured) if detailed else title(one)
    line, words = _iterations(every, place)
    tall = height_of(one)
    halves = (
        (f'role="img" aria-label="{escaped(label)}"', -1, _HALF, drawn_cuts(one, measured, detailed), line),
        ('aria-hidden="true"', _HALF, WIDTH - _HALF, drawn_loads(one, measured, detailed), words),
    )
    drawing = "".join(
        f'<svg {which} width="{wide}" height="{tall + bool(line) * _LINE}" '
        f'viewBox="{left} -1 {wide} {tall + bool(line) * _LINE}" font-size="11" fill="currentColor" '
        f'style="{_LOOK}">{inside}<g transform="translate({left} {tall})">{below}</g></svg>'
        for which, left, wide, inside, below in halves
        if inside
    )
    # The loads are beside the cuts, or below them where there is less room.
    drawing = f'<div style="display:flex;flex-wrap:wrap;margin-bottom:3px">{drawing}</div>'
    lines = "".join(map(_small, promises(one, measured)))
    look = "" if one.acts else ";opacity:.75"
    return (
        '<div style="margin:8px 0">'
        f'<div style="font-size:13px;margin-bottom:4px;overflow-wrap:anywhere{look}">'
        f"<bdi><b>{escaped(title(one))}</b></bdi>{escaped(why(one, measured))}</div>{drawing}{lines}</div>"
    )


def _iterations(every: Sequence[DecisionFacts], place: int) -> tuple[str, str]:
    # The decisions about the same arrays in the same run, each where it was taken; this one is
    # pointed at, and told in words.
    first, last = _run_of(every, place)
    run = [one for one in every[first : last + 1] if one.name == every[place].name]
    end = run[-1].iteration
    if len(run) < 2 or not end:
        return "", ""
    left, wide = 46, 300

    def at(one: DecisionFacts) -> int:
        return left + round(wide * one.iteration / end)

    refused = dict.fromkeys(at(one) for one in run if not one.acts)
    kept = "".join(f"M{x} 7v5" for x in refused) if len(refused) <= _MOST_TICKS else ""
    # Marks that would touch are one.
    acted = "".join(f"M{x} 4v8" for x in {at(one) // 4: at(one) for one in run if one.acts}.values())
    here = at(every[place])
    words = f"iteration {count_text(every[place].iteration)} of {count_text(end)}"
    return (
        f'<path stroke="currentColor" stroke-opacity=".4" d="M{left} 12h{wide}{kept}"/>'
        f'<path stroke="currentColor" stroke-width="2" d="{acted}"/><path d="M{here} 10l-4-8h8z"/>'
    ), f'<text x="8" y="13">{words}</text>'


def _run_of(every: Sequence[DecisionFacts], place: int) -> tuple[int, int]:
    # A run's iterations count up; where they begin again, another one began.
    name = every[place].name
    first = last = place
    for other in range(place - 1, -1, -1):
        if every[other].name == name:
            if every[other].iteration > every[first].iteration:
                break
            first = other
    for other in range(place + 1, len(every)):
        if every[other].name == name:
            if every[other].iteration < every[last].iteration:
                break
            last = other
    return first, last


def _described(one: DecisionFacts, measured: bool) -> str:
    words = f"{title(one)}: {cuts_text(one.before)}"
    if is_compared(one):
        words += f"; {'after' if one.acts else 'considered'}: {cuts_text(one.after)}"
    if one.before.loads and (measured or one.by_entries):
        words += f"; imbalance {imbalance(dict(one.before.loads)):.2f}"
        if is_compared(one) and one.after.loads:
            words += f", predicted {imbalance(dict(one.after.loads)):.2f}"
    return words


def _small(text: str) -> str:
    return f'<div style="font-size:12px;opacity:.8">{escaped(text)}</div>'


def history_svg(facts: HistoryFacts) -> str:
    """Return the newest decisions as an SVG document for a light or a dark background."""
    every = told(facts)
    shown = every[-MOST_SHOWN:]
    y, parts = 0, []
    for line in (head(facts), *older(facts, every[:-MOST_SHOWN])):
        y += 16
        parts.append(f'<text x="0" y="{y}" opacity=".8">{escaped(line)}</text>')
    for one in shown:
        y += 28 if one.acts else 24
        look = 'font-weight="bold"' if one.acts else 'opacity=".7"'
        for place, line in enumerate(_wrapped(f"{title(one)}{why(one, facts.measured)}")):
            y += 15 if place else 0
            parts.append(f'<text x="0" y="{y}" {look}>{escaped(line)}</text>')
        if is_compared(one):
            parts.append(f'<g transform="translate(0 {y + 8})">{drawn_strips(one, facts.measured)}</g>')
            y += height_of(one) + 8
            for line in promises(one, facts.measured):
                y += 15
                parts.append(f'<text x="0" y="{y}" opacity=".8">{escaped(line)}</text>')
    if any(map(is_compared, shown)):
        y += 22
        parts.append(f'<text x="0" y="{y}" opacity=".8">{_LEGEND}</text>')
    for sentence in (one for section in facts.sections for one in section.sentences[-MOST_SHOWN:]):
        for place, line in enumerate(_wrapped(sentence)):
            y += 15 if place else 24
            parts.append(f'<text x="0" y="{y}">{escaped(line)}</text>')
    size = f'width="{WIDTH + 8}" height="{y + 12}" viewBox="-4 0 {WIDTH + 8} {y + 12}"'
    return (
        f'<svg{NAMESPACE} role="img" aria-label="{escaped(head(facts))}" {size} font-family="{FONT}" '
        f'font-size="11" fill="currentColor">{THEMES}{"".join(parts)}</svg>'
    )


def _wrapped(text: str, wide: int = 116) -> Iterator[str]:
    while len(text) > wide:
        at = text.rfind(" ", 1, wide)
        at = at if at > 0 else wide
        yield text[:at]
        text = text[at:].lstrip()
    yield text


# A decision as strips of rows, before and after: blocks to scale, owners by color, loads by shade, bars.

WIDTH, HEIGHT, _HALF = 700, 64, 352  # of a drawing, in pixels, and where its loads begin
_TALL, _BELOW = 26, 34  # a strip, and from the upper one to the lower
_LEFT, _WIDE = 46, 300  # the strips
_BARS, _BARS_WIDE, _WORDS = (360, 536), 64, 8  # bars of loads, and from them to their words
_MOST_BARS, _MOST_LINES = 32, 33
_MOST_NAMED, _MOST_TITLED = 8, 16  # bars and blocks of which hovering tells
_NUM_SHADES = 6
_LIGHTEST = 0.3

Loads = Sequence[tuple[int, float]]


def height_of(decision: DecisionFacts) -> int:
    """Return how tall its drawing is, in pixels: a strip where no other cuts were considered."""
    return HEIGHT if is_compared(decision) else HEIGHT - _BELOW


def drawn_strips(decision: DecisionFacts, measured: bool = True, detailed: bool = True) -> str:
    """Return what is inside an ``<svg>`` of ``WIDTH`` by ``height_of(decision)`` pixels.

    Parameters
    ----------
    decision
        Whose cuts are drawn: before and after, or considered where it was refused.
    measured
        Whether loads that are seconds are drawn, too.
    detailed
        Whether hovering tells of blocks and bars.
    """
    return drawn_cuts(decision, measured, detailed) + drawn_loads(decision, measured, detailed)


def drawn_cuts(decision: DecisionFacts, measured: bool, detailed: bool) -> str:
    """Return the strips, which are at the left."""
    compared, before, after = is_compared(decision), decision.before, decision.after
    scale = _most(decision) if measured or decision.by_entries else 0.0
    unit = ("entries" if decision.by_entries else "seconds") if scale > 0 else ""
    parts = list(_strip("before" if compared else "cuts", before, 0, scale))
    frames, lines = [f"M{_LEFT} 0h{_WIDE}v{_TALL}h-{_WIDE}z"], _lines(before, 0)
    if compared:
        parts += _strip("after" if decision.acts else "or", after, _BELOW, scale)
        frames.append(f"M{_LEFT} {_BELOW}h{_WIDE}v{_TALL}h-{_WIDE}z")
        lines += _lines(after, _BELOW)
    parts.append('<g fill="none" stroke="currentColor" stroke-opacity=".8">')
    if lines:
        parts.append(f'<path stroke-opacity=".55" d="{lines}"/>')
    parts.append(f'<path d="{"".join(frames)}"/></g>')
    if detailed:
        parts += _titles(before, 0, unit)
        parts += _titles(after, _BELOW, unit) if compared else ()
    return "".join(parts)


def drawn_loads(decision: DecisionFacts, measured: bool, detailed: bool) -> str:
    """Return the bars, which are at the right; nothing where they are not to be told."""
    if not (measured or decision.by_entries):
        return ""
    most, named = _most(decision), _MOST_NAMED if detailed else 0
    unit = "entries" if decision.by_entries else "seconds"
    told = [(decision.before.loads, (_BARS[0], 0), most, "imbalance", unit)]
    if is_compared(decision):
        told.append((decision.after.loads, (_BARS[0], _BELOW), most, "predicted", unit))
    if measured and decision.gained is not None and decision.gained.loads:
        gained = decision.gained.loads
        alike = 0.0 if decision.by_entries else most  # entries and seconds are no lengths of one scale
        top = max([alike, *(load for _, load in gained)])
        told.append((gained, (_BARS[1], _BELOW), top, "measured", "seconds"))
    bars = "".join(bar for one in told for bar in _bars(*one, named))
    means = "".join(line for one in told for line in _mean(*one[:3]))
    if means:
        look = 'fill="none" stroke="currentColor" stroke-opacity=".8" stroke-dasharray="3 2"'
        bars += f'<path {look} d="{means}"/>'
    return bars


def _most(decision: DecisionFacts) -> float:
    return max([load for _, load in (*decision.before.loads, *decision.after.loads)], default=0.0)


def _shown_loads(strip: StripFacts) -> list[float]:
    # Of each block what its worker would take if all its blocks were like it, so that more and smaller blocks
    # look as few large ones do. Where blocks were not measured, what the worker takes.
    if strip.block_loads:
        counts = Counter(strip.owners)
        return [load * counts[owner] for load, owner in zip(strip.block_loads, strip.owners, strict=True)]
    loads = dict(strip.loads)
    return [loads.get(owner, 0.0) for owner in strip.owners]


def _places(strip: StripFacts) -> list[int]:
    length = max(1, strip.cuts[-1])
    return [_LEFT + round(_WIDE * cut / length) for cut in strip.cuts]


def _strip(label: str, strip: StripFacts, top: int, most: float) -> Iterator[str]:
    yield f'<text x="0" y="{top + 17}">{label}</text>'
    x, loads = _places(strip), _shown_loads(strip)
    paths: dict[tuple[str, float], list[str]] = {}
    start, seen = 0, -1
    looks = [(color_of(owner), _shade(load, most)) for owner, load in zip(strip.owners, loads, strict=True)]
    for block in range(1, len(looks) + 1):  # neighbors that look the same are one rectangle
        if block < len(looks) and looks[block] == looks[start]:
            continue
        wide = max(1, x[block] - x[start])
        if x[start] + wide > seen:  # else it would lie on pixels that are drawn already
            paths.setdefault(looks[start], []).append(f"M{x[start]} {top}h{wide}v{_TALL}h-{wide}z")
            seen = x[start] + wide
        start = block
    for (color, shade), path in sorted(paths.items()):
        yield f'<path fill="{color}" fill-opacity="{shade:g}" d="{"".join(path)}"/>'


def _lines(strip: StripFacts, top: int) -> str:
    x = _places(strip)
    return "".join(f"M{at} {top}v{_TALL}" for at in dict.fromkeys(x[1:-1])) if len(x) <= _MOST_LINES else ""


def _titles(strip: StripFacts, top: int, unit: str) -> Iterator[str]:
    if len(strip.owners) > _MOST_TITLED:
        return
    x = _places(strip)
    yield '<g fill="none" pointer-events="all">'
    for block, owner in enumerate(strip.owners):
        start, stop = strip.cuts[block], strip.cuts[block + 1]
        share = share_text((stop - start) / max(1, strip.cuts[-1]))
        part = f"{axes_text((strip.axis,))} {count_text(start)} to {count_text(stop)}, {share}"
        load = f"; {load_text(strip.block_loads[block], unit)}" if unit and strip.block_loads else ""
        box = f'x="{x[block]}" y="{top}" width="{max(1, x[block + 1] - x[block])}" height="{_TALL}"'
        yield f"<rect {box}><title>{part}; worker {owner}{load}</title></rect>"
    yield "</g>"


def _shade(load: float, most: float) -> float:
    if most <= 0:
        return 0.75
    step = round(_NUM_SHADES * min(1.0, max(0.0, load / most)))
    return round(_LIGHTEST + (1 - _LIGHTEST) * step / _NUM_SHADES, 2)


def _bars(
    loads: Loads, corner: tuple[int, int], most: float, word: str, unit: str, named: int
) -> Iterator[str]:
    left, top = corner
    if not loads or most <= 0:
        return
    shown = _gathered(loads)
    step = _BARS_WIDE / len(shown)
    gap = 2 if step >= 6 else 0
    paths: dict[str, list[str]] = {}
    for place, (owner, load) in enumerate(shown):
        tall = round(_TALL * load / most)
        start, stop = left + round(place * step), left + round((place + 1) * step) - gap
        bar = f"M{start} {top + _TALL}v-{tall}h{max(1, stop - start)}v{tall}z"
        if len(shown) > named:
            paths.setdefault(color_of(owner), []).append(bar)
        else:
            title = escaped(f"worker {owner}: {load_text(load, unit)}")
            yield f'<path fill="{color_of(owner)}" d="{bar}"><title>{title}</title></path>'
    for color, bars in paths.items():
        yield f'<path fill="{color}" d="{"".join(bars)}"/>'
    words = f"{imbalance(dict(loads)):.2f} {word}"
    yield f'<text x="{left + _BARS_WIDE + _WORDS}" y="{top + 17}">{words}</text>'


def _mean(loads: Loads, corner: tuple[int, int], most: float) -> list[str]:
    if not loads or most <= 0:
        return []
    left, top = corner
    height = top + _TALL - round(_TALL * sum(load for _, load in loads) / len(loads) / most)
    return [f"M{left - 2} {height}h{_BARS_WIDE + 4}"]


def _gathered(loads: Loads) -> Loads:
    # Of neighbors that have one bar the heaviest is shown.
    if len(loads) <= _MOST_BARS:
        return loads
    starts = [len(loads) * bar // _MOST_BARS for bar in range(_MOST_BARS + 1)]
    return [max(loads[start:stop], key=lambda one: one[1]) for start, stop in pairwise(starts)]

"""A nested array as a user sees it: facts, its lengths as bars, and a map of where the long segments are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import log, log1p

from matnb.pictures.arrays import owner_legend, shown_html, swatch
from matnb.pictures.escaping import escaped
from matnb.pictures.facts import NestedFacts
from matnb.pictures.quantities import bytes_text, count_text, plural_text, share_text
from matnb.pictures.svg_style import color_of

_WIDE, _TALL, _GAP, _BELOW = 440, 44, 8, 14  # of the map, in units of half a pixel; below it are the blocks
_SHADES = tuple(round(0.12 + 0.88 * step / 7, 2) for step in range(8))
_MOST_TITLED = 24  # of the longest segments
_LONG = 64  # a segment of more than one in so many values is marked
_ABOVE = 10  # of the map, where these marks are
_MOST_LINES, _MOST_SHOWN = 12, 120  # segments and values that are written out
_BAR, _BARS_TALL = 12, 72  # of the histogram, in pixels
_MOST_BARS = 48


def nested_text(facts: NestedFacts) -> str:
    """Return values that are known, then a line: how many segments and values, the longest, the strategy."""
    values = facts.values
    words = [
        f"{plural_text(facts.segments[-1], 'segment')} of {count_text(facts.places[-1])} {values.dtype} "
        "values",
        f"the longest of {count_text(facts.longest)}",
        facts.strategy,
    ]
    return "\n".join([*_values(facts), f"NestedArray: {', '.join(words)}"])


def _values(facts: NestedFacts) -> list[str]:
    # A line for each segment, where few are all there is; else the values, as those of an array.
    if not facts.values.value:
        return []
    numbers = facts.values.value.strip("[]").split()
    spans = list(zip(pairwise(facts.segments), pairwise(facts.places), strict=True))
    is_known = all(last - first == 1 or start == stop for (first, last), (start, stop) in spans)
    if len(numbers) != facts.places[-1] or len(numbers) > _MOST_SHOWN or not is_known:
        return [f"values {facts.values.value}"]
    lines = [
        f"[{' '.join(numbers[start:stop])}]"
        for (first, last), (start, stop) in spans
        for _ in range(last - first)
    ]
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES // 2], "...", *lines[-_MOST_LINES // 2 :]]
    return [*"\n ".join(["", *lines])[2:].join("[]").splitlines()]


def nested_html(facts: NestedFacts) -> str:
    """Return what is known as HTML of at most 20 kB: few values, the map, and the bars beside a table."""
    drawings = f'<div style="flex:none;max-width:100%">{segment_map(facts)}{length_bars(facts)}</div>'
    return shown_html("\n".join(_values(facts)), "13px", drawings, _table(facts))


def _table(facts: NestedFacts) -> list[tuple[str, str]]:
    values, count = facts.values, facts.segments[-1]
    mean = facts.places[-1] / count if count else 0.0
    rows = [
        ("segments", count_text(count)),
        ("values", f"{count_text(facts.places[-1])} {escaped(values.dtype)}"),
        ("lengths", f"mean {mean:,.4g}, longest {count_text(facts.longest)}; bars: segments by length"),
    ]
    if count and facts.histogram[0]:
        rows.append(("empty", f"{count_text(facts.histogram[0])} ({share_text(facts.histogram[0] / count)})"))
    if facts.is_sparse:
        rows.append(("positions", "with gaps"))
    why = f": {escaped(facts.reason)}" if facts.reason else ""
    rows.append(("strategy", f"<b>{facts.strategy}</b>{why}"))
    if shades := _legend(facts):
        rows.append(("map", f"{shades} a segment"))
    if count := len(_long(facts)):
        rows.append(("marked", f"{plural_text(count, 'segment')} of more than 1/{_LONG} of all values"))
    if values.num_bytes is not None:
        rows.append(("bytes", bytes_text(values.num_bytes)))
    if values.stored:
        blocks = plural_text(len(facts.cuts) - 1, "block")
        rows.append(("layout", f"{blocks}: {owner_legend(values)}"))
    else:
        rows.append(("state", "given" if values.is_given else "values not computed"))
    return rows


# The segment map: the places of the values from left to right, darker where segments are longer; below it
# the blocks, in the colors of their workers.


def segment_map(facts: NestedFacts) -> str:
    """Return where the long segments are as one ``<svg>``; an empty text where there is no value.

    It is drawn from what is known of the structure here. Segments of more than one in 64 values are marked
    above it.
    """
    total = facts.places[-1]
    if not total:
        return ""
    height = _ABOVE + _TALL + _GAP + _BELOW
    words = f"{plural_text(facts.segments[-1], 'segment')}, the longest of {count_text(facts.longest)}"
    parts = [
        f'<svg role="img" aria-label="{escaped(f"Segment map: {words} values")}" '
        f'width="{_WIDE // 2 + 2}" height="{height // 2 + 2}" '
        f'viewBox="-2 {-2 - _ABOVE} {_WIDE + 4} {height + 4}" '
        'style="display:block;max-width:100%" shape-rendering="crispEdges">',
        *_fills(facts, total),
        f'<rect width="{_WIDE}" height="{_TALL}" fill="none" stroke="currentColor" stroke-width="2"/>',
        *_blocks(facts, total),
        *_titles(facts, total),
    ]
    return "".join([*parts, "</svg>"])


def _spans(facts: NestedFacts) -> list[tuple[int, int, int, int]]:
    # Between places that are known: where each span begins and ends, its first segment and how many it has.
    spans = []
    for place in range(len(facts.places) - 1):
        start, stop = facts.places[place : place + 2]
        if start < stop:
            first, last = facts.segments[place : place + 2]
            spans.append((start, stop, first, last - first))
    return spans


def _long(facts: NestedFacts) -> list[tuple[int, int]]:
    # Where the segments begin and end of which each has a good part of all values.
    return [
        (start, stop)
        for start, stop, _, count in _spans(facts)
        if count == 1 and _LONG * (stop - start) > facts.places[-1]
    ]


def _level(length: float, least: float, most: float) -> int:
    # The scale spans a factor of ten at least, so that nearly equal lengths look nearly equal.
    if least == most:
        return len(_SHADES) // 2
    least = min(least, most / 10)
    part = log(max(length, least) / least) / log(most / least)
    return round(part * (len(_SHADES) - 1))


def _means(facts: NestedFacts) -> list[float]:
    return [(stop - start) / count for start, stop, _, count in _spans(facts)]


def _fills(facts: NestedFacts, total: int) -> Iterator[str]:
    means = _means(facts)
    least, most = min(means), max(means)
    looks: list[tuple[int, int, int]] = []  # neighbors that look the same are one rectangle
    for (start, stop, _, _), mean in zip(_spans(facts), means, strict=True):
        left, right = round(_WIDE * start / total), round(_WIDE * stop / total)
        level = _level(mean, least, most)
        if looks and looks[-1][0] == level:
            left = looks.pop()[1]
        looks.append((level, left, right))
    paths: dict[int, list[str]] = {}
    for level, left, right in looks:
        paths.setdefault(level, []).append(f"M{left} 0H{max(right, left + 1)}V{_TALL}H{left}z")
    for level, path in sorted(paths.items()):
        yield f'<path fill="currentColor" fill-opacity="{_SHADES[level]:g}" d="{"".join(path)}"/>'
    if marks := [(_WIDE * start // total, _WIDE * stop // total) for start, stop in _long(facts)]:
        lines = "".join(f"M{left + 1} {-_ABOVE + 3}H{max(right - 1, left + 2)}" for left, right in marks)
        yield f'<path stroke="currentColor" stroke-width="4" d="{lines}"/>'


def _blocks(facts: NestedFacts, total: int) -> Iterator[str]:
    # A strip of blocks, to scale; without owners while the values are nowhere.
    top = _TALL + _GAP
    owners = facts.values.owners if len(facts.values.owners) == len(facts.cuts) - 1 else ()
    x = [round(_WIDE * cut / total) for cut in facts.cuts]
    for block, (left, right) in enumerate(pairwise(x)):
        look = f'fill="{color_of(owners[block])}"' if owners else 'fill="currentColor" fill-opacity=".25"'
        yield f'<rect x="{left}" y="{top}" width="{max(1, right - left)}" height="{_BELOW}" {look}/>'
    if 2 < len(x) <= _WIDE // 6:
        ticks = "".join(f"M{at} {_TALL - 6}V{top + _BELOW}" for at in x[1:-1])
        yield f'<path stroke="currentColor" stroke-width="2" d="{ticks}"/>'


def _titles(facts: NestedFacts, total: int) -> Iterator[str]:
    longest = sorted(_spans(facts), key=lambda one: (one[0] - one[1]) / one[3])[:_MOST_TITLED]
    yield '<g fill="none" pointer-events="all">'
    for start, stop, first, count in sorted(longest):
        left, wide = round(_WIDE * start / total), max(2, round(_WIDE * (stop - start) / total))
        which = f"segment {count_text(first)}" if count == 1 else f"{count_text(count)} segments"
        words = f"{which}: {plural_text(stop - start, 'value')} from {count_text(start)} on"
        yield f'<rect x="{left}" y="0" width="{wide}" height="{_TALL}"><title>{words}</title></rect>'
    yield "</g>"


def _legend(facts: NestedFacts) -> str:
    if not facts.places[-1]:
        return ""
    means = _means(facts)
    least, most = min(means), max(means)
    first = _level(least, least, most)
    last = _level(most, least, most)
    shades = "".join(swatch("currentColor", shade, margin=0) for shade in _SHADES[first : last + 1])
    ends = [count_text(round(one)) if one >= 1 else "under 1" for one in (least, most)]
    return f"{ends[0]} {shades} {ends[1]} values" if most > least else f"{shades} {ends[1]} values"


# How many segments have which length, a bar for each power of two.


def length_bars(facts: NestedFacts) -> str:
    """Return how many segments have no value, 1, 2 to 3, 4 to 7, as bars of an ``<svg>``, by logarithms."""
    counts = facts.histogram[:_MOST_BARS]
    if not facts.segments[-1]:
        return ""
    most = log1p(max(counts))
    bar = min(_BAR, (_WIDE // 2) // len(counts))
    wide = max(bar * len(counts), 120)
    words = "; ".join(
        f"{_lengths(place)}: {count_text(count)}" for place, count in enumerate(counts) if count
    )
    parts = [
        f'<svg role="img" aria-label="{escaped(f"Segments by length: {words}")}" width="{_WIDE // 2 + 2}" '
        f'height="{_BARS_TALL + 20}" viewBox="-1 0 {_WIDE // 2 + 2} {_BARS_TALL + 20}" font-size="10" '
        'fill="currentColor" style="display:block;max-width:100%;margin-top:4px">'
    ]
    for place, count in enumerate(counts):
        tall = max(2, round((_BARS_TALL - 12) * log1p(count) / most)) if count else 0
        words = f"{plural_text(count, 'segment')} of length {_lengths(place)}"
        look = "" if tall else ' fill="none" pointer-events="all"'
        box = f'x="{place * bar}" y="{_BARS_TALL - (tall or _BARS_TALL)}" height="{tall or _BARS_TALL}"'
        parts.append(f'<rect {box} width="{bar - 2}" fill-opacity=".7"{look}><title>{words}</title></rect>')
    parts.append(f'<path d="M0 {_BARS_TALL + 0.5}h{wide}" stroke="currentColor" stroke-opacity=".5"/>')
    parts.append(f'<text x="0" y="{_BARS_TALL + 13}">{_lengths(0)}</text>')
    if len(counts) > 3:
        end = bar * len(counts) - 2
        last = _lengths(len(counts) - 1)
        parts.append(f'<text x="{max(end, 60)}" y="{_BARS_TALL + 13}" text-anchor="end">{last}</text>')
    return "".join([*parts, "</svg>"])


def _lengths(place: int) -> str:
    # What lengths are counted together.
    if place < 2:
        return str(place)
    return f"{count_text(2 ** (place - 1))} to {count_text(2**place - 1)}"

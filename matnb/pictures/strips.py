"""A decision as strips of rows, before and after: blocks to scale, owners by color, loads by shade, bars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise

from matnb.pictures.blockmap import color_of
from matnb.pictures.facts import DecisionFacts, StripFacts
from matnb.pictures.quantities import count_text, plural_text, seconds_text, share_text

WIDTH, HEIGHT = 700, 64  # of a drawing, in pixels
_TALL, _BELOW = 26, 34  # a strip, and from the upper one to the lower
_LEFT, _WIDE = 46, 300  # the strips
_BARS, _BARS_WIDE, _WORDS = (360, 536), 64, 8  # bars of loads, and from them to their words
_MOST_BARS, _MOST_LINES = 32, 33
_MOST_NAMED, _MOST_TITLED = 8, 16  # bars and blocks of which hovering tells
_NUM_SHADES = 6
_LIGHTEST = 0.3

Loads = Sequence[tuple[int, float]]


def strips(decision: DecisionFacts, measured: bool = True) -> str:
    """Return what is inside an ``<svg>`` of ``WIDTH`` by ``HEIGHT`` pixels.

    Parameters
    ----------
    decision
        That was acted upon.
    measured
        Whether loads that are seconds are drawn, too.
    """
    has_loads = measured or decision.by_entries
    before, after = decision.before, decision.after
    most = max([load for _, load in (*before.loads, *after.loads)], default=0.0)
    unit = "entries" if decision.by_entries else "seconds"
    scale = most if has_loads else 0.0
    parts = [*_strip("before", before, 0, scale, unit), *_strip("after", after, _BELOW, scale, unit)]
    if has_loads:
        parts += _bars(before.loads, _BARS[0], 0, most, "imbalance", unit)
        parts += _bars(after.loads, _BARS[0], _BELOW, most, "predicted", unit)
    if measured and decision.gained is not None and decision.gained.loads:
        gained = decision.gained.loads
        alike = 0.0 if decision.by_entries else most  # entries and seconds are no lengths of one scale
        top = max([alike, *(load for _, load in gained)])
        parts += _bars(gained, _BARS[1], _BELOW, top, "measured", "seconds")
    return "".join(parts)


def imbalance_of(loads: Loads) -> float:
    """Return the largest load over the mean; 1.0 where there is none."""
    mean = sum(load for _, load in loads) / max(1, len(loads))
    return max(load for _, load in loads) / mean if mean > 0 else 1.0


def load_text(load: float, unit: str) -> str:
    """Return a load with its unit, "entries" or "seconds"."""
    return seconds_text(load) if unit == "seconds" else plural_text(round(load), "entry")


def _shown_loads(strip: StripFacts) -> list[float]:
    # Of each block what its worker would take if all its blocks were like it, so that more and smaller blocks
    # look as few large ones do. Where blocks were not measured, what the worker takes.
    if strip.block_loads:
        counts = Counter(strip.owners)
        return [load * counts[owner] for load, owner in zip(strip.block_loads, strip.owners, strict=True)]
    loads = dict(strip.loads)
    return [loads.get(owner, 0.0) for owner in strip.owners]


def _strip(label: str, strip: StripFacts, top: int, most: float, unit: str) -> Iterator[str]:
    yield f'<text x="0" y="{top + 17}">{label}</text>'
    length = max(1, strip.cuts[-1])
    x = [_LEFT + round(_WIDE * cut / length) for cut in strip.cuts]
    loads = _shown_loads(strip)
    paths: dict[tuple[str, float], list[str]] = {}
    start = 0
    looks = [(color_of(owner), _shade(load, most)) for owner, load in zip(strip.owners, loads, strict=True)]
    for block in range(1, len(looks) + 1):  # neighbors that look the same are one rectangle
        if block < len(looks) and looks[block] == looks[start]:
            continue
        wide = max(1, x[block] - x[start])
        paths.setdefault(looks[start], []).append(f"M{x[start]} {top}h{wide}v{_TALL}h-{wide}z")
        start = block
    for (color, shade), path in sorted(paths.items()):
        yield f'<path fill="{color}" fill-opacity="{shade:g}" d="{"".join(path)}"/>'
    if len(x) <= _MOST_LINES:
        lines = "".join(f"M{at} {top}v{_TALL}" for at in dict.fromkeys(x[1:-1]))
        if lines:
            yield f'<path stroke="currentColor" stroke-opacity=".55" fill="none" d="{lines}"/>'
    frame = f'x="{_LEFT}" y="{top}" width="{_WIDE}" height="{_TALL}"'
    yield f'<rect {frame} fill="none" stroke="currentColor" stroke-opacity=".8"/>'
    if len(strip.owners) <= _MOST_TITLED:
        yield from _titles(strip, x, top, unit if most > 0 else "")


def _titles(strip: StripFacts, x: Sequence[int], top: int, unit: str) -> Iterator[str]:
    yield '<g fill="none" pointer-events="all">'
    for block, owner in enumerate(strip.owners):
        start, stop = strip.cuts[block], strip.cuts[block + 1]
        share = share_text((stop - start) / max(1, strip.cuts[-1]))
        rows = f"rows {count_text(start)} to {count_text(stop)}, {share}"
        load = f"; {load_text(strip.block_loads[block], unit)}" if unit and strip.block_loads else ""
        box = f'x="{x[block]}" y="{top}" width="{max(1, x[block + 1] - x[block])}" height="{_TALL}"'
        yield f"<rect {box}><title>{rows}; worker {owner}{load}</title></rect>"
    yield "</g>"


def _shade(load: float, most: float) -> float:
    if most <= 0:
        return 0.75
    step = round(_NUM_SHADES * min(1.0, max(0.0, load / most)))
    return round(_LIGHTEST + (1 - _LIGHTEST) * step / _NUM_SHADES, 2)


def _bars(loads: Loads, left: int, top: int, most: float, word: str, unit: str) -> Iterator[str]:
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
        if len(shown) > _MOST_NAMED:
            paths.setdefault(color_of(owner), []).append(bar)
        else:
            title = escape(f"worker {owner}: {load_text(load, unit)}")
            yield f'<path fill="{color_of(owner)}" d="{bar}"><title>{title}</title></path>'
    for color, bars in paths.items():
        yield f'<path fill="{color}" d="{"".join(bars)}"/>'
    mean = top + _TALL - round(_TALL * sum(load for _, load in loads) / len(loads) / most)
    yield (
        f'<path d="M{left - 2} {mean}h{_BARS_WIDE + 4}" stroke="currentColor" stroke-dasharray="3 2" '
        'stroke-opacity=".8" fill="none"/>'
    )
    words = f"{imbalance_of(loads):.2f} {word}"
    yield f'<text x="{left + _BARS_WIDE + _WORDS}" y="{top + 17}">{words}</text>'


def _gathered(loads: Loads) -> Loads:
    # Of neighbors that have one bar the heaviest is shown.
    if len(loads) <= _MOST_BARS:
        return loads
    starts = [len(loads) * bar // _MOST_BARS for bar in range(_MOST_BARS + 1)]
    return [max(loads[start:stop], key=lambda one: one[1]) for start, stop in pairwise(starts)]

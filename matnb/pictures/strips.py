"""A decision as strips of rows, before and after: blocks to scale, owners by color, loads by shade, bars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from matnb.pictures.blockmap import color_of
from matnb.pictures.decisions import is_compared, load_text
from matnb.pictures.escaping import escaped
from matnb.pictures.facts import DecisionFacts, StripFacts
from matnb.pictures.imbalance import imbalance
from matnb.pictures.quantities import count_text, share_text

WIDTH, HEIGHT = 700, 64  # of a drawing, in pixels
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
    has_loads = measured or decision.by_entries
    before, after = decision.before, decision.after
    most = max([load for _, load in (*before.loads, *after.loads)], default=0.0)
    unit = "entries" if decision.by_entries else "seconds"
    scale = most if has_loads else 0.0
    compared = is_compared(decision)
    named = _MOST_NAMED if detailed else 0
    parts = list(_strip("before" if compared else "cuts", before, 0, scale))
    frames, means = [f"M{_LEFT} 0h{_WIDE}v{_TALL}h-{_WIDE}z"], []
    if has_loads:
        parts += _bars(before.loads, (_BARS[0], 0), most, "imbalance", unit, named)
        means += _mean(before.loads, (_BARS[0], 0), most)
    if compared:
        parts += _strip("after" if decision.acts else "or", after, _BELOW, scale)
        frames.append(f"M{_LEFT} {_BELOW}h{_WIDE}v{_TALL}h-{_WIDE}z")
    if has_loads and compared:
        parts += _bars(after.loads, (_BARS[0], _BELOW), most, "predicted", unit, named)
        means += _mean(after.loads, (_BARS[0], _BELOW), most)
    if measured and decision.gained is not None and decision.gained.loads:
        gained = decision.gained.loads
        alike = 0.0 if decision.by_entries else most  # entries and seconds are no lengths of one scale
        top = max([alike, *(load for _, load in gained)])
        parts += _bars(gained, (_BARS[1], _BELOW), top, "measured", "seconds", named)
        means += _mean(gained, (_BARS[1], _BELOW), top)
    lines = [_lines(before, 0), *([_lines(after, _BELOW)] if compared else [])]
    parts.append('<g fill="none" stroke="currentColor" stroke-opacity=".8">')
    if any(lines):
        parts.append(f'<path stroke-opacity=".55" d="{"".join(lines)}"/>')
    parts.append(f'<path d="{"".join(frames)}"/>')
    if means:
        parts.append(f'<path stroke-dasharray="3 2" d="{"".join(means)}"/>')
    parts.append("</g>")
    if detailed:
        parts += _titles(before, 0, unit if scale > 0 else "")
        parts += _titles(after, _BELOW, unit if scale > 0 else "") if compared else ()
    return "".join(parts)


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

"""A simulated run as text and SVG: what machines do when, and the bytes from each to each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matnb.pictures.escaping import escaped
from matnb.pictures.quantities import bytes_text, seconds_text

_LANE, _GAP, _LEFT, _WIDTH, _TOP = 16, 3, 64, 420, 40
_CELL = 16
_MOST_STEPS = 140  # pieces of a lane, each shaded by how busy its machine is


@dataclass(frozen=True)
class SimulationFacts:
    """What is drawn.

    Attributes
    ----------
    title
        A sentence.
    seconds
        The length of the lanes, which may be a part of the whole.
    busy
        For each machine how busy it is in each of some equal parts of these seconds, from 0 to 1.
    idle
        For each machine the share of the whole in which it does nothing.
    traffic
        Bytes from machine to machine.
    """

    title: str
    seconds: float
    busy: tuple[tuple[float, ...], ...]
    idle: tuple[float, ...]
    traffic: tuple[tuple[int, ...], ...]


def shares_of(
    spans: Sequence[tuple[int, float, float]], machines: int, slots: int, seconds: float
) -> tuple[tuple[float, ...], ...]:
    """Return how busy machines are over time, from what they do: (machine, start, end)."""
    busy = [[0.0] * _MOST_STEPS for _ in range(machines)]
    step = seconds / _MOST_STEPS
    for machine, start, end in spans if step > 0 else ():
        first, last = int(start / step), min(_MOST_STEPS - 1, int(end / step))
        for place in range(first, last + 1):
            low, high = max(start, place * step), min(end, (place + 1) * step)
            busy[machine][place] += max(0.0, high - low)
    return tuple(tuple(min(1.0, one / (step * slots)) if step else 0.0 for one in row) for row in busy)


def simulation_svg(facts: SimulationFacts) -> str:
    """Return an SVG for a light or a dark background, without a frame of its own."""
    count = len(facts.busy)
    right = _LEFT + _WIDTH + 90
    height = _TOP + count * (_LANE + _GAP) + 34
    width = right + max(count * _CELL, 150) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'style="max-width:100%;height:auto" font-family="system-ui,sans-serif" font-size="11" '
        f'fill="currentColor" role="img"><title>{escaped(facts.title)}</title>'
        f'<text x="0" y="14" font-size="12">{escaped(facts.title)}</text>'
    ]
    step = _WIDTH / max(1, len(facts.busy[0]) if facts.busy else 1)
    for machine, row in enumerate(facts.busy):
        y = _TOP + machine * (_LANE + _GAP)
        parts.append(f'<text x="0" y="{y + 12}">node {machine}</text>')
        parts.append(
            f'<rect x="{_LEFT}" y="{y}" width="{_WIDTH}" height="{_LANE}" fill="currentColor" '
            f'opacity="0.08"/>'
        )
        for place, share in enumerate(row):
            if share > 0.005:
                parts.append(
                    f'<rect x="{_LEFT + place * step:.1f}" y="{y}" width="{step + 0.3:.2f}" height="{_LANE}" '
                    f'fill="#3987c8" opacity="{0.15 + 0.85 * share:.2f}"/>'
                )
        idle = f"idle {facts.idle[machine]:.0%}"
        parts.append(f'<text x="{_LEFT + _WIDTH + 8}" y="{y + 12}" opacity="0.75">{idle}</text>')
    y = _TOP + count * (_LANE + _GAP) + 12
    parts.append(f'<text x="{_LEFT}" y="{y}" opacity="0.75">0</text>')
    end = escaped(seconds_text(facts.seconds))
    parts.append(f'<text x="{_LEFT + _WIDTH}" y="{y}" text-anchor="end" opacity="0.75">{end}</text>')
    parts += _matrix(facts, right)
    return "".join(parts) + "</svg>"


def _matrix(facts: SimulationFacts, x: int) -> list[str]:
    most = max((one for row in facts.traffic for one in row), default=0)
    label = f"from row to column, at most {bytes_text(most)}" if most else "nothing between nodes"
    parts = [f'<text x="{x}" y="{_TOP - 6}" opacity="0.75">{label}</text>']
    for sender, row in enumerate(facts.traffic):
        for receiver, size in enumerate(row):
            opacity = 0.08 if not size else 0.2 + 0.8 * size / most
            color = "currentColor" if not size else "#d9730d"
            parts.append(
                f'<rect x="{x + receiver * _CELL}" y="{_TOP + sender * (_LANE + _GAP)}" '
                f'width="{_CELL - 2}" height="{_LANE}" fill="{color}" opacity="{opacity:.2f}">'
                f"<title>node {sender} to node {receiver}: {bytes_text(size)}</title></rect>"
            )
    return parts

"""What is computed from what, as SVG and as a tree of text; nothing is known here of expressions or plans."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from matnb.pictures.escaping import columns_of, escaped, shortened
from matnb.pictures.facts import GraphFacts, NodeFacts, PanelFacts
from matnb.pictures.folding import folded
from matnb.pictures.layers import Placing, Point, placed
from matnb.pictures.quantities import plural_text
from matnb.pictures.slowest import edge_on_path, with_slowest
from matnb.pictures.standalone_svg import NAMESPACE, THEMES

MOST_NODES = 150  # drawn
MOST_BYTES = 100_000
MOST_LINES = 200  # of the tree
_DEEPEST = 16  # a tree that is deeper is not indented further
_LONGEST = 34  # characters of a line in a node
_LONGEST_TOLD = 300  # of a line that hovering and the table tell
_CHARACTER, _LINE, _MARGIN = 6.7, 14, 8  # of text of 11 pixels, and around it
_FRAME, _HEAD = 10, 18  # around a panel, and for its title
_WIDEST = 900  # panels stand side by side up to here
_LEGEND_WIDE = 620
# Okabe and Ito's colors, told apart with any color vision; the look is told by words as well.
_FILLS = {"given": ("#0a7fc4", 0.13), "known": ("#009e73", 0.3), "control": ("#e08a00", 0.22)}
_LEGEND = {
    "given": "given or made from parameters",
    "known": "remembered: value is there already",
    "control": "loop or branch",
}
_FONT = "ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace"
_SHARED, _RESULT, _MOVED = "read more than once", "result", "between workers"
_CHANGES = {"new": "made by the passes", "gone": "replaced by the passes"}
_SLOW = "#d55e00"  # the path that takes longest
_NEW = "#009e73"


def graph_text(facts: GraphFacts) -> str:
    """Return the graphs as trees, results first and what they are made from below them."""
    facts = with_slowest(facts)
    lines = [facts.title]
    for panel in facts.panels:
        if panel.title:
            lines.append(panel.title)
        lines += [f"  {note}" for note in panel.notes]
        nodes = folded(panel.nodes, MOST_NODES)
        used = {one for node in nodes for one in node.operands}
        told: set[int] = set()
        for place in range(len(nodes)):
            if place not in used:
                lines += _tree(nodes, place, told)
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], f"... {plural_text(len(lines) - MOST_LINES, 'more line')} ..."]
    return "\n".join(lines)


def _tree(nodes: Sequence[NodeFacts], root: int, told: set[int]) -> Iterator[str]:
    stack = [(root, "", "", 0)]
    while stack:
        place, first, rest, depth = stack.pop()
        node = nodes[place]
        if place in told:
            yield f"{first}{node.name or node.what}  (told above)"
            continue
        told.add(place)
        yield first + "  ".join(
            filter(None, (node.name, node.what, ", ".join([*node.details, *_marks(node)])))
        )
        operands = list(dict.fromkeys(node.operands))
        for number, one in enumerate(reversed(operands)):
            is_last = number == 0
            deeper = rest if depth >= _DEEPEST else f"{rest}{'   ' if is_last else '│  '}"
            stack.append((one, f"{rest}{'└─ ' if is_last else '├─ '}", deeper, depth + 1))


def _marks(node: NodeFacts) -> list[str]:
    marks = ["slowest path"] if node.is_slowest else []
    return [*marks, _CHANGES[node.change]] if node.change else marks


def graph_rows(facts: GraphFacts, limit: int = MOST_NODES) -> list[tuple[str, ...]]:
    """Return what the boxes tell as rows: name, what it computes, details, what it is made from, marks."""
    rows: list[tuple[str, ...]] = []
    for panel in _shares(with_slowest(facts).panels, limit):
        if panel.title or panel.notes:
            rows.append(("", panel.title, "; ".join(panel.notes), "", ""))
        for node in panel.nodes:
            below = [panel.nodes[one] for one in node.operands]
            made_from = ", ".join(one.name or one.what for one in below)
            marks = _marks(node)
            if node.look in ("known", "control"):
                marks.append(_LEGEND[node.look])
            if node.is_shared:
                marks.append(_SHARED)
            if node.moved:
                marks.append(f"reads {_MOVED}")
            words = (node.name, node.what, ", ".join(node.details), made_from, ", ".join(marks))
            rows.append(tuple(shortened(one, _LONGEST_TOLD) for one in words))
    return rows


def graph_svg(
    facts: GraphFacts, is_alone: bool = False, most_bytes: int = MOST_BYTES, limit: int = MOST_NODES
) -> str:
    """Return the graphs as one ``<svg>``.

    Parameters
    ----------
    facts
        What is drawn; chains of many functions are one box each, and of too many boxes those nearest to the
        results are drawn.
    is_alone
        Whether it is a document of its own, and has no page around it whose colors it could take.
    most_bytes, limit
        How large it may be, and how many boxes it may have; of very few boxes it may be larger.
    """
    facts = with_slowest(facts)
    expected = sum(_expected_bytes(node) for panel in facts.panels for node in panel.nodes)
    if expected > most_bytes:  # drawn once instead of twice
        limit = max(6, min(limit, sum(len(one.nodes) for one in facts.panels) * most_bytes // expected))
    while True:
        drawing = _draw(facts, limit, is_alone)
        size = len(drawing.encode())
        if size <= most_bytes or limit <= 6:
            return drawing
        drawn = min(limit, sum(len(one.nodes) for one in facts.panels))
        limit = max(6, min(limit - 1, drawn * most_bytes // size))


def _expected_bytes(node: NodeFacts) -> int:
    lines = [node.what, *node.details]
    return (
        290
        + sum(50 + min(len(line), _LONGEST) + min(len(line), _LONGEST_TOLD) for line in lines)
        + 60 * len(node.operands)
    )


def _draw(facts: GraphFacts, limit: int, is_alone: bool) -> str:
    panels = list(_shares(facts.panels, limit))
    parts: list[str] = []
    x = y = tallest = widest = 0.0
    for panel in panels:
        inner, width, height = _panel(panel)
        if x and x + width > _WIDEST:
            x, y, tallest = 0.0, y + tallest + _FRAME, 0.0
        parts.append(f'<g transform="translate({_number(x)} {_number(y)})">{inner}</g>')
        x, tallest = x + width + _FRAME, max(tallest, height)
        widest = max(widest, x - _FRAME)
    every = [node for panel in panels for node in panel.nodes]
    legend, legend_width, legend_height = _legend(every, facts.unit, y + tallest + _FRAME, widest)
    wide, tall = max(widest, legend_width) + 6, y + tallest + _FRAME + legend_height + 4
    size = f'width="{_number(wide)}" height="{_number(tall)}"'
    box = f'viewBox="-3 -3 {_number(wide)} {_number(tall)}"'
    name, style = (NAMESPACE, THEMES) if is_alone else ("", "")
    look = "" if is_alone else ' style="max-width:none"'  # JupyterLab would make a wide one too small to read
    return (
        f'<svg{name}{look} role="img" aria-label="{escaped(facts.title)}" {size} {box} font-family="{_FONT}" '
        f'font-size="11" fill="currentColor">{style}{"".join(parts)}{legend}</svg>'
    )


def _shares(panels: Sequence[PanelFacts], limit: int) -> Iterator[PanelFacts]:
    # The boxes that there may be are shared among the panels: who needs fewer leaves more to the others.
    left, waiting = limit, len(panels)
    shares = {}
    for place in sorted(range(len(panels)), key=lambda one: len(panels[one].nodes)):
        shares[place] = folded(panels[place].nodes, max(3, left // waiting))
        left, waiting = left - len(shares[place]), waiting - 1
    for place, panel in enumerate(panels):
        yield replace(panel, nodes=tuple(shares[place]))


# boxes


def _panel(panel: PanelFacts) -> tuple[str, float, float]:
    texts = [_lines(node) for node in panel.nodes]
    sizes = [
        (max(map(columns_of, lines)) * _CHARACTER + 2 * _MARGIN, len(lines) * _LINE + _MARGIN)
        for lines in texts
    ]
    placing = placed(sizes, [node.operands for node in panel.nodes])
    edge = _FRAME if panel.title else 4
    title = _HEAD if panel.title else 0
    top = edge + title + (_LINE * len(panel.notes) + 6 if panel.notes else 0)
    width = max([placing.width, *(len(one) * _CHARACTER for one in (panel.title, *panel.notes))]) + 2 * edge
    height = placing.height + edge + top
    parts = []
    if panel.title:
        parts.append(
            f'<rect width="{_number(width)}" height="{_number(height)}" rx="8" fill="none" '
            'stroke="currentColor" stroke-opacity=".45" stroke-dasharray="5 4"/>'
            f'<text x="{edge}" y="{_HEAD - 2}" font-weight="bold">{escaped(panel.title)}</text>'
        )
    for number, note in enumerate(panel.notes):
        at = f'x="{edge}" y="{title + _LINE * (number + 1) - 2}"'
        parts.append(f'<text {at} opacity=".8">{escaped(note)}</text>')
    parts.append(f'<g transform="translate({_number(edge + (width - 2 * edge - placing.width) / 2)} {top})">')
    parts.append(_edges(panel.nodes, placing))
    for node, lines, corner, size in zip(panel.nodes, texts, placing.corners, sizes, strict=True):
        parts.append(_box(node, lines, corner, size))
    return "".join([*parts, "</g>"]), width, height


def _lines(node: NodeFacts) -> list[str]:
    return [shortened(line, _LONGEST) for line in (f"{node.name}  {node.what}".strip(), *node.details)]


def _box(node: NodeFacts, lines: Sequence[str], corner: Point, size: tuple[float, float]) -> str:
    x, y = corner
    width, height = size
    parts = [
        '<g opacity=".55">' if node.change == "gone" else "<g>",
        f"<title>{escaped(' '.join((node.name, node.what)), _LONGEST_TOLD)}",
    ]
    parts += [f"&#10;{escaped(line, _LONGEST_TOLD)}" for line in node.details]
    parts += [f"&#10;{mark}" for mark in _marks(node)]
    parts.append("</title>")
    if node.is_shared:
        parts.append(_rectangle(x - 3, y - 3, width + 6, height + 6, 'fill="none" stroke-opacity=".7"'))
    fill, opacity = _FILLS.get(node.look, ("currentColor", 0.04))
    stroke = 'stroke-width="2"' if node.is_result else 'stroke-opacity=".7"'
    if node.change == "gone":
        stroke += ' stroke-dasharray="4 3"'
    color = _SLOW if node.is_slowest else "currentColor"
    look = f'fill="{fill}" fill-opacity="{opacity}" {stroke}'
    parts.append(_rectangle(x, y, width, height, look, color))
    if node.change == "new":
        parts.append(f'<path fill="{_NEW}" d="M{_at((x, y + 3))}h4v{_number(height - 6)}h-4z"/>')
    for number, line in enumerate(lines):
        weight = ' font-weight="bold"' if number == 0 else ""
        at = f'x="{_number(x + _MARGIN)}" y="{_number(y + _LINE * (number + 1) - 1)}"'
        parts.append(f"<text {at}{weight}>{escaped(line)}</text>")
    return "".join([*parts, "</g>"])


def _rectangle(
    x: float, y: float, width: float, height: float, look: str, color: str = "currentColor"
) -> str:
    corner = f'x="{_number(x)}" y="{_number(y)}"'
    size = f'width="{_number(width)}" height="{_number(height)}"'
    return f'<rect {corner} {size} rx="4" stroke="{color}" {look}/>'


def _edges(nodes: Sequence[NodeFacts], placing: Placing) -> str:
    lines: dict[tuple[bool, bool], list[str]] = {}
    heads: dict[bool, list[str]] = {}
    for operand, user, points in placing.edges:
        path = [f"M{_at(points[0])}"]
        for number, (start, end) in enumerate(pairwise(points)):
            if number % 2:  # straight past a layer
                path.append(f"L{_at(end)}")
            else:
                middle = (start[1] + end[1]) / 2
                path.append(f"C{_at((start[0], middle))} {_at((end[0], middle))} {_at(end)}")
        slow = edge_on_path(nodes, operand, user)
        lines.setdefault((slow, operand in nodes[user].moved), []).append("".join(path))
        heads.setdefault(slow, []).append(f"M{_at(points[-1])}l-3.5-6h7z")
    parts = []
    for (slow, moved), paths in sorted(lines.items()):
        parts.append(f'<path fill="none" {_line_look(slow, moved)} d="{"".join(paths)}"/>')
    for slow, paths in sorted(heads.items()):
        look = f'fill="{_SLOW}"' if slow else 'fill-opacity=".6"'
        parts.append(f'<path {look} d="{"".join(paths)}"/>')
    return "".join(parts)


def _line_look(slow: bool, moved: bool) -> str:
    look = f'stroke="{_SLOW}" stroke-width="2.5"' if slow else 'stroke="currentColor" stroke-opacity=".5"'
    return f'{look} stroke-dasharray="6 4"' if moved else look


def _legend(nodes: Sequence[NodeFacts], unit: str, top: float, widest: float) -> tuple[str, float, float]:
    entries: list[tuple[str, Callable[[float, float], str]]] = []
    for look, text in _LEGEND.items():
        if any(node.look == look for node in nodes):
            fill, opacity = _FILLS[look]
            entries.append((text, _swatch(f'fill="{fill}" fill-opacity="{opacity}" stroke-opacity=".7"')))
    if any(node.is_shared for node in nodes):
        double = _swatch('fill="none" stroke-opacity=".7"')
        inner = _swatch('fill="none" stroke-opacity=".7"', 2.5)
        entries.append((_SHARED, lambda x, y: double(x, y) + inner(x, y)))
    if any(node.is_result for node in nodes):
        entries.append((_RESULT, _swatch('fill="none" stroke-width="2"')))
    if any(node.change == "new" for node in nodes):
        entries.append(
            (_CHANGES["new"], lambda x, y: f'<path fill="{_NEW}" d="M{_at((x + 4, y))}h4v12h-4z"/>')
        )
    if any(node.change == "gone" for node in nodes):
        entries.append((_CHANGES["gone"], _swatch('fill="none" stroke-dasharray="4 3" stroke-opacity=".5"')))
    if any(node.moved for node in nodes):
        entries.append((_MOVED, _stroke(_line_look(slow=False, moved=True))))
    if any(node.is_slowest for node in nodes):
        entries.append((f"slowest path, by {unit}", _stroke(_line_look(slow=True, moved=False))))
    parts, x, y, found = [], 0.0, top, 0.0
    for text, swatch in entries:
        width = 18 + len(text) * _CHARACTER
        if x and x + width > max(widest, _LEGEND_WIDE):
            x, y = 0.0, y + _LINE + 2
        parts.append(f'{swatch(x, y)}<text x="{_number(x + 18)}" y="{_number(y + 10)}">{text}</text>')
        x += width + 16
        found = max(found, x)
    return f'<g opacity=".85">{"".join(parts)}</g>', found, y - top + _LINE


def _stroke(look: str) -> Callable[[float, float], str]:
    return lambda x, y: f'<path fill="none" {look} d="M{_at((x, y + 6))}h14"/>'


def _swatch(look: str, inset: float = 0.0) -> Callable[[float, float], str]:
    size = 12 - 2 * inset
    return lambda x, y: _rectangle(x + inset, y + inset, size, size, look)


def _at(point: Point) -> str:
    return f"{_number(point[0])} {_number(point[1])}"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")

"""What is computed from what, as SVG and as a tree of text; nothing is known here of expressions or plans."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise
from typing import Literal

from matnb.pictures.layers import Placing, Point, placed
from matnb.pictures.quantities import count_text, plural_text

Look = Literal["given", "work", "known", "control"]

MOST_NODES = 150  # drawn
MOST_BYTES = 100_000
MOST_LINES = 200  # of the tree
_FEW = 40  # up to here every function is a node of its own
_DEEPEST = 16  # a tree that is deeper is not indented further
_LONGEST = 34  # characters of a line in a node
_CHARACTER, _LINE, _MARGIN = 6.7, 14, 8  # of text of 11 pixels, and around it
_FRAME, _HEAD = 10, 18  # around a panel, and for its title
_WIDEST = 900  # panels stand side by side up to here
# Okabe and Ito's colors, told apart with any color vision; the look is told by words as well.
_FILLS = {"given": ("#0a7fc4", 0.13), "known": ("#009e73", 0.3), "control": ("#e08a00", 0.22)}
_LEGEND = {
    "given": "given or made from parameters",
    "known": "value is there already",
    "control": "loop or branch",
}
_FONT = "ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace"
_NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'
_STYLE = (
    "<style>svg{color:#1a1a1a;background:#fff}"
    "@media(prefers-color-scheme:dark){svg{color:#e8e8e8;background:#16181c}}</style>"
)
_SHARED, _RESULT = "read more than once", "result"


@dataclass(frozen=True)
class NodeFacts:
    """One box.

    Parameters
    ----------
    name
        What it is called elsewhere in the picture, such as "e3".
    what
        What it computes, in a few words.
    details
        More lines: shape and dtype, bytes, where.
    operands
        Places in the panel of what it is made from, all before its own.
    look
        "given" for what comes from outside, "known" for values that are there, "control" for loops and
        branches, else "work".
    is_shared, is_result
        Whether several read it, and whether it was asked for.
    function
        Its name, where it may be told together with its neighbors of a chain.
    """

    name: str
    what: str
    details: tuple[str, ...] = ()
    operands: tuple[int, ...] = ()
    look: Look = "work"
    is_shared: bool = False
    is_result: bool = False
    function: str = ""


@dataclass(frozen=True)
class PanelFacts:
    """A graph of its own, as what one iteration computes; one with a title is framed."""

    title: str
    nodes: tuple[NodeFacts, ...]


@dataclass(frozen=True)
class GraphFacts:
    """What a picture shows."""

    title: str
    panels: tuple[PanelFacts, ...]


def graph_text(facts: GraphFacts) -> str:
    """Return the graphs as trees, results first and what they are made from below them."""
    lines = [facts.title]
    for panel in facts.panels:
        if panel.title:
            lines.append(panel.title)
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
        yield first + "  ".join(filter(None, (node.name, node.what, ", ".join(node.details))))
        operands = list(dict.fromkeys(node.operands))
        for number, one in enumerate(reversed(operands)):
            is_last = number == 0
            deeper = rest if depth >= _DEEPEST else f"{rest}{'   ' if is_last else '│  '}"
            stack.append((one, f"{rest}{'└─ ' if is_last else '├─ '}", deeper, depth + 1))


def graph_svg(facts: GraphFacts, is_alone: bool = False) -> str:
    """Return the graphs as one ``<svg>`` of at most 100 kB.

    Parameters
    ----------
    facts
        What is drawn; chains of many functions are one box each, and of too many boxes those nearest to the
        results are drawn.
    is_alone
        Whether it is a document of its own, and has no page around it whose colors it could take.
    """
    limit = MOST_NODES
    while True:
        drawing = _draw(facts, limit, is_alone)
        if len(drawing.encode()) <= MOST_BYTES or limit <= 10:
            return drawing
        limit = limit * 2 // 3


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
    legend, legend_width = _legend([node for panel in panels for node in panel.nodes], y + tallest + _FRAME)
    wide, tall = max(widest, legend_width) + 6, y + tallest + _FRAME + _LINE + 4
    size = f'width="{_number(wide)}" height="{_number(tall)}"'
    box = f'viewBox="-3 -3 {_number(wide)} {_number(tall)}"'
    name, style = (_NAMESPACE, _STYLE) if is_alone else ("", "")
    return (
        f'<svg{name} role="img" aria-label="{escape(facts.title)}" {size} {box} font-family="{_FONT}" '
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


def folded(nodes: Sequence[NodeFacts], limit: int) -> list[NodeFacts]:
    """Return at most so many nodes: chains of functions as one, then only what is nearest to the results."""
    result = list(nodes)
    if len(result) > min(limit, _FEW):
        result = _without_chains(result)
    return result if len(result) <= limit else _nearest(result, limit)


def _without_chains(nodes: Sequence[NodeFacts]) -> list[NodeFacts]:
    users: list[list[int]] = [[] for _ in nodes]
    for place, node in enumerate(nodes):
        for one in dict.fromkeys(node.operands):
            users[one].append(place)
    heads = list(range(len(nodes)))  # the last of the chain that each is in
    for place in reversed(range(len(nodes))):
        node = nodes[place]
        if node.function and not node.is_result and len(users[place]) == 1:
            (user,) = users[place]
            if nodes[user].function:
                heads[place] = heads[user]
    members: dict[int, list[int]] = {}
    for place, head in enumerate(heads):
        members.setdefault(head, []).append(place)
    places: dict[int, int] = {}
    result = []
    for place, node in enumerate(nodes):
        if heads[place] != place:
            continue
        chain = members[place]
        inside = set(chain)
        outside = dict.fromkeys(one for at in chain for one in nodes[at].operands if one not in inside)
        operands = tuple(dict.fromkeys(places[heads[one]] for one in outside))
        if len(chain) == 1:
            result.append(replace(node, operands=operands))
        else:
            names = [nodes[at].function for at in chain]
            few = " ".join(names[:4]) + (f" ... {count_text(len(names) - 4)} more" if len(names) > 4 else "")
            result.append(
                replace(
                    node,
                    name=f"{nodes[chain[0]].name}...{node.name}",
                    what=plural_text(len(chain), "function"),
                    details=(few, *node.details),
                    operands=operands,
                )
            )
        places[place] = len(result) - 1
    return result


def _nearest(nodes: Sequence[NodeFacts], limit: int) -> list[NodeFacts]:
    used = {one for node in nodes for one in node.operands}
    wanted = [place for place in reversed(range(len(nodes))) if place not in used]
    chosen = dict.fromkeys(wanted)
    for place in wanted:  # grows while it is walked: the nearest first
        for one in nodes[place].operands:
            if one not in chosen:
                chosen[one] = None
                wanted.append(one)
    kept = sorted(list(chosen)[: limit - 1])
    hidden = len(nodes) - len(kept)
    more = NodeFacts("...", f"{plural_text(hidden, 'other')} not drawn")
    places = {place: number for number, place in enumerate(kept, start=1)}

    def drawn(node: NodeFacts) -> NodeFacts:
        return replace(node, operands=tuple(dict.fromkeys(places.get(one, 0) for one in node.operands)))

    return [more, *(drawn(nodes[place]) for place in kept)]


# boxes


def _panel(panel: PanelFacts) -> tuple[str, float, float]:
    texts = [_lines(node) for node in panel.nodes]
    sizes = [
        (max(len(line) for line in lines) * _CHARACTER + 2 * _MARGIN, len(lines) * _LINE + _MARGIN)
        for lines in texts
    ]
    placing = placed(sizes, [node.operands for node in panel.nodes])
    edge = _FRAME if panel.title else 4
    top = edge + (_HEAD if panel.title else 0)
    width = max(placing.width, len(panel.title) * _CHARACTER) + 2 * edge
    height = placing.height + edge + top
    parts = []
    if panel.title:
        parts.append(
            f'<rect width="{_number(width)}" height="{_number(height)}" rx="8" fill="none" '
            'stroke="currentColor" stroke-opacity=".45" stroke-dasharray="5 4"/>'
            f'<text x="{edge}" y="{_HEAD - 2}" font-weight="bold">{escape(panel.title)}</text>'
        )
    parts.append(f'<g transform="translate({_number(edge + (width - 2 * edge - placing.width) / 2)} {top})">')
    parts.append(_edges(placing))
    for node, lines, corner, size in zip(panel.nodes, texts, placing.corners, sizes, strict=True):
        parts.append(_box(node, lines, corner, size))
    return "".join([*parts, "</g>"]), width, height


def _lines(node: NodeFacts) -> list[str]:
    return [_shortened(line) for line in (f"{node.name}  {node.what}".strip(), *node.details)]


def _shortened(line: str) -> str:
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"


def _box(node: NodeFacts, lines: Sequence[str], corner: Point, size: tuple[float, float]) -> str:
    x, y = corner
    width, height = size
    parts = ["<g>", f"<title>{escape(' '.join((node.name, node.what)))}"]
    parts += [f"&#10;{escape(line)}" for line in node.details]
    parts.append("</title>")
    if node.is_shared:
        parts.append(_rectangle(x - 3, y - 3, width + 6, height + 6, 'fill="none" stroke-opacity=".7"'))
    fill, opacity = _FILLS.get(node.look, ("currentColor", 0.04))
    stroke = 'stroke-width="2"' if node.is_result else 'stroke-opacity=".7"'
    parts.append(_rectangle(x, y, width, height, f'fill="{fill}" fill-opacity="{opacity}" {stroke}'))
    for number, line in enumerate(lines):
        weight = ' font-weight="bold"' if number == 0 else ""
        at = f'x="{_number(x + _MARGIN)}" y="{_number(y + _LINE * (number + 1) - 1)}"'
        parts.append(f"<text {at}{weight}>{escape(line)}</text>")
    return "".join([*parts, "</g>"])


def _rectangle(x: float, y: float, width: float, height: float, look: str) -> str:
    corner = f'x="{_number(x)}" y="{_number(y)}"'
    size = f'width="{_number(width)}" height="{_number(height)}"'
    return f'<rect {corner} {size} rx="4" stroke="currentColor" {look}/>'


def _edges(placing: Placing) -> str:
    lines, heads = [], []
    for _, _, points in placing.edges:
        path = [f"M{_at(points[0])}"]
        for number, (start, end) in enumerate(pairwise(points)):
            if number % 2:  # straight past a layer
                path.append(f"L{_at(end)}")
            else:
                middle = (start[1] + end[1]) / 2
                path.append(f"C{_at((start[0], middle))} {_at((end[0], middle))} {_at(end)}")
        lines.append("".join(path))
        heads.append(f"M{_at(points[-1])}l-3.5-6h7z")
    if not lines:
        return ""
    return (
        f'<path fill="none" stroke="currentColor" stroke-opacity=".5" d="{"".join(lines)}"/>'
        f'<path fill-opacity=".6" d="{"".join(heads)}"/>'
    )


def _legend(nodes: Sequence[NodeFacts], y: float) -> tuple[str, float]:
    entries: list[tuple[str, Callable[[float], str]]] = []
    for look, text in _LEGEND.items():
        if any(node.look == look for node in nodes):
            fill, opacity = _FILLS[look]
            entries.append((text, _swatch(y, f'fill="{fill}" fill-opacity="{opacity}" stroke-opacity=".7"')))
    if any(node.is_shared for node in nodes):
        double = _swatch(y, 'fill="none" stroke-opacity=".7"')
        inner = _swatch(y, 'fill="none" stroke-opacity=".7"', 2.5)
        entries.append((_SHARED, lambda x: double(x) + inner(x)))
    if any(node.is_result for node in nodes):
        entries.append((_RESULT, _swatch(y, 'fill="none" stroke-width="2"')))
    parts, x = [], 0.0
    for text, swatch in entries:
        parts.append(f'{swatch(x)}<text x="{_number(x + 18)}" y="{_number(y + 10)}">{text}</text>')
        x += 18 + len(text) * _CHARACTER + 16
    return f'<g opacity=".85">{"".join(parts)}</g>', x


def _swatch(y: float, look: str, inset: float = 0.0) -> Callable[[float], str]:
    size = 12 - 2 * inset
    return lambda x: _rectangle(x + inset, y + inset, size, size, look)


def _at(point: Point) -> str:
    return f"{_number(point[0])} {_number(point[1])}"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")

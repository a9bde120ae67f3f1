"""What is computed from what, as SVG, as a list and as a tree; expressions and plans are not known here."""

from __future__ import annotations

from bisect import bisect, insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean

from matnb.pictures.escaping import columns_of, escaped, shortened
from matnb.pictures.facts import GraphFacts, NodeFacts, PanelFacts
from matnb.pictures.quantities import count_text, plural_text
from matnb.pictures.svg_style import NAMESPACE, THEMES

MOST_NODES = 150  # drawn
MOST_BYTES = 100_000
MOST_LINES = 200  # of the tree
MOST_LISTED = 200  # nodes of a panel; beyond, a list tells no user anything
_WHAT_WIDE = 44  # columns of a list for what a node computes
_DEEPEST = 16  # a tree that is deeper is not indented further
_LONGEST = 34  # characters of a line in a node
_LONGEST_TOLD = 300  # of a line that hovering and the table tell
_CHARACTER, _LINE, _MARGIN = 6.7, 14, 8  # of text of 11 pixels, and around it
_FRAME, _HEAD = 10, 18  # around a panel, and for its title
_WIDEST = 900  # panels stand side by side up to here
_LEGEND_WIDE = 620
# Okabe and Ito's colors, distinct with any color vision; words say the same.
_FILLS = {"given": ("#0a7fc4", 0.13), "known": ("#009e73", 0.3), "control": ("#cc7a00", 0.22)}
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


def listed(panels: Sequence[PanelFacts]) -> list[str]:
    """Return graphs as lists: a line for each node, operands first, below the title of its panel.

    What has a name but no words of its own, such as a loop's state, is no line. Of more nodes than a user
    would read, those in the middle are left out.
    """
    lines = []
    for panel in panels:
        if panel.title:
            lines.append(panel.title)
        nodes = [node for node in panel.nodes if node.what or node.is_result]
        half = MOST_LISTED // 2
        hidden = len(nodes) - 2 * half
        first, last = (nodes, []) if hidden <= 0 else (nodes[:half], nodes[-half:])
        width = max((len(node.name) for node in [*first, *last]), default=0)
        lines += [_listed_node(node, max(5, width)) for node in first]
        lines += [f"  ... {count_text(hidden)} more ..."] if last else []
        lines += [_listed_node(node, max(5, width)) for node in last]
        lines += [f"  {'; '.join(panel.notes)}"] if panel.notes else []
    return lines


def _listed_node(node: NodeFacts, width: int) -> str:
    details = ", ".join([*node.details, *_marks(node)])
    if not node.name:
        return f"  {node.what}: {details}"
    return f"  {node.name:>{width}}  {node.what:<{_WHAT_WIDE}}  {details}".rstrip()


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


def _edges(nodes: Sequence[NodeFacts], placing: GraphLayout) -> str:
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


# Fewer boxes for large graphs: chains of functions as one, then what is nearest to the results.

_FEW = 40  # up to here every function is a node of its own


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
            moved = tuple(dict.fromkeys(places[heads[one]] for one in node.moved))
            result.append(replace(node, operands=operands, moved=moved))
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
                    weight=sum(nodes[at].weight for at in chain),
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
        return _renumbered(node, places)

    return [more, *(drawn(nodes[place]) for place in kept)]


def _renumbered(node: NodeFacts, places: Mapping[int, int]) -> NodeFacts:
    operands, moved = (
        tuple(dict.fromkeys(places.get(one, 0) for one in ones)) for ones in (node.operands, node.moved)
    )
    return replace(node, operands=operands, moved=moved)


# The path through a graph that takes longest: what has to be faster for the whole to be.


def with_slowest(facts: GraphFacts) -> GraphFacts:
    """Return the same with the nodes marked, in each panel, that are on the path of the largest weight."""
    if not facts.unit:
        return facts
    panels = tuple(replace(one, nodes=_marked(one.nodes)) for one in facts.panels)
    return replace(facts, panels=panels)


def _marked(nodes: Sequence[NodeFacts]) -> tuple[NodeFacts, ...]:
    if sum(node.look == "work" and node.weight > 0 for node in nodes) < 2:
        return tuple(nodes)  # there is no other path
    path = set(slowest_path(nodes))
    return tuple(replace(node, is_slowest=place in path) for place, node in enumerate(nodes))


def slowest_path(nodes: Sequence[NodeFacts]) -> list[int]:
    """Return the places of the path of the largest weight, operands first; none where all weigh nothing.

    What weighs nothing at its ends is left out. Of several, the one that ends first is taken.
    """
    longest: list[float] = []
    before: list[int | None] = []
    for node in nodes:
        last = max(node.operands, key=lambda one: (longest[one], -one), default=None)
        if last is not None and longest[last] <= 0:
            last = None
        before.append(last)
        longest.append(node.weight + (0.0 if last is None else longest[last]))
    if not longest or max(longest) <= 0:
        return []
    path = []
    place: int | None = longest.index(max(longest))
    while place is not None:
        path.append(place)
        place = before[place]
    return path[::-1]


def edge_on_path(nodes: Sequence[NodeFacts], operand: int, user: int) -> bool:
    """Tell whether the path goes from an operand to its user: of those on it, the operand is the last."""
    if not (nodes[operand].is_slowest and nodes[user].is_slowest):
        return False
    return operand == max(one for one in nodes[user].operands if nodes[one].is_slowest)


# A graph laid out in layers: operands above their users, few crossings, edges that avoid what they pass.

GAP, SPACE = 34, 18  # between layers, and between neighbors in one
_SWEEPS, _SHIFTS = 8, 6
_MOST_BENDS = 1500  # of all edges; a graph that needs more gets straight ones
_BEND = 8  # room for an edge that passes a layer
_PORT = 12  # between edges that end at the same node

Point = tuple[float, float]


@dataclass(frozen=True)
class GraphLayout:
    """Where everything is, in pixels.

    Attributes
    ----------
    corners
        The upper left corner of each node.
    edges
        Points of each edge, from an operand's lower side to its user's upper side, with both numbers.
    width, height
        Of the whole.
    """

    corners: tuple[Point, ...]
    edges: tuple[tuple[int, int, tuple[Point, ...]], ...]
    width: float
    height: float


def placed(sizes: Sequence[tuple[float, float]], operands: Sequence[Sequence[int]]) -> GraphLayout:
    """Return a layered drawing of a graph.

    Layers are longest paths; their order follows the middle of the neighbors', swept
    down and up (Sugiyama and others, 1981); the
    places in a layer are those nearest to the neighbors' that leave room for all.

    Parameters
    ----------
    sizes
        Width and height of each node.
    operands
        For each node the numbers of those it is made from, all smaller than its own.
    """
    layers = layers_of(operands)
    graph = _Graph(sizes, operands, layers)
    graph.order()
    graph.shift()
    return graph.placing()


def layers_of(operands: Sequence[Sequence[int]]) -> list[int]:
    """Return each node's layer: below all its operands; what has none is right above its first user."""
    layers = [0] * len(operands)
    first: dict[int, int] = {}
    for node, ones in enumerate(operands):
        layers[node] = 1 + max((layers[one] for one in ones), default=-1)
    for node, ones in enumerate(operands):
        for one in ones:
            first[one] = min(first.get(one, layers[node]), layers[node])
    for node, ones in enumerate(operands):
        if not ones and node in first:
            layers[node] = first[node] - 1
    return layers


class _Graph:
    # Nodes, then bends: the places where edges pass a layer.

    def __init__(
        self,
        sizes: Sequence[tuple[float, float]],
        operands: Sequence[Sequence[int]],
        layers: Sequence[int],
    ) -> None:
        self._sizes, self._count = sizes, len(sizes)
        self._widths = [width for width, _ in sizes]
        self._layers = list(layers)
        self._above: list[list[int]] = [[] for _ in sizes]
        self._below: list[list[int]] = [[] for _ in sizes]
        self._routes: list[tuple[int, int, list[int]]] = []  # operand, user, and the bends between them
        spans = sum(layers[node] - layers[one] - 1 for node, ones in enumerate(operands) for one in ones)
        bends: dict[tuple[int, int], int] = {}
        for node, ones in enumerate(operands):
            for one in dict.fromkeys(ones):
                route, last = [], one
                passed = range(layers[one] + 1, layers[node]) if spans <= _MOST_BENDS else ()
                for layer in passed:  # edges from one operand share their bends
                    if (one, layer) not in bends:
                        bends[one, layer] = self._bend(layer)
                        self._join(last, bends[one, layer])
                    last = bends[one, layer]
                    route.append(last)
                self._join(last, node)
                self._routes.append((one, node, route))
        self._rows: list[list[int]] = [[] for _ in range(1 + max(self._layers, default=-1))]
        for node, layer in enumerate(self._layers):
            self._rows[layer].append(node)
        self._centers: list[float] = [0.0] * len(self._layers)

    def _bend(self, layer: int) -> int:
        self._layers.append(layer)
        self._widths.append(_BEND)
        self._above.append([])
        self._below.append([])
        return len(self._layers) - 1

    def _join(self, above: int, below: int) -> None:
        self._above[below].append(above)
        self._below[above].append(below)

    # the order in a layer

    def order(self) -> None:
        # Swept by medians first, then by means, which end elsewhere; what crosses least is taken.
        start = [list(row) for row in self._rows]
        best, fewest = start, self._crossings()
        for middle in (_median, fmean):
            self._rows = [list(row) for row in start]
            for sweep in range(_SWEEPS):
                if fewest == 0:
                    break
                down = sweep % 2 == 0
                near = self._above if down else self._below
                for before, row in pairwise(self._rows if down else self._rows[::-1]):
                    _sort(row, before, near, middle)
                found = self._crossings()
                if found < fewest:
                    best, fewest = [list(row) for row in self._rows], found
        self._rows = best

    def _crossings(self) -> int:
        total = 0
        for row, following in pairwise(self._rows):
            places = {node: place for place, node in enumerate(following)}
            seen: list[int] = []
            for node in row:
                ends = sorted(places[one] for one in self._below[node] if one in places)
                total += sum(len(seen) - bisect(seen, end) for end in ends)
                for end in ends:
                    insort(seen, end)
        return total

    # the place in a layer

    def shift(self) -> None:
        for row in self._rows:
            self._place(row, [0.0] * len(row))
        for turn in range(_SHIFTS):
            near = self._above if turn % 2 == 0 else self._below
            for row in self._rows if turn % 2 == 0 else self._rows[::-1]:
                wished = [
                    fmean(self._centers[one] for one in near[node]) if near[node] else self._centers[node]
                    for node in row
                ]
                self._place(row, wished)

    def _place(self, row: Sequence[int], wished: Sequence[float]) -> None:
        # The centers nearest to what is wished, in least squares, that leave room: without the room that the
        # ones before take, they must only not decrease, so neighbors that do are pooled at their mean.
        before, room = [], 0.0
        for number, node in enumerate(row):
            if number:
                room += (self._widths[row[number - 1]] + self._widths[node]) / 2 + SPACE
            before.append(room)
        pools: list[tuple[float, int]] = []
        for wish, taken in zip(wished, before, strict=True):
            mean, size = wish - taken, 1
            while pools and pools[-1][0] > mean:
                other, count = pools.pop()
                mean, size = (mean * size + other * count) / (size + count), size + count
            pools.append((mean, size))
        free = [mean for mean, size in pools for _ in range(size)]
        for node, start, taken in zip(row, free, before, strict=True):
            self._centers[node] = start + taken

    # all of it

    def placing(self) -> GraphLayout:
        if not self._count:
            return GraphLayout((), (), 0.0, 0.0)
        left = min(self._centers[node] - self._widths[node] / 2 for node in range(len(self._centers)))
        centers = [center - left for center in self._centers]
        # Each layer has a node, not only bends: that of the longest path.
        heights = [max(self._sizes[node][1] for node in row if node < self._count) for row in self._rows]
        tops = [0.0]
        for height in heights:
            tops.append(tops[-1] + height + GAP)
        corners = tuple(
            (centers[node] - self._widths[node] / 2, tops[self._layers[node]]) for node in range(self._count)
        )
        edges = tuple(self._edges(centers, tops, heights))
        width = max(center + wide / 2 for center, wide in zip(centers, self._widths, strict=True))
        return GraphLayout(corners, edges, width, tops[-1] - GAP)

    def _edges(
        self, centers: Sequence[float], tops: Sequence[float], heights: Sequence[float]
    ) -> list[tuple[int, int, tuple[Point, ...]]]:
        ends = self._ports(centers)
        edges = []
        for operand, user, route in self._routes:
            points = [(centers[operand], tops[self._layers[operand]] + self._sizes[operand][1])]
            for bend in route:
                top = tops[self._layers[bend]]
                points += [(centers[bend], top), (centers[bend], top + heights[self._layers[bend]])]
            points.append((ends[operand, user], tops[self._layers[user]]))
            edges.append((operand, user, tuple(points)))
        return edges

    def _ports(self, centers: Sequence[float]) -> dict[tuple[int, int], float]:
        # Where edges end at a node: side by side in the order in which they come.
        coming: dict[int, list[tuple[float, int]]] = {}
        for operand, user, route in self._routes:
            coming.setdefault(user, []).append((centers[route[-1] if route else operand], operand))
        found = {}
        for user, ones in coming.items():
            ones.sort()
            step = min(_PORT, (self._widths[user] - _PORT) / max(1, len(ones)))
            for place, (_, operand) in enumerate(ones):
                found[operand, user] = centers[user] + step * (place - (len(ones) - 1) / 2)
        return found


def _sort(
    row: list[int],
    before: Sequence[int],
    near: Sequence[Sequence[int]],
    middle: Callable[[Sequence[int]], float],
) -> None:
    # By the middle of the neighbors' places in the layer before; what has none there stays where it is.
    places = {node: place for place, node in enumerate(before)}
    keys = {}
    for place, node in enumerate(row):
        found = [places[one] for one in near[node] if one in places]
        keys[node] = (middle(found) if found else float(place), place)
    row.sort(key=keys.__getitem__)


def _median(places: Sequence[int]) -> float:
    ordered = sorted(places)
    middle = len(ordered) // 2
    return float(ordered[middle]) if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2

"""A graph laid out in layers: operands above their users, few crossings, edges that avoid what they pass."""

from __future__ import annotations

from bisect import bisect, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

GAP, SPACE = 34, 18  # between layers, and between neighbors in one
_SWEEPS, _SHIFTS = 8, 6
_MOST_BENDS = 1500  # of all edges; a graph that needs more gets straight ones
_BEND = 8  # room for an edge that passes a layer
_PORT = 12  # between edges that end at the same node

Point = tuple[float, float]


@dataclass(frozen=True)
class Placing:
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


def placed(sizes: Sequence[tuple[float, float]], operands: Sequence[Sequence[int]]) -> Placing:
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

    def placing(self) -> Placing:
        if not self._count:
            return Placing((), (), 0.0, 0.0)
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
        return Placing(corners, edges, width, tops[-1] - GAP)

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

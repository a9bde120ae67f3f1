"""The path through a graph that takes longest: what has to be faster for the whole to be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from matnb.pictures.facts import GraphFacts, NodeFacts


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

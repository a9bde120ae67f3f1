"""Fewer boxes for large graphs: chains of functions as one, then what is nearest to the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from matnb.pictures.facts import NodeFacts
from matnb.pictures.quantities import count_text, plural_text

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

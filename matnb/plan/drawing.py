"""Expressions as the graphs that pictures draw: boxes with what is told of each in words."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from matnb.expr.control import Cond, Loop, Variable
from matnb.expr.interning import form_of
from matnb.expr.nodes import Elementwise, Expr, Literal
from matnb.expr.traverse import consumers, topological
from matnb.pictures.facts import Change, Look, NodeFacts, PanelFacts
from matnb.pictures.quantities import bytes_text
from matnb.plan.estimate import estimate_entries
from matnb.plan.explain import (
    Listing,
    describe,
    kind_of,
    marks_of,
)
from matnb.plan.explain_control import NamedBody, bodies_of
from matnb.program.memory import estimate_bytes
from matnb.program.plan import Stored


class Drawing:
    """Writes the panels of one picture, in which a name means the same throughout.

    Parameters
    ----------
    remembered
        Expressions whose values are in this process.
    there
        Expressions on the workers that are drawn with what they are made from, as what was asked for is.
    """

    def __init__(self, remembered: Container[Expr], there: Container[Expr] = ()) -> None:
        self._remembered, self._there = remembered, there
        self._listing = Listing()

    def expressions(
        self,
        roots: Mapping[str, Expr],
        stored: Mapping[Expr, Stored],
        changes: Mapping[Expr, Change] | None = None,
    ) -> list[PanelFacts]:
        """Return a panel for named expressions, and one for each body of the loops and branches there.

        Parameters
        ----------
        roots
            Named expressions.
        stored
            Those on the workers, below which nothing is drawn.
        changes
            What the passes made, or put others in the place of.
        """
        _, called = self._listing.of(roots, stored)
        order = topological(roots.values(), stored)
        entries = estimate_entries(roots.values(), stored)
        sizes = {node: f"about {bytes_text(estimate_bytes(node, entries[node]))}" for node in order}
        for node in stored:
            if (known := stored[node].block_bytes) and node in sizes:
                sizes[node] = bytes_text(sum(known))
        panels = [PanelFacts("", self._boxes(roots, stored, called, {}, sizes, changes or {}))]
        for node in order:
            if isinstance(node, Loop | Cond) and node not in stored:
                panels += self.bodies(node, called)
        return panels

    def bodies(self, node: Loop | Cond, called: Mapping[Expr, str]) -> list[PanelFacts]:
        """Return a panel for each body of a loop or branch, and those of the ones inside."""
        panels: list[PanelFacts] = []
        for body in bodies_of(node, called):
            _, inside = self._listing.of(body.roots, (), body.names)
            panels.append(PanelFacts(body.title, self._body_boxes(body, inside)))
            for one in inside:
                if isinstance(one, Loop | Cond) and one not in body.names:
                    panels += self.bodies(one, {**inside, **body.outer})
        return panels

    def _body_boxes(self, body: NamedBody, called: Mapping[Expr, str]) -> tuple[NodeFacts, ...]:
        return self._boxes(body.roots, {}, called, body.names, {}, {})

    def _boxes(
        self,
        roots: Mapping[str, Expr],
        stored: Mapping[Expr, Stored],
        called: Mapping[Expr, str],
        names: Mapping[Expr, str],
        sizes: Mapping[Expr, str],
        changes: Mapping[Expr, Change],
    ) -> tuple[NodeFacts, ...]:
        ends = _ends(roots)
        order = topological(roots.values(), stored)
        users = consumers(order, stored)
        # Numbers are told where they are read, and get no box.
        numbers: dict[Expr, str] = {
            node: str(node.value)
            for node in order
            if isinstance(node, Literal) and node.size == 1 and node not in ends
        }
        called = {**called, **numbers}
        order = [node for node in order if node not in numbers]
        places = {node: place for place, node in enumerate(order)}
        boxes = []
        for node in order:
            below = () if node in stored else node.operands
            what = describe(node, tuple("..." if node in stored else called[one] for one in node.operands))
            marks = [*marks_of(node, len(users[node]), stored, self._remembered), *ends.get(node, [])]
            if node in self._there:
                marks = ["stored on workers", *marks]
            known = node in stored or node in self._remembered or node in self._there
            size = [sizes[node]] if node in sizes else []
            boxes.append(
                NodeFacts(
                    name=called[node],
                    what="" if node in names else what,
                    details=(kind_of(node), *size, *marks),
                    operands=tuple(places[one] for one in below if one in places),
                    look="known" if known else _look_of(node),
                    is_shared=len(users[node]) > 1,
                    is_result=node in ends,
                    change=changes.get(node, ""),
                    function=node.name if isinstance(node, Elementwise) and not known else "",
                )
            )
        return tuple(boxes)


def _ends(roots: Mapping[str, Expr]) -> dict[Expr, list[str]]:
    ends: dict[Expr, list[str]] = {}
    for name, root in roots.items():
        ends.setdefault(root, []).append(f"= {name}")
    return ends


def _look_of(node: Expr) -> Look:
    if isinstance(node, Loop | Cond):
        return "control"
    return "given" if node.is_source or isinstance(node, Variable) else "work"


def changes_of(
    recorded: Iterable[Expr], optimized: Iterable[Expr], origins: Mapping[Expr, tuple[Expr, ...]]
) -> dict[Expr, Change]:
    """Return which expressions the passes made, and which they put others in the place of.

    What only reads others now, and is the same operation with the same parameters, is neither.

    Parameters
    ----------
    recorded, optimized
        Before the passes and after them, operands first.
    origins
        For what a pass made the recorded ones it stands for.
    """
    after = list(optimized)
    before, kept = set(recorded), set(after)
    changes: dict[Expr, Change] = {}
    for node in reversed(after):  # of several that stand for one, the last is that one
        if node in before:
            continue
        alike = [one for one in origins.get(node, ()) if one not in kept and _is_alike(one, node)]
        kept.update(alike)
        if not alike:
            changes[node] = "new"
    for node in before - kept:
        changes[node] = "gone"
    return changes


def _is_alike(node: Expr, other: Expr) -> bool:
    if type(node) is not type(other):
        return False
    names = form_of(type(node)).parameter_names
    return bool(node.operands) and all(getattr(node, name) == getattr(other, name) for name in names)

"""Expressions for a user: one in words, and many as the graphs that texts and pictures show."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from matnb.expr.control import Body, Cond, Loop, Variable
from matnb.expr.interning import node_fields
from matnb.expr.nodes import Elementwise, Expr, Literal, Regrid
from matnb.expr.traverse import consumers, topological
from matnb.pictures.facts import Change, Look, NodeFacts, PanelFacts
from matnb.pictures.quantities import bytes_text
from matnb.plan.estimate import estimate_entries
from matnb.program.memory import estimate_bytes
from matnb.program.plan import StoredArray

LAST_VALUE = "_"  # what IPython calls the value that a cell ends with, until the next one ends
NodeText = Callable[[Expr], str]


def nameless(node: Expr) -> str:
    """Return what arrays are called where nobody gave them names: nothing."""
    return ""


def told_alone(node: Expr, depth: int = 3, called: NodeText = nameless) -> str:
    """Return an expression as one line: scalars as they are made, arrays by their names, or by their kind."""
    if isinstance(node, Regrid):  # says only how what is made lies
        return called(node.operands[0]) or told_alone(node.operands[0], depth, called)

    def told(operand: Expr) -> str:
        if isinstance(operand, Literal) and not operand.shape:
            return str(operand.value)
        if name := called(operand):
            return name
        is_told = not operand.shape and operand.operands and depth > 1
        return told_alone(operand, depth - 1, called) if is_told else operand.form_text()

    return node.describe(tuple(map(told, node.operands)))


class ExpressionGraph:
    """Tells expressions as panels, in which a name means the same throughout.

    Parameters
    ----------
    remembered
        Expressions whose values are in this process.
    there
        Expressions on the workers that are explained with what they are made from, as results are.
    called
        What a user calls an expression that is there, or nothing.
    """

    def __init__(
        self, remembered: Container[Expr] = (), there: Container[Expr] = (), called: NodeText = nameless
    ) -> None:
        self._remembered, self._there, self._called = remembered, there, called
        self._num_named = 0

    def panels(
        self,
        roots: Mapping[str, Expr],
        stored: Mapping[Expr, StoredArray],
        changes: Mapping[Expr, Change] | None = None,
    ) -> list[PanelFacts]:
        """Return a panel for named expressions, and one for each body of the loops and branches there.

        Parameters
        ----------
        roots
            Named expressions.
        stored
            Those on the workers, below which nothing is shown.
        changes
            What the passes made, or put others in the place of.
        """
        names = self.names(roots, stored)
        order = topological(roots.values(), stored)
        entries = estimate_entries(roots.values(), stored)
        sizes = {
            node: f"about {bytes_text(estimate_bytes(node, entries[node]))}"
            for node in order
            if not isinstance(node, Loop | Cond)
        }
        for node in stored:
            if (known := stored[node].block_bytes) and node in sizes:
                sizes[node] = bytes_text(sum(known))
        panels = [PanelFacts("", self._nodes(roots, stored, names, (), sizes, changes or {}))]
        for node in order:
            if isinstance(node, Loop | Cond) and node not in stored:
                panels += self._bodies(node, names)
        return panels

    def names(
        self,
        roots: Mapping[str, Expr],
        stored: Container[Expr] = (),
        known: Mapping[Expr, str] | None = None,
    ) -> dict[Expr, str]:
        """Return what each expression is called: those ``known`` as they are, scalars by their values."""
        names = dict(known or {})
        wanted = set(roots.values())
        for node in topological(roots.values(), stored):
            if node in names:
                continue
            if isinstance(node, Literal) and node.size == 1 and node not in wanted:
                names[node] = str(node.value)
            else:
                names[node] = f"e{self._num_named}"
                self._num_named += 1
        return names

    def _bodies(self, node: Loop | Cond, names: Mapping[Expr, str]) -> list[PanelFacts]:
        panels: list[PanelFacts] = []
        for body in bodies_of(node, names):
            inside = self.names(body.roots, (), body.names)
            panels.append(PanelFacts(body.title, self._nodes(body.roots, {}, inside, body.names, {}, {})))
            for one in inside:
                if isinstance(one, Loop | Cond) and one not in body.names:
                    panels += self._bodies(one, {**inside, **body.outer})
        return panels

    def _nodes(
        self,
        roots: Mapping[str, Expr],
        stored: Mapping[Expr, StoredArray],
        names: Mapping[Expr, str],
        given: Container[Expr],
        sizes: Mapping[Expr, str],
        changes: Mapping[Expr, Change],
    ) -> tuple[NodeFacts, ...]:
        ends: dict[Expr, list[str]] = {}
        for name, root in roots.items():
            ends.setdefault(root, []).append(f"= {name}")
        order = topological(roots.values(), stored)
        users = consumers(order, stored)
        # Scalars are shown where they are read.
        order = [node for node in order if node in ends or not (isinstance(node, Literal) and node.size == 1)]
        places = {node: place for place, node in enumerate(order)}
        nodes = []
        for node in order:
            is_stored, is_there = node in stored, node in self._there
            is_known = is_stored or is_there or node in self._remembered
            details = [node.form_text()]
            if node in sizes:
                details.append(sizes[node])
            if is_stored or is_there:
                details.append("stored on workers")
            elif is_known:
                details.append("remembered value")
            details += _not_remembered(node)
            if len(users[node]) > 1 and not is_stored:
                details.append(f"used {len(users[node])} times")
            below = () if is_stored else node.operands
            operands = tuple("..." if is_stored else names[one] for one in node.operands)
            called = self._called(node) if is_stored else ""
            nodes.append(
                NodeFacts(
                    name=names[node],
                    what="" if node in given else called or node.describe(operands),
                    details=(*details, *ends.get(node, [])),
                    operands=tuple(places[one] for one in below if one in places),
                    look="known" if is_known else _look_of(node),
                    is_shared=len(users[node]) > 1,
                    is_result=node in ends,
                    change=changes.get(node, ""),
                    function=node.name if isinstance(node, Elementwise) and not is_known else "",
                )
            )
        return tuple(nodes)


def _not_remembered(node: Expr) -> list[str]:
    # Why what a user's function gives is computed again where it is written again.
    return [
        f"not remembered: {one.name} reads {one.not_followed}, which cannot be followed"
        for one in (getattr(node, name) for name in node_fields(type(node)).functions)
        if one.not_followed
    ]


def _look_of(node: Expr) -> Look:
    if isinstance(node, Loop | Cond):
        return "control"
    return "given" if node.is_source or isinstance(node, Variable) else "work"


@dataclass(frozen=True)
class NamedBody:
    """A body of a loop or a branch, with its title and names.

    Attributes
    ----------
    title
        When it runs.
    roots
        What it gives, by names.
    names
        What its variables are called.
    outer
        What its variables are called in a loop inside, which has states of its own.
    """

    title: str
    roots: Mapping[str, Expr]
    names: Mapping[Expr, str]
    outer: Mapping[Expr, str]


def bodies_of(node: Loop | Cond, names: Mapping[Expr, str]) -> list[NamedBody]:
    """Return the bodies of a loop or a branch; ``names`` has its name, and those of all that it is given."""
    name = names[node]
    outside: Sequence[Expr | None] = node.given
    if isinstance(node, Loop):
        outside = (*(None for _ in node.state), None, *node.given)
    given: dict[Expr, str] = {
        variable: names[one] for variable, one in zip(node.variables, outside, strict=True) if one is not None
    }
    if isinstance(node, Cond):
        return [
            NamedBody(f"{name}, where it is true", _results(node.then, "result"), given, given),
            NamedBody(f"{name}, else", _results(node.otherwise, "result"), given, given),
        ]
    own: dict[Expr, str] = {
        variable: f"state {place}" for place, variable in enumerate(node.variables[: node.num_state])
    }
    own[node.variables[node.num_state]] = "iteration"
    outer = {**given, **{variable: f"{text} of {name}" for variable, text in own.items()}}
    results = _results(node.body, "next state")
    return [NamedBody(f"each iteration of {name}", results, {**given, **own}, outer)]


def _results(body: Body, what: str) -> dict[str, Expr]:
    results = {f"{what} {place}": result for place, result in enumerate(body.results)}
    return results if body.until is None else {**results, "until": body.until}


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
    names = node_fields(type(node)).parameter_names
    return bool(node.operands) and all(getattr(node, name) == getattr(other, name) for name in names)

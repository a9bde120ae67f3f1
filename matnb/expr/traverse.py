"""Walks over expressions; iterative, since a loop in a cell makes graphs thousands deep."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

from matnb.expr.nodes import Data, Elementwise, Expr

Rule = Callable[[Expr], Expr | None]
Origins = Mapping[Expr, tuple[Expr, ...]]
Operands = Callable[[Expr], tuple[Expr, ...]]
AS_RECORDED: Operands = attrgetter("operands")


@dataclass(frozen=True)
class Either:
    """Expressions that are in one of two containers."""

    one: Container[Expr]
    other: Container[Expr]

    def __contains__(self, node: object) -> bool:
        """Tell whether an expression is in one of them."""
        return node in self.one or node in self.other


def topological(
    roots: Iterable[Expr], known: Container[Expr] = (), operands: Operands = AS_RECORDED
) -> list[Expr]:
    """Return every expression under the roots once, operands before their users.

    Expressions in ``known`` are included, but not what is below them. ``operands`` tells what an expression
    is made from, where that is not what was recorded.
    """
    order: dict[Expr, None] = {}
    seen: set[Expr] = set()
    stack = list(roots)
    stack.reverse()
    while stack:
        node = stack[-1]
        if node not in seen:
            seen.add(node)
            below = operands(node)
            if below and node not in known:
                waiting = [operand for operand in reversed(below) if operand not in seen]
                if waiting:
                    stack.extend(waiting)
                    continue
        stack.pop()
        order[node] = None  # all below are there; where it was waiting twice, so may it be
    return list(order)


def consumers(
    order: Iterable[Expr], known: Container[Expr] = (), operands: Operands = AS_RECORDED
) -> dict[Expr, list[Expr]]:
    """Return the users of every expression, in the given order, as often as they use it."""
    users: dict[Expr, list[Expr]] = {}
    for node in order:
        users.setdefault(node, [])
        if node not in known:
            for operand in operands(node):
                users.setdefault(operand, []).append(node)
    return users


class ExprGraph:
    """Named expressions and all below them, down to what is known; walked once for all who ask.

    Parameters
    ----------
    roots
        Named expressions.
    known
        Expressions whose values exist already, and what is below them need not exist any more.
    """

    def __init__(self, roots: Mapping[str, Expr], known: Container[Expr] = ()) -> None:
        self.roots, self._known = dict(roots), known

    @cached_property
    def order(self) -> list[Expr]:
        """Every expression once, operands before their users."""
        return topological(self.roots.values(), self._known)

    @cached_property
    def known(self) -> frozenset[Expr]:
        """The expressions among them whose values exist already."""
        return frozenset(node for node in self.order if node in self._known)

    @cached_property
    def kinds(self) -> frozenset[type[Expr]]:
        """Of which classes they are."""
        return frozenset(map(type, self.order))

    def replaced(self, roots: dict[str, Expr]) -> ExprGraph:
        """Return the graph of other expressions of the same names; the same graph if they are the same."""
        if all(roots[name] is root for name, root in self.roots.items()):
            return self
        return ExprGraph(roots, self._known)


@dataclass(frozen=True)
class Rewritten:
    """What rewriting gives.

    Attributes
    ----------
    graph
        The new expressions; the same graph if nothing changed.
    origins
        For every expression that was made the expressions it stands for, among those that were given.
    """

    graph: ExprGraph
    origins: Origins

    @property
    def roots(self) -> dict[str, Expr]:
        """The new expressions that have names."""
        return self.graph.roots


class Uses:
    """Who reads each expression of a graph, while it is rewritten."""

    def __init__(self, graph: ExprGraph) -> None:
        self._users = consumers(graph.order, graph.known)
        self.kept = set(graph.roots.values()) | graph.known

    def of(self, node: Expr) -> list[Expr]:
        """Return the users of an expression, as they were before rewriting."""
        return self._users.get(node, [])

    def is_alone(self, node: Expr) -> bool:
        """Tell whether an expression has one user, and nobody else wants its value."""
        return len(self._users.get(node, ())) == 1 and node not in self.kept

    def inherit(self, new: Expr, old: Expr) -> None:
        """Note that the users of one expression will read another instead."""
        if old in self.kept:
            self.kept.add(new)
        self._users[new] = [*self._users.get(new, ()), *self._users.get(old, ())]


def rewrite(
    graph: ExprGraph, rule: Rule, *, uses: Uses | None = None, downward: bool = False, hides: bool = True
) -> Rewritten:
    """Apply a rule, once from the leaves up, to what is there and to all that it makes, until it has no more.

    Parameters
    ----------
    graph
        What is known in it is left as it is, and no rule sees what is below.
    rule
        Returns the expression that replaces a node, of the same shape, dtype and format, or None to leave it.
    uses
        Told which expression takes whose place, for a rule that asks.
    downward
        The rule sees an expression over its operands as they were given, too, and before these are replaced.
    hides
        False for a rule that looks at no operand's inside: it sees those that are known as they are.
    """
    return _Rewriter(graph, rule, uses, downward, hides).run()


class _Rewriter:
    # One rewriting. What is `done` has found its last form, and so have the operands of that.

    def __init__(self, graph: ExprGraph, rule: Rule, uses: Uses | None, downward: bool, hides: bool) -> None:
        self._graph, self._rule, self._uses, self._downward = graph, rule, uses, downward
        self._done: dict[Expr, Expr] = {node: node for node in graph.known}
        hidden = (node for node in graph.known if hides and node.operands)
        self._hidden: dict[Expr, Expr] = {node: _stand_in(node) for node in hidden}
        self._given = set(graph.order)
        self._origins: dict[Expr, tuple[Expr, ...]] = {}

    def run(self) -> Rewritten:
        graph, done = self._graph, self._done
        first, then = self._rebuilt, self._changed
        if self._downward:
            first, then = then, first
        for node in graph.order:
            if node not in done:
                new = first(node) or then(node)
                if new is None:  # most often
                    done[node] = node
                else:
                    self._settle(node, new)
        roots = {name: done[root] for name, root in graph.roots.items()}
        return Rewritten(graph.replaced(roots), self._origins)

    def _settle(self, given: Expr, found: Expr) -> None:
        # Finds the last form of an expression, from the first that it took.
        done = self._done
        becomes = {given: found}
        looked_at: set[Expr] = set()  # by the rule, over operands as they were
        stack = [given] if found in done else [given, found]
        self._replace(given, found)
        while stack:
            node = stack[-1]
            if node not in done:
                new = becomes.get(node)
                if new is None and self._downward and node not in looked_at:
                    looked_at.add(node)
                    new = self._changed(node)
                if new is None:
                    missing = [operand for operand in node.operands if operand not in done]
                    if missing:
                        stack += missing
                        continue
                    new = self._rebuilt(node) or (None if self._downward else self._changed(node))
                if new is None:
                    done[node] = node
                else:
                    if node not in becomes:
                        becomes[node] = new
                        self._replace(node, new)
                    if new not in done:
                        stack.append(new)
                        continue
                    done[node] = done[new]
            stack.pop()

    def _rebuilt(self, node: Expr) -> Expr | None:
        done, operands = self._done, node.operands
        for operand in operands:
            if done[operand] is not operand:
                new = node.with_operands(*[done[one] for one in operands])
                # An operand that became a constant can make a result sparse that was dense.
                return new if new.sparse == node.sparse else None
        return None

    def _changed(self, node: Expr) -> Expr | None:
        if self._hidden and any(operand in self._hidden for operand in node.operands):
            shadow = node.with_operands(*(self._hidden.get(one, one) for one in node.operands))
            new = self._rule(shadow)
            new = None if new is None or new is shadow else self._revealed(new, node)
        else:
            new = self._rule(node)
        if new is None or new is node:
            return None
        assert (new.shape, new.dtype, new.sparse) == (node.shape, node.dtype, node.sparse), (
            f"a rule makes {new!r} of {node!r}"
        )
        return new

    def _revealed(self, root: Expr, replaced: Expr) -> Expr:
        real = {self._hidden[one]: one for one in replaced.operands if one in self._hidden}
        new: dict[Expr, Expr] = {}
        for node in topological([root], self._done):
            if node in real or node in self._done:
                new[node] = real.get(node, node)
            else:
                new[node] = node.with_operands(*(new[operand] for operand in node.operands))
        return new[root]

    def _replace(self, node: Expr, new: Expr) -> None:
        if self._uses is not None:
            self._uses.inherit(new, node)
        if new in self._given:
            return
        self._stands_for(new, _source(new, node))
        below = [] if new in self._done else [one for one in new.operands if one not in self._done]
        while below:
            one = below.pop()
            if one not in self._done and one not in self._given and one not in self._origins:
                self._stands_for(one, _source(one, node))
                below += one.operands

    def _stands_for(self, new: Expr, node: Expr) -> None:
        origins = self._origins
        before, added = origins.get(new, ()), origins.get(node) or (node,)
        origins[new] = (*before, *[one for one in added if one not in before]) if before else added


def _source(made: Expr, node: Expr) -> Expr:
    # A rule that takes a node through one of its operands makes both again.
    return next((one for one in (node, *node.operands) if _is_same(one, made)), node)


def _is_same(one: Expr, other: Expr) -> bool:
    if isinstance(one, Elementwise) and isinstance(other, Elementwise):
        return one.name == other.name
    return type(one) is type(other)


def _stand_in(node: Expr) -> Expr:
    return Data(b"known " + node.digest, node.shape, node.dtype, node.sparse)


def composed(first: Origins, second: Origins) -> dict[Expr, tuple[Expr, ...]]:
    """Return the origins of what was rewritten twice: those of the second rewriting among what came first."""
    result = dict(first)
    for made, sources in second.items():
        found = dict.fromkeys(origin for source in sources for origin in first.get(source, (source,)))
        result[made] = tuple(found)
    return result


def until_settled(step: Callable[[ExprGraph], Rewritten], graph: ExprGraph) -> Rewritten:
    """Repeat a rewriting whose rules ask for users, which change as it goes, until it changes nothing."""
    result = Rewritten(graph, {})
    while True:
        after = step(result.graph)
        if after.graph is result.graph:
            return result
        result = Rewritten(after.graph, composed(result.origins, after.origins))

"""Bodies closed: what does not change in a loop is taken out of it and given to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from matnb.expr.control import Variable
from matnb.expr.nodes import Broadcast, Create, Elementwise, Expr, Literal, Load, MatMul, Regrid, Transpose
from matnb.expr.traverse import consumers

Inside = Callable[[Expr], bool]


def closed(
    roots: Sequence[Expr],
    inside: Inside,
    own: Callable[[Expr], Variable | None],
    num_own: int,
    given: Sequence[Expr] = (),
) -> tuple[tuple[Expr, ...], tuple[Expr, ...], Mapping[Expr, Expr]]:
    """Return the roots of a body over closed variables, the expressions it is given, and what became of each.

    The largest parts that are not inside are computed once, outside: the body reads them as variables. Left
    inside are constants all the same, and what would take more memory than it saves work.

    Parameters
    ----------
    roots
        As written.
    inside
        Tells whether the body computes an expression. All that is made from such a one is inside too.
    own
        Returns the closed variable of one of the body's own variables; None for anything else.
    num_own
        How many of its own variables it has; the places of what is given follow.
    given
        Expressions that the body is given anyway, first, constants too.
    """
    return _ClosureConverter(roots, inside, own, num_own, given).result


class _ClosureConverter:
    def __init__(
        self,
        roots: Sequence[Expr],
        inside: Inside,
        own: Callable[[Expr], Variable | None],
        num_own: int,
        given: Sequence[Expr],
    ) -> None:
        self._num_own = num_own
        order = _inside(roots, inside)
        self._users = consumers(order)
        self._given: dict[Expr, Variable] = {}
        self._new: dict[Expr, Expr] = {}
        for node in given:
            self._give(node)
        for node in order:
            mine = own(node)
            self._new[node] = mine or node.with_operands(
                *(self._new[one] if inside(one) else self._brought(one) for one in node.operands)
            )
        made = tuple(self._new[root] if inside(root) else self._brought(root) for root in roots)
        self.result = made, tuple(self._given), self._new

    def _give(self, node: Expr) -> Variable:
        if node not in self._given:
            place = self._num_own + len(self._given)
            self._given[node] = Variable(place, node.shape, node.dtype, node.sparse)
        return self._given[node]

    def _brought(self, node: Expr) -> Expr:
        # What is not inside: given as a whole, or made inside after all from operands that are given.
        if node not in self._new:
            if node in self._given:
                self._new[node] = self._given[node]
            elif _is_constant(node):
                self._new[node] = node
            elif _stays(node, self._users.get(node, [])):
                self._new[node] = node.with_operands(*map(self._brought, node.operands))
            else:
                self._new[node] = self._give(node)
        return self._new[node]


def _inside(roots: Sequence[Expr], inside: Inside) -> list[Expr]:
    # What the body computes, operands first; what is below the rest is never looked at.
    order: list[Expr] = []
    seen: set[Expr] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif node not in seen and inside(node):
            seen.add(node)
            stack.append((node, True))
            stack.extend((operand, False) for operand in reversed(node.operands))
    return order


def _is_constant(node: Expr) -> bool:
    match node:
        case Literal():
            return True
        case Create():
            return node.is_cheap
        case Regrid(operand):
            return _is_constant(operand)
    return False


def _stays(node: Expr, users: Sequence[Expr]) -> bool:
    match node:
        case Transpose(operand) if node.sparse:
            return isinstance(operand, Load) and operand.transpose == "none"  # a user's wish
        case Transpose():
            return bool(users) and all(isinstance(user, MatMul) for user in users)  # made by the product
        case MatMul() if not node.sparse:
            # (U @ V) * S is made at the entries of S only
            return bool(users) and all(_samples(user, node) for user in users)
        case Elementwise() | Broadcast():
            return node.size > max(operand.size for operand in node.operands)
    return False


def _samples(user: Expr, factor: Expr) -> bool:
    match user:
        case Elementwise("multiply", (one, other)):
            return user.sparse and (other if one is factor else one).sparse
    return False

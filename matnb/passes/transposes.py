"""The pass that moves transposes to the leaves where they cancel, and up where several become one."""

from __future__ import annotations

from collections.abc import Container

from matnb.blocks.semiring import semiring_named
from matnb.expr.nodes import Create, Elementwise, Expr, MaskedMatMul, MatMul, Reduce, Transpose
from matnb.expr.traverse import ExprGraph, Rewritten, Uses, rewrite, until_settled
from matnb.passes.constants import filled, uniform
from matnb.passes.entries import EntryEstimates
from matnb.passes.identities import identity
from matnb.passes.products import is_sampled

_TURNED = (1, 0)
_ORDERLESS = {"any", "all", "stored"}
_ORDERLESS_OF_WHOLE = {"sum", "prod", "min", "max"}


def move_transposes(graph: ExprGraph) -> Rewritten:
    """Move transposes so that fewer are made, where no bit changes; those that products absorb stay."""
    return until_settled(_moved, graph)


def _moved(graph: ExprGraph) -> Rewritten:
    if Transpose not in graph.kinds:
        return Rewritten(graph, {})
    uses = Uses(graph)
    return rewrite(graph, _Mover(uses, graph.known).moved, uses=uses)


class _Mover:
    # Rules that ask who reads an expression, and what its transpose would cost.

    def __init__(self, uses: Uses, known: Container[Expr]) -> None:
        self._uses, self._known, self._entries = uses, known, EntryEstimates(known)
        # For each matrix how many transposes its transpose takes more than itself, at most 1.
        self._costs: dict[Expr, int] = {}

    def moved(self, node: Expr) -> Expr | None:
        found: Expr | None = None
        match node:
            case Transpose():
                found = identity(node) or self._sunk(node)
            case Elementwise():
                found = self._lifted(node)
            case MatMul():
                found = self._turned(node)
            case Reduce(Transpose()):
                found = _reduced(node)
        if found is None and node.ndim == 2:
            self._costs[node] = self._cost(node)
        return found

    def _cost(self, node: Expr) -> int:
        match node:
            case Transpose(_, axes) if axes == _TURNED:
                return -1 if self._uses.is_alone(node) else 0
            case Elementwise(_, inputs) if self._uses.is_alone(node) and _is_pointwise(node):
                return self._cost_of(inputs)
        return 0 if uniform(node) is not None else 1

    def _cost_of(self, inputs: tuple[Expr, ...]) -> int:
        return min(1, sum(self._costs.get(one, 1) for one in dict.fromkeys(inputs) if one.ndim == 2))

    def _sunk(self, node: Transpose) -> Expr | None:
        if node.axes != _TURNED:
            return None
        match node.operand:
            # f(x, y)' = f(x', y')
            case Elementwise(_, inputs) as inner if (
                self._uses.is_alone(inner)
                and _is_pointwise(inner)
                and any(one.ndim for one in inputs)
                and not self._is_absorbed(node)
                and sum(self._costs.get(one, 1) for one in dict.fromkeys(inputs) if one.ndim == 2) <= 1
            ):
                return _alike(inner.with_operands(*map(self._transposed, inputs)), node)
            # (A B)' = B' A', where one of them is a transpose, and the multiplication is turned
            case MatMul(left, right, semiring) as inner if (
                self._uses.is_alone(inner)
                and _is_exact(inner)
                and self._costs.get(left, 1) + self._costs.get(right, 1) <= 0
            ):
                turned = semiring_named(semiring).turned.name
                return _alike(MatMul(self._transposed(right), self._transposed(left), turned), node)
        return None

    def _transposed(self, node: Expr) -> Expr:
        if not node.ndim:
            return node
        turned = Transpose(node, _TURNED)
        if (value := uniform(node)) is not None and isinstance(node, Create):
            return filled(value, turned)
        # What is below a known array may be gone.
        return turned if node in self._known else identity(turned) or turned

    def _is_absorbed(self, node: Transpose) -> bool:
        # x' B and, of the entries of S alone, A x' are made of x itself.
        users = self._uses.of(node)
        if not users or node in self._uses.kept:
            return False
        return all(
            (
                isinstance(user, MatMul)
                and isinstance(user.left, Transpose)
                and not isinstance(user.right, Transpose)
                and user.right.ndim <= 2
            )
            or (
                isinstance(user, MatMul | MaskedMatMul)
                and isinstance(user.right, Transpose)
                and (isinstance(user, MaskedMatMul) or is_sampled(user, self._uses.of(user)))
            )
            for user in users
        )

    def _lifted(self, node: Elementwise) -> Expr | None:
        # f(x', y', c) = f(x, y, c)', if nobody else needs the transposes
        turned = dict.fromkeys(one for one in node.inputs if isinstance(one, Transpose))
        axes = {one.axes for one in turned if isinstance(one, Transpose)}
        if len(turned) < 2 or len(axes) > 1 or not all(map(self._uses.is_alone, turned)):
            return None
        if any(one.ndim and one not in turned for one in node.inputs):
            return None
        if any(one.ndim != node.ndim for one in turned):
            return None
        inside = node.with_operands(
            *(one.operand if isinstance(one, Transpose) else one for one in node.inputs)
        )
        return _alike(Transpose(inside, axes.pop()), node)

    def _turned(self, node: MatMul) -> Expr | None:
        # A' B' = (B A)', if that leaves a smaller one to be made
        match node:
            case MatMul(Transpose(first, axes) as one, Transpose(second) as other, semiring) if (
                axes == _TURNED
                and _is_exact(node)
                and one is not other
                and self._uses.is_alone(one)
                and self._uses.is_alone(other)
                and not is_sampled(node, self._uses.of(node))
            ):
                inside = MatMul(second, first, semiring_named(semiring).turned.name)
                if self._entries.of(inside) < self._entries.of(first) + self._entries.of(second):
                    return _alike(Transpose(inside, _TURNED), node)
        return None


def _reduced(node: Reduce) -> Expr | None:
    # reduce(x ' axes, over) = reduce(x, axes[over]), where the order of the elements changes no bit
    match node:
        case Reduce(Transpose(x, axes), operation, over, keepdims, element):
            kind = x.dtype.kind
            exact = (
                operation in _ORDERLESS
                or (operation in _ORDERLESS_OF_WHOLE and kind in "biu" and element.kind in "biu")
                or (operation == "sum" and len(over) == 1)
            )
            rest = [axes[place] for place in range(len(axes)) if place not in over]
            if not exact or rest != sorted(rest):
                return None
            inner = Reduce(x, operation, tuple(sorted(axes[place] for place in over)), keepdims, element)
            return inner if not keepdims else Transpose(inner, axes)
    return None


def _is_pointwise(node: Elementwise) -> bool:
    # Operands of one axis would stand along the other one.
    return node.ndim == 2 and all(one.ndim in (0, 2) for one in node.inputs)


def _is_exact(node: MatMul) -> bool:
    # Sums go through the inner axis in its order, whichever side is rows; BLAS has an order of its own.
    return node.left.sparse and node.right.sparse


def _alike(found: Expr, node: Expr) -> Expr | None:
    # A stretched operand can be sparse on one side only.
    return (
        found if (found.shape, found.dtype, found.sparse) == (node.shape, node.dtype, node.sparse) else None
    )

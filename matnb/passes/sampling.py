"""The pass that works out dense arrays only where a sparse one that meets them stores entries."""

from __future__ import annotations

import numpy as np

from matnb.blocks.formats import SPARSE_DTYPES
from matnb.blocks.semiring import ANNIHILATORS
from matnb.expr.nodes import Elementwise, Expr, MaskedMatMul, MatMul, OnEntries
from matnb.expr.traverse import ExprGraph, Rewritten, Uses, rewrite, topological, until_settled
from matnb.ops.pattern import AtEntries, Pattern
from matnb.ops.selecting import Select

_TRUTH = np.dtype(np.bool_)


def sample(graph: ExprGraph) -> Rewritten:
    """Make of products, and of functions of them, only the elements that entries of sparse arrays meet.

    Where a product or quotient with a sparse array is all that a dense one is read for, as in ``S / (U @ V)``
    and ``S * np.log(S / (U @ V))``, or what selects entries, as in ``S.select(u[:, None] > v)``, what it is
    at other places changes nothing.
    """
    return until_settled(_sampled, graph)


def _sampled(graph: ExprGraph) -> Rewritten:
    if not any(_met(node) is not None for node in graph.order if node not in graph.known):
        return Rewritten(graph, {})
    return rewrite(graph, _Sampler(graph).sampled, downward=True)


def _met(node: Expr) -> tuple[int, int] | None:
    # Of a function that is absent where a sparse operand is: the places of that operand and of a dense one.
    if isinstance(node, Select):
        return None if node.mask.sparse else (0, 1)
    if not isinstance(node, Elementwise) or not node.sparse or len(node.inputs) != 2:
        return None
    for place, (one, other) in enumerate((node.inputs, node.inputs[::-1])):
        is_absent = place in ANNIHILATORS.get(node.name, ()) or isinstance(node, OnEntries)
        if one.sparse and is_absent and not other.sparse and other.shape == node.shape:
            return place, 1 - place
    return None


class _Sampler:
    # The rule, which asks of what only elements at entries are read.

    def __init__(self, graph: ExprGraph) -> None:
        uses = Uses(graph)
        self._stored = same_entries(graph)
        self._partly: set[Expr] = set()
        for node in reversed(graph.order):
            if (
                isinstance(node, Elementwise | MatMul)
                and not node.sparse
                and node.ndim == 2
                and node.dtype in SPARSE_DTYPES
                and node not in uses.kept
                and (users := uses.of(node))
                and all(self._reads_some(user, node) for user in users)
            ):
                self._partly.add(node)
        self._alone = {node for node in self._partly if len(uses.of(node)) == 1}

    def _reads_some(self, user: Expr, node: Expr) -> bool:
        places = _met(user)
        if places is not None and user.operands[places[1]] is node:
            return True
        return user in self._partly and isinstance(user, Elementwise) and user.shape == node.shape

    def sampled(self, node: Expr) -> Expr | None:
        places = _met(node)
        if places is None:
            return None
        sparse, dense = (node.operands[place] for place in places)
        if dense not in self._partly or self._is_made_so(node, dense):
            return None
        found = self._at(dense, sparse)
        if not found.sparse:
            return None
        operands = (sparse, found) if places == (0, 1) else (found, sparse)
        return node.with_operands(*operands)

    def _is_made_so(self, node: Expr, dense: Expr) -> bool:
        # S * (A @ B) becomes one operator, if it is all of one dtype.
        if not isinstance(node, Elementwise):
            return False
        kinds = {node.dtype, *node.input_dtypes, *(one.dtype for one in (*node.inputs, *dense.operands))}
        return (
            isinstance(dense, MatMul)
            and node.name == "multiply"
            and type(node) is Elementwise
            and dense in self._alone
            and len(kinds) == 1
        )

    def _at(self, dense: Expr, sparse: Expr) -> Expr:
        # A dense expression at the entries of a sparse array, or itself where nothing in it is worth that.
        pattern = self._pattern(sparse)
        found: dict[Expr, Expr] = {}
        for node in topological([dense], (), lambda one: one.operands if one in self._partly else ()):
            found[node] = node
            match node:
                # (A B) at the entries of P is A B under the mask P
                case MatMul(left, right, semiring) if node in self._partly and left.ndim == right.ndim == 2:
                    found[node] = MaskedMatMul(left, right, pattern, semiring, False)
                # f(x, y) at the entries is f of x and y there
                case Elementwise(name, inputs, dtypes, element, output) if node in self._partly:
                    inside = tuple(found[one] for one in inputs)
                    if any(one.sparse and one.shape != node.shape for one in inside):
                        continue  # its blocks have not the shape of the result's
                    if all(one.size < node.size for one in inside):
                        inside = (_stretched(inside[0], pattern), *inside[1:])
                    if any(one.sparse and one.shape == node.shape for one in inside):
                        found[node] = OnEntries(name, inside, dtypes, element, output)
                case _ if node.sparse and node.shape == sparse.shape and self._pattern(node) is not pattern:
                    found[node] = AtEntries(node, pattern)
        return found[dense]

    def _pattern(self, node: Expr) -> Expr:
        # The pattern of a sparse expression: the same for all that surely store the same entries.
        return Pattern(self._stored.get(node, node), _TRUTH)


def _stretched(vector: Expr, pattern: Expr) -> Expr:
    # A vector as the entries of a pattern; what is made of vectors alone is else a matrix of every element.
    dtype = vector.dtype
    if dtype not in SPARSE_DTYPES:
        return vector
    name = "logical_and" if dtype == _TRUTH else "multiply"
    return OnEntries(name, (pattern, vector), (dtype, dtype), dtype)


def same_entries(graph: ExprGraph) -> dict[Expr, Expr]:
    """Return for sparse expressions another that stores the same entries: of those that do the first."""
    found: dict[Expr, Expr] = {}
    for node in graph.order:
        if not node.sparse:
            continue
        found[node] = node
        if node in graph.known:
            continue
        match node:
            case Pattern(inner) | AtEntries(_, inner):
                found[node] = found[inner]
            # all entries of a pattern are true
            case MaskedMatMul(left, right, Pattern() as mask, _, False) if not (left.sparse and right.sparse):
                found[node] = found[mask]
            case Elementwise(name, inputs) if not node.drops_zeros:
                stored = {one for one in inputs if one.sparse}
                absent = {inputs[place] for place in ANNIHILATORS.get(name, ()) if place < len(inputs)}
                meeting = {found[one] for one in stored & absent or stored}
                if len(meeting) == 1:
                    (found[node],) = meeting
    return found

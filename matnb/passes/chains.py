"""The pass that chooses the order in which chains of matrix products are made, by what each order costs."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from matnb.expr.nodes import Expr, MatMul
from matnb.expr.traverse import ExprGraph, Rewritten, Uses, rewrite, until_settled
from matnb.passes.entries import EntryEstimates
from matnb.passes.products import is_associative, is_sampled

# Time of one multiplication of dense operands, of one sparse, and of two: orders of magnitude.
_DENSE, _MIXED, _SPARSE = 1.0, 10.0, 50.0
_WORTH = (
    2.0  # an order is changed if it costs this many times the best, since sums are then rounded otherwise
)
_MOST = 40  # operands of a chain; of more, every order would take long to look at


def order_chains(graph: ExprGraph) -> Rewritten:
    """Make chains of products in a cheaper order: `A @ B @ x` as `A @ (B @ x)`."""
    return until_settled(_reordered, graph)


def _reordered(graph: ExprGraph) -> Rewritten:
    products = [node for node in graph.order if isinstance(node, MatMul) and node not in graph.known]
    if len(products) < 2:
        return Rewritten(graph, {})
    uses = Uses(graph)
    inner = {
        operand
        for node in products
        for operand in (node.left, node.right)
        if isinstance(operand, MatMul) and _continues(node, operand, uses)
    }
    better: dict[Expr, Expr] = {}
    entries = EntryEstimates(graph.known)
    for node in products:
        if node in inner or is_sampled(node, uses.of(node)):
            continue
        chain = _factors(node, inner)
        if 2 < len(chain) <= _MOST and (found := _better(node, chain, entries)) is not None:
            better[node] = found
    if not better:
        return Rewritten(graph, {})
    return rewrite(graph, better.get, downward=True, hides=False)


def _continues(node: MatMul, operand: MatMul, uses: Uses) -> bool:
    # (A B) C = A (B C), if the product in between is needed for nothing else and a vector stands at an end
    if operand.semiring != node.semiring or not uses.is_alone(operand):
        return False
    if not is_associative(node) or not is_associative(operand):
        return False
    if not (node.shape and operand.shape):
        return False
    return operand.ndim == 2 or (operand.left if operand is node.left else operand.right).ndim == 1


def _factors(root: Expr, inner: Container[Expr]) -> list[Expr]:
    # The operands of a chain from left to right.
    found: list[Expr] = []
    stack: list[Expr] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, MatMul) and (node is root or node in inner):
            stack += [node.right, node.left]
        else:
            found.append(node)
    return found


@dataclass(frozen=True)
class _ChainPart:
    # A product of neighbors: its lengths as a matrix, what it stores, and what it and all below it cost.
    rows: int
    columns: int
    sparse: bool
    entries: float
    cost: float
    split: int = 0


def _better(node: MatMul, chain: Sequence[Expr], entries: EntryEstimates) -> Expr | None:
    leaves = [_leaf(one, place == 0, entries) for place, one in enumerate(chain)]
    now = _cost_of(node, chain, leaves)
    best = _best(leaves)
    has_vector = min(chain[0].ndim, chain[-1].ndim) == 1
    cost = best[0, len(chain) - 1].cost
    if now <= cost * (1.0 + 1e-9 if has_vector else _WORTH):  # costs of one order differ in their last bits
        return None
    found = _written(chain, best, node.semiring)
    alike = (found.shape, found.dtype, found.sparse) == (node.shape, node.dtype, node.sparse)
    return found if alike else None


def _leaf(node: Expr, first: bool, entries: EntryEstimates) -> _ChainPart:
    rows, columns = node.shape if node.ndim == 2 else ((1, *node.shape) if first else (*node.shape, 1))
    return _ChainPart(rows, columns, node.sparse, entries.of(node), 0.0)


def _joined(left: _ChainPart, right: _ChainPart, split: int) -> _ChainPart:
    size = float(left.rows * right.columns)
    cost = left.cost + right.cost
    if not left.sparse and not right.sparse:
        return _ChainPart(left.rows, right.columns, False, size, cost + _DENSE * size * left.columns, split)
    # each entry of the left meets a row of the right
    meetings = left.entries * right.entries / max(1, right.rows)
    if left.sparse and right.sparse:
        return _ChainPart(
            left.rows, right.columns, True, min(meetings, size), cost + _SPARSE * meetings, split
        )
    return _ChainPart(left.rows, right.columns, False, size, cost + _MIXED * meetings + size, split)


def _best(leaves: Sequence[_ChainPart]) -> dict[tuple[int, int], _ChainPart]:
    # For each run of neighbors the cheapest order: Cormen et al., Introduction to Algorithms, section 15.2.
    best = {(place, place): leaf for place, leaf in enumerate(leaves)}
    for length in range(1, len(leaves)):
        for start in range(len(leaves) - length):
            end = start + length
            ways = (_joined(best[start, split], best[split + 1, end], split) for split in range(start, end))
            best[start, end] = min(ways, key=lambda part: part.cost)
    return best


def _cost_of(node: MatMul, chain: Sequence[Expr], leaves: Sequence[_ChainPart]) -> float:
    # What the order as written costs.
    remaining = list(zip(chain, leaves, strict=True))[::-1]
    done: list[_ChainPart] = []
    stack: list[tuple[Expr, bool]] = [(node, False)]
    while stack:
        one, ready = stack.pop()
        if ready:
            right, left = done.pop(), done.pop()
            done.append(_joined(left, right, 0))
        elif remaining and one is remaining[-1][0]:
            done.append(remaining.pop()[1])
        else:
            assert isinstance(one, MatMul), "a chain is made of products"
            stack += [(one, True), (one.right, False), (one.left, False)]
    return done[0].cost


def _written(chain: Sequence[Expr], best: Mapping[tuple[int, int], _ChainPart], semiring: str) -> Expr:
    made: dict[tuple[int, int], Expr] = {(place, place): one for place, one in enumerate(chain)}
    stack = [(0, len(chain) - 1)]
    while stack:
        start, end = stack[-1]
        split = best[start, end].split
        missing = [run for run in ((start, split), (split + 1, end)) if run not in made]
        if missing:
            stack += missing
            continue
        stack.pop()
        made[start, end] = MatMul(made[start, split], made[split + 1, end], semiring)
    return made[0, len(chain) - 1]

"""Where a plan makes sparse arrays dense, the most common cause of unexpected memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from matnb.expr.control import Cond, Loop
from matnb.expr.nodes import Expr, MaskedMatMul, MatMul
from matnb.pictures.quantities import bytes_text
from matnb.plan.estimate import estimate_entries
from matnb.program.memory import estimate_bytes
from matnb.program.plan import Stage, StoredArray

LEAST_BYTES = 2**20  # of what is dense: below, nobody needs to know
MOST_TOLD = 3  # of a plan
_MUCH_LARGER = 2  # times the sparse array: a nearly full one takes as much


@dataclass(frozen=True)
class Densification:
    """An operation that makes a sparse array dense.

    Attributes
    ----------
    node
        The operation.
    before, after
        Bytes of the sparse array and of the dense one.
    """

    node: Expr
    before: int
    after: int

    @property
    def text(self) -> str:
        """What it does, for a user."""
        words = self.node.describe(tuple(one.form_text() for one in self.node.operands))
        sizes = f"{bytes_text(self.before)} become {bytes_text(self.after)}"
        return f"{words} makes a sparse array dense: {sizes}"


def densified(stages: Sequence[Stage], stored: Mapping[Expr, StoredArray]) -> list[Densification]:
    """Return what among some stages makes large sparse arrays dense, those that grow most first.

    Parameters
    ----------
    stored
        Arrays that the stages read.
    """
    nodes = (one for stage in stages for one in (*stage.inside, stage.expression))
    made = {node: operand for node in nodes if (operand := _made_dense(node)) is not None}
    if not made:
        return []
    sizes = {stage.expression: stage.estimated_bytes for stage in stages}
    sizes |= {node: sum(array.block_bytes) for node, array in stored.items() if array.block_bytes}
    found = []
    for node, operand in made.items():
        after = prod(node.shape) * node.dtype.itemsize
        before = sizes.get(operand)
        if before is None:
            before = estimate_bytes(operand, estimate_entries([operand], stored)[operand])
        if after >= max(LEAST_BYTES, _MUCH_LARGER * before):
            found.append(Densification(node, before, after))
    return sorted(found, key=lambda one: one.before - one.after)


def _made_dense(node: Expr) -> Expr | None:
    # The sparse operand of what is dense and at least as large, but for products, whose sums are no copies.
    if node.sparse or isinstance(node, MatMul | MaskedMatMul | Loop | Cond):
        return None
    if prod(node.shape) * node.dtype.itemsize < LEAST_BYTES:
        return None
    return next((one for one in node.operands if one.sparse and one.size <= node.size), None)

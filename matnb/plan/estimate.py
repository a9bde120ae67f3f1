"""How many entries and bytes an expression will hold, from counts alone."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from math import prod

from matnb.blocks.formats import dense_bytes, sparse_bytes
from matnb.blocks.kernels.elementwise import ANNIHILATORS
from matnb.lazy.expr import Create, Elementwise, Expr, Index, Load, MaskedMatMul, MatMul, Regrid, Transpose
from matnb.lazy.holdings import held
from matnb.lazy.traverse import topological
from matnb.plan.plan import Stored


def estimate_entries(roots: Iterable[Expr], stored: Mapping[Expr, Stored]) -> dict[Expr, int]:
    """Return the stored entries of every expression under the roots: a guess for sparse ones."""
    known: Container[Expr] = stored
    entries: dict[Expr, int] = {}
    for node in topological(roots, known):
        if not node.sparse:
            entries[node] = prod(node.shape)
        elif node in stored and stored[node].block_nnz:
            entries[node] = sum(stored[node].block_nnz)
        else:
            entries[node] = min(_sparse_entries(node, entries), prod(node.shape))
    return entries


def _sparse_entries(node: Expr, entries: Mapping[Expr, int]) -> int:
    match node:
        case Load(source):
            return source.estimated_entries()
        case Create():
            return min(node.shape)
        case Transpose(operand) | Regrid(operand):
            return entries.get(operand, 0)
        case Index(operand):
            return max(1, entries.get(operand, 0) * prod(node.shape) // max(1, prod(operand.shape)))
        case MatMul(left, right):
            # each entry of the left meets an average row of the right
            return entries.get(left, 0) * entries.get(right, 0) // max(1, right.shape[0])
        case MaskedMatMul(left, right, mask, _, complement):
            if mask.sparse and not complement:
                return entries.get(mask, 0)
            return entries.get(left, 0) * entries.get(right, 0) // max(1, right.shape[0])
        case Elementwise(name, inputs):
            counts = {place: entries.get(one, 0) for place, one in enumerate(inputs) if one.sparse}
            meet = [count for place, count in counts.items() if place in ANNIHILATORS.get(name, ())]
            return min(meet) if meet else sum(counts.values())
    block = held(node)
    return 0 if block is None else block.nnz


def estimate_bytes(node: Expr, entries: int) -> int:
    """Return the bytes that an expression with this many stored entries holds."""
    if node.sparse:
        return sparse_bytes(node.shape[0], entries, node.dtype)
    return dense_bytes(node.shape, node.dtype)

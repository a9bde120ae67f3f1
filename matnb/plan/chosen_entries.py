"""Estimates how many entries a selection of a sparse array has: slices, lists, masks.

The same holds for a Kronecker product, which pairs every entry of one with every entry of the other.

Few rows of a grown graph have most of its entries, so an average says little about some of them. Counts of
rows and columns are expressions like any other, and are chosen from in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod

import numpy as np

from matnb.blocks.creation import Full
from matnb.expr.nodes import Create, Elementwise, Expr, Index, Literal, MaskedMatMul, MatMul, Reduce
from matnb.ops.contracting import Kron
from matnb.ops.dynamic_slicing import DynamicSlice
from matnb.ops.indexing import Pick, Put
from matnb.ops.reshaping import RepeatEach
from matnb.ops.selecting import Compress
from matnb.plan.product_entries import entries_along, is_worth_counting, meetings
from matnb.program.plan import Stage

Choice = Index | Pick | Compress | DynamicSlice | RepeatEach | Kron
_COUNT = np.dtype(np.int64)


def choices_worth_counting(stages: Iterable[Stage], entries: Mapping[Expr, int]) -> Iterator[Expr]:
    """Yield what a plan chooses of sparse arrays, where it may be so large that a count matters.

    Parameters
    ----------
    entries
        Of everything in it, at most.
    """
    for node in dict.fromkeys(one for stage in stages for one in stage.inside):
        most = most_chosen(node, entries)
        if most is not None and is_worth_counting(node, most):
            yield node


def most_chosen(node: Expr, entries: Mapping[Expr, int]) -> int | None:
    """Return an upper bound on the entries of a selection of a sparse array; None for all else.

    Parameters
    ----------
    entries
        Of its operands, at most.
    """
    if not (node.sparse and isinstance(node, Choice)):
        return None
    most, limit = entries.get(node.operands[0], 0), prod(node.shape)
    if isinstance(node, Pick | RepeatEach):
        most = node.shape[node.axis] * min(most, node.shape[1 - node.axis])
    elif isinstance(node, Kron):
        most *= entries.get(node.right, 0)
    return min(most, limit)


def entries_at_most(node: Expr) -> Expr:
    """Return the expression of at most how many entries a product or a choice of sparse arrays stores."""
    return meetings(node) if isinstance(node, MatMul | MaskedMatMul) else chosen_entries(node)


def chosen_entries(node: Expr) -> Expr:
    """Return the expression that counts the entries of a selection of a sparse array."""
    match node:
        case Index(operand, (first, second)):
            whole = [slice(0, length, 1) for length in operand.shape]
            if second == whole[1]:
                return _sum(Index(entries_along(operand, 1), (first,)))
            if first == whole[0]:
                return _sum(Index(entries_along(operand, 0), (second,)))
            assert isinstance(second, slice), "what is sparse has both its axes"
            return _sum(Index(entries_along(operand, 1, _ones_at(second, operand.shape[1])), (first,)))
        case Pick(operand, inputs, axis):
            return _sum(Pick(entries_along(operand, 1 - axis), inputs, 0))
        case DynamicSlice(operand, start, count, axis):
            return _sum(DynamicSlice(entries_along(operand, 1 - axis), start, count, 0))
        case RepeatEach(operand, counts, axis):
            return MatMul(_whole(counts), entries_along(operand, 1 - axis))
        case Compress(operand, mask):
            return MatMul(_whole(mask), entries_along(operand, 1))
        case Kron(left, right):
            both = tuple(_sum(entries_along(one, 1)) for one in (left, right))
            return Elementwise("multiply", both, (_COUNT, _COUNT), _COUNT)
    raise TypeError(f"{node!r} chooses nothing of a sparse array")


def _sum(counts: Expr) -> Expr:
    return Reduce(counts, "sum", (0,), False, _COUNT)


def _whole(numbers: Expr) -> Expr:
    return Elementwise("astype", (numbers,), (numbers.dtype,), _COUNT)


def _ones_at(part: slice, length: int) -> Expr:
    # A vector with ones at the places of a slice, and zeros beside.
    places = range(*part.indices(length))
    zeros = Create(Full((length,), np.int64(0).tobytes(), _COUNT))
    if not places:
        return zeros
    low, high = min(places[0], places[-1]), max(places[0], places[-1])
    one = Literal(np.int64(1).tobytes(), (), _COUNT)
    return Put(zeros, one, (), (slice(low, high + 1, abs(places.step)),))

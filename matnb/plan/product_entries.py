"""Upper bounds for the entries of sparse products, from the pairs of entries that meet.

Column k of the left array meets row k of the right one, so that the sum over k of their numbers of entries is
a bound, which is an expression like any other and is counted where the blocks are. How many entries are
stored in fact is known once the product is made.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce

import numpy as np

from matnb.blocks.creation import Full
from matnb.blocks.formats import sparse_bytes
from matnb.blocks.semiring import ANNIHILATORS
from matnb.expr.nodes import Create, Elementwise, Expr, MaskedMatMul, MatMul, Transpose
from matnb.program.plan import Stage

# Below, counting would take longer than it is worth: whatever is guessed is off by less than this.
WORTH_COUNTING_BYTES = 32 * 2**20
_COUNT = np.dtype(np.int64)
_MOST_COUNTS = 10_000


class ProductCounts(Mapping[Expr, int]):
    """At most how many entries products store that were counted, by their digests; the newest of them.

    A count follows from the expression alone, so one that is written again needs none.
    """

    def __init__(self) -> None:
        self._counts: OrderedDict[bytes, int] = OrderedDict()

    def note(self, node: Expr, count: int) -> None:
        """Remember the count of a product or a choice: its size at most, as where the count overflowed."""
        self._counts[node.digest] = min(count, node.size) if count >= 0 else node.size
        if len(self._counts) > _MOST_COUNTS:
            self._counts.popitem(last=False)

    def __getitem__(self, node: Expr) -> int:
        return self._counts[node.digest]

    def __contains__(self, node: object) -> bool:
        return isinstance(node, Expr) and node.digest in self._counts

    def __iter__(self) -> Iterator[Expr]:
        raise TypeError("counts are known by digests alone")

    def __len__(self) -> int:
        return len(self._counts)


def most_entries(node: Expr, entries: Mapping[Expr, int]) -> int:
    """Return at most how many entries a product of two sparse arrays stores, from theirs alone.

    Parameters
    ----------
    node
        A sparse MatMul or MaskedMatMul.
    entries
        Of its operands.
    """
    left, right = entries[node.left], entries[node.right]  # type: ignore[attr-defined]  # of both kinds
    rows, columns = node.shape
    return min(rows * columns, left * min(columns, right), right * min(rows, left))


def is_worth_counting(node: Expr, most: int) -> bool:
    """Tell whether a sparse array that stores ``most`` entries would be so large that a count matters."""
    return sparse_bytes(node.shape[0], most, node.dtype) > WORTH_COUNTING_BYTES


def worth_counting(stages: Iterable[Stage], entries: Mapping[Expr, int]) -> Iterator[Expr]:
    """Yield the products of sparse arrays in a plan that may be so large that this matters."""
    for node in dict.fromkeys(one for stage in stages for one in stage.inside):
        if not isinstance(node, MatMul | MaskedMatMul) or not (node.left.sparse and node.right.sparse):
            continue
        if isinstance(node, MaskedMatMul) and node.mask.sparse and not node.complement:
            continue  # the mask has as many
        if is_worth_counting(node, most_entries(node, entries)):
            yield node


def operands_counted(node: Expr) -> list[Expr]:
    """Return the arrays that are counted for a product or a choice: what it reads, but for what is quick."""
    found: dict[Expr, None] = {}
    stack = list(reversed(node.operands[:2]))
    while stack:
        one = stack.pop()
        if isinstance(one, Transpose | MatMul | MaskedMatMul | Elementwise):
            stack += [each for each in reversed(one.operands) if each.sparse]
        elif one.sparse or not one.is_source:
            found[one] = None
    return list(found)


def meetings(node: Expr) -> Expr:
    """Return the expression of how many pairs of entries meet in a product of two sparse arrays."""
    left, right = node.left, node.right  # type: ignore[attr-defined]  # of a product
    return MatMul(entries_along(left, 0), entries_along(right, 1))


def entries_along(node: Expr, axis: int, times: Expr | None = None) -> Expr:
    """Return the expression of at most how many entries there are in each column (axis 0) or row (axis 1).

    Parameters
    ----------
    times
        How often each row (axis 0) or column (axis 1) counts, whole numbers; once each without.
    """
    match node:
        case Transpose(operand):
            return entries_along(operand, 1 - axis, times)
        case MatMul(left, right) | MaskedMatMul(left, right):
            if axis == 0:
                return MatMul(entries_along(left, 0, times), _pattern(right))
            return MatMul(_pattern(left), entries_along(right, 1, times))
        case Elementwise():
            sparse = [one for one in node.operands if one.sparse]
            counts = [entries_along(one, axis, times) for one in _meeting(node)[:1] or sparse]
            return reduce(lambda x, y: Elementwise("add", (x, y), (_COUNT, _COUNT), _COUNT), counts)
    if times is not None:
        return MatMul(times, node, "plus_first") if axis == 0 else MatMul(node, times, "plus_second")
    ones = Create(Full((node.shape[axis],), np.int64(1).tobytes(), _COUNT))
    return MatMul(ones, node, "plus_pair") if axis == 0 else MatMul(node, ones, "plus_pair")


def _pattern(node: Expr) -> Expr:
    # Ones where there are entries; entries that are 0 meet nothing that lasts.
    if isinstance(node, Transpose):
        return Transpose(_pattern(node.operand), node.axes)
    return Elementwise("astype", (node,), (node.dtype,), np.dtype(np.bool_))


def _meeting(node: Elementwise) -> list[Expr]:
    # The sparse operands outside of which nothing is stored, whatever the others are.
    places = ANNIHILATORS.get(node.name, ())
    return [one for place, one in enumerate(node.operands) if one.sparse and place in places]

"""Arrays of one shape added in pairs, and these sums in pairs again: a tree that follows from their order.

So part of them, next to each other, can be added on another worker with the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from matnb.blocks.formats import NumericArray, cast

_TILE = 2**12  # elements: the sums of a tile stay in cache, and are no large arrays
T = TypeVar("T")


def middle(count: int) -> int:
    """Return how many of ``count`` values the first of two sums has: the largest power of two below it."""
    return 1 << (count - 1).bit_length() - 1


def in_pairs(values: Sequence[T], add: Callable[[T, T], T]) -> T:
    """Return values added as a tree: the first ``middle(n)`` of n, the rest, and then both."""
    stack: list[tuple[int, T]] = []  # sums of ever smaller powers of two
    for value in values:
        level = 0
        while stack and stack[-1][0] == level:
            value, level = add(stack.pop()[1], value), level + 1
        stack.append((level, value))
    _, total = stack.pop()
    while stack:
        total = add(stack.pop()[1], total)
    return total


def add_in_pairs(parts: Sequence[NumericArray], combine: np.ufunc, wide: np.dtype, out: NumericArray) -> None:
    """Write arrays added as a tree into ``out``, which may be the memory of the first or the second.

    Parameters
    ----------
    parts
        At least two, of one shape.
    combine
        How two elements are added.
    wide
        The dtype of sums on the way.
    """
    if out.ndim != 1 and all(one.flags.c_contiguous for one in (out, *parts)):
        out, parts = out.reshape(-1), [part.reshape(-1) for part in parts]
    rows = out.shape[0]
    step = max(1, _TILE * rows // max(1, out.size))
    free: list[NumericArray] = []
    for first in range(0, rows, step):
        tile = slice(first, first + step)
        _add_tile([part[tile] for part in parts], combine, wide, out[tile], free)


def _add_tile(
    parts: Sequence[NumericArray],
    combine: np.ufunc,
    wide: np.dtype,
    out: NumericArray,
    free: list[NumericArray],
) -> None:
    held: set[int] = set()  # what is no part, and may be written
    is_first = out.dtype == wide

    def add(left: NumericArray, right: NumericArray) -> NumericArray:
        nonlocal is_first
        if id(left) in held:
            target = left
        elif is_first:  # the first two; what they are is not read again
            target, is_first = out, False
        else:
            found = next((place for place, one in enumerate(free) if one.shape == out.shape), None)
            target = np.empty(out.shape, wide) if found is None else free.pop(found)
        combine(cast(left, wide), cast(right, wide), out=target)
        if id(right) in held:
            held.discard(id(right))
            free.append(right)
        held.add(id(target))
        return target

    total = in_pairs(parts, add)
    if total is not out:
        np.copyto(out, total, casting="same_kind")
        free.append(total)

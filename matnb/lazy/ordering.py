"""Expressions of arrays in order: which node sorts along an axis, and what is composed of others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from matnb.expr.nodes import Broadcast, Expr, Index
from matnb.lazy.ufuncs import call
from matnb.ops.joining import Concatenate
from matnb.ops.ordering import ArgSort, Sort

_FEW_LANES = 4  # up to so many lanes, each is sorted as an array of its own
_LONG_BYTES = 2**20  # of which each has more than this, so that its blocks are sorted side by side


def sorted_of(node: Expr) -> Expr:
    """Return the elements of a 1-D array ascending, NaN last."""
    return Sort(dense_of(node), 0)


def sorted_along(node: Expr, axis: int, descending: bool = False) -> Expr:
    """Return the elements of an array in order along an axis, in ascending order NaN last."""
    found = by_lanes(dense_of(node), axis, lambda lane, along: Sort(lane, along))
    return flipped(found, axis) if descending else found


def arg_sorted_along(node: Expr, axis: int, descending: bool = False) -> Expr:
    """Return the places of an array's elements in order along an axis, equal ones as they come."""
    node = dense_of(node)
    if not descending:
        return by_lanes(node, axis, lambda lane, along: ArgSort(lane, along))
    # The last in ascending order are first, and of equal ones, the first as the array is turned round.
    found = by_lanes(flipped(node, axis), axis, lambda lane, along: ArgSort(lane, along))
    return call(np.subtract, (node.shape[axis] - 1, flipped(found, axis)))[0]


def by_lanes(node: Expr, axis: int, function: Callable[[Expr, int], Expr], first: int = 0) -> Expr:
    """Return what a function of arrays and an axis gives, for each lane on its own where few are long.

    Parameters
    ----------
    first
        How many axes the function puts before those of the array.
    """
    lanes = node.size // max(1, node.shape[axis])
    if node.ndim == 1 or not 1 <= lanes <= _FEW_LANES:
        return function(node, axis)
    if node.shape[axis] * node.dtype.itemsize < _LONG_BYTES:
        return function(node, axis)
    lane = next((place for place, length in enumerate(node.shape) if length > 1 and place != axis), None)
    if lane is None:
        key = tuple(slice(0, length, 1) if place == axis else 0 for place, length in enumerate(node.shape))
        found = function(Index(node, key), 0)
        kept = tuple(slice(0, length, 1) for length in found.shape)
        back = tuple(kept[first] if place == axis else None for place in range(node.ndim))
        return Index(found, (*kept[:first], *back))
    parts = []
    for number in range(node.shape[lane]):
        key = tuple(
            slice(number, number + 1, 1) if place == lane else slice(0, length, 1)
            for place, length in enumerate(node.shape)
        )
        parts.append(by_lanes(Index(node, key), axis, function, first))
    return Concatenate(tuple(parts), first + lane)


def flipped(node: Expr, axis: int) -> Expr:
    """Return an array with an axis in reverse order."""
    return Index(
        node,
        tuple(
            slice(length - 1, None, -1) if place == axis and length else slice(0, length, 1)
            for place, length in enumerate(node.shape)
        ),
    )


def dense_of(node: Expr) -> Expr:
    """Return an array with every element stored."""
    return Broadcast(node, node.shape) if node.sparse else node

"""Small parts of an array that a loop of the user's assigns or computes one by one: that is told."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from math import prod
from types import CodeType
from weakref import WeakKeyDictionary

import numpy as np

from matnb.errors import warn
from matnb.expr.nodes import Expr, Index

_MANY = 200
_LARGEST = 2**13  # elements; work on more takes longer than a step
_SHARE = 8  # a small part is at most this fraction of its array
_MOST_PLACES = 100
_MOST_NODES = 256  # of the few steps from a part to a value
_ARRAY = "np.polyfit(t, f.reshape(len(t), -1), 1)"
# Of what an assignment gave, how many assignments of small parts made it, with nothing between them.
_assigned: WeakKeyDictionary[Expr, int] = WeakKeyDictionary()
_computed: dict[tuple[CodeType, int], int] = {}  # by the place in the user's code
_parts: dict[tuple[CodeType, int], WeakKeyDictionary[Expr, Hashable]] = {}


def written(version: Expr, before: Expr, key: object) -> Expr:
    """Count an assignment ``x[key] = value`` to a small part of an array, and warn where many follow.

    Parameters
    ----------
    version, before
        What the array stands for now, which is returned, and what it stood for.
    """
    count = _assigned.pop(before, 0) + 1
    if not _is_small(key, before):
        return version
    _assigned[version] = count
    if count == _MANY:
        warn(
            f"{_MANY} elements or small parts of an array were assigned one by one here, each a step of its "
            "own, which takes milliseconds: assign slices, as in u[1:-1] = (u[:-2] + u[2:]) / 2; call a "
            f"function for the whole array, as in {_ARRAY}; or fill a NumPy array, such as np.array(u), and "
            "give it to mn.asarray. Steps that need the one before are np.cumsum's or mn.iterate's"
        )
    return version


def _is_small(key: object, node: Expr) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    bounds = (bound for one in parts for bound in _bounds_of(one))
    if len(parts) > node.ndim or not all(isinstance(one, int | np.integer) for one in bounds):
        return False
    lengths = [
        len(range(*one.indices(length))) if isinstance(one, slice) else 1
        for one, length in zip(parts, node.shape, strict=False)
    ]
    size = prod(lengths) * prod(node.shape[len(parts) :])
    return size <= 1 or (size <= _LARGEST and size * _SHARE <= node.size)


def _bounds_of(part: object) -> tuple[object, ...]:
    # What may be known only at run time, and is not to be computed for this.
    if isinstance(part, slice):
        return tuple(one for one in (part.start, part.stop, part.step) if one is not None)
    return (part,)


def note_computation(node: Expr) -> None:
    """Count a computation by the line that asks for it, and warn where many are of parts of one array."""
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("matnb.lazy."):
        frame = frame.f_back
    if str(frame.f_globals.get("__name__")).startswith("matnb."):
        return  # an algorithm of ours
    place = frame.f_code, frame.f_lasti
    if place not in _computed and len(_computed) >= _MOST_PLACES:
        _computed.clear()
        _parts.clear()
    count = _computed[place] = _computed.get(place, 0) + 1
    if count == _MANY - 1:
        _parts[place] = WeakKeyDictionary({one.operand: one.key for one in _small_parts(node)})
    elif count == _MANY:
        before = _parts.pop(place)
        if any(before.get(one.operand, one.key) != one.key for one in _small_parts(node)):
            warn(
                f"{_MANY} small parts of an array were computed one by one here, each a run of its own, "
                f"which takes milliseconds: call a function for the whole array, as in {_ARRAY}, or loop "
                "over c = np.asarray(f), which brings it here once"
            )


def _small_parts(node: Expr) -> list[Index]:
    # The parts of larger arrays that a value is computed from, if from nothing else that is large.
    waiting, seen, found = [node], {node}, []
    while waiting:
        one = waiting.pop()
        if one.size > _LARGEST or len(seen) > _MOST_NODES:
            return []
        if isinstance(one, Index) and one.operand.size > _LARGEST:
            found.append(one)
            continue
        new = [operand for operand in one.operands if operand not in seen]
        waiting += new
        seen.update(new)
    return found

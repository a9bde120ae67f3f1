"""Orders within segments: short ones whole, each by one task, and long ones by the sorting of flat arrays."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from matnb.lazy.array import DistArray, handle_of, wrap
from matnb.nested.segments import Knots, SegmentOrder
from matnb.nested.structure import Structure

_MOST_SHARES = 1.5  # of the blocks' length: no task has a longer segment whole


def ordered(values: DistArray, structure: Structure, wanted: str) -> DistArray:
    """Return the "values" of each segment in ascending order, or their "places" or "ranks" within it.

    Equal values keep their order, and NaN are last. Segments that are longer than a block and a half are
    sorted as flat arrays are, block by block, so that no worker needs one whole.
    """
    parts: list[Any] = []
    for first, last in _ranges(structure):
        segments, places = structure.knots.segments, structure.knots.values
        begin, end = places[first], places[last]
        part = values if end - begin == structure.num_values else values[begin:end]
        if last - first == 1 and _is_long(structure, first):
            parts.append(_of_one(part, wanted))
            continue
        knots = Knots(
            tuple(one - segments[first] for one in segments[first : last + 1]),
            tuple(one - begin for one in places[first : last + 1]),
        )
        offsets: DistArray = structure.offsets
        if knots != structure.knots:
            offsets = structure.offsets[segments[first] : segments[last] + 1] - begin
        parts.append(wrap(SegmentOrder(part.expression, offsets.expression, knots, wanted)))
    return parts[0] if len(parts) == 1 else handle_of(np.concatenate(parts))


def _ranges(structure: Structure) -> list[tuple[int, int]]:
    # Of knots, between which are one long segment or any number of others, but not none of the values.
    bounds = {0, len(structure.knots.values) - 1}
    for number in range(len(structure.knots.values) - 1):
        if _is_long(structure, number):
            bounds |= {number, number + 1}
    places = structure.knots.values
    return [(one, other) for one, other in pairwise(sorted(bounds)) if places[one] < places[other]]


def _is_long(structure: Structure, number: int) -> bool:
    knots, num_blocks = structure.knots, len(structure.cuts) - 1
    length = knots.values[number + 1] - knots.values[number]
    is_one = knots.segments[number + 1] - knots.segments[number] == 1
    return is_one and length * num_blocks > _MOST_SHARES * structure.num_values


def _of_one(values: DistArray, wanted: str) -> object:
    if wanted == "values":
        return np.sort(values)
    places = np.argsort(values, kind="stable")
    return places if wanted == "places" else np.argsort(places, kind="stable")

"""What it means to list distinct elements."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from matnb.ops.nodes.uniques import CountDistinct, Distinct, DistinctField
from matnb.ops.reference.registry import Value, dense, means


@means(Distinct)
def distinct(node: Distinct, operands: Sequence[Value]) -> Value:
    """Return the bytes that pack what is distinct in each part: a count, then values, starts and places."""
    values = dense(operands[0])
    places = np.argsort(values, kind="stable")
    ordered = values[places]
    # All NaN are equal here, or none is.
    missing = ordered != ordered
    is_new = np.append(True, ordered[1:] != ordered[:-1]) if ordered.size else missing
    if node.equal_nan:
        is_new &= ~(missing & np.append(False, missing[:-1]))
    found = np.zeros(node.shape, np.uint8)
    for (start, stop), (begin, end) in zip(pairwise(node.cuts), pairwise(node.ends), strict=True):
        firsts = start + np.flatnonzero(is_new[start:stop])
        part, room = found[begin:end], stop - start
        part[:8].view(np.int64)[0] = firsts.size
        part[8 : 8 + firsts.size * values.itemsize] = ordered[firsts].view(np.uint8)
        behind = end - begin - 8 * room * (node.starts + node.places)
        for is_there, numbers in ((node.starts, firsts), (node.places, places[firsts])):
            if is_there:
                part[behind : behind + 8 * firsts.size] = numbers.astype(np.int64).view(np.uint8)
                behind += 8 * room
    return found


@means(CountDistinct)
def count_distinct(node: CountDistinct, operands: Sequence[Value]) -> Value:
    """Return how many distinct elements each part has."""
    packed = dense(operands[0])
    return np.array([packed[begin : begin + 8].view(np.int64)[0] for begin in node.ends[:-1]], np.int64)


@means(DistinctField)
def distinct_field(node: DistinctField, operands: Sequence[Value]) -> Value:
    """Return the values, starts or places of what is distinct."""
    packed, found = dense(operands[0]), []
    lengths = [stop - start for start, stop in pairwise(node.cuts)]
    for (begin, end), room, count in zip(pairwise(node.ends), lengths, node.counts, strict=True):
        at = begin + 8
        if node.field != "values":
            at = end - 8 * room * (2 if node.field == "starts" and node.places else 1)
        found.append(packed[at : at + count * node.dtype.itemsize].view(node.dtype))
    return np.concatenate([np.empty(0, node.dtype), *found])

"""What it means to tell keys apart part by part."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from matnb.blocks.semiring import MONOIDS
from matnb.ops.nodes.grouping import Codes, Combined, NumCodes, PartKeys, Picked
from matnb.ops.reference.registry import Value, dense, means


@means(Codes)
def codes(node: Codes, operands: Sequence[Value]) -> Value:
    """Return the place of each key among those of its part."""
    keys = dense(operands[0])
    found = np.zeros(keys.shape, node.dtype)
    for start, stop in pairwise(node.before):
        found[start:stop] = np.unique(keys[start:stop], return_inverse=True)[1]
    return found


@means(NumCodes)
def num_codes(node: NumCodes, operands: Sequence[Value]) -> Value:
    """Return how many distinct keys each part has."""
    array = dense(operands[0])
    counts = [array[start:stop].max(initial=-1) + 1 for start, stop in pairwise(node.before)]
    return np.array(counts, node.dtype)


@means(PartKeys)
def part_keys(node: PartKeys, operands: Sequence[Value]) -> Value:
    """Return the distinct keys of each part."""
    keys, places = map(dense, operands)
    found = np.zeros(node.shape, node.dtype)
    for (start, stop), (first, last) in _parts(node):
        found[first:last][places[start:stop]] = keys[start:stop]
    return found


@means(Combined)
def combined(node: Combined, operands: Sequence[Value]) -> Value:
    """Return the values of each distinct key of a part combined."""
    values, places = map(dense, operands)
    monoid = MONOIDS["plus" if node.monoid == "count" else node.monoid]
    if node.monoid == "count":
        values = np.ones(values.shape[:1], node.dtype)
    found = np.full(node.shape, monoid.identity(node.dtype), node.dtype)
    for (start, stop), (first, last) in _parts(node):
        part = values[start:stop].astype(node.dtype)
        getattr(np, monoid.ufunc).at(found[first:last], places[start:stop], part)
    return found


@means(Picked)
def picked(node: Picked, operands: Sequence[Value]) -> Value:
    """Return for each key what stands for it."""
    elements, places = map(dense, operands)
    found = np.zeros(node.shape, node.dtype)
    for (start, stop), (first, last) in _parts(node):
        found[start:stop] = elements[first:last][places[start:stop]]
    return found


def _parts(
    node: PartKeys | Combined | Picked,
) -> Sequence[tuple[tuple[int, int], tuple[int, int]]]:
    return list(zip(pairwise(node.before), pairwise(node.after), strict=True))

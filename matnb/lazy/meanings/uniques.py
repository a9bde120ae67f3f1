"""What it means to list distinct elements."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from matnb.blocks.formats import Dense
from matnb.blocks.kernels.uniques import count_of, field_of
from matnb.blocks.kernels.uniques import distinct as distinct_in
from matnb.lazy.meanings.registry import Value, dense, means
from matnb.lazy.nodes.uniques import CountDistinct, Distinct, DistinctField


@means(Distinct)
def distinct(node: Distinct, operands: Sequence[Value]) -> Value:
    """Return the bytes that pack what is distinct in each part."""
    values = dense(operands[0])
    places = np.argsort(values, kind="stable")
    ordered = values[places]
    parts = []
    for start, stop in pairwise(node.cuts):
        begin = max(start - 1, 0)
        pieces = [Dense(one[begin:stop]) for one in ((ordered, places) if node.places else (ordered,))]
        blocks = (Dense(np.array([[start], [stop]])), *pieces)
        options = (node.equal_nan, node.starts, node.places)
        parts.append(distinct_in(blocks, 0, start, *options).values)
    return np.concatenate([np.empty(0, np.uint8), *parts])


@means(CountDistinct)
def count_distinct(node: CountDistinct, operands: Sequence[Value]) -> Value:
    """Return how many distinct elements each part has."""
    return np.concatenate([count_of([part]).values for part in _parts(node.ends, operands[0])])


@means(DistinctField)
def distinct_field(node: DistinctField, operands: Sequence[Value]) -> Value:
    """Return the values, starts or places of what is distinct."""
    found = []
    for part, (start, stop) in zip(_parts(node.ends, operands[0]), pairwise(node.cuts), strict=True):
        options = (node.element, node.starts, node.places)
        found.append(field_of([part], node.field, stop - start, *options).values)
    return np.concatenate(found)


def _parts(ends: tuple[int, ...], value: Value) -> list[Dense]:
    return [Dense(dense(value)[start:stop]) for start, stop in pairwise(ends)]

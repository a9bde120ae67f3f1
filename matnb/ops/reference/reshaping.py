"""What it means to reshape and to repeat."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from matnb.ops.nodes.reshaping import CountsOf, Repeat, RepeatEach, Reshape
from matnb.ops.reference.registry import Value, dense, means


@means(Reshape)
def reshape(node: Reshape, operands: Sequence[Value]) -> Value:
    """Return the elements in another shape."""
    (value,) = operands
    if node.sparse and 0 in node.shape:
        return sp.csr_array(node.shape, dtype=node.dtype)
    if node.sparse:
        return sp.csr_array(value.reshape((node.shape[0], node.shape[1])))
    return dense(value).reshape(node.lengths)


@means(Repeat)
def repeat(node: Repeat, operands: Sequence[Value]) -> Value:
    """Return each slice so many times."""
    repeated = np.repeat(dense(operands[0]), node.count, node.axis)
    return sp.csr_array(repeated) if node.sparse else repeated


@means(CountsOf)
def counts_of(node: CountsOf, operands: Sequence[Value]) -> Value:
    """Return the sum of each part."""
    counts = dense(operands[0])
    parts = (counts[start:stop] for start, stop in pairwise(node.cuts))
    return np.array([-1 if (one < 0).any() else one.sum() for one in parts], np.int64)


@means(RepeatEach)
def repeat_each(node: RepeatEach, operands: Sequence[Value]) -> Value:
    """Return each slice as often as its count says."""
    repeated = np.repeat(dense(operands[0]), dense(operands[1]), node.axis)
    return sp.csr_array(repeated) if node.sparse else repeated

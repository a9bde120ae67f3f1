"""What it means to count, pick, place and write where booleans are true."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from matnb.ops.nodes.selecting import Compress, CountTrue, Expand, TruePlaces
from matnb.ops.reference.registry import Value, dense, means


@means(CountTrue)
def count_true(node: CountTrue, operands: Sequence[Value]) -> Value:
    """Return how many there are in each part."""
    mask = dense(operands[0])
    return np.array([np.count_nonzero(mask[start:stop]) for start, stop in pairwise(node.cuts)], np.int64)


@means(Compress)
def compress(node: Compress, operands: Sequence[Value]) -> Value:
    """Return what is picked."""
    values, mask = operands[0], dense(operands[1])
    if node.sparse:
        return sp.csr_array(values)[np.flatnonzero(mask)]
    return np.asarray(dense(values)[mask])


@means(Expand)
def expand(node: Expand, operands: Sequence[Value]) -> Value:
    """Return the array with the values written."""
    values = dense(operands[0]).copy()
    values[dense(operands[1])] = dense(operands[2])
    return sp.csr_array(values) if node.sparse else values


@means(TruePlaces)
def true_places(node: TruePlaces, operands: Sequence[Value]) -> Value:
    """Return the places on one axis."""
    return np.asarray(np.nonzero(dense(operands[0]))[node.axis], np.int64)

"""What it means to count values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matnb.errors import IndexingError, ShapeError
from matnb.ops.nodes.counting_values import Binned, Count, Edges, Extent
from matnb.ops.reference.registry import Value, dense, means


@means(Extent)
def extent(node: Extent, operands: Sequence[Value]) -> Value:
    """Return the least and the greatest element."""
    array = dense(operands[0])
    return np.array([array.min(), array.max()], node.dtype)


@means(Edges)
def edges(node: Edges, operands: Sequence[Value]) -> Value:
    """Return the edges of equal bins."""
    low, high = dense(operands[0])
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ShapeError(f"bins of values from {low} to {high}, which is not finite: give range=")
    with np.errstate(all="ignore"):
        return np.histogram(np.empty(0, operands[0].dtype), node.count, (low, high))[1].astype(node.element)


@means(Binned)
def binned(node: Binned, operands: Sequence[Value]) -> Value:
    """Return counts, or sums of weights, between edges."""
    arrays = [dense(one) for one in operands]
    keep = np.ones(arrays[0].shape, np.bool_)
    places = []
    for values, bounds in zip(arrays, arrays[node.num_axes : 2 * node.num_axes], strict=False):
        if (bounds[:-1] > bounds[1:]).any():
            raise ShapeError(f"edges of bins must ascend, and {bounds} do not")
        place = np.searchsorted(bounds, values, side="right") - 1
        place[values == bounds[-1:]] = bounds.size - 2
        keep &= (place >= 0) & (place < bounds.size - 1) & (values == values)
        places.append(place)
    longest = {"f": np.float64, "c": np.complex128, "u": np.uint64}.get(node.dtype.kind, np.int64)
    totals: np.ndarray = np.zeros(node.shape, longest)
    added = arrays[-1][keep].astype(totals.dtype) if node.weights else 1
    np.add.at(totals, tuple(place[keep] for place in places), added)
    return totals.astype(node.dtype)


@means(Count)
def count(node: Count, operands: Sequence[Value]) -> Value:
    """Return how often each whole number occurs."""
    labels = dense(operands[0])
    outside = np.flatnonzero((labels.ravel() < 0) | (labels.ravel() >= node.length))
    if outside.size:
        raise IndexingError(
            f"label {labels.flat[outside[0]]} at position {outside[0]}: labels go from 0 to {node.length - 1}"
        )
    counts = np.zeros(node.length, np.int64)
    np.add.at(counts, labels.ravel().astype(np.int64), 1)
    return counts

"""What it means to count values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matnb.blocks.formats import Dense
from matnb.blocks.kernels.counting_values import check_edges, edges_between, sums_dtype
from matnb.errors import IndexingError
from matnb.lazy.meanings.registry import Value, dense, means
from matnb.lazy.nodes.counting_values import Binned, Count, Edges, Extent


@means(Extent)
def extent(node: Extent, operands: Sequence[Value]) -> Value:
    """Return the least and the greatest element."""
    array = dense(operands[0])
    return np.array([array.min(), array.max()], node.dtype)


@means(Edges)
def edges(node: Edges, operands: Sequence[Value]) -> Value:
    """Return the edges of equal bins."""
    return edges_between([Dense(dense(operands[0]))], node.count, node.element).values


@means(Binned)
def binned(node: Binned, operands: Sequence[Value]) -> Value:
    """Return counts, or sums of weights, between edges."""
    arrays = [dense(one) for one in operands]
    keep = np.ones(arrays[0].shape, np.bool_)
    places = []
    for values, bounds in zip(arrays, arrays[node.num_axes : 2 * node.num_axes], strict=False):
        check_edges(bounds)
        place = np.searchsorted(bounds, values, side="right") - 1
        place[values == bounds[-1:]] = bounds.size - 2
        keep &= (place >= 0) & (place < bounds.size - 1) & (values == values)
        places.append(place)
    totals = np.zeros(node.shape, sums_dtype(node.dtype))
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

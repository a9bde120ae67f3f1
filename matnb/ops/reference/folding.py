"""What the place of an extreme and a ufunc's fold are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matnb.errors import ShapeError
from matnb.ops.nodes.folding import Extreme, Fold
from matnb.ops.reference.registry import Value, dense, means


@means(Extreme)
def extreme(node: Extreme, operands: Sequence[Value]) -> Value:
    """Return the places of extremes."""
    values = dense(operands[0])
    axis = node.axes[0] if len(node.axes) == 1 else None
    try:
        places = getattr(np, node.operation)(values, axis=axis, keepdims=node.keepdims)
    except ValueError as error:  # nothing but NaN
        raise ShapeError(f"{node.operation}: {error}") from None
    return np.asarray(places)


@means(Fold)
def fold(node: Fold, operands: Sequence[Value]) -> Value:
    """Return what a ufunc makes of all elements over some axes."""
    values = dense(operands[0])
    for axis in reversed(node.axes):  # some ufuncs of NumPy take one axis at a time
        values = getattr(np, node.ufunc).reduce(values, axis=axis, keepdims=node.keepdims)
    return np.asarray(values).astype(node.dtype)

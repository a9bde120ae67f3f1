"""What windows are, what is made of them, and what a convolution is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matnb.ops.nodes.sliding import Convolve, WindowReduce, Windows
from matnb.ops.reference.registry import Value, dense, means

_REDUCTIONS = {"sum": np.sum, "prod": np.prod, "min": np.min, "max": np.max, "any": np.any, "all": np.all}


@means(Windows)
def windows(node: Windows, operands: Sequence[Value]) -> Value:
    """Return each stretch of neighbors along an axis."""
    found: Value = np.lib.stride_tricks.sliding_window_view(dense(operands[0]), node.length, node.axis)
    return found


@means(WindowReduce)
def window_reduce(node: WindowReduce, operands: Sequence[Value]) -> Value:
    """Return what a reduction makes of each stretch of neighbors."""
    seen = np.lib.stride_tricks.sliding_window_view(dense(operands[0]), node.length, node.axis)
    if node.operation == "deviation":
        wide = seen.astype(node.dtype)
        return np.asarray(np.square(wide - wide.mean(axis=-1, keepdims=True)).sum(axis=-1))
    options = {"dtype": node.dtype} if node.operation in ("sum", "prod") else {}
    return np.asarray(_REDUCTIONS[node.operation](seen, axis=-1, **options))  # type: ignore[operator]  # one of them


@means(Convolve)
def convolve(node: Convolve, operands: Sequence[Value]) -> Value:
    """Return a part of the convolution of two vectors."""
    full: np.ndarray = np.convolve(*map(dense, operands))  # type: ignore[call-overload]  # vectors of one dtype
    places = np.arange(node.start, node.start + node.length)
    inside = (places >= 0) & (places < full.size)
    return np.asarray(np.where(inside, full[np.clip(places, 0, full.size - 1)], node.dtype.type(0)))

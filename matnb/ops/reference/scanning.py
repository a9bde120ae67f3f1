"""What a scan is, and what differences are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matnb.ops.nodes.scanning import Differences, Scan
from matnb.ops.reference.registry import Value, dense, means


@means(Scan)
def scan(node: Scan, operands: Sequence[Value]) -> Value:
    """Return what a ufunc makes of the elements up to each one."""
    values = dense(operands[0])
    if values.dtype != node.dtype:
        values = values.astype(node.dtype)
    return np.asarray(getattr(np, node.ufunc).accumulate(values, axis=node.axis, dtype=node.dtype))


@means(Differences)
def differences(node: Differences, operands: Sequence[Value]) -> Value:
    """Return each element less the one before it."""
    return np.diff(dense(operands[0]), axis=node.axis)

"""What it means to put arrays together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from matnb.ops.nodes.joining import Concatenate, Pad
from matnb.ops.reference.registry import Value, dense, means


@means(Concatenate)
def concatenate(node: Concatenate, operands: Sequence[Value]) -> Value:
    """Return the arrays one after the other."""
    before = (slice(None),) * node.axis
    cuts = [(*before, slice(*part)) for part in node.parts]
    values = [one[cut] for one, cut in zip(operands, cuts, strict=True)]  # type: ignore[index]  # stubs: no slices
    if node.sparse:
        stack = sp.vstack if node.axis == 0 else sp.hstack
        return sp.csr_array(stack(values).astype(node.dtype))  # type: ignore[arg-type]  # sparse here
    return np.concatenate([dense(one) for one in values], axis=node.axis)


@means(Pad)
def pad(node: Pad, operands: Sequence[Value]) -> Value:
    """Return an array with its edges, or constants, around it."""
    made = dense(operands[0])
    if not node.constants:
        made = np.pad(made, node.widths, mode="edge")
    for axis, ends in enumerate(node.constants):
        parts = [made]
        for place, width, content in zip((0, 1), node.widths[axis], ends, strict=True):
            shape = (*made.shape[:axis], width, *made.shape[axis + 1 :])
            edge = np.full(shape, np.frombuffer(content, made.dtype)[0])
            parts.insert(len(parts) if place else 0, edge)
        made = np.concatenate(parts, axis)
    return sp.csr_array(made) if node.sparse else made

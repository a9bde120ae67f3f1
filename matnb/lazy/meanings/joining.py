"""What it means to put arrays together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from matnb.blocks.kernels.padding import padded_values
from matnb.lazy.meanings.registry import Value, dense, means
from matnb.lazy.nodes.joining import Concatenate, Pad


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
    made = padded_values(dense(operands[0]), node.widths, node.constants)
    return sp.csr_array(made) if node.sparse else made

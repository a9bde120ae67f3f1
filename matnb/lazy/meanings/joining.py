"""What it means to put arrays together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from matnb.lazy.meanings.registry import Value, dense, means
from matnb.lazy.nodes.joining import Concatenate


@means(Concatenate)
def concatenate(node: Concatenate, operands: Sequence[Value]) -> Value:
    """Return the arrays one after the other."""
    if node.sparse:
        stack = sp.vstack if node.axis == 0 else sp.hstack
        return sp.csr_array(stack(list(operands)).astype(node.dtype))  # type: ignore[arg-type]  # sparse here
    return np.concatenate([dense(one) for one in operands], axis=node.axis)

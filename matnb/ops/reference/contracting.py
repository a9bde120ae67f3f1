"""What products whose axes have names mean, and Kronecker's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from matnb.ops.nodes.contracting import Contract, Kron
from matnb.ops.reference.registry import Value, dense, means


@means(Contract)
def contract(node: Contract, operands: Sequence[Value]) -> Value:
    """Return the sum of products."""
    interleaved = [part for one, own in zip(operands, node.names, strict=True) for part in (dense(one), own)]
    return np.asarray(np.einsum(*interleaved, node.output, optimize=len(operands) > 2)).astype(node.dtype)


@means(Kron)
def kron(node: Kron, operands: Sequence[Value]) -> Value:
    """Return Kronecker's product."""
    if node.sparse:
        left, right = (sp.csr_array(one) for one in operands)
        found: sp.csr_array = sp.kron(left, right, format="csr").astype(node.dtype)
        return found
    return np.kron(*map(dense, operands))

"""Sparse arrays made dense, where an operation has no sparse way."""

from __future__ import annotations

from matnb.errors import UnsupportedError
from matnb.expr.client_data import SHIP_BYTES
from matnb.expr.nodes import Broadcast, Expr
from matnb.pictures.quantities import bytes_text


def densified(node: Expr, name: str) -> Expr:
    """Return an array dense, block by block; the array itself where it is.

    Raises
    ------
    UnsupportedError
        Above 64 MB: nobody expects a large one.
    """
    if not node.sparse:
        return node
    num_bytes = node.size * node.dtype.itemsize
    if num_bytes > SHIP_BYTES:
        raise UnsupportedError(
            f"{name}: a sparse array of shape {node.shape} would become dense here, {bytes_text(num_bytes)}: "
            "write it with @, * and sums of matrices and vectors, in which it stays sparse, or make it dense "
            "before: A + mn.zeros(A.shape)"
        )
    return Broadcast(node, node.shape)
